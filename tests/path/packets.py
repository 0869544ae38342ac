# SPDX-License-Identifier: BSD-3-Clause
"""Packets as the cases of this directory write them: tcp(A(40000) > S(80), 'S', seq=1000).

Every function gives the bytes of a frame, made by scapy with right sums. The addresses are those of
the documentation prefixes, with the roles that all cases share."""
import struct

from scapy.all import (ICMP, IP, TCP, UDP, Ether, ICMPv6EchoReply, ICMPv6EchoRequest, IPv6, Raw,
                       conf, raw)

conf.checkIPaddr = False
MAC_IN, MAC_OUT = '02:00:00:00:00:01', '02:00:00:00:00:02'


class Host:
    """An address. Called with a port it is an endpoint; `>` between two makes a flow."""

    def __init__(self, addr, port=None):
        self.addr, self.port = addr, port

    def __call__(self, port):
        return Host(self.addr, port)

    def __gt__(self, other):
        return Flow(self, other)


class Flow:
    """One direction, source and destination; ~flow is the other one."""

    def __init__(self, src, dst):
        self.src, self.dst = src, dst

    def __invert__(self):
        return Flow(self.dst, self.src)

    @property
    def v6(self):
        return ':' in self.src.addr

    def ip(self, **fields):
        layer = IPv6 if self.v6 else IP
        return layer(src=self.src.addr, dst=self.dst.addr, **fields)


# Inside hosts, outside servers, the router on the outside path and an attacker outside.
A, B, C = Host('198.51.100.10'), Host('198.51.100.11'), Host('198.51.100.12')
S, S2 = Host('192.0.2.80'), Host('192.0.2.81')
R, M = Host('192.0.2.1'), Host('192.0.2.66')
A6, S6, R6 = Host('2001:db8:1::10'), Host('2001:db8:2::80'), Host('2001:db8:2::1')


def ether(payload, **fields):
    """The frame around a scapy packet."""
    return raw(Ether(src=MAC_IN, dst=MAC_OUT, **fields) / payload)


def home(frame):
    """The frame as it goes on to where the other direction came from, by the entry of a translated
    connection; on a wire the sender says where."""
    return bytes.fromhex(MAC_IN.replace(':', '')) + frame[6:]


def tcp_segment(flow, flags, seq=0, ack=0, data=b'', **fields):
    return TCP(sport=flow.src.port, dport=flow.dst.port, flags=flags, seq=seq % 2**32,
               ack=ack % 2**32, window=fields.pop('win', 65535), **fields) / Raw(data)


def tcp(flow, flags, seq=0, ack=0, data=b'', **fields):
    return ether(flow.ip() / tcp_segment(flow, flags, seq, ack, data, **fields))


def udp(flow, data=b'sluice', **fields):
    return ether(flow.ip() / UDP(sport=flow.src.port, dport=flow.dst.port, **fields) / Raw(data))


def ping(flow, ident, seq=1, data=b'sluice', **fields):
    """An echo request."""
    return ether(flow.ip() / _echo(flow, True, ident, seq, **fields) / Raw(data))


def pong(flow, ident, seq=1, data=b'sluice', **fields):
    """An echo reply."""
    return ether(flow.ip() / _echo(flow, False, ident, seq, **fields) / Raw(data))


def _echo(flow, request, ident, seq, **fields):
    if flow.v6:
        layer = ICMPv6EchoRequest if request else ICMPv6EchoReply
        return layer(id=ident, seq=seq, **fields)
    return ICMP(type=8 if request else 0, id=ident, seq=seq, **fields)


def l3(frame):
    """The IP packet of an untagged frame, which is what an ICMP error quotes."""
    return frame[14:]


def icmp_error(flow, kind, code, quoted, extra=b'', **fields):
    """An ICMP error of IPv4 or IPv6 about the packet that begins with `quoted`."""
    if not flow.v6:
        return ether(flow.ip() / ICMP(type=kind, code=code, **fields) / Raw(quoted + extra))
    body = struct.pack('!BBHI', kind, code, 0, fields.get('mtu', 0)) + quoted
    total = checksum(pseudo6(flow, 58, len(body)) + body)
    body = body[:2] + struct.pack('!H', total) + body[4:]
    return ether(flow.ip(nh=58) / Raw(body))


def pseudo6(flow, proto, length):
    src, dst = (raw(IPv6(src=h.addr, dst=h.addr))[8:24] for h in (flow.src, flow.dst))
    return src + dst + struct.pack('!II', length, proto)


def checksum(data):
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def patch(frame, offset, data):
    """The frame with bytes replaced and no sum corrected."""
    return frame[:offset] + data + frame[offset + len(data):]


def resum_ip(frame):
    """The frame with its IPv4 header sum made right again after patch()."""
    header_len = (frame[14] & 15) * 4
    header = patch(frame[14:14 + header_len], 10, b'\0\0')
    return patch(frame, 24, struct.pack('!H', checksum(header)))


def tagged(frame, *tags):
    """The frame with VLAN tags, from the outermost: (tpid, tci) each."""
    stack = b''.join(struct.pack('!HH', tpid, tci) for tpid, tci in tags)
    return frame[:12] + stack + frame[12:]
