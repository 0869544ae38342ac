# SPDX-License-Identifier: BSD-3-Clause
"""The address plan of all scenarios, and which side of the gateway each host is on."""

import ipaddress

INSIDE = {
    'A': '198.51.100.10', 'B': '198.51.100.11', 'C': '198.51.100.12', 'Q': '198.51.100.1',
    'A6': '2001:db8:1::10', 'B6': '2001:db8:1::11', 'C6': '2001:db8:1::12', 'Q6': '2001:db8:1::1',
}
OUTSIDE = {
    'S': '192.0.2.80', 'S2': '192.0.2.81', 'R': '192.0.2.1', 'M': '192.0.2.66',
    'P': '203.0.113.1', 'P2': '203.0.113.2', 'P6': '2001:db8:3::1',   # of NAT rules alone
    'D': '192.0.2.90', 'D6': '2001:db8:2::90',      # where `redirect` on the inside link leads
    'G': '10.255.2.1', 'G6': 'fd00:2::1',           # of the gateway's outside link
    'S6': '2001:db8:2::80', 'T6': '2001:db8:2::81', 'R6': '2001:db8:2::1', 'M6': '2001:db8:2::66',
}
PREFIXES = {
    'in': ('198.51.100.0/24', '2001:db8:1::/64'),
    'out': ('192.0.2.0/24', '2001:db8:2::/64'),
}
# Addresses of the gateway's own links, and before these one that `redirect` chooses.
GATEWAY = {'in': ('10.255.1.1/30', 'fd00:1::1/64'), 'out': ('10.255.2.1/30', 'fd00:2::1/64')}
REDIRECT = {'in': ('192.0.2.90/32', '2001:db8:2::90/128')}
# What rules translate sources to: addresses of the outside link, and of no link.
TRANSLATED = [ipaddress.ip_network(text) for text in (
    '203.0.113.0/24', '2001:db8:3::/64', '10.255.2.1/32', 'fd00:2::1/128')]
OTHER = {'in': 'out', 'out': 'in'}

ADDRESS = INSIDE | OUTSIDE
NAME = {address: name for name, address in ADDRESS.items()}


def side_of(host):
    return 'in' if host in INSIDE else 'out'


def is_v6(host):
    return ':' in ADDRESS[host]


def name_of(address):
    """Short name of an address, or the address itself when it has none."""
    return NAME.get(address, address)


def host_of(address, like):
    """The name of an address; one without gets itself for a name, on the side of the host like."""
    name = name_of(address)
    if name not in ADDRESS:
        name = address.replace(':', '_')
        ADDRESS[name] = address
        if like in INSIDE:
            INSIDE[name] = address
    return name
