# SPDX-License-Identifier: BSD-3-Clause
"""B35, B36, B58: a datagram is one packet when it is complete, and leaves as it came."""
import itertools
import struct

import pytest
from fragments import HEADERS, HEADERS6, Arrivals, cut, fragment
from harness import entry
from packets import A, A6, B, S, S6, ether, patch, ping, resum_ip, tagged, tcp, udp
from scapy.all import GRE, IP, IPv6, IPv6ExtHdrDestOpt, Raw, UDP

FLOW, FLOW6 = S(53) > A(40000), S6(53) > A6(40000)
DATA = bytes(range(256)) * 12
ACCT = {'nf_conntrack_acct': 1}


def big(flow, n=3000):
    return udp(flow, DATA[:n])


def three(flow, ident=1):
    return cut(big(flow), 1000, 1000, ident=ident)


FLOWS = {'v4': FLOW, 'v6': FLOW6}
PROTO = 'udp'


@pytest.mark.parametrize('order', itertools.permutations(range(3)), ids=str)
@pytest.mark.parametrize('family', FLOWS)
@pytest.mark.parametrize('between', [False, True], ids=['', 'another between'])
def test_b35_orders(case, family, order, between):
    """Any order; conntrack sees one packet, of the length before it was fragmented."""
    flow = FLOWS[family]
    c, frames = case(knobs=ACCT), three(flow)
    other = udp((S6 if flow.v6 else S)(54) > (A6 if flow.v6 else A)(40001))
    a = Arrivals(c)
    for i in order[:2]:
        a.waits(frames[i])
        if between:
            a.completes(other, other)
    a.completes(frames[order[2]], *frames)
    whole = len(big(flow)) - 14
    listed = [entry(flow, PROTO, unreplied=True, packets=(1, 0), orig={'bytes': whole})]
    if between:
        listed.append(entry((S6 if flow.v6 else S)(54) > (A6 if flow.v6 else A)(40001), PROTO,
                            unreplied=True, packets=(2, 0)))
    c.at(1).entries(*listed)
    c.replay()


@pytest.mark.parametrize('family,timeout', [('v4', 30), ('v6', 60)])
def test_b35_first_never_comes(case, family, timeout):
    """Nothing is sent, and nothing is kept."""
    c, frames = case(), three(FLOWS[family])
    Arrivals(c).waits(*frames[1:])
    c.at(timeout - .001).run('show memory', lambda r: check(
        (r['fragments'], r['fragment_datagrams']), (2, 1)))
    c.at(timeout).run('show memory', lambda r: check(
        (r['fragments'], r['fragment_datagrams']), (0, 0)))
    c.at(timeout + 1).run('show memory', lambda r: check(r['fragment_bytes'], 0))
    c.drops['frag-timeout'] = 2
    c.at(timeout + 2).entries()
    c.replay()


def check(got, want):
    assert got == want


@pytest.mark.parametrize('family', FLOWS)
def test_late_last_one_begins_anew(case, family):
    """At the deadline it is too late, whether a sweep has found the others or not."""
    knob = {'v4': 'net.ipv4.ipfrag_time', 'v6': 'nf_conntrack_frag6_timeout'}[family]
    c, frames = case(knobs={knob: 2}), three(FLOWS[family])
    Arrivals(c).waits(*frames[:2])
    Arrivals(c, start=1.999).completes(frames[2], *frames)
    c.replay()
    c = case(knobs={knob: 2})
    Arrivals(c).waits(*frames[:2])
    Arrivals(c, start=2).waits(frames[2])
    c.at(5).entries()
    c.drops['frag-timeout'] = 3
    c.replay()


WHOLE = {
    'echo of 4,000 B': ping(A > S, 7, data=DATA[:1000] * 4),
    'echo of 4,000 B over IPv6': ping(A6 > S6, 7, data=DATA[:1000] * 4),
    'TCP': tcp(A(40000) > S(80), 'S', seq=1, data=DATA),
    'GRE': ether((A > S).ip() / GRE(proto=0x6558) / Raw(DATA)),
    'OSPF': ether((A > S).ip(proto=89) / Raw(DATA)),
    'ESP over IPv6': ether((A6 > S6).ip(nh=50) / Raw(DATA)),
    'odd length': big(FLOW, 2999),
    'DF': ether((A > S).ip(flags='DF') / UDP(sport=1, dport=2) / Raw(DATA)),
}


