# SPDX-License-Identifier: BSD-3-Clause
"""Namespaces with a TCP table of their own: what is in it, that nobody else can tell, and the
bounds that go with it; and how the table of all grows."""
import functools
import struct

import pytest
from scapy.all import ICMP

from harness import CONFIG, Case, entry
from nat64 import told
from packets import A, B, S, R, Host, home, icmp_error, l3, patch, tagged, tcp, udp
from test_synproxy import Talk

P = Host('203.0.113.1')
CHILD = 'net.ipv4.tcp_child_ehash_entries'
TW, BACKLOG = 'net.ipv4.tcp_max_tw_buckets', 'net.ipv4.tcp_max_syn_backlog'

# What an own table of one bucket holds: one line, and a chain of 20 with eight connections each.
SMALLEST_HOLDS = 20 * 8


SECOND = f'''\
sysctl {CHILD}=0
netns add T2
link add in2 port in vlan 2 netns T2
link add out2 port out vlan 2 netns T2 peer in2
'''


def owning(buckets, more=''):
    return f'sysctl {CHILD}={buckets}\n{CONFIG}{more}'


def flow(port, host=A):
    return host(port) > S(80)


def syn(port, host=A):
    return tcp(flow(port, host), 'S', 1000)


def opened(c, at, port):
    c.at(at).inside(syn(port))
    c.at(at + .001).outside(tcp(~flow(port), 'SA', 5000, 1001))
    c.at(at + .002).inside(tcp(flow(port), 'A', 1001, 5001))


def closed(c, at, port):
    c.at(at).inside(tcp(flow(port), 'FA', 1001, 5001))
    c.at(at + .001).outside(tcp(~flow(port), 'FA', 5001, 1002))
    c.at(at + .002).inside(tcp(flow(port), 'A', 1002, 5002))


def says(**want):
    """Checks fields of a result, or of its one item."""
    def check(result):
        result = result.get('items', [result])[0]
        assert {k: result[k] for k in want} == want
    return check


# ---- which table ----

def test_tcp_of_the_owner_is_in_its_table(sluice, tmp_path):
    """The smallest table there is soon is full; what is not TCP, and what is another's, is not in
    it."""
    c = Case(sluice, tmp_path, config=owning(1, SECOND), knobs={BACKLOG: SMALLEST_HOLDS + 1})
    for i in range(SMALLEST_HOLDS):
        c.at(i / 1000).inside(syn(1000 + i))
    c.at(1).inside(syn(3000), drop='ct-chain-long')
    for i in range(SMALLEST_HOLDS):
        c.at(2 + i / 1000).inside(udp(A(1000 + i) > S(53)))
        c.at(3 + i / 1000).inside(tagged(syn(1000 + i), (0x8100, 2)))
    c.at(4).inside(tagged(syn(3000), (0x8100, 2)))
    c.at(5).run('conntrack count netns T1', says(count=2 * SMALLEST_HOLDS))
    c.at(5).run('conntrack count netns T2', says(count=SMALLEST_HOLDS + 1))
    c.replay()


def test_sizes(sluice, tmp_path):
    c = Case(sluice, tmp_path, config=owning(100))
    c.at(0).inside(syn(1))
    c.at(1).run(f'sysctl {CHILD}', says(value=128))
    c.at(1).run('sysctl netns T1 net.ipv4.tcp_ehash_entries', says(value=128))
    c.at(1).run(f'sysctl netns T1 {BACKLOG}', says(value=128))
    c.at(1).run(f'sysctl netns T1 {TW}', says(value=64))
    c.at(1).run(f'sysctl netns T1 {CHILD}', says(value=0))
    c.at(2).run('netns add T2 from T1')
    c.at(3).run('netns show T2', says(tcp_ehash_entries=-262144, tcp_max_syn_backlog=2048,
                                      tcp_max_tw_buckets=131072))
    c.at(4).run('sysctl nf_conntrack_buckets=65536')
    c.at(5).run('netns show T2', says(tcp_ehash_entries=-65536, tcp_max_syn_backlog=512,
                                      tcp_max_tw_buckets=32768))
    c.at(5).run('sysctl net.ipv4.tcp_ehash_entries', says(value=65536))
    c.at(5).run('netns show T1', says(tcp_ehash_entries=128))
    c.at(6).run(f'sysctl netns T2 {CHILD}=16777216')
    c.at(7).run('netns add prefix t count 2 from T2')
    c.at(8).run('netns show t2', says(tcp_ehash_entries=16777216, tcp_max_syn_backlog=131072,
                                      tcp_max_tw_buckets=8388608))
    c.replay()


