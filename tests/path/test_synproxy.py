# SPDX-License-Identifier: BSD-3-Clause
"""The SYN proxy, segment by segment.

    client A                    gateway                     server S
      SYN seq=C ─────────────────▶
      ◀─────────── SYN/ACK seq=cookie, window 0
      ACK seq=C+1 ack=cookie+1 ──▶ SYN seq=C ────────────────▶
                                   ◀──────────────── SYN/ACK seq=N
      ◀─────── ACK seq=cookie+1 ── ── ACK seq=C+1 ack=N+1 ────▶

What is expected is reckoned here, from the cookie that a first replay of the SYN alone gives: the
same packets and the same time make the same cookie."""
import functools

import pytest
from scapy.all import IP, TCP, Ether, IPv6, raw

from harness import CONFIG, entry
from packets import (A, A6, B, MAC_IN, MAC_OUT, S, S6, Host, home, icmp_error, l3, tagged, tcp,
                     tcp_segment)

C, N = 0xfffffff0, 77_000_000  # first numbers of client and server
ALWAYS = {'sluice.syncookies': 2}
STRICT = ALWAYS | {'nf_conntrack_tcp_loose': 0}
NOP = ('NOP', None)
LEARNT = {}  # by SYN: the cookie and the timestamp of its answer


def options(mss=None, scale=None, sack=False, stamp=None):
    """TCP options in the order in which the gateway writes them."""
    out = []
    if mss is not None:
        out.append(('MSS', mss))
    if scale is not None:
        out += [NOP, ('WScale', scale)]
    if sack:
        out += [NOP, NOP, ('SAckOK', b'')]
    if stamp is not None:
        out += [NOP, NOP, ('Timestamp', stamp)]
    return out


def own(flow, flags, seq=0, ack=0, win=0, options=()):
    """A frame of the gateway's own: to where the one came from that it answers."""
    ip = (IPv6(src=flow.src.addr, dst=flow.dst.addr, hlim=64) if flow.v6 else
          IP(src=flow.src.addr, dst=flow.dst.addr, ttl=64, id=0, flags='DF'))
    return raw(Ether(src=MAC_OUT, dst=MAC_IN) / ip /
               tcp_segment(flow, flags, seq, ack, win=win, options=list(options)))


