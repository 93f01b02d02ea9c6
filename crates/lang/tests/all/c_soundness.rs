//! C programs that invite unsound assumptions about values kept across iterations, about jumps, about execution during translation, and about values
//! that are accessed in two ways. Their verdicts under all models are found by exploring the reference semantics.

use fencewright_lang::options::Options;
use fencewright_lang::{COptions, Loader, Stop, fw, load};

use crate::verdicts::{HEADERS, assertions, memory, verdicts};

#[track_caller]
fn deadlock(text: &str, expected: &str) {
    let c = COptions { exact_waits: true, ..COptions::default() };
    assert_eq!(verdicts(text, &Options { c, ..Options::default() }, "deadlock"), expected, "{text}");
}

/// A thread beside `main`; `main` executes `body` while the thread changes `go`.
fn beside(globals: &str, body: &str) -> String {
    format!(
        "int go; {globals}
         void *thread(void *argument) {{ go = 1; return 0; }}
         int main(void) {{ pthread_t t; pthread_create(&t, 0, thread, 0); {body} return 0; }}"
    )
}

/// A thread that executes `body` while `main` changes `go`.
fn inside(globals: &str, before: &str, body: &str) -> String {
    format!(
        "int go; {globals}
         void *thread(void *argument) {{ {body} return 0; }}
         int main(void) {{ pthread_t t; {before} pthread_create(&t, 0, thread, 0); go = 1; return 0; }}"
    )
}

#[test]
fn atomic_updates_compute_from_the_old_value() {
    let exchange = |written: &str, holds: &str| {
        let text = format!(
            "atomic_int x = 10; int y;
             void *thread(void *argument) {{ y = 1; int z = x; return 0; }}
             int main(void) {{
                 pthread_t t; pthread_create(&t, 0, thread, 0);
                 int r = y; {written} assert({holds}); assert(r == 10); return 0;
             }}"
        );
        assertions(&text, "sss");
    };
    exchange("r = atomic_exchange(&x, r + 1);", "x == 1 || x == 2");
    exchange("int n = r + 1; r = atomic_exchange(&x, n);", "x == 1 || x == 2");
    exchange("int e = 10; atomic_compare_exchange_strong(&x, &e, r); r = e;", "x == 0 || x == 1");
}

#[test]
fn stores_readable_through_a_pointer_are_kept() {
    assertions(
        "int x; int *p;
         void *thread(void *argument) { assert(*p == 0); return 0; }
         int main(void) { pthread_t t; p = &x; pthread_create(&t, 0, thread, 0); x = 1; return 0; }",
        "uuu",
    );
}

#[test]
fn thread_local_variables_keep_their_values_from_round_to_round() {
    let body = |holds: &str| {
        format!("for (int i = 0; i < 3; i++) {{ assert({holds}); own = 1; }} assert(own == 1); int z = go;")
    };
    assertions(&inside("_Thread_local int own;", "", &body("own == 0")), "uuu");
    assertions(&inside("_Thread_local int own;", "", &body("own == 0 || i > 0")), "sss");
    let counts = "for (int i = 0; i < 2; i++) own += 1; assert(own == 5); int z = go;";
    assertions(&inside("_Thread_local int own = 3;", "", counts), "sss");
}

#[test]
fn precomputed_effects_survive_a_repeated_elaboration() {
    let again = "int turns(void) { int i = 0; again: i++; if (go == 0 && i < 3) goto again; return i; }";
    let body = |holds: &str| {
        format!("int n = 5; turns(); while (go == 0 && n < 8) n++; assert({holds}); int z = n;")
    };
    let text = |holds: &str| beside("", &body(holds)).replacen("int main", &format!("{again}\n int main"), 1);
    assertions(&text("n >= 5 && n <= 8"), "sss");
    assertions(&text("n != 5"), "uuu");
    assertions(&text("n != 6"), "uuu");
    memory(&text("n >= 5"), "sss");
}

