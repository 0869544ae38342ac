# SPDX-License-Identifier: BSD-3-Clause
"""The tree keeps its own rules; textrules.py, layers.py and packetpath.py say which."""

import compileall
import shutil
import subprocess

import pytest

import layers
import packetpath
import textrules
import tree

FILES = tree.texts()


def tell(found):
    """Fails with one `path:line: what` a line."""
    found = list(found)
    if found:
        pytest.fail('\n'.join(f'{p}:{line}: {what}' for p, line, what in found), pytrace=False)


def tool(name):
    path = shutil.which(name)
    assert path, f'{name} is not installed: it is in config/packages.txt, ./test.sh installs it'
    return path


def run(*command):
    done = subprocess.run(command, cwd=tree.ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.fail(done.stdout + done.stderr, pytrace=False)


def test_the_tree_is_seen():
    assert 'meson.build' in FILES and 'lib/base/hash.c' in FILES


@pytest.mark.parametrize('rule', textrules.ALL, ids=lambda r: r.__name__)
def test_text(rule):
    tell((path, line, what) for path, text in FILES.items() for line, what in rule(path, text))


def test_layers():
    tell(layers.Tree(FILES).wrong_includes())


def test_header_names():
    tell(layers.Tree(FILES).wrong_names())


def test_no_cycle():
    seen = layers.Tree(FILES)
    assert {'base', 'packet', 'netns', 'conntrack'} <= set(seen.graph)
    assert layers.cycles(seen.graph) is None
    assert layers.cycles(seen.header_graph()) is None


def test_siblings_do_not_know_each_other():
    """NAT, limits, TCP tables and rules meet in app/ only."""
    graph = layers.Tree(FILES).graph
    siblings = {'nat', 'connlimit', 'tcp_ehash', 'rules'}
    for name in siblings & set(graph):
        assert layers.closure(graph, name) & siblings == {name}


def test_packet_path():
    graph = packetpath.CallGraph({p: t for p, t in FILES.items()
                                  if p.startswith(('lib/', 'app/')) and textrules.is_c(p)})
    tell(graph.violations())
    if 'app/datapath.c' in FILES:
        reached = {d.name for _, d, _ in graph.walk()}
        assert {'datapath_burst', 'ct_lookup_match', 'ct_track', 'ct_begin'} <= reached


def test_spelling():
    run(tool('codespell'), '--ignore-words', 'tests/lint/spelling.txt',
        *[p for p in FILES if p != 'tests/lint/spelling.txt'])


def test_shell():
    scripts = [p for p, t in FILES.items() if t.startswith(('#!/bin/sh', '#!/bin/bash'))
               or p.endswith('.sh')]
    assert {'run.sh', 'test.sh', '.ci/run'} <= set(scripts)
    run(tool('shellcheck'), '-x', '-P', 'SCRIPTDIR', *scripts)


def test_python(tmp_path):
    scripts = [p for p, t in FILES.items()
               if p.endswith('.py') or t.startswith('#!/usr/bin/python3')]
    assert scripts
    for path in scripts:
        copy = tmp_path / path.replace('/', '_')
        copy.write_text(FILES[path])
        assert compileall.compile_file(copy, quiet=1), path
    run(tool('pyflakes3'), *scripts)
