//! Names, types, constants and conversions: trees of small programs, layouts against gcc, errors with their places, hostile texts.

use crate::common::Texts;
use crate::dump::Dump;
use crate::xorshift::Random;
use fencewright_c::Error;
use fencewright_c::headers::{HEADERS, PREDEFINED};
use fencewright_c::parser::parse;
use fencewright_c::preprocess::preprocess;
use fencewright_c::typed::tree::ExprKind;
use fencewright_c::typed::{Unit, typed};

fn read(text: &str) -> Result<Unit, Vec<Error>> {
    let mut files = Texts { headers: HEADERS.into_iter().collect(), ..Texts::main(text) };
    let defines: Vec<_> =
        PREDEFINED.iter().map(|(name, value)| (name.to_string(), Some(value.to_string()))).collect();
    let preprocessed = preprocess(&mut files, &defines, &|| false)?;
    let unit = typed(&preprocessed, &parse(&preprocessed)?)?;
    let errors: Vec<Error> = unit.errors().cloned().collect();
    if errors.is_empty() { Ok(unit) } else { Err(errors) }
}

fn unit(text: &str) -> Unit {
    read(text).unwrap_or_else(|errors| panic!("{text}\n{errors:#?}"))
}

/// The body of the last function, with these declarations before it.
fn body(before: &str, statements: &str) -> String {
    let unit = unit(&format!("{before}\nvoid test(void) {{ {statements} }}"));
    let function = unit.functions.last().expect("there is one");
    Dump { unit: &unit, function: Some(function) }.block(&function.body)
}

fn globals(text: &str) -> String {
    let unit = unit(text);
    Dump { unit: &unit, function: None }.globals()
}

const BEFORE: &str = "#include <stddef.h>\n#include <stdatomic.h>\n#include <pthread.h>\n
    struct node { int value; struct node *next; unsigned char tags[4]; struct { short low, high; }; unsigned flag : 3; };
    int i; unsigned u; long l; unsigned long ul; unsigned char c; _Bool b; int *p; int a[4]; void *v;
    struct node n, *np; atomic_int ai; _Atomic(struct node *) anp; volatile int vi; int f(int, char *); int (*fp)(int);";

/// Checks the tree of some statements.
fn check(statements: &str, expected: &str) {
    assert_eq!(body(BEFORE, statements), expected, "{statements}");
}

#[test]
fn implicit_conversions_become_explicit() {
    for (statements, expected) in [
        ("i = c + 1;", "i = (i32(c) Add 1);"),
        ("u = i + u;", "u = (u32(i) Add u);"),
        ("l = i * u;", "l = i64((u32(i) Multiply u));"),
        ("c = i;", "c = u8(i);"),
        ("b = p;", "b = bool(p);"),
        ("b = i & 4;", "b = bool((i BitAnd 4));"),
        ("i = c << l;", "i = (i32(c) ShiftLeft l);"),
        ("i = l < u;", "i = (l Less i64(u));"),
        ("i = !p && ~c;", "i = (!p && ~i32(c));"),
        ("c += i;", "c Add= i in i32;"),
        ("c <<= l;", "c ShiftLeft= l in i32;"),
        ("i -= ul;", "i Subtract= ul in u64;"),
        (
            "i++; --c; p++; p--;",
            "old i Add= 1 in i32; c Subtract= 1 in i32; old p Add= i64(1) in i32*; old p Add= i64(-1) in i32*;",
        ),
        ("p += i;", "p Add= i64(i) in i32*;"),
        ("p -= u;", "p Add= -i64(u) in i32*;"),
        ("n.flag++; i = n.flag + u;", "old n.flag Add= 1 in i32; i = i32((u32(i32(n.flag)) Add u));"),
        ("p = 0; p = NULL; v = p; p = v;", "p = i32*(0); p = i32*(0); v = void*(p); p = i32*(v);"),
        ("i = p == 0; i = p == v;", "i = (p Equal i32*(0)); i = (void*(p) Equal v);"),
        ("l = p - a;", "l = difference(p, &a[i64(0)]);"),
        ("p = b ? p : 0; i = b ? c : l;", "p = (b ? p : i32*(0)); i = i32((b ? i64(c) : l));"),
        ("l = ul ?: i;", "l = i64((ul ?: u64(i)));"),
        ("i = 3 > 2u ? 10 / 3 : 1;", "i = 3;"),
        ("i = 1 / 0;", "i = (1 Divide 0);"),
        ("enum { TOP = 1 << 31, LOW = -1 << 4 }; i = TOP | LOW;", "i = -16;"),
        ("l = (char *)&((struct node *)0)->next - (char *)0;", "l = i64(8);"),
        ("i = 'a' + 0x80000000; l = -1 < 0u;", "i = -2147483551; l = i64(0);"),
        ("i = sizeof n + sizeof(int[3]) + _Alignof(long);", "i = 52;"),
        ("l = (char)300 + (unsigned char)300;", "l = i64(88);"),
        ("f(c, v); fp(1); (*fp)(2); (&f)(3, 0);", "f!(i32(c), i8*(v)); [fp](1); [fp](2); f!(3, i8*(0));"),
        ("(void)i; i, u;", "void(i); (i, u);"),
    ] {
        check(statements, expected);
    }
}

