//! Calls of C programs: through pointers, and of functions that call themselves; allocations whose sizes depend on the call.

use fencewright_executions::oracle::{self, Incomplete};
use fencewright_lang::options::Options;
use fencewright_lang::{Loader, Stop, fw};
use fencewright_program::MemoryModel;

use crate::verdicts::{HEADERS, assertions, memory, verdicts};

/// Two threads, which run the bodies `f` and `g`; `main` runs `end` after them.
fn two(globals: &str, f: &str, g: &str, end: &str) -> String {
    format!(
        "unsigned char __VERIFIER_nondet_uchar(void); void __VERIFIER_assume(int); {globals}
         void *first(void *argument) {{ {f} return 0; }} void *second(void *argument) {{ {g} return 0; }}
         int main(void) {{
             pthread_t t, u; pthread_create(&t, 0, first, 0); pthread_create(&u, 0, second, 0);
             pthread_join(t, 0); pthread_join(u, 0); {end} return 0;
         }}"
    )
}

/// Checks the verdicts on the assertions with at most `recursion` nested calls.
#[track_caller]
fn nested(text: &str, recursion: Option<u32>, expected: &str) {
    let mut options = Options::default();
    options.c.recursion = recursion;
    assert_eq!(verdicts(text, &options, "assertions"), expected, "{text}");
}

/// Checks that some execution leaves the modelled part of C, for this reason.
#[track_caller]
fn ends(text: &str, recursion: Option<u32>, reason: &str) {
    let mut options = Options::default();
    options.c.recursion = recursion;
    let text = format!("{HEADERS}{text}");
    let open = |name: &str| Err(format!("there is no `{name}`"));
    let loader = Loader { front_end: None, options: &options, stop: &Stop::never(), open: &open };
    let Ok(loaded) = loader.load("test.c", text.as_bytes()) else { panic!("not read:\n{text}") };
    for model in [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso] {
        let reachable = oracle::explore(&loaded.program, model, 200_000, &mut || false);
        assert_eq!(reachable.unwrap_err(), Incomplete::Limit, "{text}");
    }
    let printed = fw::print(&loaded.file);
    assert!(printed.contains(reason), "{reason} is not in\n{printed}");
}

#[test]
fn a_pointer_calls_only_what_it_points_to() {
    let ops = "struct ops { int (*get)(int), (*other)(int); void (*set)(int); }; _Atomic int v;
        int plus(int a) { return a + v; } int minus(int a) { return a - v; } int wrong(int a) { assert(0); return a; }
        void set(int a) { v = a; }
        const struct ops one = { plus, wrong, set }, two = { minus, wrong, set };
        const struct ops *_Atomic now = &one;";
    let run = |call: &str| two(ops, &format!("const struct ops *o = now; {call}"), "now = &two;", "");
    assertions(&run("o->set(2); int r = o->get(5); assert(r == 7 || r == 3);"), "sss");
    assertions(&run("o->set(2); assert(o->get(5) == 7);"), "uuu");
    assertions(&run("assert((now == &one ? plus : minus)(5) == 5);"), "sss");
    assertions(&run("o->other(1);"), "uuu");
    // Pointers in arrays, chosen by an index that another thread writes.
    let table = "_Atomic int n, v; void one(void) { v = 1; } void two(void) { v = 2; } void never(void) { assert(0); }
        void (*table[3])(void) = { one, two, never };";
    let run = |index: &str, holds: &str| {
        two(table, &format!("table[{index}](); assert({holds});"), "n = 1;", "table[2] = one;")
    };
    assertions(&run("n", "v == 1 || v == 2"), "sss");
    assertions(&run("n", "v == 1"), "uuu");
    assertions(&run("n + 1", "v"), "uuu");
    memory(&run("n", "v"), "sss");
    memory(&run("n + 2", "v"), "uuu");
    // Pointers to functions as parameters and as results.
    let by = "_Atomic int v; typedef int (*of)(int); int inc(int a) { return a + 1; } int dec(int a) { return a - 1; }
        of choose(int up) { return up ? inc : dec; } int apply(of it, int to) { return it(to); }";
    assertions(
        &two(
            by,
            "int r = apply(choose(v), 4); assert(r == 5 || r == 3);",
            "v = 1; assert(apply(inc, 1) == 2);",
            "",
        ),
        "sss",
    );
    assertions(&two(by, "assert(apply(choose(v), 4) == 3);", "v = 1;", ""), "uuu");
    // Functions that are called through pointers and return structures.
    let pair = "struct p { int a, b; }; typedef struct p (*of)(int); struct p x(int a) { return (struct p){ a, 1 }; }
        struct p y(int a) { return (struct p){ 1, a }; } _Atomic of now = x;";
    assertions(&two(pair, "struct p r = now(3); assert(r.a + r.b == 4);", "now = y;", ""), "sss");
    assertions(&two(pair, "struct p r = now(3); assert(r.a == 3);", "now = y;", ""), "uuu");
    // A pointer to a function that is stored as an integer and converted back.
    let odd = "int one(void) { return 1; } int two_(void) { return 2; } uintptr_t _Atomic bits;";
    let run = |holds: &str| {
        two(
            odd,
            "bits = (uintptr_t)two_;",
            &format!(
                "uintptr_t b = bits; int (*p)(void) = b ? (int (*)(void))b : one; int r = p(); assert({holds});"
            ),
            "",
        )
    };
    assertions(&run("r == 1 || r == 2"), "sss");
    assertions(&run("r == 1"), "uuu");
}

