//! What a thread executes when it ends: clean-up functions, destructors of thread-specific data, and the ends of its variables.

use fencewright_executions::oracle::{Incomplete, explore};
use fencewright_lang::load;
use fencewright_program::MemoryModel;

use crate::verdicts::{HEADERS, assertions, memory};

/// A program in which a thread ends, with this destructor of the key.
fn ends(globals: &str, thread: &str) -> String {
    format!(
        "pthread_key_t key; int n; int *q;
         void reads(void *p) {{ n = *(int *)p; }}
         void follows(void *p) {{ n = *q; }}
         {globals}
         void *thread(void *u) {{ {thread} }}
         int main(void) {{
             pthread_t t;
             pthread_key_create(&key, reads);
             pthread_create(&t, 0, thread, 0);
             pthread_join(t, 0);
             assert(n == 5);
             return 0;
         }}"
    )
}

/// glibc calls destructors when the start routine has returned.
#[test]
fn destructors_run_after_the_ends_of_local_variables() {
    for (end, inner) in [("return 0;", "return;"), ("pthread_exit(0);", "pthread_exit(0);")] {
        let local = format!("int x = 5; pthread_setspecific(key, &x); {end}");
        memory(&ends("", &local), "uuu");
        for storage in ["static", "static _Thread_local"] {
            let text = ends("", &format!("{storage} int x; x = 5; pthread_setspecific(key, &x); {end}"));
            memory(&text, "sss");
            assertions(&text, "sss");
        }
        let function = format!("void sets(void) {{ int x = 5; pthread_setspecific(key, &x); {inner} }}");
        memory(&ends(&function, &format!("sets(); {end}")), "uuu");
        let array = format!(
            "int k = __VERIFIER_nondet_bool() + 1; int x[k]; x[0] = 5; pthread_setspecific(key, x); {end}"
        );
        memory(&ends("", &array), "uuu");
    }
    // Without a value there is nothing to read.
    memory(&ends("", "int x = 5; q = &x; return 0;"), "sss");
}

/// A clean-up function runs when the thread has left the functions and blocks inside of `pthread_cleanup_push`.
#[test]
fn clean_up_functions_run_between_the_ends_of_local_variables() {
    let pushed = |function: &str, inside: &str| {
        format!(
            "int x = 5; q = &x; pthread_cleanup_push({function}, &x); {inside} pthread_cleanup_pop(0); return 0;"
        )
    };
    let text = ends("", &pushed("reads", "pthread_exit(0);"));
    memory(&text, "sss");
    assertions(&text, "sss");
    let calls = "void inner(void) { int y = 5; q = &y; pthread_exit(0); }";
    memory(&ends(calls, &pushed("follows", "inner();")), "uuu");
    memory(&ends(calls, &pushed("reads", "inner();")), "sss");
    memory(&ends("", &pushed("follows", "{ int y = 5; q = &y; pthread_exit(0); }")), "uuu");
    memory(&ends("", &pushed("follows", "int y = 5; q = &y; pthread_exit(0);")), "uuu");
    memory(&ends("", &pushed("follows", "pthread_exit(0);")), "sss");
    // The function in which it was pushed goes on if the thread does not exit.
    let text = ends("", &pushed("reads", "if (__VERIFIER_nondet_bool()) pthread_exit(0); n = x;"));
    memory(&text, "sss");
    assertions(&text, "sss");
}

/// POSIX leaves undefined what `pthread_exit` does in a function that is called because the thread ends.
#[test]
fn a_thread_exits_once() {
    let exits = "void exits(void *p) { n = 5; pthread_exit(0); }";
    let pushed = |inside: &str, pops: u8| {
        format!(
            "pthread_cleanup_push(reads, &n); pthread_cleanup_push(exits, &n); {inside} pthread_cleanup_pop({pops}); pthread_cleanup_pop(0); return 0;"
        )
    };
    assertions(&ends(exits, &pushed("pthread_exit(0);", 0)), "uuu");
    assertions(&ends(exits, &pushed("", 1)), "sss");
    assertions(&ends(exits, &pushed("", 0)), "uuu");
    let destructor = "pthread_key_create(&key, exits); pthread_setspecific(key, &n);";
    assertions(&ends(exits, &format!("{destructor} return 0;")), "uuu");
    assertions(&ends(exits, &format!("{destructor} pthread_exit(0);")), "uuu");
    // The other clean-up functions are called when one that is taken off exits.
    let counts = "int all; void adds(void *p) { all += *(int *)p; } void exits(void *p) { pthread_exit(0); }";
    let two = "static int a = 2, b = 3; pthread_cleanup_push(adds, &a); pthread_cleanup_push(adds, &b); pthread_cleanup_push(exits, 0);
        pthread_cleanup_pop(1); pthread_cleanup_pop(0); pthread_cleanup_pop(0); return 0;";
    assertions(&ends(counts, two).replace("n == 5", "all == 5"), "sss");
}

/// glibc lets the next thread call the function again.
#[test]
fn an_exit_from_a_function_that_is_called_once() {
    let text = format!(
        "{HEADERS}pthread_once_t once = PTHREAD_ONCE_INIT; int n; void init(void) {{ n++; if (n == 1) pthread_exit(0); }}
         int main(void) {{ pthread_once(&once, init); return 0; }}"
    );
    let Err(error) = load("test.c", text.as_bytes(), None, &[]) else { panic!("it is read") };
    assert!(error.diagnostics[0].message.contains("pthread_once"), "{:?}", error.diagnostics);
}

#[test]
fn more_keys_than_the_model_has() {
    let keys = |count: u8| {
        format!(
            "pthread_key_t keys[9]; int main(void) {{ for (int k = 0; k < {count}; k++) {{ pthread_key_create(&keys[k], 0); pthread_setspecific(keys[k], &keys[k]); }}
             assert(pthread_getspecific(keys[7]) == &keys[7]); return 0; }}"
        )
    };
    memory(&keys(8), "sss");
    assertions(&keys(8), "sss");
    let text = format!("{HEADERS}{}", keys(9));
    let loaded = load("test.c", text.as_bytes(), None, &[]).expect("it is a program");
    for model in MemoryModel::ALL {
        let explored = explore(&loaded.program, model, 200_000, &mut || false);
        assert_eq!(explored.err(), Some(Incomplete::Limit));
    }
    assert!(
        loaded.words.ends.values().any(|end| end.starts_with("more than 8 keys")),
        "{:?}",
        loaded.words.ends
    );
}

/// `free` as a pointer to a function.
#[test]
fn free_as_a_destructor() {
    let text = |used: &str| {
        format!(
            "struct s {{ int v; }}; struct s *kept; pthread_key_t key;
             void *thread(void *u) {{ struct s *p = malloc(sizeof *p); p->v = 1; kept = p; pthread_setspecific(key, p); return 0; }}
             int main(void) {{
                 pthread_t t; pthread_key_create(&key, free); pthread_create(&t, 0, thread, 0); pthread_join(t, 0); {used} return 0;
             }}"
        )
    };
    memory(&text(""), "sss");
    memory(&text("int v = kept->v;"), "uuu");
    memory(&text("free(kept);"), "uuu");
    let through = "void drop(void *p, void (*with)(void *)) { with(p); } struct ops { void (*drop)(void *); } ops = { free };
        int main(void) { int *p = malloc(sizeof *p); *p = 1; DROP return *p; }";
    for dropped in
        ["drop(p, free);", "drop(p, &free);", "ops.drop(p);", "void (*volatile f)(void *) = free; f(p);"]
    {
        memory(&through.replace("DROP", dropped), "uuu");
    }
}
