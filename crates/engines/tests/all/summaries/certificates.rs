//! Tests that the checker accepts only true certificates about summary cells. If a changed certificate is accepted, then every state on random
//! executions of the machine, in which summary cells have sets of values, satisfies one cube of its invariant.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fencewright_certify::certificate::Constraint;
use fencewright_certify::symmetry::Permutation;
use fencewright_certify::{Certificate, Stop, check as certify};
use fencewright_engines::cegar::{Cegar, Options};
use fencewright_engines::domain::DomainName;
use fencewright_engines::{Confirm, Limits, Progress, Task, check};
use fencewright_memory::{BufferMachine, CellId, Control, Kept, Outcome};
use fencewright_program::{MemoryModel, Program};
use fencewright_smt::Prover;
use fencewright_testing::sets::Sets;
use fencewright_testing::{Random, Shape, program, spread};

fn accepted(certificate: &Certificate, program: &Program) -> bool {
    let stop: Stop = Arc::new(|| false);
    certify(certificate, program, &Prover, &stop).is_ok()
}

/// A certificate that mentions summary cells, if the program has one.
fn certificate(program: &Program, random: &mut Random) -> Option<Certificate> {
    let model = *random.pick(&[MemoryModel::Tso, MemoryModel::Pso]);
    let kept = *random.pick(&[Kept::Oldest, Kept::Newest]);
    let domain = *random.pick(&[DomainName::Zones, DomainName::Zones, DomainName::Predicates]);
    let options = Options { k: random.below(2) as u32, kept, summaries: true, domain, ..Options::default() };
    let task = Task::new(program, model, program.properties.clone());
    let limits = Limits::starting_now(Some(Duration::from_millis(300)), None, Default::default());
    let results = check(&Cegar { options }, &task, &limits, &Progress::default(), Confirm::default());
    let certificates = results.iter().filter_map(|result| result.certificate());
    let small = |c: &&Certificate| {
        c.proofs[0].invariant().expect("an invariant").states.iter().map(|s| s.invariant.len()).sum::<usize>()
            < 3_000
    };
    certificates.filter(small).find(|c| !about_summaries(c, program).is_empty()).cloned()
}

/// The places where a certificate mentions summary cells: state, cube and constraint.
fn about_summaries(certificate: &Certificate, program: &Program) -> Vec<(usize, usize, usize)> {
    let cells = BufferMachine::new(
        program,
        certificate.proofs[0].invariant().expect("an invariant").machine.buffers(),
    )
    .cells;
    let mut found = Vec::new();
    for (s, state) in certificate.proofs[0].invariant().expect("an invariant").states.iter().enumerate() {
        for (c, cube) in state.invariant.iter().enumerate() {
            for (n, constraint) in cube.iter().enumerate() {
                if constraint.terms.iter().any(|(cell, _)| cells.is_summary(*cell)) {
                    found.push((s, c, n));
                }
            }
        }
    }
    found
}

/// Changes a constraint on a summary cell in one place.
fn changed(certificate: &Certificate, program: &Program, random: &mut Random) -> Certificate {
    let cells = BufferMachine::new(
        program,
        certificate.proofs[0].invariant().expect("an invariant").machine.buffers(),
    )
    .cells;
    let mut mutant = certificate.clone();
    let (s, c, n) = *random.pick(&about_summaries(certificate, program));
    let cubes = &mut mutant.proofs[0].invariant_mut().expect("an invariant").states[s].invariant;
    let (summary, _) =
        *cubes[c][n].terms.iter().find(|(cell, _)| cells.is_summary(*cell)).expect("a summary");
    let bound = |coefficient: i64, constant: i64| Constraint {
        terms: vec![(summary, coefficient)],
        constant,
        modulus: None,
    };
    match random.below(6) {
        0 => cubes[c][n].constant += *random.pick(&[-2, -1, 1, 2]),
        1 => drop(cubes[c].remove(n)),
        2 => {
            // Replaces the cube by two cubes. Each value of the summary cell satisfies one of them, but not all values satisfy the same one.
            let middle = random.between(-1, 2);
            let mut upper = cubes[c].clone();
            upper.push(bound(-1, middle + 1));
            cubes[c].push(bound(1, -middle));
            cubes.push(upper);
        }
        3 => {
            // Adds the constraint that all values of the summary cell equal another cell.
            let other = random.below(cells.len()) as CellId;
            if other != summary {
                let ((a, b), (first, second)) = ((1, -1), (summary.min(other), summary.max(other)));
                cubes[c].push(Constraint {
                    terms: vec![(first, a), (second, b)],
                    constant: 0,
                    modulus: None,
                });
                cubes[c].push(Constraint {
                    terms: vec![(first, b), (second, a)],
                    constant: 0,
                    modulus: None,
                });
            }
        }
        4 => {
            let value = random.between(-1, 2);
            cubes[c].extend([bound(1, -value), bound(-1, value)]);
        }
        _ => cubes[c].push(bound(*random.pick(&[-1, 1]), random.between(-2, 2))),
    }
    mutant
}