/// The functions in structures that the program reaches only through their members, as Linux does with `container_of`.
#[test]
fn a_pointer_in_a_structure_around_a_member_calls_what_it_points_to() {
    let of = |declared: &str, member: &str, container: &str| {
        let globals = format!(
            "int g; void one(void) {{ g = 1; }} void other(void) {{ g = 2; }} {declared}
             struct work a = {{ {member}, one }}, b = {{ {member}, other }}; _Atomic int which;"
        );
        let call = format!("{container} w->run();");
        assertions(&two(&globals, &format!("{call} assert(g == 1 || g == 2);"), "which = 1;", ""), "sss");
        assertions(&two(&globals, &format!("{call} assert(g == 1);"), "which = 1;", ""), "uuu");
        memory(&two(&globals, &call, "which = 1;", ""), "sss");
    };
    let first = "struct work { int kind; void (*run)(void); };";
    of(first, "1", "int *p = which ? &b.kind : &a.kind; struct work *w = (struct work *)p;");
    let base = "struct base { int kind; }; struct work { struct base base; void (*run)(void); };";
    of(base, "{ 1 }", "struct base *p = which ? &b.base : &a.base; struct work *w = (struct work *)p;");
    let later = "struct work { struct { long before; int kind; } in; void (*run)(void); };";
    let back = "(struct work *)((char *)p - __builtin_offsetof(struct work, in.kind))";
    of(later, "{ 1, 2 }", &format!("int *p = which ? &b.in.kind : &a.in.kind; struct work *w = {back};"));
}

/// A recursion that passes its end at 0 if `n` is negative: no depth of calls follows from the range of `n`, but the depth is bounded.
#[test]
fn a_recursion_that_passes_its_end_is_bounded() {
    let even = "int odd(int n); int even(int n) { return n == 0 ? 1 : odd(n - 1); } int odd(int n) { return n == 0 ? 0 : even(n - 1); }";
    let run = |when: &str| {
        let chosen = format!("int n = (signed char)__VERIFIER_nondet_uchar(); if ({when})");
        two(even, &format!("{chosen} assert(even(n) == (n % 2 == 0));"), "", "")
    };
    assertions(&run("n < 3 && (n == 0 || n == 1 || n == 2)"), "sss");
    ends(&run("n < 3"), None, "deeper_than_8_calls_of_even");
}

