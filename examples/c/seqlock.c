// A sequence lock: the writer makes the number odd while it writes, and readers try again if the number was odd or has changed.
//
// Nothing is missing on x86. Where stores may pass each other (PSO), the data may be seen before the number, or after
// it: two write barriers are missing.
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

#include "barrier.h"

#ifndef WRITES
#define WRITES 2
#endif

struct point {
    int x, y;
};

static unsigned int sequence;
static struct point position;

static void move_to(int x, int y)
{
    WRITE_ONCE(sequence, sequence + 1);
    WRITE_ONCE(position.x, x);
    WRITE_ONCE(position.y, y);
    WRITE_ONCE(sequence, sequence + 1);
}

static bool try_read(struct point *copy)
{
    unsigned int before = READ_ONCE(sequence);

    if (before & 1)
        return false;
    copy->x = READ_ONCE(position.x);
    copy->y = READ_ONCE(position.y);
    return READ_ONCE(sequence) == before;
}

static void *writer(void *unused)
{
    (void)unused;
    for (int i = 1; i <= WRITES; i++)
        move_to(i, -i);
    return 0;
}

static void *reader(void *unused)
{
    struct point seen;

    (void)unused;
    while (!try_read(&seen))
        cpu_relax();
    assert(seen.x == -seen.y);
    return 0;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], 0, writer, 0);
    pthread_create(&threads[1], 0, reader, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
