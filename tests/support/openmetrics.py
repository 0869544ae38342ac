# SPDX-License-Identifier: BSD-3-Clause
"""A strict reader of OpenMetrics 1.0 text: whatever the specification does not allow is an error.

As a program it reads the output of a command and checks it: openmetrics.py COMMAND..."""

import re
import subprocess
import sys

NAME = re.compile(r'[a-zA-Z_:][a-zA-Z0-9_:]*')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
NUMBER = re.compile(r'[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?Inf|NaN')
SUFFIXES = {
    'counter': ('_total', '_created'), 'gauge': ('',), 'unknown': ('',), 'info': ('_info',),
    'stateset': ('',), 'summary': ('', '_count', '_sum', '_created'),
    'histogram': ('_bucket', '_count', '_sum', '_created'),
    'gaugehistogram': ('_bucket', '_gcount', '_gsum'),
}


class Malformed(Exception):
    """The text is no OpenMetrics exposition; the message has the line's number."""


class Family:
    def __init__(self, name):
        self.name = name
        self.type = None
        self.unit = None
        self.help = None
        self.samples = {}  # (sample name, ((label, value), ...)): number


def parse_labels(text):
    """The labels between braces, in the order in which they stand."""
    labels, at = [], 0
    while at < len(text):
        if labels:
            if text[at] != ',':
                raise Malformed(f'no comma between labels: {text!r}')
            at += 1
        found = LABEL.match(text, at)
        if not found:
            raise Malformed(f'no label: {text[at:]!r}')
        value = re.sub(r'\\(.)', lambda m: '\n' if m[1] == 'n' else m[1], found[2])
        labels.append((found[1], value))
        at = found.end()
    if len({name for name, _ in labels}) != len(labels):
        raise Malformed(f'label given twice: {text!r}')
    return tuple(labels)


def split_sample(line):
    """Name, labels and value; a timestamp or exemplar is not expected here."""
    name = NAME.match(line)
    if not name:
        raise Malformed(f'no metric name: {line!r}')
    rest, labels = line[name.end():], ()
    if rest.startswith('{'):
        body = re.match(r'\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\}', rest)
        if not body:
            raise Malformed(f'labels without end: {line!r}')
        labels = parse_labels(body[1])
        rest = rest[body.end():]
    if not rest.startswith(' ') or not NUMBER.fullmatch(rest[1:]):
        raise Malformed(f'no single space and number behind the name: {line!r}')
    return name[0], labels, float(rest[1:])


def add_metadata(family, key, text):
    if getattr(family, key.lower()) is not None:
        raise Malformed(f'{key} of {family.name} given twice')
    if family.samples:
        raise Malformed(f'{key} of {family.name} behind its samples')
    if key == 'TYPE' and text not in SUFFIXES:
        raise Malformed(f'unknown type {text!r}')
    if key == 'UNIT' and text and not family.name.endswith('_' + text):
        raise Malformed(f'{family.name} does not end with its unit {text}')
    if key == 'HELP' and re.search(r'(?<!\\)(?:\\\\)*\\(?![n\\"])', text):
        raise Malformed(f'bad escape in help: {text!r}')
    setattr(family, key.lower(), text)


def add_sample(family, line):
    name, labels, value = split_sample(line)
    kind = family.type or 'unknown'
    if name not in [family.name + suffix for suffix in SUFFIXES[kind]]:
        raise Malformed(f'{name} is no sample of the {kind} {family.name}')
    if kind == 'counter' and not 0 <= value < float('inf'):
        raise Malformed(f'a counter below zero or without number: {line!r}')
    if kind == 'info' and value != 1:
        raise Malformed(f'an info is always 1: {line!r}')
    key = (name, tuple(sorted(labels)))
    if key in family.samples:
        raise Malformed(f'given twice: {line!r}')
    family.samples[key] = value


def check_clashes(families):
    """No family may have the name of another one's sample."""
    taken = {}
    for family in families.values():
        for suffix in {'', *SUFFIXES[family.type or 'unknown']}:
            other = taken.setdefault(family.name + suffix, family.name)
            if other != family.name:
                raise Malformed(f'{family.name} and {other} share a name')


def parse(data):
    """Families by name, from the bytes of an exposition."""
    text = data.decode('utf-8')
    if not text.endswith('\n# EOF\n'):
        raise Malformed('does not end with # EOF and a newline')
    families, family = {}, None
    for number, line in enumerate(text[:-len('# EOF\n')].split('\n')[:-1], 1):
        try:
            meta = re.fullmatch(r'# (TYPE|UNIT|HELP) (\S+) (.*)', line)
            if meta:
                if not NAME.fullmatch(meta[2]):
                    raise Malformed(f'no family name: {meta[2]!r}')
                if family is None or family.name != meta[2]:
                    if meta[2] in families:
                        raise Malformed(f'family {meta[2]} comes twice')
                    family = families[meta[2]] = Family(meta[2])
                add_metadata(family, meta[1], meta[3])
            elif line.startswith('#') or family is None:
                raise Malformed(f'neither metadata nor a sample of a family: {line!r}')
            else:
                add_sample(family, line)
        except Malformed as error:
            raise Malformed(f'line {number}: {error}') from None
    check_clashes(families)
    for family in families.values():
        if family.type in ('info', 'stateset') and family.unit:
            raise Malformed(f'{family.name}: no unit for the type {family.type}')
    return families


def main():
    run = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, check=True)
    families = parse(run.stdout)
    samples = sum(len(family.samples) for family in families.values())
    print(f'{len(families)} families, {samples} samples')
    if not samples:
        sys.exit('no samples')


if __name__ == '__main__':
    main()
