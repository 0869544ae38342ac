# SPDX-License-Identifier: BSD-3-Clause
"""Batches: applied together or not at all, whatever they are made of and whoever else is there."""

import json
import threading

import pytest

from daemon import Refused, wait_for
from rpc import Rpc

REFUSED, BATCH = -32000, -32004


def add(*names, **more):
    return 'netns.add', dict(names=list(names), **more)


def delete(*names):
    return 'netns.delete', {'names': list(names)}


def refused(answers, which):
    """Request `which` was refused for a reason of its own, the others because of it."""
    for i, a in enumerate(answers):
        assert a['error']['code'] == (REFUSED if i == which else BATCH), a
    return answers[which]['error']['message']


def test_add_twice_in_one_request(rpc):
    assert '"T2"' in rpc.error('netns.add', names=['T1', 'T2', 'T2', 'T3'])['message']
    assert rpc.names() == {'init'}


def test_half_of_them_exist(rpc):
    rpc.ok('netns.add', prefix='T', count=50)
    assert '"T1"' in rpc.error('netns.add', prefix='T', count=100)['message']
    assert len(rpc.names()) == 51


def test_room_for_only_60_more(rpc):
    rpc.ok('netns.add', prefix='a', count=65536 - 60)
    assert 'most' in rpc.error('netns.add', prefix='b', count=100)['message']
    assert len(rpc.names()) == 65537 - 60
    rpc.ok('netns.add', prefix='b', count=60)
    assert 'most' in rpc.error('netns.add', names=['c'])['message']
    rpc.ok('netns.delete', all=True)
    assert rpc.names() == {'init'}


def test_delete_twice_and_unknown(rpc):
    rpc.ok('netns.add', names=['T1', 'T2'])
    assert '"T1"' in rpc.error('netns.delete', names=['T1', 'T1'])['message']
    assert '"no-such"' in rpc.error('netns.delete', names=['T1', 'no-such'])['message']
    assert '"init"' in rpc.error('netns.delete', names=['init'])['message']
    assert rpc.names() == {'init', 'T1', 'T2'}


def test_batch_is_undone(rpc):
    """Namespaces, links, knobs and ports: what came before the refused request is gone."""
    rpc.ok('netns.add', names=['old'])
    answers = rpc.batch(
        add('n1'), add('n2'), delete('old'),
        ('port.add', {'name': 'p2', 'devargs': 'net_null2,no-rx=1'}),
        ('link.add', {'name': 'l1', 'port': 'p0', 'netns': 'n1', 'vlan': 7}),
        ('link.add', {'name': 'l2', 'port': 'p2', 'netns': 'n1', 'vlan': 7, 'peer': 'l1'}),
        ('sysctl', {'netns': 'init', 'key': 'nf_conntrack_udp_timeout', 'value': 77}),
        ('sysctl', {'key': 'nf_conntrack_max', 'value': 1000}),
        add('n2'), add('n3'))
    assert '"n2"' in refused(answers, 8)
    assert rpc.names() == {'init', 'old'}
    assert rpc.items('link.list') == []
    assert {p['name'] for p in rpc.items('port.list')} == {'p0', 'p1'}
    assert rpc.ok('sysctl', key='nf_conntrack_udp_timeout')['value'] == 30
    assert rpc.ok('sysctl', key='nf_conntrack_max')['value'] == 262144
    assert rpc.ok('show.memory')['max'] == 262144
    # All of it can be done again.
    answers = rpc.batch(add('n1'), ('port.add', {'name': 'p2', 'devargs': 'net_null2,no-rx=1'}),
                        ('link.add', {'name': 'l1', 'port': 'p2', 'netns': 'n1', 'vlan': 7}))
    assert all('result' in a for a in answers)


