//! Memory of C programs, from the text to the reference semantics: pointers, structures, allocations, and the property `memory`.

use fencewright_executions::oracle::{Incomplete, Reachable, explore};
use fencewright_lang::fw::print;
use fencewright_lang::load::Failure;
use fencewright_lang::options::Options;
use fencewright_lang::{Loaded, Loader, Stop};
use fencewright_program::MemoryModel;

const HEADERS: &str = "#include <pthread.h>\n#include <stdlib.h>\n#include <stdint.h>\n#include <stddef.h>\n#include <assert.h>\n#include <stdatomic.h>\n";

/// `struct node`, and a stack of such nodes that frees each popped node.
const STACK: &str = "
struct node { int value; struct node *next; };
_Atomic(struct node *) top;
void push(int value) {
    struct node *node = malloc(sizeof *node);
    node->value = value;
    do node->next = top; while (!atomic_compare_exchange_strong(&top, &node->next, node));
}
int pop(void) {
    struct node *old;
    struct node *next;
    for (;;) {
        old = top;
        if (!old) return -1;
        next = old->next;
        if (atomic_compare_exchange_strong(&top, &old, next)) break;
    }
    int value = old->value;
    FREE(old);
    return value;
}
";

/// The text of a program. `before` and `after` are the statements that `main` executes before it creates the threads and after they have ended.
fn threads(globals: &str, before: &str, bodies: &[&str], after: &str) -> String {
    let mut text = format!("{HEADERS}{globals}\n");
    for (n, body) in bodies.iter().enumerate() {
        text += &format!("void *t{n}(void *argument) {{ {body}; return 0; }}\n");
    }
    text += &format!("int main(void) {{ pthread_t t[{}]; {before};\n", bodies.len().max(1));
    (0..bodies.len()).for_each(|n| text += &format!("    pthread_create(&t[{n}], 0, t{n}, 0);\n"));
    (0..bodies.len()).for_each(|n| text += &format!("    pthread_join(t[{n}], 0);\n"));
    text + &format!("    {after};\n    return 0;\n}}\n")
}

fn try_load(text: &str, options: &Options) -> Result<Loaded, String> {
    let stop = Stop::never();
    let open = |name: &str| Err(format!("there is no `{name}`"));
    let loader = Loader { front_end: None, options, stop: &stop, open: &open };
    loader.load("test.c", text.as_bytes()).map_err(|failure| match failure {
        Failure::Wrong(error) => error.sources.render(&error.diagnostics, false),
        Failure::Stopped(_) => unreachable!("nobody stops it"),
    })
}

fn reachable(text: &str, options: &Options, model: MemoryModel) -> (Loaded, Result<Reachable, Incomplete>) {
    let loaded = try_load(text, options).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    let reachable = explore(&loaded.program, model, 1_000_000, &mut || false);
    (loaded, reachable)
}

/// The violated properties; a program without such a property cannot violate it.
fn violated(text: &str, options: &Options, model: MemoryModel) -> Vec<String> {
    let (loaded, reachable) = reachable(text, options, model);
    let printed = print(&loaded.file);
    let reachable = reachable.unwrap_or_else(|why| panic!("{why:?}\n{text}\n{printed}"));
    let holds = |property| reachable.satisfies(&loaded.program, model, property).unwrap();
    let violated = loaded.program.properties.iter().filter(|property| !holds(property));
    violated.map(|property| property.name.clone()).collect()
}

fn check_with(text: &str, options: &Options, expected: &[&str]) {
    for model in [MemoryModel::Sc, MemoryModel::Tso] {
        let found = violated(text, options, model);
        if found != expected {
            let loaded = try_load(text, options).unwrap();
            panic!("{model:?}: {found:?} instead of {expected:?}\n{text}\n{}", print(&loaded.file));
        }
    }
}

fn check(text: &str, expected: &[&str]) {
    check_with(text, &Options::default(), expected);
}

