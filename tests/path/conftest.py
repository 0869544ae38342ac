# SPDX-License-Identifier: BSD-3-Clause
import functools

import pytest

from harness import Case


@pytest.fixture
def case(sluice, tmp_path):
    """Makes the test's case: case() or case(knobs={…}); one for each directory."""
    return functools.partial(Case, sluice, tmp_path)
