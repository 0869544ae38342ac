# SPDX-License-Identifier: BSD-3-Clause
"""Pools of addresses: what they are made of, what is refused, batches."""

import json

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


RULE = 'rule.add'


def rules(t1):
    """The rules of t1 by their text."""
    request = t1.request('rule.list', {'netns': 't1'})
    t1.send(json.dumps(request).encode() + b'\n')
    return [item['rule'] for item in t1.answer(request['id'])[0] if 'rule' in item]


def add_rule(rule):
    return {'netns': 't1', 'chain': 'postrouting', 'rule': rule}


@pytest.mark.parametrize('rule, says', [
    ('snat to pool none', 'no pool "none"'), ('ip6 saddr ::/0 snat to pool a', 'IPv6'),
    ('snat to pool a deterministic', 'column 16-28'),
    ('snat to pool a filter endpoint-independent', 'endpoint-independent mappings'),
    ('snat to pool a block-size 100 deterministic', 'saddr'),
    ('ip saddr 10.0.0.0/24 snat to pool a block-size 100 deterministic', 'for 256'),
    ('snat to pool a block-size 60000', 'more than'), ('snat to pool a block-size 0', '1'),
    ('snat to pool a block-size 1000 blocks 3', 'more than'), ('snat to pool', 'name'),
])
def test_rules_refused(t1, rule, says):
    t1.ok('nat.pool.add', netns='t1', name='a', addresses=['203.0.113.1'], ports='1000-2999')
    message = t1.error(RULE, **add_rule(rule))['message']
    assert says in message and '\n' not in message
    assert rules(t1) == []


def test_rules_of_one_pool_say_the_same(t1):
    t1.ok('nat.pool.add', netns='t1', name='a', addresses=['203.0.113.1'])
    text = 'snat to pool a block-size 100 blocks 2 endpoint-independent filter address-dependent'
    first = t1.ok(RULE, **add_rule('ip saddr 10.0.0.0/8 ' + text))
    t1.ok(RULE, **add_rule(text))
    assert rules(t1) == ['ip saddr 10.0.0.0/8 ' + text, text]
    for other in ('snat to pool a', text.replace('100', '200'), text.replace('blocks 2 ', '')):
        assert 'otherwise' in t1.error(RULE, **add_rule(other))['message']
    exported = [line['line'] for line in t1.items('rule.export', netns='t1')]
    assert sum('# not of nft: ' in line for line in exported) == 2
    assert f'rule {first["handle"]}' in \
        t1.error('nat.pool.delete', netns='t1', name='a')['message']
    t1.ok('rule.flush', netns='t1')
    message = t1.error(RULE, **add_rule('snat to pool a'))['message']
    assert 'cut into blocks of 100' in message and 'anew' in message
    answers = t1.batch((RULE, add_rule(text)),
                       ('nat.pool.delete', {'netns': 't1', 'name': 'a'}))
    assert any('error' in a for a in answers)
    t1.ok('nat.pool.delete', netns='t1', name='a')
    assert pools(t1) == {}


def test_a_pool_and_its_rule_in_one_batch(t1):
    add = ('nat.pool.add', {'netns': 't1', 'name': 'a', 'addresses': ['203.0.113.1']})
    rule = 'snat to pool a block-size 100'
    answers = t1.batch(add, (RULE, add_rule(rule)), (RULE, add_rule('no rule')))
    assert any('error' in a for a in answers)
    assert pools(t1) == {} and rules(t1) == []
    added = t1.batch(add, (RULE, add_rule(rule)))
    handle = added[1]['result']['handle']
    assert rules(t1) == [rule]
    delete = ('nat.pool.delete', {'netns': 't1', 'name': 'a'})
    answers = t1.batch(('rule.delete', {'netns': 't1', 'handle': handle}), delete,
                       (RULE, add_rule(rule)))
    assert any('deleted by this batch' in a.get('error', {}).get('message', '') for a in answers)
    assert list(pools(t1)) == [('t1', 'a')]
    assert all('result' in a for a in
               t1.batch(('rule.delete', {'netns': 't1', 'handle': handle}), delete))
    assert pools(t1) == {}


