# SPDX-License-Identifier: BSD-3-Clause
"""The SYN proxy between a real client and a real server, beside a flood of SYNs.

The site is test_live.py's: `in` 10.0.0.1 ═ sluice ═ `out` 10.0.0.2. The flood comes from `in`, from
addresses that the server has no route to, so that it answers none of it."""

import concurrent.futures
import hashlib
import json
import random
import socket
import struct
import threading
import time

import pytest
from scapy.all import IP, TCP, Ether, raw

from test_live import build_site

BACKLOG = 64
FILE = random.Random(7).randbytes(8 << 20)

SERVER = '''
import hashlib, http.server, sys

class Handler(http.server.SimpleHTTPRequestHandler):
    def do_PUT(self):
        left, digest = int(self.headers['Content-Length']), hashlib.sha256()
        while left:
            part = self.rfile.read(min(left, 65536))
            left -= len(part)
            digest.update(part)
        answer = digest.hexdigest().encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        pass

class Server(http.server.ThreadingHTTPServer):
    address_family = __import__('socket').AF_INET6
    request_queue_size = 100

server = Server(('::', 80), Handler)
print('ready', flush=True)
server.serve_forever()
'''


class Flood:
    """SYNs of ever new addresses and ports, some hundred at a time, until it is closed."""

    def __init__(self, site, rate):
        self.socket = site.inside.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self.socket.bind(('eth0', 0))
        mac = json.loads(site.outside.run('ip', '-j', 'link', 'show', 'eth0'))[0]['address']
        self.frame = raw(Ether(src='02:bb:00:00:00:01', dst=mac) /
                         IP(src='198.18.0.0', dst='10.0.0.2') /
                         TCP(sport=0, dport=80, flags='S', seq=1, options=[('MSS', 1460)]))
        self.rate, self.sent, self.stopping = rate, 0, False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def syn(self, n):
        """The frame of another source: what is added to address and port is taken from the sums."""
        host, port = n % 65535 + 1, n // 65535 % 65535 + 1
        out = bytearray(self.frame)
        struct.pack_into('!H', out, 28, host)
        struct.pack_into('!H', out, 34, port)
        for at, added in ((24, host), (50, host + port)):
            total = (~struct.unpack_from('!H', out, at)[0] & 0xffff) + added
            while total >> 16:
                total = (total & 0xffff) + (total >> 16)
            struct.pack_into('!H', out, at, ~total & 0xffff)
        return bytes(out)

    def run(self):
        step = self.rate // 50
        while not self.stopping:
            for _ in range(step):
                self.socket.send(self.syn(self.sent))
                self.sent += 1
            time.sleep(.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stopping = True
        self.thread.join()


@pytest.fixture
def site(net, daemon):
    return build_site(net, daemon, 'af_packet')


@pytest.fixture
def server(site, tmp_path):
    (tmp_path / 'file').write_bytes(FILE)
    (tmp_path / 'small').write_bytes(b'hello\n')
    process = site.outside.start('sh', '-c', f'cd {tmp_path} && exec /usr/bin/python3 -c "$0"',
                                 SERVER)
    assert process.stdout.readline() == 'ready\n'
    return process


def curl(site, *words):
    return site.inside.run('curl', '-sS', '--noproxy', '*', '--max-time', '20', *words)


def stats(site):
    return site.gateway.json('stats netns office')


def knobs(site, **values):
    for key, value in values.items():
        site.gateway.ctl(f'sysctl netns office {key.replace("__", ".")}={value}')


def test_connections_open_beside_a_flood(site, server):
    """Ten times the backlog at once, and more all the time: each curl gets its answer, and the
    table has no more half-open connections than may be."""
    knobs(site, sluice__syncookies=1, net__ipv4__tcp_max_syn_backlog=BACKLOG)
    curl(site, 'http://10.0.0.2/small')
    with Flood(site, 10 * BACKLOG * 5) as flood:
        while flood.sent < 10 * BACKLOG:
            time.sleep(.02)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            got = list(pool.map(lambda _: curl(site, 'http://10.0.0.2/small'), range(24)))
        during = stats(site)
    assert got == ['hello\n'] * 24
    assert during['cookies_sent'] > 9 * BACKLOG and during['backlog_full'] > 9 * BACKLOG
    assert during['cookies_valid'] >= 24 and during['half_open'] == BACKLOG
    assert during['entries'] <= BACKLOG + 25


def test_flood_without_cookies_keeps_others_out(site, server):
    """What the proxy is for: the same without it."""
    knobs(site, net__ipv4__tcp_max_syn_backlog=BACKLOG)
    with Flood(site, 1000) as flood:
        while flood.sent < 2 * BACKLOG:
            time.sleep(.02)
        site.inside.run('curl', '-sS', '--noproxy', '*', '--max-time', '1',
                        'http://10.0.0.2/small', status=28)


def transfer(site, path, there):
    """Megabytes both ways, byte for byte."""
    curl(site, '-o', path / 'got', f'http://{there}/file')
    assert (path / 'got').read_bytes() == FILE
    digest = curl(site, '-T', path / 'file', f'http://{there}/file')
    assert digest == hashlib.sha256(FILE).hexdigest()


def test_transfers(site, server, tmp_path):
    knobs(site, sluice__syncookies=2)
    transfer(site, tmp_path, '10.0.0.2')
    transfer(site, tmp_path, '[2001:db8::2]')
    assert stats(site)['cookies_valid'] == 4


def test_transfers_with_losses(site, server, tmp_path):
    """SACKs repair them, which only translated ones do."""
    knobs(site, sluice__syncookies=2)
    for ns in (site.inside, site.outside):
        ns.run('nft', 'add table ip t; add chain ip t i { type filter hook input priority 0; }; '
               'add rule ip t i tcp flags & (syn | rst | fin) == 0 '
               'numgen random mod 200 < 1 counter drop')
    transfer(site, tmp_path, '10.0.0.2')
    for ns in (site.inside, site.outside):
        assert ' packets 0 ' not in ns.run('nft', 'list', 'ruleset')


def promises(site):
    """What the client's kernel has it that it was promised: timestamps, SACK, a window scale."""
    client = site.inside.socket(socket.AF_INET, socket.SOCK_STREAM)
    client.connect(('10.0.0.2', 80))
    info = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 16)
    client.close()
    return info[5] & 7, info[6] & 15


