//! Objects of C programs: lifetimes of local variables, and memory accessed with several types.

use crate::verdicts::{assertions, memory};

/// Two threads whose values matter because they observe each other: `body` is the body of a thread, and `out` is read at the end.
fn watched(globals: &str, body: &str) -> String {
    format!(
        "int go, out; {globals}
         void *thread(void *argument) {{ {body} return 0; }}
         int main(void) {{
             pthread_t t; pthread_create(&t, 0, thread, 0); go = 1; pthread_join(t, 0); assert(out <= 1); return 0;
         }}"
    )
}

#[test]
fn locals_have_no_value_each_time_their_block_is_entered() {
    let twice =
        |body: &str| watched("struct s { int a, b; };", &format!("for (int i = 0; i < 2; i++) {{ {body} }}"));
    memory(&twice("int x; if (i == 0) x = go; if (x) out = 1;"), "uuu");
    memory(&twice("int x = go; if (x) out = 1;"), "sss");
    memory(&twice("int x; x = go; if (x) out = 1;"), "sss");
    memory(&twice("int x; if (i == 0) x = go; else x = 1; if (x) out = 1;"), "sss");
    memory(&twice("int x; int *p = &x; if (i == 0) *p = go; if (x) out = 1;"), "uuu");
    memory(&twice("struct s v; v.a = go; if (i == 0) v.b = 1; int c = v.b; if (v.a) out = 1;"), "sss");
    memory(&twice("struct s v; v.a = go; if (i == 0) v.b = 1; if (v.b) out = v.a;"), "uuu");
    memory(&twice("struct s v = { 1 }; if (v.b) out = go;"), "sss");
    memory(&twice("int a[2]; a[i] = go; if (a[i]) out = 1;"), "sss");
    memory(&twice("int a[2]; a[i] = go; if (a[0]) out = 1;"), "uuu");
    memory(&twice("switch (go) { int x; case 0: x = 1; case 1: if (x) out = 1; }"), "uuu");
    memory(&twice("switch (go) { int x; case 0: x = 1; if (x) out = 1; }"), "sss");
    let jumps = |block: &str| watched("", &format!("int i = 0; again:; {block} i++; if (i < 2) goto again;"));
    memory(&jumps("{ int x; if (i == 0) x = go; if (x) out = 1; }"), "uuu");
    memory(&jumps("{ int x; x = go; if (x) out = 1; }"), "sss");
    memory(&jumps("if (i > 0) goto in; { int x; x = go; in: if (x) out = 1; }"), "uuu");
    // A function in which a jump skips a declaration is called a second time.
    let called = |before: &str| {
        let f = format!("int f(int n) {{ {before} if (n) goto end; int x = 1; out = x; end: return x; }}");
        watched(&f, "for (int i = 0; i < 2; i++) { int r = f(go & i); if (r) out = 1; }")
    };
    memory(&called(""), "uuu");
    memory(&called("n = 0;"), "sss");
}

