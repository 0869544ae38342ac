# SPDX-License-Identifier: BSD-3-Clause
"""NAT64: packets that get longer on the way, and fragments. What leaves in pieces is put together
again here, with scapy's sums, and compared with the datagram that it must be."""
import itertools

import pytest
from fragments import Arrivals, cut
from harness import Case
from nat64 import NAT64, A, B, Ids, P, S, S4, hop, six, told
from packets import ether, l3, patch, ping, pong, resum_ip, tagged, udp
from scapy.all import (ICMP, IP, UDP, ICMPv6PacketTooBig, IPv6, IPv6ExtHdrDestOpt,
                       IPv6ExtHdrFragment, Raw, raw)

FORTH, BACK = A(5000) > S(53), S4(53) > P(5000)
OUT, IN = P(5000) > S4(53), S(53) > A(5000)
DATA = bytes(range(251)) * 14


@pytest.fixture
def ids():
    return Ids()


@pytest.fixture
def four(ids):
    return lambda frame, **ip: hop(frame, id=ids(), **{'flags': 0} | ip)


@pytest.fixture
def opened(case, four):
    """A case with a connection of UDP, answered."""
    def make(config=NAT64):
        c = case(config=config)
        c.at(0).inside(udp(FORTH), becomes=four(udp(OUT)))
        c.at(.1).outside(udp(BACK), becomes=six(udp(IN)))
        return c
    return make


def mtu(inside=1500, outside=1500):
    return NAT64.replace('netns T1 peer inside', f'netns T1 peer inside mtu {outside}').replace(
        'port in netns T1', f'port in netns T1 mtu {inside}')


def sized(flow, length, **ip):
    """A UDP packet of that many bytes from its IP header on."""
    head = 48 if flow.v6 else 28
    return ether(flow.ip(**ip) / UDP(sport=flow.src.port, dport=flow.dst.port)
                 / Raw(DATA[:length - head]))


# ---- from IPv6 to IPv4 ----

def test_df(opened, four):
    """RFC 7915 5.1: what is longer than 1,260 bytes then must not be fragmented."""
    c = opened()
    for at, length in enumerate((1279, 1280, 1281, 1500)):
        c.at(1 + at).inside(sized(FORTH, length), becomes=four(
            sized(OUT, length - 20), flags='DF' if length > 1280 else 0))
    c.replay()


def test_too_big_for_ipv4(opened, four):
    c = opened(mtu(outside=1400))
    c.at(1).inside(sized(FORTH, 1420), becomes=four(sized(OUT, 1400), flags='DF'))
    frame = sized(FORTH, 1421)
    c.at(2).inside(frame, drop='too-big', back=[told(frame, ICMPv6PacketTooBig(mtu=1420))])
    c.replay()


def test_fragmented_for_ipv4(opened, four, ids):
    """No host of IPv6 sends less than 1,280 bytes: what is not longer is fragmented."""
    c = opened(mtu(outside=1000))
    frame = sized(FORTH, 1421)
    c.at(1).inside(frame, drop='too-big', back=[told(frame, ICMPv6PacketTooBig(mtu=1280))])
    whole = four(sized(OUT, 1260))
    c.at(2).inside(sized(FORTH, 1280), back=[])
    c.departures += [(c.at(2).ns, 'out', f) for f in cut(whole, 976, ident=ids.last)]
    c.replay()


