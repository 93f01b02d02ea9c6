//! Dynamic partial order reduction against the reference semantics, on random programs.
//!
//! `FENCEWRIGHT_LONG_TESTS=1` takes many more programs, `FENCEWRIGHT_PROGRAMS` says how many.

use fencewright_engines::dynamic::Dynamic;
use fencewright_engines::{Confirm, Limits, Progress, Task, Verdict, check_each};
use fencewright_executions::oracle::explore;
use fencewright_executions::traces;
use fencewright_program::{MemoryModel, Program};
use fencewright_testing::{Random, Shape, contend, group, program, separate};

/// Programs with more states than this have too many traces.
const MOST_STATES: usize = 400;

fn wanted(usual: u64, long: u64) -> u64 {
    let asked = std::env::var("FENCEWRIGHT_PROGRAMS").ok().and_then(|n| n.parse().ok());
    let usual = if std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some() { long } else { usual };
    asked.unwrap_or(usual)
}

fn acyclic(seed: u64) -> Program {
    let mut random = Random::new(seed);
    let shape = Shape { loops: false, corners: seed % 4 == 3, ..Shape::default() };
    let mut program = program(&mut random, shape);
    match seed % 8 {
        1 | 5 => contend(&mut random, &mut program, 3),
        2 => group(&mut random, &mut program),
        6 => {
            contend(&mut random, &mut program, 3);
            separate(&mut random, &mut program);
        }
        _ => {}
    }
    program
}

#[test]
fn one_execution_of_each_trace_is_explored() {
    let (mut compared, mut met) = (0, [0u64; 2]);
    for seed in 0..wanted(600, 20_000) {
        let mut program = acyclic(seed);
        program.properties.clear();
        for model in MemoryModel::ALL {
            let Some(expected) = traces::count(&program, model, 3_000) else { continue };
            let task = Task::new(&program, model, Vec::new());
            let checks =
                check_each(&Dynamic, &task, &Limits::default(), &Progress::default(), Confirm::NOTHING, &mut |_, _| {});
            let found = checks.statistics.executions.expect("executions were counted");
            assert_eq!(found.redundant, 0, "seed {seed}, {model:?}: {found:?}, {expected:?}");
            assert_eq!(found.cut, 0, "seed {seed}, {model:?}");
            let counted = traces::Traces { complete: found.complete, blocked: found.blocked };
            assert_eq!(counted, expected, "seed {seed}, {model:?}: {found:?}");
            compared += 1;
            met[0] += expected.complete;
            met[1] += expected.blocked;
        }
    }
    println!("{compared} programs, {met:?} traces");
}

#[test]
fn verdicts_are_those_of_the_reference_semantics() {
    let mut compared = 0;
    for seed in 0..wanted(2_000, 20_000) {
        let program = acyclic(1_000_000 + seed);
        for model in MemoryModel::ALL {
            let Ok(reachable) = explore(&program, model, MOST_STATES, &mut || false) else { continue };
            let task = Task::new(&program, model, program.properties.clone());
            let checks =
                check_each(&Dynamic, &task, &Limits::default(), &Progress::default(), Confirm::NOTHING, &mut |_, _| {});
            for checked in checks.verdicts {
                let expected = reachable.satisfies(&program, model, &checked.property).expect("small values");
                let same = match checked.verdict() {
                    Verdict::Safe => expected,
                    Verdict::Unsafe => !expected,
                    Verdict::Unknown(_) => false,
                };
                let name = &checked.property.name;
                assert!(same, "seed {seed}, {model:?}, {name}: {:?}, expected {expected}", checked.verdict());
            }
            compared += 1;
        }
    }
    println!("{compared} programs");
}

fn example(name: &str, defines: &[(&str, i64)]) -> Program {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let bytes = std::fs::read(path).expect("readable");
    let defines: Vec<(String, i64)> = defines.iter().map(|(n, v)| (n.to_string(), *v)).collect();
    fencewright_lang::load::load(name, &bytes, None, &defines).expect("it loads").program
}

/// C. Flanagan and P. Godefroid, 2005: eleven threads never collide, and each further one collides in three slots with one of the others.
#[test]
fn the_indexer_has_one_trace_until_threads_collide() {
    for model in MemoryModel::ALL {
        for (threads, traces) in [(2, 1), (10, 1), (11, 1), (12, 8), (13, 64), (14, 512)] {
            let program = example("indexer.fw", &[("N", threads)]);
            let task = Task::new(&program, model, program.properties.clone());
            let start = std::time::Instant::now();
            let checks =
                check_each(&Dynamic, &task, &Limits::default(), &Progress::default(), Confirm::NOTHING, &mut |_, _| {});
            let found = checks.statistics.executions.expect("executions were counted");
            println!("{threads} {model:?} {found:?} {:?}", start.elapsed());
            assert_eq!((found.complete, found.blocked, found.redundant), (traces, 0, 0), "{threads} threads");
            assert!(checks.verdicts.iter().all(|c| matches!(c.verdict(), Verdict::Safe)));
        }
    }
}
