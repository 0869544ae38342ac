# SPDX-License-Identifier: BSD-3-Clause
"""Whole datagrams out of what a gateway sent. The kernel joins fragments and cuts them again after
the last has come, so of fragments the order and the boundaries are the gateway's own; what their
receiver makes of them is not."""

import struct

from answers import normal, trimmed

MORE = 0x2000
FRAGMENT = 44
EXTENSIONS = (0, 43, 60)


def _part4(packet):
    """(key, offset, more, payload, head) of a fragment; None of a whole packet."""
    field = struct.unpack_from('!H', packet, 6)[0]
    if not field & 0x3FFF:
        return None
    size = (packet[0] & 15) * 4
    head = packet[:2] + b'\0\0' + packet[4:6] + b'\0\0' + packet[8:size]
    return packet[9:10] + packet[12:20] + packet[4:6], (field & 0x1FFF) * 8, field & MORE, \
        packet[size:], head


def _part6(packet):
    at, kind = 40, packet[6]
    while kind in EXTENSIONS:
        kind, at = packet[at], at + (packet[at + 1] + 1) * 8
    if kind != FRAGMENT:
        return None
    field = struct.unpack_from('!H', packet, at + 2)[0]
    head = packet[:4] + b'\0\0' + packet[6:at] + packet[at:at + 1]
    return packet[8:40] + packet[at + 4:at + 8], field & 0xFFF8, field & 1, packet[at + 8:], head


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
        return self.head + bytes(self.octets[i] for i in range(self.end))


def datagrams(outputs):
    """The datagrams that the receivers have in the end, as sorted (side, octets)."""
    found, pieces = [], {}
    for side, packet in outputs:
        packet = trimmed(normal(packet))
        part = _part4(packet) if packet[0] >> 4 == 4 else _part6(packet)
        if part is None:
            found.append((side, packet))
            continue
        key, *rest = part
        one = pieces.setdefault((side, key), Pieces())
        one.add(*rest)
        if one.whole() is not None:
            found.append((side, one.whole()))
            del pieces[side, key]
    return sorted(found)
