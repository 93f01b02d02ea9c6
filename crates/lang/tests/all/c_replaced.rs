//! Functions without a body, and the options that replace functions.

use fencewright_executions::oracle::explore;
use fencewright_lang::facts::Assumed;
use fencewright_lang::load::Failure;
use fencewright_lang::{COptions, Diagnostic, Loaded, Loader, Options, Stop};
use fencewright_program::MemoryModel;

/// A file given by `--stub`.
const STUB: &str = "#include \"types.h\"\nint helper(int a) { return a + 1; }\nint next(struct pair *p) { p->a = helper(p->a); return p->a; }";
const TYPES: &str = "#pragma once\nstruct pair { int a, b; };";

fn options(havoc: &[&str], skip: &[&str], stubs: &[&str]) -> Options {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let c = COptions { havoc: names(havoc), skip: names(skip), stubs: names(stubs), ..COptions::default() };
    Options { c, ..Options::default() }
}

fn read(text: &str, options: &Options) -> Result<Loaded, Vec<Diagnostic>> {
    let open = |name: &str| match name {
        "stub.c" => Ok(STUB.into()),
        "types.h" => Ok(TYPES.into()),
        _ => Err("no such file".to_owned()),
    };
    let stop = Stop::never();
    let loader = Loader { front_end: None, options, stop: &stop, open: &open };
    loader.load("test.c", text.as_bytes()).map_err(|failure| match failure {
        Failure::Wrong(error) => error.diagnostics,
        Failure::Stopped(_) => unreachable!("nothing stops it"),
    })
}

/// Whether all properties hold under TSO.
#[track_caller]
fn holds(text: &str, options: &Options) -> bool {
    let text = format!("#include <assert.h>\n#include <pthread.h>\n{text}");
    let program = read(&text, options).unwrap_or_else(|errors| panic!("{errors:?}: {text}")).program;
    let reachable = explore(&program, MemoryModel::Tso, 300_000, &mut || false).expect("it is small");
    let satisfied = |property| reachable.satisfies(&program, MemoryModel::Tso, property) == Some(true);
    program.properties.iter().all(satisfied)
}

#[test]
fn one_message_names_all_functions_without_a_body() {
    let text = "int one(int); void two(void); int *three(void);\nint main(void) { if (one(one(1))) two();\n three(); four(2); return 0; }";
    let errors = read(text, &Options::default()).expect_err("they have no bodies");
    let names: Vec<_> =
        errors.iter().map(|error| error.message.split('`').nth(1).unwrap_or_default()).collect();
    assert_eq!(names, ["one", "two", "three", "four"]);
    for (error, name) in errors.iter().zip(names) {
        let help = error.help.as_deref().unwrap_or_default();
        assert!(help.contains(&format!("--havoc {name}")) && help.contains("--stub"), "{help}");
        assert_eq!(&text[error.span.start as usize..][..name.len()], name);
    }
    let some = read(text, &options(&["one", "four"], &["two"], &[])).expect_err("one is left");
    assert_eq!(some.len(), 1);
    assert!(some[0].message.contains("`three`"));
}

#[test]
fn a_function_is_replaced_by_any_value_or_by_nothing() {
    let text = "unsigned char f(int *p); int n = 4;\nint main(void) { int r = f(&n); assert(n == 4); assert(CONDITION); return 0; }";
    let with = |condition: &str| text.replace("CONDITION", condition);
    assert!(holds(&with("r == r"), &options(&["f"], &[], &[])));
    assert!(!holds(&with("r == 0"), &options(&["f"], &[], &[])));
    assert!(!holds(&with("r != 17"), &options(&["f"], &[], &[])));
    assert!(holds(&with("r == 0"), &options(&[], &["f"], &[])));
}

#[test]
fn arguments_are_evaluated_all_the_same() {
    let text = "void log_event(int); int n;\nint main(void) { log_event(n++); assert(n == 1); return 0; }";
    assert!(holds(text, &options(&[], &["log_event"], &[])));
    assert!(holds(text, &options(&["log_event"], &[], &[])));
}

#[test]
fn functions_with_a_body_are_replaced_too() {
    let text = "_Bool f(void) { __asm__(\"cpuid\"); return 1; } void *t(void *a) { assert(0); return a; }
        _Bool (*volatile p)(void) = f;
        int main(void) { assert(f() == 0); assert(p() == 0); pthread_t id; pthread_create(&id, 0, t, 0); return 0; }";
    assert!(read(text, &Options::default()).is_err());
    assert!(holds(text, &options(&[], &["f", "t"], &[])));
    assert!(!holds(text, &options(&[], &["f"], &[])));
    assert!(!holds(text, &options(&["f"], &["t"], &[])));
}

