// A lock for readers and writers in one word, as it was in the Linux kernel: a reader takes one from a large number, a writer takes all of it.
//
// Every step of it is a read-modify-write, so nothing is missing anywhere.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#define ALL 0x100000

static atomic_int lock = ALL;
static int width, height;

static void take(int amount)
{
    while (atomic_fetch_sub_explicit(&lock, amount, memory_order_acquire) < amount) {
        atomic_fetch_add_explicit(&lock, amount, memory_order_relaxed);
        while (atomic_load_explicit(&lock, memory_order_relaxed) < amount)
            ;
    }
}

static void give(int amount)
{
    atomic_fetch_add_explicit(&lock, amount, memory_order_release);
}

static void *writer(void *unused)
{
    (void)unused;
    take(ALL);
    width++;
    height++;
    give(ALL);
    return 0;
}

static void *reader(void *unused)
{
    (void)unused;
    take(1);
    assert(width == height);
    give(1);
    return 0;
}

int main(void)
{
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, i % 2 ? reader : writer, 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    assert(width == 2 && height == 2);
    return 0;
}
