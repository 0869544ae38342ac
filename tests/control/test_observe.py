# SPDX-License-Identifier: BSD-3-Clause
"""What one sees of a running gateway: trace, top, show workers, metrics and telemetry. Traffic is
that of a generator: two-way flows in namespace t1, and a flood in t2 that has no way out."""

import contextlib
import json
import os
import pathlib
import pty
import re
import select
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import pytest

import openmetrics
from daemon import wait_for

CONFIG = """
port add flows devargs gen,flows,rate=2000,flows=20,vlans=10,peer-vlans=11,prefix=10.1.0.0/24
port add flood devargs gen,synflood,rate=500,vlans=66,prefix=198.18.0.0/15
netns add t1 t2
link add in port flows vlan 10 netns t1
link add out port flows vlan 11 netns t1 peer in
link add dead port flood vlan 66 netns t2
"""


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


@pytest.fixture
def gateway(daemon):
    return daemon(CONFIG, '--workers', '1')


@pytest.fixture
def idle(daemon):
    """A gateway without anything to do."""
    return daemon('netns add t1\n', '--workers', '1')


def cpu_seconds(pid, thread=None):
    """Of a process, or of one of its threads."""
    path = f'/proc/{pid}/task/{thread or pid}/stat'
    fields = pathlib.Path(path).read_text().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def rows(gateway, line):
    return [json.loads(row) for row in gateway.ctl(line, options=('-j',)).splitlines()]


