//! The nesting of claims: the checker accepts exactly the nestings that the manual lists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use fencewright_certify::{Certificate, Rejection, Stop, check};
use fencewright_lang::load;
use fencewright_smt::Prover;

/// A program with stores that PSO reorders, and with a choice that can be narrowed, also after reordering.
const PROGRAM: &str = "shared x, y; thread p { var r; r = * in 0..1000000; x = 1; y = 1; assert r != 7; }
    forbid wrong: x == 2;
    finally found: exists x == 2;";

/// A claim of this kind; if a claim of this kind contains another claim, that is `inner`.
fn claim(kind: &str, inner: &str) -> String {
    match kind {
        "safe" => r#"{"kind":"safe","properties":["wrong"]}"#.into(),
        "unsatisfied" => r#"{"kind":"unsatisfied","properties":["found"]}"#.into(),
        "robust" => r#"{"kind":"robust","notion":"happens-before"}"#.into(),
        "lazy" => r#"{"kind":"lazy","properties":["wrong"],"extensions":[]}"#.into(),
        "reordered" => format!(r#"{{"kind":"reordered","tso":{inner}}}"#),
        "sliced" => format!(
            r#"{{"kind":"sliced","properties":["wrong"],"parts":[{{"slices":[[0]],"claim":{inner}}}]}}"#
        ),
        "narrowed" => format!(r#"{{"kind":"narrowed","fewer":{inner}}}"#),
        other => panic!("there is no claim {other}"),
    }
}

const KINDS: [&str; 7] = ["safe", "unsatisfied", "robust", "lazy", "reordered", "sliced", "narrowed"];

/// Whether the checker accepts the nesting and starts to check the proofs of the nested claim. The only proof is about TSO, and it is wrong.
fn goes_on(outer: &str, inner: &str) -> bool {
    let claim = claim(outer, &claim(inner, &claim("safe", "")));
    let invariant =
        r#"{"machine":{"kind":"queue","model":"tso","bound":2},"symmetry":[],"cells":{},"states":[]}"#;
    let text = format!(
        r#"{{"format":"fencewright-certificate","version":3,"program":"","claim":{claim},"proofs":[{{"invariant":{invariant}}}]}}"#
    );
    let certificate = Certificate::read(text.as_bytes()).expect("it is a certificate");
    let program = load("test.fw", PROGRAM.as_bytes(), None, &[]).expect("it is right").program;
    let stop: Stop = Arc::new(|| false);
    match check(&certificate, &program, &Prover, &stop).expect_err("nothing is proved") {
        Rejection::Format(what) => {
            let refused = ["what it says about tso is not about tso", "it is not about properties"];
            !refused.contains(&what.as_str())
        }
        // The nesting is allowed, but the narrowed program has no choice left that could be narrowed.
        Rejection::Transformation(_) if inner == "narrowed" && outer == "narrowed" => true,
        Rejection::Transformation(what) => panic!("{inner} in {outer}: {what}"),
        _ => true,
    }
}

/// The kinds in a row of the manual's table of nestings.
fn written(outer: &str) -> BTreeSet<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/certificates.md");
    let page = fs::read_to_string(page).expect("the manual has the page");
    let table = page.split("| claim | what may be in it |").nth(1).expect("the page has the table");
    let row = table.lines().find(|line| line.starts_with(&format!("| `{outer}` |")));
    let row = row.expect("each kind has a row").split('|').nth(2).expect("a row has two columns");
    let list = row.split([':', '.']).next().unwrap_or_default();
    list.split('`').filter(|word| KINDS.contains(word)).map(String::from).collect()
}

#[test]
fn the_manual_lists_which_claims_may_be_in_which() {
    for outer in ["reordered", "sliced", "narrowed"] {
        let inner = KINDS.iter().filter(|inner| goes_on(outer, inner)).map(|inner| inner.to_string());
        assert_eq!(inner.collect::<BTreeSet<_>>(), written(outer), "{outer}");
    }
}
