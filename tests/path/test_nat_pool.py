# SPDX-License-Identifier: BSD-3-Clause
"""Pools of addresses in the packet path: mappings, their filters, hairpin, blocks."""
import pytest
from scapy.all import ICMP, UDP, Ether

from harness import CONFIG
from nat64 import told
from packets import A, B, C, S, S2, Host, home, ping, tcp, udp

P = Host('203.0.113.1')
SNAT = 'rule add T1 postrouting oifname "outside" snat to pool cgn '


@pytest.fixture
def gateway(case):
    """The wire of CONFIG, a pool and its rule. `addresses`, and `ports` of the pool."""
    def make(how='', addresses='203.0.113.1', more='', knobs=None):
        return case(config=CONFIG + f'nat pool add T1 cgn {addresses}\n' + SNAT + how + '\n' + more,
                    knobs=knobs)
    return make


def refused(c, at, frame, reason='nat-exhausted'):
    """Its sender is told (RFC 5508, REQ-8)."""
    c.at(at).inside(frame, drop=reason, back=[told(frame, ICMP(type=3, code=13))])


def test_b23_who_is_refused_is_told_so(gateway):
    """As often as answers may be sent, and not about an error or by none who wants it silent."""
    c = gateway('', addresses='203.0.113.1 ports 5000-5000', knobs={'sluice.reject_rate': 1})
    c.at(0).inside(udp(A(5000) > S(53)), becomes=udp(P(5000) > S(53)))
    refused(c, 1, udp(B(5000) > S(53)))
    c.at(1.1).inside(udp(B(5000) > S(53)), drop='nat-exhausted', back=[])
    c.at(2).inside(tcp(A(5000) > S(80), 'S', 1), becomes=tcp(P(5000) > S(80), 'S', 1))
    refused(c, 3, tcp(B(6000) > S(80), 'S', 1))
    c.at(4).run('sysctl netns T1 sluice.nat_exhaustion_icmp=0')
    c.at(5).inside(udp(B(5000) > S(53)), drop='nat-exhausted', back=[])
    c.at(6).run('nat list netns T1', lambda r: exhausted(r, 4))
    c.replay()


def exhausted(result, n):
    assert [pool['exhausted'] for pool in result['items']] == [n], result


def test_a_mapping_lasts_as_long_as_what_it_let_in(gateway):
    """Also where that had to have another port, since its own was taken."""
    v, said = Host('203.0.113.80'), []
    c = gateway('endpoint-independent filter endpoint-independent',
                addresses='203.0.113.1 ports 5000-5001',
                more=f'rule add T1 prerouting ip daddr {v.addr} udp dport 80 dnat ip to '
                     f'{A.addr}:5000\n')
    c.at(0).inside(udp(A(5000) > S(53)))
    c.at(1).outside(udp(S2(999) > v(80)))
    c.at(2).outside(udp(S2(999) > P(5000)))
    c.at(3).run(f'conntrack delete src {A.addr}')
    c.at(4).run('nat lookup T1 203.0.113.1 5000',
                lambda r: said.append([(i['host'], i['dst']) for i in r['items']]))
    c.at(5).inside(udp(B(5000) > S(53)))
    c.at(6).run('nat list', lambda r: said.append([pool['used'] for pool in r['items']]))
    unchecked(c)
    c.replay()
    assert said == [[(A.addr, S2.addr)], [2]]


def test_ports_of_a_pool_are_as_of_a_range(gateway):
    """Kept where free toward the remote end; used up, and refused."""
    c = gateway(addresses='203.0.113.1 ports 5000-5003')
    for port in range(5000, 5004):
        c.at(port / 1000 - 5).inside(udp(A(port) > S(53)), becomes=udp(P(port) > S(53)))
    refused(c, 1, udp(B(5000) > S(53)))
    c.at(2).inside(udp(B(5000) > S2(53)), becomes=udp(P(5000) > S2(53)))
    c.replay()


def test_endpoint_independent_mapping(gateway):
    """One port toward all; another host that wants it gets another, toward all too."""
    c = gateway('endpoint-independent', addresses='203.0.113.1 ports 5000-5001')
    c.at(0).inside(udp(A(5000) > S(53)), becomes=udp(P(5000) > S(53)))
    c.at(1).inside(udp(A(5000) > S2(53)), becomes=udp(P(5000) > S2(53)))
    c.at(2).inside(udp(B(5000) > S2(99)), becomes=udp(P(5001) > S2(99)))
    c.at(3).inside(udp(B(5000) > S(98)), becomes=udp(P(5001) > S(98)))
    refused(c, 4, udp(C(5000) > S2(97)))
    c.at(5).inside(tcp(C(5000) > S2(97), 'S', 1), becomes=tcp(P(5000) > S2(97), 'S', 1))
    c.replay()


