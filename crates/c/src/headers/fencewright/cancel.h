// Cancellation of threads, for <pthread.h>.
#pragma once
#define PTHREAD_CANCEL_ENABLE 0
#define PTHREAD_CANCEL_DISABLE 1
#define PTHREAD_CANCEL_DEFERRED 0
#define PTHREAD_CANCEL_ASYNCHRONOUS 1
#define PTHREAD_CANCELED ((void *)-1)
void pthread_exit(void *result);
static _Thread_local int __fencewright_cancel_state, __fencewright_cancel_type;
int __fencewright_is_cancelled(void);
void __fencewright_asynchronous_cancel(void);
_Bool __VERIFIER_nondet_bool(void);
static inline void __fencewright_disable_cancel(void)
{
    __fencewright_cancel_state = PTHREAD_CANCEL_DISABLE;
}
// A cancellation point. If `certain` is 0, it need not act on a request.
static inline void __fencewright_test_cancel(int certain)
{
    if (__fencewright_cancel_state == PTHREAD_CANCEL_DISABLE || !__fencewright_is_cancelled())
        return;
    if (!certain && __VERIFIER_nondet_bool())
        return;
    pthread_exit(PTHREAD_CANCELED);
}
static inline int __fencewright_set_cancel_state(int state, int *before)
{
    if (state != PTHREAD_CANCEL_ENABLE && state != PTHREAD_CANCEL_DISABLE)
        return 22;
    if (before)
        *before = __fencewright_cancel_state;
    __fencewright_cancel_state = state;
    return 0;
}
static inline int __fencewright_set_cancel_type(int type, int *before)
{
    if (type != PTHREAD_CANCEL_DEFERRED && type != PTHREAD_CANCEL_ASYNCHRONOUS)
        return 22;
    if (before)
        *before = __fencewright_cancel_type;
    if (type == PTHREAD_CANCEL_ASYNCHRONOUS)
        __fencewright_asynchronous_cancel();
    __fencewright_cancel_type = type;
    return 0;
}
