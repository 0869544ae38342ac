# SPDX-License-Identifier: BSD-3-Clause
"""ct count and limit rate in rules: what is counted, and when it is given back (B04, B05, B06)."""
import random

import pytest

from harness import CONFIG, Case, entry
from packets import A, B, S, patch, resum_ip, tcp, udp

LIMIT = 'rule add T1 forward tcp flags syn / fin,syn,rst,ack ct count over {} by ip saddr drop\n'


def flow(port, host=A):
    return host(port) > S(80)


def syn(port, host=A):
    return tcp(flow(port, host), 'S', 1000)


def counts(want):
    """Checks a `connlimit list`: {key: count}."""
    def check(result):
        assert {i['key']: i['count'] for i in result['items']} == want
    return check


def limits(want):
    """The same with the numbers of the limits: {key: (count, limit)}."""
    def check(result):
        assert {i['key']: (i['count'], i['limit']) for i in result['items']} == want
    return check


def limited(sluice, path, n, **more):
    return Case(sluice, path, config=CONFIG + LIMIT.format(n), **more)


def handshake(c, at, port):
    """S's next sequence number is 5001."""
    c.at(at).inside(syn(port))
    c.at(at + 0.01).outside(tcp(~flow(port), 'SA', 5000, 1001))
    c.at(at + 0.02).inside(tcp(flow(port), 'A', 1001, 5001))


@pytest.mark.parametrize('seq, frees', [(5101, False), (5001, True)])
def test_b04_only_an_exact_rst_frees(sluice, tmp_path, seq, frees):
    c = limited(sluice, tmp_path, 1)
    handshake(c, 0, 40001)
    c.at(1).run('connlimit list netns T1', counts({A.addr: 1}))
    c.at(1).inside(syn(40002), drop='rule-drop')
    c.at(2).outside(tcp(~flow(40001), 'R', seq))
    c.at(2.1).run('connlimit list', counts({} if frees else {A.addr: 1}))
    c.at(3).inside(syn(40002), drop=None if frees else 'rule-drop')
    c.at(4).run('connlimit list', counts({A.addr: 1}))
    c.replay()


def test_b04_repeats_and_fins(sluice, tmp_path):
    """A SYN sent five times counts once; one FIN does not free, both and the last ACK do, once."""
    c = limited(sluice, tmp_path, 1)
    for i in range(5):
        c.at(i / 10).inside(syn(40001))
    c.at(1).run('connlimit list', counts({A.addr: 1}))
    c.at(1).outside(tcp(~flow(40001), 'SA', 5000, 1001))
    c.at(1.1).inside(tcp(flow(40001), 'A', 1001, 5001))
    c.at(2).inside(tcp(flow(40001), 'FA', 1001, 5001))
    c.at(2.1).run('connlimit list', counts({A.addr: 1}))
    c.at(2.2).inside(syn(40002), drop='rule-drop')
    c.at(3).outside(tcp(~flow(40001), 'FA', 5001, 1002))
    c.at(3.1).inside(tcp(flow(40001), 'A', 1002, 5002))
    c.at(3.2).run('connlimit list', counts({}))
    c.at(3.3).inside(tcp(flow(40001), 'A', 1002, 5002))
    c.at(4).inside(syn(40002))
    c.at(4.1).inside(tcp(flow(40001), 'FA', 1001, 5001))
    c.at(4.2).run('connlimit list', counts({A.addr: 1}))
    c.replay()


def test_b05_closed_and_opened_in_one_tick(sluice, tmp_path):
    c = limited(sluice, tmp_path, 100)
    for i in range(100):
        c.at(2 * i / 1e6).inside(syn(1000 + i))
        c.at((2 * i + 1) / 1e6).outside(tcp(~flow(1000 + i), 'RA', 0, 1001))
    for i in range(100):
        c.at((500 + i) / 1e6).inside(syn(2000 + i))
    c.at(1).run('connlimit list top 1', counts({A.addr: 100}))
    c.at(1).inside(syn(3000), drop='rule-drop')
    c.replay()


@pytest.mark.parametrize('rule', [LIMIT, LIMIT.replace('tcp flags syn / fin,syn,rst,ack ', '')],
                         ids=['flags', 'kept'])
