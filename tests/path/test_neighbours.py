# SPDX-License-Identifier: BSD-3-Clause
"""ARP and Neighbour Discovery: the gateway answers for its own addresses, each on its link alone;
everything else passes between the ends of the wire."""
import socket

import pytest
from scapy.all import (ARP, Ether, ICMPv6MLReport2, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RA,
                       ICMPv6ND_RS, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IPv6, Raw, raw)

from packets import patch, tagged

HOST, GATEWAY_IN, GATEWAY_OUT = '02:aa:00:00:00:01', '02:5e:00:00:00:01', '02:5e:00:00:00:02'
BROADCAST = 'ff:ff:ff:ff:ff:ff'
H, IN, OUT, OTHER = '198.51.100.10', '198.51.100.1', '203.0.113.1', '203.0.113.9'
H6, OUT6, OTHER6 = '2001:db8:f::10', '2001:db8:f::1', '2001:db8:f::9'

CONFIG = f'''\
port add in devargs net_null0
port add out devargs net_null1
netns add T1
link add inside port in netns T1 mac {GATEWAY_IN}
link add outside port out netns T1 peer inside mac {GATEWAY_OUT}
link address add inside {IN}/24
link address add outside {OUT}/24
link address add outside {OUT6}/64
'''


@pytest.fixture
def gateway(case):
    return case(config=CONFIG)


def arp(op, sender, target, src=HOST, dst=BROADCAST, **fields):
    fields = {'hwsrc': src, 'psrc': sender, 'pdst': target} | fields
    return raw(Ether(src=src, dst=dst) / ARP(op=op, **fields))


def who_has(sender, target, **fields):
    return arp(1, sender, target, **fields)


def is_at(sender, target, **fields):
    return arp(2, sender, target, **fields)


def answer(sender, target, mac, to=HOST):
    return is_at(sender, target, src=mac, dst=to, hwdst=to)


def group(target):
    """The solicited-node group of an address, and its MAC address."""
    tail = socket.inet_pton(socket.AF_INET6, target)[13:]
    addr = socket.inet_ntop(socket.AF_INET6, bytes.fromhex('ff02' + '00' * 9 + '01ff') + tail)
    return addr, '33:33:ff:%02x:%02x:%02x' % tuple(tail)


def solicit(sender, target, src=HOST, options=None, to=None, ip=None, **fields):
    addr, mac = group(target)
    option = ICMPv6NDOptSrcLLAddr(lladdr=src) if sender != '::' else b''
    return raw(Ether(src=src, dst=mac) / IPv6(src=sender, dst=to or addr, **(ip or {'hlim': 255}))
               / ICMPv6ND_NS(tgt=target, **fields) / (option if options is None else options))


def advertise(target, to, mac, dst=HOST, solicited=1, router=1, **ip):
    fields = {'hlim': 255} | ip
    return raw(Ether(src=mac, dst=dst) / IPv6(src=target, dst=to, **fields)
               / ICMPv6ND_NA(tgt=target, R=router, S=solicited, O=1)
               / ICMPv6NDOptDstLLAddr(lladdr=mac))


def test_arp_is_answered_on_its_link(gateway):
    c = gateway
    c.at(0).inside(who_has(H, IN), back=[answer(IN, H, GATEWAY_IN)])
    c.at(1).outside(who_has(OTHER, OUT), back=[answer(OUT, OTHER, GATEWAY_OUT)])
    # Unicast, as hosts ask before they give an entry up; and a probe before using an address.
    c.at(2).outside(who_has(OTHER, OUT, dst=GATEWAY_OUT), back=[answer(OUT, OTHER, GATEWAY_OUT)])
    c.at(3).outside(who_has('0.0.0.0', OUT), back=[answer(OUT, '0.0.0.0', GATEWAY_OUT)])
    # The address of the other end, and of others, is for others to answer.
    c.at(4).inside(who_has(H, OUT))
    c.at(5).outside(who_has(OTHER, IN))
    c.at(6).inside(who_has(H, '198.51.100.99')).outside(is_at('198.51.100.99', H))
    c.at(7).outside(who_has(OTHER, OTHER), back=())
    c.replay()


