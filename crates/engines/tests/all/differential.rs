//! Compares the explicit engine, in every configuration, with the reference semantics on random programs.
//!
//! A normal run tests 2,500 programs, each with one random configuration; `FENCEWRIGHT_PROGRAMS=N` tests N programs. With
//! `FENCEWRIGHT_LONG_TESTS=1`, 100,000 programs are tested with all configurations, which takes hours.

use std::collections::BTreeSet;

use fencewright_engines::explicit::{Explicit, Options, Order, Reduction};
use fencewright_engines::{Checked, Condition, Confirm, Limits, Progress, Reason, Task, Verdict, check};
use fencewright_executions::oracle::{Reachable, explore};
use fencewright_program::{
    Expr, MemoryModel, Observable, Program, Property, PropertyKind, Quantifier, Reference, RegisterId,
};
use fencewright_testing::arithmetic::compute;
use fencewright_testing::bounds::{bound, exceeds};
use fencewright_testing::{Random, Shape, program, programs_or};

/// Maximum number of states of the random programs; those with more are skipped.
const MOST_STATES: usize = 4_000;

fn long() -> bool {
    std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some()
}

fn configurations() -> Vec<Options> {
    let mut all = Vec::new();
    for order in [Order::BreadthFirst, Order::DepthFirst] {
        for live_variables in [false, true] {
            for reduction in [Reduction::None, Reduction::Local] {
                for workers in [1, 2, 3] {
                    let options = Options { order, live_variables, reduction, workers, ..Options::default() };
                    all.push(options);
                }
            }
        }
    }
    all
}

/// A random configuration with a random reduction.
fn any_reduction(random: &mut Random) -> Options {
    let reduction = *random.pick(&Reduction::ALL);
    Options { reduction, ..random.pick(&configurations()).clone() }
}

/// A condition that every final state satisfies.
fn ended() -> Property {
    let kind = PropertyKind::Finally(Quantifier::Forall, Expr::Const(1));
    Property { kind, ..Property::assertions() }
}

/// All observables of a final state: all registers and all memory.
fn everything(program: &Program) -> Vec<Observable> {
    let registers = program.threads().flat_map(|(id, thread)| {
        (0..thread.registers.len() as u32).map(move |r| Observable::Register(id, RegisterId(r)))
    });
    registers.chain((0..program.cells() as u32).map(Observable::Memory)).collect()
}

fn finals(program: &Program, model: MemoryModel, reachable: &Reachable) -> BTreeSet<Vec<i64>> {
    let reference = Reference::new(program, model);
    let finals = reachable.states.iter().filter(|s| reference.is_final(s));
    finals.map(|s| s.registers.iter().flatten().chain(&s.memory).copied().collect()).collect()
}

/// The oracle's results for a program under one model.
struct Expected {
    /// Whether each property holds.
    verdicts: Vec<bool>,
    finals: BTreeSet<Vec<i64>>,
    states: u64,
}

impl Expected {
    /// Computes the results; `None` if the program has more than `most_states` states.
    fn new(program: &Program, model: MemoryModel, most_states: usize) -> Option<Self> {
        let reachable = explore(program, model, most_states, &mut || false).ok()?;
        let holds = |p: &Property| reachable.satisfies(program, model, p).expect("small values");
        Some(Expected {
            verdicts: program.properties.iter().map(holds).collect(),
            finals: finals(program, model, &reachable),
            states: reachable.states.len() as u64,
        })
    }
}

/// Compares one configuration with the oracle: verdicts, final states and, without reductions, the number of states.
fn agree(seed: u64, program: &Program, model: MemoryModel, expected: &Expected, options: &Options) {
    let engine = Explicit { options: options.clone() };
    let task = Task::new(program, model, program.properties.clone());
    let (limits, progress) = (Limits::default(), Progress::default());
    // Proofs are confirmed by certificates alone: the certificate checker must accept the set of states of every configuration.
    let confirm = Confirm { exploration: None, ..Confirm::default() };
    let answers = check(&engine, &task, &limits, &progress, confirm);
    assert_eq!(answers.len(), expected.verdicts.len(), "seed {seed}, {model:?}, {options:?}");
    for (checked, &expected) in answers.into_iter().zip(&expected.verdicts) {
        let same = match checked.verdict() {
            Verdict::Safe => expected,
            Verdict::Unsafe => !expected,
            Verdict::Unknown(_) => false,
        };
        let name = &checked.property.name;
        assert!(
            same,
            "seed {seed}, {model:?}, property {name}, {options:?}: {checked:?}, but the oracle says {expected}"
        );
        assert_eq!(checked.checked(), Some(true), "seed {seed}, {model:?}, property {name}, {options:?}");
    }
    let ended = ended();
    let condition = Condition::new(program, model, &ended, None, everything(program)).expect("a `finally`");
    let found = condition.search(&engine, &limits, None);
    assert_eq!(found.missing(), None, "seed {seed}, {model:?}, {options:?}");
    let values: BTreeSet<Vec<i64>> = found.states().iter().map(|s| s.values.clone()).collect();
    assert_eq!(values, expected.finals, "seed {seed}, {model:?}, {options:?}: final states");
    if !options.live_variables && options.reduction == Reduction::None {
        assert_eq!(found.statistics.states, expected.states, "seed {seed}, {model:?}, {options:?}: states");
    }
}

