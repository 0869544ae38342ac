# SPDX-License-Identifier: BSD-3-Clause
"""The kernel as a gateway: a network namespace that forwards between two veths, whose far ends are
in another namespace, where raw sockets send and capture.

        namespace `ends`              namespace `gateway`
         in  ◀── veth ──▶  inside ─┐
                                   ├─ forwarding, nf_conntrack, nft rules
        out  ◀── veth ──▶ outside ─┘

How a step is known to be over: behind each packet goes a marker, a packet that is not tracked. All
runs on one CPU, and there packets are taken in order; so what the step causes is captured before
the marker is, and nothing has to be waited for. Whoever goes on for long takes the last CPU, and
tests the first.
"""

import contextlib
import ctypes
import os
import select
import socket
import struct
import subprocess
import time

import build
import ctnetlink
from answers import ICMP, ICMPV6, Answer
from hosts import GATEWAY, OTHER, PREFIXES, REDIRECT
from nftables import Nft
from packet import Packet

CLONE_NEWNET = 0x40000000
ETH_P_ALL = 3
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23
LINK = {'in': 'inside', 'out': 'outside'}
MAC = {'in': '02:00:00:00:01:00', 'out': '02:00:00:00:02:00'}       # of the gateway's interfaces
END_MAC = {'in': '02:00:00:00:01:01', 'out': '02:00:00:00:02:01'}
NEXT_HOP = {'in': ('10.255.1.2', 'fd00:1::2'), 'out': ('10.255.2.2', 'fd00:2::2')}
# Of an address that nothing is to be sent from.
ASIDE = ('preferred_lft', '0', 'nodad', 'noprefixroute')
OFFLOADS = ('tx', 'rx', 'tso', 'gso', 'gro', 'txvlan', 'rxvlan')
MARKER_PROTOCOL = 253   # RFC 3692: for experiments
TRIES, LATE = 5, 0.5
MARKER = {'in': 'Q > R', 'out': 'R > Q'}

SYSCTLS = ('net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1',
           'net.ipv4.icmp_ratelimit=0', 'net.ipv6.icmp.ratelimit=0',
           'net.ipv4.conf.all.rp_filter=0', 'net.ipv4.conf.default.rp_filter=0',
           'net.ipv4.conf.all.accept_local=1', 'net.ipv4.conf.default.accept_local=1',
           'net.ipv6.auto_flowlabels=0',
           'net.ipv4.conf.all.send_redirects=0', 'net.ipv4.conf.default.send_redirects=0',
           'net.ipv6.conf.all.accept_dad=0', 'net.ipv6.conf.default.accept_dad=0',
           'net.ipv6.conf.default.router_solicitations=0')

# The chains that Sluice has.
CHAINS = {
    'raw': 'type filter hook prerouting priority raw',
    'prerouting': 'type nat hook prerouting priority dstnat',
    'forward': 'type filter hook forward priority filter',
    'postrouting': 'type nat hook postrouting priority srcnat',
}

_libc = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
    """The machine cannot be the reference; the text says why."""


def sh(*words, text=None):
    done = subprocess.run(words, capture_output=True, text=True, input=text)
    if done.returncode:
        raise RuntimeError(f'{" ".join(words)}: {done.stderr or done.stdout}')
    return done.stdout


@contextlib.contextmanager
def inside(name):
    """This thread in another network namespace."""
    with open('/proc/self/ns/net') as here, open(f'/run/netns/{name}') as there:
        if _libc.setns(there.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f'setns {name}')
        try:
            yield
        finally:
            if _libc.setns(here.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), 'setns back')


def ruleset(scenario):
    """The nft file of a scenario. A namespace tracks nothing until some rule asks for a state."""
    lines = ['flush ruleset', 'table inet oracle {',
             ' chain marker {', f'  {CHAINS["raw"]} - 1',
             f'  meta l4proto {MARKER_PROTOCOL} notrack', ' }',
             ' chain tracking {', f'  {CHAINS["forward"]} - 1', '  ct state new counter']
    if scenario.invalid == 'drop':
        lines.append('  ct state invalid drop')
    lines.append(' }')
    for chain in dict.fromkeys(chain for chain, _ in scenario.rules):
        lines += [f' chain {chain} {{', f'  {CHAINS[chain]}',
                  f'  meta l4proto {MARKER_PROTOCOL} accept']
        lines += [f'  {text}' for name, text in scenario.rules if name == chain]
        lines.append(' }')
    return '\n'.join([*lines, '}', ''])


