/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "rule_file.h"
#include "rule_print.h"
#include "rule_words.h"

const struct rule_file_chain rule_file_chains[RULE_CHAINS] = {
	[RULE_RAW] = {"filter", "prerouting", "raw", -300},
	[RULE_PREROUTING] = {"nat", "prerouting", "dstnat", -100},
	[RULE_FORWARD] = {"filter", "forward", "filter", 0},
	[RULE_POSTROUTING] = {"nat", "postrouting", "srcnat", 100},
};

/* The dynamic set that the item needs in an nft file, or NULL. */
static const struct rule_key *
needs_set(const struct rule_item *it)
{
	const struct rule_key *by = NULL;

	if (it->type == RULE_LIMIT)
		by = &it->limit.by;
	else if (it->type == RULE_CT_COUNT)
		by = &it->ct_count.by;
	return by != NULL && by->family != 0 ? by : NULL;
}

static void
print_sets(FILE *f, const struct rule_chain_list *chain, unsigned int *n)
{
	const struct rule_key *by;
	uint32_t i, k;

	for (i = 0; i < chain->n; i++) {
		for (k = 0; k < chain->rule[i]->n; k++) {
			by = needs_set(&chain->rule[i]->item[k]);
			if (by != NULL)
				fprintf(f, "\tset by%u {\n\t\ttype %s\n\t\tsize 65535\n"
					"\t\tflags dynamic\n\t}\n\n", (*n)++,
					by->family == TUPLE_IPV4 ? "ipv4_addr" : "ipv6_addr");
		}
	}
}

static bool
has_helper(const struct rule_list *l, const char *name)
{
	const struct rule_chain_list *c;
	uint32_t i, k;
	int n;

	for (n = 0; n < RULE_CHAINS; n++) {
		c = &l->chain[n];
		for (i = 0; i < c->n; i++)
			for (k = 0; k < c->rule[i]->n; k++)
				if (c->rule[i]->item[k].type == RULE_HELPER_SET &&
					strcmp(c->rule[i]->item[k].helper, name) == 0)
					return true;
	}
	return false;
}

static void
print_helpers(FILE *f, const struct rule_list *l)
{
	const struct rule_word *w;
	char buf[32];

	for (w = words_helper; w->name != NULL; w++)
		if (has_helper(l, w->name))
			fprintf(f, "\tct helper %s {\n\t\ttype \"%s\" protocol %s\n\t}\n\n",
				w->name, w->name, word_protocol_name(w->value, buf, sizeof(buf)));
}

/* Whether nft has no form of the rule. */
static bool
is_ours(const struct rule *r)
{
	const struct rule_item *last = &r->item[r->n - 1];

	return last->type == RULE_NAT &&
	       (last->nat->type == RULE_SNAT_POOL || last->nat->type == RULE_NAT64);
}

static void
print_chain(FILE *f, enum rule_chain chain, const struct rule_chain_list *c, struct print_nft *nft)
{
	const struct rule_file_chain *info = &rule_file_chains[chain];
	uint32_t i;

	fprintf(f, "\tchain %s {\n\t\ttype %s hook %s priority %s; policy %s;\n",
		rule_chain_name(chain), info->type, info->hook, info->priority,
		c->drop ? "drop" : "accept");
	for (i = 0; i < c->n; i++) {
		fputs(is_ours(c->rule[i]) ? "\t\t# not of nft: " : "\t\t", f);
		print_rule(f, c->rule[i], RULE_TEXT_STATELESS, nft);
		fputc('\n', f);
	}
	fputs("\t}\n", f);
}

char *
rule_file_text(const struct rule_list *l, const char *table)
{
	struct print_nft nft = {0};
	const char *gap = "";
	unsigned int sets = 0;
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	int c;

	if (f == NULL)
		return NULL;
	fprintf(f, "table inet %s {\n", table);
	for (c = 0; c < RULE_CHAINS; c++)
		print_sets(f, &l->chain[c], &sets);
	print_helpers(f, l);
	for (c = 0; c < RULE_CHAINS; c++) {
		if (l->chain[c].n == 0 && !l->chain[c].drop)
			continue;
		fputs(gap, f);
		print_chain(f, (enum rule_chain)c, &l->chain[c], &nft);
		gap = "\n";
	}
	fputs("}\n", f);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