class Talk:
    """A client and a server, what each offers, and the gateway's promise."""

    def __init__(self, case, flow=A(40000) > S(80), client=None, server=None, knobs=None,
                 config=CONFIG, wrap=lambda frame: frame, far=None):
        """client, server: arguments of options(), with `stamp` the clock of each at the start.
        far: the flow as the server sees it. wrap: what all frames are wrapped in."""
        self.flow, self.far, self.wrap = flow, far or flow, lambda frame: frame
        self.client = client or {}
        self.server = server or {}
        self.make = lambda: case(config=config, knobs=knobs or ALWAYS)
        self.teacher = functools.partial(case, knobs=ALWAYS | {
            key: value for key, value in (knobs or {}).items() if 'timestamp' in key})
        self.stamps = 'stamp' in self.client
        self.mss = 1440 if flow.v6 else 1460
        self.cookie, self.clock = self.learn()
        self.wrap = wrap
        self.case = self.make()

    def learn(self):
        """Of the answer to the SYN: the sequence number, and the timestamp."""
        key = (self.syn(), str(self.teacher.keywords['knobs']))
        if key not in LEARNT:
            case = self.teacher()
            case.at(0).inside(self.syn(), back=[])
            case._check_departures = lambda: None
            (_, frame), = case.replay().output('in')
            packet = Ether(frame)
            stamp = dict(packet[TCP].options).get('Timestamp', (0, 0))
            LEARNT[key] = packet[TCP].seq, stamp[0]
        return LEARNT[key]

    def up(self, flags, seq, ack, data=b'', stamp=None, far=False, **fields):
        flow = self.far if far else self.flow
        fields.setdefault('options', options(stamp=stamp))
        return self.wrap(tcp(flow, flags, seq, ack, data, **fields))

    def down(self, flags, seq, ack, data=b'', stamp=None, near=False, **fields):
        flow = ~self.flow if near else ~self.far
        fields.setdefault('options', options(stamp=stamp))
        return self.wrap(tcp(flow, flags, seq, ack, data, **fields))

    def syn(self):
        offer = dict(self.client)
        if self.stamps:
            offer['stamp'] = (offer['stamp'], 0)
        return self.wrap(tcp(self.flow, 'S', C, options=options(**offer)))

    def synack(self):
        keep = self.client if self.stamps else {}
        return self.wrap(own(~self.flow, 'SA', self.cookie, C + 1, options=options(
            self.mss, 7 if 'scale' in keep else None, 'sack' in keep,
            (self.clock, self.client['stamp']) if self.stamps else None)))

    def proof(self, win=500, data=b''):
        return self.up('A', C + 1, self.cookie + 1, data, win=win, stamp=self.stamp_up(1))

    def stamp_up(self, ms):
        """What the client writes so long after its SYN, before it has heard of the server."""
        return (self.client['stamp'] + ms, self.clock) if self.stamps else None

    def made_syn(self, mss, win=500, ms=1):
        keep = self.client if self.stamps else {}
        return self.wrap(tcp(self.far, 'S', C, win=min(win << keep.get('scale', 0), 65535),
                             options=options(mss, keep.get('scale'), 'sack' in keep,
                                             (self.client['stamp'] + ms, 0)
                                             if self.stamps else None)))

    def opens(self, mss=1460, at=0.0):
        """All of the handshake, in twenty milliseconds."""
        case = self.case
        case.at(at).inside(self.syn(), back=[self.synack()])
        case.at(at + .01).inside(self.proof(), becomes=self.made_syn(mss))
        self.answer(at + .02)
        return case

    def server_synack(self, seq=N, ack=C + 1):
        answer = dict(self.server)
        if 'stamp' in answer:
            answer['stamp'] = (answer['stamp'], self.client['stamp'] + 1)
        return self.down('SA', seq, ack, win=60000, options=options(**answer))

    def answer(self, at):
        """The server's SYN/ACK, and what comes of it."""
        stamp = self.server.get('stamp')
        scale = 7 if self.stamps and 'scale' in self.client else 0
        win = 500 if 'scale' in self.server else min(500 << self.client.get('scale', 0), 65535)
        ack = self.wrap(own(self.far, 'A', C + 1, N + 1,
                            500 if not self.stamps else win, options(
                                stamp=stamp and (self.client['stamp'] + 1, stamp))))
        update = self.down('A', self.cookie + 1, C + 1, near=True, win=60000 >> scale,
                           stamp=stamp and (self.clock, self.client['stamp'] + 1))
        self.case.at(at).outside(self.server_synack(), becomes=update, back=[ack])


FULL = {'mss': 1460, 'scale': 3, 'sack': True, 'stamp': 9000}
TALKS = {
    'all': (FULL, {'mss': 1460, 'scale': 7, 'sack': True, 'stamp': 0xfffffffe}, 1460, 0, 0),
    'larger scale': (FULL | {'mss': 1400}, {'mss': 1460, 'scale': 9, 'stamp': 5}, 1380, 2, 0),
    'smaller scale': (FULL, {'mss': 1460, 'scale': 2, 'stamp': 5}, 1460, -5, 0),
    'plain server': (FULL, {'mss': 1460}, 1460, -7, 3),
    'plain client': ({'mss': 1460, 'scale': 3, 'sack': True}, {'mss': 1460}, 1460, 0, 0),
    'no options': ({}, {}, 536, 0, 0),
}


def shifted(win, by):
    return min(win << by if by >= 0 else win >> -by, 65535)


