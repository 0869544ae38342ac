# SPDX-License-Identifier: BSD-3-Clause
"""The control socket: hostile and odd input, order, limits, slow clients, batches."""

import json
import pathlib
import socket
import threading
import time

import pytest

from daemon import wait_for
from rpc import Rpc

REFUSED, NOT_AVAILABLE, TOO_MANY, TOO_LONG, BATCH = -32000, -32001, -32002, -32003, -32004
PARSE, INVALID, NO_METHOD, PARAMS = -32700, -32600, -32601, -32602
LINE_MAX = 1024 * 1024


def raw(rpc, data):
    rpc.send(data + b'\n')
    return rpc.line()


# ---- what is not JSON, or not JSON-RPC ----

@pytest.mark.parametrize('data, code, says', [
    (b'hello', PARSE, 'not JSON'),
    (b'{', PARSE, 'not JSON'),
    (b'{"jsonrpc":"2.0"', PARSE, 'not JSON'),
    (b'\x00', PARSE, 'not JSON'),
    (b'{"jsonrpc":"2.0","id":1,"method":"netns.list\x00"}', PARSE, 'not JSON'),
    (b'{"jsonrpc":"2.0","id":1,"method":"netns.list\\u0000"}', PARSE, 'not JSON'),
    (b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}', PARSE, 'not JSON'),
    (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"netns.list"}', PARSE, 'duplicate'),
    (b'{"jsonrpc":"2.0","id":1,"method":"port.add","params":{"name":"x","name":"y"}}', PARSE,
     'duplicate'),
    (b'{"jsonrpc":"2.0","id":1,"method":"port.add","params":{"queues":1e400}}', PARSE, 'queues'),
    (b'{"jsonrpc":"2.0","id":1,"method":"port.add","params":{"queues":18446744073709551616}}',
     PARSE, 'queues'),
    (b'[' * 100000, PARSE, 'nested'),
    (b'{"a":' * 100000 + b'1' + b'}' * 100000, PARSE, 'nested'),
    (b'[' * 17 + b']' * 17, PARSE, 'nested'),
    (b'[]', INVALID, 'empty'),
    (b'17', INVALID, 'object'),
    (b'{"id":1,"method":"netns.list"}', INVALID, 'jsonrpc'),
    (b'{"jsonrpc":"1.0","id":1,"method":"netns.list"}', INVALID, 'jsonrpc'),
    (b'{"jsonrpc":"2.0","id":1}', INVALID, 'method'),
    (b'{"jsonrpc":"2.0","id":1,"method":7}', INVALID, 'method'),
    (b'{"jsonrpc":"2.0","id":[],"method":"netns.list"}', INVALID, 'id'),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"netns.list"}', INVALID, 'id'),
    (b'{"jsonrpc":"2.0","id":1,"method":"netns.list","params":[]}', INVALID, 'params'),
    (b'{"jsonrpc":"2.0","id":1,"method":"netns.list","extra":1}', INVALID, 'no other field'),
    (b'{"jsonrpc":"2.0","id":1,"method":"netns list"}', NO_METHOD, 'method'),
    (b'{"jsonrpc":"2.0","id":1,"method":"help"}', NO_METHOD, 'method'),
], ids=lambda v: v[:24].decode('latin-1') if isinstance(v, bytes) else None)
def test_bad_line(rpc, data, code, says):
    answer = raw(rpc, data)
    error = (answer[0] if isinstance(answer, list) else answer)['error']
    assert error['code'] == code
    assert says in error['message']
    assert rpc.names() == {'init'}, 'the connection goes on, nothing has changed'


