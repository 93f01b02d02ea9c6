//! Certificates of robustness, of engine `lazy`, and up to symmetry are accepted unchanged. If a number in a certificate is changed, it is rejected,
//! or every state that the reference semantics reaches still satisfies it.

use std::sync::Arc;

use fencewright_certify::symmetry::Permutation;
use fencewright_certify::{Certificate, Claim, InductiveInvariant, Stop, check as certify};
use fencewright_engines::cegar::Cegar;
use fencewright_engines::lazy::{self, Lazy};
use fencewright_engines::robust::{Options, analyse};
use fencewright_engines::{Confirm, Engine, Limits, Progress, Task, Verdict, check};
use fencewright_executions::oracle::explore;
use fencewright_lang::load;
use fencewright_memory::{BufferMachine, Cell, CellId, Constraint, Control};
use fencewright_program::{EdgeId, MemoryModel, Program, RegisterId, State, ThreadId};
use fencewright_smt::Prover;
use fencewright_testing::Random;
use fencewright_transform::attack::{self, Notion};
use fencewright_transform::extend::{AttackingStore, Conclusion, Extended};
use serde_json::Value;

use crate::orders::orders;

fn program(text: &str) -> Program {
    match load("test.fw", text.as_bytes(), None, &[]) {
        Ok(loaded) => loaded.program,
        Err(error) => panic!("{:?}", error.diagnostics),
    }
}

fn accepted(certificate: &Certificate, program: &Program) -> bool {
    let stop: Stop = Arc::new(|| false);
    certify(certificate, program, &Prover, &stop).is_ok()
}

/// The certificate that a program is robust.
fn robust(program: &Program) -> Certificate {
    let options = Options { certificate: true, ..Options::default() };
    let found = analyse(program, &options, &Limits::default(), &Progress::default());
    assert_eq!((found.robust(), found.checked()), (Ok(true), Some(true)));
    with_invariants(found.certificate().expect("it was asked for").clone(), program)
}

/// The same certificate with an invariant in place of each set of states: invariants have numbers to change.
fn with_invariants(mut certificate: Certificate, program: &Program) -> Certificate {
    assert!(accepted(&certificate, program));
    let programs = programs(&certificate.claim, program);
    let proof = |p: &Program| safe(&Cegar::default(), p, MemoryModel::Sc).proofs.remove(0);
    certificate.proofs = programs.iter().map(proof).collect();
    certificate
}

/// The certificate of all properties of a program.
fn safe(engine: &dyn Engine, program: &Program, model: MemoryModel) -> Certificate {
    let task = Task::new(program, model, program.properties.clone());
    let results = check(engine, &task, &Limits::default(), &Progress::default(), Confirm::default());
    for result in &results {
        assert!(matches!(result.verdict(), Verdict::Safe), "{:?}", result.verdict());
        assert_eq!(result.checked(), Some(true));
    }
    results[0].certificate().expect("a certificate").clone()
}

fn lazily(program: &Program) -> Certificate {
    let options = lazy::Options { certificates: true, ..lazy::Options::default() };
    with_invariants(safe(&Lazy { options, ..Lazy::default() }, program, MemoryModel::Tso), program)
}

// --- the claims of certificates, checked by exploration ----------------------------------------------------------------------

/// The programs that the proofs of a certificate are about, in order.
fn programs(claim: &Claim, program: &Program) -> Vec<Program> {
    match claim {
        Claim::Safe { .. } | Claim::Unsatisfied { .. } => vec![program.clone()],
        Claim::Robust { .. } => instrumented(program),
        Claim::Reordered { tso } => {
            programs(tso, &Extended::reordered(program).expect("it was reordered before").program)
        }
        Claim::Sliced { .. } => panic!("engines chosen by name do not slice"),
        Claim::Narrowed { .. } => panic!("engines chosen by name leave choices as they are"),
        Claim::Lazy { properties, extensions } => {
            let mut extended = Extended::new(program).expect("it was extended before");
            for extension in extensions {
                let path = |path: &Vec<u32>| path.iter().map(|&e| EdgeId(e)).collect();
                let paths: Vec<Vec<EdgeId>> = extension.paths.iter().map(path).collect();
                let next = extended.extend(ThreadId(extension.thread), &paths, AttackingStore::Removed);
                extended = next.expect("it was extended before");
            }
            let needs_release = program
                .properties
                .iter()
                .filter(|p| properties.contains(&p.name))
                .any(|p| extended.conclusion(p) == Conclusion::IfReleased);
            let mut all = vec![extended.program.clone()];
            all.extend(instrumented(&extended.program));
            if needs_release {
                let released = extended.released().program;
                all.push(released.clone());
                all.extend(instrumented(&released));
            }
            all
        }
    }
}