#[test]
fn a_launcher_calls_the_function_it_is_given() {
    let launcher = |second: &str, holds: &str| {
        format!(
            "struct run {{ pthread_t t; long id; void *(*f)(void *); }}; _Atomic long sum;
             void *common(void *a) {{ struct run *r = a; return r->f((void *)r->id); }}
             void *add(void *a) {{ sum += (long)a; return 0; }} void *twice(void *a) {{ sum += 2 * (long)a; return 0; }}
             void launch(int n, void *(*f)(void *), void *(*last)(void *)) {{
                 struct run *all = malloc(n * sizeof *all);
                 for (int i = 0; i < n; i++) {{ all[i].id = i + 1; all[i].f = i ? last : f; pthread_create(&all[i].t, 0, common, &all[i]); }}
                 for (int i = 0; i < n; i++) pthread_join(all[i].t, 0);
                 free(all);
             }}
             int main(void) {{ launch(2, add, {second}); assert({holds}); return 0; }}"
        )
    };
    assertions(&launcher("add", "sum == 3"), "sss");
    assertions(&launcher("twice", "sum == 5"), "sss");
    assertions(&launcher("twice", "sum == 3"), "uuu");
    memory(&launcher("twice", "1"), "sss");
    memory(&launcher("0", "1"), "uuu");
    // The structures are found through a pointer, which only the threads read.
    let table = "struct run { long id; void *(*f)(void *); }; struct run all[2], *_Atomic now; _Atomic long sum;
        void *add(void *a) { sum += (long)a; return 0; }
        void set(struct run *r, void *(*f)(void *)) { for (int i = 0; i < 2; i++) { r[i].id = 3; r[i].f = f; } now = r; }";
    let call = "struct run *r = now; if (r) r[sum & 1].f((void *)r->id);";
    memory(&two(table, call, "set(all, add);", ""), "sss");
    assertions(&two(table, call, "set(all, add);", "assert(sum == 0 || sum == 3);"), "sss");
    assertions(&two(table, call, "set(all, add);", "assert(sum == 0);"), "uuu");
    // A thread that starts with a function that another thread chose.
    let start = "void *(*_Atomic now)(void *); _Atomic int v; void *one(void *a) { v = 1; return a; }
        void *two_(void *a) { v = 2; return a; }";
    let run = |holds: &str| {
        format!(
            "{start} void *w(void *a) {{ now = two_; return a; }}
             int main(void) {{
                 now = one; pthread_t t, u; pthread_create(&t, 0, w, 0); pthread_create(&u, 0, now, 0);
                 pthread_join(u, 0); pthread_join(t, 0); assert({holds}); return 0;
             }}"
        )
    };
    assertions(&run("v == 1 || v == 2"), "sss");
    assertions(&run("v == 1"), "uuu");
}

#[test]
fn calls_of_no_function_violate_memory() {
    let pointer = "void (*_Atomic p)(void); void one(void) {}";
    memory(&two(pointer, "p();", "p = one;", ""), "uuu");
    memory(&two(pointer, "if (p) p();", "p = one;", ""), "sss");
    memory(&two(pointer, "if (p) p();", "p = (void (*)(void))&p;", ""), "uuu");
    memory(&two(pointer, "if (p) p();", "p = (void (*)(void))8;", ""), "uuu");
    // Calls through pointers of other types: an error if values are passed in another way, but not if only the types of pointers differ, which all
    // compilers accept.
    let typed = "int x; int two_(int a, int b) { return a + b; } int at(int *a) { return *a; }
        void *_Atomic p;";
    memory(&two(typed, "if (p) ((int (*)(int))p)(1);", "p = two_;", ""), "uuu");
    memory(&two(typed, "if (p) ((int (*)(void *))p)(&x);", "p = at;", ""), "sss");
    memory(&two(typed, "((int (*)(int))two_)(1);", "p = at;", ""), "uuu");
}

