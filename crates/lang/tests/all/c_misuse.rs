//! Undefined behaviour of POSIX threads and of synchronisation, and similar correct programs. Verdicts are found by exploring the reference
//! semantics.

use fencewright_lang::load;
use fencewright_lang::options::{COptions, Options};

use crate::verdicts::{assertions, memory, verdicts};

/// A program with a thread and a `main` with these bodies.
fn with_thread(globals: &str, thread: &str, main: &str) -> String {
    format!(
        "#include <semaphore.h>
         #include <threads.h>
         {globals}
         void *thread(void *argument) {{ {thread} return 0; }}
         int main(void) {{ {main} return 0; }}"
    )
}

/// As [`with_thread`], where `main` starts the thread before its body.
fn beside(globals: &str, thread: &str, main: &str) -> String {
    with_thread(globals, thread, &format!("pthread_t t; pthread_create(&t, 0, thread, 0); {main}"))
}

/// Checks for a violation of `assertions` whose message contains `words`, and no violation of `memory`.
#[track_caller]
fn wrong(text: &str, words: &str) {
    assertions(text, "uuu");
    memory(text, "sss");
    let text = format!("{}{text}", crate::verdicts::HEADERS);
    let program = load("test.c", text.as_bytes(), None, &[]).expect("it is a program").program;
    assert!(program.texts.iter().any(|said| said == words), "{:?}", program.texts);
}

#[track_caller]
fn right(text: &str) {
    assertions(text, "sss");
    memory(text, "sss");
}

const MUTEX: &str = "pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;";
const NOT_HELD: &str = "a mutex is unlocked by a thread that does not hold it";
const MUTEX_GONE: &str = "a mutex is used after it was destroyed";

#[test]
fn destroyed_mutexes() {
    let alone = |body: &str| with_thread(MUTEX, "", body);
    let destroy = "pthread_mutex_destroy(&m);";
    for use_it in
        ["pthread_mutex_lock(&m);", "pthread_mutex_trylock(&m);", "pthread_mutex_unlock(&m);", destroy]
    {
        wrong(&alone(&format!("{destroy} {use_it}")), MUTEX_GONE);
    }
    wrong(&beside(MUTEX, "pthread_mutex_lock(&m); pthread_mutex_unlock(&m);", destroy), MUTEX_GONE);
    let held = "a mutex is destroyed while a thread holds it";
    wrong(&alone(&format!("pthread_mutex_lock(&m); {destroy}")), held);
    wrong(&beside(MUTEX, "pthread_mutex_lock(&m); pthread_mutex_unlock(&m);", destroy), held);
    wrong(
        &with_thread("mtx_t m;", "", "mtx_init(&m, mtx_plain); mtx_destroy(&m); mtx_lock(&m);"),
        MUTEX_GONE,
    );
    // These programs are correct.
    let works = "pthread_mutex_lock(&m); pthread_mutex_unlock(&m);";
    right(&alone(&format!("{works} {destroy} pthread_mutex_init(&m, 0); {works} {destroy}")));
    right(&beside(MUTEX, works, &format!("{works} pthread_join(t, 0); {destroy}")));
    right(&beside("pthread_mutex_t m;", works, &format!("{works} pthread_join(t, 0); {destroy}")));
    right(&with_thread(
        "mtx_t m;",
        "",
        "mtx_init(&m, mtx_plain); mtx_lock(&m); mtx_unlock(&m); mtx_destroy(&m);",
    ));
    // The last thread that uses the mutex destroys it.
    let last = "pthread_mutex_lock(&m); int mine = --users; pthread_mutex_unlock(&m); if (!mine) pthread_mutex_destroy(&m);";
    right(&beside("pthread_mutex_t m; int users = 2;", last, last));
}

#[test]
fn destroying_drains_nothing() {
    let text = |middle: &str| {
        beside(
            "pthread_mutex_t m; int x, y, a, b;",
            "y = 1; __sync_synchronize(); b = x;",
            &format!("x = 1; {middle} a = y; pthread_join(t, 0); assert(a || b);"),
        )
    };
    assertions(&text(""), "suu");
    assertions(&text("pthread_mutex_destroy(&m);"), "suu");
}

