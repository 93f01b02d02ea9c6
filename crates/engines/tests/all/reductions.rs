//! Compares partial order reductions with the reference semantics, on random programs and on the examples of THESIS16.
//!
//! A normal run tests 2,000 programs, each with every reduction under every memory model, with a random order and number of workers;
//! `FENCEWRIGHT_PROGRAMS=N` tests N programs. In half of the runs a single property is checked. If all properties are checked together, reductions
//! have little effect, because no reduction may leave out a step that is visible to one of the properties.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use fencewright_engines::explicit::{Explicit, Options, Order, Reduction};
use fencewright_engines::{Condition, Confirm, Limits, Progress, Reason, Task, Verdict, check, robust};
use fencewright_executions::oracle::explore;
use fencewright_lang::load;
use fencewright_memory::Bound;
use fencewright_program::{
    Expr, MemoryModel, Observable, Program, Property, PropertyKind, Quantifier, Reference, RegisterId,
};
use fencewright_testing::apart::{keep_apart, lock_sections};
use fencewright_testing::arithmetic::compute;
use fencewright_testing::families::family;
use fencewright_testing::{Random, Shape, contend, group, program, programs_or, separate, spread};

/// The index of `Reduction::Sleep` in [`Reduction::ALL`]. The entry before it is `Reduction::Persistent`.
const SLEEP: usize = 4;

/// Programs with more states than this are skipped.
const MOST_STATES: usize = 2_000;

/// A condition that every final state satisfies.
fn ended() -> Property {
    Property { kind: PropertyKind::Finally(Quantifier::Forall, Expr::Const(1)), ..Property::assertions() }
}

/// All observables of a final state: all registers and all memory.
fn everything(program: &Program) -> Vec<Observable> {
    let registers = program.threads().flat_map(|(id, thread)| {
        (0..thread.registers.len() as u32).map(move |r| Observable::Register(id, RegisterId(r)))
    });
    registers.chain((0..program.cells() as u32).map(Observable::Memory)).collect()
}

/// A random program that a reduction makes smaller, and in which a wrong reduction would miss behaviour.
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

/// For each reduction, the numbers of states and transitions in runs that were complete.
type Seen = [(u64, u64); Reduction::ALL.len()];

/// Runs every reduction on a program under a model, and compares with the reference semantics. `None` if there are too many states.
fn agree(seed: u64, program: &Program, model: MemoryModel, random: &mut Random) -> Option<Seen> {
    let reachable = explore(program, model, MOST_STATES, &mut || false).ok()?;
    let reference = Reference::new(program, model);
    let finals: BTreeSet<Vec<i64>> = reachable
        .states
        .iter()
        .filter(|s| reference.is_final(s))
        .map(|s| s.registers.iter().flatten().chain(&s.memory).copied().collect())
        .collect();
    let (limits, progress) = (Limits::default(), Progress::default());
    let mut seen_by = Seen::default();
    let asked: Vec<Property> = match random.below(4) {
        0 => program.properties.clone(),
        // No step is visible to these properties.
        1 => {
            program.properties.iter().filter(|p| !matches!(p.kind, PropertyKind::Never(_))).cloned().collect()
        }
        _ => vec![random.pick(&program.properties).clone()],
    };
    let (live_variables, symmetry) = (!random.one_in(4), !random.one_in(4));
    let (mut all_seen, mut persistent) = (None, None);
    for (n, reduction) in Reduction::ALL.into_iter().enumerate() {
        let options = Options {
            order: *random.pick(&[Order::BreadthFirst, Order::DepthFirst]),
            workers: 1 + random.below(3),
            // With the default option, such small programs hardly ever start worker threads.
            threads_from: if random.one_in(4) { 0 } else { 1_000 },
            reduction,
            live_variables,
            symmetry,
            ..Options::default()
        };
        let engine = Explicit { options };
        let context = || format!("seed {seed}, {model:?}, {:?}", engine.options);
        let task = Task::new(program, model, asked.clone());
        // The certificate checker accepts all proofs, and an incomplete set of states is never offered as one.
        let confirm = Confirm { exploration: None, ..Confirm::default() };
        let answers = check(&engine, &task, &limits, &progress, confirm);
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
                seen = Some((checked.work.states, checked.work.transitions().expect("steps are counted")));
                let proof = matches!(reduction, Reduction::None | Reduction::Local | Reduction::Persistent);
                assert_eq!(checked.certificate().is_some(), proof, "{}, {name}", context());
                assert!(!proof || checked.checked() == Some(true), "{}, {name}: {checked:?}", context());
            }
        }
        match reduction {
            Reduction::None => all_seen = seen,
            Reduction::Persistent => persistent = seen,
            _ => {}
        }
        // The preferred thread is part of the state, so a search with `Local` may have more states than a search without reduction.
        if let (Some((states, _)), Some((all, _)), false) = (seen, all_seen, reduction == Reduction::Local) {
            assert!(states <= all, "{}: {states} states instead of {all}", context());
        }
        // Sleep sets store a subset of the states that persistent sets store.
        if let (Some((states, _)), Some((all, _)), Reduction::Sleep) = (seen, persistent, reduction) {
            assert!(states <= all, "{}: {states} states instead of {all}", context());
        }
        let ended = ended();
        let condition = Condition::new(program, model, &ended, None, everything(program));
        let found = condition.expect("a `finally`").search(&engine, &limits, None);
        assert_eq!(found.missing(), None, "{}", context());
        let values: BTreeSet<Vec<i64>> = found.states().iter().map(|s| s.values.clone()).collect();
        assert_eq!(values, finals, "{}: final states", context());
        seen_by[n] = (found.statistics.states, found.statistics.transitions().expect("steps are counted"));
    }
    for ((states, _), reduction) in seen_by.into_iter().zip(Reduction::ALL) {
        let most = match reduction {
            Reduction::Local => continue,
            Reduction::Sleep => seen_by[SLEEP - 1].0,
            _ => seen_by[0].0,
        };
        assert!(states <= most, "seed {seed}, {model:?}, {reduction:?}: {seen_by:?}");
    }
    Some(seen_by)
}