#[test]
fn structures_and_pointers_are_returned() {
    let text = "struct s { _Bool a; unsigned char b[1]; }; struct s f(void); int *g(void);
        int main(void) { struct s s = f(); assert(s.a == 0 && s.b[0] == 0); assert(!g()); return 0; }";
    assert!(holds(text, &options(&[], &["f", "g"], &[])));
    assert!(!holds(text, &options(&["f"], &["g"], &[])));
    let errors = read(text, &options(&["g"], &["f"], &[])).expect_err("it returns a pointer");
    assert!(errors[0].message.contains("--havoc g"), "{errors:?}");
}

#[test]
fn a_stub_defines_what_the_program_declares() {
    let text = "#include \"types.h\"\nint next(struct pair *);\nstruct pair p = { 3, 4 };
        int main(void) { assert(next(&p) == 4); assert(p.a == 4); return 0; }";
    let stub = options(&[], &[], &["stub.c"]);
    assert!(holds(text, &stub));
    let loaded = read(text, &stub).expect("it has a body");
    let assumed: Vec<_> = loaded.facts.assumed.iter().map(|one| (one.function.as_str(), &one.what)).collect();
    assert_eq!(assumed, [("next", &Assumed::Stub("stub.c".into()))]);
    let errors = read(text, &options(&[], &[], &["nowhere.c"])).expect_err("there is no such file");
    assert!(errors[0].message.contains("nowhere.c"));
}

#[test]
fn what_was_assumed_is_told() {
    let text = "int f(void); void g(void); int main(void) { g(); return f() != f(); }";
    let loaded = read(text, &options(&["f", "h"], &["g"], &[])).expect("all are replaced");
    let said: Vec<String> = loaded.facts.assumed.iter().map(ToString::to_string).collect();
    let expected = [
        "every call of `g` does nothing and returns zero (--skip)",
        "every call of `f` returns any value and writes nothing (--havoc)",
    ];
    assert_eq!(said, expected);
    let unused: Vec<_> = loaded.warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(unused, ["--havoc h has no effect: no call of `h` is reached"]);
    let both = read(text, &options(&["f"], &["f", "g"], &[])).expect_err("which of them?");
    assert!(both[0].message.contains("`f`"));
}

#[test]
fn sizes_of_copies_may_be_computed() {
    let program = |copy: &str| {
        format!(
            "struct unit {{ unsigned long key; unsigned long count; }};
        struct unit from[3] = {{ {{ 1, 2 }}, {{ 3, 4 }}, {{ 5, 6 }} }}, to[3]; volatile _Bool n = 1;
        int memcpy_s(void *, unsigned long, const void *, unsigned long), memset_s(void *, unsigned long, int, unsigned long);
        int memmove_s(void *, unsigned long, const void *, unsigned long);
        int main(void) {{ _Bool some = n; unsigned long size = (1 + some) * sizeof *from; {copy} }}"
        )
    };
    let none = Options::default();
    let copied = "assert(to[0].key == 1 && to[1].count == 4);";
    assert!(holds(
        &program(&format!("memcpy_s(to, sizeof to, from, size); {copied} assert(to[2].key == 0);")),
        &none
    ));
    assert!(!holds(
        &program(&format!("memcpy_s(to, sizeof to, from, size); {copied} assert(to[2].key == 5);")),
        &none
    ));
    // Where a constraint does not hold, the destination is cleared, and the result is positive.
    for (call, cleared) in [
        ("memcpy_s(to, sizeof *to, from, size)", "to[0].key == 0 && to[1].key == 7"),
        ("memcpy_s(to, 2 * sizeof *to, 0, sizeof *to)", "to[0].key == 0 && to[1].key == 0 && to[2].key == 7"),
        ("memcpy_s(0, sizeof *to, from, sizeof *to)", "to[0].key == 7"),
        ("memcpy_s(to, 3 * sizeof *to, to + some, 2 * sizeof *to)", "to[0].key == 0 && to[2].key == 0"),
        ("memset_s(to, sizeof *to, 1, 2 * sizeof *to)", "to[0].key == 0x0101010101010101 && to[1].key == 7"),
    ] {
        let program = |asserted: &str| {
            program(&format!(
                "for (int i = 0; i < 3; i++) to[i].key = 7; int error = {call}; assert({asserted});"
            ))
        };
        assert!(holds(&program(&format!("error > 0 && {cleared}")), &none), "{call}");
        assert!(!holds(&program("error == 22"), &none), "{call}");
    }
    let moved = "to[1].key = 4; assert(memmove_s(to, sizeof to, to + 1, sizeof *to) == 0 && to[0].key == 4);";
    assert!(holds(&program(moved), &none));
    assert!(holds(
        &program("n = 0; some = n; memcpy_s(to, 0, from, some * sizeof *from); assert(to[0].key == 0);"),
        &none
    ));
}