# ---- as one with all else ----

def test_listed_and_counted(sluice, tmp_path):
    c = Case(sluice, tmp_path, config=owning(8))
    opened(c, 0, 40000)
    c.at(.1).inside(udp(A(5000) > S(53)))
    c.at(1.002).entries(entry(flow(40000), 'tcp', state='ESTABLISHED', left=431999, assured=True),
                        entry(A(5000) > S(53), 'udp', unreplied=True))
    c.at(1.1).run('conntrack count netns T1', says(count=2))
    c.at(1.1).run('sysctl netns T1 nf_conntrack_count', says(value=2))
    c.at(1.2).run('conntrack delete netns T1 proto tcp', says(count=1))
    c.at(1.3).entries(entry(A(5000) > S(53), 'udp', unreplied=True))
    c.at(2).inside(syn(40000))
    c.at(2.1).run('conntrack flush netns T1', says(count=2))
    c.at(2.2).entries()
    c.replay()


def test_expires(sluice, tmp_path):
    c = Case(sluice, tmp_path, config=owning(8))
    c.at(0).inside(syn(40000))
    c.at(119.9).run('conntrack count netns T1', says(count=1))
    c.at(120.1).run('conntrack count netns T1', says(count=0))
    c.replay()


def test_icmp_error_finds_the_inner_packets_connection(sluice, tmp_path):
    c = Case(sluice, tmp_path, config=owning(8), knobs={'sluice.invalid': 'drop'})
    c.at(0).inside(syn(40000))
    c.at(1).outside(icmp_error(R > A, 3, 1, l3(syn(40000))))
    c.at(2).outside(icmp_error(R > A, 3, 1, l3(syn(40001))), drop='invalid-icmp-unrelated')
    c.replay()


def test_early_drop(sluice, tmp_path):
    """The oldest unassured one goes, in whatever table it is."""
    c = Case(sluice, tmp_path, config=owning(8), knobs={'nf_conntrack_max': 2})
    c.at(0).inside(syn(40000))
    c.at(1).inside(udp(A(5000) > S(53)))
    c.at(2).inside(udp(A(5001) > S(53)))
    c.at(3).entries(entry(A(5000) > S(53), 'udp', unreplied=True),
                    entry(A(5001) > S(53), 'udp', unreplied=True))
    c.at(4).inside(syn(40001))
    c.at(5).entries(entry(flow(40001), 'tcp', state='SYN_SENT', unreplied=True),
                    entry(A(5001) > S(53), 'udp', unreplied=True))
    c.replay()


def test_connlimit(sluice, tmp_path):
    c = Case(sluice, tmp_path,
             config=owning(8, 'rule add T1 forward ct count over 2 by ip saddr drop\n'))
    c.at(0).inside(syn(40000))
    c.at(1).inside(udp(A(5000) > S(53)))
    c.at(2).inside(syn(40001), drop='rule-drop')
    c.at(3).outside(tcp(~flow(40000), 'RA', 0, 1001))
    c.at(4).inside(syn(40001))
    c.replay()


def test_translations_are_unique(sluice, tmp_path):
    """Two hosts behind one address and one port, in the own table and in that of all."""
    c = Case(sluice, tmp_path, config=owning(
        8, 'rule add T1 postrouting meta l4proto { tcp, udp } snat ip to 203.0.113.1:40000\n'))
    c.at(0).inside(syn(40000), becomes=tcp(P(40000) > S(80), 'S', 1000))
    refused = syn(40000, B)
    c.at(1).inside(refused, drop='nat-exhausted', back=[told(refused, ICMP(type=3, code=13))])
    c.at(1).inside(udp(B(40000) > S(80)), becomes=udp(P(40000) > S(80)))
    c.at(2).outside(tcp(S(80) > P(40000), 'SA', 5000, 1001),
                    becomes=home(tcp(S(80) > A(40000), 'SA', 5000, 1001)))
    c.replay()


