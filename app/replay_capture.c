/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_capture.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "clock.h"
#include "err.h"

/* libpcap's own bound for Ethernet; it reads no longer packet. */
#define FRAME_MAX 262144

int
capture_in_open(struct capture_in *in, const char *path, struct sl_err *err)
{
	char why[PCAP_ERRBUF_SIZE];
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "rbe");
	int type;

	*in = (struct capture_in){.path = path};
	if (f == NULL)
		return sl_refuse(err, errno, "%s: %s", path, strerror(errno));
	in->pcap = pcap_fopen_offline_with_tstamp_precision(f, PCAP_TSTAMP_PRECISION_NANO, why);
	if (in->pcap == NULL) {
		if (f != stdin)
			fclose(f);
		return sl_refuse(err, EINVAL, "%s: no pcap or pcapng file: %s", path, why);
	}
	type = pcap_datalink(in->pcap);
	if (type != DLT_EN10MB) {
		const char *name = pcap_datalink_val_to_name(type);

		capture_in_close(in);
		return sl_refuse(err, EINVAL, "%s: link type %s (%d): only Ethernet is replayed",
			path, name != NULL ? name : "unknown", type);
	}
	return 0;
}

static void
note(struct capture_note *n, uint64_t number)
{
	if (n->count++ == 0)
		n->first = number;
}

/* The seconds of a pcap file are 32 bits without a sign, which libpcap reads with one. */
static int
packet_time(const struct pcap_pkthdr *h, uint64_t *ns)
{
	int64_t sec = h->ts.tv_sec, frac = h->ts.tv_usec;

	if (sec < 0 && sec >= INT32_MIN)
		sec += INT64_C(1) << 32;
	if (sec < 0 || sec > UINT32_MAX || frac < 0 || frac >= (int64_t)SL_NSEC_PER_SEC)
		return -ERANGE;
	*ns = (uint64_t)sec * SL_NSEC_PER_SEC + (uint64_t)frac;
	return 0;
}

int
capture_in_peek(struct capture_in *in, struct sl_err *err)
{
	struct pcap_pkthdr *h;
	const uint8_t *data;
	uint64_t ns;
	int ret;

	if (in->ready)
		return 0;
	ret = pcap_next_ex(in->pcap, &h, &data);
	if (ret == PCAP_ERROR_BREAK)
		return 0;
	if (ret != 1)
		return sl_refuse(err, EIO, "%s: broken at packet %" PRIu64 ": %s", in->path,
			in->number + 1, pcap_geterr(in->pcap));
	in->number++;
	if (packet_time(h, &ns) < 0)
		return sl_refuse(err, EIO, "%s: broken at packet %" PRIu64
			": its time is no time from 1970 to 2106", in->path, in->number);
	if (h->caplen < h->len)
		note(&in->cut, in->number);
	if (ns < in->time_ns)
		note(&in->backwards, in->number);
	else
		in->time_ns = ns;
	in->data = data;
	in->len = h->caplen;
	in->ready = true;
	return 0;
}

struct rte_mbuf *
capture_in_frame(const struct capture_in *in, struct rte_mempool *pool)
{
	struct rte_mbuf *head = rte_pktmbuf_alloc(pool), *seg = head;
	uint32_t done = 0;

	if (head == NULL)
		return NULL;
	for (;;) {
		uint32_t n = RTE_MIN(in->len - done, (uint32_t)rte_pktmbuf_tailroom(seg));

		memcpy(rte_pktmbuf_mtod(seg, char *), in->data + done, n);
		seg->data_len = (uint16_t)n;
		done += n;
		if (done == in->len)
			break;
		seg->next = rte_pktmbuf_alloc(pool);
		if (seg->next == NULL) {
			rte_pktmbuf_free(head);
			return NULL;
		}
		seg = seg->next;
		head->nb_segs++;
	}
	head->pkt_len = in->len;
	return head;
}

void
capture_in_report(const struct capture_in *in)
{
	if (in->cut.count > 0)
		fprintf(stderr, "sluice: %s: packets cut by the capture (snaplen): %" PRIu64
			", the first is number %" PRIu64 "; replayed as cut frames\n",
			in->path, in->cut.count, in->cut.first);
	if (in->backwards.count > 0)
		fprintf(stderr, "sluice: %s: packets with a time before that of one ahead: %" PRIu64
			", the first is number %" PRIu64 "; they take the time of the one ahead\n",
			in->path, in->backwards.count, in->backwards.first);
}

void
capture_in_close(struct capture_in *in)
{
	if (in->pcap != NULL)
		pcap_close(in->pcap);
	in->pcap = NULL;
	in->ready = false;
}

int
capture_out_open(struct capture_out *out, const char *path, struct sl_err *err)
{
	FILE *f;

	*out = (struct capture_out){.path = path};
	out->pcap = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, FRAME_MAX,
		PCAP_TSTAMP_PRECISION_NANO);
	if (out->pcap == NULL)
		return sl_refuse(err, ENOMEM, "%s: out of memory", path);
	f = fopen(path, "wbe");
	if (f != NULL)
		out->dump = pcap_dump_fopen(out->pcap, f);
	if (out->dump == NULL) {
		int why = errno;

		if (f != NULL)
			fclose(f);
		pcap_close(out->pcap);
		out->pcap = NULL;
		return sl_refuse(err, why, "%s: cannot be written: %s", path, strerror(why));
	}
	return 0;
}

void
capture_out_write(struct capture_out *out, uint64_t time_ns, const struct rte_mbuf *m)
{
	static uint8_t buf[FRAME_MAX];
	uint32_t len = RTE_MIN(rte_pktmbuf_pkt_len(m), (uint32_t)sizeof(buf));
	const void *data = rte_pktmbuf_read(m, 0, len, buf);
	struct pcap_pkthdr h = {.caplen = len, .len = rte_pktmbuf_pkt_len(m)};

	h.ts.tv_sec = (time_t)(time_ns / SL_NSEC_PER_SEC);
	h.ts.tv_usec = (suseconds_t)(time_ns % SL_NSEC_PER_SEC);
	pcap_dump((u_char *)out->dump, &h, data);
}

int
capture_out_close(struct capture_out *out, struct sl_err *err)
{
	const char *path = out->path;
	FILE *f;
	bool failed;

	if (out->dump == NULL)
		return 0;
	f = pcap_dump_file(out->dump);
	failed = pcap_dump_flush(out->dump) < 0 || ferror(f);
	pcap_dump_close(out->dump);
	pcap_close(out->pcap);
	*out = (struct capture_out){0};
	if (failed)
		return sl_refuse(err, EIO, "%s: could not be written whole; is the disk full?",
			path);
	return 0;
}
