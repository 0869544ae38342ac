/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's AF_PACKET driver joins the queues of a port to a fanout group, and asks the kernel to
 * reassemble IPv4 for it, without an option not to. Of a datagram that came in fragments the
 * gateway would then see one frame longer than its buffers, cut: it could neither be tracked nor
 * leave as it came. So the program's own setsockopt(), which drivers find before that of libc,
 * takes this one flag away. The kernel hashes all fragments of a datagram to one queue without it,
 * too.
 */
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/if_packet.h>

__attribute__((used, visibility("default"))) int
setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	unsigned int fanout;

	if (level == SOL_PACKET && name == PACKET_FANOUT && len == sizeof(fanout)) {
		memcpy(&fanout, value, sizeof(fanout));
		fanout &= ~((unsigned int)PACKET_FANOUT_FLAG_DEFRAG << 16);
		value = &fanout;
	}
	return (int)syscall(SYS_setsockopt, fd, level, name, value, len);
}
