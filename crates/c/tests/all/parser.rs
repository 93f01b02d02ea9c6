//! The parser: declarators, statements, errors and their positions, and hostile texts.

use crate::common::Texts;
use fencewright_c::Error;
use fencewright_c::ast::{Item, Statement, StatementKind, Type, TypeKind, Unit};
use fencewright_c::parser::parse;
use fencewright_c::preprocess::{Preprocessed, preprocess};

fn preprocessed(text: &str) -> Preprocessed {
    preprocess(&mut Texts::main(text), &[], &|| false).expect("no directives")
}

fn unit(text: &str) -> Unit {
    parse(&preprocessed(text)).unwrap_or_else(|errors| panic!("{text}\n{errors:?}"))
}

fn errors(text: &str) -> Vec<Error> {
    parse(&preprocessed(text)).expect_err(text)
}

/// A type in words.
fn words(ty: &Type) -> String {
    let qualifiers = [(ty.atomic, "atomic "), (ty.constant, "const "), (ty.volatile, "volatile ")];
    let said: String = qualifiers.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
    said + &match &ty.kind {
        TypeKind::Void => "void".into(),
        TypeKind::Bool => "bool".into(),
        TypeKind::Integer(integer) => {
            format!("{}{}", if integer.signed { "i" } else { "u" }, integer.bits())
        }
        TypeKind::Enumeration(_) => "enum".into(),
        TypeKind::Floating(_) => "floating".into(),
        TypeKind::Unsupported(what) => (*what).into(),
        TypeKind::Record(id) => format!("record {}", id.0),
        TypeKind::Pointer(to) => format!("pointer to {}", words(to)),
        TypeKind::Array(of, length) => {
            format!("{}array of {}", if length.is_some() { "" } else { "open " }, words(of))
        }
        TypeKind::Function(function) => {
            let parameters = function.parameters.iter().flatten().map(|p| words(&p.ty));
            let parameters: Vec<String> = parameters.collect();
            format!("function ({}) giving {}", parameters.join(", "), words(&function.result))
        }
        TypeKind::TypeOf(_) => "typeof".into(),
        TypeKind::Inferred => "inferred".into(),
    }
}

#[test]
fn declarators_are_read_from_the_name_outwards() {
    for (text, expected) in [
        ("int x;", "i32"),
        ("unsigned long long int x;", "u64"),
        ("short unsigned x;", "u16"),
        ("char *x[3];", "array of pointer to i8"),
        ("char (*x)[3];", "pointer to array of i8"),
        ("int (*x)(void *, char);", "pointer to function (pointer to void, i8) giving i32"),
        ("int (*x(int))(char);", "function (i32) giving pointer to function (i8) giving i32"),
        ("int (*x[2])(void);", "array of pointer to function () giving i32"),
        ("const int *volatile x;", "volatile pointer to const i32"),
        ("_Atomic(int *) x;", "atomic pointer to i32"),
        ("_Atomic int *x;", "pointer to atomic i32"),
        ("int *_Atomic x;", "atomic pointer to i32"),
        ("typedef struct s *link; link x;", "pointer to record 0"),
        ("typedef int t; t f(t t); t x[];", "open array of i32"),
        ("struct { int a; struct { int b; }; } x;", "record 0"),
        ("enum e { A, B = 3 } x;", "enum"),
        (
            "void x(int a[], int f(void));",
            "function (pointer to i32, pointer to function () giving i32) giving void",
        ),
        ("static _Thread_local int x __attribute__((aligned(64))) = 1;", "i32"),
        ("__typeof__(1 + 2) x;", "typeof"),
        ("int y, *x = &y;", "pointer to i32"),
    ] {
        let text = preprocessed(text);
        let unit = parse(&text).unwrap_or_else(|errors| panic!("{errors:?}"));
        let declared = unit.items.iter().filter_map(|item| match item {
            Item::Declaration(declaration) => Some(&declaration.declarators),
            Item::Function(_) => None,
        });
        let named =
            declared.flatten().find(|declarator| &**text.names.spelling(declarator.name.symbol) == "x");
        assert_eq!(words(&named.expect("x is declared").ty), expected);
    }
}

/// The statements of the only function.
fn statements(text: &str) -> Vec<Statement> {
    let mut unit = unit(&format!("typedef int T; void f(void) {{ {text} }}"));
    match unit.items.pop() {
        Some(Item::Function(function)) => function.body.statements,
        other => panic!("{other:?}"),
    }
}