#[test]
fn lvalues_are_resolved() {
    for (statements, expected) in [
        ("a[i] = *a; a[1] = 1[a];", "a[i64(i)] = a[i64(0)]; a[i64(1)] = a[i64(1)];"),
        ("*(a + 2) = *(p + i); p[i] = p[0];", "a[i64(2)] = *(move(p, i64(i))); *(move(p, i64(i))) = *(p);"),
        ("n.value = np->next->value;", "n.value = *(*(np).next).value;"),
        ("(&n)->tags[1] = (*np).tags[2];", "n.tags[i64(1)] = *(np).tags[i64(2)];"),
        (
            "n.high = 1; np->low = *&n.high;",
            "n.anonymous3.high = i16(1); *(np).anonymous3.low = n.anonymous3.high;",
        ),
        ("p = &a[2]; p = a; p = &*p; p = *&p;", "p = &a[i64(2)]; p = &a[i64(0)]; p = p; p = p;"),
        (
            "p = &n.value; int (*all)[4] = &a; i = (*all)[1];",
            "p = &n.value; var all: i32[4]* = &a; i = *(all)[i64(1)];",
        ),
        ("n = *np; struct node m = n;", "n = *(np); var m: node = n;"),
        ("i = offsetof(struct node, high); l = (long)&((struct node *)0)->tags[1];", "i = 22; l = i64(17);"),
        (
            "np = (struct node *)((char *)p - offsetof(struct node, value));",
            "np = node*(move(i8*(p), i64(0)));",
        ),
        (
            "char *s = \"one\"; i = \"two\"[1]; i = sizeof \"three\";",
            "var s: i8* = string.0; i = i32(string.1[i64(1)]); i = 6;",
        ),
        (
            "int x, y[2], z; p = &x; p = y; z = y[1];",
            "var &x: i32; var &y: i32[2]; var z: i32; p = &x; p = &y[i64(0)]; z = y[i64(1)];",
        ),
        (
            "p = (int[]){ 1, 2 }; i = ((struct node){ 7 }).value;",
            "p = &literal {[0] = 1, [1] = 2}[i64(0)]; i = literal {.0 = 7}.value;",
        ),
        ("i = ({ int t = i; t + 1; }) + 1;", "i = (({ var t: i32 = i; (t Add 1) }) Add 1);"),
    ] {
        check(statements, expected);
    }
    assert_eq!(body("struct s { int a; } g(void);", "int x = g().a;"), "var x: i32 = value g!().a;");
}

