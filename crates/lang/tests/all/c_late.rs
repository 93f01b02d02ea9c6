//! Late stores: under PSO a store may still be in its buffer when another thread ends the lifetime of the object, because a later store has told
//! that thread that it may. The answer is unknown exactly if nothing orders the two stores and the memory may be used again.

use fencewright_executions::oracle::{Incomplete, explore};
use fencewright_lang::Loaded;
use fencewright_lang::options::Options;
use fencewright_program::MemoryModel;

use crate::verdicts::load;

const START: &str = "#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
struct s { atomic_int v; int p; atomic_int done; };
struct o { int x; };
atomic_int done;
int plain, joined;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
pthread_t t;
";

/// Stores to the object, and whether the store goes through the buffer.
const STORES: [(&str, bool); 5] = [
    ("atomic_store_explicit(&a->v, 1, memory_order_relaxed);", true),
    ("atomic_store_explicit(&a->v, 1, memory_order_release);", true),
    ("atomic_store(&a->v, 1);", false),
    ("atomic_fetch_add_explicit(&a->v, 1, memory_order_relaxed);", false),
    ("a->p = 1;", true),
];

/// Fences, and whether the fence orders stores.
const FENCES: [(&str, bool); 4] = [
    ("", false),
    ("atomic_thread_fence(memory_order_release);", true),
    ("atomic_thread_fence(memory_order_seq_cst);", true),
    ("atomic_thread_fence(memory_order_acquire);", false),
];

/// How one thread tells the other one that it is done, how that waits, and whether this orders the store before.
const SIGNALS: [(&str, &str, bool); 7] = [
    ("atomic_store_explicit(&done, 1, memory_order_relaxed);", "while (!atomic_load(&done));", false),
    ("atomic_store_explicit(&done, 1, memory_order_release);", "while (!atomic_load(&done));", true),
    ("atomic_fetch_add_explicit(&done, 1, memory_order_relaxed);", "while (!atomic_load(&done));", true),
    (
        "pthread_mutex_lock(&m); plain = 1; pthread_mutex_unlock(&m);",
        "for (;;) { pthread_mutex_lock(&m); int x = plain; pthread_mutex_unlock(&m); if (x) break; }",
        true,
    ),
    ("", "pthread_join(t, 0); joined = 1;", true),
    ("atomic_store_explicit(&a->done, 1, memory_order_relaxed);", "while (!atomic_load(&a->done));", false),
    // The store that is seen is the last one to the object.
    (
        "atomic_thread_fence(memory_order_release); atomic_store_explicit(&a->done, 1, memory_order_relaxed);
         plain = 2;",
        "while (!atomic_load(&a->done));",
        true,
    ),
];

/// How the lifetime ends, and whether the memory may be used again.
const ENDS: [(&str, bool); 6] = [
    ("free(a); struct o *q = malloc(sizeof *q); q->x = 2; assert(q->x == 2);", true),
    (
        "free(a); struct s *q = malloc(sizeof *q); q->p = 2;
         atomic_store_explicit(&q->v, 2, memory_order_relaxed); assert(q->p == 2);",
        true,
    ),
    ("free(a);", false),
    ("free(a); long *q = calloc(1, sizeof *q); assert(*q == 0);", true),
    ("struct s *q = realloc(a, 2 * sizeof *a); q->p = 3; assert(q->p == 3);", true),
    // The object is on the stack.
    ("", true),
];

/// Whether all properties hold; `None` if the model ends in some execution.
fn safe(loaded: &Loaded, model: MemoryModel) -> Option<bool> {
    let program = &loaded.program;
    match explore(program, model, 200_000, &mut || false) {
        Ok(reachable) => {
            let holds = |property| reachable.satisfies(program, model, property) == Some(true);
            Some(program.properties.iter().all(holds))
        }
        Err(Incomplete::Limit) => None,
        Err(why) => panic!("{why:?}"),
    }
}

