//! The translation of C programs: small programs with known verdicts under all models, found by exploring the reference semantics, and for some of
//! them the `.fw` text.

use fencewright_executions::oracle;
use fencewright_lang::{fw, load};
use fencewright_program::{MemoryModel, Program};

const STATE_LIMIT: usize = 200_000;
const MODELS: [MemoryModel; 3] = [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso];

fn loaded(text: &str) -> fencewright_lang::Loaded {
    load("test.c", text.as_bytes(), None, &[])
        .unwrap_or_else(|e| panic!("{}\n{text}", e.sources.render(&e.diagnostics, false)))
}

fn program(text: &str) -> Program {
    loaded(text).program
}

fn printed(text: &str) -> String {
    fw::print(&loaded(text).file)
}

fn error(text: &str) -> String {
    match load("test.c", text.as_bytes(), None, &[]) {
        Ok(loaded) => panic!("this is understood:\n{text}\n{}", fw::print(&loaded.file)),
        Err(e) => e.sources.render(&e.diagnostics, false),
    }
}

/// Whether a property holds under a model.
fn holds(program: &Program, name: &str, model: MemoryModel, text: &str) -> bool {
    let reachable = oracle::explore(program, model, STATE_LIMIT, &mut || false);
    let reachable = reachable.unwrap_or_else(|why| panic!("{why:?}\n{text}\n{}", printed(text)));
    let property = program.properties.iter().find(|property| property.name == name);
    let property = property.unwrap_or_else(|| panic!("no property {name}\n{}", printed(text)));
    reachable.satisfies(program, model, property).unwrap_or_else(|| panic!("not known\n{}", printed(text)))
}

/// Checks the verdicts about assertions under SC, TSO and PSO: `s` for safe, `u` for unsafe.
#[track_caller]
fn check(text: &str, expected: &str) {
    let program = program(text);
    let found: String = MODELS
        .iter()
        .map(|model| if holds(&program, "assertions", *model, text) { 's' } else { 'u' })
        .collect();
    assert_eq!(found, expected, "{text}\n{}", printed(text));
}

/// Checks a sequential program: all assertions in the body of `main` hold, and it becomes unsafe if a false assertion is added.
#[track_caller]
fn sequential(declarations: &str, body: &str) {
    let text = |body: &str| {
        format!(
            "#include <assert.h>\n#include <stdint.h>\n#include <stdbool.h>\nint __VERIFIER_nondet_int(void);\n{declarations}\nint main(void) {{ {body} return 0; }}"
        )
    };
    check(&text(body), "sss");
    check(&text(&format!("{body} assert(0);")), "uuu");
    // The same code before the first thread starts, where it is executed during translation if all values are known.
    let thread = format!("#include <pthread.h>\n{declarations}\nvoid *idle(void *a) {{ return a; }}");
    let with_thread = |body: &str| {
        format!(
            "#include <assert.h>\n#include <stdint.h>\n#include <stdbool.h>\nint __VERIFIER_nondet_int(void);\n{thread}\nint main(void) {{ {body} pthread_t t; pthread_create(&t, 0, idle, 0); return 0; }}"
        )
    };
    check(&with_thread(body), "sss");
    check(&with_thread(&format!("{body} assert(0);")), "uuu");
}

#[test]
fn lengths_of_arrays_are_values_of_variables_that_nothing_changes() {
    sequential(
        "static int n = 2;",
        "int m = n + 1, a[m]; a[2] = 1; assert(sizeof a == 12 && a[2] && n < m);",
    );
    sequential(
        "unsigned n = 2; struct s { int n; };",
        "int a[n]; assert(sizeof a == 8 && n == 2 && n != 1);",
    );
    let changes = [
        "n = 3;",
        "n++;",
        "--n;",
        "n += 1;",
        "(n) = 3;",
        "*&n = 3;",
        "int *p = &n; *p = 3;",
        "n <<= 1;",
        "__atomic_store_n(&n, 3, 0);",
        "WRITE_ONCE(n, 3);",
        "asm(\"\" : \"+r\"(n));",
        "int *p = &(n); *p = 3;",
        "if (n) { int n = 3; (void)n; }",
    ];
    for change in changes {
        let text = format!("int n = 2; int main(void) {{ {change} static int a[n]; return 0; }}");
        let said = error(&text);
        assert!(said.contains("the length of this array is not known"), "{text}: {said}");
    }
    assert!(error("volatile int n = 2; int main(void) { static int a[n]; return 0; }").contains("length"));
    assert!(error("int n; int main(void) { static int a[n]; return 0; }").contains("length"));
    assert!(
        error("int f(int n) { static int a[n]; return 0; } int main(void) { return f(2); }")
            .contains("length")
    );
}