#[test]
fn generic_functions_follow_their_pointer() {
    for (statements, expected) in [
        ("ai = 1; ai++; i = ai;", "ai = 1; old ai Add= 1 in i32; i = ai;"),
        ("i = atomic_load(&ai);", "i = atomic_load!(&ai);"),
        (
            "atomic_store_explicit(&anp, 0, memory_order_release);",
            "atomic_store_explicit!(&anp, node*(0), 3);",
        ),
        (
            "b = atomic_compare_exchange_strong(&anp, &np, &n);",
            "b = atomic_compare_exchange_strong!(&anp, &np, &n);",
        ),
        ("u = atomic_fetch_add_explicit(&ai, l, 0);", "u = u32(atomic_fetch_add_explicit!(&ai, i32(l), 0));"),
        ("__atomic_store_n(&c, i, __ATOMIC_SEQ_CST);", "__atomic_store_n!(&c, u8(i), 5);"),
        (
            "i = __sync_bool_compare_and_swap(&c, 0, 1);",
            "i = i32(__sync_bool_compare_and_swap!(&c, u8(0), u8(1)));",
        ),
        ("i = READ_ONCE(l); WRITE_ONCE(c, i);", "i = i32(l); c = u8(i);"),
        (
            "smp_mb(); ul = xchg(&l, i); i = cmpxchg(&c, 1, 2);",
            "smp_mb!(); ul = u64(xchg!(&l, i64(i))); i = i32(cmpxchg!(&c, u8(1), u8(2)));",
        ),
        ("if (__builtin_expect(!!p, 1)) i = likely(i > 1);", "if (i64(!!p)) i = i32(bool((i Greater 1)));"),
        (
            "i = __builtin_constant_p(3) + __builtin_constant_p(i); i = __builtin_choose_expr(1, l, p);",
            "i = 1; i = i32(l);",
        ),
        ("i = _Generic(l, int: 1, long: 2, default: 3) + _Generic(p, int *: 10, default: 20);", "i = 12;"),
        (
            "i = __builtin_types_compatible_p(int, signed) + __builtin_types_compatible_p(int *, long *);",
            "i = 1;",
        ),
        (
            "typeof(l) t = i; __auto_type q = &n; typeof(*q) m; typeof(a) d;",
            "var t: i64 = i64(i); var q: node* = &n; var m: node; var d: i32[4];",
        ),
        (
            "pthread_t t; pthread_create(&t, 0, (void *(*)(void *))f, &i);",
            "var &t: u64; pthread_create!(&t, pthread_attr_t*(0), void*(void*)*(extern f), void*(&i));",
        ),
        ("unknown(c, p);", "unknown!(i32(c), p);"),
        ("if (__builtin_add_overflow(i, l, &c)) ;", "if (__builtin_add_overflow!(i, l, &c)) ;"),
        (
            "__VERIFIER_assume(__VERIFIER_nondet_int() > 0);",
            "__VERIFIER_assume!((__VERIFIER_nondet_int!() Greater 0));",
        ),
        (
            "asm volatile(\"lock; xaddl %0, %1\" : \"+r\"(i), \"+m\"(u) : \"m\"(l), \"r\"(c));",
            "asm(\"lock; xaddl %0, %1\": +r i, +m u: m l, r c);",
        ),
    ] {
        check(statements, expected);
    }
}

#[test]
fn statements_keep_their_shape() {
    for (statements, expected) in [
        (
            "for (int k = 0, m = 1; k < m; k++) { if (k) continue; break; }",
            "for (var k: i32 = 0; var m: i32 = 1; (k Less m); old k Add= 1 in i32) { if (k) continue; break; }",
        ),
        (
            "switch (c) { case 'a': case 1 ... 5: i = 1; default: ; }",
            "switch (i32(c)) { case 97: case 1 ... 5: i = 1; default: ; }",
        ),
        (
            "again: if (i) goto again; else goto end; end: ;",
            "again: if (i) goto again; else goto end; end: ;",
        ),
        (
            "do i--; while (i); while (p) ; return;",
            "do old i Subtract= 1 in i32; while (i); while (p) ; return;",
        ),
        (
            "{ int i = 1; { long i = 2; l = i; } u = i; } l = i;",
            "{ var i: i32 = 1; { var i: i64 = i64(2); l = i; } u = u32(i); } l = i64(i);",
        ),
        (
            "enum { A, B = 5, C }; i = A + B + C; int x[C] = { [B] = 1 };",
            "; i = 11; var x: i32[6] = {[5] = 1};".trim_start_matches("; "),
        ),
        ("static int s = 3; s++; extern int i; i = 1;", "old test.s Add= 1 in i32; i = 1;"),
        ("const int size = 3; int x[size]; x[0] = 1;", "var size: i32 = 3; var x: i32[3]; x[i64(0)] = 1;"),
    ] {
        check(statements, expected);
    }
}

#[test]
fn parameters_of_main_count_if_they_are_used() {
    for (body, count) in [("", 0), ("(void)argc; (void)argv;", 0), ("return argc;", 2), ("(void)argv[0];", 2)]
    {
        let unit = unit(&format!("int main(int argc, char **argv) {{ {body} }}"));
        assert_eq!(unit.functions[0].parameters.len(), count, "{body}");
    }
}

