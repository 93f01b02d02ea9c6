// <threads.h> as fencewright models it.
#pragma once
#include <time.h>
#include <fencewright/keys.h>
typedef unsigned long thrd_t;
typedef int (*thrd_start_t)(void *);
typedef struct { int __owner; } mtx_t;
typedef struct { unsigned long __waiting; int __state; } cnd_t;
typedef struct { int __done; } once_flag;
typedef unsigned int tss_t;
typedef void (*tss_dtor_t)(void *);
#define thread_local _Thread_local
#define ONCE_FLAG_INIT { 0 }
#define TSS_DTOR_ITERATIONS 4
enum { thrd_success, thrd_nomem, thrd_timedout, thrd_busy, thrd_error };
enum { mtx_plain = 0, mtx_recursive = 1, mtx_timed = 2 };
int thrd_create(thrd_t *thread, thrd_start_t start, void *argument);
int thrd_join(thrd_t thread, int *result);
int thrd_detach(thrd_t thread);
thrd_t thrd_current(void);
int thrd_equal(thrd_t first, thrd_t second);
void call_once(once_flag *once, void (*function)(void));
void thrd_yield(void);
int thrd_sleep(const struct timespec *wanted, struct timespec *rest);
_Noreturn void thrd_exit(int result);
int mtx_init(mtx_t *mutex, int type);
void mtx_destroy(mtx_t *mutex);
int mtx_lock(mtx_t *mutex);
int mtx_trylock(mtx_t *mutex);
int mtx_timedlock(mtx_t *mutex, const struct timespec *until);
int mtx_unlock(mtx_t *mutex);
int cnd_init(cnd_t *condition);
void cnd_destroy(cnd_t *condition);
int cnd_wait(cnd_t *condition, mtx_t *mutex);
int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *until);
int cnd_signal(cnd_t *condition);
int cnd_broadcast(cnd_t *condition);
#define tss_create(key, destructor) __fencewright_key_create(key, destructor, __FENCEWRIGHT_NEW_KEY)
#define tss_delete(key) ((void)__fencewright_key_delete(key))
#define tss_get(key) __fencewright_value(key)
#define tss_set(key, value) __fencewright_set_value(key, value)
