//! `check --certificate`, `certify` and `check --invariants`, as a user would type them.

use std::io::Write;
use std::process::Stdio;

use crate::common::{Files, Outcome, command, finish, run};

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

/// The translation of a C program for TSO is another one than for PSO, and a certificate is checked with its own.
#[test]
fn a_proof_about_a_c_program_is_checked_with_the_translation_for_its_model() {
    let files = Files::new(&[(
        "freed.c",
        "#include <pthread.h>\n#include <stdlib.h>\n#include <stdatomic.h>\n
        struct s { int v; }; atomic_int done; pthread_t t;
        void *work(void *argument) { struct s *a = argument; a->v = 1;
            atomic_store_explicit(&done, 1, memory_order_relaxed); return 0; }
        int main(void) { struct s *a = malloc(sizeof *a); pthread_create(&t, 0, work, a);
            while (!atomic_load(&done)); free(a); a = malloc(sizeof *a); a->v = 2; return a->v; }\n",
    )]);
    let (program, proof) = (files.text("freed.c"), files.text("proof.json"));
    for model in ["sc", "tso"] {
        let outcome = run(["check", "--model", model, "--certificate", &proof, &program]);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        let outcome = run(["certify", &proof, &program]);
        assert_eq!(outcome.status, 0, "{outcome:?}");
    }
    let outcome = run(["check", "--model", "pso", &program]);
    assert_eq!(outcome.status, 3, "{outcome:?}");
    assert!(outcome.stdout.contains("may store to an object after"), "{outcome:?}");
    let outcome = run(["check", "--model", "all", &program]);
    assert_eq!(outcome.status, 3, "{outcome:?}");
    assert!(outcome.stdout.contains("may store to an object after"), "{outcome:?}");
}

/// A thread that writes forever, and two identical readers.
const READERS: &str = "\
shared x, y;
thread w {
    var k;
    loop {
        k = k + 1;
        x = k;
        sfence;
        y = k;
        sfence;
    }
}
thread r[me in 0..2] {
    var a, b;
    loop {
        a = y;
        b = x;
        assert a <= b;
    }
}
";

