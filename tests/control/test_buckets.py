# SPDX-License-Identifier: BSD-3-Clause
"""nf_conntrack_buckets: the table is resized while traffic flows."""

import json

import pytest

from daemon import wait_for
from rpc import Rpc

KEY = 'net.netfilter.nf_conntrack_buckets'
FLOWS = 2000


def buckets(rpc):
    return rpc.ok('sysctl', key=KEY)['value']


@pytest.fixture
def traffic(rpc):
    """Established flows that go on and on."""
    rpc.ok('port.add', name='source',
           devargs=f'gen,flows,flows={FLOWS},vlans=1,peer-vlans=2,rate=20000')
    rpc.ok('netns.add', names=['t1'])
    rpc.ok('link.add', name='a', port='source', vlan=1, netns='t1')
    rpc.ok('link.add', name='b', port='source', vlan=2, netns='t1', peer='a')
    wait_for('all flows', lambda: rpc.ok('conntrack.count', netns='t1')['count'] == FLOWS)


def test_resize_under_traffic_keeps_all(rpc, traffic):
    for n in (8192, 1 << 20, 10000, 262144):
        assert rpc.ok('sysctl', key=KEY, value=n)['value'] == max(8192, 1 << (n - 1).bit_length())
        assert rpc.ok('conntrack.count', netns='t1')['count'] == FLOWS
        seen = [(e['orig']['src'], e['orig']['sport'], e['orig']['dst'], e['orig']['dport'])
                for e in rpc.items('conntrack.list', netns='t1')]
        assert len(seen) == len(set(seen)) == FLOWS


def ask_meanwhile(rpc, other, value):
    """What another client is answered that asks for a resize and the size while one goes on."""
    request = rpc.request('sysctl', {'key': KEY, 'value': value})
    asked = [other.request('sysctl', {'key': KEY, 'value': 65536}),
             other.request('sysctl', {'key': KEY})]
    rpc.send(json.dumps(request).encode() + b'\n')
    other.send(''.join(json.dumps(r) + '\n' for r in asked).encode())
    answers = [other.answer(r['id'])[1] for r in asked]
    return answers, rpc.answer(request['id'])[1]


def test_others_are_served_meanwhile(rpc, gateway):
    """A resize of some hundred turns: another client is answered before its end, and a second
    resize refused. Which of the two is first is not for the test to say, so it tries again."""
    before = buckets(rpc)
    other = Rpc(gateway.socket)
    for _ in range(10):
        (second, size), first = ask_meanwhile(rpc, other, 1 << 24)
        if 'error' in second and size['result']['value'] == before:
            break
        rpc.ok('sysctl', key=KEY, value=before)
    assert 'being resized' in second['error']['message']
    assert first['result']['value'] == buckets(other) == 1 << 24
    assert other.ok('sysctl', key=KEY, value=before)['value'] == before
    other.close()


def test_one_resize_to_a_batch(rpc):
    before = buckets(rpc)
    answers = rpc.batch(('sysctl', {'key': KEY, 'value': 65536}),
                        ('sysctl', {'key': KEY, 'value': 131072}))
    assert all('error' in answer for answer in answers)
    assert buckets(rpc) == before
    assert rpc.ok('sysctl', key=KEY, value=131072)['value'] == 131072


@pytest.mark.parametrize('value', [0, -1, 1 << 28, 1 << 40, 'many', '12x', ''])
def test_range(rpc, value):
    before = buckets(rpc)
    error = rpc.error('sysctl', key=KEY, value=value)
    assert 'buckets' in error['message'] or 'value' in error['message']
    assert buckets(rpc) == before


def test_only_init(rpc):
    rpc.ok('netns.add', names=['t1'])
    error = rpc.error('sysctl', key=KEY, value=8192, netns='t1')
    assert 'init only' in error['message']
    assert rpc.ok('sysctl', key=KEY, netns='t1')['value'] == buckets(rpc)


def test_undone_with_its_batch(rpc):
    before = buckets(rpc)
    answers = rpc.batch(('sysctl', {'key': KEY, 'value': 65536}),
                        ('netns.add', {'names': ['no/name']}))
    assert all('error' in answer for answer in answers)
    assert buckets(rpc) == before
