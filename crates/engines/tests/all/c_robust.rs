//! Robustness of C programs with condition variables, mutexes, semaphores and barriers: the translation of these library calls neither adds nor hides
//! happens-before cycles.

use fencewright_engines::robust::{Options as Asked, analyse};
use fencewright_engines::{Limits, Progress};
use fencewright_lang::options::Options;
use fencewright_lang::{Loader, Stop};
use fencewright_testing::{Random, programs_or};
use std::time::Duration;

const START: &str = "#include <pthread.h>
    #include <semaphore.h>
    #include <stdatomic.h>
    #define SET(v, n) atomic_store_explicit(&(v), n, memory_order_relaxed)
    #define GET(v) ((void)atomic_load_explicit(&(v), memory_order_relaxed))
    atomic_int x, y;
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t c = PTHREAD_COND_INITIALIZER;
    int ready, left;
    ";

/// Whether a program is robust, without and with the checks for misuse of library calls.
fn robust(text: &str) -> (bool, bool) {
    let decided = |options: &Options| {
        let text = format!("{START}{text}");
        let open = |name: &str| Err(format!("there is no `{name}`"));
        let loader = Loader { front_end: None, options, stop: &Stop::never(), open: &open };
        let loaded = loader.load("test.c", text.as_bytes()).unwrap_or_else(|why| panic!("{why:?}\n{text}"));
        let limits = Limits::starting_now(Some(Duration::from_secs(60)), Some(1 << 30), Default::default());
        let answer = analyse(&loaded.program, &Asked::default(), &limits, &Progress::default());
        answer.robust().unwrap_or_else(|why| panic!("{why}\n{text}"))
    };
    let mut asked = Options::default();
    asked.ask_robustness();
    (decided(&asked), decided(&Options::default()))
}

#[track_caller]
fn is_robust(text: &str) {
    assert!(robust(text).0, "{text}");
}

/// The program is not robust, without or with the checks for misuse.
#[track_caller]
fn is_not_robust(text: &str) {
    assert_eq!(robust(text), (false, false), "{text}");
}

/// Two threads, the second of which is `main`.
fn two(globals: &str, thread: &str, before: &str, main: &str) -> String {
    format!(
        "{globals}
         void *thread(void *argument) {{ {thread} return 0; }}
         int main(void) {{ pthread_t t; {before} pthread_create(&t, 0, thread, 0); {main} return 0; }}"
    )
}

/// A queue whose consumers are not joined; instead, a counter under the mutex shows that they have left. A consumer that has been woken runs
/// `inside`, and the function `main` runs the statements `main` before it sets `ready`.
fn queue(inside: &str, main: &str) -> String {
    format!(
        "void *consumer(void *argument) {{
             pthread_mutex_lock(&m);
             while (!ready) {{ pthread_cond_wait(&c, &m); {inside} }}
             left++;
             pthread_mutex_unlock(&m);
             return 0;
         }}
         int main(void) {{
             pthread_t a, b;
             pthread_create(&a, 0, consumer, 0);
             pthread_create(&b, 0, consumer, 0);
             {main}
             pthread_mutex_lock(&m);
             ready = 1;
             pthread_cond_broadcast(&c);
             pthread_mutex_unlock(&m);
             for (int done = 0; !done;) {{ pthread_mutex_lock(&m); done = left == 2; pthread_mutex_unlock(&m); }}
             pthread_cond_destroy(&c);
             pthread_mutex_destroy(&m);
             return 0;
         }}"
    )
}

#[test]
fn a_signal_is_no_load_of_a_condition_that_is_destroyed() {
    is_robust(&queue("GET(x);", "SET(x, 1); pthread_cond_signal(&c);"));
    is_robust(&queue("GET(x);", "SET(x, 1); pthread_cond_broadcast(&c);"));
    is_robust(&queue("GET(x); pthread_cond_signal(&c);", "SET(x, 1);"));
}

#[test]
fn a_signal_orders_nothing() {
    is_not_robust(&queue(
        "SET(y, 1); pthread_cond_signal(&c); GET(x);",
        "SET(x, 1); pthread_cond_signal(&c); GET(y);",
    ));
    is_not_robust(&queue(
        "SET(y, 1); atomic_thread_fence(memory_order_seq_cst); GET(x);",
        "SET(x, 1); pthread_cond_broadcast(&c); GET(y);",
    ));
    is_robust(&queue(
        "SET(y, 1); atomic_thread_fence(memory_order_seq_cst); GET(x);",
        "SET(x, 1); atomic_thread_fence(memory_order_seq_cst); GET(y);",
    ));
}