#[test]
fn locals_are_not_used_after_their_lifetime() {
    let f = "int *f(int n) { int x = n; return &x; }";
    memory(&watched(f, "if (*f(1)) out = go;"), "uuu");
    memory(&watched("", "int *p; { int x = 1; p = &x; if (*p) out = go; }"), "sss");
    memory(&watched("", "int *p; { int x = 1; p = &x; } if (*p) out = go;"), "uuu");
    memory(
        &watched(
            "",
            "int *p = &out; for (int i = 0; i < 2; i++) { int x = go; p = &x; if (x) break; } if (*p) out = go;",
        ),
        "uuu",
    );
    memory(
        &watched("", "int *p = &go; if (go) { int x = 1; p = &x; goto end; } end: if (*p) out = 1;"),
        "uuu",
    );
    memory(&watched("int *same(int *p) { return p; }", "int x = go; if (*same(&x)) out = *same(&x);"), "sss");
    // A pointer from an earlier iteration is used, also after the variable's next lifetime has started.
    let rounds =
        |uses: &str| watched("", &format!("int *p = 0; for (int i = 0; i < 2; i++) {{ int x = i; {uses} }}"));
    memory(&rounds("if (p && *p) out = go; p = &x;"), "uuu");
    memory(&rounds("p = &x; if (p && *p) out = go;"), "sss");
    memory(&rounds("if (go) p = &x; if (p && *p) out = go; p = 0;"), "sss");
    // Control enters a block after the declaration in it.
    let entered = |block: &str| watched("", &format!("int *p = &go; {block} if (*p) out = 1;"));
    memory(&entered("switch (go) { int x; case 0: x = 0; p = &x; break; case 1: x = 1; }"), "uuu");
    memory(&entered("switch (go) { int x; case 0: x = 0; p = &x; out = *p; default: p = &go; }"), "sss");
    memory(&entered("goto in; { int x; in: x = 0; p = &x; }"), "uuu");
    memory(&entered("goto in; { int x; in: x = 0; p = &x; out = *p; p = &go; }"), "sss");
    memory(&watched("int *f(void) { goto in; int x; in: x = 1; return &x; }", "out = *f();"), "uuu");
    // The value that is read is not used, and its address is read through two pointers.
    let pointers = "int s, *p = &s, *q = &s, **g = &p;";
    memory(
        &watched(pointers, "{ int x = go; if (go) q = &x; if (go) g = &q; } int z = **g; out = 1;"),
        "uuu",
    );
    memory(&watched(pointers, "{ int x = go; if (go) g = &q; int z = **g; q = &x; } out = 1;"), "sss");
    // The pointer is held by another thread.
    let other = |main: &str| {
        format!(
            "int *_Atomic p; atomic_int seen;
             void *thread(void *argument) {{ int *q = p; if (q) {{ *q = 1; seen = 1; }} return 0; }}
             void give(int wait) {{ int x = 0; p = &x; while (wait && !seen) {{}} }}
             int main(void) {{ pthread_t t; pthread_create(&t, 0, thread, 0); {main} return 0; }}"
        )
    };
    memory(&other("give(0);"), "uuu");
    memory(&other("give(1);"), "sss");
    memory(&other("int x = 0; p = &x;"), "sss");
    // A local variable passed as the argument of a thread; it must live as long as the thread runs.
    let argument = |wait: &str| {
        format!(
            "void *thread(void *argument) {{ *(int *)argument += 1; return 0; }}
             int run(void) {{ int x = 1; pthread_t t; pthread_create(&t, 0, thread, &x); {wait} return x; }}
             int main(void) {{ int sum = run(); sum += run(); assert(sum <= 4); return 0; }}"
        )
    };
    memory(&argument("pthread_join(t, 0);"), "sss");
    assertions(&argument("pthread_join(t, 0);"), "sss");
    memory(&argument(""), "uuu");
    // A thread-local variable lives as long as its thread runs.
    let own = |wait: &str| {
        format!(
            "__thread int x; int *_Atomic p; atomic_int seen;
             void *thread(void *argument) {{ x = 1; p = &x; {wait} return 0; }}
             int main(void) {{ pthread_t t; pthread_create(&t, 0, thread, 0); int *q = p; if (q) {{ *q = 2; seen = 1; }} return 0; }}"
        )
    };
    memory(&own(""), "uuu");
    memory(&own("while (!seen) {}"), "sss");
    memory(&argument("pthread_join(t, 0); pthread_create(&t, 0, thread, &x);"), "uuu");
}

/// A queue lock whose nodes are local variables. In the second version, a thread leaves its block while another thread may still write to its node.
#[test]
fn nodes_of_a_queue_in_local_variables() {
    let queue = |waits: &str| {
        format!(
            "struct node {{ struct node *_Atomic next; atomic_int locked; }};
             struct node *_Atomic tail; int owner;
             void section(int me) {{
                 struct node own; atomic_init(&own.next, 0); atomic_init(&own.locked, 1);
                 struct node *before = atomic_exchange(&tail, &own);
                 if (before) {{ before->next = &own; while (own.locked) {{}} }}
                 owner = me; assert(owner == me);
                 if (!own.next) {{
                     struct node *expected = &own;
                     if (atomic_compare_exchange_strong(&tail, &expected, 0)) return;
                     {waits}
                 }}
                 own.next->locked = 0;
             }}
             void *thread(void *argument) {{ section(1); return 0; }}
             int main(void) {{ pthread_t t; pthread_create(&t, 0, thread, 0); section(2); return 0; }}"
        )
    };
    memory(&queue("while (!own.next) {}"), "sss");
    assertions(&queue("while (!own.next) {}"), "sss");
    memory(&queue("if (!own.next) return;"), "uuu");
}