fn instrumented(program: &Program) -> Vec<Program> {
    let attacks = attack::candidates(program, Notion::HappensBefore, &|| false).expect("nobody stops it");
    let batches = attack::batches(program, &attacks, attack::MOST_EDGES);
    let instrumented = |batch: std::ops::Range<usize>| {
        let made = attack::instrument(program, Notion::HappensBefore, &attacks[batch], &|| false);
        made.expect("it is supported").expect("nobody stops it").program
    };
    batches.into_iter().map(instrumented).collect()
}

/// Whether a state reachable under SC satisfies a proof after a permutation of threads.
fn satisfies(
    machine: &BufferMachine<'_>,
    order: &Permutation,
    proof: &InductiveInvariant,
    state: &State,
) -> bool {
    let control = Control { locations: state.locations.clone(), buffers: Vec::new(), lock: state.lock };
    let control = order.control(&control);
    let value = |cell: CellId| match machine.cells.cell(order.before(&machine.cells, cell)) {
        Cell::Memory(cell) => state.memory[cell as usize],
        Cell::Register(t, RegisterId(r)) => state.registers[t.index()][r as usize],
        other => panic!("{other:?} under SC"),
    };
    let Some(invariant) = proof.states.iter().find(|s| s.control() == control) else { return false };
    invariant.cubes().iter().any(|cube| {
        cube.iter().all(|constraint| {
            let form = constraint.form();
            let sum: i128 = form.terms.iter().map(|&(c, k)| i128::from(k) * i128::from(value(c))).sum();
            match constraint {
                Constraint::AtMost(_) => sum + i128::from(form.constant) <= 0,
                Constraint::Multiple(_, m) => (sum + i128::from(form.constant)) % i128::from(*m) == 0,
            }
        })
    })
}

/// Whether all states reachable under SC in the programs of a certificate satisfy its proofs. Programs that the reference semantics cannot explore
/// completely are skipped.
fn is_true(certificate: &Certificate, program: &Program) -> bool {
    let programs = programs(&certificate.claim, program);
    assert_eq!(programs.len(), certificate.proofs.len());
    programs.iter().zip(&certificate.proofs).all(|(program, proof)| {
        let proof = proof.invariant().expect("engine cegar finds invariants");
        let machine = BufferMachine::new(program, proof.machine.buffers());
        let orders = orders(program.threads.len(), &proof.symmetry);
        let reachable = explore(program, MemoryModel::Sc, 20_000, &mut || false).expect("it is small");
        let is_there = |state: &State| orders.iter().any(|order| satisfies(&machine, order, proof, state));
        reachable.states.iter().all(is_there)
    })
}

// --- mutants ------------------------------------------------------------------------------------------------------------------

