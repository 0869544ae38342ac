# SPDX-License-Identifier: BSD-3-Clause
"""The two answers to each step, compared; differences printed side by side."""

import answers
import choices
from reassembly import joined

SLACK = 2        # seconds, for what the kernel's real time adds
MARK = {True: ' ', False: '!'}


class Step:
    """A step with both answers: raw, as they came, and kernel and sluice as they are compared."""

    def __init__(self, scenario, step, kernel, sluice, slack=SLACK):
        self.step, self.slack, self.raw = step, slack, (kernel, sluice)
        self.whole, self.rejects = scenario.whole, scenario.rejects
        free = scenario.free
        self.wrong = [choices.wrong(answer, free) for answer in self.raw] if free else []
        both = [joined(answer) for answer in self.raw] if self.whole else self.raw
        if not scenario.counted:
            both = [answer.uncounted() for answer in both]
        self.kernel, self.sluice = (choices.canonical(answer, free) if free else answer
                                    for answer in both)
        self.same = not any(self.wrong) and self._same()

    @property
    def sent(self):
        """What the kernel was sent, which may depend on what it has chosen."""
        return self.raw[0].sent or self.step

    def _same(self):
        if self.kernel.broken or self.sluice.broken:
            return False
        return self._out(self.kernel) == self._out(self.sluice) and \
            answers.agree(self.kernel.entries, self.sluice.entries, self.slack)

    def _out(self, answer):
        here = (answer.sent or self.step).side
        return sorted((side, (answers.normal_made if self.rejects and side == here
                              else answers.normal)(packet), good)
                      for (side, packet), good in zip(answer.outputs, answer.sums))

    def stated(self):
        """Whether the step states just these two answers; of fragments as they came."""
        s = self.step
        kernel, sluice = self.raw if self.whole else (self.kernel, self.sluice)
        return bool(s.kernel and s.sluice and kernel.like(s, s.kernel, self.slack)
                    and sluice.like(s, s.sluice, self.slack))

    @property
    def good(self):
        return self.stated() if self.step.differs else self.same

    def _differing(self, mine, other):
        """An answer without the entries that the other has too."""
        left = [e for e in mine.entries
                if not any(answers.agree([e], [o], self.slack) for o in other.entries)]
        text = answers.Answer(mine.outputs, left, mine.sent).text(self.step)
        sums = ''.join(', wrong IPv4 header sum' for _ in mine.broken)
        return text + sums

    def lines(self):
        yield f'{MARK[self.good]} {self.step.text}'
        if not self.same:
            yield f'      kernel {self._differing(self.kernel, self.sluice)}'
            yield f'      sluice {self._differing(self.sluice, self.kernel)}'
            yield from (f'      {reason}' for reason in self.wrong if reason)
        if self.step.differs and not self.good:
            yield f'    stated {self.step.differs}'
            yield f'      kernel {self.step.kernel}'
            yield f'      sluice {self.step.sluice}'


class Comparison:
    """A whole scenario. A difference that is not stated is bad, as is a stated one that is not
    there."""

    def __init__(self, scenario, kernel, sluice, slack=SLACK):
        self.scenario, self.slack = scenario, slack
        self.steps = [Step(scenario, *one, slack)
                      for one in zip(scenario.steps, kernel, sluice, strict=True)]

    @property
    def kernel(self):
        """Its answers, as they came."""
        return [step.raw[0] for step in self.steps]

    @property
    def good(self):
        return all(step.good for step in self.steps)

    def report(self):
        lines = [f'{self.scenario.source}:{self.scenario.line}: {self.scenario.name}']
        lines += [] if self.scenario.counted else ['  uncounted']
        lines += [f'  knob {key}={value}' for key, value in self.scenario.knobs.items()]
        lines += [f'  rule {chain} {text}' for chain, text in self.scenario.rules]
        for step in self.steps:
            lines += ('  ' + line for line in step.lines())
        return '\n'.join(lines)
