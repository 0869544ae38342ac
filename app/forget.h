/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that end since what they were translated to is no more. */
#ifndef FORGET_H
#define FORGET_H

#include <stdbool.h>

#include "gateway.h"

/*
 * No new connection is of that kind any more, for workers that begin a burst from now on: destroys
 * those that there are, in slices from a grace period on, and then calls done(arg), if there is
 * one. Neither match nor done may be late: `arg` is theirs. 0, or -ENOMEM, and then nothing
 * happens. Control thread.
 */
int forget_connections(struct gateway *gw, bool (*match)(const struct ct_view *v, const void *arg),
	void *arg, void (*done)(void *arg));

#endif