FILTERS = {'': (False, False), 'filter address-and-port-dependent': (False, False),
           'filter address-dependent': (True, False), 'filter endpoint-independent': (True, True)}


@pytest.mark.parametrize('text, admits', FILTERS.items())
def test_filters(gateway, text, admits):
    """From the port it has sent to, another port of that host, another host."""
    c = gateway('endpoint-independent ' + text)
    c.at(0).inside(udp(A(5000) > S(53)), becomes=udp(P(5000) > S(53)))
    c.at(1).outside(udp(S(53) > P(5000)), becomes=home(udp(S(53) > A(5000))))
    for at, sender, admitted in ((2, S(99), admits[0]), (3, S2(53), admits[1])):
        want = {'becomes': udp(sender > A(5000))} if admitted else {'drop': 'nat-filtered'}
        c.at(at).outside(udp(sender > P(5000)), **want)
        if admitted:
            c.at(at + .5).inside(udp(A(5000) > sender), becomes=home(udp(P(5000) > sender)))
    c.at(4).outside(udp(S2(53) > P(5001)), drop='own-address')
    c.replay()


def test_a_mapping_ends_with_its_last_connection(gateway):
    c = gateway('endpoint-independent filter endpoint-independent')
    c.at(0).inside(udp(A(5000) > S(53)), becomes=udp(P(5000) > S(53)))
    c.at(20).outside(udp(S2(53) > P(5000)), becomes=udp(S2(53) > A(5000)))
    c.at(40).outside(udp(S(99) > P(5000)), becomes=udp(S(99) > A(5000)))
    c.at(75).outside(udp(S(99) > P(5000)), drop='own-address')
    c.at(76).inside(udp(B(5000) > S(53)), becomes=udp(P(5000) > S(53)))
    c.replay()


def test_connections_end_with_the_pool(gateway):
    c = gateway('endpoint-independent')
    c.at(0).inside(udp(A(5000) > S(53)), becomes=udp(P(5000) > S(53)))
    c.at(1).run('rule flush T1')
    c.at(1.1).outside(udp(S(53) > P(5000)), becomes=home(udp(S(53) > A(5000))))
    c.at(2).run('nat pool delete T1 cgn')
    c.at(2.1).entries()
    c.at(3).outside(udp(S(53) > P(5000)))
    c.replay()


def ports_used(c, count):
    """Public address and port of the UDP packets that left outside."""
    frames = [Ether(frame) for _, frame in c.output('out')]
    assert len(frames) == count
    return [(f['IP'].src, f[UDP].sport) for f in frames]


def unchecked(c):
    """Departures are looked at by the test itself: ports are chosen at random."""
    c._check_departures = lambda: None


def events(expected):
    def check(result):
        seen = [(e['event'], e['pool'], e.get('host'), e.get('address')) for e in result['items']]
        assert seen == expected
    return check


def test_blocks_of_ports(gateway):
    """A block of 100 ports for a host, told when it comes and goes."""
    c = gateway('block-size 100', addresses='203.0.113.1 ports 1000-1199')
    use = {}
    c.at(0).run('nat events')
    for i in range(100):
        c.at(.001 * i).inside(udp(A(5000 + i) > S(53)))
    refused(c, .2, udp(A(7000) > S(53)), 'nat-host-limit')
    c.at(.3).inside(udp(A(7000) > S2(53)))          # toward another remote end ports are free
    c.at(.4).inside(udp(B(5000) > S(53)))
    refused(c, .5, udp(C(5000) > S(53)))
    refused(c, .51, udp(C(5001) > S(53)))    # is not told every time
    c.at(.6).run('nat events', events([
        ('block-allocated', 'cgn', A.addr, P.addr), ('block-allocated', 'cgn', B.addr, P.addr),
        ('pool-alarm', 'cgn', None, None), ('pool-exhausted', 'cgn', None, None)]))
    c.at(.7).run('nat list', lambda r: use.update(r['items'][0]))
    c.at(1).run(f'conntrack delete src {B.addr}')
    c.at(1.1).run('nat events', events([
        ('block-released', 'cgn', B.addr, P.addr), ('pool-clear', 'cgn', None, None)]))
    c.at(1.2).run('conntrack flush')
    c.at(1.3).run('nat events', events([('block-released', 'cgn', A.addr, P.addr)]))
    unchecked(c)
    c.replay()
    used = ports_used(c, 102)
    assert {a for a, _ in used} == {P.addr}
    of_a = {port for _, port in used[:100]}
    block = min(of_a)
    assert block in (1000, 1100) and of_a == set(range(block, block + 100))
    assert used[100][1] in of_a and used[101][1] not in of_a
    assert (use['unit'], use['block_size'], use['used'], use['capacity'], use['high']) == \
        ('block', 100, 2, 2, 2)
    assert (use['connections'], use['exhausted'], use['alarm']) == (102, 3, True)