#[test]
fn main_is_concurrent_until_all_threads_have_ended() {
    let fenced = "y = 1; __sync_synchronize(); b = x;";
    // The first iteration joins the thread. The loop is first analysed as if this were its only iteration.
    let globals = "extern _Bool __VERIFIER_nondet_bool(void); pthread_mutex_t m; int x, y, a, b;";
    let rounds = "int i = 0; do {
            if (i == 0) { x = 1; pthread_mutex_destroy(&m); a = y; }
            if (i == 0) { pthread_join(t, 0); assert(a || b); }
            i++;
        } while (i < 2 && __VERIFIER_nondet_bool());";
    assertions(&beside(globals, fenced, rounds), "suu");
    // The joined thread has created another one, which still runs.
    let text = |creates: &str| {
        format!(
            "pthread_t u; pthread_once_t once = PTHREAD_ONCE_INIT; pthread_mutex_t m; int x, y, a, b;
             void *other(void *argument) {{ {fenced} return 0; }}
             void create(void) {{ pthread_create(&u, 0, other, 0); }}
             void *thread(void *argument) {{ {creates} return 0; }}
             int main(void) {{
                 pthread_t t; pthread_create(&t, 0, thread, 0); pthread_join(t, 0);
                 x = 1; pthread_mutex_destroy(&m); a = y; pthread_join(u, 0); assert(a || b);
                 return 0;
             }}"
        )
    };
    assertions(&text("create();"), "suu");
    assertions(&text("pthread_once(&once, create);"), "suu");
}

#[test]
fn mutexes_of_other_threads() {
    let alone = |body: &str| with_thread(MUTEX, "", body);
    wrong(&alone("pthread_mutex_unlock(&m);"), NOT_HELD);
    wrong(&beside(MUTEX, "pthread_mutex_unlock(&m);", "pthread_mutex_lock(&m);"), NOT_HELD);
    wrong(&with_thread("mtx_t m;", "", "mtx_init(&m, mtx_plain); mtx_unlock(&m);"), NOT_HELD);
    // The thread waits for itself forever, so it does not reach the assertion.
    right(&alone("pthread_mutex_lock(&m); pthread_mutex_lock(&m); assert(0);"));
}

#[test]
fn mutexes_that_return_errors() {
    let typed = |kind: &str, body: &str| {
        let init = format!(
            "pthread_mutexattr_t k; pthread_mutexattr_init(&k); pthread_mutexattr_settype(&k, PTHREAD_MUTEX_{kind}); pthread_mutex_init(&m, &k);"
        );
        with_thread("pthread_mutex_t m; pthread_cond_t c;", "", &format!("{init} {body}"))
    };
    right(&typed("ERRORCHECK", "assert(pthread_mutex_unlock(&m) == 1);"));
    right(&typed("RECURSIVE", "assert(pthread_mutex_unlock(&m) == 1);"));
    right(&typed("ERRORCHECK", "pthread_mutex_lock(&m); assert(pthread_mutex_lock(&m) == 35);"));
    right(&typed("ERRORCHECK", "pthread_mutex_lock(&m); assert(pthread_mutex_trylock(&m) == 16);"));
    right(&typed("ERRORCHECK", "assert(pthread_cond_wait(&c, &m) == 1);"));
    right(&typed(
        "RECURSIVE",
        "pthread_mutex_lock(&m); pthread_mutex_unlock(&m); pthread_mutex_destroy(&m);",
    ));
    for kind in ["ERRORCHECK", "RECURSIVE"] {
        for use_it in ["lock", "trylock", "unlock", "destroy"] {
            let text = typed(kind, &format!("pthread_mutex_destroy(&m); pthread_mutex_{use_it}(&m);"));
            wrong(&text, MUTEX_GONE);
        }
    }
}

