/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP scenarios: segments of a client A and a server B with what the connection must look like
 * after each. Sequence numbers count from each side's base; every scenario runs with bases and
 * clocks about their wraps.
 */
#include "segment.h"

struct step {
	char side;         /* 'A', 'B'; 'w': wait for len milliseconds */
	const char *flags; /* letters of FIN, SYN, RST, PSH, ACK, URG */
	uint32_t seq;
	uint32_t ack;
	uint32_t len;
	const char *want;
	/* by name */
	uint16_t win;      /* 0: 65,535 */
	bool win_zero;
	bool seq_zero;     /* zero on the wire, whatever the base */
	const char *options;
	uint8_t options_len;
	bool sack;         /* options are a SACK of [sack_left, sack_right) of the other side */
	uint32_t sack_left, sack_right;
};

struct scenario {
	const char *name;
	const struct step *before; /* up to the first without side */
	void (*setup)(struct knobs *knobs);
	const struct step *steps;
};

#define STEPS(...) (const struct step[]){__VA_ARGS__, {0}}
#define OPTIONS(s) .options = (s), .options_len = sizeof(s) - 1

/* A.nxt is 1001, B.nxt 5001. */
static const struct step established[] = {
	{'A', "S", 1000, 0, 0, "SYN_SENT 120 UNREPLIED"},
	{'B', "SA", 5000, 1001, 0, "SYN_RECV 60"},
	{'A', "A", 1001, 5001, 0, "ESTABLISHED 432000 ASSURED"},
	{0},
};

/* A.nxt is 1002, B.nxt 5002; B waits for the ACK. */
static const struct step last_ack[] = {
	{'A', "S", 1000, 0, 0, "SYN_SENT 120 UNREPLIED"},
	{'B', "SA", 5000, 1001, 0, "SYN_RECV 60"},
	{'A', "A", 1001, 5001, 0, "ESTABLISHED 432000 ASSURED"},
	{'A', "FA", 1001, 5001, 0, "FIN_WAIT 120 ASSURED"},
	{'B', "FA", 5001, 1002, 0, "LAST_ACK 30 ASSURED"},
	{0},
};

static const struct step scaled[] = {
	{'A', "S", 1000, 0, 0, "SYN_SENT 120 UNREPLIED", OPTIONS("\2\4\5\264\1\3\3\7\4\2\0\0")},
	{'B', "SA", 5000, 1001, 0, "SYN_RECV 60", OPTIONS("\3\3\7\4\2\1\1\0")},
	{'A', "A", 1001, 5001, 0, "ESTABLISHED 432000 ASSURED", .win = 512}, /* 65,536 */
	{0},
};

static void
set_liberal(struct knobs *k)
{
	k->tcp_be_liberal = true;
}

static void
set_not_loose(struct knobs *k)
{
	k->tcp_loose = false;
}

static void
set_ignore_rst(struct knobs *k)
{
	k->tcp_ignore_invalid_rst = true;
}