#[test]
fn initial_values() {
    for (text, expected) in [
        ("int a[] = { 1, 2, [5] = 3, 4 };", "a: i32[7] = {[0] = 1, [1] = 2, [5] = 3, [6] = 4}"),
        ("int a[2][2] = { 1, 2, { 3 } };", "a: i32[2][2] = {[0][0] = 1, [0][1] = 2, [1][0] = 3}"),
        ("int a[4] = { [1 ... 2] = 7, 8 };", "a: i32[4] = {[1] = 7, [2] = 7, [3] = 8}"),
        (
            "char s[] = \"ab\", t[2] = \"ab\", u[] = { \"c\" };",
            "s: i8[3] = {[0] = i8(97), [1] = i8(98)}\nt: i8[2] = {[0] = i8(97), [1] = i8(98)}\nu: i8[2] = {[0] = i8(99)}",
        ),
        (
            "struct p { int x, y; }; struct l { struct p a[2]; int z; } l = { .a[1].y = 1, 2, .a = { { 3 } } };",
            "l: l = {.0[1].1 = 1, .1 = 2, .0[0].0 = 3}",
        ),
        (
            "struct s { int a; union { int b; long c; }; int d; } s = { 1, 2, 3 }, t = { .c = 4, 5 };",
            "s: s = {.0 = 1, .1.0 = 2, .2 = 3}\nt: s = {.1.1 = i64(4), .2 = 5}",
        ),
        (
            "int x, *p = &x, *q[] = { &x, 0 }; void f(void) {} void (*g)(void) = f;",
            "x: i32\np: i32* = &x\nq: i32*[2] = {[0] = &x, [1] = i32*(0)}\ng: void()* = f",
        ),
        (
            "int x = { 3 }; int y[3] = {}; int z[2] = { 0 };",
            "x: i32 = 3\ny: i32[3] = {}\nz: i32[2] = {[0] = 0}",
        ),
        (
            "extern int a[]; int f(void) { return a[1]; } int a[3]; extern int never; int x; int x = 1; int x;",
            "a: i32[3]\nx: i32 = 1",
        ),
        (
            "_Thread_local int t = 1; static __thread int w; int one[];",
            "thread t: i32 = 1\nthread w: i32\none: i32[1]",
        ),
        (
            "struct q { int n; }; struct q a[] = { [0] = { 1 }, { 2 } }, b[2] = { 1, 2 };",
            "a: q[2] = {[0].0 = 1, [1].0 = 2}\nb: q[2] = {[0].0 = 1, [1].0 = 2}",
        ),
        ("struct e { int v; } one = (struct e){ 1 };", "one: e = {.0 = 1}"),
        ("static const int N = 4; int a[N]; int b = N;", "N: i32 = 4\na: i32[4]\nb: i32 = 4"),
        ("double d; struct w { float f; int i; } w = { .i = 1 };", "d: f64\nw: w = {.1 = 1}"),
    ] {
        assert_eq!(globals(text), expected, "{text}");
    }
}

