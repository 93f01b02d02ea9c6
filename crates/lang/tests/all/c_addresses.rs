//! Addresses in C programs: an object has an address in [2^16, 2^47), aligned for its type, and is disjoint from all other live objects; addresses
//! have a fixed order in each execution; freed memory may be reused. Questions that follow from these rules are decided, the order of objects is
//! nondeterministic, and everything else is refused.

use fencewright_executions::oracle;
use fencewright_lang::load::Failure;
use fencewright_lang::options::Options;
use fencewright_lang::{LoadError, Loaded, Loader, Stop, fw};
use fencewright_program::MemoryModel;

use crate::verdicts::{HEADERS, assertions, memory, verdicts};

fn main_does(globals: &str, body: &str) -> String {
    format!("#include <stddef.h>\n{globals}\nint main(void) {{ {body} return 0; }}")
}

fn load(text: &str, options: &Options) -> Result<Loaded, Box<LoadError>> {
    let open = |name: &str| Err(format!("there is no `{name}`"));
    let loader = Loader { front_end: None, options, stop: &Stop::never(), open: &open };
    loader.load("test.c", text.as_bytes()).map_err(|failure| match failure {
        Failure::Wrong(error) => error,
        Failure::Stopped(_) => unreachable!("nobody stops it"),
    })
}

/// Checks that a program is refused with an error that contains `words`, on the last line.
#[track_caller]
fn refused(globals: &str, body: &str, words: &str) {
    let text = format!("{HEADERS}{}", main_does(globals, body));
    let error = match load(&text, &Options::default()) {
        Ok(loaded) => panic!("accepted:\n{text}\n{}", fw::print(&loaded.file)),
        Err(error) => error,
    };
    let said = &error.diagnostics[0];
    assert!(said.message.contains(words), "{}\n{text}", said.message);
    assert_eq!(error.sources.position(said.span).line as usize, text.lines().count(), "{text}");
}

/// Checks that some execution leaves the modelled part of C, for this reason.
#[track_caller]
fn ends(text: &str, reason: &str) {
    let loaded = load(&format!("{HEADERS}{text}"), &Options::default()).expect("it is accepted");
    let explored = oracle::explore(&loaded.program, MemoryModel::Sc, 200_000, &mut || false);
    assert!(explored.is_err(), "{text}");
    assert!(fw::print(&loaded.file).contains(reason), "{text}\n{}", fw::print(&loaded.file));
}

#[track_caller]
fn holds(globals: &str, body: &str) {
    let text = main_does(globals, body);
    assertions(&text, "sss");
    memory(&text, "sss");
}

#[track_caller]
fn fails(globals: &str, body: &str) {
    assertions(&main_does(globals, body), "uuu");
}

#[test]
fn no_object_has_an_address_that_linux_never_maps() {
    fails("int a;", "if ((uintptr_t)&a >= 4096) assert(0);");
    holds("int a[2];", "assert((unsigned long)&a[0] > 16); assert((unsigned long)&a[1] > 16);");
    fails("int a[2];", "int *p = (int *)-1L; if (p > a) assert(0);");
    holds(
        "int a;",
        "assert((intptr_t)&a > 0); assert((uintptr_t)&a < (uintptr_t)1 << 47); assert((void *)&a != (void *)64);",
    );
    let published = "_Atomic(struct node *) slot;
        void *writer(void *p) { atomic_store(&slot, &n); return p; }";
    let globals = format!("struct node {{ int v; }} n = {{ 7 }}; {published}");
    let body = |wanted: u8| {
        format!(
            "pthread_t t; pthread_create(&t, 0, writer, 0); struct node *p = atomic_load(&slot);
             if ((uintptr_t)p >= 4096) assert(p->v == {wanted}); else assert(!p); pthread_join(t, 0);"
        )
    };
    fails(&globals, &body(8));
    holds(&globals, &body(7));
}

