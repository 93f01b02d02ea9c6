// The work-stealing deque of Chase and Lev: the owner pushes and takes at the bottom, thieves steal at the top.
//
// Two barriers are missing. The owner may read the top before thieves see its new bottom, so that it takes what was stolen already: on x86 too.
// And where stores may pass each other (PSO), a thief may see the new bottom before the task that was pushed.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#define SIZE 4
#define NOTHING 0

static atomic_int top, bottom;
static atomic_int tasks[SIZE];

static void push(int task)
{
    int b = atomic_load_explicit(&bottom, memory_order_relaxed);

    atomic_store_explicit(&tasks[b % SIZE], task, memory_order_relaxed);
    atomic_store_explicit(&bottom, b + 1, memory_order_relaxed);
}

static int take(void)
{
    int b = atomic_load_explicit(&bottom, memory_order_relaxed) - 1;

    atomic_store_explicit(&bottom, b, memory_order_relaxed);
    int t = atomic_load_explicit(&top, memory_order_relaxed);
    int task = NOTHING;
    if (t <= b)
        task = atomic_load_explicit(&tasks[b % SIZE], memory_order_relaxed);
    if (t < b)
        return task;
    // The last task: whoever moves the top has it.
    if (t == b && !atomic_compare_exchange_strong(&top, &t, t + 1))
        task = NOTHING;
    atomic_store_explicit(&bottom, b + 1, memory_order_relaxed);
    return task;
}

static int steal(void)
{
    int t = atomic_load_explicit(&top, memory_order_acquire);
    int b = atomic_load_explicit(&bottom, memory_order_acquire);

    if (t >= b)
        return NOTHING;
    int task = atomic_load_explicit(&tasks[t % SIZE], memory_order_relaxed);
    return atomic_compare_exchange_strong(&top, &t, t + 1) ? task : NOTHING;
}

static int stolen[2];

static void *thief(void *unused)
{
    (void)unused;
    for (int i = 0; i < 2; i++)
        stolen[i] = steal();
    return 0;
}

int main(void)
{
    pthread_t thread;
    int done[3] = { 0 };

    pthread_create(&thread, 0, thief, 0);
    push(1);
    push(2);
    done[take()]++;
    done[take()]++;
    pthread_join(thread, 0);
    for (int i = 0; i < 2; i++)
        done[stolen[i]]++;
    // Every task is done once.
    assert(done[1] == 1 && done[2] == 1);
    return 0;
}
