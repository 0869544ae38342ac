# SPDX-License-Identifier: BSD-3-Clause
"""Every scenario through the kernel and through Sluice: they agree, or differ just as it states."""

import re

import pytest

import scenario
from compare import Comparison

SCENARIOS = scenario.read_all()
TRANSLATED = [s for s in SCENARIOS if s.translates]


@pytest.fixture(scope='session')
def compared(both):
    """Comparisons by scenario."""
    return dict(zip(SCENARIOS, both(SCENARIOS)))


@pytest.mark.parametrize('one', SCENARIOS, ids=lambda s: f'{s.source}-{s.name}')
def test_scenario(one, compared):
    comparison = compared[one]
    if not comparison.good:
        pytest.fail(comparison.report(), pytrace=False)


@pytest.fixture(scope='session')
def uncounted(compared, gateway):
    """Comparisons by scenario where Sluice counts no packets: a connection's translation then has
    another place. The kernel's answers are the same."""
    some = [s.uncounted() for s in TRANSLATED]
    found = (Comparison(s, compared[one].kernel, sluice, compared[one].slack)
             for one, s, sluice in zip(TRANSLATED, some, gateway.run(some)))
    return dict(zip(TRANSLATED, found))


@pytest.mark.parametrize('one', TRANSLATED, ids=lambda s: f'{s.source}-{s.name}')
def test_scenario_uncounted(one, uncounted):
    comparison = uncounted[one]
    assert not any(e.counted for step in comparison.steps for e in step.raw[1].entries)
    if not comparison.good:
        pytest.fail(comparison.report(), pytrace=False)


def test_enough():
    assert len(SCENARIOS) >= 120
    assert len({(s.source, s.name) for s in SCENARIOS}) == len(SCENARIOS), 'a name twice'


def test_differences_are_documented(root):
    """docs/differences.md lists exactly what scenarios state; no name is without a scenario."""
    text = (root / 'docs' / 'differences.md').read_text()
    listed = re.findall(r'^\| `([a-z0-9-]+)` \|', text, re.M)
    stated = {step.differs for s in SCENARIOS for step in s.steps if step.differs}
    assert len(listed) == len(set(listed))
    assert set(listed) == stated


def test_differences_have_both_answers():
    for s in SCENARIOS:
        for step in s.steps:
            answers = step.differs, step.kernel, step.sluice
            assert all(answers) or not any(answers), f'{s.source}:{s.line}: {step.text}'
