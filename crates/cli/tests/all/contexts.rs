//! Engine `contexts`, as a user would type it.

use crate::common::*;
use serde_json::Value;

/// Store buffering, stopped after both threads have read: two contexts suffice, because the stores need not reach memory.
const MISSED: &str = "\
shared x, y;
thread p {
    var r;
    x = 1;
    r = y;
done:
    skip;
}
thread q {
    var r;
    y = 1;
    r = x;
done:
    skip;
}
forbid both_missed: p@done && q@done && p.r == 0 && q.r == 0;
";

/// The program `MISSED` with a fence before each load.
fn fenced() -> String {
    MISSED.replace("    r =", "    fence;\n    r =")
}

/// Lamport's bakery with fences: it is safe, but three contexts do not prove that.
fn bakery() -> String {
    let outcome = run(["generate", "bakery", "--fences"]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    outcome.stdout
}

/// Runs `check --engine contexts` on this text.
fn check(text: &str, arguments: &[&str]) -> Outcome {
    let fixed = ["check", "--engine", "contexts", "-"];
    run_with_input(fixed.iter().chain(arguments), text.as_bytes())
}

/// The output of `--json` for one property, which must be unknown.
fn unknown(text: &str, arguments: &[&str]) -> Value {
    let outcome = check(text, &[&["--json"], arguments].concat());
    assert_eq!(outcome.status, 3, "{outcome:?}");
    let [line] = &outcome.json_lines()[..] else { panic!("one line: {outcome:?}") };
    assert_eq!(line["verdict"], "unknown", "{outcome:?}");
    line.clone()
}

#[test]
fn store_buffering_takes_two_contexts() {
    let outcome = check(MISSED, &[]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    let (verdict, rest) = outcome.stdout.split_once('\n').expect("more than the verdict");
    assert!(verdict.starts_with("<stdin>: both_missed: unsafe under tso (contexts, "), "{verdict}");
    assert!(verdict.ends_with("replayed on the reference semantics)"), "{verdict}");
    let (execution, rounds) = rest.split_once("  1 context: ").expect("what one context took");
    assert_eq!(execution, EXECUTION);
    assert!(!rounds.contains("contexts: "), "two contexts were not explored to their end: {rounds}");
}

/// Each thread runs in one context, with its store still in the buffer.
const EXECUTION: &str = "  initially x=0 y=0
      thread  line  statement  what happens
   1  p          4  x = 1;     x = 1 -> buffer of p
   2  p          5  r = y;     reads y = 0 from memory; r = 0
   3  q         11  y = 1;     y = 1 -> buffer of q
   4  q         12  r = x;     reads x = 0 from memory; r = 0
  at the end
    p  is at done (line 7)   r=0
    q  is at done (line 14)   r=0
  this state violates both_missed (<stdin>:16:1: forbid both_missed: p@done && q@done && p.r == 0 && q.r == 0;)
  It takes 2 contexts; fewer do not show it.
";

#[test]
fn rounds_are_in_json() {
    let lines = check(MISSED, &["--json"]).json_lines();
    let rounds = lines[0]["rounds"].as_array().expect("a list of rounds");
    assert_eq!(rounds.len(), 1, "one context was not enough: {rounds:?}");
    assert_eq!(rounds[0]["contexts"], 1);
    assert!(rounds[0]["states"].is_u64() && rounds[0]["seconds"].is_f64(), "{rounds:?}");
    let other = run_with_input(["check", "--engine", "explicit", "--json", "-"], MISSED.as_bytes());
    assert!(other.json_lines()[0].get("rounds").is_none(), "{other:?}");
}

#[test]
fn a_bound_that_was_reached_is_no_proof() {
    let line = unknown(&bakery(), &["--property", "mutex", "--contexts", "3"]);
    assert_eq!(line["reason"], "no violation within 3 contexts");
    let counted: Vec<_> =
        line["rounds"].as_array().expect("rounds").iter().map(|r| r["contexts"].as_u64()).collect();
    assert_eq!(counted, [Some(1), Some(2), Some(3)]);
    assert!(line["trace"].is_null() && line["checked"].is_null());
}

#[test]
fn where_more_contexts_show_nothing_more_it_is_safe() {
    let outcome = check(&fenced(), &[]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.stdout.contains("both_missed: safe under tso (contexts, "), "{outcome:?}");
}

#[test]
fn domain_order_says_what_it_cannot_express() {
    let line = unknown(&MISSED.replace("x = 1;", "x = r + 1;"), &["--domain", "order"]);
    assert_eq!(line["reason"], "domain order cannot represent arithmetic on values");
    assert_eq!(
        (line["growth"][0]["line"].as_u64(), line["growth"][0]["column"].as_u64()),
        (Some(4), Some(5))
    );
}

#[test]
fn numbers_of_contexts_are_limited() {
    for (contexts, status) in [("0", 2), ("65", 2), ("many", 2), ("1", 3), ("64", 0)] {
        let outcome = check(&fenced(), &["--contexts", contexts]);
        assert_eq!(outcome.status, status, "{contexts}: {outcome:?}");
        assert_eq!(outcome.stderr.contains("--contexts"), status == 2, "{contexts}: {outcome:?}");
    }
}

#[test]
fn what_it_cannot_decide_it_says() {
    let reason = |arguments: &[&str]| unknown(MISSED, arguments)["reason"].clone();
    assert_eq!(reason(&["--model", "pso"]), "engine contexts knows SC and TSO, not PSO");
    assert_eq!(reason(&["--property", "deadlock"]), "engine contexts cannot decide deadlocks");
}