#[test]
fn functions_may_call_themselves() {
    // The depth follows from constants, with more calls than the limit.
    let fact = "_Atomic int v; long fact(long n) { if (n <= 1) return 1; return n * fact(n - 1); }";
    nested(&two(fact, "v = 1; assert(fact(12) == 479001600);", "v = 2;", ""), Some(1), "sss");
    nested(&two(fact, "v = 1; assert(fact(12) == 479001599);", "v = 2;", ""), None, "uuu");
    let fib = "_Atomic int v; int fib(int n); int sum(int n) { return fib(n - 1) + fib(n - 2); }
        int fib(int n) { return n < 2 ? n : sum(n); }";
    nested(&two(fib, "v = fib(9); assert(v == 34);", "", ""), Some(1), "sss");
    // The depth depends on the execution.
    let even = "int odd(int n); int even(int n) { if (n == 0) return 1; int r = odd(n - 1); return r; }
        int odd(int n) { if (n == 0) return 0; int r = even(n - 1); return r; }";
    let body = |most: usize, holds: &str| {
        let any = format!("int n = __VERIFIER_nondet_uchar(); __VERIFIER_assume(n <= {most});");
        two(even, &format!("{any} assert({holds});"), "", "")
    };
    nested(&body(7, "even(n) == (n % 2 == 0)"), None, "sss");
    nested(&body(15, "even(n) == (n % 2 == 0)"), None, "sss");
    nested(&body(7, "even(n) == (n % 2 == 0)"), Some(4), "sss");
    ends(&body(8, "even(n) == (n % 2 == 0)"), Some(4), "deeper_than_4_calls_of_even");
    ends(&body(16, "even(n) == (n % 2 == 0)"), None, "deeper_than_8_calls_of_even");
}

#[test]
fn each_call_has_its_own_variables() {
    let f = "_Atomic int x;
        int f(int n, int *up) { int own = n; if (up) *up += 10; if (x > n) { f(n + 1, &own); assert(own == n + EXTRA); } else assert(own == n); return own; }";
    let run = |extra: &str| two(&f.replace("EXTRA", extra), "f(0, 0);", "x = 1; x = 3;", "");
    assertions(&run("10"), "sss");
    assertions(&run("0"), "uuu");
    memory(&run("10"), "sss");
    // A pointer to a variable of a call that has ended.
    let kept = "_Atomic int x; int *last; int f(int n) { int own = n; last = &own; if (x > n) return f(n + 1); return *last; }";
    memory(&two(kept, "f(0);", "x = 1;", ""), "sss");
    memory(&two(kept, "f(0); if (*last) x = 5;", "x = 1;", ""), "uuu");
    // The local structure of every call points to that of its caller.
    let chain = "_Atomic int x; struct s { struct s *up; int n; };
        int sum(struct s *s) { int r = 0; for (; s; s = s->up) r += s->n; return r; }
        int f(struct s *up, int n) { struct s own = { up, n }; return x >= n && n < 3 ? f(&own, n + 1) : sum(&own); }";
    assertions(
        &two(chain, "int r = f(0, 1); assert(r == 1 || r == 3 || r == 6);", "x = 1; x = 2;", ""),
        "sss",
    );
    assertions(&two(chain, "assert(f(0, 1) != 6);", "x = 1; x = 2;", ""), "uuu");
}

#[test]
fn calls_without_end_are_not_safe() {
    let endless = "_Atomic int v; void f(void) { v = 1; f(); v = 2; }";
    ends(&two(endless, "f();", "", "assert(v != 2);"), None, "calls_of_f_from");
    let through =
        "_Atomic int v; struct s { void (*f)(struct s *); }; void f(struct s *s) { if (v) s->f(s); }";
    ends(&two(through, "struct s s = { f }; f(&s);", "v = 1;", ""), Some(3), "deeper_than_3_calls_of_f");
}