def test_arp_keeps_the_padding_of_its_frame(gateway):
    padding = bytes(18)
    gateway.at(0).inside(who_has(H, IN) + padding, back=[answer(IN, H, GATEWAY_IN) + padding])
    gateway.replay()


def test_nd_is_answered_on_its_link(gateway):
    c = gateway
    c.at(0).outside(solicit(H6, OUT6), back=[advertise(OUT6, H6, GATEWAY_OUT)])
    c.at(1).outside(solicit(H6, OUT6, to=OUT6), back=[advertise(OUT6, H6, GATEWAY_OUT)])
    # Without an option, the frame says who asks; padding goes.
    c.at(2).outside(solicit(H6, OUT6, options=b''), back=[advertise(OUT6, H6, GATEWAY_OUT)])
    c.at(3).outside(solicit(H6, OUT6, options=b'') + bytes(40),
                    back=[advertise(OUT6, H6, GATEWAY_OUT)])
    # Somebody is about to take the address: all have to hear that it is taken.
    c.at(4).outside(solicit('::', OUT6), back=[
        advertise(OUT6, 'ff02::1', GATEWAY_OUT, dst='33:33:00:00:00:01', solicited=0)])
    c.at(5).inside(solicit(H6, OUT6)).outside(solicit(H6, OTHER6))
    c.at(6).inside(solicit('::', H6)).outside(advertise(OTHER6, H6, HOST, router=0))
    c.replay()


def test_answers_keep_the_tags_of_their_link(case):
    """QinQ: the answer leaves with the tags and the priority of the question."""
    c = case(config=CONFIG.replace('port out', 'port out vlan 20.300'))
    tags = (0x88A8, 6 << 13 | 20), (0x8100, 3 << 13 | 300)
    c.at(0).outside(tagged(who_has(OTHER, OUT), *tags),
                    back=[tagged(answer(OUT, OTHER, GATEWAY_OUT), *tags)])
    c.at(1).outside(tagged(solicit(H6, OUT6), *tags),
                    back=[tagged(advertise(OUT6, H6, GATEWAY_OUT), *tags)])
    c.at(2).outside(tagged(solicit(H6, OUT6, options=b''), *tags),
                    back=[tagged(advertise(OUT6, H6, GATEWAY_OUT), *tags)])
    c.replay()


SPOOFED = {
    'gratuitous': ('out', who_has(OUT, OUT)),
    'announced': ('out', is_at(OUT, OUT)),
    'reply': ('out', is_at(OUT, OTHER)),
    'request': ('out', who_has(OUT, OTHER)),
    'from the other end': ('in', is_at(OUT, H)),
    'inside address outside': ('out', who_has(IN, OTHER)),
    'advertisement': ('out', advertise(OUT6, 'ff02::1', HOST)),
    'advertisement inside': ('in', advertise(OUT6, H6, HOST)),
    'solicitation': ('out', solicit(OUT6, OTHER6)),
}


def test_spoofed(gateway):
    for i, (port, frame) in enumerate(SPOOFED.values()):
        gateway.at(i).frame(port, frame, drop='neighbour-spoofed')
    gateway.replay()


ARP_AT = 14
BAD_ARP = {
    'hardware length': patch(who_has(OTHER, OUT), ARP_AT + 4, b'\x08'),
    'protocol length': patch(who_has(OTHER, OUT), ARP_AT + 5, b'\x10'),
    'cut in its addresses': who_has(OTHER, OUT)[:-1],
    'cut in its header': who_has(OTHER, OUT)[:ARP_AT + 7],
    'multicast sender': who_has(OTHER, OUT, hwsrc='01:00:5e:00:00:01'),
    'broadcast sender': who_has(OTHER, OUT, hwsrc=BROADCAST),
    'zero sender': who_has(OTHER, OUT, hwsrc='00:00:00:00:00:00'),
    'multicast address': who_has('224.0.0.9', OUT),
    'reply of nobody': is_at('0.0.0.0', OUT),
}


