//! Bounded contexts by plain search on the reference semantics, to compare the engine `contexts` with.
//!
//! Each test that includes this module uses a part of it.

#![allow(dead_code)]

use std::collections::HashSet;
use std::time::Duration;

use fencewright_engines::contexts::{ContextBound, Options};
use fencewright_engines::{Checked, Confirm, Limits, Progress, Reason, Task, Verdict, check};
use fencewright_executions::oracle::initial_states;
use fencewright_program::reference::{Reference, Refusal, State, decided_by, holds};
use fencewright_program::{
    Action, Init, MemoryModel, Numbers, Op, Program, Property, PropertyKind, Range, ThreadId,
};

/// Maximum number of contexts up to which plain search is compared with the engine.
pub const MOST: u32 = 6;

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

/// For each property, the least number of contexts of an execution that is evidence about it (the inner `None` if there is none), by plain search;
/// `None` if there are too many states.
pub fn least(program: &Program, model: MemoryModel, limit: usize) -> Option<Vec<Option<u32>>> {
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

/// The verdicts on these properties, checked together.
pub fn run_all(
    program: &Program,
    model: MemoryModel,
    properties: &[Property],
    options: Options,
) -> Vec<Checked> {
    let task = Task::new(program, model, properties.to_vec());
    let limits = Limits::starting_now(Some(Duration::from_secs(20)), None, Default::default());
    check(&ContextBound { options }, &task, &limits, &Progress::default(), Confirm::NOTHING)
}

pub fn run(program: &Program, model: MemoryModel, property: &Property, options: Options) -> Checked {
    run_all(program, model, std::slice::from_ref(property), options).pop().expect("one for each property")
}

/// Whether an `unknown` verdict is justified: the number of contexts that it claims to have excluded is correct.
fn is_unsure(reason: &Reason, least: Option<u32>) -> bool {
    match reason {
        Reason::Contexts(within, Some(why)) => {
            least.is_none_or(|least| *within < least) && is_unsure(why, None)
        }
        Reason::Unsupported(..) | Reason::Timeout(_) => true,
        _ => false,
    }
}

/// The numbers of answers of each kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    /// Number of programs compared.
    pub programs: usize,
    /// Number of properties for which evidence was found.
    pub found: usize,
    /// Number of properties without evidence within the bound.
    pub none: usize,
    /// Number of properties that were proved.
    pub safe: usize,
    /// Number of properties without an answer.
    pub unsure: usize,
}

impl std::iter::Sum for Count {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Count::default(), |a, b| Count {
            programs: a.programs + b.programs,
            found: a.found + b.found,
            none: a.none + b.none,
            safe: a.safe + b.safe,
            unsure: a.unsure + b.unsure,
        })
    }
}

/// Compares the engine with plain search on all properties of a program, checked one by one or together. `bounded` is the program with each choice
/// restricted to sufficiently many values.
pub fn agree(
    about: &str,
    [program, bounded]: [&Program; 2],
    model: MemoryModel,
    options: Options,
    together: bool,
) -> Count {
    let Some(least) = least(bounded, model, 15_000) else { return Count::default() };
    let mut count = Count { programs: 1, ..Count::default() };
    let mut questions: Vec<(&Property, Option<u32>)> = program.properties.iter().zip(least).collect();
    questions.retain(|(p, _)| p.kind != PropertyKind::NoDeadlock);
    let results: Vec<Checked> = match together {
        true => {
            let all: Vec<Property> = questions.iter().map(|(p, _)| (*p).clone()).collect();
            run_all(program, model, &all, options)
        }
        false => questions.iter().map(|(p, _)| run(program, model, p, options)).collect(),
    };
    for ((property, least), checked) in questions.into_iter().zip(results) {
        let about = format!("{about}, {model:?}, {options:?}, property {}", property.name);
        let rounds = checked.work.rounds().len() as u32;
        match (checked.verdict(), checked.trace(), least) {
            (Verdict::Safe | Verdict::Unsafe, Some(trace), Some(least)) => {
                let takes = trace.contexts() as u32;
                assert!(takes.max(1) == least, "{about}: {takes} contexts, but {least} are the least");
                assert!(together || rounds + 1 == least, "{about}: found in round {}", rounds + 1);
                count.found += 1;
            }
            (Verdict::Unknown(Reason::Contexts(MOST, None)), _, least) if least.is_none_or(|l| l > MOST) => {
                count.none += 1;
            }
            (Verdict::Safe | Verdict::Unsafe, None, None) => count.safe += 1,
            (Verdict::Unknown(reason), _, least) if is_unsure(reason, least) => count.unsure += 1,
            (verdict, _, least) => {
                panic!("{about}: {verdict:?} with {rounds} rounds, but it takes {least:?}")
            }
        }
    }
    count
}

/// The program with this text.
pub fn load(text: &str) -> Program {
    fencewright_lang::load("test.fw", text.as_bytes(), None, &[]).expect("it loads").program
}

/// The operations of an action.
pub fn ops_mut(action: &mut Action) -> &mut [Op] {
    match action {
        Action::Op(op) => std::slice::from_mut(op),
        Action::Atomic { ops, .. } => ops,
        Action::Fence | Action::StoreFence | Action::Lock | Action::Unlock => &mut [],
    }
}

/// The program with every free choice restricted to sufficiently many values: as many fresh values as there are choices, each at most
/// `distance` from the next.
pub fn bounded(program: &Program, distance: i64) -> Program {
    let mut bounded = program.clone();
    let ops = program.threads.iter().flat_map(|t| &t.edges).flat_map(|e| e.action.ops());
    let initial = program.variables.iter().flat_map(|v| &v.init);
    let initial = initial.chain(program.threads.iter().flat_map(|t| t.registers.iter().map(|r| &r.init)));
    let fresh = ops.filter(|op| matches!(op, Op::Havoc(_, None))).count()
        + initial.filter(|init| matches!(init, Init::Any(None))).count();
    let high = fresh as i64 * (distance + 1);
    let low = if program.numbers == Numbers::Nat { 0 } else { -high };
    let all = Some(Range { low, high });
    for op in bounded.threads.iter_mut().flat_map(|t| &mut t.edges).flat_map(|e| ops_mut(&mut e.action)) {
        if let Op::Havoc(_, range @ None) = op {
            *range = all;
        }
    }
    let registers = bounded.threads.iter_mut().flat_map(|t| t.registers.iter_mut().map(|r| &mut r.init));
    for init in bounded.variables.iter_mut().flat_map(|v| &mut v.init).chain(registers) {
        if *init == Init::Any(None) {
            *init = Init::Any(all);
        }
    }
    // Integers are sufficient for the reals as well.
    if bounded.numbers == Numbers::Real {
        bounded.numbers = Numbers::Int;
    }
    bounded
}