#[test]
fn spin_locks() {
    let not_held = "a spin lock is unlocked by a thread that does not hold it";
    let gone = "a spin lock is used after it was destroyed";
    let lock = "pthread_spinlock_t m;";
    let alone = |body: &str| with_thread(lock, "", &format!("pthread_spin_init(&m, 0); {body}"));
    wrong(&alone("pthread_spin_unlock(&m);"), not_held);
    wrong(&alone("pthread_spin_destroy(&m); pthread_spin_lock(&m);"), gone);
    wrong(
        &alone("pthread_spin_lock(&m); pthread_spin_destroy(&m);"),
        "a spin lock is destroyed while a thread holds it",
    );
    wrong(&beside(lock, "pthread_spin_unlock(&m);", "pthread_spin_lock(&m);"), not_held);
    let works = "pthread_spin_lock(&m); pthread_spin_unlock(&m);";
    right(&beside(lock, works, &format!("{works} pthread_join(t, 0); pthread_spin_destroy(&m);")));
    // The lock that is taken is computed at run time, but unlocked by its name.
    right(&beside(
        "pthread_spinlock_t m, n; int which;",
        "which = 1;",
        "int w = which; pthread_spinlock_t *p = w ? &n : &m; pthread_spin_lock(p); if (w) pthread_spin_unlock(&n); else pthread_spin_unlock(&m);",
    ));
    right(&beside(
        "pthread_rwlock_t m, n; int which;",
        "which = 1;",
        "int w = which; pthread_rwlock_t *p = w ? &n : &m; pthread_rwlock_rdlock(p); if (w) pthread_rwlock_unlock(&n); else pthread_rwlock_unlock(&m);",
    ));
    // In Linux, another thread may release the spin lock.
    let linux = "#include <linux/spinlock.h>\nDEFINE_SPINLOCK(m); atomic_int taken;";
    right(&beside(linux, "while (!taken); spin_unlock(&m);", "spin_lock(&m); taken = 1;"));
}

#[test]
fn locks_for_readers_and_writers() {
    let lock = "pthread_rwlock_t m = PTHREAD_RWLOCK_INITIALIZER;";
    let alone = |body: &str| with_thread(lock, "", body);
    let gone = "a lock for readers and writers is used after it was destroyed";
    wrong(&alone("pthread_rwlock_unlock(&m);"), "a lock is unlocked by a thread that does not hold it");
    for use_it in ["rdlock", "wrlock", "tryrdlock", "trywrlock", "unlock"] {
        wrong(&alone(&format!("pthread_rwlock_destroy(&m); pthread_rwlock_{use_it}(&m);")), gone);
    }
    let held = "a lock for readers and writers is destroyed while a thread holds it";
    wrong(&alone("pthread_rwlock_rdlock(&m); pthread_rwlock_destroy(&m);"), held);
    wrong(&alone("pthread_rwlock_wrlock(&m); pthread_rwlock_destroy(&m);"), held);
    right(&alone(
        "pthread_rwlock_rdlock(&m); pthread_rwlock_rdlock(&m); pthread_rwlock_unlock(&m); pthread_rwlock_unlock(&m); pthread_rwlock_destroy(&m);",
    ));
}

#[test]
fn semaphores() {
    let gone = "a semaphore is used after it was destroyed";
    let alone = |body: &str| with_thread("sem_t s;", "", &format!("sem_init(&s, 0, 1); {body}"));
    for use_it in [
        "sem_wait(&s);",
        "sem_trywait(&s);",
        "sem_post(&s);",
        "int n; sem_getvalue(&s, &n);",
        "sem_destroy(&s);",
    ] {
        wrong(&alone(&format!("sem_destroy(&s); {use_it}")), gone);
    }
    // A thread waits for the semaphore while another one destroys it.
    wrong(&beside("sem_t s;", "sem_wait(&s);", "sem_destroy(&s);"), gone);
    right(&beside("sem_t s;", "sem_post(&s);", "sem_wait(&s); pthread_join(t, 0); sem_destroy(&s);"));
}

#[test]
fn alignments() {
    let text = "the alignment of an allocation is no power of two";
    for allocate in ["aligned_alloc(3, 9)", "aligned_alloc(0, 8)"] {
        wrong(
            &format!("#include <stdlib.h>\nint main(void) {{ int *p = {allocate}; *p = 1; return 0; }}"),
            text,
        );
    }
    right("#include <stdlib.h>\nint main(void) { int *p = aligned_alloc(16, 16); *p = 1; return 0; }");
}

const BARRIER: &str = "pthread_barrier_t b;";
const NO_BARRIER: &str = "a barrier is used that is not initialised, or was destroyed";