/// Indices that the formula of the property `memory` cannot contain: formulas divide and shift only by constants.
#[test]
fn an_index_into_freed_memory_may_be_a_remainder() {
    let read = |before: &str, violated: &[&str]| {
        let body = format!(
            "int *p = malloc(2 * sizeof *p); p[0] = p[1] = 3; int n = 1 + v; {before}; int r = p[w % n] + p[w >> v]; assert(r == 6); free(p)"
        );
        check(&threads("_Atomic int v, w;", "", &[&body, "v = 1; w = 1;"], ""), violated);
    };
    read("", &[]);
    read("if (n == 2) free(p)", &["memory"]);
}

/// An allocation returns no freed object whose flexible array member is shorter.
#[test]
fn arrays_of_open_length_come_back_with_their_length() {
    let row = "struct row { int length; int cells[]; }; _Atomic int v;";
    let body = "for (int i = 0; i < 2; i++) { int n = 1 + (i ? v : 0); struct row *r = malloc(sizeof *r + n * sizeof(int)); r->length = n; r->cells[OF] = 1; free(r); }";
    check(&threads(row, "", &[&body.replace("OF", "n - 1"), "v = 1"], ""), &[]);
    check(&threads(row, "", &[&body.replace("OF", "n"), "v = 1"], ""), &["memory"]);
}

/// `calloc` clears an object that it returns again, although its thread does not write the object otherwise. The other thread may write it afterwards.
#[test]
fn calloc_clears_what_only_another_thread_accesses() {
    let first = "int *p = q; if (p) *p = 1";
    let second =
        "int *p = calloc(1, sizeof *p); q = p; q = 0; free(p); p = calloc(1, sizeof *p); assert(*p == 0)";
    check(&threads("int *_Atomic q;", "", &[first, second], ""), &["memory", "assertions"]);
}

#[test]
fn null_pointers() {
    let globals = "int x; int *p;";
    check(&threads(globals, "", &["*p = 1", "p = &x"], ""), &["memory"]);
    check(&threads(globals, "", &["int *q = p; if (q) *q = 1", "p = &x"], ""), &[]);
    check(&threads(globals, "p = &x", &["*p = 1", "int *q = p; *q = 2"], "assert(x)"), &[]);
}

#[test]
fn bounds() {
    let globals = "int a[4]; int n;";
    check(&threads(globals, "", &["a[n] = 1", "n = 3"], ""), &[]);
    check(&threads(globals, "", &["a[n] = 1", "n = 4"], ""), &["memory"]);
    check(&threads(globals, "", &["a[n] = 1", "n = -1"], ""), &["memory"]);
    let walk = |end: &str| format!("int *p; for (p = a; p {end}; p++) *p = n");
    check(&threads(globals, "", &[&walk("< a + 4"), "n = 1"], "assert(a[3] == 0 || a[3] == 1)"), &[]);
    check(&threads(globals, "", &[&walk("<= a + 4"), "n = 1"], "assert(a[3] < 2)"), &["memory"]);
    // The end of one array may be adjacent to the next array, but pointer arithmetic must not move between them.
    let two = "int a[2], b[2]; int *p; int n;";
    let far = "p = n ? a : b; p += 2; p = p + n; *p = 5";
    check(&threads(two, "", &[far, "n = 1"], "assert(a[0] + b[0] == 0)"), &["memory"]);
}

#[test]
fn elements_of_arrays() {
    let globals = "struct slot { int full; int data; } slots[3]; struct slot *last; int *number;";
    let put = "slots[1].data = 7; slots[1].full = 1; last = &slots[1]; number = &slots[1].data";
    let get = "struct slot *s = last; if (s) { assert(s == slots + 1); assert(s - slots == 1); assert(s->full == 1); assert(s->data == 7); }";
    check(&threads(globals, "", &[put, get], "assert(*number == 7)"), &[]);
    let wrong = "struct slot *s = last; if (s) assert(s->data != 7)";
    check(&threads(globals, "", &[put, wrong], ""), &["assertions"]);
}

