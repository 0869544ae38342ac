# SPDX-License-Identifier: BSD-3-Clause
"""NAT64: connections, their rules and listings, and what is refused."""
import struct

import pytest
from harness import entry
from nat64 import CONFIG, NAT64, POOL, PREFIX, RULE, A, B, Ids, P, S, S4, hop, mapped, six, told
from packets import Host, checksum, ether, home, ping, pong, pseudo6, tcp, udp
from scapy.all import (AH, ARP, ICMP, IP, Ether, ICMPv6DestUnreach, ICMPv6ParamProblem,
                       ICMPv6TimeExceeded, IPOption_LSRR, IPv6, IPv6ExtHdrHopByHop,
                       IPv6ExtHdrRouting, Raw, UDP, raw)

FORTH, BACK = A(5000) > S(53), S4(53) > P(5000)


@pytest.fixture
def ids():
    return Ids()


@pytest.fixture
def four(ids):
    """What leaves outside."""
    return lambda frame: hop(frame, id=ids(), flags=0)


@pytest.fixture
def wire(case):
    return lambda *more, config=NAT64: case(config=config + ''.join(more))


def opened(c, four, at=0):
    """A connection of UDP, answered."""
    c.at(at).inside(udp(FORTH), becomes=four(udp(P(5000) > S4(53))))
    c.at(at + .1).outside(udp(BACK), becomes=six(udp(S(53) > A(5000))))


def test_tcp(wire, four):
    c = wire()
    forth, back = A(40000) > S(80), S4(80) > P(40000)
    c.at(0).inside(tcp(forth, 'S', seq=1000),
                   becomes=four(tcp(P(40000) > S4(80), 'S', seq=1000)))
    c.at(.1).outside(tcp(back, 'SA', seq=5000, ack=1001),
                     becomes=six(tcp(S(80) > A(40000), 'SA', seq=5000, ack=1001)))
    c.at(.2).inside(tcp(forth, 'A', seq=1001, ack=5001),
                    becomes=four(tcp(P(40000) > S4(80), 'A', seq=1001, ack=5001)))
    c.at(.3).inside(tcp(forth, 'PA', seq=1001, ack=5001, data=b'GET /\r\n'),
                    becomes=four(tcp(P(40000) > S4(80), 'PA', seq=1001, ack=5001,
                                          data=b'GET /\r\n')))
    c.at(.4).outside(tcp(back, 'PA', seq=5001, ack=1008, data=b'x' * 1000),
                     becomes=six(tcp(S(80) > A(40000), 'PA', seq=5001, ack=1008,
                                     data=b'x' * 1000)))
    c.at(.5).entries(entry(forth, 'tcp', state='ESTABLISHED', assured=True,
                           reply={'family': 'ipv4', 'src': S4.addr, 'dst': P.addr, 'sport': 80,
                                  'dport': 40000}))
    c.replay()


def test_udp(wire, four):
    c = wire()
    c.at(0).inside(udp(A(5000) > S(53)), becomes=four(udp(P(5000) > S4(53))))
    c.at(1).outside(udp(S4(53) > P(5000)), becomes=six(udp(S(53) > A(5000))))
    c.at(2).outside(udp(S4(53) > P(5000), chksum=0), becomes=six(udp(S(53) > A(5000))))
    c.replay()


def test_ping(wire, four):
    c = wire()
    for at, ident in enumerate((0x1234, 7)):
        ask, answer = (ping(flow, ident) for flow in (A > S, P > S4))
        c.at(at).inside(ask, becomes=four(answer))
        c.at(at + .5).outside(pong(S4 > P, ident), becomes=six(pong(S > A, ident)))
    c.at(2).entries(*(entry(A > S, 'icmpv6', orig={'type': 128, 'code': 0, 'id': ident},
                            reply={'family': 'ipv4', 'src': S4.addr, 'dst': P.addr, 'type': 0,
                                   'code': 0, 'id': ident}) for ident in (0x1234, 7)))
    c.replay()


def sctp(flow, chunk, tag):
    """An SCTP packet; its sum is over no address."""
    body = struct.pack('!HHII', flow.src.port, flow.dst.port, tag, 0) + chunk
    body = body[:8] + struct.pack('<I', crc32c(body)) + body[12:]
    return ether(flow.ip(**{'nh' if flow.v6 else 'proto': 132}) / Raw(body))


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def udplite(flow, coverage, data):
    body = struct.pack('!HHHH', flow.src.port, flow.dst.port, coverage, 0) + data
    covered = body[:coverage or len(body)]
    if flow.v6:
        pseudo = pseudo6(flow, 136, len(body))
    else:
        pseudo = raw(IP(src=flow.src.addr, dst=flow.dst.addr))[12:20] + \
            struct.pack('!HH', 136, len(body))
    body = body[:6] + struct.pack('!H', checksum(pseudo + covered)) + body[8:]
    return ether(flow.ip(**{'nh' if flow.v6 else 'proto': 136}) / Raw(body))


