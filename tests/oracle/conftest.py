# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's network namespaces are made once for all tests: they take longer to set up than most
scenarios take to run."""

import functools
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import search  # noqa: E402
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
    return functools.partial(search.compare, kernel, gateway)
