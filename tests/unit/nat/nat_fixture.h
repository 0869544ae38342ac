/* SPDX-License-Identifier: BSD-3-Clause */
/* A table with translation in its first namespace, for the tests of lib/nat. */
#ifndef NAT_FIXTURE_H
#define NAT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "err.h"
#include "nat.h"

struct fixture {
	struct netns_registry *registry;
	struct netns *ns;
	struct ct *ct;
	struct ct_thread *t;
	struct nat *nat;
	struct nat_thread *n;
	struct sl_now now;
};

static inline void
fixture_destroyed(void *app, struct ct_thread *t, struct ct_entry *const e[], unsigned int n)
{
	struct fixture *f = app;
	(void)t;

	nat_released(f->n, e, n);
}

static inline void
fixture_aborted(void *app, struct ct_thread *t, struct ct_entry *e)
{
	struct fixture *f = app;
	(void)t;

	nat_aborted(f->n, e);
}

static inline int
fixture_setup(void **state, uint32_t max, uint32_t buckets)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct ct_config config = {.max_entries = max, .buckets = buckets, .threads = 2,
		.hash = SL_HASH_AUTO, .hash_seed = 1,
		.ops = {.destroyed = fixture_destroyed, .aborted = fixture_aborted, .app = f}};
	struct nat_config nat = {.threads = 2, .max_sources = 1000, .hash = SL_HASH_AUTO,
		.seed = 1};
	struct sl_err err;

	if (f == NULL)
		return -1;
	f->registry = netns_registry_create(2, 16, &err);
	config.netns = f->registry;
	f->ct = nat.ct = ct_create(&config, &err);
	f->nat = nat_create(&nat, &err);
	if (f->ct == NULL || f->nat == NULL)
		return -1;
	f->t = ct_thread(f->ct, 0);
	f->n = nat_thread(f->nat, 0);
	f->ns = netns_init_ns(f->registry);
	f->now = sl_now_from_ns(1000 * SL_NSEC_PER_SEC);
	*state = f;
	return nat_netns_enable(f->nat, f->ns, &err);
}

static inline int
teardown(void **state)
{
	struct fixture *f = *state;

	nat_netns_free(f->ns);
	nat_destroy(f->nat);
	ct_destroy(f->ct);
	netns_registry_destroy(f->registry);
	free(f);
	return 0;
}

#endif
