# SPDX-License-Identifier: BSD-3-Clause
"""The control socket in the file system: permissions, peers, what is left behind."""

import grp
import os
import pathlib
import signal
import socket
import stat
import subprocess
import sys
import threading

import pytest

from daemon import wait_for
from rpc import Rpc

NOBODY = 65534

CONNECT = '''
import os, socket, sys
path, uid, gid, groups = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
os.setgroups([int(g) for g in groups.split(",") if g])
os.setgid(gid)
os.setuid(uid)
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(path)
except OSError as e:
    sys.exit(print(type(e).__name__))
try:
    s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"show.version"}\\n')
except OSError:
    pass  # turned away already: the reason is there to be read
print(s.makefile().readline().strip())
'''

root_only = pytest.mark.skipif(os.geteuid() != 0, reason='changes its user: needs root')


def connect_as(path, uid, gid=NOBODY, groups=''):
    return subprocess.run([sys.executable, '-c', CONNECT, str(path), str(uid), str(gid), groups],
                          capture_output=True, text=True, timeout=20).stdout


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_mode_at_every_moment(daemon, tmp_path):
    """With umask 0: whenever the socket can be seen it has at most 0660."""
    seen, stop = set(), threading.Event()

    def watch():
        while not stop.is_set():
            for p in pathlib.Path('/tmp').glob('sluice-*/s'):
                try:
                    seen.add(mode_of(p))
                except OSError:
                    pass

    watcher = threading.Thread(target=watch)
    watcher.start()
    old = os.umask(0)
    try:
        gateway = daemon('')
    finally:
        os.umask(old)
        stop.set()
        watcher.join()
    assert mode_of(gateway.socket) == 0o660
    assert seen and all(m & ~0o660 == 0 for m in seen), [oct(m) for m in seen]


@root_only
def test_other_users(daemon):
    gateway = daemon('')
    os.chmod(gateway.run_dir.name, 0o755)
    assert connect_as(gateway.socket, 0, 0).startswith('{')
    assert connect_as(gateway.socket, NOBODY) == 'PermissionError\n'
    # Were the mode widened by mistake, the peer's credentials would still be looked at.
    os.chmod(gateway.socket, 0o666)
    assert 'not permitted' in connect_as(gateway.socket, NOBODY)


@root_only
def test_group(daemon):
    group = grp.getgrnam('daemon')
    gateway = daemon('', '--group', 'daemon')
    os.chmod(gateway.run_dir.name, 0o755)
    assert os.stat(gateway.socket).st_gid == group.gr_gid
    assert mode_of(gateway.socket) == 0o660
    assert '"result"' in connect_as(gateway.socket, NOBODY, group.gr_gid)
    assert '"result"' in connect_as(gateway.socket, NOBODY, NOBODY, str(group.gr_gid))
    assert connect_as(gateway.socket, NOBODY) == 'PermissionError\n'


def start_fails(daemon, *args):
    with pytest.raises(AssertionError) as e:
        daemon('', *args)
    assert 'status 1' in str(e.value)
    return str(e.value)


def test_no_such_group(daemon):
    assert 'there is no group "no-such-group"' in start_fails(daemon, '--group', 'no-such-group')


@pytest.mark.parametrize('kind', ['file', 'symlink', 'directory'])
def test_what_is_no_socket(daemon, tmp_path, kind):
    path, target = tmp_path / 'sock', tmp_path / 'target'
    target.write_text('precious')
    if kind == 'file':
        path.write_text('precious')
    elif kind == 'symlink':
        path.symlink_to(target)
    else:
        path.mkdir()
    assert 'is no socket' in start_fails(daemon, '-s', str(path))
    assert target.read_text() == 'precious'
    assert os.path.lexists(path)


def test_symlink_to_a_socket(daemon, tmp_path):
    path, target = tmp_path / 'sock', tmp_path / 'target'
    s = socket.socket(socket.AF_UNIX)
    s.bind(str(target))
    path.symlink_to(target)
    assert 'is no socket' in start_fails(daemon, '-s', str(path))
    s.close()


def test_live_instance(daemon):
    first = daemon('')
    assert 'a daemon listens there already' in start_fails(daemon, '-s', str(first.socket))
    assert Rpc(first.socket).names() == {'init'}


def test_killed_and_started_again(daemon):
    first = daemon('netns add t1')
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    assert first.socket.is_socket(), 'left behind'
    first.start()
    assert Rpc(first.socket).names() == {'init', 't1'}


def test_clean_stop(daemon):
    for sig in (signal.SIGTERM, signal.SIGINT):
        gateway = daemon('netns add t1')
        client = Rpc(gateway.socket)
        gateway.process.send_signal(sig)
        assert gateway.process.wait(15) == 0
        assert not gateway.socket.exists()
        assert client.line() is None
        assert 'stopping' in gateway.log_text()


def test_socket_of_another_is_not_removed(daemon):
    """A daemon that stops takes away its own socket only."""
    first = daemon('')
    os.unlink(first.socket)
    other = socket.socket(socket.AF_UNIX)
    other.bind(str(first.socket))
    first.process.send_signal(signal.SIGTERM)
    assert first.process.wait(15) == 0
    assert first.socket.is_socket()
    other.close()


def test_missing_directory(daemon):
    assert '/nonexistent-dir' in start_fails(daemon, '-s', '/nonexistent-dir/sock')


def test_long_path(daemon):
    assert 'socket path' in start_fails(daemon, '-s', '/tmp/' + 'x' * 200)


def test_client_without_daemon(sluicectl, tmp_path):
    done = subprocess.run([str(sluicectl), '-s', str(tmp_path / 'none'), 'show', 'version'],
                          capture_output=True, text=True, timeout=20)
    assert done.returncode == 1
    assert 'no daemon listens there' in done.stderr and done.stderr.count('\n') == 1


@pytest.mark.parametrize('args, says', [
    (['--memory', 'x'], 'memory'), (['--memory', '0'], 'memory'), (['extra'], 'extra'),
    (['--no-such'], 'no-such'),
])
def test_usage_errors(sluice, args, says):
    done = subprocess.run([str(sluice), '-c', '/dev/null', *args], capture_output=True, text=True,
                          timeout=20)
    assert done.returncode == 2
    assert says in done.stderr


@pytest.mark.parametrize('args, says', [
    (['--workers', '0-'], '--workers'), (['--workers', '1,1'], 'twice'),
    (['--workers', '900'], 'no core 900'), (['--memory', '5'], 'at least'),
    (['--memory', '1000000'], 'available'), (['-c', '/no/such/file'], '/no/such/file'),
    (['--metrics', 'nonsense'], 'metrics'), (['--metrics', '127.0.0.1:22x'], 'no ADDR:PORT'),
])
def test_refused_options(daemon, args, says):
    """One line that says it, and nothing of DPDK's, which has not started."""
    text = start_fails(daemon, *args)
    assert says in text and 'EAL:' not in text


def test_no_config(sluice):
    done = subprocess.run([str(sluice)], capture_output=True, text=True, timeout=20)
    assert done.returncode == 2 and '-c FILE' in done.stderr


def test_two_daemons(daemon):
    """Different sockets: nothing of one is in the way of the other."""
    a, b = daemon('netns add t1'), daemon('netns add t2')
    assert Rpc(a.socket).names() == {'init', 't1'}
    assert Rpc(b.socket).names() == {'init', 't2'}
    wait_for('an answer', lambda: a.ctl('show version'))
