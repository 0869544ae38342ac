# SPDX-License-Identifier: BSD-3-Clause
"""Links: MTU, MAC address, addresses, and what a batch does to them."""

import pytest

from daemon import Refused

MAC = '02:5e:00:00:00:01'


@pytest.fixture
def wire(rpc):
    """A wire of two links of namespace t1, `in` and `out`."""
    for answer in rpc.batch(
            ('netns.add', {'names': ['t1', 't2']}),
            ('link.add', {'name': 'in', 'port': 'p0', 'netns': 't1', 'mac': MAC, 'mtu': 1400}),
            ('link.add', {'name': 'out', 'port': 'p1', 'netns': 't1', 'peer': 'in'})):
        assert 'result' in answer, answer
    return rpc


def link(rpc, name):
    found, = (one for one in rpc.items('link.list') if one['name'] == name)
    return found


def test_mtu_and_mac(wire):
    assert link(wire, 'in')['mtu'] == 1400
    assert link(wire, 'in')['mac'] == MAC
    assert link(wire, 'out')['mtu'] == 65535
    first = int(link(wire, 'out')['mac'][:2], 16)
    assert first & 3 == 2, 'locally administered, no group'
    wire.ok('link.delete', name='out')
    mac = link(wire, 'in')['mac']
    wire.ok('link.add', name='out', port='p1', netns='t1', peer='in')
    assert link(wire, 'in')['mac'] == mac


@pytest.mark.parametrize('more, says', [
    ({'mtu': 67}, 'mtu:'), ({'mtu': 65536}, 'mtu:'), ({'mtu': '1500'}, 'mtu:'),
    ({'mac': '02:5e:00:00:00'}, 'mac:'), ({'mac': '02:5e:00:00:00:0g'}, 'mac:'),
    ({'mac': '025e.0000.0001'}, 'mac:'), ({'mac': ''}, 'mac:'),
    ({'mac': '01:00:5e:00:00:01'}, 'one station'), ({'mac': '00:00:00:00:00:00'}, 'one station'),
    ({'mac': 'ff:ff:ff:ff:ff:ff'}, 'one station'), ({'name': 'n' * 16}, '15 characters'),
])
def test_link_refused(rpc, more, says):
    params = {'name': 'x', 'port': 'p0', 'netns': 'init'} | more
    assert says in rpc.error('link.add', **params)['message']
    assert rpc.items('link.list') == []


def test_addresses_in_their_order(wire):
    for address in ('203.0.113.1/24', '2001:db8::1/64', '10.0.0.1/8'):
        wire.ok('link.address.add', link='out', address=address)
    assert link(wire, 'out')['addresses'] == ['203.0.113.1/24', '2001:db8::1/64', '10.0.0.1/8']
    wire.ok('link.address.delete', link='out', address='203.0.113.1/24', netns='t1')
    wire.ok('link.address.add', link='out', address='203.0.113.1/24')
    assert link(wire, 'out')['addresses'] == ['2001:db8::1/64', '10.0.0.1/8', '203.0.113.1/24']


def test_listing_as_text(gateway, wire):
    gateway.ctl('link address add in 198.51.100.1/24 netns t1')
    assert gateway.ctl('link list netns t1').splitlines()[:2] == [
        f'in port p0 vlan 0 netns t1 peer out mtu 1400 mac {MAC}', '    address 198.51.100.1/24']
    with pytest.raises(Refused, match='already'):
        gateway.ctl('link address add out 198.51.100.1/25')


@pytest.mark.parametrize('method, params, says', [
    ('add', {'link': 'no', 'address': '10.0.0.1/8'}, 'no link "no"'),
    ('add', {'link': 'in', 'address': '10.0.0.1'}, 'address:'),
    ('add', {'link': 'in', 'address': '10.0.0.1/33'}, 'address:'),
    ('add', {'link': 'in', 'address': '10.0.0.1/'}, 'address:'),
    ('add', {'link': 'in', 'address': '10.0.0/8'}, 'address:'),
    ('add', {'link': 'in', 'address': '2001:db8::1/129'}, 'address:'),
    ('add', {'link': 'in', 'address': '10.0.0.255/24'}, 'broadcast'),
    ('add', {'link': 'in', 'address': '10.0.0.1/8', 'netns': 't2'}, 'no link "in"'),
    ('delete', {'link': 'in', 'address': '10.0.0.1/8'}, 'has no address'),
    ('delete', {'link': 'in', 'address': '192.0.2.1/25'}, 'has no address'),
])
def test_address_refused(wire, method, params, says):
    wire.ok('link.address.add', link='in', address='192.0.2.1/24')
    assert says in wire.error(f'link.address.{method}', **params)['message']
    assert link(wire, 'in')['addresses'] == ['192.0.2.1/24']


def test_a_name_in_two_namespaces(wire):
    wire.ok('link.add', name='in', port='p0', vlan=5, netns='t2')
    error = wire.error('link.address.add', link='in', address='10.0.0.1/8')
    assert 'say which' in error['message']
    wire.ok('link.address.add', link='in', address='10.0.0.1/8', netns='t1')
    wire.ok('link.address.add', link='in', address='10.0.0.1/8', netns='t2')


def batch(rpc, *requests):
    """The message of the request that was refused, None when all were done."""
    errors = [a['error'] for a in rpc.batch(*requests) if 'error' in a]
    assert not errors or len(errors) == len(requests)
    return next((e['message'] for e in errors if e['code'] != -32004), None)


def test_batch(wire):
    def add(address):
        return 'link.address.add', {'link': 'out', 'address': address}

    def delete(address):
        return 'link.address.delete', {'link': 'out', 'address': address}

    gone = ('link.delete', {'name': 'out'})
    assert batch(wire, add('10.0.0.1/8'), add('10.0.0.2/8'), add('10.0.0.1/8')) is not None
    assert link(wire, 'out')['addresses'] == []
    wire.ok('link.address.add', link='out', address='10.0.0.1/8')
    assert 'already by this batch' in batch(wire, delete('10.0.0.1/8'), delete('10.0.0.1/8'))
    assert 'already' in batch(wire, delete('10.0.0.1/8'), add('10.0.0.1/8'))
    assert link(wire, 'out')['addresses'] == ['10.0.0.1/8']
    assert batch(wire, add('10.0.0.2/8'), delete('10.0.0.2/8'), delete('10.0.0.1/8')) is None
    assert link(wire, 'out')['addresses'] == []
    assert 'deleted by this batch' in batch(wire, gone, add('10.0.0.1/8'))
    assert 'deleted by this batch' in batch(wire, ('netns.delete', {'names': ['t1']}),
                                            add('10.0.0.1/8'))
    wire.ok('link.address.add', link='out', address='10.0.0.1/8')
    assert batch(wire, delete('10.0.0.1/8'), gone) is None
    assert [one['name'] for one in wire.items('link.list')] == ['in']


def test_a_link_goes_with_its_addresses(wire):
    for i in range(64):
        wire.ok('link.address.add', link='out', address=f'10.0.{i}.1/24')
    assert 'has 64' in wire.error('link.address.add', link='out', address='10.1.0.1/24')['message']
    wire.ok('link.delete', name='out')
    wire.ok('link.add', name='out', port='p1', netns='t1', peer='in')
    assert link(wire, 'out')['addresses'] == []