def test_udplite_and_sctp(wire, four):
    """B takes A's port, so that it gets another, and sums must be made anew."""
    init = bytes.fromhex('0100001400000055000100000001000100000001')
    ack = bytes.fromhex('0200001400000066000100000001000100000001')
    c = wire()
    c.at(0).inside(sctp(A(5000) > S(5001), init, 0),
                   becomes=four(sctp(P(5000) > S4(5001), init, 0)))
    c.at(.1).outside(sctp(S4(5001) > P(5000), ack, 0x55),
                     becomes=six(sctp(S(5001) > A(5000), ack, 0x55)))
    for at, coverage in enumerate((0, 8, 12)):
        data = bytes(range(40))
        c.at(1 + at).inside(udplite(A(6000) > S(6001), coverage, data),
                            becomes=four(udplite(P(6000) > S4(6001), coverage, data)))
        c.at(1.5 + at).outside(udplite(S4(6001) > P(6000), coverage, data),
                               becomes=six(udplite(S(6001) > A(6000), coverage, data)))
    c.replay()


def test_prefix_lengths(wire, four):
    """RFC 6052: where the IPv4 address lies; what follows it comes back as it was."""
    hosts = {'2001:db8::/32': '2001:db8:c000:250::', '2001:db9::/40': '2001:db9:c0:2:50::7',
             '2001:dba::/48': '2001:dba:0:c000:2:5000::', '2001:dbb::/56': '2001:dbb:0:c0:0:250::',
             '2001:dbc::/64': '2001:dbc::c0:2:5000:0', '2001:dbd::/96': '2001:dbd::c000:250'}
    c = wire(POOL, *(f'rule add T1 prerouting nat64 prefix {prefix} to pool P4\n'
                     for prefix in hosts), config=CONFIG)
    far = Host('2001:dbe::10')
    for at, to in enumerate(map(Host, hosts.values())):
        c.at(at).inside(udp(far(5000 + at) > to(53)),
                        becomes=four(udp(P(5000 + at) > S4(53))))
        c.at(at + .5).outside(udp(S4(53) > P(5000 + at)),
                              becomes=six(udp(to(53) > far(5000 + at))))
    c.replay()


def test_traffic_class(wire, four):
    c = wire()
    frame = ether(FORTH.ip(tc=0xb9, fl=0x12345) / UDP(sport=5000, dport=53) / Raw(b'x'))
    c.at(0).inside(frame, becomes=four(
        ether((P(5000) > S4(53)).ip(tos=0xb9) / UDP(sport=5000, dport=53) / Raw(b'x'))))
    frame = ether(BACK.ip(tos=0x2e) / UDP(sport=53, dport=5000) / Raw(b'x'))
    c.at(1).outside(frame, becomes=six(
        ether((S(53) > A(5000)).ip(tc=0x2e) / UDP(sport=53, dport=5000) / Raw(b'x'))))
    c.replay()


def test_headers_that_ipv4_has_not(wire, four):
    c = wire()
    headers = IPv6ExtHdrHopByHop() / IPv6ExtHdrRouting(addresses=['2001:db8::1'], segleft=0)
    c.at(0).inside(ether(FORTH.ip() / headers / UDP(sport=5000, dport=53) / Raw(b'x' * 9)),
                   becomes=four(udp(P(5000) > S4(53), b'x' * 9)))
    c.at(1).outside(ether(BACK.ip(options=[b'\x94\x04\x00\x00']) / UDP(sport=53, dport=5000)
                          / Raw(b'y' * 9)),
                    becomes=six(udp(S(53) > A(5000), b'y' * 9)))
    c.replay()


# ---- what is refused ----

def test_hop_limit(wire, four):
    c = wire()
    last = ether(FORTH.ip(hlim=1) / UDP(sport=5000, dport=53) / Raw(b'x'))
    c.at(0).inside(last, drop='hop-limit', back=[told(last, ICMPv6TimeExceeded())])
    c.at(.5).entries()
    opened(c, four, 1)
    c.at(2).inside(last, drop='hop-limit', back=[told(last, ICMPv6TimeExceeded())])
    last = ether(BACK.ip(ttl=1) / UDP(sport=53, dport=5000) / Raw(b'x'))
    c.at(3).outside(last, drop='hop-limit', back=[told(last, ICMP(type=11))])
    c.replay()


