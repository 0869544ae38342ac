# SPDX-License-Identifier: BSD-3-Clause
"""The oracle's own parts: packets are as scapy makes them, entries as conntrack(8) lists them, and
a difference is seen, told and, where it is stated, let be."""

import pathlib
import re

import pytest
from scapy.all import GRE, ICMP, IP, SCTP, TCP, UDP, ICMPv6EchoRequest, IPv6, Raw, raw

import build
import kernel as kernel_
import reassembly
from answers import Answer, agree
from compare import Comparison
from packet import Malformed, Packet, number
from scenario import Reader

A, S, A6, S6 = '198.51.100.10', '192.0.2.80', '2001:db8:1::10', '2001:db8:2::80'
FILLER = b'sluice-sluice-'

PACKETS = {
    'A:40000 > S:80 tcp SA seq=2^32-1 ack=7 win=5 data=3':
        IP(src=A, dst=S) / TCP(sport=40000, dport=80, flags='SA', seq=2**32 - 1, ack=7, window=5)
        / Raw(FILLER[:3]),
    'A:40000 > S:80 tcp S opt=mss:1460,ws:7,sackok,ts:5:0':
        IP(src=A, dst=S) / TCP(sport=40000, dport=80, flags='S', window=65535, options=[
            ('MSS', 1460), ('WScale', 7), ('SAckOK', b''), ('Timestamp', (5, 0)), ('EOL', None)]),
    'A:40000 > S:80 tcp A opt=nop,nop,sack:1-2-3-4':
        IP(src=A, dst=S) / TCP(sport=40000, dport=80, flags='A', window=65535, options=[
            ('NOP', None), ('NOP', None), ('SAck', (1, 2, 3, 4))]),
    'A6:40000 > S6:80 tcp PA data=9':
        IPv6(src=A6, dst=S6) / TCP(sport=40000, dport=80, flags='PA', window=65535)
        / Raw(FILLER[:9]),
    'A:1 > S:2 udp data=5': IP(src=A, dst=S) / UDP(sport=1, dport=2) / Raw(FILLER[:5]),
    'A6:1 > S6:2 udp data=5': IPv6(src=A6, dst=S6) / UDP(sport=1, dport=2) / Raw(FILLER[:5]),
    'A:1 > S:2 udp data=5 tos=9': IP(src=A, dst=S, tos=9) / UDP(sport=1, dport=2) / Raw(FILLER[:5]),
    'A > S icmp 8 id=7 data=4': IP(src=A, dst=S) / ICMP(type=8, id=7, seq=1) / Raw(FILLER[:4]),
    'A6 > S6 icmp 128 id=7 data=4':
        IPv6(src=A6, dst=S6) / ICMPv6EchoRequest(id=7, seq=1) / Raw(FILLER[:4]),
    'A > S icmp 3/1 [S:9 > A:8 udp data=1]':
        IP(src=A, dst=S) / ICMP(type=3, code=1)
        / Raw(raw(IP(src=S, dst=A) / UDP(sport=9, dport=8) / Raw(FILLER[:1]))),
    'A:5 > S:6 sctp tag=3 COOKIE-ACK':
        IP(src=A, dst=S) / SCTP(sport=5, dport=6, tag=3) / Raw(b'\x0b\0\0\4'),
    'A > S gre key=9 data=2':
        IP(src=A, dst=S) / GRE(key_present=1, key=9, proto=0x0800) / Raw(FILLER[:2]),
}


@pytest.mark.parametrize('text', PACKETS)
def test_packets_as_scapy_makes_them(text):
    assert build.l3(Packet(text)).hex() == raw(PACKETS[text]).hex()


def test_lies():
    good = build.l3(Packet('A:1 > S:2 udp data=5'))
    assert build.l3(Packet('A:1 > S:2 udp data=5 cut=2')) == good[:-2]
    assert build.l3(Packet('A:1 > S:2 udp data=5 pad=2')) == good + b'\xaa\xaa'
    patched = good[:4] + b'\xbe\xef' + good[6:]
    assert build.l3(Packet('A:1 > S:2 udp data=5 patch=4:beef')) == patched
    again = build.l3(Packet('A:1 > S:2 udp data=5 patch=4:beef resum'))
    assert build.checksum(again[:20]) == 0 and again[4:6] == b'\xbe\xef'
    bad = build.l3(Packet('A:1 > S:2 udp data=5 badsum'))
    assert bad[:26] == good[:26] and bad[26:28] != good[26:28] and bad[28:] == good[28:]


@pytest.mark.parametrize('text', [
    'A:1 > S:2', 'A:1 S:2 udp', 'X:1 > S:2 udp', 'A:1 > S6:2 udp', 'A:1 > S:2 quic',
    'A > S proto=x'])
def test_malformed_packets(text):
    with pytest.raises(Malformed):
        Packet(text)


def test_numbers():
    assert (number('2^32-20'), number('0x10+1'), number('5')) == (2**32 - 20, 17, 5)
    with pytest.raises(Malformed):
        number('__import__')


def read(*lines):
    reader = Reader(pathlib.Path('here.txt'))
    for n, line in enumerate(('scenario one', *lines), 1):
        reader.line(line, n)
    return reader.scenarios[0]


def test_scenario_is_printed_as_it_was_read():
    lines = ('about x', 'knob nf_conntrack_tcp_loose=0', 'invalid pass', 'rule forward counter',
             'A:1 > S:2 udp', '+2.5 S:2 > A:1 udp', '    differs x', '    kernel pass',
             '    sluice drop')
    assert str(read(*lines)) == '\n'.join(('scenario one', *lines))