#[test]
fn invalid_accesses_in_precomputed_code_are_faults() {
    memory(&inside("int a[3];", "a[5] = 1;", "int z = go;"), "uuu");
    memory(&inside("int a[3];", "a[2] = 1;", "int z = go + a[2];"), "sss");
    memory(&inside("static const int a[3] = { 1 };", "", "int z = a[4]; if (z) go = 2;"), "uuu");
    memory(&inside("", "", "int *p = calloc(2, sizeof *p); if (p[3]) go = 2;"), "uuu");
}

#[test]
fn precomputed_writes_are_visible_after_publication() {
    let text = |holds: &str| {
        format!(
            "struct s {{ int a, b; }}; struct s *_Atomic p;
             void *thread(void *argument) {{ struct s *q = p; if (q) assert({holds}); return 0; }}
             int main(void) {{ pthread_t t; pthread_create(&t, 0, thread, 0); struct s own; own.a = 5; own.b = 6; p = &own; return 0; }}"
        )
    };
    assertions(&text("q->a == 5 && q->b == 6"), "sss");
    assertions(&text("q->a == 0"), "uuu");
    memory(&text("q->a == 5"), "sss");
}

#[test]
fn compound_assignments_of_atomics_check_for_undefined_results() {
    let text = |body: &str| {
        format!(
            "atomic_int z = 100; atomic_uint u = 3;
             void *thread(void *argument) {{ int a = z + (int)u; return 0; }}
             int main(void) {{ pthread_t t; pthread_create(&t, 0, thread, 0); {body} return 0; }}"
        )
    };
    assertions(&text("z /= 3; assert(z == 33); z %= 5; int r = z <<= 2; assert(z == 12 && r == 12);"), "sss");
    assertions(&text("u <<= 31; assert(u == 1u << 31); u >>= 30; assert(u == 2);"), "sss");
    assertions(&text("z <<= 25;"), "uuu");
    assertions(&text("z -= 101; z <<= 1;"), "uuu");
}

/// A program whose `main` creates a thread, makes a node with `make`, and publishes the node's address with `publish`.
fn published(make: &str, publish: &str) -> String {
    format!(
        "struct node {{ int value; }}; _Atomic(struct node *) slot; _Atomic(uintptr_t) number; atomic_int x;
         void *reader(void *a) {{
             struct node *n = atomic_load_explicit(&slot, memory_order_acquire);
             if (!n) n = (struct node *)atomic_load_explicit(&number, memory_order_acquire);
             if (n) assert(n->value == 1);
             return a;
         }}
         int main(void) {{
             pthread_t t; pthread_create(&t, 0, reader, 0);
             struct node *n = malloc(sizeof *n);
             {make}
             {publish}
         }}"
    )
}

#[test]
fn objects_made_while_threads_run_are_written_before_publication() {
    let release = "atomic_store_explicit(&slot, n, memory_order_release);";
    let relaxed = "atomic_store_explicit(&slot, n, memory_order_relaxed);";
    let number = "atomic_store_explicit(&number, (uintptr_t)n, memory_order_relaxed);";
    let exchanged = "atomic_exchange(&slot, n);";
    let [make, and_more] =
        ["n->value = 1;", "n->value = 1; atomic_store_explicit(&x, 1, memory_order_relaxed);"];
    for publish in [release, exchanged] {
        assertions(&published(make, publish), "sss");
        assertions(&published(and_more, publish), "sss");
    }
    for publish in [relaxed, number] {
        assertions(&published(make, publish), "ssu");
        assertions(&published(and_more, publish), "ssu");
        let fence = "n->value = 1; atomic_thread_fence(memory_order_release);";
        assertions(&published(fence, publish), "sss");
        let created = "n->value = 1; pthread_create(&t, 0, reader, 0);";
        assertions(&published(created, publish), "sss");
        assertions(&published("n->value = 1; n->value = 2;", publish), "uuu");
    }
}

