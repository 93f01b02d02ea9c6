//! Compares slices with the reference semantics: their states, verdicts and certificates. Also tests that certificates with false claims are
//! rejected.
//!
//! `FENCEWRIGHT_PROGRAMS=N` tests N random programs instead of a few hundred.

use std::collections::HashSet;
use std::time::Duration;

use fencewright_certify::{Proof, Rejection};
use fencewright_executions::oracle::explore;
use fencewright_lang::load;
use fencewright_program::reference::Buffered;
use fencewright_program::{LocationId, MemoryModel, State};
use fencewright_smt::Prover;
use fencewright_testing::bystanders::detach;
use fencewright_testing::{Random, Shape, program as random_program, programs_or, separate};

use super::super::apart::Later;
use super::*;
use crate::check::{Checked, Confirm, Verdict, check};
use crate::task::Reason;

fn program(text: &str) -> Program {
    load("test.fw", text.as_bytes(), None, &[]).unwrap_or_else(|e| panic!("{e:?}")).program
}

fn seeds(few: usize) -> u64 {
    programs_or(few) as u64
}

fn random(seed: u64) -> Program {
    let mut random = Random::new(seed);
    let shape = Shape { corners: seed % 5 == 4, length: 4, ..Shape::default() };
    let mut program = random_program(&mut random, shape);
    detach(&mut random, &mut program);
    if random.one_in(3) {
        separate(&mut random, &mut program);
    }
    program
}

fn check_by_slices(program: &Program, model: MemoryModel, auto: Auto) -> Vec<Checked> {
    let task = Task::new(program, model, program.properties.clone());
    let limits = Limits::default().within(Duration::from_secs(60));
    // Answers without a trace or certificate are not explored again, because the test compares them with the oracle.
    let confirm = Confirm { exploration: None, ..Confirm::default() };
    check(&Later(auto), &task, &limits, &Progress::default(), confirm)
}

/// The projection of a program state to the threads and cells of a slice.
type View = (Vec<LocationId>, Vec<Vec<i64>>, Vec<Vec<Buffered>>, Vec<i64>);

fn view(state: &State, threads: &[usize], cells: &[usize]) -> View {
    let pick = |t: &usize| state.locations[*t];
    (
        threads.iter().map(pick).collect(),
        threads.iter().map(|&t| state.registers[t].clone()).collect(),
        threads.iter().map(|&t| state.buffers[t].clone()).collect(),
        cells.iter().map(|&c| state.memory[c]).collect(),
    )
}

#[test]
fn a_slice_reaches_what_its_threads_reach_in_the_program() {
    let mut compared = 0;
    for seed in 0..seeds(600) {
        let program = random(seed);
        let accesses: Vec<Accesses> = program.threads.iter().map(|t| Accesses::of(&program, t)).collect();
        for model in MemoryModel::ALL {
            let Ok(whole) = explore(&program, model, 3_000, &mut || false) else { continue };
            for property in &program.properties {
                let concerns = concerns(&program, property).unwrap_or_default();
                for kept in kept(&program, &concerns, &accesses) {
                    let slice = Slice::new(&program, &kept).expect("closed");
                    let part = explore(&slice.program, model, 3_000, &mut || false).expect("fewer states");
                    let left_out = (0..accesses.len()).filter(|&t| !kept.contains(&ThreadId(t as u32)));
                    let mut cells: Vec<usize> = (0..program.cells()).collect();
                    for t in left_out {
                        cells.retain(|&cell| !accesses[t].stored[cell]);
                    }
                    let threads: Vec<usize> = kept.iter().map(|t| t.index()).collect();
                    let all: Vec<usize> = (0..kept.len()).collect();
                    let expected: HashSet<View> =
                        whole.states.iter().map(|state| view(state, &threads, &cells)).collect();
                    let found: HashSet<View> = part.states.iter().map(|s| view(s, &all, &cells)).collect();
                    assert_eq!(found, expected, "seed {seed}, {model:?}, {}", property.name);
                    compared += 1;
                }
            }
        }
    }
    println!("{compared} slices");
    assert!(compared > 1_000, "{compared} slices");
}