@pytest.mark.parametrize('line', ['knob', 'invalid maybe', '    gateway pass', '+x A:1 > S:2 udp',
                                  'fragment d 0-8'])
def test_malformed_lines(tmp_path, line):
    path = tmp_path / 's.txt'
    path.write_text(f'scenario s\nA:1 > S:2 udp\n{line}\n')
    with pytest.raises(Malformed, match=re.escape(f'{path}:3: ')):
        Reader(path).read()


FLOWS = ('A:40000 > S:80 tcp S seq=1', 'S:80 > A:40000 tcp SA seq=1 ack=2', 'A6:5 > S6:53 udp',
         'A > S icmp 8 id=7', 'A6 > S6 icmp 128 id=8', 'A > S gre version=1 type=0x880b call=9',
         'A:5 > S:9 sctp tag=0 INIT:7', 'A > S proto=89')


def test_entries_as_conntrack_lists_them(kernel):
    """Both ways of asking the kernel give what conntrack -L prints."""
    last = kernel.run(read(*FLOWS))[0][-1]
    dumped = kernel.table.entries()
    assert agree(dumped, last.entries, 2)
    text = kernel_.sh('ip', 'netns', 'exec', kernel.names['gateway'], 'conntrack', '-L', '-o',
                      'extended')
    lines = text.splitlines()
    assert len(lines) == len(dumped) == 7
    for e in dumped:
        assert any(shows(line, e) for line in lines), f'{e} is not in\n{text}'


def shows(line, e):
    numbers = [f'packets={d.packets} bytes={d.octets}' for d in e.directions]
    tuples = [f'src={d.src} dst={d.dst}' for d in e.directions]
    words = line.split()
    return (f' {e.protocol} {words[4]} ' in line and abs(int(words[4]) - e.left) <= 2
            and all(text in line for text in numbers + tuples)
            and all(f'[{flag}]' in line for flag in e.flags) and (e.state or '') in line)


def test_difference_is_seen(both):
    """Of another knob on one side only, with both answers in the report."""
    one = read('knob nf_conntrack_udp_timeout=77', 'A:1 > S:2 udp')
    kernel = both([read('A:1 > S:2 udp')])[0].steps[0].kernel
    sluice = both([one])[0].steps[0].sluice
    comparison = Comparison(one, [kernel], [sluice])
    assert not comparison.good
    assert 'kernel pass; udp 30' in comparison.report()
    assert 'sluice pass; udp 7' in comparison.report()


@pytest.mark.parametrize('one, other, good', [
    ('pass; udp 30 UNREPLIED', 'pass; udp 77 UNREPLIED', True),
    ('pass; udp 30', 'pass; udp 77 UNREPLIED', False),
    ('pass; udp 30 UNREPLIED', 'pass; udp 30 UNREPLIED', False),
    ('drop; udp 30 UNREPLIED', 'pass; udp 77 UNREPLIED', False),
    ('pass; udp 30 UNREPLIED', 'pass', False),
    ('pass; udp 30 UNREPLIED 9/9', 'pass; udp 77 UNREPLIED', False)])
def test_stated_answers(both, one, other, good):
    """A difference must be just the one that is stated."""
    a = both([read('A:1 > S:2 udp')])[0].steps[0].kernel
    b = both([read('knob nf_conntrack_udp_timeout=77', 'A:1 > S:2 udp')])[0].steps[0].sluice
    stated = read('A:1 > S:2 udp', '    differs x', f'    kernel {one}', f'    sluice {other}')
    assert Comparison(stated, [a], [b]).good == good


def test_stated_difference_that_is_none(both):
    one = read('A:1 > S:2 udp', '    differs x', '    kernel drop',
               '    sluice pass; udp 30 UNREPLIED')
    assert not both([one])[0].good


@pytest.mark.parametrize('more', [(), ('A:1 > S:2 udp',)])
def test_scenario_of_no_packet(both, more):
    """The search takes packets out, down to none; alone or beside others."""
    one = read('A:1 > S:2 udp')
    found = both([one.replaced([]), *(read(line) for line in more)])
    assert all(comparison.good for comparison in found) and found[0].steps == []


def test_packet_that_is_changed_or_lost_is_seen():
    one = read('A:1 > S:2 udp')
    step = one.steps[0]
    right = Answer([('out', step.data)], [])
    assert Comparison(one, [right], [Answer([('out', step.data)], [])]).good
    for wrong in ([], [('in', step.data)], [('out', step.data[:-1] + b'!')],
                  [('out', step.data)] * 2, [('out', step.data[:10] + b'!!' + step.data[12:])]):
        assert not Comparison(one, [right], [Answer(wrong, [])]).good


@pytest.mark.parametrize('family', ['S:53 > A:9 udp', 'S6:53 > A6:9 udp'])
def test_reassembly(family):
    """In any order, duplicates and more than enough of a part; not with a gap."""
    parts = ('0-800', '800-1600', '1600-')
    one = read(f'datagram d {family} data=2000 ipid=7', *[f'fragment d {part}' for part in parts])
    whole = read(f'{family} data=2000 ipid=7').steps[0].data[-2008:]
    sent = [('out', step.data) for step in one.steps]
    for some in (sent, sent[::-1], sent[:2] + sent):
        (side, found, in_fragments), *none = reassembly.datagrams(some)
        assert (side, found[-2008:], in_fragments, none) == ('out', whole, True, [])
    assert reassembly.datagrams(sent[:2]) == reassembly.datagrams(sent[1:]) == []
