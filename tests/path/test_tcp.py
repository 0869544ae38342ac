# SPDX-License-Identifier: BSD-3-Clause
"""TCP: opening, closing, resets, retransmissions. Each case runs with sluice.invalid=drop, so that
what passes was part of its connection; some once more as the kernel does, where INVALID ones pass.

Sequence numbers are the absolute ones of the cases: A's next byte is 2001, S's is 5001."""
import pytest

from harness import entry, refused
from packets import A, S, A6, S6, tcp

FLOW = A(40000) > S(80)
OTHER = A(40001) > S(80)
DAYS5 = 432000

DROP = {'sluice.invalid': 'drop'}
ACCT = {'nf_conntrack_acct': 1}


def opened(c, flow=FLOW, at=0.0):
    """Three-way handshake and some data both ways, all of it acknowledged, within 10 ms."""
    c.at(at).inside(tcp(flow, 'S', seq=1000))
    c.at(at + .001).outside(tcp(~flow, 'SA', seq=4000, ack=1001))
    c.at(at + .002).inside(tcp(flow, 'A', seq=1001, ack=4001))
    c.at(at + .003).inside(tcp(flow, 'PA', seq=1001, ack=4001, data=bytes(1000)))
    c.at(at + .004).outside(tcp(~flow, 'PA', seq=4001, ack=2001, data=bytes(1000)))
    c.at(at + .005).inside(tcp(flow, 'A', seq=2001, ack=5001))


def data_both_ways(c, at, flow=FLOW, a=2001, s=5001):
    """One byte from each side, acknowledged: passes when the connection is unharmed."""
    c.at(at).inside(tcp(flow, 'PA', seq=a, ack=s, data=b'x'))
    c.at(at + .001).outside(tcp(~flow, 'PA', seq=s, ack=a + 1, data=b'y'))
    c.at(at + .002).inside(tcp(flow, 'A', seq=a + 1, ack=s + 1))


def tcp_entry(state, left=None, flow=FLOW, **want):
    if left is not None:
        want['left'] = left
    return entry(flow, 'tcp', state=state, **want)


def established(left=DAYS5 - 1, **want):
    return tcp_entry('ESTABLISHED', left, assured=True, **want)


@pytest.mark.parametrize('flow', [FLOW, A6(40000) > S6(80)], ids=['ipv4', 'ipv6'])
def test_life_of_a_connection(case, flow):
    c = case(knobs=DROP | ACCT)
    c.at(0).inside(tcp(flow, 'S', seq=1000))
    c.at(1).entries(tcp_entry('SYN_SENT', 119, flow, unreplied=True, packets=(1, 0)))
    c.at(1).outside(tcp(~flow, 'SA', seq=4000, ack=1001))
    c.at(2).entries(tcp_entry('SYN_RECV', 59, flow, packets=(1, 1)))
    c.at(2).inside(tcp(flow, 'A', seq=1001, ack=4001))
    c.at(3).entries(established(flow=flow, packets=(2, 1)))
    c.at(3).inside(tcp(flow, 'PA', seq=1001, ack=4001, data=bytes(100)))
    c.at(4).entries(established(299, flow=flow))     # not acknowledged
    c.at(4).outside(tcp(~flow, 'A', seq=4001, ack=1101))
    c.at(5).entries(established(flow=flow))
    c.at(5).inside(tcp(flow, 'FA', seq=1101, ack=4001))
    c.at(6).entries(tcp_entry('FIN_WAIT', 119, flow, assured=True))
    c.at(6).outside(tcp(~flow, 'A', seq=4001, ack=1102))
    c.at(7).entries(tcp_entry('CLOSE_WAIT', 59, flow, assured=True))
    c.at(7).outside(tcp(~flow, 'FA', seq=4001, ack=1102))
    c.at(8).entries(tcp_entry('LAST_ACK', 29, flow, assured=True))
    c.at(8).inside(tcp(flow, 'A', seq=1102, ack=4002))
    c.at(9).entries(tcp_entry('TIME_WAIT', 119, flow, assured=True, packets=(5, 4)))
    c.at(127.999).entries(tcp_entry('TIME_WAIT', 0, flow, assured=True))
    c.at(128).entries()
    c.replay()


def test_opened_from_outside(case):
    """A wire has no inside: the original direction is that of the SYN."""
    c = case(knobs=DROP)
    c.at(0).outside(tcp(~FLOW, 'S', seq=4000))
    c.at(.1).inside(tcp(FLOW, 'SA', seq=1000, ack=4001))
    c.at(.2).outside(tcp(~FLOW, 'A', seq=4001, ack=1001))
    c.at(1.2).entries(established(flow=~FLOW))
    c.replay()