#[test]
fn by_slices_verdicts_are_those_of_the_reference_semantics() {
    let (mut decided, mut unknown, mut sliced, mut several, mut alike) = (0, 0, 0, 0, 0);
    for seed in 0..seeds(300) {
        let program = random(seed);
        for model in MemoryModel::ALL {
            let Ok(reachable) = explore(&program, model, 1_500, &mut || false) else { continue };
            // Every 40th program is checked by the portfolio of all engines. The others are decided by the first runs.
            let alone = if seed % 40 == 0 { Duration::ZERO } else { Duration::from_secs(10) };
            let auto = Auto { alone, ..Auto::default() };
            for found in check_by_slices(&program, model, auto) {
                let name = &found.property.name;
                let expected = reachable.satisfies(&program, model, &found.property).expect("small values");
                match found.verdict() {
                    Verdict::Safe => assert!(expected, "seed {seed}, {model:?}, {name}: safe"),
                    Verdict::Unsafe => assert!(!expected, "seed {seed}, {model:?}, {name}: unsafe"),
                    Verdict::Unknown(Reason::Contradiction(what)) => {
                        panic!("seed {seed}, {model:?}, {name}: {what}")
                    }
                    Verdict::Unknown(_) => {
                        unknown += 1;
                        continue;
                    }
                }
                decided += 1;
                let Some(Claim::Sliced { parts, .. }) = found.certificate().map(|c| &c.claim) else {
                    continue;
                };
                sliced += 1;
                several += usize::from(parts.len() > 1);
                alike += usize::from(parts.iter().any(|part| part.slices.len() > 1));
                assert_eq!(found.checked(), Some(true), "seed {seed}, {model:?}, {name}");
            }
        }
    }
    println!(
        "{decided} decided, {sliced} by slices, {several} by several, {alike} with slices that are alike"
    );
    assert!(unknown < decided / 100, "{decided} decided, {unknown} not");
    assert!(sliced > 100 && several > 10 && alike > 10, "{sliced} by slices, {several} by several, {alike}");
}

/// A writer that never terminates, and readers with assertions; two of the readers are identical.
fn readers(store: &str) -> Program {
    program(&format!(
        "shared x, y, z; \
         thread w {{ var k; loop {{ k = k + 1; x = k; sfence; y = k; sfence; }} }} \
         thread r[me in 0..2] {{ var a, b; loop {{ a = y; b = x; assert a <= b; }} }} \
         thread s {{ var a, b; loop {{ a = x; b = x; assert a <= b; {store} }} }} \
         forbid memory: x < 0;"
    ))
}

fn threads_of(claim: &Claim) -> Vec<Vec<Vec<u32>>> {
    let Claim::Sliced { parts, .. } = claim else { panic!("{claim:?}") };
    parts.iter().map(|part| part.slices.clone()).collect()
}

#[test]
fn assertions_are_shown_reader_by_reader() {
    let program = readers("z = 1;");
    for model in MemoryModel::ALL {
        let found = check_by_slices(&program, model, Auto::default());
        let [assertions, memory] = &["assertions", "memory"]
            .map(|name| found.iter().find(|found| found.property.name == name).expect("it was asked about"));
        for (found, slices) in [
            (assertions, vec![vec![vec![0, 1], vec![0, 2]], vec![vec![0, 3]]]),
            (memory, vec![vec![vec![0]]]),
        ] {
            assert!(matches!(found.verdict(), Verdict::Safe), "{model:?}: {:?}", found.verdict());
            assert_eq!(found.checked(), Some(true));
            assert_eq!(threads_of(&found.certificate().expect("a certificate").claim), slices, "{model:?}");
        }
    }
}

#[test]
fn a_violation_in_a_slice_is_one_of_the_program() {
    let program = readers("assert a < 2;");
    for model in MemoryModel::ALL {
        let found = check_by_slices(&program, model, Auto::default());
        let found =
            found.iter().find(|found| found.property.name == "assertions").expect("it was asked about");
        assert!(matches!(found.verdict(), Verdict::Unsafe), "{model:?}: {:?}", found.verdict());
        let threads: HashSet<u32> =
            found.trace().expect("a trace").events.iter().map(|event| event.thread.0).collect();
        assert_eq!(threads, HashSet::from([0, 3]), "nobody else moves");
    }
}

#[test]
fn properties_that_depend_on_every_thread_have_no_slices() {
    let program = program("shared x; thread p { x = 1; } thread q { skip; } finally ended: exists x == 1;");
    for property in [&program.properties[0], &Property::deadlock()] {
        assert!(concerns(&program, property).is_none());
    }
}

#[test]
fn users_of_a_mutex_are_kept_together() {
    let program = program(
        "shared x, y; mutex m; thread p { lock m; x = 1; x = 2; unlock m; } \
         thread q { var r; lock m; r = x; unlock m; } \
         thread o { var r; y = 1; r = x; assert r <= 2; } forbid one: q.r == 1;",
    );
    let accesses: Vec<Accesses> = program.threads.iter().map(|t| Accesses::of(&program, t)).collect();
    let one = program.properties.iter().find(|p| p.name == "one").expect("it is stated");
    assert_eq!(
        kept(&program, &concerns(&program, one).expect("it has concerns"), &accesses),
        [[ThreadId(0), ThreadId(1)]]
    );
}

