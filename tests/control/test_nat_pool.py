# SPDX-License-Identifier: BSD-3-Clause
"""Pools of addresses: what they are made of, what is refused, batches."""

import pytest


@pytest.fixture
def t1(rpc):
    rpc.ok('netns.add', names=['t1', 't2'])
    return rpc


def pools(rpc, **params):
    return {(p['netns'], p['name']): p for p in rpc.items('nat.pool.list', **params)}


def test_listed_as_given(t1):
    t1.ok('nat.pool.add', netns='t1', name='a', addresses=['203.0.113.1-203.0.113.9', '192.0.2.1'])
    t1.ok('nat.pool.add', netns='t1', name='b', addresses=['2001:db8::-2001:db8::ffff'],
          ports='5000-6000')
    t1.ok('nat.pool.add', netns='t2', name='a', addresses=['203.0.113.5'], ports='7000')
    assert pools(t1) == {
        ('t1', 'a'): {'netns': 't1', 'name': 'a',
                      'addresses': ['203.0.113.1-203.0.113.9', '192.0.2.1']},
        ('t1', 'b'): {'netns': 't1', 'name': 'b', 'addresses': ['2001:db8::-2001:db8::ffff'],
                      'ports': '5000-6000'},
        ('t2', 'a'): {'netns': 't2', 'name': 'a', 'addresses': ['203.0.113.5'],
                      'ports': '7000-7000'},
    }
    assert list(pools(t1, netns='t2')) == [('t2', 'a')]
    t1.ok('nat.pool.delete', netns='t1', name='a')
    assert list(pools(t1, netns='t1')) == [('t1', 'b')]


@pytest.mark.parametrize('params, says', [
    ({'addresses': []}, 'addresses'),
    ({'addresses': ['203.0.113.9-203.0.113.1']}, 'ends before it begins'),
    ({'addresses': ['203.0.113.1-203.0.113.9', '203.0.113.9-203.0.113.12']}, 'one before it'),
    ({'addresses': ['192.0.2.200-203.0.113.1']}, 'addresses of pool "there"'),
    ({'addresses': ['203.0.113.1', '2001:db8::1']}, 'make two'),
    ({'addresses': ['203.0.113.1-2001:db8::1']}, 'one family'),
    ({'addresses': ['203.0.113.0/24']}, 'prefix'), ({'addresses': ['203.0.113']}, 'no address'),
    ({'addresses': ['203.0.113.1-']}, 'no address'), ({'addresses': ['-']}, 'no address'),
    ({'addresses': ['0.0.0.0-203.0.113.1']}, 'no address that a host'),
    ({'addresses': ['224.0.0.1']}, 'no address that a host'),
    ({'addresses': ['ff02::1']}, 'no address that a host'),
    ({'ports': '6000-5000'}, 'end before they begin'), ({'ports': '0-5'}, '1-65535'),
    ({'ports': '1-65536'}, '1-65535'), ({'ports': '1-'}, '1-65535'), ({'ports': ''}, 'empty'),
    ({'ports': '1-2-3'}, '1-65535'), ({'ports': '+1-2'}, '1-65535'),
    ({'name': 'there'}, 'exists'), ({'name': 'pool'}, 'name'), ({'netns': 'none'}, 'none'),
])
def test_refused(t1, params, says):
    t1.ok('nat.pool.add', netns='t1', name='there', addresses=['192.0.2.200-192.0.2.255'])
    params = {'netns': 't1', 'name': 'x', 'addresses': ['203.0.113.1']} | params
    message = t1.error('nat.pool.add', **params)['message']
    assert says in message and '\n' not in message
    assert list(pools(t1)) == [('t1', 'there')]


def test_a_batch_that_is_refused_leaves_nothing(t1):
    answers = t1.batch(
        ('nat.pool.add', {'netns': 't1', 'name': 'a', 'addresses': ['203.0.113.1']}),
        ('nat.pool.add', {'netns': 't1', 'name': 'b', 'addresses': ['203.0.113.1']}))
    assert any('error' in a for a in answers)
    assert pools(t1) == {}
    t1.ok('nat.pool.add', netns='t1', name='b', addresses=['203.0.113.1'])
    answers = t1.batch(('nat.pool.delete', {'netns': 't1', 'name': 'b'}),
                       ('nat.pool.delete', {'netns': 't1', 'name': 'b'}))
    assert any('already' in a.get('error', {}).get('message', '') for a in answers)
    assert list(pools(t1)) == [('t1', 'b')]


def test_a_namespace_takes_its_pools_along(t1):
    t1.ok('nat.pool.add', netns='t1', name='a', addresses=['203.0.113.1'])
    t1.ok('netns.delete', names=['t1'])
    assert pools(t1) == {}
    assert 't1' in t1.error('nat.pool.list', netns='t1')['message']