#[test]
fn threads_are_joined_in_loops_of_unknown_length() {
    let text = |holds: &str| {
        format!(
            "int g, k;
             void *one(void *a) {{ g = 1; return 0; }}
             void *other(void *a) {{ k = 1; return 0; }}
             int main(void) {{
                 pthread_t t[2]; pthread_create(&t[0], 0, one, 0); pthread_create(&t[1], 0, other, 0);
                 int n = 0; while (n < 1 + k) {{ pthread_join(t[n], 0); n++; }}
                 assert(g == 1); assert({holds}); return 0;
             }}"
        )
    };
    assertions(&text("n == 1 || n == 2"), "sss");
    assertions(&text("n == 1"), "uuu");
    assertions(&text("n == 2"), "uuu");
}

#[test]
fn jumps_into_loops_and_back_over_labels() {
    let sum = "int i = 0, s = 0; goto in; while (i < 3) { s += 10; in: s += 1; i++; } assert(s == 23);";
    assertions(&format!("int main(void) {{ {sum} return 0; }}"), "sss");
    let device = "int c = go, n = 0, k = 3;
        switch (c) { case 0: do { n++; case 1: n++; } while (--k > 0); }
        assert(n == 6 || n == 5);";
    assertions(&inside("", "", device), "sss");
    assertions(&inside("", "", &device.replace(" || n == 5", "")), "uuu");
    let back = "int n = go, i = 0; goto middle; top: i++; middle: n += 2; if (i < 3) goto top;
        assert(n == 8 || n == 9);";
    assertions(&inside("", "", back), "sss");
    assertions(&inside("", "", &back.replace(" || n == 9", "")), "uuu");
}

/// A program in which a thread reads a value from `g` that another thread has stored with `puts`; the assertion claims that the value is the address
/// of `x`.
fn found(globals: &str, puts: &str) -> String {
    format!(
        "{globals}
         void *puts(void *argument) {{ {puts} return 0; }}
         void *finds(void *argument) {{ typeof(g) p = g; if (p) assert(p == (typeof(g))&x); return 0; }}
         int main(void) {{
             pthread_t s, t; pthread_create(&s, 0, puts, 0); pthread_create(&t, 0, finds, 0); g = 0; return 0;
         }}"
    )
}

#[test]
fn non_addresses_differ_from_every_address() {
    assertions(&found("int x, *g;", "g = &x;"), "sss");
    for number in ["1", "2", "4", "8", "16", "-1"] {
        assertions(&found("int x, *g;", &format!("g = (int *){number};")), "uuu");
        assertions(&found("int x; uintptr_t g;", &format!("g = {number};")), "uuu");
    }
    assertions(&found("int x; uintptr_t g; int n = 1;", "n = 2; g = (uintptr_t)(n * 4);"), "uuu");
    assertions(&found("void f(void) {} int x; void *g;", "g = (void *)f;"), "uuu");
    assertions(&found("int x, *g = (int *)1;", "g = &x;"), "uuu");
    memory(&beside("int x, *g = (int *)1;", "if (go) g = &x; *g = 1;"), "uuu");
    memory(&beside("int x, *g = (int *)1;", "if (go) g = &x; if (g != (int *)1) *g = 1;"), "sss");
    let stack = |gone: &str| {
        format!(
            "struct n {{ int v; }}; struct n *_Atomic top; int seen;
             void *push(void *argument) {{ struct n *n = malloc(sizeof *n); n->v = 1; top = n; return 0; }}
             int main(void) {{
                 pthread_t t; pthread_create(&t, 0, push, 0);
                 struct n *n = atomic_exchange(&top, (struct n *){gone}); if (n && n != (struct n *){gone}) seen = n->v;
                 assert(!seen); return 0;
             }}"
        )
    };
    assertions(&stack("1"), "uuu");
    assertions(&stack("16"), "uuu");
}

#[test]
fn values_computed_from_an_address_may_be_addresses() {
    let through = |computed: &str| {
        inside(
            "unsigned k; uintptr_t w;",
            "",
            &format!("int x = 0; uintptr_t u = (uintptr_t)&x; {computed} *(int *)u = 5; assert(x == 0);"),
        )
    };
    assertions(&through(""), "uuu");
    assertions(&through("w = ((uintptr_t)&x + 0) >> k; u = w;"), "uuu");
    assertions(&through("u = ((uintptr_t)&x | 1) & ~(uintptr_t)1;"), "uuu");
}