#[test]
fn errors_have_places_and_advice() {
    for (text, place, message, help) in [
        (
            "int counter; void f(void) { couner = 1; }",
            28,
            "`couner` is not declared",
            "did you mean `counter`?",
        ),
        ("void f(void) { int *p = NULL; }", 24, "`NULL` is not declared", "#include <stddef.h>"),
        ("void f(int a) {} void g(void) { f(); }", 32, "1 argument wanted, 0 given", "declaration"),
        (
            "struct s { int value; } x; int y = sizeof x.valeu;",
            44,
            "no member `valeu`",
            "did you mean `value`?",
        ),
        ("struct s { int v; } *x; int f(void) { return x.v; }", 47, "no member `v`", "->v"),
        ("struct s; struct s x;", 19, "members of `s` are not known", "define it"),
        ("struct s { struct s inner; };", 20, "members of `s` are not known", "pointer"),
        ("int x = 1; int x = 2;", 15, "initial value twice", "leave one"),
        ("int x; long x;", 12, "`long`, before as `int`", "one type"),
        ("int f(void); long f(void) { return 1; }", 4, "another type", "agree"),
        ("int f(void) { return 1; } int f(void) { return 2; }", 30, "defined twice", "another name"),
        ("void f(void) { int a; long a; }", 27, "declared twice", "another name"),
        ("int a[-1];", 6, "is -1", "negative"),
        ("int a[1 << 30][1 << 30]; int f(void) { return a[0][0]; }", 4, "2^40", "smaller"),
        ("int x; int y = x;", 15, "not known before", "`main`"),
        ("double d; void f(void) { d = d + 1; }", 29, "floating", "integers"),
        ("float f(int x) { return x; }", 24, "floating", "integers"),
        ("void f(void) { goto out; }", 20, "no label `out`", "goto"),
        ("void f(void) { a: ; a: ; }", 20, "defined twice", "another name"),
        ("void f(void) { break; }", 15, "`break` outside", ""),
        ("void f(int x) { switch (x) { case 1: case 0 ... 3: ; } }", 42, "two cases", "leave one"),
        ("void f(void) { 1 = 2; }", 15, "lvalue", "variable"),
        ("void f(void) { int a[2]; a = 0; }", 25, "cannot be assigned", "memcpy"),
        ("int f(int x) { return *x; }", 23, "no pointer", "pointer"),
        ("int f(int x) { return x(1); }", 22, "no function", "functions"),
        ("void f(void) {} int g(void) { return f(); }", 37, "no value", "void"),
        ("struct s { int a; } x; int f(void) { return x; }", 44, "a result of type `int`", "member"),
        (
            "struct s { int b : 3; } x; int *f(void) { return &x.b; }",
            49,
            "bit-field has no address",
            "member",
        ),
        ("int a[2] = { 1, 2, 3 };", 19, "more values", "longer"),
        ("int a[2] = { [2] = 1 };", 14, "no element 2", "2 elements"),
        ("extern int x; int f(void) { return x; }", 35, "defined nowhere", "define it"),
        ("_Static_assert(sizeof(int) == 8, \"wide\");", 15, "static assertion failed: wide", "x86-64"),
        ("void f(int n, ...) { va_start(n, n); }", 21, "arguments without a type", "each number"),
        ("void f(int *p) { __sync_fetch_and_add(&p, 1); }", 42, "`int *`", "uintptr_t"),
        ("void f(int x) { __atomic_load_n(x, 0); }", 32, "expects a pointer", "`&`"),
        ("void f(void) { longjmp(0, 1); }", 15, "jumps out of functions", "return"),
        (
            "int f(void) { int x = 1; int x2 = _Generic(x, long: 1); return x2; }",
            34,
            "no choice fits `int`",
            "default",
        ),
    ] {
        let found = read(text).expect_err(text).remove(0);
        assert!(found.message.contains(message), "{text}: {}", found.message);
        assert!(found.help.as_deref().unwrap_or_default().contains(help), "{text}: {:?}", found.help);
        assert_eq!(found.span.start, place, "{text}: {}", found.message);
    }
    // One run reports several errors.
    let found =
        read("void f(void) { a = 1; b = 2; } int g(void) { return c; } int d = e;").expect_err("four");
    assert_eq!(found.len(), 4, "{found:?}");
}

/// An unsupported construct is an error of the function or variable that contains it; text that no compiler accepts is refused at once.
#[test]
fn only_what_is_reached_is_judged() {
    let typed = |text: &str| {
        let mut files = Texts { headers: HEADERS.into_iter().collect(), ..Texts::main(text) };
        let preprocessed = preprocess(&mut files, &[], &|| false)?;
        typed(&preprocessed, &parse(&preprocessed)?)
    };
    for (text, kept) in [
        ("double d; void f(void) { d = d + 1; }", 1),
        ("double d; void f(void) { int n = d * 2, m = 1; m = n; for (int i = d + 1; i; ) { } }", 2),
        ("double d; int n = d; int f(void) { return n; }", 1),
        ("extern int x; int f(void) { return x; }", 1),
        (
            "double d; struct s { int a[(int)(d + 1)]; }; struct s x; int f(void) { return sizeof(struct s) + x.a[0]; }",
            2,
        ),
        ("double d; typedef typeof(d + 1) t; int f(int d) { t x; return d; }", 1),
        ("int f(void) { return CONSTANT_OF_A_HEADER; }", 1),
    ] {
        let unit = typed(text).unwrap_or_else(|errors| panic!("{text}\n{errors:#?}"));
        assert_eq!(unit.errors().count(), kept, "{text}: {:#?}", unit.errors().collect::<Vec<_>>());
        assert!(unit.functions.iter().all(|f| f.errors.is_empty() || f.body.statements.is_empty()), "{text}");
    }
    for text in ["#pragma GCC diagnostic push\nint x;", "int x __attribute__((unused, section(\"s\")));"] {
        assert!(typed(text).is_ok(), "{text}");
    }
    for text in [
        "void f(void) { a = 1; }",
        "void f(void) { break; }",
        "void f(void) { goto out; }",
        "void f(void) { int a; int a; }",
        "int x = 1; int x = 2;",
        "struct s { struct s inner; };",
        "_Static_assert(sizeof(int) == 8, \"wide\");",
        // These change what the program does without being mentioned again.
        "__attribute__((constructor)) void f(void) { }",
        "int x; static int y __attribute__((weakref(\"x\")));",
        "int x; int __attribute__((__alias__(\"x\"))) y;",
        "__attribute__((__destructor__(101))) static void f(void) { }",
        "void f(void) { __attribute__((cleanup(g))) int x = 1; }",
        "#pragma pack(push, 1)\nstruct s { char a; int b; };",
        "_Pragma(\"pack(1)\") struct s { char a; int b; };",
        "#pragma push_macro(\"X\")\nint x;",
    ] {
        assert!(typed(text).is_err(), "{text}");
    }
}