# ---- B13: resets ----

def test_b13_inexact_reset_within_the_window(case):
    """(a) The connection lives on for minutes: the challenge ACK brings an exact reset, if any."""
    c = case(knobs=DROP)
    opened(c)
    c.at(1).outside(tcp(~FLOW, 'R', seq=5101))
    c.at(2).run('conntrack list netns T1', lambda result: check_alive(result, 120))
    data_both_ways(c, 3)
    c.at(4.002).entries(established())
    c.replay()


def check_alive(result, least):
    (item,) = result['items']
    assert item['state'] == 'ESTABLISHED' and item['timeout'] >= least


@pytest.mark.parametrize('invalid', ['auto', 'drop'])
def test_b13_reset_outside_of_the_window(case, invalid):
    """(b) INVALID, whoever sends it and wherever it lies, and the connection is as before."""
    c = case(knobs={'sluice.invalid': invalid})
    opened(c)
    for i, seq in enumerate((5001 + 2**20, 5001 - 2**20, 5001 + 2**31)):
        c.at(1 + i).outside(tcp(~FLOW, 'R', seq=seq), **refused(invalid, 'invalid-tcp-rst'))
    c.at(5.005).entries(established(DAYS5 - 5))
    data_both_ways(c, 6)
    c.replay()


def test_b13_syn_then_bad_reset_of_the_same_side(case):
    """(c) The reset is not the answer to that SYN."""
    c = case(knobs=DROP)
    opened(c)
    c.at(1).inside(tcp(FLOW, 'S', seq=9999))
    c.at(2).inside(tcp(FLOW, 'R', seq=77777, ack=10000))
    c.at(2).inside(tcp(FLOW, 'RA', seq=77777, ack=10000), drop='invalid-tcp-rst')
    c.at(3).run('conntrack list netns T1', lambda result: check_alive(result, 120))
    data_both_ways(c, 4)
    c.at(5.002).entries(established())
    c.replay()


@pytest.mark.parametrize('from_inside', [False, True])
def test_b13_exact_reset_closes(case, from_inside):
    """(d)"""
    c = case(knobs=DROP)
    opened(c)
    if from_inside:
        c.at(1).inside(tcp(FLOW, 'R', seq=2001))
    else:
        c.at(1).outside(tcp(~FLOW, 'R', seq=5001))
    c.at(2).entries(tcp_entry('CLOSE', 9, assured=True))
    c.at(10.999).entries(tcp_entry('CLOSE', 0, assured=True))
    c.at(11).entries()
    c.replay()


def test_b13_reset_after_both_fins(case):
    """(e) Still part of the connection."""
    c = case(knobs=DROP)
    opened(c)
    c.at(1).inside(tcp(FLOW, 'FA', seq=2001, ack=5001))
    c.at(1.1).outside(tcp(~FLOW, 'FA', seq=5001, ack=2002))
    c.at(2).outside(tcp(~FLOW, 'R', seq=5101))
    c.at(3).entries(tcp_entry('CLOSE', 9, assured=True))
    c.replay()


def test_reset_answers_syn(case):
    """Connection refused: a RST+ACK that acknowledges the SYN removes the entry or closes it."""
    c = case(knobs=DROP)
    c.at(0).inside(tcp(FLOW, 'S', seq=1000))
    c.at(1).outside(tcp(~FLOW, 'RA', seq=0, ack=1001))
    c.at(12).entries()
    c.at(13).inside(tcp(FLOW, 'S', seq=3000))
    c.at(14).entries(tcp_entry('SYN_SENT', 119, unreplied=True))
    c.replay()


# ---- B15: SYN on an established connection ----

def reopened(c, at):
    c.at(at).inside(tcp(FLOW, 'S', seq=900000))
    c.at(at + 1).entries(tcp_entry('SYN_SENT', 119, unreplied=True))


def finish_reopening(c, at):
    c.at(at).outside(tcp(~FLOW, 'SA', seq=70000, ack=900001))
    c.at(at + .5).entries(tcp_entry('SYN_RECV', 59))
    c.at(at + 1).inside(tcp(FLOW, 'A', seq=900001, ack=70001))
    c.at(at + 2).entries(established())
    data_both_ways(c, at + 3, a=900001, s=70001)


