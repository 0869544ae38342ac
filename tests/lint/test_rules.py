# SPDX-License-Identifier: BSD-3-Clause
"""Each check finds what it is for, and leaves good text alone."""

import pytest

import csource
import layers
import packetpath
import textrules

GOOD = """\
/* SPDX-License-Identifier: BSD-3-Clause */
#include "x.h"

/* Says why, with an example: a = f(x) where x is odd. */
static int
count(const struct x *x, int (*visit)(int, int), int n)
{
\tconst char *s = "http://not.a.comment/ {";

\treturn visit(n, x->len) + (s != NULL);
}

static const struct ops ops = {
\t.run = count,
};
"""


def function(lines, params='void', name='f'):
    return f'static int\n{name}({params})\n{{\n' + '\tn++;\n' * lines + '}\n'


def wrong(rule, text, path='lib/base/x.c'):
    return [line for line, _ in rule(path, text)]


@pytest.mark.parametrize('rule', textrules.ALL, ids=lambda r: r.__name__)
def test_good_text_passes(rule):
    assert wrong(rule, GOOD) == []


@pytest.mark.parametrize('rule,text,lines', [
    (textrules.spdx, 'int x;\n', [1]),
    (textrules.columns, '\t' * 11 + 'x' * 13 + '\n', [1]),
    (textrules.columns, 'x' * 100 + '\n', []),
    (textrules.whitespace, 'a \nb\r\nc', [1, 2, 2, 3]),
    (textrules.whitespace, 'a\n\n', [2]),
    (textrules.tabs, 'a\n    b;\n\t  c;\n * d\n', [2]),
    (textrules.file_length, '\n' * 600, []),
    (textrules.file_length, '\n' * 601, [601]),
    (textrules.functions, function(60), []),
    (textrules.functions, function(3) + function(61), [9]),
    (textrules.functions, function(1, 'int a, int b, int c, int d, int e, int f'), []),
    (textrules.functions, function(1, 'int a, int b, int c, int d, int e, int f, int g'), [2]),
    (textrules.functions, function(1, 'int (*f)(int, int, int, int), void *a, int b'), []),
    (textrules.functions, function(1, 'int a,\n\tint b, int c, int d, int e, int f, int g'), [2]),
    (textrules.left_over, 'a\n/* TO' 'DO: b */\n', [2]),
    (textrules.left_over, 'a\n# if 0\n#endif\n', [2]),
    (textrules.left_over, 'int a; // why\n', [1]),
    (textrules.left_over, 'a\n/*\n\tx = f(1);\n*/\n', [2]),
    (textrules.left_over, 'a\n/* free(p); */\n', [2]),
    (textrules.left_over, 'char *s = "http://x/";\n', []),
    (textrules.function_style, 'static int f(int a)\n{\n}\n', [1]),
    (textrules.function_style, 'int f(int a);\n', []),
], ids=lambda v: getattr(v, '__name__', ''))
def test_bad_text_is_found(rule, text, lines):
    assert wrong(rule, text) == lines


def test_packet_path_function_may_be_longer():
    long = function(150, name='datapath_burst')
    assert wrong(textrules.functions, long, 'app/datapath.c') == []
    assert wrong(textrules.functions, long, 'app/worker.c') == [2]
    assert wrong(textrules.functions, function(151, name='datapath_burst'), 'app/datapath.c') == [2]


def test_header_guard():
    assert wrong(textrules.header_guard, 'int x;\n', 'lib/base/x.h') == [1]
    assert wrong(textrules.header_guard, '#ifndef X_H\n#define X_H\n#endif\n', 'lib/base/x.h') == []


def test_shebang_before_spdx():
    good = '#!/bin/sh\n# SPDX-License-Identifier: BSD-3-Clause\n'
    assert wrong(textrules.spdx, good, 'a.sh') == []
    assert wrong(textrules.spdx, '#!/bin/sh\necho\n', 'a.sh') == [1]


