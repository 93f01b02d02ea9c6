//! Large files: loading takes linear time and memory, short files that expand to large programs are refused, and loading can be cancelled.

use std::cell::Cell;
use std::time::Duration;

use fencewright_lang::load::Failure;
use fencewright_lang::{Loaded, Loader, Options, Stop, load};
use fencewright_testing::measure::computed;

/// Number of items in each file. With this many, a quadratic algorithm takes half a minute or more, a linear one less than a second.
const MANY: usize = 80_000;
/// The limit on processor time, with room for slow machines.
const LONG: Duration = Duration::from_secs(20);

/// Concatenates `text` for each number.
fn each(text: impl Fn(usize) -> String) -> String {
    (0..MANY).map(text).collect()
}

#[track_caller]
fn loads(name: &str, text: &str) -> Loaded {
    let start = computed();
    let loaded = load(name, text.as_bytes(), None, &[]);
    let seconds = computed() - start;
    let loaded = loaded.unwrap_or_else(|error| panic!("{}", error.diagnostics[0].message));
    assert!(seconds < LONG, "{name}: {seconds:?}");
    loaded
}

/// The first error of a text; the error must be reported within the time limit.
#[track_caller]
fn error(text: &str) -> String {
    let start = computed();
    let error = load("a.fw", text.as_bytes(), None, &[]).expect_err("this is no program");
    let took = computed() - start;
    assert!(took < LONG, "{took:?}");
    assert!(error.diagnostics.len() <= 1_001, "{} errors", error.diagnostics.len());
    error.diagnostics[0].message.clone()
}

const THREAD: &str = "shared x; thread p { x = 1; }\n";

#[test]
fn declarations() {
    loads("consts.fw", &format!("{}{THREAD}", each(|n| format!("const c{n} = {n};\n"))));
    loads("chain.fw", &format!("const c = 0;\n{}{THREAD}", each(|n| format!("const c{n} = c + {n};\n"))));
    let family = "shared x; thread p[i in 0..250] { x = c1; }";
    loads("family.fw", &format!("{}{family}", each(|n| format!("const c{n} = {n};\n"))));
    let registers = each(|n| format!("var r{n};\n"));
    loads("registers.fw", &format!("shared x; thread p {{ {registers} x = 1; }}"));
}

#[test]
fn statements() {
    let thread = |body: &str| format!("shared x; thread p {{ var r; {body} }}");
    loads("stores.fw", &thread(&"x = 1;\n".repeat(MANY)));
    loads("labels.fw", &thread(&each(|n| format!("l{n}: r = x;\n"))));
    loads("gotos.fw", &thread(&each(|n| format!("l{n}: if r == {n} {{ goto l{}; }}\n", n * 7_919 % MANY))));
    loads("for.fw", &thread(&format!("for i in 0..{MANY} {{ const k = i + 1; l: x = k; }}")));
    loads("choose.fw", &thread(&format!("choose {{ x = 1; }} {}", "or { x = 2; }\n".repeat(MANY))));
    loads("atomic.fw", &thread(&"atomic { if x == 1 { x = 2; } }\n".repeat(MANY / 4)));
    loads("condition.fw", &thread(&format!("if r == 1 {} {{ x = 1; }}", "&& x == 1\n".repeat(MANY))));
}

#[test]
fn properties_and_hints() {
    loads("named.fw", &format!("{THREAD}{}", each(|n| format!("forbid f{n}: x == {n};\n"))));
    let loaded = loads("unnamed.fw", &format!("{THREAD}{}", each(|n| format!("forbid x == {n};\n"))));
    let mut names = loaded.program.properties.iter().map(|p| p.name.as_str());
    assert!(names.clone().take(3).eq(["forbid", "forbid-2", "forbid-3"]));
    assert_eq!(names.next_back(), Some(format!("forbid-{MANY}").as_str()));
    let labels = format!("shared x; thread p {{ {} }}\n", each(|n| format!("l{n}: x = 1;\n")));
    loads("at.fw", &format!("{labels}{}", each(|n| format!("forbid p@l{n} && x == 3;\n"))));
    loads("spare.fw", &format!("{labels}{}", each(|n| format!("spare p@l{n};\ncost p@l{n} 3;\n"))));
    let registers = format!("shared x; thread p {{ {} x = 1; }}\n", each(|n| format!("var r{n};\n")));
    loads("registers.fw", &format!("{registers}{}", each(|n| format!("forbid p.r{n} == 3;\n"))));
    loads("hints.fw", &format!("{THREAD}predicates {{ {} }}", each(|n| format!("x == {n};\n"))));
    let disjunction = each(|n| format!("|| x == {}\n", n + 3));
    loads("formula.fw", &format!("{THREAD}forbid x == 2 {disjunction};"));
}

#[test]
fn other_formats() {
    let transitions = each(|n| format!("transition q{n} q{} write 1 {}\n", n + 1, n % 7));
    loads("automaton.txt", &format!("thread t\ninitial q0\n{transitions}end\n"));
    let rows = " MOV [x],$1 | MOV [y],$1 ;\n".repeat(MANY);
    loads("test.litmus", &format!("X86 T\n{{ }}\n P0 | P1 ;\n{rows}exists (x=1)\n"));
    let text = each(|n| format!(" L{n}: write: x := 1;\n"));
    loads("a.rmm", &format!("forbidden *\ndata\n x = 0 : [0:1]\nprocess\ntext\n{text} CS: nop\n"));
    let huge = format!("X86 T\n{{ }}\n P0 ;\n{}exists (x=1)\n", " MOV [x],$1 ;\n".repeat(400_000));
    let error = load("huge.litmus", huge.as_bytes(), None, &[]).expect_err("it is too large");
    assert!(error.diagnostics[0].message.contains("4 MiB"), "{}", error.diagnostics[0].message);
}