def challenged(c):
    """The client has lost its state and connects again; the server challenges the SYN."""
    opened(c)
    c.at(1).inside(tcp(FLOW, 'S', seq=900000))
    c.at(2).outside(tcp(~FLOW, 'A', seq=5001, ack=2001))


def test_b15_challenge_ack_then_reset_then_reuse(case):
    c = case(knobs=DROP)
    challenged(c)
    c.at(2.5).run('conntrack list netns T1', lambda result: check_alive(result, 1))
    c.at(3).inside(tcp(FLOW, 'R', seq=2001))
    c.at(3.5).entries(tcp_entry('CLOSE', 9, assured=True))
    reopened(c, 4)
    finish_reopening(c, 6)
    c.replay()


def test_b15_the_real_client_goes_on(case):
    """The SYN was spoofed: the connection is unharmed."""
    c = case(knobs=DROP)
    challenged(c)
    data_both_ways(c, 3)
    c.at(4.002).entries(established())
    c.replay()


def test_b15_old_syn_ack_sets_no_window(case):
    c = case(knobs=DROP)
    challenged(c)
    c.at(3).inside(tcp(FLOW, 'R', seq=2001))
    reopened(c, 4)
    c.at(5.5).outside(tcp(~FLOW, 'SA', seq=123, ack=555))
    c.at(5.6).entries(tcp_entry('SYN_SENT', 118))
    finish_reopening(c, 6)
    c.replay()


def test_b15_challenge_in_last_ack(case):
    """The challenge ACK is not the last ACK."""
    c = case(knobs=DROP)
    opened(c)
    c.at(.1).inside(tcp(FLOW, 'FA', seq=2001, ack=5001))
    c.at(.2).outside(tcp(~FLOW, 'A', seq=5001, ack=2002))
    c.at(.3).outside(tcp(~FLOW, 'FA', seq=5001, ack=2002))
    c.at(.4).entries(tcp_entry('LAST_ACK', 29, assured=True))
    c.at(1).inside(tcp(FLOW, 'S', seq=900000))
    c.at(2).outside(tcp(~FLOW, 'A', seq=5002, ack=2002))
    c.at(3).run('conntrack list netns T1', lambda result: check_state(result, 'LAST_ACK'))
    c.replay()


def check_state(result, state):
    (item,) = result['items']
    assert item['state'] == state


def test_syn_in_time_wait_opens_again(case):
    c = case(knobs=DROP)
    opened(c)
    c.at(.1).inside(tcp(FLOW, 'FA', seq=2001, ack=5001))
    c.at(.2).outside(tcp(~FLOW, 'FA', seq=5001, ack=2002))
    c.at(.3).inside(tcp(FLOW, 'A', seq=2002, ack=5002))
    c.at(.4).entries(tcp_entry('TIME_WAIT', 119, assured=True))
    reopened(c, 4)
    finish_reopening(c, 6)
    c.replay()


# ---- B17: no reply ----

def test_b17_unreplied_syn_has_a_fixed_deadline(case):
    """A SYN each second, never answered: the entry ends 120 s after the first; the next makes
    another. Repetitions do not count, as in the kernel."""
    c = case(knobs=DROP | ACCT)
    for i in range(125):
        c.at(i).inside(tcp(FLOW, 'S', seq=1000))
    c.at(60.5).entries(tcp_entry('SYN_SENT', 59, unreplied=True, packets=(1, 0)))
    c.at(119.5).entries(tcp_entry('SYN_SENT', 0, unreplied=True, packets=(1, 0)))
    c.at(120.5).entries(tcp_entry('SYN_SENT', 119, unreplied=True, packets=(1, 0)))
    c.replay()


# ---- B20: closing ----

def test_b20_half_closed_download(case):
    """(a) Data keeps CLOSE_WAIT alive for ten minutes; the FIN at its end is delivered."""
    c = case(knobs=DROP)
    opened(c)
    c.at(1).inside(tcp(FLOW, 'FA', seq=2001, ack=5001))
    c.at(1.1).outside(tcp(~FLOW, 'A', seq=5001, ack=2002))
    for i in range(20):
        c.at(30 + 30 * i).outside(tcp(~FLOW, 'PA', seq=5001 + i * 500, ack=2002, data=bytes(500)))
        c.at(30.1 + 30 * i).inside(tcp(FLOW, 'A', seq=2002, ack=5501 + i * 500))
    c.at(601).entries(tcp_entry('CLOSE_WAIT', 59, assured=True))
    c.at(602).outside(tcp(~FLOW, 'FA', seq=15001, ack=2002))
    c.at(602.5).entries(tcp_entry('LAST_ACK', 29, assured=True))
    c.at(603).inside(tcp(FLOW, 'A', seq=2002, ack=15002))
    c.at(604).entries(tcp_entry('TIME_WAIT', 119, assured=True))
    c.replay()