static const struct scenario opening[] = {
	{"the SYN is challenged, its sender resets what the server has", NULL, NULL, STEPS(
		{'A', "S", 1000, 0, 0, "SYN_SENT 120 UNREPLIED"},
		{'B', "A", 7000, 3000, 0, "SYN_SENT 120"},
		{'A', "R", 3001, 0, 0, "invalid-tcp-rst: SYN_SENT 120"},
		{'B', "A", 7000, 3000, 0, "SYN_SENT 120"},
		{'A', "R", 3000, 0, 0, "CLOSE 10"},
		{'A', "S", 1000, 0, 0, "reopen: SYN_SENT 120 UNREPLIED"})},
	{"an old SYN/ACK, reset by the client", NULL, NULL, STEPS(
		{'A', "S", 1000, 0, 0, "SYN_SENT 120 UNREPLIED"},
		{'B', "SA", 7000, 500, 0, "SYN_SENT 120"},
		{'A', "R", 500, 0, 0, "CLOSE 10"})},
	{"a SYN/ACK beyond the SYN, reset by the client", NULL, NULL, STEPS(
		{'A', "S", 1000, 0, 0, "SYN_SENT 120 UNREPLIED"},
		{'B', "SA", 7000, 3000, 0, "invalid-tcp-window: SYN_SENT 120 UNREPLIED"},
		{'A', "R", 3000, 0, 0, "SYN_SENT 120 UNREPLIED"})},
	{"handshake and orderly close", established, NULL, STEPS(
		{'A', "PA", 1001, 5001, 100, "ESTABLISHED 300 ASSURED"},
		{'B', "A", 5001, 1101, 0, "ESTABLISHED 432000 ASSURED"},
		{'A', "FA", 1101, 5001, 0, "FIN_WAIT 120 ASSURED"},
		{'B', "A", 5001, 1102, 0, "CLOSE_WAIT 60 ASSURED"},
		{'B', "FA", 5001, 1102, 0, "LAST_ACK 30 ASSURED"},
		{'A', "A", 1102, 5002, 0, "TIME_WAIT 120 ASSURED"},
		{'w', .len = 1000, .want = "TIME_WAIT 119 ASSURED"},
		{'B', "FA", 5001, 1102, 0, "TIME_WAIT 120 ASSURED"})},
	{"a repeated SYN does not prolong an unreplied entry", NULL, NULL, STEPS(
		{'A', "S", 1000, 0, 0, "SYN_SENT 120 UNREPLIED"},
		{'w', .len = 3000, .want = "SYN_SENT 117 UNREPLIED"},
		{'A', "S", 1000, 0, 0, "SYN_SENT 117 UNREPLIED"},
		{'B', "SA", 5000, 1001, 0, "SYN_RECV 60"},
		{'w', .len = 1000, .want = "SYN_RECV 59"},
		{'A', "S", 1000, 0, 0, "SYN_RECV 59"},
		{'B', "SA", 5000, 1001, 0, "SYN_RECV 60"},
		{'A', "A", 1001, 5001, 0, "ESTABLISHED 432000 ASSURED"})},
	{"SYN/ACK repeated by a server that got no ACK", NULL, NULL, STEPS(
		{'A', "S", 1000, 0, 0, "SYN_SENT 120 UNREPLIED"},
		{'B', "SA", 5000, 1001, 0, "SYN_RECV 60"},
		{'w', .len = 1000, .want = "SYN_RECV 59"},
		{'B', "SA", 5000, 1001, 0, "SYN_RECV 59"},
		{'A', "A", 1001, 5001, 0, "ESTABLISHED 432000 ASSURED"})},
	{"client starts anew with a lower sequence before any answer", NULL, NULL, STEPS(
		{'A', "S", 900000, 0, 0, "SYN_SENT 120 UNREPLIED"},
		{'w', .len = 1000, .want = "SYN_SENT 119 UNREPLIED"},
		{'A', "S", 1000, 0, 0, "SYN_SENT 119 UNREPLIED"},
		{'B', "SA", 5000, 1001, 0, "SYN_RECV 60"},
		{'A', "A", 1001, 5001, 0, "ESTABLISHED 432000 ASSURED"})},
	{"old SYN/ACK does not set the window", NULL, NULL, STEPS(
		{'A', "S", 900000, 0, 0, "SYN_SENT 120 UNREPLIED"},
		{'B', "SA", 800000, 555, 0, "SYN_SENT 120"},
		{'B', "SA", 123, 899000, 0, "SYN_SENT 120"},
		{'B', "SA", 70000, 900001, 0, "SYN_RECV 60"},
		{'A', "A", 900001, 70001, 0, "ESTABLISHED 432000 ASSURED"})},
	{"SYN/ACK of what was not sent", NULL, NULL, STEPS(
		{'A', "S", 1000, 0, 0, "SYN_SENT 120 UNREPLIED"},
		{'B', "SA", 5000, 1555, 0, "invalid-tcp-window: SYN_SENT 120 UNREPLIED"})},
	{"SYN with data, of which the SYN/ACK takes none", NULL, NULL, STEPS(
		{'A', "S", 1000, 0, 100, "SYN_SENT 120 UNREPLIED"},
		{'B', "SA", 5000, 1001, 0, "SYN_RECV 60"},
		{'A', "A", 1001, 5001, 100, "ESTABLISHED 432000 ASSURED"},
		{'B', "A", 5001, 1101, 0, "ESTABLISHED 432000 ASSURED"})},
	{"simultaneous open", NULL, NULL, STEPS(
		{'A', "S", 1000, 0, 0, "SYN_SENT 120 UNREPLIED"},
		{'B', "S", 5000, 0, 0, "SYN_SENT2 120"},
		{'A', "SA", 1000, 5001, 0, "SYN_RECV 60"},
		{'B', "SA", 5000, 1001, 0, "SYN_RECV 60"},
		{'A', "PA", 1001, 5001, 4, "ESTABLISHED 300 ASSURED"})},
	{"simultaneous open, the server's SYN/ACK first", NULL, NULL, STEPS(
		{'A', "S", 1000, 0, 0, "SYN_SENT 120 UNREPLIED"},
		{'B', "S", 5000, 0, 0, "SYN_SENT2 120"},
		{'B', "SA", 5000, 1001, 0, "SYN_RECV 60"},
		{'A', "SA", 1000, 5001, 0, "SYN_RECV 60"},
		{'A', "PA", 1001, 5001, 4, "ESTABLISHED 300 ASSURED"})},
	{"simultaneous open that the server ends with an ACK", NULL, NULL, STEPS(
		{'A', "S", 1000, 0, 0, "SYN_SENT 120 UNREPLIED"},
		{'B', "S", 5000, 0, 0, "SYN_SENT2 120"},
		{'A', "SA", 1000, 5001, 0, "SYN_RECV 60"},
		{'B', "A", 5001, 1001, 0, "ESTABLISHED 432000 ASSURED"})},
	{"the server's ACK does not end a plain handshake", NULL, NULL, STEPS(
		{'A', "S", 1000, 0, 0, "SYN_SENT 120 UNREPLIED"},
		{'B', "SA", 5000, 1001, 0, "SYN_RECV 60"},
		{'B', "A", 5001, 1001, 0, "SYN_RECV 60"})},
	{"refused", NULL, NULL, STEPS(
		{'A', "S", 1000, 0, 0, "SYN_SENT 120 UNREPLIED"},
		{'B', "RA", 0, 1001, 0, "kill", .seq_zero = true})},
	{"RST of what was not sent does not refuse", NULL, NULL, STEPS(
		{'A', "S", 1000, 0, 0, "SYN_SENT 120 UNREPLIED"},
		{'B', "RA", 0, 99999, 0, "invalid-tcp-rst: SYN_SENT 120 UNREPLIED",
			.seq_zero = true})},
	{"given up by the client", NULL, NULL, STEPS(
		{'A', "S", 1000, 0, 0, "SYN_SENT 120 UNREPLIED"},
		{'A', "R", 1001, 0, 0, "kill"})},
	{"RST in the handshake", NULL, NULL, STEPS(
		{'A', "S", 1000, 0, 0, "SYN_SENT 120 UNREPLIED"},
		{'B', "SA", 5000, 1001, 0, "SYN_RECV 60"},
		{'A', "R", 1001, 0, 0, "CLOSE 10"})},
	{"what does not start a connection", NULL, NULL, STEPS(
		{'A', "R", 1000, 0, 0, "invalid-tcp-state"},
		{'A', "RA", 1000, 1, 0, "invalid-tcp-state"},
		{'A', "SA", 1000, 1, 0, "invalid-tcp-state"},
		{'A', "FA", 1000, 1, 0, "invalid-tcp-state"},
		{'A', "", 1000, 1, 0, "invalid-tcp-flags"},
		{'A', "F", 1000, 1, 0, "invalid-tcp-flags"},
		{'A', "SF", 1000, 1, 0, "invalid-tcp-flags"},
		{'A', "SR", 1000, 1, 0, "invalid-tcp-flags"},
		{'A', "SAU", 1000, 1, 0, "invalid-tcp-flags"},
		{'A', "SFRPAU", 1000, 1, 0, "invalid-tcp-flags"},
		{'A', "P", 1000, 1, 0, "invalid-tcp-flags"})},
	{"PSH and URG are no flags of the state", NULL, NULL, STEPS(
		{'A', "SPU", 1000, 0, 0, "SYN_SENT 120 UNREPLIED"},
		{'B', "SAP", 5000, 1001, 0, "SYN_RECV 60"},
		{'A', "AU", 1001, 5001, 0, "ESTABLISHED 432000 ASSURED"},
		{'A', "RU", 1001, 5001, 0, "invalid-tcp-flags: ESTABLISHED 432000 ASSURED"},
		{'A', "FAU", 1001, 5001, 0, "FIN_WAIT 120 ASSURED"})},
	{"picked up", NULL, NULL, STEPS(
		{'A', "PA", 1001, 5001, 10, "ESTABLISHED 300 UNREPLIED"},
		{'A', "PA", 99999999, 77, 10, "ESTABLISHED 300 UNREPLIED"}, /* no window is known */
		{'B', "A", 5001, 1011, 0, "ESTABLISHED 300"},
		{'A', "A", 1011, 5001, 0, "ESTABLISHED 432000 ASSURED"},
		{'B', "R", 5100, 0, 0, "ESTABLISHED 300 ASSURED"},
		{'B', "R", 5001, 0, 0, "CLOSE 10 ASSURED"})},
	{"not picked up without tcp_loose", NULL, set_not_loose, STEPS(
		{'A', "A", 1001, 5001, 0, "invalid-tcp-state"},
		{'A', "S", 1000, 0, 0, "SYN_SENT 120 UNREPLIED"})},
};

