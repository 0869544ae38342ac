# SPDX-License-Identifier: BSD-3-Clause
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from daemon import Daemon  # noqa: E402
from rpc import Rpc  # noqa: E402

CONFIG = '''
port add p0 devargs net_null0,no-rx=1
port add p1 devargs net_null1,no-rx=1
'''


@pytest.fixture(scope='module')
def gateway(build_dir, tmp_path_factory):
    """A daemon with two ports that bring no packets; the tests of a file share it."""
    d = Daemon(build_dir, tmp_path_factory.mktemp('gateway'), CONFIG)
    try:
        d.start()
        yield d
    finally:
        status = d.stop()
    assert status == 0, d.log_text()


@pytest.fixture
def rpc(gateway):
    """A client, and the gateway as it was at the start when the test is over."""
    client = Rpc(gateway.socket)
    yield client
    client.close()
    sweeper = Rpc(gateway.socket)
    sweeper.ok('netns.delete', all=True)
    for link in sweeper.items('link.list'):
        sweeper.ok('link.delete', name=link['name'], netns=link['netns'])
    for port in sweeper.items('port.list'):
        if port['name'] not in ('p0', 'p1'):
            sweeper.ok('port.delete', name=port['name'])
    present = {port['name'] for port in sweeper.items('port.list')}
    for i, name in enumerate(('p0', 'p1')):
        if name not in present:
            sweeper.ok('port.add', name=name, devargs=f'net_null{i},no-rx=1')
    sweeper.close()
