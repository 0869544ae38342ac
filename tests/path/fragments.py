# SPDX-License-Identifier: BSD-3-Clause
"""Fragments of packets, cut at chosen places."""
import struct

from packets import checksum, patch

HEADERS = 14 + 20  # Ethernet and IPv4 without options
HEADERS6 = 14 + 40


def cut(frame, *lengths, ident=1):
    """The fragments of an untagged frame: payloads of these lengths, the rest in the last."""
    head, payload = (frame[:HEADERS6], frame[HEADERS6:]) if v6(frame) else \
        (frame[:HEADERS], frame[HEADERS:])
    ends = [sum(lengths[:i + 1]) for i in range(len(lengths))] + [len(payload)]
    starts = [0, *ends[:-1]]
    return [fragment(head, start, payload[start:end], end < len(payload), ident)
            for start, end in zip(starts, ends)]


def v6(frame):
    return frame[12:14] == b'\x86\xdd'


def fragment(head, offset, payload, more, ident=1):
    """One fragment. head: the frame up to the payload, of a packet that is whole."""
    if v6(head):
        header = struct.pack('!BBHI', head[20], 0, offset | more, ident)
        size = struct.pack('!H', len(payload) + 8)
        return head[:18] + size + b'\x2c' + head[21:] + header + payload
    field = struct.unpack('!H', head[20:22])[0] & 0xC000 | more << 13 | offset // 8
    head = patch(head, 16, struct.pack('!HHH', len(head) - 14 + len(payload), ident, field))
    head = patch(head, 24, b'\0\0')
    return patch(head, 24, struct.pack('!H', checksum(head[14:]))) + payload


class Arrivals:
    """Fragments into a case, some milliseconds apart, all from inside."""

    def __init__(self, case, start=0, step=.001):
        self.case, self.next, self.step = case, start, step

    def waits(self, *frames):
        """They are held, or dropped as the case says elsewhere."""
        for frame in frames:
            moment = self.case.at(self.next)
            self.case.arrivals.append((moment.ns, 'in', frame))
            self.next += self.step
        return self

    def completes(self, frame, *leave):
        """With it, all of `leave` goes out."""
        moment = self.case.at(self.next)
        self.case.arrivals.append((moment.ns, 'in', frame))
        self.case.departures += [(moment.ns, 'out', f) for f in leave]
        self.next += self.step
        return self
