/* SPDX-License-Identifier: BSD-3-Clause */
/* Own tables: TCP of a scope that has one is in it, all else in the table of all. */
#include "table_fixture.h"

#include <rte_tcp.h>

#define OWN_BUCKETS 16u

static struct rte_tcp_hdr syn = {.data_off = 5 << 4, .tcp_flags = RTE_TCP_SYN_FLAG};

static struct pkt
tcp_packet(struct netns *ns, uint32_t flow)
{
	struct pkt p = packet(ns, flow, false);

	p.tuple.proto = p.proto = IPPROTO_TCP;
	p.l4 = (uint8_t *)&syn;
	p.l4_len = p.l4_hdr_len = sizeof(syn);
	p.tcp_flags = PKT_TCP_SYN;
	return p;
}

static struct netns *
add_netns(struct fixture *f, const char *name)
{
	struct netns *ns;
	struct sl_err err;

	assert_int_equal(netns_create_batch(f->registry, &name, 1, netns_init_ns(f->registry), &ns,
				 &err),
		0);
	return ns;
}

/* References in all lines and chains of a table. */
static unsigned int
references(const struct ct *ct, const struct ct_lines *l)
{
	const struct ct_line *at;
	unsigned int n = 0, s;
	uint32_t i, next;

	for (i = 0; i <= l->mask; i++) {
		for (at = &l->line[i];; at = &ct->overflow[next]) {
			for (s = 0; s < CT_SLOTS; s++)
				n += at->ref[s] != 0;
			next = at->next;
			if (next == 0)
				break;
		}
	}
	return n;
}

static void
test_tcp_of_the_owner_alone_is_in_it(void **state)
{
	struct fixture *f = *state;
	struct netns *owner = add_netns(f, "owner"), *other = add_netns(f, "other");
	struct pkt p;
	struct sl_err err;
	unsigned int i;

	assert_int_equal(ct_own_create(f->ct, owner->id, OWN_BUCKETS, &err), 0);
	assert_int_equal(ct_own_buckets(f->ct, owner->id), OWN_BUCKETS);
	assert_int_equal(ct_own_buckets(f->ct, other->id), 0);
	for (i = 0; i < 10; i++) {
		p = tcp_packet(owner, i);
		insert(f, f->a, &p);
		p = tcp_packet(other, i);
		insert(f, f->b, &p);
		p = packet(owner, i, false);
		insert(f, f->a, &p);
	}
	assert_int_equal(references(f->ct, f->ct->own[owner->id]), 10);
	assert_int_equal(references(f->ct, f->ct->lines), 20);
	for (i = 0; i < 10; i++) {
		p = tcp_packet(owner, i);
		ct_lookup_bulk(f->b, &p, 1);
		assert_non_null(p.ct);
		assert_ptr_equal(p.ct->ns, owner);
	}
	assert_int_equal(netns_entries(owner, THREADS), 20);
}

/* More entries than lines: chains, over several slices and batches. */
static void
test_purge_looks_at_no_other_table(void **state)
{
	struct fixture *f = *state;
	struct netns *owner = add_netns(f, "owner");
	struct pkt p;
	struct sl_err err;
	uint64_t destroyed = 0;
	uint32_t line = 0;
	unsigned int i, slices = 0;

	assert_int_equal(ct_own_create(f->ct, owner->id, OWN_BUCKETS, &err), 0);
	for (i = 0; i < 200; i++) {
		p = tcp_packet(owner, i);
		insert(f, f->a, &p);
	}
	p = packet(owner, 1, false);
	insert(f, f->a, &p);
	netns_kill_batch(f->registry, &owner, 1);
	while (ct_own_purge_slice(f->b, owner->id, &line, 1, &destroyed))
		assert_true(++slices < 1000);
	assert_true(slices >= 2);
	assert_int_equal(destroyed, 200);
	assert_int_equal(netns_entries(owner, THREADS), 1);
	assert_int_equal(references(f->ct, f->ct->own[owner->id]), 0);
	ct_own_destroy(f->b, owner->id);
	assert_int_equal(ct_own_buckets(f->ct, owner->id), 0);
	/* An id that is used again may own again. */
	assert_int_equal(ct_own_create(f->ct, owner->id, OWN_BUCKETS, &err), 0);
	ct_own_destroy(f->b, owner->id);
}

static void
test_chains_of_a_table_much_too_small_are_bounded(void **state)
{
	struct fixture *f = *state;
	struct netns *owner = add_netns(f, "owner");
	enum ct_verdict v = CT_OK;
	struct pkt p;
	struct sl_err err;
	unsigned int i;

	assert_int_equal(ct_own_create(f->ct, owner->id, 8, &err), 0);
	for (i = 0; i < 1000 && v == CT_OK; i++) {
		p = tcp_packet(owner, i);
		ct_lookup_bulk(f->a, &p, 1);
		assert_int_equal(ct_begin(f->a, &p, f->now), CT_OK);
		v = ct_commit(f->a, &p);
	}
	assert_int_equal(v, CT_DROP);
	assert_int_equal(p.reason, SL_DROP_CT_CHAIN_LONG);
	assert_true(i > 8 * 4);
	assert_int_equal(ct_count(f->ct), i - 1);
	assert_int_equal(references(f->ct, f->ct->own[owner->id]), i - 1);
}

static void
test_refusals(void **state)
{
	struct fixture *f = *state;
	struct sl_err err;

	assert_int_equal(ct_own_create(f->ct, 1, 0, &err), -EINVAL);
	assert_int_equal(ct_own_create(f->ct, 1, CT_OWN_BUCKETS_MAX + 1, &err), -EINVAL);
	assert_int_equal(ct_own_create(f->ct, NETNS_MAX, 8, &err), -EINVAL);
	assert_int_equal(ct_own_create(f->ct, 1, 9, &err), 0);
	assert_int_equal(ct_own_buckets(f->ct, 1), 16);
	assert_int_equal(ct_own_create(f->ct, 1, 8, &err), -EEXIST);
	assert_int_equal(ct_own_create(f->ct, 2, 1, &err), 0);
	assert_int_equal(ct_own_buckets(f->ct, 2), 1);
	ct_own_destroy(f->a, 2);
	ct_own_destroy(f->a, 1);
	ct_own_destroy(f->a, 1);
	ct_own_destroy(f->a, NETNS_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_tcp_of_the_owner_alone_is_in_it),
		TEST(test_purge_looks_at_no_other_table),
		TEST(test_chains_of_a_table_much_too_small_are_bounded),
		TEST(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
