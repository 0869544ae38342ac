/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule_lex.h"

#include <arpa/inet.h>
#include <string.h>

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool
is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool
is_word(char c)
{
	return is_letter(c) || is_digit(c) || c == '/' || c == '-' || c == '.' || c == '\\';
}

static char
at(const struct rule_lex *x, size_t i)
{
	return i < x->len ? x->text[i] : '\0';
}

static void
bad(struct rule_lex *x, size_t end, const char *why)
{
	x->type = TOK_BAD;
	x->end = end;
	x->bad = why;
}

static void
skip_blanks(struct rule_lex *x)
{
	while (x->next < x->len) {
		if (x->text[x->next] == ' ' || x->text[x->next] == '\t') {
			x->next++;
		} else if (x->lines && x->text[x->next] == '#') {
			while (x->next < x->len && x->text[x->next] != '\n')
				x->next++;
		} else {
			return;
		}
	}
}

/* An address written in the bytes up to `end`. */
static bool
take_addr(struct rule_lex *x, size_t end, int af)
{
	char text[INET6_ADDRSTRLEN];
	size_t len = end - x->at;

	if (len >= sizeof(text))
		return false;
	memcpy(text, x->text + x->at, len);
	text[len] = '\0';
	memset(&x->addr, 0, sizeof(x->addr));
	if (inet_pton(af, text, x->addr.b) != 1)
		return false;
	x->type = TOK_ADDR;
	x->family = af == AF_INET ? TUPLE_IPV4 : TUPLE_IPV6;
	x->end = end;
	return true;
}

/* IPv6 is what has two colons in a run of hexadecimal digits, colons and dots. */
static bool
lex_ip6(struct rule_lex *x)
{
	size_t i = x->at;
	unsigned int colons = 0;

	for (; is_hex(at(x, i)) || at(x, i) == ':' || at(x, i) == '.'; i++)
		colons += at(x, i) == ':';
	if (colons < 2)
		return false;
	if (!take_addr(x, i, AF_INET6))
		bad(x, i, "this is no IPv6 address");
	return true;
}

static void
lex_digits(struct rule_lex *x)
{
	size_t i = x->at, digits;
	bool hex = at(x, i) == '0' && (at(x, i + 1) == 'x' || at(x, i + 1) == 'X');
	uint64_t v = 0, d;

	i += hex ? 2 : 0;
	digits = i;
	for (; hex ? is_hex(at(x, i)) : is_digit(at(x, i)); i++) {
		d = (uint64_t)(is_digit(x->text[i]) ? x->text[i] - '0'
						    : (x->text[i] | 0x20) - 'a' + 10);
		if (v > (UINT64_MAX - d) / (hex ? 16 : 10)) {
			bad(x, i + 1, "the number is too large");
			return;
		}
		v = v * (hex ? 16 : 10) + d;
	}
	if (!hex && at(x, i) == '.') {
		while (is_digit(at(x, i)) || at(x, i) == '.')
			i++;
		if (!take_addr(x, i, AF_INET))
			bad(x, i, "this is no IPv4 address");
		return;
	}
	if (i == digits || is_letter(at(x, i)) || at(x, i) == '.')
		bad(x, i + 1,
			"this is no number; a name that begins with a digit has to be quoted");
	else if (!hex && i - digits > 1 && x->text[digits] == '0')
		bad(x, i, "a number with a leading zero is read in different ways: leave it out");
	else
		x->type = TOK_NUMBER;
	x->number = v;
	x->end = i > x->at ? i : x->at + 1;
}

static void
lex_word(struct rule_lex *x)
{
	size_t i = x->at;

	while (is_word(at(x, i)))
		i++;
	if (at(x, i) == '*')
		i++;
	x->type = TOK_WORD;
	x->end = i;
}

static void
lex_string(struct rule_lex *x)
{
	size_t i = x->at + 1;

	while (i < x->len && x->text[i] != '"' && (unsigned char)x->text[i] >= ' ' &&
		x->text[i] != 0x7f)
		i++;
	if (i == x->len || x->text[i] == '\n')
		bad(x, i, "the quoted text has no end");
	else if (x->text[i] != '"')
		bad(x, i + 1, "quoted text cannot have control characters");
	else
		x->type = TOK_STRING;
	x->end = i < x->len && x->type == TOK_STRING ? i + 1 : i;
}

static void
lex_punct(struct rule_lex *x)
{
	char c = x->text[x->at];

	x->end = x->at + 1;
	if (c == ';' || c == '\n') {
		if (x->lines)
			x->type = TOK_LINE;
		else
			bad(x, x->end, "a rule is one line without \";\"");
	} else if (c == '#') {
		bad(x, x->end, "a rule has no comment");
	} else if (c == '\0' || strchr("{}()[],:/-=!&|@", c) == NULL) {
		bad(x, x->end, "this character has no meaning in a rule");
	} else {
		x->type = TOK_PUNCT;
		if ((c == '=' || c == '!') && at(x, x->end) == '=')
			x->end++;
	}
}

void
rule_lex_next(struct rule_lex *x)
{
	char c;

	skip_blanks(x);
	x->at = x->end = x->next;
	x->bad = NULL;
	if (x->at == x->len) {
		x->type = TOK_END;
		return;
	}
	c = x->text[x->at];
	if ((is_hex(c) || c == ':') && lex_ip6(x))
		;
	else if (is_digit(c))
		lex_digits(x);
	else if (is_letter(c))
		lex_word(x);
	else if (c == '"')
		lex_string(x);
	else
		lex_punct(x);
	x->next = x->end;
}

void
rule_lex_init(struct rule_lex *x, const char *text, size_t len, bool lines)
{
	*x = (struct rule_lex){.text = text, .len = len, .lines = lines};
	rule_lex_next(x);
}

bool
rule_lex_is(const struct rule_lex *x, const char *word)
{
	size_t n = strlen(word);

	return (x->type == TOK_WORD || x->type == TOK_PUNCT) && x->end - x->at == n &&
	       memcmp(x->text + x->at, word, n) == 0;
}

size_t
rule_lex_text(const struct rule_lex *x, const char **s)
{
	size_t quotes = x->type == TOK_STRING ? 1 : 0;

	*s = x->text + x->at + quotes;
	return x->end - x->at - 2 * quotes;
}
