# SPDX-License-Identifier: BSD-3-Clause
"""NAT64 between real hosts: a client that has IPv6 only, and a server that has IPv4 only.

    ┌─ client ────┐     ┌─ gw ────────────────────────────┐     ┌─ server ────────┐
    │ fd00::2     ├─veth┤ lan          sluice         wan ├─veth┤ 192.0.2.2       │
    │ no IPv4     │     │ fd00::1/64         192.0.2.1/24 │     │ no IPv6         │
    └─────────────┘     │            pool: 192.0.2.64     │     │ no route inside │
                        └─────────────────────────────────┘     └─────────────────┘"""

import json
import socket
import sys

import pytest
from net import Echo

SERVER = 'fd00:64::c000:202'
CONFIG = """\
port add lan devargs net_af_packet0,iface=lan
port add wan devargs net_af_packet1,iface=wan
netns add office
link add lan port lan netns office mtu 1500
link add wan port wan netns office peer lan mtu 1500
link address add lan fd00::1/64
link address add wan 192.0.2.1/24
nat pool add office public 192.0.2.64
rule add office prerouting nat64 prefix fd00:64::/96 to pool public
"""


class Office:
    def __init__(self, net, daemon):
        gw = net.add('gw')
        self.client, self.server = net.add('client'), net.add('server')
        net.veth(gw, 'lan', self.client, 'eth0')
        net.veth(gw, 'wan', self.server, 'eth0')
        self.client.interface('eth0', 'fd00::2/64')
        self.client.ip('-6', 'route', 'add', 'default', 'via', 'fd00::1')
        self.server.run('sysctl', '-qw', 'net.ipv6.conf.all.disable_ipv6=1')
        self.server.interface('eth0', '192.0.2.2/24')
        self.gateway = daemon(CONFIG, wrapper=['ip', 'netns', 'exec', gw.name])
        self.ctl = self.gateway.ctl

    def ping(self, *more):
        out = self.client.run('ping', '-i', '0.1', '-W', '2', *more, SERVER, status=None)
        return int(out.split(' received')[0].split()[-1])

    def entries(self, *filters):
        text = self.ctl(' '.join(('conntrack list', *filters)), options=('-j',))
        return [json.loads(line) for line in text.splitlines() if line.strip()]


@pytest.fixture
def office(net, daemon):
    return Office(net, daemon)


def connect(office, port, kind=socket.SOCK_STREAM):
    client = office.client.socket(socket.AF_INET6, kind)
    client.connect((SERVER, port))
    return client


def test_programs(office, tmp_path):
    """ping, in one piece and in fragments of both versions, and curl from a web server. The first
    packet waits while the gateway asks where the server is."""
    assert office.ping('-c', '1') == 1
    assert office.ping('-c', '3') == 3
    assert office.ping('-c', '3', '-s', '1400') == 3
    assert office.ping('-c', '3', '-s', '6000') == 3
    (tmp_path / 'page').write_bytes(bytes(range(256)) * 4000)
    server = office.server.start(sys.executable, '-u', '-m', 'http.server', '--bind', '192.0.2.2',
                                 '--directory', str(tmp_path), '80')
    assert 'Serving' in server.stdout.readline()
    office.client.run('curl', '-sSf', '-m', '10', '-o', str(tmp_path / 'got'),
                      f'http://[{SERVER}]/page')
    assert (tmp_path / 'got').read_bytes() == (tmp_path / 'page').read_bytes()
    [entry] = office.entries('proto tcp')
    assert (entry['orig']['src'], entry['orig']['dst']) == ('fd00::2', SERVER)
    assert (entry['reply']['src'], entry['reply']['dst']) == ('192.0.2.2', '192.0.2.64')
    assert (entry['orig']['family'], entry['reply']['family']) == ('ipv6', 'ipv4')


@pytest.mark.parametrize('cookies', [0, 2], ids=['', 'SYN proxy'])
def test_both_ways(office, cookies):
    """Also where the gateway answers the SYN itself, and changes numbers as well as addresses."""
    office.ctl(f'sysctl netns office sluice.syncookies={cookies}')
    with Echo(office.server, socket.AF_INET, socket.SOCK_STREAM, '192.0.2.2', 7):
        client, got, data = connect(office, 7), b'', b'sluice' * 50000
        client.sendall(data)
        while len(got) < len(data):
            more = client.recv(65536)
            assert more, 'the connection ended'
            got += more
        assert got == data


def test_errors(office):
    """What the server's kernel says arrives at the socket, and what the client's says at his."""
    closed = connect(office, 9, socket.SOCK_DGRAM)
    closed.send(b'x')
    with pytest.raises(ConnectionRefusedError):
        closed.recv(100)
    with pytest.raises(ConnectionRefusedError):
        connect(office, 9)
    server = office.server.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(('192.0.2.2', 53))
    client = connect(office, 53, socket.SOCK_DGRAM)
    client.send(b'question')
    server.connect(server.recvfrom(100)[1])
    client.close()
    server.send(b'answer')
    with pytest.raises(ConnectionRefusedError):
        server.recv(100)


def test_path_mtu(office):
    """The gateway says how much of IPv6 there is room for on the other side."""
    office.ctl('link delete wan')
    office.ctl('link add wan port wan netns office peer lan mtu 1400')
    office.ctl('link address add wan 192.0.2.1/24')
    assert office.ping('-c', '4', '-s', '1400', '-M', 'do') == 0
    assert office.ping('-c', '3', '-s', '1372', '-M', 'do') >= 1
