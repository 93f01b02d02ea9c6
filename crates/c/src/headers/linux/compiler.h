// <linux/compiler.h> as fencewright models it. The translator knows READ_ONCE, WRITE_ONCE, barriers, cmpxchg and xchg by name.
#pragma once
#include <linux/types.h>
#define __always_inline inline
#define noinline
#define __maybe_unused
#define __used
#define __init
#define __exit
#define __percpu
#define __user
#define __rcu
#define __iomem
#define __must_check
#define __acquires(lock)
#define __releases(lock)
#define __cacheline_aligned
#define ____cacheline_aligned
#define ____cacheline_aligned_in_smp
#define __read_mostly
#define fallthrough ((void)0)
#define typecheck(type, value) 1
#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), #condition)
#define BIT(number) (1UL << (number))
#define __fencewright_compared(a, order, b)  \
    ({                                       \
        typeof(a) __one = (a);               \
        typeof(b) __other = (b);             \
        __one order __other ? __one : __other; \
    })
#define min(a, b) __fencewright_compared(a, <, b)
#define max(a, b) __fencewright_compared(a, >, b)
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))
#define ACCESS_PRIVATE(pointer, member) ((pointer)->member)
#define data_race(expression) (expression)
#define EXPORT_SYMBOL(name)
#define EXPORT_SYMBOL_GPL(name)
#define smp_cond_load_relaxed(pointer, condition)   \
    ({                                              \
        typeof(*(pointer)) VAL;                     \
        for (;;) {                                  \
            VAL = READ_ONCE(*(pointer));            \
            if (condition)                          \
                break;                              \
            cpu_relax();                            \
        }                                           \
        VAL;                                        \
    })
#define smp_cond_load_acquire(pointer, condition) smp_cond_load_relaxed(pointer, condition)
#define atomic_cond_read_relaxed(object, condition) smp_cond_load_relaxed(&(object)->counter, condition)
#define atomic_cond_read_acquire(object, condition) smp_cond_load_relaxed(&(object)->counter, condition)
