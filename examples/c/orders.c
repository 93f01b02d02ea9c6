/*
 * Peterson's lock in the order that C gives by default: seq_cst everywhere. Which of these orders does a memory model need?
 *
 *     fencewright fences --audit --model tso orders.c
 *
 * On x86 only the store to `last` needs it, which drains the store buffer before the loop reads. Under PSO the store that releases the lock must also
 * be a release store.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int interested[2];
static atomic_int last;
static int owner;

static void lock(int me)
{
    atomic_store(&interested[me], 1);
    atomic_store(&last, me);
    while (atomic_load(&interested[1 - me]) && atomic_load(&last) == me)
        ;
}

static void unlock(int me)
{
    atomic_store(&interested[me], 0);
}

static void *worker(void *argument)
{
    int me = (int)(long)argument;
    for (;;) {
        lock(me);
        owner = me;
        assert(owner == me);
        unlock(me);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, worker, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