#[test]
fn errors_as_pointers_are_above_all_objects() {
    let globals = "int a; _Atomic(int *) slot; int k;
        int *get(void) { return k ? &a : (int *)-12L; }
        void *writer(void *p) { k = 1; return p; }";
    holds(
        globals,
        "pthread_t t; pthread_create(&t, 0, writer, 0);
         int *p = get(); if ((unsigned long)p >= (unsigned long)-4095) assert(p == (int *)-12L); else { *p = 1; assert(p == &a); }",
    );
}

#[test]
fn a_number_in_the_address_range_may_be_an_address() {
    refused("int a;", "assert((uintptr_t)&a != 0x20000);", "may be the address of an object");
    refused("int a;", "assert((uintptr_t)&a > 0x7f0000000000);", "may be the address of an object");
    // A number that is never compared with an address is an ordinary number.
    holds("uint64_t a = 0xdeadbeef;", "assert(a > 0x20000);");
    let computed = "int *p = (int *)(long)k; if (p == &a) assert(0);";
    let globals = "int a; int k; void *writer(void *p) { k = 100000; return p; }";
    let body = format!("pthread_t t; pthread_create(&t, 0, writer, 0); {computed}");
    ends(&main_does(globals, &body), "a_number_that_may_be_an_address");
    holds(&globals.replace("100000", "1000"), &body);
}

/// A compare-and-exchange compares with a number that may be an address: an execution in which it is one leaves the modelled part.
#[test]
fn an_exchange_compares_with_a_number_that_may_be_an_address() {
    let globals = "int a, k; _Atomic(uintptr_t) w;
        void *other(void *p) { uintptr_t e = (uintptr_t)(long)k; atomic_compare_exchange_strong(&w, &e, 7); return p; }";
    let body = |k: u32| {
        format!(
            "pthread_t t; pthread_create(&t, 0, other, 0); w = (uintptr_t)&a; k = {k}; pthread_join(t, 0); assert(w == (uintptr_t)&a || w == 7);"
        )
    };
    ends(&main_does(globals, &body(100_000)), "a_number_that_may_be_an_address");
    holds(globals, &body(1000));
}

#[test]
fn the_order_of_objects_is_a_choice() {
    fails("int a, b;", "assert(&a < &b);");
    fails("int a, b;", "assert(&a > &b);");
    holds("int a, b;", "assert((&a < &b) != (&b < &a)); assert((&a < &b) == (&a <= &b)); assert(&a != &b);");
    fails("int *p, *q;", "p = malloc(4); q = malloc(4); assert(p < q);");
    fails("int *p, *q;", "p = malloc(4); q = malloc(4); assert(p > q);");
}

#[test]
fn there_is_one_order_in_each_execution() {
    let less = "int x = (uintptr_t)&a < (uintptr_t)&b, y = &b < &c, z = &a < &c;";
    holds(
        "int a, b, c;",
        &format!("{less} if (x && y) assert(z); if (!x && !y) assert(!z); assert(x == (&a < &b));"),
    );
    fails("int a, b, c;", &format!("{less} if (x && !y) assert(z);"));
    fails("int a, b, c;", &format!("{less} if (x && !y) assert(!z);"));
    // The order is the same in all threads, and for members as for the whole structures.
    let globals = "struct pair { long x, y; } a, b; int seen;
        void *other(void *p) { seen = &a.x < &b.x; return p; }";
    let body = "pthread_t t; pthread_create(&t, 0, other, 0); pthread_join(t, 0); assert(seen == (&a < &b)); assert(seen == (&a.y < &b.y));";
    holds(globals, body);
    fails(globals, "pthread_t t; pthread_create(&t, 0, other, 0); pthread_join(t, 0); assert(seen);");
}

#[test]
fn within_an_object_the_order_is_that_of_its_parts() {
    holds("struct { int x, y[2], z; } s;", "assert(&s.x < &s.z); assert(&s.x < &s.y[0] && &s.y[1] < &s.z);");
    holds(
        "int a[3], b[3]; int k;",
        "int n = 0; for (int *p = a; p < a + 3; p++) n++; for (int *p = b; p != b + 3; p++) n++; assert(n == 6);",
    );
}