#[test]
fn the_size_of_an_allocation_may_depend_on_the_execution() {
    let grown = |size: &str, use_: &str| {
        two(
            "_Atomic int n;",
            &format!("int s = n; int *a = malloc({size} * sizeof *a); {use_}"),
            "n = 3;",
            "",
        )
    };
    memory(&grown("(s + 1)", "for (int i = 0; i <= s; i++) a[i] = i; if (a[s]) n = 0;"), "sss");
    memory(&grown("(s + 1)", "a[s + 1] = 1;"), "uuu");
    memory(&grown("(s + 1)", "a[3] = 1;"), "uuu");
    assertions(&grown("(s + 1)", "a[s] = 7; assert(a[s] == 7 && (s == 0 || s == 3));"), "sss");
    let small = "int n = __VERIFIER_nondet_uchar(); __VERIFIER_assume(n > 0 && n <= 5); int *a = malloc(n * sizeof *a);";
    memory(&two("", &format!("{small} for (int i = 0; i < n; i++) a[i] = 0;"), "", ""), "sss");
    memory(&two("", &format!("{small} for (int i = 0; i <= n; i++) a[i] = 0;"), "", ""), "uuu");
    memory(&two("", &format!("{small} a[4] = 0;"), "", ""), "uuu");
    // An allocation of any other size leaves the modelled part.
    let any = "int n = __VERIFIER_nondet_uchar(); __VERIFIER_assume(n > 0); int *a = malloc(n * sizeof *a);";
    ends(&two("", &format!("{any} a[0] = 0;"), "", ""), None, "an_allocation_of_a_size_that_is_not_known");
    let zero = "int *a = malloc(n * sizeof *a); if (a) a[0] = 0;";
    ends(&two("_Atomic int n;", zero, "n = 1;", ""), None, "an_allocation_of_a_size_other_than_4");
    // Sizes that are constants in each call.
    let per_call = "struct b { int n; int a[]; }; struct b *make(int n) { struct b *b = malloc(sizeof *b + n * sizeof(int)); b->n = n; return b; }
        struct b *_Atomic now;";
    let run = |index: &str| {
        two(per_call, "now = make(2);", &format!("now = make(3); struct b *b = now; b->a[{index}] = 1;"), "")
    };
    memory(&run("b->n - 1"), "sss");
    memory(&run("b->n"), "uuu");
    memory(&run("2"), "uuu");
    memory(&run("1"), "sss");
    // `calloc`, `aligned_alloc` and `posix_memalign` compute sizes in the same way.
    let with = |call: &str, index: &str| {
        two("_Atomic int n;", &format!("int s = n + 1; int *a; {call}; a[{index}] = 1;"), "n = 1;", "")
    };
    for call in [
        "a = calloc(s, sizeof *a)",
        "a = aligned_alloc(16, s * sizeof *a)",
        "posix_memalign((void **)&a, 16, s * sizeof *a)",
    ] {
        memory(&with(call, "s - 1"), "sss");
        memory(&with(call, "s"), "uuu");
    }
}

/// A jump to a statement at which the model may end does not enter the block that ends it.
#[test]
fn jumps_reach_the_condition_under_which_the_model_ends() {
    let large = "struct n { int a, b, c, d, e; } big[40][40]; _Atomic int i;";
    let body = "int k = i; if (k == 1) goto end; if (k == 2) k = 0; end: big[k][k].a = big[k][k].b = big[k][k].c = big[k][k].d = 1; big[k][k].e = 2;";
    memory(
        &two(
            large,
            body,
            "i = 1; struct n *p = &big[i][i]; if (p->a > 1 || p->b > 1 || p->c > 1 || p->d > 1) p->e = 1;",
            "if (big[1][1].e > 2) i = 3;",
        ),
        "sss",
    );
}

