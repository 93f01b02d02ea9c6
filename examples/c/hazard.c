// Hazard pointers: a reader says which object it is about to use, and looks again whether that is still the one; a writer reuses an old object only if
// nobody has said so.
//
// The hazard pointer is set by a release store, so the second look may come before anybody sees it: a full barrier is missing, on x86 too.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

struct object {
    int value;
};

static _Atomic(struct object *) current;
static _Atomic(struct object *) hazard;

static struct object *new_object(void)
{
    struct object *object = malloc(sizeof *object);

    object->value = 1;
    return object;
}

static void *reader(void *unused)
{
    struct object *object;

    (void)unused;
    do {
        object = atomic_load_explicit(&current, memory_order_acquire);
        atomic_store_explicit(&hazard, object, memory_order_release);
    } while (atomic_load_explicit(&current, memory_order_acquire) != object);
    assert(object->value == 1);
    atomic_store_explicit(&hazard, NULL, memory_order_release);
    return 0;
}

static void *writer(void *unused)
{
    struct object *old = atomic_exchange(&current, new_object());

    (void)unused;
    if (atomic_load(&hazard) != old) {
        old->value = -1;
        free(old);
    }
    return 0;
}

int main(void)
{
    pthread_t threads[2];

    atomic_init(&current, new_object());
    pthread_create(&threads[0], 0, reader, 0);
    pthread_create(&threads[1], 0, writer, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
