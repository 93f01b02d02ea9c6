//! Cancellation of threads: where a request takes effect, what then happens, and what is refused.

use fencewright_executions::oracle;
use fencewright_lang::load::Failure;
use fencewright_lang::options::{COptions, Options};
use fencewright_lang::{Loader, Stop};
use fencewright_program::MemoryModel;

use crate::verdicts::{HEADERS, assertions, memory};

/// A program with a thread that has this body, and a `main` that creates it and then has this body.
fn program(thread: &str, main: &str) -> String {
    format!(
        "#include <stdio.h>
         #include <unistd.h>
         #include <semaphore.h>
         int n, waited; sem_t s; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_cond_t c = PTHREAD_COND_INITIALIZER; pthread_t t, other;
         void *idle(void *u) {{ return 0; }}
         void add(void *by) {{ n += *(int *)by; }}
         void *thread(void *u) {{ {thread} return 0; }}
         int main(void) {{ pthread_create(&t, 0, thread, 0); {main} return 0; }}"
    )
}

const CANCEL: &str = "void *r; pthread_cancel(t); pthread_join(t, &r);";

/// Checks that an assertion about the final state holds exactly if `expected` says so, and that there is no violation of `memory`.
#[track_caller]
fn ends(thread: &str, main: &str, assertion: &str, expected: bool) {
    let text = program(thread, &format!("{main} assert({assertion});"));
    assertions(&text, if expected { "sss" } else { "uuu" });
    memory(&text, "sss");
}

#[test]
fn a_request_takes_effect_at_cancellation_points() {
    // The request may come before the point or after it, but not in between.
    let thread = "n = 1; pthread_testcancel(); n = 2;";
    ends(thread, CANCEL, "r == 0 && n == 2 || r == PTHREAD_CANCELED && n == 1", true);
    ends(thread, CANCEL, "r == 0", false);
    ends(thread, CANCEL, "r != 0", false);
    ends("n = 1; n = 2;", CANCEL, "r == 0 && n == 2", true);
    // A thread that cancels itself ends at the next point, and calls the pushed functions, the latest first.
    let own = "pthread_cancel(pthread_self()); n = 1;";
    for point in ["pthread_testcancel();", "sleep(1);", "usleep(1);"] {
        ends(
            &format!("{own} {point} n = 2;"),
            "void *r; pthread_join(t, &r);",
            "r == PTHREAD_CANCELED && n == 1",
            true,
        );
    }
    let pushed = "static int ten = 10, two = 2; pthread_cleanup_push(add, &ten); pthread_cleanup_push(add, &two); pthread_cancel(pthread_self()); pthread_testcancel(); pthread_cleanup_pop(0); pthread_cleanup_pop(0);";
    ends(pushed, "pthread_join(t, 0);", "n == 12", true);
    // Output may stay in a buffer.
    let prints = format!("{own} printf(\"\"); n = 2;");
    ends(
        &prints,
        "void *r; pthread_join(t, &r);",
        "r == PTHREAD_CANCELED && n == 1 || r == 0 && n == 2",
        true,
    );
    ends(&prints, "void *r; pthread_join(t, &r);", "r == 0", false);
    ends(&prints, "void *r; pthread_join(t, &r);", "r != 0", false);
    // `main` is a thread as well.
    let main = "pthread_testcancel(); n = 1; pthread_join(t, 0); assert(0);";
    assertions(&program("", &format!("pthread_cancel(pthread_self()); {main}")), "sss");
}

