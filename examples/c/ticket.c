// A ticket lock whose tickets have 8 bits. They wrap around after 256 entries, which is no problem while fewer than 256 threads wait: 3 threads
// are safe for ever.
//
// -D TICKET_BITS=2 -D THREADS=5 has four tickets for five threads. Two of them may draw the same one, and both come in.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#ifndef THREADS
#define THREADS 3
#endif
#ifndef TICKET_BITS
#define TICKET_BITS 8
#endif
#define TICKET(number) ((uint8_t)(number) & ((1u << TICKET_BITS) - 1))

typedef struct {
    _Atomic uint8_t next;
    _Atomic uint8_t serving;
} ticket_lock;

static ticket_lock the_lock;
static int owner;

static void ticket_acquire(ticket_lock *lock)
{
    uint8_t mine = atomic_fetch_add_explicit(&lock->next, 1, memory_order_relaxed);

    while (TICKET(atomic_load_explicit(&lock->serving, memory_order_acquire)) != TICKET(mine))
        ;
}

static void ticket_release(ticket_lock *lock)
{
    uint8_t next = atomic_load_explicit(&lock->serving, memory_order_relaxed) + 1;

    atomic_store_explicit(&lock->serving, next, memory_order_release);
}

static void *worker(void *argument)
{
    int me = (int)(intptr_t)argument;

    while (1) {
        ticket_acquire(&the_lock);
        owner = me;
        assert(owner == me);
        ticket_release(&the_lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
