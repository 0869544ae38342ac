# SPDX-License-Identifier: BSD-3-Clause
"""NAT64: connections from outside to a host's public end, and between hosts inside by them."""
import pytest
from fragments import cut
from harness import Case, entry
from nat64 import CONFIG, POOL, PREFIX, R4, R6, RULE, A, B, Ids, P, S, S4, hop, mapped, six, told
from packets import MAC_IN, Host, ether, home, icmp_error, l3, ping, pong, tcp, udp
from test_nat64_sizes import DATA, left, rebuilt
from scapy.all import ICMP, UDP, Raw

GW = '02:5e:00:00:00:01'
X4, Y4 = Host('192.0.2.81'), Host('198.51.100.7')
X, Y, PUBLIC = mapped(X4), mapped(Y4), mapped(P)
OPEN = RULE.rstrip() + ' filter endpoint-independent\n'
BY_ADDRESS = RULE.rstrip() + ' endpoint-independent filter address-dependent\n'
WIRE = CONFIG.replace('in netns T1', f'in netns T1 mac {GW}', 1) + POOL


@pytest.fixture
def ids():
    return Ids()


@pytest.fixture
def four(ids):
    return lambda frame: hop(frame, id=ids(), flags=0)


@pytest.fixture
def wire(case, four):
    """A has sent to S from port 5000, by UDP and TCP, and a ping of that id."""
    def make(*more, rule=OPEN):
        c = case(config=WIRE + rule + ''.join(more))
        c.at(0).inside(udp(A(5000) > S(53)), becomes=four(udp(P(5000) > S4(53))))
        c.at(.1).outside(udp(S4(53) > P(5000)), becomes=six(udp(S(53) > A(5000))))
        c.at(.2).inside(tcp(A(5000) > S(80), 'S', 1), becomes=four(tcp(P(5000) > S4(80), 'S', 1)))
        c.at(.3).inside(ping(A > S, 5000), becomes=four(ping(P > S4, 5000)))
        return c
    return make


def turned(frame):
    """As it goes back out of the link it came by."""
    return bytes.fromhex((MAC_IN + GW).replace(':', '')) + frame[12:]


OUT = {'src': S4.addr, 'dst': P.addr, 'family': 'ipv4'}
OURS = (entry(A(5000) > S(53), 'udp', reply=OUT),
        entry(A(5000) > S(80), 'tcp', unreplied=True, reply=OUT),
        entry(A > S, 'icmpv6', unreplied=True, reply=OUT))


# ---- from outside ----

def test_udp(wire, four):
    c = wire()
    for at, (x4, x) in enumerate(((X4, X), (Y4, Y)), 1):
        c.at(at).outside(udp(x4(999) > P(5000)), becomes=hop(udp(x(999) > A(5000))))
        c.at(at + .1).inside(udp(A(5000) > x(999)), becomes=home(four(udp(P(5000) > x4(999)))))
        c.at(at + .2).outside(udp(x4(999) > P(5000)), becomes=hop(udp(x(999) > A(5000))))
    c.at(4).entries(*OURS, *(entry(x4(999) > P(5000), 'udp', orig={'family': 'ipv4'},
                                   reply={'family': 'ipv6', 'src': A.addr, 'dst': x.addr,
                                          'sport': 5000, 'dport': 999})
                             for x4, x in ((X4, X), (Y4, Y))))
    c.at(5).run('conntrack list netns T1 reply-src ' + A.addr, lambda r: count(r, 2))
    c.at(5).run(f'conntrack list netns T1 src {X4.addr} reply-dst {X.addr}', lambda r: count(r, 1))
    c.replay()


def count(result, n):
    assert result['count'] == n, result


def test_tcp(wire, four):
    c = wire()
    c.at(1).outside(tcp(X4(999) > P(5000), 'S', 100), becomes=hop(tcp(X(999) > A(5000), 'S', 100)))
    c.at(1.1).inside(tcp(A(5000) > X(999), 'SA', 500, 101),
                     becomes=home(four(tcp(P(5000) > X4(999), 'SA', 500, 101))))
    c.at(1.2).outside(tcp(X4(999) > P(5000), 'A', 101, 501),
                      becomes=hop(tcp(X(999) > A(5000), 'A', 101, 501)))
    c.at(1.3).inside(tcp(A(5000) > X(999), 'PA', 501, 101, b'hello'),
                     becomes=home(four(tcp(P(5000) > X4(999), 'PA', 501, 101, b'hello'))))
    # In the middle of a connection that is not known, it is none.
    c.at(2).outside(tcp(Y4(999) > P(5000), 'A', 101, 501), drop='invalid-nat')
    c.replay()