#[test]
fn the_explicit_engine_agrees_with_the_reference_semantics() {
    let wanted = if long() { 100_000 } else { programs_or(2_500) };
    let most_states = if long() { MOST_STATES / 4 } else { MOST_STATES };
    let configurations = configurations();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for part in 0..threads {
            let configurations = &configurations;
            scope.spawn(move || {
                let (mut decided, mut computing) = (0, 0);
                let mut seed = part as u64;
                while decided < wanted.div_ceil(threads) {
                    let mut random = Random::new(seed);
                    let mut program =
                        program(&mut random, Shape { corners: seed % 4 == 3, ..Shape::default() });
                    if seed % 8 < 3 {
                        compute(&mut random, &mut program);
                    }
                    let (mut outcomes, mut drawn) = (Vec::new(), random.clone());
                    for model in MemoryModel::ALL {
                        let Some(expected) = Expected::new(&program, model, most_states) else { continue };
                        let mut agree = |options: &Options| {
                            // With the default option, such small programs hardly ever start worker threads.
                            let threads_from = if random.one_in(4) { 0 } else { options.threads_from };
                            let options = Options { threads_from, ..options.clone() };
                            agree(seed, &program, model, &expected, &options);
                        };
                        match long() {
                            true => configurations.iter().for_each(&mut agree),
                            false => agree(drawn.pick(configurations)),
                        }
                        outcomes.push((model, expected.finals));
                    }
                    for pair in outcomes.windows(2) {
                        let (stronger, weaker) = (&pair[0], &pair[1]);
                        assert!(
                            stronger.1.is_subset(&weaker.1),
                            "seed {seed}: outcomes of {:?} are not outcomes of {:?}",
                            stronger.0,
                            weaker.0
                        );
                    }
                    decided += usize::from(outcomes.len() == 3);
                    computing += usize::from(outcomes.len() == 3 && seed % 8 < 3);
                    if decided % 1_000 == 0 && outcomes.len() == 3 {
                        println!("part {part}: {decided} programs, {computing} of them compute, seed {seed}");
                    }
                    seed += threads as u64;
                }
            });
        }
    });
}

#[test]
fn an_unbounded_choice_is_never_a_proof() {
    use fencewright_executions::oracle::Incomplete;
    use fencewright_program::{Action, Op};
    let mut met = 0;
    for seed in 0..1_000 {
        let mut random = Random::new(seed);
        let mut program = program(&mut random, Shape { loops: false, ..Shape::default() });
        for edge in program.threads.iter_mut().flat_map(|t| &mut t.edges) {
            if let Action::Op(Op::Havoc(_, range)) = &mut edge.action {
                *range = None;
            }
        }
        program.properties.retain(|p| matches!(p.kind, PropertyKind::Never(_)));
        let reachable = explore(&program, MemoryModel::Tso, MOST_STATES, &mut || false);
        if !matches!(reachable, Err(Incomplete::UnboundedChoice)) {
            continue;
        }
        met += 1;
        let task = Task::new(&program, MemoryModel::Tso, program.properties.clone());
        let deadline = std::time::Duration::from_millis(20);
        let limits = Limits::starting_now(Some(deadline), None, Default::default());
        let options = Options { workers: 1, ..Options::default() };
        let engine = Explicit { options };
        let verdicts = check(&engine, &task, &limits, &Progress::default(), Confirm::NOTHING);
        let proved = verdicts.iter().any(|checked| matches!(checked.verdict(), Verdict::Safe));
        assert!(!proved, "seed {seed}: a proof in spite of an unbounded choice");
        let ended = ended();
        let condition = Condition::new(&program, MemoryModel::Tso, &ended, None, everything(&program));
        let finals = condition.expect("a `finally`").search(&engine, &limits, None);
        assert!(finals.missing().is_some(), "seed {seed}: all final states in spite of an unbounded choice");
    }
    assert!(met > 50, "only {met} programs come to an unbounded choice");
}