#[test]
fn locks_taken_in_the_order_of_their_addresses() {
    let globals = |less: &str| {
        format!(
            "pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, two = PTHREAD_MUTEX_INITIALIZER; int inside;
             void both(pthread_mutex_t *x, pthread_mutex_t *y) {{
                 if ({less}) {{ pthread_mutex_lock(x); pthread_mutex_lock(y); }} else {{ pthread_mutex_lock(y); pthread_mutex_lock(x); }}
                 inside++; assert(inside == 1); inside--;
                 pthread_mutex_unlock(x); pthread_mutex_unlock(y);
             }}
             void *other(void *p) {{ both(&two, &one); return p; }}"
        )
    };
    let body = "pthread_t t; pthread_create(&t, 0, other, 0); both(&one, &two); pthread_join(t, 0);";
    let deadlock = |less: &str| {
        let mut options = Options::default();
        options.c.exact_waits = true;
        verdicts(&main_does(&globals(less), body), &options, "deadlock")
    };
    assert_eq!(deadlock("x < y"), "sss");
    assert_eq!(deadlock("1"), "uuu");
    holds(&globals("(uintptr_t)x < (uintptr_t)y"), body);
}

#[test]
fn an_object_may_start_one_past_the_end_of_another() {
    refused("int a, b;", "if (&a + 1 == &b) assert(0);", "the order of these addresses");
    refused("int a[2], b;", "int *p = a + 2; assert(p != &b);", "the order of these addresses");
    holds("int a[2], b;", "assert(&a[1] != &b); assert(&a[0] + 2 == &a[2]);");
}

#[test]
fn bits_of_addresses_are_refused() {
    let bits = "bits of an address";
    refused("int a;", "assert((((uintptr_t)&a >> 4) & 7) == 3);", bits);
    refused("int a;", "assert((uintptr_t)&a % 7 != 3);", bits);
    refused("int a;", "assert((uintptr_t)&a * 31 != 31 * 70000UL);", bits);
    refused("int a, b;", "uintptr_t x = (uintptr_t)&a ^ (uintptr_t)&b; assert(x != 12);", bits);
    refused("int a;", "int x = (int)(long)&a; assert(x != 5);", bits);
    refused("int a;", "assert(((uintptr_t)&a & 0xfff) != 5);", bits);
    refused("int a, b;", "assert((uintptr_t)&a - (uintptr_t)&b != 12);", bits);
    refused("int a, b;", "assert((uintptr_t)&a + (uintptr_t)&b != 400000);", bits);
    refused("int a;", "assert(~(uintptr_t)&a != ~(uintptr_t)400000);", bits);
    refused("struct { long x, y; } a;", "assert(((uintptr_t)&a & 8) == 0);", bits);
    refused("void f(void) {}", "assert((uintptr_t)f % 16 == 0);", bits);
    // If the value may also be a number, only an execution of the comparison leaves the modelled part.
    let globals = "int a; void *get(int k) { return k ? (void *)&a : (void *)5L; } int k; void *writer(void *p) { k = K; return p; }";
    let body = "pthread_t t; pthread_create(&t, 0, writer, 0); assert((int)(long)get(k) != 6);";
    ends(&main_does(&globals.replace("= K", "= 1"), body), "bits_of_an_address");
    holds(&globals.replace("k = K; ", ""), body);
}

#[test]
fn free_pointer_bits_may_be_used() {
    let globals = "struct node { long v; } a = { 3 }; _Atomic(uintptr_t) w;";
    let get = "uintptr_t x = atomic_load(&w);";
    holds(
        globals,
        &format!(
            "w = (uintptr_t)&a | 1; {get} assert(x & 1); assert(((struct node *)(x & ~(uintptr_t)1))->v == 3); assert((x & 7) == 1);"
        ),
    );
    holds(
        globals,
        &format!(
            "w = (uintptr_t)&a | 7UL << 48; {get} assert(x >> 48 == 7); assert(((struct node *)(x & ((1UL << 48) - 1)))->v == 3);"
        ),
    );
    holds(globals, "assert(((uintptr_t)&a & 7) == 0); assert((uintptr_t)&a % 8 == 0);");
    holds(globals, "struct node *p = malloc(sizeof *p); assert(((uintptr_t)p & 15) == 0);");
}