static const struct scenario reopening[] = {
	{"challenge to a SYN, answered: closed, and opened again", established, NULL, STEPS(
		{'w', .len = 2000, .want = "ESTABLISHED 431998 ASSURED"},
		{'A', "S", 900000, 0, 0, "ESTABLISHED 431998 ASSURED"},
		{'B', "A", 5001, 1001, 0, "ESTABLISHED 432000 ASSURED"},
		{'A', "R", 1001, 0, 0, "CLOSE 10 ASSURED"},
		{'A', "S", 900000, 0, 0, "reopen: SYN_SENT 120 UNREPLIED"},
		{'B', "SA", 123, 555, 0, "SYN_SENT 120"}, /* old */
		{'B', "SA", 70000, 900001, 0, "SYN_RECV 60"},
		{'A', "A", 900001, 70001, 0, "ESTABLISHED 432000 ASSURED"},
		{'A', "PA", 900001, 70001, 10, "ESTABLISHED 300 ASSURED"})},
	{"challenge to a forged SYN: data goes on", established, NULL, STEPS(
		{'A', "S", 900000, 0, 0, "ESTABLISHED 432000 ASSURED"},
		{'B', "A", 5001, 1001, 0, "ESTABLISHED 432000 ASSURED"},
		{'A', "PA", 1001, 5001, 10, "ESTABLISHED 300 ASSURED"},
		{'B', "A", 5001, 1011, 0, "ESTABLISHED 432000 ASSURED"})},
	{"challenge to a SYN in LAST_ACK is not the last ACK", last_ack, NULL, STEPS(
		{'w', .len = 1000, .want = "LAST_ACK 29 ASSURED"},
		{'A', "S", 900000, 0, 0, "LAST_ACK 29 ASSURED"},
		{'B', "A", 5002, 1002, 0, "LAST_ACK 29 ASSURED"},
		{'A', "A", 1002, 5002, 0, "TIME_WAIT 120 ASSURED"})},
	{"challenge by a server that a new SYN meets", NULL, NULL, STEPS(
		{'A', "S", 900000, 0, 0, "SYN_SENT 120 UNREPLIED"},
		{'w', .len = 1000, .want = "SYN_SENT 119 UNREPLIED"},
		{'B', "A", 5001, 1001, 0, "SYN_SENT 119"},
		{'A', "R", 1001, 0, 0, "CLOSE 10"},
		{'A', "S", 900000, 0, 0, "reopen: SYN_SENT 120 UNREPLIED"},
		{'B', "SA", 70000, 900001, 0, "SYN_RECV 60"})},
	{"server that has forgotten answers the SYN", established, NULL, STEPS(
		{'A', "S", 90000, 0, 0, "ESTABLISHED 432000 ASSURED", OPTIONS("\3\3\7\0")},
		{'B', "SA", 7, 90002, 0, "ESTABLISHED 432000 ASSURED"}, /* not this */
		{'A', "S", 90000, 0, 0, "ESTABLISHED 432000 ASSURED", OPTIONS("\3\3\7\0")},
		{'B', "SA", 7, 90001, 0, "SYN_RECV 60 ASSURED", OPTIONS("\3\3\7\0")},
		{'A', "A", 90001, 8, 0, "ESTABLISHED 432000 ASSURED", .win = 2000},
		{'B', "A", 8 + 200000, 90001, 0, "ESTABLISHED 300 ASSURED"}, /* scaled window */
		{'A', "A", 1001, 5001, 0, "ESTABLISHED 300 ASSURED"})}, /* the old one: no effect */
	{"server that has forgotten refuses the SYN", established, NULL, STEPS(
		{'A', "S", 90000, 0, 0, "ESTABLISHED 432000 ASSURED"},
		{'B', "RA", 0, 90001, 0, "CLOSE 10 ASSURED", .seq_zero = true})},
	{"ports used again after an orderly close", last_ack, NULL, STEPS(
		{'A', "A", 1002, 5002, 0, "TIME_WAIT 120 ASSURED"},
		{'A', "S", 9000, 0, 0, "reopen: SYN_SENT 120 UNREPLIED"},
		{'B', "SA", 50, 9001, 0, "SYN_RECV 60"})},
	{"opened again by the server", last_ack, NULL, STEPS(
		{'A', "A", 1002, 5002, 0, "TIME_WAIT 120 ASSURED"},
		{'B', "S", 99999, 0, 0, "reopen: SYN_SENT 120 UNREPLIED"})},
	{"SYN after the server's RST", established, NULL, STEPS(
		{'B', "R", 5001, 0, 0, "CLOSE 10 ASSURED"},
		{'w', .len = 1000, .want = "CLOSE 9 ASSURED"},
		{'A', "S", 80000, 0, 0, "CLOSE 9 ASSURED"},
		{'B', "SA", 5, 80001, 0, "SYN_RECV 60 ASSURED"},
		{'A', "A", 80001, 6, 0, "ESTABLISHED 432000 ASSURED"})},
	{"SYN of the server on an open connection", established, NULL, STEPS(
		{'B', "S", 9000, 0, 0, "invalid-tcp-state: ESTABLISHED 432000 ASSURED"})},
};