#[test]
fn operations_that_test_first_drain_only_if_they_write() {
    let stores = |globals: &str, before: &str, between: &str| {
        format!(
            "#include <semaphore.h>
             #include <linux/atomic.h>
             int x, y, a, b; {globals}
             void *thread(void *argument) {{ x = 1; {between} a = y; return 0; }}
             int main(void) {{
                 pthread_t t; {before} pthread_create(&t, 0, thread, 0);
                 y = 1; atomic_thread_fence(memory_order_seq_cst); b = x; pthread_join(t, 0); assert(a || b); return 0;
             }}"
        )
    };
    let once = "pthread_once_t o = PTHREAD_ONCE_INIT; void f(void) {}";
    assertions(&stores(once, "", "pthread_once(&o, f);"), "sss");
    assertions(&stores(once, "pthread_once(&o, f);", "pthread_once(&o, f);"), "suu");
    let semaphore = |count: u8| stores("sem_t s;", &format!("sem_init(&s, 0, {count});"), "sem_trywait(&s);");
    assertions(&semaphore(0), "suu");
    assertions(&semaphore(1), "sss");
    let lock = "pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;";
    assertions(&stores(lock, "", "pthread_rwlock_tryrdlock(&l);"), "sss");
    assertions(&stores(lock, "pthread_rwlock_wrlock(&l);", "pthread_rwlock_tryrdlock(&l);"), "suu");
    let counter = |count: u8| stores(&format!("atomic_t n = {{ {count} }};"), "", "atomic_inc_not_zero(&n);");
    assertions(&counter(0), "suu");
    assertions(&counter(1), "sss");
    let mutex = |kind: &str, again: &str| {
        let before = format!(
            "pthread_mutexattr_t k; pthread_mutexattr_init(&k); pthread_mutexattr_settype(&k, PTHREAD_MUTEX_{kind}); pthread_mutex_init(&m, &k);"
        );
        let text = stores("pthread_mutex_t m;", &before, again);
        text.replace("x = 1;", "pthread_mutex_lock(&m); x = 1;")
    };
    assertions(&mutex("RECURSIVE", "pthread_mutex_lock(&m);"), "suu");
    assertions(&mutex("RECURSIVE", "pthread_mutex_lock(&m); pthread_mutex_unlock(&m);"), "suu");
    assertions(&mutex("RECURSIVE", "pthread_mutex_unlock(&m);"), "sss");
    assertions(&mutex("ERRORCHECK", "assert(pthread_mutex_lock(&m));"), "suu");
    assertions(&mutex("ERRORCHECK", "assert(pthread_mutex_trylock(&m));"), "suu");
}

#[test]
fn structures_whose_members_have_other_parts_are_not_the_same() {
    let seen = |other: &str, access: &str| {
        let text = format!(
            "{HEADERS}struct a {{ struct {{ int x, y; }} i; int k; }} g; struct b {{ {other} i; int k; }};
             void *thread(void *argument) {{ struct b *b = argument; {access} return 0; }}
             int main(void) {{ pthread_t t; pthread_create(&t, 0, thread, &g); return g.i.y; }}"
        );
        load("test.c", text.as_bytes(), None, &[]).is_ok()
    };
    assert!(seen("struct { int x, y; }", "b->i.y = 1;"));
    assert!(!seen("struct { int p[2]; }", "b->i.p[1] = 1;"));
    assert!(!seen("struct { long p; }", "b->i.p = 1;"));
    assert!(!seen("long", "b->i = 1;"));
}

#[test]
fn addresses_read_as_numbers_have_the_bits_of_addresses() {
    let globals =
        "struct node { int v; struct node *next; } a, b; union word { struct node *p; uintptr_t v; } q;
        struct node *r;";
    let before = "a.v = 7; q.p = &a; r = &b;";
    let body = "union word w = q; assert((w.v & 1) == 0); w.v |= 1; assert(w.p != &a && w.p != &b);
        w.v &= ~(uintptr_t)1; assert(w.p == &a && w.p->v == 7);
        uintptr_t bits = *(uintptr_t *)&r; assert((bits & 3) == 0 && bits != 0); go = 2;";
    assertions(&inside(globals, before, body), "sss");
    assertions(&inside(globals, before, &body.replace("w.p->v == 7", "w.p->v != 7")), "uuu");
    // The program above, but another thread can change the pointers.
    let main = "q.p = &b; r = &a;";
    let shared = inside(globals, before, &body.replace("w.p == &a && w.p->v == 7", "w.p == &a || w.p == &b"));
    assertions(&shared.replacen("go = 1;", main, 1), "sss");
}

