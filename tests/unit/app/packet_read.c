/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_tcp.h>
#include <rte_udp.h>

static bool
transport_sum_good(const uint8_t *l3, const uint8_t *l4, bool v4, unsigned int l4_len)
{
	uint32_t sum = rte_raw_cksum(l4, l4_len);

	sum += v4 ? rte_ipv4_phdr_cksum((const struct rte_ipv4_hdr *)l3, 0)
		  : rte_ipv6_phdr_cksum((const struct rte_ipv6_hdr *)l3, 0);
	return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

static const uint8_t *
read_l3(struct rte_mbuf *m, struct seen *s, unsigned int *ip_len)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct rte_vlan_hdr *tag = (const struct rte_vlan_hdr *)(eth + 1);
	rte_be16_t type = eth->ether_type;
	const uint8_t *l3 = (const uint8_t *)(eth + 1);

	s->tagged = type == rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN);
	if (s->tagged) {
		s->vlan = rte_be_to_cpu_16(tag->vlan_tci);
		type = tag->eth_proto;
		l3 += sizeof(*tag);
	}
	s->v4 = type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
	assert_true(s->v4 || type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6));
	*ip_len = m->pkt_len - (unsigned int)(l3 - rte_pktmbuf_mtod(m, const uint8_t *));
	return l3;
}

static const uint8_t *
read_addresses(const uint8_t *l3, struct seen *s, unsigned int room, unsigned int *l4_len)
{
	const struct rte_ipv4_hdr *ip4 = (const struct rte_ipv4_hdr *)l3;
	const struct rte_ipv6_hdr *ip6 = (const struct rte_ipv6_hdr *)l3;
	unsigned int len, hdr = s->v4 ? sizeof(*ip4) : sizeof(*ip6);

	if (s->v4) {
		len = rte_be_to_cpu_16(ip4->total_length);
		assert_int_equal(ip4->version_ihl, 0x45);
		assert_int_equal(rte_raw_cksum(ip4, sizeof(*ip4)), 0xffff);
		memcpy(s->src, l3 + 12, 4);
		memcpy(s->dst, l3 + 16, 4);
		s->proto = ip4->next_proto_id;
	} else {
		len = hdr + rte_be_to_cpu_16(ip6->payload_len);
		assert_int_equal(l3[0] >> 4, 6);
		memcpy(s->src, ip6->src_addr, 16);
		memcpy(s->dst, ip6->dst_addr, 16);
		s->proto = ip6->proto;
	}
	assert_in_range(len, hdr, room);
	*l4_len = len - hdr;
	return l3 + hdr;
}

/* Checks what holds of every packet. */
struct seen
packet_read(struct rte_mbuf *m)
{
	struct seen s = {0};
	unsigned int room, l4_len, hdr;
	const uint8_t *l3 = read_l3(m, &s, &room), *l4 = read_addresses(l3, &s, room, &l4_len);
	const struct rte_tcp_hdr *tcp = (const struct rte_tcp_hdr *)l4;
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)l4;

	assert_int_equal(m->data_len, m->pkt_len);
	assert_true(m->pkt_len >= 60);
	assert_true(transport_sum_good(l3, l4, s.v4, l4_len));
	s.sport = rte_be_to_cpu_16(udp->src_port);
	s.dport = rte_be_to_cpu_16(udp->dst_port);
	if (s.proto == IPPROTO_UDP) {
		hdr = sizeof(*udp);
		assert_int_equal(rte_be_to_cpu_16(udp->dgram_len), l4_len);
		assert_int_not_equal(udp->dgram_cksum, 0);
	} else {
		hdr = sizeof(*tcp);
		assert_int_equal(s.proto, IPPROTO_TCP);
		assert_int_equal(tcp->data_off >> 4, 5);
		s.flags = tcp->tcp_flags;
		s.seq = rte_be_to_cpu_32(tcp->sent_seq);
		s.ack = rte_be_to_cpu_32(tcp->recv_ack);
	}
	assert_in_range(l4_len, hdr, UINT16_MAX);
	s.payload = (uint16_t)(l4_len - hdr);
	return s;
}
