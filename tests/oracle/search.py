# SPDX-License-Identifier: BSD-3-Clause
"""Random scenarios through both gateways until they differ in a way that no document tells, and
then the shortest packet list that still does."""

import collections
import itertools

import generate
import known
from compare import SLACK, Comparison
from packet import Packet
from scenario import Step

BATCH = 500     # scenarios in one run of Sluice


def compare(kernel, gateway, scenarios):
    """A Comparison for each."""
    found = []
    for one, sluice in zip(scenarios, gateway.run(scenarios)):
        answers, late = kernel.run(one)
        found.append(Comparison(one, answers, sluice, SLACK + int(late)))
    return found


def without(comparison, out):
    """The scenario without some steps."""
    steps = comparison.scenario.steps
    return comparison.scenario.replaced([step for n, step in enumerate(steps) if n not in out])


def helps(comparison, out, less):
    """Whether without the steps `out` the first difference is gone, or another one. If so, what
    differs then has to be explained as well."""
    at, now = known.first_difference(comparison), known.first_difference(less)
    if at in out or at - len(out) != now:
        return True
    return (any(steps == {now} for _, steps in known.explanations(less))
            or known.differ_otherwise(comparison, at, less, now))


def explained(kernel, gateway, comparisons):
    """For each comparison with a difference (name of a known one, the comparison without what it
    comes from), or None where there is no such."""
    tries = [(i, name, out) for i, comparison in enumerate(comparisons)
             for name, out in known.explanations(comparison)]
    less = compare(kernel, gateway, [without(comparisons[i], out) for i, _, out in tries])
    found = [None] * len(comparisons)
    for (i, name, out), comparison in zip(tries, less):
        if found[i] is None and helps(comparisons[i], out, comparison):
            found[i] = name, comparison
    return found


def faults(kernel, gateway, comparisons):
    """For each comparison (names of the known differences in it, a Comparison whose first
    difference no document tells, or None). Known differences are taken out of a scenario, with
    their packets, until it agrees or there is a fault."""
    found = [[(), None] for _ in comparisons]
    now = dict(enumerate(comparisons))
    while now:
        now = {i: one for i, one in now.items() if known.first_difference(one) is not None}
        again = {}
        for i, known_one in zip(now, explained(kernel, gateway, list(now.values()))):
            if known_one is None:
                found[i][1] = now[i]
            else:
                found[i][0] += (known_one[0],)
                again[i] = known_one[1]
        now = again
    return found


def without_words(step):
    """The step with one optional field less, each in turn."""
    words = step.text.split()
    if step.text != step.packet.text:
        return
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
    for i in range(len(scenario.rules)):
        other = scenario.replaced(steps)
        other.rules = scenario.rules[:i] + scenario.rules[i + 1:]
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
        less = next((c for _, c in faults(kernel, gateway, found) if c is not None), None)
        if less is None:
            return compare(kernel, gateway, [scenario])[0]
        comparison = less


class Search:
    """The scenarios of a seed, one batch after another. seen: how often there was each known
    difference."""

    def __init__(self, kernel, gateway, seed):
        self.kernel, self.gateway = kernel, gateway
        self.scenarios = generate.scenarios(seed)
        self.scenarios_run = self.packets = 0
        self.once = []  # faults that were not found again
        self.seen = collections.Counter()

    def batch(self, n=BATCH):
        """Runs n scenarios; the first fault, or None."""
        compared = compare(self.kernel, self.gateway, list(itertools.islice(self.scenarios, n)))
        self.scenarios_run += len(compared)
        self.packets += sum(len(c.steps) for c in compared)
        found = faults(self.kernel, self.gateway, compared)
        self.seen.update(name for names, _ in found for name in names)
        for fault in (fault for _, fault in found if fault is not None):
            if self.again(fault):
                return fault
            self.once.append(fault)
        return None

    def again(self, fault):
        """Whether it is more than what an earlier scenario has left to the kernel, such as an error
        about a host that did not answer."""
        compared = compare(self.kernel, self.gateway, [fault.scenario] * 3)
        return any(f is not None for _, f in faults(self.kernel, self.gateway, compared))

    def report(self, comparison):
        """A fault as text: as it was found, and the least that has it, as a scenario."""
        least = shrunk(self.kernel, self.gateway, comparison)
        if known.first_difference(least) is None:
            return f'{comparison.report()}\n\nnot found again:\n\n{least.scenario}\n'
        return f'{least.report()}\n\nas a scenario:\n\n{least.scenario}\n'