#[test]
fn stuck_threads_and_threads_that_exited_the_program() {
    let own = "pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_mutex_lock(&m);";
    deadlock(
        &inside("", "", &format!("{own} pthread_mutex_unlock(&m); pthread_mutex_lock(&m); int z = go;")),
        "sss",
    );
    deadlock(&inside("", "", &format!("{own} pthread_mutex_lock(&m); int z = go;")), "uuu");
    let ended = |end: &str| {
        format!(
            "int go; void __VERIFIER_assume(int);
             void *thread(void *argument) {{ {end} return 0; }}
             int main(void) {{ pthread_t t; pthread_create(&t, 0, thread, 0); go = 1; pthread_join(t, 0); return 0; }}"
        )
    };
    deadlock(&ended("if (go) exit(1);"), "sss");
    deadlock(&ended("__VERIFIER_assume(go == 0);"), "sss");
    deadlock(
        &ended(
            "pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_mutex_lock(&m); if (go) pthread_mutex_lock(&m);",
        ),
        "uuu",
    );
}

#[test]
fn termination_is_not_claimed_for_loops_that_are_not_decided() {
    let waits = |waiting: &str| {
        format!(
            "#include <pthread.h>
            volatile int f, g; void *t(void *a) {{ {waiting} return 0; }}
            int main(void) {{ pthread_t s; pthread_create(&s, 0, t, 0); f = 1; g = 1; return 0; }}"
        )
    };
    let c = COptions { exact_waits: true, ..COptions::default() };
    let options = Options { c, ..Options::default() };
    for (waiting, decided) in [
        ("while (!f) ;", true),
        ("while (f && g == 1) ;", true),
        ("again: if (!f) goto again;", true),
        ("unsigned n = 0; while (!f || !g) if (++n > 9) n = 0;", false),
        ("for (int i = 0; i < 3; i++) if (f && g) break;", true),
    ] {
        let text = waits(waiting);
        let open = |_: &str| Err("there are no other files".to_owned());
        let loader = Loader { front_end: None, options: &options, stop: &Stop::never(), open: &open };
        assert_eq!(loader.load("waits.c", text.as_bytes()).is_ok(), decided, "{waiting}");
    }
}

/// The .fw text of the translation.
fn translated(text: &str) -> String {
    let text = format!("{HEADERS}{text}");
    let open = |name: &str| Err(format!("there is no `{name}`"));
    let (options, stop) = (Options::default(), Stop::never());
    let loader = Loader { front_end: None, options: &options, stop: &stop, open: &open };
    loader.load("test.c", text.as_bytes()).map(|loaded| fw::print(&loaded.file)).unwrap_or_default()
}

#[test]
fn copies_survive_changes_of_the_original() {
    assertions(&inside("", "", "int a = go, b = a; a = 5; assert(b != 5); assert(b + a != 6);"), "uuu");
    assertions(&inside("", "", "int a = go, b = a; a = 5; assert(b != 5); assert(a == 5);"), "sss");
    assertions(&inside("", "", "int a = 7, b = a; if (go) a = 8; assert(a == 7);"), "uuu");
    assertions(
        &inside("", "", "int a = 7, b = a; if (go) a = 8; assert(b == 7 && (a == b || a == 8));"),
        "sss",
    );
    assertions(
        &inside(
            "int own = 3;",
            "",
            "int a = own; own = go; int b = own; own = a; assert(own == 3 && b < 1);",
        ),
        "uuu",
    );
    assertions(
        &inside(
            "int own = 3;",
            "",
            "int a = own; own = go; int b = own; own = a; assert(own == 3 && b < 2);",
        ),
        "sss",
    );
}

