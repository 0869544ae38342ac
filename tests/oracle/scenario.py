# SPDX-License-Identifier: BSD-3-Clause
"""Scenarios: what goes into both gateways. They are text; `#` begins a comment.

    scenario handshake, then a RST in the window
    about B13a: what it is for, any number of lines
    knob nf_conntrack_tcp_loose=0
    uncounted                     Sluice counts no packets of entries, and counters are not compared
    invalid pass                  INVALID packets are forwarded; without the line both drop them
    invalid default               each does what it does with them by itself
    rule forward tcp dport 80 accept
    address inside 198.51.100.1/24     of a link of Sluice, which so knows what is behind it; the
                                       kernel has routes
    A:40000 > S:80 tcp S seq=1000
    +2.1 S:80 > A:40000 tcp SA seq=5000 ack=1001       2.1 s later
    S:80 > A:40000 tcp R seq=5101 ack=1001
        differs inexact-rst
        kernel pass; tcp CLOSE 10 ASSURED
        sluice pass; tcp ESTABLISHED 300 ASSURED

A step is a packet. After each the two must agree, but where the step states both answers; `differs`
names the section of docs/differences.md that says why. An answer is what answers.py prints: what
came of the packet and the entries there are then. An entry may leave words out, and `out` is what
came out otherwise than the packet went in.

    datagram d S:53 > A:40000 udp data=3000            a packet to be sent in fragments
    datagram e answer A:40000 > S:53 udp data=3000     see below
    fragment d 0-1480                                  octets of its payload; to the end: 1480-

Where a rule leaves a choice, `free` says which (choices.py), and packets that depend on it are
written by the connection that they belong to, as its first packet has it:

    free 203.0.113.1:5000-5003
    answer A:5000 > S:53 udp data=9                    from S to what stands for A:5000 there
    error R icmp 3/1 A:5000 > S:53 udp data=20         about that packet as it left the gateway
"""

import copy
import functools
import itertools
import pathlib
import re

import build
import choices
from answers import WITH_PORTS
from hosts import ADDRESS, host_of, side_of
from packet import Malformed, Packet

IP4_MORE, IP6_MORE = 0x2000, 1
INVALID_TO = ('drop', 'pass', 'default')
ZONE_SET = re.compile(r'zone set (\d+)')


class Step:
    """One packet. after: seconds since the step before."""

    def __init__(self, packet, after=0.0, text=None, data=None):
        self.packet, self.after = packet, after
        self.part = None            # of a fragment the name of its datagram and the octets
        self.text = text or str(packet)
        self._data = data
        self.differs, self.kernel, self.sluice = None, None, None

    @property
    def side(self):
        return side_of(self.packet.src)

    @property
    def data(self):
        """The bytes from the IP header on."""
        if self._data is None:
            self._data = build.l3(self.packet)
        return self._data

    def sent(self, entries):
        """The step as it is sent to a gateway that has these entries."""
        return self

    def lines(self):
        yield (f'+{self.after:g} ' if self.after else '') + self.text
        if self.differs:
            yield f'    differs {self.differs}'
            yield f'    kernel {self.kernel}'
            yield f'    sluice {self.sluice}'


def entry_of(packet, entries):
    """The entry whose original direction a packet has, or None."""
    ends = ADDRESS[packet.src], ADDRESS[packet.dst]
    for e in entries:
        d = e.directions[0]
        if e.protocol != packet.protocol or (d.src, d.dst) != ends:
            continue
        if packet.protocol in WITH_PORTS and d.ids != (packet.sport, packet.dport):
            continue
        if packet.proto == 'icmp' and d.ids[2] != packet.get('id'):
            continue
        return e
    return None