def test_use_is_listed(t1):
    t1.ok('nat.pool.add', netns='t1', name='a', addresses=['203.0.113.1-203.0.113.4'])
    t1.ok('nat.pool.add', netns='t2', name='v6', addresses=['2001:db8::-2001:db8::ffff:ffff:ffff'])
    one, = t1.items('nat.list', netns='t1')
    assert (one['unit'], one['addresses'], one['capacity'], one['used']) == \
        ('port', 4, 4 * 64512, 0)
    assert len(t1.items('nat.list')) == 2
    assert t1.items('nat.lookup', netns='t1', address='203.0.113.1', port=1) == []


@pytest.mark.parametrize('params, says', [
    ({'address': '203.0.113.0/24'}, 'prefix'), ({'address': 'x'}, 'address'),
    ({'port': 65536}, 'port'), ({'time': 'yesterday'}, 'seconds'), ({'time': '-1'}, 'seconds'),
    ({'time': '5'}, 'only the present'), ({'time': '2026-13-01T00:00:00'}, 'seconds'),
])
def test_lookup_refused(t1, params, says):
    t1.ok('nat.pool.add', netns='t1', name='a', addresses=['203.0.113.1'])
    params = {'netns': 't1', 'address': '203.0.113.1', 'port': 1} | params
    assert says in t1.error('nat.lookup', **params)['message']


NAT64 = 'nat64 prefix 2001:db8:64::/96 to pool v4'


@pytest.mark.parametrize('chain, rule, says', [
    ('prerouting', 'nat64 prefix 2001:db8:64::/96 to pool none', 'no pool "none"'),
    ('prerouting', 'nat64 prefix 2001:db8:64::/96 to pool v6', 'is of IPv6'),
    ('prerouting', 'nat64 prefix 2001:db8:64::/95 to pool v4', '32, 40, 48, 56, 64 or 96'),
    ('prerouting', 'nat64 prefix 2001:db8:64:0:100::/96 to pool v4', 'bits 64 to 71'),
    ('prerouting', 'nat64 prefix 192.0.2.0/24 to pool v4', 'an IPv6 address'),
    ('prerouting', 'ip saddr 192.0.2.1 ' + NAT64, 'IPv4'),
    ('postrouting', NAT64, 'prerouting'),
    ('prerouting', NAT64 + ' block-size 512', 'no blocks of ports'),
    ('prerouting', NAT64 + ' filter everyone', 'address-dependent'),
    ('prerouting', NAT64 + ' filter endpoint-independent', 'handed out otherwise'),
    ('postrouting', 'snat to pool v4', 'handed out otherwise'),
    ('postrouting', 'snat to pool v4 block-size 512', 'handed out otherwise'),
])
def test_nat64_refused(t1, chain, rule, says):
    t1.ok('nat.pool.add', netns='t1', name='v4', addresses=['203.0.113.1'])
    t1.ok('nat.pool.add', netns='t1', name='v6', addresses=['2001:db8::1'])
    t1.ok('rule.add', netns='t1', chain='prerouting', rule=NAT64)
    message = t1.error('rule.add', netns='t1', chain=chain, rule=rule)['message']
    assert says in message and '\n' not in message
    assert rules(t1) == [NAT64]


def test_nat64_beside_endpoint_independent_translation(t1):
    """IPv4 hosts may share the pool, if it is handed out to them as it is to those of IPv6."""
    t1.ok('nat.pool.add', netns='t1', name='v4', addresses=['203.0.113.1'])
    t1.ok('rule.add', netns='t1', chain='prerouting', rule=NAT64)
    t1.ok('rule.add', netns='t1', chain='postrouting', rule='snat to pool v4 endpoint-independent')
    assert 'rule' in t1.error('nat.pool.delete', netns='t1', name='v4')['message']


def test_room_for_mappings_grows_with_the_maximum(t1):
    t1.ok('nat.pool.add', netns='t1', name='a', addresses=['203.0.113.1'])
    t1.ok(RULE, **add_rule('snat to pool a endpoint-independent'))
    t1.ok('sysctl', key='net.netfilter.nf_conntrack_max', value=300000)
    message = t1.error('sysctl', key='net.netfilter.nf_conntrack_max', value=1 << 26)['message']
    assert 'nf_conntrack_max' in message
