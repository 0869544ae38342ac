# SPDX-License-Identifier: BSD-3-Clause
"""Checks of one file's text. Each takes (path, text) and yields (line, what is wrong)."""

import re

import csource

COLUMNS = 100
FILE_LINES = 600
FUNCTION_LINES = 60
PACKET_PATH_LINES = 150
PARAMETERS = 6

# The packet path is one function on purpose: a reader sees all stages in order.
PACKET_PATH_FUNCTIONS = {'app/datapath.c': {'datapath_burst'}}

_CODE = ('.c', '.h', '.py', '.sh', '.lua', '.build', '.service', '.conf', '.ini')
_CODE_NAMES = ('meson_options.txt', '.ci/run', 'tests/run', '.clang-tidy')


def is_c(path):
    return path.endswith(('.c', '.h'))


def is_code(path):
    return path.endswith(_CODE) or path in _CODE_NAMES


def spdx(path, text):
    if not is_code(path):
        return
    lines = text.split('\n', 2)
    first = lines[1] if lines[0].startswith('#!') and len(lines) > 1 else lines[0]
    if 'SPDX-License-Identifier: BSD-3-Clause' not in first:
        yield 1, 'the first line (after #!) has no SPDX-License-Identifier: BSD-3-Clause'


def columns(path, text):
    if not is_code(path):
        return
    for number, line in enumerate(text.split('\n'), 1):
        width = len(line.expandtabs(8))
        # A command of a configuration is one line, however long.
        if width > COLUMNS and not (path.endswith('.conf') and ' add ' in line):
            yield number, f'{width} columns, at most {COLUMNS}'


def whitespace(path, text):
    if path.endswith('.patch'):
        return
    for number, line in enumerate(text.split('\n'), 1):
        if line != line.rstrip():
            yield number, 'white space at the end of the line'
        if '\r' in line:
            yield number, 'carriage return'
    if text and not text.endswith('\n'):
        yield text.count('\n') + 1, 'no newline at the end of the file'
    if text.endswith('\n\n'):
        yield text.count('\n'), 'empty line at the end of the file'


def tabs(path, text):
    if not is_c(path):
        return
    for number, line in enumerate(text.split('\n'), 1):
        if re.match(r' {2,}[^ *]', line):
            yield number, 'indented with spaces: use tabs'


def file_length(path, text):
    if not is_code(path):
        return
    lines = text.count('\n')
    if lines > FILE_LINES:
        yield lines, f'{lines} lines, at most {FILE_LINES}: split it by subject'


def functions(path, text):
    if not is_c(path):
        return
    for d in csource.definitions(text):
        if d.kind != 'function':
            continue
        limit = FUNCTION_LINES
        if d.name in PACKET_PATH_FUNCTIONS.get(path, ()):
            limit = PACKET_PATH_LINES
        if d.lines > limit:
            yield d.line, f'{d.name}() has {d.lines} lines, at most {limit}'
        if len(d.params) > PARAMETERS:
            yield d.line, (f'{d.name}() has {len(d.params)} parameters, at most {PARAMETERS}: '
                           'pass a context')


_STATEMENT = re.compile(r'^[ \t*/]*[\w>.\[\]-]+( [-+|&]?= .*|\([^)]*\));[ \t]*(\*/)?$', re.M)


def left_over(path, text):
    """Notes to self and dead code."""
    if not is_code(path):
        return
    for m in re.finditer(r'\b(TO' r'DO|FIX' r'ME|X' r'XX|HA' r'CK)\b', text):
        yield csource.line_of(text, m.start()), f'{m.group(1)}: do it or leave it out'
    if not is_c(path):
        return
    for m in re.finditer(r'^[ \t]*#[ \t]*if[ \t]+0\b', text, re.M):
        yield csource.line_of(text, m.start()), 'code that is never compiled'
    bare = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    for m in re.finditer(r'/\*.*?\*/', bare, re.S):
        if _STATEMENT.search(m.group(0)):
            yield csource.line_of(bare, m.start()), 'commented-out code'
    bare = re.sub(r'/\*.*?\*/', lambda c: '\n' * c.group(0).count('\n'), bare, flags=re.S)
    for m in re.finditer(r'//', bare):
        yield csource.line_of(bare, m.start()), '// comment: use /* */'


def function_style(path, text):
    """`type` on its own line before `name(`, and no K&R brace of a function on the same line."""
    if not is_c(path):
        return
    bare = csource.strip(text)
    for m in re.finditer(r'^(?:static |inline |const |struct |enum |unsigned )*\w+[ \*]+'
                         r'(\w+)\([^;{}]*\)[ \t\n]*\{', bare, re.M):
        yield (csource.line_of(bare, m.start()),
               f'{m.group(1)}(): its return type belongs on a line of its own')


def header_guard(path, text):
    if path.endswith('.h') and not re.search(r'^#ifndef (\w+)\n#define \1$', text, re.M):
        yield 1, 'no include guard'


ALL = (spdx, columns, whitespace, tabs, file_length, functions, left_over, function_style,
       header_guard)
