# SPDX-License-Identifier: BSD-3-Clause
"""What rules tell: `log`, by `rule events`, and `ct mark set`, by `conntrack events`."""
from harness import CONFIG, START, Case
from capture import SEC
from packets import A, S, tcp, udp

FLOW = A(40000) > S(80)
TOLD = ('chain', 'handle', 'prefix', 'in', 'out', 'proto', 'src', 'dst', 'sport', 'dport')


def logged(*want):
    """Checks a `rule events`: each of `want` is a dictionary of what an item must have."""
    def check(result):
        items = result.get('items', [])
        assert len(items) == len(want) and result['lost'] == 0, result
        for item, fields in zip(items, want):
            assert {k: item.get(k) for k in fields} == fields
    return check


def told(chain, handle, prefix, flow, proto, out='outside', come='inside'):
    return dict(zip(TOLD, (chain, handle, prefix, come, out, proto, flow.src.addr, flow.dst.addr,
                           flow.src.port, flow.dst.port)))


def test_each_packet_where_matches_vary(sluice, tmp_path):
    rules = ('rule add T1 raw log prefix "raw "\n'
             'rule add T1 forward tcp flags syn / syn,ack log prefix "new: " level info drop\n')
    c = Case(sluice, tmp_path, config=CONFIG + rules)
    c.at(0).run('rule events netns T1', logged())
    c.at(0).inside(tcp(FLOW, 'S', 1000), drop='rule-drop')
    c.at(1).outside(udp(~FLOW))
    syn = {'flags': ['SYN'], 'family': 'ipv4', 'len': 40, 'time': START / SEC}
    c.at(2).run('rule events netns T1', logged(
        told('raw', 1, 'raw ', FLOW, 'tcp', out='') | syn | {'level': 'warn'},
        told('forward', 2, 'new: ', FLOW, 'tcp') | syn | {'level': 'info'},
        told('raw', 1, 'raw ', ~FLOW, 'udp', out='', come='outside') | {'flags': None, 'mark': 0}))
    c.at(3).run('rule events netns T1', logged())
    c.replay()


def test_the_first_of_each_direction_where_a_verdict_is_kept(sluice, tmp_path):
    c = Case(sluice, tmp_path, config=CONFIG + 'rule add T1 forward udp dport 80 log group 3\n')
    c.at(0).run('rule events', logged())
    for at in (0, 1, 2):
        c.at(at).inside(udp(FLOW))
    one = told('forward', 1, '', FLOW, 'udp') | {'group': 3, 'level': None}
    c.at(3).run('rule events', logged(one))
    c.replay()


def test_nobody_listens(sluice, tmp_path):
    """What was logged before somebody listens is not told; other events are not, either."""
    c = Case(sluice, tmp_path, config=CONFIG + 'rule add T1 forward log accept\n')
    c.at(0).inside(udp(FLOW))
    c.at(1).run('conntrack events netns T1').run('rule events netns T1', logged())
    c.at(2).inside(udp(A(40001) > S(80)))
    c.at(3).run('rule events netns T1', logged(told('forward', 1, '', A(40001) > S(80), 'udp')))
    c.at(3).run('conntrack events netns T1',
                lambda r: [e['event'] for e in r['items']] == ['NEW'] or 1 / 0)
    c.replay()


def test_a_mark_that_changes_is_told(sluice, tmp_path):
    """Of a new connection it is part of the NEW; the same mark again is no change."""
    rules = ('rule add T1 forward meta l4proto udp ct mark set 7\n'
             f'rule add T1 forward ip saddr {S.addr} ct mark set 9\n')
    seen = []
    c = Case(sluice, tmp_path, config=CONFIG + rules)
    c.at(0).run('conntrack events')
    c.at(0).inside(udp(FLOW))
    c.at(1).outside(udp(~FLOW))
    c.at(2).outside(udp(~FLOW))
    c.at(3).run('conntrack events', lambda r: seen.extend(
        (e['event'], e.get('changed'), e['mark']) for e in r['items']))
    c.replay()
    assert seen[0] == ('NEW', None, 7)
    assert ('UPDATE', ['MARK'], 9) in seen and len([e for e in seen if e[1] == ['MARK']]) == 1
