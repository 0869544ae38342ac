# SPDX-License-Identifier: BSD-3-Clause
"""Random scenarios through both gateways until they differ in a way that no document tells, and
then the shortest packet list that still does."""

import collections
import itertools
import time

import generate
import known
from compare import SLACK, Comparison
from packet import Packet
from scenario import Step

BATCH = 200     # scenarios in one run of Sluice


def compare(kernel, gateway, scenarios):
    """A Comparison for each."""
    found = []
    for one, sluice in zip(scenarios, gateway.run(scenarios)):
        began = time.monotonic()
        answers = list(kernel.run(one))
        found.append(Comparison(one, answers, sluice, SLACK + int(time.monotonic() - began)))
    return found


def is_fault(comparison):
    return known.first_difference(comparison) is not None and \
        known.name_of_difference(comparison) is None


def without_words(step):
    """The step with one optional field less, each in turn."""
    words = step.text.split()
    for i, word in enumerate(words[4:], 4):
        if word.partition('=')[0] in ('win', 'opt', 'data') and '[' not in step.text:
            yield Step(Packet(' '.join(words[:i] + words[i + 1:])))


def smaller(scenario):
    """Everything that is one thing less than the scenario: packets first."""
    steps = scenario.steps
    for n in (len(steps) // 2, len(steps) // 4, 1):
        for i in range(0, len(steps), n or 1) if n else ():
            if len(steps) > n:
                yield scenario.replaced(steps[:i] + steps[i + n:])
    for key in scenario.knobs:
        other = scenario.replaced(steps)
        other.knobs = {k: v for k, v in scenario.knobs.items() if k != key}
        yield other
    for i, step in enumerate(steps):
        for less in without_words(step):
            yield scenario.replaced([*steps[:i], less, *steps[i + 1:]])


def shrunk(kernel, gateway, comparison):
    """The same fault with as little as possible."""
    while True:
        at = known.first_difference(comparison)
        scenario = comparison.scenario.replaced(comparison.scenario.steps[:at + 1])
        candidates = list(smaller(scenario))
        found = compare(kernel, gateway, candidates) if candidates else []
        less = next((c for c in found if is_fault(c)), None)
        if less is None:
            return compare(kernel, gateway, [scenario])[0]
        comparison = less


class Search:
    """The scenarios of a seed, one batch after another. seen: how often each known difference
    ended a scenario."""

    def __init__(self, kernel, gateway, seed):
        self.kernel, self.gateway = kernel, gateway
        self.scenarios = generate.scenarios(seed)
        self.scenarios_run = self.packets = 0
        self.seen = collections.Counter()

    def batch(self, n=BATCH):
        """Runs n scenarios; the first fault, or None."""
        for comparison in compare(self.kernel, self.gateway,
                                  list(itertools.islice(self.scenarios, n))):
            self.scenarios_run += 1
            at = known.first_difference(comparison)
            if at is None:
                self.packets += len(comparison.steps)
                continue
            self.packets += at + 1
            name = known.name_of_difference(comparison)
            if name is None:
                return comparison
            self.seen[name] += 1
        return None

    def report(self, comparison):
        """A fault as text: as it was found, and the least that has it, as a scenario."""
        least = shrunk(self.kernel, self.gateway, comparison)
        return f'{least.report()}\n\nas a scenario:\n\n{least.scenario}\n'