def late(packet):
    """Whether it tells of fragments, of some scenario before, that have waited in vain."""
    if packet[0] >> 4 == 4:
        return packet[9] == ICMP and packet[20:22] == bytes((11, 1)) and packet[12] == 10
    return packet[6] == ICMPV6 and packet[40:42] == bytes((3, 1)) and packet[8] == 0xfd


class Kernel:
    """Closed with close(); made once for many scenarios. choose: which of the CPUs."""

    def __init__(self, choose=min):
        if os.geteuid() != 0:
            raise Unavailable('network namespaces need root')
        name = f'sluice-oracle-{os.getpid()}'
        self.names = {'ends': f'{name}-ends', 'gateway': f'{name}-gateway'}
        self.cpus = os.sched_getaffinity(0)
        self.cpu = choose(self.cpus)
        self.table, self.nft, self.sockets = None, None, {}
        self.loaded, self.defaults = None, {}
        self.marks = 0
        try:
            self._build()
        except (OSError, RuntimeError) as e:
            self.close()
            raise Unavailable(f'no network namespace of the kernel: {e}') from e

    def _build(self):
        for ns in self.names.values():
            sh('ip', 'netns', 'add', ns)
        ends, gateway = self.names['ends'], self.names['gateway']
        sh('ip', 'netns', 'exec', ends, 'sysctl', '-qw', 'net.ipv6.conf.default.disable_ipv6=1')
        sh('ip', 'netns', 'exec', gateway, 'sysctl', '-qw', *SYSCTLS)
        for side in OTHER:
            self._link(side)
        os.sched_setaffinity(0, {self.cpu})
        with inside(ends):
            for side in OTHER:
                self.sockets[side] = self._raw(side)
        with inside(gateway):
            self.table = ctnetlink.Table()
            self.nft = Nft()
        self._knob('nf_conntrack_acct', '1')

    def _link(self, side):
        ends, gateway = self.names['ends'], self.names['gateway']
        sh('ip', '-n', gateway, 'link', 'add', LINK[side], 'address', MAC[side], 'type', 'veth',
           'peer', 'name', side, 'netns', ends, 'address', END_MAC[side])
        sh('ip', '-n', ends, 'link', 'set', side, 'arp', 'off', 'up')
        sh('ip', '-n', gateway, 'link', 'set', LINK[side], 'arp', 'off', 'addrgenmode', 'none')
        for ns, link in ((ends, side), (gateway, LINK[side])):
            off = [word for offload in OFFLOADS for word in (offload, 'off')]
            sh('ip', 'netns', 'exec', ns, 'ethtool', '-K', link, *off)
        # `redirect` takes the first address of IPv4, the last of IPv6. The kernel would answer
        # there by itself: it is to be routed on.
        own, aside = GATEWAY[side], REDIRECT.get(side, (None, None))
        for address in filter(None, (aside[0], own[0], own[1], aside[1])):
            sh('ip', '-n', gateway, 'address', 'add', address, 'dev', LINK[side],
               *(ASIDE if address in REDIRECT.get(side, ()) else ()))
        sh('ip', '-n', gateway, 'link', 'set', LINK[side], 'up')
        for address in REDIRECT.get(side, ()):
            sh('ip', '-n', gateway, 'route', 'delete', 'local', address.split('/')[0], 'dev',
               LINK[side], 'table', 'local')
        for hop, prefix in zip(NEXT_HOP[side], PREFIXES[side]):
            sh('ip', '-n', gateway, 'neighbour', 'add', hop, 'lladdr', END_MAC[side], 'dev',
               LINK[side], 'nud', 'permanent')
            sh('ip', '-n', gateway, 'route', 'add', prefix, 'via', hop, 'dev', LINK[side])

    @staticmethod
    def _raw(side):
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        s.bind((side, ETH_P_ALL))
        s.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        s.setblocking(False)
        return s

    def _knob(self, key, value):
        """Sets a knob; the value there was."""
        path = f'/proc/sys/net/netfilter/{key}'
        with inside(self.names['gateway']):
            with open(path) as f:
                before = f.read().strip()
            with open(path, 'w') as f:
                f.write(value)
        return before

    # ---- running ----

    def prepare(self, scenario):
        rules = ruleset(scenario)
        if rules != self.loaded:
            with inside(self.names['gateway']):
                self.nft.run(rules)
            self.loaded = rules
        for key, value in self.defaults.items():
            self._knob(key, value)
        self.defaults = {key: self._knob(key, value) for key, value in scenario.knobs.items()
                         if not key.startswith('sluice.')}
        self.table.flush()

    def frame(self, side, kind, packet):
        macs = (MAC[side] + ':' + END_MAC[side]).replace(':', '')
        return bytes.fromhex(macs) + struct.pack('!H', kind) + packet

    def send(self, side, kind, packet):
        """Sends a packet; what came out because of it, as (side, packet)."""
        self.marks += 1
        text = f'{MARKER[side]} proto={MARKER_PROTOCOL} hex={self.marks:016x}'
        marker = build.l3(Packet(text))
        s = self.sockets[side]
        s.send(self.frame(side, kind, packet))
        s.send(self.frame(side, 0x0800, marker))
        return self._captured(OTHER[side], struct.pack('!Q', self.marks))

    def _captured(self, side, mark):
        """All up to the marker, but for what the interfaces say of themselves (MLD, from ::). The
        marker's own side is read first: what came before it on the other is there then."""
        order = [(where, self.sockets[where]) for where in (side, OTHER[side])]
        outputs, ended = [], False
        deadline = time.monotonic() + 5
        while not ended:
            select.select([s for _, s in order], [], [], 5)
            for where, s in order:
                for packet in self._drain(s):
                    if packet[9:10] == bytes([MARKER_PROTOCOL]) and packet[0] >> 4 == 4:
                        ended |= where == side and packet[20:28] == mark
                    elif (packet[:1] != b'\x60' or packet[8:24] != bytes(16)) and not late(packet):
                        outputs.append((where, packet))
            if time.monotonic() > deadline:
                raise RuntimeError('the kernel lost a marker')
        return outputs

    @staticmethod
    def _drain(s):
        while True:
            try:
                frame = s.recv(65536)
            except BlockingIOError:
                return
            yield frame[14:]

    def run(self, scenario):
        """An Answer for each step, and by how many seconds they came too late."""
        return self.in_time(scenario, lambda: list(self._run(scenario)))

    def in_time(self, scenario, go):
        """What go() gives, which goes through the steps, and by how many seconds it took longer
        than the scenario says. The time is the real one, and answers depend on it (a UDP connection
        is a stream after 2 s): what was held up is run again, but for fragments, of which some may
        have stayed."""
        for _ in range(TRIES):
            self.prepare(scenario)
            began = time.monotonic()
            found = go()
            late_by = time.monotonic() - began - sum(step.after for step in scenario.steps)
            if late_by < LATE or scenario.whole:
                break
        return found, late_by

    def _run(self, scenario):
        tuples, entries = {}, []
        for step in scenario.steps:
            sent = step.sent(entries)
            p = sent.packet
            tuples[p.protocol, build.address(p.src), build.address(p.dst), p.ids] = None
            if step.after:
                time.sleep(step.after)
            outputs = self.send(sent.side, build.ethertype(p), sent.data)
            entries = self.table.find(tuples, scenario.zones)
            yield Answer(outputs, entries, sent)

    def close(self):
        for s in self.sockets.values():
            s.close()
        if self.table is not None:
            self.table.close()
        if self.nft is not None:
            self.nft.close()
        os.sched_setaffinity(0, self.cpus)
        for ns in self.names.values():
            subprocess.run(['ip', 'netns', 'delete', ns], capture_output=True)
