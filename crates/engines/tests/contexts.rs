//! Engine `contexts` against the reference semantics with the active thread as part of the state: a violation is found with exactly as
//! many contexts as it takes, for every property, whatever the domain.
//!
//! A normal run takes some hundred random programs of each kind; with `FENCEWRIGHT_LONG_TESTS=1` it is tens of thousands.

use std::collections::HashSet;
use std::time::Duration;

use fencewright_engines::contexts::{ContextBound, Options};
use fencewright_engines::domain::DomainName;
use fencewright_engines::{Checked, Confirm, Limits, Progress, Reason, Task, Verdict, check};
use fencewright_program::oracle::initial_states;
use fencewright_program::reference::{Reference, Refusal, State, decided_by, holds};
use fencewright_program::{MemoryModel, Program, Property, PropertyKind, ThreadId};
use fencewright_testing::{Random, Shape, program};

/// Contexts at most.
const MOST: u32 = 6;

/// Whether a state is evidence about a property.
fn decides(reference: &Reference<'_>, state: &State, property: &Property) -> bool {
    match &property.kind {
        PropertyKind::Never(formula) => holds(state, formula) == Some(true),
        PropertyKind::Assertions => reference.has_fault(state),
        PropertyKind::NoDeadlock => false,
        PropertyKind::Finally(quantifier, formula) => {
            let decision = holds(state, formula).and_then(|holds| decided_by(*quantifier, holds));
            reference.is_final(state) && decision.is_some()
        }
    }
}

/// For each property the least number of contexts that give evidence about it, by plain search; nothing if there are too many states.
fn least(program: &Program, model: MemoryModel, limit: usize) -> Option<Vec<Option<u32>>> {
    let reference = Reference::new(program, model);
    let mut found = vec![None; program.properties.len()];
    let mut seen: HashSet<(State, usize)> = HashSet::new();
    let threads = program.threads.len();
    let mut starts: Vec<(State, usize)> = Vec::new();
    for state in initial_states(&reference, limit, &mut || false).ok()? {
        starts.extend((0..threads).map(|t| (state.clone(), t)));
    }
    for layer in 1.. {
        if starts.is_empty() {
            break;
        }
        let mut work: Vec<(State, usize)> = starts.drain(..).filter(|s| seen.insert(s.clone())).collect();
        let mut reached = work.clone();
        while let Some((state, active)) = work.pop() {
            let endless = state.buffers.iter().any(|b| b.len() > 20);
            if endless || seen.len() > limit || reference.has_unbounded_choice(&state) {
                return None;
            }
            for (n, property) in program.properties.iter().enumerate() {
                if found[n].is_none() && decides(&reference, &state, property) {
                    found[n] = Some(layer);
                }
            }
            for event in reference.candidates(&state, &[]) {
                if event.thread != ThreadId(active as u32) {
                    continue;
                }
                match reference.step(&state, &event) {
                    Ok((next, _)) if seen.insert((next.clone(), active)) => {
                        reached.push((next.clone(), active));
                        work.push((next, active));
                    }
                    Ok(_) | Err(Refusal::Disabled(_)) => {}
                    Err(Refusal::Limit(..)) => return None,
                }
            }
        }
        for (state, active) in reached {
            starts.extend((0..threads).filter(|&t| t != active).map(|t| (state.clone(), t)));
        }
    }
    Some(found)
}

fn run(program: &Program, model: MemoryModel, property: &Property, options: Options) -> Checked {
    let task = Task::new(program, model, vec![property.clone()]);
    let limits = Limits::starting_now(Some(Duration::from_secs(20)), None, Default::default());
    let engine = ContextBound { options };
    let mut results = check(&engine, &task, &limits, &Progress::default(), Confirm::default());
    results.pop().expect("one for each property")
}

/// Whether the engine says that it does not know, for all it knew so far was right.
fn is_unsure(reason: &Reason, least: Option<u32>) -> bool {
    match reason {
        Reason::Contexts(within, Some(why)) => {
            least.is_none_or(|least| *within < least) && is_unsure(why, None)
        }
        Reason::Unsupported(..) | Reason::Timeout(_) => true,
        _ => false,
    }
}

/// How many answers of each kind there were.
#[derive(Debug, Default)]
struct Count {
    programs: usize,
    found: usize,
    none: usize,
    safe: usize,
    unsure: usize,
}

/// Compares the engine with plain search on all properties of a program.
fn agree(
    about: &str,
    program: &Program,
    bounded: &Program,
    model: MemoryModel,
    options: Options,
    count: &mut Count,
) {
    let Some(least) = least(bounded, model, 60_000) else { return };
    count.programs += 1;
    for (property, least) in program.properties.iter().zip(least) {
        if property.kind == PropertyKind::NoDeadlock {
            continue;
        }
        let about = format!("{about}, {model:?}, {options:?}, property {}", property.name);
        let checked = run(program, model, property, options);
        let rounds = checked.rounds.len() as u32;
        let evidence = checked.trace().is_some();
        match (checked.verdict(), least) {
            (Verdict::Safe | Verdict::Unsafe, Some(least)) if evidence => {
                assert_eq!(rounds + 1, least, "{about}: found with another number of contexts");
                let takes = checked.trace().expect("it is there").contexts() as u32;
                assert!(takes <= least.max(1), "{about}: the trace takes {takes} contexts");
                count.found += 1;
            }
            (Verdict::Unknown(Reason::Contexts(MOST, None)), least) if least.is_none_or(|l| l > MOST) => {
                count.none += 1;
            }
            (Verdict::Safe | Verdict::Unsafe, None) if !evidence => count.safe += 1,
            // Where values are computed, zones may be too coarse to say.
            (Verdict::Unknown(reason), least) if is_unsure(reason, least) => count.unsure += 1,
            (verdict, least) => panic!("{about}: {verdict:?} with {rounds} rounds, but it takes {least:?}"),
        }
    }
}

fn seeds(normal: u64, long: u64) -> std::ops::Range<u64> {
    0..if std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some() { long } else { normal }
}

#[test]
fn any_program_with_zones() {
    let mut count = Count::default();
    for seed in seeds(400, 40_000) {
        let mut random = Random::new(seed);
        let program = program(&mut random, Shape { length: 4, ..Shape::default() });
        let model = *random.pick(&[MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Tso]);
        let domain = *random.pick(&[None, Some(DomainName::Zones), Some(DomainName::Zones)]);
        let options = Options { contexts: Some(MOST), domain };
        agree(&format!("seed {seed}"), &program, &program, model, options, &mut count);
    }
    println!("{count:?}");
    assert!(count.found > 100 && count.none + count.safe > 100, "{count:?}");
}
