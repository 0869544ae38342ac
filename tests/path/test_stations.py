# SPDX-License-Identifier: BSD-3-Clause
"""Packets for a host whose station is not known yet: they wait until it answers, some of them, and
not for long."""
import ipaddress

import pytest
from scapy.all import (Ether, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptDstLLAddr,
                       ICMPv6NDOptSrcLLAddr, IPv6, raw)

from fragments import cut
from packets import A, B, S, Host, icmp_error, l3, ping, tagged, tcp, udp
from test_nat_wire import (CONFIG, FORWARD_UDP, GW_IN, GW_OUT, IN, MAC, MASQUERADE, P, ROUTER, V,
                           is_at, leaves, via, who_has)

OTHER = udp(Host('192.0.2.200')(1) > Host('192.0.2.201')(1))
ASK = who_has(GW_IN, IN, B.addr)
ANSWER = is_at(MAC[B], B.addr, GW_IN, IN)


@pytest.fixture
def wire(case):
    def make(*rules, config=CONFIG):
        return case(config=config + ''.join(rules or (FORWARD_UDP,)))
    return make


def came(i, data=b'x'):
    """A datagram for B, as outside has B's address; and as it reaches B."""
    return (via(MAC[S], GW_OUT, udp(S(4000 + i) > V(53), data)),
            via(MAC[S], MAC[B], udp(S(4000 + i) > B(53), data)))


def time_passes(c, *seconds):
    """Something comes, so that the gateway looks at the clock."""
    for at in seconds:
        c.at(at).inside(via(MAC[A], ROUTER, OTHER))


def test_all_go_on_in_order(wire):
    c = wire()
    for i in range(3):
        c.at(i / 10).outside(came(i)[0], back=[])
    leaves(c, 0, 'in', ASK)
    c.at(.5).inside(ANSWER, back=[came(i)[1] for i in range(3)])
    c.at(.6).outside(came(9)[0], becomes=came(9)[1])
    c.replay()


def test_the_newest_wait(wire):
    c = wire()
    for i in range(11):
        c.at(i / 100).outside(came(i)[0], **({'drop': 'neighbour-queue'} if i < 3 else {}), back=[])
    leaves(c, 0, 'in', ASK)
    c.at(.5).inside(ANSWER, back=[came(i)[1] for i in range(3, 11)])
    c.replay()


def given_up(drops):
    assert [item['reason'] for item in drops['items']] == ['neighbour-unknown']


def test_no_answer(wire):
    """Asked for three times, a second apart; then it is given up, and asked for anew for others."""
    c = wire()
    c.at(0).outside(came(0)[0], drop='neighbour-unknown', back=[])
    time_passes(c, .5, 1, 1.5, 2, 2.5, 3)
    for at in (0, 1, 2):
        leaves(c, at, 'in', ASK)
    c.at(3.1).run('drops', given_up)
    c.at(4).outside(came(1)[0], back=[])
    leaves(c, 4, 'in', ASK)
    c.at(4.1).inside(ANSWER, back=[came(1)[1]])
    c.replay()


def test_a_known_host_is_kept_by_the_connection(wire):
    """It is looked up no more, and asked for no more."""
    c = wire()
    c.at(0).outside(came(0)[0], becomes=ASK)
    c.at(.1).inside(ANSWER, back=[came(0)[1]])
    for at in (1, 20, 29):
        c.at(at).outside(came(0)[0], becomes=came(0)[1])
    c.at(50).outside(came(0)[0], becomes=came(0)[1])
    c.replay()


def test_a_datagram_in_fragments(wire):
    c = wire()
    sent, through = came(0, b'y' * 3000)
    for frame in cut(sent, 1200, 1200):
        c.at(0).outside(frame, back=[])
    leaves(c, 0, 'in', ASK)
    c.at(.1).inside(ANSWER, back=cut(through, 1200, 1200))
    c.replay()


def test_what_has_to_be_fragmented(wire):
    c = wire(FORWARD_UDP, config=CONFIG.replace(f'mac {GW_IN}', f'mac {GW_IN} mtu 1228'))
    sent, through = came(0, b'y' * 1992)
    c.at(0).outside(sent, becomes=ASK)
    c.at(.1).inside(ANSWER, back=cut(through, 1208))
    c.replay()


def test_tags(wire):
    """They wait with the tags of the link that they leave on."""
    c = wire(FORWARD_UDP, config=CONFIG.replace('port in netns', 'port in vlan 20.300 netns'))
    tags = (0x88A8, 20), (0x8100, 300)
    c.at(0).outside(came(0)[0], becomes=tagged(ASK, *tags))
    c.at(.1).inside(tagged(ANSWER, *tags), back=[tagged(came(0)[1], *tags)])
    c.replay()


def test_hairpin(wire):
    """Back out of the link that it came in by, as from the gateway; and an error about it, whose
    receiver the connection knows."""
    c = wire(MASQUERADE, FORWARD_UDP)
    c.at(0).inside(via(MAC[A], ROUTER, udp(A(5000) > V(53))), back=[ASK])
    c.at(.1).inside(ANSWER, back=[via(GW_IN, MAC[B], udp(P(5000) > B(53)))])
    c.at(1).inside(via(MAC[B], ROUTER, icmp_error(B > P, 3, 3, l3(udp(P(5000) > B(53))))),
                   back=[via(GW_IN, MAC[A], icmp_error(V > A, 3, 3, l3(udp(A(5000) > V(53)))))])
    c.replay()


