# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's network namespaces are made once for all tests: they take longer to set up than most
scenarios take to run."""

import pathlib
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from compare import SLACK, Comparison  # noqa: E402
from kernel import Kernel, Unavailable  # noqa: E402
from replay import Replay  # noqa: E402


@pytest.fixture(scope='session')
def kernel():
    try:
        k = Kernel()
    except Unavailable as e:
        pytest.skip(str(e))
    yield k
    k.close()


@pytest.fixture(scope='session')
def gateway(sluice):
    return Replay(sluice)


@pytest.fixture(scope='session')
def both(kernel, gateway):
    """both(scenarios): a Comparison for each, from one run of Sluice."""
    def run(some):
        found = []
        for one, sluice in zip(some, gateway.run(some)):
            began = time.monotonic()
            answers = list(kernel.run(one))
            late = time.monotonic() - began - sum(step.after for step in one.steps)
            found.append(Comparison(one, answers, sluice, SLACK + int(late)))
        return found
    return run
