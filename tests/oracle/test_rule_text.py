# SPDX-License-Identifier: BSD-3-Clause
"""Rule text against nft: what we accept, nft accepts, and lists as we do; and what the tables say
that both refuse, nft refuses. The tables are those of the unit ring (tests/unit/rules)."""

import pathlib
import re
import subprocess

import pytest

TABLES = pathlib.Path(__file__).parent.parent / 'unit/rules'
CHAINS = {
    'raw': 'filter hook prerouting priority raw',
    'prerouting': 'nat hook prerouting priority dstnat',
    'forward': 'filter hook forward priority filter',
    'postrouting': 'nat hook postrouting priority srcnat',
}
SETUP = 'add table inet t\n' + ''.join(
    f'add chain inet t {c} {{ type {t}; policy accept; }}\n' for c, t in CHAINS.items())
HELPERS = 'add ct helper inet t ftp { type "ftp" protocol tcp; }\n'
LISTED = re.compile(r'^\t\t(.*) comment "(\d+)"$', re.M)


def table(name):
    """Its rows, but for those that nft's prompt cannot take."""
    lines = (TABLES / name).read_text().split('\n')
    return [line.split('\t') for line in lines
            if line and line.isascii() and not line.startswith('#')]


def nft(rules):
    """{number: listing} of those of the (chain, rule) that nft accepts, by one run of it."""
    text = SETUP + HELPERS + ''.join(
        f'add rule inet t {chain} {rule} comment "{n}"\n' for n, (chain, rule) in enumerate(rules))
    done = subprocess.run(['unshare', '--net', 'nft', '-i'], input=text + 'list table inet t\n',
                          capture_output=True, text=True, errors='replace', timeout=120)
    if 'chain postrouting' not in done.stdout:
        pytest.skip(f'no nft here: {done.stderr[-200:]}')
    return {int(n): rule for rule, n in LISTED.findall(done.stdout)}


def listing(row):
    return row[2] if len(row) > 2 else row[1]


def test_what_is_accepted_nft_accepts_and_lists_so():
    rows = table('good.txt')
    theirs = nft([(row[0], row[1]) for row in rows])
    wrong = [f'{row[0]} {row[1]}: nft refuses it' for n, row in enumerate(rows) if n not in theirs]
    wrong += [f'{row[1]}\n  ours {listing(row)}\n  nft  {theirs[n]}' for n, row in enumerate(rows)
              if n in theirs and len(row) < 4 and theirs[n] != listing(row)]
    assert not wrong, '\n'.join(wrong)


def test_exceptions_are_still_ones():
    rows = [row for row in table('good.txt') if len(row) > 3]
    theirs = nft([(row[0], row[1]) for row in rows])
    assert rows and all(theirs[n] != listing(row) for n, row in enumerate(rows))


def test_listings_are_rules_of_nft():
    rows = table('good.txt')
    theirs = nft([(row[0], listing(row)) for row in rows])
    wrong = [f'{row[0]} {listing(row)}' for n, row in enumerate(rows) if n not in theirs]
    assert not wrong, '\n'.join(wrong)


def refused(who):
    """Rules of bad.txt; not those with text that nft's prompt would not take as one command."""
    return [(row[0], row[3]) for row in table('bad.txt')
            if row[2] == who and row[3].count('"') % 2 == 0 and not set(row[3]) & set(';#')]


def test_what_both_refuse_nft_refuses():
    rules = refused('both')
    assert [rules[n] for n in nft(rules)] == []


def test_what_only_we_refuse_nft_accepts():
    """Else the table should say that both do."""
    rules = [r for r in refused('ours') if not r[1].endswith('"')]
    accepted = nft(rules)
    assert [r for n, r in enumerate(rules) if n not in accepted] == []


@pytest.fixture(scope='module')
def rule_lines(build_dir):
    return build_dir / 'tests/unit/rules/rule_lines'


def test_export_is_a_file_of_nft(rule_lines, tmp_path):
    """Short forms included, with sets of their own; and nft lists of it what is listed here."""
    rows = [row for row in table('good.txt') if len(row) < 4] + table('short.txt')
    text = ''.join(f'{row[0]}\t{row[1]}\n' for row in rows)
    exported = subprocess.run([rule_lines, 'export'], input=text, capture_output=True, text=True,
                              check=True).stdout
    assert exported.count('ct count') >= 5 and exported.count('# not of nft: ') >= 6
    path = tmp_path / 'rules.nft'
    path.write_text(exported)
    done = subprocess.run(['unshare', '--net', 'nft', '-c', '-f', path], capture_output=True,
                          text=True, errors='replace')
    assert done.returncode == 0, done.stderr[:2000]
