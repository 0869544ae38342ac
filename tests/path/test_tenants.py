# SPDX-License-Identifier: BSD-3-Clause
"""Namespaces with the same addresses in each: many (B01), and never mixed."""
import json

import pytest

from capture import SEC, read_pcap, write_pcap
from harness import START, entry, run_replay
from packets import A, S, icmp_error, l3, R, tagged, tcp, udp
from test_tcp import opened

FLOW = A(10000) > S(80)
C_TAG = 0x8100
TENANTS = 200


def wire(n, first=1):
    """n tenants, each on one VLAN of both ports."""
    lines = ['port add in devargs net_null0', 'port add out devargs net_null1',
             f'netns add prefix t count {n}']
    for i in range(first, n + first):
        lines += [f'link add inside port in vlan {i} netns t{i}',
                  f'link add outside port out vlan {i} netns t{i} peer inside']
    return '\n'.join(lines) + '\n'


def vlan(frame, vid):
    return tagged(frame, (C_TAG, vid))


def test_b01_identical_flows_of_many_tenants(sluice, tmp_path):
    """One entry for each, replies to their own tenant, no long chain; half of the tenants go in one
    batch, and the others do not notice."""
    (tmp_path / 'sluice.conf').write_text(wire(TENANTS))
    there, back = udp(FLOW), udp(~FLOW)
    tenants = range(1, TENANTS + 1)
    gone = range(1, TENANTS // 2 + 1)
    ins = [(START + i, vlan(there, i)) for i in tenants]
    ins += [(START + 4 * SEC + i, vlan(there, i)) for i in tenants]
    outs = [(START + SEC + i, vlan(back, i)) for i in tenants]
    write_pcap(tmp_path / 'in.pcap', ins)
    write_pcap(tmp_path / 'out.pcap', outs)
    args = ['-c', tmp_path / 'sluice.conf']
    for port in ('in', 'out'):
        args += ['--rx', f'{port}={tmp_path}/{port}.pcap', '--tx', f'{port}={tmp_path}/{port}.tx']
    for at, command in (
            ('2', 'conntrack list'), ('2', 'show memory'), ('2', 'stats'),
            ('3', 'netns delete ' + ' '.join(f't{i}' for i in gone)),
            ('3', 'conntrack count'), ('3', 'netns list'), ('5', 'conntrack list'), ('5', 'drops')):
        args += ['--at', at, command]
    done = run_replay(sluice, *args)
    assert done.returncode == 0, done.stderr + done.stdout
    before, memory, stats, _, count, names, after, drops = map(json.loads, done.stdout.splitlines())

    assert sorted(e['netns'] for e in before['items']) == sorted(f't{i}' for i in tenants)
    assert all('SEEN_REPLY' in e['status'] and e['orig']['src'] == A.addr for e in before['items'])
    assert read_pcap(tmp_path / 'in.tx') == outs
    assert longest_chain(memory) <= 2
    assert count['count'] == TENANTS - len(gone)
    assert {n['name'] for n in names['items']} == {'init'} | {f't{i}' for i in tenants
                                                              if i not in gone}
    assert sorted(e['netns'] for e in after['items']) == sorted(f't{i}' for i in tenants
                                                                if i not in gone)
    assert read_pcap(tmp_path / 'out.tx') == [p for p in ins if p[0] < START + SEC
                                              or p[0] - START - 4 * SEC not in gone]
    assert {d['reason']: d['packets'] for d in drops['items']} == {'no-link': len(gone)}
    assert stats is not None


def longest_chain(memory):
    return memory['longest_chain']


TWO = wire(2) + 'sysctl sluice.invalid=drop netns t1\nsysctl sluice.invalid=drop netns t2\n'


@pytest.fixture
def two(case):
    return case(config=TWO)


def side(c, at, port, frame, vid, **want):
    c.at(at).frame(port, vlan(frame, vid), **want)


def test_a_reply_is_no_reply_in_another_tenant(two):
    """The same packets: established in t1, no connection in t2."""
    c = two
    flow = A(40000) > S(80)
    side(c, 0, 'in', tcp(flow, 'S', seq=1000), 1)
    side(c, .1, 'out', tcp(~flow, 'SA', seq=4000, ack=1001), 2, drop='invalid-tcp-state')
    side(c, .2, 'out', tcp(~flow, 'SA', seq=4000, ack=1001), 1)
    side(c, .3, 'in', tcp(flow, 'A', seq=1001, ack=4001), 1)
    c.at(1).entries(entry(flow, 'tcp', netns='t1', state='ESTABLISHED', assured=True), netns='t1')
    c.at(1).entries(netns='t2')
    side(c, 2, 'out', tcp(~flow, 'R', seq=4001), 2, drop='invalid-tcp-state')
    c.at(3).entries(entry(flow, 'tcp', netns='t1', state='ESTABLISHED', assured=True), netns='t1')
    c.replay()


def test_an_error_is_about_a_packet_of_its_tenant(two):
    c = two
    sent = udp(FLOW)
    side(c, 0, 'in', sent, 1)
    error = icmp_error(R > A, 3, 1, l3(sent))
    side(c, 1, 'out', error, 2, drop='invalid-icmp-unrelated')
    side(c, 1, 'out', error, 1)
    c.replay()


def test_knobs_are_of_their_tenant(two):
    c = two
    c.config += 'sysctl nf_conntrack_udp_timeout=5 netns t1\n'
    for vid in (1, 2):
        side(c, 0, 'in', udp(FLOW), vid)
    c.at(1).entries(entry(FLOW, 'udp', left=4, unreplied=True), netns='t1')
    c.at(1).entries(entry(FLOW, 'udp', left=29, unreplied=True), netns='t2')
    c.replay()


def test_flush_and_delete_are_of_their_tenant(two):
    c = two
    for vid in (1, 2):
        side(c, 0, 'in', udp(FLOW), vid)
        side(c, 0, 'in', udp(A(1) > S(2)), vid)
    c.at(1).run('conntrack delete netns t1 dport 80')
    c.at(1).entries(entry(A(1) > S(2), 'udp', unreplied=True), netns='t1')
    c.at(2).run('conntrack flush netns t1')
    c.at(2).entries(netns='t1')
    c.at(2).run('conntrack count netns t2', lambda result: check_count(result, 2))
    c.replay()


def check_count(result, count):
    assert result['count'] == count


def shake_hands(c, at, flow, vid):
    side(c, at, 'in', tcp(flow, 'S', seq=1), vid)
    side(c, at + .001, 'out', tcp(~flow, 'SA', seq=9, ack=2), vid)
    side(c, at + .002, 'in', tcp(flow, 'A', seq=2, ack=10), vid)


def test_full_tenant_leaves_the_other_alone(two):
    """A maximum of three, all of them established: the fourth flow is refused by name, what is
    there goes on, t2 is free."""
    c = two
    c.config += 'sysctl nf_conntrack_max=3 netns t1\n'
    flows = [A(20000 + i) > S(80) for i in range(5)]
    for i, flow in enumerate(flows):
        if i < 3:
            shake_hands(c, i * .1, flow, 1)
        else:
            side(c, i * .1, 'in', tcp(flow, 'S', seq=1), 1, drop='ct-netns-full')
        side(c, i * .1, 'in', tcp(flow, 'S', seq=1), 2)
    side(c, 1, 'out', tcp(~flows[0], 'PA', seq=10, ack=2, data=b'x'), 1)
    c.at(2).run('conntrack count netns t1', lambda result: check_count(result, 3))
    c.at(2).run('conntrack count netns t2', lambda result: check_count(result, 5))
    c.replay()


def test_oldest_that_is_not_assured_makes_way(two):
    """A flood in a full tenant pushes out its own half-open flows, the oldest first; neither its
    established one nor anything of the other tenant."""
    c = two
    c.config += 'sysctl nf_conntrack_max=4 netns t1\n'
    kept = A(10000) > S(80)
    flows = [A(20000 + i) > S(80) for i in range(20)]
    shake_hands(c, 0, kept, 1)
    for i, flow in enumerate(flows):
        side(c, 1 + i * .1, 'in', tcp(flow, 'S', seq=1), 1)
        side(c, 1 + i * .1, 'in', tcp(flow, 'S', seq=1), 2)
    c.at(4).entries(entry(kept, 'tcp', state='ESTABLISHED', assured=True),
                    *(entry(flow, 'tcp', state='SYN_SENT', unreplied=True)
                      for flow in flows[-3:]), netns='t1')
    side(c, 5, 'out', tcp(~flows[16], 'SA', seq=9, ack=2), 1, drop='invalid-tcp-state')
    side(c, 5, 'out', tcp(~flows[17], 'SA', seq=9, ack=2), 1)
    c.at(6).run('conntrack count netns t2', lambda result: check_count(result, 20))
    c.at(6).run('stats', lambda result: check_early_drops(result, 17))
    c.replay()


def check_early_drops(stats, n):
    assert sum(thread['early_drop'] for thread in stats['items']) == n


def test_flood_does_not_reach_into_a_reserve(two):
    """The flood of t1 has all that is common; t2 opens as many as it has reserved."""
    c = two
    c.config += 'sysctl nf_conntrack_max=20\nsysctl sluice.conntrack_reserve=5 netns t2\n'
    for i in range(100):
        side(c, i * .01, 'in', tcp(A(20000 + i) > S(80), 'S', seq=1), 1)
    c.at(1.5).run('conntrack count netns t1', lambda result: check_count(result, 15))
    flows = [A(30000 + i) > S(80) for i in range(5)]
    for i, flow in enumerate(flows):
        shake_hands(c, 2 + i * .1, flow, 2)
        side(c, 2.05 + i * .1, 'in', tcp(A(25000 + i) > S(80), 'S', seq=1), 1)
    c.at(3).entries(*(entry(flow, 'tcp', state='ESTABLISHED', assured=True) for flow in flows),
                    netns='t2')
    c.at(3).run('conntrack count netns t1', lambda result: check_count(result, 15))
    side(c, 4, 'in', tcp(A(40000) > S(80), 'S', seq=1), 2, drop='ct-table-full')
    c.replay()


def test_a_name_used_again_has_no_past(two):
    """Deleted and created again at one moment: no entry, knob or counter of the old one is left."""
    c = two
    c.config += 'sysctl nf_conntrack_udp_timeout=5 netns t1\n'
    side(c, 0, 'in', udp(FLOW), 1)
    for command in ('netns delete t1', 'netns add t1', 'link add inside port in vlan 1 netns t1',
                    'link add outside port out vlan 1 netns t1 peer inside'):
        c.at(1).run(command)
    c.at(1).entries(netns='t1')
    side(c, 2, 'out', udp(~FLOW), 1)
    c.at(3).entries(entry(~FLOW, 'udp', netns='t1', left=29, unreplied=True), netns='t1')
    c.replay()


def test_established_connections_of_both(two):
    """The same handshake and data at the same time, in both."""
    c = two
    halves = {}
    for vid in (1, 2):
        part = type(c)(c.sluice, c.path)
        opened(part)
        halves[vid] = part
    for vid, part in halves.items():
        for ns, port, frame in part.arrivals:
            c.at(ns / SEC).frame(port, vlan(frame, vid))
        c.at(1).entries(entry(A(40000) > S(80), 'tcp', state='ESTABLISHED', assured=True),
                        netns=f't{vid}')
    c.replay()
