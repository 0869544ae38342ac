# SPDX-License-Identifier: BSD-3-Clause
"""Events: the kernel's (ctnetlink, what conntrack -E prints) and Sluice's, after each packet of the
scenarios in which the two gateways agree and that take no time."""

import errno
import functools
import json
import pathlib
import socket
import tempfile

import pytest

import build
import ctnetlink
import replay
import scenario
from answers import flags_of
from capture import SEC
from kernel import inside

# ctnetlink's groups and message types.
SOL_NETLINK, ADD_MEMBERSHIP = 270, 1
GROUPS = {'NEW': 1, 'UPDATE': 2, 'DESTROY': 3}
CT_NEW, CT_DELETED, CREATE = 0x100, 0x102, 0x400
SLACK = 2


class Event:
    def __init__(self, kind, protocol, state, left, flags, tuples):
        self.kind, self.left = kind, left
        self.key = kind, protocol, state, flags, tuples

    def same(self, other):
        return self.key == other.key and abs(self.left - other.left) <= SLACK

    def __str__(self):
        return f'{self.key} {self.left}'


class Listener:
    """Events of the kernel's gateway."""

    def __init__(self, kernel):
        with inside(kernel.names['gateway']):
            self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW,
                                        ctnetlink.NETLINK_NETFILTER)
        self.socket.bind((0, 0))
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 21)
        for group in GROUPS.values():
            self.socket.setsockopt(SOL_NETLINK, ADD_MEMBERSHIP, group)

    def take(self):
        """What has come since it was asked the last time."""
        found = []
        while True:
            try:
                data, at = self.socket.recv(1 << 20), 0
            except BlockingIOError:
                return found
            except OSError as e:
                assert e.errno != errno.ENOBUFS, 'the kernel lost events'
                raise
            while at + 16 <= len(data):
                length, kind, flags = (int.from_bytes(data[at + a:at + b], 'little')
                                       for a, b in ((0, 4), (4, 6), (6, 8)))
                found.append(self._event(kind, flags, data[at + 20:at + length]))
                at += (length + 3) & ~3

    @staticmethod
    def _event(kind, flags, body):
        assert kind in (CT_NEW, CT_DELETED)
        name = 'DESTROY' if kind == CT_DELETED else 'NEW' if flags & CREATE else 'UPDATE'
        a = ctnetlink.attributes(body)
        e = ctnetlink._entry(body)
        assert (ctnetlink.COUNTERS_ORIG in a) == (name == 'DESTROY')
        tuples = tuple((d.key, d.packets, d.octets) for d in e.directions)
        return Event(name, e.protocol, e.state, e.left, e.flags, tuples)


def sluice_event(item):
    e = dict(item)
    for side in ('orig', 'reply'):
        assert ('packets' in e[side]) == (e['event'] == 'DESTROY')
        e[side] = {'packets': 0, 'bytes': 0} | e[side]
    left = e['timeout']
    entry = replay.entry_of(e | {'timeout': left or 0})
    state = entry.state if 'STATE' in e.get('changed', ['STATE']) else None
    tuples = tuple((d.key, d.packets, d.octets) for d in entry.directions)
    return Event(e['event'], entry.protocol, state, left or 0,
                 flags_of('SEEN_REPLY' in e['status'], 'ASSURED' in e['status']), tuples)


def sluice_events(sluice, scenarios):
    """For each scenario a list of lists: the events of each step."""
    arrivals, at, now = {'in': [], 'out': []}, {}, replay.START
    for vlan, one in enumerate(scenarios, 1):
        for n, step in enumerate(one.steps):
            now += replay.STEP
            at[now] = vlan - 1, n
            arrivals[step.side].append(
                (now, replay.frame(vlan, build.ethertype(step.packet), step.data)))
    commands = [(min(at), 'conntrack events'), (now + replay.STEP, 'conntrack events')]
    with tempfile.TemporaryDirectory(prefix='sluice-oracle-') as tmp:
        path = pathlib.Path(tmp)
        (path / 'conf').write_text(replay.config(scenarios))
        first, second = map(json.loads, replay.Replay(sluice)._replay(path, arrivals, commands))
    assert first == {'count': 0, 'lost': 0}
    assert second['lost'] == 0 and second['count'] == len(second['items'])
    found = [[[] for _ in one.steps] for one in scenarios]
    for item in second['items']:
        i, n = at.get(round(item['time'] * SEC / 1000) * 1000, (-1, 0))
        if item['netns'] == f'sc{i + 1}':       # else one expires while another runs
            found[i][n].append(sluice_event(item))
    return found


def kernel_events(kernel, listener, s):
    """The kernel's, of each step."""
    found = []
    listener.take()
    for step in s.steps:
        kernel.send(step.side, build.ethertype(step.packet), step.data)
        found.append(listener.take())
    return found


def news(steps):
    """Without updates in which nothing is new: the kernel tells of a SYN/ACK that answers a
    repeated SYN, though what is listed stays the same."""
    last, found = {}, []
    for events in steps:
        found.append([])
        for e in events:
            kind, protocol, state, flags, tuples = e.key
            seen = last.get((protocol, tuples[0][0]), (None, None))
            if kind != 'UPDATE' or (state or seen[0], flags) != seen:
                found[-1].append(e)
            last[protocol, tuples[0][0]] = state or seen[0], flags
    return found


def suitable(s):
    return not (s.rules or s.knobs or s.datagrams or any(
        step.differs or step.after for step in s.steps))


def differences(scenarios, theirs, ours):
    for s, kernel, sluice in zip(scenarios, theirs, ours):
        for step, k, mine in zip(s.steps, kernel, sluice):
            if len(k) != len(mine) or not all(a.same(b) for a, b in zip(k, mine)):
                yield '\n'.join([f'{s.source}: {s.name}: {step.text}',
                                 *(f'    kernel {x}' for x in k),
                                 *(f'    sluice {x}' for x in mine)])


def test_events_of_scenarios(kernel, sluice):
    scenarios = [s for s in scenario.read_all() if suitable(s)]
    listener = Listener(kernel)
    theirs = [news(kernel.in_time(s, functools.partial(kernel_events, kernel, listener, s))[0])
              for s in scenarios]
    listener.socket.close()
    ours = sluice_events(sluice, scenarios)
    kinds = [e.kind for one in theirs for step in one for e in step]
    assert len(scenarios) >= 60
    assert all(kinds.count(kind) >= 5 for kind in GROUPS), kinds
    found = list(differences(scenarios, theirs, ours))
    if found:
        pytest.fail('\n'.join(found), pytrace=False)