static const struct scenario closing[] = {
	{"RST in the window, but not exact", established, NULL, STEPS(
		{'B', "R", 5101, 0, 0, "ESTABLISHED 300 ASSURED"},
		{'w', .len = 250000, .want = "ESTABLISHED 50 ASSURED"},
		{'B', "R", 5101, 0, 0, "ESTABLISHED 50 ASSURED"},
		{'A', "A", 1001, 5001, 0, "ESTABLISHED 432000 ASSURED"}, /* the challenge */
		{'B', "R", 5001, 0, 0, "CLOSE 10 ASSURED"})},
	{"RST outside of the window", established, NULL, STEPS(
		{'B', "R", 5001 + (1 << 20), 0, 0, "invalid-tcp-rst: ESTABLISHED 432000 ASSURED"},
		{'B', "R", 4000, 0, 0, "invalid-tcp-rst: ESTABLISHED 432000 ASSURED"},
		{'A', "PA", 1001, 5001, 10, "ESTABLISHED 300 ASSURED"},
		{'B', "PA", 5001, 1011, 10, "ESTABLISHED 300 ASSURED"},
		{'A', "A", 1011, 5011, 0, "ESTABLISHED 432000 ASSURED"})},
	{"SYN and RST of one forger", established, NULL, STEPS(
		{'A', "S", 9999, 0, 0, "ESTABLISHED 432000 ASSURED"},
		{'A', "RA", 777777, 10000, 0, "invalid-tcp-rst: ESTABLISHED 432000 ASSURED"},
		{'A', "S", 9999, 0, 0, "ESTABLISHED 432000 ASSURED"},
		{'A', "RA", 2000, 10000, 0, "invalid-tcp-rst: ESTABLISHED 432000 ASSURED"},
		{'A', "PA", 1001, 5001, 10, "ESTABLISHED 300 ASSURED"},
		{'B', "A", 5001, 1011, 0, "ESTABLISHED 432000 ASSURED"})},
	{"RST behind its sender's last segment", established, NULL, STEPS(
		{'A', "PA", 1001, 5001, 10, "ESTABLISHED 300 ASSURED"},
		{'A', "R", 1011, 0, 0, "CLOSE 10 ASSURED"})},
	{"RST not behind its sender's last segment", established, NULL, STEPS(
		{'A', "PA", 1001, 5001, 10, "ESTABLISHED 300 ASSURED"},
		{'B', "PA", 5001, 1001, 7, "ESTABLISHED 300 ASSURED"},
		{'A', "R", 1011, 0, 0, "ESTABLISHED 300 ASSURED"})},
	{"tcp_ignore_invalid_rst", established, set_ignore_rst, STEPS(
		{'B', "R", 4000, 0, 0, "ESTABLISHED 300 ASSURED"},
		{'B', "R", 5001 + (1 << 20), 0, 0, "invalid-tcp-rst: ESTABLISHED 300 ASSURED"})},
	{"FIN or RST outside from both sides", established, NULL, STEPS(
		{'A', "R", 1001 + (1 << 20), 0, 0, "invalid-tcp-rst: ESTABLISHED 432000 ASSURED"},
		{'A', "R", 1001 + (1 << 20), 0, 0, "invalid-tcp-rst: ESTABLISHED 432000 ASSURED"},
		{'B', "FA", 5001 + (1 << 20), 1001, 0,
			"invalid-tcp-window: ESTABLISHED 300 ASSURED"},
		{'B', "A", 5001, 1001, 0, "ESTABLISHED 432000 ASSURED"},
		{'B', "A", 5001, 1001, 0, "ESTABLISHED 432000 ASSURED"},
		{'A', "A", 1001, 5001, 0, "ESTABLISHED 432000 ASSURED"},
		{'A', "R", 1001 + (1 << 20), 0, 0, "invalid-tcp-rst: ESTABLISHED 432000 ASSURED"})},
	{"RST after both FINs", last_ack, NULL, STEPS(
		{'B', "R", 5101, 0, 0, "CLOSE 10 ASSURED"})},
	{"half-closed download", established, NULL, STEPS(
		{'A', "FA", 1001, 5001, 0, "FIN_WAIT 120 ASSURED"},
		{'B', "A", 5001, 1002, 0, "CLOSE_WAIT 60 ASSURED"},
		{'w', .len = 30000, .want = "CLOSE_WAIT 30 ASSURED"},
		{'B', "PA", 5001, 1002, 10, "CLOSE_WAIT 60 ASSURED"},
		{'A', "A", 1002, 5011, 0, "CLOSE_WAIT 60 ASSURED"},
		{'w', .len = 30000, .want = "CLOSE_WAIT 30 ASSURED"},
		{'B', "FA", 5011, 1002, 0, "LAST_ACK 30 ASSURED"},
		{'A', "A", 1002, 5012, 0, "TIME_WAIT 120 ASSURED"})},
	{"FIN, ACK, ACK, RST", established, NULL, STEPS(
		{'B', "FA", 5001, 1001, 0, "FIN_WAIT 120 ASSURED"},
		{'A', "A", 1001, 5002, 0, "CLOSE_WAIT 60 ASSURED"},
		{'A', "A", 1001, 5002, 0, "CLOSE_WAIT 60 ASSURED"},
		{'A', "RA", 1001, 5002, 0, "CLOSE 10 ASSURED"})},
	{"simultaneous close", established, NULL, STEPS(
		{'A', "FA", 1001, 5001, 0, "FIN_WAIT 120 ASSURED"},
		{'B', "FA", 5001, 1001, 0, "LAST_ACK 30 ASSURED"},
		{'A', "A", 1002, 5002, 0, "TIME_WAIT 120 ASSURED"},
		{'B', "A", 5002, 1002, 0, "TIME_WAIT 120 ASSURED"})},
	{"last ACK lost", last_ack, NULL, STEPS(
		{'B', "FA", 5001, 1002, 0, "LAST_ACK 30 ASSURED"},
		{'w', .len = 5000, .want = "LAST_ACK 25 ASSURED"},
		{'B', "FA", 5001, 1002, 0, "LAST_ACK 30 ASSURED"},
		{'A', "A", 1002, 5002, 0, "TIME_WAIT 120 ASSURED"})},
};