#[test]
fn what_gcc_warns_about_is_no_error() {
    for (text, warning) in [
        ("typedef int wide __attribute__((aligned(64)));", "the alignment of the type `wide` is ignored"),
        ("typedef long __attribute__((aligned(2))) narrow;", "the alignment of the type `narrow` is ignored"),
        ("int *p; void f(void) { p = 5; }", "from an integer without a cast"),
        ("int *p; long f(void) { return p; }", "without a cast"),
        ("int *p; char *q; void f(void) { p = q; }", "from a pointer of type `char *`"),
        ("int f(void) { return; }", "without a value"),
        ("void f(void) { return 1; }", "`void` function"),
        ("void f(void) { g(); } void g(void) {}", "before it is declared"),
        ("void f(void) { atomic_laod(1); }", "did you mean `atomic_load`?"),
    ] {
        let unit = unit(text);
        assert!(unit.warnings.iter().any(|odd| odd.message.contains(warning)), "{text}: {:?}", unit.warnings);
    }
    let unit = unit("char *s; unsigned char *t; const int *q; int *p; void f(void) { t = s; p = q; p = 0; }");
    assert!(unit.warnings.is_empty(), "{:?}", unit.warnings);
}

#[test]
fn model_headers_are_typed() {
    let mut all = String::new();
    for (name, _) in HEADERS {
        all += &format!("#include <{name}>\n");
        for times in 1..=2 {
            let unit = unit(&format!("#include <{name}>\n").repeat(times));
            assert!(unit.warnings.is_empty(), "{name}: {:?}", unit.warnings);
        }
    }
    let unit = unit(&all);
    assert!(unit.warnings.is_empty(), "{:?}", unit.warnings);
}