def test_routes_not_at_their_end(wire, four):
    c = wire()
    routed = ether(FORTH.ip() / IPv6ExtHdrRouting(addresses=['2001:db8::1'], segleft=1)
                   / UDP(sport=5000, dport=53, chksum=0))
    c.at(0).inside(routed, drop='nat64-no-counterpart',
                   back=[told(routed, ICMPv6ParamProblem(ptr=43))])
    opened(c, four, 1)
    routed = ether(BACK.ip(options=[IPOption_LSRR(routers=['192.0.2.9', '192.0.2.10'])])
                   / UDP(sport=53, dport=5000, chksum=0) / Raw(b'x'))
    c.at(2).outside(routed, drop='nat64-no-counterpart', back=[told(routed, ICMP(type=3, code=5))])
    c.replay()


def test_protocols_without_counterpart(wire):
    c = wire()
    esp = ether((A > S).ip(nh=50) / Raw(bytes(40)))
    c.at(0).inside(esp, drop='nat64-no-counterpart', back=[told(esp, ICMPv6DestUnreach(code=4))])
    c.at(1).inside(ether((A > S).ip() / AH(nh=17, payloadlen=1) / UDP(sport=1, dport=2, chksum=0)),
                   drop='nat64-no-counterpart', back=[])
    node = struct.pack('!BBHHH8s', 139, 0, 0, 0, 0, bytes(8)) + bytes(16)
    total = checksum(pseudo6(A > S, 58, len(node)) + node)
    c.at(2).inside(ether((A > S).ip(nh=58) / Raw(node[:2] + struct.pack('!H', total) + node[4:])),
                   drop='nat64-no-counterpart', back=[])
    c.at(3).entries()
    c.replay()


def test_no_hosts(wire):
    c = wire()
    for at, host in enumerate(('127.0.0.1', '0.0.0.0', '224.0.0.5', '255.255.255.255',
                               '169.254.1.1', '240.1.2.3')):
        c.at(at).inside(udp(A(5000) > mapped(Host(host))(53)), drop='nat64-address')
    c.replay()


def test_well_known_prefix(wire, four):
    """RFC 6052 3.1: not for addresses that are not global."""
    rule = 'rule add T1 prerouting nat64 prefix 64:ff9b::/96 to pool P4\n'
    c = wire(POOL, rule, config=CONFIG)
    for at, host in enumerate(('10.1.2.3', '192.168.0.1', '100.64.0.1', '192.0.2.80')):
        c.at(at).inside(udp(A(5000) > Host('64:ff9b::' + host)(53)), drop='nat64-address')
    c.at(9).inside(udp(A(5000) > Host('64:ff9b::8.8.8.8')(53)),
                   becomes=four(udp(P(5000) > Host('8.8.8.8')(53))))
    c.replay()


def test_addresses_that_are_none(wire):
    """With bits in the u octet; from under the prefix, where an answer would come back for ever
    (RFC 6146 3.5)."""
    rule = 'rule add T1 prerouting nat64 prefix 2001:db8:64::/48 to pool P4\n'
    c = wire(POOL, rule, config=CONFIG)
    to = Host('2001:db8:64:c000:2:5000::')
    c.at(0).inside(udp(A(5000) > Host('2001:db8:64:c000:102:5000::')(53)), drop='nat64-address')
    c.at(1).inside(udp(Host('2001:db8:64:c000:2:6300::')(5000) > to(53)), drop='nat64-address')
    c.replay()


def test_from_outside_without_a_connection(wire, four):
    c = wire()
    c.at(0).outside(udp(S4(53) > P(5000)), drop='own-address')
    c.at(1).outside(tcp(S4(80) > P(5000), 'S'), drop='own-address')
    opened(c, four, 2)
    c.at(3).outside(udp(Host('192.0.2.81')(53) > P(5000)), drop='nat-filtered')
    c.replay()


def test_one_public_port_for_all_remote_ends(wire, four):
    """RFC 6146 3.5: and so B, with the same port, has another toward everyone."""
    c = wire()
    opened(c, four)
    for at, host in enumerate(('192.0.2.81', '198.51.100.7')):
        c.at(1 + at).inside(udp(A(5000) > mapped(Host(host))(99)),
                            becomes=four(udp(P(5000) > Host(host)(99))))
    c.at(4).run('nat list netns T1', lambda r: check(r['items'][0]['used'] == 1))
    c.replay()


def check(right):
    assert right


def test_hosts_meet_where_the_filter_lets_them(wire, four):
    """One by the public end of another, which has not sent to it: what is refused leaves its
    sender's connection, so that the other can answer; and where nobody is, nothing."""
    c = wire()
    opened(c, four)
    c.at(1).inside(udp(B(6000) > mapped(P)(5000)), drop='nat-filtered')
    c.at(2).inside(udp(B(6000) > mapped(P)(5001)), drop='own-address')
    c.at(3).run('conntrack count netns T1', lambda r: check(r['count'] == 2))
    c.replay()


