/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <rte_common.h>

#include "err.h"
#include "ids.h"
#include "synproxy_pool.h"
#include "tcp_limit.h"

#define THREADS 3u
#define NO_MAX  UINT32_MAX

struct fixture {
	struct synproxy_pool *pool;
	struct tcp_netns *a, *b;
};

static int
setup(void **state)
{
	static struct fixture f;
	struct sl_err err;

	f.pool = synproxy_pool_create(THREADS, &err);
	f.a = tcp_netns_new(THREADS);
	f.b = tcp_netns_new(THREADS);
	*state = &f;
	return f.pool != NULL && f.a != NULL && f.b != NULL ? 0 : -1;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	synproxy_pool_destroy(f->pool);
	tcp_netns_free(f->a);
	tcp_netns_free(f->b);
	return 0;
}

/* Memory is there only from the first maximum on. */
static void
test_none_before_a_maximum(void **state)
{
	struct fixture *f = *state;
	struct sl_err err;

	assert_false(synproxy_pool_in_use(f->pool));
	assert_int_equal(synproxy_pool_get(f->pool, 0, f->a, NO_MAX), 0);
	assert_int_equal(synproxy_pool_set_max(f->pool, 0, &err), -EINVAL);
	assert_int_equal(synproxy_pool_set_max(f->pool, SYNPROXY_RECORDS_MAX + 1, &err), -EINVAL);
	assert_int_equal(synproxy_pool_set_max(f->pool, 1, &err), 0);
	assert_true(synproxy_pool_in_use(f->pool));
	assert_int_not_equal(synproxy_pool_get(f->pool, 0, f->a, NO_MAX), 0);
}

/* Whoever takes and gives, all together have as many as may be, and each namespace its own. */
static void
test_bounds(void **state)
{
	struct fixture *f = *state;
	struct tcp_count sum;
	struct sl_err err;
	uint32_t id[4];

	assert_int_equal(synproxy_pool_set_max(f->pool, 3, &err), 0);
	id[0] = synproxy_pool_get(f->pool, 0, f->a, 2);
	id[1] = synproxy_pool_get(f->pool, 1, f->a, 2);
	assert_int_equal(synproxy_pool_get(f->pool, 2, f->a, 2), 0);
	id[2] = synproxy_pool_get(f->pool, 2, f->b, 2);
	assert_true(id[0] != 0 && id[1] != 0 && id[2] != 0);
	assert_int_equal(synproxy_pool_get(f->pool, 1, f->b, 2), 0);
	assert_int_equal(synproxy_pool_used(f->pool), 3);
	tcp_netns_totals(f->a, &sum);
	assert_int_equal(sum.proxied, 2);

	synproxy_pool_put(f->pool, 2, f->a, id[0]);
	id[3] = synproxy_pool_get(f->pool, 1, f->b, 2);
	assert_int_not_equal(id[3], 0);
	tcp_netns_totals(f->a, &sum);
	assert_int_equal(sum.proxied, 1);
	tcp_netns_totals(f->b, &sum);
	assert_int_equal(sum.proxied, 2);

	/* what is above a lower maximum stays */
	assert_int_equal(synproxy_pool_set_max(f->pool, 1, &err), 0);
	synproxy_pool_put(f->pool, 0, f->a, id[1]);
	assert_int_equal(synproxy_pool_get(f->pool, 0, f->a, 2), 0);
}

/* What lies in the caches of other threads is nobody's loss; and each record is one's alone. */
static void
test_all_can_be_had(void **state)
{
	const uint32_t n = 4 * SL_IDS_CACHE;
	struct fixture *f = *state;
	struct sl_err err;
	uint32_t i, id;

	assert_int_equal(synproxy_pool_set_max(f->pool, n, &err), 0);
	for (i = 0; i < THREADS; i++) {
		id = synproxy_pool_get(f->pool, i, f->a, NO_MAX);
		synproxy_pool_put(f->pool, i, f->a, id);
	}
	for (i = 0; i < n; i++) {
		id = synproxy_pool_get(f->pool, 0, f->a, NO_MAX);
		assert_int_not_equal(id, 0);
		assert_int_equal(synproxy_pool_at(f->pool, id)->client_seq, 0);
		synproxy_pool_at(f->pool, id)->client_seq = 1;
	}
	assert_int_equal(synproxy_pool_get(f->pool, 1, f->a, NO_MAX), 0);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_none_before_a_maximum),
		CASE(test_bounds),
		CASE(test_all_can_be_had),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