impl Random {
    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

/// A random structure or union, and the members that have an offset.
fn structure(random: &mut Random, number: usize) -> (String, Vec<String>) {
    let kind = random.one(&["struct", "struct", "struct", "union"]);
    let (mut members, mut offsets) = (String::new(), Vec::new());
    for n in 0..1 + random.below(6) {
        let ty = random.one(&[
            "char", "_Bool", "short", "int", "unsigned", "long", "void *", "double", "float", "enum e",
        ]);
        let member = match random.below(9) {
            0 if number > 0 => format!("T{} m{n};", random.below(number)),
            1 => format!("{ty} m{n}[{}];", 1 + random.below(5)),
            2 => format!("struct {{ {ty} m{n}; char n{n}; }};"),
            3 | 4 => {
                let (ty, most) = [("char", 8), ("short", 16), ("unsigned", 32), ("long", 64), ("_Bool", 1)]
                    [random.below(5)];
                let (name, bits) = match random.below(5) {
                    0 => (String::new(), random.below(most + 1)),
                    _ => (format!("m{n}"), 1 + random.below(most)),
                };
                members += &format!(" {ty} {name} : {bits};");
                continue;
            }
            5 => format!("_Atomic {} m{n};", random.one(&["int", "char", "long"])),
            6 => match random.below(4) {
                0 => format!("_Alignas(64) {ty} m{n};"),
                1 => format!("{ty} m{n} __attribute__((packed));"),
                2 => format!("{ty} m{n} __attribute__((aligned(8), unused));"),
                _ => format!("_Alignas(long) {ty} m{n};"),
            },
            _ => format!("{ty} m{n};"),
        };
        members += &format!(" {member}");
        offsets.push(format!("m{n}"));
    }
    let attributes = random.one(&[
        "",
        "",
        "",
        "__attribute__((packed))",
        "__attribute__((aligned(16)))",
        "__attribute__((aligned, __packed__))",
    ]);
    (format!("typedef {kind} {{{members} int last; }} {attributes} T{number};\n"), offsets)
}

/// A random constant expression.
fn constant(random: &mut Random, depth: usize) -> String {
    if depth == 0 || random.below(5) == 0 {
        let literals = [
            "0",
            "1",
            "7",
            "'a'",
            "-3",
            "2147483647",
            "0xffffffff",
            "5u",
            "12345678901",
            "1ul",
            "A",
            "B",
            "sizeof(int)",
            "sizeof(T3)",
        ];
        return random.one(&literals).into();
    }
    let a = constant(random, depth - 1);
    let b = constant(random, depth - 1);
    let types = ["char", "unsigned char", "short", "unsigned", "long", "unsigned long", "_Bool", "enum e"];
    match random.below(8) {
        0 => format!("({})({a})", random.one(&types)),
        1 => format!("({a} ? {b} : {})", constant(random, depth - 1)),
        2 => format!("{}({a})", random.one(&["-", "~", "!", "+"])),
        3 => format!("sizeof({a} + {b})"),
        _ => {
            let operators = [
                "+", "-", "*", "/", "%", "<<", ">>", "<", ">", "<=", ">=", "==", "!=", "&", "|", "^", "&&",
                "||",
            ];
            format!("({a} {} {b})", random.one(&operators))
        }
    }
}

#[test]
fn layouts_and_constants_against_gcc() {
    let mut random = Random(0x5eed_1234_5678);
    let mut types = String::from("#include <stddef.h>\nenum e { A = -5, B = 70000 };\n");
    let mut values = Vec::new();
    for number in 0..150 {
        let (text, members) = structure(&mut random, number);
        types += &text;
        values.extend([format!("sizeof(T{number})"), format!("_Alignof(T{number})")]);
        values.extend(members.iter().map(|member| format!("offsetof(T{number}, {member})")));
    }
    // An overflow or a division by zero is not a constant for us, so there is nothing to compare.
    let is_constant = |text: &String| read(&format!("{types} long x = {text};")).is_ok();
    let candidates: Vec<String> = (0..300).map(|_| constant(&mut random, 3)).collect();
    let accepted: Vec<String> = candidates.into_iter().filter(is_constant).collect();
    assert!(accepted.len() > 100, "{}", accepted.len());
    values.extend(accepted);
    let text = format!("{types} long values[] = {{ {} }};\n", values.join(",\n"));
    let unit = unit(&text);
    let initial = unit.globals[0].initial.as_ref().expect("values");
    let ours: Vec<i128> = initial
        .parts
        .iter()
        .map(|(_, value)| match value.kind {
            ExprKind::Constant(value) => value,
            _ => panic!("all are constants"),
        })
        .collect();
    let print = "#include <stdio.h>\nint main(void) { for (int i = 0; i < sizeof values / sizeof *values; i++) printf(\"%ld\\n\", values[i]); }\n";
    let Some(output) = crate::common::run_with_gcc("typed", &format!("{text}{print}")) else { return };
    let theirs: Vec<i128> = output.lines().map(|line| line.parse().expect("a number")).collect();
    assert_eq!(ours.len(), theirs.len());
    for ((ours, theirs), value) in ours.iter().zip(&theirs).zip(&values) {
        assert_eq!(ours, theirs, "{value}\n{types}");
    }
}

#[test]
fn hostile_texts_are_refused_or_typed() {
    let many = 20_000;
    let chain = |n: usize, make: &dyn Fn(usize) -> String| (0..n).map(make).collect::<String>();
    for text in [
        format!("int x = {};", "(1".to_string() + &"+ 1) ".repeat(3)),
        // Nested structures whose size doubles at each level.
        format!("struct s0 {{ int a; }}; {} struct s{many} x;", chain(many, &|n| format!("struct s{} {{ struct s{n} a; }};", n + 1))),
        format!("struct s0 {{ int a; }}; {} struct s60 x;", chain(60, &|n| format!("struct s{} {{ struct s{n} a, b; }};", n + 1))),
        // Types that grow with every name.
        format!("int x0; {}", chain(many, &|n| format!("typeof(&x{n}) x{};", n + 1))),
        format!("typedef void f0(void); {} f90 *x;", chain(90, &|n| format!("typedef void f{}(f{n} *, f{n} *);", n + 1))),
        format!("void f(void) {{ int x0; {} }}", chain(many, &|n| format!("__auto_type x{} = &x{n};", n + 1))),
        // Deep trees.
        format!("int x = {}1{};", "(1 + ".repeat(200), ")".repeat(200)),
        format!("int x = 1{};", " + (1 + 1)".repeat(249)),
        format!("int x = {}1{};", "(".repeat(100), format!("{})", " + 1".repeat(200)).repeat(100)),
        format!("void f(int x) {{ {} ; }}", "if (x) { ".repeat(100) + &"x = x + (x ? x : (x, x));".repeat(10) + &"}".repeat(100)),
        // Large initial values.
        "int a[1 << 30] = { [0 ... (1 << 30) - 1] = 1 };".into(),
        "int a[] = { [1 << 30] = 1 };".into(),
        "char a[] = { [(1ul << 63)] = 1 };".into(),
        "int a[1000][1000] = { [0 ... 999] = { [0 ... 999] = 1 } };".into(),
        // Recursive definitions of various kinds.
        "struct a { struct b { struct a x; } y; } z;".into(),
        "int x = sizeof(x[x]); typeof(y) y; enum { A = A }; int a[sizeof(a)];".into(),
        "struct s { int a[sizeof(struct s)]; } x;".into(),
        "int f(int f(int f(int f))) { return f(f); }".into(),
        "void f(void) { f(f(f)); f = f; &f = 0; (*f)(); (**f)(); f->x; f.x; f[1]; f++; -f; !f; }".into(),
        "void f(void) { case 1: default: continue; ({ ({}); }); ({}) + 1; ({ int x; x; }).y; }".into(),
        "int a[0], b[0][0]; struct {} e; union {} u; struct { int : 0; } z; int x = sizeof e + sizeof a;".into(),
        "enum e { A = 9223372036854775807, B }; enum { C = 18446744073709551615u, D };".into(),
        "int x = (1 ? 0 : (1 / 0)) + __builtin_offsetof(struct { int a[3]; }, a[1ul << 62]);".into(),
        "void f(void) { __builtin_expect(); READ_ONCE(1); WRITE_ONCE(f, 2); atomic_load(f); xchg(\"a\", 1); smp_store_mb(1, 2); }".into(),
        "struct s { int b : 33, c : -1, : 0, d : 0; long e : 65; } x;".into(),
        "int a[3] = { .x = 1 }; struct { int x; } s = { [0] = 1, .y = 2 }; int i = { { { 1 } } }, j = {}, k = { 1, 2 };".into(),
        "char s[2] = \"abc\"; int t[] = \"abc\"; char u[2][2] = { \"ab\", { \"c\" } };".into(),
        "void v; void f(void x); void g(void) { void v; *(void *)0; (void)*(void *)0; void *p = &*(void *)0; }".into(),
    ] {
        let short: String = text.chars().take(80).collect();
        let started = std::time::Instant::now();
        let _ = read(&text);
        assert!(started.elapsed().as_secs() < 60, "{short}");
    }
    // A long program is not hostile.
    let long = chain(many, &|n| {
        format!(
            "int g{n}; int f{n}(int a) {{ int b = a + g{n}; return b * {n} + f{}(b); }}\n",
            n.saturating_sub(1)
        )
    });
    assert_eq!(unit(&long).functions.len(), many);
}

/// The sizes are those of gcc.
#[test]
fn attributes_of_enumerations_and_type_names() {
    unit(
        "enum e { A, B = 255 } __attribute__((packed)); enum __attribute__((packed)) f { C = -1, D };
        enum g { E = 256 } __attribute__((__packed__)); enum h { F = -1, G = 128 } __attribute__((packed));
        enum i { H = 1 << 20 } __attribute__((packed)); enum j { I }; struct s { char c; enum e e; enum g g; } s;
        _Static_assert(sizeof(enum e) == 1 && sizeof(enum f) == 1 && sizeof(enum g) == 2, \"\");
        _Static_assert(sizeof(enum h) == 2 && sizeof(enum i) == 4 && sizeof(enum j) == 4, \"\");
        _Static_assert((enum e)300 == 44 && (enum f)200 < 0 && sizeof(struct s) == 4 && sizeof(A) == 4, \"\");",
    );
    // An alignment that the type has anyway is no reason for a warning.
    let unit = unit(
        "typedef int usual __attribute__((aligned(4))); typedef struct { int x; } __attribute__((aligned(64))) s;",
    );
    assert!(unit.warnings.is_empty(), "{:?}", unit.warnings);
}