#[test]
fn main_is_called_without_arguments() {
    let main = |body: &str| {
        format!("#include <assert.h>\n#include <stdlib.h>\nint main(int argc, char *argv[]) {{ {body} }}")
    };
    check(&main("int n = 2; if (argc > 1) n = atoi(argv[1]); assert(argc == 1 && n == 2);"), "sss");
    check(&main("assert(argv[0] && !argv[0][0] && !argv[1]);"), "sss");
    check(&main("assert(argc == 0);"), "uuu");
}

#[test]
fn control_flow() {
    sequential(
        "int g;",
        "int s = 0; for (int i = 0; i < 5; i++) { if (i == 1) continue; if (i == 4) break; s += i; } assert(s == 5);",
    );
    sequential(
        "volatile int v = 3;",
        "int n = v, s = 0; while (n) { s += n; n--; } assert(s == 6 && n == 0);",
    );
    sequential(
        "volatile int v = 3;",
        "int n = v, s = 0; do { s += n; if (s == 6) continue; s++; } while (--n); assert(s == 8);",
    );
    sequential(
        "int f(int x) { if (x > 2) return 1; for (;;) { x++; if (x == 2) return 7; } } volatile int v;",
        "assert(f(3) == 1); assert(f(0) == 7); assert(f(v) == 7);",
    );
    sequential(
        "volatile int v = 2;",
        "int a = 0, i = v; again: a += i; if (i-- > 0) goto again; assert(a == 3);",
    );
    sequential("volatile int v = 2;", "int a = 0; if (v == 2) goto out; a = 1; out: assert(a == 0);");
    sequential("volatile int v = 1;", "int a = 5; if (v) goto in; if (a == 4) { in: a++; } assert(a == 6);");
    sequential(
        "int f(int x) { int r = 0; switch (x) { case 1: r = 1; case 2: r += 10; break; default: r = 3; break; case 4 ... 6: return 9; } return r; } volatile int v = 1;",
        "assert(f(1) == 11 && f(2) == 10 && f(3) == 3 && f(5) == 9); assert(f(v) == 11); assert(f(v + 1) == 10); assert(f(v + 2) == 3); assert(f(v + 4) == 9);",
    );
    sequential(
        "volatile int v = 3;",
        "int n = 0, i = 7; switch (v) { case 0: do { n++; case 3: n++; case 2: n++; } while (--i > 5); } assert(n == 5);",
    );
    sequential(
        "volatile int v = 3;",
        "int s = 0; for (int i = 0; i < v; i++) { switch (i) { case 1: continue; } for (int j = 0; j < v; j++) { if (j > i) break; s++; } } assert(s == 4);",
    );
}

#[test]
fn expressions() {
    sequential(
        "volatile int v = 4;",
        "int x = v; int y = x++ + 2; assert(x == 5 && y == 6); y = --x; assert(y == 4); x += y *= 2; assert(x == 12 && y == 8);",
    );
    sequential(
        "volatile int v = 4, w; int f(void) { w = 1; return 1; }",
        "int a = v == 4 || f(); assert(a == 1 && w == 0); a = v == 5 && f(); assert(a == 0 && w == 0); a = v == 4 && f(); assert(a && w);",
    );
    sequential(
        "volatile int v = 4, w;",
        "int a = v > 3 ? (w = 2, 5) : 6; assert(a == 5 && w == 2); a = v < 3 ? (w = 9) : 6; assert(a == 6 && w == 2); a = v ?: 8; assert(a == 4);",
    );
    sequential(
        "volatile unsigned char c = 255; volatile unsigned u;",
        "c++; assert(c == 0); u--; assert(u == 4294967295u); signed char d = (signed char)200; assert(d == -56); assert((uint16_t)70000 == 4464);",
    );
    sequential(
        "volatile int v = 7;",
        "assert(-v / 2 == -3 && -v % 2 == -1 && (v & 5) == 5 && (v ^ 2) == 5 && (v << 2) == 28 && (-v >> 1) == -4 && ~v == -8 && !v == 0);",
    );
    sequential(
        "volatile int v = 3;",
        "int a = ({ int t = v; t * 2; }); assert(a == 6); bool b = v; assert(b == 1);",
    );
}

