# SPDX-License-Identifier: BSD-3-Clause
"""B60: deadlines are the last packet's time and the state's timeout, whatever the clock's value."""
import pytest

from capture import SEC
from harness import START, entry
from packets import A, S, tcp, udp
from test_tcp import established, opened, tcp_entry

FLOW = A(5000) > S(53)
MS = SEC // 1000


def lives_until(c, ns, *listed):
    """There at the last millisecond before, gone at that moment."""
    c.at((ns - MS) / SEC).entries(*listed)
    c.at(ns / SEC).entries()


@pytest.mark.parametrize('timeout', [1, 2, 30, 524, 525, 7440, 432000, 2147000])
def test_b60_timeouts(case, timeout):
    c = case(knobs={'nf_conntrack_udp_timeout': timeout})
    c.at(0).inside(udp(FLOW))
    lives_until(c, timeout * SEC, entry(FLOW, 'udp', left=0, unreplied=True))
    c.replay()


@pytest.mark.parametrize('timeout', [1, 524, 525, 7440, 432000])
def test_b60_timeout_seen_by_packets(case, timeout):
    """A packet in the last millisecond is of the connection, one at the deadline of a new one."""
    knobs = {'nf_conntrack_udp_timeout': timeout, 'nf_conntrack_acct': 1}
    for late, packets in ((-1, 2), (0, 1)):
        c = case(knobs=knobs)
        c.at(0).inside(udp(FLOW))
        c.at(timeout + late * MS / SEC).inside(udp(FLOW))
        c.at(timeout + .5).entries(entry(FLOW, 'udp', unreplied=True, packets=(packets, 0)))
        c.replay()


# Clock values in ns, five seconds after which a counter of that width and unit wraps, as far as the
# time of a capture, from 1970 to 2106, can reach them.
UNITS = {'ns': 1, 'us': 1000, 'ms': MS, 's': SEC}
WRAPS = {f'2^{bits} {name}': 2**bits * unit - 5 * SEC
         for bits in (31, 32, 48) for name, unit in UNITS.items()
         if 5 * SEC <= 2**bits * unit <= (2**32 - 10) * SEC}


@pytest.mark.parametrize('name', ['zero', *WRAPS])
def test_b60_clock_at_a_wrap(case, name):
    """The whole life of an entry across it, and refreshed in the middle."""
    c = case(start=WRAPS.get(name, 0), knobs={'nf_conntrack_udp_timeout': 10})
    other = A(5001) > S(53)
    c.at(0).inside(udp(FLOW))
    c.at(1).inside(udp(other))
    c.at(4.999).entries(entry(FLOW, 'udp', left=5, unreplied=True),
                        entry(other, 'udp', left=6, unreplied=True))
    c.at(5).inside(udp(FLOW))
    c.at(6).entries(entry(FLOW, 'udp', left=9, unreplied=True),
                    entry(other, 'udp', left=5, unreplied=True))
    c.at(10.999).entries(entry(FLOW, 'udp', left=4, unreplied=True),
                         entry(other, 'udp', left=0, unreplied=True))
    c.at(11).entries(entry(FLOW, 'udp', left=4, unreplied=True))
    lives_until(c, 15 * SEC, entry(FLOW, 'udp', left=0, unreplied=True))
    c.replay()


@pytest.mark.parametrize('name', ['zero', *WRAPS])
def test_b60_established_across_a_wrap(case, name):
    c = case(start=WRAPS.get(name, 0))
    opened(c)
    c.at(1).entries(established())
    c.at(86400.005).entries(established(432000 - 86400))
    lives_until(c, 432000 * SEC + 5 * MS, tcp_entry('ESTABLISHED', 0, assured=True))
    c.replay()


def test_b60_many_packets_add_nothing(case):
    """It dies its timeout after the last packet, not after the sum of something."""
    c = case()
    frame = udp(FLOW)
    last = 0
    for i in range(3000):
        last = i * MS
        c.at(last / SEC).inside(frame)
    lives_until(c, last + 30 * SEC, entry(FLOW, 'udp', left=0, unreplied=True))
    c.replay()


def test_b60_a_fin_shortens_the_timer_at_once(case):
    c = case()
    opened(c)
    c.at(1).entries(established())
    c.at(1).inside(tcp(A(40000) > S(80), 'FA', seq=2001, ack=5001))
    lives_until(c, 121 * SEC, tcp_entry('FIN_WAIT', 0, assured=True))
    c.replay()


def test_changed_timeout_holds_from_the_next_packet(case):
    """As in the kernel: the deadline of what is there stays until a packet sets a new one."""
    c = case()
    other = A(5001) > S(53)
    c.at(0).inside(udp(FLOW))
    c.at(0).inside(udp(other))
    c.at(1).run('sysctl nf_conntrack_udp_timeout=100 netns T1')
    c.at(2).inside(udp(FLOW))
    c.at(3).entries(entry(FLOW, 'udp', left=99, unreplied=True),
                    entry(other, 'udp', left=27, unreplied=True))
    lives_until(c, 102 * SEC, entry(FLOW, 'udp', left=0, unreplied=True))
    c.replay()


def test_wall_clock_does_not_matter(case):
    """The same capture at two times, a day apart and on both sides of a wrap: the same result."""
    results = []
    for start in (START, START + 86400 * SEC, 2**32 * MS - 1):
        c = case(start=start)
        opened(c)
        c.at(2).run('conntrack list', results.append)
        c.replay()
    assert results[0] == results[1] == results[2]
