//! Several source files as one program: which names they share, and what has to agree.

use std::collections::BTreeMap;

use fencewright_executions::oracle;
use fencewright_lang::load::Failure;
use fencewright_lang::options::{Compilation, MacroOption};
use fencewright_lang::{COptions, Loaded, Loader, Options, Stop};
use fencewright_program::MemoryModel;

fn options() -> Options {
    Options { c: COptions { also: vec!["b.c".into()], ..COptions::default() }, ..Options::default() }
}

fn read_with(options: &Options, files: &[(&str, &str)]) -> Result<Loaded, String> {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    let open = |name: &str| {
        files.get(name).map(|text| text.as_bytes().to_vec()).ok_or_else(|| "no such file".to_owned())
    };
    let loader = Loader { front_end: None, options, stop: &Stop::never(), open: &open };
    loader.load("a.c", files["a.c"].as_bytes()).map_err(|failure| match failure {
        Failure::Wrong(error) => error.sources.render(&error.diagnostics, false),
        Failure::Stopped(_) => unreachable!("nobody asks to stop"),
    })
}

/// Checks whether the assertions of a program hold under SC.
#[track_caller]
fn holds_with(options: &Options, files: &[(&str, &str)], expected: bool) {
    let loaded = read_with(options, files).unwrap_or_else(|error| panic!("{error}"));
    let reachable = oracle::explore(&loaded.program, MemoryModel::Sc, 100_000, &mut || false);
    let property = loaded.program.properties.iter().find(|property| property.name == "assertions");
    let holds = reachable.expect("it is small").satisfies(
        &loaded.program,
        MemoryModel::Sc,
        property.expect("C programs have it"),
    );
    assert_eq!(holds, Some(expected), "{files:?}");
}

const ASSERT: &str = "#include <assert.h>\n";

/// Checks that the assertions of the program made of these two files hold.
#[track_caller]
fn holds(a: &str, b: &str, headers: &[(&str, &str)]) {
    let (a, b) = (format!("{ASSERT}{a}"), format!("{ASSERT}{b}"));
    let files: Vec<_> =
        [("a.c", a.as_str()), ("b.c", b.as_str())].into_iter().chain(headers.iter().copied()).collect();
    holds_with(&options(), &files, true);
}

#[track_caller]
fn refused(a: &str, b: &str, headers: &[(&str, &str)], expected: &[&str]) {
    let files: Vec<_> = [("a.c", a), ("b.c", b)].into_iter().chain(headers.iter().copied()).collect();
    match read_with(&options(), &files) {
        Ok(_) => panic!("this is understood: {files:?}"),
        Err(error) => expected.iter().for_each(|part| assert!(error.contains(part), "{files:?}\n{error}")),
    }
}

#[test]
fn external_names_are_shared() {
    holds(
        "int n; int twice(int); extern int limit; int main(void) { n = 2; assert(twice(n) == 4 && n == 3 && limit == 7); return 0; }",
        "extern int n; int limit = 7; int twice(int x) { n = 3; return 2 * x; }",
        &[],
    );
    // A variable may be declared after the file that defines it, and an array without its length.
    holds(
        "int a[3] = {1, 2, 3}; int sum(void); int main(void) { assert(sum() == 6); return 0; }",
        "extern int a[]; int sum(void) { return a[0] + a[1] + a[2]; }",
        &[],
    );
    holds(
        "extern int a[]; extern int (*chosen)(int); int main(void) { assert(a[2] == 3 && chosen(1) == 2); return 0; }",
        "int a[3] = {1, 2, 3}; static int next(int n) { return n + 1; } int (*chosen)(int) = next;",
        &[],
    );
}

