# SPDX-License-Identifier: BSD-3-Clause
"""Random rules: of forward and raw, of zones, and of translation with what they leave free."""

from choices import Free

MATCHES = ('ip saddr 198.51.100.10', 'ip daddr 192.0.2.0/24', 'ip6 saddr 2001:db8:1::/64',
           'ip saddr != 198.51.100.11', 'ip daddr { 192.0.2.80, 198.51.100.10 }',
           'meta l4proto tcp', 'meta l4proto { udp, sctp }', 'tcp dport 80', 'tcp sport 1-1000',
           'tcp dport != 80', 'udp sport { 40000, 80 }', 'tcp flags syn / fin,syn,rst,ack',
           'tcp flags fin', 'tcp flags & rst == rst', 'icmp type echo-request',
           'icmpv6 type { echo-request, echo-reply }', 'iifname "outside" udp dport 40000')
# Those that go with any other.
STATES = ('ct state new', 'ct state established', 'ct state { new, related }', 'ct state invalid',
          'ct mark 5', 'ct mark and 3 == 1', 'meta mark 7', 'iifname "inside"', 'oifname "inside"')
VERDICTS = ('accept', 'accept', 'drop', 'counter', 'ct mark set 5', 'meta mark set 7',
            'counter accept')
# Of a connection that is up the kernel makes another state of it (docs/differences.md).
REJECTS = ('meta l4proto udp reject', 'meta l4proto { icmp, icmpv6 } reject',
           'udp dport 80 reject with icmpx type admin-prohibited')
RAW = ('meta l4proto udp notrack', 'tcp dport 80 meta mark set 7', 'ip saddr 198.51.100.11 drop',
       'icmp type echo-reply drop', 'iifname "outside" meta l4proto tcp accept')

# Such that answers find their connection, and such that some do not.
ZONES = ('ct zone set 1', 'meta l4proto udp ct zone set 2', 'ct zone set 65535',
         'iifname "inside" ct original zone set 5', 'meta l4proto { icmp, icmpv6 } ct zone set 3',
         'ip6 saddr 2001:db8:1::/64 ct original zone set 2')
LOSING_ZONES = ('ip saddr 198.51.100.10 ct zone set 3', 'iifname "inside" ct zone set 4',
                'iifname "outside" ct reply zone set 5', 'ct original zone set 6',
                'ct reply zone set 7', 'tcp dport 80 ct zone set 1', 'tcp sport 80 ct zone set 1',
                'ip daddr 192.0.2.80 ct zone set 65535')
IN_ZONE = ('ct zone 1 drop', 'ct zone != 5 ct state new accept', 'ct zone { 3, 4 } drop',
           'ct zone and 3 == 3 ct mark set 5', 'ct zone 1-5 accept')

P, P6 = '203.0.113.1', '2001:db8:3::1'
SOURCES = (
    ((f'oifname "outside" snat ip to {P}', f'oifname "outside" snat ip6 to {P6}'), (P, f'[{P6}]')),
    ((f'oifname "outside" snat ip to {P} fully-random',), (P,)),
    ((f'meta l4proto {{ tcp, udp }} snat ip to {P}:5000-5099',), (f'{P}:5000-5099',)),
    ((f'meta l4proto udp snat ip6 to [{P6}]:6000-6099',), (f'[{P6}]:6000-6099',)),
    (('oifname "outside" masquerade',), ('10.255.2.1', '[fd00:2::1]')),
    (('oifname "outside" masquerade random',), ('10.255.2.1', '[fd00:2::1]')),
    (('oifname "outside" snat ip prefix to 203.0.113.0/24',), ()),
    ((), ()))
# To another server, or with another port. What is asked for is S and S6, which are the gateway's
# own then: nothing for them is left out.
TARGETS = ((), (), ('ip daddr 192.0.2.80 udp dport 80 dnat ip to 192.0.2.81:53',
                    'ip daddr 192.0.2.80 dnat ip to 192.0.2.81'),
           ('ip6 daddr 2001:db8:2::80 dnat ip6 to 2001:db8:2::81',),
           ('ip daddr 192.0.2.80 dnat ip to 192.0.2.81',),
           ('iifname "inside" meta l4proto { tcp, udp } redirect to :8080',))


def filtering(rng):
    """Rules of forward, and of raw now and then."""
    rules = []
    for _ in range(rng.randint(1, 4)):
        if rng.random() < 0.1:
            rules.append(('forward', rng.choice(REJECTS)))
            continue
        some = [rng.choice(of) for of in (STATES, MATCHES) if rng.random() < 0.6]
        rules.append(('forward', ' '.join([*some, rng.choice(VERDICTS)])))
    if rng.random() < 0.2:
        rules.append(('raw', rng.choice(RAW)))
    return rules


def zones(rng, some):
    """Rules that set zones, and of forward now and then."""
    rules = [('raw', rng.choice(some)) for _ in range(rng.choice((1, 1, 2, 3)))]
    if rng.random() < 0.3:
        rules.append(('forward', rng.choice(IN_ZONE)))
    return rules


def translation(rng):
    """(rules, what they leave free)."""
    sources, free = rng.choice(SOURCES)
    rules = [('prerouting', text) for text in rng.choice(TARGETS)]
    rules += [('postrouting', text) for text in sources]
    words = ' '.join(text for _, text in rules)
    # Of IPv6 the kernel then masquerades with the address that was redirected to.
    if not rules or ('redirect' in words and 'masquerade' in words):
        return translation(rng)
    # A port of a client may be taken where two servers have become one.
    own = ('198.51.100.10-198.51.100.11', '[2001:db8:1::10]')
    return rules, [Free(text) for text in (*free, *own)]