#[test]
fn the_distance_of_different_arrays_is_undefined() {
    let arrays = "int a[4], b[4];";
    holds(arrays, "assert(&a[3] - &a[1] == 2); assert(a + 4 - a == 4);");
    memory(&main_does(arrays, "int *p = a, *q = b; assert(p - q != 4);"), "uuu");
}

#[test]
fn freed_memory_may_be_reused() {
    fails("", "int *p = malloc(4); free(p); int *q = malloc(4); assert(p != q);");
    fails("", "int *p = malloc(4); free(p); int *q = malloc(4); assert(p == q);");
    holds("", "int *p = malloc(4); int *q = malloc(4); assert(p != q); free(p); free(q);");
}

/// An object freed by one thread is reused by an allocation of another.
#[test]
fn memory_freed_by_one_thread_is_reused_by_another() {
    let globals = "long *old; void *frees(void *p) { free(p); return 0; }";
    let before = "long *p = malloc(8); old = p; pthread_t t; pthread_create(&t, 0, frees, p);";
    let after = "long *q = malloc(8);";
    fails(globals, &format!("{before} pthread_join(t, 0); {after} assert(q != old);"));
    fails(globals, &format!("{before} pthread_join(t, 0); {after} assert(q == old);"));
    holds(globals, &format!("{before} {after} *q = 1; pthread_join(t, 0); assert(*q == 1); free(q);"));
    // When memory is reused, stores from before the `free` are visible, and the memory is not free any more.
    let globals = "long *old, x; void *frees(void *p) { x = 1; free(p); return 0; }";
    holds(globals, &format!("{before} {after} if (q == old) {{ assert(x == 1); *q = 2; }}"));
    let twice = format!("{before} {after} if (q == old) {{ free(q); free(q); }}");
    memory(&main_does(globals, &twice), "uuu");
    // The pointer that is compared points to a member of the structure.
    let member = "struct node { long a, b; } *last; long *old; void *frees(void *p) { free(p); return 0; }";
    let before = "struct node *p = malloc(sizeof *p); last = p; old = &p->b; pthread_t t; pthread_create(&t, 0, frees, p);";
    let after =
        "pthread_join(t, 0); struct node *q = malloc(sizeof *q); if (&q->b == old) assert(q != last);";
    fails(member, &format!("{before} {after}"));
}

#[test]
fn a_freed_address_may_belong_to_another_object() {
    let place = "an_address_at_which_another_object_was";
    ends(
        &main_does(
            "",
            "int *p = malloc(16); p[0] = 1; free(p); int *q = malloc(8); q[0] = 1; assert(p != q);",
        ),
        place,
    );
    let locals = "int *keep; void f(void) { int a = 1; keep = &a; a++; } int g(void) { int b = 2; int *q = &b; return q == keep; }";
    ends(&main_does(locals, "f(); assert(!g());"), place);
    holds(locals, "int a = 1; keep = &a; assert(!g());");
    // The stack of a joined thread is reused, that of a running thread is not.
    let stacks = "_Atomic(int *) keep; void *f(void *p) { int a = 1; int *k = atomic_exchange(&keep, &a); assert(k != &a); a++; return 0; }";
    let create = |n: usize| format!("pthread_create(&t[{n}], 0, f, 0);");
    let join = |n: usize| format!("pthread_join(t[{n}], 0);");
    let apart = [create(0), create(1), join(0), join(1)].concat();
    holds(stacks, &format!("pthread_t t[2]; {apart}"));
    let again = [create(0), join(0), create(1), join(1)].concat();
    ends(&main_does(stacks, &format!("pthread_t t[2]; {again}")), place);
    let detached = [create(0), "pthread_detach(t[0]);".to_string(), create(1), join(1)].concat();
    ends(&main_does(stacks, &format!("pthread_t t[2]; {detached}")), place);
    // `realloc` needs to know the object, so the model does not reuse memory here.
    let moved = "int *p = malloc(8); p[0] = 1; int *old = p; p = realloc(p, 16); assert(p[0] == 1);";
    holds("", moved);
    ends(&main_does("", &format!("{moved} assert(p != old);")), place);
}

