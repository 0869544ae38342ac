# SPDX-License-Identifier: BSD-3-Clause
"""What lies in config/ works as it is, and run.sh shows it."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest
from scapy.all import IP, UDP, Ether, raw

from capture import read_pcap, write_pcap

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = ROOT / 'config'

# Those that run between interfaces eth1 and eth2, or make their own.
NEEDS_INTERFACES = ['gateway.conf', 'af-xdp.conf', 'tap.conf', 'nat64.conf']

IN_NAMESPACE = ['unshare', '--net', '--', 'sh', '-c', """
for i in 1 2; do
	ip link add eth$i type veth peer name peer$i
	ip link set eth$i up
	ip link set peer$i up
done
exec "$@\"""", 'sh']


def test_every_configuration_is_tested():
    configurations = {p.name for p in CONFIG.glob('*.conf')}
    others = {'demo.conf', 'cgn.conf', 'nic.conf', '90-sluice-hugepages.conf'}
    assert configurations == others | set(NEEDS_INTERFACES)


@pytest.mark.parametrize('name', NEEDS_INTERFACES)
def test_gateway(name, daemon):
    if os.geteuid() != 0:
        pytest.skip('interfaces need root')
    gateway = daemon((CONFIG / name).read_text(), wrapper=IN_NAMESPACE)
    links = gateway.ctl('link list')
    assert len(links.splitlines()) >= 2, links


def test_network_cards_that_are_not_there_are_named(daemon):
    with pytest.raises(AssertionError, match=r'0000:01:00\.0'):
        daemon((CONFIG / 'nic.conf').read_text())


def test_carrier_grade_nat(daemon):
    if os.geteuid() != 0:
        pytest.skip('interfaces need root')
    text = (CONFIG / 'cgn.conf').read_text()
    gateway = daemon(text, wrapper=IN_NAMESPACE)
    for key, value in re.findall(r'^sysctl (\S+)=(\d+)$', text, re.M):
        assert gateway.ctl(f'sysctl netns access {key}').split()[-1] == value
    assert '0 of 64512 blocks of 256 ports' in gateway.ctl('nat list')
    assert len(re.findall('handle', gateway.ctl('rule list access'))) == 3
    computed, = re.findall(r'^# +(rule add access .* deterministic)$', text, re.M)
    gateway.ctl('rule flush access postrouting')
    gateway.ctl('nat pool delete access public')
    gateway.ctl('nat pool add access public 203.0.113.0-203.0.113.255')
    gateway.ctl(computed)
    assert 'host=100.64.0.1 ' in gateway.ctl('nat lookup access 203.0.113.0 2032')
    assert 'host=100.64.63.255 ' in gateway.ctl('nat lookup access 203.0.113.255 65535')


def test_subscribers(sluice, tmp_path):
    """They reach the Internet, and each other by their public addresses."""
    def frame(src, dst, sport, dport):
        return raw(Ether(src='02:00:00:00:00:01', dst='02:00:00:00:00:02') /
                   IP(src=src, dst=dst) / UDP(sport=sport, dport=dport) / b'hello')

    def replay(frames):
        write_pcap(tmp_path / 'in.pcap', list(enumerate(frames)))
        done = subprocess.run(
            [sluice, 'replay', '-c', CONFIG / 'cgn.conf', '--rx', f'inside={tmp_path}/in.pcap',
             '--tx', f'outside={tmp_path}/out.pcap', '--tx', f'inside={tmp_path}/back.pcap'],
            capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return ([Ether(f) for _, f in read_pcap(tmp_path / name)]
                for name in ('out.pcap', 'back.pcap'))

    a, b, far = '100.64.1.1', '100.64.2.2', '192.0.2.1'
    out, back = replay([frame(a, far, 5000, 53), frame(b, far, 5000, 53)])
    assert len(out) == 2 and back == [] and all(f[IP].src.startswith('203.0.113.') for f in out)
    # A choice is the same in each replay.
    known = out[1][IP].src, out[1][UDP].sport
    out, back = replay([frame(a, far, 5000, 53), frame(b, far, 5000, 53), frame(a, known[0], 5000,
                                                                                known[1])])
    assert len(out) == 2 and [(f[IP].src, f[UDP].sport, f[IP].dst, f[UDP].dport) for f in back] == \
        [(out[0][IP].src, out[0][UDP].sport, b, 5000)]


def test_timers_keep_to_the_rfcs():
    text = (CONFIG / 'cgn.conf').read_text()
    seconds = dict(re.findall(r'nf_conntrack_(\w+)=(\d+)$', text, re.M))
    assert int(seconds['tcp_timeout_established']) >= 2 * 3600 + 4 * 60
    assert all(int(v) >= 240 for k, v in seconds.items() if k.startswith('tcp_timeout'))
    assert int(seconds['udp_timeout']) >= 120 and int(seconds['icmp_timeout']) >= 60


def test_unit(sluice, tmp_path):
    """systemd knows every line of the unit."""
    if shutil.which('systemd-analyze') is None:
        pytest.skip('systemd-analyze is not installed')
    unit = tmp_path / 'sluice.service'
    unit.write_text((CONFIG / 'sluice.service').read_text().replace('/usr/bin/sluice', str(sluice)))
    done = subprocess.run(['systemd-analyze', 'verify', str(unit)], capture_output=True, text=True)
    about_it = [line for line in done.stderr.splitlines() if 'sluice.service' in line]
    assert about_it == [] and done.returncode == 0, done.stderr


def test_demo(build_dir):
    """run.sh ends by itself, and sees the connections of the flood make way for one another."""
    done = subprocess.run([ROOT / 'run.sh', '--seconds', '3'], capture_output=True, text=True,
                          timeout=100, env=dict(os.environ, SLUICE_BUILD=str(build_dir)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r'early_drop\W+[1-9]', done.stdout), done.stdout
    assert 'sluicectl' in done.stdout.splitlines()[-3]


@pytest.mark.parametrize('words', [['--seconds'], ['--seconds', 'x'], ['--no-such'], ['word']])
def test_demo_usage(words):
    done = subprocess.run([ROOT / 'run.sh', *words], capture_output=True, text=True, timeout=10)
    assert done.returncode == 2 and 'usage' in done.stderr


def test_packages():
    """The sections that run.sh and test.sh ask for are there."""
    text = (CONFIG / 'packages.txt').read_text()
    assert re.findall(r'^\[(\w+)\]$', text, re.M) == ['build', 'test']
    rows = [r for r in text.splitlines() if r and not r.startswith(('#', '['))]
    assert len(rows) == len(set(rows)) and all(re.fullmatch(r'[a-z0-9.+-]+', r) for r in rows)