def rebuilt(frames):
    """What IPv4 or IPv6 fragments are parts of, and the identification that they share."""
    first = frames[0]
    if first[12:14] == b'\x08\x00':
        packets = [IP(l3(f)) for f in frames]
        parts = {p.frag * 8: (bytes(p.payload), 'MF' in p.flags) for p in packets}
        assert all(p.flags in ('MF', 0) and p.chksum == IP(raw(_unsummed(p))).chksum
                   for p in packets)
        whole, ident = packets[0], {p.id for p in packets}
        whole.flags = whole.frag = whole.id = 0
        del whole.chksum, whole.len
        kind = whole.proto
    else:
        packets = [IPv6(l3(f)) for f in frames]
        headers = [p[IPv6ExtHdrFragment] for p in packets]
        parts = {h.offset * 8: (bytes(h.payload), bool(h.m)) for h in headers}
        whole, ident = packets[0], {h.id for h in headers}
        kind = headers[0].nh
        whole.nh = kind
        del whole.plen
    payload = b''
    for offset in sorted(parts):
        assert offset == len(payload), 'neither hole nor overlap'
        payload += parts[offset][0]
    assert [more for _, (_, more) in sorted(parts.items())] == [True] * (len(parts) - 1) + [False]
    whole.remove_payload()
    assert len(ident) == 1
    return first[:14] + raw(whole / Raw(payload)), ident.pop()


def _unsummed(packet):
    packet = packet.copy()
    del packet.chksum
    return packet


def left(c, port, since):
    return [frame for ns, frame in c.output(port) if ns >= c.at(since).ns]


@pytest.fixture
def unordered(monkeypatch):
    """The test looks at what left itself."""
    monkeypatch.setattr(Case, '_check_departures', lambda self: None)


def test_fragments_to_ipv4(opened, unordered):
    """In any order that they may come."""
    c = opened()
    for at, order in enumerate(itertools.permutations(range(3))):
        frames = cut(udp(FORTH, DATA), 1200, 1200, ident=0xabcd1234 + at)
        Arrivals(c, start=1 + at).waits(*(frames[i] for i in order))
    c.replay()
    out = left(c, 'out', 1)
    assert len(out) == 18
    for i in range(0, 18, 3):
        assert rebuilt(out[i:i + 3])[0] == hop(udp(OUT, DATA), id=0)


def test_identifications(opened, unordered):
    """Two hosts that chose the same one (B36, RFC 6864): toward one host they are told apart."""
    c = opened()
    for at, host in enumerate((A, B)):
        Arrivals(c, start=1 + at).waits(
            *cut(udp(host(6000 + at) > S(53), DATA), 1200, 1200, ident=7))
    c.replay()
    out = left(c, 'out', 1)
    idents = [rebuilt(out[i:i + 3])[1] for i in (0, 3)]
    assert len(set(idents)) == 2


def test_fragments_cut_again(opened, unordered):
    c = opened(mtu(outside=600))
    Arrivals(c, start=1).waits(*cut(udp(FORTH, DATA), 1200, 1200))
    c.replay()
    out = left(c, 'out', 1)
    assert all(len(f) <= 614 for f in out) and len(out) > 6
    assert rebuilt(out)[0] == hop(udp(OUT, DATA), id=0)


def test_ping_in_fragments(case, unordered):
    c = case(config=NAT64)
    c.at(0).inside(ping(A > S, 9))
    for at, port, frame in ((1, 'in', ping(A > S, 9, seq=2, data=DATA)),
                            (2, 'out', pong(S4 > P, 9, seq=2, data=DATA))):
        c.arrivals += [(c.at(at).ns, port, f) for f in cut(frame, 1200, 1200)]
    c.replay()
    assert rebuilt(left(c, 'out', 1))[0] == hop(ping(P > S4, 9, seq=2, data=DATA), id=0)
    assert rebuilt(left(c, 'in', 1))[0] == six(pong(S > A, 9, seq=2, data=DATA))


def test_atomic_fragment(opened, four):
    """One whole packet with a fragment header: it may be fragmented, whatever its length."""
    c = opened()
    frame = ether(FORTH.ip() / IPv6ExtHdrFragment(id=5) / UDP(sport=5000, dport=53)
                  / Raw(DATA[:1400]))
    c.at(1).inside(frame, becomes=four(udp(OUT, DATA[:1400])))
    c.replay()


