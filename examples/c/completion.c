// A request on the stack of the thread that waits for its completion.
//
// The worker stores the result elsewhere, marks the request as seen, and completes it through another variable. Where stores may pass each other (PSO),
// the mark may come last: after the waiting thread has returned, when its stack holds something else. A write barrier is missing.
#include <assert.h>
#include <pthread.h>

#include "barrier.h"

struct request {
    int number;
    int seen;
};

static struct request *volatile posted;
static int square, completed;

static void *worker(void *unused)
{
    struct request *request;

    while (!(request = READ_ONCE(posted)))
        cpu_relax();
    WRITE_ONCE(square, request->number * request->number);
    WRITE_ONCE(request->seen, 1);
    WRITE_ONCE(completed, 1);
    return unused;
}

static void ask(int number)
{
    struct request request = { number, 0 };

    smp_mb();
    WRITE_ONCE(posted, &request);
    while (!READ_ONCE(completed))
        cpu_relax();
}

int main(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, worker, NULL);
    ask(3);
    pthread_join(thread, NULL);
    assert(square == 9);
    return 0;
}
