# SPDX-License-Identifier: BSD-3-Clause
"""Fragments on connections of the SYN proxy: of an open one they are translated as one segment, and
what is to become another segment does not come in fragments."""
import functools
import struct

import pytest
from scapy.all import TCP, Ether

from fragments import cut
from harness import entry
from packets import A, A6, B, S, S6, checksum, home, icmp_error, l3, patch, resum_ip, tcp
from test_synproxy import ALWAYS, C, FULL, N, NAT, NOP, P, STRICT, V, Talk, options, own, shifted

DATA = bytes(range(251)) * 4
FLOWS = {'v4': A(40000) > S(80), 'v6': A6(40000) > S6(80)}
# The header, with timestamps, has 32 bytes; 20 must be in the first fragment of IPv6 (RFC 8200).
CUTS = [(8, 16), (24, 8, 600), (32,), (600, 200)]
SERVER = {'mss': 1460, 'scale': 9, 'stamp': 5}
FAMILIES = pytest.mark.parametrize('family', FLOWS)


def train(c, at, port, whole, becomes, cuts, backwards=False):
    """Fragments of `whole`, all of which leave as those of `becomes` when the last one has come."""
    ident = round(at * 1000)
    come, go = cut(whole, *cuts, ident=ident), cut(becomes, *cuts, ident=ident)
    last = waits(c, at, port, *(reversed(come) if backwards else come))
    c.departures += [(last, c.peer[port], frame) for frame in go]


def waits(c, at, port, *frames):
    """They come, and what happens then is said elsewhere. Returns when the last one did."""
    for i, frame in enumerate(frames):
        moment = c.at(at + i / 1000)
        c.arrivals.append((moment.ns, port, frame))
    return moment.ns


def refused(c, at, port, whole, reason, *, back=()):
    frames = cut(whole, 24, 8, ident=round(at * 1000))
    last = waits(c, at, port, *frames)
    c.drops[reason] = c.drops.get(reason, 0) + len(frames)
    c.departures += [(last, port, frame) for frame in back]


MSS = {'v4': 536, 'v6': 1220}  # of a client that offers none


def proved(t):
    """Up to where the server is to answer."""
    t.case.at(0).inside(t.syn(), back=[t.synack()])
    t.case.at(.01).inside(t.proof(), becomes=t.made_syn(1460))
    return t.case


@FAMILIES
@pytest.mark.parametrize('backwards', [False, True], ids=['', 'backwards'])
def test_translated(case, family, backwards):
    """Both ways, wherever the header is cut: numbers, timestamps and windows in one fragment or
    across two, and the sum over all of it."""
    t = Talk(case, flow=FLOWS[family], client=FULL, server=SERVER)
    c = t.opens()
    up, down = C + 1, N + 1
    for i, cuts in enumerate(CUTS[t.flow.v6:]):
        at = .1 + i / 10
        train(c, at, 'in', t.up('PA', up, t.cookie + 1 + down - N - 1, DATA, win=700,
                                stamp=(9100 + i, t.clock + 20)),
              t.up('PA', up, down, DATA, win=700, stamp=(9100 + i, 25)), cuts, backwards)
        up += len(DATA)
        train(c, at + .05, 'out', t.down('A', down, up, DATA, win=3000, stamp=(30 + i, 9100 + i)),
              t.down('A', down - N + t.cookie, up, DATA, near=True, win=shifted(3000, 2),
                     stamp=(t.clock + 25 + i, 9100 + i)), cuts, backwards)
        down += len(DATA)
    c.at(1).entries(entry(t.flow, 'tcp', state='ESTABLISHED', assured=True))
    c.replay()


