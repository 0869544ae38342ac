# SPDX-License-Identifier: BSD-3-Clause
"""Every example of the documents does what the document says."""

import os
import pathlib
import shutil
import subprocess

import pytest

import examples

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(p.relative_to(ROOT) for p in [*ROOT.glob('*.md'), *ROOT.glob('docs/*.md')]
                   if examples.steps(p.read_text()))

# The shell is process 1 of its namespace: whatever it started ends with it.
SANDBOX = ['unshare', '--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc']
SETUP = """\
mount -t tmpfs tmpfs /run
mkdir -p /run/netns
mount -t sysfs sysfs /sys 2>/dev/null
ip link set lo up
cd {work} || exit 1
"""


def sandbox():
    """Words in front of bash, or None when this user may not make namespaces."""
    for more in ([], ['--user', '--map-root-user']):
        words = [*SANDBOX, *more]
        if subprocess.run([*words, 'true'], capture_output=True).returncode == 0:
            return words
    return None


def test_there_are_examples():
    assert pathlib.Path('README.md') in DOCUMENTS


@pytest.mark.parametrize('document', DOCUMENTS, ids=str)
def test_document(document, sluice, sluicectl, tmp_path):
    words = sandbox()
    if words is None:
        pytest.skip('needs root, or user namespaces')
    found = examples.steps((ROOT / document).read_text())
    out, work = tmp_path / 'out', tmp_path / 'work'
    out.mkdir()
    work.mkdir()
    shutil.copytree(ROOT / 'config', work / 'config')
    script = tmp_path / 'script'
    script.write_text(SETUP.format(work=work) + examples.script(found, out))
    env = dict(os.environ, LC_ALL='C.UTF-8',
               PATH=f'{sluice.parent}:{sluicectl.parent}:{os.environ["PATH"]}')
    subprocess.run([*words, 'bash', str(script)], env=env, timeout=100, check=False,
                   stdin=subprocess.DEVNULL)
    for i, step in enumerate(found):
        where = f'{document}:{step.line}: {step.script.strip()}'
        assert (out / f'{i}.rc').exists(), f'{where}: was not reached'
        output = (out / f'{i}.out').read_text(errors='replace')
        status = int((out / f'{i}.rc').read_text())
        assert status == 0, f'{where}: status {status}\n{output}'
        if step.expected is not None:
            assert examples.matches(step.expected, output), \
                f'{where}: expected\n' + '\n'.join(step.expected) + f'\nbut it printed\n{output}'


@pytest.mark.parametrize('expected,output,good', [
    (['a', '…', 'z 1'], 'a\nb\nc\nz 1\n', True),
    (['a', '…', 'z'], 'a\nz', True),
    (['a …, b'], 'a 17.5 ms, b\n', True),
    (['a …, b'], 'a 17.5 ms\n, b\n', False),
    (['a'], 'a\nb\n', False),
    ([], '', True),
    ([], 'something\n', False),
])
def test_matching(expected, output, good):
    assert examples.matches(expected, output) == good


def test_steps():
    text = ('x\n\n```sh\na\nb\n```\n\n```console\n$ c 1\n$ d \\\n> e\nout\n```\n\n'
            '```c\nint x;\n```\n')
    assert [(s.line, s.script, s.expected) for s in examples.steps(text)] == [
        (4, 'a\nb\n', None), (9, 'c 1\n', []), (10, 'd \\\ne\n', ['out'])]
