//! `fences --audit` of C: which memory orders the model needs. Each answer is checked by making the change by hand and checking the program.

use serde_json::Value;

use crate::common::{Files, Outcome, run};

/// Message passing: the reader asserts that it finds the message if the flag is set. `send` is the store of the message, `raise` the store of the
/// flag, and `seen` the load of the flag.
fn message(send: &str, raise: &str, seen: &str) -> String {
    format!(
        "#include <assert.h>\n#include <pthread.h>\n#include <stdatomic.h>\n\nstatic atomic_int data, flag;\n\n\
         static void *writer(void *argument)\n{{\n    {send}\n    {raise}\n    return argument;\n}}\n\n\
         static void *reader(void *argument)\n{{\n    if ({seen})\n        \
         assert(atomic_load_explicit(&data, memory_order_relaxed) == 1);\n    return argument;\n}}\n\n\
         int main(void)\n{{\n    pthread_t w, r;\n    pthread_create(&w, 0, writer, 0);\n    \
         pthread_create(&r, 0, reader, 0);\n    pthread_join(w, 0);\n    pthread_join(r, 0);\n    return 0;\n}}\n"
    )
}

/// Store buffering: each thread stores with `store`, in which MINE is its own variable, and executes `between` before its load.
fn buffering(store: &str, between: &str) -> String {
    let thread = |name: &str, mine: &str, other: &str, seen: &str| {
        let store = store.replace("MINE", mine);
        format!(
            "static void *{name}(void *argument)\n{{\n    {store}\n{between}    {seen} = atomic_load(&{other});\n    return argument;\n}}\n\n"
        )
    };
    format!(
        "#include <assert.h>\n#include <pthread.h>\n#include <stdatomic.h>\n\nstatic atomic_int x, y;\nstatic int r0, r1;\n\n{}{}\
         int main(void)\n{{\n    pthread_t a, b;\n    pthread_create(&a, 0, first, 0);\n    \
         pthread_create(&b, 0, second, 0);\n    pthread_join(a, 0);\n    pthread_join(b, 0);\n    \
         assert(r0 == 1 || r1 == 1);\n    return 0;\n}}\n",
        thread("first", "x", "y", "r0"),
        thread("second", "y", "x", "r1")
    )
}

fn audit(files: &Files, model: &str) -> (Outcome, Vec<Value>) {
    let outcome = run(["fences", "--audit", "--json", "--model", model, &files.text("main.c")]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let lines = outcome.json_lines();
    (outcome, lines)
}

/// The operations of an audit in short: kind, line, and the weakest form that is enough; `!` if it needs an order, `alone` if it is not in the set of
/// those that can be weakened together.
fn short(lines: &[Value]) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap_or("-").replace("memory_order_", "");
    lines
        .iter()
        .map(|line| {
            let needed = if line["needed"] == true { "!" } else { "" };
            let alone = if line["together"] == false { " alone" } else { "" };
            format!("{} {} {}{needed}{alone}", word(&line["kind"]), line["line"], word(&line["weaker"]))
        })
        .collect()
}