def test_invalid_request_in_a_batch(rpc):
    lines = [rpc.request('netns.add', {'names': ['a']}), rpc.request('netns.add', {'nams': ['b']})]
    rpc.send(json.dumps(lines).encode() + b'\n')
    answers = rpc.line()
    assert answers[0]['error']['code'] == BATCH
    assert answers[1]['error']['message'].startswith('nams:')
    assert rpc.names() == {'init'}


def test_deletes_come_at_the_end(rpc):
    """A batch may take a port away with the links that hold it, in any order that makes sense."""
    assert all('result' in a for a in rpc.batch(
        add('t1', 't2'),
        ('link.add', {'name': 'a', 'port': 'p0', 'netns': 't1', 'vlan': 1}),
        ('link.add', {'name': 'b', 'port': 'p0', 'netns': 't2', 'vlan': 2})))
    error = rpc.error('port.delete', name='p0')
    assert 'link' in error['message']
    answers = rpc.batch(('link.delete', {'name': 'a'}), ('port.delete', {'name': 'p0'}))
    assert '"b"' in refused(answers, 1)
    assert len(rpc.items('link.list')) == 2
    answers = rpc.batch(('link.delete', {'name': 'a'}), delete('t2'),
                        ('port.delete', {'name': 'p0'}))
    assert all('result' in a for a in answers)
    assert {p['name'] for p in rpc.items('port.list')} == {'p1'}
    assert rpc.items('link.list') == []


def test_name_deleted_in_the_batch(rpc):
    rpc.ok('netns.add', names=['t1'])
    answers = rpc.batch(delete('t1'), add('t1'))
    assert 'deleted by this batch' in refused(answers, 1)
    answers = rpc.batch(delete('t1'),
                        ('link.add', {'name': 'a', 'port': 'p0', 'netns': 't1', 'vlan': 1}))
    assert 'deleted by this batch' in refused(answers, 1)
    assert rpc.names() == {'init', 't1'}
    assert all('result' in a for a in rpc.batch(add('t2'), delete('t2'), delete('t1')))
    assert rpc.names() == {'init'}
    rpc.ok('netns.add', names=['t1'])


def test_parent_in_the_batch(rpc):
    answers = rpc.batch(add('a'),
                        ('sysctl', {'netns': 'a', 'key': 'nf_conntrack_acct', 'value': 1}),
                        add('b', **{'from': 'a'}), add('c', **{'from': 'b'}))
    assert all('result' in a for a in answers)
    assert rpc.ok('sysctl', netns='c', key='nf_conntrack_acct')['value'] == 1
    assert 'no-such' in rpc.error('netns.add', names=['d'], **{'from': 'no-such'})['message']


def test_reads_follow_the_changes(rpc):
    requests = [rpc.request('netns.list'), rpc.request('netns.add', {'names': ['t1']})]
    rpc.send(json.dumps(requests).encode() + b'\n')
    items = [rpc.line()['params']['name'] for _ in range(2)]
    answers = rpc.line()
    assert items == ['init', 't1']
    assert answers[0]['result'] == {'count': 2}


def big_batch(rpc, n):
    return json.dumps([rpc.request('netns.add', {'names': [f'x{i}']})
                       for i in range(n)]).encode()