#[test]
fn a_thread_that_may_leave_what_is_modelled_is_kept() {
    let program = program(
        "shared a[2] open, x; thread p { var r; r = x; } thread q { var i; loop { a[i] = 1; i = i + 1; } } \
         thread o { a[1] = 1; } forbid one: p.r == 1;",
    );
    let accesses: Vec<Accesses> = program.threads.iter().map(|t| Accesses::of(&program, t)).collect();
    let one = concerns(&program, &program.properties[0]).expect("it has concerns");
    assert_eq!(kept(&program, &one, &accesses), [[ThreadId(0), ThreadId(1)]]);
    assert!(Slice::new(&program, &[ThreadId(0)]).is_err());
}

#[test]
fn claims_that_leave_out_what_matters_are_refused() {
    let program = readers("z = 1;");
    let found = check_by_slices(&program, MemoryModel::Pso, Auto::default());
    let found = found.iter().find(|found| found.property.name == "assertions").expect("it was asked about");
    let certificate = found.certificate().expect("a certificate").clone();
    let verdict = |certificate: &Certificate, program: &Program| {
        fencewright_certify::check(certificate, program, &Prover, &(Arc::new(|| false) as _))
    };
    assert_eq!(verdict(&certificate, &program).map(|_| ()), Ok(()));
    // The certificate is rejected for a program in which a thread outside the slice stores to a cell that the slice loads.
    assert!(matches!(verdict(&certificate, &readers("x = 1;")), Err(Rejection::Reduction(_))));

    let Claim::Sliced { properties, parts } = &certificate.claim else { panic!("{:?}", certificate.claim) };
    let lies = |properties: &[String], parts: Vec<Part>, proofs: usize| {
        let claim = Claim::Sliced { properties: properties.to_vec(), parts };
        let proofs = certificate.proofs[..proofs].to_vec();
        verdict(&Certificate { claim, proofs, ..certificate.clone() }, &program)
            .expect_err("the claim was changed")
    };
    let changed = |n: usize, slices: &[&[u32]]| {
        let mut parts = parts.clone();
        parts[n].slices = slices.iter().map(|threads| threads.to_vec()).collect();
        parts
    };
    let all = certificate.proofs.len();
    // The number of proofs that belong to the first part.
    let first = (0..all).find(|&n| !matches!(lies(properties, parts[..1].to_vec(), n), Rejection::Format(_)));
    let first = first.expect("the first part is shown by the first proofs");
    // Slices without the writer, with a thread that does not exist, or with unsorted or repeated threads.
    for slices in [&[&[1][..], &[2]][..], &[&[], &[0, 2]], &[&[0, 1], &[0, 4]], &[&[1, 0]], &[&[0, 1, 1]]] {
        let refused = lies(properties, changed(0, slices), all);
        assert!(matches!(refused, Rejection::Reduction(_)), "{slices:?}: {refused}");
    }
    // Some readers are in no part: first one of the two identical readers, then the third reader.
    assert!(matches!(lies(properties, changed(0, &[&[0, 1]]), all), Rejection::Reduction(_)));
    assert!(matches!(lies(properties, parts[..1].to_vec(), first), Rejection::Reduction(_)));
    // Readers with different code are claimed to be identical.
    let refused = lies(properties, changed(0, &[&[0, 1], &[0, 2], &[0, 3]]), all);
    assert!(matches!(refused, Rejection::Symmetry(_)), "{refused}");
    // The certificate claims other properties: one that depends on every thread, and one that no part mentions.
    assert!(matches!(lies(&["deadlock".into()], parts.clone(), all), Rejection::Property(_)));
    assert!(matches!(lies(&["memory".into()], parts.clone(), all), Rejection::Reduction(_)));
    // The slices are correct, but have the proofs of other slices.
    assert!(
        verdict(&Certificate { proofs: exchanged(&certificate.proofs), ..certificate.clone() }, &program)
            .is_err()
    );
    // The claim has parts about different memory models.
    let under_sc = check_by_slices(&program, MemoryModel::Sc, Auto::default());
    let under_sc =
        under_sc.iter().find(|found| found.property.name == "assertions").and_then(Checked::certificate);
    let under_sc = under_sc.expect("a certificate");
    let Claim::Sliced { parts: others, .. } = &under_sc.claim else { panic!("{:?}", under_sc.claim) };
    let claim = Claim::Sliced { properties: properties.clone(), parts: [&parts[..], others].concat() };
    let proofs = [&certificate.proofs[..], &under_sc.proofs].concat();
    let mixed = Certificate { claim, proofs, ..certificate.clone() };
    assert!(matches!(verdict(&mixed, &program), Err(Rejection::Format(_))));
}

/// The proofs in reverse order.
fn exchanged(proofs: &[Proof]) -> Vec<Proof> {
    proofs.iter().rev().cloned().collect()
}