#[test]
fn facts_at_a_loop_head_are_those_the_loop_preserves() {
    let rounds = |rounds: &str| {
        let globals = "int own, kept = 4;";
        inside(globals, "", &format!("own = 1; kept = 4; int n = 0, last = n; {rounds} int z = go;"))
    };
    assertions(&rounds("while (own < 3 + go) { last = own; own = last + 1; n++; } assert(n != 2);"), "uuu");
    assertions(
        &rounds("while (own < 3 + go) { last = own; own = last + 1; n++; } assert(last != 2);"),
        "uuu",
    );
    assertions(&rounds("while (own < 3 + go) { last = own; own = last + 1; } assert(kept == 4);"), "sss");
    assertions(
        &rounds("again: last = own; own = last + 1; if (own < 3 + go) goto again; assert(last != 2);"),
        "uuu",
    );
    assertions(
        &rounds("last = 9; if (go) goto in; while (own < 2) { last = own; in: own++; } assert(last != 9);"),
        "uuu",
    );
    assertions(
        &rounds(
            "last = 9; if (go) { own = 2; goto in; } own = 1; do { n = own; in: own++; } while (own < 3); assert(n != 0);",
        ),
        "uuu",
    );
}

#[test]
fn indirectly_computed_values_are_known() {
    let pointer = |offset: &str| {
        inside(
            "int x, a[2];",
            "",
            &format!("int r = go, s = r; int t = {offset}; *(&x + t) = 1; int z = x + a[1];"),
        )
    };
    for offset in ["r ^ s", "r - s", "(r & s) - r", "(r | s) ^ s", "s * 0", "0 & r", "(r == s) - 1", "r != s"]
    {
        memory(&pointer(offset), "sss");
        assert!(!translated(&pointer(offset)).contains("bad_pointer"), "{offset}");
    }
    for offset in ["r", "r ^ go", "r - 2 * s", "r & s", "r < 1", "s | 0", "(r == s) - r"] {
        memory(&pointer(offset), "uuu");
    }
}

#[test]
fn only_the_remainder_of_a_choice_is_chosen_if_only_it_matters() {
    let program = |use_: &str| {
        format!(
            "unsigned __VERIFIER_nondet_uint(void); int main(void) {{ unsigned n = __VERIFIER_nondet_uint(); {use_} }}"
        )
    };
    assert!(translated(&program("assert(n % 3 != 2);")).contains("* in 0..=2;"));
    assert!(translated(&program("assert((n & 7) != 2 && (n & 7) != 3);")).contains("* in 0..=7;"));
    for other in ["n % 3 != 2 && n != 9", "n % 3 != 2 && n % 4 != 3", "(n & 6) != 2", "n / 3 != 2"] {
        let text = program(&format!("assert({other});"));
        assert!(translated(&text).contains("* in 0..=4294967295;"), "{text}");
    }
    assertions(&program("assert(n % 3 < 3);"), "sss");
    assertions(&program("assert(n % 3 < 2);"), "uuu");
}

#[test]
fn branches_on_uninitialised_values_violate_memory() {
    for undecided in [
        "int u, v = u, w = u ^ v; if (w) go = 2;",
        "int u, v = u; if (u == v) go = 2;",
        "int u; int v = u - u; if (v) go = 2;",
    ] {
        memory(&inside("", "", &format!("{undecided} int z = go;")), "uuu");
    }
    memory(
        &inside("", "", "int *p = malloc(sizeof *p); int r = *p, s = r; if (r ^ s) go = 2; int z = go;"),
        "uuu",
    );
    memory(&inside("", "", "int u, v = u; u = go; if (u ^ u) go = 2;"), "sss");
}

