/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replay: capture files through the daemon's packet path, in capture time. One thread is worker and
 * control at once; there is one replay in a process, as there is one EAL.
 */
#ifndef REPLAY_H
#define REPLAY_H

struct gateway;
struct port;
struct sl_err;

/* `sluice replay …`; argv[0] is "replay". The exit status: 0 done, 1 refused, 2 usage. */
int replay_main(int argc, char **argv);

/*
 * For port_add() when gw->replay: gives the port, whose name is set, its ops and binds it to the
 * captures that the command line has for that name. One without --rx receives nothing; without --tx
 * its packets are counted and discarded. 0.
 */
int replay_port_open(struct gateway *gw, struct port *port, struct sl_err *err);

#endif
