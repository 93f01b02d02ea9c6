// Double-checked locking: who finds the object made does not take the lock.
//
// Nothing is missing on x86. Where stores may pass each other (PSO), the pointer may be seen before what it points to: a write barrier is missing.
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "barrier.h"

struct settings {
    int width, height;
};

static struct settings *settings;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct settings *get_settings(void)
{
    struct settings *found = READ_ONCE(settings);

    if (found)
        return found;
    pthread_mutex_lock(&lock);
    if (!settings) {
        struct settings *made = malloc(sizeof *made);

        made->width = 4;
        made->height = 3;
        WRITE_ONCE(settings, made);
    }
    found = settings;
    pthread_mutex_unlock(&lock);
    return found;
}

static void *worker(void *unused)
{
    struct settings *mine = get_settings();

    (void)unused;
    assert(mine->width * mine->height == 12);
    return mine;
}

int main(void)
{
    pthread_t threads[2];
    void *seen[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, worker, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], &seen[i]);
    assert(seen[0] == seen[1]);
    return 0;
}