#[test]
fn of_large_arrays_only_the_first_elements_are_laid_out() {
    let run = |body: &str, index: usize| {
        let globals = "struct n { int a, b, c, d, e; }; struct n big[40][40]; _Atomic int i;";
        two(
            globals,
            &format!(
                "int k = i; struct n *p = &big[k][k + 1]; p->a = p->b = p->c = 1; p->d = p->e = k; {body}"
            ),
            &format!(
                "i = {index}; struct n *q = big[i / 64]; if (q->a + q->b + q->c + q->d + q->e > 900) i = 0;"
            ),
            "",
        )
    };
    memory(&run("if (p->e) p->a = 2;", 2), "sss");
    assertions(&run("assert(p->e == k && big[k][k + 1].a == 1 && big[k][k].a == 0);", 2), "sss");
    assertions(&run("assert(p->e == 0);", 2), "uuu");
    memory(&run("", 40), "uuu");
    ends(&run("", 38), None, "a_later_element_of_a_large_array");
    ends(&run("p += 30; p->a = 1;", 1), None, "a_later_element_of_a_large_array");
    memory(&run("p += 1; p->a = 1;", 1), "sss");
    // Elements with constant indices are laid out.
    memory(&run("big[5][9].a = 1; if (big[5][9].a != 1) *(int *)0 = 1;", 1), "sss");
}

#[test]
fn lengths_of_local_arrays_may_be_values() {
    let sum = "_Atomic int v; int sum(int n) { int a[n], r = 0; for (int i = 0; i < n; i++) a[i] = i; for (int i = 0; i < n; i++) r += a[i]; return r; }";
    assertions(&two(sum, "int r = sum(3) + sum(4); assert(r == 9);", "v = 1;", ""), "sss");
    assertions(&two(sum, "int r = sum(v + 2); assert(r == 1 || r == 3);", "v = 1;", ""), "sss");
    assertions(&two(sum, "int r = sum(v + 2); assert(r == 1);", "v = 1;", ""), "uuu");
    let run = |body: &str| {
        two(
            "_Atomic int v; int out;",
            &format!("for (int k = 0; k < 2; k++) {{ int n = v + 1; int a[n]; {body} }}"),
            "v = 1;",
            "assert(out <= 1);",
        )
    };
    memory(&run("a[n - 1] = 1; out = a[n - 1];"), "sss");
    memory(&run("a[n] = 1;"), "uuu");
    memory(&run("a[1] = 1;"), "uuu");
    memory(&run("if (k == 0) a[0] = 1; if (a[0]) out = 1;"), "uuu");
    memory(&run("int *p = a; *p = 1; if (*p) out = 1;"), "sss");
    assertions(&run("assert(sizeof a == n * sizeof(int) && sizeof a[0] == 4 && sizeof *a == 4);"), "sss");
    assertions(&run("assert(sizeof a == 8);"), "uuu");
    // An array of variable length ends with its block.
    memory(
        &two(
            "_Atomic int v; int *p, out;",
            "{ int n = v + 1; int a[n]; a[0] = 0; p = a; } if (*p) out = 1;",
            "v = 1;",
            "",
        ),
        "uuu",
    );
    memory(
        &two(
            "_Atomic int v; int *f(int n) { int a[n]; a[0] = 1; return a; }",
            "if (*f(v + 1)) v = 3;",
            "v = 1;",
            "",
        ),
        "uuu",
    );
    // Identifiers of threads in an array of variable length.
    let pool = |holds: &str| {
        format!(
            "_Atomic int s, n; void *w(void *a) {{ s++; return 0; }}
             int main(void) {{ n = 2; int m = n; pthread_t t[m]; for (int i = 0; i < m; i++) pthread_create(&t[i], 0, w, 0);
                 for (int i = 0; i < m; i++) pthread_join(t[i], 0); assert({holds}); }}"
        )
    };
    assertions(&pool("s == 2"), "sss");
    assertions(&pool("s == 1"), "uuu");
}

