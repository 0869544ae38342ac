# SPDX-License-Identifier: BSD-3-Clause
"""`sluice replay` itself: captures in and out, merging, time, commands, refusals."""
import json
import os
import struct
import subprocess
import tempfile

import pytest

from capture import (MAGIC_US, SEC, pcap_header, pcap_record, read_pcap, write_pcap, write_pcapng)
from harness import CONFIG, START, run_replay
from packets import A, S, tcp, udp

FLOW = A(40000) > S(80)


def frames(n, first=0):
    """n datagrams that can be told from one another."""
    return [udp(FLOW, data=b'%d' % i) for i in range(first, first + n)]


@pytest.fixture
def files(tmp_path):
    """The directory of the test with the usual configuration in it."""
    (tmp_path / 'sluice.conf').write_text(CONFIG)
    return tmp_path


def replay(sluice, files, *args):
    return run_replay(sluice, '-c', files / 'sluice.conf', *args)


def replay_good(sluice, files, *args):
    done = replay(sluice, files, *args)
    assert (done.returncode, done.stderr) == (0, ''), done.stderr
    return done.stdout


def refused(done, *texts, status=1):
    """Status, one line on standard error, and what it must say."""
    assert done.returncode == status, (done.returncode, done.stderr)
    line = done.stderr.strip().splitlines()[0]
    assert status == 2 or len(done.stderr.strip().splitlines()) == 1, done.stderr
    for text in texts:
        assert text in line, line


def test_events(sluice, files):
    """Each `conntrack events` gives what has happened since the one before it."""
    write_pcap(files / 'in.pcap', [(START, udp(FLOW)), (START + 3 * SEC, udp(FLOW))])
    write_pcap(files / 'out.pcap', [(START + SEC, udp(~FLOW))])
    words = ['--rx', f'in={files}/in.pcap', '--rx', f'out={files}/out.pcap', '--until', '500']
    for at, command in ((0, ''), (0, ' netns T1 event-mask DESTROY'), (2, ' proto udp'), (3.5, ''),
                        (400, ' count 1'), (400, ' netns T1 event-mask DESTROY'), (400, '')):
        words += ['--at', str(at), 'conntrack events' + command]
    lines = [json.loads(x) for x in replay_good(sluice, files, *words).splitlines()]
    told = [[(e['event'], e['time'] - START / SEC, e.get('changed'), e['status'])
             for e in line.get('items', [])] for line in lines]
    assert told[:4] == [[], [], [
        ('NEW', 0.0, None, []), ('UPDATE', 1.0, ['STATUS'], ['SEEN_REPLY'])], [
        ('UPDATE', 3.0, ['STATUS'], ['SEEN_REPLY', 'ASSURED'])]]
    (end,), = told[4:5]
    assert end[0] == 'DESTROY' and 123 <= end[1] <= 400 and told[5] == [end] and told[6] == []
    assert all(line['lost'] == 0 for line in lines)


# ---- captures in ----