#[test]
fn a_try_that_succeeds_is_one_step() {
    let posts = "sem_wait(&s); GET(x); sem_post(&s);";
    let tries = "SET(x, 1); while (sem_trywait(&s)) { sem_wait(&s); sem_post(&s); } sem_post(&s);";
    is_robust(&two("sem_t s;", posts, "sem_init(&s, 0, 1);", tries));
    let allocated = |text: &str| text.replace("&s", "s");
    let init = "s = malloc(sizeof *s); sem_init(s, 0, 1);";
    is_robust(&two("#include <stdlib.h>\nsem_t *s;", &allocated(posts), init, &allocated(tries)));
    let locks = "pthread_rwlock_wrlock(&l); GET(x); pthread_rwlock_unlock(&l);";
    let tries = "SET(x, 1); if (!pthread_rwlock_trywrlock(&l)) pthread_rwlock_unlock(&l); else atomic_thread_fence(memory_order_seq_cst);";
    is_robust(&two("pthread_rwlock_t l;", locks, "", tries));
}

/// A call such as `trylock` that fails is a load, not a fence.
#[test]
fn a_try_that_fails_drains_nothing() {
    let holds = "pthread_rwlock_wrlock(&l); SET(y, 1); atomic_thread_fence(memory_order_seq_cst); GET(x); pthread_rwlock_unlock(&l);";
    let tries = "SET(x, 1); if (!pthread_rwlock_trywrlock(&l)) pthread_rwlock_unlock(&l); GET(y);";
    is_not_robust(&two("pthread_rwlock_t l;", holds, "", tries));
    let waits = "sem_wait(&s); SET(y, 1); atomic_thread_fence(memory_order_seq_cst); GET(x);";
    is_not_robust(&two("sem_t s;", waits, "sem_init(&s, 0, 1);", "SET(x, 1); sem_trywait(&s); GET(y);"));
    is_robust(&two("sem_t s;", waits, "sem_init(&s, 0, 1);", "SET(x, 1); if (!sem_trywait(&s)) GET(y);"));
}

const RECURSIVE: &str = "pthread_mutexattr_t kind; pthread_mutexattr_init(&kind); pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE); pthread_mutex_init(&m, &kind);";

#[test]
fn taking_a_recursive_mutex_from_others_is_one_step() {
    let other = "pthread_mutex_lock(&m); GET(x); pthread_mutex_unlock(&m);";
    let twice = "SET(x, 1); pthread_mutex_lock(&m); pthread_mutex_lock(&m); pthread_mutex_unlock(&m); pthread_mutex_unlock(&m);";
    is_robust(&two("", other, RECURSIVE, twice));
    let destroys = format!("{twice} pthread_join(t, 0); pthread_mutex_destroy(&m);");
    is_robust(&two("", other, RECURSIVE, &destroys));
}

#[test]
fn taking_a_mutex_again_drains_nothing() {
    let other = "SET(y, 1); atomic_thread_fence(memory_order_seq_cst); GET(x);";
    let again = "pthread_mutex_lock(&m); SET(x, 1); pthread_mutex_lock(&m); GET(y); pthread_mutex_unlock(&m); pthread_mutex_unlock(&m);";
    is_not_robust(&two("", other, RECURSIVE, again));
    let busy = "if (!pthread_mutex_trylock(&m)) pthread_mutex_unlock(&m); GET(x);";
    is_robust(&two("", busy, RECURSIVE, &again.replace("GET(y);", "")));
    // Other threads cannot observe how often the owner has locked a recursive mutex.
    let tries = "SET(y, 1); if (!pthread_mutex_trylock(&m)) pthread_mutex_unlock(&m);";
    is_robust(&two("", tries, RECURSIVE, &again.replace("SET(x, 1);", "")));
    is_not_robust(&two("", &format!("{tries} GET(x);"), RECURSIVE, again));
    let once = "SET(x, 1); pthread_mutex_lock(&m); GET(y); pthread_mutex_unlock(&m);";
    is_robust(&two("", other, RECURSIVE, once));
}

#[test]
fn pthread_once_drains_buffers() {
    let globals = "pthread_once_t o = PTHREAD_ONCE_INIT; void work(void) { left = 1; }";
    let once = "pthread_once(&o, work);";
    is_robust(&two(globals, &format!("{once} GET(x);"), "", &format!("SET(x, 1); {once}")));
    // `pthread_once` after the initialisation has completed is only a load.
    is_robust(&two(globals, &format!("{once} GET(x);"), once, &format!("SET(x, 1); {once}")));
    let fenced = "SET(y, 1); atomic_thread_fence(memory_order_seq_cst); GET(x);";
    is_not_robust(&two(globals, &format!("{once} {fenced}"), "", &format!("SET(x, 1); {once} GET(y);")));
    is_not_robust(&two(globals, fenced, once, &format!("{once} SET(x, 1); {once} GET(y);")));
}

