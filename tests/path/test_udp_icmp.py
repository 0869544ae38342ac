# SPDX-License-Identifier: BSD-3-Clause
"""UDP, UDP-Lite and ICMP queries of both families."""
import struct

import pytest
from scapy.all import ICMP, IP, UDP, Raw, raw

from harness import entry, refused
from packets import (A, S, A6, S6, checksum, ether, patch, ping, pong, pseudo6, udp)

FLOW, FLOW6 = A(5000) > S(53), A6(5000) > S6(53)
BOTH = pytest.mark.parametrize('flow', [FLOW, FLOW6], ids=['ipv4', 'ipv6'])
HOSTS = pytest.mark.parametrize('a, s', [(A, S), (A6, S6)], ids=['ipv4', 'ipv6'])
DROP = {'sluice.invalid': 'drop'}
ACCT = {'nf_conntrack_acct': 1}


@BOTH
def test_unreplied(case, flow):
    """30 s after the last packet, to the millisecond."""
    c = case(knobs=ACCT)
    c.at(0).inside(udp(flow))
    c.at(20).inside(udp(flow))
    c.at(21).entries(entry(flow, 'udp', left=29, unreplied=True, packets=(2, 0)))
    c.at(49.999).entries(entry(flow, 'udp', left=0, unreplied=True))
    c.at(50).entries()
    c.replay()


def test_counted_from_its_beginning_to_its_end_or_not_at_all(case):
    """As the knob is when a connection begins."""
    def counted(result):
        got = {e['orig']['sport']: e['orig'].get('packets') for e in result['items']}
        assert got == {5000: None, 5001: 3}

    c = case()
    c.at(0).inside(udp(FLOW))
    c.at(1).run('sysctl netns T1 nf_conntrack_acct=1')
    c.at(2).inside(udp(FLOW)).inside(udp(A(5001) > S(53))).inside(udp(A(5001) > S(53)))
    c.at(3).run('sysctl netns T1 nf_conntrack_acct=0')
    c.at(4).inside(udp(FLOW)).inside(udp(A(5001) > S(53)))
    c.at(5).run('conntrack list netns T1', counted)
    c.replay()


@BOTH
def test_query_and_answer_is_no_stream(case, flow):
    """A reply within two seconds of the start leaves the short timeout."""
    c = case(knobs=ACCT)
    c.at(0).inside(udp(flow))
    c.at(.5).outside(udp(~flow))
    c.at(1.5).entries(entry(flow, 'udp', left=29, packets=(1, 1)))
    c.at(1.9).inside(udp(flow))
    c.at(2.9).entries(entry(flow, 'udp', left=29, packets=(2, 1)))
    c.at(31.899).entries(entry(flow, 'udp', left=0))
    c.at(31.9).entries()
    c.replay()


@BOTH
def test_two_way_traffic_after_two_seconds_is_a_stream(case, flow):
    c = case()
    c.at(0).inside(udp(flow))
    c.at(1).outside(udp(~flow))
    c.at(3).inside(udp(flow))
    c.at(4).entries(entry(flow, 'udp', left=119, assured=True))
    c.at(122.999).entries(entry(flow, 'udp', left=0, assured=True))
    c.at(123).entries()
    c.replay()


def test_stream_timeouts_are_knobs(case):
    c = case(knobs={'nf_conntrack_udp_timeout': 5, 'nf_conntrack_udp_timeout_stream': 500})
    c.at(0).inside(udp(FLOW))
    c.at(1).entries(entry(FLOW, 'udp', left=4, unreplied=True))
    c.at(1).outside(udp(~FLOW))
    c.at(4).outside(udp(~FLOW))
    c.at(5).entries(entry(FLOW, 'udp', left=499, assured=True))
    c.replay()


