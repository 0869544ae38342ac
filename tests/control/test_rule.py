# SPDX-License-Identifier: BSD-3-Clause
"""rule add, list, delete, flush, replace, policy and export, alone and in batches."""

import json
import select
import subprocess

import pytest

from rpc import Rpc

REFUSED_RULE = ('table inet x {\n chain raw {\n  type filter hook prerouting priority raw\n'
                '  foo\n }\n}\n')


@pytest.fixture
def ctl(daemon, sluicectl):
    d = daemon('netns add t\n')

    def run(*words, given=None, status=0):
        done = subprocess.run([sluicectl, '-s', d.socket, *words], input=given, text=True,
                              capture_output=True, timeout=20)
        assert done.returncode == status, done.stderr
        return done.stdout if status == 0 else done.stderr
    return run


def rules(ctl, ns='t'):
    items = [json.loads(line) for line in ctl('-j', 'rule', 'list', ns).splitlines()]
    return [(i['chain'], i['handle'], i['rule']) for i in items if 'rule' in i]


def test_list_is_as_nft_lists(ctl):
    ctl('rule', 'add', 't', 'forward', 'tcp dport { 80, 22 } counter accept')
    ctl('rule', 'add', 't', 'raw', 'iifname lan notrack')
    ctl('rule', 'policy', 't', 'forward', 'drop')
    assert ctl('rule', 'list', 't') == (
        'table inet t {\n'
        '\tchain raw {\n'
        '\t\ttype filter hook prerouting priority raw; policy accept;\n'
        '\t\tiifname "lan" notrack # handle 2\n'
        '\t}\n\n'
        '\tchain forward {\n'
        '\t\ttype filter hook forward priority filter; policy drop;\n'
        '\t\ttcp dport { 22, 80 } counter packets 0 bytes 0 accept # handle 1\n'
        '\t}\n}\n')
    assert ctl('rule', 'list', 'init') == ''


def test_a_refusal_points_at_what_is_wrong(ctl):
    said = ctl('rule', 'add', 't', 'forward', 'tcp dport 80000 accept', status=1)
    assert said == ('sluicectl: rule: column 11-15: the number is out of 0-65535\n'
                    '    tcp dport 80000 accept\n'
                    '              ^^^^^\n')
    assert rules(ctl) == []


def test_handles_are_not_used_again(ctl):
    for port in (1, 2, 3):
        ctl('rule', 'add', 't', 'forward', f'tcp dport {port} accept')
    ctl('rule', 'delete', 't', 'handle', '3')
    ctl('rule', 'add', 't', 'forward', 'tcp dport 4 accept')
    assert [handle for _, handle, _ in rules(ctl)] == [1, 2, 4]
    assert 'no rule 3' in ctl('rule', 'delete', 't', 'handle', '3', status=1)


def test_flush_of_a_chain_and_of_all(ctl):
    for chain in ('raw', 'forward', 'postrouting'):
        ctl('rule', 'add', 't', chain, 'accept')
    ctl('rule', 'flush', 't', 'raw')
    assert [chain for chain, _, _ in rules(ctl)] == ['forward', 'postrouting']
    ctl('rule', 'flush', 't')
    assert rules(ctl) == []


def test_a_batch_is_applied_as_a_whole(ctl):
    ctl('rule', 'add', 't', 'forward', 'udp dport 53 accept')
    before = ctl('rule', 'list', 't')
    said = ctl('-f', '-', status=1, given='rule flush t\nrule policy t forward drop\n'
               'netns add u\nrule add u raw accept\nrule add t forward tcp dport x accept\n')
    assert '-:5: rule: column 11-11' in said
    assert ctl('rule', 'list', 't') == before
    ctl('-f', '-', given='netns add u\nrule add u raw accept\nrule delete t handle 1\n')
    assert rules(ctl, 'u') == [('raw', 1, 'accept')] and rules(ctl) == []


def test_rules_of_a_deleted_namespace(ctl):
    ctl('rule', 'add', 't', 'forward', 'drop')
    said = ctl('-f', '-', status=1, given='netns delete t\nrule add t forward accept\n')
    assert 'deleted by this batch' in said
    ctl('netns', 'delete', 't')
    ctl('netns', 'add', 't')
    assert rules(ctl) == []
    ctl('netns', 'add', 'u', 'from', 't')
    assert rules(ctl, 'u') == []


