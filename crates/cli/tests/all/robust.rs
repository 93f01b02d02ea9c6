//! `fencewright robust`, as a user would type it.

use crate::common::{Files, run};

const STORE_BUFFERING: &str = "\
shared x, y;
thread p { var r; x = 1; r = y; }
thread q { var r; y = 1; r = x; }
";

const MESSAGE_PASSING: &str = "\
shared data, flag;
thread p { data = 1; flag = 1; }
thread q { var r; await flag == 1; r = data; }
";

fn files() -> Files {
    Files::new(&[
        ("sb.fw", STORE_BUFFERING),
        ("mp.fw", MESSAGE_PASSING),
        ("bad.fw", "shared x thread"),
        ("race.fw", "shared x, y; thread p { var r; x = 1; r = y; } thread q { y = 1; }"),
    ])
}

#[test]
fn a_program_that_is_not_robust_has_a_witness_with_a_cycle() {
    let files = files();
    let outcome = run(["robust", &files.text("sb.fw")]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(outcome.stdout.contains("not robust against tso (2 attacks"), "{outcome:?}");
    assert!(outcome.stdout.contains("happens-before cycle"), "{outcome:?}");
    let outcome = run(["robust", "--json", &files.text("sb.fw")]);
    let [answer] = &outcome.json_lines()[..] else { panic!("{outcome:?}") };
    assert_eq!(answer["robust"], false);
    assert_eq!(answer["checked"], true);
    assert_eq!(answer["notion"], "happens-before");
    let relations: Vec<&str> =
        answer["cycle"].as_array().expect("a cycle").iter().filter_map(|l| l["relation"].as_str()).collect();
    assert_eq!(relations, ["program order", "conflict", "program order", "conflict"]);
    assert!(answer["witness"].as_array().is_some_and(|steps| steps.len() >= 6), "{answer}");
}

#[test]
fn a_robust_program_is_one() {
    let files = files();
    let outcome = run(["robust", "--json", &files.text("mp.fw")]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let [answer] = &outcome.json_lines()[..] else { panic!("{outcome:?}") };
    assert_eq!((&answer["robust"], &answer["attacks"]), (&true.into(), &0.into()));
    assert!(answer["witness"].is_null() && answer["cycle"].is_null() && answer["reason"].is_null());
}

#[test]
fn a_triangular_race_is_not_yet_a_cycle() {
    let files = files();
    assert_eq!(run(["robust", &files.text("race.fw")]).status, 0);
    let outcome = run(["robust", "--notion", "triangular", &files.text("race.fw")]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(outcome.stdout.contains("not free of triangular races"), "{outcome:?}");
    assert!(outcome.stdout.contains("triangular race\n"), "{outcome:?}");
}

#[test]
fn all_attacks_are_listed() {
    let files = files();
    let outcome = run(["robust", "--all", "--json", &files.text("sb.fw")]);
    let [answer] = &outcome.json_lines()[..] else { panic!("{outcome:?}") };
    let verdicts: Vec<&str> =
        answer["list"].as_array().expect("a list").iter().filter_map(|a| a["verdict"].as_str()).collect();
    assert_eq!(verdicts, ["feasible", "feasible"]);
    assert!(run(["robust", "--all", &files.text("sb.fw")]).stdout.contains("): feasible\n"));
}

#[test]
fn the_worst_status_wins() {
    let files = files();
    let (sb, mp, bad) = (files.text("sb.fw"), files.text("mp.fw"), files.text("bad.fw"));
    assert_eq!(run(["robust", "--quiet", &mp, &sb]).status, 1);
    assert_eq!(run(["robust", "--quiet", &mp, &bad, &sb]).status, 2);
    assert_eq!(run(["robust", &files.text("missing.fw")]).status, 2);
    assert_eq!(run(["robust", "--notion", "nothing", &mp]).status, 2);
}

#[test]
fn what_cannot_be_decided_in_time_is_unknown() {
    // Tickets grow without bound, so no explicit search terminates, but a symbolic one does.
    let program = "\
shared next, serving, data, seen;
thread p[me in 0..2] {
    var ticket, r;
    loop {
        ticket = fetch_add(next, 1);
        await serving == ticket;
        data = ticket;
        seen = ticket;
        r = seen;
        serving = ticket + 1;
    }
}
";
    let files = Files::new(&[("ticket.fw", program)]);
    let path = files.text("ticket.fw");
    let outcome = run(["robust", "--engine", "explicit", "--timeout", "300ms", &path]);
    assert_eq!(outcome.status, 3, "{outcome:?}");
    assert!(outcome.stdout.contains(": unknown ("), "{outcome:?}");
    let outcome = run(["robust", "--json", &path]);
    let [answer] = &outcome.json_lines()[..] else { panic!("{outcome:?}") };
    assert_eq!((outcome.status, &answer["robust"], &answer["checked"]), (0, &true.into(), &true.into()));
    // Either of the two symbolic engines may be the first one with a proof.
    assert!(["cegar", "contexts"].contains(&answer["engine"].as_str().expect("a name")), "{answer}");
}

#[test]
fn a_large_program_is_examined_within_the_limits() {
    let lines: String =
        (0..300).map(|n| format!("a[i] = {}; r = a[{}]; x = r; r = y; y = 2;\n", n % 3, n % 8)).collect();
    let program =
        format!("shared a[8], x, y;\nthread p {{ var r, i;\n{lines}}}\nthread q {{ var r, i;\n{lines}}}\n");
    let files = Files::new(&[("large.fw", &program)]);
    let start = std::time::Instant::now();
    let outcome = run(["robust", "--quiet", "--timeout", "2s", &files.text("large.fw")]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    let outcome = run(["robust", "--quiet", "--all", "--timeout", "2s", &files.text("large.fw")]);
    assert!([1, 3].contains(&outcome.status), "{outcome:?}");
    assert!(start.elapsed().as_secs() < 30, "it does not stop at its limit");
}

/// The checks for misuse of condition variables are not accesses of the program, and `certify` reads the program as `robust` does.
#[test]
fn a_c_program_is_read_for_its_accesses() {
    let program = "\
#include <pthread.h>
#include <stdatomic.h>
pthread_mutex_t m;
pthread_cond_t c;
int ready, left;
atomic_int hint;
void *consumer(void *p) {
    pthread_mutex_lock(&m);
    while (!ready) {
        pthread_cond_wait(&c, &m);
        (void)atomic_load_explicit(&hint, memory_order_relaxed);
    }
    left++;
    pthread_mutex_unlock(&m);
    return 0;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, consumer, 0);
    pthread_create(&b, 0, consumer, 0);
    atomic_store_explicit(&hint, 1, memory_order_relaxed);
    pthread_cond_signal(&c);
    pthread_mutex_lock(&m);
    ready = 1;
    pthread_cond_broadcast(&c);
    pthread_mutex_unlock(&m);
    for (int done = 0; !done;) {
        pthread_mutex_lock(&m);
        done = left == 2;
        pthread_mutex_unlock(&m);
    }
    pthread_cond_destroy(&c);
    return 0;
}
";
    let files = Files::new(&[("queue.c", program)]);
    let (name, certificate) = (files.text("queue.c"), files.text("certificate.json"));
    let outcome = run(["robust", "--certificate", &certificate, &name]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let outcome = run(["certify", &certificate, &name]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let outcome = run(["fences", "--goal", "robustness", "--json", &name]);
    let [answer] = &outcome.json_lines()[..] else { panic!("{outcome:?}") };
    assert_eq!((outcome.status, &answer["fences"]), (0, &serde_json::json!([])), "{answer}");
    assert_eq!(run(["check", "--model", "tso", &name]).status, 0);
}