def test_ports_are_part_of_the_flow(case):
    c = case(knobs=ACCT)
    flows = [A(5000) > S(53), A(5001) > S(53), A(5000) > S(54), A(53) > S(5000)]
    for flow in flows:
        c.at(0).inside(udp(flow))
    c.at(1).outside(udp(~flows[1]))
    c.at(2).entries(*(entry(f, 'udp', unreplied=f is not flows[1], packets=(1, int(f is flows[1])))
                      for f in flows))
    c.replay()


@pytest.mark.parametrize('invalid', ['auto', 'drop'])
def test_checksum(case, invalid):
    """Wrong: INVALID. Zero: there is none (RFC 768; over IPv6 for tunnels, RFC 6935)."""
    verdict = refused(invalid, 'invalid-l4-checksum')
    c = case(knobs={'sluice.invalid': invalid})
    c.at(0).inside(udp(FLOW, chksum=0x1234), **verdict)
    c.at(0).inside(udp(FLOW6, chksum=0x1234), **verdict)
    c.at(1).entries()
    c.at(1).inside(patch(udp(FLOW), 40, b'\0\0'))
    c.at(1).inside(patch(udp(FLOW6), 60, b'\0\0'))
    c.at(2).entries(entry(FLOW, 'udp', left=29, unreplied=True),
                    entry(FLOW6, 'udp', left=29, unreplied=True))
    c.replay()


def test_udplite(case):
    """The sum covers what the length field says (RFC 3828); what lies behind it may be damaged."""
    def udplite(flow, coverage, payload=b'payload'):
        head = struct.pack('!HHHH', flow.src.port, flow.dst.port, coverage, 0)
        length = len(head) + len(payload)
        addresses = raw(IP(src=flow.src.addr, dst=flow.dst.addr))[12:20]
        pseudo = addresses + struct.pack('!HH', 136, length)
        total = checksum(pseudo + (head + payload)[:coverage or length])
        return ether(IP(src=flow.src.addr, dst=flow.dst.addr, proto=136)
                     / Raw(patch(head, 6, struct.pack('!H', total)) + payload))
    c = case(knobs=DROP | ACCT)
    whole = udplite(FLOW, 0)
    c.at(0).inside(whole)
    c.at(0).inside(patch(whole, len(whole) - 1, b'!'), drop='invalid-l4-checksum')
    head_only = udplite(FLOW, 8)
    c.at(0).inside(patch(head_only, len(head_only) - 1, b'!'))
    for coverage in (1, 7, 16):
        c.at(0).inside(udplite(FLOW, coverage), drop='invalid-l4-truncated')
    c.at(1).entries(entry(FLOW, 'udplite', left=29, unreplied=True, packets=(2, 0)))
    c.replay()


# ---- ICMP queries ----

def echo(a, s, ident, **want):
    """The entry of an echo exchange."""
    request, reply = (128, 129) if a is A6 else (8, 0)
    return entry(a > s, 'icmpv6' if a is A6 else 'icmp',
                 orig={'type': request, 'code': 0, 'id': ident},
                 reply={'type': reply, 'code': 0, 'id': ident}, **want)


@HOSTS
def test_echo(case, a, s):
    c = case(knobs=ACCT | DROP)
    c.at(0).inside(ping(a > s, 500))
    c.at(1).entries(echo(a, s, 500, left=29, unreplied=True, packets=(1, 0)))
    c.at(1).outside(pong(s > a, 500))
    c.at(2).entries(echo(a, s, 500, left=29, packets=(1, 1)))
    c.at(3).inside(ping(a > s, 500, seq=2))
    c.at(32.999).entries(echo(a, s, 500, left=0, packets=(2, 1)))
    c.at(33).entries()
    c.replay()


@HOSTS
def test_echo_ids_are_flows(case, a, s):
    c = case(knobs=DROP)
    for ident in (0, 1, 65535):
        c.at(0).inside(ping(a > s, ident))
    c.at(1).outside(pong(s > a, 65535))
    c.at(1).outside(pong(s > a, 2), drop='invalid-icmp-type')
    c.at(2).entries(echo(a, s, 0, unreplied=True), echo(a, s, 1, unreplied=True),
                    echo(a, s, 65535))
    c.replay()


