# SPDX-License-Identifier: BSD-3-Clause
"""Translation: what has no counterpart in a scenario of the oracle (B02, B14, B17, B24, B52)."""
from scapy.all import ICMP, Ether

from harness import CONFIG, Case
from nat64 import told
from packets import A, B, C, S, S2, Host, home, ping, pong, tcp, udp

P = Host('203.0.113.1')
V = Host('203.0.113.80')
SNAT = 'rule add T1 postrouting oifname "outside" snat ip to 203.0.113.1\n'
ADDRESSES = 'link address add outside 203.0.113.1/24\nlink address add inside 198.51.100.1/24\n'


def translated(sluice, path, rules=SNAT, **more):
    return Case(sluice, path, config=CONFIG + rules, **more)


def established(c, port=40000):
    c.at(0).inside(tcp(A(port) > S(80), 'S', 1000), becomes=tcp(P(port) > S(80), 'S', 1000))
    c.at(0.1).outside(tcp(S(80) > P(port), 'SA', 5000, 1001),
                      becomes=home(tcp(S(80) > A(port), 'SA', 5000, 1001)))
    c.at(0.2).inside(tcp(A(port) > S(80), 'A', 1001, 5001),
                     becomes=tcp(P(port) > S(80), 'A', 1001, 5001))


def test_b14_out_of_window(sluice, tmp_path):
    c = translated(sluice, tmp_path)
    established(c)
    c.at(1).inside(tcp(A(40000) > S(80), 'A', 1001 + 2**20, 5001), drop='invalid-nat')
    c.replay()


def test_b14_of_a_deleted_connection(sluice, tmp_path):
    c = translated(sluice, tmp_path)
    established(c)
    c.at(1).run('conntrack flush netns T1')
    c.at(2).inside(tcp(A(40000) > S(80), 'FA', 1001, 5001), drop='invalid-nat')
    c.replay()


def test_b14_by_wish_as_the_kernel(sluice, tmp_path):
    c = translated(sluice, tmp_path, knobs={'sluice.invalid': 'kernel'})
    established(c)
    c.at(1).inside(tcp(A(40000) > S(80), 'A', 1001 + 2**20, 5001))
    c.replay()


def test_b17_an_unreplied_flow_meets_a_new_rule(sluice, tmp_path):
    c = Case(sluice, tmp_path)
    packet = udp(A(5000) > V(514))
    c.at(0).inside(packet)
    c.at(1).run('rule add T1 prerouting ip daddr 203.0.113.80 dnat ip to 192.0.2.80')
    c.at(2).inside(packet, becomes=udp(A(5000) > S(514)))
    c.at(3).run('rule flush T1 prerouting')
    c.at(3).run('rule add T1 prerouting ip daddr 203.0.113.80 dnat ip to 192.0.2.81')
    c.at(4).inside(packet, becomes=udp(A(5000) > S2(514)))
    c.replay()


def test_b24_a_range_and_not_one_port_more(sluice, tmp_path):
    c = translated(sluice, tmp_path,
                   'rule add T1 postrouting meta l4proto udp snat ip to 203.0.113.1:5000-5003\n')
    for port in range(5000, 5004):
        c.at(port / 1000 - 5).inside(udp(A(port) > S(53)), becomes=udp(P(port) > S(53)))
    refused = udp(B(5000) > S(53))
    c.at(1).inside(refused, drop='nat-exhausted', back=[told(refused, ICMP(type=3, code=13))])
    c.at(2).inside(udp(B(5000) > S2(53)), becomes=udp(P(5000) > S2(53)))
    c.replay()


def test_b02_a_hundred_hosts_with_one_port(sluice, tmp_path):
    """Each has a public port of its own toward one server, and each answer reaches its host. What
    is chosen is the same in every replay, so that a first one tells the answers of a second."""
    rule = 'rule add T1 postrouting meta l4proto tcp snat ip to 203.0.113.1\n'
    hosts = [Host(f'198.51.100.{10 + i}') for i in range(100)]

    def case():
        c = translated(sluice, tmp_path, rule)
        c._check_departures = lambda: None
        for i, host in enumerate(hosts):
            c.at(i / 1000).inside(tcp(host(10000) > S(443), 'S', i))
        return c

    frames = [frame for _, frame in case().replay().output('out')]
    ports = [int.from_bytes(frame[34:36], 'big') for frame in frames]
    assert ports[0] == 10000 and len(set(ports)) == 100 and min(ports) >= 1024
    c = case()
    for i, port in enumerate(ports):
        c.at(1 + i / 1000).outside(tcp(S(443) > P(port), 'SA', 7, i + 1))
    c.replay()
    assert [frame for _, frame in c.output('in')] == [
        home(tcp(S(443) > host(10000), 'SA', 7, i + 1)) for i, host in enumerate(hosts)]


def test_b52_one_id_of_three_hosts(sluice, tmp_path):
    c = translated(sluice, tmp_path)
    hosts = {A: 0, B: 1, C: 2}
    for host, at in hosts.items():
        c.at(at).inside(ping(host > S, 500))
    c.departures.clear()
    c._check_departures = lambda: None      # the ids are chosen at random
    c.replay()
    ids = [Ether(frame)[ICMP].id for _, frame in c.output('out')]
    assert ids[0] == 500 and len(set(ids)) == 3
    back = translated(sluice, tmp_path)
    for host, at in hosts.items():
        back.at(at).inside(ping(host > S, 500), becomes=ping(P > S, ids[at]))
        back.at(at + 5).outside(pong(S > P, ids[at]), becomes=home(pong(S > host, 500)))
    back.replay()


def test_masquerade_is_to_the_address_of_the_link(sluice, tmp_path):
    c = translated(sluice, tmp_path,
                   ADDRESSES + 'rule add T1 postrouting oifname "outside" masquerade\n')
    established(c)
    c.replay()


def test_masqueraded_connections_go_with_the_address(sluice, tmp_path):
    c = translated(sluice, tmp_path,
                   ADDRESSES + 'rule add T1 postrouting oifname "outside" masquerade\n')
    established(c)
    c.at(1).run('link address delete outside 203.0.113.1/24')
    c.at(1.1).entries()
    c.at(2).inside(udp(A(5000) > S(53)), drop='nat-no-address')
    c.replay()