BUILD = {
    'lib/base/meson.build': "base = declare_dependency(link_with: l,\n  dependencies: [dpdk])\n",
    'lib/low/meson.build': "low = declare_dependency(dependencies: [base])\n",
    'lib/high/meson.build': "high = declare_dependency(dependencies: [low, jansson])\n",
    'lib/base/b.h': '', 'lib/low/l.h': '', 'lib/high/h.h': '', 'app/a.h': '',
}


@pytest.mark.parametrize('path,text,bad', [
    ('lib/low/l.c', '#include "l.h"\n#include "b.h"\n#include <rte_mbuf.h>\n', 0),
    ('lib/high/h.c', '#include "b.h"\n#include <jansson.h>\n', 0),
    ('lib/low/l.c', '#include "h.h"\n', 1),
    ('lib/low/l.c', '/* #include "h.h" */\n', 0),
    ('lib/low/l.c', '#  include "h.h"\n', 1),
    ('lib/low/l.c', '#include "../high/h.h"\n', 1),
    ('lib/low/l.c', '#include "a.h"\n', 1),
    ('lib/low/l.c', '#include "no.h"\n', 1),
    ('lib/low/l.c', '#include <jansson.h>\n', 1),
    ('lib/base/b.c', '#include <event2/event.h>\n', 1),
    ('app/a.c', '#include "h.h"\n#include <event2/event.h>\n', 0),
])
def test_include_rule(path, text, bad):
    assert len(list(layers.Tree({**BUILD, path: text}).wrong_includes())) == bad


def test_two_headers_of_one_name():
    seen = layers.Tree({'lib/a/x.h': '', 'lib/b/x.h': ''})
    assert len(list(seen.wrong_names())) == 1


def test_cycles():
    assert layers.cycles({'a': ['b'], 'b': ['c'], 'c': []}) is None
    assert layers.cycles({'a': ['b'], 'b': ['c'], 'c': ['b']}) == ['b', 'c', 'b']
    headers = layers.Tree({'lib/a/x.h': '#include "y.h"\n', 'lib/a/y.h': '#include "x.h"\n'})
    assert layers.cycles(headers.header_graph()) is not None


PATH = """\
static void
note(struct p *p)
{
\tLOUD(p);
}

static void
later(struct p *p)
{
\tp->free(p);
}

static const struct ops table = {
\t.run = note,
};

void
datapath_burst(struct p *p)
{
\ttable.run(p);
\tlater(p);
}

static void
control(struct p *p)
{
\tfree(p);
}
"""


def test_packet_path_is_followed_through_tables_and_macros():
    sources = {'app/datapath.c': PATH,
               'lib/base/x.h': '#define LOUD(p) \\\n\tfprintf(stderr, "%p", p)\n'}
    found = list(packetpath.CallGraph(sources).violations())
    assert len(found) == 1
    assert found[0][2].endswith('datapath_burst > table > note > LOUD > fprintf')


def test_packet_path_is_not_misled_by_static_functions_elsewhere():
    path = 'void\ndatapath_burst(void)\n{\n\tint start = 1;\n\n\tuse(start);\n}\n'
    other = '{}int\nstart(void)\n{{\n\treturn malloc(1) == NULL;\n}}\n'
    for local, found in (('static ', 0), ('', 1)):
        sources = {'app/datapath.c': path, 'app/other.c': other.format(local)}
        assert len(list(packetpath.CallGraph(sources).violations())) == found


def test_packet_path_starts_at_ports_too():
    port = ('static uint16_t\ntap_rx(struct port *p)\n{\n\treturn malloc(1) == NULL;\n}\n\n'
            'static const struct port_ops ops = {\n\t.rx = tap_rx,\n};\n')
    assert len(list(packetpath.CallGraph({'app/tap.c': port}).violations())) == 1
    assert len(list(packetpath.CallGraph({'app/replay_port.c': port}).violations())) == 0


def test_comments_and_strings_call_nothing():
    text = 'void\ndatapath_burst(void)\n{\n\t/* malloc(1) */\n\ts = "free(x)";\n}\n'
    assert list(packetpath.CallGraph({'app/datapath.c': text}).violations()) == []
    assert [d.kind for d in csource.definitions(text)] == ['function']
