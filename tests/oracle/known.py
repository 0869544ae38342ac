# SPDX-License-Identifier: BSD-3-Clause
"""Which section of docs/differences.md a difference of a random scenario belongs to.

SHOWN: the differing step's own packet and answers tell. CAUSES: an earlier packet of the same
connection, to which both have answered alike, but of which they keep different things, so that the
effect may come much later. search.py runs the scenario again without the packets of one cause, and
then that step has to agree, or to differ for another reason. What none of these knows is a
fault."""

import ipaddress
import itertools

import build
from answers import TCP, Answer, normal_made
from compare import SLACK
from hosts import ADDRESS, GATEWAY, REDIRECT, TRANSLATED, name_of

NOTHING = Answer([], [])
NO_KIND = set('PUEC-')


def after(a, b):
    """a comes after b (RFC 9293, 3.4)."""
    return (b - a) % 2**32 >= 2**31


class Segment:
    """A TCP packet."""

    def __init__(self, packet):
        self.tuple = packet.src, packet.sport, packet.dst, packet.dport
        self.kind = ''.join(sorted(set(packet.words[0]) - NO_KIND))
        self.seq, self.ack = packet.get('seq') % 2**32, packet.get('ack') % 2**32
        length = packet.get('data') + ('S' in self.kind) + ('F' in self.kind)
        self.end = (self.seq + length) % 2**32

    @property
    def is_rst(self):
        return self.kind in ('R', 'AR')


def keys(answer):
    return {e.key for e in answer.entries}


def alike(kernel, sluice):
    """Whether two entries are the same but for the time left."""
    return (kernel if sluice.counted else kernel.uncounted()).key == sluice.key


def direction(packet, entry):
    """0: the packet is of the original direction of the entry, 1: a reply; None: neither."""
    if entry is None or entry.protocol != TCP:
        return None
    tuples = [(name_of(d.src), d.ids[0], name_of(d.dst), d.ids[1]) for d in entry.directions]
    return tuples.index(packet.tuple) if packet.tuple in tuples else None


def zones(entry):
    return tuple(d.zone for d in entry.directions)


def counts(entry):
    return tuple(d.packets for d in entry.directions)


class Moment:
    """A TCP packet with its entry before it (old), and after it in both gateways. life: earlier
    packets of the same entry, the last one first."""

    def __init__(self, step, before):
        kernel, sluice = step.raw
        self.p = Segment(step.sent.packet)
        # Of two with its tuple, which are in two zones, the one that the packet's side began.
        self.zones = min(((direction(self.p, e), zones(e)) for e in (*before, *kernel.entries)
                          if direction(self.p, e) is not None), default=(0, None))[1]
        self.old = self._entry(self.p, before)
        self.kernel = self._entry(self.p, kernel.entries)
        self.sluice = self._entry(Segment((sluice.sent or step.step).packet), sluice.entries)
        self.drops = tuple(not a.outputs for a in (kernel, sluice))
        self.life = []

    def _entry(self, packet, entries):
        return next((e for e in entries
                     if direction(packet, e) is not None and zones(e) == self.zones), None)

    def state(self, which):
        entry = getattr(self, which)
        return entry.state if entry else None

    @property
    def is_reply(self):
        """Whether it comes from the server."""
        return direction(self.p, self.kernel or self.old) == 1

    @property
    def uncounted(self):
        """Whether it belongs to an entry but did not count."""
        return (self.old is not None and self.kernel is not None
                and counts(self.old) == counts(self.kernel))

    @property
    def makes(self):
        """Whether it made its entry."""
        return self.kernel is not None and counts(self.kernel) == (1, 0) and \
            (self.old is None or not self.uncounted)

    @property
    def translated(self):
        there, back = [(d.src, d.dst, d.ids) for d in self.kernel.directions]
        return there != (back[1], back[0], back[2][::-1])

    def syns(self):
        """SYNs of the client before this packet, the first one first."""
        return [m.p for m in reversed(self.life) if m.p.kind == 'S' and not m.is_reply]


def moments(comparison, end):
    """{index: Moment} of the TCP packets before the step `end`."""
    found, before = {}, []
    for i, step in enumerate(comparison.steps[:end]):
        if step.sent.packet.proto == 'tcp' and not step.step.part:
            now = Moment(step, before)
            for m in reversed(found.values()):
                if set(m.p.tuple) != set(now.p.tuple) and \
                        direction(m.p, now.kernel or now.old) is None:
                    continue
                if None not in (m.zones, now.zones) and m.zones != now.zones:
                    continue
                now.life.append(m)
                if m.makes:
                    break
            found[i] = now
        before = step.raw[0].entries
    return found