@pytest.mark.parametrize('method, params, says', [
    ('netns.add', {'names': ['a"b']}, 'names:'),
    ('netns.add', {'names': ['a\\b']}, 'names:'),
    ('netns.add', {'names': ['a\nb']}, 'names:'),
    ('netns.add', {'names': ['a\x01b']}, 'names:'),
    ('netns.add', {'names': ['é']}, 'names:'),
    ('netns.add', {'names': ['n' * 64]}, 'names:'),
    ('netns.add', {'names': ['n' * 4096]}, 'names:'),
    ('netns.add', {'names': ['list']}, 'word of the command language'),
    ('netns.add', {'prefix': 't', 'count': -1}, 'count:'),
    ('netns.add', {'prefix': 't', 'count': 1.5}, 'count:'),
    ('netns.add', {'prefix': 't', 'count': 2 ** 62}, 'count:'),
    ('netns.add', {'prefix': 'n' * 60, 'count': 1000}, 'prefix:'),
    ('port.add', {'name': 'x', 'devargs': 'net_null7', 'queues': 1.5}, 'queues:'),
    ('port.add', {'name': 'x', 'devargs': 'net_null7', 'queues': 0}, 'queues:'),
    ('link.add', {'name': 'x', 'port': 'p0', 'netns': 'init', 'vlan': 4095}, 'vlan:'),
    ('link.add', {'name': 'x', 'port': 'p0', 'netns': 'init', 'vlan': -1}, 'vlan:'),
    ('link.add', {'name': 'x', 'port': 'p0', 'netns': 'init', 'vlan': '1.2.3'}, 'vlan:'),
    ('sysctl', {'key': 'nf_conntrack_udp_timeout', 'value': -1}, 'nf_conntrack_udp_timeout'),
    ('sysctl', {'key': 'no.such'}, 'key:'),
    ('conntrack.list', {'src': '10.0.0.256'}, 'src:'),
    ('conntrack.list', {'src': '10.0.0.0/33'}, 'src:'),
    ('conntrack.list', {'mark': '1/x'}, 'mark:'),
    ('conntrack.list', {'state': 'NO_SUCH'}, 'state:'),
    ('conntrack.list', {'proto': 'no-such'}, 'proto:'),
    ('conntrack.list', {'netns': 'no-such'}, 'netns:'),
    ('conntrack.list', {'sport': 65536}, 'sport:'),
    ('netns.list', {'verbose': True}, 'verbose:'),
], ids=lambda v: str(v)[:24].encode('ascii', 'replace').decode())
def test_bad_parameter(rpc, method, params, says):
    error = rpc.error(method, **params)
    assert error['code'] in (PARAMS, REFUSED)
    assert says in error['message']
    assert '\n' not in error['message']
    assert rpc.names() == {'init'}


@pytest.mark.parametrize('method, params', [
    ('expect.list', {}),
])
def test_not_available(rpc, method, params):
    error = rpc.error(method, **params)
    assert error['code'] == NOT_AVAILABLE
    assert 'not available' in error['message']


# ---- framing ----

@pytest.mark.parametrize('size', [1022, 1023, 1024, 1025, 4096, 65536, LINE_MAX - 1, LINE_MAX])
def test_request_sizes(rpc, size):
    """Padded with spaces to the size, the request is answered like any other."""
    line = json.dumps(rpc.request('show.version')).encode()
    answer = raw(rpc, line + b' ' * (size - len(line)))
    assert 'sluice' in answer['result']


def test_too_long(rpc, gateway):
    answer = raw(rpc, b' ' * (LINE_MAX + 1))
    assert answer['error']['code'] == TOO_LONG
    assert rpc.line() is None
    assert Rpc(gateway.socket).ok('show.version')


def test_64_mib_without_newline(rpc, gateway):
    with pytest.raises(OSError):
        for _ in range(64):
            rpc.send(b'x' * LINE_MAX)
    assert rpc.line()['error']['code'] == TOO_LONG
    assert Rpc(gateway.socket).ok('show.version')


def test_one_byte_per_write(rpc):
    for byte in json.dumps(rpc.request('show.version')).encode() + b'\n':
        rpc.send(bytes([byte]))
    assert 'result' in rpc.line()


def test_two_requests_in_one_write(rpc):
    both = [rpc.request('show.version', request_id='a'), rpc.request('netns.list', request_id='b')]
    rpc.send(b''.join(json.dumps(r).encode() + b'\n' for r in both))
    assert rpc.answer('a')[1]['result']['sluice']
    assert [n['name'] for n in rpc.answer('b')[0]] == ['init']


def test_order(rpc):
    """A listing holds the later requests of its client; answers come in their order."""
    rpc.ok('netns.add', prefix='t', count=20000)
    methods = ['netns.list', 'show.version', 'netns.list', 'show.memory'] * 3
    requests = [rpc.request(m) for m in methods]
    rpc.send(b''.join(json.dumps(r).encode() + b'\n' for r in requests))
    for r in requests:
        items, answer = rpc.answer(r['id'])
        assert len(items) == (20001 if r['method'] == 'netns.list' else 0)
        assert 'result' in answer


@pytest.mark.parametrize('newline', [b'\n', b''])
def test_half_close(rpc, newline):
    """Who says that it sends no more is still answered, also without a last newline."""
    rpc.send(json.dumps(rpc.request('netns.list')).encode() + newline)
    rpc.sock.shutdown(socket.SHUT_WR)
    items, answer = rpc.answer(1)
    assert len(items) == 1 and answer['result'] == {'count': 1}
    assert rpc.line() is None