#[test]
fn errors() {
    // With very many names, no similar name is suggested.
    let names = each(|n| format!("const long_name_{n} = 1;\n"));
    let uses = each(|n| format!("long_nam_{n} = 1;\n"));
    assert!(error(&format!("{names}shared x; thread p {{ {uses} }}")).contains("unknown name"));
    let formulas = each(|n| format!("forbid f{n}: y == {n};\n"));
    assert!(error(&format!("{THREAD}{formulas}")).contains("unknown name"));
    let threads = each(|n| format!("thread p{n} {{ skip; }}\n"));
    assert!(error(&format!("shared x;\n{threads}")).contains("more than 250 threads"));
}

#[test]
fn short_texts_of_large_programs_are_refused() {
    let large = "this program is too large when it is expanded";
    let condition = "&& r == 1 ".repeat(200_000);
    let family = |body: &str| format!("shared x; thread p[i in 0..250] {{ var r; {body} }}");
    assert_eq!(error(&family(&format!("if r == 2 {condition} {{ x = 1; }}"))), large);
    assert_eq!(error(&family(&each(|n| format!("var r{n};\n")))), large);
    let consts = each(|n| format!("const c{n} = 0;\n"));
    let thread = |body: &str| format!("shared x; thread p {{ var r; {body} }}");
    assert_eq!(error(&thread(&format!("for i in 0..200000 {{ {consts} }}"))), large);
    // All alternatives have a long common prefix.
    let alternatives = "or { r = 2; }".repeat(1_000);
    let stores = "r = 1;\n".repeat(MANY);
    assert_eq!(error(&thread(&format!("atomic {{ {stores} choose {{ r = 1; }} {alternatives} }}"))), large);
    let nested = "exists i in 0..1000: exists j in 0..1000: exists k in 0..1000: x == i + j + k";
    assert_eq!(error(&format!("{THREAD}forbid {nested};")), large);
    // Each part is small, but together they are too large.
    let quantified = "forbid i != j in 0..1000: x == i + j;\n".repeat(1_000);
    assert_eq!(error(&format!("{THREAD}{quantified}")), large);
}

fn loaded(stop: &Stop<'_>, text: &str) -> Result<Loaded, Failure> {
    loaded_as("a.fw", stop, text)
}

fn loaded_as(name: &str, stop: &Stop<'_>, text: &str) -> Result<Loaded, Failure> {
    let open = |_: &str| Err("nothing is included".to_owned());
    Loader { front_end: None, options: &Options::default(), stop, open: &open }.load(name, text.as_bytes())
}

/// A pass that is stopped leaves incomplete code: no later pass may rely on this code, and no program may be made from it.
#[test]
fn every_pass_over_c_can_be_stopped() {
    let statements = "x++; a[i] = x; i = a[1] + 1; p = &x; *p = 2; if (i > 3) { p = &y; i = 0; }\n\
                      { struct s *q = malloc(sizeof *q); q->n = i; s = q; if (q->n) free(q); }\n\
                      while (!__atomic_load_n(&y, 5)); for (int k = 0; k < 2; k++) { int z; z = k; i += z; }\n\
                      __atomic_fetch_add(&y, 1, 5);\n";
    let text = format!(
        "#include <pthread.h>\n#include <stdlib.h>\nint a[4], x, y, i, *p; struct s {{ int n; }} *s;\n\
         void *f(void *argument) {{ {} return 0; }}\n\
         int main(void) {{ pthread_t t; pthread_create(&t, 0, f, 0); {} pthread_join(t, 0); return 0; }}\n",
        statements.repeat(40),
        statements.repeat(10),
    );
    let questions = |most: usize| {
        let asked = Cell::new(0);
        let ask = || {
            asked.set(asked.get() + 1);
            asked.get() > most
        };
        (loaded_as("a.c", &Stop::when(&ask), &text), asked.get())
    };
    let (complete, all) = questions(usize::MAX);
    assert!(complete.is_ok(), "{:?}", complete.err());
    assert!(all > 100, "it is asked {all} times only");
    for most in (0..all).step_by(all / 40) {
        let (stopped, asked) = questions(most);
        assert!(matches!(stopped, Err(Failure::Stopped(_))), "after {most} questions: {}", stopped.is_ok());
        assert_eq!(asked, most + 1, "nobody is asked again");
    }
}

#[test]
fn loading_stops_when_asked() {
    let texts = [
        format!("shared x; thread p {{ {} }}", "x = 1;\n".repeat(MANY)),
        format!("shared x; thread p {{ for i in 0..{MANY} {{ x = i; }} }}"),
        format!("{THREAD}forbid exists i in 0..1000: exists j in 0..1000: x == i + j;"),
    ];
    for text in &texts {
        // Loading stops immediately, no matter at which poll it is asked to stop.
        for after in [1, 3, 30, 100] {
            let asked = Cell::new(0);
            let ask = || {
                asked.set(asked.get() + 1);
                asked.get() >= after
            };
            let result = loaded(&Stop::when(&ask), text);
            assert!(matches!(result, Err(Failure::Stopped(_))), "{after}: {}", result.is_ok());
            assert_eq!(asked.get(), after, "nobody is asked again");
        }
    }
    assert!(loaded(&Stop::when(&|| false), &texts[0]).is_ok());
}
