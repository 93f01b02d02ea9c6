//! Partial order reductions against the reference semantics, on random programs, and the examples of THESIS16.
//!
//! A normal run takes 2,000 programs, each with every reduction under every memory model, in an order and with a number of workers drawn at random;
//! `FENCEWRIGHT_PROGRAMS=N` takes N of them. Properties are asked for alone as often as together: what one of them sees, no reduction may
//! leave out, so all of them together leave little to reduce.

use std::collections::BTreeSet;
use std::sync::Mutex;

use fencewright_engines::explicit::{Explicit, Options, Order, Reduction};
use fencewright_engines::{Condition, Confirm, Limits, Progress, Task, Verdict, check, robust};
use fencewright_executions::oracle::explore;
use fencewright_program::{
    Expr, MemoryModel, Observable, Program, Property, PropertyKind, Quantifier, Reference, RegisterId,
};
use fencewright_testing::apart::{keep_apart, lock_sections};
use fencewright_testing::arithmetic::compute;
use fencewright_testing::{Random, Shape, contend, program, programs_or, separate};

/// Programs with more states than this are left out.
const MOST_STATES: usize = 2_000;

/// A condition that every final state satisfies.
fn ended() -> Property {
    Property { kind: PropertyKind::Finally(Quantifier::Forall, Expr::Const(1)), ..Property::assertions() }
}

/// Everything one can observe of a final state: all registers and all memory.
fn everything(program: &Program) -> Vec<Observable> {
    let registers = program.threads().flat_map(|(id, thread)| {
        (0..thread.registers.len() as u32).map(move |r| Observable::Register(id, RegisterId(r)))
    });
    registers.chain((0..program.cells() as u32).map(Observable::Memory)).collect()
}

/// A random program in which reductions have something to do, and something to get wrong.
fn random_program(random: &mut Random, seed: u64) -> Program {
    let mut program = program(random, Shape { corners: seed % 5 == 4, ..Shape::default() });
    match seed % 8 {
        0 => compute(random, &mut program),
        1 => contend(random, &mut program, 3),
        2 => separate(random, &mut program),
        3..=5 => keep_apart(random, &mut program),
        6 => {
            lock_sections(random, &mut program);
            keep_apart(random, &mut program);
        }
        _ => {}
    }
    program
}

/// States that were stored where all were seen, for each reduction.
type States = [u64; Reduction::ALL.len()];

/// Runs every reduction on a program under a model, and compares with the reference semantics. Nothing if there are too many states.
fn agree(seed: u64, program: &Program, model: MemoryModel, random: &mut Random) -> Option<States> {
    let reachable = explore(program, model, MOST_STATES, &mut || false).ok()?;
    let reference = Reference::new(program, model);
    let finals: BTreeSet<Vec<i64>> = reachable
        .states
        .iter()
        .filter(|s| reference.is_final(s))
        .map(|s| s.registers.iter().flatten().chain(&s.memory).copied().collect())
        .collect();
    let (limits, progress) = (Limits::default(), Progress::default());
    let mut states = States::default();
    let asked: Vec<Property> = match random.below(4) {
        0 => program.properties.clone(),
        // Nothing is visible.
        1 => {
            program.properties.iter().filter(|p| !matches!(p.kind, PropertyKind::Never(_))).cloned().collect()
        }
        _ => vec![random.pick(&program.properties).clone()],
    };
    let (live_variables, symmetry) = (!random.one_in(4), !random.one_in(4));
    let mut all_seen = None;
    for (n, reduction) in Reduction::ALL.into_iter().enumerate() {
        let options = Options {
            order: *random.pick(&[Order::BreadthFirst, Order::DepthFirst]),
            workers: 1 + random.below(3),
            // Programs this small hardly ever start threads by themselves.
            threads_from: if random.one_in(4) { 0 } else { 1_000 },
            reduction,
            live_variables,
            symmetry,
            ..Options::default()
        };
        let engine = Explicit { options };
        let context = || format!("seed {seed}, {model:?}, {:?}", engine.options);
        let task = Task::new(program, model, asked.clone());
        let answers = check(&engine, &task, &limits, &progress, Confirm::NOTHING);
        let mut seen = None;
        for checked in &answers {
            let holds = reachable.satisfies(program, model, &checked.property).expect("small values");
            let same = match checked.verdict() {
                Verdict::Safe => holds,
                Verdict::Unsafe => !holds,
                Verdict::Unknown(_) => false,
            };
            let name = &checked.property.name;
            assert!(same, "{}, {name}: {checked:?}, but the oracle says {holds}", context());
            if checked.trace().is_none() {
                seen = Some(checked.states);
                // A reduced search is no inductive invariant, and never passes for one.
                let proof = matches!(reduction, Reduction::None | Reduction::Local);
                assert_eq!(checked.certificate().is_some(), proof, "{}, {name}", context());
            }
        }
        if reduction == Reduction::None {
            all_seen = seen;
        }
        // Favourites are a part of states, so local events first may have more states than no reduction.
        if let (Some(seen), Some(all), false) = (seen, all_seen, reduction == Reduction::Local) {
            assert!(seen <= all, "{}: {seen} states instead of {all}", context());
        }
        let ended = ended();
        let condition = Condition::new(program, model, &ended, None, everything(program));
        let found = condition.expect("a `finally`").search(&engine, &limits, None);
        assert_eq!(found.missing(), None, "{}", context());
        let values: BTreeSet<Vec<i64>> = found.states().iter().map(|s| s.values.clone()).collect();
        assert_eq!(values, finals, "{}: final states", context());
        states[n] = found.statistics.states;
    }
    assert!(
        states[1..]
            .iter()
            .zip(&Reduction::ALL[1..])
            .all(|(states_of, reduction)| { *reduction == Reduction::Local || *states_of <= states[0] }),
        "seed {seed}, {model:?}: {states:?}"
    );
    Some(states)
}

