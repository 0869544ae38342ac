# SPDX-License-Identifier: BSD-3-Clause
"""Frames that are longer or shorter than their packet, lie about lengths, or carry no IP."""
import struct

import pytest
from scapy.all import (ARP, Dot3, ICMPv6MLReport2, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RA,
                       ICMPv6ND_Redirect, ICMPv6ND_RS, IP, LLC, STP, TCP, UDP, AH, Ether,
                       IPOption_NOP, IPOption_RR, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment,
                       IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, PadN, Raw, raw)

from harness import entry
from packets import (A, S, A6, S6, ether, patch, resum_ip, tcp, tcp_segment, udp)
from test_tcp import established, opened

FLOW, FLOW6 = A(40000) > S(80), A6(40000) > S6(80)
DROP = {'sluice.invalid': 'drop'}
IP_AT, L4_AT = 14, 34  # of an untagged frame without options
SYN = tcp(FLOW, 'S', seq=1000)


def total_length(frame, length):
    return resum_ip(patch(frame, IP_AT + 2, struct.pack('!H', length)))


# ---- B54: the frame and its packet ----

@pytest.mark.parametrize('padding', [6, 300])
def test_b54_padding_is_no_data(case, padding):
    """It is neither counted as data of the segment, nor summed, and leaves as it came."""
    c = case(knobs=DROP | {'nf_conntrack_acct': 1})
    opened(c)
    for i in range(3):
        c.at(1 + i).inside(tcp(FLOW, 'A', seq=2001, ack=5001) + b'\xaa' * padding)
    c.at(4).outside(tcp(~FLOW, 'PA', seq=5001, ack=2001, data=b'x'))
    c.at(5).inside(tcp(FLOW, 'PA', seq=2001, ack=5002, data=b'y') + b'\xaa' * padding)
    c.at(6).outside(tcp(~FLOW, 'A', seq=5002, ack=2002))
    c.at(7).entries(established(packets=(8, 4), orig={'bytes': 8 * 40 + 1001},
                                reply={'bytes': 4 * 40 + 1001}))
    c.replay()


@pytest.mark.parametrize('length, drop', [
    (0, 'ip-length'), (19, 'ip-length'), (20, 'invalid-l4-truncated'),
    (39, 'invalid-l4-truncated'), (41, 'ip-length'), (65535, 'ip-length'),
])
def test_b54_total_length(case, length, drop):
    c = case(knobs=DROP)
    c.at(0).inside(total_length(SYN, length), drop=drop)
    c.at(1).entries()
    c.replay()


@pytest.mark.parametrize('length, drop', [
    (0, 'invalid-l4-truncated'), (19, 'invalid-l4-truncated'), (21, 'ip-length'),
    (65535, 'ip-length'),
])
def test_b54_payload_length_ipv6(case, length, drop):
    c = case(knobs=DROP)
    c.at(0).inside(patch(tcp(FLOW6, 'S', seq=1), IP_AT + 4, struct.pack('!H', length)), drop=drop)
    c.at(1).entries()
    c.replay()


@pytest.mark.parametrize('length', [0, 7, 15, 65535])
def test_b54_udp_length(case, length):
    """Below its header, or beyond the IP payload of 14 bytes."""
    c = case(knobs=DROP)
    c.at(0).inside(patch(udp(FLOW), L4_AT + 4, struct.pack('!H', length)),
                   drop='invalid-l4-truncated')
    c.at(1).entries()
    c.replay()


def test_b54_frame_cut_anywhere(case):
    """Every length of a frame, of both families: a named drop up to the last byte but one."""
    c = case(knobs=DROP)
    t = 0.0
    for whole, header in ((SYN, 20), (tcp(FLOW6, 'S', seq=1), 40)):
        for n in range(len(whole)):
            drop = 'runt' if n < 14 else 'ip-truncated' if n < 14 + header else 'ip-length'
            c.at(t).inside(whole[:n], drop=drop)
            t += .001
    c.at(1).entries()
    c.replay()


# ---- IP headers ----

@pytest.mark.parametrize('name, frame, drop', [
    ('version 6 in IPv4', patch(SYN, IP_AT, b'\x65'), 'ip-version'),
    ('version 4 in IPv6', patch(tcp(FLOW6, 'S'), IP_AT, b'\x45'), 'ip-version'),
    ('header of 16 bytes', patch(SYN, IP_AT, b'\x44'), 'ip-header'),
    ('header of 0 bytes', patch(SYN, IP_AT, b'\x40'), 'ip-header'),
    ('header beyond the packet', patch(SYN[:-4], IP_AT, b'\x4f'), 'ip-header'),
    ('wrong sum', patch(SYN, IP_AT + 10, b'\x12\x34'), 'ip-checksum'),
    ('fragment of 20', ether(IP(src=A.addr, dst=S.addr, flags='MF') / tcp_segment(FLOW, 'S')),
     'frag-invalid'),
    ('empty fragment', ether(IP(src=A.addr, dst=S.addr, frag=100)), 'frag-invalid'),
    ('IPv6 fragment of 20', ether(FLOW6.ip() / IPv6ExtHdrFragment(m=1) / tcp_segment(FLOW6, 'S')),
     'frag-invalid'),
], ids=lambda v: v if isinstance(v, str) else '')
def test_ip_header(case, name, frame, drop):
    c = case()
    c.at(0).inside(frame, drop=drop)
    c.at(1).entries()
    c.replay()