/// C leaves the order of arguments open, and gcc evaluates them from right to left.
#[test]
fn a_warning_where_the_order_of_arguments_matters() {
    let warned = |globals: &str, arguments: &str| {
        let f = "static int f(int a, int b) { return a - b; }";
        let text = format!("{HEADERS} {f} {}", two(globals, &format!("f({arguments});"), "f(1, 2);", ""));
        let loaded = fencewright_lang::load("test.c", text.as_bytes(), None, &[]).expect("it is a program");
        loaded.warnings.iter().any(|warning| warning.message.contains("the order in which arguments"))
    };
    let next = "int n; static int next(void) { return ++n; }";
    assert!(warned(next, "next(), next()"));
    assert!(warned(next, "n, next()"));
    assert!(!warned(next, "1, next()"));
    assert!(!warned("int n, m;", "n, m"));
    assert!(warned("atomic_int n, m;", "n, m"));
    assert!(warned("volatile int n, m;", "n, m + 1"));
    assert!(!warned("atomic_int n; int m;", "n, m"));
    let alone = format!(
        "{HEADERS} {next} int f(int a, int b) {{ return a - b; }} int main(void) {{ return f(next(), next()); }}"
    );
    let loaded = fencewright_lang::load("test.c", alone.as_bytes(), None, &[]).expect("it is a program");
    let is_about_order = |text: &str| text.contains("the order in which arguments");
    assert!(loaded.warnings.iter().any(|warning| is_about_order(&warning.message)), "{:?}", loaded.warnings);
    let added = |value: &str| {
        let text = format!("{HEADERS} {next} int main(void) {{ n += {value}; assert(n == 1); return 0; }}");
        let loaded = fencewright_lang::load("test.c", text.as_bytes(), None, &[]).expect("it is a program");
        loaded.warnings.iter().any(|warning| warning.message.contains("the left side is read first"))
    };
    assert!(added("next()") && !added("1"));
}

/// A program that is too large only once it is lowered is read again with fewer nested calls.
#[test]
fn threads_with_too_many_registers_have_fewer_nested_calls() {
    let text = format!(
        "{HEADERS} _Atomic int x;
         int f(int a) {{ if (a <= 0) return x; int v = a + x, w = a + x, y = a + x, z = a + x; x = v; x = w; x = y; x = z;
             int r = f(a - x) + f(a - 2 * x); x = r + v + w + y + z; return r; }}
         void *w(void *u) {{ f(x); return u; }}
         int main(void) {{ pthread_t t; x = 1; pthread_create(&t, 0, w, 0); x = 2; return 0; }}"
    );
    let read = |recursion| {
        let mut options = Options::default();
        options.c.recursion = recursion;
        let open = |name: &str| Err(format!("there is no `{name}`"));
        let loader = Loader { front_end: None, options: &options, stop: &Stop::never(), open: &open };
        loader.load("test.c", text.as_bytes()).map(|loaded| fw::print(&loaded.file))
    };
    assert!(read(Some(8)).is_err(), "it is too large");
    let printed = read(None).expect("it is smaller");
    assert!(printed.contains("deeper_than_6_calls_of_f"), "{printed}");
}

/// A loop of `main` with a constant number of iterations may create many threads.
#[test]
fn loops_create_as_many_threads_as_they_say() {
    let text = |head: &str| {
        format!(
            "{HEADERS} _Atomic int s; void *w(void *a) {{ s++; return 0; }} pthread_t t[70];
             int main(void) {{ {head} pthread_create(&t[i], 0, w, 0); return 0; }}"
        )
    };
    for (head, threads, bounded) in [
        ("for (int i = 0; i < 20; i++)", 20, false),
        ("for (int i = 0; i < 64; i++)", 64, false),
        ("for (int i = 0; i < 65; i++)", 16, true),
        ("for (int i = 0; ; i++)", 16, true),
        ("for (int i = 0; i < 20 + s; i++)", 16, true),
    ] {
        let loaded = fencewright_lang::load("test.c", text(head).as_bytes(), None, &[]).expect("it is read");
        let printed = fw::print(&loaded.file);
        assert_eq!(loaded.program.threads.len(), threads + 1, "{head}");
        assert_eq!(printed.contains("more_than_16_threads"), bounded, "{printed}");
    }
}
