//! Fences in library functions: preferred to equally cheap ones in their callers, and only in files that may be changed.

use crate::common::{Files, Outcome, run};

/// Two threads that announce themselves in a function of a library and then read what the other one announced. `head` is the library, and `calls` is
/// what each thread executes.
fn program(head: &str, calls: &str) -> String {
    let thread = |name: &str, mine: &str, other: &str, seen: &str| {
        let calls = calls.replace("MINE", mine).replace("OTHER", other).replace("SEEN", seen);
        format!("static void *{name}(void *argument)\n{{\n    (void)argument;\n{calls}    return 0;\n}}\n\n")
    };
    format!(
        "#include <assert.h>\n#include <pthread.h>\n#include <stdatomic.h>\n\n{head}\n\
         static atomic_int x, y;\nstatic int r0, r1;\n\n{}{}\
         int main(void)\n{{\n    pthread_t a, b;\n    pthread_create(&a, 0, first, 0);\n    \
         pthread_create(&b, 0, second, 0);\n    pthread_join(a, 0);\n    pthread_join(b, 0);\n    \
         assert(r0 == 1 || r1 == 1);\n    return 0;\n}}\n",
        thread("first", "x", "y", "r0"),
        thread("second", "y", "x", "r1")
    )
}

const ANNOUNCE: &str = "static inline void announce(atomic_int *mine)\n{\n    \
     atomic_store_explicit(mine, 1, memory_order_relaxed);\n}\n";
const PATCHED: &str = "    atomic_store_explicit(mine, 1, memory_order_relaxed);\n    \
     atomic_thread_fence(memory_order_seq_cst);\n";
const CALLS: &str = "    announce(&MINE);\n    SEEN = atomic_load_explicit(&OTHER, memory_order_relaxed);\n";
/// Nothing but a fence inside this function helps.
const BOTH: &str = "static inline int announce(atomic_int *mine, atomic_int *other)\n{\n    \
     atomic_store_explicit(mine, 1, memory_order_relaxed);\n    \
     return atomic_load_explicit(other, memory_order_relaxed);\n}\n";

fn fences(files: &Files, options: &[&str]) -> Outcome {
    let main = files.text("src/main.c");
    run(["fences", "--model", "tso"].iter().chain(options).copied().chain([main.as_str()]))
}

#[test]
fn a_fence_in_a_library_function_is_preferred() {
    let text = program(ANNOUNCE, CALLS);
    let files = Files::new(&[("src/main.c", &text)]);
    let outcome = fences(&files, &["--write"]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let said = "in announce(), so it serves every caller: first() at line 16, second() at line 24";
    assert!(outcome.stdout.contains(said), "{outcome:?}");
    let patched = files.read("src/main.c");
    assert!(patched.contains(PATCHED), "{patched}");
    assert_eq!(patched.matches("seq_cst").count(), 1, "{patched}");

    let files = Files::new(&[("src/main.c", &text)]);
    let outcome = fences(&files, &["--json"]);
    let answer = &outcome.json_lines()[0];
    let fence = &answer["fences"][0];
    assert_eq!(fence["function"], "announce", "{outcome:?}");
    let callers = fence["callers"].as_array().expect("a list");
    let lines: Vec<_> = callers.iter().map(|call| format!("{}:{}", call["function"], call["line"])).collect();
    assert_eq!(lines, ["\"first\":16", "\"second\":24"], "{outcome:?}");
    assert!(answer["outside"].as_array().is_some_and(Vec::is_empty), "{outcome:?}");
}

#[test]
fn a_function_that_is_called_more_often_than_it_needs_a_fence_costs_more() {
    // The second call in each thread needs no fence, so a fence in the function would be executed twice as often as one behind the first call.
    let calls = format!("{CALLS}    announce(&MINE);\n");
    let files = Files::new(&[("src/main.c", &program(ANNOUNCE, &calls))]);
    let outcome = fences(&files, &["--write"]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let patched = files.read("src/main.c");
    assert!(!patched.contains(PATCHED), "{patched}");
    assert_eq!(patched.matches("atomic_thread_fence").count(), 2, "{patched}");
}

#[test]
fn wrappers_inside_a_library_come_after_its_functions() {
    let library = "static inline void put(atomic_int *mine)\n{\n    \
         atomic_store_explicit(mine, 1, memory_order_relaxed);\n}\n\
         static inline int announce(atomic_int *mine, atomic_int *other)\n{\n    put(mine);\n    \
         return atomic_load_explicit(other, memory_order_relaxed);\n}\n";
    let calls = "    SEEN = announce(&MINE, &OTHER);\n";
    let files = Files::new(&[("src/main.c", &program(library, calls))]);
    let outcome = fences(&files, &["--write"]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let patched = files.read("src/main.c");
    let in_announce = "    put(mine);\n    atomic_thread_fence(memory_order_seq_cst);\n    return";
    assert!(patched.contains(in_announce), "{patched}");
}

#[test]
fn files_elsewhere_are_named_but_not_changed() {
    let text = program("#include <lock.h>\n", CALLS);
    let sources = [("src/main.c", text.as_str()), ("include/lock.h", ANNOUNCE)];
    let files = Files::new(&sources);
    let folder = files.text("include");
    let outcome = fences(&files, &["-I", &folder, "--write"]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert_eq!(files.read("include/lock.h"), ANNOUNCE, "{outcome:?}");
    let patched = files.read("src/main.c");
    assert_eq!(patched.matches("atomic_thread_fence(memory_order_seq_cst);").count(), 2, "{patched}");
    for said in ["better: this fence", "lock.h:3:", &format!("--allow {folder}")] {
        assert!(outcome.stdout.contains(said), "{said}: {outcome:?}");
    }
    let files = Files::new(&sources);
    let folder = files.text("include");
    let outcome = fences(&files, &["-I", &folder, "--json"]);
    let answer = &outcome.json_lines()[0];
    assert_eq!(answer["outside"][0]["allow"], folder.as_str(), "{outcome:?}");
    assert_eq!(answer["outside"][0]["function"], "announce", "{outcome:?}");
    assert!(answer["fences"][0]["allow"].is_null(), "{outcome:?}");
    let outcome = fences(&files, &["-I", &folder, "--html", &files.text("page.html")]);
    let (page, shown) = (files.read("page.html"), format!("<code>--allow {folder}</code>"));
    assert!(page.contains("better: this fence") && page.contains(&shown), "{outcome:?}");

    let outcome = fences(&files, &["-I", &folder, "--allow", &folder, "--write"]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert_eq!(files.read("src/main.c"), text);
    assert!(files.read("include/lock.h").contains(PATCHED), "{outcome:?}");
}

#[test]
fn only_a_file_elsewhere_helps() {
    let calls = "    SEEN = announce(&MINE, &OTHER);\n";
    let text = program("#include <lock.h>\n", calls);
    let files = Files::new(&[("src/main.c", &text), ("include/lock.h", BOTH)]);
    let folder = files.text("include");
    let outcome = fences(&files, &["-I", &folder, "--write"]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert_eq!(files.read("include/lock.h"), BOTH, "{outcome:?}");
    for said in ["unfixable", "files that must not be changed are why", &format!("--allow {folder}")] {
        assert!(outcome.stdout.contains(said), "{said}: {outcome:?}");
    }
    let outcome = fences(&files, &["-I", &folder, "--allow", &folder, "--write"]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(files.read("include/lock.h").contains(PATCHED), "{outcome:?}");
}
