# SPDX-License-Identifier: BSD-3-Clause
"""The reference pages list what the programs have: no more and no less."""

import pathlib
import re
import subprocess
import urllib.request

import pytest

from daemon import wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / 'docs'


def rows(page):
    """Cells of the table rows that begin with a name in backquotes."""
    return [[cell.strip() for cell in line.strip('|').split(' | ')]
            for line in (DOCS / page).read_text().splitlines() if line.startswith('| `')]


def test_drops():
    listed = re.findall(r'X\(\w+, "([\w-]+)", "([^"]*)"\)', (ROOT / 'lib/base/drop.h').read_text())
    there = {name: text for name, text in listed if name != 'none'}
    page = {r[0].strip('`'): r[1] for r in rows('observe.md') if r[0].strip('`') in there}
    assert page == there


def test_knobs(daemon):
    gateway = daemon()
    there = {}
    for key, value in re.findall(r'^(\S+) = (\S+)$', gateway.ctl('sysctl list'), re.M):
        there[key.removeprefix('net.netfilter.')] = value
    page = {r[0].strip('`'): r[2] for r in rows('knobs.md')}
    apart = {'nf_conntrack_count', 'nf_conntrack_buckets'}
    assert page == {k: v for k, v in there.items() if k not in apart}


def test_commands(sluicectl):
    """`help` prints one command a line; `help COMMAND` its usage, which the page has as it is."""
    page = [line.strip() for line in (DOCS / 'commands.md').read_text().splitlines()
            if line.startswith('    ')]
    text = subprocess.run([sluicectl, 'help'], capture_output=True, text=True, check=True).stdout
    names = re.findall(r'^ *([a-z]+(?: [a-z]+)*)  ', text, re.M)
    assert 'conntrack list' in names and 'netns add' in names
    for name in names:
        usage = subprocess.run([sluicectl, 'help', *name.split()], capture_output=True, text=True,
                               check=True).stdout
        found = [line.strip() for line in usage.splitlines()
                 if line.strip().removeprefix('usage: ').startswith(name)]
        assert found, usage
        for line in found:
            assert line.removeprefix('usage: ') in page, f'docs/commands.md lacks: {line}'


def test_metrics(daemon):
    port = 19464
    daemon('', '--metrics', f'127.0.0.1:{port}')

    def get():
        try:
            return urllib.request.urlopen(f'http://127.0.0.1:{port}/metrics', timeout=5).read()
        except OSError:
            return None

    text = wait_for('metrics', get).decode()
    page = (DOCS / 'observe.md').read_text()
    families = re.findall(r'^# TYPE (\w+) (\w+)$', text, re.M)
    assert len(families) > 20
    for name, kind in families:
        name += {'counter': '_total', 'info': '_info'}.get(kind, '')
        short = re.sub(r'^sluice_(netns|port|worker|conntrack)', '…', name)
        assert f'`{name}`' in page or f'`{short}`' in page, f'docs/observe.md lacks {name}'


@pytest.mark.parametrize('page', sorted(p.name for p in DOCS.glob('*.md')))
def test_linked_from_the_readme(page):
    assert f'docs/{page}' in (ROOT / 'README.md').read_text()


def test_links():
    """Links between the documents lead somewhere."""
    for document in [*ROOT.glob('*.md'), *DOCS.glob('*.md'), *ROOT.glob('pktgen-scripts/*.md')]:
        for target in re.findall(r'\]\(([^)#]+)(?:#[^)]*)?\)', document.read_text()):
            if '://' not in target:
                assert (document.parent / target).exists(), f'{document.name}: {target}'
