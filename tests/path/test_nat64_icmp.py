# SPDX-License-Identifier: BSD-3-Clause
"""NAT64: ICMP errors about its connections, from either side, and the packets inside them, of which
every sum is right (RFC 7915 4.2, 4.3, 5.2, 5.3; B29, B31, B32)."""
import itertools
import struct

import pytest
from nat64 import CONFIG, NAT64, POOL, A, Host, Ids, P, R4, R6, S, S4, home, hop, mapped, six
from packets import icmp_error, l3, patch, ping, pong, tcp, udp
from scapy.all import IP, IPv6, raw

FORTH, BACK = A(5000) > S(53), S4(53) > P(5000)
OUT, IN = P(5000) > S4(53), S(53) > A(5000)


@pytest.fixture
def ids():
    return Ids()


@pytest.fixture
def four(ids):
    return lambda frame: hop(frame, id=ids(), flags=0)


@pytest.fixture
def opened(case, four):
    """A case with connections of UDP, TCP and a ping."""
    def make(config=NAT64):
        c = case(config=config)
        c.at(0).inside(udp(FORTH), becomes=four(udp(OUT)))
        c.at(.1).outside(udp(BACK), becomes=six(udp(IN)))
        c.at(.2).inside(tcp(A(40000) > S(80), 'S', seq=7), becomes=four(tcp(P(40000) > S4(80), 'S',
                                                                             seq=7)))
        c.at(.3).outside(tcp(S4(80) > P(40000), 'SA', seq=9, ack=8),
                         becomes=six(tcp(S(80) > A(40000), 'SA', seq=9, ack=8)))
        c.at(.4).inside(ping(A > S, 77), becomes=four(ping(P > S4, 77)))
        c.at(.5).outside(pong(S4 > P, 77), becomes=six(pong(S > A, 77)))
        return c
    return make


# What both sides have of one packet: of IPv4 as it left, of IPv6 as it came.
INSIDE = {
    'udp': (lambda: udp(FORTH), lambda: udp(OUT)),
    'tcp': (lambda: tcp(A(40000) > S(80), 'A', seq=8, ack=10, data=b'x' * 20),
            lambda: tcp(P(40000) > S4(80), 'A', seq=8, ack=10, data=b'x' * 20)),
    'ping': (lambda: ping(A > S, 77), lambda: ping(P > S4, 77)),
}
ANSWER = {
    'udp': (lambda: udp(BACK), lambda: udp(IN)),
    'tcp': (lambda: tcp(S4(80) > P(40000), 'A', seq=10, ack=8, data=b'y' * 20),
            lambda: tcp(S(80) > A(40000), 'A', seq=10, ack=8, data=b'y' * 20)),
    'ping': (lambda: pong(S4 > P, 77), lambda: pong(S > A, 77)),
}


def seen4(frame, ident=0x4242):
    """A packet as an IPv4 host would quote it, some hops on."""
    ip = IP(l3(frame))
    ip.id, ip.ttl = ident, 61
    del ip.chksum
    return raw(ip)


def as4(frame, df=0):
    """A packet that was quoted by IPv6, as an IPv4 host quotes it."""
    ip = IP(l3(frame))
    ip.id, ip.flags = 0, df
    del ip.chksum
    return raw(ip)


def as6(frame):
    ip = IPv6(l3(frame))
    ip.hlim = 61
    return raw(ip)


def test_from_ipv4(opened):
    """From a router, whose address is put under the prefix, or the host itself."""
    c = opened()
    for at, (sender, proto) in enumerate(itertools.product((R4, S4), INSIDE)):
        came, left = (make() for make in INSIDE[proto])
        error = icmp_error(sender > P, 3, 1, seen4(left))
        c.at(1 + at).outside(error, becomes=six(icmp_error(mapped(sender) > A, 1, 0, as6(came))))
    c.replay()


def test_from_ipv6(opened, four):
    """Whoever it is of, outside it is the public address."""
    c = opened()
    for at, (sender, proto) in enumerate(itertools.product((R6, A), ANSWER)):
        came, went = (make() for make in ANSWER[proto])
        error = icmp_error(sender > S, 1, 3, l3(went))
        c.at(1 + at).inside(error, becomes=four(icmp_error(P > S4, 3, 1, as4(came))))
    c.replay()


LINKS_1500 = NAT64.replace('port in netns T1', 'port in netns T1 mtu 1500').replace(
    'peer inside', 'peer inside mtu 1500')


def test_mtu_from_ipv4(opened):
    c = opened(LINKS_1500)
    came, left = (make() for make in INSIDE['tcp'])
    for at, (mtu, expect) in enumerate(((1400, 1420), (1300, 1320), (576, 1280), (1480, 1500),
                                        (1500, 1500), (0, 1280))):
        error = icmp_error(R4 > P, 3, 4, seen4(left), nexthopmtu=mtu)
        c.at(1 + at).outside(error, becomes=six(
            icmp_error(mapped(R4) > A, 2, 0, as6(came), mtu=expect)))
    c.replay()


def test_mtu_from_ipv6(opened, four):
    c = opened(LINKS_1500)
    came, went = (make() for make in ANSWER['tcp'])
    for at, (mtu, expect) in enumerate(((1400, 1380), (1280, 1260), (1000, 1260), (9000, 1480))):
        error = icmp_error(R6 > S, 2, 0, l3(went), mtu=mtu)
        c.at(1 + at).inside(error, becomes=four(
            icmp_error(P > S4, 3, 4, as4(came), nexthopmtu=expect)))
    c.replay()


