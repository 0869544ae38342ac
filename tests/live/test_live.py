# SPDX-License-Identifier: BSD-3-Clause
"""Real programs through the gateway.

    ┌─ in ────────────┐     ┌─ gw ──────────────────────┐     ┌─ out ───────────┐
    │ 10.0.0.1        │     │          sluice           │     │ 10.0.0.2        │
    │ 2001:db8::1     │     │  port lan ══════ port wan │     │ 2001:db8::2     │
    │ eth0 ───────────┼veth─┼─ lan                  wan ┼veth─┼─ eth0           │
    └─────────────────┘     └───────────────────────────┘     └─────────────────┘

The ports are AF_PACKET or AF_XDP sockets on the veths' ends, or lan is a TAP that sluice makes;
then `in` is the namespace gw itself."""

import json
import re
import signal
import socket
import struct
import subprocess

import pytest

from daemon import Daemon, wait_for
from net import Echo

AF_XDP = 44

CONFIG = """\
port add lan devargs {lan}
port add wan devargs {wan}
netns add office
link add lan port lan netns office
link add wan port wan netns office peer lan
sysctl netns office net.netfilter.nf_conntrack_acct=1
"""

DEVARGS = {
    'af_packet': ('net_af_packet0,iface=lan', 'net_af_packet1,iface=wan'),
    'af_xdp': ('net_af_xdp0,iface=lan', 'net_af_xdp1,iface=wan'),
    'tap': ('net_tap0,iface=tap0', 'net_af_packet1,iface=wan'),
}


class Site:
    """The two ends, and the gateway between them."""

    def __init__(self, inside, outside, gateway):
        self.inside, self.outside, self.gateway = inside, outside, gateway


def build_site(net, daemon, kind):
    gw, outside = net.add('gw'), net.add('out')
    net.veth(gw, 'wan', outside, 'eth0')
    outside.interface('eth0', '10.0.0.2/24', '2001:db8::2/64')
    inside = gw if kind == 'tap' else net.add('in')
    if kind != 'tap':
        net.veth(gw, 'lan', inside, 'eth0')
        inside.interface('eth0', '10.0.0.1/24', '2001:db8::1/64')
    lan, wan = DEVARGS[kind]
    gateway = daemon(CONFIG.format(lan=lan, wan=wan),
                     wrapper=['ip', 'netns', 'exec', gw.name])
    if kind == 'tap':
        gw.plain('tap0')
        gw.interface('tap0', '10.0.0.1/24', '2001:db8::1/64')
    return Site(inside, outside, gateway)


@pytest.fixture(params=['af_packet', 'af_xdp', 'tap'])
def any_site(request, net, daemon):
    if request.param == 'af_xdp':
        try:
            socket.socket(AF_XDP, socket.SOCK_RAW, 0).close()
        except OSError as e:
            pytest.skip(f'the kernel has no AF_XDP: {e}')
    return build_site(net, daemon, request.param)


@pytest.fixture
def site(net, daemon):
    return build_site(net, daemon, 'af_packet')


def entries(gateway, *filters):
    """The listing as objects."""
    text = gateway.ctl(' '.join(('conntrack list', *filters)), options=('-j',))
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def entry(gateway, *filters):
    """The one entry of a filter."""
    found = entries(gateway, *filters)
    assert len(found) == 1, found
    return found[0]


def drops(gateway, reason, netns='office'):
    """How many packets of a namespace were dropped for a reason."""
    for line in gateway.ctl(f'drops netns {netns}').splitlines():
        words = line.split()
        if reason in words:
            return next(int(w) for w in words if w.isdigit())
    return 0


def exchange(client, data):
    client.sendall(data)
    got = b''
    while len(got) < len(data):
        more = client.recv(65536)
        assert more, 'the connection ended'
        got += more
    assert got == data


@pytest.mark.parametrize('version,proto,there', [
    ('-4', 'icmp', '10.0.0.2'), ('-6', 'icmpv6', '2001:db8::2')])
