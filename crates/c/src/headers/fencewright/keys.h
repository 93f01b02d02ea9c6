// Thread-specific values by key (pthread_key_t, tss_t), for <pthread.h> and <threads.h>.
#pragma once
#define __FENCEWRIGHT_MOST_KEYS 8
static unsigned int __fencewright_keys;
static _Thread_local void *__fencewright_values[__FENCEWRIGHT_MOST_KEYS];
void __fencewright_destructor_of_a_key(void);
static inline int __fencewright_key_create(unsigned int *key, void (*destructor)(void *))
{
    if (destructor)
        __fencewright_destructor_of_a_key();
    *key = __atomic_fetch_add(&__fencewright_keys, 1, __ATOMIC_SEQ_CST);
    return 0;
}
static inline void *__fencewright_value(unsigned int key)
{
    return __fencewright_values[key];
}
static inline int __fencewright_set_value(unsigned int key, const void *value)
{
    __fencewright_values[key] = (void *)value;
    return 0;
}
