# SPDX-License-Identifier: BSD-3-Clause
"""Tenants with equal addresses, by VLAN, on two trunks.

    in1 10.0.0.1 ─ VLAN 101 ┐                                        ┌ VLAN 201 ─ 10.0.0.2 out1
                            ├ trunk ─veth─ lan │ sluice │ wan ─veth─ trunk ┤
    in2 10.0.0.1 ─ VLAN 102 ┘                                        └ VLAN 202 ─ 10.0.0.2 out2
"""

import json
import socket

import pytest

from daemon import wait_for
from net import Echo

CONFIG = """\
port add lan devargs net_af_packet0,iface=lan
port add wan devargs net_af_packet1,iface=wan
sysctl net.netfilter.nf_conntrack_acct=1
netns add t1 t2
link add lan port lan vlan 101 netns t1
link add wan port wan vlan 201 netns t1 peer lan
link add lan port lan vlan 102 netns t2
link add wan port wan vlan 202 netns t2 peer lan
"""


@pytest.fixture
def tenants(net, daemon):
    """(gateway, insides, outsides) by number; the third inside is in a VLAN without a link."""
    gw = net.add('gw')
    inside = {i: net.add(f'in{i}') for i in (1, 2, 3)}
    outside = {i: net.add(f'out{i}') for i in (1, 2)}
    trunk(net, gw, 'lan', {100 + i: (ns, '10.0.0.1/24') for i, ns in inside.items()})
    trunk(net, gw, 'wan', {200 + i: (ns, '10.0.0.2/24') for i, ns in outside.items()})
    gateway = daemon(CONFIG, wrapper=['ip', 'netns', 'exec', gw.name])
    return gateway, inside, outside


def trunk(net, gw, name, tenants):
    """An interface of gw with VLANs behind it: {VLAN id: (namespace, address)}."""
    box = net.add(f'switch-{name}')
    net.veth(gw, name, box, 'trunk')
    switch = net.switch(box, 'trunk')
    for vid, (ns, address) in tenants.items():
        net.veth(box, f'v{vid}', ns, 'eth0')
        ns.interface('eth0', address)
        switch.add(vid, f'v{vid}')
    switch.start()


def entries(gateway, *filters):
    text = gateway.ctl(' '.join(('conntrack list', *filters)), options=('-j',))
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def ask(client, data):
    client.sendall(data)
    return client.recv(65536)


def connection(ns, port):
    client = ns.socket(socket.AF_INET, socket.SOCK_STREAM)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    client.bind(('10.0.0.1', 40000))
    client.connect(('10.0.0.2', port))
    return client


def test_equal_addresses_do_not_meet(tenants):
    """The same five values in both tenants: two connections, each with its own counters."""
    gateway, inside, outside = tenants
    with Echo(outside[1], socket.AF_INET, socket.SOCK_STREAM, '10.0.0.2', 80), \
            Echo(outside[2], socket.AF_INET, socket.SOCK_STREAM, '10.0.0.2', 80):
        first, second = connection(inside[1], 80), connection(inside[2], 80)
        assert ask(first, b'1' * 1000) == b'1' * 1000
        assert ask(second, b'2') == b'2'
        both = entries(gateway, 'proto tcp')
        assert sorted(e['netns'] for e in both) == ['t1', 't2']
        assert both[0]['orig']['sport'] == both[1]['orig']['sport'] == 40000
        size = {e['netns']: e['orig']['bytes'] for e in both}
        assert size['t1'] >= size['t2'] + 999
        assert [e['netns'] for e in entries(gateway, 'netns t2', 'proto tcp')] == ['t2']

        gateway.ctl('conntrack delete netns t1 proto tcp')
        assert [e['netns'] for e in entries(gateway, 'proto tcp')] == ['t2']
        assert ask(second, b'still here') == b'still here'


def test_delete_under_traffic(tenants):
    """One tenant goes while both have traffic: the other loses nothing, the name is free again."""
    gateway, inside, outside = tenants
    pings = {i: inside[i].start('ping', '-i', '0.01', '-c', '150', '-W', '1', '10.0.0.2')
             for i in (1, 2)}
    wait_for('entries of both', lambda: {e['netns'] for e in entries(gateway, 'proto icmp')}
             == {'t1', 't2'})
    gateway.ctl('netns delete t1')
    names = gateway.ctl('netns list')
    assert 't2' in names and 't1' not in names
    assert [e['netns'] for e in entries(gateway)] == ['t2']
    out, _ = pings[2].communicate(timeout=30)
    assert ' 150 received' in out, out
    out, _ = pings[1].communicate(timeout=30)
    assert ' 150 received' not in out, out

    for line in ('netns add t1', 'link add lan port lan vlan 101 netns t1',
                 'link add wan port wan vlan 201 netns t1 peer lan'):
        gateway.ctl(line)
    assert entries(gateway, 'netns t1') == []
    inside[1].run('ping', '-c', '1', '-W', '5', '10.0.0.2')
    assert len(entries(gateway, 'netns t1', 'proto icmp')) == 1


def test_unknown_vlan_is_dropped_and_counted(tenants):
    gateway, inside, _ = tenants
    inside[3].run('ping', '-c', '1', '-W', '1', '10.0.0.2', status=None)
    wait_for('a drop without a link', lambda: any(
        'no-link' in line and any(w.isdigit() and int(w) > 0 for w in line.split())
        for line in gateway.ctl('drops').splitlines()))
    assert entries(gateway) == []
