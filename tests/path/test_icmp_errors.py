# SPDX-License-Identifier: BSD-3-Clause
"""ICMP errors about tracked packets, and about none."""
import struct

import pytest
from scapy.all import IP, TCP, UDP, IPOption_NOP, Raw, raw

from harness import entry, refused
from packets import (A, S, R, M, A6, S6, R6, icmp_error, l3, patch, ping, pong, tcp, udp)
from test_tcp import established, opened

DROP = {'sluice.invalid': 'drop'}
DATAGRAM, DATAGRAM6 = A(5000) > S(53), A6(5000) > S6(53)
ICMP_AT = 14 + 20  # of an untagged frame without options
REFUSED = 'invalid-icmp-unrelated'


def unreachable(frame, flow=None, **fields):
    """Port unreachable about a packet that A sent."""
    v6 = frame[12:14] == b'\x86\xdd'
    flow = flow or ((R6 > A6) if v6 else (R > A))
    kind, code = (1, 4) if v6 else (3, 1)
    return icmp_error(flow, kind, code, l3(frame)[:fields.pop('quote', 1000)], **fields)


# ---- B31: what an error may do to the connection ----

@pytest.mark.parametrize('packet, listed', [
    (udp(DATAGRAM), entry(DATAGRAM, 'udp', unreplied=True)),
    (udp(DATAGRAM6), entry(DATAGRAM6, 'udp', unreplied=True)),
    (ping(A > S, 7), entry(A > S, 'icmp', unreplied=True)),
    (ping(A6 > S6, 7), entry(A6 > S6, 'icmpv6', unreplied=True)),
], ids=['udp', 'udp6', 'ping', 'ping6'])
def test_b31_neither_ends_nor_refreshes(case, packet, listed):
    """Ten errors at once, one more after 50 s of 60: the session dies at 60."""
    c = case(knobs=DROP | {'nf_conntrack_udp_timeout': 60, 'nf_conntrack_icmp_timeout': 60,
                           'nf_conntrack_icmpv6_timeout': 60})
    c.at(0).inside(packet)
    for i in range(10):
        c.at(.1 * i).outside(unreachable(packet))
    c.at(50).outside(unreachable(packet))
    c.at(59.999).entries(listed)
    c.at(60).entries()
    c.at(65).outside(unreachable(packet), drop=REFUSED)
    c.replay()


def test_b31_established_connection(case):
    c = case(knobs=DROP | {'nf_conntrack_acct': 1})
    opened(c)
    segment = tcp(A(40000) > S(80), 'A', seq=2001, ack=5001)
    for i in range(10):
        c.at(1 + i).outside(unreachable(segment))
    c.at(11.005).entries(established(432000 - 11, packets=(4, 2)))
    c.replay()


def test_b31_inner_sequence_out_of_window(case):
    """RELATED goes by the tuple; the connection does not move."""
    c = case(knobs=DROP)
    opened(c)
    c.at(1).outside(unreachable(tcp(A(40000) > S(80), 'A', seq=2001 + 2**30, ack=5001)))
    c.at(2.005).entries(established(432000 - 2))
    c.replay()


@pytest.mark.parametrize('invalid', ['auto', 'drop'])
def test_b31_wrong_outer_checksum(case, invalid):
    c = case(knobs={'sluice.invalid': invalid})
    sent = udp(DATAGRAM)
    c.at(0).inside(sent)
    c.at(1).outside(patch(unreachable(sent), ICMP_AT + 2, b'\x12\x34'),
                    **refused(invalid, 'invalid-l4-checksum'))
    c.at(2).entries(entry(DATAGRAM, 'udp', left=28, unreplied=True))
    c.replay()


@pytest.mark.parametrize('knob', [0, 1])
def test_b31_wrong_inner_ip_checksum(case, knob):
    """RFC 5508 REQ-3a; a switch, for those whose equipment sends such errors."""
    c = case(knobs={'sluice.icmp_inner_checksum': knob})
    sent = udp(DATAGRAM)
    c.at(0).inside(sent)
    c.at(1).outside(icmp_error(R > A, 3, 1, patch(l3(sent), 10, b'\x12\x34')),
                    **({'drop': 'icmp-inner-checksum'} if knob else {}))
    c.replay()


# ---- B19: errors about nothing ----

@pytest.mark.parametrize('invalid', ['auto', 'drop'])
@pytest.mark.parametrize('packet, flow, kind, code', [
    (udp(DATAGRAM), R > A, 3, 1),
    (udp(DATAGRAM), R > A, 11, 0),
    (udp(DATAGRAM), R > A, 5, 0),
    (tcp(A(1) > S(2), 'S'), R > A, 3, 4),
    (ping(A > S, 7), R > A, 12, 0),
    (udp(DATAGRAM6), R6 > A6, 2, 0),
    (udp(DATAGRAM6), R6 > A6, 1, 0),
    (ping(A6 > S6, 7), R6 > A6, 3, 0),
], ids=lambda v: v if isinstance(v, int) else '')
def test_b19_error_about_what_nobody_sent(case, invalid, packet, flow, kind, code):
    c = case(knobs={'sluice.invalid': invalid})
    c.at(0).outside(icmp_error(flow, kind, code, l3(packet)),
                    **refused(invalid, REFUSED))
    c.at(1).entries()
    c.replay()