/// Checks a program that satisfies its properties under SC and TSO; `late`: whether PSO is undecided.
#[track_caller]
fn check(text: &str, late: bool) {
    let loaded = load(text, &Options::default());
    assert_eq!(safe(&loaded, MemoryModel::Sc), Some(true), "{text}");
    assert_eq!(safe(&loaded, MemoryModel::Tso), Some(true), "{text}");
    assert_eq!(safe(&loaded, MemoryModel::Pso), (!late).then_some(true), "{text}");
}

fn other(work: &str) -> String {
    format!("void *other(void *argument) {{ struct s *a = argument; {work} return 0; }}\n")
}

/// A program in which `main` allocates an object, creates the thread, waits, and ends the lifetime of the object.
fn frees(work: &str, wait: &str, end: &str) -> String {
    let (start, other) = (START, other(work));
    format!(
        "{start}{other}int main(void) {{ struct s *a = malloc(sizeof *a); a->p = 0; atomic_init(&a->v, 0);
         atomic_init(&a->done, 0); pthread_create(&t, 0, other, a); {wait} {end}
         if (!joined) pthread_join(t, 0); return 0; }}\n"
    )
}

/// A program in which a function of `main` creates the thread, waits, and returns, which ends the lifetime of its local object.
fn returns(work: &str, wait: &str) -> String {
    let (start, other) = (START, other(work));
    format!(
        "{start}{other}void waits(void) {{ struct s here; here.p = 0; atomic_init(&here.v, 0);
         atomic_init(&here.done, 0); struct s *a = &here; pthread_create(&t, 0, other, a); {wait} }}
         int main(void) {{ waits(); int k = 3; int *volatile kp = &k; assert(*kp == 3);
         if (!joined) pthread_join(t, 0); return 0; }}\n"
    )
}

#[test]
fn the_answer_is_unknown_exactly_if_a_store_may_be_late() {
    let mut unknown = 0;
    for (store, buffered) in STORES {
        for (fence, orders) in FENCES {
            for (signal, wait, drains) in SIGNALS {
                for (end, again) in ENDS {
                    let late = buffered && !orders && !drains && again;
                    unknown += usize::from(late);
                    let work = format!("{store} {fence} {signal}");
                    match end {
                        "" => check(&returns(&work, wait), late),
                        end => check(&frees(&work, wait, end), late),
                    }
                }
            }
        }
    }
    assert_eq!(unknown, 60);
}

/// A store that is seen is not late, even if others follow it.
#[test]
fn what_is_seen_has_arrived() {
    let work = "atomic_store_explicit(&a->done, 1, memory_order_relaxed); plain = 1; plain = 2;";
    for (end, _) in ENDS.iter().filter(|(end, _)| !end.is_empty()) {
        check(&frees(work, "while (!atomic_load(&a->done));", end), false);
    }
    check(&returns(work, "while (!atomic_load(&a->done));"), false);
}

/// The values that a late store writes do not matter: undefined ones and those already there count.
#[test]
fn late_stores_of_any_value() {
    let wait = "while (!atomic_load(&done));";
    let tell = "atomic_store_explicit(&done, 1, memory_order_relaxed);";
    let end = ENDS[0].0;
    for store in ["a->p = 0;", "int undefined; a->p = undefined;", "a->p = (int)(long)a->done;"] {
        check(&frees(&format!("{store} {tell}"), wait, end), true);
        check(
            &frees(&format!("{store} atomic_thread_fence(memory_order_release); {tell}"), wait, end),
            false,
        );
    }
}

