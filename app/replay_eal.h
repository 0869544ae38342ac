/* SPDX-License-Identifier: BSD-3-Clause */
/* The EAL of a process that has no devices: replay. */
#ifndef REPLAY_EAL_H
#define REPLAY_EAL_H

struct sl_err;

/* Without huge pages, devices, files shared with others or root; quiet but for errors. The calling
 * thread may float over the CPUs that it had. 0 or -errno. */
int replay_eal_init(struct sl_err *err);

#endif
