//! Certificates of the examples are accepted unchanged. A damaged certificate is rejected, or its claim is still true as far as an exploration can
//! tell.

use std::path::Path;
use std::time::Duration;

use fencewright_certify::certificate::{Constraint, KeptEnd, MachineName, Model};
use fencewright_certify::{Certificate, check as certify};
use fencewright_engines::cegar::Cegar;
use fencewright_engines::explicit::{Explicit, Options};
use fencewright_engines::{Confirm, Limits, Progress, Task, Verdict, check};
use fencewright_lang::load;
use fencewright_memory::{Bound, BufferMachine, CellBounds, Summarised};
use fencewright_program::{MemoryModel, Program};
use fencewright_smt::Prover;
use fencewright_testing::{Random, spread};

fn examples() -> Vec<(String, Program)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .expect("the examples are there")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "fw"))
        .collect();
    names.sort();
    let program = |path: &Path| {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let loaded = load(&name, &std::fs::read(path).expect("readable"), None, &[]).expect("it loads");
        (name, loaded.program)
    };
    names.iter().map(|path| program(path)).collect()
}

/// The accepted certificates of all properties that engine `cegar` proves within a moment.
fn certificates(program: &Program, model: MemoryModel) -> Vec<Certificate> {
    let task = Task::new(program, model, program.properties.clone());
    let limits = Limits::starting_now(Some(Duration::from_millis(400)), None, Default::default());
    let results = check(&Cegar::default(), &task, &limits, &Progress::default(), Confirm::default());
    let mut found: Vec<Certificate> = Vec::new();
    for result in results {
        // A proof found just before the deadline may not have been checked.
        if let (Some(certificate), Some(true)) = (result.certificate(), result.checked())
            && !found.contains(certificate)
        {
            found.push(certificate.clone());
        }
    }
    found
}

fn accepted(certificate: &Certificate, program: &Program) -> bool {
    let stop: fencewright_certify::Stop = std::sync::Arc::new(|| false);
    certify(certificate, program, &Prover, &stop).is_ok()
}

/// Damages a certificate in one of several ways.
fn damaged(certificate: &Certificate, threads: usize, random: &mut Random) -> Certificate {
    let mut mutant = certificate.clone();
    let proof = mutant.proofs[0].invariant_mut().expect("an invariant");
    let n = random.below(proof.states.len());
    let state = &mut proof.states[n];
    let cube = random.below(state.invariant.len());
    match random.below(9) {
        0 => drop(proof.states.remove(n)),
        1 => {
            // Adds a bound that only very small values of a cell satisfy.
            if let Some(cube) = state.invariant.get_mut(cube) {
                cube.push(Constraint { terms: vec![(0, 1)], constant: 1_000, modulus: None });
            }
        }
        2 => {
            if cube < state.invariant.len() {
                state.invariant.remove(cube);
            }
        }
        3 => {
            proof.machine = match proof.machine {
                MachineName::Sc {} => {
                    let summaries = Summarised::all(random.below(3));
                    MachineName::Partial { model: Model::Tso, k: 1, kept: KeptEnd::Newest, summaries }
                }
                MachineName::Queue { model, bound } => {
                    let more = CellBounds::new(&[bound.most() as u8]).expect("one bound");
                    let same = bound == Bound::Cell(more);
                    let bound = if same { Bound::Thread(bound.most() + 1) } else { Bound::Cell(more) };
                    MachineName::Queue { model, bound }
                }
                MachineName::Partial { model, k, kept, summaries } => match random.below(3) {
                    0 => MachineName::Partial { model, k: k + 1, kept, summaries },
                    1 => {
                        let summaries = Summarised::all(summaries.is_empty() as usize);
                        MachineName::Partial { model, k, kept, summaries }
                    }
                    _ => MachineName::Partial { model: Model::Pso, k, kept, summaries },
                },
            };
        }
        4 => {
            // Permits exchanges of threads that are not identical, or forbids exchanges of identical threads.
            proof.symmetry = match random.below(3) {
                0 => Vec::new(),
                _ => vec![(0..threads as u32).filter(|_| random.one_in(2)).collect()],
            };
        }
        5 => {
            // Exchanges the positions of two threads.
            let (a, b) = (random.below(threads), random.below(threads));
            state.locations.swap(a, b);
            if !state.buffers.is_empty() {
                state.buffers.swap(a, b);
            }
        }
        6 => {
            // Changes a residue, or replaces a residue by a bound.
            let constraints = state.invariant.get_mut(cube).map(Vec::as_mut_slice).unwrap_or_default();
            let congruences = constraints.iter_mut().filter(|c| c.modulus.is_some());
            for constraint in congruences.take(1 + random.below(3)) {
                match random.below(3) {
                    0 => constraint.constant += 1,
                    1 => constraint.modulus = constraint.modulus.map(|m| m * 2),
                    _ => constraint.modulus = None,
                }
            }
        }
        7 => {
            if let Some(cube) = state.invariant.get_mut(cube) {
                let modulus = Some(random.between(1, 3));
                cube.push(Constraint { terms: vec![(0, 1)], constant: random.between(0, 1), modulus });
            }
        }
        _ => {
            if let Some(constraint) = state.invariant.get_mut(cube).and_then(|cube| cube.first_mut()) {
                constraint.constant = constraint.constant.saturating_add(1 + random.between(0, 2));
            }
        }
    }
    mutant
}