#[test]
fn structures_are_copied() {
    let globals = "struct pair { int a, b; } x, y; struct pair *p = &x;";
    let copy = "struct pair mine = *p; y = mine";
    let check_copy = "assert(y.a == 0 || y.a == 3); struct pair z = y; assert(z.b == y.b)";
    check(&threads(globals, "", &["x.a = 3; x.b = 4", copy], check_copy), &[]);
    check(
        &threads(globals, "", &["x.a = 3; x.b = 4", copy], "assert(!(y.a == 0 && y.b == 4))"),
        &["assertions"],
    );
}

#[test]
fn uninitialised_values() {
    let globals = "int x, y;";
    check(
        &threads(globals, "", &["int n; if (x) n = 1; if (n) y = 1", "x = 1"], "assert(y < 2)"),
        &["memory", "assertions"],
    );
    check(&threads(globals, "", &["int n; if (x) n = 1; if (x) y = 1", "x = 1"], "assert(y < 2)"), &[]);
    check(&threads(globals, "", &["int n; int m; if (x) n = 1; m = n; y = m", "x = 1"], ""), &[]);
    let allocated = "struct node { int value; }; struct node *p;";
    let publish = "struct node *n = malloc(sizeof *n); n->value = 1; p = n";
    let read = "struct node *n = p; if (n) assert(n->value == 1)";
    check(&threads(allocated, "", &[publish, read], ""), &[]);
    let publish = "struct node *n = malloc(sizeof *n); p = n; n->value = 1";
    check(&threads(allocated, "", &[publish, read], ""), &["memory", "assertions"]);
    let publish = "struct node *n = calloc(1, sizeof *n); p = n; n->value = 1";
    check(&threads(allocated, "", &[publish, "struct node *n = p; if (n) assert(n->value < 2)"], ""), &[]);
}

/// A store to a local variable that nothing reads is left out, unless something about it has to be checked.
#[test]
fn stores_that_nothing_reads() {
    let globals = "_Atomic int x; int all[2]; struct s { int v[2]; int *p; };";
    let run = |body: &str, violated: &[&str]| check(&threads(globals, "", &[body, "x = 3"], ""), violated);
    run("struct s l = { { (int)(uintptr_t)\"text\" }, all }; l.v[1] = 2", &[]);
    run("struct s l = { { 1 }, &all[x & 1] }", &[]);
    run("struct s l = { { 1 }, &all[x] }", &["memory"]);
    run("struct s l; l.v[x] = 1", &["memory"]);
    run("struct s l; l.v[0] = 1; l.p = all; l.p[x] = 1", &["memory"]);
    run("struct s l; int u; if (x) u = 1; l.v[0] = u", &[]);
    run("struct s l; int u; if (x) u = 1; l.v[0] = u + 1", &["memory", "assertions"]);
}

#[test]
fn freed_memory() {
    let globals = "int *p; atomic_int flag;";
    let before = "p = malloc(sizeof *p); *p = 1";
    check(&threads(globals, before, &["free(p)", "*p = 2"], ""), &["memory"]);
    check(&threads(globals, before, &["*p = 3", "*p = 2"], "free(p)"), &[]);
    check(&threads(globals, before, &["*p = 3", "*p = 2"], "free(p); *p = 1"), &["memory"]);
    check(&threads(globals, before, &["free(p)", "free(p)"], ""), &["memory"]);
    let once = "if (!atomic_exchange(&flag, 1)) free(p)";
    check(&threads(globals, before, &[once, once], ""), &[]);
    check(&threads(globals, before, &["free(p + 1)", ""], ""), &["memory"]);
    check(&threads("int x; int *p;", "p = &x", &["free(p)", "p = 0"], ""), &["memory"]);
    check(&threads("int *p;", "", &["free(p)", "p = 0"], ""), &[]);
    let member = "struct pair { int a, b; } *p; int *q;";
    let before = "p = malloc(sizeof *p); p->a = p->b = 0; q = &p->b";
    check(&threads(member, before, &["free(p)", "*q = 2"], ""), &["memory"]);
    check(&threads(member, before, &["p->a = 1", "*q = 2"], "free(p)"), &[]);
}

