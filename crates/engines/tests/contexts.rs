//! Engine `contexts` against the reference semantics with the active thread as part of the state: a violation is found with exactly as
//! many contexts as it takes, for every property, whatever the domain.
//!
//! A normal run takes some hundred random programs of each kind; with `FENCEWRIGHT_LONG_TESTS=1` it is tens of thousands.

use std::collections::HashSet;
use std::time::Duration;

use fencewright_engines::contexts::{ContextBound, Options};
use fencewright_engines::domain::DomainName;
use fencewright_engines::{Checked, Confirm, Limits, Progress, Reason, Task, Verdict, check};
use fencewright_generate::automata::{Automaton, intersection, random_automata};
use fencewright_generate::bakery::bakery;
use fencewright_generate::random as generate;
use fencewright_program::oracle::initial_states;
use fencewright_program::reference::{Reference, Refusal, State, decided_by, holds};
use fencewright_program::{
    Action, MemoryModel, Numbers, Op, Program, Property, PropertyKind, Range, ThreadId,
};
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
    let Some(least) = least(bounded, model, 15_000) else { return };
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

/// A program from its text.
fn load(text: &str) -> Program {
    fencewright_lang::load("test.fw", text.as_bytes(), None, &[]).expect("it loads").program
}

/// The program with every free choice made from as few values as are enough: so many fresh values, each at most this distance
/// from others.
fn bounded(program: &Program, distance: i64) -> Program {
    let mut bounded = program.clone();
    let mut fresh = 0;
    for edge in bounded.threads.iter().flat_map(|t| &t.edges) {
        fresh += edge.action.ops().iter().filter(|op| matches!(op, Op::Havoc(_, None))).count();
    }
    let high = fresh as i64 * (distance + 1);
    let low = if program.numbers == Numbers::Nat { 0 } else { -high };
    for edge in bounded.threads.iter_mut().flat_map(|t| &mut t.edges) {
        let ops = match &mut edge.action {
            Action::Op(op) => std::slice::from_mut(op),
            Action::Atomic { ops, .. } => ops.as_mut_slice(),
            _ => continue,
        };
        for op in ops {
            if let Op::Havoc(_, range @ None) = op {
                *range = Some(Range { low, high });
            }
        }
    }
    // Whole numbers are enough for the reals as well.
    if bounded.numbers == Numbers::Real {
        bounded.numbers = Numbers::Int;
    }
    bounded
}

#[test]
fn programs_that_only_compare_are_decided_exactly() {
    let mut count = Count::default();
    for seed in seeds(1_000, 60_000) {
        let mut random = Random::new(seed);
        let distances = random.one_in(3);
        let shape = generate::Shape {
            threads: 2 + random.one_in(4) as usize,
            length: 3 + random.below(3),
            variables: 1 + random.below(3),
            numbers: *random.pick(&[generate::Numbers::Nat, generate::Numbers::Int, generate::Numbers::Real]),
            distances,
            loops: false,
        };
        let text = generate::random(seed, shape);
        let program = load(&text);
        let model = *random.pick(&[MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Tso, MemoryModel::Tso]);
        let options = Options { contexts: Some(MOST), domain: Some(DomainName::Order) };
        let bounded = bounded(&program, if distances { 3 } else { 0 });
        agree(&format!("seed {seed}\n{text}"), &program, &bounded, model, options, &mut count);
    }
    println!("{count:?}");
    assert!(count.programs >= 500 && count.unsure == 0, "{count:?}");
    assert!(count.found > 100 && count.none + count.safe > 100, "{count:?}");
}

/// Whether some word is accepted by all automata, by search in their product.
fn intersects(automata: &[Automaton], letters: usize) -> bool {
    let first: Vec<usize> = automata.iter().map(|a| a.initial).collect();
    let mut seen = HashSet::from([first.clone()]);
    let mut work = vec![first];
    while let Some(states) = work.pop() {
        if automata.iter().zip(&states).all(|(a, q)| a.accepting.contains(q)) {
            return true;
        }
        for letter in 0..letters {
            let mut next: Vec<Vec<usize>> = vec![Vec::new()];
            for (a, q) in automata.iter().zip(&states) {
                let moves = a.transitions.iter().filter(|(from, l, _)| (from, *l) == (q, letter));
                let targets: Vec<usize> = moves.map(|t| t.2).collect();
                let longer = |p: &Vec<usize>| {
                    let p = p.clone();
                    targets.iter().map(move |t| [p.as_slice(), &[*t]].concat()).collect::<Vec<_>>()
                };
                next = next.iter().flat_map(longer).collect();
            }
            work.extend(next.into_iter().filter(|states| seen.insert(states.clone())));
        }
    }
    false
}

#[test]
fn intersections_of_automata() {
    let (mut empty, mut inhabited) = (0, 0);
    for seed in seeds(150, 3_000) {
        let mut random = Random::new(seed);
        let (count, states, letters) = (1 + random.below(3), 2 + random.below(3), 1 + random.below(2));
        let automata = random_automata(seed, count, states, letters);
        let program = load(&intersection(&automata, letters));
        let property = program.properties.iter().find(|p| p.name == "accepted").expect("it is stated");
        let checked = run(&program, MemoryModel::Tso, property, Options::default());
        let reached = match checked.verdict() {
            Verdict::Safe => false,
            Verdict::Unsafe => true,
            Verdict::Unknown(reason) => panic!("seed {seed}: {reason}"),
        };
        assert_eq!(reached, intersects(&automata, letters), "seed {seed}: {automata:?}");
        if reached { inhabited += 1 } else { empty += 1 }
    }
    assert!(empty > 20 && inhabited > 20, "{empty} empty, {inhabited} not");
}

#[test]
fn the_bakery_fails_without_fences_and_holds_with_them() {
    for n in [2, 3] {
        let program = load(&bakery(n, false));
        let mutex = program.properties.iter().find(|p| p.name == "mutex").expect("it is stated");
        let checked = run(&program, MemoryModel::Tso, mutex, Options::default());
        assert!(matches!(checked.verdict(), Verdict::Unsafe), "{n}: {:?}", checked.verdict());
        // One thread enters with its stores still buffered, and so does another.
        assert_eq!(checked.rounds.len() + 1, 2, "{n} threads");
        assert_eq!(checked.trace().expect("replayed").contexts(), 2);
    }
    let program = load(&bakery(2, true));
    let mutex = program.properties.iter().find(|p| p.name == "mutex").expect("it is stated");
    let options = Options { contexts: Some(8), domain: Some(DomainName::Order) };
    let checked = run(&program, MemoryModel::Tso, mutex, options);
    assert!(matches!(checked.verdict(), Verdict::Safe), "{:?}", checked.verdict());
    let options = Options { contexts: Some(5), ..options };
    let checked = run(&program, MemoryModel::Tso, mutex, options);
    let within = Reason::Contexts(5, None);
    assert!(matches!(checked.verdict(), Verdict::Unknown(r) if *r == within), "{:?}", checked.verdict());
    assert_eq!(within.to_string(), "no violation within 5 contexts");
}