@pytest.mark.parametrize('kind', TALKS)
def test_conversation(case, kind):
    client, server, mss, to_client, to_server = TALKS[kind]
    t = Talk(case, client=client, server=server)
    c = t.opens(mss)
    c.at(.015).entries(entry(t.flow, 'tcp', state='SYN_SENT', unreplied=True))
    c.at(.025).entries(entry(t.flow, 'tcp', state='ESTABLISHED', assured=True))
    both = t.stamps and 'stamp' in server
    clock = server.get('stamp', 0)

    def stamp(a, b):
        return (a % 2**32, b % 2**32) if both else None

    c.at(.03).inside(t.up('PA', C + 1, t.cookie + 1, b'GET', win=1000, stamp=stamp(9030, t.clock)),
                     becomes=t.up('PA', C + 1, N + 1, b'GET', win=shifted(1000, to_server),
                                  stamp=stamp(9030, clock)))
    c.at(.04).outside(t.down('PA', N + 1, C + 4, b'x' * 1000, win=3000,
                             stamp=stamp(clock + 20, 9030)),
                      becomes=t.down('PA', t.cookie + 1, C + 4, b'x' * 1000,
                                     win=shifted(3000, to_client), near=True,
                                     stamp=stamp(t.clock + 20, 9030)))
    c.at(.05).outside(t.down('FA', N + 1001, C + 4, win=3000, stamp=stamp(clock + 30, 9030)),
                      becomes=t.down('FA', t.cookie + 1001, C + 4, win=shifted(3000, to_client),
                                     near=True, stamp=stamp(t.clock + 30, 9030)))
    c.at(.06).inside(t.up('FA', C + 4, t.cookie + 1002, win=1000, stamp=stamp(9060, t.clock + 30)),
                     becomes=t.up('FA', C + 4, N + 1002, win=shifted(1000, to_server),
                                  stamp=stamp(9060, clock + 30)))
    c.at(.07).outside(t.down('A', N + 1002, C + 5, win=3000, stamp=stamp(clock + 50, 9060)),
                      becomes=t.down('A', t.cookie + 1002, C + 5, win=shifted(3000, to_client),
                                     near=True, stamp=stamp(t.clock + 50, 9060)))
    c.at(.08).entries(entry(t.flow, 'tcp', state='TIME_WAIT', assured=True))
    c.replay()


def test_ipv6(case):
    t = Talk(case, flow=A6(40000) > S6(80), client=FULL, server=FULL | {'scale': 7})
    t.opens()
    t.case.at(.03).inside(t.up('A', C + 1, t.cookie + 1, b'GET', stamp=(9030, t.clock)),
                          becomes=t.up('A', C + 1, N + 1, b'GET', stamp=(9030, 9000)))
    t.case.replay()


def test_sack_blocks(case):
    """The client has holes in what it got of the server."""
    t = Talk(case, client=FULL, server=FULL | {'scale': 7})
    c = t.opens()
    for i in (0, 2, 4):
        c.at(.03 + i / 1000).outside(
            t.down('A', N + 1 + 100 * i, C + 1, b'x' * 100, win=100, stamp=(9020, 9001)),
            becomes=t.down('A', t.cookie + 1 + 100 * i, C + 1, b'x' * 100, win=100, near=True,
                           stamp=(t.clock + 20, 9001)))

    def blocks(base):
        edges = (base + 401, base + 501, base + 201, base + 301)
        return [NOP, NOP, ('Timestamp', (9040, t.clock + 20 if base == t.cookie else 9020)), NOP,
                NOP, ('SAck', tuple(e % 2**32 for e in edges))]

    c.at(.05).inside(t.up('A', C + 1, t.cookie + 101, options=blocks(t.cookie)),
                     becomes=t.up('A', C + 1, N + 101, options=blocks(N)))
    c.replay()