@FAMILIES
def test_options_at_odd_places(case, family):
    """Timestamps and SACK blocks that begin at an odd byte and end in another fragment."""
    t = Talk(case, flow=FLOWS[family], client=FULL, server=FULL | {'scale': 7})
    c = t.opens()
    for i in (0, 2):
        c.at(.03 + i / 1000).outside(
            t.down('A', N + 1 + 100 * i, C + 1, b'x' * 100, win=100, stamp=(9020, 9001)),
            becomes=t.down('A', t.cookie + 1 + 100 * i, C + 1, b'x' * 100, win=100, near=True,
                           stamp=(t.clock + 20, 9001)))

    def sacks(base, clock):
        return [NOP, ('Timestamp', (9040, clock)), NOP, NOP,
                ('SAck', tuple((base + n) % 2**32 for n in (201, 301)))]

    for i, cuts in enumerate([(24, 8), (24, 24), (40,)]):
        seq = C + 1 + i * len(DATA)
        train(c, .1 + i / 10, 'in',
              t.up('A', seq, t.cookie + 101, DATA, options=sacks(t.cookie, t.clock + 20)),
              t.up('A', seq, N + 101, DATA, options=sacks(N, 9020)), cuts)
    c.replay()


def numbered(output, port):
    """What left, with datagrams that the gateway has numbered numbered as they came: in each the
    fragments have the same number, and no two datagrams have."""
    out, ids = [], {}
    for ns, frame in output(port):
        number, field = struct.unpack('!HH', frame[18:22])
        if field & 0x3fff:
            assert ids.setdefault(ns, number) == number and list(ids.values()).count(number) == 1
            frame = resum_ip(patch(frame, 18, struct.pack('!H', (ns // 10**8) * 100)))
        out.append((ns, frame))
    return out


def test_translated_addresses(case):
    """Numbers, addresses and ports at once."""
    t = Talk(case, flow=A(40000) > V(80), far=P(40000) > S(8080), client=FULL, server=SERVER,
             config=NAT)
    c = t.opens()
    for i, cuts in enumerate(CUTS):
        seq = C + 1 + i * len(DATA)
        train(c, .1 + i / 10, 'in', t.up('A', seq, t.cookie + 1, DATA, stamp=(9100, t.clock)),
              t.up('A', seq, N + 1, DATA, stamp=(9100, 5), far=True), cuts)
    train(c, .6, 'out', t.down('A', N + 1, C + 1, DATA, stamp=(25, 9001)),
          t.down('A', t.cookie + 1, C + 1, DATA, near=True, win=65535, stamp=(t.clock + 20, 9001)),
          CUTS[0])
    c.departures = [(ns, port, home(frame) if port == 'in' and ns > 15_000_000 else frame)
                    for ns, port, frame in c.departures]
    c.output = functools.partial(numbered, c.output)
    c.replay()


@FAMILIES
def test_out_of_the_window(case, family):
    """What is INVALID and passes is translated too."""
    t = Talk(case, flow=FLOWS[family])
    c = t.opens(mss=MSS[family])
    far = N + 1_000_000
    train(c, .1, 'out', t.down('A', far, C + 1, DATA),
          t.down('A', far - N + t.cookie, C + 1, DATA, near=True), (24, 8))
    c.replay()


@FAMILIES
def test_broken_ones(case, family):
    """Overlapping, with a wrong sum, or never whole: none leaves, and the connection goes on."""
    t = Talk(case, flow=FLOWS[family], knobs=ALWAYS | {'sluice.invalid': 'drop'})
    c = t.opens(mss=MSS[family])
    sent = t.up('A', C + 1, t.cookie + 1, DATA)
    first, second, third = cut(sent, 400, 400)
    waits(c, .1, 'in', first, cut(sent, 392, 400)[1])
    c.drops['frag-overlap'] = 2
    bad = cut(patch(sent, len(sent) - 9, b'\xff\xfe'), 24, 8, ident=2)
    waits(c, .2, 'in', *bad)
    c.drops['invalid-l4-checksum'] = 3
    waits(c, .3, 'in', *cut(sent, 400, 400, ident=3)[1:])
    c.drops['frag-timeout'] = 2
    whole = cut(sent, 400, 400, ident=4), cut(t.up('A', C + 1, N + 1, DATA), 400, 400, ident=4)
    last = waits(c, .4, 'in', *whole[0])
    c.departures += [(last, 'out', frame) for frame in whole[1]]
    c.at(100).entries(entry(t.flow, 'tcp', state='ESTABLISHED', assured=True))
    c.replay()


def test_syn_with_data(case):
    """A cookie is for its header, which the fragments have between them."""
    t = Talk(case, client=FULL)
    offer = FULL | {'stamp': (FULL['stamp'], 0)}
    waits(t.case, 0, 'in', *cut(tcp(t.flow, 'S', C, 0, DATA, options=options(**offer)), 8, 24))
    t.case._check_departures = lambda: None
    t.case.replay()
    (_, frame), = t.case.output('in')
    answer = Ether(frame)[TCP]
    assert (answer.flags, answer.ack, answer.window) == ('SA', C + 1, 0)
    assert dict(answer.options)['WScale'] == 7


@FAMILIES
def test_what_is_to_become_another_segment(case, family):
    """The proof, what follows it before the server has answered, and that answer."""
    t = Talk(case, flow=FLOWS[family], knobs=STRICT)
    c = t.case
    c.at(0).inside(t.syn(), back=[t.synack()])
    refused(c, .1, 'in', t.proof(data=DATA), 'syncookie-invalid')
    c.at(.2).inside(t.proof(), becomes=t.made_syn(MSS[family]))
    refused(c, .8, 'in', t.up('PA', C + 1, t.cookie + 1, DATA), 'synproxy-early')
    refused(c, .9, 'in', t.up('RA', C + 1, t.cookie + 1, DATA), 'synproxy-early')
    refused(c, 1, 'out', t.down('SA', N, C + 1, DATA), 'synproxy-early',
            back=[own(t.flow, 'R', C + 1)])
    c.at(1.1).entries(entry(t.flow, 'tcp', state='SYN_SENT', unreplied=True))
    t.answer(1.2)
    c.replay()


@FAMILIES
def test_server_refuses_at_length(case, family):
    """A RST may say why (RFC 9293, 3.5.3)."""
    t = Talk(case, flow=FLOWS[family], client=FULL)
    c = proved(t)
    train(c, .2, 'out', t.down('RA', 0, C + 1, b'no' * 100, win=0),
          t.down('RA', t.cookie + 1, C + 1, b'no' * 100, win=0, near=True), (24, 8))
    c.at(.3).entries()
    c.replay()


def test_icmp_error_in_fragments(case):
    t = Talk(case)
    c = t.opens(mss=536)
    c.at(.03).outside(t.down('A', N + 1, C + 1, DATA[:500]),
                      becomes=t.down('A', t.cookie + 1, C + 1, DATA[:500], near=True))

    def error(sent):
        return icmp_error(B > S, 3, 4, l3(sent), nexthopmtu=400)

    for i, cuts in enumerate([(8, 24), (32, 8), (48, 400)]):
        train(c, .1 + i / 10, 'in',
              error(t.down('A', t.cookie + 1, C + 1, DATA[:500], near=True)),
              error(t.down('A', N + 1, C + 1, DATA[:500])), cuts)
    c.replay()


def test_icmp_error_about_less_than_a_header(case):
    """What is behind the packet inside is not its checksum."""
    t = Talk(case)
    c = t.opens(mss=536)

    def error(sent):
        quoted = patch(l3(sent)[:28], 2, struct.pack('!H', 28))
        quoted = patch(quoted, 10, b'\0\0')
        quoted = patch(quoted, 10, struct.pack('!H', checksum(quoted[:20])))
        return icmp_error(B > S, 3, 4, quoted, extra=DATA[:40], nexthopmtu=400)

    c.at(.1).inside(error(t.down('A', t.cookie + 1, C + 1, near=True)),
                    becomes=error(t.down('A', N + 1, C + 1)))
    c.replay()