@pytest.mark.parametrize('write, unit', [
    (write_pcap, 1),
    (lambda path, p: write_pcap(path, p, magic=MAGIC_US), 1000),
    (lambda path, p: write_pcap(path, p, order='>'), 1),
    (write_pcapng, 1),
    (lambda path, p: write_pcapng(path, p, tsresol=6), 1000),
    (lambda path, p: write_pcapng(path, p, tsresol=3), 1000000),
], ids=['pcap-ns', 'pcap-us', 'pcap-ns-big-endian', 'pcapng-ns', 'pcapng-us', 'pcapng-ms'])
def test_formats_keep_time(sluice, files, write, unit):
    times = [START + t for t in (0, 1, 999, 1000, 123456789, SEC + 1)]
    packets = list(zip(times, frames(len(times))))
    write(files / 'in.pcap', packets)
    replay_good(sluice, files, '--rx', f'in={files}/in.pcap', '--tx', f'out={files}/out.pcap')
    assert read_pcap(files / 'out.pcap') == [(t // unit * unit, f) for t, f in packets]


@pytest.mark.parametrize('start', [0, 1, 2**31 - 1, 2**31, 2**32 - 1])
def test_seconds_are_unsigned(sluice, files, start):
    packets = list(zip((start * SEC, start * SEC + 7), frames(2)))
    write_pcap(files / 'in.pcap', packets)
    replay_good(sluice, files, '--rx', f'in={files}/in.pcap', '--tx', f'out={files}/out.pcap')
    assert read_pcap(files / 'out.pcap') == packets


def test_merge_by_time_then_by_option_then_by_file(sluice, files):
    """Three inputs of one port; the output shows the order in which they were taken."""
    f = frames(8)
    write_pcap(files / 'a.pcap', [(START + 1, f[0]), (START + 5, f[1]), (START + 5, f[2])])
    write_pcap(files / 'b.pcap', [(START, f[3]), (START + 5, f[4]), (START + 9, f[5])])
    write_pcapng(files / 'c.pcap', [(START + 5, f[6]), (START + 6, f[7])])
    order = {
        'abc': [(0, 3), (1, 0), (5, 1), (5, 2), (5, 4), (5, 6), (6, 7), (9, 5)],
        'cba': [(0, 3), (1, 0), (5, 6), (5, 4), (5, 1), (5, 2), (6, 7), (9, 5)],
    }
    for names, want in order.items():
        args = [arg for name in names for arg in ('--rx', f'in={files}/{name}.pcap')]
        replay_good(sluice, files, *args, '--tx', f'out={files}/out.pcap')
        assert read_pcap(files / 'out.pcap') == [(START + t, f[i]) for t, i in want]


def test_ties_between_ports(sluice, files):
    """At one moment the port of the first --rx comes first: it makes the entry."""
    write_pcap(files / 'in.pcap', [(START, udp(FLOW))])
    write_pcap(files / 'out.pcap', [(START, udp(~FLOW))])
    for first, second, source in (('in', 'out', A), ('out', 'in', S)):
        out = replay_good(sluice, files, '--rx', f'{first}={files}/{first}.pcap',
                          '--rx', f'{second}={files}/{second}.pcap', '--at', '1', 'conntrack list')
        entries = json.loads(out)['items']
        assert [e['orig']['src'] for e in entries] == [source.addr]


def test_time_going_back_is_taken_as_no_time(sluice, files):
    f = frames(4)
    write_pcap(files / 'in.pcap', [(START + 10, f[0]), (START + 4, f[1]), (START + 9, f[2]),
                                   (START + 11, f[3])])
    done = replay(sluice, files, '--rx', f'in={files}/in.pcap', '--tx', f'out={files}/out.pcap')
    assert done.returncode == 0
    assert 'in.pcap' in done.stderr and 'one ahead: 2, the first is number 2;' in done.stderr
    assert read_pcap(files / 'out.pcap') == [(START + t, f[i])
                                             for t, i in ((10, 0), (10, 1), (10, 2), (11, 3))]


def test_cut_packets_are_cut_frames(sluice, files):
    """A capture with a snaplen: the frame ends within its packet, and is dropped by that name."""
    whole = udp(FLOW, data=bytes(100))
    with open(files / 'in.pcap', 'wb') as out:
        out.write(pcap_header() + pcap_record(START, whole)
                  + pcap_record(START + 1, whole[:64], length=len(whole)))
    done = replay(sluice, files, '--rx', f'in={files}/in.pcap', '--tx', f'out={files}/out.pcap',
                  '--at', '1', 'drops')
    assert done.returncode == 0
    assert '(snaplen): 1, the first is number 2;' in done.stderr
    assert read_pcap(files / 'out.pcap') == [(START, whole)]
    assert [d['reason'] for d in json.loads(done.stdout)['items']] == ['ip-length']


def test_jumbo_frames_pass_whole(sluice, files):
    """Longer than a packet buffer, up to the longest IP packet; output as it came."""
    packets = [(START + i, udp(FLOW, data=bytes(i % 256 for i in range(n))))
               for i, n in enumerate((1472, 2000, 2048, 2200, 8972, 65507))]
    write_pcap(files / 'in.pcap', packets)
    replay_good(sluice, files, '--rx', f'in={files}/in.pcap', '--tx', f'out={files}/out.pcap')
    assert read_pcap(files / 'out.pcap') == packets


def test_zero_length_frame_is_a_runt(sluice, files):
    write_pcap(files / 'in.pcap', [(START, b''), (START + 1, b'\2'), (START + 2, frames(1)[0])])
    out = replay_good(sluice, files, '--rx', f'in={files}/in.pcap',
                      '--tx', f'out={files}/out.pcap', '--at', '1', 'drops')
    assert {d['reason']: d['packets'] for d in json.loads(out)['items']} == {'runt': 2}
    assert len(read_pcap(files / 'out.pcap')) == 1


# ---- broken captures ----

def break_file(path, packets, cut):
    data = pcap_header() + b''.join(pcap_record(ns, f) for ns, f in packets)
    path.write_bytes(data[:len(data) - cut])


@pytest.mark.parametrize('cut', [1, 30, 48], ids=['last-byte', 'data', 'header'])
def test_capture_cut_in_the_middle(sluice, files, cut):
    """The packet's number is said, and what came before it is in the outputs."""
    packets = [(START + i, f) for i, f in enumerate(frames(3))]
    break_file(files / 'in.pcap', packets, cut)
    done = replay(sluice, files, '--rx', f'in={files}/in.pcap', '--tx', f'out={files}/out.pcap',
                  '--at', '0', 'conntrack count', '--at', '1', 'conntrack count')
    refused(done, 'in.pcap', 'packet 3')
    assert read_pcap(files / 'out.pcap') == packets[:2]
    assert len(done.stdout.splitlines()) == 1


def test_capture_with_an_impossible_length(sluice, files):
    (files / 'in.pcap').write_bytes(pcap_header() + pcap_record(START, frames(1)[0])
                                    + struct.pack('<IIII', START // SEC, 1, 0xFFFFFFF0, 60))
    refused(replay(sluice, files, '--rx', f'in={files}/in.pcap', '--tx', f'out={files}/out.pcap'),
            'in.pcap', 'packet 2')
    assert len(read_pcap(files / 'out.pcap')) == 1


def test_capture_with_an_impossible_time(sluice, files):
    record = struct.pack('<IIII', START // SEC, SEC, 60, 60) + bytes(60)
    (files / 'in.pcap').write_bytes(pcap_header() + record)
    refused(replay(sluice, files, '--rx', f'in={files}/in.pcap'), 'in.pcap', 'packet 1', 'time')


@pytest.mark.parametrize('content, says', [
    (b'', 'pcap'),
    (b'\xd4\xc3\xb2\xa1\x02\0', 'pcap'),
    (b'not a capture file at all, in any way', 'pcap'),
    (pcap_header(link=101), 'Ethernet'),
    (pcap_header(link=113), 'Ethernet'),
], ids=['empty', 'cut-header', 'garbage', 'raw-ip', 'linux-sll'])
def test_what_is_no_ethernet_capture(sluice, files, content, says):
    (files / 'in.pcap').write_bytes(content)
    refused(replay(sluice, files, '--rx', f'in={files}/in.pcap', '--tx', f'out={files}/out.pcap'),
            'in.pcap', says)
    assert not (files / 'out.pcap').exists()


# ---- ports ----

def test_port_without_rx_or_tx(sluice, files):
    """Nothing comes in on `out`; what leaves there is counted and gone."""
    write_pcap(files / 'in.pcap', [(START + i, f) for i, f in enumerate(frames(3))])
    out = replay_good(sluice, files, '--rx', f'in={files}/in.pcap', '--at', '1', 'port list')
    ports = {p['name']: p for p in json.loads(out)['items']}
    assert [ports['in'][k] for k in ('rx_packets', 'tx_packets')] == [3, 0]
    assert [ports['out'][k] for k in ('rx_packets', 'tx_packets')] == [0, 3]


@pytest.mark.parametrize('option', ['--rx', '--tx'])
def test_port_that_the_configuration_lacks(sluice, files, option):
    write_pcap(files / 'x.pcap', [(START, frames(1)[0])])
    write_pcap(files / 'y.pcap', [(START, frames(1)[0])])
    before = (files / 'y.pcap').read_bytes()
    refused(replay(sluice, files, '--tx', f'out={files}/y.pcap', option, f'nosuch={files}/x.pcap'),
            'nosuch', option)
    assert (files / 'y.pcap').read_bytes() == before


def test_output_over_an_input_is_refused(sluice, files):
    write_pcap(files / 'in.pcap', [(START, frames(1)[0])])
    os.link(files / 'in.pcap', files / 'link.pcap')
    before = (files / 'in.pcap').read_bytes()
    refused(replay(sluice, files, '--rx', f'in={files}/in.pcap', '--tx', f'out={files}/link.pcap'),
            'link.pcap')
    assert (files / 'in.pcap').read_bytes() == before


def test_two_outputs_in_one_file_are_refused(sluice, files):
    refused(replay(sluice, files, '--tx', f'in={files}/x.pcap', '--tx', f'out={files}/x.pcap'),
            'x.pcap')


def test_output_that_cannot_be_written(sluice, files):
    refused(replay(sluice, files, '--tx', f'out={files}/nosuch/out.pcap'), 'nosuch/out.pcap')
    write_pcap(files / 'in.pcap', [(START, f) for f in frames(100)])
    refused(replay(sluice, files, '--rx', f'in={files}/in.pcap', '--tx', 'out=/dev/full'),
            '/dev/full')


def test_ports_come_and_go(sluice, files):
    """Packets of a port that is not there are lost; it is bound again when it is back."""
    write_pcap(files / 'in.pcap', [(START + i * SEC, f) for i, f in enumerate(frames(3))])
    replay_good(sluice, files, '--rx', f'in={files}/in.pcap', '--tx', f'out={files}/out.pcap',
                '--at', '0.5', 'link delete inside netns T1', '--at', '0.5', 'port delete in',
                '--at', '1.5', 'port add in devargs whatever',
                '--at', '1.5', 'link add inside port in netns T1 peer outside')
    assert [ns - START for ns, _ in read_pcap(files / 'out.pcap')] == [0, 2 * SEC]


# ---- time and commands ----

def test_at_runs_before_packets_of_its_moment(sluice, files):
    write_pcap(files / 'in.pcap', [(START, frames(1)[0]),
                                   (START + SEC // 2, udp(A(40001) > S(80)))])
    out = replay_good(sluice, files, '--rx', f'in={files}/in.pcap',
                      *(arg for t in ('0.500000001', '0', '0.5', '0.000000001', '3')
                        for arg in ('--at', t, 'conntrack count')))
    assert [json.loads(line)['count'] for line in out.splitlines()] == [0, 1, 1, 2, 2]


def test_at_keeps_order(sluice, files):
    """By time, and at one time as given; an earlier command is seen by a later one."""
    out = replay_good(sluice, files, '--at', '2', 'netns list', '--at', '1', 'netns add T2',
                      '--at', '1', 'netns list', '--at', '1', 'netns delete T1',
                      '--at', '1.0', 'netns add T3')
    lines = [json.loads(line) for line in out.splitlines()]
    assert [n['name'] for n in lines[1]['items']] == ['init', 'T1', 'T2']
    assert sorted(n['name'] for n in lines[4]['items']) == ['T2', 'T3', 'init']


def test_refused_command_is_an_answer_and_shows_in_the_status(sluice, files):
    write_pcap(files / 'in.pcap', [(START + i * SEC, f) for i, f in enumerate(frames(3))])
    done = replay(sluice, files, '--rx', f'in={files}/in.pcap', '--tx', f'out={files}/out.pcap',
                  '--at', '0.5', 'netns delete nosuch', '--at', '1.5', 'conntrack count')
    assert done.returncode == 1
    first, second = map(json.loads, done.stdout.splitlines())
    assert 'nosuch' in first['error']['message']
    assert second['count'] == 1
    assert len(read_pcap(files / 'out.pcap')) == 3


@pytest.mark.parametrize('command', ['nosuch', '', 'netns', 'expect list', 'netns show nosuch'])
def test_commands_that_are_refused(sluice, files, command):
    done = replay(sluice, files, '--at', '0', command)
    assert done.returncode == 1
    assert json.loads(done.stdout)['error']['message']


def test_until_lets_time_run_on(sluice, files):
    """Commands behind the last packet have their time with and without it."""
    write_pcap(files / 'in.pcap', [(START, frames(1)[0])])
    for until in ((), ('--until', '31')):
        out = replay_good(sluice, files, '--rx', f'in={files}/in.pcap', *until,
                          '--at', '29.999', 'conntrack count', '--at', '30', 'conntrack count')
        assert [json.loads(line)['count'] for line in out.splitlines()] == [1, 0]


def test_until_ends_the_replay(sluice, files):
    write_pcap(files / 'in.pcap', [(START + i * SEC, f) for i, f in enumerate(frames(4))])
    replay_good(sluice, files, '--rx', f'in={files}/in.pcap', '--tx', f'out={files}/out.pcap',
                '--until', '2')
    assert [ns - START for ns, _ in read_pcap(files / 'out.pcap')] == [0, SEC, 2 * SEC]


def test_gap_of_years(sluice, files):
    """Longer than any deadline's range: what was there has expired, and is no longer counted."""
    year = 365 * 24 * 3600 * SEC
    packets = [(START + i * year, udp(A(40000 + i) > S(80))) for i in range(10)]
    write_pcap(files / 'in.pcap', packets)
    out = replay_good(sluice, files, '--rx', f'in={files}/in.pcap', '--tx', f'out={files}/out.pcap',
                      '--at', str(9 * 365 * 24 * 3600 + 1), 'conntrack count')
    assert json.loads(out)['count'] == 1
    assert read_pcap(files / 'out.pcap') == packets


def test_no_captures_is_a_check_of_the_configuration(sluice, files):
    assert replay_good(sluice, files) == ''
    with open(files / 'sluice.conf', 'a', encoding='utf-8') as conf:
        conf.write('link add x port nosuch netns T1\n')
    refused(replay(sluice, files), 'sluice.conf', '6', 'nosuch')


def test_empty_capture(sluice, files):
    write_pcap(files / 'in.pcap', [])
    out = replay_good(sluice, files, '--rx', f'in={files}/in.pcap', '--tx', f'out={files}/out.pcap',
                      '--at', '0', 'conntrack count')
    assert json.loads(out)['count'] == 0
    assert read_pcap(files / 'out.pcap') == []


# ---- determinism, and being a program ----

def test_same_input_same_output(sluice, files):
    """Byte for byte: captures, listings in the order of the pool, everything that is printed."""
    packets = [(START + i * 1000000, tcp(A(1024 + i * 7 % 5000) > S(80), 'S', seq=i))
               for i in range(500)]
    write_pcap(files / 'in.pcap', packets)
    seen = set()
    for i in range(2):
        out = replay_good(sluice, files, '--rx', f'in={files}/in.pcap',
                          '--tx', f'out={files}/out.pcap', '--at', '0.3', 'conntrack list',
                          '--at', '1', 'conntrack list', '--at', '1', 'stats',
                          '--at', '1', 'show workers', '--at', '1', 'show memory',
                          '--at', '1', 'netns list', '--at', '200', 'stats')
        seen.add((out, (files / 'out.pcap').read_bytes()))
    assert len(seen) == 1


def test_several_at_once(sluice, files):
    write_pcap(files / 'in.pcap', [(START + i, f) for i, f in enumerate(frames(50))])
    running = [subprocess.Popen([sluice, 'replay', '-c', files / 'sluice.conf',
                                 '--rx', f'in={files}/in.pcap', '--tx', f'out={files}/{i}.pcap'])
               for i in range(4)]
    assert [p.wait(timeout=30) for p in running] == [0] * 4
    assert len({(files / f'{i}.pcap').read_bytes() for i in range(4)}) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason='the rest of the ring runs without root then')
def test_without_root(sluice, files):
    """Needs the program to be readable by others, as it is when installed."""
    program = files / 'sluice'
    program.write_bytes(sluice.read_bytes())
    for path in (program, files, *files.parents):
        if path.owner() == 'root' and path.is_relative_to(tempfile.gettempdir()):
            path.chmod(path.stat().st_mode | 0o755)
    done = subprocess.run([program, 'replay', '-c', files / 'sluice.conf',
                           '--at', '0', 'conntrack count'], user=65534, group=65534,
                          extra_groups=[], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, '')
    assert json.loads(done.stdout)['count'] == 0


@pytest.mark.parametrize('args', [
    [], ['-c'], ['--nosuch'], ['-c', 'x', 'stray'], ['-c', 'x', '--rx', 'in'],
    ['-c', 'x', '--rx', '=f'], ['-c', 'x', '--tx', 'in='], ['-c', 'x', '--at', '1'],
    ['-c', 'x', '--at', '-1', 'stats'], ['-c', 'x', '--at', '1e3', 'stats'],
    ['-c', 'x', '--at', '', 'stats'], ['-c', 'x', '--at', '4294967296', 'stats'],
    ['-c', 'x', '--until', '1s'], ['-c', 'x', '--until', '0.1234567891'],
    ['-c', 'x', '--at', '2', 'stats', '--until', '1.9'],
    ['-c', 'x', '--tx', 'a=1', '--tx', 'a=2'], ['-c', 'x', '--rx', 'a=-', '--rx', 'b=-'],
], ids=lambda args: ' '.join(args) or 'none')
def test_usage(sluice, args):
    done = run_replay(sluice, *args)
    assert done.returncode == 2
    assert 'usage: sluice replay' in done.stderr


def test_help(sluice):
    done = run_replay(sluice, '--help')
    assert (done.returncode, done.stderr) == (0, '')
    assert 'usage: sluice replay' in done.stdout


def test_missing_files(sluice, files):
    refused(run_replay(sluice, '-c', files / 'nosuch.conf'), 'nosuch.conf')
    refused(replay(sluice, files, '--rx', f'in={files}/nosuch.pcap'), 'nosuch.pcap')
    refused(replay(sluice, files, '--rx', f'in={files}'), str(files))