def server_first(site):
    """A server that speaks first is heard without a word of the client."""
    listener = site.outside.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(('10.0.0.2', 25))
    listener.listen(1)
    client = site.inside.socket(socket.AF_INET, socket.SOCK_STREAM)
    client.connect(('10.0.0.2', 25))
    talk, _ = listener.accept()
    talk.sendall(b'220 ready\n')
    talk.shutdown(socket.SHUT_WR)
    return client.recv(100), client.recv(100)


def refused(site):
    """The client learns of a closed port by a RST that it takes, and no entry is left."""
    client = site.inside.socket(socket.AF_INET, socket.SOCK_STREAM)
    with pytest.raises(ConnectionResetError):  # in the one call or the other
        client.connect(('10.0.0.2', 9999))
        client.recv(1)
    return site.gateway.json('conntrack count netns office dport 9999')['count']


def stages(site):
    """Of the first packets of a connection, as the trace tells them."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        trace = pool.submit(site.gateway.json, 'trace netns office proto tcp dport 80 count 4')
        while not trace.done():
            curl(site, 'http://10.0.0.2/small')
    return [(t['synproxy'], t['verdict']) for t in trace.result()]


def test_small_talk(site, server):
    knobs(site, sluice__syncookies=2, sluice__synproxy_wscale=9)
    assert promises(site) == (7, 9)
    knobs(site, sluice__synproxy_timestamp=0)
    assert promises(site) == (0, 0)
    assert server_first(site) == (b'220 ready\n', b'')
    assert refused(site) == 0
    assert stages(site) == [('answered', 'local'), ('proved', 'forward'),
                            ('translated', 'forward'), ('translated', 'forward')]
