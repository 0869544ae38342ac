# SPDX-License-Identifier: BSD-3-Clause
"""conntrack events of a running gateway: who is told what, and what becomes of a client that does
not listen. Two-way flows in namespace t1, a flood of SYNs in t2 that has a way out."""

import contextlib
import json
import re
import socket
import subprocess
import time

import pytest

from daemon import wait_for

CONFIG = """
port add flows devargs gen,flows,rate=2000,flows=20,vlans=10,peer-vlans=11,prefix=10.1.0.0/24
port add flood devargs gen,synflood,rate=500,vlans=66,prefix=198.18.0.0/15
netns add t1 t2 t3
sysctl netns t1 nf_conntrack_acct=1
link add in port flows vlan 10 netns t1
link add out port flows vlan 11 netns t1 peer in
link add inner port flood vlan 66 netns t2
link add outer port flood vlan 67 netns t2 peer inner
"""


@pytest.fixture
def gateway(daemon):
    return daemon(CONFIG, '--workers', '1')


@contextlib.contextmanager
def listening(gateway, line, *options):
    """sluicectl that runs on; ended by its own pid."""
    process = subprocess.Popen(
        [str(gateway.sluicectl), '-s', str(gateway.socket), *options, *line.split()],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def listeners_are(gateway, n):
    """Until as many listen: the one more than there may be is refused."""
    def there():
        with contextlib.ExitStack() as stack:
            extra = [stack.enter_context(listening(gateway, 'conntrack events netns t3'))
                     for _ in range(16 - n)]
            time.sleep(0.1)
            more = gateway.run(*'conntrack events netns t3 count 1'.split(), timeout=5)
            return all(p.poll() is None for p in extra) and more.returncode == 1
    wait_for(f'{n} listeners', there)


def events(gateway, line):
    return [json.loads(row) for row in gateway.ctl(line, options=('-j',)).splitlines()]


def flows_are_up(gateway):
    wait_for('all flows are up',
             lambda: gateway.ctl('conntrack list netns t1').count('ASSURED') == 20)


def test_text(gateway):
    """All flows are forgotten while one listens, and come back."""
    flows_are_up(gateway)
    with listening(gateway, 'conntrack events netns t1 proto tcp') as process:
        time.sleep(0.3)
        gateway.ctl('conntrack flush netns t1')
        lines = [process.stdout.readline() for _ in range(50)]
    kinds = [re.match(r'netns=t1 +(\[\w+\]) tcp +6 ', line)[1] for line in lines]
    assert kinds.count('[DESTROY]') == 20
    one = r'src=\S+ dst=\S+ sport=\d+ dport=\d+'
    counted = one + r' packets=\d+ bytes=\d+'
    shapes = {
        '[NEW]': rf'netns=t1     \[NEW\] tcp      6 \d+ \w+ {one} \[UNREPLIED\] {one}\n',
        '[UPDATE]': rf'netns=t1  \[UPDATE\] tcp      6 \d+ (\w+ )?{one} {one}( \[ASSURED\])?\n',
        '[DESTROY]': rf'netns=t1 \[DESTROY\] tcp      6 \d+ ESTABLISHED {counted} {counted}'
                     r' \[ASSURED\]\n',
    }
    for kind, line in zip(kinds, lines):
        assert re.fullmatch(shapes[kind], line), line


def test_each_connection_in_its_order(gateway):
    seen = events(gateway, 'conntrack events netns t2 count 400')
    assert len(seen) == 400 and {e['event'] for e in seen} == {'NEW'}
    flows_are_up(gateway)
    gateway.ctl('conntrack flush netns t1')
    with listening(gateway, 'conntrack events netns t1 count 100', '-j') as process:
        time.sleep(0.3)
        for _ in range(5):
            gateway.ctl('conntrack flush netns t1')
            time.sleep(0.05)
        last = {}
        for line in process.stdout:
            e = json.loads(line)
            key = e['orig']['src'], e['orig']['sport'], e['reply']['src']
            before = last.get(key)
            if before is not None:
                assert (before == 'DESTROY') == (e['event'] == 'NEW'), (before, e)
            last[key] = e['event']
            assert abs(e['time'] - time.time()) < 60
    assert len(last) >= 20


def test_a_namespace_sees_its_own_alone(gateway):
    flows_are_up(gateway)
    with listening(gateway, 'conntrack events netns t1 count 20', '-j') as mine, \
            listening(gateway, 'conntrack events count 300', '-j') as all_:
        time.sleep(0.3)
        gateway.ctl('conntrack flush')
        assert {json.loads(line)['netns'] for line in mine.stdout} == {'t1'}
        assert {json.loads(line)['netns'] for line in all_.stdout} == {'t1', 't2'}


def test_filters(gateway):
    flows_are_up(gateway)
    with listening(gateway, 'conntrack events src 10.1.0.0/24 event-mask NEW,DESTROY count 20',
                   '-j') as process:
        time.sleep(0.3)
        gateway.ctl('conntrack flush')
        seen = [json.loads(line) for line in process.stdout]
    assert {e['event'] for e in seen} <= {'NEW', 'DESTROY'}
    assert all(e['orig']['src'].startswith('10.1.0.') for e in seen)


def test_knob_and_count(gateway):
    gateway.ctl('sysctl netns t2 nf_conntrack_events=0')
    time.sleep(0.1)
    seen = events(gateway, 'stats')[0]['events']
    with listening(gateway, 'conntrack events netns t2') as process:
        time.sleep(0.5)
        assert events(gateway, 'stats')[0]['events'] == seen
        gateway.ctl('sysctl netns t2 nf_conntrack_events=1')
        assert process.stdout.readline().startswith('netns=t2     [NEW] tcp ')
    assert events(gateway, 'stats')[0]['events'] > seen


def test_ends_with_its_namespace(gateway):
    """The connections of a namespace that goes are the last that is told of it."""
    flows_are_up(gateway)
    with listening(gateway, 'conntrack events netns t1 event-mask DESTROY') as process:
        time.sleep(0.3)
        gateway.ctl('netns delete t1')
        lines = process.stdout.readlines()
        assert process.wait(5) == 0
    assert len(lines) == 20 and all('[DESTROY]' in line for line in lines)


def test_no_more_than_sixteen(gateway):
    listeners_are(gateway, 0)
    with listening(gateway, 'conntrack events'):
        listeners_are(gateway, 1)
    listeners_are(gateway, 0)


def test_refuses(gateway):
    for line, message in (
            ('conntrack events netns nobody', 'nobody'),
            ('conntrack events event-mask NEW,OLD', 'not of ALL, NEW, UPDATES, DESTROY'),
            ('conntrack events src 10.0.0', 'no address'),
            ('conntrack events count 0', 'count')):
        done = gateway.run(*line.split())
        assert done.returncode in (1, 2) and message in done.stderr and not done.stdout
        assert len(done.stderr.splitlines()) == 1


def test_a_client_that_reads_nothing(daemon):
    """It loses events, is cut off, and costs nobody else anything."""
    config = CONFIG.replace('gen,synflood,rate=500', 'gen,synflood,rate=40000')
    gateway = daemon(config, '--workers', '1')
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.connect(str(gateway.socket))
        deaf.sendall(b'{"jsonrpc":"2.0","id":1,"method":"conntrack.events"}\n')
        wait_for('losses', lambda: events(gateway, 'stats')[0]['events_lost'] > 0)
        before = events(gateway, 'show workers')[0]['packets']
        assert len(events(gateway, 'conntrack events netns t2 count 100')) == 100
        wait_for('it is cut off', lambda: 'cut off' in gateway.log_text(), seconds=20)
        assert events(gateway, 'show workers')[0]['packets'] > before
    lost = events(gateway, 'stats')[0]['events_lost']
    time.sleep(0.5)
    assert events(gateway, 'stats')[0]['events_lost'] == lost


def test_losses_are_told(daemon):
    """A reader that is slow reads of what it has lost, in its place."""
    config = CONFIG.replace('gen,synflood,rate=500', 'gen,synflood,rate=40000')
    gateway = daemon(config, '--workers', '1')
    with listening(gateway, 'conntrack events netns t2', '-j') as process:
        wait_for('losses', lambda: events(gateway, 'stats')[0]['events_lost'] > 0)
        told = next(e for line in process.stdout if 'lost' in (e := json.loads(line)))
    assert set(told) == {'lost'} and told['lost'] > 0


def test_what_rules_log(gateway):
    """Lines of the rule's namespace alone, to the number asked for; `log` chooses no fate."""
    gateway.ctl("rule add t2 forward 'tcp dport 0-65535 log prefix \"flood: \" drop'")
    gateway.ctl('rule add t1 forward log')
    lines = gateway.ctl('rule events netns t2 count 5').splitlines()
    shape = (r'netns=t2 flood: IN=inner OUT=outer SRC=198\.1[89]\.\S+ DST=\S+ LEN=\d+ TOS=0x00 '
             r'TTL=\d+ ID=\d+ (DF )?PROTO=TCP SPT=\d+ DPT=\d+ WINDOW=\d+ SYN')
    assert len(lines) == 5 and all(re.fullmatch(shape, line) for line in lines), lines
    told = events(gateway, 'rule events netns t2 count 1')
    assert told[0]['prefix'] == 'flood: ' and abs(told[0]['time'] - time.time()) < 60
    done = gateway.run(*'rule events netns nobody'.split())
    assert done.returncode == 1 and 'nobody' in done.stderr
