/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sysctl and sysctl list: the knobs of a namespace (knobs.h), and those that are no field of its
 * block: the number of entries, numbers of buckets, and the maximum of all namespaces, which is
 * init's nf_conntrack_max. Of what is not set the value that holds is shown.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "nat.h"
#include "rule_limits.h"
#include "task.h"
#include "tcp_table.h"
#include "txn.h"

#define PREFIX      "net.netfilter."
#define KEY_COUNT   PREFIX "nf_conntrack_count"
#define KEY_BUCKETS PREFIX "nf_conntrack_buckets"
#define KEY_MAX     PREFIX "nf_conntrack_max"

#define KEY_EHASH   "net.ipv4.tcp_ehash_entries"
#define KEY_TW      "net.ipv4.tcp_max_tw_buckets"
#define KEY_BACKLOG "net.ipv4.tcp_max_syn_backlog"

#define KEY_CONNLIMIT_MAX "sluice.connlimit_max"

static bool
is_key(const char *given, const char *key)
{
	return strcmp(given, key) == 0 || strcmp(given, key + strlen(PREFIX)) == 0;
}

/* The namespace of the call: init when none is given. */
static int
sysctl_netns(struct call *c, struct netns **ns)
{
	int ret = call_netns(c, "netns", ns);

	if (ret == 0 && *ns == NULL)
		*ns = netns_init_ns(c->gw->netns);
	return ret;
}

static json_t *
setting(const struct netns *ns, const char *key, json_t *value)
{
	return json_pack("{s:s, s:s, s:o}", "netns", ns->name, "key", key, "value", value);
}

/* Numbers are numbers in JSON, whatever else is text. */
static json_t *
knob_object(const struct call *c, const struct netns *ns, const struct knob *k)
{
	const struct netns *of = k->init_only ? netns_init_ns(c->gw->netns) : ns;
	char text[32], *end;
	unsigned long long v;

	if (strcmp(k->key, KEY_TW) == 0)
		return setting(ns, KEY_TW, json_integer(tcp_table_time_wait_max(c->gw, ns)));
	if (strcmp(k->key, KEY_BACKLOG) == 0)
		return setting(ns, KEY_BACKLOG, json_integer(tcp_table_half_open_max(c->gw, ns)));
	knob_format(netns_knobs(of), k, text, sizeof(text));
	v = strtoull(text, &end, 10);
	return setting(ns, k->key,
		*end == '\0' && end != text ? json_integer((json_int_t)v) : json_string(text));
}

/* As in the kernel, each namespace sees its own. */
static json_t *
count_object(const struct call *c, const struct netns *ns)
{
	return setting(ns, KEY_COUNT, json_integer(netns_entries(ns, gw_threads(c->gw))));
}

static json_t *
buckets_object(const struct netns *ns, uint32_t buckets)
{
	return setting(ns, KEY_BUCKETS, json_integer(buckets));
}

static json_t *
ehash_object(const struct call *c, const struct netns *ns)
{
	return setting(ns, KEY_EHASH, json_integer(tcp_table_entries(c->gw, ns)));
}

/* ---- writes ---- */

struct old_knobs {
	struct netns *ns;
	struct knobs knobs;
	uint32_t ct_max; /* of all; 0: was not changed */
};

/* The knobs of a namespace, and what follows from them elsewhere. */
static int
set_knobs(struct gateway *gw, struct netns *ns, const struct knobs *changed, struct sl_err *err)
{
	uint32_t reserve = netns_knobs(ns)->ct_reserve;
	int ret;

	ret = ct_reserve(gw->ct, ns, reserve, changed->ct_reserve, err);
	if (ret != 0)
		return ret;
	ret = netns_set_knobs(ns, changed, err);
	if (ret != 0) {
		ct_reserve(gw->ct, ns, changed->ct_reserve, reserve, NULL);
		return ret;
	}
	ct_reserve_settle(gw->ct_control, ns);
	return tcp_table_follow(gw, ns, err);
}

static void
undo_write(struct gateway *gw, void *arg)
{
	struct old_knobs *old = arg;

	set_knobs(gw, old->ns, &old->knobs, NULL);
	if (old->ct_max != 0)
		ct_set_max(gw->ct, old->ct_max, NULL);
}

static int
apply(struct call *c, struct netns *ns, const struct knob *k, const struct knobs *changed)
{
	struct old_knobs *old = malloc(sizeof(*old));
	int ret;

	if (old == NULL)
		return sl_refuse(&c->err, ENOMEM, "out of memory");
	*old = (struct old_knobs){.ns = ns, .knobs = *netns_knobs(ns)};
	if (txn_on_undo(c->txn, undo_write, old, free) != 0) {
		free(old);
		return sl_refuse(&c->err, ENOMEM, "out of memory");
	}
	/* From here on a failure is undone with the batch. */
	if (ns == netns_init_ns(c->gw->netns) && strcmp(k->key, KEY_MAX) == 0) {
		old->ct_max = ct_max(c->gw->ct);
		ret = ct_set_max(c->gw->ct, changed->ct_max, &c->err);
		if (ret == 0)
			ret = nat_set_max(c->gw->nat, changed->ct_max, &c->err);
		if (ret != 0)
			return ret;
	}
	if (ns == netns_init_ns(c->gw->netns) && strcmp(k->key, KEY_CONNLIMIT_MAX) == 0) {
		ret = limits_set_max(c->gw, changed->connlimit_max, &c->err);
		if (ret != 0)
			return ret;
	}
	return set_knobs(c->gw, ns, changed, &c->err);
}

