/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_capture.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <pcap/pcap.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "bench.h"

#define L3_OFF (sizeof(struct rte_ether_hdr) + sizeof(struct rte_vlan_hdr))
#define L4_OFF (L3_OFF + sizeof(struct rte_ipv4_hdr))
#define L4_LEN (BENCH_FRAME_LEN - L4_OFF)

static const struct {
	uint8_t flags;
	bool server, payload;
} segments[] = {
	[BENCH_SYN] = {RTE_TCP_SYN_FLAG, false, false},
	[BENCH_SYN_ACK] = {RTE_TCP_SYN_FLAG | RTE_TCP_ACK_FLAG, true, false},
	[BENCH_ACK] = {RTE_TCP_ACK_FLAG, false, false},
	[BENCH_CLIENT_DATA] = {RTE_TCP_PSH_FLAG | RTE_TCP_ACK_FLAG, false, true},
	[BENCH_SERVER_DATA] = {RTE_TCP_PSH_FLAG | RTE_TCP_ACK_FLAG, true, true},
};

static void
write_l2(uint8_t *frame, bool server)
{
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)frame;
	struct rte_vlan_hdr *tag = (struct rte_vlan_hdr *)(eth + 1);

	eth->src_addr.addr_bytes[0] = eth->dst_addr.addr_bytes[0] = 2;
	eth->src_addr.addr_bytes[5] = server ? 2 : 1;
	eth->dst_addr.addr_bytes[5] = server ? 1 : 2;
	eth->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN);
	tag->vlan_tci = rte_cpu_to_be_16(server ? BENCH_VLAN_SERVER : BENCH_VLAN_CLIENT);
	tag->eth_proto = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
}

static struct rte_ipv4_hdr *
write_l3(uint8_t *frame, uint32_t client, bool server, uint8_t proto, uint16_t l4_len)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(frame + L3_OFF);
	rte_be32_t client_addr = rte_cpu_to_be_32(client);
	rte_be32_t server_addr = rte_cpu_to_be_32(0xc0000201);

	ip->version_ihl = RTE_IPV4_VHL_DEF;
	ip->total_length = rte_cpu_to_be_16((uint16_t)(sizeof(*ip) + l4_len));
	ip->time_to_live = 64;
	ip->next_proto_id = proto;
	ip->src_addr = server ? server_addr : client_addr;
	ip->dst_addr = server ? client_addr : server_addr;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	return ip;
}

static void
write_tcp(struct rte_tcp_hdr *tcp, uint32_t flow, enum bench_frame kind)
{
	uint32_t client = flow * 2654435761u, server = ~client; /* initial sequence numbers */
	bool syn = segments[kind].flags & RTE_TCP_SYN_FLAG, from_server = segments[kind].server;

	tcp->data_off = sizeof(*tcp) / 4 << 4;
	tcp->tcp_flags = segments[kind].flags;
	tcp->rx_win = rte_cpu_to_be_16(64240);
	tcp->sent_seq = rte_cpu_to_be_32((from_server ? server : client) + !syn);
	if (tcp->tcp_flags & RTE_TCP_ACK_FLAG)
		tcp->recv_ack = rte_cpu_to_be_32((from_server ? client : server) + 1);
}

void
bench_frame_write(
	uint8_t frame[BENCH_FRAME_LEN], uint32_t flow, enum bench_frame kind, unsigned int how)
{
	bool server = segments[kind].server, udp = how & BENCH_UDP;
	uint32_t client = (server && how & BENCH_NAT ? 0x64400000 : 0x0a000000) + flow;
	struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)(frame + L4_OFF);
	struct rte_udp_hdr *dgram = (struct rte_udp_hdr *)tcp;
	rte_be16_t client_port = rte_cpu_to_be_16((uint16_t)(flow * 40503u) | 0x8000);
	rte_be16_t server_port = rte_cpu_to_be_16(udp ? 53 : 80);
	uint16_t len = segments[kind].payload || udp ? L4_LEN : sizeof(*tcp);
	struct rte_ipv4_hdr *ip;

	memset(frame, 0, BENCH_FRAME_LEN);
	write_l2(frame, server);
	ip = write_l3(frame, client, server, udp ? IPPROTO_UDP : IPPROTO_TCP, len);
	dgram->src_port = server ? server_port : client_port;
	dgram->dst_port = server ? client_port : server_port;
	if (udp) {
		dgram->dgram_len = rte_cpu_to_be_16(len);
		dgram->dgram_cksum = rte_ipv4_udptcp_cksum(ip, dgram);
	} else {
		write_tcp(tcp, flow, kind);
		tcp->cksum = rte_ipv4_udptcp_cksum(ip, tcp);
	}
}

/* 0 … 2 flows - 1 in random order; a direction is the lowest bit. */
static uint32_t *
shuffled(uint32_t n)
{
	uint32_t *order = malloc(n * sizeof(*order)), i, k;
	uint64_t random = 1;

	if (order == NULL)
		bench_die("out of memory");
	for (i = 0; i < n; i++) {
		k = bench_below(bench_random(&random), i + 1);
		order[i] = order[k];
		order[k] = i;
	}
	return order;
}

void
bench_capture_write(const char *path, uint32_t flows, unsigned int how)
{
	uint32_t *order = shuffled(2 * flows), i;
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, BENCH_FRAME_LEN);
	pcap_dumper_t *out = pcap == NULL ? NULL : pcap_dump_open(pcap, path);
	struct pcap_pkthdr header = {.caplen = BENCH_FRAME_LEN, .len = BENCH_FRAME_LEN};
	uint8_t frame[BENCH_FRAME_LEN] __rte_aligned(2);

	if (out == NULL)
		bench_die("%s: %s", path, pcap == NULL ? "out of memory" : pcap_geterr(pcap));
	for (i = 0; i < 2 * flows; i++) {
		bench_frame_write(frame, order[i] >> 1,
			order[i] & 1 ? BENCH_SERVER_DATA : BENCH_CLIENT_DATA, how);
		pcap_dump((u_char *)out, &header, frame);
	}
	if (pcap_dump_flush(out) != 0)
		bench_die("%s: cannot be written: is the disk full?", path);
	pcap_dump_close(out);
	pcap_close(pcap);
	free(order);
}
