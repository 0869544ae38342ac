/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp_option.h"

#include <string.h>

#include <rte_byteorder.h>
#include <rte_common.h>

enum { KIND_END, KIND_NOP, KIND_MSS, KIND_SCALE, KIND_SACK_OK, KIND_SACK, KIND_TIMESTAMP = 8 };

#define LEN_MSS       4u
#define LEN_SCALE     3u
#define LEN_SACK_OK   2u
#define LEN_TIMESTAMP 10u
#define LEN_BLOCK     8u
#define SCALE_MAX     14u /* RFC 7323, 2.3: a greater one counts as this */

static uint16_t
load16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t
load32(const uint8_t *p)
{
	rte_be32_t v;

	memcpy(&v, p, sizeof(v));
	return rte_be_to_cpu_32(v);
}

static void
store32(uint8_t *p, uint32_t v)
{
	rte_be32_t be = rte_cpu_to_be_32(v);

	memcpy(p, &be, sizeof(be));
}

/* One option of `len` bytes at `value - 2`. */
static void
take(struct tcp_options *o, const uint8_t *value, unsigned int len, uint8_t offset)
{
	switch (value[-2]) {
	case KIND_MSS:
		if (len == LEN_MSS && o->mss == 0)
			o->mss = load16(value);
		break;
	case KIND_SCALE:
		if (len == LEN_SCALE && o->scale == TCP_SCALE_NONE)
			o->scale = (uint8_t)RTE_MIN(value[0], SCALE_MAX);
		break;
	case KIND_SACK_OK:
		o->sack_ok |= len == LEN_SACK_OK;
		break;
	case KIND_SACK:
		if (o->at_sack == 0 && len > 2 && (len - 2) % LEN_BLOCK == 0) {
			o->at_sack = offset;
			o->n_sack = (uint8_t)((len - 2) / LEN_BLOCK);
		}
		break;
	case KIND_TIMESTAMP:
		if (o->timestamp || len != LEN_TIMESTAMP)
			break;
		o->timestamp = true;
		o->tsval = load32(value);
		o->tsecr = load32(value + 4);
		o->at_timestamp = offset;
		break;
	default:
		break;
	}
}

void
tcp_options_read(const uint8_t *at, unsigned int len, struct tcp_options *o)
{
	unsigned int i = 0;

	*o = (struct tcp_options){.scale = TCP_SCALE_NONE};
	while (i < len && at[i] != KIND_END) {
		if (at[i] == KIND_NOP) {
			i++;
			continue;
		}
		if (i + 2 > len || at[i + 1] < 2 || i + at[i + 1] > len)
			return;
		take(o, &at[i + 2], at[i + 1], (uint8_t)(i + 2));
		i += at[i + 1];
	}
}

unsigned int
tcp_options_write(uint8_t *out, const struct tcp_options *o)
{
	uint8_t *p = out;

	if (o->mss != 0) {
		*p++ = KIND_MSS;
		*p++ = LEN_MSS;
		*p++ = (uint8_t)(o->mss >> 8);
		*p++ = (uint8_t)o->mss;
	}
	if (o->scale != TCP_SCALE_NONE) {
		*p++ = KIND_NOP;
		*p++ = KIND_SCALE;
		*p++ = LEN_SCALE;
		*p++ = o->scale;
	}
	if (o->sack_ok) {
		*p++ = KIND_NOP;
		*p++ = KIND_NOP;
		*p++ = KIND_SACK_OK;
		*p++ = LEN_SACK_OK;
	}
	if (o->timestamp) {
		*p++ = KIND_NOP;
		*p++ = KIND_NOP;
		*p++ = KIND_TIMESTAMP;
		*p++ = LEN_TIMESTAMP;
		store32(p, o->tsval);
		store32(p + 4, o->tsecr);
		p += 8;
	}
	return (unsigned int)(p - out);
}