#[test]
fn a_stack_that_frees() {
    let keeps = format!("#define FREE(p)\n{STACK}");
    let frees = format!("#define FREE(p) free(p)\n{STACK}");
    let pops = ["assert(pop() != 0)", "assert(pop() != 0)"];
    check(&threads(&keeps, "push(1); push(2)", &pops, "assert(pop() == -1)"), &[]);
    check(&threads(&frees, "push(1); push(2)", &pops, ""), &["memory"]);
}

/// One thread is between reading `next` and its exchange while the other thread pops two nodes and pushes the first one again. This is possible only
/// if memory is reused.
#[test]
fn reuse_is_needed_for_aba() {
    let text = format!("#define FREE(p) free(p)\n{STACK}\nint got;",);
    let again = "int a = pop(), b = pop(); if (a == 2 && b == 1) push(3)";
    let text = threads(&text, "push(1); push(2)", &["got = pop()", again], "if (got == 3) assert(top == 0)");
    let mut options = Options::default();
    check_with(&text, &options, &["memory", "assertions"]);
    options.c.no_reuse = true;
    check_with(&text, &options, &["memory"]);
}

#[test]
fn two_lists_of_one_type() {
    let globals = "struct node { int value; struct node *next; } a, b, c; struct node *one, *two;
        int sum(struct node *n) { int s = 0; while (n) { s += n->value; n = n->next; } return s; }";
    let before = "a.value = 1; b.value = 2; c.value = 4; one = &a; a.next = &b; two = &c";
    check(&threads(globals, before, &["assert(sum(one) == 3)", "two = &b"], "assert(sum(two) == 2)"), &[]);
    check(
        &threads(globals, before, &["c.next = &c", "two = 0"], "c.next = two; assert(sum(one) != 3)"),
        &["assertions"],
    );
}

#[test]
fn containers_and_first_members() {
    let globals = "struct link { struct link *next; };
        struct item { int key; struct link link; } x, y; struct link head;
        #define item_of(p) ((struct item *)((char *)(p) - offsetof(struct item, link)))";
    let before = "x.key = 1; y.key = 2; head.next = &x.link; x.link.next = &y.link";
    let body = "struct link *l = head.next; int s = 0; while (l) { s += item_of(l)->key; l = l->next; } assert(s == 3 || s == 1)";
    check(&threads(globals, before, &[body, "x.link.next = 0"], ""), &[]);
    let first =
        "struct base { int kind; }; struct derived { struct base base; int extra; } d; struct base *p;";
    let body =
        "struct base *b = p; if (b) { assert(b->kind == 1); assert(((struct derived *)b)->extra == 5); }";
    check(&threads(first, "d.base.kind = 1; d.extra = 5", &[body, "p = &d.base"], ""), &[]);
    check(
        &threads(first, "d.base.kind = 1; d.extra = 4", &[body, "p = (struct base *)&d"], ""),
        &["assertions"],
    );
}

#[test]
fn tagged_pointers() {
    let globals = "struct node { int value; struct node *next; } x, y; _Atomic uintptr_t head;";
    let mark = "atomic_fetch_or(&head, 1)";
    let read = "uintptr_t h = head; struct node *n = (struct node *)(h & ~(uintptr_t)1); assert(n == &x); assert(n->value == 7); if (h & 1) assert(h != (uintptr_t)&x)";
    check(&threads(globals, "x.value = 7; head = (uintptr_t)&x", &[mark, read], "assert(head & 1)"), &[]);
    let forgot = "uintptr_t h = head; struct node *n = (struct node *)h; assert(n->value == 7)";
    check(&threads(globals, "x.value = 7; head = (uintptr_t)&x", &[mark, forgot], ""), &["memory"]);
}