# ---- what the step itself shows ----

def tcp_rst_in_window(m):
    """Ten seconds or five minutes are left, all else is the same."""
    states = {m.state('old'), m.state('kernel'), m.state('sluice')}
    return (m.p.is_rst and states == {'ESTABLISHED'} and 'ASSURED' in m.old.flags
            and m.drops[0] == m.drops[1] and alike(m.kernel, m.sluice)
            and m.kernel.left <= 10 < m.sluice.left <= 300)


def tcp_rst_after_syn(m):
    """Since a SYN that was passed nothing counted."""
    before = itertools.takewhile(lambda other: other.uncounted, m.life)
    return (m.p.is_rst and any(other.p.kind == 'S' for other in before)
            and m.old is not None and m.state('sluice') == m.state('old')
            and m.state('kernel') in ('CLOSE', None, m.state('old')))


def zero_remembered(m):
    """Zero is where some segment before it ended, or none is remembered, which is zero too."""
    answered = m.state('old') == 'SYN_SENT' and 'UNREPLIED' not in m.old.flags
    return (m.state('old') == 'SYN_SENT2' or answered
            or any(other.p.end == 0 for other in m.life))


def tcp_rst_without_ack(m):
    """The acknowledgement field, zero, is taken for an acknowledgement."""
    return (m.p.kind == 'R' and m.state('kernel') == 'CLOSE'
            and m.state('old') == m.state('sluice') and zero_remembered(m))


def tcp_synack_old(m):
    """The kernel takes the state from it, or finds it INVALID."""
    return (synack_old(m) and m.state('kernel') in ('SYN_RECV', 'SYN_SENT')
            and m.state('sluice') == 'SYN_SENT')


def tcp_syn_lower(m):
    """In the kernel it is outside of the window."""
    return syn_lower(m) and m.state('kernel') == m.state('sluice') == 'SYN_SENT'


def nat_pickup(m):
    """The kernel has picked it up, and translates it."""
    return (m.old is None and m.sluice is None and m.state('kernel') == 'ESTABLISHED'
            and m.translated)


SHOWN = (tcp_rst_in_window, tcp_rst_after_syn, tcp_rst_without_ack, tcp_synack_old, tcp_syn_lower,
         nat_pickup)


def last_answers(earlier):
    return earlier[-1].raw if earlier else (NOTHING, NOTHING)


def nat_own_address(earlier, step):
    """It belongs to nothing, and is for an address that is the gateway's or none's."""
    def own(address):
        return any(ipaddress.ip_address(address) in network for network in TRANSLATED)

    before = last_answers(earlier)
    new = keys(step.raw[0]) - keys(before[0])
    return (own(ADDRESS[step.sent.packet.dst]) and not step.raw[1].outputs
            and keys(step.raw[1]) <= keys(before[1])
            and all(own(directions[0][0][1]) for _, _, _, directions in new))


def ct_zone_tuple(earlier, step):
    """The kernel has made an entry of it, though another has one of its tuples in the same zone."""
    def tuples(entry):
        return {(entry.protocol, d.key) for d in entry.directions}

    before, (kernel, sluice) = last_answers(earlier), step.raw
    new = [e for e in kernel.entries if e.key not in keys(before[0])]
    return (not sluice.outputs and keys(sluice) <= keys(before[1])
            and any(tuples(e) & tuples(other) for e in new for other in before[0].entries))


def ipv6_fragment_overlap(earlier, step):
    """Sluice refuses what comes of a datagram after an overlap; the kernel has it whole again."""
    if step.step.part is None or not step.sent.packet.v6 or step.raw[1].outputs:
        return False
    spans = [set(range(int(begin), int(end) if end else 2**16)) for begin, _, end in (
        one.step.part[1].partition('-') for one in (*earlier, step)
        if one.step.part and one.step.part[0] == step.step.part[0])]
    return (bool(step.raw[0].outputs) and keys(step.raw[1]) <= keys(last_answers(earlier)[1])
            and any(a & b and a != b for a, b in itertools.combinations(spans, 2)))


