# SPDX-License-Identifier: BSD-3-Clause
"""Which section of docs/differences.md a difference of a random scenario belongs to. Each test here
looks for just its own packets and answers; what none of them knows is a fault."""

from answers import TCP
from hosts import name_of

NO_KIND = set('PUEC-')


def after(a, b):
    """a is behind b (RFC 9293, 3.4)."""
    return (b - a) % 2**32 > 2**31


class Segment:
    """A TCP packet."""

    def __init__(self, packet):
        self.source, self.target = (packet.src, packet.sport), (packet.dst, packet.dport)
        self.kind = ''.join(sorted(set(packet.words[0]) - NO_KIND))
        self.seq, self.ack = packet.get('seq') % 2**32, packet.get('ack') % 2**32
        length = packet.get('data') + ('S' in self.kind) + ('F' in self.kind)
        self.end = (self.seq + length) % 2**32

    def same_flow(self, other):
        return {self.source, self.target} == {other.source, other.target}


class Context:
    """The first step where the two differ: its packet, and its entry before and after. earlier: the
    flow's packets before it, the last one first, each with the entry before it and after it."""

    def __init__(self, comparison, at):
        step = comparison.steps[at]
        self.p = Segment(step.step.packet)
        self.earlier, old = [], None
        for s in comparison.steps[:at]:
            entry = self._entry(s.kernel)
            p = Segment(s.step.packet) if s.step.packet.proto == 'tcp' else None
            if p is not None and p.same_flow(self.p):
                self.earlier.insert(0, (p, old, entry))
            old = entry
        self.old = old
        self.kernel, self.sluice = self._entry(step.kernel), self._entry(step.sluice)
        self.drops = tuple(not answer.outputs for answer in (step.kernel, step.sluice))

    def _entry(self, answer):
        ends = {self.p.source, self.p.target}
        return next((e for e in answer.entries
                     if e.protocol == TCP and set(sides(e)) == ends), None)

    def state(self, which):
        e = getattr(self, which)
        return e.state if e else None

    @property
    def is_rst(self):
        return self.p.kind in ('R', 'AR')

    @property
    def is_reply(self):
        return from_reply(self.p, self.old)

    def life(self):
        """Earlier packets up to the one that made the entry, the last one first."""
        for p, old, new in self.earlier:
            yield p, old, new
            if new is not None and counts(new) == (1, 0) and (old is None or counts(old) > (1, 0)):
                return

    def syns(self):
        """SYNs of the client, the last one first."""
        return [p for p, _, new in self.life() if p.kind == 'S' and not from_reply(p, new)]


def sides(entry):
    """(host, port) of the client and of the server."""
    d = entry.directions[0]
    return (name_of(d.src), d.ids[0]), (name_of(d.dst), d.ids[1])


def counts(entry):
    return tuple(d.packets for d in entry.directions)


def uncounted(old, new):
    """Whether a packet with these entries before and after it did not count."""
    return old is not None and new is not None and counts(old) == counts(new)


def from_reply(packet, entry):
    return entry is not None and sides(entry)[1] == packet.source


def tcp_rst_in_window(c):
    """Ten seconds or five minutes are left, all else is the same."""
    states = {c.state('old'), c.state('kernel'), c.state('sluice')}
    return (c.is_rst and states == {'ESTABLISHED'} and 'ASSURED' in c.old.flags
            and c.drops == (False, False) and c.kernel.key == c.sluice.key
            and c.kernel.left <= 10 < c.sluice.left <= 300)


def tcp_rst_after_syn(c):
    """Between a SYN that was passed without effect and the RST nothing counted. Of a RST that is
    INVALID nevertheless the kernel keeps that its sender has left."""
    resets = c.is_rst
    for p, old, new in c.earlier:
        if new is None or c.old is None or counts(new) != counts(c.old):
            return False
        if p.kind == 'S' and uncounted(old, new):
            return (resets and c.state('sluice') == c.state('old')
                    and c.state('kernel') in ('CLOSE', c.state('old')))
        resets = resets or p.kind in ('R', 'AR')
    return False


def tcp_rst_beyond_syn(c):
    if c.p.kind != 'AR' or c.state('old') != 'SYN_SENT' or not c.is_reply:
        return False
    syns = c.syns()
    return (bool(syns) and c.p.ack == (syns[0].end + 1) % 2**32
            and c.state('kernel') in (None, 'CLOSE') and c.state('sluice') == 'SYN_SENT')


