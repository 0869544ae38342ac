/* SPDX-License-Identifier: BSD-3-Clause */
#include "churn_frame.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#define TAG_AT     12u
#define IP_AT      18u
#define PAYLOAD_AT 58u
#define FRAME_LEN  66u

static void
fill_udp(struct rte_udp_hdr *udp, rte_be16_t sport, rte_be16_t dport)
{
	*udp = (struct rte_udp_hdr){.src_port = sport,
		.dst_port = dport,
		.dgram_len = rte_cpu_to_be_16(FRAME_LEN - IP_AT - sizeof(struct rte_ipv4_hdr))};
}

/* Any segment, in any order: by chance connections open, close and wait. */
static void
fill_tcp(struct rte_tcp_hdr *tcp, rte_be16_t sport, rte_be16_t dport, uint64_t random)
{
	static const uint8_t flags[] = {RTE_TCP_SYN_FLAG, RTE_TCP_SYN_FLAG | RTE_TCP_ACK_FLAG,
		RTE_TCP_ACK_FLAG, RTE_TCP_ACK_FLAG, RTE_TCP_ACK_FLAG | RTE_TCP_FIN_FLAG,
		RTE_TCP_ACK_FLAG | RTE_TCP_FIN_FLAG, RTE_TCP_SYN_FLAG, RTE_TCP_RST_FLAG};

	*tcp = (struct rte_tcp_hdr){.src_port = sport,
		.dst_port = dport,
		.sent_seq = rte_cpu_to_be_32(random >> 3 & 1),
		.recv_ack = rte_cpu_to_be_32(1),
		.data_off = sizeof(*tcp) / 4 << 4,
		.tcp_flags = flags[random & 7],
		.rx_win = rte_cpu_to_be_16(1000)};
}

void
churn_frame_fill(struct rte_mbuf *m, unsigned int port, uint64_t random)
{
	uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(void *)(f + IP_AT);
	bool tcp = random >> 40 & 1;
	struct churn_origin load = {
		CHURN_MAGIC, (uint16_t)port, (uint16_t)(1 + random % (CHURN_VLANS - 1))};
	rte_be32_t near = rte_cpu_to_be_32(0x0a000001u + (random >> 16) % 4);
	rte_be32_t far = rte_cpu_to_be_32(0xc0000201u);
	rte_be16_t client = rte_cpu_to_be_16((uint16_t)(1000 + (random >> 24) % 8));
	rte_be16_t server = rte_cpu_to_be_16(53);

	m->data_len = FRAME_LEN;
	m->pkt_len = FRAME_LEN;
	memset(f, 0, FRAME_LEN);
	f[5] = 1;
	f[11] = 2;
	f[TAG_AT] = 0x81;
	f[TAG_AT + 2] = (uint8_t)(load.vlan >> 8);
	f[TAG_AT + 3] = (uint8_t)load.vlan;
	f[TAG_AT + 4] = 0x08;
	*ip = (struct rte_ipv4_hdr){.version_ihl = 0x45,
		.total_length = rte_cpu_to_be_16(FRAME_LEN - IP_AT),
		.time_to_live = 64,
		.next_proto_id = tcp ? IPPROTO_TCP : IPPROTO_UDP,
		.src_addr = port == 0 ? near : far,
		.dst_addr = port == 0 ? far : near};
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	if (tcp)
		fill_tcp((struct rte_tcp_hdr *)(void *)(ip + 1), port == 0 ? client : server,
			port == 0 ? server : client, random >> 44);
	else
		fill_udp((struct rte_udp_hdr *)(void *)(ip + 1), port == 0 ? client : server,
			port == 0 ? server : client);
	memcpy(f + PAYLOAD_AT, &load, sizeof(load));
}

unsigned int
churn_frame_read(const struct rte_mbuf *m, struct churn_origin *from)
{
	const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);

	memcpy(from, f + PAYLOAD_AT, sizeof(*from));
	return (unsigned int)(f[TAG_AT + 2] << 8 | f[TAG_AT + 3]) & 0xfffu;
}
