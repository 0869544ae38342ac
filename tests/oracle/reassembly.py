# SPDX-License-Identifier: BSD-3-Clause
"""Whole datagrams out of what a gateway sent. The kernel joins fragments and cuts them again after
the last has come, so of fragments the order and the boundaries are the gateway's own; what their
receiver makes of them is not."""

import struct

import build
from answers import Answer, normal, trimmed

MORE = 0x2000
FRAGMENT = 44
EXTENSIONS = (0, 43, 60)


def _part4(packet):
    """(key, offset, more, payload, head) of a fragment; None of a whole packet."""
    field = struct.unpack_from('!H', packet, 6)[0]
    if not field & 0x3FFF:
        return None
    size = (packet[0] & 15) * 4
    head = packet[:6] + b'\0\0' + packet[8:size]
    return packet[9:10] + packet[12:20] + packet[4:6], (field & 0x1FFF) * 8, field & MORE, \
        packet[size:], head


def _part6(packet):
    at, kind, last = 40, packet[6], 6
    while kind in EXTENSIONS:
        last = at
        kind, at = packet[at], at + (packet[at + 1] + 1) * 8
    if kind != FRAGMENT:
        return None
    field = struct.unpack_from('!H', packet, at + 2)[0]
    head = packet[:last] + packet[at:at + 1] + packet[last + 1:at]
    return packet[8:40] + packet[at + 4:at + 8], field & 0xFFF8, field & 1, packet[at + 8:], head


def _joined(head, payload):
    """A packet of the header of a fragment and what the datagram carries."""
    if head[0] >> 4 == 4:
        return head[:2] + struct.pack('!H', len(head) + len(payload)) + head[4:] + payload
    return head[:4] + struct.pack('!H', len(head) - 40 + len(payload)) + head[6:] + payload


class Pieces:
    """The fragments of one datagram. The first octets that came for a place stay."""

    def __init__(self):
        self.octets, self.end, self.head = {}, None, None

    def add(self, offset, more, payload, head):
        for i, octet in enumerate(payload):
            self.octets.setdefault(offset + i, octet)
        if offset == 0:
            self.head = head
        if not more:
            self.end = offset + len(payload)

    def whole(self):
        if self.end is None or any(i not in self.octets for i in range(self.end)):
            return None
        return _joined(self.head, bytes(self.octets[i] for i in range(self.end)))


def datagrams(outputs):
    """The datagrams that the receivers have in the end, as (side, IP packet, whether it came in
    fragments)."""
    found, pieces = [], {}
    for side, packet in outputs:
        packet = trimmed(normal(packet))
        part = _part4(packet) if packet[0] >> 4 == 4 else _part6(packet)
        if part is None:
            found.append((side, packet, False))
            continue
        key, *rest = part
        one = pieces.setdefault((side, key), Pieces())
        one.add(*rest)
        if one.whole() is not None:
            found.append((side, one.whole(), True))
            del pieces[side, key]
    return found


def joined(answer):
    """The answer with whole datagrams for its outputs. Those of IPv4 that came in fragments and
    have another source have an identification of the gateway's (docs/differences.md)."""
    source = build.address(answer.sent.packet.src)
    outputs = []
    for side, packet, in_fragments in datagrams(answer.outputs):
        if in_fragments and packet[0] >> 4 == 4 and packet[12:16] != source:
            packet = packet[:4] + b'\0\0' + packet[6:]
        outputs.append((side, build.resummed(packet) if packet[0] >> 4 == 4 else packet))
    return Answer(outputs, answer.entries, answer.sent, broken=answer.broken)