#[test]
fn static_names_types_and_macros_are_not() {
    holds(
        "#define N 1\ntypedef int T; static int n = 1; enum { E = 1 }; static int get(void) { return n; }
         int other(void); int main(void) { n = 5; assert(get() == 5 && other() == 2 && n == 5 && E == 1 && N == 1); return 0; }",
        "#ifdef N\n#error N is a macro of a.c\n#endif\ntypedef struct { int x; } T; static T n = { 2 }; enum { E = 2 };
         static int get(void) { return n.x; } int other(void) { return E == 2 ? get() : 0; }",
        &[],
    );
    // A static function hides one of another file.
    holds(
        "int f(void) { return 1; } int g(void); int main(void) { assert(f() == 1 && g() == 2); return 0; }",
        "static int f(void) { return 2; } int g(void) { return f(); }",
        &[],
    );
    // Each file has its own instance of a static variable in a header.
    holds(
        "#include \"h.h\"\nint other(void); int main(void) { assert(count() == 1 && count() == 2 && other() == 1); return 0; }",
        "#include \"h.h\"\nint other(void) { return count(); }",
        &[("h.h", "static int n; static inline int count(void) { return ++n; }")],
    );
}

const LIST: &str =
    "#pragma once\nstruct node { int value; struct node *next; union { int a; unsigned b; }; };
    typedef struct { struct node *head; } list; extern list all; void push(struct node *); int sum(list *);";

#[test]
fn structures_of_headers_are_one_type() {
    holds(
        "#include \"list.h\"\nlist all; int main(void) { struct node one = { 1 }, two = { 2 }; push(&one); push(&two); assert(sum(&all) == 3 && one.a == 0); return 0; }",
        "#include \"list.h\"\nvoid push(struct node *n) { n->next = all.head; all.head = n; n->a = 0; }
         int sum(list *l) { int s = 0; for (struct node *n = l->head; n; n = n->next) s += n->value; return s; }",
        &[("list.h", LIST)],
    );
    // A structure that is defined in one file, and only declared in the other one.
    holds(
        "struct secret; struct secret *make(void); int show(struct secret *); int main(void) { assert(show(make()) == 4); return 0; }",
        "struct secret { int x; } s = { 4 }; struct secret *make(void) { return &s; } int show(struct secret *p) { return p->x; }",
        &[],
    );
}

#[test]
fn threads_and_model_headers_are_shared() {
    holds(
        "#include <pthread.h>\npthread_key_t one; void *worker(void *); extern pthread_mutex_t m; extern int n;
         int main(void) { pthread_key_create(&one, 0); pthread_t t; pthread_create(&t, 0, worker, 0); pthread_mutex_lock(&m); n++; pthread_mutex_unlock(&m);
         pthread_join(t, 0); assert(n == 2); return 0; }",
        "#include <pthread.h>\npthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; int n; extern pthread_key_t one; pthread_key_t two;
         void *worker(void *u) { pthread_key_create(&two, 0); assert(one != two); pthread_mutex_lock(&m); n++; pthread_mutex_unlock(&m); return 0; }",
        &[],
    );
}