/// Elements of arrays, members of members, and the objects of loops.
#[test]
fn late_stores_to_parts() {
    let text = |end: &str, order: &str| {
        format!(
            "{START} struct row {{ int n; struct {{ int x[3]; int y; }} in[2]; }};
            struct row *_Atomic slot;
            void *other(void *argument) {{
                for (int k = 0; k < 2; k++) {{
                    struct row *a; do a = atomic_load(&slot); while (!a);
                    a->in[1].x[2] = 1;
                    atomic_store_explicit(&slot, 0, memory_order_{order});
                }}
                return 0;
            }}
            int main(void) {{
                pthread_create(&t, 0, other, 0);
                for (int k = 0; k < 2; k++) {{
                    struct row *a = malloc(sizeof *a); a->n = 0; atomic_store(&slot, a);
                    while (atomic_load(&slot)); {end}
                }}
                pthread_join(t, 0);
                return 0;
            }}"
        )
    };
    check(&text("free(a);", "relaxed"), true);
    check(&text("free(a);", "release"), false);
    check(&text("", "relaxed"), false);
}

/// Buffered stores do not reach memory during an atomic section, but they may afterwards, also in memory that the section freed.
#[test]
fn freed_in_an_atomic_section() {
    let start = "void __VERIFIER_atomic_begin(void); void __VERIFIER_atomic_end(void);\n";
    let wait = "while (!atomic_load(&done));";
    for (order, late) in [("relaxed", true), ("release", false)] {
        let work = format!("a->p = 1; atomic_store_explicit(&done, 1, memory_order_{order});");
        for end in [
            "__VERIFIER_atomic_begin(); free(a); __VERIFIER_atomic_end(); int *q = malloc(4); *q = 2; assert(*q == 2);",
            "__VERIFIER_atomic_begin(); free(a); int *q = malloc(4); *q = 2; __VERIFIER_atomic_end(); assert(*q == 2);",
            "__VERIFIER_atomic_begin(); free(a); a = malloc(sizeof *a); a->p = 5; __VERIFIER_atomic_end(); a->p = 6;",
        ] {
            check(&format!("{start}{}", frees(&work, wait, end)), late);
        }
    }
}

/// A thread that uses freed memory violates `memory` under every model, and the answer about it stays.
#[test]
fn errors_of_memory_are_still_found() {
    let work = "a->p = 1; atomic_store_explicit(&done, 1, memory_order_relaxed); a->p = 2;";
    let loaded = load(&frees(work, "while (!atomic_load(&done));", ENDS[2].0), &Options::default());
    for model in [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso] {
        assert_eq!(safe(&loaded, model), Some(false));
    }
}

/// The reason names both lines and what helps; `--no-reuse` excludes it.
#[test]
fn the_reason_names_the_lines() {
    let text = frees(
        "\n a->p = 1;\n atomic_store_explicit(&done, 1, memory_order_relaxed);",
        "while (!atomic_load(&done));",
        "\n free(a);\n int *q = malloc(sizeof *q); *q = 1;",
    );
    let line = |of: &str| text.lines().position(|line| line.trim() == of).expect("it is there") + 1;
    let ends: Vec<String> = load(&text, &Options::default()).words.ends.values().cloned().collect();
    let start = format!(
        "line {} may store to an object after line {} has ended its lifetime",
        line("a->p = 1;"),
        line("free(a);")
    );
    assert!(
        ends.len() == 1 && ends[0].starts_with(&start) && ends[0].contains("a release store"),
        "{ends:?}"
    );
}

