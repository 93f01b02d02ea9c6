// <lkmm.h>, as benchmarks of the Linux kernel memory model include it: includes the model headers of Linux.
#pragma once
#include <linux/spinlock.h>
#define xchg_long(place, value) xchg(place, value)
#define xchg_long_relaxed(place, value) xchg_relaxed(place, value)
#define xchg_long_acquire(place, value) xchg_acquire(place, value)
#define xchg_long_release(place, value) xchg_release(place, value)
#define cmpxchg_long(place, old, value) cmpxchg(place, old, value)
#define cmpxchg_long_relaxed(place, old, value) cmpxchg_relaxed(place, old, value)
#define cmpxchg_long_acquire(place, old, value) cmpxchg_acquire(place, old, value)
#define cmpxchg_long_release(place, old, value) cmpxchg_release(place, old, value)
// Macros that the other headers of these benchmarks, such as <rcu.h>, use.
#define __LKMM_FENCE(order) __fencewright_lkmm_##order
#define __fencewright_lkmm_mb smp_mb()
#define __fencewright_lkmm_rmb smp_rmb()
#define __fencewright_lkmm_wmb smp_wmb()
#define __fencewright_lkmm_barrier barrier()
#define __fencewright_lkmm_rcu_lock rcu_read_lock()
#define __fencewright_lkmm_rcu_unlock rcu_read_unlock()
#define __fencewright_lkmm_rcu_sync synchronize_rcu()
