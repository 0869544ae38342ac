# SPDX-License-Identifier: BSD-3-Clause
"""Random scenarios, always the same few; `tests/oracle/random` runs others, as long as is wanted,
and the ring `random` of tests/run some minutes."""

import itertools
import re

import pytest

import generate
import known
import search

SEED, SCENARIOS = 1, 300


def test_random_scenarios(kernel, gateway):
    run = search.Search(kernel, gateway, SEED)
    fault = run.batch(SCENARIOS)
    if fault is not None:
        pytest.fail(run.report(fault), pytrace=False)
    assert run.packets > 10 * SCENARIOS / 2


def test_seed_decides():
    def some(seed):
        return [str(s) for s in itertools.islice(generate.scenarios(seed), 20)]
    assert some(5) == some(5) != some(6)


def test_known_differences_are_documented(root):
    text = (root / 'docs' / 'differences.md').read_text()
    listed = re.findall(r'^\| `([a-z0-9-]+)` \|', text, re.M)
    assert known.NAMES <= set(listed)


def test_fault_is_found_and_shrunk(kernel, gateway, monkeypatch):
    """With one known difference taken for a fault, the report is the least that has it."""
    others = [test for test in known.SHOWN if test is not known.tcp_rst_in_window]
    monkeypatch.setattr(known, 'SHOWN', others)
    run = search.Search(kernel, gateway, SEED)
    fault = next(f for f in iter(lambda: run.batch(100), 0) if f is not None)
    least = search.shrunk(kernel, gateway, fault)
    assert known.explanations(least) == []
    assert len(least.scenario.steps) <= 4