/// A locked instruction drains the buffer even if only one thread accesses its memory. Without it, both loads can read before the stores reach
/// memory.
#[test]
fn memory_of_one_thread_drains_as_well() {
    let globals = "int x, y, a, b; atomic_int mine[2];";
    let own = |cell: usize, drains: bool| {
        if drains { format!("atomic_fetch_add(&mine[{cell}], 1);") } else { String::new() }
    };
    for drains in [false, true] {
        let one = format!("x = 1; {} a = y", own(0, drains));
        let other = format!("y = 1; {} b = x", own(1, drains));
        let text = threads(globals, "", &[&one, &other], "assert(a + b > 0)");
        let expected: &[&str] = if drains { &[] } else { &["assertions"] };
        assert_eq!(violated(&text, &Options::default(), MemoryModel::Tso), expected, "{text}");
    }
}

#[test]
fn pointers_to_locals() {
    let globals = "int *mail; atomic_int taken;";
    let send = "int mine = 5; mail = &mine; while (!taken) ; assert(mine == 6)";
    let receive = "int *m = mail; if (m) { assert(*m == 5); *m = 6; taken = 1; } else taken = 2";
    check(&threads(globals, "", &[send, receive], ""), &["assertions"]);
    let send = "int mine = 5; mail = &mine; while (!taken) ; if (taken == 1) assert(mine == 6)";
    check(&threads(globals, "", &[send, receive], ""), &[]);
}

#[test]
fn too_many_objects_are_no_verdict() {
    let globals = "struct node { struct node *next; } *all;";
    let body =
        "int i; for (i = 0; i < 3; i++) { struct node *n = malloc(sizeof *n); n->next = all; all = n; }";
    let text = threads(globals, "", &[body, "all = 0"], "");
    let mut options = Options::default();
    check_with(&text, &options, &[]);
    options.c.heap = Some(2);
    let (loaded, reachable) = reachable(&text, &options, MemoryModel::Sc);
    assert_eq!(reachable.unwrap_err(), Incomplete::Limit);
    assert!(print(&loaded.file).contains("more_than_2_objects_from_line_8"), "{}", print(&loaded.file));
}

#[test]
fn one_memory_has_one_shape() {
    let check = |globals: &str, body: &str, parts: &[&str]| {
        let text = threads(globals, "", &[body, ""], "");
        let errors =
            try_load(&text, &Options::default()).err().unwrap_or_else(|| panic!("accepted:\n{text}"));
        parts.iter().for_each(|part| assert!(errors.contains(part), "{part} not in\n{errors}"));
    };
    check("long x; int *p;", "p = (int *)&x; *p = 1; x = 2", &["64 bits", "32 bits"]);
    check(
        "struct a { int x, y; } a; struct b { long z; } *b;",
        "b = (struct b *)&a; b->z = 1; a.x = 1",
        &["struct a", "struct b"],
    );
}

#[test]
fn memory_of_another_size() {
    let grown =
        "a = malloc(2 * sizeof *a); a[0] = 1; a[1] = 2; b = a; a = realloc(a, 4 * sizeof *a); a[3] = 7";
    let check_end = |end: &str, expected: &[&str]| {
        check(&threads("int *a, *b, go;", grown, &["go = 1", "go = 2"], end), expected);
    };
    check_end("assert(a[0] == 1 && a[1] == 2 && a[3] == 7)", &[]);
    check_end("assert(a[0] == 2)", &["assertions"]);
    check_end("assert(a[2] == 0)", &["memory", "assertions"]);
    check_end("assert(b[0] == 1)", &["memory"]);
    check_end("assert(a[4] == 1)", &["memory"]);
    let first = "a = realloc(0, sizeof *a); *a = 3";
    check(&threads("int *a, go;", first, &["go = 1", "go = 2"], "assert(*a == 3)"), &[]);
}

