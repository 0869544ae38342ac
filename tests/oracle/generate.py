# SPDX-License-Identifier: BSD-3-Clause
"""Random scenarios: a few connections between a few hosts (flows.py), with rules, translation,
zones or fragments in some. The same seed gives the same scenarios."""

import random

import flows
import generate_rules
import scenario
from flows import pick
from packet import Packet

LENGTH = (5, 16)
FRAGMENT_MAX = 1400
KNOBS = (('nf_conntrack_tcp_loose', 0), ('nf_conntrack_tcp_be_liberal', 1),
         ('nf_conntrack_tcp_ignore_invalid_rst', 1), ('nf_conntrack_tcp_max_retrans', 1),
         ('nf_conntrack_udp_timeout', 7), ('nf_conntrack_udp_timeout_stream', 77),
         ('nf_conntrack_icmp_timeout', 5), ('nf_conntrack_tcp_timeout_established', 1000),
         ('nf_conntrack_tcp_timeout_unacknowledged', 50),
         ('nf_conntrack_sctp_timeout_established', 500))


def some_flows(rng, kinds):
    return [pick(rng, kinds)(rng, *rng.choice(flows.HOSTS))
            for _ in range(rng.choice((1, 1, 1, 2, 3)))]


def answering(text):
    """A packet of a server, written by the connection that it belongs to."""
    src, _, dst, *words = text.split()
    return scenario.Answering(Packet(' '.join([dst, '>', src, *words])), 0,
                              f'answer {dst} > {src} {" ".join(words)}')


def error_about(rng, packet):
    router = 'R6' if packet.v6 else 'R'
    kind = rng.choice(('1/0', '2', '3/0') if packet.v6 else ('3/1', '11/0', '3/4'))
    return scenario.Error(f'{router} icmp {kind}', packet, 0,
                          f'error {router} icmp {kind} {packet}')


def related(rng, kinds):
    """Steps of some connections, where what the server sends depends on what the gateway has made
    of what the client sent."""
    some, steps, asked = some_flows(rng, kinds), [], []
    for _ in range(rng.randint(*LENGTH)):
        text = rng.choice(some).packet().removesuffix(' badsum')
        p = Packet(text)
        # INVALID packets are not translated, and for the gateway (nat-own-address).
        if 'tag=5' in text.split():
            continue
        if scenario.side_of(p.src) == 'out':
            steps.append(answering(text))
            continue
        steps.append(scenario.Step(p))
        asked.append(p)
        if rng.random() < 0.1:
            steps.append(error_about(rng, rng.choice(asked)))
    return steps


def without_sctp(kinds):
    """Where a part of an association is dropped or not seen, the rest is out of the blue."""
    return [one for one in kinds if one[0] is not flows.Sctp]


def filtered(rng, s):
    """Rules of a filter beside others. Of a link's addresses, of which `redirect` needs a second
    one, either gateway chooses another for its errors. Where `dnat` has made an address the
    gateway's own, what is not tracked is for it (nat-own-address)."""
    def has(word):
        return any(word in text for _, text in s.rules)
    out = [word for word, other in (('reject', 'redirect'), ('notrack', 'dnat')) if has(other)]
    return [(chain, text) for chain, text in generate_rules.filtering(rng)
            if not any(word in text for word in out)]


def translated(rng, s):
    s.rules, s.free = generate_rules.translation(rng)
    kinds = flows.CLEAN
    if rng.random() < 0.35:
        s.rules += filtered(rng, s)
        kinds = without_sctp(kinds)
    s.steps = related(rng, kinds)


