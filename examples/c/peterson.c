// Peterson's lock (G. L. Peterson, Myths about the mutual exclusion problem, 1981) as one finds it in older code:
// `volatile` variables and the builtins of gcc.
//
// Wrong under TSO, because the loads in the loop may pass the stores before it.
#include <assert.h>
#include <pthread.h>
#include <stdint.h>

struct peterson {
    volatile int interested[2];
    volatile int last;
};

static struct peterson mutex;
static volatile int shared_count;
static volatile int passes;

static void peterson_lock(struct peterson *lock, int me)
{
    lock->interested[me] = 1;
    lock->last = me;
    while (lock->interested[1 - me] && lock->last == me)
        ;
}

static void peterson_unlock(struct peterson *lock, int me)
{
    lock->interested[me] = 0;
}

static void *thread(void *argument)
{
    int me = (int)(intptr_t)argument;

    peterson_lock(&mutex, me);
    shared_count++;
    peterson_unlock(&mutex, me);
    __sync_fetch_and_add(&passes, 1);
    return 0;
}

int main(void)
{
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, thread, (void *)(intptr_t)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    assert(passes == 2);
    assert(shared_count == 2);
    return 0;
}
