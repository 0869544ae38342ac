# SPDX-License-Identifier: BSD-3-Clause
"""Translation on a wire: whose station a frame goes to, packets that turn back (B28), and the
addresses that are the gateway's by its rules."""
import pytest
from scapy.all import ARP, Ether, raw

from fragments import cut
from harness import entry
from packets import A, B, S, Host, icmp_error, l3, tcp, udp

P, V = Host('203.0.113.1'), Host('203.0.113.80')
MAC = {A: '02:aa:00:00:00:0a', B: '02:aa:00:00:00:0b', S: '02:cc:00:00:00:01'}
ROUTER, BROADCAST = '02:cc:00:00:00:99', 'ff:ff:ff:ff:ff:ff'
GW_IN, GW_OUT = '02:5e:00:00:00:01', '02:5e:00:00:00:02'
IN = '198.51.100.1'

CONFIG = f'''\
port add in devargs net_null0
port add out devargs net_null1
netns add T1
link add inside port in netns T1 mac {GW_IN}
link add outside port out netns T1 peer inside mac {GW_OUT}
link address add inside {IN}/24
link address add outside {P.addr}/24
'''
MASQUERADE = 'rule add T1 postrouting oifname "outside" masquerade\n'
FORWARD = f'rule add T1 prerouting ip daddr {V.addr} tcp dport 80 dnat ip to {B.addr}\n'
FORWARD_UDP = f'rule add T1 prerouting ip daddr {V.addr} udp dport 53 dnat ip to {B.addr}\n'


@pytest.fixture
def wire(case):
    def make(*rules):
        return case(config=CONFIG + ''.join(rules))
    return make


def via(src, dst, frame):
    """The frame between two stations."""
    return bytes.fromhex((dst + src).replace(':', '')) + frame[12:]


def who_has(src, sender, target):
    return raw(Ether(src=src, dst=BROADCAST) / ARP(op=1, hwsrc=src, psrc=sender, pdst=target))


def is_at(src, sender, dst, target):
    return raw(Ether(src=src, dst=dst) /
               ARP(op=2, hwsrc=src, psrc=sender, hwdst=dst, pdst=target))


def leaves(c, at, port, frame):
    c.departures.append((c.at(at).ns, port, frame))


def introduce(c, first, becomes, at=0):
    """A first frame for B from inside, which is not known yet: it is asked for, and when it answers
    the frame goes on."""
    c.at(at).inside(first, back=[who_has(GW_IN, IN, B.addr)])
    c.at(at + .01).inside(is_at(MAC[B], B.addr, GW_IN, IN), back=[becomes])


def test_answers_go_to_the_station_that_asked(wire):
    """The server knows nothing but the gateway's MAC address for the address it answers to."""
    c = wire(MASQUERADE)
    for i, host in enumerate((A, B)):
        c.at(i).inside(via(MAC[host], ROUTER, udp(host(5000 + i) > S(53))),
                       becomes=via(MAC[host], ROUTER, udp(P(5000 + i) > S(53))))
    for i, host in enumerate((A, B)):
        c.at(2 + i).outside(via(MAC[S], GW_OUT, udp(S(53) > P(5000 + i))),
                            becomes=via(MAC[S], MAC[host], udp(S(53) > host(5000 + i))))
    c.replay()


def test_stations_of_a_connection_without_translation_stay(wire):
    c = wire(FORWARD)
    c.at(0).inside(via(MAC[A], ROUTER, udp(A(5000) > S(53))))
    c.at(1).outside(via(MAC[S], MAC[B], udp(S(53) > A(5000))))
    c.replay()


def test_fragments_go_to_the_same_station(wire):
    c = wire(MASQUERADE)
    question, answer = udp(A(5000) > S(53)), udp(S(53) > P(5000), b'x' * 2000)
    c.at(0).inside(via(MAC[A], ROUTER, question),
                   becomes=via(MAC[A], ROUTER, udp(P(5000) > S(53))))
    came = cut(via(MAC[S], GW_OUT, answer), 800, 800)
    went = cut(via(MAC[S], MAC[A], udp(S(53) > A(5000), b'x' * 2000)), 800, 800)
    for frame in came[:-1]:
        c.at(1).frame('out', frame, back=[])
    c.at(1).frame('out', came[-1], back=[])
    for frame in went:
        leaves(c, 1, 'in', frame)
    c.replay()


