/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines of the control side, through DPDK's log types so that levels can be set at run time.
 * Each module declares its type once with SL_LOG_REGISTER(name); the packet path logs nothing.
 */
#ifndef SL_LOG_H
#define SL_LOG_H

#include <rte_common.h>
#include <rte_log.h>

/* RTE_LOG_REGISTER would make the variable global, one for the whole program. */
#define SL_LOG_REGISTER(name)                                                                      \
	static int sl_log_type;                                                                    \
	RTE_INIT(sl_log_register)                                                                  \
	{                                                                                          \
		sl_log_type =                                                                      \
			rte_log_register_type_and_pick_level("sluice." #name, RTE_LOG_NOTICE);     \
		if (sl_log_type < 0)                                                               \
			sl_log_type = RTE_LOGTYPE_EAL;                                             \
	}                                                                                          \
	struct sl_log_semicolon /* takes the semicolon behind the macro */

#define SL_LOG(level, fmt, ...)                                                                    \
	rte_log(RTE_LOG_##level, (unsigned int)sl_log_type, "sluice: " fmt "\n", ##__VA_ARGS__)

#endif
