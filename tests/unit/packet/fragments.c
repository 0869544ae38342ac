/* SPDX-License-Identifier: BSD-3-Clause */
#include "fragments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_ether.h>
#include <rte_ip.h>

#include "lock.h"
#include "parse.h"

#define PROTO 253 /* for experiments (RFC 3692): it has no header */

struct stack {
	struct sl_lock lock;
	unsigned int n;
	void *object[];
};

static int
stack_alloc(struct rte_mempool *mp)
{
	mp->pool_data = calloc(1, sizeof(struct stack) + mp->size * sizeof(void *));
	return mp->pool_data == NULL ? -ENOMEM : 0;
}

static void
stack_free(struct rte_mempool *mp)
{
	free(mp->pool_data);
}

static int
stack_put(struct rte_mempool *mp, void *const *object, unsigned int n)
{
	struct stack *s = mp->pool_data;

	sl_lock(&s->lock);
	memcpy(&s->object[s->n], object, n * sizeof(void *));
	s->n += n;
	sl_unlock(&s->lock);
	return 0;
}

static int
stack_get(struct rte_mempool *mp, void **object, unsigned int n)
{
	struct stack *s = mp->pool_data;
	int ret = -ENOBUFS;

	sl_lock(&s->lock);
	if (s->n >= n) {
		s->n -= n;
		memcpy(object, &s->object[s->n], n * sizeof(void *));
		ret = 0;
	}
	sl_unlock(&s->lock);
	return ret;
}

static unsigned int
stack_count(const struct rte_mempool *mp)
{
	return ((const struct stack *)mp->pool_data)->n;
}

static const struct rte_mempool_ops stack_ops = {
	.name = "test_stack",
	.alloc = stack_alloc,
	.free = stack_free,
	.enqueue = stack_put,
	.dequeue = stack_get,
	.get_count = stack_count,
};

struct rte_mempool *
fragments_pool(const char *program, unsigned int buffers)
{
	char args[][32] = {"", "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry", "-m", "64",
		"--log-level=3"};
	char *eal[RTE_DIM(args) + 1] = {0};
	struct rte_mempool *pool;
	unsigned int i;

	snprintf(args[0], sizeof(args[0]), "%s", program);
	for (i = 0; i < RTE_DIM(args); i++)
		eal[i] = args[i];
	if (rte_eal_init(RTE_DIM(args), eal) < 0 || rte_mempool_register_ops(&stack_ops) < 0) {
		fprintf(stderr, "%s: EAL does not start\n", program);
		exit(1);
	}
	pool = rte_pktmbuf_pool_create_by_ops("fragments", buffers, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
		SOCKET_ID_ANY, stack_ops.name);
	if (pool == NULL) {
		fprintf(stderr, "%s: no pool\n", program);
		exit(1);
	}
	return pool;
}

static inline uint8_t
pattern(uint32_t off, const struct fragment_spec *s)
{
	return (uint8_t)(off + off / 256 * 7 + s->id * 31 + s->owner * 101);
}

bool
fragment_payload_good(const uint8_t *data, uint32_t n, uint32_t off, const struct fragment_spec *s)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (data[i] != pattern(off + i, s))
			return false;
	return true;
}

static void
put_ip4(struct rte_ipv4_hdr *ih, const struct fragment_spec *s)
{
	*ih = (struct rte_ipv4_hdr){
		.version_ihl = RTE_IPV4_VHL_DEF,
		.total_length = rte_cpu_to_be_16((uint16_t)(sizeof(*ih) + s->len)),
		.packet_id = rte_cpu_to_be_16((uint16_t)s->id),
		.fragment_offset = rte_cpu_to_be_16(
			(uint16_t)(s->off / 8 | (s->more ? RTE_IPV4_HDR_MF_FLAG : 0))),
		.time_to_live = 64,
		.next_proto_id = PROTO,
		.src_addr = RTE_BE32(0xc633640a),
		.dst_addr = RTE_BE32(0xc0000250),
	};
	ih->hdr_checksum = rte_ipv4_cksum(ih);
}

static void
put_ip6(struct rte_ipv6_hdr *ih, const struct fragment_spec *s)
{
	struct rte_ipv6_fragment_ext fh = {
		.next_header = PROTO,
		.frag_data = rte_cpu_to_be_16((uint16_t)(s->off | s->more)),
		.id = rte_cpu_to_be_32(s->id),
	};

	*ih = (struct rte_ipv6_hdr){
		.vtc_flow = RTE_BE32(6u << 28),
		.payload_len = rte_cpu_to_be_16((uint16_t)(sizeof(fh) + s->len)),
		.proto = IPPROTO_FRAGMENT,
		.src_addr = {0x20, 1, 0x0d, 0xb8, [15] = 1},
		.dst_addr = {0x20, 1, 0x0d, 0xb8, [15] = 2},
	};
	memcpy(ih + 1, &fh, sizeof(fh));
}

struct rte_mbuf *
fragment_new(struct rte_mempool *pool, const struct fragment_spec *s)
{
	bool ip6 = s->family == TUPLE_IPV6;
	uint32_t headers = RTE_ETHER_HDR_LEN +
			   (ip6 ? sizeof(struct rte_ipv6_hdr) + 8 : sizeof(struct rte_ipv4_hdr)),
		 i;
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *d;

	if (m == NULL)
		return NULL;
	d = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(headers + s->len + s->padding));
	if (d == NULL) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	memset(d, 0, 12);
	d[12] = ip6 ? 0x86 : 0x08;
	d[13] = ip6 ? 0xdd : 0x00;
	if (ip6)
		put_ip6((struct rte_ipv6_hdr *)(void *)(d + RTE_ETHER_HDR_LEN), s);
	else
		put_ip4((struct rte_ipv4_hdr *)(void *)(d + RTE_ETHER_HDR_LEN), s);
	for (i = 0; i < s->len; i++)
		d[headers + i] = pattern(s->off + i, s);
	memset(d + headers + s->len, 0xee, s->padding);
	return m;
}

enum sl_drop
fragment_parse(struct pkt *p, struct rte_mbuf *m, uint32_t owner)
{
	enum sl_drop r = parse_frame(p, m);

	p->tuple.scope = owner;
	return r;
}