#[test]
fn reductions_agree_with_the_reference_semantics() {
    let wanted = programs_or(2_000);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let total = Mutex::new(Seen::default());
    let (runs, longer) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for part in 0..threads {
            let (total, runs, longer) = (&total, &runs, &longer);
            scope.spawn(move || {
                let (mut decided, mut seed) = (0, part as u64);
                while decided < wanted.div_ceil(threads) {
                    let mut random = Random::new(11_000_000 + seed);
                    let program = random_program(&mut random, seed);
                    let mut models = 0;
                    for model in MemoryModel::ALL {
                        if let Some(seen) = agree(seed, &program, model, &mut random) {
                            models += 1;
                            runs.fetch_add(1, Ordering::Relaxed);
                            let more = usize::from(seen[SLEEP].1 > seen[SLEEP - 1].1);
                            longer.fetch_add(more, Ordering::Relaxed);
                            let mut total = total.lock().expect("nobody panicked");
                            for ((all, all_steps), (states, steps)) in total.iter_mut().zip(seen) {
                                (*all, *all_steps) = (*all + states, *all_steps + steps);
                            }
                        }
                    }
                    decided += usize::from(models == 3);
                    seed += threads as u64;
                }
            });
        }
    });
    let total = total.into_inner().expect("nobody panicked");
    let all = total[0].0;
    for (reduction, (states, steps)) in Reduction::ALL.iter().zip(total) {
        println!("{reduction:?}: {states} states, {steps} transitions");
        // The maximum number of states of each reduction in the runs whose properties do not read intermediate states.
        let most = match reduction {
            Reduction::None => all,
            Reduction::Local => all * 3 / 2,
            Reduction::Ample | Reduction::Persistent | Reduction::Sleep | Reduction::Cartesian => all * 3 / 4,
            Reduction::Dynamic | Reduction::Suited => unreachable!("they are not among all"),
        };
        assert!(states <= most, "{reduction:?}: {states} of {all} states");
    }
    let (persistent, sleep) = (total[SLEEP - 1].1, total[SLEEP].1);
    // In a few runs, sleep sets may take more transitions, because a state is expanded again when threads in its sleep set wake up.
    let (runs, longer) = (runs.into_inner(), longer.into_inner());
    println!("sleep sets take more transitions than persistent sets in {longer} of {runs} runs");
    assert!(sleep < persistent && longer * 200 <= runs, "{sleep} of {persistent}; {longer} of {runs}");
}

/// A program in which sleep sets matter: threads that interact often, groups of stores that leave in any order, families.
fn busy_program(random: &mut Random, seed: u64) -> Program {
    if seed % 4 == 3 {
        let text = family(random, false);
        return load("family.fw", text.as_bytes(), None, &[]).expect("it loads").program;
    }
    let loops = random.one_in(3);
    let shape = Shape { threads: 3, length: 2 + random.below(3), loops, corners: random.one_in(8) };
    let mut program = program(random, shape);
    match seed % 4 {
        0 => contend(random, &mut program, 8),
        1 => {
            contend(random, &mut program, 2);
            lock_sections(random, &mut program);
        }
        _ => group(random, &mut program),
    }
    program
}