#[test]
fn memory_that_is_seen_with_and_without_a_sign() {
    let seen = |globals: &str, thread: &str, end: &str| {
        format!(
            "{globals} int done;
             void *thread(void *argument) {{ {thread} return 0; }}
             int main(void) {{ pthread_t t; pthread_create(&t, 0, thread, 0); pthread_join(t, 0); {end} return 0; }}"
        )
    };
    let both = |globals: &str, thread: &str, holds: &str, fails: &str| {
        assertions(&seen(globals, thread, &format!("assert({holds});")), "sss");
        assertions(&seen(globals, thread, &format!("assert({fails});")), "uuu");
    };
    both("int x;", "atomic_store((_Atomic int *)&x, 1);", "x == 1", "x == 0");
    both("int x;", "*(volatile int *)&x = 1;", "x == 1", "x == 0");
    both(
        "unsigned u;",
        "__atomic_store_n((int *)&u, -1, __ATOMIC_RELAXED);",
        "u == 4294967295u",
        "u != 4294967295u",
    );
    both("int x = -1;", "atomic_fetch_add((_Atomic unsigned *)&x, 3);", "x == 2", "x != 2");
    both(
        "int x = -2;",
        "unsigned u = atomic_load((_Atomic unsigned *)&x); done = u == 4294967294u;",
        "done == 1",
        "done == 0",
    );
    both(
        "unsigned u = -1;",
        "int e = -1; done = __atomic_compare_exchange_n((int *)&u, &e, 7, 0, 5, 5);",
        "u == 7 && done",
        "u != 7",
    );
    both("unsigned char b;", "*(volatile signed char *)&b = -1;", "b == 255", "b == -1");
    both(
        "short s;",
        "unsigned short *p = (unsigned short *)&s; *p = 65535; done = *p;",
        "s == -1 && done == 65535",
        "s != -1",
    );
    both("_Bool b;", "*(volatile unsigned char *)&b = 1;", "b == 1", "!b");
    both(
        "long l = -1;",
        "unsigned long u = __atomic_load_n((unsigned long *)&l, 0); done = u > 5;",
        "done",
        "!done",
    );
    both("enum e { A, B = 3 } e;", "__atomic_store_n((int *)&e, B, 0);", "e == B", "e == A");
    // One of several elements, accessed through a pointer.
    both(
        "int x[2]; unsigned *p;",
        "p = (unsigned *)&x[0]; if (done) p = (unsigned *)&x[1]; *p -= 1; while (*p != 4294967295u) {}",
        "x[0] == -1 && x[1] == 0",
        "x[0] == 0",
    );
}

#[test]
fn members_of_unions_are_the_same_bits() {
    let both = |globals: &str, thread: &str, holds: &str, fails: &str| {
        let text = |end: &str| {
            format!(
                "{globals}
                 void *thread(void *argument) {{ {thread} return 0; }}
                 int main(void) {{ pthread_t t; pthread_create(&t, 0, thread, 0); pthread_join(t, 0); assert({end}); return 0; }}"
            )
        };
        assertions(&text(holds), "sss");
        assertions(&text(fails), "uuu");
    };
    both("union { int s; unsigned u; } x;", "x.s = -1;", "x.u == 4294967295u && x.s == -1", "x.u == 1");
    both(
        "union { int s; unsigned u; } x = { .u = 4294967295u };",
        "if (x.s == -1) x.s = 5;",
        "x.u == 5",
        "x.u != 5",
    );
    let pairs =
        "struct a { int p, q; }; struct b { int r; unsigned s; }; union { struct a a; struct b b; } x;";
    both(pairs, "x.a.p = 1; x.a.q = -2;", "x.b.r == 1 && x.b.s == 4294967294u", "x.b.r == 0");
    both(pairs, "struct b *b = &x.b; b->s = -1;", "x.a.q == -1", "x.a.q != -1");
    let tagged = "struct n { int v; } n = { 3 }; union w { struct n *p; uintptr_t bits; } x;";
    let thread = "union w y; y.p = &n; y.bits |= 1; x.bits = y.bits;";
    both(tagged, thread, "(x.bits & 1) && ((struct n *)(x.bits & ~1ul))->v == 3", "!(x.bits & 1)");
}

/// An array that lies behind the structure that describes it is found with `&structure[1]`.
#[test]
fn arrays_behind_their_structure() {
    let globals = "struct head { unsigned at, mask; };
        static struct { struct head head; uint64_t cells[2]; int *last; } ring;
        static uint64_t *cells(struct head *h) { void *behind = &h[1]; return (uint64_t *)behind; }";
    let body = |index: &str| {
        watched(globals, &format!("cells(&ring.head)[{index}] = go; out = ring.cells[1] + ring.head.mask;"))
    };
    assertions(&body("1"), "sss");
    memory(&body("go & 1"), "sss");
    memory(&body("2"), "uuu");
    // Also in an element with an index that is not known, and in the target of a pointer that is not known.
    let many = globals.replace("} ring;", "} rings[2], ring, *chosen;");
    let of = |head: &str, index: &str| {
        let body = format!(
            "chosen = go ? &rings[1] : &ring; ((uint64_t *)(&{head} + 1))[{index}] = 1; out = rings[1].cells[1] + ring.cells[0];"
        );
        watched(&many, &body)
    };
    for (head, index) in
        [("rings[go].head", "1"), ("rings[go].head", "go"), ("chosen->head", "1"), ("chosen->head", "go")]
    {
        assertions(&of(head, index), "sss");
        memory(&of(head, index), "sss");
    }
    memory(&of("rings[go].head", "2"), "uuu");
    memory(&of("chosen->head", "2"), "uuu");
    // A second structure of the same type is not behind the first one.
    let two = "struct head { unsigned at, mask; }; static struct { struct head a, b; } both;";
    memory(&watched(two, "struct head *p = &both.a; out = p[1].at;"), "uuu");
    // Lock-free sizes are constants.
    let sizes = "_Static_assert(__atomic_always_lock_free(sizeof(long), 0) && !__atomic_always_lock_free(16, 0), \"\");";
    assertions(&watched(sizes, "out = go;"), "sss");
}