def test_either_link_may_have_it(wire):
    """Both are in its network: who sends to the gateway has to try again when it has answered."""
    c = wire(FORWARD_UDP, config=CONFIG.replace(f'{P.addr}/24', '198.51.100.2/24'))
    c.at(0).outside(came(0)[0], drop='neighbour-unknown', back=[
        who_has(GW_OUT, '198.51.100.2', B.addr)])
    leaves(c, 0, 'in', ASK)
    c.at(.1).entries()
    c.at(.2).inside(ANSWER, back=[])
    c.at(.5).outside(came(0)[0], becomes=came(0)[1])
    c.replay()


def test_no_network_of_the_link(wire):
    c = wire('rule add T1 prerouting udp dport 53 dnat ip to 10.9.9.9\n')
    c.at(0).outside(came(0)[0], drop='neighbour-unknown')
    c.at(.1).entries()
    c.replay()


@pytest.mark.parametrize('command,reason', [('link delete inside', 'no-peer'),
                                            ('netns delete T1', 'netns-dying')])
def test_the_link_goes(wire, command, reason):
    c = wire()
    c.at(0).outside(came(0)[0], drop=reason, back=[])
    c.at(.01).outside(came(1)[0], drop=reason, back=[])
    leaves(c, 0, 'in', ASK)
    c.at(.1).run(command)
    c.at(.5).inside(ANSWER, drop='no-link')
    c.at(1.5).inside(ANSWER, drop='no-link')
    c.replay()


def test_the_link_comes_back(wire):
    """Another of the same name and tags is another: nobody has asked there."""
    c = wire()
    c.at(0).outside(came(0)[0], drop='no-peer', back=[])
    leaves(c, 0, 'in', ASK)
    c.at(.1).run('link delete inside')
    c.at(.1).run(f'link add inside port in netns T1 peer outside mac {GW_IN}')
    c.at(.1).run(f'link address add inside {IN}/24')
    c.at(.5).inside(ANSWER, back=[])
    c.at(1).outside(came(0)[0], becomes=ASK)
    c.at(1.1).inside(ANSWER, back=[came(0)[1]])
    c.replay()


def test_as_many_as_may_wait_on_a_link(wire):
    """64, of which each leaves when its own host answers."""
    rule = ('rule add T1 prerouting iifname "outside" ip daddr 203.0.113.0/24 udp dport 53 '
            'dnat ip prefix to 198.51.100.0/24\n')
    c = wire(rule)
    hosts = range(20, 20 + 66)
    for i, n in enumerate(hosts):
        c.at(i / 1000).outside(
            via(MAC[S], GW_OUT, udp(S(4000) > Host(f'203.0.113.{n}')(53))),
            **({'drop': 'neighbour-queue'} if i >= 64 else {}), back=[])
        leaves(c, i / 1000, 'in', who_has(GW_IN, IN, f'198.51.100.{n}'))
    for i, n in enumerate(hosts):
        there = via(MAC[S], MAC[B], udp(S(4000) > Host(f'198.51.100.{n}')(53)))
        c.at(.5 + i / 1000).inside(is_at(MAC[B], f'198.51.100.{n}', GW_IN, IN),
                                   back=[there] if i < 64 else [])
    c.replay()


def solicited(target):
    tail = ipaddress.IPv6Address(target).packed[13:]
    return (str(ipaddress.IPv6Address(bytes.fromhex('ff02' + '00' * 9 + '01ff') + tail)),
            '33:33:ff:%02x:%02x:%02x' % tuple(tail))


def test_ipv6(wire):
    b6, s6, v6 = map(Host, ('2001:db8:1::11', '2001:db8:2::80', '2001:db8:f::80'))
    gw6 = '2001:db8:1::1'
    c = wire(f'rule add T1 prerouting ip6 daddr {v6.addr} dnat ip6 to {b6.addr}\n',
             config=CONFIG + f'link address add inside {gw6}/64\n')
    group, mac = solicited(b6.addr)
    ask = raw(Ether(src=GW_IN, dst=mac) / IPv6(src=gw6, dst=group, hlim=255)
              / ICMPv6ND_NS(tgt=b6.addr) / ICMPv6NDOptSrcLLAddr(lladdr=GW_IN))
    answer = raw(Ether(src=MAC[B], dst=GW_IN) / IPv6(src=b6.addr, dst=gw6, hlim=255)
                 / ICMPv6ND_NA(tgt=b6.addr, R=0, S=1, O=1) / ICMPv6NDOptDstLLAddr(lladdr=MAC[B]))
    c.at(0).outside(via(MAC[S], GW_OUT, ping(s6 > v6, 7)), becomes=ask)
    c.at(.1).outside(via(MAC[S], GW_OUT, tcp(s6(4000) > v6(80), 'S', 1)), back=[])
    c.at(.2).inside(answer, back=[via(MAC[S], MAC[B], ping(s6 > b6, 7)),
                                  via(MAC[S], MAC[B], tcp(s6(4000) > b6(80), 'S', 1))])
    c.replay()
