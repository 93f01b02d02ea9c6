// A ring between one producer and one consumer, as in the Linux kernel.
//
// Nothing is missing on x86. Where stores may pass each other (PSO), the consumer may see that an item is there before the item: a write barrier is missing.
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

#include "barrier.h"

#define SIZE 2
#define ITEMS 4

static struct {
    unsigned char items[SIZE];
    unsigned int in, out;
} ring;

static bool put(unsigned char item)
{
    if (ring.in - READ_ONCE(ring.out) == SIZE)
        return false;
    ring.items[ring.in % SIZE] = item;
    WRITE_ONCE(ring.in, ring.in + 1);
    return true;
}

static bool get(unsigned char *item)
{
    if (READ_ONCE(ring.in) == ring.out)
        return false;
    smp_rmb();
    *item = ring.items[ring.out % SIZE];
    smp_mb();
    WRITE_ONCE(ring.out, ring.out + 1);
    return true;
}

static void *producer(void *unused)
{
    (void)unused;
    for (unsigned char i = 1; i <= ITEMS; i++)
        while (!put(i))
            cpu_relax();
    return 0;
}

static void *consumer(void *unused)
{
    unsigned char item;

    (void)unused;
    for (unsigned char i = 1; i <= ITEMS; i++) {
        while (!get(&item))
            cpu_relax();
        assert(item == i);
    }
    return 0;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], 0, producer, 0);
    pthread_create(&threads[1], 0, consumer, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
