# SPDX-License-Identifier: BSD-3-Clause
"""What a gateway answers to a step, in a form that both have in common.

An answer as text is `pass; tcp SYN_SENT 120 UNREPLIED A:40000>S:80 1/44 S:80>A:40000 0/0`: what
came of the packet, and after a semicolon each entry: protocol, state, seconds left, flags, the two
directions, with @ZONE where they are in one, with packets/bytes of each if they are counted."""

import copy
import re
import struct

import build
from hosts import name_of

TCP, UDP, ICMP, ICMPV6, GRE, SCTP, UDPLITE = 6, 17, 1, 58, 47, 132, 136
PROTOCOL_NAME = {TCP: 'tcp', UDP: 'udp', ICMP: 'icmp', ICMPV6: 'icmpv6', GRE: 'gre', SCTP: 'sctp',
                 UDPLITE: 'udplite'}
WITH_PORTS = (TCP, UDP, UDPLITE, SCTP)
COUNTERS = re.compile(r'[0-9]+/[0-9]+')


class Direction:
    """One tuple of an entry. ids: ports, or (type, code, id) of ICMP, or the two keys of GRE.
    packets, octets: None where they are not counted."""

    def __init__(self, protocol, src, dst, ids, packets, octets, zone=0):
        self.protocol, self.src, self.dst, self.ids = protocol, src, dst, ids
        self.packets, self.octets, self.zone = packets, octets, zone

    @property
    def key(self):
        return self.src, self.dst, self.ids, self.zone

    def __str__(self):
        return self._tuple() + (f'@{self.zone}' if self.zone else '')

    def _tuple(self):
        src, dst = name_of(self.src), name_of(self.dst)
        if self.protocol in (*WITH_PORTS, GRE):
            return f'{src}:{self.ids[0]}>{dst}:{self.ids[1]}'
        if self.protocol in (ICMP, ICMPV6):
            return f'{src}>{dst}={self.ids[0]}/{self.ids[1]},{self.ids[2]}'
        return f'{src}>{dst}'


class Entry:
    def __init__(self, protocol, state, left, flags, directions):
        self.protocol, self.state, self.left = protocol, state, left
        self.flags, self.directions = flags, directions

    @property
    def key(self):
        """What must be equal."""
        return (self.protocol, self.state or '', self.flags,
                tuple((d.key, d.packets, d.octets) for d in self.directions))

    @property
    def counted(self):
        return self.directions[0].packets is not None

    def uncounted(self):
        """The same without its counters."""
        return Entry(self.protocol, self.state, self.left, self.flags, tuple(
            Direction(d.protocol, d.src, d.dst, d.ids, None, None, d.zone)
            for d in self.directions))

    def words(self):
        yield PROTOCOL_NAME.get(self.protocol, f'proto={self.protocol}')
        if self.state:
            yield self.state
        yield str(self.left)
        yield from self.flags
        for d in self.directions:
            yield str(d)
            if self.counted:
                yield f'{d.packets}/{d.octets}'

    def __str__(self):
        return ' '.join(self.words())

    def like(self, text, slack):
        """Whether a text that may leave words out describes this entry."""
        mine = list(self.words())
        left = str(self.left)
        for word in text.split():
            if word in mine and word != left:
                continue
            if not self.counted and COUNTERS.fullmatch(word):
                continue
            if not (word.isdigit() and abs(int(word) - self.left) <= slack):
                return False
        flags = {'ASSURED', 'UNREPLIED'}
        return set(text.split()) & flags == set(self.flags) & flags


def flags_of(seen_reply, assured):
    return tuple(name for name, on in (('UNREPLIED', not seen_reply), ('ASSURED', assured)) if on)


def agree(a, b, slack):
    """Whether two lists of entries are the same, timeouts by `slack` seconds."""
    if len(a) != len(b):
        return False
    pairs = zip(sorted(a, key=lambda e: e.key), sorted(b, key=lambda e: e.key))
    return all(x.key == y.key and abs(x.left - y.left) <= slack for x, y in pairs)


# ---- packets ----

def trimmed(packet):
    """Without what is behind the IP packet."""
    if len(packet) >= 20 and packet[0] >> 4 == 4:
        return packet[:struct.unpack_from('!H', packet, 2)[0]]
    if len(packet) >= 40 and packet[0] >> 4 == 6:
        return packet[:40 + struct.unpack_from('!H', packet, 4)[0]]
    return packet


