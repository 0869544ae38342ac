# SPDX-License-Identifier: BSD-3-Clause
"""What a gateway may choose freely: an address and a port of a rule's range. Two gateways choose
differently; what they have chosen has to be within the range, no two connections' the same, and in
every packet of the connection. So the choice, as the entry tells it, is put back to one form in
entries and packets, and a packet that has not got its connection's stays as it is, and differs.

    free ADDR[-ADDR][:PORT-PORT]      in a scenario: what its rules may choose for a source
"""

import ipaddress
import struct

import answers
from answers import ICMP, ICMPV6, TCP, UDP, UDPLITE, WITH_PORTS, Answer, Direction, Entry

AT_SUM = {TCP: 16, UDP: 6, UDPLITE: 6, ICMP: 2, ICMPV6: 2}
SCTP_SUM = 8
ERRORS = {ICMP: (3, 4, 5, 11, 12), ICMPV6: (1, 2, 3, 4)}


class Free:
    """A range, as text."""

    def __init__(self, text):
        self.text = text
        self.v6 = text.startswith('[')
        if self.v6:
            span, _, ports = text[1:].partition(']')
            ports = ports[1:]
        else:
            span, _, ports = text.partition(':')
        low, _, high = span.partition('-')
        self.low = ipaddress.ip_address(low)
        self.high = ipaddress.ip_address(high or low)
        first, _, last = ports.partition('-')
        self.ports = (int(first), int(last or first)) if ports else (0, 65535)

    def has(self, address):
        address = ipaddress.ip_address(address)
        return address.version == self.low.version and self.low <= address <= self.high

    def allows(self, address, number):
        return self.has(address) and self.ports[0] <= number <= self.ports[1]


def chosen(entry):
    """(address, number) that stand for the source; None where it is not translated."""
    d0, d1 = entry.directions
    if entry.protocol in WITH_PORTS:
        if (d1.dst, d1.ids[1]) != (d0.src, d0.ids[0]):
            return d1.dst, d1.ids[1]
    elif entry.protocol in (ICMP, ICMPV6):
        if (d1.dst, d1.ids[2]) != (d0.src, d0.ids[2]):
            return d1.dst, d1.ids[2]
    elif d1.dst != d0.src:
        return d1.dst, 0
    return None


def wrong(answer, free):
    """Why what was chosen cannot be; None when all is well."""
    taken = set()
    for e in answer.entries:
        reply = e.protocol, e.directions[1].key
        if reply in taken:
            return f'{e}: two connections have this tuple'
        taken.add(reply)
        choice = chosen(e)
        if choice and any(f.has(choice[0]) for f in free) and \
                not any(f.allows(*choice) for f in free):
            return f'{e}: out of the range'
    return None


def _canonical_entry(e, free):
    choice = chosen(e)
    if choice is None or not any(f.has(choice[0]) for f in free):
        return e
    d = e.directions[1]
    low = next(str(f.low) for f in free if f.has(choice[0]))
    ids = d.ids
    if e.protocol in WITH_PORTS:
        ids = (d.ids[0], e.directions[0].ids[0])
    elif e.protocol in (ICMP, ICMPV6):
        ids = (d.ids[0], d.ids[1], e.directions[0].ids[2])
    reply = Direction(e.protocol, d.src, low, ids, d.packets, d.octets, d.zone)
    return Entry(e.protocol, e.state, e.left, e.flags, (e.directions[0], reply))


class View:
    """Where in a packet the fields of its tuple are; at: offset of its IP header."""

    def __init__(self, packet, at=0):
        self.packet, self.at = packet, at
        self.v6 = packet[at] >> 4 == 6
        if self.v6:
            self.protocol, self.l4 = packet[at + 6], at + 40
            self.src, self.dst, self.size = at + 8, at + 24, 16
        else:
            self.protocol, self.l4 = packet[at + 9], at + (packet[at] & 15) * 4
            self.src, self.dst, self.size = at + 12, at + 16, 4

    def address(self, at):
        return str(ipaddress.ip_address(bytes(self.packet[at:at + self.size])))

    def numbers(self):
        """(source, destination) ports or ids, with their offsets."""
        if self.protocol in WITH_PORTS:
            return self.l4, self.l4 + 2
        if self.protocol in (ICMP, ICMPV6):
            return self.l4 + 4, self.l4 + 4
        return None, None

    def number(self, at):
        return struct.unpack_from('!H', self.packet, at)[0] if at is not None else 0

    @property
    def is_error(self):
        return self.protocol in ERRORS and self.packet[self.l4] in ERRORS[self.protocol]

    def put(self, address_at, number_at, address, number):
        self.packet[address_at:address_at + self.size] = ipaddress.ip_address(address).packed
        if number_at is not None:
            struct.pack_into('!H', self.packet, number_at, number)
        at = self.l4 + AT_SUM.get(self.protocol, 0)
        if self.protocol in AT_SUM and at + 2 <= len(self.packet):
            self.packet[at:at + 2] = bytes(2)
        elif self.protocol == answers.SCTP:
            self.packet[self.l4 + SCTP_SUM:self.l4 + SCTP_SUM + 4] = bytes(4)


def _canonical_tuple(view, entries, free):
    """Puts the choice in a packet's tuple back, whichever direction it has."""
    source, target = view.numbers()
    ends = ((view.address(view.src), view.number(source)),
            (view.address(view.dst), view.number(target)))
    for e in entries:
        choice = chosen(e)
        if e.protocol != view.protocol or choice is None:
            continue
        f = next((f for f in free if f.has(choice[0])), None)
        d0, d1 = e.directions
        far = (d1.src, d1.ids[0] if e.protocol in WITH_PORTS else choice[1])
        own = d0.ids[0] if e.protocol in WITH_PORTS else d0.ids[2] if d0.ids else 0
        if f is None:
            continue
        if ends == (choice, far):
            view.put(view.src, source, str(f.low), own)
        elif ends == (far, choice):
            view.put(view.dst, target, str(f.low), own)


def _canonical_packet(packet, entries, free):
    whole = bytearray(packet)
    view = View(whole)
    if view.is_error and len(whole) >= view.l4 + 8 + (48 if view.v6 else 28):
        # The error's own destination is the choice, too: that of the packet inside.
        inner = View(whole, view.l4 + 8)
        for address_at in (view.src, view.dst):
            if any(f.has(view.address(address_at)) for f in free):
                low = next(str(f.low) for f in free if f.has(view.address(address_at)))
                view.put(address_at, None, low, 0)
        _canonical_tuple(inner, entries, free)
        at = view.l4 + 2
        whole[at:at + 2] = bytes(2)
    elif not view.is_error:
        _canonical_tuple(view, entries, free)
    return bytes(whole)


def canonical(answer, free):
    """The answer with what was chosen put to one form."""
    entries = [_canonical_entry(e, free) for e in answer.entries]
    same = Answer([(side, _canonical_packet(packet, answer.entries, free))
                   for side, packet in answer.outputs], entries, answer.sent)
    same.broken, same.sums = answer.broken, answer.sums
    return same