def test_b20_fin_ack_ack_reset(case):
    """(b) A transitory timer at once, for each step of this order too."""
    c = case(knobs=DROP)
    opened(c)
    c.at(1).outside(tcp(~FLOW, 'FA', seq=5001, ack=2001))
    c.at(1.5).entries(tcp_entry('FIN_WAIT', 119, assured=True))
    c.at(2).inside(tcp(FLOW, 'A', seq=2001, ack=5002))
    c.at(2.1).inside(tcp(FLOW, 'A', seq=2001, ack=5002))
    c.at(2.5).entries(tcp_entry('CLOSE_WAIT', 59, assured=True))
    c.at(3).inside(tcp(FLOW, 'RA', seq=2001, ack=5002))
    c.at(4).entries(tcp_entry('CLOSE', 9, assured=True))
    c.replay()


def test_b20_simultaneous_close(case):
    """(c) Both FINs in one flight."""
    c = case(knobs=DROP)
    opened(c)
    c.at(1).inside(tcp(FLOW, 'FA', seq=2001, ack=5001))
    c.at(1.01).outside(tcp(~FLOW, 'FA', seq=5001, ack=2001))
    c.at(1.02).inside(tcp(FLOW, 'A', seq=2002, ack=5002))
    c.at(1.03).outside(tcp(~FLOW, 'A', seq=5002, ack=2002))
    c.at(2.03).entries(tcp_entry('TIME_WAIT', 119, assured=True))
    c.replay()


def test_b20_last_ack_lost(case):
    """(d) The FIN is retransmitted five times, and acknowledged each time."""
    c = case(knobs=DROP)
    opened(c)
    c.at(1).inside(tcp(FLOW, 'FA', seq=2001, ack=5001))
    c.at(1.1).outside(tcp(~FLOW, 'A', seq=5001, ack=2002))
    for i in range(6):
        c.at(2 + i).outside(tcp(~FLOW, 'FA', seq=5001, ack=2002))
        c.at(2.1 + i).inside(tcp(FLOW, 'A', seq=2002, ack=5002))
        c.at(2.2 + i).entries(tcp_entry('TIME_WAIT', 119, assured=True))
    c.replay()


# ---- B21: simultaneous open ----

@pytest.mark.parametrize('first', ['inside', 'outside'])
def test_b21_simultaneous_open(case, first):
    c = case(knobs=DROP)
    flow = A(40000) > S(40000)
    syns = [('inside', tcp(flow, 'S', seq=1000)), ('outside', tcp(~flow, 'S', seq=5000))]
    orig = flow if first == 'inside' else ~flow
    if first == 'outside':
        syns.reverse()
    getattr(c.at(0), syns[0][0])(syns[0][1])
    c.at(1).entries(tcp_entry('SYN_SENT', 119, orig, unreplied=True))
    getattr(c.at(2), syns[1][0])(syns[1][1])
    c.at(3).entries(tcp_entry('SYN_SENT2', 117, orig))   # a SYN renews no timer of SYN_SENT
    c.at(4).inside(tcp(flow, 'SA', seq=1000, ack=5001))
    c.at(5).outside(tcp(~flow, 'SA', seq=5000, ack=1001))
    c.at(6).inside(tcp(flow, 'A', seq=1001, ack=5001))
    c.at(7).outside(tcp(~flow, 'A', seq=5001, ack=1001))
    c.at(8).entries(established(flow=orig))
    data_both_ways(c, 9, flow=flow, a=1001, s=5001)
    c.replay()


# ---- B19: packets that must make no entry ----

LONE = {
    'rst': ('R', 'invalid-tcp-state'),
    'syn-ack': ('SA', 'invalid-tcp-state'),
    'fin-ack': ('FA', 'invalid-tcp-state'),
    'fin': ('F', 'invalid-tcp-flags'),
    'no flags': ('', 'invalid-tcp-flags'),
    'syn-fin': ('SF', 'invalid-tcp-flags'),
    'syn-rst': ('SR', 'invalid-tcp-flags'),
    'all flags': ('FSRPAUEC', 'invalid-tcp-flags'),
}