/// A loop that creates threads is unrolled, so one `free` may be in an atomic section in one iteration, and not in the next one.
#[test]
fn a_statement_in_and_after_an_atomic_section() {
    let text = "#include <assert.h>
        #include <pthread.h>
        #include <stdatomic.h>
        #include <stdlib.h>
        struct node { int v; }; struct other { long a; };
        struct node *p; atomic_int flag;
        void *a(void *u) { p->v = 5; atomic_store_explicit(&flag, 1, memory_order_relaxed); return 0; }
        void *b(void *u) { return 0; }
        int main(void) {
            pthread_t t, s[2];
            p = malloc(sizeof *p);
            struct node *q = malloc(sizeof *q), *n[2] = { q, p };
            pthread_create(&t, 0, a, 0);
            while (!flag);
            for (int i = 0; i < 2; i++) {
                if (i == 0) __VERIFIER_atomic_begin();
                free(n[i]);
                if (i == 0) __VERIFIER_atomic_end();
                pthread_create(&s[i], 0, b, 0);
            }
            struct other *m = malloc(sizeof *m);
            m->a = 1;
            pthread_join(t, 0);
            assert(m->a == 1);
            return 0;
        }";
    let program =
        fencewright_lang::load("test.c", text.as_bytes(), None, &[]).expect("it is a program").program;
    let explored = explore(&program, MemoryModel::Pso, 200_000, &mut || false);
    assert_eq!(explored.err(), Some(Incomplete::Limit));
}

/// A loop in an atomic section may free several objects of one allocation; each of them is tested.
#[test]
fn freed_by_a_loop_in_an_atomic_section() {
    let program = |shared: &str, order: &str| {
        format!(
            "#include <assert.h>
            #include <pthread.h>
            #include <stdatomic.h>
            #include <stdlib.h>
            struct node {{ int v; struct node *next; }};
            struct node *head, *shared; atomic_int flag, number, go;
            void *a(void *u) {{
                while (!go);
                shared->v = 5;
                atomic_store_explicit(&flag, 1, memory_order_{order});
                return 0;
            }}
            void *b(void *u) {{ number = 2; return 0; }}
            int main(void) {{
                pthread_t t, s;
                pthread_create(&t, 0, a, 0);
                pthread_create(&s, 0, b, 0);
                while (!number);
                for (int n = number; n > 0; n--) {{
                    struct node *node = malloc(sizeof *node);
                    node->next = head;
                    head = node;
                    {shared}
                }}
                go = 1;
                while (!flag);
                __VERIFIER_atomic_begin();
                while (head) {{ struct node *node = head; head = node->next; free(node); }}
                __VERIFIER_atomic_end();
                long *m = malloc(sizeof *m);
                *m = 1;
                pthread_join(t, 0);
                pthread_join(s, 0);
                assert(*m == 1);
                return 0;
            }}"
        )
    };
    for shared in ["shared = node;", "if (n == 2) shared = node;"] {
        for (order, is_late) in [("relaxed", true), ("release", false)] {
            let text = program(shared, order);
            let program = fencewright_lang::load("test.c", text.as_bytes(), None, &[])
                .expect("it is a program")
                .program;
            let explored = explore(&program, MemoryModel::Pso, 200_000, &mut || false);
            assert_eq!(explored.err() == Some(Incomplete::Limit), is_late, "{text}");
        }
    }
}

/// `calloc` clears an object that comes back from `free` by stores, which a later store may overtake.
#[test]
fn late_stores_of_calloc() {
    let text = |order: &str, allocate: &str| {
        format!(
            "{START} struct s *_Atomic slot;
            void *other(void *argument) {{
                struct s *a; do a = atomic_load(&slot); while (!a);
                free(a); struct o *q = malloc(sizeof *q); q->x = 2; assert(q->x == 2);
                return 0;
            }}
            int main(void) {{
                pthread_create(&t, 0, other, 0);
                struct s *a = malloc(sizeof *a); a->p = 1; atomic_thread_fence(memory_order_seq_cst); free(a);
                a = {allocate};
                atomic_store_explicit(&slot, a, memory_order_{order});
                pthread_join(t, 0);
                return 0;
            }}"
        )
    };
    check(&text("relaxed", "calloc(1, sizeof *a)"), true);
    check(&text("release", "calloc(1, sizeof *a)"), false);
    check(&text("relaxed", "malloc(sizeof *a)"), false);
    let fresh = text("relaxed", "calloc(1, sizeof *a)").replace("free(a);\n                a = c", "a = c");
    check(&fresh, false);
}