#[test]
fn arrays_of_open_length() {
    let globals = "struct list { int length; int values[]; } *list;";
    let before = "list = malloc(sizeof *list + 2 * sizeof(int)); list->length = 2";
    let check_body = |body: &str, expected: &[&str]| {
        check(
            &threads(globals, before, &[body, "list->values[0] = 3"], "assert(list->values[0] == 3)"),
            expected,
        );
    };
    check_body("list->values[1] = 4", &[]);
    check_body("list->values[0] = 4", &["assertions"]);
    check_body("list->values[2] = 4", &["memory"]);
    check_body("for (int i = 1; i < list->length; i++) list->values[i] = i", &[]);
    let linked = "struct n { struct n *next; int a[]; } *all;";
    let push =
        "struct n *n = malloc(sizeof *n + 2 * sizeof(int)); n->a[0] = 1; n->a[1] = 2; n->next = all; all = n";
    let sum = |end: &str| {
        format!("int s = 0; for (struct n *n = all; n; n = n->next) s += n->a[0] + n->a[1]; {end}")
    };
    let body = format!("for (int i = 0; i < 2; i++) {{ {push}; }}");
    check(&threads(linked, "", &[&body], &sum("assert(s == 6)")), &[]);
    check(&threads(linked, "", &[&body], &sum("assert(s == 3)")), &["assertions"]);
    let other = format!(
        "{body} {}",
        push.replacen("struct n *n", "struct n *o", 1)
            .replace("n->", "o->")
            .replace("all = n", "all = o")
            .replace("sizeof *n + 2", "sizeof *o + 3")
    );
    // Structures of one kind may have arrays of different lengths: each keeps its own.
    check(&threads(linked, "", &[&other], &sum("assert(s == 9)")), &[]);
    check(&threads(linked, "", &[&other], &sum("assert(s == 6)")), &["assertions"]);
    let last = |index: usize| format!("all->a[{index}] = 5; assert(all->a[{index}] == 5);");
    check(&threads(linked, "", &[&other], &last(2)), &[]);
    check(&threads(linked, "", &[&other], &last(3)), &["memory"]);
    let first = |index: usize| format!("all->next->a[{index}] = 5;");
    check(&threads(linked, "", &[&other], &first(1)), &[]);
    check(&threads(linked, "", &[&other], &first(2)), &["memory"]);
    let moved = |by: usize| format!("int *p = all->next->a; p += {by}; *p = 5;");
    check(&threads(linked, "", &[&other], &moved(1)), &[]);
    check(&threads(linked, "", &[&other], &moved(2)), &["memory"]);
    check(&threads(linked, "", &[&other], "int *p = &all->next->a[1]; p++; all->a[2] = 1;"), &[]);
    check(&threads(linked, "", &[&other], "int *p = &all->next->a[2]; *p = 1;"), &["memory"]);
}

#[test]
fn mutexes_with_a_type() {
    let typed = |kind: &str, body: &str, end: &str| {
        let globals = "pthread_mutex_t m; int c, r;";
        let before = format!(
            "pthread_mutexattr_t a; pthread_mutexattr_init(&a); pthread_mutexattr_settype(&a, PTHREAD_MUTEX_{kind}); pthread_mutex_init(&m, &a)"
        );
        threads(globals, &before, &[body, body], end)
    };
    let lock = "pthread_mutex_lock(&m);";
    let unlock = "pthread_mutex_unlock(&m);";
    let twice = format!("{lock} {lock} {unlock} c++; {unlock}");
    check(&typed("RECURSIVE", &twice, "assert(c == 2)"), &[]);
    check(&typed("RECURSIVE", &twice, "assert(c == 1)"), &["assertions"]);
    check(
        &typed("RECURSIVE", &format!("{lock} {lock} {unlock} {unlock} c++;"), "assert(c == 2)"),
        &["assertions"],
    );
    check(&typed("RECURSIVE", &format!("{lock} c++; r = {lock} {unlock}"), "assert(r == 0)"), &[]);
    check(
        &typed(
            "RECURSIVE",
            &format!("{lock} assert(pthread_mutex_trylock(&m) == 0); c++; {unlock} {unlock}"),
            "assert(c == 2)",
        ),
        &[],
    );
    let told = |holds: &str| format!("{lock} assert((pthread_mutex_lock(&m) {holds} 0)); c++; {unlock}");
    check(&typed("ERRORCHECK", &told("!="), "assert(c == 2)"), &[]);
    check(&typed("ERRORCHECK", &told("=="), ""), &["assertions"]);
    check(
        &typed("ERRORCHECK", &format!("{lock} {unlock} assert(pthread_mutex_unlock(&m) == 0);"), ""),
        &["assertions"],
    );
    check(&typed("ERRORCHECK", &format!("{lock} {unlock} assert(pthread_mutex_unlock(&m) != 0);"), ""), &[]);
    // A thread that locks a normal mutex twice waits forever.
    check(&typed("NORMAL", &format!("{lock} {lock} assert(0);"), ""), &[]);
}