def test_exhausted(wire, four):
    """RFC 6146 3.5.1: the address that is not reached is the one that was asked for."""
    c = wire('nat pool add T1 one 203.0.113.70 ports 5000-5000\n',
             'rule add T1 prerouting nat64 prefix 2001:db8:65::/96 to pool one\n')
    to = Host('2001:db8:65::192.0.2.80')
    c.at(0).inside(udp(A(5000) > to(53)),
                   becomes=four(udp(Host('203.0.113.70')(5000) > S4(53))))
    refused = udp(B(5000) > to(53))
    c.at(1).inside(refused, drop='nat-exhausted', back=[told(refused, ICMPv6DestUnreach(code=3))])
    c.replay()


def test_damaged(wire, four):
    c = wire()
    opened(c, four)
    c.at(1).inside(udp(FORTH, chksum=0x1234), drop='invalid-nat')
    c.at(2).outside(udp(BACK, chksum=0x1234), drop='invalid-nat')
    c.replay()


# ---- rules ----

def test_other_destinations_pass(wire):
    c = wire()
    c.at(0).inside(udp(A(5000) > Host('2001:db8:2::80')(53)))
    c.replay()


def test_forward_sees_ipv6(wire, four):
    """In both directions, as the IPv6 side has them; `ip` matches nothing of it."""
    c = wire('rule add T1 forward meta nfproto ipv4 drop\n',
             f'rule add T1 forward ip6 saddr {A.addr} ip6 daddr {PREFIX}/96 udp dport 53 counter '
             'accept\n',
             f'rule add T1 forward ip6 saddr {S.addr} ip6 daddr {A.addr} udp sport 53 '
             'udp dport 5000 ct state established counter accept\n',
             'rule add T1 forward icmpv6 type echo-reply counter accept\n',
             'rule add T1 forward icmpv6 type echo-request counter accept\n',
             'rule policy T1 forward drop\n')
    opened(c, four)
    c.at(1).inside(ping(A > S, 9), becomes=four(ping(P > S4, 9)))
    c.at(2).outside(pong(S4 > P, 9), becomes=six(pong(S > A, 9)))
    c.at(3).inside(udp(A(5000) > S(54)), drop='rule-policy')
    c.at(4).run('rule list T1', check_counters)
    c.replay()


def check_counters(result):
    counted = [item for item in result['items'] if 'counter' in item.get('rule', '')]
    assert len(counted) == 4
    assert all('counter packets 1' in item['rule'] for item in counted), counted


def test_reject_of_an_answer(wire, four):
    """The rules see IPv6; who is told is a host of IPv4."""
    c = wire()
    opened(c, four)
    c.at(1).run('rule add T1 forward ct state established udp sport 53 '
                'reject with icmpv6 type admin-prohibited')
    frame = udp(BACK)
    c.at(2).outside(frame, drop='rule-reject', back=[told(frame, ICMP(type=3, code=10))])
    c.replay()


def test_matches_before_the_statement(wire, four):
    c = wire(POOL, RULE.replace('nat64', f'ip6 saddr {A.addr} nat64'), config=CONFIG)
    c.at(0).inside(udp(FORTH), becomes=four(udp(P(5000) > S4(53))))
    c.at(1).inside(udp(B(5000) > S(53)), drop='own-address')
    c.replay()


def test_hairpin_on_one_link(wire, four):
    """Both on the inside link: translated, and back out of it, to the neighbour that answers."""
    gw, mac = '02:5e:00:00:00:01', '02:cc:00:00:00:01'
    c = wire(f'link add one port in netns T1 mac {gw}\n', 'link address add one 192.0.2.1/24\n',
             POOL, RULE, config='port add in devargs net_null0\nport add out devargs net_null1\n'
             'netns add T1\n')
    asked = raw(Ether(src=gw, dst='ff:ff:ff:ff:ff:ff')
                / ARP(op=1, hwsrc=gw, psrc='192.0.2.1', pdst=S4.addr))
    out = four(udp(P(5000) > S4(53)))
    c.at(0).inside(udp(FORTH), back=[asked])
    c.at(.1).inside(raw(Ether(src=mac, dst=gw)
                        / ARP(op=2, hwsrc=mac, psrc=S4.addr, hwdst=gw, pdst='192.0.2.1')),
                    back=[raw(Ether(src=gw, dst=mac) / IP(out[14:]))])
    out = four(udp(P(5000) > S4(53)))
    c.at(1).inside(udp(FORTH), back=[raw(Ether(src=gw, dst=mac) / IP(out[14:]))])
    back = hop(udp(S(53) > A(5000)))
    c.at(2).inside(udp(BACK), back=[raw(Ether(src=gw, dst=home(back)[:6]) / IPv6(back[14:]))])
    c.replay()