#[test]
fn a_proof_without_threads_that_cannot_matter_says_so_and_can_be_checked_again() {
    let files = Files::new(&[
        ("readers.fw", READERS),
        ("writes.fw", &READERS.replace("assert a <= b;", "assert a <= b; x = b + 1;")),
    ]);
    let (program, proof) = (files.text("readers.fw"), files.text("proof.json"));
    let outcome = run(["check", "--certificate", &proof, &program]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.stdout.contains(" in slices of w, r[0] and of w, r[1], "), "{outcome:?}");
    let outcome = run(["check", "--json", &program]);
    let slices = &outcome.json_lines()[0]["slices"];
    assert_eq!(slices.to_string(), r#"[["w","r[0]"],["w","r[1]"]]"#, "{outcome:?}");
    let outcome = run(["certify", &proof, &program]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.stdout.contains("accepted: assertions under tso"), "{outcome:?}");
    // First the certificate lacks the slice of one reader; then both slices leave out the writer.
    let text = files.read("proof.json");
    files.write("fewer.json", text.replace("[[0,1],[0,2]]", "[[0,1]]").as_bytes());
    let outcome = run(["certify", &files.text("fewer.json"), &program]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(outcome.stdout.contains("no slice shows all of `assertions`"), "{outcome:?}");
    files.write("alone.json", text.replace("[[0,1],[0,2]]", "[[1],[2]]").as_bytes());
    let outcome = run(["certify", &files.text("alone.json"), &program]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(outcome.stdout.contains("a thread that is left out may store to x"), "{outcome:?}");
    let outcome = run(["check", "--json", &files.text("writes.fw")]);
    assert!(outcome.json_lines()[0].get("slices").is_none(), "{outcome:?}");
}

/// If no certificate can be written, the command says why and exits with an error.
#[test]
fn a_certificate_that_cannot_be_written_is_an_error() {
    let files = files();
    let program = files.text("ticket.fw");
    for (place, why) in [("/dev/full", "No space left"), ("/nowhere/proof.json", "no such file")] {
        let outcome = run(["check", "--engine", "cegar", "--certificate", place, &program]);
        assert_eq!(outcome.status, 2, "{outcome:?}");
        assert!(outcome.stderr.contains(why) && outcome.stderr.contains(place), "{outcome:?}");
        let outcome = run(["check", "--engine", "cegar", "--json", "--certificate", place, &program]);
        assert_eq!(outcome.status, 2, "{outcome:?}");
        let error = outcome.json_lines().last().map(|line| line["error"].to_string());
        assert!(error.is_some_and(|error| error.contains(why)), "{outcome:?}");
    }
    files.write("kept.json", b"old");
    let mut permissions = std::fs::metadata(files.path("kept.json")).expect("there").permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(files.path("kept.json"), permissions).expect("the owner may");
    let outcome = run(["check", "--engine", "cegar", "--certificate", &files.text("kept.json"), &program]);
    assert_eq!((outcome.status, files.read("kept.json").as_str()), (2, "old"), "{outcome:?}");
}

/// A certificate is one proof; the command names the properties that the certificate does not prove.
#[test]
fn what_a_certificate_is_not_about_is_said() {
    let ending = TICKET.replace("loop {", "loop {\n        choose { stop; } or { skip; }");
    let files = Files::new(&[("ticket.fw", &(ending + "finally zero: exists next == 0;\n"))]);
    let (program, proof) = (files.text("ticket.fw"), files.text("proof.json"));
    let outcome = run(["check", "--certificate", &proof, &program]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(files.read("proof.json").contains("\"properties\":[\"mutex\"]"), "{outcome:?}");
    assert!(outcome.stderr.contains("says nothing about zero: that was shown in another way"), "{outcome:?}");
}

/// Five identical threads: the proof is up to symmetry, and so is its check (when the check expanded it to all 120 permutations, it took minutes).
#[test]
fn a_ticket_lock_of_five_threads_is_proved_and_checked() {
    let example = crate::common::repository("examples/ticket-lock.fw").to_string_lossy().into_owned();
    let files = files();
    let proof = files.text("proof.json");
    let checking = ["check", "--engine", "cegar", "-D", "N=5", "--certificate", &proof, &example];
    let outcome = run(checking);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.stdout.contains("; certificate accepted in "), "{outcome:?}");
    let certify = || run(["certify", "-D", "N=5", &proof, &example]);
    let outcome = certify();
    assert!(outcome.stdout.contains("accepted: mutex under tso"), "{outcome:?}");
    let text = files.read("proof.json");
    assert!(text.contains("\"symmetry\":[[0,1,2,3,4]]"), "{}", &text[..400]);
    // With less symmetry, the certificate lacks most states; with another number of threads, the program is another one.
    for symmetry in ["[]", "[[0,1,2,3]]", "[[0,1],[2,3,4]]"] {
        files.write("proof.json", text.replace("[[0,1,2,3,4]]", symmetry).as_bytes());
        assert_eq!(certify().status, 1, "{symmetry}");
    }
    files.write("proof.json", text.as_bytes());
    assert_eq!(run(["certify", "-D", "N=4", &proof, &example]).status, 1);
}

/// An attack that only the data make impossible: no thread sets `go`.
const GUARDED: &str = "\
shared x, y, go;
thread p { var r; x = 1; r = y; }
thread q { var r; r = go; if r == 1 { y = 1; r = x; } }
forbid two: p.r == 2;
";

#[test]
fn robustness_is_certified() {
    let files = Files::new(&[("a.fw", GUARDED), ("b.fw", &GUARDED.replace("go;\n", "go = 1;\n"))]);
    let (program, proof) = (files.text("a.fw"), files.text("proof.json"));
    let outcome = run(["robust", "--certificate", &proof, &program]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.stdout.contains("certificate accepted"), "{outcome:?}");
    let outcome = run(["certify", &proof, &program]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.stdout.contains("accepted: robust against tso ("), "{outcome:?}");
    let outcome = run(["certify", "--json", "--model", "tso", &proof, &program]);
    let accepted = &outcome.json_lines()[0];
    assert_eq!((&accepted["claim"], &accepted["verdict"]), (&"robust".into(), &"accepted".into()));
    assert_eq!(run(["certify", "--property", "two", &proof, &program]).status, 1, "it is about no property");
    // A proof of freedom from triangular races is about different transformed programs, so this certificate does not fit.
    let text = files.read("proof.json");
    files.write("proof.json", text.replace("happens-before", "triangular").as_bytes());
    assert_eq!(run(["certify", &proof, &program]).status, 1);
    let outcome = run(["robust", "--notion", "triangular", "--certificate", &proof, &program]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let outcome = run(["certify", &proof, &program]);
    assert!(outcome.stdout.contains("accepted: free of triangular races ("), "{outcome:?}");
    // If an attack succeeds there is no certificate, and the old one is removed so that it is not mistaken for a new one.
    let outcome = run(["robust", "--quiet", "--certificate", &proof, &files.text("b.fw")]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(outcome.stderr.contains("no certificate: an attack succeeds; the one that was there is removed"));
    assert!(!files.path("proof.json").exists());
    assert_eq!(run(["robust", "--certificate", "/dev/full", &program]).status, 2);
    assert_eq!(run(["robust", "--certificate", &proof, &program, &program]).status, 2);
    assert_eq!(run(["robust", "--all", "--certificate", &proof, &program]).status, 2);
}

#[test]
fn an_old_certificate_is_not_taken_for_a_new_one() {
    let files =
        Files::new(&[("a.fw", TICKET), ("b.fw", &TICKET.replace("serving == mine", "serving <= mine"))]);
    let proof = files.text("proof.json");
    assert_eq!(run(["check", "--certificate", &proof, &files.text("a.fw")]).status, 0);
    assert!(files.path("proof.json").exists());
    let outcome = run(["check", "--quiet", "--certificate", &proof, &files.text("b.fw")]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(outcome.stderr.contains("nothing was proved; the one that was there is removed"), "{outcome:?}");
    assert!(!files.path("proof.json").exists());
    // A file that is not a certificate is kept, because it may be the user's work.
    files.write("proof.json", b"{}");
    let outcome = run(["check", "--quiet", "--certificate", &proof, &files.text("b.fw")]);
    assert!(outcome.stderr.contains("no certificate: nothing was proved\n"), "{outcome:?}");
    assert_eq!(files.read("proof.json"), "{}");
    for command in ["check", "robust"] {
        let outcome = run([command, "--certificate", "-", &files.text("a.fw")]);
        assert_eq!(outcome.status, 2, "{outcome:?}");
        assert!(outcome.stderr.contains("-: a certificate is written to a file"), "{outcome:?}");
    }
}

#[test]
fn proofs_by_way_of_sc_are_certified() {
    let files = Files::new(&[("a.fw", GUARDED)]);
    let (program, proof) = (files.text("a.fw"), files.text("proof.json"));
    let outcome = run(["check", "--engine", "lazy", "--certificate", &proof, &program]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.stdout.contains("two: safe under tso (lazy, "), "{outcome:?}");
    assert!(outcome.stdout.contains("; certificate accepted in "), "{outcome:?}");
    assert!(files.read("proof.json").contains("\"kind\":\"lazy\""));
    let outcome = run(["certify", "--property", "two", &proof, &program]);
    assert!(outcome.stdout.contains("accepted: two under tso ("), "{outcome:?}");
    let outcome = run(["check", "--engine", "lazy", "--invariants", "--certificate", &proof, &program]);
    assert!(
        outcome.stdout.contains("the program is robust: under sc it does the same; proved of that"),
        "{outcome:?}"
    );
    assert!(outcome.stdout.contains("p has ended: x == 1"), "{outcome:?}");
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
        [("\"k\":1", "\"k\":4294967295"), ("\"version\":3", "\"version\":2"), ("\"mutex\"", "\"deadlock\"")]
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
    // `fetch_add` drains the buffer, so buffers hold at most one store.
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

/// If a buffer holds more stores to one cell than the machine keeps in order, it has no room for stores to another cell.
#[test]
fn an_overfull_buffer_is_rejected() {
    let files = files();
    files.write(
        "two.fw",
        b"shared x, y;\nthread p { x = 1; y = 1; }\nthread q { var a; a = x; }\nforbid good: q.a > 1;\n",
    );
    let program = files.text("two.fw");
    let proof = files.text("proof.json");
    let check = ["check", "--model", "pso", "--engine", "cegar", "--certificate", &proof, &program];
    assert_eq!(run(check).status, 0);
    let text = std::fs::read_to_string(&proof).expect("the certificate was written");
    let (from, to) = (r#""queue":[0]"#, r#""queue":[0,0,0,0,0]"#);
    assert!(text.contains(from), "{text}");
    std::fs::write(&proof, text.replacen(from, to, 1)).expect("writable");
    assert_eq!(run(["certify", &proof, &program]).status, 1);
}

/// The smallest 64-bit integer cannot be negated, so the certificate's linear constraints cannot express it.
#[test]
fn an_invariant_that_no_certificate_can_say_is_no_contradiction() {
    let files = files();
    files.write(
        "least.fw",
        b"shared x = -9223372036854775807;\nthread p { var r; r = x; r = r - 1; }\nforbid b: p.r > 5;\n",
    );
    let program = files.text("least.fw");
    let outcome = run(["check", "--engine", "cegar", "--domain", "concrete", "--json", &program]);
    assert_eq!(outcome.status, 0, "{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stdout.contains(r#""verdict":"safe""#), "{}", outcome.stdout);
}

/// The files, the path of a program, the path of a certificate for it, and the text of the certificate.
fn proved() -> (Files, String, String, String) {
    let files = files();
    let (program, proof) = (files.text("ticket.fw"), files.text("proof.json"));
    assert_eq!(run(["check", "--engine", "cegar", "--certificate", &proof, &program]).status, 0);
    let text = files.read("proof.json");
    (files, program, proof, text)
}

#[test]
fn a_certificate_must_be_about_what_was_asked_for() {
    let (_files, program, proof, _) = proved();
    let with = |options: &[&str]| run([&["certify"], options, &[&proof, &program]].concat());
    assert_eq!(with(&["--model", "tso", "--property", "mutex"]).status, 0);
    let outcome = with(&["--model", "pso"]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(outcome.stdout.contains("rejected: the certificate is about tso, not about pso"), "{outcome:?}");
    let outcome = with(&["--property", "mutex", "--property", "assertions"]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(outcome.stdout.contains("not about the property `assertions`"), "{outcome:?}");
}

#[test]
fn certify_answers_in_json_too() {
    let (files, program, proof, _) = proved();
    let accepted = &run(["certify", "--json", &proof, &program]).json_lines()[0];
    assert_eq!(accepted["verdict"], "accepted");
    assert_eq!(
        (&accepted["model"], &accepted["properties"][0], &accepted["reason"]),
        (&"tso".into(), &"mutex".into(), &serde_json::Value::Null)
    );
    assert!(accepted["control_states"].as_u64() > Some(0) && accepted["steps"].as_u64() > Some(0));
    let outcome = run(["certify", "--json", &proof, &files.text("other.fw")]);
    let rejected = &outcome.json_lines()[0];
    assert_eq!((outcome.status, &rejected["verdict"]), (1, &"rejected".into()), "{rejected}");
    assert_eq!(rejected["reason"], "the certificate is about another program");
    let outcome = run(["certify", "--json", "--timeout", "0", &proof, &program]);
    let unknown = &outcome.json_lines()[0];
    assert_eq!((outcome.status, &unknown["verdict"]), (3, &"unknown".into()), "{unknown}");
    assert_eq!(unknown["reason"], "no answer within 0 s");
    let outcome = run(["certify", "--json", &program, &program]);
    assert_eq!(outcome.status, 2, "{outcome:?}");
    assert!(outcome.json_lines()[0]["error"].as_str().is_some_and(|e| e.contains("not a certificate")));
    assert_eq!(
        (&outcome.json_lines()[0]["line"], &outcome.json_lines()[0]["column"]),
        (&1.into(), &1.into())
    );
    // The error has its position in the certificate.
    files.write("wrong.json", b"{\n  \"format\": \"fencewright-certificate\",\n  \"version\": \"2\"\n}\n");
    let outcome = run(["certify", "--json", &files.text("wrong.json"), &program]);
    let error = &outcome.json_lines()[0];
    assert_eq!((&error["line"], &error["file"]), (&3.into(), &files.text("wrong.json").into()), "{error}");
    assert!(outcome.stderr.contains("wrong.json:3:"), "{outcome:?}");
    assert!(!error["error"].to_string().contains("line 3"), "{error}");
    let outcome = run(["certify", "--json", &files.text("missing.json"), &program]);
    assert_eq!(outcome.json_lines()[0]["line"], serde_json::Value::Null);
}

/// Runs `certify` on a certificate that begins with `start` and repeats `piece` without end.
fn certify_endless(options: [&str; 2], program: &str, start: &str, piece: &str) -> Outcome {
    let arguments = ["certify", options[0], options[1], "-", program];
    let mut child = command().args(arguments).stdin(Stdio::piped()).spawn().expect("the command starts");
    let mut stdin = child.stdin.take().expect("the standard input is piped");
    let piece = piece.repeat(1 << 16);
    let _ = stdin.write_all(start.as_bytes());
    while stdin.write_all(piece.as_bytes()).is_ok() {}
    finish(child)
}

#[test]
fn an_endless_certificate_ends() {
    let (_files, program, ..) = proved();
    let outcome = certify_endless(["--memory", "32M"], &program, "{\"format\":\"", "a");
    assert_eq!(outcome.status, 3, "{outcome:?}");
    assert!(outcome.stdout.contains("unknown: no answer within 32 MiB of memory"), "{outcome:?}");
    let outcome = certify_endless(["--timeout", "100ms"], &program, "", " ");
    assert_eq!(outcome.status, 3, "{outcome:?}");
    assert!(outcome.stdout.contains("unknown: no answer within 0.100 s"), "{outcome:?}");
    let outcome = certify_endless(["--timeout", "none"], &program, "", " ");
    assert_eq!(outcome.status, 2, "{outcome:?}");
    assert!(outcome.stderr.contains("too long"), "{outcome:?}");
}

#[test]
fn hostile_certificates_are_refused_in_time() {
    let (files, program, proof, text) = proved();
    let certify = |text: &str| {
        files.write("proof.json", text.as_bytes());
        run(["certify", "--timeout", "1s", "--memory", "256M", &proof, &program])
    };
    // Deep nesting, and numbers that exceed every integer type.
    assert_eq!(certify(&"[".repeat(1_000_000)).status, 2);
    assert_eq!(
        certify(&text.replacen("\"version\":3", &format!("\"version\":{}", "[".repeat(10_000)), 1)).status,
        2
    );
    for extreme in [i64::MIN, i64::MIN + 1, i64::MAX] {
        assert_eq!(certify(&text.replace("\"constant\":0", &format!("\"constant\":{extreme}"))).status, 1);
        // If another list ends in the same characters as a term, the result is not a certificate at all.
        assert!(matches!(certify(&text.replace(",1]", &format!(",{extreme}]"))).status, 1 | 2));
        assert_eq!(certify(&text.replace(",-1]", &format!(",{extreme}]"))).status, 1);
    }
    assert_eq!(certify(&text.replace("\"constant\":", "\"constant\":1e400")).status, 2);
    // One state whose invariant has very many parts: every step has to be compared with all of them.
    let first = text.find("\"invariant\":[").expect("there is a state") + "\"invariant\":[".len();
    let part = |n: usize| format!("[{{\"terms\":[[0,1],[1,-2]],\"constant\":{n}}}],");
    let many: String = (0..300_000).map(part).collect();
    let start = std::time::Instant::now();
    let outcome = certify(&format!("{}{many}{}", &text[..first], &text[first..]));
    assert!(matches!(outcome.status, 1 | 3), "{outcome:?}");
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
}

#[test]
fn a_set_of_states_is_a_certificate() {
    let files = files();
    let (program, proof) = (files.text("ticket.fw"), files.text("proof.json"));
    files.write(
        "ticket.fw",
        b"shared t[2]; thread p[me in 0..2] { t[me] = 1; fence; if t[1 - me] == 0 { critical: skip; } } \
          forbid mutex: p[0]@critical && p[1]@critical; finally both: exists t[0] == 2;",
    );
    let outcome = run(["check", "--engine", "explicit", "--certificate", &proof, &program]);
    assert!(outcome.stdout.contains("mutex: safe under tso (explicit, "), "{outcome:?}");
    assert!(outcome.stdout.contains("; certificate accepted in "), "{outcome:?}");
    let text = std::fs::read_to_string(&proof).expect("it was written");
    assert!(text.contains("\"proofs\":[{\"states\":{\"model\":\"tso\""), "{text}");
    let outcome = run(["certify", &proof, &program]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.stdout.contains("accepted: mutex under tso ("), "{outcome:?}");
    assert!(outcome.stdout.contains(" states, "), "{outcome:?}");
    let outcome = run(["certify", "--json", &proof, &program]);
    let states = outcome.json_lines()[0]["states"].as_u64();
    assert!(states.is_some_and(|states| states > 10), "{outcome:?}");
    let outcome = run(["check", "--engine", "explicit", "--invariants", &program]);
    assert!(outcome.stdout.contains("the proof is the set of all states"), "{outcome:?}");
    // Each change makes the certificate wrong (status 1) or turns it into something that is no certificate (status 2).
    let count = format!("\"count\":{}", states.expect("there are states"));
    let changes = [
        (count.as_str(), "\"count\":18446744073709551615", 1),
        (count.as_str(), "\"count\":4000000000", 1),
        (count.as_str(), "\"count\":1", 1),
        ("\"model\":\"tso\"", "\"model\":\"sc\"", 1),
        ("\"model\":\"tso\"", "\"model\":\"arm\"", 2),
        ("\"words\":", "\"words\":1", 1),
        ("\"lock\":[0,", "\"lock\":[4294967295,", 1),
        ("\"lock\":[", "\"lock\":[0,", 2),
        ("\"deflated\":\"", "\"deflated\":\"?", 2),
        ("\"deflated\":\"", "\"deflated\":\"AAAA", 1),
        ("\"live\":[[[", "\"live\":[[[],[", 1),
        ("\"local\":[[", "\"local\":[[],[", 1),
    ];
    for (from, to, status) in changes {
        assert!(text.contains(from), "{from} is not in {text}");
        files.write("proof.json", text.replacen(from, to, 1).as_bytes());
        let outcome = run(["certify", "--memory", "256M", &proof, &program]);
        assert_eq!(outcome.status, status, "{to}: {outcome:?}");
    }
    // A certificate can also claim that no final state satisfies a formula.
    let arguments =
        ["check", "--engine", "explicit", "--property", "both", "--certificate", &proof, &program];
    let outcome = run(arguments);
    assert!(outcome.stdout.contains("both: unsafe under tso (explicit, "), "{outcome:?}");
    let outcome = run(["certify", &proof, &program]);
    assert!(outcome.stdout.contains("accepted: no final state satisfies both under tso ("), "{outcome:?}");
}