@contextlib.contextmanager
def client(gateway, *words):
    """sluicectl that runs on; ended by its own pid."""
    process = subprocess.Popen([str(gateway.sluicectl), '-s', str(gateway.socket), *words],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


# ---- trace ----

def test_trace_text(gateway):
    wait_for('all flows are up',
             lambda: gateway.ctl('conntrack list netns t1').count('ASSURED') == 20)
    text = gateway.ctl('trace netns t1 proto tcp count 20')
    first = re.compile(r'trace id 1 netns=t1 link=(in|out) rx tcp 10\.1\.0\.\d+:\d+ > \S+:80|'
                       r'trace id 1 netns=t1 link=(in|out) rx tcp \S+:80 > 10\.1\.0\.\d+:\d+')
    assert first.match(text), text
    assert re.search(r'^trace id 20 netns=t1 link=\w+ lookup hit$', text, re.M)
    assert re.search(r'conntrack known (original|reply) ESTABLISHED$', text, re.M)
    assert re.search(r'^trace id 20 netns=t1 link=in out link=out port=flows vlan=11$|'
                     r'^trace id 20 netns=t1 link=out out link=in port=flows vlan=10$', text, re.M)
    assert 'trace id 21' not in text


def test_trace_selects(gateway):
    flood = rows(gateway, 'trace dropped src 198.18.0.0/15 count 10')
    assert len(flood) == 10
    for number, packet in enumerate(flood, 1):
        assert packet['trace'] == number
        assert packet['netns'] == 't2' and packet['in'] == {'link': 'dead', 'port': 'flood',
                                                           'vlan': 66}
        assert packet['verdict'] == 'drop' and packet['reason'] == 'no-peer'
        assert packet['packet']['flags'] == ['SYN']
        assert abs(packet['time'] - time.time()) < 60
    replies = rows(gateway, 'trace netns t1 dst 10.1.0.0/24 sport 80 count 5')
    assert {p['in']['link'] for p in replies} == {'out'}
    assert {p['conntrack']['direction'] for p in replies} == {'reply'}
    assert all(p['packet']['sport'] == 80 for p in rows(gateway, 'trace sport 80 count 5'))
    assert all(p['reason'] == 'no-peer' for p in rows(gateway, 'trace reason no-peer count 5'))


@pytest.mark.parametrize('line,message', [
    ('trace netns nobody', 'nobody'),
    ('trace src 10.0.0.0/33', '0-32'),
    ('trace src 10.0.0', 'no address'),
    ('trace proto carrot', 'no protocol'),
    ('trace reason bad-luck', 'no reason'),
    ('trace count 0', 'count'),
    ('trace link nowhere', 'there is no "nowhere"'),
    ('trace netns t2 link in', 'in namespace t2'),
    ('trace proto icmp dport 8', 'no ports in icmp'),
    ('trace src 10.0.0.1 family ipv6', 'both of IPv4 and of IPv6'),
])
def test_trace_refuses(gateway, line, message):
    done = gateway.run(*line.split())
    assert done.returncode in (1, 2) and message in done.stderr and not done.stdout
    assert len(done.stderr.splitlines()) == 1


def test_traces_end_with_their_clients(gateway):
    """Eight at once, a ninth is refused; those whose client left make room again."""
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            process = stack.enter_context(client(gateway, 'trace', 'netns', 't1'))
            assert process.stdout.readline().startswith('trace id 1 ')
        done = gateway.run('trace', 'count', '1')
        assert done.returncode == 1 and '8 traces are running' in done.stderr
    wait_for('room for a trace', lambda: gateway.run('trace', 'count', '1').returncode == 0)


def test_trace_without_traffic_costs_nothing(idle):
    """While a trace waits the control thread looks at its ring now and then, and no more."""
    with client(idle, 'trace', 'netns', 't1'):
        time.sleep(0.3)
        before = cpu_seconds(idle.process.pid, idle.process.pid)
        time.sleep(1.5)
        assert cpu_seconds(idle.process.pid, idle.process.pid) - before < 0.1
    time.sleep(0.3)
    before = cpu_seconds(idle.process.pid, idle.process.pid)
    time.sleep(1.0)
    assert cpu_seconds(idle.process.pid, idle.process.pid) - before < 0.02


# ---- show workers, top ----

def test_show_workers(gateway):
    worker, = rows(gateway, 'show workers')
    assert worker['worker'] == 0 and worker['core'] == 1
    assert worker['packets'] > 0 and worker['busy_polls'] > 0 and worker['idle_polls'] > 0
    assert 500 < worker['packets_per_second'] < 10000
    assert 0 < worker['load_percent'] <= 100
    assert worker['cycles_per_packet'] > 10
    assert re.match(r'worker 0 core 1: load +[\d.]+ %, \d+ packets/s', gateway.ctl('show workers'))


def test_top_samples(gateway):
    first, second = rows(gateway, 'top count 2')
    for sample in (first, second):
        assert 0.5 < sample['interval'] < 5
        assert 1000 < sample['packets_per_second'] < 5000
        assert sample['bytes_per_second'] > 64 * 1000
        assert sample['namespaces'] == 3 and 0 < sample['entries'] <= sample['max']
        assert [n['netns'] for n in sample['netns']] == ['t1', 't2']
        assert sample['netns'][0]['packets_per_second'] > sample['netns'][1]['packets_per_second']
        assert {d['reason'] for d in sample['drops']} == {'no-peer'}
        assert len(sample['workers']) == 1
    line, = gateway.ctl('top count 1').splitlines()
    assert re.match(r'packets/s \S+ bytes/s \S+ entries \d+ new/s \S+ drops/s \S+ load', line)


def test_top_on_a_terminal(gateway):
    """Draws screens until q, and leaves the terminal as it was."""
    master, slave = pty.openpty()
    process = subprocess.Popen([str(gateway.sluicectl), '-s', str(gateway.socket), 'top'],
                               stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    seen = b''

    def read_some():
        nonlocal seen
        while select.select([master], [], [], 0)[0]:
            try:
                seen += os.read(master, 65536)
            except OSError:
                return
    try:
        def screens():
            read_some()
            return seen.count(b'busiest namespaces') >= 2
        wait_for('two screens', screens)
        assert b'no-peer' in seen and b't1 ' in seen
        os.write(master, b'q')
        assert process.wait(5) == 0
        read_some()
        assert seen.rstrip().endswith(b'\x1b[?25h\x1b[?1049l')
    finally:
        process.kill()
        process.wait()
        os.close(master)


# ---- metrics ----

def get(url, method='GET'):
    return urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=20)


def test_metrics(daemon):
    port = free_port()
    gateway = daemon(CONFIG, '--workers', '1', '--metrics', f'127.0.0.1:{port}')
    url = f'http://127.0.0.1:{port}/metrics'

    def sample(name, **labels):
        with get(url) as answer:
            assert answer.headers['Content-Type'] == \
                'application/openmetrics-text; version=1.0.0; charset=utf-8'
            families = openmetrics.parse(answer.read())
        for family in families.values():
            for (sample_name, found), value in family.samples.items():
                if sample_name == name and dict(found) == labels:
                    return value
        return 0

    wait_for('packets', lambda: sample('sluice_netns_packets_total', netns='t1') > 100)
    wait_for('drops', lambda: sample('sluice_netns_drops_total', netns='t2', reason='no-peer'))
    assert sample('sluice_netns_entries', netns='t1') == 20
    assert sample('sluice_port_tx_packets_total', port='flows') > 100
    assert sample('sluice_worker_busy_polls_total', worker='0') > 0
    assert sample('sluice_conntrack_memory_bytes', part='entries') > 0
    assert gateway.json('conntrack count')['count'] >= 20
    with get(url, 'HEAD') as answer:
        assert answer.read() == b''
    with pytest.raises(urllib.error.HTTPError) as refused:
        get(f'http://127.0.0.1:{port}/')
    assert refused.value.code == 404


def test_a_batch_without_connections_walks_no_table(daemon):
    """And one with connections walks it once, and leaves those of others alone."""
    gateway = daemon(CONFIG, '--workers', '1')

    def walked():
        return sum(thread['walked'] for thread in rows(gateway, 'stats'))

    def entries(ns):
        return gateway.json(f'conntrack count netns {ns}')['count']

    wait_for('connections', lambda: entries('t1') == 20)
    gateway.ctl('netns add prefix e count 1000')
    gateway.ctl('netns delete prefix e count 1000')
    assert walked() == 0
    gateway.ctl('port add more devargs gen,flows,rate=2000,flows=50,vlans=21-40,peer-vlans=101-120,'
                'prefix=10.2.0.0/24')
    gateway.ctl('netns add prefix v count 20')
    for i in range(1, 21):
        gateway.ctl(f'link add a port more vlan {20 + i} netns v{i}')
        gateway.ctl(f'link add b port more vlan {100 + i} netns v{i} peer a')
    wait_for('connections of all', lambda: all(entries(f'v{i}') for i in range(1, 21)))
    created = rows(gateway, 'stats netns t1')[0]['created']
    gateway.ctl('netns delete prefix v count 20')
    assert 0 < walked() <= gateway.json('show memory')['high_water'] + 1
    assert entries('t1') == 20
    after = rows(gateway, 'stats netns t1')[0]
    assert after['created'] == created and rows(gateway, 'drops netns t1') == []


def test_metrics_of_many_namespaces(daemon):
    """65,536 namespaces: while the reply is made the control thread answers others at once."""
    port = free_port()
    gateway = daemon('netns add prefix t count 65536\n', '--metrics', f'127.0.0.1:{port}')
    longest = 0
    with get(f'http://127.0.0.1:{port}/metrics') as answer:
        parts = []
        while part := answer.read(1 << 20):
            parts.append(part)
            start = time.monotonic()
            gateway.ctl('show version')
            longest = max(longest, time.monotonic() - start)
    families = openmetrics.parse(b''.join(parts))
    assert len(families['sluice_netns_packets'].samples) == 65537
    assert len(families['sluice_netns_entries'].samples) == 65537
    assert longest < 1.0


def test_metrics_address_in_use(daemon, build_dir, tmp_path):
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen()
        address = f'127.0.0.1:{taken.getsockname()[1]}'
        with pytest.raises(AssertionError) as refused:
            daemon('', '--metrics', address)
    assert 'status 1' in str(refused.value)
    assert f'cannot listen on {address}: Address already in use' in str(refused.value)


# ---- telemetry ----

def ask(path, *questions):
    """Answers of a telemetry socket, which greets first."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(10)
        s.connect(str(path))
        s.recv(16384)
        answers = []
        for question in questions:
            s.send(question.encode())
            answers.append(json.loads(s.recv(65536))[question.split(',')[0]])
        return answers


def test_telemetry(daemon):
    with tempfile.TemporaryDirectory(prefix='sluice-t-') as run:
        env = {'RUNTIME_DIRECTORY': run}
        gateway = daemon(CONFIG, '--workers', '1', env=env)
        path = wait_for('the socket', lambda: next(pathlib.Path(run).rglob('*.v2'), None))
        wait_for('packets', lambda: ask(path, '/sluice/netns,t1')[0]['packets'] > 100)
        stats, drops, workers, memory, t2, by_id, nobody, none = ask(
            path, '/sluice/stats', '/sluice/drops', '/sluice/workers', '/sluice/memory',
            '/sluice/netns,t2', '/sluice/netns,0', '/sluice/netns,nobody', '/sluice/netns')
        assert stats['namespaces'] == 3 and stats['found'] > 0
        assert drops['no_peer'] > 0 and drops['runt'] == 0
        assert len(workers['packets']) == 1 and workers['packets'][0] > 0
        assert set(workers) == {'busy_polls', 'idle_polls', 'packets', 'busy_cycles'}
        assert memory['entries_bytes'] > 0
        assert t2['name'] == 't2' and t2['no_peer'] > 0
        assert by_id['name'] == 'init'
        assert nobody is None and none is None
        assert gateway.ctl('netns list')

        script = shutil.which('dpdk-telemetry.py')
        if script:
            prefix = path.parent.name
            done = subprocess.run([script, '-f', prefix], input='/sluice/stats\n', text=True,
                                  capture_output=True, timeout=20, env=dict(os.environ, **env))
            assert '"namespaces": 3' in done.stdout, done.stdout + done.stderr