#[test]
fn barriers() {
    let alone = |body: &str| with_thread(BARRIER, "", body);
    wrong(&alone("pthread_barrier_wait(&b);"), NO_BARRIER);
    wrong(&alone("pthread_barrier_init(&b, 0, 0); pthread_barrier_wait(&b);"), NO_BARRIER);
    right(&alone("assert(pthread_barrier_init(&b, 0, 0) == 22);"));
    let init = "pthread_barrier_init(&b, 0, 1);";
    wrong(&alone(&format!("{init} pthread_barrier_destroy(&b); pthread_barrier_wait(&b);")), NO_BARRIER);
    wrong(&alone(&format!("{init} {init}")), "a barrier is initialised that is initialised already");
    wrong(&alone(&format!("{init} pthread_barrier_destroy(&b); pthread_barrier_destroy(&b);")), NO_BARRIER);
    right(&alone(&format!(
        "{init} pthread_barrier_wait(&b); pthread_barrier_destroy(&b); {init} pthread_barrier_wait(&b);"
    )));
    let two = |thread: &str, main: &str| {
        let main =
            format!("pthread_barrier_init(&b, 0, 2); pthread_t t; pthread_create(&t, 0, thread, 0); {main}");
        with_thread(BARRIER, thread, &main)
    };
    let wait = "pthread_barrier_wait(&b);";
    wrong(&two(wait, "pthread_barrier_destroy(&b);"), "a barrier is destroyed while a thread waits at it");
    wrong(&two(wait, "pthread_barrier_destroy(&b);"), NO_BARRIER);
    wrong(
        &two(wait, "pthread_barrier_init(&b, 0, 2);"),
        "a barrier is initialised while a thread waits at it",
    );
    // A thread that has returned from the barrier may destroy it.
    right(&two(wait, &format!("{wait} pthread_barrier_destroy(&b);")));
    right(&two(
        "if (pthread_barrier_wait(&b)) pthread_barrier_destroy(&b);",
        "if (pthread_barrier_wait(&b)) pthread_barrier_destroy(&b);",
    ));
    // Destroying the barrier waits for the threads that have not left it yet, and they will leave.
    for main in ["", "if (!r) "] {
        let text = two(wait, &format!("int r = 0; {wait} {main}pthread_barrier_destroy(&b);"));
        assert_eq!(verdicts(&text, &Options::default(), "deadlock"), "sss");
    }
    // A barrier in a local variable, which has no value before it is initialised.
    right(&with_thread(
        "",
        "",
        "pthread_barrier_t b; pthread_barrier_init(&b, 0, 1); pthread_barrier_wait(&b);",
    ));
}

#[test]
fn condition_variables() {
    let globals = "pthread_mutex_t m; pthread_cond_t c; int ready;";
    let lock = "pthread_mutex_lock(&m);";
    let unlock = "pthread_mutex_unlock(&m);";
    let gone = "a condition variable is used after it was destroyed";
    let without = "a thread waits for a condition variable with a mutex that it does not hold";
    wrong(&with_thread(globals, "", "pthread_cond_wait(&c, &m);"), without);
    wrong(&beside(globals, lock, "pthread_cond_wait(&c, &m);"), without);
    let alone = |body: &str| with_thread(globals, "", &format!("pthread_cond_destroy(&c); {body}"));
    for use_it in ["signal(&c)", "broadcast(&c)", "destroy(&c)", "wait(&c, &m)"] {
        wrong(&alone(&format!("{lock} pthread_cond_{use_it};")), gone);
    }
    right(&alone(&format!(
        "pthread_cond_init(&c, 0); {lock} pthread_cond_signal(&c); {unlock} pthread_cond_destroy(&c);"
    )));
    let waiting = "a condition variable is destroyed while a thread waits for it";
    let wait = format!("{lock} while (!ready) pthread_cond_wait(&c, &m); {unlock}");
    wrong(&beside(globals, &wait, "pthread_cond_destroy(&c);"), waiting);
    wrong(&beside(globals, &wait, &format!("{lock} ready = 1; {unlock} pthread_cond_destroy(&c);")), waiting);
    let wakes = |call: &str| format!("{lock} ready = 1; pthread_cond_{call}(&c); {unlock}");
    for call in ["signal", "broadcast"] {
        right(&beside(
            globals,
            &wait,
            &format!("{} pthread_join(t, 0); pthread_cond_destroy(&c);", wakes(call)),
        ));
    }
}

#[test]
fn condition_variables_without_spurious_wakeups() {
    let c = COptions { exact_waits: true, ..COptions::default() };
    let options = Options { c, ..Options::default() };
    let globals = "pthread_mutex_t m; pthread_cond_t c; int ready;";
    let wait = "pthread_mutex_lock(&m); while (!ready) pthread_cond_wait(&c, &m); pthread_mutex_unlock(&m);";
    let text = |main: &str| beside(globals, wait, main);
    let destroys = "pthread_cond_destroy(&c);";
    assert_eq!(verdicts(&text(destroys), &options, "assertions"), "uuu");
    let wakes = "pthread_mutex_lock(&m); ready = 1; pthread_cond_signal(&c); pthread_mutex_unlock(&m); pthread_join(t, 0);";
    assert_eq!(verdicts(&text(&format!("{wakes} {destroys}")), &options, "assertions"), "sss");
    assert_eq!(verdicts(&text(&format!("{wakes} {destroys}")), &options, "deadlock"), "sss");
}