def test_vlan_tags_are_kept(case):
    config = CONFIG.replace('port in netns', 'port in vlan 7 netns').replace(
        'port out netns', 'port out vlan 9.20 netns')
    wan = [(0x88a8, 9), (0x8100, 20)]
    t = Talk(case, config=config, wrap=lambda frame: tagged(frame, (0x8100, 0xa007)))
    c = t.case
    c.at(0).inside(t.syn(), back=[t.synack()])
    proof, syn = t.proof(), tcp(t.flow, 'S', C, win=500, options=options(536))
    c.at(.01).inside(proof, becomes=tagged(syn, (0x88a8, 0xa009), (0x8100, 0xa014)))
    t.wrap = lambda frame: frame
    synack = tagged(t.server_synack(), *wan)
    ack = tagged(own(t.flow, 'A', C + 1, N + 1, 500), *wan)
    update = tagged(t.down('A', t.cookie + 1, C + 1, near=True, win=60000), (0x8100, 7))
    c.at(.02).outside(synack, becomes=update, back=[ack])
    c.replay()


def test_syns_cost_nothing(case):
    """Neither an entry nor what a rule counts."""
    config = CONFIG + 'rule add T1 forward ct count over 1 by ip saddr drop\n'
    t = Talk(case, config=config)
    c = t.case
    for i in range(40):
        c.at(i / 10).inside(t.syn(), back=[t.synack()])
    c.at(4).entries()
    c.at(4).run('stats netns T1', lambda result: check_cookies(result, sent=40))
    c.at(4).run('connlimit list netns T1', lambda result: result['count'] == 0 or 1 / 0)
    c.replay()


def check_cookies(result, **want):
    item, = result['items']
    got = {key: item[f'cookies_{key}'] for key in ('sent', 'valid', 'invalid')}
    assert got == {'sent': 0, 'valid': 0, 'invalid': 0} | want


# ---- before the server has answered ----

def test_segments_before_the_answer(case):
    """Data waits; the SYN is repeated with what the client repeats, but not at once."""
    t = Talk(case, client=FULL, server=FULL)
    c = t.case
    c.at(0).inside(t.syn(), back=[t.synack()])
    c.at(.1).inside(t.proof(), becomes=t.made_syn(1460))
    data = t.up('PA', C + 1, t.cookie + 1, b'GET', win=600, stamp=t.stamp_up(2))
    c.at(.2).inside(data, drop='synproxy-early')
    c.at(.7).inside(data, becomes=t.made_syn(1460, 600, ms=2))
    c.at(.75).inside(data, drop='synproxy-early')
    fin = t.up('FA', C + 4, t.cookie + 1, win=700, stamp=t.stamp_up(3))
    c.at(1.3).inside(fin, becomes=t.made_syn(1460, 700, ms=3))
    # of another: neither its number nor its acknowledgement is the client's
    c.at(2).inside(t.up('A', C + 100_000, t.cookie + 1), drop='synproxy-early')
    c.at(2).inside(t.up('A', C + 1, t.cookie + 2), drop='synproxy-early')
    c.at(2.1).entries(entry(t.flow, 'tcp', state='SYN_SENT', unreplied=True))
    c.replay()


def test_repeated_syn_is_the_one_that_was_made(case):
    """The client's own has a window scale, which nobody has promised."""
    t = Talk(case, client={'mss': 1460, 'scale': 3})
    c = t.case
    c.at(0).inside(t.syn(), back=[t.synack()])
    c.at(.1).inside(t.proof(), becomes=t.made_syn(1460))
    c.at(1).inside(t.syn(), becomes=t.made_syn(1460))
    c.replay()


def test_client_begins_anew_before_the_answer(case):
    t = Talk(case)
    c = t.case
    c.at(0).inside(t.syn(), back=[t.synack()])
    c.at(.1).inside(t.proof(), becomes=t.made_syn(536))
    c._check_departures = lambda: None
    c.at(1).inside(tcp(t.flow, 'S', 5000), back=[])
    c.at(2).entries()
    c.replay()
    packet = Ether(c.output('in')[-1][1])
    assert (packet[TCP].flags, packet[TCP].ack, packet[TCP].window) == ('SA', 5001, 0)


