# SPDX-License-Identifier: BSD-3-Clause
"""B64: packets longer than the MTU of the link they would leave on."""
import pytest
from scapy.all import ICMP, IP, Ether, ICMPv6PacketTooBig, IPv6, Raw, raw

from fragments import cut
from packets import A, A6, MAC_IN, MAC_OUT, R, S, S6, ether, icmp_error, l3, tagged, udp

GATEWAY, GATEWAY6 = '198.51.100.1', '2001:db8:1::1'

CONFIG = f'''\
port add in devargs net_null0
port add out devargs net_null1
netns add T1
link add inside port in netns T1
link add outside port out netns T1 peer inside mtu 1400
link address add inside {GATEWAY}/24
link address add inside {GATEWAY6}/64
'''

DATA = bytes(range(256)) * 6
FLOW, FLOW6 = A(40000) > S(53), A6(40000) > S6(53)


@pytest.fixture
def gateway(case):
    return case(config=CONFIG)


def big(flow, length, **ip):
    """A UDP packet of that length, from its IP header on."""
    frame = udp(flow, DATA[:length - (48 if flow.v6 else 28)])
    if not ip:
        return frame
    packet = IP(l3(frame))
    for field, value in ip.items():
        setattr(packet, field, value)
    del packet.chksum
    return ether(packet)


def too_big(frame, mtu=1400, src=GATEWAY):
    """What the sender is told of a frame: at most 576 bytes."""
    packet = IP(l3(frame))
    return raw(Ether(src=MAC_OUT, dst=MAC_IN)
               / IP(src=src, dst=packet.src, flags='DF', ttl=64, id=0, tos=0xc0)
               / ICMP(type=3, code=4, nexthopmtu=mtu) / Raw(l3(frame)[:548]))


def too_big6(frame, mtu=1400, src=GATEWAY6):
    packet = IPv6(l3(frame))
    return raw(Ether(src=MAC_OUT, dst=MAC_IN) / IPv6(src=src, dst=packet.src, hlim=64)
               / ICMPv6PacketTooBig(mtu=mtu) / Raw(l3(frame)[:1232]))


def test_sender_is_told(gateway):
    c = gateway
    frame, frame6 = big(FLOW, 1500, flags='DF'), big(FLOW6, 1500)
    c.at(0).inside(frame, drop='too-big', back=[too_big(frame)])
    c.at(1).inside(frame6, drop='too-big', back=[too_big6(frame6)])
    c.at(2).inside(big(FLOW, 1400, flags='DF')).inside(big(FLOW6, 1400))
    c.at(3).outside(big(S(53) > A(40000), 1500, flags='DF'))
    c.replay()


def test_a_link_without_an_address(case):
    """The error is from whom the packet was for."""
    c = case(config=CONFIG.replace('link address', '# link address'))
    frame, frame6 = big(FLOW, 1401, flags='DF'), big(FLOW6, 1401)
    c.at(0).inside(frame, drop='too-big', back=[too_big(frame, src=S.addr)])
    c.at(1).inside(frame6, drop='too-big', back=[too_big6(frame6, src=S6.addr)])
    c.replay()


def test_no_link_of_ipv6_has_less_than_1280(case):
    c = case(config=CONFIG.replace('mtu 1400', 'mtu 600'))
    frame, frame6 = big(FLOW, 1280, flags='DF'), big(FLOW6, 1281)
    c.at(0).inside(frame, drop='too-big', back=[too_big(frame, 600)])
    c.at(1).inside(big(FLOW6, 1280))
    c.at(2).inside(frame6, drop='too-big', back=[too_big6(frame6, 1280)])
    c.replay()


def test_tags_of_the_packet(case):
    c = case(config=CONFIG.replace('port in netns', 'port in vlan 10.100 netns'))
    frame, tags = big(FLOW, 1500, flags='DF'), ((0x88A8, 5 << 13 | 10), (0x8100, 100))
    c.at(0).inside(tagged(frame, *tags), drop='too-big', back=[tagged(too_big(frame), *tags)])
    c.replay()


def departures(c, moment, frames):
    c.departures += [(moment.ns, 'out', frame) for frame in frames]


def test_fragmented_where_it_may_be(gateway):
    """1,376 bytes of payload are what fits, in multiples of eight."""
    c, frame = gateway, big(FLOW, 1500, id=77)
    moment = c.at(0).inside(frame, back=[])
    departures(c, moment, cut(frame, 1376, ident=77))
    # What pads the frame is none of the packet.
    moment = c.at(1).inside(frame + bytes(9), back=[])
    departures(c, moment, cut(frame, 1376, ident=77))
    c.replay()


def test_fragmented_with_tags(case):
    c = case(config=CONFIG.replace('port out netns', 'port out vlan 30 netns'))
    frame = big(FLOW, 1500, id=77)
    moment = c.at(0).inside(frame, back=[])
    departures(c, moment, [tagged(f, (0x8100, 30)) for f in cut(frame, 1376, ident=77)])
    c.replay()


def test_fragments_that_are_too_big(gateway):
    """Each is cut again, with its place in the whole; the sender's bits say whether it may be."""
    c = gateway
    frame = udp(FLOW, DATA + DATA)
    first, last = cut(frame, 1480, ident=9)
    c.at(0).inside(last, back=[])
    moment = c.at(.001).inside(first, back=[])
    departures(c, moment, cut(frame, 1376, 1480 - 1376, 1376, ident=9))
    frame6 = udp(FLOW6, DATA + DATA)
    first, last = cut(frame6, 1448, ident=9)
    c.at(1).inside(last, back=[])
    quoted = too_big6(frame6)
    c.at(1.001).inside(first, back=[quoted])
    c.drops['too-big'] = 2
    c.replay()


def test_nobody_is_told(gateway):
    """Of errors, of other fragments than the first, from and to groups."""
    c = gateway
    error = icmp_error(A > R, 3, 1, l3(udp(S(53) > A(40000), DATA[:1400])), unused=0)
    error = ether(_df(l3(error)[:1500]))
    c.at(0).inside(error, drop='too-big')
    c.at(1).inside(big(FLOW, 1500, flags='DF', src='224.0.0.9'), drop='too-big')
    c.at(2).inside(big(FLOW, 1500, flags='DF', dst='224.0.0.9'), drop='too-big')
    c.at(3).inside(raw(Ether(src=MAC_IN, dst='ff:ff:ff:ff:ff:ff')
                       / IP(l3(big(FLOW, 1500, flags='DF')))), drop='too-big')
    first, last = cut(udp(FLOW6, DATA), 800, ident=9)
    big_last = cut(udp(FLOW6, DATA + DATA[:728]), 800, ident=9)[1]
    c.at(4).inside(first, back=[])
    c.at(4.001).inside(big_last, back=[])
    c.drops['too-big'] = c.drops['too-big'] + 2
    c.replay()


def _df(packet):
    packet = IP(packet)
    packet.flags = 'DF'
    packet.len = len(packet)
    del packet.chksum
    return packet


def test_errors_are_limited(case):
    """So many in a second as sluice.reject_rate says, each up to 50 ms early."""
    c = case(config=CONFIG, knobs={'sluice.reject_rate': 10})
    frame = big(FLOW, 1500, flags='DF')
    for i in range(40):
        told = [too_big(frame)] if i == 0 or i % 4 == 2 else []
        c.at(i / 40).inside(frame, drop='too-big', back=told)
    c.replay()
