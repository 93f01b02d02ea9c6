// Thread-specific values by key (pthread_key_t, tss_t), for <pthread.h> and <threads.h>.
#pragma once
#define __FENCEWRIGHT_MOST_KEYS 8
#define __FENCEWRIGHT_MOST_ROUNDS 4
static unsigned int __fencewright_keys;
static void (*__fencewright_destructors[__FENCEWRIGHT_MOST_KEYS])(void *);
static _Thread_local void *__fencewright_values[__FENCEWRIGHT_MOST_KEYS];
void __fencewright_destructor_of_a_key(void);
unsigned int __fencewright_new_key(unsigned int number, int most);
#define __FENCEWRIGHT_NEW_KEY __fencewright_new_key(__atomic_fetch_add(&__fencewright_keys, 1, __ATOMIC_SEQ_CST), __FENCEWRIGHT_MOST_KEYS)
static inline int __fencewright_key_create(unsigned int *key, void (*destructor)(void *), unsigned int number)
{
    if (destructor) {
        __fencewright_destructor_of_a_key();
        __fencewright_destructors[number] = destructor;
    }
    *key = number;
    return 0;
}
static inline int __fencewright_key_delete(unsigned int key)
{
    if (__fencewright_destructors[key])
        __fencewright_destructors[key] = 0;
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
// Called at the end of each thread if some key has a destructor. A destructor may store values again.
static inline void __fencewright_destroy_values(void)
{
    for (int round = 0; round < __FENCEWRIGHT_MOST_ROUNDS; round++) {
        int stored = 0;
        for (unsigned int key = 0; key < __fencewright_keys; key++) {
            void *value = __fencewright_values[key];
            // Read once: another thread may delete the key.
            void (*destructor)(void *) = __fencewright_destructors[key];
            if (!value || !destructor)
                continue;
            stored = 1;
            __fencewright_values[key] = 0;
            destructor(value);
        }
        if (!stored)
            return;
    }
}