def test_headers_in_fragments(opened):
    """It cannot be told whether they are in each fragment, or in the datagram."""
    c = opened()
    whole = ether(FORTH.ip() / IPv6ExtHdrDestOpt() / UDP(sport=5000, dport=53) / Raw(DATA[:2000]))
    frames = cut(whole, 1200)
    Arrivals(c, start=1).waits(*frames)
    c.drops['nat64-no-counterpart'] = 2
    c.replay()


# ---- from IPv4 to IPv6 ----

def test_df_from_ipv4(opened):
    c = opened()
    for at, length in enumerate((1259, 1260, 1480)):
        c.at(1 + at).outside(sized(BACK, length, flags='DF'), becomes=six(sized(IN, length + 20)))
    c.replay()


def test_too_big_for_ipv6(opened):
    c = opened(mtu())
    frame = sized(BACK, 1481, flags='DF')
    c.at(1).outside(frame, drop='too-big', back=[told(frame, ICMP(type=3, code=4,
                                                                  nexthopmtu=1480))])
    c.replay()


def test_fragmented_for_ipv6(opened, unordered):
    """RFC 7915 4.1: without DF, so that no link of IPv6 is too small for it."""
    c = opened()
    for at, length in enumerate((1260, 1261, 1280, 1500)):
        c.at(1 + at).outside(sized(BACK, length, id=0x1234 + at))
    c.replay()
    out = left(c, 'in', 1)
    assert all(len(f) <= 14 + 1280 for f in out)
    assert out[0] == six(sized(IN, 1280))
    assert len(out) == 7
    for at, length in enumerate((1261, 1280, 1500)):
        assert rebuilt(out[1 + 2 * at:3 + 2 * at]) == (six(sized(IN, length + 20)), 0x1235 + at)


@pytest.mark.parametrize('more', [{}, {'chksum': 0}], ids=['sum', 'no sum'])
def test_fragments_to_ipv6(opened, unordered, more):
    """A sum that is left out is that of the whole datagram then."""
    c = opened()
    whole, pieces = udp(BACK, DATA, **more), []
    for at, size in enumerate((1000, 1232, 1240, 1480)):
        frames = cut(whole, size, size, ident=0xbeef + at)
        c.arrivals += [(c.at(1 + at).ns, 'out', f) for f in frames]
        pieces.append(sum(1 if len(f) - 34 + 48 <= 1280 else 2 for f in frames))
    c.replay()
    out = left(c, 'in', 1)
    assert len(out) == sum(pieces)
    assert all(len(f) <= 14 + 1280 for f in out)
    for at, n in enumerate(pieces):
        assert rebuilt(out[:n]) == (six(udp(IN, DATA)), 0xbeef + at)
        out = out[n:]


def test_fragment_with_hop_limit_one(opened, unordered):
    """The first says it for the datagram."""
    c = opened()
    frames = [resum_ip(patch(f, 22, b'\x01')) for f in cut(udp(BACK, DATA), 1000, 1000)]
    c.arrivals += [(c.at(1).ns, 'out', f) for f in frames]
    c.drops['hop-limit'] = 3
    c.replay()
    assert left(c, 'in', 1) == []


def test_tagged(case, four):
    """The tag of the other link, and what was in the frame behind the packet is gone."""
    config = NAT64.replace('port in netns', 'port in vlan 100 netns').replace(
        'port out netns', 'port out vlan 200.7 netns')
    c = case(config=config)
    c.at(0).inside(tagged(udp(FORTH), (0x8100, 0x6064)) + b'\x55' * 9,
                   becomes=tagged(four(udp(OUT)), (0x88a8, 0x60c8), (0x8100, 0x6007)))
    c.at(1).outside(tagged(udp(BACK), (0x88a8, 0x40c8), (0x8100, 0x2007)) + b'\x55' * 9,
                    becomes=tagged(six(udp(IN)), (0x8100, 0x4064)))
    c.replay()