@pytest.mark.parametrize('buckets', [1, 1024])
def test_deleted(sluice, tmp_path, buckets):
    """Of the namespaces of a batch some own a table, some have entries elsewhere too. What is
    walked of the pool: nothing, when all entries are in own tables."""
    c = Case(sluice, tmp_path, config=owning(buckets, SECOND))
    for i in range(40):
        c.at(i / 1000).inside(syn(1000 + i))
    c.at(1).run('conntrack count', says(count=40))
    c.at(1).run('show memory', says(own_tables=1))
    c.at(2).run('netns delete T1')
    c.at(3).run('conntrack count', says(count=0))
    c.at(3).run('stats', lambda result: walked(result, 0))
    c.at(4).run('netns add T1')
    c.at(4).run('link add inside port in netns T1')
    c.at(4).run('link add outside port out netns T1 peer inside')
    c.at(5).inside(syn(1000))
    c.at(5.1).inside(udp(A(5000) > S(53)))
    c.at(6).run('netns delete T1 T2')
    c.at(7).run('conntrack count', says(count=0))
    c.at(7).run('stats', lambda result: walked(result, 40))
    c.at(7).run('show memory', says(own_tables=0))
    c.replay()


def walked(result, least):
    slots = [i['walked'] for i in result['items'] if i['role'] == 'control'][0]
    assert slots == 0 if least == 0 else slots >= 2


# ---- bounds ----

def test_backlog(sluice, tmp_path):
    """Half open are those whose handshake is not over; the SYN beyond them leaves nothing."""
    c = Case(sluice, tmp_path, config=owning(8), knobs={BACKLOG: 2})
    c.at(0).inside(syn(1))
    c.at(.1).inside(syn(2))
    c.at(.2).inside(syn(1))
    c.at(.3).inside(syn(3), drop='syn-backlog')
    c.at(.4).outside(tcp(~flow(1), 'SA', 5000, 1001))
    c.at(.5).inside(syn(3), drop='syn-backlog')
    c.at(.6).run('stats netns T1', says(half_open=2, backlog_full=2, entries=2))
    c.at(.7).inside(tcp(flow(1), 'A', 1001, 5001))
    c.at(.8).inside(syn(3))
    c.at(.9).inside(syn(4), drop='syn-backlog')
    c.at(1).outside(tcp(~flow(2), 'RA', 0, 1001))
    c.at(1.1).inside(syn(4))
    c.at(1.2).run('conntrack flush netns T1', says(count=3))
    c.at(1.3).run('netns show T1', says(tcp_half_open=0, tcp_max_syn_backlog=2))
    c.at(2).inside(udp(A(5000) > S(53)))
    c.at(2).inside(tcp(flow(9), 'A', 1, 1))
    c.replay()


def test_half_open_ones_that_expire_make_room(sluice, tmp_path):
    c = Case(sluice, tmp_path, config=owning(8),
             knobs={BACKLOG: 1, 'nf_conntrack_tcp_timeout_syn_sent': 10})
    c.at(0).inside(syn(1))
    c.at(9).inside(syn(2), drop='syn-backlog')
    c.at(10.1).inside(syn(2))
    c.replay()


def test_backlog_of_the_tables_size(sluice, tmp_path):
    c = Case(sluice, tmp_path, config=owning(64))
    for i in range(129):
        c.at(i / 1000).inside(syn(1000 + i), drop='syn-backlog' if i == 128 else None)
    c.at(1).run('stats netns T1', says(half_open=128, backlog_full=1))
    c.replay()


COOKIES = 'sluice.syncookies'


def flood(c, at, n):
    """SYNs of as many connections, from another host."""
    for i in range(n):
        c.at(at + i / 1000).inside(syn(1000 + i, B))


@pytest.mark.parametrize('buckets,backlog', [(64, 128), (1 << 15, 256)])
def test_cookies_beyond_the_backlog_of_the_tables_size(sluice, tmp_path, buckets, backlog):
    """Nothing was set but the size of the table and the cookies: the SYN that finds as many half
    open as go with it is answered, and its connection opens beside them."""
    t = Talk(functools.partial(Case, sluice, tmp_path), flow=flow(40000), config=owning(buckets),
             knobs={COOKIES: 1})
    c = t.case
    flood(c, 0, backlog)
    c.at(1).run('netns show T1', says(tcp_ehash_entries=buckets, tcp_max_syn_backlog=backlog,
                                      tcp_half_open=backlog))
    t.opens(536, at=2)
    c.at(3).run('stats netns T1', says(half_open=backlog, backlog_full=1, cookies_sent=1,
                                       cookies_valid=1, proxied=1, entries=backlog + 1))
    c.replay()