def test_ping(any_site, version, proto, there):
    out = any_site.inside.run('ping', version, '-c', '3', '-i', '0.1', '-W', '5', there)
    assert ' 3 received' in out
    e = entry(any_site.gateway, f'proto {proto}', f'dst {there}')
    assert e['netns'] == 'office'
    assert e['orig']['dst'] == there and e['reply']['src'] == there
    assert e['orig']['packets'] == 3 and e['reply']['packets'] == 3
    assert 0 < e['timeout'] <= 30
    assert 'SEEN_REPLY' in e['status']


@pytest.mark.parametrize('version,there', [('-4', '10.0.0.2'), ('-6', '2001:db8::2')])
def test_fragments(any_site, version, there):
    """Datagrams of three fragments, there and back: the kernel must not put them together first."""
    out = any_site.inside.run('ping', version, '-c', '2', '-i', '0.1', '-W', '5', '-s', '4000',
                              there)
    assert ' 2 received' in out
    e = entry(any_site.gateway, f'dst {there}')
    assert e['orig']['packets'] == 2 and e['reply']['packets'] == 2


def test_tcp_life(any_site):
    """Handshake, data both ways, close: the states a user sees in the listing."""
    gateway = any_site.gateway
    with Echo(any_site.outside, socket.AF_INET, socket.SOCK_STREAM, '10.0.0.2', 7):
        client = any_site.inside.socket(socket.AF_INET, socket.SOCK_STREAM)
        client.connect(('10.0.0.2', 7))
        exchange(client, b'x' * 300000)
        e = entry(gateway, 'proto tcp', 'dport 7')
        assert e['state'] == 'ESTABLISHED' and 'ASSURED' in e['status']
        assert e['orig']['sport'] == client.getsockname()[1]
        assert e['orig']['bytes'] > 300000 and e['reply']['bytes'] > 300000
        line = gateway.ctl('conntrack list proto tcp dport 7').splitlines()[0]
        assert re.match(r'netns=office\s+(ipv4\s+2\s+)?tcp\s+6 \d+ ESTABLISHED src=10\.0\.0\.1 '
                        r'dst=10\.0\.0\.2 sport=\d+ dport=7 .*src=10\.0\.0\.2 dst=10\.0\.0\.1 '
                        r'sport=7 dport=\d+ .*\[ASSURED\]', line), line
        client.close()
        wait_for('TIME_WAIT', lambda: entry(gateway, 'proto tcp')['state'] == 'TIME_WAIT')


def test_udp(any_site):
    gateway = any_site.gateway
    client = any_site.inside.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    with Echo(any_site.outside, socket.AF_INET6, socket.SOCK_DGRAM, '2001:db8::2', 5353):
        client.connect(('2001:db8::2', 5353))
        exchange(client, b'question')
        e = entry(gateway, 'proto udp', 'dport 5353')
        assert e['family'] == 'ipv6' and 'SEEN_REPLY' in e['status']
        assert (e['orig']['packets'], e['reply']['packets']) == (1, 1)


def test_udp_without_answer(site):
    client = site.inside.socket(socket.AF_INET, socket.SOCK_DGRAM)
    quiet = site.outside.socket(socket.AF_INET, socket.SOCK_DGRAM)
    quiet.bind(('10.0.0.2', 9))
    client.sendto(b'anybody there?', ('10.0.0.2', 9))
    assert quiet.recv(100) == b'anybody there?'
    e = entry(site.gateway, 'proto udp', 'dport 9')
    assert 'SEEN_REPLY' not in e['status'] and e['reply']['packets'] == 0
    assert ' [UNREPLIED] ' in site.gateway.ctl('conntrack list proto udp')


def test_icmp_error_reaches_the_sender(site):
    """A closed UDP port: the error passes, and makes no entry of its own."""
    client = site.inside.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.connect(('10.0.0.2', 9999))
    client.send(b'x')
    with pytest.raises(ConnectionRefusedError):
        client.recv(100)
    assert entry(site.gateway)['proto'] == 'udp'


def test_refused_connection(site):
    """A RST that answers a SYN passes, and leaves no entry, as in the kernel."""
    client = site.inside.socket(socket.AF_INET, socket.SOCK_STREAM)
    with pytest.raises(ConnectionRefusedError):
        client.connect(('10.0.0.2', 9999))
    assert entries(site.gateway, 'proto tcp') == []