def test_client_lost_in_the_middle(rpc, gateway):
    """Cut within the line: nothing. Cut behind it: all of it."""
    data = big_batch(rpc, 10000)
    lost = Rpc(gateway.socket)
    lost.send(data[:len(data) // 2])
    lost.close()
    assert rpc.names() == {'init'}
    lost = Rpc(gateway.socket)
    lost.send(data + b'\n')
    lost.close()
    assert len(wait_for('the batch', lambda: rpc.names() - {'init'})) == 10000
    lost = Rpc(gateway.socket)
    lost.send(json.dumps(lost.request('netns.delete', {'all': True})).encode() + b'\n')
    lost.close()
    wait_for('the deletes', lambda: rpc.names() == {'init'})


def test_crossing_batches(rpc, gateway):
    """Two clients that add and delete the same names: each batch is whole or refused."""
    failures = []

    def work(names):
        c = Rpc(gateway.socket)
        try:
            for _ in range(100):
                answers = c.batch(*[add(n) for n in names])
                assert len({'result' in a for a in answers}) == 1
                if 'result' not in answers[0]:
                    continue
                present = c.names()
                assert present >= set(names), present
                assert all('result' in a for a in c.batch(*[delete(n) for n in names]))
        except Exception as e:  # noqa: BLE001: shown by the main thread
            failures.append(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in (['a', 'b', 'c'], ['c', 'b', 'd'])]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    assert rpc.names() == {'init'}


def test_ids_are_reused_without_leaks(rpc):
    for _ in range(20):
        rpc.ok('netns.add', prefix='t', count=1000)
        rpc.ok('netns.delete', prefix='t', count=1000)
    rpc.ok('netns.add', names=['last'])
    assert rpc.ok('netns.show', name='last')['nsid'] <= 1001


# ---- files ----

def test_file_is_one_batch(rpc, gateway, tmp_path):
    file = tmp_path / 'commands'
    file.write_text('# tenants\nnetns add t1 t2\nlink add a port p0 vlan 5 netns t1\n'
                    'netns add t1\nnetns list\n')
    done = gateway.run(options=('-f', str(file)))
    assert done.returncode == 1
    assert done.stderr == f'sluicectl: {file}:4: namespace "t1" exists\n'
    assert gateway.ctl('netns list') == 'init (id: 0)\n'
    file.write_text('netns add t1\nsysctl netns t1 nf_conntrack_acct = 1\nnetns list\n')
    done = gateway.run(options=('-f', str(file)))
    assert done.returncode == 0, done.stderr
    assert 'init (id: 0)\nt1 (id: ' in done.stdout
    assert 'net.netfilter.nf_conntrack_acct = 1\n' in done.stdout


def test_file_with_a_wrong_line(rpc, gateway, tmp_path):
    file = tmp_path / 'commands'
    file.write_text('netns add t1\nnetns frobnicate\n')
    done = gateway.run(options=('-f', str(file)))
    assert done.returncode == 2
    assert done.stderr.startswith(f'sluicectl: {file}:2: no such command')
    assert gateway.ctl('netns list') == 'init (id: 0)\n'


@pytest.mark.parametrize('line, says', [
    ('link add a port p0 vlan 4095 netns init', 'vlan: '),
    ('link add a port no-such vlan 1 netns init', 'no-such'),
    ('netns add init', 'exists'),
    ('netns add show', 'word of the command language'),
    ('sysctl nf_conntrack_udp_timeout=-1', 'nf_conntrack_udp_timeout'),
    ('sysctl net.netfilter.nf_conntrack_count=1', 'read only'),
    ('conntrack list', 'does not belong in a configuration file'),
    ('rule add init forward accept accept', 'column 8-13'),
    ('rule replace init /no/such/file', 'No such file'),
    ('nonsense', 'no such command'),
    ('netns add "x', 'quote'),
    ('netns add \x01', 'control character'),
])
def test_config_with_an_error_in_line_7(daemon, line, says):
    with pytest.raises(AssertionError) as e:
        daemon('\n# six lines before it\nport add p0 devargs net_null0\nnetns add t1\n\n'
               f'sysctl netns t1 nf_conntrack_acct=1\n{line}\nnetns add t2\n')
    text = str(e.value)
    assert 'status 1' in text
    assert 'sluice.conf:7: ' in text and says in text


def test_config_with_a_byte_order_mark(daemon):
    assert 't1' in daemon('\ufeffnetns add t1\n').ctl('netns list')


def test_refusals_are_one_line(gateway):
    for line in ('netns show no-such', 'port delete no-such', 'link delete no-such',
                 'conntrack delete', 'sysctl no.such.knob'):
        with pytest.raises(Refused) as e:
            gateway.ctl(line)
        assert e.value.status == 1
        assert len(str(e.value).splitlines()) == 1