def test_ping(wire, four):
    c = wire()
    c.at(1).outside(ping(X4 > P, 5000), becomes=hop(ping(X > A, 5000)))
    c.at(1.1).inside(pong(A > X, 5000), becomes=home(four(pong(P > X4, 5000))))
    c.at(2).outside(ping(X4 > P, 5001), drop='own-address')
    c.replay()


def test_by_address(wire):
    c = wire(rule=BY_ADDRESS)
    c.at(1).outside(udp(S4(999) > P(5000)), becomes=hop(udp(S(999) > A(5000))))
    c.at(2).outside(udp(X4(53) > P(5000)), drop='nat-filtered')
    c.at(3).outside(udp(S4(999) > P(5001)), drop='own-address')
    c.replay()


def test_the_mapping_lasts_as_long_as_what_it_let_in(wire, four):
    c = wire('sysctl netns T1 nf_conntrack_udp_timeout_stream=150\n')
    for at in (1, 4, 100, 200, 300):
        c.at(at).outside(udp(X4(999) > P(5000)), becomes=hop(udp(X(999) > A(5000))))
        c.at(at + .5).inside(udp(A(5000) > X(999)), becomes=home(four(udp(P(5000) > X4(999)))))
    c.at(310).inside(udp(A(5000) > Y(9)), becomes=four(udp(P(5000) > Y4(9))))
    c.at(1000).outside(udp(X4(999) > P(5000)), drop='own-address')
    c.at(1001).run('nat list netns T1', lambda r: used(r, 0))
    c.replay()


def used(result, n):
    [pool] = result['items']
    assert pool['used'] == n and pool['connections'] == n, pool


def test_fragments(wire, monkeypatch):
    """Both ways; without a sum, that of the whole datagram is made."""
    monkeypatch.setattr(Case, '_check_departures', lambda self: None)
    c = wire()
    whole = udp(X4(999) > P(5000), DATA, chksum=0)
    c.arrivals += [(c.at(1).ns, 'out', f) for f in cut(whole, 1200, 1200, ident=7)]
    c.arrivals += [(c.at(2).ns, 'in', f) for f in cut(udp(A(5000) > X(999), DATA), 1200, 1200)]
    c.replay()
    assert rebuilt(left(c, 'in', 1)) == (hop(udp(X(999) > A(5000), DATA)), 7)
    assert rebuilt(left(c, 'out', 2))[0] == home(hop(udp(P(5000) > X4(999), DATA), id=0))


def test_what_cannot_be_translated_makes_no_entry(wire):
    c = wire()
    last = ether((X4(999) > P(5000)).ip(ttl=1) / UDP(sport=999, dport=5000) / Raw(b'x'))
    c.at(1).outside(last, drop='hop-limit', back=[told(last, ICMP(type=11))])
    c.at(2).outside(ether((X4 > P).ip() / ICMP(type=13, id=5000, seq=1)),
                    drop='nat64-no-counterpart', back=[])
    c.at(3).entries(*OURS)
    c.replay()


def test_senders_that_ipv6_may_not_be_told_of(case, four):
    """RFC 6052 3.1: private addresses under the well-known prefix."""
    c = case(config=WIRE + 'rule add T1 prerouting nat64 prefix 64:ff9b::/96 to pool P4 '
             'filter endpoint-independent\n')
    far, far4 = Host('64:ff9b::8.8.8.8'), Host('8.8.8.8')
    c.at(0).inside(udp(A(5000) > far(53)), becomes=four(udp(P(5000) > far4(53))))
    c.at(1).outside(udp(Host('10.1.2.3')(53) > P(5000)), drop='nat64-address')
    c.at(2).outside(udp(Host('9.9.9.9')(53) > P(5000)),
                    becomes=hop(udp(Host('64:ff9b::9.9.9.9')(53) > A(5000))))
    c.replay()


