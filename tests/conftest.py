# SPDX-License-Identifier: BSD-3-Clause
"""What all pytest rings share: where the programs under test are, and a daemon to talk to.

SLUICE_BUILD names the build directory, `build` at the top of the tree when it is not set."""

import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'tests' / 'support'))

from daemon import Daemon, program  # noqa: E402


@pytest.fixture(scope='session')
def root():
    return ROOT


@pytest.fixture(scope='session')
def build_dir():
    return pathlib.Path(os.environ.get('SLUICE_BUILD', ROOT / 'build')).resolve()


@pytest.fixture(scope='session')
def sluice(build_dir):
    """The daemon's executable."""
    return program(build_dir, 'sluice')


@pytest.fixture(scope='session')
def sluicectl(build_dir):
    """The client's executable."""
    return program(build_dir, 'sluicectl')


@pytest.fixture
def daemon(build_dir, tmp_path):
    """Starts daemons: daemon(config_text, *arguments, **options); all are ended after the test."""
    running = []

    def start(config='', *args, **options):
        d = Daemon(build_dir, tmp_path / f'd{len(running)}', config, *args, **options)
        running.append(d)
        d.start()
        return d

    yield start
    for d in running:
        d.stop()