#[test]
fn a_variable_of_one_thread_is_in_memory_for_what_drains_buffers() {
    let text = |between: &str| {
        format!(
            "atomic_int x, y, own, mine; int r, s;
             void *one(void *a) {{ atomic_store_explicit(&x, 1, memory_order_relaxed); {between} r = y; return 0; }}
             void *other(void *a) {{ atomic_store_explicit(&y, 1, memory_order_relaxed); atomic_thread_fence(memory_order_seq_cst); s = x; return 0; }}
             int main(void) {{
                 pthread_t t, u; pthread_create(&t, 0, one, 0); pthread_create(&u, 0, other, 0);
                 pthread_join(t, 0); pthread_join(u, 0); assert(r == 1 || s == 1); return 0;
             }}"
        )
    };
    assertions(&text(""), "suu");
    assertions(&text("atomic_store_explicit(&own, 1, memory_order_relaxed);"), "suu");
    assertions(&text("own = 1;"), "sss");
    assertions(&text("atomic_fetch_add(&own, 1);"), "sss");
}

#[test]
fn consecutive_waits_are_joined_only_for_flags_that_stay_set() {
    let text = |signals: &str, waits: &str| {
        format!(
            "volatile int a, b; void *thread(void *argument) {{ {signals} return 0; }}
             int main(void) {{ pthread_t t; pthread_create(&t, 0, thread, 0); {waits} assert(0); return 0; }}"
        )
    };
    let waits = "while (!a); while (!b);";
    assertions(&text("a = 1; b = 1;", waits), "uuu");
    assertions(&text("a = 1; a = 0; b = 1;", waits), "uuu");
    assertions(&text("a = 1; __sync_fetch_and_sub(&a, 1); b = 1;", waits), "uuu");
    assertions(&text("a = 1; a = 2; a = 1; b = 2;", "while (a != 1); while (b != 2);"), "uuu");
    assertions(&text("a = 1;", waits), "sss");
    // Waits for flags that are set initially do not block.
    let start = "atomic_int a = 1, b = 1; void *one(void *p) { a = 1; return 0; } void *other(void *p) { b = 1; return 0; }";
    assertions(
        &format!(
            "{start} int main(void) {{ pthread_t s, t; pthread_create(&s, 0, one, 0); pthread_create(&t, 0, other, 0); while (!a); while (!b); assert(0); return 0; }}"
        ),
        "uuu",
    );
    let joins = "void *f(void *a) { return 0; } int x; void *g(void *a) { x = 1; return 0; }
        int main(void) { pthread_t s, t; pthread_create(&s, 0, f, 0); pthread_create(&t, 0, g, 0);
        pthread_join(s, 0); pthread_join(t, 0); assert(x == 1); return 0; }";
    assertions(joins, "sss");
    assert!(translated(joins).contains("assume done_1 != 0 && done_2 != 0;"), "{}", translated(joins));
    deadlock(joins, "sss");
    deadlock(
        &joins.replace(
            "x = 1;",
            "pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_mutex_lock(&m); pthread_mutex_lock(&m);",
        ),
        "uuu",
    );
}

#[test]
fn counters_count_every_statement_once() {
    let text = |start: &str, one: &str, other: &str| {
        format!(
            "int n = {start}; void *thread(void *argument) {{ int i; {one} return 0; }}
             int main(void) {{ pthread_t t; pthread_create(&t, 0, thread, 0); {other} return 0; }}"
        )
    };
    assertions(&text("2147483645", "n++;", "n++;"), "sss");
    assert!(!translated(&text("2147483644", "n++;", "n++; assert(n == 5);")).contains("overflow"));
    assertions(&text("2147483645", "n++; n++;", "n++;"), "uuu");
    assertions(&text("2147483644", "for (i = 0; i < 3; i++) n++;", "n++;"), "uuu");
    assertions(&text("2147483644", "i = 0; again: n++; i++; if (i < 3) goto again;", "n++;"), "uuu");
    assertions(&text("0", "n = 2147483647;", "n++;"), "uuu");
    assertions(&text("-2147483647", "n--;", "n--;"), "uuu");
    assertions(&text("-2147483646", "n--;", "n--;"), "sss");
    assertions(&text("1", "n = n + n;", "n = 1073741824; n++;"), "uuu");
}