/// Calls `change` on every number in a text.
fn for_each_number(value: &mut Value, change: &mut dyn FnMut(&mut Value)) {
    match value {
        Value::Number(_) => change(value),
        Value::Array(items) => items.iter_mut().for_each(|item| for_each_number(item, change)),
        Value::Object(items) => items.values_mut().for_each(|item| for_each_number(item, change)),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// The certificate with its n-th number changed, if it can still be read.
fn mutant(text: &Value, n: usize, by: i64) -> Option<Certificate> {
    let mut text = text.clone();
    let mut seen = 0;
    for_each_number(&mut text, &mut |number| {
        if seen == n {
            *number = (number.as_i64().expect("certificates have small numbers") + by).into();
        }
        seen += 1;
    });
    Certificate::read(text.to_string().as_bytes()).ok()
}

/// Changes each number of a certificate, or some of the numbers if there are many, and checks the changed certificates.
fn mutate(name: &str, certificate: &Certificate, program: &Program) {
    assert!(accepted(certificate, program) && is_true(certificate, program), "{name}");
    let mut text = Vec::new();
    certificate.write(&mut text).expect("memory is never full");
    assert_eq!(Certificate::read(&text[..]).as_ref(), Ok(certificate), "{name}");
    let mut text: Value = serde_json::from_slice(&text).expect("it is JSON");
    let mut numbers = 0;
    for_each_number(&mut text, &mut |_| numbers += 1);
    let mut random = Random::new(numbers as u64);
    let (mut rejected, mut harmless) = (0, 0);
    for n in 0..numbers {
        if numbers > 2_000 && !random.one_in(numbers / 400) {
            continue;
        }
        let by = *random.pick(&[-1, 1, 2, -3]);
        match mutant(&text, n, by).filter(|mutant| accepted(mutant, program)) {
            None => rejected += 1,
            Some(mutant) => {
                harmless += 1;
                assert!(is_true(&mutant, program), "{name}: number {n} changed by {by} makes it wrong");
            }
        }
    }
    println!("{name}: {numbers} numbers; {rejected} mutants rejected, {harmless} accepted and true");
    assert!(rejected > harmless, "{name}: {rejected} rejected, {harmless} accepted");
    // Certificates with missing, additional or misplaced proofs are rejected.
    for n in 0..certificate.proofs.len() {
        let mut fewer = certificate.clone();
        let proof = fewer.proofs.remove(n);
        assert!(!accepted(&fewer, program), "{name}: without proof {n}");
        let mut more = certificate.clone();
        more.proofs.push(proof);
        assert!(!accepted(&more, program), "{name}: proof {n} twice");
    }
}

/// An attack that fails only because of the values of data: no thread sets `go`.
const GUARDED: &str = "\
shared x, y, go;
thread p { var r; x = 1; r = y; }
thread q { var r; r = go; if r == 1 { y = 1; r = x; } }
";

#[test]
fn certificates_of_robustness() {
    let guarded = program(GUARDED);
    let certificate = robust(&guarded);
    assert_eq!(certificate.proofs.len(), 1);
    mutate("guarded", &certificate, &guarded);
    // The certificate is rejected for a program in which the attack succeeds.
    assert!(!accepted(&certificate, &program(&GUARDED.replace("go;\n", "go = 1;\n"))));
    // A program without attacks needs no proof.
    let fenced = program("shared x, y; thread p[i in 0..2] { var r; x = 1; fence; r = y; }");
    let certificate = robust(&fenced);
    assert!(certificate.proofs.is_empty() && accepted(&certificate, &fenced));
    assert!(!accepted(&certificate, &guarded), "which attacks there are is not read from the certificate");
    // A program with loops, locks and two attackers.
    let looping = program(
        "shared x, y, go; thread p { var r; loop { x = 1; r = y; lock; r = go; unlock; assume r == 1; y = r; } } \
         thread q { var r; r = go; assume r == 1; y = 1; r = x; }",
    );
    mutate("looping", &robust(&looping), &looping);
}

/// Store buffering: not robust, so a proof needs delayed stores.
const BUFFERING: &str = "\
shared x, y;
thread p { var r; x = 1; r = y; here: skip; }
thread q { var r; y = 1; r = x; here: skip; }
forbid two: p.r == 2 && q@here;
finally large: never p.r + q.r >= 3;
";

#[test]
fn certificates_by_way_of_sc() {
    let buffering = program(BUFFERING);
    let certificate = lazily(&buffering);
    let Claim::Lazy { extensions, .. } = &certificate.claim else { panic!("{:?}", certificate.claim) };
    assert!(!extensions.is_empty(), "SC and TSO differ");
    mutate("buffering", &certificate, &buffering);
    // Without the extensions, the claim would need the program to be robust, which it is not.
    let mut plain = certificate.clone();
    plain.claim = Claim::Lazy { properties: vec!["two".into(), "large".into()], extensions: Vec::new() };
    assert!(!accepted(&plain, &buffering));
    // A property about memory cannot be shown in this way.
    let memory = program(&(BUFFERING.to_string() + "forbid both: x == 2 && y == 2;\n"));
    let mut wrong = certificate.clone();
    wrong.claim = Claim::Lazy { properties: vec!["both".into()], extensions: extensions.clone() };
    assert!(accepted(&certificate, &memory) && !accepted(&wrong, &memory));
}

/// If a thread takes the lock, a second proof is needed about the program in which it may be released anywhere.
#[test]
fn certificates_by_way_of_sc_with_locks() {
    let locked = program(
        "shared x, z; thread p { var r; x = 1; r = z; here: skip; } \
         thread q { var s; lock; s = x; there: skip; unlock; } \
         forbid two: p@here && q@there && q.s == 2;",
    );
    let certificate = lazily(&locked);
    assert_eq!(certificate.proofs.len(), programs(&certificate.claim, &locked).len());
    assert!(certificate.proofs.len() >= 2, "one proof for each of the two programs");
    mutate("locked", &certificate, &locked);
    // If the property requires s == 0, its violation is reachable under TSO but not under SC: see docs/lazy.md.
    let reachable = program(
        "shared x, z; thread p { var r; x = 1; r = z; here: skip; } \
         thread q { var s; lock; s = x; there: skip; unlock; } \
         forbid two: p@here && q@there && q.s == 0;",
    );
    assert!(!accepted(&certificate, &reachable));
}

#[test]
fn certificates_up_to_symmetry() {
    let symmetric = program(
        "const N = 3; shared next, serving; \
         thread p[me in 0..N] { var t; t = fetch_add(next, 1); await serving == t; critical: skip; serving = t + 1; } \
         forbid mutex: i < j in 0..N: p[i]@critical && p[j]@critical;",
    );
    let certificate = safe(&Cegar::default(), &symmetric, MemoryModel::Sc);
    assert_eq!(certificate.proofs[0].invariant().expect("an invariant").symmetry, [[0, 1, 2]]);
    mutate("symmetric", &certificate, &symmetric);
}
