# SPDX-License-Identifier: BSD-3-Clause
"""Packets as scenarios write them:

    A:40000 > S:80 tcp S seq=1000 win=8192 opt=mss:1460,ws:7,sackok
    S:80 > A:40000 tcp PA seq=5001 ack=1001 data=100
    A6:5000 > S6:53 udp data=20 badsum
    A > S icmp 8 id=7                  type, or type/code; over IPv6 it is ICMPv6
    R > A icmp 3/1 [A:5000 > S:53 udp] quote=28
    A:5000 > S:3868 sctp tag=0 INIT:7
    A > S gre type=0x880b version=1 call=9
    A > S proto=89 data=20

Hosts are those of hosts.py. What is not written is made right: lengths, sums, a TTL of 64. build.py
says which fields there are. What any packet may have besides:

    badsum           a wrong transport checksum
    ipopt=HEX        options of IPv4
    ext=TYPE:HEX,…   extension headers of IPv6, in order, each without its first octet
    patch=OFF:HEX,…  octets of the finished IP packet replaced; resum: and the IPv4 sum made right
    cut=N  pad=N     without its last N octets; with N octets behind it
"""

import functools
import re

from hosts import ADDRESS, is_v6

NUMBER = re.compile(r'(0x[0-9a-f]+|[0-9]+)([+*^-](0x[0-9a-f]+|[0-9]+))*')
PROTOCOLS = {'icmp': 1, 'tcp': 6, 'udp': 17, 'gre': 47, 'sctp': 132, 'udplite': 136}
ICMPV6 = 58


class Malformed(ValueError):
    pass


@functools.lru_cache(maxsize=4096)
def number(text):
    """A number, or a sum or power of numbers: 2^32-20."""
    if not NUMBER.fullmatch(text):
        raise Malformed(f'not a number: {text}')
    return eval(text.replace('^', '**'), {'__builtins__': {}})


class Packet:
    """A packet's text, taken apart. The text is kept: it is the packet."""

    def __init__(self, text):
        self.text = ' '.join(text.split())
        rest, self.quoted = self._take_quoted(self.text)
        words = rest.split()
        if len(words) < 4 or words[1] != '>':
            raise Malformed(f'SOURCE > DESTINATION PROTOCOL … expected: {text}')
        self.src, self.sport = self._endpoint(words[0])
        self.dst, self.dport = self._endpoint(words[2])
        self.v6 = is_v6(self.src)
        if self.v6 != is_v6(self.dst):
            raise Malformed(f'two families: {text}')
        self.args, self.words = {}, []
        for word in words[4:]:
            key, equals, value = word.partition('=')
            if equals:
                self.args[key] = value
            else:
                self.words.append(word)
        self.proto, _, of = words[3].partition('=')
        if self.proto == 'proto':
            self.protocol = number(of)
        elif self.proto == 'icmp' and self.v6:
            self.protocol = ICMPV6
        elif self.proto in PROTOCOLS:
            self.protocol = PROTOCOLS[self.proto]
        else:
            raise Malformed(f'no such protocol: {words[3]}')

    @staticmethod
    def _take_quoted(text):
        if '[' not in text:
            return text, None
        begin, end = text.index('['), text.rindex(']')
        return text[:begin] + text[end + 1:], Packet(text[begin + 1:end])

    @staticmethod
    def _endpoint(word):
        host, _, port = word.partition(':')
        if host not in ADDRESS:
            raise Malformed(f'no such host: {host}')
        return host, int(port) if port else None

    def get(self, key, default=0):
        return number(self.args[key]) if key in self.args else default

    @property
    def ids(self):
        """What a tuple has besides addresses: ports, (type, code, id) of ICMP, keys of GRE."""
        if self.sport is not None:
            return self.sport, self.dport
        if self.proto == 'icmp':
            kind, _, code = self.words[0].partition('/')
            return int(kind), int(code or 0), self.get('id')
        if self.proto == 'gre':
            return 0, self.get('call')
        return ()

    def octets(self, default=0):
        """What it carries: hex=…, or data=N octets of filler."""
        if 'hex' in self.args:
            return bytes.fromhex(self.args['hex'])
        n = self.get('data', default)
        return (b'sluice-' * (n // 7 + 1))[:n]

    def __str__(self):
        return self.text
