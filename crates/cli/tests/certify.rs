//! `check --certificate`, `certify` and `check --invariants`, as a user would type them.

mod common;

use common::{Files, run};

const TICKET: &str = "\
shared next, serving;
thread p[me in 0..2] {
    var mine;
    loop {
        mine = fetch_add(next, 1);
        await serving == mine;
    critical:
        skip;
        serving = mine + 1;
    }
}
forbid mutex: p[0]@critical && p[1]@critical;
";

fn files() -> Files {
    Files::new(&[("ticket.fw", TICKET), ("other.fw", &TICKET.replace("mine + 1", "mine + 2"))])
}

#[test]
fn a_proof_of_an_unbounded_program_can_be_checked_again() {
    let files = files();
    let (program, proof) = (files.text("ticket.fw"), files.text("proof.json"));
    let outcome = run(["check", "--certificate", &proof, &program]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.stdout.contains("mutex: safe under tso ("), "{outcome:?}");
    assert!(outcome.stdout.contains("; certificate accepted in "), "{outcome:?}");
    let outcome = run(["certify", &proof, &program]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.stdout.contains("accepted: mutex under tso"), "{outcome:?}");
    let outcome = run(["certify", &proof, &files.text("other.fw")]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(outcome.stdout.contains("rejected: the certificate is about another program"), "{outcome:?}");
}

#[test]
fn what_is_not_a_certificate_is_bad_input() {
    let files = files();
    let program = files.text("ticket.fw");
    assert_eq!(run(["certify", &program, &program]).status, 2);
    assert_eq!(run(["certify", &files.text("missing.json"), &program]).status, 2);
    assert_eq!(run(["check", "--certificate", &files.text("p.json"), &program, &program]).status, 2);
}

#[test]
fn a_certificate_with_absurd_parameters_is_rejected() {
    let files = files();
    let (program, proof) = (files.text("ticket.fw"), files.text("proof.json"));
    assert_eq!(run(["check", "--engine", "cegar", "--certificate", &proof, &program]).status, 0);
    let text = std::fs::read_to_string(&proof).expect("it was written");
    for (from, to) in
        [("\"k\":1", "\"k\":4294967295"), ("\"version\":1", "\"version\":2"), ("\"mutex\"", "\"deadlock\"")]
    {
        assert!(text.contains(from), "{from}");
        std::fs::write(&proof, text.replacen(from, to, 1)).expect("writable");
        assert_eq!(run(["certify", &proof, &program]).status, 1, "{to}");
    }
}

#[test]
fn invariants_are_printed_in_the_words_of_the_program() {
    let files = files();
    let outcome = run(["check", "--engine", "cegar", "--invariants", &files.text("ticket.fw")]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.stdout.contains("p[0] is at critical"), "{outcome:?}");
    assert!(
        outcome.stdout.contains("p[0].mine == serving") || outcome.stdout.contains("serving == p[0].mine"),
        "{outcome:?}"
    );
}

#[test]
fn both_domains_and_both_ends_prove_it() {
    let files = files();
    for domain in ["zones", "predicates"] {
        for kept in ["oldest", "newest"] {
            for k in ["0", "2"] {
                let program = files.text("ticket.fw");
                let outcome = run([
                    "check", "--engine", "cegar", "--domain", domain, "--kept", kept, "--k", k, &program,
                ]);
                assert_eq!(outcome.status, 0, "{domain} {kept} {k}: {outcome:?}");
            }
        }
    }
}

#[test]
fn what_is_fixed_is_not_refined() {
    let peterson = format!("{}/../../examples/peterson.fenced.fw", env!("CARGO_MANIFEST_DIR"));
    let with = |options: &[&str]| {
        let arguments = [&["check", "--engine", "cegar"], options, &[peterson.as_str()]].concat();
        run(arguments)
    };
    assert_eq!(with(&["--k", "0"]).status, 0);
    assert_eq!(with(&["--k", "1", "--fix", "k,clip"]).status, 0);
    let outcome = with(&["--k", "0", "--fix", "k"]);
    assert_eq!(outcome.status, 3, "{outcome:?}");
    assert!(outcome.stdout.contains("it takes k = 1, and k is fixed at 0"), "{outcome:?}");
    let outcome = with(&["--domain", "predicates", "--fix", "predicates"]);
    assert_eq!(outcome.status, 3, "{outcome:?}");
    assert!(outcome.stdout.contains("it takes more predicates"), "{outcome:?}");
}

#[test]
fn with_a_bound_on_buffers_the_machine_is_a_queue() {
    let files = files();
    let (program, proof) = (files.text("ticket.fw"), files.text("proof.json"));
    let with = |bound: &str| {
        run(["check", "--engine", "cegar", "--buffer", bound, "--certificate", &proof, &program])
    };
    // `fetch_add` drains the buffer, so one store is the most that waits.
    let outcome = with("0");
    assert_eq!(outcome.status, 3, "{outcome:?}");
    assert!(outcome.stdout.contains("at most 0 buffered stores"), "{outcome:?}");
    let outcome = with("1");
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let text = std::fs::read_to_string(&proof).expect("the certificate was written");
    assert!(text.contains(r#""kind":"queue""#), "{text}");
    assert_eq!(run(["certify", &proof, &program]).status, 0);
}

#[test]
fn a_buffer_that_no_machine_has_is_rejected() {
    let files = files();
    let (program, proof) = (files.text("ticket.fw"), files.text("proof.json"));
    assert_eq!(run(["check", "--engine", "cegar", "--certificate", &proof, &program]).status, 0);
    let text = std::fs::read_to_string(&proof).expect("the certificate was written");
    for (from, to) in [
        (r#""queue":[]"#, r#""queue":[null]"#),
        (r#""queue":[]"#, r#""queue":[0,0,0,0,0,0,0,0,0,0,0,0]"#),
        (r#""queue":[]"#, r#""queue":[4000000000]"#),
        (r#""set":[]"#, r#""set":[1,0]"#),
        (r#""properties":["mutex"]"#, r#""properties":[]"#),
    ] {
        assert!(text.contains(from), "{from}");
        std::fs::write(&proof, text.replacen(from, to, 1)).expect("writable");
        assert_eq!(run(["certify", &proof, &program]).status, 1, "{to}");
    }
}