static const struct scenario windows[] = {
	{"a RST beyond the window by less than a window is passed", established, NULL, STEPS(
		{'B', "R", 5001 + 65536, 0, 0, "ESTABLISHED 432000 ASSURED"},
		{'B', "R", 5001 + 3 * 65536, 0, 0, "invalid-tcp-rst: ESTABLISHED 432000 ASSURED"},
		{'A', "A", 1001, 5001, 0, "ESTABLISHED 432000 ASSURED"},
		{'B', "A", 5001, 1001, 10, "ESTABLISHED 300 ASSURED"},
		{'A', "A", 1001, 5011, 0, "ESTABLISHED 432000 ASSURED"})},
	{"FINs of both out of the window, with and without a sound segment between",
		established, NULL, STEPS(
		{'A', "FA", 1001, 9999, 0, "invalid-tcp-window: ESTABLISHED 432000 ASSURED"},
		{'B', "A", 5001, 1001, 0, "ESTABLISHED 432000 ASSURED"},
		{'B', "FA", 5001, 9999, 0, "invalid-tcp-window: ESTABLISHED 432000 ASSURED"},
		{'A', "FA", 1001, 9999, 0, "invalid-tcp-window: ESTABLISHED 300 ASSURED"})},
	{"old data and old ACKs are of no effect", established, NULL, STEPS(
		{'A', "PA", 1001, 5001, 100, "ESTABLISHED 300 ASSURED"},
		{'B', "A", 5001, 1101, 0, "ESTABLISHED 432000 ASSURED"},
		{'w', .len = 1000, .want = "ESTABLISHED 431999 ASSURED"},
		{'A', "PA", 1001u - 66000, 5001, 100, "ESTABLISHED 431999 ASSURED"},
		{'A', "A", 1101, 5001u - 67000, 0, "ESTABLISHED 431999 ASSURED"},
		{'A', "A", 1101, 4001, 0, "ESTABLISHED 432000 ASSURED"},
		{'A', "PA", 1001, 5001, 100, "ESTABLISHED 432000 ASSURED"})},
	{"the bounds: highest sequence", established, NULL, STEPS(
		{'A', "A", 1001 + 65535, 5001, 0, "ESTABLISHED 300 ASSURED"},
		{'A', "A", 1001 + 65536 + 65535, 5001, 0,
			"invalid-tcp-window: ESTABLISHED 300 ASSURED"})},
	{"the bounds: lowest end of data", established, NULL, STEPS(
		{'w', .len = 1000, .want = "ESTABLISHED 431999 ASSURED"},
		{'A', "PA", 1001u - 65536, 5001, 0, "ESTABLISHED 431999 ASSURED"},
		{'A', "PA", 1001u - 65535, 5001, 0, "ESTABLISHED 432000 ASSURED"})},
	{"the bounds: highest ACK", established, NULL, STEPS(
		{'A', "A", 1001, 5002, 0, "invalid-tcp-window: ESTABLISHED 432000 ASSURED"})},
	{"the bounds: lowest ACK", established, NULL, STEPS(
		{'w', .len = 1000, .want = "ESTABLISHED 431999 ASSURED"},
		{'A', "A", 1001, 5001u - 66001, 0, "ESTABLISHED 431999 ASSURED"},
		{'A', "A", 1001, 5001u - 66000, 0, "ESTABLISHED 432000 ASSURED"})},
	{"more than was offered, by less than a window", established, NULL, STEPS(
		{'w', .len = 1000, .want = "ESTABLISHED 431999 ASSURED"},
		{'A', "PA", 66537, 5001, 10, "ESTABLISHED 431999 ASSURED"},
		{'B', "A", 5001, 66547, 0, "ESTABLISHED 432000 ASSURED"}, /* it arrived */
		{'A', "PA", 66547, 5001, 10, "ESTABLISHED 300 ASSURED"})},
	{"window closed, probed and opened", established, NULL, STEPS(
		{'B', "A", 5001, 1001, 0, "ESTABLISHED 300 ASSURED", .win_zero = true},
		{'A', "A", 1001, 5001, 1, "ESTABLISHED 300 ASSURED"},
		{'B', "A", 5001, 1001, 0, "ESTABLISHED 300 ASSURED", .win_zero = true},
		{'A', "A", 1001, 5001, 1, "ESTABLISHED 300 ASSURED"},
		{'B', "A", 5001, 1002, 0, "ESTABLISHED 432000 ASSURED"})},
	{"keepalives without an answer", established, NULL, STEPS(
		{'A', "A", 1000, 5001, 1, "ESTABLISHED 432000 ASSURED"},
		{'A', "A", 1000, 5001, 1, "ESTABLISHED 432000 ASSURED"},
		{'A', "A", 1000, 5001, 1, "ESTABLISHED 432000 ASSURED"},
		{'A', "A", 1000, 5001, 1, "ESTABLISHED 300 ASSURED"},
		{'B', "A", 5001, 1001, 0, "ESTABLISHED 432000 ASSURED"})},
	{"scaled windows", scaled, NULL, STEPS(
		{'B', "PA", 5001 + 65536, 1001, 0, "ESTABLISHED 300 ASSURED"},
		{'A', "A", 1001, 5001 + 65536, 0, "ESTABLISHED 432000 ASSURED", .win = 65535},
		{'B', "PA", 5001 + (1 << 23), 1001, 0, "ESTABLISHED 300 ASSURED"},
		{'B', "PA", 5001 + (1 << 25), 1001, 0,
			"invalid-tcp-window: ESTABLISHED 300 ASSURED"})},
	{"scaling offered by one side is not in force", NULL, NULL, STEPS(
		{'A', "S", 1000, 0, 0, "SYN_SENT 120 UNREPLIED", OPTIONS("\3\3\7\0")},
		{'B', "SA", 5000, 1001, 0, "SYN_RECV 60"},
		{'A', "A", 1001, 5001, 0, "ESTABLISHED 432000 ASSURED", .win = 512},
		{'B', "PA", 5001 + 65000, 1001, 0, "ESTABLISHED 432000 ASSURED"},
		{'B', "PA", 5001 + 140000, 1001, 0,
			"invalid-tcp-window: ESTABLISHED 432000 ASSURED"})},
	{"SACK: what is selectively acknowledged must have been sent", scaled, NULL, STEPS(
		{'A', "PA", 1001, 5001, 1000, "ESTABLISHED 300 ASSURED"},
		{'A', "PA", 2001, 5001, 1000, "ESTABLISHED 300 ASSURED"},
		{'B', "A", 5001, 1001, 0, "ESTABLISHED 300 ASSURED", .sack = true,
			.sack_left = 2001, .sack_right = 3001},
		{'B', "A", 5001, 1001, 0, "invalid-tcp-window: ESTABLISHED 300 ASSURED",
			.sack = true, .sack_left = 2001, .sack_right = 3002},
		{'B', "A", 5001, 3001, 0, "ESTABLISHED 432000 ASSURED"})},
	{"SACK keeps an old ACK in the window", scaled, NULL, STEPS(
		{'A', "PA", 1001, 5001, 40000, "ESTABLISHED 300 ASSURED"},
		{'A', "PA", 41001, 5001, 40000, "ESTABLISHED 300 ASSURED"},
		{'w', .len = 1000, .want = "ESTABLISHED 299 ASSURED"},
		{'B', "A", 5001, 1001u - 8400000, 0, "ESTABLISHED 299 ASSURED"},
		{'B', "A", 5001, 1001u - 8400000, 0, "ESTABLISHED 300 ASSURED", .sack = true,
			.sack_left = 41001, .sack_right = 81001})},
	{"SACK that was not agreed on is not read", established, NULL, STEPS(
		{'B', "A", 5001, 1001, 0, "ESTABLISHED 432000 ASSURED", .sack = true,
			.sack_left = 2001, .sack_right = 3002})},
	{"tcp_be_liberal", established, set_liberal, STEPS(
		{'w', .len = 1000, .want = "ESTABLISHED 431999 ASSURED"},
		{'A', "A", 1 << 24, 5001, 10, "ESTABLISHED 432000 ASSURED"},
		{'w', .len = 1000, .want = "ESTABLISHED 431999 ASSURED"},
		{'B', "A", 1 << 25, 1, 10, "ESTABLISHED 432000 ASSURED"},
		{'w', .len = 1000, .want = "ESTABLISHED 431999 ASSURED"},
		{'A', "PA", 1001u - 70000, 5001, 10, "ESTABLISHED 432000 ASSURED"},
		{'B', "R", 1 << 26, 0, 0, "ESTABLISHED 300 ASSURED"},
		{'A', "PA", 1001, 5001, 10, "ESTABLISHED 300 ASSURED"})},
};