/// The translation computes the same values as gcc: memory accessed with several types, structures and their members, initial values.
#[test]
fn values_against_gcc() {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let programs = [
        ("int x = -1;", "unsigned *p = (unsigned *)&x; *p -= 5;", "(unsigned)x"),
        ("int x = -3;", "x = *(unsigned *)&x / 2;", "x"),
        ("short s = -2;", "*(unsigned short *)&s >>= 1;", "s"),
        ("unsigned char c = 200;", "signed char *p = (signed char *)&c; *p = *p / 2;", "c"),
        ("union { int s; unsigned u; } x = { .u = 4000000000u };", "x.s /= 2; x.u /= 2;", "x.s"),
        (
            "union { short s[2]; unsigned short u[2]; } x;",
            "x.s[1] = -7; x.u[0] = x.u[1] + 1;",
            "x.s[0] * 1000 + x.u[1]",
        ),
        (
            "struct a { int p; short q; }; struct b { unsigned r; unsigned short s; }; union { struct a a; struct b b; } x;",
            "x.a.p = -9; x.a.q = -1; x.b.r /= 3;",
            "x.a.p + x.b.s",
        ),
        (
            "struct s { int a; struct { int x, y; } in; int arr[3]; } g;",
            "g = (struct s){ .in.y = 2, .arr = { [1] = 4 }, .a = 9 }; struct s h = g; h.arr[2] = h.in.y; g = h;",
            "g.a * 100 + g.arr[1] * 10 + g.arr[2]",
        ),
        (
            "int m[2][3] = { { 1, 2 }, { [2] = 9 } };",
            "int *p = &m[1][0]; p[1] = m[0][1]; m[1][0] = *(*(m + 1) + 2);",
            "m[1][0] * 10 + m[1][1]",
        ),
        (
            "enum e { A = -1, B, C = 7 } e;",
            "__atomic_store_n((int *)&e, C, 0); e = e == C ? A : B;",
            "(int)e",
        ),
        (
            "struct n { long a; struct { char c; int d; } in; } n = { 3, { 4, 5 } };",
            "int *d = &n.in.d; struct n *o = (struct n *)((char *)d - offsetof(struct n, in.d)); o->a += offsetof(struct n, in.d);",
            "n.a",
        ),
        (
            "struct v { int len; int a[]; } *v; long x;",
            "v = malloc(sizeof *v + 3 * sizeof(int)); for (int i = 0; i < 3; i++) v->a[i] = i * i; v->len = sizeof *v; x = v->len + v->a[2];",
            "x",
        ),
        (
            "int x;",
            "int *a = calloc(3, sizeof *a); a[2] = 5; a = realloc(a, 5 * sizeof *a); a[4] = 6; x = a[0] + a[2] * 10 + a[4];",
            "x",
        ),
        (
            "uintptr_t w; int x = 4, y;",
            "w = (uintptr_t)&x | 1; y = *(int *)(w & ~(uintptr_t)3) + (int)(w & 1);",
            "y",
        ),
    ];
    for (globals, body, value) in programs {
        let program = format!(
            "{HEADERS}#include <stdio.h>\n{globals}\nint main(void) {{ {body} printf(\"%lld\", (long long)({value})); return 0; }}"
        );
        let binary = std::env::temp_dir().join(format!("fencewright-values-{}", std::process::id()));
        let gcc = Command::new("gcc")
            .args(["-std=gnu11", "-w", "-fno-strict-aliasing", "-x", "c", "-", "-o"])
            .arg(&binary)
            .stdin(Stdio::piped())
            .spawn();
        let Ok(mut gcc) = gcc else { return println!("skipped: gcc is not installed") };
        gcc.stdin.take().expect("a pipe").write_all(program.as_bytes()).expect("gcc reads");
        assert!(gcc.wait().expect("gcc ends").success(), "{program}");
        let output = Command::new(&binary).output().expect("it runs");
        std::fs::remove_file(&binary).expect("it was written");
        let found: i64 = String::from_utf8(output.stdout).expect("digits").parse().expect("a number");
        let text = |op: &str| {
            threads(
                &format!("{globals} int go;"),
                "",
                &[body, "go = 1"],
                &format!("assert((long long)({value}) {op} {found}LL)"),
            )
        };
        check(&text("=="), &[]);
        check(&text("!="), &["assertions"]);
    }
}