def test_bad_arp(gateway):
    for i, frame in enumerate(BAD_ARP.values()):
        gateway.at(i).outside(frame, drop='arp-malformed')
    gateway.replay()


OPTION = ICMPv6NDOptSrcLLAddr(lladdr=HOST)
BAD_ND = {
    'hop limit': solicit(H6, OUT6, ip={'hlim': 254}),
    'code': solicit(H6, OUT6, code=1),
    'checksum': solicit(H6, OUT6, cksum=1),
    'option without length': solicit(H6, OUT6, options=Raw(b'\1\0' + bytes(6))),
    'option beyond its end': solicit(H6, OUT6, options=Raw(b'\1\4' + bytes(6))),
    'rest of an option': solicit(H6, OUT6, options=Raw(raw(OPTION) + b'\1\1\0\0')),
    'multicast sender': solicit('ff02::1', OUT6),
    'multicast station': solicit(H6, OUT6, options=ICMPv6NDOptSrcLLAddr(lladdr=BROADCAST)),
    'probe with an option': solicit('::', OUT6, options=OPTION),
    'probe to one host': solicit('::', OUT6, to=OUT6),
    'cut': raw(Ether(src=HOST, dst=BROADCAST) / IPv6(src=H6, dst=OUT6, nh=58, hlim=255)
               / Raw(raw(ICMPv6ND_NS(tgt=OUT6))[:20])),
    'advertisement with a bad sum': patch(advertise(OTHER6, OUT6, HOST), 14 + 42, b'\0\1'),
    'advertisement from afar': advertise(OTHER6, OUT6, HOST, hlim=64),
}


def test_bad_nd(gateway):
    for i, frame in enumerate(BAD_ND.values()):
        gateway.at(i).outside(frame, drop='nd-malformed')
    gateway.replay()


def test_what_is_not_the_gateways_passes(gateway):
    """Damaged or odd, as long as it is not about an address of the gateway."""
    c = gateway
    for frame in (who_has('224.0.0.9', OTHER), solicit(H6, OTHER6, ip={'hlim': 1}),
                  solicit(H6, OTHER6, cksum=1),
                  arp(3, H, OUT), patch(who_has(H, OUT), ARP_AT, b'\0\6'),
                  patch(who_has(H, OUT), ARP_AT + 2, b'\x86\xdd'),
                  raw(Ether(src=HOST, dst=BROADCAST) / IPv6(src=H6, dst='ff02::2', hlim=255)
                      / ICMPv6ND_RS()),
                  raw(Ether(src=HOST, dst=BROADCAST) / IPv6(src=H6, dst='ff02::1', hlim=255)
                      / ICMPv6ND_RA()),
                  raw(Ether(src=HOST, dst=BROADCAST) / IPv6(src=H6, dst='ff02::16', hlim=1)
                      / ICMPv6MLReport2())):
        c.at(0).inside(frame).outside(frame)
    c.replay()


def test_a_wire_without_addresses_passes_all(case):
    c = case()
    for frame in (*BAD_ARP.values(), *(f for n, f in BAD_ND.items()), who_has(H, OUT),
                  solicit(H6, OUT6), is_at(OUT, H)):
        c.at(0).inside(frame).outside(frame)
    c.replay()


def test_addresses_come_and_go(case):
    c = case(config=CONFIG.replace(f'link address add outside {OUT}/24\n', ''))
    ask = who_has(OTHER, OUT)
    c.at(0).outside(ask)
    c.at(1).run(f'link address add outside {OUT}/24')
    c.at(2).outside(ask, back=[answer(OUT, OTHER, GATEWAY_OUT)])
    c.at(3).run(f'link address delete outside {OUT}/24')
    c.at(4).outside(ask)
    c.at(5).inside(who_has(H, IN), back=[answer(IN, H, GATEWAY_IN)])
    c.replay()
