// <genmc.h>, as programs for GenMC include it. The translator knows its functions by name.
#pragma once
#include <stdbool.h>
#include <stdint.h>
// Annotations by which a program tells GenMC which executions it need not explore. Here they have no effect on the access.
#define __VERIFIER_local_write(access) access
#define __VERIFIER_final_write(access) access
#define __VERIFIER_helped_CAS(access) access
#define __VERIFIER_helping_CAS(access) access
#define __VERIFIER_speculative_read(access) access
#define __VERIFIER_confirming_read(access) access
#define __VERIFIER_confirming_CAS(access) access
#define __VERIFIER_final_CAS(access) access
// Code that may be skipped. A thread that executes it stops afterwards, but other threads see its effects.
#define __VERIFIER_optional(code) ({ if (__VERIFIER_nondet_bool()) { code; __VERIFIER_assume(false); } })
// Threads. That some are symmetric is a hint: all interleavings are tried.
#include <pthread.h>
typedef pthread_t __VERIFIER_thread_t;
static inline __VERIFIER_thread_t __VERIFIER_spawn(void *(*start)(void *), void *argument)
{
    pthread_t thread;
    pthread_create(&thread, 0, start, argument);
    return thread;
}
#define __VERIFIER_spawn_symmetric(start, argument, like) ((void)(like), __VERIFIER_spawn(start, argument))
static inline void *__VERIFIER_join(__VERIFIER_thread_t thread)
{
    void *result;
    pthread_join(thread, &result);
    return result;
}
#define __VERIFIER_join_symmetric(thread) ((void)__VERIFIER_join(thread))
// Hazard pointers: each holds the pointer that it protects, or null. <stdlib.h> is not included, because programs may use its names.
#include <stddef.h>
void *calloc(size_t count, size_t size);
void free(void *pointer);
typedef struct { void *__protected; } __VERIFIER_hp_t;
void *__fencewright_protect(void **hazard, void **source);
void __fencewright_retire(void *pointer);
static inline __VERIFIER_hp_t *__VERIFIER_hp_alloc(void)
{
    return (__VERIFIER_hp_t *)calloc(1, sizeof(__VERIFIER_hp_t));
}
#define __VERIFIER_hp_protect(hp, source) __fencewright_protect(&(hp)->__protected, (void **)(source))
#define __VERIFIER_hp_clear(hp) __atomic_store_n(&(hp)->__protected, (void *)0, __ATOMIC_RELEASE)
static inline void __VERIFIER_hp_free(__VERIFIER_hp_t *hp)
{
    __VERIFIER_hp_clear(hp);
    free(hp);
}
#define __VERIFIER_hp_retire(pointer) __fencewright_retire(pointer)
