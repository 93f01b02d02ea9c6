// <linux/rcupdate.h> as fencewright models it. rcu_read_lock, rcu_read_unlock and synchronize_rcu are known to the translator by name. A callback is
// a thread of its own that waits for a grace period.
#pragma once
#include <linux/compiler.h>
#include <linux/slab.h>
#include <pthread.h>
struct rcu_head {
    struct rcu_head *next;
    void (*func)(struct rcu_head *head);
};
#define callback_head rcu_head
typedef void (*rcu_callback_t)(struct rcu_head *head);
#define rcu_dereference_check(pointer, condition) rcu_dereference(pointer)
#define rcu_dereference_protected(pointer, condition) (pointer)
#define rcu_dereference_raw(pointer) rcu_dereference(pointer)
#define rcu_dereference_bh(pointer) rcu_dereference(pointer)
#define rcu_dereference_sched(pointer) rcu_dereference(pointer)
#define rcu_access_pointer(pointer) READ_ONCE(pointer)
#define rcu_pointer_handoff(pointer) (pointer)
#define RCU_INIT_POINTER(pointer, value) WRITE_ONCE(pointer, value)
#define RCU_INITIALIZER(value) (value)
#define rcu_replace_pointer(pointer, value, condition)  \
    ({                                                  \
        typeof(pointer) __old = (pointer);              \
        rcu_assign_pointer(pointer, value);             \
        __old;                                          \
    })
#define unrcu_pointer(pointer) (pointer)
#define rcu_read_lock_held() 1
#define rcu_read_lock_any_held() 1
#define lockdep_is_held(lock) 1
#define init_rcu_head(head) ((void)(head))
#define destroy_rcu_head(head) ((void)(head))
// A bit for each callback that was passed on, and for each that has returned, by the number of its thread.
static unsigned long __fencewright_called, __fencewright_returned;
static inline void __fencewright_return(void)
{
    __atomic_fetch_or(&__fencewright_returned, 1UL << pthread_self(), __ATOMIC_SEQ_CST);
}
static void *__fencewright_call(void *head)
{
    synchronize_rcu();
    ((struct rcu_head *)head)->func((struct rcu_head *)head);
    __fencewright_return();
    return NULL;
}
static void *__fencewright_free(void *pointer)
{
    synchronize_rcu();
    kfree(pointer);
    __fencewright_return();
    return NULL;
}
static inline void __fencewright_later(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    pthread_create(&thread, NULL, run, argument);
    pthread_detach(thread);
    __atomic_fetch_or(&__fencewright_called, 1UL << thread, __ATOMIC_SEQ_CST);
}
static inline void call_rcu(struct rcu_head *head, rcu_callback_t func)
{
    head->func = func;
    __fencewright_later(__fencewright_call, head);
}
#define call_rcu_hurry(head, func) call_rcu(head, func)
#define kfree_rcu(pointer, head) __fencewright_later(__fencewright_free, pointer)
#define kfree_rcu_mightsleep(pointer) __fencewright_later(__fencewright_free, pointer)
static inline void rcu_barrier(void)
{
    unsigned long called = __atomic_fetch_or(&__fencewright_called, 0, __ATOMIC_SEQ_CST);
    while ((__atomic_load_n(&__fencewright_returned, __ATOMIC_SEQ_CST) & called) != called)
        cpu_relax();
    smp_mb();
}