@pytest.mark.parametrize('name', LONE)
@pytest.mark.parametrize('invalid', ['auto', 'kernel', 'drop'])
def test_b19_lone_segments(case, name, invalid):
    """No entry, from either side; forwarded as the kernel does, or dropped."""
    flags, reason = LONE[name]
    c = case(knobs={'sluice.invalid': invalid})
    c.at(0).inside(tcp(FLOW, flags, seq=1, ack=1), **refused(invalid, reason))
    c.at(0).outside(tcp(~OTHER, flags, seq=1, ack=1), **refused(invalid, reason))
    c.at(1).entries()
    c.replay()


@pytest.mark.parametrize('loose', [0, 1])
def test_lone_ack_is_picked_up_when_loose(case, loose):
    c = case(knobs=DROP | {'nf_conntrack_tcp_loose': loose})
    verdict = {} if loose else {'drop': 'invalid-tcp-state'}
    c.at(0).inside(tcp(FLOW, 'A', seq=77, ack=99), **verdict)
    if loose:
        c.at(1).entries(tcp_entry('ESTABLISHED', 299, unreplied=True))
        c.at(1).outside(tcp(~FLOW, 'A', seq=99, ack=78))
        c.at(2).run('conntrack list netns T1', lambda result: check_state(result, 'ESTABLISHED'))
    else:
        c.at(1).entries()
    c.replay()


@pytest.mark.parametrize('invalid', ['auto', 'drop'])
def test_data_outside_of_the_window(case, invalid):
    """Above it: INVALID. Below: a late repetition of what was acknowledged, which passes. Neither
    moves the connection."""
    c = case(knobs={'sluice.invalid': invalid})
    opened(c)
    c.at(1).inside(tcp(FLOW, 'PA', seq=2001 - 2**20, ack=5001, data=b'x'))
    c.at(1.1).outside(tcp(~FLOW, 'PA', seq=5001 + 2**20, ack=2001, data=b'x'),
                      **refused(invalid, 'invalid-tcp-window'))
    c.at(2.005).entries(established(DAYS5 - 2))
    data_both_ways(c, 3)
    c.replay()


def test_sequence_numbers_wrap(case):
    """The connection goes through 2^32 in both directions."""
    c = case(knobs=DROP)
    a, s = 2**32 - 500, 2**32 - 700
    c.at(0).inside(tcp(FLOW, 'S', seq=a - 1))
    c.at(.1).outside(tcp(~FLOW, 'SA', seq=s - 1, ack=a))
    c.at(.2).inside(tcp(FLOW, 'A', seq=a, ack=s))
    for i in range(5):
        c.at(1 + i).inside(tcp(FLOW, 'PA', seq=a + 200 * i, ack=s + 300 * i, data=bytes(200)))
        c.at(1.1 + i).outside(tcp(~FLOW, 'PA', seq=s + 300 * i, ack=a + 200 * (i + 1),
                                  data=bytes(300)))
    c.at(6).inside(tcp(FLOW, 'A', seq=a + 1000, ack=s + 1500))
    c.at(7).entries(established())
    c.replay()


def test_window_scaling(case):
    """A window of 65535 << 14 is honoured, and only when both sides offered scaling."""
    c = case(knobs=DROP)
    scaled, plain = FLOW, OTHER
    for flow, option in ((scaled, [('WScale', 14)]), (plain, [])):
        c.at(0).inside(tcp(flow, 'S', seq=1000, options=[('WScale', 14)]))
        c.at(.1).outside(tcp(~flow, 'SA', seq=4000, ack=1001, options=option))
        c.at(.2).inside(tcp(flow, 'A', seq=1001, ack=4001))
    far = 4001 + 10 * 2**20
    c.at(1).outside(tcp(~scaled, 'PA', seq=far, ack=1001, data=b'x'))
    c.at(1).outside(tcp(~plain, 'PA', seq=far, ack=1001, data=b'x'), drop='invalid-tcp-window')
    c.replay()


def test_checksum(case):
    """A wrong sum is INVALID, counts as such and moves no state; with nf_conntrack_checksum=0
    nobody looks."""
    def counted(number):
        def check(result):
            assert sum(item['invalid'] for item in result['items']) == number
        return check

    for knob in (1, 0):
        c = case(knobs=DROP | {'nf_conntrack_checksum': knob})
        c.at(0).inside(tcp(FLOW, 'S', seq=1000, chksum=1),
                       **({'drop': 'invalid-l4-checksum'} if knob else {}))
        c.at(1).entries(*([] if knob else [tcp_entry('SYN_SENT', 119, unreplied=True)]))
        c.at(1).run('stats', counted(knob))
        c.replay()