const LISTS: &str = "struct list { struct list *next, *prev; };
    struct node { int key; struct list l; int val; };
    struct set { long lock; struct list l; } s;
    #define entry(p) ((struct node *)((char *)(p) - offsetof(struct node, l)))
    void add(struct list *h, struct node *x) { x->l.next = h; x->l.prev = h->prev; h->prev->next = &x->l; h->prev = &x->l; }";

#[test]
fn a_list_ends_where_it_starts() {
    let all =
        |fill: &str, body: &str| format!("s.l.next = s.l.prev = &s.l; {fill} struct node *c, *n; {body}");
    holds(LISTS, &all("", "for (c = entry(s.l.next); &c->l != &s.l; c = entry(c->l.next)) assert(0);"));
    let three = "for (int i = 0; i < 3; i++) { struct node *x = malloc(sizeof *x); x->val = i; add(&s.l, x); } int k = 0;";
    let each = "for (c = entry(s.l.next); &c->l != &s.l; c = entry(c->l.next)) { assert(c->val == k); k++; } assert(k == 3);";
    holds(LISTS, &all(three, each));
    // When `n` reaches the head of the list, it points to where an entry around the head would start, and is not dereferenced.
    let safe = "for (c = entry(s.l.next), n = entry(c->l.next); &c->l != &s.l; c = n, n = entry(n->l.next)) { assert(c->val == k); k++; free(c); } assert(k == 3);";
    holds(LISTS, &all(three, safe));
    let followed = main_does(LISTS, &all(three, "c = entry(&s.l); k = c->val;"));
    memory(&followed, "uuu");
    let same_offset = LISTS.replace("int key; struct list l;", "long key; struct list l;");
    memory(&main_does(&same_offset, &all("", "c = entry(s.l.next); return c->val;")), "uuu");
    holds(&same_offset, &all("", "c = entry(s.l.next); assert(&c->l == &s.l); assert(c);"));
}

#[test]
fn container_of_null_is_not_null() {
    let globals = format!("{LISTS} struct node first;");
    fails(&globals, "first.l.next = 0; struct node *c = entry(first.l.next); assert(!c);");
    let start = globals.replace("int key; struct list l;", "struct list l; int key;");
    holds(&start, "first.l.next = 0; struct node *c = entry(first.l.next); assert(!c);");
}

/// Addresses of members of `e->l`, where `container_of` computed `e` from a pointer that may be null.
#[test]
fn members_of_the_member_of_a_container_of_null() {
    let globals = "struct link { struct link *prev, *next; }; struct e { int v; struct link l; } x, y[2];
        #define entry(p) ((struct e *)((char *)(p) - offsetof(struct e, l)))
        #define maybe(p) struct link *n = __VERIFIER_nondet_bool() ? (p) : 0; struct e *e = entry(n);
        _Bool __VERIFIER_nondet_bool(void);";
    holds(globals, "struct e *e = entry(0); assert(&e->l.next == (struct link **)8 && &e->l.prev == 0);");
    holds(globals, "maybe(&x.l) assert(n ? &e->l.next == &x.l.next : &e->l.next == (struct link **)8);");
    holds(
        globals,
        "maybe(&y[1].l) assert(n ? &e->l.next == &y[1].l.next : &e->l.next == (struct link **)8);",
    );
    fails(globals, "maybe(&x.l) assert(&e->l.next != (struct link **)8);");
    fails(globals, "maybe(&x.l) assert(&e->l.prev);");
    memory(&main_does(globals, "maybe(&x.l) e->l.next = 0;"), "uuu");
    let number = "struct e *e = entry((struct link *)(__VERIFIER_nondet_bool() ? 0 : 256)); struct link **q = &e->l.next;";
    ends(&main_does(globals, &format!("{number} assert(q != 0);")), "a_number_that_may_be_an_address");
}