def test_who_had_a_block(gateway):
    """Now, and at a time of day; before, and behind."""
    c = gateway('block-size 200', addresses='203.0.113.1 ports 1000-1199')
    start = 1_700_000_000
    said = {}

    def ask(at, when=''):
        c.at(at).run(f'nat lookup T1 203.0.113.1 1005 {when}', lambda r: said.update(
            {(at, when): [(i['by'], i['host']) for i in r['items']]}))

    c.at(0).inside(udp(A(1005) > S(53)), becomes=udp(P(1005) > S(53)))
    ask(1)
    ask(1.5, start - 5)
    c.at(2).run('conntrack flush')
    ask(3)
    ask(4, start + 1)
    ask(5, '2023-11-14T22:13:21Z')
    c.at(10).inside(udp(B(1005) > S(53)), becomes=udp(P(1005) > S(53)))
    ask(11)
    ask(12, start + 1)
    ask(13, start + 8)
    c.replay()
    a, b = [('block', A.addr)], [('block', B.addr)]
    assert list(said.values()) == [a, [], [], a, a, b, a, []]


def test_deterministic_blocks(gateway):
    """Computed from the host, without a word; the same the other way round."""
    c = gateway(addresses='203.0.113.1-203.0.113.2 ports 1000-1299', more=(
        'rule flush T1\nrule add T1 postrouting ip saddr 10.0.0.0/29 snat to pool cgn '
        'block-size 50 deterministic\n'))
    said = {}
    # Six blocks of an address: 10.0.0.6 has the first of the second one.
    for i, last in enumerate((1, 2, 6)):
        host = Host(f'10.0.0.{last}')
        addr = Host(f'203.0.113.{1 + last // 6}')
        port = 1000 + last % 6 * 50 + 7
        c.at(i).inside(udp(host(port) > S(53)), becomes=udp(addr(port) > S(53)))
        c.at(i + .1).run(f'nat lookup T1 {addr.addr} {port} {1_000_000 + i}',
                         lambda r: said.update({r['items'][0]['host']: r['items'][0]['by']}))
    c.at(4).run('nat events', lambda r: said.update(events=r['count']))
    c.at(5).inside(udp(Host('10.0.0.7')(1057) > S(53)),
                   becomes=udp(Host('203.0.113.2')(1057) > S(53)))
    c.at(6).run('nat events', lambda r: said.update(events=r['count']))
    c.replay()
    assert said == {'10.0.0.1': 'computed', '10.0.0.2': 'computed', '10.0.0.6': 'computed',
                    'events': 0}


def test_who_has_a_port_by_its_connections(gateway):
    c = gateway('endpoint-independent')
    said = []
    c.at(0).inside(udp(A(5000) > S(53)), becomes=udp(P(5000) > S(53)))
    c.at(.1).inside(ping(B > S, 77), becomes=ping(P > S, 77))
    for port in (5000, 77, 78):
        c.at(1).run(f'nat lookup T1 203.0.113.1 {port}',
                    lambda r: said.append([(i['proto'], i['host']) for i in r['items']]))
    c.replay()
    assert said == [[('udp', A.addr)], [('icmp', B.addr)], []]


def test_blocks_with_endpoint_independent_mappings(gateway):
    c = gateway('block-size 2 blocks 2 endpoint-independent filter endpoint-independent',
                addresses='203.0.113.1 ports 1000-1005')
    used = {}
    for i in range(4):
        c.at(i).inside(udp(A(1000 + i) > S(53)))
        c.at(i + .1).inside(udp(A(1000 + i) > S2(99)))
    refused(c, 5, udp(A(2000) > S(53)), 'nat-host-limit')
    c.at(6).inside(udp(B(2000) > S(53)))
    c.at(7).run('nat list', lambda r: used.update(r['items'][0]))
    unchecked(c)
    c.replay()
    seen = ports_used(c, 9)
    assert seen[0:8:2] == seen[1:8:2] and len(set(seen[0:8:2])) == 4
    assert len({port // 2 for _, port in seen[:8]}) == 2
    assert seen[8][1] // 2 not in {port // 2 for _, port in seen[:8]}
    assert (used['used'], used['capacity'], used['connections']) == (3, 3, 9)


def test_pinging_a_mapping(gateway):
    """Ids are as ports."""
    c = gateway('endpoint-independent filter endpoint-independent')
    c.at(0).inside(ping(A > S, 500), becomes=ping(P > S, 500))
    c.at(1).outside(ping(S2 > P, 500), becomes=ping(S2 > A, 500))
    c.at(2).outside(ping(S2 > P, 501), drop='own-address')
    c.replay()
