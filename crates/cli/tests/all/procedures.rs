//! Procedures, mutexes and assertion messages, on the command line.

use crate::common::{Files, run};

const PASSING: &str = "\
shared data, flag;

fn send(value) {
    data = value;
    flag = 1;
}

thread p {
    send(7);
}

thread q {
    await flag == 1;
    assert data == 7, \"seen \\\"too early\\\" \u{1b}[31m\";
}
";

#[test]
fn counterexamples_show_calls_and_texts() {
    let files = Files::new(&[("mp.fw", PASSING)]);
    let outcome = run(["check", "--model", "pso", &files.text("mp.fw")]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(outcome.stdout.contains("in send(7) called at line 9"), "{outcome:?}");
    assert!(outcome.stdout.contains("assertion failed: seen \"too early\" \\u{1b}[31m"), "{outcome:?}");
    let outcome = run(["check", "--model", "pso", "--json", &files.text("mp.fw")]);
    let [answer] = &outcome.json_lines()[..] else { panic!("{outcome:?}") };
    let steps = answer["trace"].as_array().expect("an execution");
    let call = steps.iter().find_map(|step| step["calls"].get(0)).expect("a step in the procedure");
    assert_eq!((&call["call"], &call["line"], &call["column"]), (&"send(7)".into(), &9.into(), &5.into()));
    let last = &steps[steps.len() - 1];
    assert_eq!(last["fault"], "assertion failed");
    assert_eq!(last["text"], "seen \"too early\" \u{1b}[31m");
    let outcome = run(["run", "--seed", "1", &files.text("mp.fw")]);
    assert!(outcome.stdout.contains("in send(7) called at line 9"), "{outcome:?}");
    let outcome = run(["show", &files.text("mp.fw")]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.stdout.contains("too early") && !outcome.stdout.contains('\u{1b}'), "{outcome:?}");
}

#[test]
fn fences_go_into_the_text_of_a_procedure() {
    let two = PASSING.replace("    send(7);\n", "    send(7);\n    send(7);\n");
    let files = Files::new(&[("mp.fw", &two)]);
    let outcome = run(["fences", "--model", "pso", "--write", &files.text("mp.fw")]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let fenced = files.read("mp.fw");
    assert!(fenced.contains("    data = value;\n    sfence;\n    flag = 1;\n"), "{fenced}");
    assert_eq!(fenced.matches("sfence").count(), 1, "{fenced}");
    assert_eq!(run(["check", "--model", "pso", &files.text("mp.fw")]).status, 0);
}

#[test]
fn no_fence_goes_where_it_may_not_stand() {
    // If the procedure is also called in an atomic block, the fences are inserted around its calls instead.
    let text = PASSING.replace("    send(7);\n", "    atomic {\n        set(data, 7);\n    }\n");
    let text = text
        .replace("set(data, 7)", "send(7)")
        .replace("thread q", "thread r {\n    send(7);\n}\n\nthread q");
    let files = Files::new(&[("mp.fw", &text)]);
    let outcome = run(["fences", "--model", "pso", "--write", &files.text("mp.fw")]);
    assert!(outcome.status != 0 && outcome.stdout.contains("unfixable"), "{outcome:?}");
    assert_eq!(files.read("mp.fw"), text);
}

#[test]
fn formats_without_procedures_get_the_program_or_a_reason() {
    let files =
        Files::new(&[("mp.fw", PASSING), ("sb.fw", "shared x, y; fn f() { x = 1; } thread p { f(); }")]);
    let outcome = run(["convert", "--to", "trencher", &files.text("sb.fw")]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let outcome = run(["convert", "--to", "litmus", &files.text("mp.fw")]);
    assert!(outcome.status != 0 && outcome.stderr.contains("cannot say"), "{outcome:?}");
}
