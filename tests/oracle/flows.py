# SPDX-License-Identifier: BSD-3-Clause
"""Random connections, each of which says what it sends next: mostly what its ends would send, and
now and then something else."""

from packet import Packet

HOSTS = (('A', 'S'), ('B', 'S'), ('A6', 'S6'))
CLIENT_PORTS, SERVER_PORTS = (40000, 40001), (80,)

# What comes next on a TCP connection, by weight: flags and how plausible they are at any time.
FLAGS = (('S', 12), ('SA', 12), ('A', 30), ('PA', 20), ('FA', 10), ('R', 6), ('RA', 6), ('FPA', 1),
         ('SF', 1), ('F', 1), ('-', 1), ('AU', 1))
# Offsets from the right sequence or acknowledgement.
OFFSETS = ((0, 80), (1, 3), (-1, 3), (10, 2), (-10, 2), (1000, 2), (-1000, 2), (65535, 1),
           (65536, 1), (-66000, 1), (-66001, 1), (2**20, 1), (-2**20, 1), (2**31 - 5, 1),
           (2**31 + 5, 1))
STARTS = (1000, 0, 2**32 - 1, 2**32 - 500, 2**31 - 3, 77777777)
WINDOWS = ((65535, 6), (8192, 3), (1000, 2), (1, 1), (0, 1))
LENGTHS = ((0, 6), (1, 2), (10, 3), (1000, 2), (1400, 1))
SYN_OPTIONS = ('', '', 'mss:1460', 'ws:7', 'ws:0', 'sackok', 'mss:1460,sackok,ws:4', 'ws:14')


def pick(rng, weighted):
    return rng.choices([value for value, _ in weighted], [weight for _, weight in weighted])[0]


class End:
    """One end of a TCP connection: what it sends next, and what it has of the other's."""

    def __init__(self, host, port, start):
        self.host, self.port = host, port
        self.start = self.next = start
        self.seen = 0

    def __str__(self):
        return f'{self.host}:{self.port}'


class Tcp:
    def __init__(self, rng, client, server):
        self.rng = rng
        self.ends = (End(client, rng.choice(CLIENT_PORTS), rng.choice(STARTS)),
                     End(server, rng.choice(SERVER_PORTS), rng.choice(STARTS)))
        self.stage = 0

    def packet(self):
        """The next packet of an opening three times in four, else one by chance."""
        opening = (('S', 0), ('SA', 1), ('A', 0))
        if self.stage < len(opening) and self.rng.random() < 0.75:
            flags, side = opening[self.stage]
            self.stage += 1
        else:
            flags, side = pick(self.rng, FLAGS), self.rng.randrange(2)
        return self.segment(flags, self.ends[side], self.ends[1 - side])

    def segment(self, flags, end, peer):
        rng = self.rng
        if flags == 'S' and rng.random() < 0.2:
            end.next = rng.choice(STARTS)
        begin = end.next - 1 if 'S' in flags and rng.random() < 0.5 else end.next
        seq = (begin + pick(rng, OFFSETS)) % 2**32
        words = [f'{end} > {peer} tcp {flags} seq={seq}']
        if 'A' in flags:
            words.append(f'ack={(end.seen + pick(rng, OFFSETS)) % 2**32}')
        window, data = pick(rng, WINDOWS), 0
        if window != 65535:
            words.append(f'win={window}')
        if 'P' in flags or rng.random() < 0.03:
            data = pick(rng, LENGTHS)
        if data:
            words.append(f'data={data}')
        if 'S' in flags:
            options = rng.choice(SYN_OPTIONS)
            words += [f'opt={options}'] if options else []
        self.sent(flags, end, peer, seq, data)
        return ' '.join(words)

    def sent(self, flags, end, peer, seq, data):
        """Keeps what was sent, where it was in order, and mostly what arrived."""
        after = (seq + data + ('S' in flags) + ('F' in flags)) % 2**32
        if seq == end.next or 'S' in flags:
            end.next = after
        if self.rng.random() < 0.9:
            peer.seen = end.next


class Udp:
    def __init__(self, rng, client, server):
        self.rng = rng
        self.ends = (f'{client}:{rng.choice(CLIENT_PORTS)}', f'{server}:{rng.choice(SERVER_PORTS)}')

    def packet(self):
        src, dst = self.ends if self.rng.random() < 0.6 else self.ends[::-1]
        bad = ' badsum' if self.rng.random() < 0.05 else ''
        return f'{src} > {dst} udp data={self.rng.choice((0, 5, 100))}{bad}'


class Icmp:
    def __init__(self, rng, client, server):
        self.rng, self.client, self.server = rng, client, server
        self.ask, self.answer = (128, 129) if client.endswith('6') else (8, 0)

    def packet(self):
        rng, ident = self.rng, self.rng.choice((1, 2))
        kind, ends = rng.choice((
            (self.ask, (self.client, self.server)), (self.answer, (self.server, self.client)),
            (self.ask, (self.server, self.client)), (self.answer, (self.client, self.server))))
        return f'{ends[0]} > {ends[1]} icmp {kind} id={ident}'


