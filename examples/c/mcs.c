// The MCS queue lock (J. Mellor-Crummey and M. Scott, Algorithms for scalable synchronization on shared-memory multiprocessors, 1991), in the
// style of the Linux kernel. Every thread waits at a node of its own, on its stack.
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

#include "barrier.h"

#ifndef THREADS
#define THREADS 2
#endif

struct mcs_node {
    struct mcs_node *next;
    int locked;
};

struct mcs_lock {
    struct mcs_node *tail;
};

static struct mcs_lock queue;
static int balance;

static void mcs_lock(struct mcs_lock *lock, struct mcs_node *node)
{
    struct mcs_node *before;

    node->next = NULL;
    node->locked = 0;
    before = xchg(&lock->tail, node);
    if (before == NULL)
        return;
    WRITE_ONCE(before->next, node);
    while (!smp_load_acquire(&node->locked))
        cpu_relax();
}

static void mcs_unlock(struct mcs_lock *lock, struct mcs_node *node)
{
    struct mcs_node *next = READ_ONCE(node->next);

    if (!next) {
        if (cmpxchg(&lock->tail, node, NULL) == node)
            return;
        while (!(next = READ_ONCE(node->next)))
            cpu_relax();
    }
    smp_store_release(&next->locked, 1);
}

static void *deposit(void *amount)
{
    struct mcs_node node;

    mcs_lock(&queue, &node);
    balance += *(const int *)amount;
    mcs_unlock(&queue, &node);
    return NULL;
}

int main(void)
{
    static const int amounts[] = { 10, 20, 30, 40 };
    pthread_t threads[THREADS];
    int expected = 0;

    for (int i = 0; i < THREADS; i++) {
        expected += amounts[i];
        pthread_create(&threads[i], NULL, deposit, (void *)&amounts[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert(balance == expected);
    return 0;
}