def reject_source(_, step):
    """Of the errors only the sources differ: where the packet went to, and the link's address."""
    compared = step.kernel, step.sluice
    if not step.rejects or any(len(a.outputs) != 1 for a in (*step.raw, *compared)):
        return False
    (there, kernel), (here, sluice) = (answer.outputs[0] for answer in step.raw)
    at, size = (8, 16) if kernel[0] >> 4 == 6 else (12, 4)
    rests = {packet[:at] + packet[at + size:]
             for packet in (normal_made(answer.outputs[0][1]) for answer in compared)}
    link = [text.split('/')[0] for text in (*GATEWAY[here], *REDIRECT.get(here, ()))]
    return (there == here == step.sent.side and len(rests) == 1
            and kernel[at:at + size] == build.address(step.sent.packet.dst)
            and sluice[at:at + size] in map(build.packed, link))


SHOWN_BY_ANY = (nat_own_address, ct_zone_tuple, ipv6_fragment_overlap, reject_source)


# ---- what may show later ----

def synack_old(m):
    """It acknowledges nothing of the SYN before it. The kernel takes the window from it."""
    syns = m.syns()
    return (m.p.kind == 'AS' and m.is_reply and m.state('old') == 'SYN_SENT' and bool(syns)
            and not after(m.p.ack, syns[-1].seq))


def syn_lower(m):
    """The kernel goes on with an earlier SYN, which ends further on."""
    if m.p.kind != 'S' or m.is_reply or m.state('old') != 'SYN_SENT':
        return False
    first, *more = m.syns()
    for syn in more:
        if after(syn.end, first.end):
            first = syn
    return m.p.seq != first.seq and not after(m.p.end, first.end)


def refused_segment(m):
    """A FIN or RST without effect: INVALID, or beyond the window, or not exact in SYN_RECV."""
    return m.p.kind in ('AF', 'R', 'AR') and m.uncounted


def rst_in_window(m):
    """It has not closed. The kernel takes its sequence for sent."""
    return (m.p.is_rst and m.state('old') == m.state('kernel') == 'ESTABLISHED'
            and 'ASSURED' in m.old.flags and not m.uncounted)


def rst_beyond_window(m):
    """The kernel takes the sequence of the RST for sent."""
    sent = [other.p.end for other in m.life
            if other.p.tuple == m.p.tuple and not other.uncounted]
    return m.p.is_rst and m.uncounted and all(after(m.p.seq, end) for end in sent)


def rst_syn_recv(m):
    return m.p.is_rst and m.is_reply and m.state('old') == 'SYN_RECV' and m.uncounted


def rst_without_ack(m):
    """It may have closed in the kernel what it has not answered."""
    return m.p.kind == 'R' and m.state('kernel') == 'CLOSE' and zero_remembered(m)


CAUSES = (('tcp-synack-old', synack_old), ('tcp-syn-lower', syn_lower),
          ('tcp-rst-in-window', rst_in_window), ('tcp-rst-syn-recv', rst_syn_recv),
          ('tcp-rst-beyond-window', rst_beyond_window),
          ('tcp-refused-segment', refused_segment), ('tcp-rst-without-ack', rst_without_ack))


def name(test):
    return test.__name__.replace('_', '-')


NAMES = {name(test) for test in (*SHOWN, *SHOWN_BY_ANY)} | {text for text, _ in CAUSES}


def first_difference(comparison):
    """Index of the first step where the answers differ; None when there is none."""
    return next((i for i, step in enumerate(comparison.steps) if not step.same), None)


def differ_otherwise(a, i, b, j):
    """Whether two comparisons differ in other ways at the steps i and j, of the same packet."""
    one, other = moments(a, i + 1).get(i), moments(b, j + 1).get(j)
    if one is None or other is None:
        return False
    looks = [(m.drops, m.state('kernel'), m.state('sluice'), m.uncounted) for m in (one, other)]
    pairs = ((one.kernel, other.kernel), (one.sluice, other.sluice))
    return looks[0] != looks[1] or any(x and y and abs(x.left - y.left) > SLACK for x, y in pairs)


def explanations(comparison):
    """What the first difference may come from, as (name, indices of steps): if it does, it is not
    there without these."""
    at = first_difference(comparison)
    for test in SHOWN_BY_ANY:
        if test(comparison.steps[:at], comparison.steps[at]):
            return [(name(test), {at})]
    found = moments(comparison, at + 1)
    if at not in found:
        return []
    now = found[at]
    for test in SHOWN:
        if test(now):
            return [(name(test), {at})]
    causes = [(text, {i for i, m in found.items() if m in now.life and test(m)})
              for text, test in CAUSES]
    return [(text, steps) for text, steps in causes if steps]