class Sctp:
    """An association from INIT to its end, with packets lost, repeated and of wrong tags. What the
    documents say that differs (restarts, collisions, chunks out of the blue) is left out."""

    OPENING = (('INIT', 0), ('INIT-ACK', 1), ('COOKIE-ECHO', 0), ('COOKIE-ACK', 1))
    MIDDLE = ('DATA', 'SACK', 'DATA', 'HEARTBEAT', 'HEARTBEAT-ACK', 'ERROR')

    def __init__(self, rng, client, server):
        self.rng = rng
        # Of its own: two associations between the same ends would be a restart.
        self.ends = (f'{client}:{rng.randrange(1024, 65536)}', f'{server}:3868')
        self.tags = rng.choice((1, 7, 2**32 - 1)), rng.choice((2, 9, 2**31))
        closer = rng.randrange(2)
        middle = [(rng.choice(self.MIDDLE), rng.randrange(2)) for _ in range(rng.randrange(4))]
        closing = [('SHUTDOWN', closer), ('SHUTDOWN-ACK', 1 - closer),
                   ('SHUTDOWN-COMPLETE', closer)]
        if rng.random() < 0.2:
            closing = [('ABORT', closer)]
        later = [step for step in (*middle, *closing) if rng.random() < 0.9]
        self.script = [*self.OPENING, *later]
        self.at = 0

    def packet(self):
        rng = self.rng
        if self.at == len(self.script) or (self.at and rng.random() < 0.15):
            return self.segment(*self.script[self.at - 1])
        self.at += 1
        return self.segment(*self.script[self.at - 1])

    def segment(self, chunk, side):
        rng = self.rng
        tag = 0 if chunk == 'INIT' else self.tags[1 - side]
        if chunk in ('DATA', 'SACK', 'COOKIE-ACK', 'ABORT') and rng.random() < 0.1:
            tag = 5
        chunks = [f'{chunk}:{self.tags[side]}' if chunk in ('INIT', 'INIT-ACK') else chunk]
        if chunk in ('COOKIE-ECHO', 'COOKIE-ACK', 'SACK') and rng.random() < 0.2:
            chunks.append('DATA')
        return f'{self.ends[side]} > {self.ends[1 - side]} sctp tag={tag} {" ".join(chunks)}'


def error(rng, about):
    """An ICMP error about an earlier packet, from a router or an end, to its sender or another."""
    p = Packet(about)
    routers = {'A': 'R', 'B': 'R', 'S': 'Q', 'A6': 'R6', 'S6': 'Q6'}
    source = rng.choice((routers[p.src], p.dst))
    kind = rng.choice(('1/0', '2', '3') if p.v6 else ('3/1', '11/0', '3/4'))
    return f'{source} > {p.src} icmp {kind} [{about}] quote=128'


class CleanTcp:
    """A connection as two good stacks have it, with repetitions."""

    def __init__(self, rng, client, server):
        self.rng = rng
        self.ends = (f'{client}:{rng.choice(CLIENT_PORTS)}', f'{server}:80')
        self.next = [rng.choice(STARTS), rng.choice(STARTS)]
        self.script = [('S', 0), ('SA', 1), ('A', 0)]
        self.script += [('PA', rng.randrange(2)) for _ in range(rng.randrange(4))]
        closer = rng.randrange(2)
        self.script += [('FA', closer), ('FA', 1 - closer), ('A', closer)]
        self.last = None

    def packet(self):
        if not self.script or (self.last and self.rng.random() < 0.1):
            return self.last
        flags, side = self.script.pop(0)
        data = self.rng.choice((1, 10, 1000)) if 'P' in flags else 0
        src, dst = self.ends[side], self.ends[1 - side]
        ack = f' ack={self.next[1 - side]}' if 'A' in flags else ''
        self.last = f'{src} > {dst} tcp {flags} seq={self.next[side]}{ack}'
        if data:
            self.last += f' data={data}'
        moved = data + ('S' in flags) + ('F' in flags)
        self.next[side] = (self.next[side] + moved) % 2**32
        return self.last


class Echo(Icmp):
    """What the client asks and the server answers."""

    def packet(self):
        ident = self.rng.choice((1, 2))
        if self.rng.random() < 0.5:
            return f'{self.client} > {self.server} icmp {self.ask} id={ident}'
        return f'{self.server} > {self.client} icmp {self.answer} id={ident}'


# By weight: those that send anything, and those that go through a translation in order.
ANY = ((Tcp, 8), (Sctp, 2), (Udp, 1), (Icmp, 1))
CLEAN = ((CleanTcp, 3), (Sctp, 1), (Udp, 3), (Echo, 2))