def normal(packet):
    """What does not depend on the gateway being a router: no TTL, no IPv4 header sum. That sum is
    checked before, from scratch."""
    packet = trimmed(packet)
    if packet[:1] and packet[0] >> 4 == 4 and len(packet) >= 20:
        return packet[:8] + b'\0' + packet[9:10] + b'\0\0' + packet[12:]
    if packet[:1] and packet[0] >> 4 == 6 and len(packet) >= 40:
        return packet[:7] + b'\0' + packet[8:]
    return packet


def normal_made(packet):
    """The same of a packet that the gateway has made: its identification is its own, and the packet
    inside of an error may have been on its way to be routed, with its TTL."""
    packet = bytearray(normal(packet))
    v6 = packet[0] >> 4 == 6
    at = 40 if v6 else (packet[0] & 15) * 4
    if not v6:
        packet[4:8] = bytes(4)
    if packet[6 if v6 else 9] in (ICMP, ICMPV6) and len(packet) >= at + 28:
        inner = at + 8
        packet[at + 2:at + 4] = bytes(2)
        packet[inner + (7 if v6 else 8)] = 0
        if not v6:
            packet[inner + 10:inner + 12] = bytes(2)
    return bytes(packet)


def short(packet):
    """A packet in a report: its length and its headers."""
    return f'{len(packet)}={packet[:64].hex()}{"…" if len(packet) > 64 else ""}'


def header_sum_good(packet):
    if packet[0] >> 4 != 4:
        return True
    return build.checksum(packet[:(packet[0] & 15) * 4]) == 0


def transport_sum_good(packet):
    """From scratch, of a packet that is no fragment; True where there is none to check."""
    packet = trimmed(packet)
    if packet[0] >> 4 == 4:
        size, protocol = (packet[0] & 15) * 4, packet[9]
        src, dst = packet[12:16], packet[16:20]
    else:
        size, protocol = 40, packet[6]
        src, dst = packet[8:24], packet[24:40]
    body = packet[size:]
    if protocol == SCTP:
        return len(body) >= 12 and build.crc32c(body[:8] + bytes(4) + body[12:]) == body[8:12]
    if protocol in (TCP, ICMPV6):
        return build.checksum(build.pseudo(src, dst, protocol, len(body)) + body) == 0
    if protocol == UDP and len(body) >= 8:
        length, total = struct.unpack_from('!HH', body, 4)
        if total == 0:
            return True
        return build.checksum(build.pseudo(src, dst, protocol, length) + body[:length]) == 0
    if protocol == ICMP:
        return build.checksum(body) == 0
    return True


class Answer:
    """outputs: (side, packet from the IP header on) of what came out because of the step. sent:
    what went in, where that depends on the gateway, as a Step. broken: packets among the outputs
    whose IPv4 header sum is wrong."""

    def __init__(self, outputs, entries, sent=None, broken=()):
        self.outputs, self.entries, self.sent = outputs, entries, sent
        self.broken = [*broken, *(packet for _, packet in outputs if not header_sum_good(packet))]
        self.sums = [transport_sum_good(packet) for _, packet in outputs]

    def uncounted(self):
        """The same without the entries' counters."""
        same = copy.copy(self)
        same.entries = [e.uncounted() for e in self.entries]
        return same

    def verdict(self, step):
        step = self.sent or step
        if not self.outputs:
            return 'drop'
        if len(self.outputs) == 1 and self.outputs[0][0] != step.side and \
                normal(self.outputs[0][1]) == normal(step.data):
            return 'pass'
        return 'out ' + ' '.join(f'{side}:{short(normal(p))}' for side, p in self.outputs)

    def text(self, step):
        return '; '.join([self.verdict(step), *sorted(map(str, self.entries))])

    def like(self, step, text, slack):
        """Whether an answer written in a scenario describes this one."""
        verdict, *entries = [part.strip() for part in text.split(';')]
        left = list(self.entries)
        for wanted in entries:
            found = next((e for e in left if e.like(wanted, slack)), None)
            if found is None:
                return False
            left.remove(found)
        mine = self.verdict(step)
        return not left and verdict in (mine, mine.split()[0], self.ident(step))

    def ident(self, step):
        """Whether what came out has the IPv4 identification of what went in."""
        step = self.sent or step
        same = {packet[4:6] == step.data[4:6] for _, packet in self.outputs}
        return {True: 'same-id', False: 'other-id'}[same.pop()] if len(same) == 1 else None