class Related(Step):
    """A packet that goes with a connection, whatever the gateway has made of that. packet: the one
    in the text, which has the original direction."""

    def far_ends(self, entries):
        """Ends of the reply tuple, as written, and the ICMP id there."""
        p = self.packet
        e = entry_of(p, entries)
        if e is None:
            return self._end(p.dst, p.dport), self._end(p.src, p.sport), p.get('id')
        d = e.directions[1]
        src, dst = host_of(d.src, p.dst), host_of(d.dst, 'S')
        if p.protocol in WITH_PORTS:
            return self._end(src, d.ids[0]), self._end(dst, d.ids[1]), 0
        return src, dst, d.ids[2] if p.proto == 'icmp' else 0

    @staticmethod
    def _end(host, port):
        return host if port is None else f'{host}:{port}'

    def words(self, ident):
        """Of the packet what follows its ends."""
        return [f'id={ident}' if word.startswith('id=') else word
                for word in self.packet.text.split()[3:]]


class Answering(Related):
    def sent(self, entries):
        src, dst, ident = self.far_ends(entries)
        return Step(Packet(' '.join([src, '>', dst, *self.words(ident)])), self.after)


class Error(Related):
    """head: its source, `icmp`, its type and fields."""

    def __init__(self, head, packet, after, text):
        super().__init__(packet, after, text)
        self.head = head

    def sent(self, entries):
        src, dst, ident = self.far_ends(entries)
        inner = ' '.join([dst, '>', src, *self.words(ident)])
        source, *rest = self.head.split()
        return Step(Packet(f'{source} > {dst.split(":")[0]} {" ".join(rest)} [{inner}]'),
                    self.after)


class Scenario:
    _identified = itertools.count()

    def __init__(self, name, source='', line=0):
        self.name, self.source, self.line = name, source, line
        self.about, self.knobs, self.rules, self.free = [], {}, [], []
        self.addresses = []
        self.invalid, self.counted = 'drop', True
        self.datagrams = {}
        self.steps = []

    def __str__(self):
        """As it would be written."""
        lines = [f'scenario {self.name}'] + [f'about {text}' for text in self.about]
        lines += [f'knob {key}={value}' for key, value in self.knobs.items()]
        lines += [] if self.counted else ['uncounted']
        if self.invalid != 'drop':
            lines.append(f'invalid {self.invalid}')
        lines += [f'rule {chain} {text}' for chain, text in self.rules]
        lines += [f'address {text}' for text in self.addresses]
        lines += [f'free {one.text}' for one in self.free]
        lines += [f'datagram {name} {one}' for name, one in self.datagrams.items()]
        for step in self.steps:
            lines += step.lines()
        return '\n'.join(lines)

    @functools.cached_property
    def first_ident(self):
        """Of its datagrams. The kernel keeps fragments that wait for others for up to a minute: in
        that time no other scenario has the same."""
        return next(self._identified) * 16

    @property
    def whole(self):
        """Whether what comes out is compared as whole datagrams, since fragments go in."""
        return bool(self.datagrams)

    @property
    def rejects(self):
        """Whether the gateway may answer by itself."""
        return any('reject' in text for _, text in self.rules)

    @property
    def translates(self):
        return any(chain in ('prerouting', 'postrouting') for chain, _ in self.rules)

    @property
    def depends(self):
        """Whether what is sent depends on what a gateway has chosen."""
        return any(isinstance(step, Related) for step in self.steps)

    @property
    def zones(self):
        """The zones that a connection can be in."""
        return sorted({0, *(int(n) for _, text in self.rules for n in ZONE_SET.findall(text))})

    def uncounted(self):
        """The very same packets."""
        other = copy.copy(self)
        other.counted = False
        return other

    def replaced(self, steps):
        """The same with other steps."""
        other = Scenario(self.name, self.source, self.line)
        other.knobs, other.rules, other.invalid = self.knobs, self.rules, self.invalid
        other.about, other.datagrams = self.about, self.datagrams
        other.free, other.addresses, other.counted = self.free, self.addresses, self.counted
        # Fragments of before may still wait in the kernel.
        other.steps = [fragment(other, *step.part) if step.part else step for step in steps]
        return other


class Datagram:
    """A packet to be sent in fragments; answer: what is sent answers it."""

    def __init__(self, text):
        word, _, rest = text.partition(' ')
        self.answer = word == 'answer'
        self.packet = Packet(rest if self.answer else text)

    def __str__(self):
        return f'answer {self.packet}' if self.answer else str(self.packet)