def test_error_about_an_error_is_unrelated(case):
    c = case(knobs=DROP)
    sent = udp(DATAGRAM)
    c.at(0).inside(sent)
    c.at(1).outside(icmp_error(R > A, 3, 1, l3(unreachable(sent))), drop=REFUSED)
    c.replay()


@pytest.mark.parametrize('quoted, flow, passes', [
    (udp(DATAGRAM), R > A, True),          # a router on the way, to the sender
    (udp(DATAGRAM), S > A, True),          # the receiver itself
    (udp(~DATAGRAM), A > S, True),         # about a reply
    (udp(~DATAGRAM), R > A, False),        # to somebody who did not send the packet
    (udp(DATAGRAM), M > S, False),
], ids=['router', 'receiver', 'reply', 'wrong-side', 'attacker'])
def test_error_must_go_to_the_sender(case, quoted, flow, passes):
    """The connection exists, but a sender of the quoted packet is who must hear of it."""
    c = case(knobs=DROP)
    c.at(0).inside(udp(DATAGRAM))
    c.at(.1).outside(udp(~DATAGRAM))
    error = icmp_error(flow, 3, 1, l3(quoted))
    where = c.at(1).inside if flow.src is A else c.at(1).outside
    where(error, **({} if passes else {'drop': REFUSED}))
    c.replay()


# ---- B32: the packet inside ----

def options(n):
    return [IPOption_NOP()] * n


def quoted_tcp(**fields):
    return raw(IP(src=A.addr, dst=S.addr, **fields) / TCP(sport=40000, dport=80, seq=1000))


SYN = tcp(A(40000) > S(80), 'S', seq=1000)
INNER = {
    'eight bytes of transport': (quoted_tcp()[:28], None),
    'seven bytes of transport': (quoted_tcp()[:27], 'icmp-inner'),
    'options': (quoted_tcp(options=options(12))[:40], None),
    'most options': (quoted_tcp(options=options(40))[:68], None),
    'options cut': (quoted_tcp(options=options(40))[:59], 'icmp-inner'),
    'header length 4 words': (patch(quoted_tcp(), 0, b'\x44'), 'icmp-inner'),
    'version 6': (patch(quoted_tcp(), 0, b'\x65'), 'icmp-inner'),
    'total length beyond': (raw(IP(quoted_tcp(len=1500))), None),
    'total length 0': (raw(IP(quoted_tcp(len=0))), 'icmp-inner'),
    'total length 20': (raw(IP(quoted_tcp(len=20))), 'icmp-inner'),
    'not the first fragment': (quoted_tcp(frag=10), 'icmp-inner'),
    'first fragment': (quoted_tcp(flags='MF'), None),
    'nothing': (b'', 'icmp-inner'),
    'one byte': (b'\x45', 'icmp-inner'),
}


@pytest.mark.parametrize('name', INNER)
def test_b32_inner_packet(case, name):
    """Well-formed: RELATED, passed as it is. Malformed: dropped by name."""
    inner, drop = INNER[name]
    c = case(knobs=DROP)
    c.at(0).inside(SYN)
    c.at(1).outside(icmp_error(R > A, 11, 0, inner), **({'drop': drop} if drop else {}))
    c.at(2).entries(entry(A(40000) > S(80), 'tcp', state='SYN_SENT', left=118, unreplied=True))
    c.replay()


def test_b32_extensions(case):
    """RFC 4884: 128 bytes of the original packet, then an extension structure."""
    extension = struct.pack('!BBHHBB', 0x20, 0, 0, 8, 1, 1) + b'\0\1\2\3'
    sent = udp(DATAGRAM, data=bytes(100))
    c = case(knobs=DROP)
    c.at(0).inside(sent)
    c.at(1).outside(icmp_error(R > A, 11, 0, l3(sent)[:128], extra=extension, length=32))
    c.replay()


@pytest.mark.parametrize('name, inner, drop', [
    ('cut header', l3(udp(DATAGRAM6))[:39], 'icmp-inner'),
    ('cut transport', l3(udp(DATAGRAM6))[:47], 'icmp-inner'),
    ('eight bytes of transport', l3(udp(DATAGRAM6))[:48], None),
    ('version 4', patch(l3(udp(DATAGRAM6)), 0, b'\x40'), 'icmp-inner'),
    ('nothing', b'', 'icmp-inner'),
    ('destination options', raw(DATAGRAM6.ip(nh=60) / Raw(b'\x11\0\1\4\0\0\0\0')
                                / UDP(sport=5000, dport=53) / Raw(b'x')), None),
    ('options cut', raw(DATAGRAM6.ip(nh=60) / Raw(b'\x11\1\1\4\0\0\0\0')), 'icmp-inner'),
], ids=lambda v: v if isinstance(v, str) else '')
def test_b32_inner_packet_ipv6(case, name, inner, drop):
    c = case(knobs=DROP)
    c.at(0).inside(udp(DATAGRAM6))
    c.at(1).outside(icmp_error(R6 > A6, 2, 0, inner, mtu=1280), **({'drop': drop} if drop else {}))
    c.at(2).entries(entry(DATAGRAM6, 'udp', left=28, unreplied=True))
    c.replay()


def test_error_about_a_reply_to_a_ping(case):
    """The server could not take the reply: the error goes the way of the request."""
    c = case(knobs=DROP)
    c.at(0).outside(ping(S > A, 9))
    c.at(.1).inside(pong(A > S, 9))
    c.at(1).outside(icmp_error(R > A, 3, 1, l3(pong(A > S, 9))))
    c.replay()