def zoned(rng, s):
    if rng.random() < 0.3:
        rules, s.free = generate_rules.translation(rng)
        s.rules = generate_rules.zones(rng, generate_rules.ZONES) + rules
        s.rules += filtered(rng, s) if rng.random() < 0.3 else []
        s.steps = related(rng, without_sctp(flows.CLEAN))
        return
    s.rules = generate_rules.zones(rng, generate_rules.ZONES + generate_rules.LOSING_ZONES)
    s.rules += filtered(rng, s) if rng.random() < 0.3 else []
    kinds = rng.choice((flows.CLEAN, flows.ANY))
    s.steps = [scenario.Step(Packet(text)) for text in texts(rng, without_sctp(kinds))]


def spans(rng, size):
    """The fragments of a datagram: in any order, some twice, overlapping or lost."""
    cuts = sorted({*rng.sample(range(8, size, 8), rng.randint(1, 4)),
                   *range(FRAGMENT_MAX, size, FRAGMENT_MAX)})
    found = [f'{a}-{b}' for a, b in zip([0, *cuts], [*cuts, ''])]
    if rng.random() < 0.3:
        rng.shuffle(found)
    if rng.random() < 0.2:
        found.insert(rng.randrange(len(found) + 1), rng.choice(found))
    if rng.random() < 0.1:
        at = rng.randrange(0, size - 16, 8)
        found.insert(rng.randrange(len(found) + 1), f'{at}-{at + 8}')
    if rng.random() < 0.1:
        found.remove(rng.choice(found))
    return found


def datagram(rng, s, text):
    """Adds a datagram of a random size and its fragments."""
    name, size = f'd{len(s.datagrams)}', rng.choice((600, 1500, 2900))
    s.datagrams[name] = scenario.Datagram(f'{text} data={size - 8} ipid={len(s.datagrams) + 1}')
    s.steps += [scenario.fragment(s, name, span) for span in spans(rng, size)]


def fragmented(rng, s):
    """Datagrams in fragments, and now and then their answers, too, or some with rules."""
    what = rng.random()
    if what < 0.4:
        s.rules, s.free = generate_rules.translation(rng)
    elif what < 0.6:
        s.rules = generate_rules.filtering(rng)
    for n in range(rng.choice((1, 1, 2))):
        client, server = rng.choice(flows.HOSTS)
        v6 = client.endswith('6')
        ends = f'{client}:{5000 + n} > {server}:53 udp'
        ask, answer = rng.choice(((ends, ends), (
            f'{client} > {server} icmp {128 if v6 else 8} id={n + 1}',
            f'{client} > {server} icmp {129 if v6 else 0} id={n + 1}')))
        if rng.random() < 0.8:
            datagram(rng, s, ask)
        if rng.random() < 0.5 or not s.steps:
            datagram(rng, s, f'answer {answer}')


def plain(rng, s):
    """Anything between the ends, with rules in a third."""
    if rng.random() < 0.3:
        s.rules = generate_rules.filtering(rng)
    kinds = without_sctp(flows.ANY) if s.rules else flows.ANY
    s.steps = [scenario.Step(Packet(text)) for text in texts(rng, kinds)]


def texts(rng, kinds):
    """Packets of some connections, and errors about them."""
    some, sent = some_flows(rng, kinds), []
    for _ in range(rng.randint(*LENGTH)):
        quotable = [text for text in sent if '[' not in text]
        if quotable and rng.random() < 0.03:
            sent.append(flows.error(rng, rng.choice(quotable)))
        else:
            sent.append(rng.choice(some).packet())
    return sent


WHAT = ((plain, 64), (translated, 15), (fragmented, 13), (zoned, 8))


def one(rng, name):
    """A scenario."""
    s = scenario.Scenario(name)
    s.knobs = {key: str(value) for key, value in KNOBS if rng.random() < 0.1}
    make = pick(rng, WHAT)
    make(rng, s)
    if rng.random() < 0.2 and not s.translates:
        s.invalid = 'pass'
    return s


def scenarios(seed):
    """Scenarios without end."""
    rng = random.Random(seed)
    n = 0
    while True:
        n += 1
        s = one(rng, f'random, seed {seed}, number {n}')
        s.counted = n % 2 == 0
        yield s