def test_who_sends_to_the_gateway_reaches_the_host(wire):
    """Outside has the MAC address of the gateway for V; where B is, the gateway asks."""
    c = wire(FORWARD)
    syn = via(MAC[S], GW_OUT, tcp(S(4000) > V(80), 'S', 1))
    c.at(0).outside(who_has(MAC[S], S.addr, V.addr),
                    back=[is_at(GW_OUT, V.addr, MAC[S], S.addr)])
    c.at(1).outside(syn, becomes=who_has(GW_IN, IN, B.addr))
    c.at(1.5).entries(entry(S(4000) > V(80), 'tcp', unreplied=True,
                            reply={'src': B.addr, 'sport': 80}))
    through = via(MAC[S], MAC[B], tcp(S(4000) > B(80), 'S', 1))
    c.at(1.9).inside(is_at(MAC[B], B.addr, GW_IN, IN), back=[through])
    c.at(3).outside(syn, becomes=through)
    c.at(4).inside(via(MAC[B], ROUTER, tcp(B(80) > S(4000), 'SA', 7, 2)),
                   becomes=via(MAC[B], MAC[S], tcp(V(80) > S(4000), 'SA', 7, 2)))
    c.at(5).outside(via(MAC[S], GW_OUT, tcp(S(4000) > V(80), 'A', 2, 8)),
                    becomes=via(MAC[S], MAC[B], tcp(S(4000) > B(80), 'A', 2, 8)))
    c.replay()


def test_addresses_of_rules_are_asked_for_on_their_link(wire):
    """Those of snat and dnat, as long as there is such a rule; not what a wide rule is about."""
    c = wire('rule add T1 postrouting oifname "outside" snat ip to 203.0.113.4-203.0.113.6\n',
             'rule add T1 prerouting ip daddr { 203.0.113.8, 203.0.113.10 } dnat ip to '
             f'{B.addr}\n',
             'rule add T1 prerouting ip daddr 203.0.113.128/26 udp dport 53 dnat ip to '
             f'{B.addr}\n',
             'rule add T1 prerouting iifname "outside" ip daddr 203.0.113.64/28 dnat ip prefix to '
             '198.51.100.64/28\n')
    own = (4, 5, 6, 8, 10, 64, 79)
    for i in range(256):
        target = f'203.0.113.{i}'
        question = who_has(MAC[S], '203.0.113.200', target)
        if i in own or 64 <= i < 80 or target == P.addr:
            c.at(i / 100).outside(question,
                                  back=[is_at(GW_OUT, target, MAC[S], '203.0.113.200')])
        elif i != 200:
            c.at(i / 100).outside(question)
        if i in own:
            c.at(5 + i / 100).inside(who_has(MAC[A], A.addr, target))
    c.at(10).run('rule flush T1')
    c.at(11).outside(who_has(MAC[S], '203.0.113.200', '203.0.113.5'))
    c.replay()


def test_b28a_an_inside_server_by_its_public_address(wire):
    c = wire(MASQUERADE, FORWARD)
    syn = via(MAC[A], ROUTER, tcp(A(40000) > V(80), 'S', 1000))
    through = via(GW_IN, MAC[B], tcp(P(40000) > B(80), 'S', 1000))
    introduce(c, syn, through)
    c.at(1).inside(syn, back=[through])
    c.at(2).inside(via(MAC[B], ROUTER, tcp(B(80) > P(40000), 'SA', 5000, 1001)),
                   back=[via(GW_IN, MAC[A], tcp(V(80) > A(40000), 'SA', 5000, 1001))])
    c.at(3).inside(via(MAC[A], ROUTER, tcp(A(40000) > V(80), 'PA', 1001, 5001, b'GET')),
                   back=[via(GW_IN, MAC[B], tcp(P(40000) > B(80), 'PA', 1001, 5001, b'GET'))])
    c.replay()