@HOSTS
@pytest.mark.parametrize('invalid', ['auto', 'drop'])
def test_b19_lone_echo_reply(case, a, s, invalid):
    verdict = refused(invalid, 'invalid-icmp-type')
    c = case(knobs={'sluice.invalid': invalid})
    c.at(0).inside(pong(a > s, 1), **verdict)
    c.at(0).outside(pong(s > a, 2), **verdict)
    c.at(1).entries()
    c.replay()


@HOSTS
def test_echo_checksum(case, a, s):
    c = case(knobs=DROP)
    good = ping(a > s, 1)
    c.at(0).inside(patch(good, len(good) - 1, b'!'), drop='invalid-l4-checksum')
    c.at(1).entries()
    c.replay()


@pytest.mark.parametrize('request_type, reply_type', [(13, 14), (15, 16), (17, 18)])
def test_other_queries(case, request_type, reply_type):
    """Timestamp, information, address mask."""
    def query(flow, kind):
        return ether(flow.ip() / ICMP(type=kind, id=9, seq=1) / Raw(bytes(8)))
    c = case(knobs=DROP)
    c.at(0).inside(query(A > S, request_type))
    c.at(1).outside(query(S > A, reply_type))
    c.at(2).outside(query(S > A, 0), drop='invalid-icmp-type')
    c.at(3).entries(entry(A > S, 'icmp', orig={'type': request_type, 'id': 9},
                          reply={'type': reply_type, 'id': 9}))
    c.replay()


@pytest.mark.parametrize('kind', [1, 2, 6, 7, 9, 10, 19, 42, 255])
def test_types_that_start_nothing(case, kind):
    c = case(knobs=DROP)
    c.at(0).inside(ether((A > S).ip() / ICMP(type=kind) / Raw(bytes(8))), drop='invalid-icmp-type')
    c.at(1).entries()
    c.replay()


def test_protocols_do_not_mix(case):
    """ICMP over IPv6 and ICMPv6 over IPv4 are INVALID."""
    c = case(knobs=DROP)
    body = b'\x08\0\0\0\0\1\0\1'
    c.at(0).inside(ether((A > S).ip(proto=58) / Raw(body)), drop='invalid-icmp-type')
    c.at(0).inside(ether((A6 > S6).ip(nh=1) / Raw(body)), drop='invalid-icmp-type')
    c.at(1).entries()
    c.replay()


def test_no_next_header(case):
    """IPv6 whose header says that nothing follows; IPv4 knows no such thing."""
    c = case(knobs=DROP)
    c.at(0).inside(ether((A6 > S6).ip(nh=59)), drop='invalid-no-l4')
    c.at(0).inside(ether((A6 > S6).ip(nh=59) / Raw(bytes(8))), drop='invalid-no-l4')
    c.at(1).entries()
    c.at(1).inside(ether((A > S).ip(proto=59)))
    c.replay()


def test_udp_length_shorter_than_the_packet(case):
    """What the sum covers is UDP's own length; the rest of the IP payload is no part of it."""
    c = case(knobs=DROP)
    datagram = raw(FLOW.ip() / UDP(sport=5000, dport=53) / Raw(b'sluice'))[20:]
    c.at(0).inside(ether(FLOW.ip(proto=17) / Raw(datagram + b'behind')))
    body = raw(UDP(sport=5000, dport=53, len=14) / Raw(b'sluice'))
    total = checksum(pseudo6(FLOW6, 17, 14) + body[:6] + b'\0\0' + body[8:])
    body = patch(body, 6, struct.pack('!H', total))
    c.at(0).inside(ether(FLOW6.ip(nh=17) / Raw(body + b'behind')))
    c.at(1).entries(entry(FLOW, 'udp', unreplied=True), entry(FLOW6, 'udp', unreplied=True))
    c.replay()
