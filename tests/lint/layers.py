# SPDX-License-Identifier: BSD-3-Clause
"""The layers: a library includes only its own headers and those of its meson dependencies."""

import pathlib
import re

import csource

# Headers of packages, by the meson variable that grants them. All others are the C library's.
PACKAGES = (
    ('rte_', 'dpdk'), ('urcu', 'urcu'), ('event2/', 'libevent'), ('jansson', 'jansson'),
    ('pcap', 'libpcap'), ('histedit', 'libedit'), ('editline', 'libedit'), ('cmocka', 'cmocka'),
)

_DECLARE = re.compile(r'^(\w+) = declare_dependency\((.*?)\)\s*$', re.S | re.M)
_DEPENDENCIES = re.compile(r'dependencies:\s*(\[[^\]]*\]|\w+)')


def declared(build_text):
    """{library: [dependencies]} of the declare_dependency() lines of a meson.build."""
    found = {}
    for m in _DECLARE.finditer(build_text):
        deps = _DEPENDENCIES.search(m.group(2))
        found[m.group(1)] = re.findall(r'\w+', deps.group(1)) if deps else []
    return found


def closure(graph, name):
    """The library and everything that it depends on, directly or not."""
    seen, todo = set(), [name]
    while todo:
        at = todo.pop()
        if at not in seen:
            seen.add(at)
            todo += graph.get(at, [])
    return seen


def cycles(graph):
    """One cycle of the graph as a list of names, or None."""
    done, path = set(), []

    def visit(node):
        if node in path:
            return path[path.index(node):] + [node]
        if node in done:
            return None
        path.append(node)
        for nearby in graph.get(node, ()):
            found = visit(nearby)
            if found:
                return found
        path.pop()
        done.add(node)
        return None

    for node in list(graph):
        found = visit(node)
        if found:
            return found
    return None


class Tree:
    """files: {path relative to the top: text}."""

    def __init__(self, files):
        self.files = files
        self.graph = {}
        for path, text in files.items():
            if re.fullmatch(r'lib/\w+/meson\.build', path):
                self.graph.update(declared(text))
        self.headers = {}
        for path in files:
            if path.endswith('.h') and path.startswith(('lib/', 'app/')):
                self.headers.setdefault(pathlib.PurePath(path).name, []).append(path)

    @staticmethod
    def library(path):
        """'conntrack' for lib/conntrack/…, 'app' for app/…, None for what is in no layer."""
        parts = path.split('/')
        if parts[0] == 'lib' and len(parts) > 2:
            return parts[1]
        return 'app' if parts[0] == 'app' else None

    def resolve(self, path, name):
        """The file that a quoted include means, None when there is no such header."""
        near = str(pathlib.PurePath(path).parent / name)
        if near in self.files:
            return near
        found = [h for h in self.headers.get(pathlib.PurePath(name).name, ())
                 if h.endswith('/' + name)]
        return found[0] if len(found) == 1 else None

    def check_quoted(self, path, own, name):
        """What is wrong with one quoted include, or None."""
        if '..' in name.split('/'):
            return f'"{name}" walks up the tree: include by name'
        target = self.resolve(path, name)
        if target is None:
            return f'"{name}" is no header of lib/ or app/'
        other = self.library(target)
        if own == 'app' or other == own or other in closure(self.graph, own):
            return None
        return f'{own} includes "{name}" of {other}, which is none of its dependencies'

    def check_angle(self, own, name):
        for prefix, package in PACKAGES:
            if name.startswith(prefix) and own != 'app':
                if package not in closure(self.graph, own):
                    return f'{own} includes <{name}> without depending on {package}'
        return None

    def wrong_includes(self):
        """(path, line, what) for each include against the rule."""
        for path, text in sorted(self.files.items()):
            own = self.library(path)
            if own is None or not path.endswith(('.c', '.h')):
                continue
            for line, kind, name in csource.includes(text):
                if kind == 'quote':
                    wrong = self.check_quoted(path, own, name)
                else:
                    wrong = self.check_angle(own, name)
                if wrong:
                    yield path, line, wrong

    def wrong_names(self):
        """Headers of one name in two directories: which one is meant would hang on -I order."""
        for name, paths in sorted(self.headers.items()):
            if len(paths) > 1:
                yield paths[0], 1, f'{name} exists more than once: ' + ', '.join(paths)

    def header_graph(self):
        graph = {}
        for path, text in self.files.items():
            if path.endswith('.h') and self.library(path):
                graph[path] = [t for _, kind, name in csource.includes(text) if kind == 'quote'
                               for t in [self.resolve(path, name)] if t]
        return graph