const RELEASED: &str = "a thread is joined or detached a second time";

#[test]
fn threads_are_released_once() {
    let join = "pthread_join(t, 0);";
    let detach = "pthread_detach(t);";
    for (one, other) in [(join, join), (join, detach), (detach, join), (detach, detach)] {
        wrong(&beside("", "", &format!("{one} {other}")), RELEASED);
        wrong(&beside("int go;", "go = 1;", &format!("int r = go; {one} {other}")), RELEASED);
    }
    wrong(&beside("", "pthread_detach(pthread_self());", join), RELEASED);
    right(&beside("", "", join));
    right(&beside("", "", detach));
    right(&beside("", "pthread_detach(pthread_self());", ""));
    // A thread that another thread joins must not be joined by `main` as well.
    let two = "pthread_t t; int go;
         void *thread(void *argument) { go = 1; return 0; }
         void *waits(void *argument) { pthread_join(t, 0); return 0; }
         int main(void) { pthread_t w; pthread_create(&t, 0, thread, 0); pthread_create(&w, 0, waits, 0); OTHER return 0; }";
    wrong(&two.replace("OTHER", "pthread_join(t, 0);"), RELEASED);
    right(&two.replace("OTHER", "pthread_join(w, 0);"));
    // The joined thread is determined at run time.
    let some = "int go;
         void *thread(void *argument) { go = 1; return 0; }
         int main(void) {
             pthread_t t[2]; int r = go;
             for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, thread, 0);
             for (int i = 0; i < 2; i++) if (!i || go < 2) pthread_join(t[WHICH], 0);
             return 0;
         }";
    right(&some.replace("WHICH", "i"));
    wrong(&some.replace("WHICH", "0"), RELEASED);
    let detached = "pthread_attr_t k; pthread_attr_init(&k); pthread_attr_setdetachstate(&k, PTHREAD_CREATE_DETACHED); pthread_t t; pthread_create(&t, &k, thread, 0);";
    wrong(&with_thread("", "", &format!("{detached} pthread_join(t, 0);")), RELEASED);
    right(&with_thread("", "", detached));
    right(&with_thread("", "", &format!("{} pthread_join(t, 0);", detached.replace("DETACHED", "JOINABLE"))));
}

#[test]
fn threads_are_detached_once() {
    // A detached thread is analysed twice: as if the loop had a single iteration, and then as a thread created in a loop.
    let rounds = "extern _Bool __VERIFIER_nondet_bool(void);
         void *thread(void *argument) { return 0; }
         int main(void) {
             pthread_t t, u; int i = 0;
             pthread_create(&t, 0, thread, 0); pthread_create(&u, 0, thread, 0);
             do { if (i == 0) { pthread_detach(t); pthread_join(u, 0); } i = 1; } while (__VERIFIER_nondet_bool());
             return 0;
         }";
    right(rounds);
    // It is unknown whether the thread is detached.
    let perhaps = "pthread_attr_t k; pthread_attr_init(&k);
         if (__VERIFIER_nondet_bool()) pthread_attr_setdetachstate(&k, PTHREAD_CREATE_DETACHED);
         pthread_t t; pthread_create(&t, &k, thread, 0);";
    let nondet = "extern _Bool __VERIFIER_nondet_bool(void);";
    right(&with_thread(nondet, "", perhaps));
    wrong(&with_thread(nondet, "", &format!("{perhaps} pthread_join(t, 0);")), RELEASED);
}

#[test]
fn a_thread_does_not_join_itself() {
    let itself = "a thread joins itself";
    wrong(&beside("", "pthread_join(pthread_self(), 0);", "pthread_join(t, 0);"), itself);
    wrong(&with_thread("", "", "pthread_join(pthread_self(), 0);"), itself);
    wrong(
        &beside("pthread_t own;", "own = pthread_self(); pthread_join(own, 0);", "pthread_join(t, 0);"),
        itself,
    );
}