def test_server_refuses(case):
    t = Talk(case, client=FULL)
    c = t.case
    c.at(0).inside(t.syn(), back=[t.synack()])
    c.at(.1).inside(t.proof(), becomes=t.made_syn(1460))
    c.at(.2).outside(t.down('RA', 0, C + 1, win=0),
                     becomes=t.down('RA', t.cookie + 1, C + 1, win=0, near=True))
    c.at(.3).entries()
    c.replay()


def test_client_leaves_before_the_answer(case):
    t = Talk(case, client=FULL)
    c = t.case
    c.at(0).inside(t.syn(), back=[t.synack()])
    c.at(.1).inside(t.proof(), becomes=t.made_syn(1460))
    c.at(.2).inside(t.up('RA', C + 1, t.cookie + 1, win=9),
                    becomes=t.up('R', C + 1, 0, win=9))
    c.at(.3).entries()
    c.replay()


def test_server_has_another_connection(case):
    """What does not answer the SYN is told so, as the client itself would; then it is open."""
    t = Talk(case)
    c = t.case
    c.at(0).inside(t.syn(), back=[t.synack()])
    c.at(.1).inside(t.proof(), becomes=t.made_syn(536))
    for i, flags in enumerate(('A', 'SA')):
        c.at(.2 + i / 10).outside(t.down(flags, 4321, 1234), drop='synproxy-early',
                                  back=[own(t.flow, 'R', 1234)])
    c.at(.5).outside(t.down('S', 4321, 0), drop='synproxy-early')
    t.answer(.6)
    c.replay()


# ---- cookies ----

def test_invalid_cookies(case):
    t = Talk(case, knobs=STRICT)
    c = t.case
    bad = {'drop': 'syncookie-invalid'}
    c.at(0).inside(t.up('A', C + 1, t.cookie + 2), **bad)
    c.at(1).inside(t.up('A', C + 2, t.cookie + 1, b'x'), **bad)
    c.at(2).inside(tcp(A(40001) > S(80), 'A', C + 1, t.cookie + 1), **bad)
    c.at(3).inside(tcp(A(40000) > S(81), 'A', C + 1, t.cookie + 1), **bad)
    c.at(200).inside(t.proof(), **bad)  # too old
    c.at(201).entries()
    c.at(201).run('stats netns T1', lambda result: check_cookies(result, invalid=5))
    c.replay()


def test_connections_of_before_are_picked_up(case):
    """With tcp_loose an ACK without a cookie is what it always was."""
    t = Talk(case)
    t.case.at(0).inside(t.up('A', C + 1, t.cookie + 2))
    t.case.at(1).entries(entry(t.flow, 'tcp', state='ESTABLISHED', unreplied=True))
    t.case.replay()


def test_question_for_the_window_proves(case):
    """The client's first ACK was lost; it asks by the octet before its next whether the window is
    still closed."""
    t = Talk(case, client=FULL, server=FULL, knobs=STRICT)
    c = t.case
    c.at(0).inside(t.syn(), back=[t.synack()])
    c.at(5).inside(t.up('A', C, t.cookie + 1, win=500, stamp=t.stamp_up(1)),
                   becomes=t.made_syn(1460))
    t.answer(5.01)
    c.replay()


def test_promise_without_options(case):
    t = Talk(case, client=FULL, knobs=ALWAYS | {'sluice.synproxy_timestamp': 0,
                                                'sluice.synproxy_mss': 1300})
    t.case.at(0).inside(t.syn(), back=[own(~t.flow, 'SA', t.cookie, C + 1,
                                           options=options(1300))])
    t.case.at(.1).inside(t.proof(), becomes=t.wrap(tcp(t.flow, 'S', C, win=500,
                                                       options=options(1460))))
    t.case.replay()


