# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces of the kernel, the veth pairs between them, and programs and sockets in them.

All interfaces are made within namespaces, so that the machine's own network sees nothing. Offloads
are off: between veths the kernel leaves checksums unfinished and segments merged, which a frame
from a wire never is."""

import ctypes
import os
import select
import signal
import socket
import struct
import subprocess
import threading

CLONE_NEWNET = 0x40000000
OFFLOADS = ['tx', 'off', 'rx', 'off', 'tso', 'off', 'gso', 'off', 'gro', 'off', 'txvlan', 'off',
            'rxvlan', 'off']

_libc = ctypes.CDLL(None, use_errno=True)


def sh(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f'{" ".join(words)}: {done.stderr or done.stdout}')
    return done.stdout


class Namespace:
    def __init__(self, name):
        self.name = name
        self.processes = []
        self.sockets = []
        sh('ip', 'netns', 'add', name)
        self.ip('link', 'set', 'lo', 'up')
        for knob in ('net.ipv6.conf.all.accept_dad=0', 'net.ipv6.conf.default.accept_dad=0',
                     'net.ipv4.icmp_ratelimit=0', 'net.ipv6.icmp.ratelimit=0'):
            self.run('sysctl', '-qw', knob)

    def ip(self, *words):
        return sh('ip', '-n', self.name, *words)

    def run(self, *words, timeout=20, status=0):
        """Output of a program; status None: any exit status is well."""
        done = subprocess.run(['ip', 'netns', 'exec', self.name, *words], capture_output=True,
                              text=True, timeout=timeout, stdin=subprocess.DEVNULL)
        if status is not None and done.returncode != status:
            raise AssertionError(f'{self.name}: {" ".join(words)}: status {done.returncode}\n'
                                 f'{done.stdout}{done.stderr}')
        return done.stdout

    def start(self, *words):
        process = subprocess.Popen(['ip', 'netns', 'exec', self.name, *words], text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        self.processes.append(process)
        return process

    def socket(self, family, kind):
        """A socket of this namespace in the test's own process; where it is made is what counts."""
        made = []

        def make():
            with open(f'/run/netns/{self.name}') as ns:
                if _libc.setns(ns.fileno(), CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), 'setns')
            made.append(socket.socket(family, kind))

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        made[0].settimeout(5)
        self.sockets.append(made[0])
        return made[0]

    def interface(self, name, *addresses):
        """Brings an interface up, with addresses."""
        for address in addresses:
            more = ['nodad'] if ':' in address else []
            self.ip('address', 'add', address, 'dev', name, *more)
        self.ip('link', 'set', name, 'up')

    def plain(self, name):
        """Turns offloads off; the ones that a driver has not are passed over."""
        self.run('ethtool', '-K', name, *OFFLOADS, status=None)

    def close(self):
        for s in self.sockets:
            s.close()
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
        subprocess.run(['ip', 'netns', 'delete', self.name], capture_output=True)


class Network:
    def __init__(self):
        self.namespaces = []
        self.switches = []

    def add(self, name):
        ns = Namespace(f'sluice-live-{os.getpid()}-{name}')
        self.namespaces.append(ns)
        return ns

    @staticmethod
    def veth(a, a_name, b, b_name):
        """A pair with one end in each namespace, up and without offloads."""
        sh('ip', 'link', 'add', a_name, 'netns', a.name, 'type', 'veth', 'peer', 'name', b_name,
           'netns', b.name)
        for ns, name in ((a, a_name), (b, b_name)):
            ns.plain(name)
            ns.ip('link', 'set', name, 'up')

    def switch(self, ns, trunk):
        """A Switch on an interface of a namespace."""
        switch = Switch(ns, trunk)
        self.switches.append(switch)
        return switch

    def close(self):
        for switch in self.switches:
            switch.close()
        for ns in self.namespaces:
            ns.close()


class Switch:
    """Tags what access interfaces send and puts it on a trunk, and back, by packet sockets: a
    kernel need not have VLAN interfaces. All interfaces are of one namespace."""

    ETH_P_ALL = socket.htons(3)
    PACKET_AUXDATA = 8
    VLAN_VALID = 0x10

    def __init__(self, ns, trunk):
        self.ns = ns
        self.trunk = self.open(trunk)
        self.trunk.setsockopt(263, self.PACKET_AUXDATA, 1)  # SOL_PACKET
        self.access = {}  # VLAN id: socket
        self.stopping, self.wake = os.pipe()
        self.thread = None

    def open(self, interface):
        s = self.ns.socket(socket.AF_PACKET, socket.SOCK_RAW)
        s.bind((interface, 3))
        s.setblocking(False)
        return s

    def add(self, vid, interface):
        self.access[vid] = self.open(interface)

    def start(self):
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        by_socket = {s: vid for vid, s in self.access.items()}
        while True:
            ready, _, _ = select.select([self.stopping, self.trunk, *by_socket], [], [])
            if self.stopping in ready:
                return
            for s in ready:
                try:
                    if s is self.trunk:
                        self.from_trunk()
                    else:
                        self.from_access(s, by_socket[s])
                except BlockingIOError:
                    pass

    def from_access(self, s, vid):
        frame, address = s.recvfrom(65536)
        if address[2] != socket.PACKET_OUTGOING:
            self.trunk.send(frame[:12] + struct.pack('!HH', 0x8100, vid) + frame[12:])

    def from_trunk(self):
        """The kernel takes the tag off and tells it beside the frame."""
        frame, extra, _, address = self.trunk.recvmsg(65536, 256)
        if address[2] == socket.PACKET_OUTGOING or not extra:
            return
        status, *_, tci, _ = struct.unpack('=IIIHHHH', extra[0][2][:20])
        if status & self.VLAN_VALID and tci & 0xfff in self.access:
            self.access[tci & 0xfff].send(frame)

    def close(self):
        if self.thread:
            os.write(self.wake, b'x')
            self.thread.join()
        os.close(self.wake)
        os.close(self.stopping)


class Echo:
    """A server that sends back what comes, on a socket of a namespace; TCP or UDP."""

    def __init__(self, ns, family, kind, address, port):
        self.listener = ns.socket(family, kind)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((address, port))
        self.kind = kind
        if kind == socket.SOCK_STREAM:
            self.listener.listen(16)
        self.stopping, self.wake = os.pipe()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        connections = []
        while True:
            ready, _, _ = select.select([self.stopping, self.listener, *connections], [], [])
            if self.stopping in ready:
                break
            for s in ready:
                if s is self.listener and self.kind == socket.SOCK_STREAM:
                    connections.append(s.accept()[0])
                elif s is self.listener:
                    data, peer = s.recvfrom(65536)
                    s.sendto(data, peer)
                else:
                    self.answer(s, connections)
        for s in connections:
            s.close()

    @staticmethod
    def answer(s, connections):
        try:
            data = s.recv(65536)
            if data:
                s.sendall(data)
                return
        except OSError:
            pass
        connections.remove(s)
        s.close()

    def close(self):
        os.write(self.wake, b'x')
        self.thread.join()
        os.close(self.wake)
        os.close(self.stopping)
        self.listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
