# SPDX-License-Identifier: BSD-3-Clause
"""NAT64: hosts of IPv6 inside, of IPv4 outside, and packets as they leave the translation, made by
scapy with all their sums."""
from scapy.all import IP, Ether, IPv6, Raw, raw

from harness import CONFIG
from packets import MAC_IN, MAC_OUT, Host, home, l3

PREFIX = '2001:db8:64::'
A, B, R6 = Host('2001:db8:1::10'), Host('2001:db8:1::11'), Host('2001:db8:1::ffff')
S4, R4 = Host('192.0.2.80'), Host('192.0.2.1')
P = Host('203.0.113.64')


def mapped(host):
    """The address of an IPv4 host under the prefix, as it is printed."""
    b = [int(x) for x in host.addr.split('.')]
    return Host(f'{PREFIX}{b[0] << 8 | b[1]:x}:{b[2] << 8 | b[3]:x}')


S = mapped(S4)

POOL = f'nat pool add T1 P4 {P.addr}\n'
RULE = f'rule add T1 prerouting nat64 prefix {PREFIX}/96 to pool P4\n'
NAT64 = CONFIG + POOL + RULE


class Ids:
    """Identifications of IPv4 packets in one piece, as the one worker of replay gives them."""

    def __init__(self):
        self.last = 0

    def __call__(self):
        self.last += 2
        return self.last


def hop(frame, **ip4):
    """A frame of packets.py with one hop less; of IPv4 also other fields."""
    if frame[12:14] == b'\x86\xdd':
        ip = IPv6(l3(frame))
        ip.hlim -= 1
    else:
        ip = IP(l3(frame))
        ip.ttl -= 1
        for field, value in ip4.items():
            setattr(ip, field, value)
        del ip.chksum
    return frame[:14] + raw(ip)


def six(frame):
    """What leaves inside: an answer, which goes home by its connection."""
    return home(hop(frame))


def told(about, layer, src=None):
    """An ICMP error that the gateway makes, back to the sender of the frame."""
    if about[12:14] == b'\x86\xdd':
        ip = IPv6(src=src or IPv6(l3(about)).dst, dst=IPv6(l3(about)).src, hlim=64)
        quoted = l3(about)[:1232]
    else:
        ip = IP(src=src or IP(l3(about)).dst, dst=IP(l3(about)).src, flags='DF', ttl=64, id=0,
                tos=0xC0)
        quoted = l3(about)[:548]
    return raw(Ether(src=MAC_OUT, dst=MAC_IN) / ip / layer / Raw(quoted))