def test_beyond_the_backlog(case):
    """The first half-open connection is tracked, the second comes by a cookie, beside it."""
    t = Talk(case, flow=A(40001) > S(80), knobs={'sluice.syncookies': 1,
                                                 'net.ipv4.tcp_max_syn_backlog': 1})
    c = t.case
    first = tcp(A(40000) > S(80), 'S', 1)
    c.at(0).inside(first).inside(t.syn(), back=[t.synack()])
    c.at(.01).inside(t.proof(), becomes=t.made_syn(536))
    t.answer(.02)
    c.at(1).entries(entry(A(40000) > S(80), 'tcp', state='SYN_SENT', unreplied=True),
                    entry(A(40001) > S(80), 'tcp', state='ESTABLISHED', assured=True))
    c.replay()


# ---- open ----

def test_repeated_answer_of_the_server(case):
    """Its ACK was lost: it gets another, and the client the update once more."""
    t = Talk(case, client=FULL, server=FULL)
    t.opens()
    t.answer(1)
    t.case.replay()


def test_client_begins_anew(case):
    """A SYN on an open connection goes to the server; when that takes it, numbers go on being
    translated as before, and windows are as both have agreed."""
    t = Talk(case, client=FULL, server=FULL)
    c = t.opens()
    again = tcp(t.flow, 'S', 5000, options=options(1460, 3))
    c.at(1).inside(again)
    moved = t.cookie - N + 6000
    c.at(1.1).outside(t.down('SA', 6000, 5001, options=options(1460, 9)),
                      becomes=t.down('SA', moved, 5001, near=True, options=options(1460, 9)))
    c.at(1.2).inside(t.up('A', 5001, moved + 1), becomes=t.up('A', 5001, 6001, far=True))
    c.at(1.3).outside(t.down('A', 6001, 5001, b'data', win=77),
                      becomes=t.down('A', moved + 1, 5001, b'data', near=True, win=77))
    c.at(2).entries(entry(t.flow, 'tcp', state='ESTABLISHED', assured=True))
    c.replay()


def test_challenge_of_the_server(case):
    """It does not take the SYN, and says where it is, in the client's numbers."""
    t = Talk(case, client=FULL, server=FULL | {'scale': 7})
    c = t.opens()
    c.at(1).inside(tcp(t.flow, 'S', 5000))
    c.at(1.1).outside(t.down('A', N + 1, C + 1, win=50, stamp=(9100, 9001)),
                      becomes=t.down('A', t.cookie + 1, C + 1, win=50, near=True,
                                     stamp=(t.clock + 100, 9001)))
    c.replay()


def test_icmp_error_for_the_server(case):
    """It knows its own packet by the number in it."""
    t = Talk(case)
    c = t.opens(mss=536)
    c.at(.03).outside(t.down('A', N + 1, C + 1, b'x' * 500),
                      becomes=t.down('A', t.cookie + 1, C + 1, b'x' * 500, near=True))

    def error(sent):
        return icmp_error(B > S, 3, 4, l3(sent)[:60], nexthopmtu=400)

    c.at(.04).inside(error(t.down('A', t.cookie + 1, C + 1, b'x' * 500, near=True)),
                     becomes=error(t.down('A', N + 1, C + 1, b'x' * 500)))
    # the least that a router quotes
    c.at(.05).inside(icmp_error(B > S, 3, 4, l3(t.down('A', t.cookie + 1, C + 1, near=True))[:28]),
                     becomes=icmp_error(B > S, 3, 4, l3(t.down('A', N + 1, C + 1))[:28]))
    c.replay()


def test_invalid_segments_are_translated_too(case):
    """What is out of the window may pass, and then is what the client can judge."""
    t = Talk(case)
    c = t.opens(mss=536)
    c.at(.03).outside(t.down('A', N + 1_000_000, C + 1, b'x'),
                      becomes=t.down('A', t.cookie + 1_000_000, C + 1, b'x', near=True))
    c.replay()


