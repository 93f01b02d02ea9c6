// Treiber's stack with hazard pointers: a node that was popped is freed once no other thread is about to read it. Without the protection in pop, another
// thread may free the node before its successor is read, or a new node may have the same address (ABA).
#include <assert.h>
#include <genmc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct node {
    int value;
    struct node *next;
};

static _Atomic(struct node *) top;
static int taken[3];

static void push(int value)
{
    struct node *node = malloc(sizeof *node);
    node->value = value;
    struct node *old = atomic_load_explicit(&top, memory_order_relaxed);
    do
        node->next = old;
    while (!atomic_compare_exchange_strong(&top, &old, node));
}

static int pop(void)
{
    __VERIFIER_hp_t *hp = __VERIFIER_hp_alloc();
    int value = 0;
    for (;;) {
        struct node *node = __VERIFIER_hp_protect(hp, &top);
        if (!node)
            break;
        struct node *expected = node;
        if (atomic_compare_exchange_strong(&top, &expected, node->next)) {
            value = node->value;
            __VERIFIER_hp_retire(node);
            break;
        }
    }
    __VERIFIER_hp_free(hp);
    return value;
}

static void *worker(void *argument)
{
    int value = pop();
    assert(!value || !taken[value]++);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    push(1);
    push(2);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(taken[1] && taken[2] && !pop());
    return 0;
}