def test_no_cookies_where_nothing_is_bound(sluice, tmp_path):
    """In a namespace that shares the table the bound is shown, and is none until it is set."""
    t = Talk(functools.partial(Case, sluice, tmp_path), flow=flow(40000),
             config='sysctl nf_conntrack_buckets=8192\n' + CONFIG, knobs={COOKIES: 1})
    c = t.case
    flood(c, 0, 140)
    c.at(1).run('netns show T1', says(tcp_ehash_entries=-8192, tcp_max_syn_backlog=128))
    c.at(1).run('stats netns T1', says(cookies_sent=0, backlog_full=0, entries=140))
    c.at(2).run(f'sysctl netns T1 {BACKLOG}=128')
    c.at(3).run('conntrack flush netns T1')
    flood(c, 4, 128)
    t.opens(536, at=5)
    c.at(6).run('stats netns T1', says(cookies_sent=1, cookies_valid=1, half_open=128))
    c.replay()


def test_time_wait_of_the_tables_size(sluice, tmp_path):
    """Half of the buckets, and none where the table is shared."""
    for own, kept in ((8, 4), (0, 6)):
        c = Case(sluice, tmp_path, config=owning(own))
        for port in range(1, 7):
            opened(c, port / 10 - .1, port)
            closed(c, 1 + port / 10, port)
        c.at(2).run('netns show T1', says(tcp_time_wait=4 if own else 0,
                                          tcp_max_tw_buckets=4 if own else 131072))
        c.at(2).run('stats netns T1', says(entries=kept, time_wait_full=6 - kept))
        c.replay()


def test_shared_tables_bound_nothing_but_what_was_set(sluice, tmp_path):
    """The table of all is small enough that a bound that went with it would be felt."""
    c = Case(sluice, tmp_path, config='sysctl nf_conntrack_buckets=8192\n' + CONFIG)
    for i in range(129):
        c.at(i / 1000).inside(syn(1000 + i))
    c.at(1).run('netns show T1', says(tcp_max_syn_backlog=128, tcp_half_open=0))
    c.at(2).run(f'sysctl netns T1 {BACKLOG}=3')
    for i in range(3):
        c.at(3 + i / 1000).inside(syn(2000 + i))
    c.at(4).inside(syn(3000), drop='syn-backlog')
    c.at(5).run('netns show T1', says(tcp_max_syn_backlog=3, tcp_half_open=3))
    c.replay()


def test_time_wait(sluice, tmp_path):
    """What is forgotten is not in TIME_WAIT, and the segment that would have brought it there
    passes; the rest live on, until their time is over."""
    c = Case(sluice, tmp_path, config=owning(4))
    for port in (1, 2, 3):
        opened(c, port / 10, port)
        closed(c, 1 + port / 10, port)
    c.at(0).inside(udp(A(5000) > S(53)))
    c.at(2).run('stats netns T1', says(time_wait=2, time_wait_full=1, entries=3, half_open=0))
    c.at(3).entries(*(entry(flow(port), 'tcp', state='TIME_WAIT', assured=True)
                      for port in (1, 2)), entry(A(5000) > S(53), 'udp', unreplied=True))
    c.at(122).run('netns show T1', says(tcp_time_wait=0))
    opened(c, 123, 4)
    closed(c, 124, 4)
    c.at(125).run('netns show T1', says(tcp_time_wait=1))
    c.replay()