@pytest.mark.parametrize('name', WHOLE)
@pytest.mark.parametrize('first', [8, 16, 1000])
def test_b36_protocols(case, name, first):
    """Whatever it carries; also when the first fragment has no more than 8 bytes of it."""
    whole = WHOLE[name]
    c, frames = case(), cut(whole, first, 1000)
    Arrivals(c).waits(frames[0], frames[2]).completes(frames[1], *frames)
    c.at(1).run('conntrack count netns T1', lambda r: check(r['count'], 1))
    c.replay()


@pytest.mark.parametrize('name,at', [('odd length', 40), ('TCP', 40), ('odd length', 2500)])
def test_checksum_over_the_whole(case, name, at):
    whole = WHOLE[name]
    bad = patch(whole, at, bytes([whole[at] ^ 1]))
    c, frames = case(knobs={'sluice.invalid': 'drop'}), cut(bad, 1000, 1000)
    Arrivals(c).waits(*frames)
    c.drops['invalid-l4-checksum'] = 3
    c.at(1).entries()
    c.replay()


@pytest.mark.parametrize('family', FLOWS)
def test_padding_is_no_payload(case, family):
    """Frames are padded to Ethernet's least length, or beyond, in the middle of a datagram too."""
    flow = FLOWS[family]
    frames = [f + bytes(30) for f in cut(big(flow, 1000), 8, 16, 8)]
    c = case()
    Arrivals(c).waits(frames[3], frames[1], frames[2]).completes(frames[0], *frames)
    c.replay()


def test_tags_of_each_fragment(case):
    """They get the egress link's VLAN, and keep their own priority."""
    c = case(config='port add in devargs x\nport add out devargs y\nnetns add T1\n'
             'link add inside port in vlan 100 netns T1\n'
             'link add outside port out vlan 20.300 netns T1 peer inside\n')
    frames = three(FLOW)
    arrive = [tagged(f, (0x8100, 100 | i << 13)) for i, f in enumerate(frames)]
    leave = [tagged(f, (0x88a8, 20 | i << 13), (0x8100, 300 | i << 13))
             for i, f in enumerate(frames)]
    Arrivals(c).waits(arrive[2], arrive[0]).completes(arrive[1], *leave)
    c.replay()


def test_many_fragments(case):
    """More than a burst and a transmit buffer hold."""
    whole = udp(FLOW, DATA[:2992])
    c, frames = case(), cut(whole, *[24] * 124)
    assert len(frames) == 125
    Arrivals(c, step=.0001).waits(*frames[:0:-1]).completes(frames[0], *frames)
    c.at(1).run('show memory', lambda r: check(r['fragment_bytes'], 0))
    c.replay()


def test_options_of_the_first_only(case):
    whole = ether(IP(src=S.addr, dst=A.addr, options=b'\x07\x07\x04\0\0\0\0\0')
                  / UDP(sport=53, dport=40000) / Raw(DATA))
    head, payload = whole[:14 + 28], whole[14 + 28:]
    plain = resum_ip(patch(head[:34], 14, b'\x45'))
    frames = [fragment(head, 0, payload[:1000], True), fragment(plain, 1000, payload[1000:], False)]
    c = case(knobs=ACCT)
    Arrivals(c).waits(frames[1]).completes(frames[0], *frames)
    c.at(1).entries(entry(FLOW, PROTO, unreplied=True, packets=(1, 0),
                          orig={'bytes': len(whole) - 14}))
    c.replay()


def test_extension_headers_on_both_sides_of_the_fragment_header(case):
    """Those before it are in each fragment; those behind are payload of the first."""
    inner = ether(IPv6(src=S6.addr, dst=A6.addr) / IPv6ExtHdrDestOpt()
                  / UDP(sport=53, dport=40000) / Raw(DATA))
    head, payload = inner[:HEADERS6], inner[HEADERS6:]
    option = bytes([44, 0, 1, 4, 0, 0, 0, 0])

    def part(start, end):
        f = fragment(head, start, payload[start:end], end < len(payload))
        size = struct.pack('!H', len(f) - HEADERS6 + 8)
        return f[:18] + size + b'\x3c' + f[21:HEADERS6] + option + f[HEADERS6:]

    frames = [part(0, 1000), part(1000, 2000), part(2000, len(payload))]
    c = case(knobs=ACCT)
    Arrivals(c).waits(frames[2], frames[1]).completes(frames[0], *frames)
    c.at(1).entries(entry(FLOW6, PROTO, unreplied=True, packets=(1, 0),
                          orig={'bytes': len(inner) - 14 + 8}))
    c.replay()


