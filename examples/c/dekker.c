// Dekker's lock for two threads (E. W. Dijkstra, Cooperating sequential processes, 1965), with relaxed atomics.
//
// The store to the own flag may still be in the store buffer when the flag of the other thread is read, so under TSO
// both threads can be inside. `fencewright fences dekker.c` says where a fence has to go.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define load(x) atomic_load_explicit(&(x), memory_order_relaxed)
#define store(x, value) atomic_store_explicit(&(x), (value), memory_order_relaxed)

static atomic_bool wants[2];
static atomic_int turn;
static atomic_int inside;

static void lock(int me)
{
    int other = 1 - me;

    store(wants[me], true);
    while (load(wants[other])) {
        if (load(turn) != me) {
            store(wants[me], false);
            while (load(turn) != me)
                ;
            store(wants[me], true);
        }
    }
}

static void unlock(int me)
{
    store(turn, 1 - me);
    store(wants[me], false);
}

static void *worker(void *argument)
{
    int me = *(int *)argument;

    for (;;) {
        lock(me);
        store(inside, me);
        assert(load(inside) == me);
        unlock(me);
    }
    return NULL;
}

int main(void)
{
    static int numbers[2] = { 0, 1 };
    pthread_t first, second;

    pthread_create(&first, NULL, worker, &numbers[0]);
    pthread_create(&second, NULL, worker, &numbers[1]);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    return 0;
}