#[test]
fn pointers_and_structures() {
    sequential(
        "struct p { int x, y; }; struct p g = { .y = 2 };",
        "struct p a = g, *q = &a; q->x = 5; struct p b; b = *q; assert(b.x == 5 && b.y == 2 && g.x == 0);",
    );
    sequential(
        "struct p { int x, y; }; struct p make(int x) { struct p r = { x, x + 1 }; return r; } int sum(struct p a) { a.x += a.y; return a.x; } volatile int v = 3;",
        "struct p a = make(v); assert(sum(a) == 7 && a.x == 3); assert(make(v).y == 4);",
    );
    sequential(
        "volatile int v = 1;",
        "int a[3] = { 1, 2 }; a[v] = 7; assert(a[0] == 1 && a[1] == 7 && a[2] == 0); int *p = a; p += 2; *p = 5; assert(p - a == 2 && a[2] == 5 && p[-1] == 7 && *(a + v) == 7);",
    );
    sequential(
        "void swap(int *a, int *b) { int t = *a; *a = *b; *b = t; } volatile int v = 1;",
        "int x = v, y = 2; swap(&x, &y); assert(x == 2 && y == 1); int *p = v ? &x : &y; *p = 9; assert(x == 9 && y == 1);",
    );
    sequential(
        "int one(void) { return 1; } int two(void) { return 2; } int (*table[2])(void) = { one, two }; int (*other)(void); volatile int v = 1;",
        "assert(table[0]() == 1 && table[1]() == 2); assert(table[v]() == 2); other = v ? one : two; assert(other() == 1);",
    );
    sequential(
        "struct n { int k; struct n *next; }; struct n a, b; volatile int v = 2;",
        "a.next = &b; b.k = v; b.next = 0; int s = 0; for (struct n *p = &a; p; p = p->next) s += p->k; assert(s == 2);",
    );
    sequential(
        "struct in { int a; }; struct out { struct in i; int b; }; volatile int v = 2;",
        "struct out o; o.b = v; struct in *p = &o.i; struct out *q = (struct out *)p; assert(q->b == 2);",
    );
}

#[test]
fn known_values_are_forgotten_where_they_change() {
    // Assignments through pointers, in loops, in called functions, and where paths join.
    sequential(
        "volatile int v = 1; void set(int *p, int x) { *p = x; }",
        "int a = 1, b = 1; int *p = v ? &a : &b; set(p, 5); assert(a == 5 && b == 1);",
    );
    sequential(
        "volatile int v = 3;",
        "int a = 0; for (int i = 0; i < v; i++) { if (a == 0) a = 1; else a = 2; } assert(a == 2);",
    );
    sequential(
        "volatile int v = 3;",
        "int a = 0, *p = &a, n = v; while (n--) { if (a == 1) *p = 7; else (*p)++; } assert(a == 8);",
    );
    sequential(
        "struct s { int *p; int x; }; volatile int v = 1;",
        "int a = 1; struct s s = { &a, 2 }; int **q = &s.p; if (v) **q = 4; assert(a == 4); *s.p = 5; assert(a == 5);",
    );
    sequential(
        "volatile int v = 2;",
        "int a = 0; again: if (a == 3) goto done; a++; if (v) goto again; done: assert(a == 3);",
    );
    sequential("volatile int v = 2; int g;", "g = 1; int *p = &g; if (v) { *p = 2; } assert(g == 2);");
}

const SB: &str = "#include <pthread.h>\n#include <assert.h>\n#include <stdatomic.h>\n";