static int
write_knob(struct call *c, struct netns *ns, const struct knob *k, const json_t *value)
{
	struct knobs changed = *netns_knobs(ns);
	const char *text = json_string_value(value);
	char number[32];
	int ret;

	if (k->init_only && ns->id != NETNS_INIT_ID)
		return sl_refuse(&c->err, EPERM, "%s: is writable in init only: there is one table",
			k->key);
	if (text == NULL) {
		snprintf(
			number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		text = number;
	}
	ret = knob_parse(&changed, k, text, &c->err);
	if (ret == 0)
		ret = apply(c, ns, k, &changed);
	if (ret == 0)
		c->result = knob_object(c, ns, k);
	return ret;
}

/* The range that is refused here is the table's own, but for what does not fit its type. */
static int
parse_buckets(struct call *c, const json_t *value, uint32_t *buckets)
{
	const char *text = json_string_value(value);
	json_int_t v = json_integer_value(value);
	char *end;

	if (text != NULL) {
		errno = 0;
		v = strtoll(text, &end, 10);
		if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0)
			v = -1;
	}
	if (v < 1 || v > UINT32_MAX)
		return sl_refuse(&c->err, EINVAL, "%s: must be %u-%u", KEY_BUCKETS, CT_BUCKETS_MIN,
			CT_BUCKETS_MAX);
	*buckets = (uint32_t)v;
	return 0;
}

/* Done at commit, in slices: the answer comes when it is. */
static int
write_buckets(struct call *c, const struct netns *ns, const json_t *value)
{
	uint32_t buckets = 0;
	int ret = parse_buckets(c, value, &buckets);

	if (ret != 0)
		return ret;
	if (ns->id != NETNS_INIT_ID)
		return sl_refuse(&c->err, EPERM, "%s: is writable in init only: there is one table",
			KEY_BUCKETS);
	return txn_resize(c->txn, buckets, &c->err);
}

static int
cmd_sysctl(struct call *c)
{
	const char *key = call_string(c, "key");
	const json_t *value = json_object_get(c->params, "value");
	const struct knob *k;
	struct netns *ns;
	char q[48];
	int ret;

	ret = txn_flush(c->txn, &c->err);
	if (ret == 0)
		ret = sysctl_netns(c, &ns);
	if (ret != 0)
		return ret;
	if (is_key(key, KEY_COUNT)) {
		c->result = count_object(c, ns);
		return value == NULL ? 0 : sl_refuse(&c->err, EPERM, "%s: is read only", KEY_COUNT);
	}
	if (strcmp(key, KEY_EHASH) == 0) {
		c->result = ehash_object(c, ns);
		return value == NULL ? 0 : sl_refuse(&c->err, EPERM, "%s: is read only", KEY_EHASH);
	}
	if (is_key(key, KEY_BUCKETS)) {
		ret = value == NULL ? 0 : write_buckets(c, ns, value);
		c->result = buckets_object(ns,
			value == NULL ? ct_buckets(c->gw->ct) : ct_resize_target(c->gw->ct));
		return ret;
	}
	k = knob_find(key);
	if (k == NULL)
		return sl_refuse(&c->err, ENOENT, "key: there is no knob \"%s\"; see sysctl list",
			grammar_quote(key, q, sizeof(q)));
	if (value != NULL)
		return write_knob(c, ns, k, value);
	c->result = knob_object(c, ns, k);
	return 0;
}

static int
cmd_sysctl_list(struct call *c)
{
	struct netns *ns;
	int ret = sysctl_netns(c, &ns);

	c->state = ns;
	return ret;
}

static enum task_step
cmd_sysctl_list_step(struct call *c)
{
	const struct netns *ns = c->state;
	unsigned int i;

	call_item(c, buckets_object(ns, ct_buckets(c->gw->ct)));
	call_item(c, count_object(c, ns));
	call_item(c, ehash_object(c, ns));
	for (i = 0; i < knob_count; i++)
		call_item(c, knob_object(c, ns, &knob_list[i]));
	return TASK_DONE;
}

const struct command_handler commands_sysctl[] = {
	{"sysctl", cmd_sysctl, NULL, NULL},
	{"sysctl.list", cmd_sysctl_list, cmd_sysctl_list_step, NULL},
	{0},
};
