/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lock contracts for clang's -Wthread-safety. Other compilers see nothing.
 * In C a member cannot be named in guarded_by(), hence guarded_var for "some lock guards this".
 */
#ifndef SL_TSA_H
#define SL_TSA_H

#if defined(__clang__)
#define SL_TSA(x) __attribute__((x))
#else
#define SL_TSA(x)
#endif

#define SL_CAPABILITY(name)   SL_TSA(capability(name))
#define SL_GUARDED_VAR        SL_TSA(guarded_var)
#define SL_ACQUIRE(...)       SL_TSA(acquire_capability(__VA_ARGS__))
#define SL_TRY_ACQUIRE(...)   SL_TSA(try_acquire_capability(__VA_ARGS__))
#define SL_RELEASE(...)       SL_TSA(release_capability(__VA_ARGS__))
#define SL_REQUIRES(...)      SL_TSA(requires_capability(__VA_ARGS__))
#define SL_EXCLUDES(...)      SL_TSA(locks_excluded(__VA_ARGS__))
#define SL_NO_ANALYSIS        SL_TSA(no_thread_safety_analysis)

#endif
