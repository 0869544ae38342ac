# SPDX-License-Identifier: BSD-3-Clause
"""A case of the path ring: packets into a gateway, by `sluice replay`, and what must come of it.

    case.at(0).inside(tcp(A(40000) > S(80), 'S', seq=1000))
    case.at(1).outside(tcp(S(80) > A(40000), 'R'), drop='invalid-tcp-state')
    case.at(2).entries(entry(A(40000) > S(80), 'tcp', state='SYN_SENT', left=118, unreplied=True))
    case.replay()

replay() runs the gateway and checks all of it: each packet without `drop` leaves on the other port
at its own time, byte for byte, in order, and nothing else leaves; the drops counted are those said
and no others; listings and counts are as said at their moments."""
import json
import subprocess

from capture import SEC, read_pcap, write_pcap

START = 1_700_000_000 * SEC

CONFIG = '''\
port add in devargs net_null0
port add out devargs net_null1
netns add T1
link add inside port in netns T1
link add outside port out netns T1 peer inside
'''


def nanoseconds(seconds):
    return round(seconds * SEC)


def run_replay(sluice, *args, timeout=60):
    """The finished process. args: those behind `replay`."""
    return subprocess.run([sluice, 'replay', *map(str, args)], capture_output=True, text=True,
                          timeout=timeout, check=False)


def entry(flow, proto, **want):
    """An entry that a listing must have. flow: the original direction; its ports are not compared
    where they are None. Of `want`, `left` is the seconds left, `unreplied` and `assured` are what
    conntrack(8) shows in brackets, `packets` the counts of the two directions, `orig` and `reply`
    fields of the directions; all others are fields of the entry itself."""
    return flow, proto, want


def refused(invalid, reason):
    """Of an INVALID packet, by the value of sluice.invalid: dropped for the reason, or passed."""
    return {'drop': reason} if invalid == 'drop' else {}


class Mismatch(AssertionError):
    pass


def _direction(flow):
    want = {'src': flow.src.addr, 'dst': flow.dst.addr}
    if flow.src.port is not None:
        want |= {'sport': flow.src.port, 'dport': flow.dst.port}
    return want


def _expected(flow, proto, want):
    want = dict(want)
    fields = {'family': 'ipv6' if flow.v6 else 'ipv4', 'proto': proto}
    sides = {'orig': _direction(flow), 'reply': _direction(~flow)}
    packets = want.pop('packets', None)
    if packets is not None:
        sides['orig']['packets'], sides['reply']['packets'] = packets
    if 'left' in want:
        fields['timeout'] = want.pop('left')
    for side in sides:
        sides[side] |= want.pop(side, {})
    flags = {name: want.pop(name.lower(), False) for name in ('ASSURED', 'UNREPLIED')}
    return fields | want, sides, flags


def matches(item, expected):
    """Whether an entry of a listing is the one of entry()."""
    fields, sides, flags = _expected(*expected)
    seen = {'ASSURED': 'ASSURED' in item['status'], 'UNREPLIED': 'SEEN_REPLY' not in item['status']}
    return (seen == flags and all(item.get(k) == v for k, v in fields.items())
            and all(item[side].get(k) == v for side, want in sides.items()
                    for k, v in want.items()))


def check_entries(result, expected, where):
    """Exactly the expected entries, in any order."""
    left = list(result['items'])
    if result['count'] != len(left):
        raise Mismatch(f'{where}: count {result["count"]}, but {len(left)} items')
    for want in expected:
        found = next((item for item in left if matches(item, want)), None)
        if found is None:
            raise Mismatch(f'{where}: no {_expected(*want)} among\n' +
                           '\n'.join(map(json.dumps, result['items'])))
        left.remove(found)
    if left:
        raise Mismatch(f'{where}: not expected\n' + '\n'.join(map(json.dumps, left)))