def test_hairpin_by_a_rule_of_its_own_link(wire):
    """As written for netfilter: who comes from inside gets the inside address."""
    c = wire(FORWARD, 'rule add T1 postrouting oifname "inside" masquerade\n')
    syn = via(MAC[A], ROUTER, tcp(A(40000) > V(80), 'S', 1000))
    introduce(c, syn, via(GW_IN, MAC[B], tcp(Host(IN)(40000) > B(80), 'S', 1000)))
    c.replay()


def test_forward_sees_where_a_hairpin_leaves(wire):
    c = wire(MASQUERADE, FORWARD, 'rule add T1 forward oifname "inside" iifname "inside" drop\n')
    c.at(0).inside(via(MAC[A], ROUTER, tcp(A(40000) > V(80), 'S', 1000)), drop='rule-drop')
    c.at(0).entries()
    c.replay()


@pytest.mark.parametrize('to', [P(55555), V(81)], ids=['of-the-link', 'of-a-rule'])
def test_b28b_no_mapping_ends_at_once(wire, to):
    c = wire(MASQUERADE, FORWARD)
    c.at(0).inside(via(MAC[A], ROUTER, tcp(A(40000) > to, 'S', 1000)), drop='own-address')
    c.at(1).outside(via(MAC[S], GW_OUT, tcp(S(40000) > to, 'S', 1000)), drop='own-address')
    c.at(2).entries()
    c.replay()


def test_b28c_a_host_by_its_own_mapping(wire):
    c = wire(MASQUERADE, FORWARD_UDP)
    packet = via(MAC[B], ROUTER, udp(B(5000) > V(53)))
    introduce(c, packet, via(GW_IN, MAC[B], udp(P(5000) > B(53))))
    c.at(2).inside(via(MAC[B], ROUTER, udp(B(53) > P(5000))),
                   back=[via(GW_IN, MAC[B], udp(V(53) > B(5000)))])
    c.replay()


def test_b28d_an_error_about_a_hairpin(wire):
    c = wire(MASQUERADE, FORWARD_UDP)
    packet = via(MAC[A], ROUTER, udp(A(5000) > V(53)))
    introduce(c, packet, via(GW_IN, MAC[B], udp(P(5000) > B(53))))
    c.at(2).inside(via(MAC[B], ROUTER, icmp_error(B > P, 3, 3, l3(udp(P(5000) > B(53))))),
                   back=[via(GW_IN, MAC[A], icmp_error(V > A, 3, 3, l3(udp(A(5000) > V(53)))))])
    c.replay()


def test_redirect_ends_at_an_address_of_the_gateway(wire):
    """What a rule takes to an own address is not dropped for it, and does not turn back."""
    c = wire('rule add T1 prerouting iifname "inside" udp dport 53 redirect to :5353\n')
    c.at(0).inside(via(MAC[A], ROUTER, udp(A(5000) > S(53))),
                   becomes=via(MAC[A], ROUTER, udp(A(5000) > Host(IN)(5353))))
    c.replay()


def test_the_far_side_of_a_flat_network(case):
    """Both links are in one network: who answers there says on which of them a host is."""
    c = case(config=CONFIG.replace(f'{P.addr}/24', '198.51.100.2/24') + MASQUERADE + FORWARD)
    syn = via(MAC[A], ROUTER, tcp(A(40000) > V(80), 'S', 1000))
    out = Host('198.51.100.2')
    c.at(0).inside(syn, becomes=via(MAC[A], ROUTER, tcp(out(40000) > B(80), 'S', 1000)),
                   back=[who_has(GW_IN, IN, B.addr)])
    c.at(1).inside(is_at(MAC[B], B.addr, GW_IN, IN), back=[])
    syn = via(MAC[A], ROUTER, tcp(A(40001) > V(80), 'S', 1000))
    c.at(2).inside(syn, back=[via(GW_IN, MAC[B], tcp(out(40001) > B(80), 'S', 1000))])
    leaves(c, 2, 'out', who_has(GW_OUT, out.addr, B.addr))
    c.replay()
