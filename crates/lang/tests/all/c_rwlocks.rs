//! Reader-writer locks of POSIX that a thread locks while it holds them.

use fencewright_lang::Options;

use crate::verdicts::{assertions, memory, verdicts};

const LOCK: &str =
    "#include <errno.h>\npthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER; int n; struct timespec soon;";

/// A program with one thread beside `main`.
fn with_thread(globals: &str, thread: &str, main: &str) -> String {
    format!(
        "{LOCK} {globals} void *thread(void *u) {{ {thread} return 0; }}
         int main(void) {{ pthread_t t; pthread_create(&t, 0, thread, 0); {main} pthread_join(t, 0); return 0; }}"
    )
}

#[track_caller]
fn right(text: &str) {
    assertions(text, "sss");
    memory(text, "sss");
}

/// Checks for freedom from deadlock under SC, TSO and PSO.
#[track_caller]
fn deadlock(text: &str, expected: &str) {
    let mut options = Options::default();
    options.ask(&["deadlock".into()]);
    assert_eq!(verdicts(text, &options, "deadlock"), expected, "{text}");
}

/// The results are those of glibc.
#[test]
fn a_writer_that_locks_again_gets_an_error() {
    for (take, result) in [
        ("rdlock(&l)", "EDEADLK"),
        ("wrlock(&l)", "EDEADLK"),
        ("tryrdlock(&l)", "EBUSY"),
        ("trywrlock(&l)", "EBUSY"),
        ("timedrdlock(&l, &soon)", "EDEADLK"),
        ("timedwrlock(&l, &soon)", "EDEADLK"),
        ("clockrdlock(&l, CLOCK_MONOTONIC, &soon)", "EDEADLK"),
        ("clockwrlock(&l, CLOCK_MONOTONIC, &soon)", "EDEADLK"),
    ] {
        let again = format!("assert(pthread_rwlock_{take} == {result});");
        for first in ["pthread_rwlock_wrlock(&l);", "if (pthread_rwlock_trywrlock(&l)) return 0;"] {
            let both = format!("{first} {again} n++; pthread_rwlock_unlock(&l);");
            right(&with_thread("", &both, ""));
            deadlock(&with_thread("", &both, ""), "sss");
        }
        // A thread that does not know whether it holds the lock.
        let maybe = format!(
            "int w = __VERIFIER_nondet_bool(); if (w) pthread_rwlock_wrlock(&l); int r = pthread_rwlock_{take};
             assert(r == (w ? {result} : 0)); pthread_rwlock_unlock(&l);"
        );
        right(&with_thread("", &maybe, ""));
        // A lock that is chosen at run time.
        let chosen = format!(
            "pthread_rwlock_t *p = n ? &k : &l; pthread_rwlock_wrlock(p); assert(pthread_rwlock_{} == {result}); pthread_rwlock_unlock(p);",
            take.replace("&l", "p")
        );
        right(&with_thread("pthread_rwlock_t k;", &chosen, "n = 1;"));
    }
}

/// A thread that holds the lock for reading waits for itself; it may lock the lock for reading again.
#[test]
fn a_reader_that_locks_again() {
    let waits = "pthread_rwlock_rdlock(&l); pthread_rwlock_wrlock(&l); assert(0);";
    right(&with_thread("", waits, ""));
    deadlock(&with_thread("", waits, ""), "uuu");
    let late = "pthread_rwlock_rdlock(&l); assert(pthread_rwlock_timedwrlock(&l, &soon) == ETIMEDOUT); pthread_rwlock_unlock(&l);";
    right(&with_thread("", late, ""));
    let twice = "pthread_rwlock_rdlock(&l); pthread_rwlock_rdlock(&l); pthread_rwlock_unlock(&l); pthread_rwlock_unlock(&l);";
    deadlock(&with_thread("", twice, "pthread_rwlock_wrlock(&l); n++; pthread_rwlock_unlock(&l);"), "sss");
}

/// After unlocking, the lock is taken as before; also in loops, and when another thread holds it.
#[test]
fn a_lock_that_was_unlocked() {
    let rounds = "for (int k = 0; k < 2; k++) { pthread_rwlock_wrlock(&l); assert(pthread_rwlock_rdlock(&l) == EDEADLK); n++; pthread_rwlock_unlock(&l); }
        assert(pthread_rwlock_rdlock(&l) == 0); pthread_rwlock_unlock(&l);";
    right(&with_thread(
        "",
        rounds,
        "assert(pthread_rwlock_wrlock(&l) == 0); n++; pthread_rwlock_unlock(&l);",
    ));
    let exclusive = "pthread_rwlock_wrlock(&l); int v = n; n = v + 1; pthread_rwlock_unlock(&l);";
    right(&with_thread("", exclusive, &format!("{exclusive} pthread_join(t, 0); assert(n == 2); return 0;")));
}

/// The error needs no access that drains the buffer.
#[test]
fn the_error_drains_nothing() {
    let one = "pthread_rwlock_wrlock(&l); atomic_store_explicit(&x, 1, memory_order_relaxed); pthread_rwlock_rdlock(&l); a = y;";
    let other = "atomic_store_explicit(&y, 1, memory_order_relaxed); atomic_thread_fence(memory_order_seq_cst); int b = x; pthread_join(t, 0); assert(a || b); return 0;";
    assertions(&with_thread("atomic_int x, y; int a;", one, other), "suu");
}

/// The locks of Linux report nothing.
#[test]
fn locks_of_linux_block() {
    let text = "#include <linux/spinlock.h>\nDEFINE_RWLOCK(l); int main(void) { write_lock(&l); read_lock(&l); return 0; }";
    deadlock(text, "uuu");
}