#[test]
fn cancellation_may_be_disabled() {
    let disable = "int before = 5; pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);";
    ends(
        &format!("{disable} assert(before == PTHREAD_CANCEL_ENABLE); pthread_testcancel(); n = 1;"),
        CANCEL,
        "r == 0 || n == 0",
        true,
    );
    let own = format!(
        "{disable} pthread_cancel(pthread_self()); pthread_testcancel(); n = 1; pthread_setcancelstate(before, &before); assert(before == 1); n = 2; pthread_testcancel(); n = 3;"
    );
    ends(&own, "void *r; pthread_join(t, &r);", "r == PTHREAD_CANCELED && n == 2", true);
    ends(
        "int before = 5; assert(pthread_setcancelstate(7, &before) == 22 && before == 5); assert(!pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before) && before == 0);",
        "",
        "1",
        true,
    );
    // A thread that ends is not cancelled again.
    let ending = "static int one = 1; pthread_cleanup_push(again, &one); pthread_cancel(pthread_self()); pthread_testcancel(); pthread_cleanup_pop(0);";
    let text = program(ending, "pthread_join(t, 0); assert(n == 1);");
    assertions(
        &text.replace(
            "void *thread(",
            "void again(void *by) { pthread_testcancel(); add(by); } void *thread(",
        ),
        "sss",
    );
}

#[test]
fn threads_that_wait_are_cancelled() {
    // No other thread posts, signals or ends, so only the request ends the wait.
    ends("sem_wait(&s); n = 1;", CANCEL, "r == PTHREAD_CANCELED && n == 0", true);
    let unlocks = "static int one = 1; pthread_mutex_lock(&m); pthread_cleanup_push(unlock, &one); while (!waited) pthread_cond_wait(&c, &m); pthread_cleanup_pop(1);";
    let unlock = "void unlock(void *by) { add(by); pthread_mutex_unlock(&m); } void *thread(";
    let waits = program(
        unlocks,
        &format!("{CANCEL} assert(r == PTHREAD_CANCELED); pthread_mutex_lock(&m); assert(n == 1);"),
    );
    assertions(&waits.replace("void *thread(", unlock), "sss");
    // The function holds the mutex, also if the thread was cancelled while it waited.
    let others = program(
        unlocks,
        "pthread_mutex_lock(&m); int before = n; pthread_cancel(t); assert(n == before); pthread_mutex_unlock(&m); pthread_join(t, 0);",
    );
    assertions(&others.replace("void *thread(", unlock), "sss");
    // Joining a thread that never ends.
    let joins = program("pthread_join(other, 0); assert(0);", CANCEL);
    let joins = joins.replace("int main(void) {", "int main(void) { pthread_create(&other, 0, forever, 0);");
    assertions(
        &joins.replace(
            "void *idle(",
            "sem_t never; void *forever(void *u) { sem_wait(&never); return 0; } void *idle(",
        ),
        "sss",
    );
    ends("sem_trywait(&s); n = 1;", "pthread_cancel(t); pthread_join(t, 0);", "n == 1", true);
}

#[test]
fn a_request_drains_the_buffer() {
    // The thread sees what was written before the request.
    let seen = program("while (!waited) { pthread_testcancel(); }", "n = 1; pthread_cancel(t);");
    let seen = seen.replace(
        "void *thread(void *u) {",
        "void check(void *u) { assert(n == 1); } void *thread(void *u) { pthread_cleanup_push(check, 0);",
    );
    let seen = seen.replace("} return 0; }", "} pthread_cleanup_pop(0); return 0; }");
    assertions(&seen, "sss");
}

#[test]
fn what_is_not_modelled_is_refused() {
    let refusal = |text: &str, options: &Options| {
        let text = format!("{HEADERS}{text}");
        let open = |name: &str| Err(format!("there is no `{name}`"));
        let loader = Loader { front_end: None, options, stop: &Stop::never(), open: &open };
        match loader.load("test.c", text.as_bytes()) {
            Err(Failure::Wrong(error)) => error.diagnostics[0].message.clone(),
            _ => panic!("read: {text}"),
        }
    };
    let none = Options::default();
    let message =
        refusal(&program("int b; pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &b);", CANCEL), &none);
    assert!(message.contains("asynchronous cancellation"), "{message}");
    let message = refusal(
        &program("static pthread_once_t o; pthread_once(&o, first);", CANCEL)
            .replace("void *idle(", "void first(void) {} void *idle("),
        &none,
    );
    assert!(message.contains("`pthread_once`"), "{message}");
    // Without a request, an asynchronous type has no effect.
    assertions(
        &program(
            "int b; pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &b); n = 1;",
            "pthread_join(t, 0); assert(n == 1);",
        ),
        "sss",
    );
    let exact = Options { c: COptions { exact_waits: true, ..COptions::default() }, ..Options::default() };
    let message = refusal(&program("pthread_testcancel();", CANCEL), &exact);
    assert!(message.contains("programs that cancel threads are checked for"), "{message}");
}

