// What the Linux kernel calls these things, for programs in user space on x86-64.
#ifndef BARRIER_H
#define BARRIER_H

#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile __typeof__(x) *)&(x) = (value))

#define barrier() __asm__ __volatile__("" ::: "memory")
#define cpu_relax() __asm__ __volatile__("pause" ::: "memory")
#define smp_mb() __sync_synchronize()
#define smp_wmb() __asm__ __volatile__("sfence" ::: "memory")
#define smp_rmb() barrier()

#define smp_store_release(place, value) __atomic_store_n((place), (value), __ATOMIC_RELEASE)
#define smp_load_acquire(place) __atomic_load_n((place), __ATOMIC_ACQUIRE)
#define xchg(place, value) __atomic_exchange_n((place), (value), __ATOMIC_SEQ_CST)
#define cmpxchg(place, old, value) __sync_val_compare_and_swap((place), (old), (value))

#endif
