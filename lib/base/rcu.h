/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read-copy-update, liburcu's QSBR flavour. Workers are the only readers: each registers, says once
 * per poll that it holds no reference (sl_rcu_quiescent()), and goes offline before it sleeps. The
 * control thread is no reader. It waits for grace periods through sl_rcu_call(), which runs a
 * function on the helper thread after one, or blocks in sl_rcu_synchronize() where that is short.
 *
 * The functions are wrapped so that thread sanitizer sees the order they give: a publish is a
 * release store, and what follows a grace period comes after everything readers did before it.
 */
#ifndef SL_RCU_H
#define SL_RCU_H

#include <stdint.h>

#include <urcu/urcu-qsbr.h>

#define sl_rcu_publish(pp, v)  __atomic_store_n((pp), (v), __ATOMIC_RELEASE)
#define sl_rcu_dereference(pp) __atomic_load_n((pp), __ATOMIC_CONSUME)

extern char sl_rcu_edge; /* what the annotations below release and acquire */

#if defined(__SANITIZE_THREAD__)
#define SL_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SL_TSAN 1
#endif
#endif

#ifdef SL_TSAN
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
#define sl_rcu_tsan_release() __tsan_release(&sl_rcu_edge)
#define sl_rcu_tsan_acquire() __tsan_acquire(&sl_rcu_edge)
#else
#define sl_rcu_tsan_release() ((void)0)
#define sl_rcu_tsan_acquire() ((void)0)
#endif

static inline void
sl_rcu_register_thread(void)
{
	urcu_qsbr_register_thread();
}

static inline void
sl_rcu_unregister_thread(void)
{
	sl_rcu_tsan_release();
	urcu_qsbr_unregister_thread();
}

static inline void
sl_rcu_quiescent(void)
{
	sl_rcu_tsan_release();
	urcu_qsbr_quiescent_state();
}

static inline void
sl_rcu_offline(void)
{
	sl_rcu_tsan_release();
	urcu_qsbr_thread_offline();
}

static inline void
sl_rcu_online(void)
{
	urcu_qsbr_thread_online();
}

/* Waits until every registered, online thread has passed a quiescent state. Not from a reader. */
void sl_rcu_synchronize(void);

/*
 * The helper thread. Start it once; `done` is called on it after each batch of calls (to wake an
 * event loop), may be NULL. sl_rcu_call() runs fn(arg) on the helper after a grace period that
 * began after the call; calls that wait together share one. sl_rcu_stop() runs what is pending and
 * joins. Return 0 or -errno (-ENOMEM, what pthread_create() says, -ESRCH when the helper is not
 * running).
 */
int sl_rcu_start(void (*done)(void *), void *done_arg);
int sl_rcu_call(void (*fn)(void *), void *arg);
void sl_rcu_stop(void);

/*
 * free(p) a grace period from now, without waiting. At once when the helper is not running, which
 * it may only be where no reader runs at the same time (replay, tests).
 */
void sl_rcu_free(void *p);

#endif
