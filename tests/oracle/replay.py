# SPDX-License-Identifier: BSD-3-Clause
"""Sluice as a gateway: many scenarios in one `sluice replay`. Each has its own namespace and VLAN,
so that none can see another, and its own stretch of the captures' time."""

import json
import pathlib
import subprocess
import tempfile

import answers
import build
from answers import Answer, Direction, Entry
from capture import SEC, read_pcap, write_pcap
from hosts import OTHER

START = 1_700_000_000 * SEC
STEP = SEC // 1000           # between the steps of a scenario
GAP = SEC                    # between scenarios
SCENARIOS_MAX = 4000         # VLAN ids
MACS = bytes.fromhex('020000000100020000000101')
NOT_AVAILABLE = 'not available'


def config(scenarios):
    lines = ['port add in devargs net_null0', 'port add out devargs net_null1']
    for vlan, scenario in enumerate(scenarios, 1):
        ns = f'sc{vlan}'
        lines += [f'netns add {ns}', f'link add inside{vlan} port in vlan {vlan} netns {ns}',
                  f'link add outside{vlan} port out vlan {vlan} netns {ns} peer inside{vlan}',
                  f'sysctl netns {ns} nf_conntrack_acct=1']
        knobs = {'sluice.invalid': 'kernel' if scenario.invalid == 'pass' else 'drop'}
        for key, value in (knobs | scenario.knobs).items():
            lines.append(f'sysctl netns {ns} {key}={value}')
        for chain, text in scenario.rules:
            text = text.replace('"inside"', f'"inside{vlan}"')
            text = text.replace('"outside"', f'"outside{vlan}"')
            lines.append(f'rule add {ns} {chain} {text}')
    return '\n'.join([*lines, ''])


def frame(vlan, kind, packet):
    return MACS + b'\x81\0' + vlan.to_bytes(2, 'big') + kind.to_bytes(2, 'big') + packet


def _ids(protocol, d):
    if protocol in answers.WITH_PORTS:
        return d['sport'], d['dport']
    if protocol == answers.GRE:
        return d['srckey'], d['dstkey']
    return (d['type'], d['code'], d['id']) if 'type' in d else ()


def entry_of(item):
    """An entry of `conntrack list`."""
    protocol = item['protonum']
    return Entry(protocol, item['state'], item['timeout'],
                 answers.flags_of('SEEN_REPLY' in item['status'], 'ASSURED' in item['status']),
                 tuple(Direction(protocol, d['src'], d['dst'], _ids(protocol, d), d['packets'],
                                 d['bytes']) for d in (item['orig'], item['reply'])))


class Refused(Exception):
    """sluice replay ended with another status than 0."""


class Replay:
    """sluice: path of the executable."""

    def __init__(self, sluice):
        self.sluice = sluice
        self._has = {}

    def has(self, what):
        """Whether Sluice has got a part that scenarios may need."""
        if what not in self._has:
            self._has[what] = {'rules': self._has_rules, 'fragments': self._has_fragments}[what]()
        return self._has[what]

    @staticmethod
    def _probe(*texts):
        from scenario import Reader
        reader = Reader(pathlib.Path('probe'))
        for number, text in enumerate(('scenario probe', *texts), 1):
            reader.line(text, number)
        return reader.scenarios

    def _has_rules(self):
        scenarios = self._probe('rule forward counter', 'A > S icmp 8')
        try:
            self.run(scenarios)
        except Refused as e:
            if NOT_AVAILABLE in str(e):
                return False
            raise
        return True

    def _has_fragments(self):
        scenarios = self._probe('datagram d A:5 > S:5 udp data=1000', 'fragment d 0-504',
                                'fragment d 504-')
        return any(answer.outputs for answer in self.run(scenarios)[0])

    def run(self, scenarios):
        """For each scenario a list of Answers, one for each step."""
        assert len(scenarios) <= SCENARIOS_MAX
        if not scenarios:
            return []
        with tempfile.TemporaryDirectory(prefix='sluice-oracle-') as tmp:
            return self._run(scenarios, pathlib.Path(tmp))

    def _run(self, scenarios, tmp):
        (tmp / 'conf').write_text(config(scenarios))
        arrivals, commands, at = {'in': [], 'out': []}, [], {}
        now = START
        for vlan, scenario in enumerate(scenarios, 1):
            for n, step in enumerate(scenario.steps):
                now += STEP + round(step.after * SEC)
                at[now] = vlan - 1, n
                arrivals[step.side].append(
                    (now, frame(vlan, build.ethertype(step.packet), step.data)))
                commands.append((now + STEP // 2, f'conntrack list netns sc{vlan}'))
            commands.append((now + STEP // 2, f'conntrack flush netns sc{vlan}'))
            now += GAP
        lines = self._replay(tmp, arrivals, commands)
        outputs = self._outputs(tmp, at)
        return [[Answer(outputs.get((i, n), []), self._entries(next(lines)))
                 for n in range(len(scenario.steps))] + self._flushed(lines)
                for i, scenario in enumerate(scenarios)]

    @staticmethod
    def _flushed(lines):
        next(lines)
        return []

    def _replay(self, tmp, arrivals, commands):
        first = min(packets[0][0] for packets in arrivals.values() if packets)
        args = [str(self.sluice), 'replay', '-c', str(tmp / 'conf')]
        for side, packets in arrivals.items():
            write_pcap(tmp / f'{side}.pcap', packets)
            args += ['--rx', f'{side}={tmp}/{side}.pcap', '--tx', f'{side}={tmp}/{side}.out']
        for time, command in commands:
            time -= first
            args += ['--at', f'{time // SEC}.{time % SEC:09d}', command]
        done = subprocess.run(args, capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise Refused(done.stderr + done.stdout)
        return iter(done.stdout.splitlines())

    @staticmethod
    def _entries(line):
        return [entry_of(item) for item in json.loads(line)['items']]

    @staticmethod
    def _outputs(tmp, at):
        found = {}
        for side in OTHER:
            for time, data in read_pcap(tmp / f'{side}.out'):
                where = at[time]
                vlan = int.from_bytes(data[14:16], 'big') & 0xFFF
                if vlan - 1 != where[0]:
                    raise AssertionError(f'a packet left in the VLAN of scenario {vlan - 1}')
                found.setdefault(where, []).append((side, data[18:]))
        return found
