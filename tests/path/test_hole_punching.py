# SPDX-License-Identifier: BSD-3-Clause
"""Hole punching between hosts inside behind one public address: what one sends is outbound traffic
for its own filter, though the other's refuses it (RFC 4787, REQ-8 and REQ-9; RFC 6146, 3.5)."""
import pytest

from harness import CONFIG, check_entries, entry
import nat64
from nat64 import Ids, hop, mapped
from packets import A, B, C, MAC_IN, S, S2, Host, tcp, udp

P = Host('203.0.113.1')
GW = '02:5e:00:00:00:01'
SNAT = 'rule add T1 postrouting oifname "outside" snat to pool cgn '


def on_wire(case, how, addresses='203.0.113.1'):
    return case(config=CONFIG.replace('in netns T1', f'in netns T1 mac {GW}', 1)
                + f'nat pool add T1 cgn {addresses}\n' + SNAT + how + '\n')


def turned(frame):
    """As it goes back out of the link it came by."""
    return bytes.fromhex((MAC_IN + GW).replace(':', '')) + frame[12:]


def unchecked(c):
    """Departures are not looked at: a port is chosen at random."""
    c._check_departures = lambda: None


def count_is(result, n):
    assert result['count'] == n, result


STRICT = ('filter address-dependent', 'filter address-and-port-dependent')


def meet(c, how):
    """A and B have mappings, and know each other's; A has tried B's."""
    for host, port in ((A, 5000), (B, 6000)):
        c.at(0).inside(how(host(port) > S(53)), becomes=how(P(port) > S(53)))
    c.at(1).inside(how(A(5000) > P(6000)), drop='nat-filtered')


def datagram(flow, data=b'x'):
    return udp(flow, data)


def syn(flow):
    return tcp(flow, 'S', 1000)


@pytest.mark.parametrize('how', [datagram, syn])
@pytest.mark.parametrize('text', STRICT)
def test_hole_punching_behind_one_address(case, text, how):
    """RFC 4787, REQ-8 and REQ-9: what A sends opens its mapping, though B's filter refuses it."""
    c = on_wire(case, 'endpoint-independent ' + text)
    meet(c, how)
    tried = entry(A(5000) > P(6000), how is syn and 'tcp' or 'udp', unreplied=True,
                  reply={'src': P.addr, 'dst': P.addr, 'sport': 6000, 'dport': 5000})
    c.at(1.5).inside(how(A(5000) > P(6000)), drop='nat-filtered')
    c.at(1.6).run(f'conntrack list dst {P.addr}', lambda r: check_entries(r, [tried], 'tried'))
    c.at(2).inside(how(B(6000) > P(5000)), back=[turned(how(P(6000) > A(5000)))])
    c.at(3).inside(how(A(5000) > P(6000)), back=[turned(how(P(5000) > B(6000)))])
    c.at(4).run(f'conntrack list dst {P.addr}', lambda r: check_entries(r, [
        entry(B(6000) > P(5000), how is syn and 'tcp' or 'udp',
              reply={'src': A.addr, 'dst': P.addr, 'sport': 5000, 'dport': 6000})], 'met'))
    c.replay()


def test_hole_punching_to_another_port(case):
    """By its address B is admitted from any port, once that has a public end, and then A to the one
    it had tried."""
    c = on_wire(case, 'endpoint-independent filter address-dependent')
    meet(c, udp)
    c.at(1.8).inside(udp(B(6001) > P(5000)), drop='nat-filtered')
    c.at(2).inside(udp(B(6001) > P(5000)), back=[turned(udp(P(6001) > A(5000)))])
    c.at(3).inside(udp(A(5000) > P(6000)), drop='nat-filtered')
    c.at(4).inside(udp(B(6000) > P(5001)), drop='own-address')
    c.at(5).inside(udp(B(6000) > P(5000)), back=[turned(udp(P(6000) > A(5000)))])
    c.at(6).inside(udp(A(5000) > P(6000)), back=[turned(udp(P(5000) > B(6000)))])
    c.replay()


