// <linux/atomic.h> as fencewright models it. The translator knows the functions by name.
#pragma once
#include <linux/compiler.h>
#define ATOMIC_INIT(value) { (value) }
#define ATOMIC64_INIT(value) { (value) }
#define ATOMIC_LONG_INIT(value) { (value) }
#define __fencewright_orders(type, name, ...)  \
    type name(__VA_ARGS__);                    \
    type name##_relaxed(__VA_ARGS__);          \
    type name##_acquire(__VA_ARGS__);          \
    type name##_release(__VA_ARGS__);
#define __fencewright_atomic(prefix, object, value)                                              \
    value prefix##_read(const object *v);                                                        \
    value prefix##_read_acquire(const object *v);                                                \
    void prefix##_set(object *v, value i);                                                       \
    void prefix##_set_release(object *v, value i);                                               \
    void prefix##_add(value i, object *v);                                                       \
    void prefix##_sub(value i, object *v);                                                       \
    void prefix##_inc(object *v);                                                                \
    void prefix##_dec(object *v);                                                                \
    void prefix##_and(value i, object *v);                                                       \
    void prefix##_or(value i, object *v);                                                        \
    void prefix##_xor(value i, object *v);                                                       \
    void prefix##_andnot(value i, object *v);                                                    \
    __fencewright_orders(value, prefix##_add_return, value i, object *v)                         \
    __fencewright_orders(value, prefix##_sub_return, value i, object *v)                         \
    __fencewright_orders(value, prefix##_inc_return, object *v)                                  \
    __fencewright_orders(value, prefix##_dec_return, object *v)                                  \
    __fencewright_orders(value, prefix##_fetch_add, value i, object *v)                          \
    __fencewright_orders(value, prefix##_fetch_sub, value i, object *v)                          \
    __fencewright_orders(value, prefix##_fetch_inc, object *v)                                   \
    __fencewright_orders(value, prefix##_fetch_dec, object *v)                                   \
    __fencewright_orders(value, prefix##_fetch_and, value i, object *v)                          \
    __fencewright_orders(value, prefix##_fetch_or, value i, object *v)                           \
    __fencewright_orders(value, prefix##_fetch_xor, value i, object *v)                          \
    __fencewright_orders(value, prefix##_fetch_andnot, value i, object *v)                       \
    __fencewright_orders(value, prefix##_xchg, object *v, value i)                               \
    __fencewright_orders(value, prefix##_cmpxchg, object *v, value old, value new)               \
    __fencewright_orders(bool, prefix##_try_cmpxchg, object *v, value *old, value new)           \
    bool prefix##_sub_and_test(value i, object *v);                                              \
    bool prefix##_dec_and_test(object *v);                                                       \
    bool prefix##_inc_and_test(object *v);                                                       \
    bool prefix##_add_negative(value i, object *v);                                              \
    bool prefix##_add_unless(object *v, value a, value u);                                       \
    value prefix##_fetch_add_unless(object *v, value a, value u);                                \
    bool prefix##_inc_not_zero(object *v);                                                       \
    value prefix##_dec_if_positive(object *v);
__fencewright_atomic(atomic, atomic_t, int)
__fencewright_atomic(atomic64, atomic64_t, s64)
__fencewright_atomic(atomic_long, atomic_long_t, long)