def test_time_wait_of_a_translated_connection(sluice, tmp_path):
    """The segment that closes it is translated before it is forgotten."""
    c = Case(sluice, tmp_path, config=CONFIG + 'rule add T1 postrouting oifname "outside" snat ip '
             'to 203.0.113.1\n', knobs={TW: 0})
    mine, theirs = P(40000) > S(80), S(80) > P(40000)
    for at, frame, becomes in ((0, syn(40000), tcp(mine, 'S', 1000)),
                               (.2, tcp(flow(40000), 'A', 1001, 5001), tcp(mine, 'A', 1001, 5001)),
                               (.3, tcp(flow(40000), 'FA', 1001, 5001),
                                tcp(mine, 'FA', 1001, 5001)),
                               (.5, tcp(flow(40000), 'A', 1002, 5002),
                                tcp(mine, 'A', 1002, 5002))):
        c.at(at).inside(frame, becomes=becomes)
    for at, flags, seq, ack in ((.1, 'SA', 5000, 1001), (.4, 'FA', 5001, 1002)):
        c.at(at).outside(tcp(theirs, flags, seq, ack),
                         becomes=home(tcp(~flow(40000), flags, seq, ack)))
    c.at(1).run('stats netns T1', says(entries=0, time_wait=0, time_wait_full=1))
    c.replay()


def test_opened_again_from_time_wait(sluice, tmp_path):
    c = Case(sluice, tmp_path, config=owning(8), knobs={TW: 1})
    opened(c, 0, 1)
    closed(c, .1, 1)
    c.at(.2).run('netns show T1', says(tcp_time_wait=1))
    c.at(.3).inside(tcp(flow(1), 'S', 90000))
    c.at(.4).run('netns show T1', says(tcp_time_wait=0, tcp_half_open=1))
    c.replay()


def test_settable_after(sluice, tmp_path):
    """A higher bound lets in what waits, a lower one ends nothing that is there."""
    c = Case(sluice, tmp_path, config=owning(8), knobs={BACKLOG: 1})
    c.at(0).inside(syn(1))
    c.at(1).inside(syn(2), drop='syn-backlog')
    c.at(2).run(f'sysctl netns T1 {BACKLOG}=2')
    c.at(3).inside(syn(2))
    c.at(4).run(f'sysctl netns T1 {BACKLOG}=0')
    c.at(5).inside(syn(3), drop='syn-backlog')
    c.at(6).run('netns show T1', says(tcp_half_open=2))
    c.replay()


# ---- growth of the table of all ----

BUCKETS = 'nf_conntrack_buckets'
LEAST = 8192          # buckets
FITS, MANY = 5000, 7000  # connections


def many(case, at, frame):
    """Connections from as many ports, without checksums; frame: of the first."""
    for i in range(MANY):
        case.at(at + i / 1e5).inside(patch(frame, 34, struct.pack('!H', 1000 + i)))


def unsummed(frame, offset):
    return patch(frame, offset, bytes(2))


@pytest.mark.parametrize('on', [True, False])
def test_growth(sluice, tmp_path, on):
    """Connections too many double the buckets; none is lost, and answers find theirs."""
    c = Case(sluice, tmp_path, config=f'sysctl {BUCKETS}={LEAST}\n' + CONFIG +
             ('' if on else 'sysctl sluice.table_growth=0\n'))
    many(c, 0, unsummed(udp(A(1000) > S(53)), 40))
    c.at(FITS / 1e5).run(f'sysctl {BUCKETS}', says(value=LEAST))
    c.at(1).run(f'sysctl {BUCKETS}', says(value=2 * LEAST if on else LEAST))
    c.at(1).run('conntrack count', says(count=MANY))
    c.at(1).run('show memory', says(lines=(2 * LEAST if on else LEAST) // 8))
    answer = unsummed(udp(S(53) > A(1000)), 40)
    for i in range(0, MANY, 100):
        c.at(2).outside(patch(answer, 36, struct.pack('!H', 1000 + i)))
    c.at(3).run('conntrack count', says(count=MANY))
    c.at(4).run('sysctl netns T1 sluice.table_growth', says(value=int(on)))
    c.replay()


def test_own_tables_do_not_make_it_grow(sluice, tmp_path):
    c = Case(sluice, tmp_path, config=f'sysctl {BUCKETS}={LEAST}\n' + owning(16384),
             knobs={BACKLOG: MANY, 'nf_conntrack_checksum': 0})
    many(c, 0, syn(1000))
    c.at(1).run(f'sysctl {BUCKETS}', says(value=LEAST))
    c.at(1).run('conntrack count', says(count=MANY))
    c.replay()