#[test]
fn destroying_makes_no_cycle() {
    let barrier = "pthread_barrier_t b;";
    let init = "pthread_barrier_init(&b, 0, 2);";
    let waits = "pthread_barrier_wait(&b);";
    let destroys = "pthread_barrier_destroy(&b);";
    is_robust(&two(barrier, &format!("{waits} GET(x);"), init, &format!("{waits} SET(x, 1); {destroys}")));
    is_not_robust(&two(
        barrier,
        &format!("{waits} SET(y, 1); atomic_thread_fence(memory_order_seq_cst); GET(x);"),
        init,
        &format!("{waits} SET(x, 1); {destroys} GET(y);"),
    ));
    let last = "SET(x, 1); pthread_mutex_lock(&m); int mine = ++left == 2; pthread_mutex_unlock(&m); GET(y); if (mine) pthread_mutex_destroy(&m); GET(x);";
    is_robust(&two("", last, "", last));
    let posts = "sem_wait(&s); GET(x); sem_post(&d);";
    let destroys = "SET(x, 1); sem_post(&s); sem_wait(&d); SET(x, 2); sem_destroy(&s); sem_destroy(&d);";
    is_robust(&two("sem_t s, d;", posts, "sem_init(&s, 0, 0); sem_init(&d, 0, 0);", destroys));
}

/// Definitions of the library calls as macros: signals do nothing, waiting unlocks and locks the mutex, and a semaphore is decremented in one step,
/// or loaded if it is 0.
const WRITTEN_OUT: &str = "
    #define pthread_cond_signal(c)
    #define pthread_cond_broadcast(c)
    #define pthread_cond_destroy(c)
    #define pthread_cond_wait(c, m) pthread_mutex_unlock(m); pthread_mutex_lock(m)
    #define sem_t atomic_int
    #define sem_init(s, shared, count) atomic_init(s, count)
    #define sem_trywait tries
    #define sem_post(s) atomic_fetch_add(s, 1)
    int tries(atomic_int *s) {
        if (__VERIFIER_nondet_bool()) {
            __VERIFIER_assume(atomic_load_explicit(s, memory_order_relaxed) <= 0);
            return -1;
        }
        __VERIFIER_atomic_begin();
        int found = *s;
        if (found > 0) atomic_store_explicit(s, found - 1, memory_order_relaxed);
        __VERIFIER_atomic_end();
        return found > 0 ? 0 : -1;
    }
    ";

/// Random statements of a thread.
fn statements(random: &mut Random, inside: bool, depth: usize) -> String {
    let mut text = String::new();
    for _ in 0..random.between(1, 3) {
        let variable = random.pick(&["x", "y"]);
        text += &match random.below(if depth == 0 { 7 } else { 10 }) {
            0 | 1 => format!("SET({variable}, 1); "),
            2 | 3 => format!("GET({variable}); "),
            4 => "pthread_cond_signal(&c); ".to_owned(),
            5 => "pthread_cond_broadcast(&c); ".to_owned(),
            6 if inside => "pthread_cond_wait(&c, &m); ".to_owned(),
            6 => "sem_post(&s); ".to_owned(),
            7 => format!("if (sem_trywait(&s) == 0) {{ {} }} ", statements(random, inside, depth - 1)),
            _ if inside => "ready = 1; ".to_owned(),
            _ => format!(
                "pthread_mutex_lock(&m); {} pthread_mutex_unlock(&m); ",
                statements(random, true, depth - 1)
            ),
        };
    }
    text
}

/// A random program is robust if and only if the program with the calls replaced by these macros is robust.
#[test]
fn calls_are_as_robust_as_their_expansions() {
    let mut found = [0; 3];
    let programs = programs_or(400);
    for seed in 0..programs as u64 {
        let random = &mut Random::new(seed);
        let [thread, main] = [("x", "y"), ("y", "x")].map(|(sets, gets)| {
            let between = statements(random, false, 2);
            match random.below(4) {
                0 => format!("SET(x, 1); {between}"),
                1 => format!("{between} GET(x);"),
                _ => format!("SET({sets}, 1); {between} GET({gets});"),
            }
        });
        let text =
            two("sem_t s;", &thread, "sem_init(&s, 0, 1);", &format!("{main} pthread_cond_destroy(&c);"));
        let (read, with_misuse) = robust(&text);
        let (written_out, _) = robust(&format!("{WRITTEN_OUT}{text}"));
        assert_eq!(read, written_out, "seed {seed}: {text}");
        assert!(read || !with_misuse, "seed {seed}: {text}");
        found[usize::from(read) + usize::from(with_misuse)] += 1;
    }
    // Some programs are robust only without the checks for misuse.
    assert!(found.iter().all(|&found| found > programs / 80), "{found:?}");
}