def part_of(packet, span, first_ident):
    """The bytes of a part of a packet. With MF but where the part reaches its end."""
    begin, _, end = span.partition('-')
    whole = build.transport(packet)
    first, last = int(begin), int(end) if end else len(whole)
    more, part = last < len(whole), whole[first:last]
    ident = first_ident + packet.get('ipid', 1)
    if not packet.v6:
        field = first // 8 | (IP4_MORE if more else 0)
        return build.ip4_packet(packet, part, field, ident & 0xFFFF)
    word = first | (IP6_MORE if more else 0)
    head = bytes([packet.protocol, 0]) + word.to_bytes(2, 'big') + ident.to_bytes(4, 'big')
    return build.ip6_packet(packet, head + part, build.EXTENSIONS['fragment'])


class AnsweringPart(Answering):
    """A part of an answer."""

    def sent(self, entries):
        packet = super().sent(entries).packet
        return Step(packet, self.after, data=part_of(packet, self.part[1], self.first_ident))


def fragment(scenario, name, span):
    """A step that sends a part of a datagram."""
    one, text = scenario.datagrams[name], f'fragment {name} {span}'
    if one.answer:
        step = AnsweringPart(one.packet, text=text)
        step.first_ident = scenario.first_ident
    else:
        step = Step(one.packet, text=text,
                    data=part_of(one.packet, span, scenario.first_ident))
    step.part = name, span
    return step


class Reader:
    """Reads a file of scenarios; a mistake is told with its line."""

    def __init__(self, path):
        self.path = path
        self.scenarios = []

    def read(self):
        for number, line in enumerate(self.path.read_text().splitlines(), 1):
            text = line.split('#')[0].rstrip()
            if not text:
                continue
            try:
                self.line(text, number)
            except (Malformed, ValueError, KeyError, IndexError) as e:
                raise Malformed(f'{self.path}:{number}: {e}: {line}') from e
        return self.scenarios

    def line(self, text, number):
        word, _, rest = text.strip().partition(' ')
        if word == 'scenario':
            self.scenarios.append(Scenario(rest, self.path.name, number))
            return
        if not self.scenarios:
            raise Malformed('no scenario has begun')
        now = self.scenarios[-1]
        if text[0].isspace():
            self.answer(now.steps[-1], word, rest)
        elif not self.setting(now, word, rest):
            now.steps.append(self.step(now, text))

    @staticmethod
    def answer(step, word, rest):
        if word not in ('differs', 'kernel', 'sluice'):
            raise Malformed(f'no such answer: {word}')
        setattr(step, word, rest)

    @staticmethod
    def setting(now, word, rest):
        match word:
            case 'about':
                now.about.append(rest)
            case 'knob':
                key, equals, value = rest.partition('=')
                if not equals:
                    raise Malformed('KEY=VALUE expected')
                now.knobs[key] = value
            case 'rule':
                now.rules.append(tuple(rest.split(' ', 1)))
            case 'address':
                now.addresses.append(rest)
            case 'free':
                now.free.append(choices.Free(rest))
            case 'uncounted':
                now.counted = False
            case 'invalid':
                if rest not in INVALID_TO:
                    raise Malformed(f'no such way with INVALID packets: {rest}')
                now.invalid = rest
            case 'datagram':
                name, _, packet = rest.partition(' ')
                now.datagrams[name] = Datagram(packet)
            case _:
                return False
        return True

    @staticmethod
    def step(now, text):
        after = 0.0
        if text[0] == '+':
            delay, _, text = text[1:].partition(' ')
            after = float(delay)
        word, _, rest = text.partition(' ')
        if word == 'fragment':
            name, _, span = rest.partition(' ')
            step = fragment(now, name, span)
            step.after = after
            return step
        if word == 'answer':
            return Answering(Packet(rest), after, text)
        if word == 'error':
            words = rest.split()
            at = words.index('>') - 1
            return Error(' '.join(words[:at]), Packet(' '.join(words[at:])), after, text)
        return Step(Packet(text), after)


def read(path):
    return Reader(path).read()


def read_all():
    """The scenarios of all files."""
    here = pathlib.Path(__file__).resolve().parent / 'scenarios'
    return [s for path in sorted(here.glob('*.txt')) for s in read(path)]
