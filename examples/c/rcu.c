// Read-copy-update: readers follow a pointer without a lock; an updater replaces the object, waits for a grace period, and reuses the old one.
//
// -D HURRY leaves out the grace period.
#include <assert.h>
#include <linux/rcupdate.h>
#include <pthread.h>

struct config {
    int limit;
};

static struct config first = { 1 }, second = { 2 };
static struct config *current = &first;

static void *reader(void *unused)
{
    struct config *config;

    (void)unused;
    rcu_read_lock();
    config = rcu_dereference(current);
    assert(READ_ONCE(config->limit) > 0);
    rcu_read_unlock();
    return 0;
}

static void *updater(void *unused)
{
    (void)unused;
    rcu_assign_pointer(current, &second);
#ifndef HURRY
    synchronize_rcu();
#endif
    WRITE_ONCE(first.limit, -1);
    return 0;
}

int main(void)
{
    pthread_t threads[3];

    pthread_create(&threads[0], 0, reader, 0);
    pthread_create(&threads[1], 0, reader, 0);
    pthread_create(&threads[2], 0, updater, 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    return 0;
}