def test_half_a_line_and_gone(rpc, gateway):
    rpc.send(b'{"jsonrpc":"2.0","id":1,"method":"netns.add","params":{"names":["x"')
    rpc.close()
    assert Rpc(gateway.socket).names() == {'init'}


def test_empty_lines_and_notifications(rpc):
    rpc.send(b'\n  \n\r\n{"jsonrpc":"2.0","method":"netns.add","params":{"names":["quiet"]}}\n')
    assert rpc.names() == {'init', 'quiet'}


# ---- many and slow clients ----

def test_100_clients(daemon):
    gateway = daemon('')
    time.sleep(0.3)  # until the daemon has seen that who waited for its start is gone
    clients = [Rpc(gateway.socket) for _ in range(100)]
    served = 0
    for c in clients:
        try:
            c.send(json.dumps(c.request('show.version')).encode() + b'\n')
        except OSError:
            pass  # turned away and closed already: the reason is there to be read
    for c in clients:
        answer = c.line()
        if 'result' in answer:
            served += 1
        else:
            assert answer['error']['code'] == TOO_MANY
            assert c.is_closed()
    assert served == 64
    for c in clients:
        c.close()
    wait_for('room for a client', lambda: 'result' in Rpc(gateway.socket).call('show.version'))


def rss_kb(pid):
    for line in pathlib.Path(f'/proc/{pid}/status').read_text().splitlines():
        if line.startswith('VmRSS'):
            return int(line.split()[1])
    raise AssertionError('no VmRSS')


def test_100_mb_of_answers(rpc):
    """Of eleven listings: each line of the first is looked at, of the others size and number."""
    count, lists = 60000, 11
    rpc.ok('netns.add', prefix='tenant-with-quite-a-long-name-to-make-long-lines-', count=count)
    rpc.send(b''.join(json.dumps(rpc.request('netns.list', request_id=f'r{i}')).encode() + b'\n'
                      for i in range(lists)))
    items, answer = rpc.answer('r0')
    assert answer['result'] == {'count': count + 1}
    assert len({n['name'] for n in items}) == count + 1
    size = 0
    for i in range(1, lists):
        lines, end = 0, b'"id":"r%d","result":{"count":%d}}' % (i, count + 1)
        while True:
            line = rpc.raw_line()
            size += len(line)
            if line.endswith(end):
                break
            assert b'"id":"r%d"' % i in line
            lines += 1
        assert lines == count + 1
    assert size > 90e6
    assert rpc.ok('show.version')


def test_client_that_never_reads(daemon):
    """Is cut off; costs bounded memory; the others are served meanwhile."""
    gateway = daemon('')
    rpc = Rpc(gateway.socket)
    rpc.ok('netns.add', prefix='t', count=60000)
    before = rss_kb(gateway.process.pid)
    lazy = Rpc(gateway.socket)
    lazy.sock.setblocking(False)
    line = json.dumps(lazy.request('netns.list')).encode() + b'\n'
    sent = 0
    try:
        while sent < 8 * LINE_MAX:
            sent += lazy.sock.send(line * 1000)
    except BlockingIOError:
        pass
    end = time.monotonic() + 9
    slowest = 0.0
    while time.monotonic() < end:
        start = time.monotonic()
        rpc.ok('show.version')
        slowest = max(slowest, time.monotonic() - start)
        time.sleep(0.1)
    assert slowest < 1.0
    assert rss_kb(gateway.process.pid) - before < 16 * 1024
    wait_for('the lazy client is cut off', lambda: 'cut off' in gateway.log_text(), 10)


def test_two_clients_read_at_once(rpc, gateway):
    """Long listings of several clients are each whole, and never mixed."""
    rpc.ok('netns.add', prefix='t', count=10000)
    failures = []

    def work(name):
        try:
            c = Rpc(gateway.socket)
            for i in range(3):
                request = c.request('netns.list', request_id=f'{name}-{i}')
                c.send(json.dumps(request).encode() + b'\n')
                items, answer = c.answer(f'{name}-{i}')
                assert len({n['name'] for n in items}) == 10001 == answer['result']['count']
        except Exception as e:  # noqa: BLE001: shown by the main thread
            failures.append(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in 'abcd']
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_idle_costs_nothing(daemon):
    """No port to poll, no client: the process uses no CPU at all."""
    gateway = daemon('')
    stat = pathlib.Path(f'/proc/{gateway.process.pid}/task')

    def ticks():
        sum_ = 0
        for task in stat.iterdir():
            fields = (task / 'stat').read_text().rsplit(')', 1)[1].split()
            sum_ += int(fields[11]) + int(fields[12])
        return sum_

    time.sleep(0.5)
    before = ticks()
    time.sleep(2)
    assert ticks() - before <= 1