#[test]
fn checks_that_were_passed_are_passed_for_the_same_value_only() {
    let list = |body: &str| {
        inside(
            "struct node { int v; struct node *next; } a, b; struct node *first;",
            "a.next = &b; first = &a;",
            &format!("struct node *p = first, *q = p; {body} int z = go;"),
        )
        .replacen("go = 1;", "go = 1; first = &b;", 1)
    };
    memory(&list("p->v = 1; q->v = 1; p = first; p->v = 1;"), "sss");
    memory(&list("p->v = 1; p = p->next; if (p) p->v = 2;"), "sss");
    memory(&list("p->v = 1; p = p->next; p->v = 2;"), "uuu");
    memory(&list("p->v = 1; if (go) p = 0; p->v = 2;"), "uuu");
    memory(&list("while (p->v == 0) { p = p->next; if (p) p->v = 0; }"), "uuu");
}

/// The translation leaves no checks where nothing can go wrong.
#[test]
fn no_checks_remain_where_nothing_can_go_wrong() {
    let text = "int x, y, r, s, p;
        void *one(void *a) { r = x; p = r ^ r; *(&y + p) = 1; return 0; }
        void *other(void *a) { s = y; x = 1; return 0; }
        int main(void) {
            pthread_t t, u; pthread_create(&t, 0, one, 0); pthread_create(&u, 0, other, 0);
            pthread_join(t, 0); pthread_join(u, 0); assert(!(r == 1 && s == 1)); return 0;
        }";
    let small = translated(text);
    assert!(!small.contains("forbid") && !small.contains('[') && !small.contains("shared p"), "{small}");
    assertions(text, "sss");
}

#[test]
fn threads_that_do_the_same_count_when_they_end() {
    let text = |last: &str| {
        format!(
            "int x; void *f(void *a) {{ x = x + 1; return 0; }} void *g(void *a) {{ int z = x; return 0; }}
             int main(void) {{
                 pthread_t t[3], u; pthread_create(&t[0], 0, f, 0); pthread_create(&t[1], 0, f, 0);
                 pthread_create(&t[2], 0, f, 0); pthread_create(&u, 0, g, 0);
                 pthread_join(t[0], 0); pthread_join(u, 0); pthread_join(t[1], 0); pthread_join(t[2], 0); {last} return 0;
             }}"
        )
    };
    let counted = translated(&text("assert(x != 3);"));
    assert!(counted.contains("done_1 == 3") && counted.contains("done_4 != 0"), "{counted}");
    assertions(&text("assert(x >= 1 && x <= 3);"), "sss");
    assertions(&text("assert(x != 1);"), "uuu");
    assertions(&text("assert(x != 0);"), "sss");
    deadlock(&text(""), "sss");
    // Two joins of the same thread, and joins with an access between them, are not replaced by counting.
    let twice = text("assert(x != 3);")
        .replace("pthread_join(u, 0);", "pthread_join(u, 0); x = x; pthread_join(t[1], 0);");
    assertions(&twice, "uuu");
    assert!(!translated(&text("")).contains("done"), "{}", translated(&text("")));
}

/// A loop that only waits may compute the address that it reads in each iteration.
#[test]
fn a_waiting_loop_loads_the_awaited_place() {
    let program = |wait: &str| {
        format!(
            "int flag[4], which, z;
             static int get(int *place) {{ return *place; }}
             void *p(void *argument) {{ int i = which; if (i < 0 || i > 3) return 0; {wait} z = 1; return 0; }}
             void *q(void *argument) {{ which = 2; flag[2] = 1; flag[0] = 1; return 0; }}
             int main(void) {{ pthread_t a, b; pthread_create(&a, 0, p, 0); pthread_create(&b, 0, q, 0);
                 pthread_join(a, 0); pthread_join(b, 0); assert(z == 0); }}"
        )
    };
    for wait in [
        "while (get(&flag[i]) == 0);",
        "for (;;) { int *place = &flag[i]; if (*place) break; }",
        "for (;;) { int *first = flag; int *place = first + i; if (*place) break; }",
        "while (get(&flag[((i & i) - i)]) == 0);",
    ] {
        assertions(&program(wait), "uuu");
        memory(&program(wait), "sss");
    }
}
