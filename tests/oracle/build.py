# SPDX-License-Identifier: BSD-3-Clause
"""The bytes of a packet. By hand and not with scapy, since a scenario may lie about any field, and
the random scenarios need thousands of packets a second.

Fields besides those in packet.py's text, all as they are in the header:

    ip       ver ihl tos tot id frag ttl (IPv4)    ver tc plen nh hlim (IPv6)
    tcp      seq ack win urg doff res opt=mss:N,ws:N,sackok,sack:L-R,ts:N:N,nop,eol,raw:HEX
    udp      ulen      udplite   coverage      any of them   sum
    icmp     id seq word (instead of id and seq)
    sctp     tag, then chunks: TYPE or TYPE:ARGUMENT, see chunk()
    gre      type version call key seq
    data=N   octets of filler    hex=…  the very octets
"""

import functools
import socket
import struct

from hosts import ADDRESS
from packet import Malformed, number

FLAGS = 'FSRPAUEC'
EXTENSIONS = {'hbh': 0, 'routing': 43, 'fragment': 44, 'ah': 51, 'dst': 60}
CHUNKS = {'DATA': 0, 'INIT': 1, 'INIT-ACK': 2, 'SACK': 3, 'HEARTBEAT': 4, 'HEARTBEAT-ACK': 5,
          'ABORT': 6, 'SHUTDOWN': 7, 'SHUTDOWN-ACK': 8, 'ERROR': 9, 'COOKIE-ECHO': 10,
          'COOKIE-ACK': 11, 'SHUTDOWN-COMPLETE': 14}


def checksum(data):
    """RFC 1071."""
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _crc_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


_CRC32C = _crc_table()


def crc32c(data):
    """As SCTP has it (RFC 9260, appendix A), in the order of its header."""
    crc = 0xFFFFFFFF
    for octet in data:
        crc = _CRC32C[(crc ^ octet) & 255] ^ crc >> 8
    return struct.pack('<I', crc ^ 0xFFFFFFFF)


@functools.lru_cache(maxsize=4096)
def packed(text):
    """The octets of an address."""
    return socket.inet_pton(socket.AF_INET6 if ':' in text else socket.AF_INET, text)


def address(host):
    return packed(ADDRESS[host])


def pseudo(src, dst, protocol, length):
    """The pseudo-header of either family."""
    if len(src) == 16:
        return src + dst + struct.pack('!II', length, protocol)
    return src + dst + struct.pack('!HH', protocol, length)


# ---- transport ----

def _finish(p, body, at, covered=None, with_pseudo=True, length=None):
    """The body with its checksum at offset `at`."""
    total = p.get('sum', None)
    if total is None:
        part = body if covered is None else body[:covered]
        if with_pseudo:
            part = pseudo(address(p.src), address(p.dst), p.protocol, length or len(body)) + part
        total = checksum(part)
        if total == 0 and p.proto in ('udp', 'udplite'):
            total = 0xFFFF
    if 'badsum' in p.words:
        total ^= 0x1234
    return body[:at] + struct.pack('!H', total) + body[at + 2:]


def _tcp_option(item):
    kind, _, value = item.partition(':')
    match kind:
        case 'mss':
            return struct.pack('!BBH', 2, 4, number(value))
        case 'ws':
            return struct.pack('!BBB', 3, 3, number(value))
        case 'sackok':
            return b'\4\2'
        case 'sack':
            edges = [number(edge) % 2**32 for edge in value.split('-')]
            return struct.pack(f'!BB{len(edges)}I', 5, 2 + 4 * len(edges), *edges)
        case 'ts':
            return struct.pack('!BBII', 8, 10, *map(number, value.split(':')))
        case 'nop':
            return b'\1'
        case 'eol':
            return b'\0'
        case 'raw':
            return bytes.fromhex(value)
    raise Malformed(f'no such TCP option: {item}')