def parts(flow, *ranges, ident=1):
    """Fragments of big(flow), by (start, end) and the last's M bit: a third element."""
    whole = big(flow)
    head = HEADERS6 if flow.v6 else HEADERS
    payload = whole[head:] + bytes(70000)
    out = []
    for start, end, *more in ranges:
        last = more == [0] if more else end == len(whole) - head
        out.append(fragment(whole[:head], start, payload[start:end], not last, ident))
    return out


LEN = len(big(FLOW)) - HEADERS
F1, F2, F3 = (0, 1000), (1000, 2000), (2000, LEN)
ALL, NONE = (F1, F2, F3), ()

# name: (arrivals, what leaves, drops) of each family
ODD = {
    'exact duplicate': ([F1, F1, F2, F3], (ALL, {'frag-duplicate': 1}), None),
    'duplicate of the last': ([F3, F3, F1, F2], (ALL, {'frag-duplicate': 1}), None),
    'part of one': ([F1, (200, 600), F2, F3], (ALL, {'frag-duplicate': 1}), None),
    'part of two in a row': ([F1, F2, (800, 1200), F3], (ALL, {'frag-duplicate': 1}), None),
    'part of two in no row': ([F2, F1, (800, 1200), F3],
                              (NONE, {'frag-overlap': 3, 'frag-timeout': 1}), {'frag-overlap': 4}),
    'overlap': ([F1, (800, 1200), F2, F3], (NONE, {'frag-overlap': 2, 'frag-timeout': 2}),
                {'frag-overlap': 4}),
    'overlap from before': ([F2, F3, (504, 1504), F1],
                            (NONE, {'frag-overlap': 3, 'frag-timeout': 1}),
                            {'frag-overlap': 4}),
    'more than one': ([F2, (504, 2504), F1], (NONE, {'frag-overlap': 2, 'frag-timeout': 1}),
                      {'frag-overlap': 3}),
    'two ends, the second shorter': ([F3, (2000, 2400, 0), F1, F2],
                                     (NONE, {'frag-invalid': 2, 'frag-timeout': 2}),
                                     (ALL, {'frag-invalid': 1})),
    'beyond the end': ([F3, (3008, 3016), F1, F2], (NONE, {'frag-invalid': 2, 'frag-timeout': 2}),
                       (ALL, {'frag-invalid': 1})),
    'end before what is there': ([F1, F2, (1000, 1500, 0), F3],
                                 (NONE, {'frag-invalid': 3, 'frag-timeout': 1}),
                                 (ALL, {'frag-invalid': 1})),
    'empty': ([F1, (1000, 1000), F2, F3], (NONE, {'frag-invalid': 2, 'frag-timeout': 2}),
              (ALL, {'frag-invalid': 1})),
    'beyond any packet': ([F1, (65528, 65628, 0), F2, F3],
                          (NONE, {'frag-invalid': 2, 'frag-timeout': 2}),
                          (ALL, {'frag-invalid': 1})),
    'no multiple of 8': ([F1, (1000, 1003), F2, F3], (ALL, {'frag-invalid': 1}), None),
}


@pytest.mark.parametrize('family', FLOWS)
@pytest.mark.parametrize('name', ODD)
def test_odd_fragments(case, name, family):
    """None of it is sent but what is a datagram without doubt."""
    arrive, want, want6 = ODD[name]
    if family == 'v6' and want6 is not None:
        want = want6 if isinstance(want6, tuple) else (NONE, want6)
    leave, drops = want
    flow, c = FLOWS[family], case()
    frames = parts(flow, *arrive)
    a = Arrivals(c)
    a.waits(*frames[:-1])
    if leave:
        a.completes(frames[-1], *parts(flow, *leave))
    else:
        a.waits(frames[-1])
    c.drops.update(drops)
    c.at(100).run('show memory', lambda r: check(r['fragment_bytes'], 0))
    c.replay()


def test_same_id_of_others(case):
    """Other hosts, the other family and other protocols may use the id at the same time."""
    c = case()
    sets = [three(FLOW), three(S(53) > B(40000)), three(FLOW6),
            cut(ether((S > A).ip(proto=89) / Raw(DATA[:3000])), 1000, 1000)]
    a = Arrivals(c)
    for i in (2, 0):
        a.waits(*[s[i] for s in sets])
    for s in sets:
        a.completes(s[1], *s)
    c.replay()