# ---- with rules and translation ----

V, P = Host('203.0.113.80'), Host('203.0.113.1')
NAT = CONFIG + f'''\
rule add T1 prerouting ip daddr {V.addr} tcp dport 80 dnat ip to {S.addr}:8080
rule add T1 postrouting oifname "outside" snat ip to {P.addr}
'''


def test_translated_addresses(case):
    t = Talk(case, flow=A(40000) > V(80), far=P(40000) > S(8080), client=FULL,
             server=FULL | {'scale': 7}, config=NAT)
    c = t.opens()
    c.departures = [(ns, port, home(frame) if port == 'in' and ns > 15_000_000 else frame)
                    for ns, port, frame in c.departures]
    c.at(.03).inside(t.up('A', C + 1, t.cookie + 1, b'GET', stamp=(9030, t.clock)),
                     becomes=t.up('A', C + 1, N + 1, b'GET', stamp=(9030, 9000), far=True))
    c.at(.04).entries(entry(t.flow, 'tcp', state='ESTABLISHED', assured=True,
                            reply={'src': S.addr, 'sport': 8080, 'dst': P.addr}))
    c.replay()


def test_rules_decide_at_the_syn(case):
    config = CONFIG + 'rule add T1 forward tcp dport 80 reject with tcp reset\n'
    c = case(config=config, knobs=ALWAYS)
    c.at(0).inside(tcp(A(40000) > S(80), 'S', C), drop='rule-reject',
                   back=[own(S(80) > A(40000), 'RA', 0, C + 1)])
    c.at(1).inside(tcp(A(40000) > S(81), 'S', C), back=[])
    c._check_departures = lambda: None
    c.replay()
    assert Ether(c.output('in')[1][1])[TCP].flags == 'SA'


def test_rules_decide_again_at_the_proof(case):
    """One connection is what the client may have; a second that was begun beside it is told no, by
    a RST that it takes."""
    config = CONFIG + 'rule add T1 forward ct count over 1 by ip saddr reject with tcp reset\n'
    t = Talk(case, config=config)
    second = Talk(case, flow=A(40001) > S(80), config=config)
    c = t.opens(mss=536)
    c.at(0).inside(second.syn(), back=[second.synack()])
    c.at(.5).inside(second.proof(), drop='rule-reject',
                    back=[own(~second.flow, 'R', second.cookie + 1)])
    c.at(.6).inside(second.syn(), drop='rule-reject', back=[own(~second.flow, 'RA', 0, C + 1)])
    c.at(1).entries(entry(t.flow, 'tcp', state='ESTABLISHED', assured=True))
    c.replay()


# ---- records ----

def test_records_are_bounded_and_come_back(case):
    knobs = ALWAYS | {'sluice.synproxy_max': 1}
    t = Talk(case, knobs=knobs)
    second = Talk(case, flow=A(40001) > S(80), knobs=knobs)
    c = t.opens(mss=536)
    c.at(0).inside(second.syn(), back=[second.synack()])
    c.at(1).inside(second.proof(), drop='synproxy-full')
    c.at(2).run('conntrack flush netns T1')
    c.at(3).inside(second.proof(), becomes=second.made_syn(536))
    c.at(4).run('sysctl netns T1 sluice.synproxy_max=2')
    c.at(5).inside(t.proof(), becomes=t.made_syn(536))
    c.replay()


def test_records_end_with_their_namespace(case):
    config = CONFIG + 'sysctl sluice.synproxy_max=1\n'
    t = Talk(case, config=config)
    c = t.opens(mss=536)
    c.at(1).run('netns delete T1')
    c.at(1).run('stats', None)
    for line in CONFIG.splitlines()[2:]:
        c.at(1).run(line)
    c.at(1).run('sysctl netns T1 sluice.syncookies=2')
    c._check_departures = lambda: None
    c.at(2).inside(t.syn(), back=[])
    c.replay()