def test_rules_see_ipv6(wire, four):
    c = wire('rule add T1 forward ct state new udp dport 53 accept\n',
             'rule add T1 forward ct state new tcp dport 80 accept\n',
             'rule add T1 forward icmpv6 type echo-request accept\n',
             f'rule add T1 forward ip6 saddr {PREFIX}/96 ip6 daddr {A.addr} udp sport 999 '
             'udp dport 5000 iifname "outside" oifname "inside" counter accept\n',
             'rule add T1 forward ct state established accept\n',
             # Of the source the statement has said all.
             'rule add T1 postrouting meta nfproto ipv6 snat ip6 to 2001:db8:9::9\n',
             'rule policy T1 forward drop\n')
    c.at(1).outside(udp(X4(999) > P(5000)), becomes=hop(udp(X(999) > A(5000))))
    c.at(1.1).inside(udp(A(5000) > X(999)), becomes=home(four(udp(P(5000) > X4(999)))))
    c.at(2).outside(udp(X4(998) > P(5000)), drop='rule-policy')
    c.replay()


def test_errors(wire, four):
    """From the host itself, which is its public address outside; and from a router of either
    side."""
    c = wire()
    came = udp(X4(999) > P(5000))
    c.at(1).outside(came, becomes=hop(udp(X(999) > A(5000))))
    got = l3(hop(udp(X(999) > A(5000))))
    want = home(four(icmp_error(P > X4, 3, 3, l3(hop(came, id=0, flags=0)))))
    c.at(2).inside(icmp_error(A > X, 1, 4, got), becomes=want)
    c.at(3).inside(icmp_error(R6 > X, 1, 0, got),
                   becomes=home(four(icmp_error(P > X4, 3, 1, l3(hop(came, id=0, flags=0))))))
    answer = udp(A(5000) > X(999))
    c.at(4).inside(answer, becomes=home(four(udp(P(5000) > X4(999)))))
    sent = l3(hop(udp(P(5000) > X4(999)), id=8, flags=0))
    c.at(5).outside(icmp_error(R4 > P, 3, 1, sent),
                    becomes=hop(icmp_error(mapped(R4) > A, 1, 0, l3(hop(answer)))))
    c.replay()


# ---- between hosts inside ----

def test_hairpin(wire):
    """Both know the other by its public end (RFC 6146 3.8, RFC 4787 REQ-9)."""
    c = wire()
    c.at(1).inside(udp(B(6000) > PUBLIC(5000)), back=[turned(udp(PUBLIC(6000) > A(5000)))])
    c.at(2).inside(udp(A(5000) > PUBLIC(6000)), back=[turned(udp(PUBLIC(5000) > B(6000)))])
    c.at(3).entries(*OURS, entry(B(6000) > PUBLIC(5000), 'udp',
                                 reply={'src': A.addr, 'dst': PUBLIC.addr, 'sport': 5000,
                                        'dport': 6000}))
    c.at(4).run('nat list netns T1', lambda r: count(r, 1))
    c.replay()


def test_who_has_an_end(wire):
    """Told by what there is of connections: from inside, from outside, and between hosts inside."""
    said = []
    c = wire()
    c.at(1).outside(udp(X4(999) > P(5000)), becomes=hop(udp(X(999) > A(5000))))
    c.at(1.1).run(f'conntrack delete src {A.addr} proto udp')
    c.at(2).inside(udp(B(6000) > PUBLIC(5000)), back=[turned(udp(PUBLIC(6000) > A(5000)))])
    for port in (5000, 6000):
        c.at(3).run(f'nat lookup T1 {P.addr} {port}',
                    lambda r: said.append([(i['proto'], i['host'], i['dst'])
                                           for i in r['items']]))
    c.replay()
    assert sorted(said[0]) == [('icmpv6', A.addr, S.addr), ('tcp', A.addr, S.addr),
                               ('udp', A.addr, X4.addr)]
    assert said[1] == [('udp', B.addr, PUBLIC.addr)]


