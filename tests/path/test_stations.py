# SPDX-License-Identifier: BSD-3-Clause
"""Packets for a host whose station is not known yet: they wait until it answers, some of them, and
not for long."""
import ipaddress

import pytest
from scapy.all import (ICMP, IP, Ether, ICMPv6DestUnreach, ICMPv6ND_NA, ICMPv6ND_NS,
                       ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IPv6, Raw, raw)

from fragments import cut
from packets import A, B, S, Host, icmp_error, l3, ping, tagged, tcp, udp
from test_nat_wire import (CONFIG, FORWARD_UDP, GW_IN, GW_OUT, IN, MAC, MASQUERADE, P, ROUTER, V,
                           is_at, leaves, via, who_has)

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


def unreachable(frame, source=P.addr, code=1):
    """What the sender of an untagged frame is told, by the station that he sent it to."""
    dst, src, told = frame[:6].hex(':'), frame[6:12].hex(':'), IP(l3(frame)).src
    return raw(Ether(src=dst, dst=src) / IP(src=source, dst=told, flags='DF', id=0, tos=0xc0)
               / ICMP(type=3, code=code) / Raw(l3(frame)[:548]))


def unreachable6(frame, source, code=3):
    dst, src, told = frame[:6].hex(':'), frame[6:12].hex(':'), IPv6(l3(frame)).src
    return raw(Ether(src=dst, dst=src) / IPv6(src=source, dst=told, hlim=64)
               / ICMPv6DestUnreach(code=code) / Raw(l3(frame)[:1232]))


OTHER = who_has(MAC[A], A.addr, '198.51.100.77')


def time_passes(c, *seconds, **want):
    """Something comes, so that the gateway looks at the clock."""
    for at in seconds:
        c.at(at).inside(OTHER, **want)


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
    """Asked for three times, a second apart; then it is given up, all who wait are told so, and it
    is asked for anew for others."""
    c = wire()
    for i in range(2):
        c.at(i / 10).outside(came(i)[0], drop='neighbour-unknown', back=[])
        leaves(c, 3, 'out', unreachable(came(i)[0]))
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


def in_vain(c, port, frame, told, ask=ASK, **want):
    """The frame waits until it is given up, and that is what leaves then."""
    c.at(0).frame(port, frame, drop='neighbour-unknown', back=[])
    for at in range(3):
        leaves(c, at, 'in', ask)
    if told is not None:
        leaves(c, 3, port, told)
    time_passes(c, 1, 2, 3, **want)


def test_the_error_takes_the_way_back(wire):
    """By the tags that the packet came with."""
    c = wire(FORWARD_UDP, config=CONFIG.replace('port out netns', 'port out vlan 20.300 netns'))
    tags = (0x88A8, 5 << 13 | 20), (0x8100, 1 << 12 | 300)
    in_vain(c, 'out', tagged(came(0)[0], *tags), tagged(unreachable(came(0)[0]), *tags),
            becomes=tagged(OTHER, (0x88A8, 20), (0x8100, 300)))
    c.replay()


def test_no_answer_on_the_same_link(wire):
    c = wire(MASQUERADE, FORWARD_UDP)
    frame = via(MAC[A], ROUTER, udp(A(5000) > V(53)))
    in_vain(c, 'in', frame, unreachable(frame, IN))
    c.replay()


def test_no_answer_is_told_once_of_a_datagram(wire):
    """Not of each fragment."""
    c = wire()
    datagram = came(0, b'y' * 3000)[0]
    *frames, last = cut(datagram, 1200, 1200)
    for frame in frames:
        c.at(0).outside(frame, drop='neighbour-unknown', back=[])
    in_vain(c, 'out', last, unreachable(datagram))
    c.replay()


NOT_TOLD = {
    'from nobody': udp(Host('0.0.0.0')(53) > V(53)),
    'from a group': udp(Host('224.0.0.9')(53) > V(53)),
}


@pytest.mark.parametrize('name', NOT_TOLD)
def test_no_answer_and_nobody_to_tell(wire, name):
    c = wire()
    in_vain(c, 'out', via(MAC[S], GW_OUT, NOT_TOLD[name]), None)
    c.replay()