#[test]
fn statements_and_expressions() {
    for text in [
        "T T = 3; T * 2;",
        "T * p; (T)(1); sizeof(T); sizeof (T){ 1 }; sizeof 1 + 2;",
        "for (int i = 0, n = 3; i < n; i++, n--) continue;",
        "for (;;) { break; }",
        "do x--; while (x); while (1) ; if (a) if (b) ; else ; else ;",
        "switch (x) { case 1: case 2 ... 5: y = 1; break; default: ; }",
        "again: x = y ? : z; goto again; end:",
        "asm volatile(\"lock; addl $0,0(%%rsp)\" ::: \"memory\", \"cc\"); __asm__(\"\" : \"=r\"(x) : [in] \"r\"(y));",
        "x = ({ int t = 1; t + 1; }); p->a.b[3](1, 2)++; *p++ = -~!+*&x;",
        "struct { int a, b; } s = { .a = 1, [0] = 2, b: 3 }; int a[] = { [0 ... 2] = 1, 2, };",
        "_Generic(x, int: 1, default: 2); __builtin_offsetof(struct s { int m[3]; }, m[1]);",
        "a = b = c += d <<= 1; x = a ? b : c ? d : e; (void)0, f(), g(1);",
        "\"one\" \" two\"; 'a'; L'b'; 0x1fUL;",
        "_Static_assert(1, \"fine\"); __label__ inner; inner: ;",
    ] {
        assert!(!statements(text).is_empty(), "{text}");
    }
    // A variable declaration hides the type name.
    assert!(matches!(statements("T T = 3; T * 2;")[1].kind, StatementKind::Expression(_)));
    assert!(matches!(statements("T * p;")[0].kind, StatementKind::Declaration(_)));
    let chain = "if (x) ; else ".repeat(5_000) + ";";
    assert!(
        matches!(&statements(&chain)[0].kind, StatementKind::If(branches, Some(_)) if branches.len() == 5_000)
    );
}

#[test]
fn errors_have_places() {
    for (text, wrong, place) in [
        ("int x", "expected `;`", 5),
        ("int f(void) { return }", "expected an expression, found `}`", 21),
        ("int f(void) { x = 1 y = 2; }", "expected `;`, found `y`", 20),
        ("int int long char x;", "no type", 0),
        ("foo bar;", "expected a declaration", 0),
        ("int f(void) { if (x { } }", "expected `)`", 20),
        ("int f(void) {", "never closed", 12),
        ("struct s { int a; }; struct s { int b; };", "twice", 21),
        ("int x = '';", "empty", 8),
    ] {
        let found = errors(text).remove(0);
        assert!(found.message.contains(wrong), "{text}: {}", found.message);
        assert_eq!(found.span.start, place, "{text}: {}", found.message);
    }
    // One run reports several errors.
    let found = errors("int f(void) { x = ; y = 1; z = ; } int g(void) { return }\nint h");
    assert_eq!(found.len(), 4, "{found:?}");
}

#[test]
fn constructs_without_a_meaning_are_parsed() {
    // The type checker reports them where an execution may reach them.
    for text in [
        "double x = 1.5e-3, y = .5f, z = 0x1.8p3, w = 1.f;",
        "int f(void) { goto *p; }",
        "void *f(void) { a: return &&a; }",
        "int f(void) { asm goto(\"jmp %l0\" : : : : out); out: return 0; }",
        "__int128 x; unsigned __int128 y; double _Complex z; _Float128 w; typedef int v __attribute__((vector_size(16)));",
        "int f(int n, ...) { __builtin_va_list l; return __builtin_va_arg(l, int *) != 0; }",
    ] {
        assert!(!unit(text).items.is_empty(), "{text}");
    }
    for text in ["int x = 1.5.5;", "int x = 1e;", "int x = 1.5z;", "int x = 0x1.8;"] {
        assert!(errors(text)[0].message.contains("number"), "{text}");
    }
    // Machine modes give other widths than the words.
    let modes = unit(
        "typedef int a __attribute__((mode(DI))); a x; typedef unsigned b __attribute__((__mode__(__QI__))); b y;",
    );
    let types: Vec<String> = modes
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Declaration(declaration) => Some(words(&declaration.declarators.first()?.ty)),
            Item::Function(_) => None,
        })
        .collect();
    assert_eq!(types, ["i64", "u8"]);
}

#[test]
fn hostile_texts_are_refused() {
    let many = 100_000;
    for text in [
        format!("int x = {}1{};", "(".repeat(many), ")".repeat(many)),
        format!("int x = {}1;", "- ".repeat(many)),
        format!("int x = 1{};", " + 1".repeat(many)),
        format!("int {}x;", "*".repeat(many) + "("),
        format!("int {}x;", "*".repeat(many)),
        format!("int x{};", "[1]".repeat(many)),
        format!("int x{};", "()".repeat(many)),
        format!(
            "typedef int *t0; {}",
            (0..many).map(|n| format!("typedef t{n} *t{};", n + 1)).collect::<String>() + "int x"
        ),
        format!("int {}x{};", "(".repeat(many), ")".repeat(many)),
        format!("void f(void) {}", "{".repeat(many)),
        format!("void f(void) {{ {} }}", "while (1) ".repeat(many)),
        format!("void f(void) {{ {} ; }}", "a: ".repeat(many)),
        format!("int x = a{};", "[0]".repeat(many)),
        format!("{} x;", "struct { ".repeat(many)),
        format!("int x[] = {};", "{".repeat(many)),
        format!("int x = {}a;", "a ? ".repeat(many)),
        format!("int x = {}a;", "a = ".repeat(many)),
        ";}".repeat(many),
        "\"".repeat(many),
    ] {
        assert!(!errors(&text).is_empty());
    }
    let long: String = (0..many).map(|n| format!("int f{n}(int a) {{ return a + {n}; }}\n")).collect();
    assert_eq!(unit(&long).items.len(), many);
}
