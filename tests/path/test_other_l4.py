# SPDX-License-Identifier: BSD-3-Clause
"""SCTP, GRE, and protocols without a machine of their own (B67)."""
import struct

import pytest
from scapy.all import (SCTP, Raw, SCTPChunkAbort, SCTPChunkCookieAck, SCTPChunkCookieEcho,
                       SCTPChunkData, SCTPChunkInit, SCTPChunkInitAck, SCTPChunkSACK,
                       SCTPChunkShutdown, SCTPChunkShutdownAck, SCTPChunkShutdownComplete,
                       SCTPChunkParamStateCookie)

from harness import entry
from packets import A, S, A6, S6, ether, patch

ASSOC = A(5000) > S(3868)
DROP = {'sluice.invalid': 'drop'}
COOKIE = SCTPChunkParamStateCookie(cookie=b'cookie!!')


def sctp(flow, tag, *chunks):
    packet = SCTP(sport=flow.src.port, dport=flow.dst.port, tag=tag)
    for chunk in chunks:
        packet /= chunk
    fields = {'nh': 132} if flow.v6 else {'proto': 132}
    return ether(flow.ip(**fields) / packet)


def init(tag):
    return SCTPChunkInit(init_tag=tag, a_rwnd=65535, n_out_streams=1, n_in_streams=1, init_tsn=1)


def init_ack(tag):
    return SCTPChunkInitAck(init_tag=tag, a_rwnd=65535, n_out_streams=1, n_in_streams=1,
                            init_tsn=1, params=[COOKIE])


def data(tsn):
    return SCTPChunkData(tsn=tsn, stream_id=0, stream_seq=0, data=b'data')


def associated(c, flow=ASSOC, at=0.0, tags=(1, 2)):
    """tags: of the two sides' own choosing; a packet carries the other side's."""
    ours, theirs = tags
    c.at(at).inside(sctp(flow, 0, init(ours)))
    c.at(at + .001).outside(sctp(~flow, ours, init_ack(theirs)))
    c.at(at + .002).inside(sctp(flow, theirs, SCTPChunkCookieEcho(cookie=b'cookie!!')))
    c.at(at + .003).outside(sctp(~flow, ours, SCTPChunkCookieAck()))


def sctp_entry(state, left=None, flow=ASSOC, **want):
    if left is not None:
        want['left'] = left
    return entry(flow, 'sctp', state=state, **want)


@pytest.mark.parametrize('flow', [ASSOC, A6(5000) > S6(3868)], ids=['ipv4', 'ipv6'])
def test_life_of_an_association(case, flow):
    c = case(knobs=DROP)
    c.at(0).inside(sctp(flow, 0, init(1)))
    c.at(1).entries(sctp_entry('CLOSED', 9, flow, unreplied=True))
    c.at(1).outside(sctp(~flow, 1, init_ack(2)))
    c.at(2).entries(sctp_entry('COOKIE_WAIT', 2, flow))
    c.at(2).inside(sctp(flow, 2, SCTPChunkCookieEcho(cookie=b'cookie!!')))
    c.at(3).entries(sctp_entry('COOKIE_ECHOED', 2, flow))
    c.at(3).outside(sctp(~flow, 1, SCTPChunkCookieAck()))
    c.at(4).entries(sctp_entry('ESTABLISHED', 209, flow, assured=True))
    c.at(4).inside(sctp(flow, 2, data(1)))
    c.at(4.1).outside(sctp(~flow, 1, SCTPChunkSACK(cumul_tsn_ack=1, a_rwnd=65535)))
    c.at(5).inside(sctp(flow, 2, SCTPChunkShutdown(cumul_tsn_ack=1)))
    c.at(6).entries(sctp_entry('SHUTDOWN_SENT', 2, flow, assured=True))
    c.at(6).outside(sctp(~flow, 1, SCTPChunkShutdownAck()))
    c.at(7).entries(sctp_entry('SHUTDOWN_ACK_SENT', 2, flow, assured=True))
    c.at(7).inside(sctp(flow, 2, SCTPChunkShutdownComplete()))
    c.at(8).entries(sctp_entry('CLOSED', 9, flow, assured=True))
    c.at(17).entries()
    c.replay()


def test_b67_init_collision(case):
    """Both sides send INIT before either hears: one association, established."""
    c = case(knobs=DROP)
    c.at(0).inside(sctp(ASSOC, 0, init(1)))
    c.at(.1).outside(sctp(~ASSOC, 0, init(9)))
    c.at(.2).inside(sctp(ASSOC, 9, init_ack(1)))
    c.at(.3).outside(sctp(~ASSOC, 1, init_ack(9)))
    c.at(.4).inside(sctp(ASSOC, 9, SCTPChunkCookieEcho(cookie=b'cookie!!')))
    c.at(.5).outside(sctp(~ASSOC, 1, SCTPChunkCookieAck()))
    c.at(1.5).entries(sctp_entry('ESTABLISHED', 209, assured=True))
    c.at(2).inside(sctp(ASSOC, 9, data(1)))
    c.at(2.1).outside(sctp(~ASSOC, 1, SCTPChunkSACK(cumul_tsn_ack=1, a_rwnd=65535)))
    c.replay()