/// The values of cells after a permutation of threads.
fn exchanged(machine: &BufferMachine<'_>, sets: &Sets, order: &Permutation) -> Sets {
    let mut after = Sets::default();
    for cell in 0..machine.cells.len() as CellId {
        let before = order.before(&machine.cells, cell);
        after.values.extend(sets.values.get(&before).map(|value| (cell, *value)));
        after.sets.extend(sets.sets.get(&before).map(|values| (cell, values.clone())));
    }
    after
}

/// Whether every state on random executions of the machine satisfies one cube of its invariant.
fn holds_on_executions(certificate: &Certificate, program: &Program, random: &mut Random) -> bool {
    let machine = BufferMachine::new(
        program,
        certificate.proofs[0].invariant().expect("an invariant").machine.buffers(),
    );
    let orders = crate::orders::orders(
        program.threads.len(),
        &certificate.proofs[0].invariant().expect("an invariant").symmetry,
    );
    let satisfied = |control: &Control, sets: &Sets| {
        orders.iter().any(|order| {
            let (control, sets) = (order.control(control), exchanged(&machine, sets, order));
            let state = certificate.proofs[0]
                .invariant()
                .expect("an invariant")
                .states
                .iter()
                .find(|state| state.control() == control);
            state.is_some_and(|state| state.cubes().iter().any(|cube| sets.satisfies(cube)))
        })
    };
    let run = |sets: &Sets, commands: &[_], random: &mut Random| {
        let mut after = sets.clone();
        commands.iter().all(|command| after.perform(command, random).is_some()).then_some(after)
    };
    for _ in 0..8 {
        let mut control = machine.initial();
        // Buffer cells have not been written yet and may have any value.
        let mut sets = Sets::default();
        for cell in 0..machine.cells.len() as CellId {
            let anything = random.between(-9, 9);
            match machine.cells.is_summary(cell) {
                true => _ = sets.sets.insert(cell, BTreeSet::from([anything, anything + 5])),
                false => _ = sets.values.insert(cell, anything),
            }
        }
        let Some(start) = run(&sets, &machine.initial_values(), random) else { continue };
        sets = start;
        for _ in 0..60 {
            if !satisfied(&control, &sets) {
                return false;
            }
            let steps = machine.steps(&control);
            let possible = (0..8).filter(|_| !steps.is_empty()).find_map(|_| {
                let step = random.pick(&steps);
                Some((step.outcome.clone(), run(&sets, &step.commands, random)?))
            });
            let Some((Outcome::Control(next), after)) = possible else { break };
            (control, sets) = (next, after);
        }
    }
    true
}

#[test]
fn changed_certificates_are_rejected_or_true() {
    let [certificates, rejected, harmless] = spread(0..250, |seed| {
        let (mut rejected, mut harmless) = (0, 0);
        let mut random = Random::new(seed);
        let program = program(&mut random, Shape { length: 4, ..Shape::default() });
        let Some(certificate) = certificate(&program, &mut random) else { return [0; 3] };
        assert!(accepted(&certificate, &program), "seed {seed}");
        assert!(holds_on_executions(&certificate, &program, &mut random), "seed {seed}: not an invariant");
        for _ in 0..20 {
            let mutant = changed(&certificate, &program, &mut random);
            match accepted(&mutant, &program) {
                false => rejected += 1,
                true => {
                    harmless += 1;
                    let holds = holds_on_executions(&mutant, &program, &mut random);
                    assert!(holds, "seed {seed}: a wrong certificate is accepted");
                }
            }
        }
        [1, rejected, harmless]
    })
    .into_iter()
    .fold([0; 3], |all, one| std::array::from_fn(|n| all[n] + one[n]));
    println!("{certificates} certificates; mutants: {rejected} rejected, {harmless} accepted and true");
    assert!(certificates > 20, "only {certificates} certificates about summary cells");
    assert!(rejected > 200 && harmless > 50, "{rejected} rejected, {harmless} accepted");
}