def test_b04_a_closed_connection_that_opens_again_counts(sluice, tmp_path, rule):
    """A RST from the server closes; the client's SYN is passed on the entry that is left, and the
    server's answer opens it anew. It is weighed like a new one, once."""
    c = Case(sluice, tmp_path, config=CONFIG + rule.format(1))
    again = tcp(flow(40001), 'S', 90000)
    handshake(c, 0, 40001)
    c.at(1).outside(tcp(~flow(40001), 'R', 5001))
    c.at(1.1).run('connlimit list', counts({}))
    c.at(1.2).inside(syn(40002))
    c.at(1.3).inside(again, drop='rule-drop')
    c.at(1.4).run('connlimit list', counts({A.addr: 1}))
    c.at(1.5).inside(tcp(flow(40002), 'R', 1001))
    c.at(1.6).run('connlimit list', counts({}))
    c.at(2).inside(again)
    c.at(2.1).inside(again)
    c.at(2.2).outside(tcp(~flow(40001), 'SA', 70000, 90001))
    c.at(2.3).inside(tcp(flow(40001), 'A', 90001, 70001))
    c.at(2.4).entries(entry(flow(40001), 'tcp', state='ESTABLISHED', assured=True))
    c.at(2.5).run('connlimit list', counts({A.addr: 1}))
    c.at(2.6).inside(syn(40003), drop='rule-drop')
    c.at(3).outside(tcp(~flow(40001), 'R', 70001))
    c.at(3.1).run('connlimit list', counts({}))
    c.at(3.2).inside(syn(40003))
    c.replay()


def test_b06_refused_connections_take_nothing(sluice, tmp_path):
    c = limited(sluice, tmp_path, 1)
    c.at(0).inside(syn(40001))
    for i in range(4):
        c.at(1 + i).inside(syn(40002), drop='rule-drop')
    c.at(6).run('connlimit list', counts({A.addr: 1}))
    c.at(7).inside(tcp(flow(40001), 'R', 1001))
    c.at(8).run('connlimit list', counts({}))
    c.at(9).inside(syn(40003))
    c.replay()


def test_b06_connections_from_before_the_limit(sluice, tmp_path):
    c = Case(sluice, tmp_path)
    for port in range(1, 6):
        c.at(0).inside(syn(port))
    c.at(1).run(LIMIT.format(3).strip())
    c.at(2).run('connlimit list', counts({}))
    for port in range(1, 6):
        c.at(3).outside(tcp(~flow(port), 'RA', 0, 1001))
    c.at(4).run('connlimit list', counts({}))
    for port in range(11, 14):
        c.at(5).inside(syn(port))
    c.at(6).run('connlimit list', counts({A.addr: 3}))
    c.at(6).inside(syn(14), drop='rule-drop')
    c.replay()


def test_b06_another_number_keeps_the_counts(sluice, tmp_path):
    """`rule replace` by a rule that is the same but for its number; by another rule it begins
    anew, and what ends from before is not subtracted."""
    text = 'table inet x {{ chain forward {{ type filter hook forward priority filter; {} }} }}'
    for name, rules in (('two', [LIMIT.format(2)]),
                        ('one', ['rule add T1 forward udp dport 9 counter', LIMIT.format(1)]),
                        ('other', [LIMIT.format(1).replace('syn /', 'fin,syn,rst /')])):
        bare = (rule.strip().removeprefix('rule add T1 forward ') + '\n' for rule in rules)
        (tmp_path / name).write_text(text.format('\n' + ''.join(bare)))
    c = limited(sluice, tmp_path, 3)
    for port in (1, 2, 3):
        c.at(0).inside(syn(port))
    c.at(0.1).inside(syn(4), drop='rule-drop')
    c.at(1).run(f'rule replace T1 {tmp_path}/two').run('connlimit list', counts({A.addr: 3}))
    c.at(1.1).inside(tcp(flow(1), 'R', 1001))
    c.at(1.2).inside(syn(4), drop='rule-drop')
    c.at(1.3).inside(tcp(flow(2), 'R', 1001))
    c.at(1.4).inside(syn(5))
    c.at(2).run(f'rule replace T1 {tmp_path}/one').run('connlimit list', limits({A.addr: (2, 1)}))
    c.at(2.1).inside(tcp(flow(3), 'R', 1001))
    c.at(2.2).inside(syn(6), drop='rule-drop')
    c.at(2.3).inside(tcp(flow(5), 'R', 1001))
    c.at(2.4).inside(syn(6))
    c.at(3).run(f'rule replace T1 {tmp_path}/other').run('connlimit list', counts({}))
    c.at(3.1).inside(tcp(flow(6), 'R', 1001))
    c.at(3.2).run('connlimit list', counts({}))
    c.replay()