def test_hairpin_of_tcp_and_ping(wire):
    c = wire()
    c.at(1).inside(tcp(B(6000) > PUBLIC(5000), 'S', 7),
                   back=[turned(tcp(PUBLIC(6000) > A(5000), 'S', 7))])
    c.at(1.1).inside(tcp(A(5000) > PUBLIC(6000), 'SA', 9, 8),
                     back=[turned(tcp(PUBLIC(5000) > B(6000), 'SA', 9, 8))])
    # The id, of which there is one, is that of the sender's public end.
    c.at(2).inside(ping(A > PUBLIC, 5000), back=[turned(ping(PUBLIC > A, 5000))])
    c.at(3).inside(pong(A > PUBLIC, 5000), back=[turned(pong(PUBLIC > A, 5000))])
    c.replay()


def test_hairpin_to_itself(wire):
    c = wire()
    c.at(1).inside(udp(A(5001) > PUBLIC(5000)), back=[turned(udp(PUBLIC(5001) > A(5000)))])
    c.at(2).inside(udp(A(5000) > PUBLIC(5001)), back=[turned(udp(PUBLIC(5000) > A(5001)))])
    c.replay()


def test_hairpin_to_its_own_port(wire):
    """From and to the same one, where answers look as questions do."""
    c = wire()
    for at in (1, 2):
        c.at(at).inside(udp(A(5000) > PUBLIC(5000)),
                        back=[turned(udp(PUBLIC(5000) > A(5000)))])
    c.at(3).run('conntrack count netns T1', lambda r: count(r, 4))
    c.at(4).run('conntrack flush netns T1')
    c.at(5).run('nat list netns T1', lambda r: used(r, 0))
    c.replay()


def test_hairpin_error(wire):
    c = wire()
    c.at(1).inside(udp(B(6000) > PUBLIC(5000)), back=[turned(udp(PUBLIC(6000) > A(5000)))])
    c.at(2).inside(icmp_error(A > PUBLIC, 1, 4, l3(udp(PUBLIC(6000) > A(5000)))),
                   back=[turned(icmp_error(PUBLIC > B, 1, 4, l3(udp(B(6000) > PUBLIC(5000)))))])
    c.replay()


def test_hairpin_in_fragments(wire):
    c = wire()
    c.at(1).inside(udp(B(6000) > PUBLIC(5000)), back=[turned(udp(PUBLIC(6000) > A(5000)))])
    frames = cut(udp(A(5000) > PUBLIC(6000), b'y' * 2000), 800, 800)
    through = cut(udp(PUBLIC(5000) > B(6000), b'y' * 2000), 800, 800)
    for frame in frames:
        c.at(2).inside(frame, back=[])
    c.departures += [(c.at(2).ns, 'in', turned(frame)) for frame in through]
    c.replay()


def test_hairpin_by_address(wire, four):
    """A has not sent to the public address yet, and then it has."""
    c = wire(rule=BY_ADDRESS)
    c.at(1).inside(udp(B(6000) > PUBLIC(5000)), drop='nat-filtered')
    c.at(2).inside(udp(B(6000) > S(53)), becomes=four(udp(P(6000) > S4(53))))
    c.at(3).inside(udp(B(6000) > PUBLIC(5000)), drop='nat-filtered')
    c.at(4).inside(udp(A(5000) > PUBLIC(5001)), drop='own-address')
    c.replay()


def test_an_ipv4_host_inside(case, four):
    """By the public end that it has from a pool of its own."""
    c4, q = Host('10.0.0.5'), Host('203.0.113.9')
    c = case(config=WIRE + OPEN + f'nat pool add T1 Q {q.addr}\nrule add T1 postrouting oifname '
             '"outside" ip saddr 10.0.0.0/8 snat to pool Q endpoint-independent '
             'filter endpoint-independent\n')
    c.at(0).inside(udp(c4(7000) > S4(53)), becomes=udp(q(7000) > S4(53)))
    c.at(1).inside(udp(A(5000) > mapped(q)(7000)),
                   back=[turned(four(udp(P(5000) > c4(7000))))])
    c.at(2).inside(udp(c4(7000) > P(5000)),
                   back=[turned(hop(udp(mapped(q)(7000) > A(5000))))])
    c.replay()