/// The values of some observables in all final states, and one verdict; `None` if there are too many states.
fn outcome(
    (program, model): (&Program, MemoryModel),
    (property, observed): (&Property, &[Observable]),
    options: Options,
) -> Option<(bool, BTreeSet<Vec<i64>>, u64)> {
    let engine = Explicit { options };
    // Sleep sets and additional workers need more memory. A search starts with tables of half a MiB, and may double them once.
    let most = if engine.options.reduction == Reduction::None { (1 << 19) + (1 << 16) } else { 1 << 26 };
    let limits = Limits::starting_now(None, Some(most), Default::default());
    let task = Task::new(program, model, vec![property.clone()]);
    let checked = check(&engine, &task, &limits, &Progress::default(), Confirm::NOTHING).remove(0);
    let safe = match checked.verdict() {
        Verdict::Safe => true,
        Verdict::Unsafe => false,
        Verdict::Unknown(_) => return None,
    };
    let ended = ended();
    let condition = Condition::new(program, model, &ended, None, observed.to_vec());
    let found = condition.expect("a `finally`").search(&engine, &limits, None);
    let finals = found.states().iter().map(|s| s.values.clone()).collect();
    found.missing().is_none().then_some((safe, finals, found.statistics.transitions()?))
}

#[test]
fn sleeping_steps_are_explored_elsewhere() {
    let wanted = programs_or(4_000) as u64;
    let compare = |seed: u64| -> Option<[u64; 2]> {
        let mut random = Random::new(13_002_000 + seed);
        let program = busy_program(&mut random, seed);
        let model = MemoryModel::ALL[random.below(3)];
        let property = random.pick(&program.properties).clone();
        // Fewer observed registers mean fewer different states, so that more states are reached in several ways.
        let mut observed = everything(&program);
        observed.retain(|o| !matches!(o, Observable::Register(..)) || random.one_in(4));
        let options = Options { workers: 1, reduction: Reduction::None, ..Options::default() };
        let asked = (&property, observed.as_slice());
        let (safe, finals, all) = outcome((&program, model), asked, options.clone())?;
        let sleepy = Options {
            order: *random.pick(&[Order::BreadthFirst, Order::DepthFirst]),
            reduction: Reduction::Sleep,
            workers: 1 + random.below(2),
            ..options
        };
        let context = format!("seed {seed}, {model:?}, {}, {sleepy:?}", property.name);
        let found = outcome((&program, model), asked, sleepy);
        let (safe_too, same_finals, taken) = found.unwrap_or_else(|| panic!("{context}: no answer"));
        assert_eq!((safe_too, same_finals), (safe, finals), "{context}");
        Some([all, taken])
    };
    let counts = spread(0..wanted, compare).into_iter().flatten();
    let [decided, all, taken] = counts.fold([0; 3], |[a, b, c], [x, y]| [a + 1, b + x, c + y]);
    println!("{decided} programs: {taken} of {all} transitions");
    assert!(decided * 2 > wanted && taken * 3 < all * 2, "{decided} programs: {taken} of {all} transitions");
}

#[test]
fn steps_disabled_by_a_bound_do_not_sleep() {
    // While the store to `x` is in the buffer, the bound disables the alternative with a store.
    let text = "
        shared x, y;
        thread t { var r; x = 1; choose { y = 1; r = 1; } or { skip; } fence; x = 2; }
        thread u { var s; s = x; }
        finally f: never t.r == 1 && u.s == 0;
    ";
    let program = load("bound.fw", text.as_bytes(), None, &[]).expect("it loads").program;
    for (reduction, model) in Reduction::ALL.into_iter().flat_map(|r| MemoryModel::ALL.map(|m| (r, m))) {
        let options =
            Options { reduction, buffer_bound: Some(Bound::Thread(1)), workers: 1, ..Options::default() };
        let task = Task::new(&program, model, program.properties.clone());
        let engine = Explicit { options };
        let checked = check(&engine, &task, &Limits::default(), &Progress::default(), Confirm::NOTHING);
        assert!(matches!(checked[0].verdict(), Verdict::Unsafe), "{reduction:?}, {model:?}");
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

/// If a bound was reached, no proof is offered to the checker.
#[test]
fn a_bound_that_was_reached_is_no_proof() {
    let text = "shared x, y; thread p { while true { x = 1; } } thread q { y = 1; } forbid f: y == 2;";
    let program = load("bound.fw", text.as_bytes(), None, &[]).expect("it loads").program;
    let proofs = [Reduction::None, Reduction::Local, Reduction::Persistent];
    for (reduction, model) in
        proofs.into_iter().flat_map(|r| [MemoryModel::Tso, MemoryModel::Pso].map(|m| (r, m)))
    {
        let options =
            Options { reduction, buffer_bound: Some(Bound::Thread(2)), workers: 1, ..Options::default() };
        let task = Task::new(&program, model, program.properties.clone());
        let engine = Explicit { options };
        let checked = check(&engine, &task, &Limits::default(), &Progress::default(), Confirm::default());
        let unknown = matches!(checked[0].verdict(), Verdict::Unknown(Reason::BufferBound(_)));
        assert!(unknown, "{reduction:?}, {model:?}: {:?}", checked[0]);
    }
}