#[test]
fn a_bound_on_buffers_that_is_reached_is_never_a_proof() {
    let (mut equal, mut bounded, mut within) = (0, 0, 0);
    for seed in 0..1_500 {
        let mut random = Random::new(5_000_000 + seed);
        let program = program(&mut random, Shape::default());
        let model = *random.pick(&[MemoryModel::Tso, MemoryModel::Pso]);
        let Ok(reachable) = explore(&program, model, 1_000, &mut || false) else { continue };
        let bound = bound(&mut random);
        let options = Options { buffer_bound: Some(bound), ..any_reduction(&mut random) };
        let is_over = reachable.states.iter().any(|state| exceeds(state, bound));
        let task = Task::new(&program, model, program.properties.clone());
        let engine = Explicit { options };
        for checked in check(&engine, &task, &Limits::default(), &Progress::default(), Confirm::NOTHING) {
            let expected = reachable.satisfies(&program, model, &checked.property).expect("small values");
            match checked.verdict() {
                Verdict::Safe => {
                    assert!(expected, "seed {seed}, {model:?}, {:?}: {checked:?}", engine.options);
                    // A search with a reduction may not execute some stores, unless the reduction only prefers local steps.
                    let sees_all = matches!(engine.options.reduction, Reduction::None | Reduction::Local);
                    let shown = checked.trace().is_some();
                    assert!(
                        shown || !sees_all || !is_over,
                        "seed {seed}, {model:?}, {bound:?}: an overflow is missed"
                    );
                    within += usize::from(sees_all && !shown);
                }
                Verdict::Unsafe => {
                    assert!(!expected, "seed {seed}, {model:?}, {:?}: {checked:?}", engine.options)
                }
                Verdict::Unknown(Reason::BufferBound(_)) => {
                    assert!(is_over, "seed {seed}, {model:?}, {bound:?}: there is no overflow");
                    bounded += 1;
                }
                Verdict::Unknown(reason) => panic!("seed {seed}: {reason}"),
            }
            equal += usize::from(!matches!(checked.verdict(), Verdict::Unknown(_)));
        }
    }
    println!("{equal} decided, {bounded} at the bound, {within} within it");
    assert!(
        equal > 1_000 && bounded > 200 && within > 100,
        "{equal} decided, {bounded} at the bound, {within} within"
    );
}

#[test]
fn a_limit_of_explicit_computation_is_never_a_proof() {
    use fencewright_executions::oracle::Incomplete;
    let mut met = 0;
    for seed in 0..1_500 {
        let mut random = Random::new(7_000_000 + seed);
        let mut program = program(&mut random, Shape { loops: false, ..Shape::default() });
        program.variables.iter_mut().for_each(|v| v.open = true);
        let Err(Incomplete::Limit) = explore(&program, MemoryModel::Tso, MOST_STATES, &mut || false) else {
            continue;
        };
        met += 1;
        let task = Task::new(&program, MemoryModel::Tso, program.properties.clone());
        let engine = Explicit { options: any_reduction(&mut random) };
        let verdicts = check(&engine, &task, &Limits::default(), &Progress::default(), Confirm::NOTHING);
        let is_proof = |c: &Checked| matches!((c.verdict(), c.trace()), (Verdict::Safe, None));
        assert!(
            !verdicts.iter().any(is_proof),
            "seed {seed}: a proof in spite of an access outside the window"
        );
        let ended = ended();
        let condition = Condition::new(&program, MemoryModel::Tso, &ended, None, everything(&program));
        let finals = condition.expect("a `finally`").search(&engine, &Limits::default(), None);
        assert!(finals.missing().is_some(), "seed {seed}: all final states in spite of such an access");
    }
    assert!(met > 20, "only {met} programs leave the window");
}

/// Buffers grow without bound, so states are repacked in wider and wider layouts for a large part of the time. The time limit is often reached during
/// the repacking, by one worker before the others.
#[test]
fn a_search_that_runs_out_of_time_while_it_packs_states_anew_tells_what_it_found() {
    let text = "shared x, y;
        thread left { loop { choose { x = 1; } or { x = 2; } } }
        thread right { loop { y = 1; y = 0; } }
        forbid early: y == 1 && x == 2;
        forbid below: x < 0;";
    let loaded = fencewright_lang::load("growing.fw", text.as_bytes(), None, &[]).expect("it loads").program;
    let mut found = 0;
    for milliseconds in 1..=40 {
        let workers = 1 + milliseconds as usize % 3;
        let options = Options { workers, threads_from: 20, ..Options::default() };
        let task = Task::new(&loaded, MemoryModel::Tso, loaded.properties.clone());
        let time = std::time::Duration::from_millis(milliseconds);
        let limits = Limits::starting_now(Some(time), None, Default::default());
        let checked = check(&Explicit { options }, &task, &limits, &Progress::default(), Confirm::NOTHING);
        let [early, below] = &checked[..] else { panic!("two properties") };
        let timed_out = |c: &Checked| matches!(c.verdict(), Verdict::Unknown(Reason::Timeout(_)));
        assert!(timed_out(below), "{milliseconds} ms: {:?}", below.verdict());
        // The violation may have been found too late to be replayed, and then it does not count.
        assert!(matches!(early.verdict(), Verdict::Unsafe) || timed_out(early), "{:?}", early.verdict());
        found += usize::from(matches!(early.verdict(), Verdict::Unsafe));
    }
    assert!(found > 0, "no search came to the violation");
}
