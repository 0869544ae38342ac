# SPDX-License-Identifier: BSD-3-Clause
"""Completion in bash: the words come from the command table."""

import subprocess

import pytest


def complete(sluicectl, line):
    """COMPREPLY of bash for a line that is being typed."""
    script = f'''
source <({sluicectl} --completion bash) || exit 1
COMP_LINE=$1; COMP_POINT=${{#COMP_LINE}}
_sluicectl {sluicectl} "${{COMP_LINE##* }}"
printf '%s\\n' "${{COMPREPLY[@]}}"'''
    done = subprocess.run(['bash', '-c', script, 'bash', line], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == '', done.stderr
    return done.stdout.split()


@pytest.mark.parametrize('line,words', [
    ('sluicectl conn', ['conntrack', 'connlimit']),
    ('sluicectl -j -s /tmp/x  conntrack li', ['list']),
    ('/usr/bin/sluicectl netns d', ['delete']),
    ('sluicectl conntrack list pro', ['proto']),
    ('sluicectl no-such-comm', []),
])
def test_bash(sluicectl, line, words):
    assert complete(sluicectl, line) == words


def test_bash_offers_options(sluicectl):
    assert '--version' in complete(sluicectl, 'sluicectl --')


def test_other_shells_are_refused(sluicectl):
    done = subprocess.run([sluicectl, '--completion', 'fish'], capture_output=True, text=True)
    assert done.returncode == 2 and 'fish' in done.stderr and done.stdout == ''
