//! Every program of `examples/c/` has the verdicts in `examples/c/expected.toml`, and `fences --write` makes the other programs safe, with texts
//! that gcc compiles without a warning.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::common::{Files, repository, run};
use fencewright_testing::corpora::tell_skipped;
use toml::Value;

const MODELS: [&str; 3] = ["sc", "tso", "pso"];

fn entries() -> Vec<Value> {
    let text = fs::read_to_string(repository("examples/c/expected.toml")).expect("it can be read");
    let table: toml::Table = text.parse().expect("it is TOML");
    table["example"].as_array().expect("it has examples").clone()
}

fn word<'a>(entry: &'a Value, key: &str) -> &'a str {
    entry[key].as_str().unwrap_or_else(|| panic!("{key} is a string"))
}

/// The definitions of an entry, as command-line arguments.
fn defines(entry: &Value) -> Vec<String> {
    let table = entry.get("define").and_then(Value::as_table);
    let define = |(name, value): (&String, &Value)| ["-D".to_owned(), format!("{name}={value}")];
    table.into_iter().flatten().flat_map(define).collect()
}

fn is_slow(entry: &Value) -> bool {
    entry.get("slow").is_some() && std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_none()
}

/// The verdict on the assertions of a file.
fn verdict(path: &str, model: &str, defines: &[String]) -> String {
    let mut arguments = ["check", "--json", "--timeout", "60s", "--property", "assertions", "--model", model]
        .map(str::to_owned)
        .to_vec();
    arguments.extend(defines.iter().cloned());
    arguments.push(path.to_owned());
    let outcome = run(&arguments);
    let answers = outcome.json_lines();
    let [answer] = answers.as_slice() else { panic!("{outcome:?}") };
    answer["verdict"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn examples_in_c_answer_what_they_should() {
    for entry in entries().iter().filter(|entry| !is_slow(entry)) {
        let path = repository("examples/c").join(word(entry, "file"));
        for model in MODELS {
            let found = verdict(&path.to_string_lossy(), model, &defines(entry));
            assert_eq!(found, word(entry, model), "{entry:?} {model}");
        }
    }
}

#[test]
fn every_example_in_c_is_listed() {
    let listed: BTreeSet<String> = entries().iter().map(|entry| word(entry, "file").to_owned()).collect();
    let present = fs::read_dir(repository("examples/c")).expect("it can be read");
    let present = present.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    assert_eq!(listed, present.filter(|name| name.ends_with(".c")).collect());
}

/// The messages of gcc about a file; `None` if gcc is not installed.
fn warnings(path: &str) -> Option<String> {
    let gcc =
        Command::new("gcc").args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-fsyntax-only", path]).output();
    Some(String::from_utf8_lossy(&gcc.ok()?.stderr).into_owned())
}

#[test]
fn fences_make_examples_in_c_right() {
    let header = fs::read_to_string(repository("examples/c/barrier.h")).expect("it can be read");
    for entry in entries() {
        let file = word(&entry, "file");
        let text = fs::read_to_string(repository("examples/c").join(file)).expect("it can be read");
        for model in entry.get("fixed").and_then(Value::as_array).into_iter().flatten() {
            let model = model.as_str().expect("a model");
            let files = Files::new(&[(file, &text), ("barrier.h", &header)]);
            let path = files.text(file);
            let outcome = run(["fences", "--write", "--json", "--timeout", "60s", "--model", model, &path]);
            assert_eq!(outcome.status, 0, "{file} {model}: {outcome:?}");
            assert_eq!(verdict(&path, model, &[]), "safe", "{file} {model}");
            let patched = fs::read_to_string(&path).expect("it is there");
            assert!(patched.lines().count() > text.lines().count(), "{file} {model}");
            match warnings(&path) {
                None => tell_skipped("fences_make_examples_in_c_right", "there is no gcc"),
                Some(said) => assert!(said.is_empty(), "{file} {model}: {said}"),
            }
        }
    }
}

#[test]
fn more_objects_than_the_heap_holds_are_not_looked_at() {
    let text = "#include <stdlib.h>\n#include <assert.h>\nint main(void) {\n    int n = 0;\n    for (int i = 0; i < 3; i++) {\n        int *p = malloc(4);\n        *p = i;\n        n += *p;\n    }\n    assert(n == 3);\n}\n";
    let files = Files::new(&[("heap.c", text)]);
    let path = files.text("heap.c");
    let few = run(["check", "--heap", "2", &path]);
    assert_eq!(few.stdout.matches("more than 2 objects from line 6").count(), 2, "{few:?}");
    assert!(!few.stdout.contains(": safe"), "{few:?}");
    let enough = run(["check", "--heap", "3", &path]);
    assert_eq!((enough.status, enough.stdout.matches(": safe").count()), (0, 2), "{enough:?}");
}

/// The verdict on a property of a program with two threads. The first thread runs this code; the second one sets all variables if `set`.
fn waiting(property: &str, body: &str, set: bool) -> String {
    let set = if set { "a = 1; b = 1; c[0] = 1; c[1] = 1; c[2] = 1;" } else { "" };
    let text = format!(
        "#include <pthread.h>\n#include <sched.h>\n#include <stdlib.h>\n#include <stdatomic.h>\natomic_int a, b, c[3];\n\
         pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER;\n\
         void *idle(void *p) {{ return p; }}\nvoid *first(void *p) {{ {body} return 0; }}\nvoid *second(void *p) {{ {set} return 0; }}\n\
         int main(void) {{\n    pthread_t t, u;\n    pthread_create(&t, 0, first, 0);\n    pthread_create(&u, 0, second, 0);\n    \
         pthread_join(t, 0);\n    pthread_join(u, 0);\n}}\n"
    );
    let files = Files::new(&[("waiting.c", &text)]);
    let outcome =
        run(["check", "--json", "--model", "tso", "--property", property, &files.text("waiting.c")]);
    let answer = &outcome.json_lines()[0];
    match answer["error"].as_str() {
        Some(error) => error.to_owned(),
        None => answer["verdict"].as_str().unwrap_or_default().to_owned(),
    }
}

#[test]
fn loops_that_spin_for_ever() {
    // These loops end only if the other thread sets the variables.
    for body in [
        "while (!a || !b) ;",
        "while (a != 1 || b != a) { __asm__ volatile(\"pause\"); sched_yield(); }",
        "for (;;) { if (!a) continue; if (b) break; __asm__ volatile(\"\" ::: \"memory\"); }",
        "int r, s; do { r = a; s = b; } while (r == 0 || r != s);",
        "again: if (a == 0) goto again; if (b == 0) goto again;",
        "int ok; do { ok = 1; for (int i = 0; i < 3; i++) if (!c[i]) ok = 0; } while (!ok);",
        "while (atomic_fetch_add(&a, 0) == 0 || !b) ;",
        "int e; do e = 1; while (!atomic_compare_exchange_strong(&a, &e, 1) || !b);",
        "while (!a) { while (b && !c[0]) ; }",
    ] {
        assert_eq!(waiting("termination", body, false), "unsafe", "{body}");
        assert_eq!(waiting("termination", body, true), "safe", "{body}");
    }
    for (body, verdict) in [
        // A loop that counts ends, and so does a loop that changes memory once.
        ("for (int i = 0; i < 10; i++) if (a && b) break;", "safe"),
        ("int e = 0; while (!atomic_compare_exchange_strong(&a, &e, 1)) ;", "safe"),
        // With the final contents of memory, these loops never end.
        ("for (;;) ;", "unsafe"),
        ("int old = a; for (;;) { int r = a; if (r != old) break; old = r; }", "unsafe"),
        ("while (atomic_exchange(&c[0], 1)) ;", "unsafe"),
    ] {
        assert_eq!(waiting("termination", body, true), verdict, "{body}");
    }
    for body in
        ["int i = 0; while (!c[i]) i = (i + 1) % 2;", "unsigned n = 0; while (!a || !b) if (++n > 9) n = 0;"]
    {
        let said = waiting("termination", body, true);
        assert!(said.contains("is not decided"), "{body}: {said}");
    }
}

#[test]
fn threads_that_are_stuck() {
    let lock = "pthread_mutex_lock(&m); pthread_mutex_lock(&m);";
    for (body, deadlock, termination) in [
        (lock, "unsafe", "unsafe"),
        // For `deadlock`, a thread in a waiting loop can take a step.
        ("while (!a || !b) ;", "safe", "unsafe"),
        ("while (!a) ;", "safe", "unsafe"),
        // After the process has ended, no thread counts as waiting.
        ("exit(0);", "safe", "safe"),
        ("pthread_mutex_lock(&m); if (a) exit(0); else abort();", "safe", "safe"),
        ("for (;;) { if (!a) exit(1); }", "safe", "safe"),
        ("pthread_exit(0); pthread_mutex_lock(&m); pthread_mutex_lock(&m);", "safe", "safe"),
        // A thread that is never created counts as ended.
        ("pthread_t t; if (a) pthread_create(&t, 0, idle, 0);", "safe", "safe"),
    ] {
        assert_eq!(waiting("deadlock", body, false), deadlock, "{body}");
        assert_eq!(waiting("termination", body, false), termination, "{body}");
    }
}