def test_export_is_what_replace_takes(ctl, tmp_path):
    ctl('rule', 'add', 't', 'forward', 'ip6 saddr { 2001:db8::/32, ::1 } counter accept')
    ctl('rule', 'policy', 't', 'raw', 'drop')
    text = ctl('rule', 'export', 't')
    path = tmp_path / 'rules.nft'
    path.write_text(text)
    ctl('netns', 'add', 'u')
    ctl('rule', 'add', 'u', 'raw', 'accept')
    ctl('rule', 'replace', 'u', str(path))
    assert ctl('rule', 'export', 'u') == text
    assert [handle for _, handle, _ in rules(ctl, 'u')] == [2]


def test_a_bad_file_changes_nothing(ctl):
    ctl('rule', 'add', 't', 'forward', 'accept')
    assert 'file: line 4, column 3: ' in ctl('rule', 'replace', 't', '-', given=REFUSED_RULE,
                                             status=1)
    assert 'No such file' in ctl('rule', 'replace', 't', '/no/such', status=2)
    assert len(rules(ctl)) == 1


def test_many_rules(ctl):
    lines = ''.join(f'rule add t forward tcp dport {n} accept\n' for n in range(1, 2001))
    ctl('-f', '-', given=lines)
    assert len(rules(ctl)) == 2000


def nft_file(*rules):
    return ('table inet x {\n chain forward {\n  type filter hook forward priority filter\n' +
            ''.join(f'  {rule}\n' for rule in rules) + ' }\n}\n')


def test_a_late_refusal_names_the_line(ctl):
    """What only the namespace can refuse: a masquerade needs an address of its link."""
    ctl('rule', 'add', 't', 'forward', 'accept')
    before = ctl('rule', 'list', 't')
    text = ('table inet x {\n chain postrouting {\n'
            '  type nat hook postrouting priority srcnat\n  udp dport 1 accept\n'
            '  oifname "wan" masquerade\n }\n}\n')
    said = ctl('rule', 'replace', 't', '-', given=text, status=1)
    assert said.startswith('sluicectl: file: line 5: ') and said.count('\n') == 1
    said = ctl('rule', 'add', 't', 'postrouting', 'oifname "wan" masquerade', status=1)
    assert said.startswith('sluicectl: rule "oifname "wan" masquerade": ')
    text = nft_file('accept', 'ct helper set "ftp"')
    assert 'file: line 5: ct helper set: not available' in ctl(
        'rule', 'replace', 't', '-', given=text, status=1)
    assert ctl('rule', 'list', 't') == before


def test_many_rules_are_compiled_aside(daemon):
    """While that goes on others are served; a client's own requests wait for it, in order."""
    d = daemon('netns add t\n')
    busy, other = Rpc(d.socket), Rpc(d.socket)
    text = [nft_file(*(f'ip saddr 10.{i >> 8}.{i & 255}.0/24 tcp dport {n + i} drop'
                       for i in range(6000))).splitlines() for n in (1, 2)]
    sent = [busy.request('rule.replace', {'netns': 't', 'file': text[0]}),
            busy.request('rule.list', {'netns': 't'})]
    busy.send(b''.join(json.dumps(request).encode() + b'\n' for request in sent))
    served = 0
    while not select.select([busy.sock], [], [], 0)[0]:
        other.ok('netns.show', name='t')
        served += 1
    assert served > 0
    assert 'error' not in busy.answer(sent[0]['id'])[1]
    assert busy.answer(sent[1]['id'])[1]['result']['count'] == 6000
    # Two at once: one comes after the other, whole; and one whose client goes away changes nothing
    # that anyone could see by halves.
    sent = [client.request('rule.replace', {'netns': 't', 'file': lines})
            for client, lines in zip((busy, other), text)]
    for client, request in zip((busy, other), sent):
        client.send(json.dumps(request).encode() + b'\n')
    for client, request in zip((busy, other), sent):
        assert 'error' not in client.answer(request['id'])[1]
    listing = busy.request('rule.list', {'netns': 't'})
    busy.send(json.dumps(listing).encode() + b'\n')
    items = busy.answer(listing['id'])[0]
    ports = [int(item['rule'].split()[-2]) for item in items if 'rule' in item]
    assert ports in ([n + i for i in range(6000)] for n in (1, 2))
    busy.send(json.dumps(sent[0]).encode() + b'\n')
    busy.close()
    assert other.ok('netns.delete', names=['t']) is not None
    other.close()
