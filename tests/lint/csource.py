# SPDX-License-Identifier: BSD-3-Clause
"""C text as the checks see it: without comments and strings, cut into top-level definitions.

It relies on the tree's own layout (a function's name starts its line, its braces are in column 0),
which the checks demand anyway, and so needs no C parser."""

import re

_SKIP = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
_FUNCTION = re.compile(r'^([A-Za-z_]\w*)\(([^;{}]*?)\)([^;{}()]*(?:\([^;{}()]*\)[^;{}()]*)*)\n\{\n'
                       r'(.*?)^\}', re.S | re.M)
_TABLE = re.compile(r'^(?:static |const |extern |struct |enum )+[\w \*]*?\b(\w+)(?:\[[^\]]*\])*'
                    r'(?:\s+__\w+)* = \{(.*?)^\};', re.S | re.M)
_MACRO = re.compile(r'^#define[ \t]+(\w+)(?:\(([^)]*)\))?((?:[^\n]*\\\n)*[^\n]*)', re.M)
_INCLUDE = re.compile(r'^#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)


def strip(text):
    """The text with comments and literals blanked; lines stay where they are."""
    def blank(match):
        found = match.group(0)
        if found.startswith('/'):
            return ' ' + '\n' * found.count('\n')
        return '""' if found[0] == '"' else "' '"
    return _SKIP.sub(blank, text)


def line_of(text, offset):
    return text.count('\n', 0, offset) + 1


class Definition:
    """A function, table or macro: name, first line, lines of the body, parameters, body; local:
    no other file sees it (unless it stands in a header)."""

    def __init__(self, kind, name, line, body, params=(), local=True):
        self.kind, self.name, self.line, self.body = kind, name, line, body
        self.params, self.local = params, local
        self.lines = body.count('\n')

    def names(self):
        """Identifiers in the body that are no members (a.b, a->b): calls, and names passed on."""
        return set(re.findall(r'(?<![\w.])(?<!->)([A-Za-z_]\w*)', self.body))

    def calls(self):
        return set(re.findall(r'(?<![\w.])(?<!->)([A-Za-z_]\w*)\s*\(', self.body))


def _parameters(text):
    """Parameters in the text between the parentheses of a function."""
    text = text.strip()
    if text in ('', 'void'):
        return []
    found, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in '([') - (c in ')]')
        if c == ',' and depth == 0:
            found.append(text[start:i].strip())
            start = i + 1
    return found + [text[start:].strip()]


def definitions(text):
    text = strip(text)
    found = []
    for m in _FUNCTION.finditer(text):
        kind_of_result = text[:m.start()].rstrip('\n').rpartition('\n')[2]
        found.append(Definition('function', m.group(1), line_of(text, m.start()), m.group(4),
                                _parameters(m.group(2)), kind_of_result.startswith('static')))
    for m in _TABLE.finditer(text):
        found.append(Definition('table', m.group(1), line_of(text, m.start()), m.group(2),
                                local=m.group(0).startswith('static')))
    for m in _MACRO.finditer(text):
        found.append(Definition('macro', m.group(1), line_of(text, m.start()), m.group(3)))
    return found


def includes(text):
    """(line, 'quote' or 'angle', name) of each #include."""
    # Strings are needed here, comments are not.
    text = re.sub(r'/\*.*?\*/', lambda m: '\n' * m.group(0).count('\n'), text, flags=re.S)
    return [(line_of(text, m.start()), 'quote' if m.group(1) == '"' else 'angle', m.group(2))
            for m in _INCLUDE.finditer(text)]