#[test]
fn structures_are_found_through_numbers() {
    let program = |body: &str| {
        format!(
            "#include <stdint.h>\n#include <stddef.h>
        struct link {{ struct link *next; }}; struct node {{ int key; struct link link; }};
        #define node_of(p) ((struct node *)((uintptr_t)(p) - offsetof(struct node, link)))
        struct node one = {{ 1 }}, two = {{ 2 }}; struct link *volatile some = &one.link;
        int main(void) {{ struct link *p = some; {body} return 0; }}"
        )
    };
    let none = Options::default();
    assert!(holds(
        &program("assert(node_of(p)->key == 1); some = &two.link; p = some; assert(node_of(p)->key == 2);"),
        &none
    ));
    assert!(!holds(&program("some = &two.link; p = some; assert(node_of(p)->key == 1);"), &none));
    assert!(
        !holds(&program("some = 0; p = some; if (node_of(p)->key == 1) return 1;"), &none),
        "nothing is there"
    );
    assert!(holds(
        &program(
            "long n = 0; char *c = (char *)&one; struct node *q = (struct node *)(c + n++); assert(n == 1 && q == &one);"
        ),
        &none
    ));
}

#[test]
fn byte_arrays_are_memory_for_structures() {
    let program = |body: &str, more: &str| {
        format!("struct map {{ unsigned long bits; unsigned long words[]; }}; struct pair {{ int a, b; }};
        char memory[sizeof(struct map) + 2 * sizeof(unsigned long)]; static unsigned char pairs[20];
        struct map *volatile map; {more} int main(void) {{ map = (struct map *)memory; struct pair *pair = (struct pair *)pairs; int i = 2;
        {body} return 0; }}")
    };
    let none = Options::default();
    assert!(holds(
        &program("map->words[1] = 7; map->bits = 1; assert(map->words[0] == 0 && map->words[1] == 7);", ""),
        &none
    ));
    assert!(!holds(&program("map->words[2] = 7;", ""), &none), "two words fit");
    assert!(holds(&program("pair[1].b = 3; assert(pair->a == 0 && pair[1].b == 3);", ""), &none));
    assert!(!holds(&program("pair[i].a = 3;", ""), &none), "two pairs fit");
    assert!(!holds(&program("free(map);", "void free(void *);"), &none), "it was not allocated");
    // What `main` writes before it creates threads does not change how much fits.
    let thread = "void *run(void *u) { map->words[1] = 7; return 0; }";
    let body = "map->words[0] = 1; pthread_t t; pthread_create(&t, 0, run, 0); pthread_join(t, 0); assert(map->words[1] == 7);";
    assert!(holds(&program(body, thread), &none));
    let bytes = program("map->bits = 1; assert(memory[0] == 1);", "");
    let errors = read(&format!("#include <assert.h>\n{bytes}"), &none).expect_err("its bytes are read");
    assert!(errors[0].message.contains("the same memory is used as"), "{errors:?}");
}

#[test]
fn the_time_is_stored() {
    let printed = |argument: &str| {
        let text = format!(
            "#include <time.h>\n#include <assert.h>\ntime_t t = -1; int main(void) {{ time({argument}); assert(t == -1); return 0; }}"
        );
        fencewright_lang::fw::print(&read(&text, &Options::default()).expect("it is C").file)
    };
    assert_ne!(printed("&t"), printed("0"));
}

#[test]
fn functions_whose_address_is_taken_are_replaced() {
    let program = "signed char own(int n) { return 5; } signed char other(int n); void *run(void *); signed char (*table[])(int) = { own, other };
        int main(void) { signed char (*f)(int) = &other; int n = f(1); pthread_t t; pthread_create(&t, 0, run, 0); pthread_join(t, 0);
        int c = __VERIFIER_nondet_bool(); int m = table[c](2); assert(n == 0 && (m == 0 || m == 5)); return 0; }";
    assert!(holds(program, &options(&[], &["other", "run"], &[])));
    assert!(!holds(program, &options(&["other"], &["run"], &[])), "it returns anything");
    let text = format!("#include <assert.h>\n#include <pthread.h>\n{program}");
    let loaded = read(&text, &options(&["other"], &["run"], &[])).expect("all functions are known");
    assert_eq!(loaded.facts.assumed.len(), 2, "{:?}", loaded.facts.assumed);
    let errors = read(&text, &options(&[], &["run"], &[])).expect_err("one is not known");
    assert!(errors[0].help.as_deref().unwrap_or_default().contains("--skip other"), "{errors:?}");
}