const MAYBE_NULL: &str = "struct link { struct link *next; }; struct entry { int k; struct link l; } x;
    #define entry(p) ((struct entry *)((char *)(p) - offsetof(struct entry, l)))
    struct link *_Atomic head; _Atomic(struct entry *) kept; int five;
    void *writer(void *p) { x.k = 1; head = &x.l; return 0; }";

#[test]
fn container_of_null_is_a_negative_number() {
    let body = |looks: &str| {
        format!(
            "pthread_t t; pthread_create(&t, 0, writer, 0); struct entry *e = entry(head); {looks} pthread_join(t, 0);"
        )
    };
    for looks in [
        "if ((unsigned long)(void *)e >= (unsigned long)-4095) assert(0);",
        "if (e == (struct entry *)-8) assert(0);",
        "assert((long)e >= 0);",
        "switch ((intptr_t)e) { case -8: assert(0); }",
        "assert((uintptr_t)e != (uintptr_t)-8 || head);",
    ] {
        fails(MAYBE_NULL, &body(looks));
    }
    for looks in [
        "assert((intptr_t)e < -8 || e);",
        "if ((unsigned long)(void *)e >= (unsigned long)-4095) assert(e == (struct entry *)-8);",
        "if ((unsigned long)(void *)e < (unsigned long)-4095) assert(e->k == 1);",
        "assert((intptr_t)e != -4);",
    ] {
        holds(MAYBE_NULL, &body(looks));
    }
}

#[test]
fn container_of_a_member_of_null_is_its_offset_from_the_other_member() {
    let globals = "struct s { int a, b, c; } *_Atomic null; int *_Atomic member;
        #define around(p, m) ((struct s *)((char *)(p) - offsetof(struct s, m)))";
    let above = "struct s *p = null; member = &p->c; int *q = member; struct s *r = around(q, b);";
    fails(globals, &format!("{above} assert((uintptr_t)r != 4);"));
    let below = "struct s *p = null; member = &p->b; int *q = member; struct s *r = around(q, c);";
    fails(globals, &format!("{below} assert((intptr_t)r != -4);"));
}

#[test]
fn the_bits_of_a_container_that_does_not_exist_are_not_known() {
    let globals = "struct node { int value; struct node *next; } *lone; struct node **_Atomic from;
        struct other { long k[3]; struct node *next; };
        #define around(p, t) ((struct t *)((char *)(p) - offsetof(struct t, next)))";
    let body = |looks: &str| {
        let text = "from = &lone; struct node **l = from; struct node *r = around(l, node);";
        main_does(globals, &format!("{text} {looks}"))
    };
    ends(&body("assert(((uintptr_t)r & 8) == 0);"), "bits_of_an_address");
    ends(&body("assert((intptr_t)r >= (1L << 40));"), "a_number_that_may_be_an_address");
    ends(&body("assert((intptr_t)r < (1L << 41));"), "a_number_that_may_be_an_address");
    ends(&body("assert((uintptr_t)r != 0x12348);"), "a_number_that_may_be_an_address");
    ends(
        &body("struct other *q = around(l, other); assert((uintptr_t)r - (uintptr_t)q != 16);"),
        "bits_of_an_address",
    );
}

const AROUND: &str = "struct list { struct list *next; };
    struct node { long key; struct list l; } nodes[2]; struct list head, *from = &head; long other;
    #define entry(p) ((struct node *)((char *)(p) - offsetof(struct node, l)))
    void *writer(void *p) { from = &nodes[0].l; return p; }";

#[test]
fn the_order_of_an_end_pointer_and_another_object_is_undecided() {
    let arrays = "int a[3], b[3];";
    ends(&main_does(arrays, "int *p = a + 3; assert(p < b || b < p);"), "order_of_addresses");
    ends(&main_does(arrays, "if (a < b) assert(a + 3 < b);"), "order_of_addresses");
    holds(arrays, "if (a < b) assert(a + 3 <= b && a + 2 < b); else assert(b + 3 <= a);");
    ends(
        &main_does("int a[1], b[1];", "assert(b + 1 > a || (a == b + 1) == (b > b));"),
        "order_of_addresses",
    );
}