def test_b67_abort_with_a_wrong_tag(case):
    """Ignored as by the endpoints; with the right one the association ends."""
    c = case(knobs=DROP)
    associated(c)
    c.at(1).outside(sctp(~ASSOC, 0xBAD, SCTPChunkAbort()), drop='invalid-sctp-tag')
    c.at(1.003).entries(sctp_entry('ESTABLISHED', 209, assured=True))
    c.at(2).outside(sctp(~ASSOC, 1, SCTPChunkAbort()))
    c.at(3).entries(sctp_entry('CLOSED', 9, assured=True))
    c.replay()


def test_b67_restart(case):
    """The peer has lost its state and opens again on the same ports, with new tags."""
    c = case(knobs=DROP)
    associated(c)
    c.at(1).inside(sctp(ASSOC, 0, init(11)))
    c.at(1.1).outside(sctp(~ASSOC, 11, init_ack(12)))
    c.at(1.2).inside(sctp(ASSOC, 12, SCTPChunkCookieEcho(cookie=b'cookie!!')))
    c.at(1.3).outside(sctp(~ASSOC, 11, SCTPChunkCookieAck()))
    c.at(2).inside(sctp(ASSOC, 12, data(1)))
    c.at(3).entries(sctp_entry('ESTABLISHED', 209, assured=True))
    c.replay()


def test_b67_two_associations_of_one_pair(case):
    c = case(knobs=DROP)
    other = A(5001) > S(3868)
    associated(c)
    associated(c, other, at=.1, tags=(7, 8))
    c.at(1).inside(sctp(ASSOC, 2, data(1)))
    c.at(1).inside(sctp(other, 8, data(1)))
    c.at(1).inside(sctp(other, 2, data(2)), drop='invalid-sctp-tag')
    c.at(2).entries(sctp_entry('ESTABLISHED', 209, assured=True),
                    sctp_entry('ESTABLISHED', 209, other, assured=True))
    c.replay()


def test_sctp_checksum(case):
    c = case(knobs=DROP)
    good = sctp(ASSOC, 0, init(1))
    c.at(0).inside(patch(good, 42, b'\0\0\0\0'), drop='invalid-l4-checksum')
    c.at(1).entries()
    c.replay()


@pytest.mark.parametrize('chunk', [SCTPChunkAbort(), SCTPChunkShutdownComplete(),
                                   SCTPChunkCookieAck(), init_ack(5)],
                         ids=['abort', 'shutdown-complete', 'cookie-ack', 'init-ack'])
def test_b19_lone_sctp(case, chunk):
    c = case(knobs=DROP)
    c.at(0).outside(sctp(~ASSOC, 5, chunk), drop='invalid-sctp-chunk')
    c.at(1).entries()
    c.replay()


# ---- protocols without ports ----

@pytest.mark.parametrize('proto, family', [(50, 4), (51, 4), (89, 4), (255, 4), (2, 4),
                                           (50, 6), (89, 6)])
def test_b67_protocols_tracked_by_address(case, proto, family):
    """ESP, AH, OSPF, IGMP and unknown ones: one entry for each pair of addresses, 600 s."""
    flow = A > S if family == 4 else A6 > S6
    fields = {'proto': proto} if family == 4 else {'nh': proto}
    body = struct.pack('!BBHIII', 59, 4, 0, 1, 2, 3) + bytes(8)
    c = case(knobs=DROP | {'nf_conntrack_acct': 1})
    c.at(0).inside(ether(flow.ip(**fields) / Raw(body)))
    c.at(1).outside(ether((~flow).ip(**fields) / Raw(body)))
    c.at(2).inside(ether(flow.ip(**fields) / Raw(body)))
    c.at(3).run('conntrack list netns T1', lambda result: check_generic(result, proto))
    c.at(601.999).run('conntrack count netns T1', lambda result: check_count(result, 1))
    c.at(602).run('conntrack count netns T1', lambda result: check_count(result, 0))
    c.replay()


def check_generic(result, proto):
    (item,) = result['items']
    assert (item['protonum'], item['timeout']) == (proto, 599)
    assert 'SEEN_REPLY' in item['status']
    assert [item[side]['packets'] for side in ('orig', 'reply')] == [2, 1]


def check_count(result, count):
    assert result['count'] == count


def test_gre(case):
    """Version 0 by address; version 1, PPTP, by call id in the direction that it has one in."""
    def gre(flow, call=None):
        if call is None:
            body = struct.pack('!HH', 0, 0x0800)
        else:
            body = struct.pack('!HHHHI', 0x3001, 0x880B, 4, call, 1)
        return ether(flow.ip(proto=47) / Raw(body + bytes(8)))
    c = case(knobs=DROP)
    c.at(0).inside(gre(A > S))
    c.at(1).entries(entry(A > S, 'gre', left=29, unreplied=True))
    c.at(1).outside(gre(S > A))
    c.at(2).inside(gre(A > S))
    c.at(3).entries(entry(A > S, 'gre', left=179, assured=True))
    c.at(4).inside(gre(A > S, call=1))
    c.at(4).inside(gre(A > S, call=2))
    c.at(5).run('conntrack count netns T1', lambda result: check_count(result, 3))
    c.at(5).inside(ether((A > S).ip(proto=47) / Raw(b'\x30')), drop='invalid-gre')
    c.replay()