/// A thread that ends acts on no request any more, and its functions see the state that it has set.
#[test]
fn clean_up_functions_are_not_cancelled() {
    let run = |handler: &str, assertion: &str, expected: &str| {
        let text = format!(
            "int n, old = 7; void end(void *u) {{ {handler} }}
             void *thread(void *u) {{ pthread_cleanup_push(end, 0); pthread_testcancel(); pthread_cleanup_pop(0); return 0; }}
             int main(void) {{ pthread_t t; void *r; pthread_create(&t, 0, thread, 0); pthread_cancel(t); pthread_join(t, &r);
             if (r == PTHREAD_CANCELED) assert({assertion}); return 0; }}"
        );
        assertions(&text, expected);
    };
    run("pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, 0); pthread_testcancel(); n++;", "n == 1", "sss");
    run("pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);", "old == PTHREAD_CANCEL_ENABLE", "sss");
}

#[test]
fn output_by_any_name_is_a_cancellation_point() {
    for output in ["printf(\"\")", "__builtin_printf(\"\")", "putchar_unlocked(65)"] {
        let text =
            program(&format!("{output}; n = 1;"), "pthread_cancel(t); pthread_join(t, 0); assert(n == 1);");
        assertions(&text, "uuu");
    }
}

/// The number of `main` is also that of a variable of type `pthread_t` that was never set.
#[test]
fn a_request_to_cancel_main_is_not_modelled() {
    let text = format!("{HEADERS}{}", program("pthread_cancel(other);", "pthread_join(t, 0);"));
    let loaded = fencewright_lang::load("test.c", text.as_bytes(), None, &[]).expect("it is accepted");
    assert!(oracle::explore(&loaded.program, MemoryModel::Sc, 200_000, &mut || false).is_err());
}

/// Functions that `main` calls are left when one of them calls `pthread_exit`, before destructors run; `main` itself lives on.
#[test]
fn functions_of_main_are_left_by_pthread_exit() {
    let text = |function: &str, main: &str| {
        format!(
            "int v; pthread_key_t k; void d(void *a) {{ v = *(int *)a; }} void f(void) {{ {function} }}
             int main(void) {{ int y = 1; pthread_key_create(&k, d); {main} f(); pthread_exit(0); }}"
        )
    };
    memory(&text("int z = 1; pthread_setspecific(k, &z); pthread_exit(0);", ""), "uuu");
    memory(&text("pthread_exit(0);", "pthread_setspecific(k, &y);"), "sss");
    let created = "void *thread(void *a) { *(int *)a = 1; return 0; } void f(void) { int x = 0; pthread_t t; pthread_create(&t, 0, thread, &x); }
                   int main(void) { f(); END }";
    memory(&created.replace("END", "pthread_exit(0);"), "uuu");
    memory(&created.replace("END", "return 0;"), "uuu");
}

/// A lock that `main` takes in a function, before it creates threads, is its lock afterwards.
#[test]
fn functions_of_main_take_locks() {
    let text = |function: &str, main: &str| {
        format!(
            "pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER; pthread_spinlock_t s; void *thread(void *u) {{ return u; }} void f(void) {{ {function} }}
             int main(void) {{ pthread_t t; pthread_spin_init(&s, 0); f(); pthread_create(&t, 0, thread, 0); pthread_join(t, 0); {main} return 0; }}"
        )
    };
    assertions(&text("pthread_rwlock_rdlock(&l);", "pthread_rwlock_unlock(&l);"), "sss");
    assertions(&text("pthread_spin_lock(&s);", "pthread_spin_unlock(&s);"), "sss");
    assertions(&text("pthread_rwlock_wrlock(&l);", "assert(pthread_rwlock_rdlock(&l) != 35);"), "uuu");
    assertions(&text("pthread_cancel(pthread_self());", "pthread_testcancel(); assert(0);"), "sss");
}
