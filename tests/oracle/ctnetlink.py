# SPDX-License-Identifier: BSD-3-Clause
"""Entries of the kernel over netlink (ctnetlink).

A dump walks all buckets of the one table of all network namespaces: tens of milliseconds. So
entries are asked for by the tuples that can have one, which takes microseconds, and the table is
dumped only when it has more entries than were found. A test compares both with conntrack(8)."""

import errno
import functools
import itertools
import socket
import struct

import build
from answers import Direction, Entry, GRE, ICMP, ICMPV6, SCTP, TCP, WITH_PORTS, flags_of

NETLINK_NETFILTER = 12
CT_GET, CT_DELETE, CT_GET_STATS = 0x101, 0x102, 0x105
REQUEST, ACK, DUMP = 1, 4, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
INTERRUPTED = 0x10

ORIG, REPLY, STATUS, PROTOINFO, TIMEOUT, COUNTERS_ORIG, COUNTERS_REPLY = 1, 2, 3, 4, 7, 9, 10
ZONE, TUPLE_ZONE = 18, 3    # of both directions; of the one in whose tuple it is
SEEN_REPLY, ASSURED = 2, 4
STATS_GLOBAL_ENTRIES = 1
NESTED = 0x8000

TCP_STATES = ('NONE', 'SYN_SENT', 'SYN_RECV', 'ESTABLISHED', 'FIN_WAIT', 'CLOSE_WAIT', 'LAST_ACK',
              'TIME_WAIT', 'CLOSE', 'SYN_SENT2')
SCTP_STATES = ('NONE', 'CLOSED', 'COOKIE_WAIT', 'COOKIE_ECHOED', 'ESTABLISHED', 'SHUTDOWN_SENT',
               'SHUTDOWN_RECD', 'SHUTDOWN_ACK_SENT', 'HEARTBEAT_SENT')


def attributes(data):
    """{type: value} of a row of netlink attributes."""
    found, at = {}, 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from('=HH', data, at)
        if length < 4:
            break
        found[kind & 0x3FFF] = data[at + 4:at + length]
        at += (length + 3) & ~3
    return found


def attribute(kind, value):
    return struct.pack('=HH', 4 + len(value), kind) + value + bytes(-len(value) % 4)


@functools.lru_cache(maxsize=4096)
def tuple_attribute(protocol, src, dst, ids, zone):
    """CTA_TUPLE_ORIG of a tuple, which finds its entry whichever direction it is."""
    v6 = len(src) == 16
    ip = attribute(3 if v6 else 1, src) + attribute(4 if v6 else 2, dst)
    proto = attribute(1, bytes([protocol]))
    if protocol == (ICMPV6 if v6 else ICMP):
        kind, code, ident = ids
        first = 7 if v6 else 4
        proto += attribute(first, struct.pack('!H', ident))
        proto += attribute(first + 1, bytes([kind])) + attribute(first + 2, bytes([code]))
    elif ids:
        proto += b''.join(attribute(2 + i, struct.pack('!H', x)) for i, x in enumerate(ids))
    asked = attribute(ORIG | NESTED, attribute(1 | NESTED, ip) + attribute(2 | NESTED, proto))
    return asked + (attribute(ZONE, struct.pack('!H', zone)) if zone else b'')


def _be(value):
    return int.from_bytes(value, 'big')


@functools.lru_cache(maxsize=4096)
def _tuple(value):
    """Protocol, source, destination, ids and zone of a tuple."""
    parts = attributes(value)
    ip, proto = attributes(parts[1]), attributes(parts[2])
    v4 = 1 in ip
    family = socket.AF_INET if v4 else socket.AF_INET6
    src, dst = (socket.inet_ntop(family, ip[k]) for k in ((1, 2) if v4 else (3, 4)))
    protocol = proto[1][0]
    ids = ()
    if protocol in (*WITH_PORTS, GRE):
        ids = (_be(proto.get(2, b'')), _be(proto.get(3, b'')))
    elif protocol == ICMP and v4:
        ids = (_be(proto[5]), _be(proto[6]), _be(proto[4]))
    elif protocol == ICMPV6 and not v4:
        ids = (_be(proto[8]), _be(proto[9]), _be(proto[7]))
    return protocol, src, dst, ids, _be(parts.get(TUPLE_ZONE, b''))


