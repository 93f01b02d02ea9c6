/*
 * The three mutexes of "Futexes Are Tricky" (Ulrich Drepper), on the system call of Linux. MUTEX selects one.
 *
 * 1: val counts the attempts to take the mutex. Threads that wait may keep each other from sleeping: each one that adds 1 to val changes the number
 *    that another one is about to sleep on. So val has no bound, even with two waiting threads, and no proof is found with -D MUTEX=1 -D THREADS=3.
 * 2: val is 0: free, 1: held, 2: held, and others may wait.
 * 3: The same, with an exchange in place of most comparisons.
 *
 * With LOST, a thread that has waited takes mutex 2 or 3 with 1 instead of 2, although others may still wait. Then unlock does not wake the last of
 * three threads: --property deadlock finds this lost wake-up.
 */
#include <assert.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MUTEX
#define MUTEX 3
#endif
#ifndef THREADS
#define THREADS 2
#endif
#ifdef LOST
#define CONTENDED 1
#else
#define CONTENDED 2
#endif

static atomic_int val;
static int owner;

static void futex_wait(int expected)
{
    syscall(SYS_futex, &val, FUTEX_WAIT_PRIVATE, expected, (struct timespec *)0, (int *)0, 0);
}

static void futex_wake(int number)
{
    syscall(SYS_futex, &val, FUTEX_WAKE_PRIVATE, number, (struct timespec *)0, (int *)0, 0);
}

static int compare_exchange(int expected, int desired)
{
    atomic_compare_exchange_strong(&val, &expected, desired);
    return expected;
}

#if MUTEX == 1
static void lock(void)
{
    int c;
    while ((c = atomic_fetch_add(&val, 1)) != 0)
        futex_wait(c + 1);
}

static void unlock(void)
{
    atomic_store(&val, 0);
    futex_wake(1);
}
#else
#if MUTEX == 2
static void lock(void)
{
    int c = compare_exchange(0, 1);
    if (c != 0) {
        do {
            if (c == 2 || compare_exchange(1, 2) != 0)
                futex_wait(2);
        } while ((c = compare_exchange(0, CONTENDED)) != 0);
    }
}
#else
static void lock(void)
{
    int c = compare_exchange(0, 1);
    if (c != 0) {
        if (c != 2)
            c = atomic_exchange(&val, 2);
        while (c != 0) {
            futex_wait(2);
            c = atomic_exchange(&val, CONTENDED);
        }
    }
}
#endif

static void unlock(void)
{
    if (atomic_fetch_sub(&val, 1) != 1) {
        atomic_store(&val, 0);
        futex_wake(1);
    }
}
#endif

static void *worker(void *argument)
{
    int me = *(int *)argument;
    lock();
    owner = me;
    assert(owner == me);
    unlock();
    return NULL;
}

int main(void)
{
    static int numbers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, worker, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
