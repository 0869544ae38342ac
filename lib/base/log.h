/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines of the control side, through DPDK's log types so that levels can be set at run time.
 * Each module declares its type once with SL_LOG_REGISTER(name); the packet path logs nothing.
 */
#ifndef SL_LOG_H
#define SL_LOG_H

#include <rte_log.h>

#define SL_LOG_REGISTER(name) RTE_LOG_REGISTER(sl_log_type, sluice.name, NOTICE)

#define SL_LOG(level, fmt, ...)                                                                    \
	rte_log(RTE_LOG_##level, (unsigned int)sl_log_type, "sluice: " fmt "\n", ##__VA_ARGS__)

#endif