static uint8_t
flags_of(const char *letters)
{
	static const char names[] = "FSRPAU";
	uint8_t flags = 0;

	for (; *letters != '\0'; letters++)
		flags |= (uint8_t)(1 << (strchr(names, *letters) - names));
	return flags;
}

/* Segments of A count from base[0] and acknowledge from base[1]; B's the other way. */
static void
build(struct segment *s, const struct step *st, const uint32_t base[2])
{
	unsigned int dir = st->side == 'B';
	unsigned int options = st->sack ? 12 : st->options_len, hdr = 20 + options;
	uint16_t win = st->win_zero ? 0 : st->win != 0 ? st->win : 65535;

	segment_init(s, TUPLE_IPV4, IPPROTO_TCP, hdr, hdr + st->len);
	s->pkt.tcp_flags = flags_of(st->flags);
	put32(s->l4 + 4, st->seq_zero ? 0 : base[dir] + st->seq);
	if (s->pkt.tcp_flags & PKT_TCP_ACK)
		put32(s->l4 + 8, base[!dir] + st->ack);
	s->l4[12] = (uint8_t)(hdr / 4 << 4);
	s->l4[13] = s->pkt.tcp_flags;
	s->l4[14] = (uint8_t)(win >> 8);
	s->l4[15] = (uint8_t)win;
	if (st->sack) {
		memcpy(s->l4 + 20, "\1\1\5\12", 4);
		put32(s->l4 + 24, base[!dir] + st->sack_left);
		put32(s->l4 + 28, base[!dir] + st->sack_right);
	} else if (options != 0) {
		memcpy(s->l4 + 20, st->options, options);
	}
}

