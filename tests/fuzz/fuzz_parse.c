/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as a frame, through the parser and the checksums. The frame ends where its buffer ends,
 * so that address sanitizer sees a read too far, and is parsed again in a chain of three segments,
 * which must come out the same. A second round believes the IPv4 header's checksum, without which
 * hardly any mutation would get behind it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_mbuf.h>

#include "csum.h"
#include "frames.h"
#include "fuzz.h"
#include "parse.h"
#include "parse_plain.h"

#define LEN_MAX 4096

static struct rte_mempool *pool;

static void
require(const char *wrong)
{
	if (wrong != NULL) {
		fprintf(stderr, "fuzz_parse: %s\n", wrong);
		abort();
	}
}

static bool
is_sound(const struct pkt *p, enum sl_drop r)
{
	return r == SL_DROP_NONE && p->flags & PKT_IP && !(p->flags & PKT_L4_BAD);
}

static struct rte_mbuf *
segment(const uint8_t *data, uint32_t from, uint32_t to)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	char *room = m == NULL ? NULL : rte_pktmbuf_append(m, (uint16_t)(to - from));

	if (room == NULL)
		require("no buffer");
	memcpy(room, data + from, to - from);
	return m;
}

/* The cuts come from the destination address, which the parser does not look at. */
static struct rte_mbuf *
chain(const uint8_t *data, uint32_t len, uint64_t ol_flags)
{
	uint32_t a = len > 1 ? data[0] % len : 0, b = len > 1 ? a + data[1] % (len - a) : len;
	struct rte_mbuf *m = segment(data, 0, a);

	m->ol_flags = ol_flags;
	if (rte_pktmbuf_chain(m, segment(data, a, b)) != 0 ||
		rte_pktmbuf_chain(m, segment(data, b, len)) != 0)
		require("no chain");
	return m;
}

static void
parse_both(const uint8_t *data, uint32_t len, uint64_t ol_flags)
{
	uint8_t *exact = malloc(len > 0 ? len : 1);
	struct rte_mbuf flat_m, *m = chain(data, len, ol_flags);
	struct pkt flat, p, plain;
	enum sl_drop r, chained;

	if (exact == NULL)
		require("out of memory");
	memcpy(exact, data, len);
	frame_wrap(&flat_m, exact, len);
	flat_m.ol_flags = ol_flags;
	/* First, since the other moves stripped tags back into the frame. */
	if (parse_plain(&plain, &flat_m))
		require(parse_frame(&p, &flat_m) == SL_DROP_NONE ? frame_plain_wrong(&plain, &p)
								  : "a plain frame is dropped");
	r = parse_frame(&flat, &flat_m);
	chained = parse_frame(&p, m);
	require(frame_broken(&flat, r, len));
	require(frame_broken(&p, chained, len));
	require(r == chained ? frame_differ(&flat, &p) : "a chain is judged otherwise");
	if (is_sound(&flat, r)) {
		if (csum_l4_good(&flat) != csum_l4_good(&p))
			require("the sum of a chain is another");
		if (flat.flags & PKT_ICMP_ERROR &&
			csum_icmp_inner_good(&flat) != csum_icmp_inner_good(&p))
			require("the inner sum of a chain is another");
	}
	rte_pktmbuf_free(m);
	free(exact);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char args[][16] = {"fuzz_parse", "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry",
		"-m", "64", "--log-level=3"};
	char *eal[RTE_DIM(args) + 1] = {0};
	unsigned int i;
	(void)argc;
	(void)argv;

	for (i = 0; i < RTE_DIM(args); i++)
		eal[i] = args[i];
	if (rte_eal_init(RTE_DIM(args), eal) < 0)
		require("EAL does not start");
	pool = rte_pktmbuf_pool_create("fuzz", 63, 0, 0, RTE_PKTMBUF_HEADROOM + 2 * LEN_MAX,
		SOCKET_ID_ANY);
	if (pool == NULL)
		require("no pool");
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len > LEN_MAX)
		return 0;
	parse_both(data, (uint32_t)len, 0);
	parse_both(data, (uint32_t)len, RTE_MBUF_F_RX_IP_CKSUM_GOOD);
	return 0;
}