#[test]
fn store_buffering() {
    let text = |t: &str, body: &str| {
        format!("{SB}{t} x, y; int a, b;
            void *one(void *p) {{ {body} a = y; return 0; }}
            void *two(void *p) {{ {} b = x; return 0; }}
            int main() {{ pthread_t s, t; pthread_create(&s, 0, one, 0); pthread_create(&t, 0, two, 0); pthread_join(s, 0); pthread_join(t, 0); assert(a || b); }}",
            body.replace("&x", "&y").replace("x =", "y =").replace("x++", "y++"))
    };
    check(&text("int", "x = 1;"), "suu");
    check(&text("volatile int", "x = 1;"), "suu");
    check(&text("atomic_int", "x = 1;"), "sss");
    check(&text("atomic_int", "atomic_store_explicit(&x, 1, memory_order_release);"), "suu");
    check(&text("int", "x = 1; atomic_thread_fence(memory_order_seq_cst);"), "sss");
    check(&text("_Atomic unsigned char", "x++;"), "sss");
}

#[test]
fn message_passing() {
    let text = |store: &str| {
        format!("{SB}int data; atomic_int flag;
            void *producer(void *p) {{ data = 42; {store} return 0; }}
            void *consumer(void *p) {{ while (!atomic_load_explicit(&flag, memory_order_acquire)) ; assert(data == 42); return 0; }}
            int main() {{ pthread_t s, t; pthread_create(&s, 0, producer, 0); pthread_create(&t, 0, consumer, 0); }}")
    };
    check(&text("atomic_store_explicit(&flag, 1, memory_order_relaxed);"), "ssu");
    check(&text("atomic_store_explicit(&flag, 1, memory_order_release);"), "sss");
}

#[test]
fn threads() {
    let text = |body: &str| format!("{SB}atomic_int n; int x; pthread_t t[3]; int nondet(void);\n{body}");
    // Arguments and results of threads; threads created by other threads, in loops, and joined in loops.
    check(&text("void *f(void *a) { n += (int)(long)a; return (void *)((long)a + 1); }
        int main() { void *r; for (long i = 0; i < 3; i++) pthread_create(&t[i], 0, f, (void *)i);
            long s = 0; for (int i = 0; i < 3; i++) { pthread_join(t[i], &r); s += (long)r; } assert(n == 3 && s == 6); }"), "sss");
    check(&text("void *g(void *a) { x = *(int *)a; return 0; }
        void *f(void *a) { int y = 7; pthread_t u; pthread_create(&u, 0, g, &y); pthread_join(u, 0); return 0; }
        int main() { pthread_create(t, 0, f, 0); pthread_join(t[0], 0); assert(x == 7); }"), "sss");
    // Without a join, the thread's store need not be visible.
    check(
        &text(
            "void *f(void *a) { x = 1; return 0; } int main() { pthread_create(t, 0, f, 0); assert(x == 1); }",
        ),
        "uuu",
    );
    // The creator's stores are visible when the thread starts, and the thread's stores after it has been joined.
    check(
        &text(
            "void *f(void *a) { assert(x == 1); x = 2; return 0; } int main() { x = 1; pthread_create(t, 0, f, 0); pthread_join(*t, 0); assert(x == 2); }",
        ),
        "sss",
    );
    check(
        &text(
            "void *g(void *a) { assert(x == 3); return 0; } void *f(void *a) { while (n != 1) ; x = 3; pthread_create(t + 1, 0, g, 0); return 0; } int main() { pthread_create(t, 0, f, 0); n = 1; }",
        ),
        "sss",
    );
    // Threads that exit at any point, and threads that are not created in every execution.
    check(&text("void end(int v) { if (v) pthread_exit((void *)5L); } void *f(void *a) { end(x); return (void *)6L; }
        int main() { void *r; x = 1; pthread_create(t, 0, f, 0); pthread_join(*t, &r); assert((long)r == 5); }"), "sss");
    check(&text("_Bool __VERIFIER_nondet_bool(void); void *f(void *a) { x = 1; return 0; }
        int main() { if (__VERIFIER_nondet_bool()) { pthread_create(t, 0, f, 0); pthread_join(*t, 0); assert(x == 1); } else assert(x == 0); }"), "sss");
    check(&text("void *f(void *a) { assert(a == (void *)(long)pthread_self()); return 0; }
        int main() { pthread_create(t, 0, f, (void *)1L); pthread_create(t + 1, 0, f, (void *)2L); assert(!pthread_equal(t[0], t[1])); }"), "sss");
}

#[test]
fn thread_local_variables_and_static_ones() {
    let text = |body: &str| format!("{SB}{body}");
    check(&text("__thread int mine; atomic_int all; void *f(void *a) { mine++; all += mine; return 0; }
        int main() { pthread_t s, t; mine = 5; pthread_create(&s, 0, f, 0); pthread_create(&t, 0, f, 0); pthread_join(s, 0); pthread_join(t, 0); assert(all == 2 && mine == 5); }"), "sss");
    check(
        &text(
            "int next(void) { static int n = 3; return n++; } int main() { assert(next() == 3); assert(next() == 4); }",
        ),
        "sss",
    );
}

#[test]
fn asynchronous_calls() {
    check(
        "void f(int a); int x, y; void f(int a) { x = a; asm(\"sync\"); y = 1; }
        int main() { __CPROVER_ASYNC_1: f(4); __CPROVER_assume(y == 1); __CPROVER_assert(x == 4, \"x\"); }",
        "sss",
    );
    check(
        "int x, y; void f(int a) { x = a; y = 1; }
        int main() { __CPROVER_ASYNC_1: f(4); __CPROVER_assume(y == 1); __CPROVER_assert(x == 4, \"x\"); }",
        "ssu",
    );
}

#[test]
fn waiting_is_awaiting() {
    for waiting in [
        "while (!f) ;",
        "while (f == 0) { }",
        "do { } while (!f);",
        "for (;;) if (f) break;",
        "for (;;) { int r = f; if (r != 0) break; }",
        "while (1) { if (f) break; }",
        "int r; while (!(r = f)) ; x = r;",
        "while (!get(&f)) ;",
        "again: if (!f) goto again;",
    ] {
        let text = format!("{SB}volatile int f, x; int get(volatile int *p) {{ return *p; }} void *t(void *a) {{ {waiting} return 0; }}
            int main() {{ pthread_t s; pthread_create(&s, 0, t, 0); f = 1; }}");
        let shown = printed(&text);
        let is_loop = waiting.contains("goto");
        assert_eq!(shown.contains("assume f != 0"), !is_loop, "{waiting}\n{shown}");
    }
    // These loops do more than wait for `f`, so they do not become an `assume`.
    for waiting in [
        "while (!f) x++;",
        "while (!f) x = 1;",
        "while (!(f && x)) ;",
        "int n = 0; while (!f && n < 3) n++;",
        "while (!__sync_fetch_and_add(&f, 0)) ;",
    ] {
        let text = format!(
            "{SB}volatile int f, x; void *t(void *a) {{ {waiting} return 0; }}
            int main() {{ pthread_t s; pthread_create(&s, 0, t, 0); f = 1; x = 2; assert(x < 9); }}"
        );
        assert!(!printed(&text).contains("assume f"), "{waiting}\n{}", printed(&text));
    }
}

#[test]
fn code_before_the_first_thread_determines_the_initial_state() {
    let text = printed(&format!(
        "{SB}struct lock {{ int state, next[2]; }} l; int *p; int a[3];
        void init(struct lock *l) {{ l->state = 3; for (int i = 0; i < 2; i++) l->next[i] = i + 4; }}
        void *f(void *b) {{ assert(l.state == 3 && l.next[1] == 5 && *p == 2 && a[1] == 2); return 0; }}
        int main() {{ pthread_t t; init(&l); p = &a[1]; *p = 2; pthread_create(&t, 0, f, 0); }}"
    ));
    assert!(text.contains("thread main {}"), "{text}");
    assert!(!text.contains("start"), "{text}");
}

#[test]
fn unsupported_constructs_are_errors_with_a_position() {
    let both = |text: &str, parts: [&str; 2]| {
        let said = error(text);
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    };
    both("int f(void) { return 1; }", ["there is no function `main`", "test.c"]);
    both("int main(int argc) { return argc; }", ["`main` has parameters", "test.c"]);
    both("int unknown(int); int main() { return unknown(3); }", ["`unknown`", "test.c:1:"]);
    both("int main() { double d = 1.5; d = d * 2; return 0; }", ["floating", "test.c:1:"]);
}

#[test]
fn too_many_threads_are_an_error() {
    let text = format!(
        "{SB}void *f(void *a) {{ return 0; }} int main() {{ pthread_t t; for (;;) pthread_create(&t, 0, f, 0); }}"
    );
    assert!(printed(&text).contains("more_than_16_threads"), "{}", printed(&text));
}
