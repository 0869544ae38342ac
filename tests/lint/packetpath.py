# SPDX-License-Identifier: BSD-3-Clause
"""What the packet path can reach calls no allocator, printer, log, clock or system call.

Starts from the functions that a worker calls for a burst, and follows every name of a function,
macro or table of operations in their bodies; so a helper in another file, or a state machine behind
a table, is found without anybody listing it."""

import re

import csource

ROOTS = ('datapath_burst', 'datapath_flush', 'ct_sweep')
# Receive and transmit functions of ports are called through port_ops.
ROOT_FIELDS = re.compile(r'\.(?:rx|tx) = (\w+)')

# Ports that read and write capture files; no worker of a live gateway polls one.
CAPTURE_FILES = re.compile(r'app/replay\w*\.c')

FORBIDDEN = {
    'prints': 'printf fprintf sprintf snprintf vsnprintf vfprintf puts fputs putchar perror fwrite',
    'logs': 'rte_log rte_vlog RTE_LOG SL_LOG sl_log syslog',
    'allocates from the heap': 'malloc calloc realloc free strdup asprintf aligned_alloc '
                               'posix_memalign rte_malloc rte_zmalloc rte_calloc rte_realloc '
                               'rte_free rte_malloc_socket rte_zmalloc_socket sl_region_grow '
                               'sl_region_reserve sl_region_release',
    'enters the kernel': 'read write open close mmap munmap madvise ioctl send sendto sendmsg recv '
                         'recvfrom recvmsg poll ppoll select epoll_wait nanosleep usleep sleep '
                         'sched_yield syscall futex getrandom',
    'reads a clock': 'clock_gettime gettimeofday time sl_now_monotonic',
    'takes a sleeping lock or waits': 'pthread_mutex_lock pthread_cond_wait pthread_rwlock_rdlock '
                                      'pthread_rwlock_wrlock sem_wait synchronize_rcu call_rcu '
                                      'urcu_qsbr_synchronize_rcu sl_rcu_synchronize sl_rcu_call',
    'writes an error for the control side': 'sl_refuse',
}
WHY = {name: why for why, names in FORBIDDEN.items() for name in names.split()}


class CallGraph:
    """sources: {path: text} of lib/ and app/."""

    def __init__(self, sources):
        self.by_name = {}
        self.roots = set(ROOTS)
        for path, text in sources.items():
            if not CAPTURE_FILES.fullmatch(path):
                self.roots.update(ROOT_FIELDS.findall(csource.strip(text)))
            for d in csource.definitions(text):
                self.by_name.setdefault(d.name, []).append((path, d))

    def choose(self, path, name):
        """Definitions that `name` may mean in `path`: its file's own before others'."""
        found = self.by_name.get(name, [])
        own = [entry for entry in found if entry[0] == path]
        return own or [e for e in found if not e[1].local or e[0].endswith('.h')]

    def walk(self, stop=()):
        """Yields (path, definition, the names that lead to it), each definition once."""
        todo = [(p, d, (d.name,)) for root in sorted(self.roots)
                for p, d in self.by_name.get(root, [])]
        seen = set()
        while todo:
            path, d, way = todo.pop()
            if (path, d.line, d.name) in seen or d.name in stop:
                continue
            seen.add((path, d.line, d.name))
            yield path, d, way
            for name in sorted(d.names()):
                todo += [(p, n, way + (name,)) for p, n in self.choose(path, name)]

    def violations(self, stop=()):
        """(path, line, what) for each forbidden call that a packet can come to."""
        for path, d, way in self.walk(stop):
            for name in sorted(d.calls() & WHY.keys()):
                yield path, d.line, f'{name}() {WHY[name]}: ' + ' > '.join(way + (name,))