@pytest.mark.parametrize('options', [
    [IPOption_NOP()] * 4, [IPOption_NOP()] * 40, [IPOption_RR(length=39)],
], ids=['4-bytes', '40-bytes', 'record-route'])
def test_ip_options_are_stepped_over(case, options):
    c = case(knobs=DROP)
    c.at(0).inside(ether(FLOW.ip(options=options) / tcp_segment(FLOW, 'S', seq=1000)))
    c.at(1).outside(tcp(~FLOW, 'SA', seq=4000, ack=1001))
    c.at(2).entries(entry(FLOW, 'tcp', state='SYN_RECV', left=59))
    c.replay()


def chain(*headers):
    packet = FLOW6.ip()
    for header in headers:
        packet /= header
    return ether(packet / tcp_segment(FLOW6, 'S', seq=1000))


HOP, DEST, ROUTE = IPv6ExtHdrHopByHop(), IPv6ExtHdrDestOpt(), IPv6ExtHdrRouting(segleft=0)
LONG = IPv6ExtHdrDestOpt(options=[PadN(optdata=bytes(250)) for _ in range(7)])


@pytest.mark.parametrize('headers', [
    [HOP], [DEST], [ROUTE], [HOP, DEST, ROUTE, DEST], [DEST] * 8, [LONG],
], ids=lambda headers: '-'.join(type(h).__name__ for h in headers))
def test_ip6_extension_headers_are_stepped_over(case, headers):
    c = case(knobs=DROP)
    c.at(0).inside(chain(*headers))
    c.at(1).outside(tcp(~FLOW6, 'SA', seq=4000, ack=1001))
    c.at(2).entries(entry(FLOW6, 'tcp', state='SYN_RECV', left=59))
    c.replay()


def test_authentication_header_is_stepped_over(case):
    segment = tcp(FLOW6, 'S', seq=1000)[IP_AT + 40:]
    c = case(knobs=DROP)
    c.at(0).inside(ether(FLOW6.ip() / AH(nh=6, payloadlen=4, icv=bytes(12)) / Raw(segment)))
    c.at(1).outside(tcp(~FLOW6, 'SA', seq=4000, ack=1001))
    c.at(2).entries(entry(FLOW6, 'tcp', state='SYN_RECV', left=59))
    c.replay()


def raw_chain(first, body):
    return ether(FLOW6.ip(nh=first) / Raw(body))


@pytest.mark.parametrize('name, frame', [
    ('nine', chain(*[DEST] * 9)),
    ('hop by hop twice', chain(HOP, HOP)),
    ('hop by hop second', chain(DEST, HOP)),
    ('longer than the packet', raw_chain(60, b'\x06\xff' + bytes(6 + 20))),
    ('cut', raw_chain(60, b'\x06\x00\x01')),
    ('ends behind the header', raw_chain(0, b'\x3c\0\1\4\0\0\0\0')),
    ('itself for ever', raw_chain(60, b'\x3c\0\1\4\0\0\0\0' * 100)),
    ('authentication header too short', raw_chain(51, b'\x06\0' + bytes(30))),
], ids=lambda v: v if isinstance(v, str) else '')
def test_ip6_extension_headers_that_are_refused(case, name, frame):
    c = case()
    c.at(0).inside(frame, drop='ip6-ext')
    c.at(1).entries()
    c.replay()


def test_jumbogram_is_refused(case):
    c = case()
    body = b'\x06\0\xc2\4' + struct.pack('!I', 70000)
    c.at(0).inside(patch(raw_chain(0, body + bytes(20)), IP_AT + 4, b'\0\0'), drop='ip-length')
    c.replay()


# ---- B55: transport headers ----

def with_doff(words, size=20):
    header = patch(raw(TCP(sport=40000, dport=80, flags='S')), 12, bytes([words << 4]))
    return ether(FLOW.ip(proto=6) / Raw(header + bytes(size - 20)))