static void
play(struct conn *c, const char *name, const struct step *steps, const uint32_t base[2])
{
	enum ct_proto_verdict v = CT_PROTO_OK;
	struct segment s;
	const char *shown;
	unsigned int i;

	for (i = 0; steps[i].side != 0; i++) {
		if (steps[i].side == 'w') {
			conn_wait(c, steps[i].len);
			segment_init(&s, TUPLE_IPV4, IPPROTO_TCP, 20, 20);
			v = CT_PROTO_OK;
		} else {
			build(&s, &steps[i], base);
			v = conn_feed(c, &s, steps[i].side == 'B');
		}
		shown = conn_show(c, &s, v);
		if (strcmp(shown, steps[i].want) != 0)
			fail_msg("%s, step %u (%c %s), bases %u %u: is \"%s\", not \"%s\"", name, i,
				steps[i].side, steps[i].flags ? steps[i].flags : "", base[0],
				base[1], shown, steps[i].want);
		segment_free(&s);
	}
}

static void
run_all(const struct scenario *scenarios, unsigned int n)
{
	/* The second runs over the wrap from handshake to data, the third from data on. */
	static const uint32_t bases[][2] = {
		{0, 0}, {UINT32_MAX - 1000, UINT32_MAX - 5000},
		{UINT32_MAX - 1020, UINT32_MAX - 40000},
		{INT32_MAX - 1000, UINT32_MAX - 70000}, {UINT32_MAX - 900010, INT32_MAX - 5003}};
	struct conn c;
	unsigned int i, b;

	for (i = 0; i < n; i++) {
		for (b = 0; b < RTE_DIM(bases); b++) {
			conn_init(&c, segment_clocks[b % RTE_DIM(segment_clocks)]);
			if (scenarios[i].setup != NULL)
				scenarios[i].setup(&c.knobs);
			if (scenarios[i].before != NULL)
				play(&c, scenarios[i].name, scenarios[i].before, bases[b]);
			play(&c, scenarios[i].name, scenarios[i].steps, bases[b]);
		}
	}
}

static void
test_opening(void **state)
{
	(void)state;
	run_all(opening, RTE_DIM(opening));
}

static void
test_reopening(void **state)
{
	(void)state;
	run_all(reopening, RTE_DIM(reopening));
}

static void
test_closing(void **state)
{
	(void)state;
	run_all(closing, RTE_DIM(closing));
}

static void
test_windows(void **state)
{
	(void)state;
	run_all(windows, RTE_DIM(windows));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opening),
		cmocka_unit_test(test_reopening),
		cmocka_unit_test(test_closing),
		cmocka_unit_test(test_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