#[test]
fn functions_of_model_headers_are_declared_in_every_file() {
    let a = "#include <linux/list.h>\nint other(struct list_head *); struct list_head h = { &h, &h }; int main(void) { return other(&h); }";
    let b = "#include <linux/list.h>\nint other(struct list_head *head) { return list_empty(head); }";
    let loaded = read_with(&options(), &[("a.c", a), ("b.c", b)]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(loaded.warnings, []);
}

#[test]
fn what_does_not_agree_is_shown_at_both_places() {
    let main = "int main(void) { return 0; }";
    let with = |text: &str| format!("{text} {main}");
    refused(&with("int n;"), "int n;", &[], &["`n` is defined in two source files", "a.c:1:5", "b.c:1:5"]);
    refused(&with("int n = 1;"), "int n = 2;", &[], &["`n` is defined in two source files"]);
    refused(
        &with("int f(void) { return 1; }"),
        "int f(void) { return 2; }",
        &[],
        &["`f` is defined twice", "a.c:1:5", "b.c:1:5"],
    );
    refused(
        &with("extern int n;"),
        "long n;",
        &[],
        &["`n` is declared as `long`, before as `int`", "a.c:1:12", "b.c:1:6"],
    );
    refused(
        &with("volatile int n;"),
        "extern int n;",
        &[],
        &["`n` is declared as `int`, before as `volatile int`", "a.c:1:14", "b.c:1:12"],
    );
    refused(&with("volatile int n[2];"), "extern int n[2];", &[], &["`n` is declared as"]);
    refused(
        &with("struct s { volatile int x; };"),
        "struct s { int x; };",
        &[],
        &["`s` has different members in two source files"],
    );
    refused(
        &with("int f(int);"),
        "int f(long x) { return 0; }",
        &[],
        &["function `f` is declared with another type", "a.c:1:5", "b.c:1:5"],
    );
    refused(
        &with("struct s { int x; };"),
        "struct s { long x; };",
        &[],
        &["`s` has different members in two source files", "a.c:1:1", "b.c:1:1"],
    );
    refused(
        &with("union u { int x; };"),
        "struct u { int x; };",
        &[],
        &["this tag was declared as something else"],
    );
    refused(main, "int main(void) { return 1; }", &[], &["`main` is defined twice"]);
    let list = "#include <linux/list.h>\n";
    let own = "struct list_head; int list_empty(const struct list_head *head) { return 7; }";
    refused(&format!("{list}{main}"), own, &[], &["`list_empty` is defined by the program, and `static`"]);
    refused(&with(own), list, &[], &["`list_empty` is defined by the program, and `static`"]);
    refused(
        "int f(void); int main(void) { return f(); }",
        "static int f(void) { return 0; }",
        &[],
        &["has no body"],
    );
    refused("extern int n; int main(void) { return n; }", "static int n;", &[], &["defined nowhere"]);
    refused(&with("int x"), "int y;", &[], &["a.c:1"]);
    let mut missing = options();
    missing.c.also = vec!["c.c".into()];
    let error = read_with(&missing, &[("a.c", main)]).expect_err("there is no c.c");
    assert!(error.contains("cannot read `c.c`: no such file"), "{error}");
}

#[test]
fn each_file_has_the_options_of_its_compilation() {
    let with = |macros: Vec<MacroOption>, folder: &str, include: &str| Compilation {
        macros,
        folders: vec![folder.into()],
        includes: vec![include.into()],
        ..Compilation::default()
    };
    let mut options = options();
    let define = MacroOption::Define("N".into(), Some("1".into()));
    let undefine = MacroOption::Undefine("__x86_64__".into());
    options.c.compilations.insert("a.c".into(), with(vec![define], "one", "first.h"));
    options.c.compilations.insert("b.c".into(), with(vec![undefine], "two", "first.h"));
    let a = "#include <assert.h>\n#include \"h.h\"\nint other(void);
        int main(void) { assert(N == 1 && H == 1 && FIRST == 1 && other() == 2); return 0; }";
    let b = "#include \"h.h\"\n#if defined N || defined __x86_64__\n#error these are options of a.c\n#endif\nint other(void) { return H * FIRST / 2; }";
    let files = [
        ("a.c", a),
        ("b.c", b),
        ("one/h.h", "#define H 1"),
        ("two/h.h", "#define H 2"),
        ("one/first.h", "#define FIRST 1"),
        ("two/first.h", "#define FIRST 2"),
    ];
    holds_with(&options, &files, true);
    let b = options.c.compilations.get_mut("b.c").expect("it was put there");
    b.overflow = Some("-fwrapv".into());
    let warned = read_with(&options, &files).expect("it is read").warnings;
    assert!(
        warned.iter().any(|warning| warning.message.contains("`b.c` is compiled with `-fwrapv`")),
        "{warned:?}"
    );
    options.c.compilations.get_mut("b.c").expect("it was put there").includes[0] = "none.h".into();
    let error = read_with(&options, &files).expect_err("there is no such file");
    assert!(error.contains("cannot include `none.h`"), "{error}");
}

#[test]
fn inline_functions_have_the_same_body_in_all_files() {
    let a = "#include \"h.h\"\nint other(void); int main(void) { return get() == other(); }";
    let b = "#include \"h.h\"\nint other(void) { return get(); }";
    let given = |one: &str, two: &str| (format!("{one}\n{a}"), format!("{two}\n{b}"));
    let differ = "`get` has different bodies in two source files";
    for (one, two, header, expected) in [
        ("#define N 1", "#define N 2", "inline int get(void) { return N; }", ["a.c:1:11", "b.c:1:11"]),
        ("#define N 1", "#define N 1 + 1", "inline int get(void) { return N; }", ["h.h:1:32", "b.c:1:13"]),
        (
            "#define N",
            "",
            "#ifdef N\ninline int get(void) { return 1; }\n#else\ninline int get(void) { return 2; }\n#endif",
            ["defined twice", "h.h:4:12"],
        ),
        (
            "enum { N = 1 };",
            "enum { N = 2 };",
            "inline int get(void) { return N; }",
            ["h.h:1:31", "`N` here"],
        ),
        (
            "typedef int T;",
            "typedef char T;",
            "inline int get(void) { return (T)300; }",
            ["h.h:1:32", "`T` here"],
        ),
        (
            "typedef int T;",
            "typedef char T;",
            "inline int get(void) { T n = 300; return n; }",
            ["h.h:1:24", "`T` here"],
        ),
        ("static int n;", "static int n;", "inline int get(void) { return n; }", ["h.h:1:31", "`n` here"]),
        (
            "static int f(void) { return 1; }",
            "int f(void);",
            "inline int get(void) { return f(); }",
            ["h.h:1:31", "`f` here"],
        ),
        (
            "enum e { A = -1 };",
            "enum e { A };",
            "inline int get(void) { return (enum e)-1 < 0; }",
            ["h.h:1:37", "`e` here"],
        ),
    ] {
        let (a, b) = given(one, two);
        let expected: Vec<&str> = expected
            .into_iter()
            .chain(["different bodies"].into_iter().filter(|_| expected[0] != "defined twice"))
            .collect();
        refused(&a, &b, &[("h.h", header)], &expected);
    }
    let (a, b) = given("#define N 1", "#define N 2");
    refused(&a, &b, &[("h.h", "inline int get(void) { return N; }")], &[differ, "`1` here", "`2` here"]);
    // Accepted: a function that is not called, equal bodies, and names with the same meaning in both files.
    let uncalled = "int main(void) { return 0; }";
    let header = "inline int get(void) { return N; }";
    let one = format!("#define N 1\n#include \"h.h\"\n{uncalled}");
    holds(&one, "#define N 2\n#include \"h.h\"\n", &[("h.h", header)]);
    let same = "struct s { int get; }; enum { N = 3 }; typedef unsigned T; extern int all; int twice(int);
        inline T get(struct s *s) { T get = s->get; return N * get + all + twice(get); }";
    holds(
        "static int t;\n#include \"h.h\"\nint all; int other(void); int main(void) { struct s x = { 2 }; assert(get(&x) == 10 && other() == 5); return t; }",
        "#include <stdio.h>\n#include \"h.h\"\nint twice(int n) { return 2 * n; } int other(void) { struct s x = { 1 }; return get(&x); }",
        &[("h.h", same)],
    );
}

#[test]
fn a_source_file_is_given_once() {
    let main = "int main(void) { return 0; }";
    let mut twice = options();
    twice.c.also = vec!["a.c".into()];
    let error = read_with(&twice, &[("a.c", main)]).expect_err("it is given twice");
    assert!(error.contains("the source file `a.c` is given twice"), "{error}");
    twice.c.also = vec!["b.c".into(), "b.c".into()];
    let error = read_with(&twice, &[("a.c", main), ("b.c", "")]).expect_err("it is given twice");
    assert!(error.contains("the source file `b.c` is given twice"), "{error}");
}
