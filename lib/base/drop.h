/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every reason for which a packet is refused, or tracked as INVALID: one list for the counters, the
 * listing `drops`, the metrics and the trace. A new reason is one line here and nothing else.
 *
 * Reasons of the first group refuse the packet. Those of the second say why conntrack calls it
 * INVALID; whether it is then refused is for the namespace's rules and sluice.invalid to say.
 */
#ifndef SL_DROP_H
#define SL_DROP_H

#define SL_DROP_REASONS(X)                                                                         \
	X(NONE, "none", "not dropped")                                                             \
	/* frame and link */                                                                       \
	X(RUNT, "runt", "frame ends within its Ethernet header or VLAN tags")                      \
	X(VLAN_DEPTH, "vlan-depth", "frame has more than two VLAN tags")                           \
	X(NO_LINK, "no-link", "no link has this port and VLAN tag stack")                          \
	X(NO_PEER, "no-peer", "the link has no peer to forward to")                                \
	X(NETNS_DYING, "netns-dying", "the namespace is being deleted")                            \
	X(ARP_MALFORMED, "arp-malformed", "ARP for the gateway with wrong lengths or addresses")   \
	X(ND_MALFORMED, "nd-malformed", "neighbour discovery for the gateway against RFC 4861")    \
	X(NEIGHBOUR_SPOOFED, "neighbour-spoofed", "ARP or ND that claims a gateway's address")     \
	/* IP header */                                                                            \
	X(IP_TRUNCATED, "ip-truncated", "frame ends within the IP header")                         \
	X(IP_VERSION, "ip-version", "version field does not match the EtherType")                  \
	X(IP_HEADER, "ip-header", "IPv4 header length below 20 bytes or beyond the packet")        \
	X(IP_LENGTH, "ip-length", "IP length is below its headers or beyond the frame")            \
	X(IP_CHECKSUM, "ip-checksum", "IPv4 header checksum is wrong")                             \
	X(IP6_EXT, "ip6-ext", "IPv6 extension headers are cut, malformed, repeated or too many")   \
	/* fragments */                                                                            \
	X(FRAG_INVALID, "frag-invalid", "fragment of impossible length, or at odds with another")  \
	X(FRAG_DUPLICATE, "frag-duplicate", "fragment of which all bytes are there already")       \
	X(FRAG_OVERLAP, "frag-overlap", "fragments of one datagram overlap")                       \
	X(FRAG_TIMEOUT, "frag-timeout", "the rest of the datagram did not come in time")           \
	X(FRAG_LIMIT, "frag-limit", "fragments held for the namespace are at their high_thresh")   \
	X(FRAG_MEMORY, "frag-memory", "no buffers are left to hold fragments in")                  \
	/* conntrack */                                                                            \
	X(CT_TABLE_FULL, "ct-table-full", "nf_conntrack_max of all namespaces is reached")         \
	X(CT_NETNS_FULL, "ct-netns-full", "nf_conntrack_max of the namespace is reached")          \
	X(CT_CLASH, "ct-clash", "the reply tuple belongs to another connection")                   \
	X(CT_CHAIN_LONG, "ct-chain-long", "the bucket's chain is at its bound")                    \
	X(SYN_BACKLOG, "syn-backlog", "tcp_max_syn_backlog connections are half open already")     \
	X(SYNCOOKIE_INVALID, "syncookie-invalid", "ACK of no connection without a valid SYN "      \
		"cookie, or in fragments")                                                         \
	X(SYNPROXY_SILENT, "synproxy-silent", "no answer of the SYN proxy may be sent, or no "     \
		"buffer is left for it")                                                           \
	X(SYNPROXY_FULL, "synproxy-full", "as many connections are translated as may be "          \
		"(sluice.synproxy_max)")                                                           \
	X(SYNPROXY_EARLY, "synproxy-early", "the server has not answered yet; who sent it will "   \
		"repeat it")                                                                       \
	X(ICMP_INNER, "icmp-inner", "ICMP error about a cut or malformed packet")                  \
	X(ICMP_INNER_CHECKSUM, "icmp-inner-checksum", "packet inside an ICMP error has a bad sum") \
	/* rules */                                                                                \
	X(RULE_DROP, "rule-drop", "a rule says drop")                                              \
	X(RULE_POLICY, "rule-policy", "no rule has a verdict and the chain's policy is drop")      \
	X(RULE_REJECT, "rule-reject", "a rule says reject; the sender was told")                   \
	X(RULE_REJECT_SILENT, "rule-reject-silent", "a rule says reject; no answer may be sent, "  \
		"too many were, or no buffer is left")                                             \
	X(CONNLIMIT_FULL, "connlimit-full", "no counter is left for its key (connlimit_max)")      \
	X(CONNLIMIT_MANY, "connlimit-many", "more than three `ct count` apply to one connection")  \
	/* translation */                                                                          \
	X(NAT_EXHAUSTED, "nat-exhausted", "no address and port of the rule's range is free")       \
	X(NAT_HOST_LIMIT, "nat-host-limit", "no port is free in the blocks its host may have")     \
	X(NAT_MAPPINGS_FULL, "nat-mappings-full", "no room for another mapping of a source")       \
	X(NAT_FILTERED, "nat-filtered", "its sender is not admitted to that mapping of a pool")    \
	X(NAT_NO_ADDRESS, "nat-no-address", "the link has no address to translate to")             \
	X(OWN_ADDRESS, "own-address", "for an address of the gateway, and nothing translates it")  \
	X(NAT64_ADDRESS, "nat64-address", "NAT64 for an address that no IPv4 host has, or that "   \
		"its prefix must not have")                                                        \
	X(NAT64_NONE, "nat64-no-counterpart", "NAT64 of a protocol, ICMP type or header that the " \
		"other IP version has nothing like")                                               \
	X(HOP_LIMIT, "hop-limit", "hop limit or TTL ends at the translation")                      \
	X(NEIGHBOUR_UNKNOWN, "neighbour-unknown", "its host on the link has not answered")         \
	X(NEIGHBOUR_QUEUE, "neighbour-queue", "too many packets wait until hosts answer")          \
	X(INVALID_NAT, "invalid-nat", "INVALID, in a namespace that translates")                   \
	/* transmit */                                                                             \
	X(TOO_BIG, "too-big", "longer than the egress link's MTU, and not to be fragmented")       \
	X(TX_FULL, "tx-full", "the port took no more packets")                                     \
	X(TX_HEADROOM, "tx-headroom", "no buffer, or no room in it, for longer headers")           \
	/* INVALID, by reason */                                                                   \
	X(INV_L4_TRUNCATED, "invalid-l4-truncated", "transport header is cut or lies on length")   \
	X(INV_NO_L4, "invalid-no-l4", "IPv6 packet that says that no header follows")              \
	X(INV_L4_CHECKSUM, "invalid-l4-checksum", "transport checksum is wrong")                   \
	X(INV_RACE, "invalid-race", "its connection came and went on other workers at each try")   \
	X(INV_TCP_FLAGS, "invalid-tcp-flags", "TCP flags that no valid segment has")               \
	X(INV_TCP_STATE, "invalid-tcp-state", "TCP segment does not fit the connection's state")   \
	X(INV_TCP_WINDOW, "invalid-tcp-window", "TCP segment is outside of the window")            \
	X(INV_TCP_RST, "invalid-tcp-rst", "RST with an impossible sequence number")                \
	X(INV_ICMP_TYPE, "invalid-icmp-type", "ICMP type that starts no exchange")                 \
	X(INV_ICMP_UNRELATED, "invalid-icmp-unrelated", "ICMP error about no known connection")    \
	X(INV_SCTP_CHUNK, "invalid-sctp-chunk", "SCTP chunks are malformed or out of state")       \
	X(INV_SCTP_TAG, "invalid-sctp-tag", "SCTP verification tag is wrong")                      \
	X(INV_GRE, "invalid-gre", "GRE header is cut or malformed")

enum sl_drop {
#define X(id, name, help) SL_DROP_##id,
	SL_DROP_REASONS(X)
#undef X
	SL_DROP_COUNT,
};

#define SL_DROP_FIRST_INVALID SL_DROP_INV_L4_TRUNCATED

/* Name and help of a reason; "unknown" for a number that is none. */
const char *sl_drop_name(enum sl_drop reason);
const char *sl_drop_help(enum sl_drop reason);

#endif
