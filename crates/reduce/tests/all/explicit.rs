//! Reduced programs explored under SC by engine `explicit`: its verdicts, including that on overflow, agree with the reference semantics with bounded
//! buffers.

use std::time::Duration;

use crate::common::{bounded, bounds, random_program};
use fencewright_engines::explicit::Explicit;
use fencewright_engines::{Confirm, Limits, Progress, Task, Verdict, check};
use fencewright_program::MemoryModel;
use fencewright_reduce::reduce;
use fencewright_testing::{Random, programs_or};

const MOST_STATES: usize = 3_000;

fn compare(model: MemoryModel, first_seed: u64) {
    let programs = programs_or(500);
    let (mut decided, mut violated, mut overflows) = (0, 0, 0);
    for seed in first_seed..first_seed + programs as u64 {
        let mut random = Random::new(seed);
        let program = random_program(&mut random, seed);
        let bounds = bounds(&mut random, &program, model);
        let Ok(reduced) = reduce(&program, model, &bounds) else { continue };
        let Some(expected) = bounded(&program, model, &bounds, MOST_STATES) else { continue };
        let holds = |n: usize| match program.properties.get(n) {
            Some(property) => expected.reachable.satisfies(&program, model, property),
            None => Some(!expected.overflow),
        };
        let properties = program.properties.iter().map(|p| reduced.property(p));
        let properties = properties.chain([reduced.overflow_property()]).collect();
        let task = Task::new(&reduced.program, MemoryModel::Sc, properties);
        let limits = Limits::starting_now(Some(Duration::from_secs(5)), Some(1 << 30), Default::default());
        let answers = check(&Explicit::default(), &task, &limits, &Progress::default(), Confirm::NOTHING);
        for (n, checked) in answers.iter().enumerate() {
            let context = format!("seed {seed}, {model:?}, {bounds:?}: {}", checked.property.name);
            let found = match checked.verdict() {
                Verdict::Safe => true,
                Verdict::Unsafe => false,
                Verdict::Unknown(_) => continue,
            };
            assert_eq!(Some(found), holds(n), "{context}");
            decided += 1;
            violated += usize::from(!found);
        }
        overflows += usize::from(expected.overflow);
    }
    println!("{model:?}: {decided} decided, {violated} of them violated; {overflows} programs overflow");
    assert!(decided > programs && violated > programs / 4 && overflows > programs / 20);
}

#[test]
fn verdicts_under_tso() {
    compare(MemoryModel::Tso, 50_000);
}

#[test]
fn verdicts_under_pso() {
    compare(MemoryModel::Pso, 60_000);
}