def with_options(options):
    """A SYN whose option bytes are those, right but for them."""
    assert len(options) % 4 == 0
    segment = TCP(sport=40000, dport=80, flags='S', seq=1000, dataofs=5 + len(options) // 4)
    return raw(Ether(ether(FLOW.ip() / segment / Raw(options))))


@pytest.mark.parametrize('words', [0, 4, 6, 15])
def test_b55_data_offset(case, words):
    c = case(knobs=DROP)
    c.at(0).inside(with_doff(words), drop='invalid-l4-truncated')
    c.at(1).entries()
    c.replay()


@pytest.mark.parametrize('name, options', [
    ('length 0', b'\2\0\1\1'),
    ('length 1', b'\2\1\1\1'),
    ('length 3', b'\2\3\1\1'),
    ('length 255', b'\2\xff\1\1'),
    ('kind without length at the end', b'\1\1\1\2'),
    ('window scale of length 2', b'\3\2\1\1'),
    ('window scale of 255', b'\3\3\xff\1'),
    ('no operation, 40 times', b'\1' * 40),
    ('SACK of length 11', b'\5\x0b' + bytes(9) + b'\1'),
    ('timestamp twice', (b'\x08\x0a' + bytes(8)) * 2),
    ('end, then garbage', b'\0\xff\xff\xff'),
    ('unknown kind', b'\xfe\4\0\0'),
], ids=lambda v: v if isinstance(v, str) else '')
def test_b55_odd_options_are_ignored(case, name, options):
    c = case(knobs=DROP)
    c.at(0).inside(with_options(options))
    c.at(1).outside(tcp(~FLOW, 'SA', seq=4000, ack=1001))
    c.at(2).inside(tcp(FLOW, 'A', seq=1001, ack=4001))
    c.at(3).entries(established())
    c.replay()


@pytest.mark.parametrize('proto, size', [(6, 19), (17, 7), (1, 3), (1, 7), (132, 11), (136, 7)])
def test_b55_headers_that_are_cut(case, proto, size):
    c = case(knobs=DROP)
    c.at(0).inside(ether(FLOW.ip(proto=proto) / Raw(bytes(size))), drop='invalid-l4-truncated')
    c.at(1).entries()
    c.replay()


@pytest.mark.parametrize('words', [0, 4, 15])
def test_b55_an_entry_is_not_touched(case, words):
    """A lying segment of an established connection."""
    c = case(knobs=DROP)
    opened(c)
    c.at(1).inside(with_doff(words), drop='invalid-l4-truncated')
    c.at(2.005).entries(established(432000 - 2))
    c.replay()


# ---- what is not tracked ----

UNTRACKED = {
    'ARP request': raw(Ether(dst='ff:ff:ff:ff:ff:ff') / ARP(psrc=A.addr, pdst=S.addr)),
    'ARP cut': raw(Ether() / ARP(psrc=A.addr, pdst=S.addr))[:20],
    'spanning tree': raw(Dot3(dst='01:80:c2:00:00:00') / LLC() / STP()),
    'LLDP': raw(Ether(dst='01:80:c2:00:00:0e', type=0x88cc) / Raw(b'\0\0')),
    'PPPoE': raw(Ether(type=0x8864) / Raw(bytes(20))),
    'MPLS': raw(Ether(type=0x8847) / Raw(bytes(40))),
    'local experimental': raw(Ether(type=0x88b5)),
    'neighbour solicitation': ether(FLOW6.ip(hlim=255) / ICMPv6ND_NS(tgt=S6.addr)),
    'neighbour advertisement': ether(FLOW6.ip(hlim=255) / ICMPv6ND_NA(tgt=A6.addr)),
    'router solicitation': ether(FLOW6.ip(hlim=255) / ICMPv6ND_RS()),
    'router advertisement': ether(FLOW6.ip(hlim=255) / ICMPv6ND_RA()),
    'redirect': ether(FLOW6.ip(hlim=255) / ICMPv6ND_Redirect(tgt=S6.addr, dst=S6.addr)),
    'MLDv2 report': ether(IPv6(src=A6.addr, dst='ff02::16', hlim=1) / HOP / ICMPv6MLReport2()),
}


@pytest.mark.parametrize('name', UNTRACKED)
def test_passes_between_peers_untracked(case, name):
    c = case(knobs=DROP)
    c.at(0).inside(UNTRACKED[name])
    c.at(1).outside(UNTRACKED[name])
    c.at(2).entries()
    c.replay()


def test_multicast_and_broadcast_are_tracked(case):
    c = case(knobs=DROP)
    group = raw(Ether(dst='01:00:5e:00:00:fb') / IP(src=A.addr, dst='224.0.0.251')
                / UDP(sport=5353, dport=5353) / Raw(b'x'))
    broadcast = raw(Ether(dst='ff:ff:ff:ff:ff:ff') / IP(src='0.0.0.0', dst='255.255.255.255')
                    / UDP(sport=68, dport=67) / Raw(b'x'))
    c.at(0).inside(group)
    c.at(0).inside(broadcast)
    c.at(1).run('conntrack count netns T1', lambda result: check_count(result, 2))
    c.replay()


def check_count(result, count):
    assert result['count'] == count


def test_ttl_and_everything_else_stay(case):
    """A wire is no router: TTL 1 passes, and no byte of the frame changes."""
    c = case(knobs=DROP)
    c.at(0).inside(ether(FLOW.ip(ttl=1, tos=0xb8, id=77, flags='DF')
                         / tcp_segment(FLOW, 'S', seq=1000, urgptr=3)))
    c.at(1).inside(ether(FLOW6.ip(hlim=1, tc=0xb8, fl=0xabcde) / tcp_segment(FLOW6, 'S', seq=1)))
    c.replay()