#[test]
fn members_of_a_container_that_does_not_exist_have_no_address() {
    for globals in
        [AROUND.to_string(), AROUND.replace("long key; struct list l;", "struct list l; long key;")]
    {
        for op in ["==", "!="] {
            let body = format!("struct node *c = entry(&head); assert(&c->key {op} &other);");
            ends(&main_does(&globals, &body), "a_number_that_may_be_an_address");
        }
    }
}

#[test]
fn a_list_head_may_be_read_as_a_member_of_its_container() {
    for globals in
        [AROUND.to_string(), AROUND.replace("long key; struct list l;", "struct list l; long key;")]
    {
        let body = "pthread_t t; pthread_create(&t, 0, writer, 0); head.next = &nodes[0].l; struct list *m = from; struct node *c = entry(m);
            struct list *first = c->l.next; if (m == &head) assert(first == &nodes[0].l);";
        holds(&globals, body);
        let body = body.replace("assert(first == &nodes[0].l)", "assert(c != nodes + 2)");
        ends(&main_does(&globals, &body), "order_of_addresses");
    }
}

/// The address of a member of null is the offset of the member: null for a first member.
#[test]
fn members_of_null() {
    let globals =
        "struct s { int a, b; int c[2]; } o; struct s *_Atomic g; int *_Atomic gi; int (*_Atomic ga)[4];
        #define around(p) ((struct s *)((char *)(p) - offsetof(struct s, b)))";
    for first in ["int *q = &p->a;", "int *q = (int *)p;"] {
        holds(globals, &format!("struct s *p = g; {first} assert(q == NULL); assert(q == gi);"));
        fails(globals, &format!("struct s *p = g; {first} assert(q != NULL);"));
        fails(globals, &format!("struct s *p = g; {first} if (!q) assert(0);"));
    }
    fails(globals, "int *q = *ga; assert(q != NULL);");
    fails(globals, "struct s *p = g; assert((uintptr_t)&p->b >= 4096);");
    holds(globals, "struct s *p = g; assert((uintptr_t)&p->b == 4);");
    holds(
        globals,
        "struct s *p = g; int *q = &p->b, *r = gi, *c = p->c; assert(q != r && q < c && q != c && c != r);",
    );
    // From the address of a member back to its structure, also if the structure is at null.
    holds(globals, "struct s *p = g; int *q = &p->b; assert(around(q) == p); assert(around(q) == NULL);");
    holds(
        globals,
        "int *q = gi; struct s *p = around(q); assert(&p->b == q); assert(&p->b == NULL); assert(p != NULL);",
    );
    holds(globals, "int *q = NULL; struct s *p = around(q); assert(p != NULL);");
    memory(&main_does(globals, "struct s *p = g; int *q = &p->b; *q = 1;"), "uuu");
    memory(&main_does(globals, "int *q = NULL; struct s *p = around(q); p->a = 1;"), "uuu");
    // An array that starts at null has no second element.
    for moved in ["int *q = &p[1];", "int *q = p + 1;", "int *q = p; q--;"] {
        memory(&main_does("", &format!("int *p = NULL; {moved} assert(q != NULL);")), "uuu");
    }
}

#[test]
fn ends_of_allocations_that_nobody_accesses() {
    let behind = "int *a = malloc(16), *b = malloc(16); int *e = a + 4;";
    refused("", &format!("{behind} assert(e != b);"), "the order of these addresses is unknown");
    holds("", &format!("{behind} if (a < b) assert(e <= b);"));
    refused(
        "static int x[2];",
        "int *a = malloc(8); a += 2; assert(x != a);",
        "the order of these addresses is unknown",
    );
}

