# SPDX-License-Identifier: BSD-3-Clause
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from net import Network  # noqa: E402


def pytest_collection_modifyitems(items):
    if os.geteuid() != 0:
        for item in items:
            item.add_marker(pytest.mark.skip(reason='network namespaces need root'))


@pytest.fixture
def net():
    """Network namespaces of this test; removed after it, with what still runs in them."""
    network = Network()
    yield network
    network.close()