fn verdict(text: &str, model: &str) -> String {
    let files = Files::new(&[("main.c", text)]);
    let outcome =
        run(["check", "--json", "--property", "assertions", "--model", model, &files.text("main.c")]);
    outcome.json_lines()[0]["verdict"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_message_needs_a_release_store_under_pso_only() {
    let text = message(
        "atomic_store_explicit(&data, 1, memory_order_relaxed);",
        "atomic_store_explicit(&flag, 1, memory_order_seq_cst);",
        "atomic_load_explicit(&flag, memory_order_acquire)",
    );
    let files = Files::new(&[("main.c", &text)]);
    let (outcome, lines) = audit(&files, "tso");
    assert_eq!(short(&lines), ["store 10 relaxed", "load 16 relaxed"], "{outcome:?}");
    assert!(lines.iter().all(|line| line["checked"] == true), "{outcome:?}");
    assert_eq!((&lines[0]["same"], &lines[1]["same"]), (&false.into(), &true.into()), "{outcome:?}");
    let (outcome, lines) = audit(&files, "pso");
    assert_eq!(short(&lines), ["store 10 release!", "load 16 relaxed"], "{outcome:?}");
    assert!(lines[0]["needed_because"].is_array(), "{outcome:?}");
    // The changes made by hand: the weaker orders that the audit names suffice, and the next weaker order of the store does not under PSO.
    let weak = text.replace("memory_order_acquire", "memory_order_relaxed");
    for (order, model, expected) in
        [("relaxed", "tso", "safe"), ("relaxed", "pso", "unsafe"), ("release", "pso", "safe")]
    {
        let edited = weak.replace("memory_order_seq_cst", &format!("memory_order_{order}"));
        assert_eq!(verdict(&edited, model), expected, "{order} {model}");
    }
    // If both stores have this order, either can be weaker, but not both.
    let both = text.replace("&data, 1, memory_order_relaxed", "&data, 1, memory_order_seq_cst");
    let (outcome, lines) = audit(&Files::new(&[("main.c", &both)]), "pso");
    assert_eq!(
        short(&lines),
        ["store 9 relaxed", "store 10 relaxed alone", "load 16 relaxed"],
        "{outcome:?}"
    );
}

#[test]
fn each_alone_is_less_than_all_together() {
    // Either the store or the fence keeps the order; one of them is enough.
    let text = buffering("atomic_store(&MINE, 1);", "    atomic_thread_fence(memory_order_seq_cst);\n");
    let files = Files::new(&[("main.c", &text)]);
    let (outcome, lines) = audit(&files, "tso");
    let expected = [
        "store 10 relaxed",
        "fence 11 none alone",
        "load 12 relaxed",
        "store 18 relaxed",
        "fence 19 none alone",
        "load 20 relaxed",
    ];
    assert_eq!(short(&lines), expected, "{outcome:?}");
    let outcome = run(["fences", "--audit", &files.text("main.c")]);
    for said in [
        "main.c:11:5: fence, memory_order_seq_cst: superfluous alone, but not once the other operations are weaker",
        "main.c:10:5: store, memory_order_seq_cst: memory_order_relaxed is enough\n",
        "4 of 6 operations can have their weaker forms at the same time",
        "ARM, POWER and RISC-V",
    ] {
        assert!(outcome.stdout.contains(said), "{said}: {outcome:?}");
    }
    let weak = text.replace("atomic_store(&x, 1)", "atomic_store_explicit(&x, 1, memory_order_relaxed)");
    let weak = weak.replace("atomic_store(&y, 1)", "atomic_store_explicit(&y, 1, memory_order_relaxed)");
    assert_eq!(verdict(&weak, "tso"), "safe");
    assert_eq!(
        verdict(&weak.replace("    atomic_thread_fence(memory_order_seq_cst);\n", ""), "tso"),
        "unsafe"
    );
}

#[test]
fn fences_that_are_needed_come_with_an_execution() {
    let store = "atomic_store_explicit(&MINE, 1, memory_order_relaxed);";
    let text = buffering(store, "    atomic_thread_fence(memory_order_seq_cst);\n");
    let (outcome, lines) = audit(&Files::new(&[("main.c", &text)]), "pso");
    let expected = ["fence 11 -!", "load 12 relaxed", "fence 19 -!", "load 20 relaxed"];
    assert_eq!(short(&lines), expected, "{outcome:?}");
    assert!(lines[0]["needed_because"].is_array(), "{outcome:?}");
}

#[test]
fn read_modify_writes_are_not_audited() {
    let text = buffering("atomic_exchange_explicit(&MINE, 1, memory_order_acq_rel);", "");
    let files = Files::new(&[("main.c", &text)]);
    let (outcome, lines) = audit(&files, "tso");
    assert_eq!(short(&lines), ["rmw 10 -", "load 11 relaxed", "rmw 17 -", "load 18 relaxed"], "{outcome:?}");
    assert!(lines[0]["needed"].is_null() && lines[0]["reason"].is_string(), "{outcome:?}");
    let outcome = run(["fences", "--audit", &files.text("main.c")]);
    assert!(outcome.stdout.contains("not audited, at line 10, 17: a read-modify-write"), "{outcome:?}");
}

#[test]
fn macros_assignments_and_other_dialects() {
    // The order is in the definition of a macro, so both uses are weakened together.
    let head = "#define PUT(place, value) atomic_store_explicit(&place, value, memory_order_seq_cst)\n";
    let text = format!("{head}{}", buffering("PUT(MINE, 1);", ""));
    let (outcome, lines) = audit(&Files::new(&[("main.c", &text)]), "tso");
    assert_eq!(short(&lines), ["store 1 -!", "load 12 relaxed", "load 19 relaxed"], "{outcome:?}");
    let assigned = buffering("MINE = 1;", "    atomic_thread_fence(memory_order_seq_cst);\n");
    let (outcome, lines) = audit(&Files::new(&[("main.c", &assigned)]), "tso");
    assert_eq!(short(&lines)[0], "store 10 relaxed", "{outcome:?}");
    let gnu = text.replace("atomic_store_explicit(&place", "__atomic_store_n(&place");
    let gnu = gnu.replace("memory_order_seq_cst)", "__ATOMIC_SEQ_CST)");
    let (outcome, lines) = audit(&Files::new(&[("main.c", &gnu)]), "tso");
    assert_eq!(short(&lines)[0], "store 1 -!", "{outcome:?}");
    let linux = buffering("smp_store_release(&MINE, 1);", "    smp_mb();\n");
    let linux = linux.replace("atomic_load(&", "READ_ONCE(").replace("atomic_int", "int");
    let linux = linux.replace("<stdatomic.h>", "<linux/compiler.h>");
    let (outcome, lines) = audit(&Files::new(&[("main.c", &linux)]), "pso");
    let expected = ["store 10 WRITE_ONCE", "fence 11 -!", "store 18 WRITE_ONCE", "fence 19 -!"];
    assert_eq!(short(&lines), expected, "{outcome:?}");
    let asm = buffering("MINE = 1;", "    __asm__ volatile(\"mfence\" ::: \"memory\");\n");
    let asm = asm.replace("static atomic_int", "static volatile int").replace("atomic_load(&y)", "y");
    let asm = asm.replace("atomic_load(&x)", "x");
    let (outcome, lines) = audit(&Files::new(&[("main.c", &asm)]), "tso");
    assert_eq!(short(&lines), ["fence 11 -!", "fence 19 -!"], "{outcome:?}");
}