class Moment:
    """What happens at one time of a case."""

    def __init__(self, case, ns):
        self.case, self.ns = case, ns

    def frame(self, port, frame, drop=None, becomes=None, back=()):
        """A frame that arrives on `port`. drop: the reason it is dropped for. becomes: as what it
        leaves. back: what leaves on `port` in its place, or as well with `becomes` or `drop`; an
        empty list: nothing."""
        case = self.case
        case.arrivals.append((self.ns, port, frame))
        case.departures += [(self.ns, port, answer) for answer in back]
        if drop is not None:
            case.drops[drop] = case.drops.get(drop, 0) + 1
        elif becomes is not None or back == ():
            case.departures.append((self.ns, case.peer[port], becomes or frame))
        return self

    def inside(self, frame, **want):
        return self.frame('in', frame, **want)

    def outside(self, frame, **want):
        return self.frame('out', frame, **want)

    def run(self, command, check=None):
        """Runs a command; check(result) may look at its JSON."""
        self.case.commands.append((self.ns, command, check))
        return self

    def entries(self, *expected, netns='T1'):
        where = f'at {self.ns / SEC:g} s'
        return self.run(f'conntrack list netns {netns}',
                        lambda result: check_entries(result, expected, where))


class Case:
    """netns T1 with a wire between the ports `in` and `out`, unless `config` says otherwise.
    knobs: of T1, short names. start: time of the first packet."""

    def __init__(self, sluice, path, config=CONFIG, knobs=None, start=START):
        self.sluice, self.path, self.start = sluice, path, start
        self.config = config + ''.join(f'sysctl {key}={value} netns T1\n'
                                       for key, value in (knobs or {}).items())
        self.peer = {'in': 'out', 'out': 'in'}
        self.arrivals, self.departures, self.commands = [], [], []
        self.drops = {}

    def at(self, seconds):
        return Moment(self, nanoseconds(seconds))

    def replay(self):
        """Runs the case and checks what came of it."""
        end = max(ns for ns, *_ in self.arrivals + self.commands) + 1
        self.commands.append((end, 'drops', self._check_drops))
        self.commands.sort(key=lambda command: command[0])
        args = self._write()
        for ns, command, _ in self.commands:
            args += ['--at', f'{ns // SEC}.{ns % SEC:09d}', command]
        done = run_replay(self.sluice, *args)
        assert done.returncode == 0, done.stderr + done.stdout
        lines = done.stdout.splitlines()
        assert len(lines) == len(self.commands), done.stdout
        self._check_departures()
        for (_, _, check), line in zip(self.commands, lines):
            if check is not None:
                check(json.loads(line))
        return self

    def _write(self):
        (self.path / 'sluice.conf').write_text(self.config)
        args = ['-c', self.path / 'sluice.conf']
        assert not self.arrivals or min(ns for ns, *_ in self.arrivals) == 0, 'time 0 is a packet'
        for port in self.peer:
            packets = [(self.start + ns, frame) for ns, p, frame in self.arrivals if p == port]
            packets.sort(key=lambda packet: packet[0])
            write_pcap(self.path / f'{port}.pcap', packets)
            args += ['--rx', f'{port}={self.path}/{port}.pcap',
                     '--tx', f'{port}={self.path}/{port}.out.pcap']
        return args

    def output(self, port):
        """What left on a port: (time after the first packet in ns, frame)."""
        return [(ns - self.start, frame)
                for ns, frame in read_pcap(self.path / f'{port}.out.pcap')]

    def _check_departures(self):
        for port in self.peer:
            want = sorted(((ns, frame) for ns, p, frame in self.departures if p == port),
                          key=lambda packet: packet[0])
            got = self.output(port)
            if got == want:
                continue
            for i, (g, w) in enumerate(zip(got, want)):
                if g != w:
                    raise Mismatch(f'port {port}, packet {i + 1}:\n'
                                   f' got {g[0] / SEC:.9f} {g[1].hex()}\nwant {w[0] / SEC:.9f} '
                                   f'{w[1].hex()}')
            raise Mismatch(f'port {port}: {len(got)} packets, want {len(want)}')

    def _check_drops(self, result):
        got = {item['reason']: item['packets'] for item in result['items']}
        if got != self.drops:
            raise Mismatch(f'drops {got}, want {self.drops}')