def _direction(value, counters, zone):
    counts = attributes(counters)
    *ends, own = _tuple(value)
    return Direction(*ends, _be(counts.get(1, b'')), _be(counts.get(2, b'')), zone or own)


def _state(protocol, value):
    info = attributes(value)
    if protocol == TCP and 1 in info:
        return TCP_STATES[attributes(info[1])[1][0]]
    if protocol == SCTP and 3 in info:
        return SCTP_STATES[attributes(info[3])[1][0]]
    return None


def _entry(data):
    a = attributes(data)
    zone = _be(a.get(ZONE, b''))
    orig = _direction(a[ORIG], a.get(COUNTERS_ORIG, b''), zone)
    reply = _direction(a[REPLY], a.get(COUNTERS_REPLY, b''), zone)
    status = _be(a[STATUS])
    return Entry(orig.protocol, _state(orig.protocol, a.get(PROTOINFO, b'')),
                 _be(a.get(TIMEOUT, b'')), flags_of(status & SEEN_REPLY, status & ASSURED),
                 (orig, reply))


class Table:
    """The conntrack table of the network namespace in which this is made."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
        self.socket.settimeout(5)
        self.sequence = 0

    def _ask(self, kind, flags, family=socket.AF_UNSPEC, attributes_=b''):
        self.sequence += 1
        body = struct.pack('=BBH', family, 0, 0) + attributes_
        self.socket.send(struct.pack('=IHHII', 16 + len(body), kind, REQUEST | flags,
                                     self.sequence, 0) + body)

    def _messages(self):
        """(type, flags, body) of the answer, up to its end."""
        while True:
            data, at = self.socket.recv(1 << 20), 0
            while at + 16 <= len(data):
                length, kind, flags, sequence, _ = struct.unpack_from('=IHHII', data, at)
                body = data[at + 16:at + length]
                at += (length + 3) & ~3
                if sequence != self.sequence:
                    continue
                if kind == NLMSG_DONE:
                    return
                if kind == NLMSG_ERROR:
                    number = -struct.unpack_from('=i', body)[0]
                    if number:
                        raise OSError(number, f'ctnetlink: {errno.errorcode.get(number)}')
                    return
                yield kind, flags, body

    def entries(self):
        while True:
            self._ask(CT_GET, DUMP)
            messages = list(self._messages())
            if not any(flags & INTERRUPTED for _, flags, _ in messages):
                return [_entry(body[4:]) for _, _, body in messages]

    def count(self):
        self._ask(CT_GET_STATS, 0)
        _, _, body = next(self._one())
        return _be(attributes(body[4:])[STATS_GLOBAL_ENTRIES])

    def find(self, tuples, zones=(0,)):
        """All entries: those of the tuples (protocol, src, dst, ids) in the zones if there are no
        others."""
        found, covered = {}, set()
        for one in itertools.product(tuples, zones):
            if one in covered:
                continue
            e = self._entry_of(*one)
            if e is None:
                continue
            found[e.key[0], e.directions[0].key] = e
            covered |= {((e.protocol, build.packed(d.src), build.packed(d.dst), d.ids), d.zone)
                        for d in e.directions}
        return list(found.values()) if self.count() == len(found) else self.entries()

    def _entry_of(self, one, zone):
        """The entry that a tuple is a direction of, or None."""
        family = socket.AF_INET6 if len(one[1]) == 16 else socket.AF_INET
        self._ask(CT_GET, 0, family, tuple_attribute(*one, zone))
        try:
            for _, _, body in self._one():
                return _entry(body[4:])
        except OSError as e:
            # There is none, or the kernel knows that there can be none (an ICMP type).
            if e.errno not in (errno.ENOENT, errno.EINVAL):
                raise
        return None

    def _one(self):
        """The answer to a question that has one message for answer."""
        for message in self._messages():
            yield message
            return

    def flush(self):
        self._ask(CT_DELETE, ACK)
        list(self._messages())

    def close(self):
        self.socket.close()
