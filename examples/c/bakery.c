// Lamport's bakery for THREADS threads (L. Lamport, A new solution of Dijkstra's concurrent programming problem, 1974).
//
// Under TSO a thread may look at the numbers of the others before its own can be seen. Under PSO the ticket may also be
// seen later than the end of `choosing`.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#ifndef THREADS
#define THREADS 2
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif

struct customer {
    atomic_bool choosing;
    atomic_int number;
};

static struct customer customers[THREADS];
static atomic_int served = -1;

static inline int get(atomic_int *place)
{
    return atomic_load_explicit(place, memory_order_relaxed);
}

static inline void set(atomic_int *place, int value)
{
    atomic_store_explicit(place, value, memory_order_relaxed);
}

static void enter(int me)
{
    struct customer *self = &customers[me];
    int highest = 0;

    atomic_store_explicit(&self->choosing, 1, memory_order_relaxed);
    for (int i = 0; i < THREADS; i++) {
        int number = get(&customers[i].number);
        if (number > highest)
            highest = number;
    }
    set(&self->number, highest + 1);
    atomic_store_explicit(&self->choosing, 0, memory_order_relaxed);

    for (int i = 0; i < THREADS; i++) {
        if (i == me)
            continue;
        while (atomic_load_explicit(&customers[i].choosing, memory_order_relaxed))
            ;
        for (;;) {
            int theirs = get(&customers[i].number);
            if (theirs == 0 || theirs > highest + 1 || (theirs == highest + 1 && i > me))
                break;
        }
    }
}

static void leave(int me)
{
    set(&customers[me].number, 0);
}

static void *customer(void *argument)
{
    int me = (int)(intptr_t)argument;

    for (int round = 0; round < ROUNDS; round++) {
        enter(me);
        set(&served, me);
        assert(get(&served) == me);
        leave(me);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];

    for (intptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, customer, (void *)i))
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
