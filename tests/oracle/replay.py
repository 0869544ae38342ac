# SPDX-License-Identifier: BSD-3-Clause
"""Sluice as a gateway: many scenarios in one `sluice replay`. Each has its own namespace and VLAN,
so that none can see another, and its own stretch of the captures' time."""

import ipaddress
import json
import pathlib
import struct
import subprocess
import tempfile

import answers
import build
from answers import ICMPV6, Answer, Direction, Entry
from capture import SEC, read_pcap, write_pcap
from hosts import GATEWAY, OTHER, REDIRECT

START = 1_700_000_000 * SEC
STEP = SEC // 1000           # between the steps of a scenario
PASSES_MAX = 20
SCENARIOS_MAX = 4000         # VLAN ids
INVALID = {'pass': 'kernel', 'drop': 'drop'}
MACS = bytes.fromhex('020000000100020000000101')


def link_addresses(scenario):
    """Those that the rules use, as the kernel's links have them."""
    def uses(word):
        return any(word in text for _, text in scenario.rules)
    for side, link in (('in', 'inside'), ('out', 'outside')):
        if uses('redirect'):
            yield from ((link, address) for address in REDIRECT.get(side, ()))
        if uses('masquerade') or scenario.rejects:
            yield from ((link, address) for address in GATEWAY[side])


def config(scenarios):
    lines = ['port add in devargs net_null0', 'port add out devargs net_null1']
    for vlan, scenario in enumerate(scenarios, 1):
        ns = f'sc{vlan}'
        mac = f' mac {MACS[:6].hex(":")}' if scenario.addresses else ''
        lines += [f'netns add {ns}', f'link add inside{vlan} port in vlan {vlan} netns {ns}{mac}',
                  f'link add outside{vlan} port out vlan {vlan} netns {ns} peer inside{vlan}',
                  f'sysctl netns {ns} nf_conntrack_acct={int(scenario.counted)}',
                  f'sysctl netns {ns} sluice.nat_exhaustion_icmp=0']
        knobs = {'sluice.invalid': INVALID[scenario.invalid]} if scenario.invalid in INVALID else {}
        for key, value in (knobs | scenario.knobs).items():
            lines.append(f'sysctl netns {ns} {key}={value}')
        lines += [f'link address add {link}{vlan} {address}'
                  for link, address in link_addresses(scenario)]
        for text in scenario.addresses:
            link, address = text.split()
            lines.append(f'link address add {link}{vlan} {address}')
        for chain, text in scenario.rules:
            text = text.replace('"inside"', f'"inside{vlan}"')
            text = text.replace('"outside"', f'"outside{vlan}"')
            lines.append(f'rule add {ns} {chain} {text}')
    return '\n'.join([*lines, ''])


def introductions(scenario, vlan):
    """Where links have addresses, stations are asked for, and the packet that needs one waits. So
    the first packet is sent before the others, and its station says where it is; what connection
    there is then is flushed."""
    for text in scenario.addresses:
        first = scenario.steps[0].sent([])
        yield frame(vlan, build.ethertype(first.packet), first.data)
        gateway = ipaddress.ip_interface(text.split()[1]).ip
        if gateway.version == 4:
            yield frame(vlan, 0x0806, struct.pack('!HHBBH', 1, 0x0800, 6, 4, 2) + MACS[6:]
                        + build.address('B') + MACS[:6] + gateway.packed)
            continue
        station = build.address('B6')
        here = struct.pack('!BBHI', 136, 0, 0, 0x60000000) + station + b'\2\1' + MACS[6:]
        total = build.checksum(build.pseudo(station, gateway.packed, ICMPV6, len(here)) + here)
        yield frame(vlan, 0x86dd, struct.pack('!IHBB', 6 << 28, len(here), ICMPV6, 255) + station
                    + gateway.packed + here[:2] + struct.pack('!H', total) + here[4:])


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
                 tuple(Direction(protocol, d['src'], d['dst'], _ids(protocol, d),
                                 d.get('packets'), d.get('bytes'), item['zone'] or d.get('zone', 0))
                       for d in (item['orig'], item['reply'])))


class Refused(Exception):
    """sluice replay ended with another status than 0."""


class Replay:
    """sluice: path of the executable."""

    def __init__(self, sluice):
        self.sluice = sluice

    def run(self, scenarios):
        """For each scenario a list of Answers, one for each step."""
        assert len(scenarios) <= SCENARIOS_MAX
        some = [scenario for scenario in scenarios if scenario.steps]
        if not some:
            return [[] for _ in scenarios]
        with tempfile.TemporaryDirectory(prefix='sluice-oracle-') as tmp:
            answers_ = iter(self._run(some, pathlib.Path(tmp)))
        return [next(answers_) if scenario.steps else [] for scenario in scenarios]

    def _run(self, scenarios, tmp):
        """Some packets depend on what the gateway has chosen before: then the scenarios with such
        are run again with those, until they are what they have to be."""
        sent = [[step.sent([]) for step in scenario.steps] for scenario in scenarios]
        found = self._pass(scenarios, sent, tmp)
        some = [i for i, scenario in enumerate(scenarios) if scenario.depends]
        for _ in range(PASSES_MAX):
            now = [self._sent(scenarios[i], found[i]) for i in some]
            if all(a.data == b.data and a.side == b.side
                   for i, is_ in zip(some, now) for a, b in zip(sent[i], is_)):
                return found
            again = self._pass([scenarios[i] for i in some], now, tmp)
            for i, steps, answers_ in zip(some, now, again):
                sent[i], found[i] = steps, answers_
        raise AssertionError('what Sluice chooses depends on what it has chosen')

    @staticmethod
    def _sent(scenario, found):
        """The steps as they are after these answers."""
        before = [[], *(answer.entries for answer in found)]
        return [step.sent(entries) for step, entries in zip(scenario.steps, before)]

    def _pass(self, scenarios, sent, tmp):
        (tmp / 'conf').write_text(config(scenarios))
        arrivals, commands, at = {'in': [], 'out': []}, [], {}
        now = START
        for vlan, (scenario, steps) in enumerate(zip(scenarios, sent), 1):
            for data in introductions(scenario, vlan):
                now += STEP
                arrivals['in'].append((now, data))
            if scenario.addresses:
                commands.append((now + STEP // 2, f'conntrack flush netns sc{vlan}'))
            for n, step in enumerate(steps):
                now += STEP + round(step.after * SEC)
                at[now] = vlan - 1, n
                arrivals[step.side].append(
                    (now, frame(vlan, build.ethertype(step.packet), step.data)))
                commands.append((now + STEP // 2, f'conntrack list netns sc{vlan}'))
            commands.append((now + STEP // 2, f'conntrack flush netns sc{vlan}'))
        lines = self._replay(tmp, arrivals, commands)
        outputs = self._outputs(tmp, at)
        found = []
        for i, (scenario, steps) in enumerate(zip(scenarios, sent)):
            if scenario.addresses:
                next(lines)     # of the flush
            found.append([Answer(outputs.get((i, n), []), self._entries(next(lines)), step)
                          for n, step in enumerate(steps)])
            next(lines)
        return found

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
                where = at.get(time)
                if where is None:       # an answer to an introduction
                    continue
                vlan = int.from_bytes(data[14:16], 'big') & 0xFFF
                if vlan - 1 != where[0]:
                    raise AssertionError(f'a packet left in the VLAN of scenario {vlan - 1}')
                found.setdefault(where, []).append((side, data[18:]))
        return found
