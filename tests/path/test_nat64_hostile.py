# SPDX-License-Identifier: BSD-3-Clause
"""NAT64 of packets that lie, are cut or are damaged: each byte of their headers is changed, and
each length is tried, of packets and of ICMP errors from both sides. What leaves of it is sound."""
import struct

import pytest
from fragments import cut
from harness import Case
from nat64 import NAT64, RULE, A, P, R4, R6, S, S4
from packets import checksum, ether, icmp_error, l3, patch, ping, pong, resum_ip, tcp, udp
from scapy.all import IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, UDP, Raw

OPEN = NAT64.replace(RULE, RULE.rstrip() + ' filter endpoint-independent\n')
FORTH, BACK = A(5000) > S(53), S4(53) > P(5000)
OUT, IN = P(5000) > S4(53), S(53) > A(5000)
DATA = b'sluice!' * 3
SYN = tcp(A(40000) > S(80), 'S', seq=7)

FROM_INSIDE = {
    'udp': udp(FORTH, DATA),
    'tcp': tcp(A(40000) > S(80), 'A', seq=8, ack=10, data=DATA),
    'echo': ping(A > S, 77),
    'headers': ether(FORTH.ip() / IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt()
                     / UDP(sport=5000, dport=53) / Raw(DATA)),
    'atomic fragment': ether(FORTH.ip() / IPv6ExtHdrFragment(id=7) / UDP(sport=5000, dport=53)
                             / Raw(DATA)),
    'error': icmp_error(A > S, 1, 4, l3(udp(IN, DATA))),
    'router': icmp_error(R6 > S, 2, 0, l3(tcp(S(80) > A(40000), 'A', 10, 8, DATA)), mtu=1300),
    'problem': icmp_error(A > S, 4, 1, l3(pong(S > A, 77)), mtu=6),
}
FROM_OUTSIDE = {
    'udp': udp(BACK, DATA),
    'no sum': udp(BACK, DATA, chksum=0),
    'tcp': tcp(S4(80) > P(40000), 'A', seq=10, ack=8, data=DATA),
    'echo': pong(S4 > P, 77),
    'new': udp(R4(9) > P(5000), DATA),
    'error': icmp_error(S4 > P, 3, 3, l3(udp(OUT, DATA))),
    'router': icmp_error(R4 > P, 3, 4, l3(tcp(P(40000) > S4(80), 'A', 8, 10, DATA)),
                         nexthopmtu=1300),
    'problem': icmp_error(R4 > P, 12, 0, l3(ping(P > S4, 77)), ptr=9),
    'extension': icmp_error(R4 > P, 11, 0, l3(udp(OUT, DATA)).ljust(128, b'\0'),
                            b'\x20\0' + bytes(10), length=32),
}


def mutations(frame):
    """Each byte behind the Ethernet header changed; each length, of the frame and by its word."""
    for at in range(14, len(frame)):
        for value in {0, 0xff, frame[at] ^ 1, frame[at] ^ 0x80} - {frame[at]}:
            changed = patch(frame, at, bytes([value]))
            yield changed
            if frame[12:14] == b'\x08\0' and at < 34:
                yield resum_ip(changed)
    for length in range(14, len(frame)):
        yield frame[:length]
        if length < 54:
            continue
        if frame[12:14] == b'\x08\0':
            yield resum_ip(patch(frame, 16, struct.pack('!H', length - 14)))[:length]
        else:
            yield patch(frame, 18, struct.pack('!H', length - 54))[:length]


def sum_right(protocol, pseudo, body, v6):
    at = {6: 16, 17: 6, 1: 2, 58: 2}.get(protocol)
    if at is None:
        return True
    assert len(body) >= 8
    if protocol == 17:
        assert struct.unpack('!H', body[4:6])[0] <= len(body)
        body = body[:struct.unpack('!H', body[4:6])[0]]
        if body[6:8] == b'\0\0':
            return not v6
    if protocol == 1:
        pseudo = b''
    else:
        pseudo += struct.pack('!IHBB' if v6 else '!HBB',
                              *((len(body), 0, 0, protocol) if v6 else (len(body), 0, protocol)))
        if not v6:      # zero, protocol, length
            pseudo = pseudo[:8] + struct.pack('!BBH', 0, protocol, len(body))
    return checksum(pseudo + body) == 0


def sound(frame):
    """Lengths and sums; of a fragment its header."""
    if frame[12:14] == b'\x08\0':
        head, total = frame[14:34], struct.unpack('!H', frame[16:18])[0]
        assert head[0] == 0x45 and 20 <= total <= len(frame) - 14
        assert checksum(head) == 0
        if struct.unpack('!H', frame[20:22])[0] & 0x3fff:
            return True
        return sum_right(head[9], frame[26:34], frame[34:14 + total], False)
    assert frame[12:14] == b'\x86\xdd' and frame[14] >> 4 == 6
    length = struct.unpack('!H', frame[18:20])[0]
    assert length + 54 <= len(frame)
    return frame[20] == 44 or sum_right(frame[20], frame[22:54], frame[54:54 + length], True)


@pytest.fixture
def opened(case, monkeypatch):
    """Connections that the packets are of; what leaves is looked at by the test."""
    for check in ('_check_departures', '_check_drops'):
        monkeypatch.setattr(Case, check, lambda *_: None)
    c = case(config=OPEN, knobs={'sluice.reject_rate': 1000000})
    c.at(0).inside(udp(FORTH)).outside(udp(BACK)).inside(SYN)
    c.at(0).outside(tcp(S4(80) > P(40000), 'SA', seq=9, ack=8)).inside(ping(A > S, 77))
    return c


def translated(c, came):
    """Of what left, that which had not come so."""
    left = [(port, frame) for port in ('in', 'out') for _, frame in c.output(port)]
    return [(port, frame) for port, frame in left if frame not in came]


@pytest.mark.parametrize('port,frames', [('in', FROM_INSIDE), ('out', FROM_OUTSIDE)],
                         ids=['inside', 'outside'])
def test_changed(opened, port, frames):
    c, came, step = opened, set(), 0
    for frame in frames.values():
        for changed in (frame, *mutations(frame)):
            step += 1
            c.at(.001 + step * 1e-6).frame(port, changed)
            came.add(changed)
    c.replay()
    out = translated(c, came)
    assert all(sound(frame) for _, frame in out)
    assert sum(1 for to, _ in out if to != port) > 20 * len(frames)


@pytest.mark.parametrize('port,frame', [
    ('in', udp(FORTH, DATA * 60)), ('out', udp(BACK, DATA * 60)),
    ('out', udp(BACK, DATA * 60, chksum=0))], ids=['inside', 'outside', 'no sum'])
def test_changed_fragments(opened, port, frame):
    """Each in its first fragment, and what its other ones are to follow is left out, too."""
    c, came, step = opened, set(), 0
    v6 = frame[12:14] == b'\x86\xdd'
    for n, at in enumerate(range(14, 14 + (56 if v6 else 36))):
        for value in (0, 0xff):
            pieces = cut(frame, 400, 400, ident=n * 2 + (value & 1))
            pieces[0] = patch(pieces[0], at, bytes([value]))
            if not v6 and at < 34:
                pieces[0] = resum_ip(pieces[0])
            for piece in pieces:
                step += 1
                c.at(.001 + step * 1e-6).frame(port, piece)
                came.add(piece)
    c.replay()
    out = translated(c, came)
    assert all(sound(piece) for _, piece in out)
    assert sum(1 for to, _ in out if to != port) > 20
