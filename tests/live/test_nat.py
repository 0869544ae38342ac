# SPDX-License-Identifier: BSD-3-Clause
"""Translation between real hosts, whose kernels ask for each address by ARP or ND.

    ┌─ in1 ─────────────┐     ┌─ gw ──────────────────────────────────┐     ┌─ out ───────────┐
    │ 10.0.0.2, fd00::2 ├─┐   │              sluice                   │     │ 192.0.2.2       │
    └───────────────────┘ ├───┼─ lan                              wan ┼─veth┤ 2001:db8::2     │
    ┌─ in2 ─────────────┐ │   │  10.0.0.1/24            192.0.2.1/24  │     │ no route inside │
    │ 10.0.0.3          ├─┘   │  fd00::1/64             2001:db8::1   │     └─────────────────┘
    └───────────────────┘     └───────────────────────────────────────┘

in1 and in2 are on one bridge; their default gateway is the address of the link."""

import json
import socket

import pytest

from daemon import Refused, wait_for
from net import Echo

CONFIG = """\
port add lan devargs net_af_packet0,iface=lan
port add wan devargs net_af_packet1,iface=wan
netns add office
link add lan port lan netns office
link add wan port wan netns office peer lan
link address add lan 10.0.0.1/24
link address add lan fd00::1/64
link address add wan 192.0.2.1/24
link address add wan 2001:db8::1/64
"""
MASQUERADE = 'rule add office postrouting oifname "wan" masquerade'
SNAT = 'rule add office postrouting oifname "wan" ip saddr 10.0.0.0/24 snat to 192.0.2.50'
SNAT6 = 'rule add office postrouting oifname "wan" ip6 saddr fd00::/64 snat to 2001:db8::50'
DNAT = 'rule add office prerouting ip daddr 192.0.2.80 tcp dport 80 dnat to 10.0.0.3:8080'


class Office:
    def __init__(self, net, daemon):
        gw, switch = net.add('gw'), net.add('switch')
        self.inside, self.second = net.add('in1'), net.add('in2')
        self.outside = net.add('out')
        switch.ip('link', 'add', 'name', 'br0', 'type', 'bridge')
        for name, ns, end in (('gw', gw, 'lan'), ('in1', self.inside, 'eth0'),
                              ('in2', self.second, 'eth0')):
            net.veth(switch, name, ns, end)
            switch.ip('link', 'set', name, 'master', 'br0')
        switch.ip('link', 'set', 'br0', 'up')
        net.veth(gw, 'wan', self.outside, 'eth0')
        self.outside.interface('eth0', '192.0.2.2/24', '2001:db8::2/64')
        for ns, host in ((self.inside, 2), (self.second, 3)):
            ns.interface('eth0', f'10.0.0.{host}/24', f'fd00::{host}/64')
            ns.ip('route', 'add', 'default', 'via', '10.0.0.1')
            ns.ip('-6', 'route', 'add', 'default', 'via', 'fd00::1')
        self.gateway = daemon(CONFIG, wrapper=['ip', 'netns', 'exec', gw.name])
        self.ctl = self.gateway.ctl

    def entries(self, *filters):
        text = self.ctl(' '.join(('conntrack list', *filters)), options=('-j',))
        return [json.loads(line) for line in text.splitlines() if line.strip()]


@pytest.fixture
def office(net, daemon):
    return Office(net, daemon)


def connect(ns, address, port, family=socket.AF_INET, timeout=5):
    client = ns.socket(family, socket.SOCK_STREAM)
    client.settimeout(timeout)
    client.connect((address, port))
    return client


def exchange(client, data):
    client.sendall(data)
    got = b''
    while len(got) < len(data):
        more = client.recv(65536)
        assert more, 'the connection ended'
        got += more
    assert got == data


def ping(ns, there, *more):
    """How many of four come back, the first of which may have to wait until the gateway knows where
    the host is."""
    out = ns.run('ping', '-c', '4', '-i', '0.1', '-W', '2', *more, there, status=None)
    return int(out.split(' received')[0].split()[-1])


def test_masquerade(office):
    """The server sees the link's address, asks for it by ARP, and all comes back."""
    office.ctl(MASQUERADE)
    assert ping(office.inside, '192.0.2.2') == 4
    assert ping(office.second, '192.0.2.2', '-s', '4000') == 4
    with Echo(office.outside, socket.AF_INET, socket.SOCK_STREAM, '192.0.2.2', 7):
        clients = [connect(ns, '192.0.2.2', 7) for ns in (office.inside, office.second)]
        for c in clients:
            exchange(c, b'x' * 300000)
        seen = office.entries('proto tcp')
        assert {e['orig']['src'] for e in seen} == {'10.0.0.2', '10.0.0.3'}
        assert {e['reply']['dst'] for e in seen} == {'192.0.2.1'}
        office.ctl('link address delete wan 192.0.2.1/24')
        wait_for('the end of what was masqueraded', lambda: office.entries('proto tcp') == [])


@pytest.mark.parametrize('rule,family,there,new', [
    (SNAT, socket.AF_INET, '192.0.2.2', '192.0.2.50'),
    (SNAT6, socket.AF_INET6, '2001:db8::2', '2001:db8::50')], ids=['ipv4', 'ipv6'])
def test_snat_to_an_address_of_its_own(office, rule, family, there, new):
    office.ctl(rule)
    assert ping(office.inside, there) == 4
    with Echo(office.outside, family, socket.SOCK_STREAM, there, 7):
        client = connect(office.inside, there, 7, family)
        exchange(client, b'x' * 300000)
        assert office.entries('proto tcp')[0]['reply']['dst'] == new
    closed = office.inside.socket(family, socket.SOCK_DGRAM)
    closed.connect((there, 9))
    closed.send(b'x')
    with pytest.raises(ConnectionRefusedError):
        closed.recv(100)


def test_dnat_and_hairpin(office):
    """A server inside by its public address: from outside, from its neighbour, and from itself."""
    office.ctl(MASQUERADE)
    office.ctl(DNAT)
    with Echo(office.second, socket.AF_INET, socket.SOCK_STREAM, '10.0.0.3', 8080):
        for ns in (office.outside, office.inside, office.second):
            exchange(connect(ns, '192.0.2.80', 80), b'x' * 100000)
        seen = {e['orig']['src']: e['reply'] for e in office.entries('proto tcp')}
        assert set(seen) == {'192.0.2.2', '10.0.0.2', '10.0.0.3'}
        assert {r['src'] for r in seen.values()} == {'10.0.0.3'}
        assert [seen[s]['dst'] for s in ('192.0.2.2', '10.0.0.2')] == ['192.0.2.2', '192.0.2.1']
    with pytest.raises(TimeoutError):
        connect(office.outside, '192.0.2.80', 81, timeout=.3)
    assert 'own-address' in office.ctl('drops netns office')


def test_redirect_without_an_address_is_refused(office):
    for address in ('10.0.0.1/24', 'fd00::1/64'):
        office.ctl(f'link address delete lan {address}')
    for address in ('192.0.2.1/24', '2001:db8::1/64'):
        office.ctl(f'link address delete wan {address}')
    with pytest.raises(Refused, match='link address add'):
        office.ctl('rule add office prerouting udp dport 53 redirect')
