//! Atomic sections of verification tools, what a thread executes when it ends, and operations that time out.

use crate::c_builtins::{
    RELAXED_FLAG, alone, buffering_with, check, check_two, message_passing, refused, store_buffering,
};
use crate::facts::{ALL, NONE};

#[test]
fn an_atomic_section_drains_the_buffer_at_both_ends() {
    let section = "__ESBMC_atomic_begin(); __ESBMC_atomic_end();";
    buffering_with("", section, ALL);
    let inside = |store: &str| format!("__ESBMC_atomic_begin(); {store} __ESBMC_atomic_end();");
    store_buffering("", &inside("x = 1;"), &inside("y = 1;"), ALL);
    message_passing("", section, RELAXED_FLAG, ALL);
    store_buffering("", &inside("b = 0; atomic_store_explicit(&x, 1, memory_order_relaxed);"), "y = 1;", ALL);
}

/// A thread that has not ended its atomic section ends it when the thread ends; otherwise the section would keep out all other threads forever.
#[test]
fn an_atomic_section_ends_with_its_thread() {
    let begins = "__VERIFIER_atomic_begin(); x = 1;";
    for end in ["", "return 0;", "pthread_exit(0);", "if (x == 1) pthread_exit(0); __VERIFIER_atomic_end();"]
    {
        check_two("int x;", &format!("{begins} {end}"), "", "assert(x == 0);", NONE);
        check_two("int x;", &format!("{begins} {end}"), "", "assert(x == 1);", ALL);
    }
    // A start routine that is atomic because of its name, and one that is called through a pointer.
    let start =
        "int n; void *__VERIFIER_atomic_add(void *u) { n++; if (n > 5) pthread_exit(0); n++; return 0; }";
    let threads = "pthread_t p, q; pthread_create(&p, 0, __VERIFIER_atomic_add, 0); pthread_create(&q, 0, __VERIFIER_atomic_add, 0);";
    let join = "pthread_join(p, 0); pthread_join(q, 0); assert(n == 4);";
    check(&format!("{start} int main(void) {{ {threads} {join} return 0; }}"), ALL);
    let through = "void *(*volatile f)(void *) = __VERIFIER_atomic_add; f(0);";
    check_two(start, through, through, "assert(n == 4);", ALL);
    let unclear = "on some paths and not on others";
    refused("if (__VERIFIER_nondet_int()) __VERIFIER_atomic_begin();", unclear);
    refused(
        "__VERIFIER_atomic_begin(); if (__VERIFIER_nondet_int()) return 0; __VERIFIER_atomic_end();",
        unclear,
    );
}

/// An atomic section of `main` before the first thread has no effect; a thread that is created in a section starts after its end.
#[test]
fn an_atomic_section_of_main() {
    let thread = "int x, y; void *t(void *u) { y = x; return 0; }";
    let main = |work: &str| format!("{thread} int main(void) {{ pthread_t p; {work} return 0; }}");
    let join = "pthread_join(p, 0); assert(y == 2);";
    let create = "pthread_create(&p, 0, t, 0);";
    check(
        &main(&format!("__VERIFIER_atomic_begin(); x = 1; x = 2; __VERIFIER_atomic_end(); {create} {join}")),
        ALL,
    );
    check(
        &main(&format!("__VERIFIER_atomic_begin(); x = 1; {create} x = 2; __VERIFIER_atomic_end(); {join}")),
        ALL,
    );
    check(&main(&format!("x = 1; {create} x = 2; {join}")), NONE);
}

#[test]
fn what_a_thread_executes_at_its_end() {
    let globals = "int n; void add(void *by) { n = 10 * n + *(int *)by; }
        void inner(int exits) { int two = 2; pthread_cleanup_push(add, &two); if (exits) pthread_exit(0); pthread_cleanup_pop(0); }";
    let outer = |exits: &str, pops: &str| {
        format!(
            "int one = 1; pthread_cleanup_push(add, &one); inner({exits}); pthread_cleanup_pop({pops}); if (n > 1) n = 0;"
        )
    };
    check_two(globals, &outer("1", "1"), "", "assert(n == 21);", ALL);
    check_two(globals, &outer("0", "1"), "", "assert(n == 1);", ALL);
    check_two(globals, &outer("0", "0"), "", "assert(n == 0);", ALL);
    check_two(globals, &outer("__VERIFIER_nondet_bool()", "1"), "", "assert(n == 21 || n == 1);", ALL);
    let in_loop = "int one = 1; for (int i = 0; i < 3; i++) { pthread_cleanup_push(add, &one); if (n == 11) pthread_exit(0); pthread_cleanup_pop(1); }";
    check_two(globals, in_loop, "", "assert(n == 111);", ALL);
    let leaves =
        "int one = 1; pthread_cleanup_push(add, &one); if (n == 0) return 0; pthread_cleanup_pop(1);";
    check_two(globals, leaves, "", "", NONE);
    refused(
        "void (*volatile f)(void *) = 0; pthread_cleanup_push(f, 0); pthread_cleanup_pop(1);",
        "is unknown",
    );
    let jumps = "are not supported";
    refused(
        "pthread_cleanup_push((void (*)(void *))strlen, 0); goto out; pthread_cleanup_pop(0); out:;",
        jumps,
    );
}

