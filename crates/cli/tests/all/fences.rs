//! `fencewright fences`, as a user would type it.

use std::path::PathBuf;
use std::time::Instant;

use crate::common::{Files, run};
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

/// A fence at the wrong place may violate a property about labels; the written fences satisfy `check`.
#[test]
fn a_fence_that_a_property_can_see_is_put_elsewhere() {
    let text = "shared x, y;
thread p {
    var r = 9, s;
    x = 1;
c:
    s = 5;
a:
    r = y;
}
thread q { var t = 9; y = 1; fence; t = x; }
finally sb: never p.r == 0 && q.t == 0;
forbid p1: x == 1 && p.s == 0 && !p@c;
";
    let files = Files::new(&[("labels.fw", text)]);
    let path = files.text("labels.fw");
    let outcome = run(["fences", "--json", "--write", &path]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let answer = &outcome.json_lines()[0];
    assert_eq!(
        (&answer["verdict"], &answer["optimal"], &answer["cost"], &answer["written"]),
        (&"fixed".into(), &true.into(), &2.into(), &true.into())
    );
    assert_eq!(run(["check", "--quiet", &path]).status, 0);
}

#[test]
fn what_must_exist_is_a_goal() {
    let missing =
        "shared x; thread p { var r; x = 1; } finally weak: exists p.r == 1; forbid strong: x == 2;";
    let conflict = BUFFERING.to_string() + "finally weak: exists p.r == 0 && q.s == 0;\n";
    let kept = BUFFERING.to_string() + "finally weak: exists p.r == 1 && q.s == 0;\n";
    let only = "shared x;\nthread p { x = 1; }\n\nfinally weak: exists x == 1;";
    let files = Files::new(&[
        ("missing.fw", missing),
        ("conflict.fw", &conflict),
        ("kept.fw", &kept),
        ("only.fw", only),
    ]);
    let outcome = run(["fences", &files.text("missing.fw")]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(
        outcome.stdout.contains("what `weak` asks for does not happen even without fences"),
        "{outcome:?}"
    );
    let outcome = run(["fences", "--json", &files.text("conflict.fw")]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    let answer = &outcome.json_lines()[0];
    assert_eq!(
        (&answer["verdict"], &answer["conflict"]),
        (&"unfixable".into(), &serde_json::json!(["sb", "weak"]))
    );
    assert!(
        answer["reason"].as_str().expect("a reason").contains("take away what `weak` asks for"),
        "{answer}"
    );
    let steps = answer["trace"].as_array().expect("an execution of the program as it is");
    assert!(steps.iter().all(|step| step["statement"] != "fence;"), "{answer}");
    assert_eq!(run(["fences", "--write", "--quiet", &files.text("kept.fw")]).status, 0);
    assert_eq!(run(["check", "--quiet", &files.text("kept.fw")]).status, 0);
    let outcome = run(["fences", &files.text("only.fw")]);
    assert_eq!(outcome.status, 2, "{outcome:?}");
    assert!(outcome.stderr.contains("only.fw:4:1: fences cannot help with `finally exists`"), "{outcome:?}");
}

#[test]
fn places_are_found_where_labels_take_no_step() {
    for body in ["l: if 1 { x = 1; }", "goto l; k: x = 1; l: stop;", "loop { l: break; } x = 1;"] {
        for property in ["x == 2", "p@l && x == 1", "!p@l && x == 2"] {
            let text = format!("shared x; thread p {{ {body} }} forbid {property};");
            let files = Files::new(&[("labels.fw", &text)]);
            let outcome = run(["fences", &files.text("labels.fw")]);
            assert!(!outcome.stderr.contains("contradiction"), "{text}: {outcome:?}");
            assert_ne!(outcome.status, 3, "{text}: {outcome:?}");
        }
    }
    for seed in 1..=12 {
        let program = run(["generate", "lossy", "--seed", &seed.to_string()]).stdout;
        let files = Files::new(&[("lossy.fw", &program)]);
        let outcome = run(["fences", "--json", "--timeout", "1s", &files.text("lossy.fw")]);
        assert_eq!(outcome.json_lines().len(), 1, "{outcome:?}");
        assert!(!outcome.stdout.contains("contradiction"), "seed {seed}: {outcome:?}");
    }
}

#[test]
fn every_exit_path_prints_an_object() {
    let audit = "shared x, y; thread p { x = 1; fence; y = 1; }\nforbid no: y == 1;";
    let files = Files::new(&[
        ("sb.fw", BUFFERING),
        ("bad.fw", "shared x;\nthread p { y = 1; }"),
        ("none.fw", "shared x; thread p { x = 1; }"),
        ("only.fw", "shared x; thread p { x = 1; } finally exists x == 1;"),
        ("audit.fw", audit),
    ]);
    let error =
        |arguments: &[&str], file: &str, status: i32, about: &str, position: (Option<u64>, Option<u64>)| {
            let path = files.text(file);
            let outcome = run(["fences", "--json"].iter().chain(arguments).copied().chain([path.as_str()]));
            assert_eq!(outcome.status, status, "{arguments:?} {file}: {outcome:?}");
            let all = outcome.json_lines();
            assert_eq!(all.len(), 1, "{arguments:?} {file}: {outcome:?}");
            assert!(all[0]["error"].as_str().expect("a message").contains(about), "{outcome:?}");
            assert_eq!((all[0]["line"].as_u64(), all[0]["column"].as_u64()), position, "{outcome:?}");
            let where_to = position.0.map_or(String::new(), |line| format!(":{line}:"));
            assert!(outcome.stderr.contains(&where_to), "{outcome:?}");
        };
    error(&[], "missing.fw", 2, "no such file", (None, None));
    error(&[], "bad.fw", 2, "unknown name `y`", (Some(2), Some(12)));
    error(&[], "none.fw", 2, "no property", (None, None));
    error(&[], "only.fw", 2, "finally exists", (Some(1), Some(31)));
    error(&["--model", "sc"], "sb.fw", 2, "under sc", (None, None));
    error(&["--model", "all"], "sb.fw", 2, "one memory model", (None, None));
    error(&["--goal", "robustness", "--model", "pso"], "sb.fw", 2, "about tso", (None, None));
    error(&["--property", "deadlock"], "sb.fw", 2, "deadlock", (None, None));
    error(&["--property", "other"], "sb.fw", 2, "no property is called `other`", (None, None));
    error(&["--audit"], "audit.fw", 3, "`no` does not hold", (Some(2), Some(1)));
    let path = files.text("sb.fw");
    let outcome = run(["fences", "--json", "--timeout", "0s", &path]);
    assert_eq!((outcome.status, &outcome.json_lines()[0]["verdict"]), (3, &"unknown".into()), "{outcome:?}");
    // With `--json`, the diff is a value of the object.
    let outcome = run(["fences", "--json", "--diff", &path]);
    let answer = &outcome.json_lines()[0];
    assert!(answer["diff"].as_str().expect("a patch").contains("\n+    fence;\n"), "{outcome:?}");
    assert_eq!((&answer["written"], &answer["error"]), (&false.into(), &serde_json::Value::Null));
}

#[cfg(unix)]
#[test]
fn a_diff_quotes_names_as_git_does() {
    for (name, quoted) in [
        ("two words.fw", "a{}/two words.fw\t"),
        ("tab\tline\nquote\"back\\.fw", "\"a{}/tab\\tline\\nquote\\\"back\\\\.fw\""),
        ("\u{e9}.fw", "\"a{}/\\303\\251.fw\""),
    ] {
        let files = Files::new(&[(name, BUFFERING)]);
        let path = files.text(name);
        let folder = PathBuf::from(&path).parent().expect("a folder").display().to_string();
        let outcome = run(["fences", "--diff", &path]);
        let header = outcome.stdout.lines().next().expect("a header");
        assert_eq!(header, format!("--- {}", quoted.replace("{}", &folder)), "{outcome:?}");
    }
}

#[test]
fn two_fences_that_replace_each_other_are_not_both_superfluous() {
    let text =
        BUFFERING.replace("x = 1; r", "x = 1; fence; fence; r").replace("    s = x", "    fence;\n    s = x");
    let files = Files::new(&[("sb.fw", &text)]);
    let outcome = run(["fences", "--audit", "--json", &files.text("sb.fw")]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let together: Vec<(Option<bool>, Option<bool>)> =
        outcome.json_lines().iter().map(|a| (a["needed"].as_bool(), a["together"].as_bool())).collect();
    assert_eq!(together, [(Some(false), Some(true)), (Some(false), Some(false)), (Some(true), None)]);
    let outcome = run(["fences", "--audit", "--quiet", &files.text("sb.fw")]);
    assert!(outcome.stdout.contains("needed once the other superfluous fences are gone"), "{outcome:?}");
}

#[test]
fn what_spare_leaves_unfixable_is_said() {
    let text = BUFFERING.replace("x = 1; r", "x = 1; a: r") + "spare p@a;\n";
    let files = Files::new(&[("spare.fw", &text)]);
    let outcome = run(["fences", "--quiet", &files.text("spare.fw")]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(outcome.stdout.contains("spared places are why: without `spare`, fence at 2:26"), "{outcome:?}");
}

#[test]
fn long_programs_obey_the_limits() {
    let program = |body: String| {
        format!(
            "shared x, y; thread p {{ var r; x = 1; {body} r = y; }} thread q {{ var s; y = 1; s = x; }}
             finally sb: never p.r == 0 && q.s == 0;"
        )
    };
    let stores = program((0..20_000).map(|n| format!("x = {n};\n")).collect());
    let registers = program((0..20_000).map(|n| format!("r = {n};\n")).collect());
    let files = Files::new(&[("stores.fw", &stores), ("registers.fw", &registers)]);
    for (file, arguments) in [
        ("stores.fw", ["--model", "tso"]),
        ("stores.fw", ["--model", "pso"]),
        ("registers.fw", ["--model", "tso"]),
        ("registers.fw", ["--goal", "robustness"]),
    ] {
        let start = Instant::now();
        let path = files.text(file);
        let outcome =
            run(["fences", "--json", "--timeout", "1s"].iter().chain(&arguments).chain([&path.as_str()]));
        assert_eq!(outcome.json_lines().len(), 1, "{outcome:?}");
        let seconds = start.elapsed().as_secs_f64();
        assert!(seconds < 30.0, "{file} {arguments:?}: {seconds:.1} s");
    }
}

/// The edited text respects the bound: the machine with bounded queues proves this, and the certificate is accepted.
#[test]
fn buffers_are_kept_within_a_bound() {
    for (model, option, buffer, count) in [
        ("tso", "1", "1", 6),
        ("tso", "2/thread", "2", 4),
        ("pso", "1", "1/variable", 4),
        ("pso", "1/thread", "1", 6),
    ] {
        let files = Files::new(&[("dekker.fw", &example("dekker.fw"))]);
        let (path, proof) = (files.text("dekker.fw"), files.text("proof.json"));
        let outcome = run(["fences", "--model", model, "--no-overflow", option, "--json", "--write", &path]);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        for wanted in
            [format!("\"count\":{count},"), "\"checked\":true".into(), "\"no_overflow\":{\"stores\":".into()]
        {
            assert!(outcome.stdout.contains(&wanted), "{model} {option}, {wanted}: {outcome:?}");
        }
        let bounded = [
            "check",
            "--model",
            model,
            "--engine",
            "cegar",
            "--buffer",
            buffer,
            "--certificate",
            &proof,
            &path,
        ];
        let outcome = run(bounded);
        assert_eq!(outcome.status, 0, "{model} {option}: {outcome:?}");
        let outcome = run(["certify", "--model", model, &proof, &path]);
        assert_eq!(outcome.status, 0, "{model} {option}: {outcome:?}");
    }
    let files = Files::new(&[("dekker.fw", &example("dekker.fw"))]);
    let outcome = run(["fences", "--no-overflow", "1", &files.text("dekker.fw")]);
    for wanted in [
        "with at most 1 buffered store per thread",
        "too many stores in its buffer",
        "at most 1 store per thread (confirmed)",
    ] {
        assert!(outcome.stdout.contains(wanted), "{wanted}: {outcome:?}");
    }
    let outcome = run(["fences", "--no-overflow", "1/variable", &files.text("dekker.fw")]);
    assert_eq!(outcome.status, 2, "{outcome:?}");
    // With a bound of 0, fences do not help, because only a locked instruction never enters the buffer.
    let outcome = run(["fences", "--no-overflow", "0", &files.text("dekker.fw")]);
    assert!(
        outcome.status == 1
            && outcome.stdout.contains("no fence at an allowed place prevents a violation of `overflow`"),
        "{outcome:?}"
    );
    let outcome = run(["fences", "--no-overflow", "0", "--price", "xchg=1", &files.text("dekker.fw")]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
}