def test_time_exceeded(opened, four):
    """What traceroute is made of, both ways."""
    c = opened()
    came, left = (make() for make in INSIDE['udp'])
    c.at(1).outside(icmp_error(R4 > P, 11, 0, seen4(left)),
                    becomes=six(icmp_error(mapped(R4) > A, 3, 0, as6(came))))
    came, went = (make() for make in ANSWER['udp'])
    c.at(2).inside(icmp_error(R6 > S, 3, 0, l3(went)),
                   becomes=four(icmp_error(P > S4, 11, 0, as4(came))))
    c.replay()


def test_without_counterpart(opened):
    c = opened()
    left = INSIDE['udp'][1]()
    for at, (kind, code) in enumerate(((4, 0), (5, 1), (3, 14), (12, 1))):
        c.at(1 + at).outside(icmp_error(R4 > P, kind, code, seen4(left)),
                             drop='nat64-no-counterpart')
    c.replay()


def test_a_router_that_must_not_be_under_the_prefix(case, four):
    """The well-known prefix is for global addresses: such a router's error is from the far end, so
    that path MTU discovery works."""
    far4, far6 = Host('8.8.8.8'), Host('64:ff9b::808:808')
    rule = 'rule add T1 prerouting nat64 prefix 64:ff9b::/96 to pool P4\n'
    c = case(config=CONFIG + POOL + rule)
    c.at(0).inside(udp(A(5000) > far6(53)), becomes=four(udp(P(5000) > far4(53))))
    error = icmp_error(Host('10.0.0.1') > P, 11, 0, seen4(udp(P(5000) > far4(53))))
    c.at(1).outside(error, becomes=home(hop(icmp_error(far6 > A, 3, 0,
                                                       as6(udp(A(5000) > far6(53)))))))
    c.replay()


def test_about_nothing(opened):
    """About a connection that is not, or to whom it does not concern."""
    c = opened()
    c.at(1).outside(icmp_error(R4 > P, 3, 1, seen4(udp(P(5001) > S4(53)))), drop='invalid-nat')
    c.at(2).outside(icmp_error(R4 > Host('203.0.113.65'), 3, 1, seen4(udp(OUT))),
                    drop='invalid-nat')
    c.at(3).inside(icmp_error(R6 > S, 1, 3, l3(udp(S(54) > A(5000)))), drop='invalid-nat')
    c.replay()


def test_damaged(opened):
    """A wrong sum outside or of the header inside, or a packet that is cut short inside."""
    c = opened()
    left = seen4(udp(OUT))
    error = icmp_error(R4 > P, 3, 1, left)
    c.at(1).outside(patch(error, 36, b'\x12\x34'), drop='invalid-nat')
    c.at(2).outside(icmp_error(R4 > P, 3, 1, left[:10] + b'\x12\x34' + left[12:]),
                    drop='icmp-inner-checksum')
    c.at(3).outside(icmp_error(R4 > P, 3, 1, left[:27]), drop='icmp-inner')
    c.at(4).inside(icmp_error(R6 > S, 1, 3, l3(udp(IN))[:47]), drop='icmp-inner')
    c.replay()


def test_a_wrong_sum_is_not_made_right(opened):
    """Though conntrack may be told not to look at it."""
    c = opened(NAT64 + 'sysctl nf_conntrack_checksum=0 netns T1\n')
    error = icmp_error(R4 > P, 3, 1, seen4(udp(OUT)))
    c.at(1).outside(patch(error, 36, b'\x12\x34'), drop='invalid-l4-checksum')
    c.replay()


def test_session_is_left_alone(opened):
    """B31: it neither ends the session nor keeps it."""
    c = opened()
    came, left = (make() for make in INSIDE['ping'])
    for at in (10, 20):
        c.at(at).outside(icmp_error(R4 > P, 3, 1, seen4(left)),
                         becomes=six(icmp_error(mapped(R4) > A, 1, 0, as6(came))))
    c.at(31).outside(icmp_error(R4 > P, 3, 1, seen4(left)), drop='invalid-nat')
    c.replay()


def test_extension(opened):
    """RFC 4884: it is kept, behind a packet that is padded to what the length field can say."""
    c = opened()
    data = bytes(range(200))
    left, came = seen4(udp(OUT, data)), as6(udp(FORTH, data))
    extension = bytes.fromhex('2000 0000 0008 0101 0001 0203'.replace(' ', ''))
    error = icmp_error(R4 > P, 11, 0, left[:128], extension, length=32)
    inner = came[:148] + bytes(4)
    want = icmp_error(mapped(R4) > A, 3, 0, inner + extension, mtu=(152 // 8) << 24)
    c.at(1).outside(error, becomes=six(want))
    c.replay()


def test_long_error(opened, four):
    """No error of IPv4 is longer than 576 bytes (RFC 1812)."""
    c = opened()
    data = bytes(range(250)) * 5
    answer = l3(udp(IN, data))[:1232]
    error = icmp_error(R6 > S, 1, 3, answer)
    want = IP(l3(udp(BACK, data)))
    want.id, want.flags = 0, 'DF'
    del want.chksum
    c.at(1).inside(error, becomes=four(icmp_error(P > S4, 3, 1, raw(want)[:548])))
    c.replay()


def test_inner_fragment(opened, four):
    """About the first fragment of a datagram: the fragment header takes of the MTU, too."""
    c = opened()
    went = l3(udp(IN, bytes(100)))
    head, payload = went[:40], went[40:]
    inner = head[:6] + b'\x2c' + head[7:] + struct.pack('!BBHI', 17, 0, 1, 0x99) + payload
    want = IP(l3(udp(BACK, bytes(100))))
    want.id, want.flags, want.len = 0, 'MF', 20 + len(payload) - 8
    del want.chksum
    c.at(1).inside(icmp_error(R6 > S, 2, 0, inner, mtu=1400), becomes=four(
        icmp_error(P > S4, 3, 4, raw(want)[:20] + raw(want)[20:], nexthopmtu=1372)))
    c.replay()