def test_who_has_not_tried_that_port_is_refused(case):
    c = on_wire(case, 'endpoint-independent filter address-and-port-dependent')
    meet(c, udp)
    c.at(2).inside(udp(B(6001) > P(5000)), drop='nat-filtered')
    c.at(3).inside(udp(C(6000) > P(5000)), drop='nat-filtered')
    c.replay()


def test_a_try_keeps_the_mapping(case):
    """As long as any connection does, and longer where it has let in another; it is counted."""
    c = on_wire(case, 'endpoint-independent filter address-dependent',
                addresses='203.0.113.1 ports 5000-5002')
    said = []
    for host, port, outside in ((A, 7000, 5000), (B, 5001, 5001)):
        c.at(0).inside(udp(host(port) > S(53)))
    c.at(1).run('nat lookup T1 203.0.113.1 5001', lambda r: said.append(r['items'][0]['host']))
    unchecked(c)
    c.at(1).inside(udp(A(7000) > P(5001)), drop='nat-filtered')
    c.at(2).run(f'conntrack delete dst {S.addr}')
    c.at(2.1).run('nat list', lambda r: said.append([p['used'] for p in r['items']]))
    c.at(40).run('nat list', lambda r: said.append([p['used'] for p in r['items']]))
    c.at(41).inside(udp(A(1) > B(1)))
    c.replay()
    assert said == [B.addr, [1], [0]]


def test_a_stranger_leaves_nothing(case):
    """Who is refused and not inside has no mapping to open."""
    c = on_wire(case, 'endpoint-independent filter address-dependent')
    c.at(0).inside(udp(A(5000) > S(53)), becomes=udp(P(5000) > S(53)))
    c.at(1).outside(udp(S2(53) > P(5000)), drop='nat-filtered')
    c.at(2).run('conntrack count netns T1', lambda r: count_is(r, 1))
    # As if from inside, by whom it should have been.
    c.at(3).inside(udp(A(5000) > P(6000)), drop='own-address')
    c.replay()


def test_nobody_answers_a_try(case):
    """A packet from outside that says it is from the other's public end ends it."""
    c = on_wire(case, 'endpoint-independent filter address-and-port-dependent')
    meet(c, udp)
    c.at(2).outside(udp(P(6000) > P(5000)), drop='nat-filtered')
    c.at(3).run(f'conntrack list dst {P.addr}', lambda r: check_entries(r, [], 'answered'))
    c.replay()


@pytest.mark.parametrize('text', STRICT)
def test_nat64(case, text):
    ids = Ids()
    a, b, s, s4, p4 = nat64.A, nat64.B, nat64.S, nat64.S4, nat64.P
    public = mapped(p4)
    c = case(config=CONFIG.replace('in netns T1', f'in netns T1 mac {GW}', 1) + nat64.POOL
             + nat64.RULE.rstrip() + f' endpoint-independent {text}\n')
    for host, port in ((a, 5000), (b, 6000)):
        c.at(0).inside(udp(host(port) > s(53)),
                       becomes=hop(udp(p4(port) > s4(53)), id=ids(), flags=0))
    c.at(1).inside(udp(a(5000) > public(6000)), drop='nat-filtered')
    c.at(1.5).inside(udp(a(5000) > public(6000)), drop='nat-filtered')
    c.at(2).inside(udp(b(6000) > public(5000)), back=[turned(udp(public(6000) > a(5000)))])
    c.at(3).inside(udp(a(5000) > public(6000)), back=[turned(udp(public(5000) > b(6000)))])
    c.at(4).run(f'conntrack list dst {public.addr}', lambda r: check_entries(r, [
        entry(b(6000) > public(5000), 'udp', reply={'src': a.addr, 'dst': public.addr,
                                                    'sport': 5000, 'dport': 6000})], 'met'))
    c.replay()