def test_sources_are_counted_apart_and_entries_expire(sluice, tmp_path):
    rule = 'rule add T1 forward ct count over 1 by ip saddr drop\n'
    c = Case(sluice, tmp_path, config=CONFIG + rule)
    c.at(0).inside(udp(flow(1)))
    c.at(0.1).inside(udp(flow(1, B)))
    c.at(0.2).inside(udp(flow(2)), drop='rule-drop')
    c.at(1).run('connlimit list', counts({A.addr: 1, B.addr: 1}))
    c.at(40).run('connlimit list', counts({}))
    c.at(41).inside(udp(flow(2)))
    c.replay()


def test_no_counter_left_is_a_named_drop(sluice, tmp_path):
    c = limited(sluice, tmp_path, 5, knobs={'sluice.connlimit_max': 1})
    c.at(0).inside(syn(1))
    c.at(1).inside(syn(2))
    c.at(2).inside(syn(1, B), drop='connlimit-full')
    c.replay()


@pytest.mark.parametrize('by', ['', ' by ip saddr'])
def test_rate(sluice, tmp_path, by):
    rule = f'rule add T1 forward limit rate over 2/second burst 3 packets{by} drop\n'
    c = Case(sluice, tmp_path, config=CONFIG + rule)
    for i in range(5):
        c.at(i / 1000).inside(udp(flow(i + 1)), drop='rule-drop' if i >= 3 else None)
    c.at(0.6).inside(udp(flow(11)))
    c.at(0.7).inside(udp(flow(12)), drop='rule-drop')
    c.at(0.8).inside(udp(flow(1, B)), drop='rule-drop' if by == '' else None)
    c.replay()


@pytest.mark.parametrize('by', ['', ' by ip saddr'])
def test_a_rate_goes_on_where_its_rule_stays(sluice, tmp_path, by):
    """`rule replace` fills no bucket, but that of a rule which is another."""
    text = 'table inet x {{ chain forward {{ type filter hook forward priority filter; {} }} }}'
    rate = f'limit rate over 2/second burst 3 packets{by} drop\n'
    (tmp_path / 'same').write_text(text.format('\nudp dport 9 counter\n' + rate))
    (tmp_path / 'other').write_text(text.format('\n' + rate.replace('3 packets', '4 packets')))
    c = Case(sluice, tmp_path, config=CONFIG + 'rule add T1 forward ' + rate)
    for i in range(3):
        c.at(i / 1000).inside(udp(flow(i + 1)))
    for at in (0.01, 0.02):
        c.at(at).run(f'rule replace T1 {tmp_path}/same')
    c.at(0.03).inside(udp(flow(11)), drop='rule-drop')
    c.at(0.04).run(f'rule replace T1 {tmp_path}/other')
    c.at(0.05).inside(udp(flow(12)))
    c.replay()


def test_synflood(sluice, tmp_path):
    """SYNs of random sources, three times as many as the tenant may have connections, while a
    client opens and closes its own, five at a time: none of those is refused or lost, and what is
    counted is what is there."""
    most, n = 2000, 6000
    knobs = {'nf_conntrack_max': most, 'sluice.connlimit_max': most, 'nf_conntrack_checksum': 0}
    c = limited(sluice, tmp_path, 5, knobs=knobs)
    choose = random.Random(1)
    base = syn(1024)
    for i in range(n):
        source = choose.randrange(0x0b000000, 0x0c000000).to_bytes(4, 'big')
        c.at((2 * i) / 1e5).inside(resum_ip(patch(base, 26, source)))
    for k in range(100):
        at, port = (k + 1) / 1000, 40000 + k
        c.at(at).inside(syn(port))
        c.at(at + .001).outside(tcp(~flow(port), 'SA', 5000, 1001))
        c.at(at + .002).inside(tcp(flow(port), 'A', 1001, 5001))
        c.at(at + .003).inside(tcp(flow(port), 'PA', 1001, 5001, data=b'x'))
        c.at(at + .0045).inside(tcp(flow(port), 'RA', 1002, 5001))
    seen = []
    c.at(0.13).run('conntrack count netns T1', lambda r: seen.append(r['count']))
    c.at(0.13).run('connlimit list netns T1', lambda r: seen.append(len(r['items'])))
    c.replay()
    assert seen == [most, most - 100], 'the 100 that are closed do not count'