#[test]
fn reductions_agree_with_the_reference_semantics() {
    let wanted = programs_or(2_000);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let total = Mutex::new(States::default());
    std::thread::scope(|scope| {
        for part in 0..threads {
            let total = &total;
            scope.spawn(move || {
                let (mut decided, mut seed) = (0, part as u64);
                while decided < wanted.div_ceil(threads) {
                    let mut random = Random::new(11_000_000 + seed);
                    let program = random_program(&mut random, seed);
                    let mut models = 0;
                    for model in MemoryModel::ALL {
                        if let Some(states) = agree(seed, &program, model, &mut random) {
                            models += 1;
                            let mut total = total.lock().expect("nobody panicked");
                            total.iter_mut().zip(states).for_each(|(total, states)| *total += states);
                        }
                    }
                    decided += usize::from(models == 3);
                    seed += threads as u64;
                }
            });
        }
    });
    let total = total.into_inner().expect("nobody panicked");
    for (reduction, states) in Reduction::ALL.iter().zip(total) {
        println!("{reduction:?}: {states} states");
        // What each must leave out of the states between the initial and the final ones, where no property looks at them.
        let most = match reduction {
            Reduction::None => total[0],
            Reduction::Local => total[0] * 3 / 2,
            Reduction::Ample | Reduction::Persistent | Reduction::Cartesian => total[0] * 3 / 4,
            Reduction::Dynamic => unreachable!("it stores no states"),
        };
        assert!(states <= most, "{reduction:?}: {states} of {} states", total[0]);
    }
}

#[test]
fn robustness_does_not_depend_on_the_reduction() {
    let (mut robust, mut not_robust) = (0, 0);
    for seed in 0..600 {
        let mut random = Random::new(12_000_000 + seed);
        let mut program = program(&mut random, Shape { threads: 2, length: 6, ..Shape::default() });
        contend(&mut random, &mut program, 12);
        let mut answers = Vec::new();
        for reduction in Reduction::ALL {
            let order = *random.pick(&[Order::BreadthFirst, Order::DepthFirst]);
            let explicit = Options { order, reduction, workers: 1, ..Options::default() };
            let options = robust::Options {
                search: robust::Search::Explicit,
                explicit,
                confirm: Confirm::NOTHING,
                ..robust::Options::default()
            };
            let limits = Limits::starting_now(None, Some(16 << 20), Default::default());
            let found = robust::analyse(&program, &options, &limits, &Progress::default());
            answers.push(found.robust().ok());
        }
        // Without a reduction there may be too many states, or a value that grows.
        if let Some(expected) = answers[0] {
            assert!(answers.iter().all(|answer| *answer == Some(expected)), "seed {seed}: {answers:?}");
            *(if expected { &mut robust } else { &mut not_robust }) += 1;
        }
    }
    assert!(robust > 100 && not_robust > 30, "{robust} robust, {not_robust} not");
}