def test_ipv6_first_without_its_headers(case):
    """RFC 7112: all headers are in the first fragment."""
    c = case()
    Arrivals(c).waits(*cut(tcp(A6(1) > S6(2), 'S', data=DATA), 16))
    c.drops |= {'frag-invalid': 1, 'frag-timeout': 1}
    c.at(70).entries()
    c.replay()


TENANTS = '''\
port add in devargs x
port add out devargs y
netns add T1 T2
link add in1 port in vlan 1 netns T1
link add out1 port out vlan 1 netns T1 peer in1
link add in2 port in vlan 2 netns T2
link add out2 port out vlan 2 netns T2 peer in2
'''


def vlan(vid, frames):
    return [tagged(f, (0x8100, vid)) for f in frames]


def test_tenants_never_mix(case):
    c, frames = case(config=TENANTS), three(FLOW)
    one, two = vlan(1, frames), vlan(2, frames)
    a = Arrivals(c).waits(one[0], two[1], one[2], two[2])
    a.completes(one[1], *one).completes(two[0], *two)
    c.replay()


def below_the_knob(result):
    assert 0 < result['items'][0]['fragment_bytes'] < 4 << 20


def drops_of(c, *reasons):
    """Any number of drops for these reasons; c.drops has them afterwards."""
    def take(result):
        c.drops.update({item['reason']: item['packets'] for item in result['items']})
        assert set(c.drops) <= set(reasons), c.drops

    c._check_drops = take


def junk(n):
    """Fragments without a first, each of another datagram."""
    head = big(FLOW)[:HEADERS]
    return [fragment(head, 1480, DATA[:64], True, ident=i % 65536) for i in range(n)]


def test_b58_flood(case):
    """A neighbour's flood costs no datagram of others, and the memory comes back."""
    c = case(config=TENANTS)
    flood = vlan(1, junk(20000))
    for i, frame in enumerate(flood):
        c.arrivals.append((i * 200_000, 'in', frame))
    for second in range(4):
        good = vlan(2, three(FLOW, ident=second))
        Arrivals(c, start=second + .0001, step=.3).waits(*good[:2]).completes(good[2], *good)
    c.at(3.99).run('stats netns T1', below_the_knob)
    c.at(60).run('show memory', lambda r: check(r['fragment_bytes'], 0))
    drops_of(c, 'frag-memory', 'frag-limit', 'frag-timeout')
    c.replay()
    assert sum(c.drops.values()) == len(flood)


def test_b58_64k_fragments_of_one_id(case):
    """They are held up to the namespace's bound, whatever their size, and never sent."""
    c = case(config=TENANTS)
    head = big(FLOW)[:HEADERS]
    frames = vlan(1, [fragment(head, 8 * i, DATA[:8], True) for i in range(1, 8188)])
    for i, frame in enumerate(frames):
        c.arrivals.append((i * 10_000, 'in', frame))
    c.at(.081).run('stats netns T1', below_the_knob)
    c.at(40).run('show memory', lambda r: check(r['fragments'], 0))
    drops_of(c, 'frag-memory', 'frag-limit', 'frag-timeout')
    c.replay()
    assert sum(c.drops.values()) == len(frames)


def test_high_thresh(case):
    """At it, the oldest datagram of the namespace makes room."""
    c = case(knobs={'net.ipv4.ipfrag_high_thresh': 10000})
    old, new = three(FLOW, ident=1), three(FLOW, ident=2)
    a = Arrivals(c).waits(old[0], old[1], new[0], new[1])
    a.completes(new[2], *new).waits(old[2])
    c.drops |= {'frag-limit': 2, 'frag-timeout': 1}
    c.at(40).entries(netns='T1')
    c.replay()


def test_b38_namespace_goes(case):
    """What it held is freed, and its successor gets none of it."""
    c, frames = case(), three(FLOW)
    Arrivals(c).waits(*frames[:2])
    again = ['netns add T1', 'link add inside port in netns T1',
             'link add outside port out netns T1 peer inside']
    c.at(1).run('netns delete T1')
    c.at(1.5).run('show memory', lambda r: check((r['fragments'], r['fragment_bytes']), (0, 0)))
    for i, command in enumerate(again):
        c.at(2 + i / 10).run(command)
    Arrivals(c, start=3).waits(frames[2])
    c.drops['frag-timeout'] = 1
    c.at(50).run('show memory', lambda r: check(r['fragments'], 0))
    c.replay()