def test_reset_of_a_connection(site):
    with Echo(site.outside, socket.AF_INET, socket.SOCK_STREAM, '10.0.0.2', 7):
        client = site.inside.socket(socket.AF_INET, socket.SOCK_STREAM)
        client.connect(('10.0.0.2', 7))
        exchange(client, b'x')
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        client.close()
        wait_for('CLOSE', lambda: entry(site.gateway, 'proto tcp')['state'] == 'CLOSE')


def test_http(site, tmp_path):
    (tmp_path / 'file').write_bytes(bytes(range(256)) * 8192)
    server = site.outside.start('/usr/bin/python3', '-u', '-m', 'http.server', '80',
                                '--bind', '10.0.0.2', '--directory', str(tmp_path))
    assert 'Serving HTTP' in server.stdout.readline()
    done = subprocess.run(['ip', 'netns', 'exec', site.inside.name, 'curl', '-sS', '--noproxy', '*',
                           '--max-time', '20', 'http://10.0.0.2/file'], capture_output=True)
    assert done.stdout == (tmp_path / 'file').read_bytes(), done.stderr
    e = entry(site.gateway, 'proto tcp', 'dport 80')
    assert 'ASSURED' in e['status'] and e['reply']['bytes'] > 2 << 20


@pytest.mark.parametrize('mode', [(), ('-R',), ('-u', '-b', '5M', '-l', '1200')],
                         ids=['tcp', 'tcp-reverse', 'udp'])
def test_iperf3(any_site, mode):
    server = any_site.outside.start('iperf3', '-s', '-1', '-B', '10.0.0.2', '--forceflush')
    wait_for('iperf3 -s', lambda: 'listening' in server.stdout.readline())
    result = json.loads(any_site.inside.run('iperf3', '-c', '10.0.0.2', '-t', '2', '-J', *mode))
    assert 'error' not in result, result
    received = result['end']['sum_received']['bytes']
    assert received > 500000
    wanted = 'udp' if '-u' in mode else 'tcp'
    counted = [e['orig']['bytes'] + e['reply']['bytes']
               for e in entries(any_site.gateway, f'proto {wanted}', 'dport 5201')]
    assert max(counted) >= received
    assert any_site.gateway.ctl('drops') == ''
    assert any_site.gateway.json('conntrack count netns office')['count'] == \
        len(entries(any_site.gateway, 'netns office'))


def test_limit_is_the_tenants_own(site):
    gateway = site.gateway
    gateway.ctl('sysctl netns office net.netfilter.nf_conntrack_max=2')
    clients = [site.inside.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(4)]
    for c in clients:
        c.sendto(b'x', ('10.0.0.2', 5000))
        port = f'sport {c.getsockname()[1]}'
        wait_for('its entry', lambda: len(entries(gateway, 'proto udp', port)) == 1)
    left = {e['orig']['sport'] for e in entries(gateway, 'proto udp')}
    assert left == {c.getsockname()[1] for c in clients[2:]}
    assert sum(t['early_drop'] for t in gateway.json('stats')) == 2
    assert gateway.ctl('drops') == ''


def test_restart_after_kill(site):
    """kill -9 leaves the socket behind; the next start takes it over."""
    gateway = site.gateway
    site.inside.run('ping', '-c', '1', '-W', '5', '10.0.0.2')
    gateway.process.send_signal(signal.SIGKILL)
    gateway.process.wait()
    assert gateway.socket.exists()
    gateway.start()
    site.inside.run('ping', '-c', '1', '-W', '5', '10.0.0.2')
    assert len(entries(gateway, 'proto icmp')) == 1


def test_second_gateway_on_the_socket_is_refused(site, build_dir, tmp_path):
    second = Daemon(build_dir, tmp_path / 'second')
    second.socket = site.gateway.socket
    done = subprocess.run(second.command(), capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert str(second.socket) in done.stderr
    second.run_dir.cleanup()
    site.inside.run('ping', '-c', '1', '-W', '5', '10.0.0.2')
    assert len(entries(site.gateway, 'proto icmp')) == 1


def test_clean_stop(site):
    site.inside.run('ping', '-c', '1', '-W', '5', '10.0.0.2')
    site.gateway.process.send_signal(signal.SIGTERM)
    assert site.gateway.process.wait(15) == 0, site.gateway.log_text()
    assert not site.gateway.socket.exists()