/// A structure is found from a pointer to a member of it that passed through `void *` and a function, also if that is the first member.
#[test]
fn containers_of_members_behind_void_pointers() {
    for (members, value) in
        [("struct link link; int state;", "{ {0}, 1 }"), ("int state; struct link link;", "{ 1, {0} }")]
    {
        let text = format!(
            "struct link {{ struct link *next; }}; struct record {{ {members} }} one = {value}, two = {value}; struct link *head;
             struct record *record(struct link *p) {{ return (struct record *)(void *)((char *)p - offsetof(struct record, link)); }}
             void *thread(void *u) {{ struct link *p = __atomic_load_n(&head, 5); if (p) assert(record(p)->state == 1 && record(p->next)->state == 1); return 0; }}
             int main(void) {{ pthread_t t; pthread_create(&t, 0, thread, 0); one.link.next = &two.link; two.link.next = &one.link;
             __atomic_store_n(&head, &one.link, 5); pthread_join(t, 0); return 0; }}"
        );
        crate::verdicts::assertions(&format!("#include <stddef.h>\n{text}"), "sss");
        crate::verdicts::memory(&format!("#include <stddef.h>\n{text}"), "sss");
    }
}

/// Compilers let a constant initial value wrap around, after a warning.
#[test]
fn initial_values_that_overflow() {
    let text = "#include <limits.h>\nint n = INT_MAX + 1; long m = LONG_MIN - 1; static unsigned u = 3 * 2000000000; int main(void) { assert(n == INT_MIN && m == LONG_MAX && u == 1705032704); return 0; }";
    crate::verdicts::assertions(text, "sss");
    crate::verdicts::assertions(
        "#include <limits.h>\nint main(void) { int n = INT_MAX + 1; assert(n); return 0; }",
        "uuu",
    );
}

/// Any thread may return from a barrier first and free it, while the others, also the one that is told apart, still use it.
#[test]
fn a_barrier_is_in_use_until_all_threads_have_left() {
    let wait = |condition: &str| {
        let body = format!(
            "int r = pthread_barrier_wait(b); if (r {condition} PTHREAD_BARRIER_SERIAL_THREAD) free(b)"
        );
        let globals = "pthread_barrier_t *b;";
        let before = "b = malloc(sizeof *b); pthread_barrier_init(b, 0, 2)";
        check(&threads(globals, before, &[&body, &body], ""), &["memory"]);
    };
    wait("!=");
    wait("==");
}

/// A read-modify-write leaves the buffer empty, also if other threads get to know its memory only later.
#[test]
fn read_modify_writes_of_new_memory_are_not_late() {
    for write in ["atomic_exchange(&n->v, 1)", "atomic_fetch_add(&n->v, 1)", "atomic_store(&n->v, 1)"] {
        let text = format!(
            "struct node {{ _Atomic int v; }}; struct node *_Atomic g;
             void *writer(void *u) {{ struct node *n = malloc(sizeof *n); n->v = 0; {write};
             atomic_store_explicit(&g, n, memory_order_relaxed); return 0; }}
             int main(void) {{ pthread_t t; pthread_create(&t, 0, writer, 0); struct node *n = g; if (n) assert(n->v == 1); return 0; }}"
        );
        crate::verdicts::assertions(&text, "sss");
    }
}