/// A program that allocates a queue in each iteration; `thread` and `main` are the statements with which the thread and `main` use it.
fn allocated(thread: &str, main: &str) -> String {
    beside(
        "struct queue { pthread_mutex_t m; pthread_cond_t c; int done; };
         atomic_int go; int stop;",
        &format!("struct queue *q = argument; {thread}"),
        main,
    )
    .replace(
        "pthread_t t; pthread_create(&t, 0, thread, 0);",
        "struct queue *q = malloc(sizeof *q); pthread_mutex_init(&q->m, 0); pthread_cond_init(&q->c, 0); q->done = 0;
         pthread_t t; pthread_create(&t, 0, thread, q);",
    )
}

/// In the model, waiting and signalling are not memory accesses, but the condition variable must be alive.
#[test]
fn destroyed_condition_variables() {
    let waits = "pthread_mutex_lock(&q->m); while (!q->done) pthread_cond_wait(&q->c, &q->m); pthread_mutex_unlock(&q->m);";
    let sets = "pthread_mutex_lock(&q->m); q->done = 1;";
    for call in ["signal(&q->c)", "broadcast(&q->c)", "destroy(&q->c)"] {
        let late = format!("{sets} pthread_mutex_unlock(&q->m); pthread_cond_{call};");
        memory(&allocated(&late, &format!("{waits} free(q);")), "uuu");
        memory(&allocated(&late, &format!("{waits} pthread_join(t, 0); free(q);")), "sss");
    }
    let early = format!("{sets} pthread_cond_signal(&q->c); pthread_mutex_unlock(&q->m);");
    memory(&allocated(&early, &format!("{waits} pthread_join(t, 0); free(q);")), "sss");
    // An access to other memory in a loop after a signal is not taken for another signal.
    let loops = "pthread_cond_signal(&q->c); for (;;) { atomic_exchange(&go, 1); if (stop) break; }";
    memory(&allocated(loops, "while (!go); free(q); stop = 1;"), "sss");
    let jumps = "pthread_cond_signal(&q->c); again: atomic_exchange(&go, 1); if (!stop) goto again;";
    memory(&allocated(jumps, "while (!go); free(q); stop = 1;"), "sss");
    memory(&allocated("go = 1; pthread_cond_signal(&q->c);", "while (!go); free(q);"), "uuu");
}

#[test]
fn invalid_pointers_to_condition_variables() {
    let globals = "pthread_mutex_t m; pthread_cond_t c, *p, many[2]; int i;";
    let lock = "pthread_mutex_lock(&m);";
    for call in ["signal(P)", "broadcast(P)", "destroy(P)", "wait(P, &m)", "timedwait(P, &m, 0)"] {
        let body = |condition: &str| format!("{lock} pthread_cond_{};", call.replace('P', condition));
        memory(&beside(globals, "p = &c;", &body("p")), "uuu");
        memory(&beside(globals, "i = 2;", &body("&many[i]")), "uuu");
        memory(&beside(globals, "i = 1;", &body("&many[i]")), "sss");
        memory(&with_thread(globals, "", &format!("p = &c; {}", body("p"))), "sss");
    }
    // A condition variable in a local variable whose lifetime has ended.
    let gone =
        "pthread_cond_t *kept; void leaves(void) { pthread_cond_t c; pthread_cond_init(&c, 0); kept = &c; }";
    memory(&with_thread(gone, "", "leaves(); pthread_cond_signal(kept);"), "uuu");
    let there = "pthread_cond_t *kept; void stays(void) { pthread_cond_t c; pthread_cond_init(&c, 0); kept = &c; pthread_cond_signal(kept); }";
    memory(&with_thread(there, "", "stays();"), "sss");
}

/// A constant index out of bounds, also in an atomic step.
#[test]
fn code_after_a_check_that_always_fails_is_unreachable() {
    let at = |body: &str| {
        beside(
            "pthread_mutex_t locks[2]; atomic_int a[2]; int x;",
            "x = 1;",
            &format!("if (x) {{ {body} x = 2; }}"),
        )
    };
    for body in [
        "pthread_mutex_lock(&locks[3]);",
        "atomic_fetch_add(&a[3], 1);",
        "a[3] = 1;",
        "int e = 0; atomic_compare_exchange_strong(&a[3], &e, 1);",
        "int e[1] = { 0 }; atomic_compare_exchange_strong(&a[1], &e[2], 1);",
    ] {
        memory(&at(body), "uuu");
        assertions(&at(body), "sss");
    }
    memory(&at("pthread_mutex_lock(&locks[1]);"), "sss");
}