def is_old_synack(p, old, syns):
    """It acknowledges nothing of the SYN before it."""
    return (p.kind == 'AS' and old is not None and old.state == 'SYN_SENT' and from_reply(p, old)
            and bool(syns) and not after(p.ack, syns[0].seq))


def tcp_synack_old(c):
    """The kernel takes the window from it, and the state when it is not too old."""
    if is_old_synack(c.p, c.old, c.syns()):
        return c.state('kernel') == 'SYN_RECV' and c.state('sluice') == 'SYN_SENT'
    syns = []
    for p, old, new in reversed(list(c.life())):
        if p.kind == 'S' and not from_reply(p, new):
            syns.insert(0, p)
        elif is_old_synack(p, old, syns):
            return True
    return False


def tcp_syn_lower(c):
    """The kernel goes on with the first SYN, Sluice with the last."""
    syns = c.syns()
    if c.p.kind == 'S' and c.state('old') == 'SYN_SENT' and not c.is_reply:
        syns.insert(0, c.p)
    return any(after(earlier.seq, later.seq) for later, earlier in zip(syns, syns[1:]))


def tcp_pickup(c):
    """Picked up amid: the kernel does not know the window of the side not heard yet."""
    begun = list(c.life())[-1:]
    if not begun or begun[0][0].kind != 'A' or c.state('old') != 'ESTABLISHED':
        return False
    if c.is_rst:
        return {c.state('kernel'), c.state('sluice')} <= {None, 'CLOSE', 'ESTABLISHED'}
    return (c.state('kernel') == c.state('sluice') == 'ESTABLISHED' and c.kernel.key == c.sluice.key
            and c.drops == (False, False))


def tcp_rst_without_ack(c):
    """The unused field of a RST without ACK, zero, is what the kernel compares with the end of the
    last segment; in SYN_SENT2 it has kept none, which is zero too."""
    if any(p.kind == 'R' and old is not None and old.state == 'SYN_SENT2'
           for p, old, _ in c.life()):
        return c.state('kernel') == c.state('sluice') == 'CLOSE'
    return (c.p.kind == 'R' and c.state('kernel') == 'CLOSE' and c.state('old') == c.state('sluice')
            and (c.state('old') == 'SYN_SENT2' or any(p.end == 0 for p, _, _ in c.life())))


def tcp_refused_segment(c):
    """A FIN or RST that did not count is between what is answered and the answer."""
    for p, old, new in c.earlier:
        if not uncounted(old, new):
            return False
        if p.kind in ('AF', 'R', 'AR'):
            return c.p.kind in ('S', 'A', 'AR', 'AS')
    return False


def tcp_rst_beyond_window(c):
    """A RST beyond the window was passed; the kernel takes its sequence for sent."""
    life = list(c.life())
    for i, (p, old, new) in enumerate(life):
        if p.kind in ('R', 'AR') and uncounted(old, new):
            sent = [q.end for q, before, then in life[i + 1:]
                    if q.source == p.source and not uncounted(before, then)]
            if all(after(p.seq, end) for end in sent):
                return True
    return False


def tcp_rst_syn_recv(c):
    """A RST of the server that was passed in SYN_RECV and did not count lies before the packet."""
    return any(p.kind in ('R', 'AR') and old is not None and old.state == 'SYN_RECV'
               and from_reply(p, old) and uncounted(old, new) for p, old, new in c.life())


def tcp_after_reset(c):
    """In CLOSE, of an attempt whose SYN was answered, but not by a SYN/ACK, before the RST."""
    answers = [p for p, old, _ in c.life() if from_reply(p, old) and old.state == 'SYN_SENT']
    return (c.state('old') == c.state('kernel') == c.state('sluice') == 'CLOSE'
            and any('S' not in p.kind and 'R' not in p.kind for p in answers))


TESTS = (tcp_rst_in_window, tcp_rst_after_syn, tcp_rst_beyond_syn, tcp_rst_without_ack,
         tcp_refused_segment, tcp_synack_old, tcp_syn_lower, tcp_pickup, tcp_rst_beyond_window,
         tcp_rst_syn_recv, tcp_after_reset)


def first_difference(comparison):
    """Index of the first step where the answers differ; None when there is none."""
    return next((i for i, step in enumerate(comparison.steps) if not step.same), None)


def name_of_difference(comparison):
    """Of the first difference its name in the documents; None when it has none."""
    at = first_difference(comparison)
    if comparison.steps[at].step.packet.proto != 'tcp':
        return None
    context = Context(comparison, at)
    return next((test.__name__.replace('_', '-') for test in TESTS if test(context)), None)