def test_no_answer_is_told_within_the_rate(wire):
    c = wire(FORWARD_UDP + 'sysctl sluice.reject_rate=20 netns T1\n')
    for i in range(5):
        c.at(i / 100).outside(came(i)[0], drop='neighbour-unknown', back=[])
    for at in range(3):
        leaves(c, at, 'in', ASK)
    for i in range(2):
        leaves(c, 3, 'out', unreachable(came(i)[0]))
    time_passes(c, 1, 2, 3)
    c.replay()


def test_no_answer_and_the_senders_link_has_gone(wire):
    c = wire()
    c.at(0).outside(came(0)[0], drop='neighbour-unknown', back=[])
    leaves(c, 0, 'in', ASK)
    c.at(.1).run('link delete outside')
    time_passes(c, 1, 2, 3, drop='no-peer')
    for at in (1, 2):
        leaves(c, at, 'in', ASK)
    c.replay()


def test_no_network_of_the_link(wire):
    c = wire('rule add T1 prerouting udp dport 53 dnat ip to 10.9.9.9\n')
    c.at(0).outside(came(0)[0], drop='neighbour-unknown', back=[unreachable(came(0)[0], code=0)])
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


B6, S6, V6 = map(Host, ('2001:db8:1::11', '2001:db8:2::80', '2001:db8:f::80'))
IN6 = '2001:db8:1::1'
CONFIG6 = CONFIG + f'link address add inside {IN6}/64\n'
GROUP6, GROUP_MAC = solicited(B6.addr)
ASK6 = raw(Ether(src=GW_IN, dst=GROUP_MAC) / IPv6(src=IN6, dst=GROUP6, hlim=255)
           / ICMPv6ND_NS(tgt=B6.addr) / ICMPv6NDOptSrcLLAddr(lladdr=GW_IN))


def test_ipv6(wire):
    c = wire(f'rule add T1 prerouting ip6 daddr {V6.addr} dnat ip6 to {B6.addr}\n', config=CONFIG6)
    answer = raw(Ether(src=MAC[B], dst=GW_IN) / IPv6(src=B6.addr, dst=IN6, hlim=255)
                 / ICMPv6ND_NA(tgt=B6.addr, R=0, S=1, O=1) / ICMPv6NDOptDstLLAddr(lladdr=MAC[B]))
    c.at(0).outside(via(MAC[S], GW_OUT, ping(S6 > V6, 7)), becomes=ASK6)
    c.at(.1).outside(via(MAC[S], GW_OUT, tcp(S6(4000) > V6(80), 'S', 1)), back=[])
    c.at(.2).inside(answer, back=[via(MAC[S], MAC[B], ping(S6 > B6, 7)),
                                  via(MAC[S], MAC[B], tcp(S6(4000) > B6(80), 'S', 1))])
    c.replay()


def test_no_answer_ipv6(wire):
    c = wire(f'rule add T1 prerouting ip6 daddr {V6.addr} dnat ip6 to {B6.addr}\n', config=CONFIG6)
    frame = via(MAC[S], GW_OUT, ping(S6 > V6, 7))
    in_vain(c, 'out', frame, unreachable6(frame, V6.addr), ask=ASK6)
    c.replay()


def test_no_answer_nat64(wire):
    """Who sent IPv6 is told in IPv6, of what he sent."""
    c = wire('nat pool add T1 public 203.0.113.7\n',
             'rule add T1 prerouting nat64 prefix 2001:db8:64::/96 to pool public\n',
             config=CONFIG6)
    to6 = Host('2001:db8:64::cb00:7163')
    frame = via(MAC[A], GW_IN, udp(B6(5000) > to6(53)))
    c.at(0).inside(frame, drop='neighbour-unknown', back=[])
    for at in range(3):
        leaves(c, at, 'out', who_has(GW_OUT, P.addr, '203.0.113.99'))
    time_passes(c, 1, 2, 3)
    leaves(c, 3, 'in', unreachable6(frame, IN6))
    c.replay()