#[test]
fn damaged_certificates_are_rejected_or_still_proofs() {
    let examples = examples();
    let others: Vec<Certificate> =
        examples[..2].iter().flat_map(|(_, program)| certificates(program, MemoryModel::Tso)).collect();
    let counts = spread(0..examples.len() as u64, |n| {
        let (name, program) = &examples[n as usize];
        let mut random = Random::new(42 + n);
        let (mut proofs, mut accepted_mutants, mut rejected) = (0, 0, 0);
        for model in MemoryModel::ALL {
            for certificate in certificates(program, model) {
                proofs += 1;
                assert!(accepted(&certificate, program), "{name} {model:?}");
                let mut text = Vec::new();
                certificate.write(&mut text).expect("memory is never full");
                assert_eq!(Certificate::read(&text[..]).as_ref(), Ok(&certificate), "{name} {model:?}");
                // A certificate of another program is accepted for this program only if its claim is true for this program as well.
                if let Some(other) = others.iter().find(|c| c.program != certificate.program)
                    && accepted(other, program)
                {
                    assert!(!refuted(program, other), "{name} {model:?}: the certificate of another program");
                }
                for _ in 0..12 {
                    let mutant = damaged(&certificate, program.threads.len(), &mut random);
                    if mutant == certificate {
                        continue;
                    }
                    match accepted(&mutant, program) {
                        false => rejected += 1,
                        true => {
                            accepted_mutants += 1;
                            assert!(
                                !refuted(program, &mutant),
                                "{name} {model:?}: a wrong proof was accepted"
                            );
                        }
                    }
                }
            }
        }
        [proofs, rejected, accepted_mutants]
    });
    let sum = |all: [usize; 3], one: [usize; 3]| std::array::from_fn(|n| all[n] + one[n]);
    let [proofs, rejected, accepted_mutants] = counts.into_iter().fold([0; 3], sum);
    println!("{proofs} certificates; mutants: {rejected} rejected, {accepted_mutants} accepted");
    assert!(proofs > 80, "only {proofs} certificates");
    assert!(rejected > accepted_mutants, "{rejected} rejected, {accepted_mutants} accepted");
}

/// Whether a bounded exploration finds a violation of the claim of a certificate.
fn refuted(program: &Program, certificate: &Certificate) -> bool {
    let claimed =
        program.properties.iter().filter(|p| certificate.properties().contains(&p.name)).cloned().collect();
    let model = certificate.model().expect("there is a proof");
    let limits = Limits::starting_now(Some(Duration::from_millis(100)), None, Default::default());
    let options = Options { workers: 1, ..Options::default() };
    let task = Task::new(program, model, claimed);
    let verdicts = check(&Explicit { options }, &task, &limits, &Progress::default(), Confirm::NOTHING);
    verdicts.iter().any(|checked| matches!(checked.verdict(), Verdict::Unsafe))
}

/// A certificate without a state that is needed is always rejected: the only state that covers the initial state, or the only target of a step.
#[test]
fn a_state_that_is_needed_cannot_be_left_out() {
    let (_, program) =
        examples().into_iter().find(|(name, _)| name == "bakery.fenced.fw").expect("the bakery");
    let certificate = certificates(&program, MemoryModel::Tso).remove(0);
    let proof = certificate.proofs[0].invariant().expect("an invariant");
    let machine = BufferMachine::new(&program, proof.machine.buffers());
    let initial = proof.states.iter().position(|s| s.control() == machine.initial()).expect("covered");
    for n in [initial, initial + 1, proof.states.len() - 1] {
        let mut mutant = certificate.clone();
        mutant.proofs[0].invariant_mut().expect("an invariant").states.remove(n);
        assert!(!accepted(&mutant, &program), "state {n}");
    }
}
