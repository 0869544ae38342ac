# SPDX-License-Identifier: BSD-3-Clause
"""The two answers to each step, compared; differences printed side by side."""

import answers
import choices
from reassembly import datagrams

SLACK = 2        # seconds, for what the kernel's real time adds
MARK = {True: ' ', False: '!'}


class Step:
    """A step with both answers."""

    def __init__(self, step, kernel, sluice, slack=SLACK, outputs=True, scenario=None):
        self.step, self.slack, self.raw = step, slack, (kernel, sluice)
        free = scenario.free if scenario else ()
        self.rejects = scenario is not None and scenario.rejects
        self.wrong = [choices.wrong(answer, free) for answer in (kernel, sluice)] if free else []
        self.kernel, self.sluice = (choices.canonical(answer, free) if free else answer
                                    for answer in (kernel, sluice))
        self.compare_outputs = outputs
        self.same = not any(self.wrong) and self._same()

    def _same(self):
        if self.kernel.broken or self.sluice.broken:
            return False
        if self.compare_outputs and self._out(self.kernel) != self._out(self.sluice):
            return False
        return answers.agree(self.kernel.entries, self.sluice.entries, self.slack)

    def _out(self, answer):
        here = (answer.sent or self.step).side
        return sorted((side, (answers.normal_made if self.rejects and side == here
                              else answers.normal)(packet), good)
                      for (side, packet), good in zip(answer.outputs, answer.sums))

    def stated(self):
        """Whether the step states just these two answers."""
        s = self.step
        return bool(s.kernel and s.sluice and self.kernel.like(s, s.kernel, self.slack)
                    and self.sluice.like(s, s.sluice, self.slack))

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
        self.scenario = scenario
        whole = scenario.whole
        self.steps = [Step(step, k, s, slack, outputs=not whole,
                           scenario=scenario)
                      for step, k, s in zip(scenario.steps, kernel, sluice, strict=True)]
        self.datagrams = self._datagrams() if whole else None

    def _datagrams(self):
        """Of fragments, what each gateway let through in all: as whole datagrams, in order."""
        return tuple(self._unnumbered(
            datagrams(out for step in self.steps for out in getattr(step, who).outputs))
            for who in ('kernel', 'sluice'))

    def _unnumbered(self, found):
        if self.scenario.rejects:
            found = [(side, answers.normal_made(packet)) for side, packet in found]
        """Where sources change, Sluice numbers the datagrams of IPv4 anew (docs/differences.md)."""
        if not any('snat' in text for _, text in self.scenario.rules):
            return found
        return [(side, packet[:4] + b'\0\0' + packet[6:] if packet[0] >> 4 == 4 else packet)
                for side, packet in found]

    @property
    def good(self):
        stated = any(step.step.differs for step in self.steps)
        if self.datagrams and not stated and self.datagrams[0] != self.datagrams[1]:
            return False
        return all(step.good for step in self.steps)

    def report(self):
        lines = [f'{self.scenario.source}:{self.scenario.line}: {self.scenario.name}']
        lines += [f'  knob {key}={value}' for key, value in self.scenario.knobs.items()]
        lines += [f'  rule {chain} {text}' for chain, text in self.scenario.rules]
        for step in self.steps:
            lines += ('  ' + line for line in step.lines())
        if self.datagrams is not None:
            for who, found in zip(('kernel', 'sluice'), self.datagrams):
                lines.append(f'  {who} let these datagrams through:')
                lines += [f'      {side} {answers.short(packet)}' for side, packet in found]
        return '\n'.join(lines)
