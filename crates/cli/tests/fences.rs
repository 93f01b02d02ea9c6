//! `fencewright fences`, as a user would type it.

mod common;

use std::path::PathBuf;
use std::time::Instant;

use common::{Files, run};
use fencewright_testing::corpora::corpora;

const BUFFERING: &str = "\
shared x, y;
thread p { var r; x = 1; r = y; }   // this comment stays
thread q { var s;
    y = 1;
    s = x;
}
finally sb: never p.r == 0 && q.s == 0;
";

fn example(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../examples", name].iter().collect();
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn the_places_are_shown_with_the_reason_for_each() {
    let files = Files::new(&[("sb.fw", BUFFERING)]);
    let outcome = run(["fences", &files.text("sb.fw")]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    for wanted in [
        "fixed: 2 fences",
        "no cheaper set suffices",
        "sb.fw:2:26: a fence before this, in p",
        "in q",
        "needed: without it",
    ] {
        assert!(outcome.stdout.contains(wanted), "{wanted}: {outcome:?}");
    }
}

#[test]
fn the_diff_changes_nothing_else_and_makes_the_program_safe() {
    let files = Files::new(&[("sb.fw", BUFFERING)]);
    let path = files.text("sb.fw");
    let outcome = run(["fences", "--diff", &path]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let added: Vec<&str> =
        outcome.stdout.lines().filter(|l| l.starts_with('+') && !l.starts_with("+++")).collect();
    assert_eq!(
        added,
        ["+thread p { var r; x = 1; fence; r = y; }   // this comment stays", "+    fence;"],
        "{outcome:?}"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), BUFFERING, "--diff writes nothing");
    assert_eq!(run(["check", &path]).status, 1);
    assert_eq!(run(["fences", "--write", "--quiet", &path]).status, 0);
    assert_eq!(run(["check", &path]).status, 0);
    let written = std::fs::read_to_string(&path).unwrap();
    let expected =
        BUFFERING.replace("x = 1; r", "x = 1; fence; r").replace("    s = x", "    fence;\n    s = x");
    assert_eq!(written, expected);
    assert!(run(["fences", &path]).stdout.contains("already safe"));
}

#[test]
fn the_audit_names_exactly_the_superfluous_fence() {
    let text = BUFFERING
        .replace("r = y", "fence; r = y")
        .replace("    s = x;\n", "    fence;\n    s = x;\n    fence;\n");
    let files = Files::new(&[("sb.fw", &text)]);
    let outcome = run(["fences", "--audit", "--quiet", &files.text("sb.fw")]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let superfluous: Vec<&str> = outcome.stdout.lines().filter(|l| l.contains("superfluous")).collect();
    assert_eq!(superfluous.len(), 1, "{outcome:?}");
    assert!(superfluous[0].contains(":7:5: fence"), "{outcome:?}");
    assert_eq!(outcome.stdout.matches("needed").count(), 2, "{outcome:?}");
}

#[test]
fn what_fences_cannot_do_is_said() {
    let files = Files::new(&[
        ("sc.fw", "shared x; thread p { x = 1; } thread q { var r; r = x; assert r == 0; }"),
        ("none.fw", "shared x; thread p { x = 1; }"),
    ]);
    let outcome = run(["fences", &files.text("sc.fw")]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(outcome.stdout.contains("unfixable") && outcome.stdout.contains("under sc too"), "{outcome:?}");
    let outcome = run(["fences", &files.text("none.fw")]);
    assert_eq!(outcome.status, 2, "{outcome:?}");
    assert_eq!(run(["fences", "--model", "sc", &files.text("sc.fw")]).status, 2);
    assert_eq!(run(["fences", "--price", "gold=1", &files.text("sc.fw")]).status, 2);
}

#[test]
fn the_json_is_one_object() {
    let files = Files::new(&[("sb.fw", BUFFERING)]);
    let outcome = run(["fences", "--json", "--all", &files.text("sb.fw")]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let json: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("one object");
    assert_eq!(json["verdict"], "fixed");
    assert_eq!(json["count"], 2);
    assert_eq!(json["optimal"], true);
    assert_eq!(json["checked"], true);
    let fences = json["fences"].as_array().expect("a list");
    assert_eq!((&fences[0]["line"], &fences[0]["kind"]), (&2.into(), &"fence".into()));
    assert_eq!(fences[0]["threads"][0], "p");
    assert!(!fences[0]["needed_because"].as_array().expect("a trace").is_empty());
}

#[test]
fn a_locked_instruction_may_be_cheaper() {
    let files = Files::new(&[("sb.fw", BUFFERING)]);
    let path = files.text("sb.fw");
    let outcome = run(["fences", "--price", "fence=5,xchg=1", "--diff", &path]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.stdout.contains("+    swap(y, 1);"), "{outcome:?}");
    assert!(outcome.stdout.contains("swap(x, 1); r = y;"), "{outcome:?}");
}

#[test]
fn robustness_takes_more_fences_than_safety() {
    let files = Files::new(&[("dekker.fw", &example("dekker.fw"))]);
    let count = |goal: &str| {
        let outcome = run(["fences", "--json", "--goal", goal, &files.text("dekker.fw")]);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        let json: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("one object");
        json["count"].as_u64().expect("a number")
    };
    let (safety, robustness) = (count("safety"), count("robustness"));
    assert!(safety < robustness, "{safety} fences for safety, {robustness} for robustness");
}

#[test]
fn memorax_needs_no_fewer_fences() {
    let Some(corpora) = corpora("memorax_needs_no_fewer_fences") else { return };
    let table = std::fs::read_to_string(corpora.join("memorax/expected.csv")).expect("the table");
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let text = std::fs::read_to_string(corpora.join("memorax").join(fields[0])).expect("the program");
        let files = Files::new(&[(fields[0], &text)]);
        let path = files.text(fields[0]);
        let start = Instant::now();
        let outcome = run(["fences", "--write", "--json", &path]);
        let seconds = start.elapsed().as_secs_f64();
        assert_eq!(outcome.status, 0, "{}: {outcome:?}", fields[0]);
        let json: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("one object");
        let count = json["count"].as_u64().expect("a number");
        println!("{}: {count} fences, memorax {}, {seconds:.2} s", fields[0], fields[2]);
        assert_eq!(json["optimal"], true, "{}", fields[0]);
        if let Ok(theirs) = fields[2].parse::<u64>() {
            assert!(count <= theirs, "{}: {count} fences, memorax {theirs}", fields[0]);
        }
        assert_eq!(run(["check", "--quiet", &path]).status, 0, "{} with its fences", fields[0]);
    }
}

#[test]
fn trencher_needs_no_fewer_fences() {
    let Some(corpora) = corpora("trencher_needs_no_fewer_fences") else { return };
    let table = std::fs::read_to_string(corpora.join("trencher/expected.csv")).expect("the table");
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let text = std::fs::read_to_string(corpora.join("trencher").join(fields[0])).expect("the program");
        for (goal, notion, theirs) in
            [("robustness", "happens-before", fields[2]), ("triangular", "triangular", fields[4])]
        {
            let files = Files::new(&[(fields[0], &text)]);
            let path = files.text(fields[0]);
            let outcome = run(["fences", "--goal", goal, "--write", "--json", &path]);
            assert_eq!(outcome.status, 0, "{} {goal}: {outcome:?}", fields[0]);
            let json: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("one object");
            let count = json["count"].as_u64().expect("a number");
            let theirs: u64 = theirs.trim().parse().expect("a number");
            assert!(count <= theirs, "{} {goal}: {count} fences, trencher {theirs}", fields[0]);
            let after = run(["robust", "--notion", notion, "--quiet", &path]);
            assert_eq!(after.status, 0, "{} {goal} with its fences: {after:?}", fields[0]);
        }
    }
}

#[test]
fn an_audit_needs_a_program_that_is_right() {
    let files = Files::new(&[("bad.fw", "shared x, y; thread p { x = 1; fence; y = 1; assert y == 2; }")]);
    let outcome = run(["fences", "--audit", &files.text("bad.fw")]);
    assert_eq!(outcome.status, 3, "{outcome:?}");
    assert!(outcome.stderr.contains("nothing to audit"), "{outcome:?}");
    assert_eq!(run(["fences", "--property", "deadlock", &files.text("bad.fw")]).status, 2);
}

#[test]
fn marks_and_line_ends_stay() {
    let text = format!("\u{feff}{}", BUFFERING.replace('\n', "\r\n"));
    let files = Files::new(&[("sb.fw", &text)]);
    let path = files.text("sb.fw");
    assert_eq!(run(["fences", "--write", "--quiet", &path]).status, 0);
    let expected =
        text.replace("x = 1; r", "x = 1; fence; r").replace("    s = x", "    fence;\r\n    s = x");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
}

#[test]
fn an_index_may_compare() {
    let text = "shared y, a[2]; thread p { var r; a[r == 1] = 1; r = y; P: skip; }
thread q { var s; y = 1; fence; s = a[0]; Q: skip; }
forbid sb: p@P && q@Q && p.r == 0 && q.s == 0;
";
    let files = Files::new(&[("sb.fw", text)]);
    let outcome = run(["fences", "--diff", "--price", "xchg=1", &files.text("sb.fw")]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.stdout.contains("swap(a[r == 1], 1);"), "{outcome:?}");
}
