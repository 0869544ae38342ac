# SPDX-License-Identifier: BSD-3-Clause
"""TCP tables of namespaces: what their knobs take, memory that is not to be had, batches that come
to nothing; and the table of all, which grows under traffic."""

import contextlib
import pathlib
import re
import resource

import pytest

from daemon import wait_for

CHILD, ENTRIES = 'net.ipv4.tcp_child_ehash_entries', 'net.ipv4.tcp_ehash_entries'
TW, BACKLOG = 'net.ipv4.tcp_max_tw_buckets', 'net.ipv4.tcp_max_syn_backlog'
BUCKETS = 'net.netfilter.nf_conntrack_buckets'
GROWTH = 'sluice.table_growth'
MOST = 1 << 24
MB = 1 << 20


def knob(rpc, key, **more):
    return rpc.ok('sysctl', key=key, **more)['value']


@pytest.fixture
def child(rpc):
    """Sets what namespaces are created with; as at first when the test is over."""
    yield lambda value: knob(rpc, CHILD, value=value)
    knob(rpc, CHILD, value=0)


@contextlib.contextmanager
def room(pid, megabytes):
    """The process gets no more address space than so much more than it has."""
    size = int(re.search(r'VmSize:\s+(\d+) kB', pathlib.Path(f'/proc/{pid}/status').read_text())[1])
    old = resource.prlimit(pid, resource.RLIMIT_AS)
    resource.prlimit(pid, resource.RLIMIT_AS, (size * 1024 + megabytes * MB, old[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_AS, old)


def test_rounded_up(rpc, child):
    assert child(100) == 128
    rpc.ok('netns.add', names=['t1'])
    assert knob(rpc, ENTRIES, netns='t1') == 128
    assert knob(rpc, ENTRIES) == knob(rpc, BUCKETS)
    assert knob(rpc, CHILD, netns='t1') == 0


def test_refusals(rpc, child):
    rpc.ok('netns.add', names=['t1'])
    for value in (MOST + 1, -1, 'many'):
        assert f'from 0 to {MOST}' in rpc.error('sysctl', key=CHILD, value=value)['message']
    for value in (-1, 1 << 31):
        assert 'from 0 to 2147483647' in rpc.error('sysctl', key=TW, value=value)['message']
    assert 'read only' in rpc.error('sysctl', key=ENTRIES, netns='t1', value=64)['message']
    assert 'init only' in rpc.error('sysctl', key=GROWTH, netns='t1', value=0)['message']
    assert knob(rpc, CHILD) == 0


def test_what_is_set_is_not_inherited(rpc, child):
    child(1024)
    rpc.ok('netns.add', names=['t1'])
    assert (knob(rpc, TW, netns='t1'), knob(rpc, BACKLOG, netns='t1')) == (512, 128)
    assert knob(rpc, TW, netns='t1', value=7) == 7
    assert knob(rpc, BACKLOG, netns='t1', value=9) == 9
    rpc.ok('sysctl', key='nf_conntrack_acct', netns='t1', value=1)
    rpc.ok('netns.add', **{'names': ['t2'], 'from': 't1'})
    of_all = knob(rpc, BUCKETS)
    assert knob(rpc, ENTRIES, netns='t2') == -of_all
    assert knob(rpc, TW, netns='t2') == of_all // 2
    assert knob(rpc, BACKLOG, netns='t2') == of_all // 128
    assert knob(rpc, 'nf_conntrack_acct', netns='t2') == 1


def test_bounds_of_each_size(rpc, child):
    """max(128, entries / 128) and entries / 2; of one that shares they are those of the table of
    all, and move with it."""
    for i, (asked, entries) in enumerate([(1, 1), (127, 128), (1 << 14, 1 << 14),
                                          ((1 << 14) + 1, 1 << 15), (1 << 20, 1 << 20)]):
        child(asked)
        rpc.ok('netns.add', names=[f't{i}'])
        shown = rpc.ok('netns.show', name=f't{i}')
        assert [shown[k] for k in ('tcp_ehash_entries', 'tcp_max_tw_buckets',
                                   'tcp_max_syn_backlog')] == \
            [entries, entries // 2, max(128, entries // 128)]
    child(0)
    rpc.ok('netns.add', names=['sharing'])
    of_all = knob(rpc, BUCKETS)
    assert (knob(rpc, TW, netns='sharing'), knob(rpc, BACKLOG, netns='sharing')) == \
        (of_all // 2, max(128, of_all // 128))


def test_without_memory_it_shares(rpc, gateway, child):
    """Two of five find room. The others are created all the same, and a warning says so."""
    child(MOST)
    rpc.ok('netns.add', names=['first'])  # with what the first table of all needs besides
    with room(gateway.process.pid, 2 * MOST * 8 // MB + 64):
        rpc.ok('netns.add', prefix='t', count=5)
    of_all = knob(rpc, BUCKETS)
    assert [knob(rpc, ENTRIES, netns=f't{i}') for i in range(1, 6)] == [MOST] * 2 + [-of_all] * 3
    assert knob(rpc, TW, netns='t2') == MOST // 2
    assert knob(rpc, TW, netns='t3') == of_all // 2
    warning = re.search('3 of 5 new namespaces, such as t3, share the TCP table of all.*',
                        gateway.log_text())
    assert warning and str(MOST) in warning[0]
    rpc.ok('netns.delete', all=True)
    rpc.ok('netns.add', names=['t5'])
    assert knob(rpc, ENTRIES, netns='t5') == MOST


def test_a_batch_that_fails_leaves_no_table(rpc, gateway):
    def size():
        status = pathlib.Path(f'/proc/{gateway.process.pid}/status').read_text()
        return int(re.search(r'VmRSS:\s+(\d+) kB', status)[1])

    before = size()
    for _ in range(2):
        answers = rpc.batch(('sysctl', {'key': CHILD, 'value': MOST}),
                            ('netns.add', {'names': ['t1']}),
                            ('sysctl', {'key': TW, 'netns': 't1', 'value': 5}),
                            ('netns.delete', {'names': ['nobody']}))
        assert all('error' in answer for answer in answers)
        assert knob(rpc, CHILD) == 0
        rpc.error('netns.show', name='t1')
    wait_for('its memory', lambda: size() < before + MOST * 8 // 1024 // 2)
    rpc.ok('netns.add', names=['t1'])
    assert knob(rpc, ENTRIES, netns='t1') == -knob(rpc, BUCKETS)


def test_the_table_of_all_grows_under_traffic(rpc, gateway):
    before, flows = knob(rpc, BUCKETS), 20000
    knob(rpc, BUCKETS, value=8192)
    knob(rpc, GROWTH, value=0)
    rpc.ok('port.add', name='source',
           devargs=f'gen,flows,flows={flows},vlans=1,peer-vlans=2,rate=200000')
    rpc.ok('netns.add', names=['t1'])
    rpc.ok('link.add', name='a', port='source', vlan=1, netns='t1')
    rpc.ok('link.add', name='b', port='source', vlan=2, netns='t1', peer='a')
    wait_for('all flows', lambda: rpc.ok('conntrack.count', netns='t1')['count'] == flows)
    assert knob(rpc, BUCKETS) == 8192
    knob(rpc, GROWTH, value=1)
    wait_for('growth', lambda: knob(rpc, BUCKETS) == 32768)
    wait_for('a line in its log', lambda: 'grown to 32768 buckets' in gateway.log_text())
    seen = {(e['orig']['src'], e['orig']['sport'], e['orig']['dst'], e['orig']['dport'])
            for e in rpc.items('conntrack.list', netns='t1')}
    assert len(seen) == flows == rpc.ok('conntrack.count', netns='t1')['count']
    knob(rpc, BUCKETS, value=before)
