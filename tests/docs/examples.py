# SPDX-License-Identifier: BSD-3-Clause
"""The examples of a document, as one bash script.

A fenced block ```sh is run as it stands; of a block ```console the lines after `$ ` are run, and
what they print must look like the lines below them, where `…` stands for anything, and a line of
`…` alone for any number of lines. Indented blocks are not examples. All blocks of a document run in
their order, in one shell, in namespaces of its own (network, mounts, processes)."""

import re

_FENCE = re.compile(r'^```(\w+)\n(.*?)^```$', re.M | re.S)


class Step:
    """One thing to run: where it stands, the text for bash, the lines to expect or None."""

    def __init__(self, line, script, expected=None):
        self.line, self.script, self.expected = line, script, expected


def steps(text):
    found = []
    for m in _FENCE.finditer(text):
        line = text.count('\n', 0, m.start()) + 2
        if m.group(1) == 'sh':
            found.append(Step(line, m.group(2)))
        elif m.group(1) == 'console':
            found += _console(line, m.group(2))
    return found


def _console(line, block):
    found = []
    for number, row in enumerate(block.splitlines()):
        if row.startswith('$ '):
            found.append(Step(line + number, row[2:] + '\n', []))
        elif found and row.startswith('> ') and not found[-1].expected:
            found[-1].script = found[-1].script.rstrip('\n') + '\n' + row[2:] + '\n'
        elif found:
            found[-1].expected.append(row)
        else:
            raise ValueError(f'line {line + number}: output before any command')
    return found


def pattern(expected):
    """A regular expression for the whole output."""
    parts = []
    for row in expected:
        if row.strip() == '…':
            parts.append(r'(?:[^\n]*\n)*?')
        else:
            parts.append('[^\\n]*'.join(re.escape(p) for p in row.rstrip().split('…'))
                         + r'[ \t]*\n')
    return ''.join(parts)


def matches(expected, output):
    if output and not output.endswith('\n'):
        output += '\n'
    return re.fullmatch(pattern(expected), output) is not None


def script(found, out):
    """Bash text that runs all steps and leaves N.out and N.rc of each in the directory `out`."""
    text = []
    for i, step in enumerate(found):
        text.append('{\n' + step.script + f'}} >{out}/{i}.out 2>&1 </dev/null\n'
                    f'echo $? >{out}/{i}.rc\n')
        if re.search(r'\bsluice -c [^\n]*&$', step.script, re.M):
            text.append('for _ in $(seq 200); do sluicectl show version >/dev/null 2>&1 && break\n'
                        'sleep 0.1; done\n')
    return ''.join(text)