/// `free` takes the address of an allocation, whatever the type of the pointer is.
#[test]
fn freed_by_way_of_a_member() {
    let globals = "struct list { struct list *next; }; struct node { int key; struct list l; }; struct item { struct list l; int key; };
        struct list *_Atomic last; void *frees(void *p) { free(p); return 0; }
        #define entry(p) ((struct node *)((char *)(p) - offsetof(struct node, l)))";
    let node = "struct node *x = malloc(sizeof *x); x->key = 1; struct list *l = &x->l;";
    let item = "struct item *x = malloc(sizeof *x); x->key = 1; last = &x->l; struct list *l = last;";
    holds(globals, &format!("{node} free(entry(l));"));
    holds(globals, &format!("{item} free(&x->l);"));
    holds(globals, &format!("{item} free(&x->l.next);"));
    holds(globals, &format!("{item} free(l);"));
    holds(globals, &format!("{item} pthread_t t; pthread_create(&t, 0, frees, l); pthread_join(t, 0);"));
    holds(globals, "struct item *x = malloc(2 * sizeof *x); x[0].key = x[1].key = 1; free(&x[0].l);");
    memory(&main_does(globals, &format!("{node} free(l);")), "uuu");
    memory(&main_does(globals, &format!("{item} free(l); free(x);")), "uuu");
    memory(&main_does(globals, &format!("{item} free(l); x->key = 2;")), "uuu");
    memory(
        &main_does(
            globals,
            "struct item *x = malloc(2 * sizeof *x); x[0].key = x[1].key = 1; last = &x[1].l; free(last);",
        ),
        "uuu",
    );
    fails(globals, &format!("{item} free(l); struct item *y = malloc(sizeof *y); assert(x != y);"));
    fails(globals, &format!("{item} free(l); struct item *y = malloc(sizeof *y); assert(x == y);"));
}

#[test]
fn functions_that_would_hide_something_are_refused() {
    refused("#include <stdlib.h>\nvoid last(void) {}", "atexit(last);", "atexit");
    let kept = "int *keep; void f(void) { keep = __builtin_alloca(4); }";
    let text = format!("{HEADERS}{}", main_does(kept, "f(); *keep = 1;"));
    let error = load(&text, &Options::default()).expect_err("the memory is gone when it is used");
    assert!(error.diagnostics[0].message.contains("alloca"), "{}", error.diagnostics[0].message);
    holds("", "int *p = __builtin_alloca(4); *p = 1; assert(*p == 1);");
    let mixed = "int *p = __builtin_alloca(4), *q = malloc(4); *p = *q = 1;";
    memory(&main_does("", &format!("{mixed} free(p);")), "uuu");
    memory(&main_does("", &format!("{mixed} free(q);")), "sss");
}

/// If the translation leaves out an access and keeps only the check that its memory is alive, the check stays on the path of the access.
#[test]
fn accesses_that_are_left_out_are_checked_where_they_were() {
    let node =
        "struct node { int value; struct node *next; }; _Atomic int x; void *f(void *p) { x = 1; return 0; }";
    let either = "pthread_t t; pthread_create(&t, 0, f, 0); struct node *c = malloc(sizeof *c); if (x) free(c); else c->next = 0;";
    holds(node, either);
    memory(&main_does(node, &format!("{either} c->next = 0;")), "uuu");
}

/// The variable through which the pointer passes is left out by the translation, which has to keep track of the pointer's target.
#[test]
fn pointers_that_pass_through_variables_point_to_the_same_memory() {
    let globals = "struct node { int value; struct node *next; }; struct node *_Atomic g;
        void *f(void *p) { struct node *a = 0, *b = 0; if (!g) a = malloc(sizeof *a); b = a; g = b; return 0; }";
    let main = "pthread_t t; pthread_create(&t, 0, f, 0); struct node *b = atomic_exchange(&g, 0); pthread_join(t, 0); free(b);";
    holds(globals, main);
    memory(&main_does(globals, &format!("{main} free(b);")), "uuu");
}

/// A pointer whose number equals the offset of a member is not taken for the address of a member of null.
#[test]
fn many_members_of_no_structure_are_not_null() {
    let globals = "struct s { int a, b; }; int lone[16]; struct s inner; int *_Atomic g = &inner.b;
        #define around(p) ((struct s *)((char *)(p) - offsetof(struct s, b)))";
    for n in 0..8 {
        holds(globals, &format!("g = &lone[{n}]; int *p = g; struct s *q = around(p); assert(q != NULL);"));
    }
}