def _tcp(p):
    letters = p.words[0] if p.words and p.words[0] != 'badsum' else '-'
    flags = sum(1 << FLAGS.index(letter) for letter in letters if letter != '-')
    options = b''.join(_tcp_option(item) for item in p.args.get('opt', '').split(',') if item)
    options += bytes(-len(options) % 4)
    doff = p.get('doff', 5 + len(options) // 4)
    head = struct.pack('!HHIIBBHHH', p.sport, p.dport, p.get('seq') % 2**32,
                       p.get('ack') % 2**32, doff << 4 | p.get('res'), flags,
                       p.get('win', 65535), 0, p.get('urg'))
    return _finish(p, head + options + p.octets(), 16)


def _udp(p):
    body = p.octets(6)
    length = p.get('ulen', 8 + len(body))
    head = struct.pack('!HHHH', p.sport, p.dport, length, 0)
    return _finish(p, head + body, 6, covered=length, length=length)


def _udplite(p):
    coverage = p.get('coverage', 8)
    head = struct.pack('!HHHH', p.sport, p.dport, coverage, 0)
    return _finish(p, head + p.octets(6), 6, covered=coverage or None)


def _icmp(p):
    kind, _, code = p.words[0].partition('/')
    body = l3(p.quoted) if p.quoted else p.octets(6)
    if 'quote' in p.args:
        body = body[:p.get('quote')]
    body += bytes.fromhex(p.args.get('behind', ''))
    word = p.get('word', p.get('id') << 16 | p.get('seq', 0 if p.quoted else 1))
    head = struct.pack('!BBHI', int(kind), int(code or 0), 0, word)
    return _finish(p, head + body, 2, with_pseudo=p.v6)


def chunk(word):
    """TYPE or TYPE:ARGUMENT, which is the tag of INIT and INIT-ACK, the flags of ABORT and
    SHUTDOWN-COMPLETE, and the length field of any other. A chunk has a small fitting body."""
    name, _, argument = word.partition(':')
    kind = CHUNKS[name] if name in CHUNKS else int(name)
    flags, body, length = 0, b'', None
    if name in ('INIT', 'INIT-ACK'):
        body = struct.pack('!IIHHI', number(argument or '1'), 65536, 4, 4, 1)
    elif name in ('ABORT', 'SHUTDOWN-COMPLETE'):
        flags = number(argument or '0')
    else:
        length = number(argument) if argument else None
        sizes = {'DATA': 16, 'SACK': 12, 'SHUTDOWN': 4, 'COOKIE-ECHO': 8, 'HEARTBEAT': 8,
                 'HEARTBEAT-ACK': 8}
        body = bytes(sizes.get(name, 0))
    if name == 'DATA':
        flags = 3
    return struct.pack('!BBH', kind, flags, length if length is not None else 4 + len(body)) + body


def _sctp(p):
    chunks = b''.join(chunk(word) for word in p.words if word != 'badsum')
    body = struct.pack('!HHII', p.sport, p.dport, p.get('tag'), 0) + chunks + p.octets()
    crc = crc32c(body)
    if 'badsum' in p.words:
        crc = bytes([crc[0] ^ 1]) + crc[1:]
    return body[:8] + crc + body[12:]


def _gre(p):
    version, flags, more = p.get('version'), 0, b''
    if version == 1:
        payload = p.octets(4)
        flags |= 0x2000
        more = struct.pack('!HH', len(payload), p.get('call'))
    elif 'key' in p.args:
        flags |= 0x2000
        more = struct.pack('!I', p.get('key'))
    if 'seq' in p.args:
        flags |= 0x1000
        more += struct.pack('!I', p.get('seq'))
    return struct.pack('!HH', flags | version, p.get('type', 0x0800)) + more + p.octets(4)


def transport(p):
    """The transport header and what it carries."""
    make = {'tcp': _tcp, 'udp': _udp, 'udplite': _udplite, 'icmp': _icmp, 'sctp': _sctp,
            'gre': _gre}
    return make[p.proto](p) if p.proto in make else p.octets(6)


# ---- IP ----

def ip4_packet(p, payload, frag=0, ident=None):
    if ident is None:
        ident = p.get('ipid', 1)
    options = bytes.fromhex(p.args.get('ipopt', ''))
    options += bytes(-len(options) % 4)
    size = 20 + len(options)
    head = struct.pack('!BBHHHBBH', p.get('ver', 4) << 4 | p.get('ihl', size // 4), p.get('tos'),
                       p.get('tot', size + len(payload)), ident, p.get('frag', frag),
                       p.get('ttl', 64), p.protocol, 0)
    head += address(p.src) + address(p.dst) + options
    return head[:10] + struct.pack('!H', checksum(head)) + head[12:] + payload


def ip6_packet(p, payload, next_header):
    for item in reversed([i for i in p.args.get('ext', '').split(',') if i]):
        kind, _, octets = item.partition(':')
        payload = bytes([next_header]) + bytes.fromhex(octets) + payload
        next_header = EXTENSIONS[kind]
    return struct.pack('!IHBB', p.get('ver', 6) << 28 | p.get('tc') << 20,
                       p.get('plen', len(payload)), p.get('nh', next_header),
                       p.get('hlim', 64)) + address(p.src) + address(p.dst) + payload


def resummed(packet):
    """An IPv4 packet with the header's sum made right."""
    size = (packet[0] & 15) * 4
    head = packet[:10] + b'\0\0' + packet[12:size]
    return packet[:10] + struct.pack('!H', checksum(head)) + packet[12:]


def l3(p):
    """The IP packet as it is in the frame, with what is behind it."""
    if p.v6:
        data = ip6_packet(p, transport(p), p.protocol)
    else:
        data = ip4_packet(p, transport(p))
    for item in [i for i in p.args.get('patch', '').split(',') if i]:
        offset, _, octets = item.partition(':')
        at, new = int(offset), bytes.fromhex(octets)
        data = data[:at] + new + data[at + len(new):]
    if 'resum' in p.words:
        data = resummed(data)
    data += b'\xaa' * p.get('pad')
    return data[:len(data) - p.get('cut')]


def ethertype(p):
    return 0x86DD if p.v6 else 0x0800
