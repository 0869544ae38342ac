# SPDX-License-Identifier: BSD-3-Clause
"""Capture files, written and read by hand so that every field can be chosen, the wrong ones too."""
import struct

ETHERNET = 1
MAGIC_NS = 0xA1B23C4D
MAGIC_US = 0xA1B2C3D4
SEC = 10**9


def pcap_header(magic=MAGIC_NS, link=ETHERNET, order='<', snaplen=262144):
    return struct.pack(order + 'IHHiIII', magic, 2, 4, 0, 0, snaplen, link)


def pcap_record(ns, frame, unit=1, order='<', length=None):
    length = len(frame) if length is None else length
    return struct.pack(order + 'IIII', ns // SEC, ns % SEC // unit, len(frame), length) + frame


def write_pcap(path, packets, **header):
    """packets: (time in ns, frame) in the order of the file."""
    unit = 1000 if header.get('magic') == MAGIC_US else 1
    order = header.get('order', '<')
    with open(path, 'wb') as f:
        f.write(pcap_header(**header))
        for ns, frame in packets:
            f.write(pcap_record(ns, frame, unit, order))


def _block(kind, body):
    body += bytes(-len(body) % 4)
    size = len(body) + 12
    return struct.pack('<II', kind, size) + body + struct.pack('<I', size)


def _option(code, value):
    return struct.pack('<HH', code, len(value)) + value + bytes(-len(value) % 4)


def write_pcapng(path, packets, tsresol=9, link=ETHERNET):
    """Time stamps in units of 10^-tsresol seconds."""
    with open(path, 'wb') as f:
        f.write(_block(0x0A0D0D0A, struct.pack('<IHHq', 0x1A2B3C4D, 1, 0, -1)))
        f.write(_block(1, struct.pack('<HHI', link, 0, 262144)
                       + _option(9, bytes([tsresol])) + _option(0, b'')))
        for ns, frame in packets:
            stamp = ns // 10**(9 - tsresol)
            f.write(_block(6, struct.pack('<IIIII', 0, stamp >> 32, stamp & 0xFFFFFFFF,
                                          len(frame), len(frame)) + frame))


def read_pcap(path):
    """(time in ns, frame) of a file that must be a whole pcap of Ethernet with nanoseconds."""
    with open(path, 'rb') as f:
        data = f.read()
    assert data[:24] == pcap_header(), f'{path}: header {data[:24].hex()}'
    packets = []
    at = 24
    while at < len(data):
        sec, nsec, caplen, length = struct.unpack_from('<IIII', data, at)
        at += 16
        assert caplen == length and at + caplen <= len(data), f'{path}: packet {len(packets) + 1}'
        packets.append((sec * SEC + nsec, data[at:at + caplen]))
        at += caplen
    return packets
