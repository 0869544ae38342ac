/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp_reset.h"

#include <netinet/in.h>

#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_tcp.h>

#include "answer.h"

bool
tcp_reset_allowed(const struct pkt *p)
{
	return p->l3 != NULL && p->proto == IPPROTO_TCP && !(p->tcp_flags & PKT_TCP_RST) &&
	       answer_allowed(p) && answer_intact(p);
}

/* A segment's length in sequence space. */
static uint32_t
segment_len(const struct pkt *p)
{
	return (uint32_t)p->l4_len - p->l4_hdr_len + !!(p->tcp_flags & PKT_TCP_SYN) +
	       !!(p->tcp_flags & PKT_TCP_FIN);
}

/* With an ACK: <SEQ=SEG.ACK><CTL=RST>; without: <SEQ=0><ACK=SEG.SEQ+SEG.LEN><CTL=RST,ACK>. */
static struct rte_tcp_hdr
reset_header(const struct pkt *p)
{
	const struct rte_tcp_hdr *seg = (const struct rte_tcp_hdr *)p->l4;
	struct rte_tcp_hdr rst = {
		.src_port = seg->dst_port,
		.dst_port = seg->src_port,
		.data_off = sizeof(rst) / 4 << 4,
		.tcp_flags = PKT_TCP_RST,
	};

	if (p->tcp_flags & PKT_TCP_ACK) {
		rst.sent_seq = seg->recv_ack;
	} else {
		rst.tcp_flags |= PKT_TCP_ACK;
		rst.recv_ack =
			rte_cpu_to_be_32(rte_be_to_cpu_32(seg->sent_seq) + segment_len(p));
	}
	return rst;
}

bool
tcp_reset_write(struct rte_mbuf *m, const struct pkt *p)
{
	struct tuple_addr src = answer_dst(p);
	uint8_t *ip = answer_begin(
		m, p, (uint16_t)(answer_ip_len(p) + sizeof(struct rte_tcp_hdr)));
	struct rte_tcp_hdr *tcp;

	if (ip == NULL)
		return false;
	tcp = (void *)(ip +
		       answer_ip_header(ip, p, &src, IPPROTO_TCP, sizeof(struct rte_tcp_hdr)));
	*tcp = reset_header(p);
	tcp->cksum = p->tuple.family == TUPLE_IPV4 ? rte_ipv4_udptcp_cksum((const void *)ip, tcp)
						   : rte_ipv6_udptcp_cksum((const void *)ip, tcp);
	return true;
}