#[test]
fn destructors_of_keys() {
    let globals = "pthread_key_t key; int n, m; void count(void *v) { assert(v == &n); n++; if (n == 1) pthread_setspecific(key, &n); }";
    let run = |thread: &str, main: &str, end: &str| {
        format!(
            "{globals} void *t(void *u) {{ {thread} return 0; }}
             int main(void) {{ pthread_t p; pthread_key_create(&key, count); pthread_setspecific(key, &m); {main}
                 pthread_create(&p, 0, t, 0); pthread_join(p, 0); {end} return 0; }}"
        )
    };
    let set = "pthread_setspecific(key, &n);";
    check(&run(set, "", "assert(n == 2);"), ALL);
    check(&run(&format!("{set} pthread_exit(0);"), "", "assert(n == 2);"), ALL);
    check(&run("", "", "assert(n == 0);"), ALL);
    check(&run(set, "pthread_key_delete(key);", "assert(n == 0);"), ALL);
}

#[test]
fn timed_operations_fail_only_while_they_would_wait() {
    check_two("pthread_mutex_t m;", "assert(pthread_mutex_timedlock(&m, 0) == 0);", "", "", ALL);
    let held = "int r = pthread_mutex_timedlock(&m, 0); assert(r == 0 || r == 110); if (!r) pthread_mutex_unlock(&m);";
    check_two("pthread_mutex_t m;", held, held, "", ALL);
    let times_out = held.replace("|| r == 110", "");
    check_two("pthread_mutex_t m;", &times_out, &times_out, "", NONE);
    let wait = "int r = sem_timedwait(&s, 0); assert(r == 0 || r == -1 && errno == ETIMEDOUT);";
    check_two("#include <errno.h>\nsem_t s;", wait, "sem_post(&s);", "", ALL);
    let tries = "assert(sem_trywait(&s) == -1 && errno == EAGAIN);";
    check_two("#include <errno.h>\nsem_t s;", tries, "", "", ALL);
    let init = "assert(sem_init(&s, 0, 2147483648u) == -1 && errno == EINVAL);";
    alone("#include <errno.h>\nsem_t s;", init, ALL);
    alone("sem_t s;", "assert(sem_init(&s, 0, 2147483647) == 0);", ALL);
}

/// ESBMC counts sections that begin inside of others.
#[test]
fn atomic_sections_of_esbmc_are_counted() {
    let inner = "__ESBMC_atomic_begin(); n++; __ESBMC_atomic_end();";
    let outer = format!("__ESBMC_atomic_begin(); {inner} {inner} assert(n % 2 == 0); __ESBMC_atomic_end();");
    check_two("int n;", &outer, &outer, "assert(n == 4);", ALL);
    check_two("int n;", &outer, inner, "", NONE);
    check_two("int n;", &format!("__ESBMC_atomic_begin(); {outer}"), inner, "", NONE);
}

/// A thread that ends while it holds a robust mutex would leave it to the next one.
#[test]
fn robust_mutexes_are_refused() {
    let robust = "pthread_mutexattr_t a; pthread_mutexattr_init(&a); pthread_mutexattr_setrobust(&a, KIND);";
    refused(&robust.replace("KIND", "PTHREAD_MUTEX_ROBUST"), "robust mutexes");
    check_two("", &robust.replace("KIND", "PTHREAD_MUTEX_STALLED"), "", "", ALL);
}

/// Another thread may delete a key while the thread calls the destructor.
#[test]
fn keys_may_be_deleted_while_a_thread_ends() {
    let text = "pthread_key_t key; int n; void set(void *v) { n = 1; } void *t(void *u) { pthread_setspecific(key, &n); return 0; }
        int main(void) { pthread_t p; pthread_key_create(&key, set); pthread_create(&p, 0, t, 0); pthread_key_delete(key); pthread_join(p, 0); return 0; }";
    crate::verdicts::memory(text, "sss");
}
