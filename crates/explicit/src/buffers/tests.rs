//! Abstract buffers: reachable states compared with the reference semantics and with each other; their proofs, also after tampering. The *plain
//! machines* are the simple interpreters of abstract buffers in `fencewright_testing::abstract_buffers`.
//!
//! Runs a few hundred programs by default; `FENCEWRIGHT_PROGRAMS=N` runs N.

use std::collections::HashSet;
use std::sync::Arc;

use fencewright_certify::states::{Abstraction as Claimed, BufferFields, PackedStates, StateSet, Steps};
use fencewright_certify::{Certificate, Claim, Proof, Rejection, Stop, check as certify};
use fencewright_executions::oracle::explore;
use fencewright_lang::load;
use fencewright_memory::Kept;
use fencewright_program::{
    Expr, LocationId, MemoryModel, Program, Property, PropertyKind, Span, State, ThreadId,
};
use fencewright_smt::Prover;
use fencewright_testing::abstract_buffers::{self as plain, AbstractMachine, Counts};
use fencewright_testing::{Random, Shape, contend, group, program, programs_or, separate};
use fencewright_verdict::fingerprint::fingerprint;
use fencewright_verdict::{Answer, Confirm, Limits, Progress, Task, Token, Verdict, check};

use super::{BufferDomain, Buffers, Options};
use crate::abstracted::{self, Outcome};
use crate::{self as explicit, Abstraction};

const WEAK: [MemoryModel; 2] = [MemoryModel::Tso, MemoryModel::Pso];

const ABSTRACTIONS: [Abstraction; 8] = [
    Abstraction::SET,
    Abstraction::multiset(2),
    Abstraction::multiset(3),
    Abstraction::partial(1, Kept::Oldest),
    Abstraction::partial(2, Kept::Oldest),
    Abstraction::partial(1, Kept::Newest),
    Abstraction::partial(2, Kept::Newest),
    // The engine never uses this abstraction, but the rules cover it.
    Abstraction { k: 1, kept: Kept::Newest, many: 2, cut: false },
];

/// Pairs of indices into `ABSTRACTIONS`: an abstraction and a coarser one.
const COARSER: [(usize, usize); 8] = [(1, 0), (2, 1), (3, 0), (4, 3), (5, 0), (6, 5), (7, 5), (7, 1)];

/// The domains that users can select.
const DOMAINS: [Option<BufferDomain>; 5] = [
    None,
    Some(BufferDomain::Set),
    Some(BufferDomain::Multiset),
    Some(BufferDomain::Partial(1)),
    Some(BufferDomain::Partial(2)),
];

/// A random program; in most, threads store to cells that others load, or stores are separated by store fences.
fn random_program(seed: usize) -> Program {
    let mut random = Random::new(seed as u64);
    let shape = Shape { corners: seed % 5 == 4, ..Shape::default() };
    let mut program = program(&mut random, shape);
    if !seed.is_multiple_of(3) {
        contend(&mut random, &mut program, 3);
    }
    if seed % 4 == 1 {
        separate(&mut random, &mut program);
    }
    program
}

fn options(reduced: bool) -> explicit::Options {
    explicit::Options {
        workers: 1,
        live_variables: reduced,
        reduction: if reduced { explicit::Reduction::Local } else { explicit::Reduction::None },
        ..explicit::Options::default()
    }
}

fn engine(domain: Option<BufferDomain>, kept: Kept, reduced: bool) -> Buffers {
    Buffers { explicit: options(reduced), options: Options { domain, kept } }
}

/// A small memory limit, because random programs may have infinitely many states.
fn limits() -> Limits {
    Limits::starting_now(None, Some(4 << 20), Token::default())
}

/// The states reachable with an abstraction, as a proof of the only property; `None` if the search hits a limit or finds no proof.
fn all_states(program: &Program, model: MemoryModel, abstraction: Abstraction) -> Option<Arc<StateSet>> {
    let task = Task::new(program, model, program.properties.clone());
    let progress = Progress::default();
    let found = abstracted::run(&task, &options(false), abstraction, &limits(), &progress).ok()?;
    let Outcome::Answer(Answer::Certified(certificate)) = &found.outcomes[0] else { return None };
    let Proof::States(set) = &certificate.proofs[0] else { panic!("a search has states") };
    Some(Arc::clone(set))
}

/// The same abstraction for the plain machines.
fn plainly(abstraction: Abstraction) -> plain::Abstraction {
    let kept = if abstraction.kept == Kept::Oldest { plain::Kept::Oldest } else { plain::Kept::Newest };
    let counts = if abstraction.cut { Counts::UpTo } else { Counts::OrMore };
    plain::Abstraction { k: abstraction.k as usize, kept, counts: counts(abstraction.many) }
}

/// The program with a trivially true property instead of its own.
fn with_a_truth(program: Program) -> Program {
    let kind = PropertyKind::Never(Expr::Const(0));
    let truth = Property { name: "truth".into(), kind, span: Span::default() };
    Program { properties: vec![truth], ..program }
}

fn packed(set: &StateSet) -> std::slice::ChunksExact<'_, u64> {
    match &set.states {
        PackedStates::Plain(words, states) => states.chunks_exact(*words),
        PackedStates::Compressed { .. } => panic!("the engine does not compress states"),
    }
}

/// A state without its buffers: locations, registers, memory, and the holder of the lock.
type Visible = (Vec<LocationId>, Vec<Vec<i64>>, Vec<i64>, Option<ThreadId>);

fn visible(set: &StateSet) -> HashSet<Visible> {
    let layout = &set.layout;
    let of = |state: &[u64]| {
        let locations: Vec<LocationId> =
            layout.locations.iter().map(|l| LocationId(l.get(state) as u32)).collect();
        let registers =
            layout.registers.iter().map(|r| r.iter().map(|field| field.get(state)).collect()).collect();
        let memory = layout.memory.iter().map(|m| m.get(state)).collect();
        let lock = Some(layout.lock.get(state)).filter(|&l| l > 0).map(|l| ThreadId(l as u32 - 1));
        (locations, registers, memory, lock)
    };
    packed(set).map(of).collect()
}

fn accepted(set: StateSet, program: &Program, properties: &[&str]) -> Result<(), Rejection> {
    let stop: Stop = Arc::new(|| false);
    let claim = Claim::Safe { properties: properties.iter().map(|name| name.to_string()).collect() };
    let certificate = Certificate::new(fingerprint(program), claim, vec![Proof::States(Arc::new(set))]);
    certify(&certificate, program, &Prover, &stop).map(|_| ())
}

fn seen(state: State) -> Visible {
    (state.locations, state.registers, state.memory, state.lock)
}

/// The reachable states also equal those of the plain machine with the same abstraction, although that machine has rule WM-D.
#[test]
fn abstractions_reach_what_exact_buffers_reach_and_coarser_ones_reach_more() {
    let (mut compared, mut larger, mut states, mut plain_states) = (0, 0, 0, 0);
    for seed in 0..programs_or(150) {
        let program = with_a_truth(random_program(seed));
        for model in WEAK {
            let Ok(exact) = explore(&program, model, 1_000, &mut || false) else { continue };
            let exact: HashSet<Visible> = exact.states.into_iter().map(seen).collect();
            let mut reached = Vec::new();
            for abstraction in ABSTRACTIONS {
                let Some(set) = all_states(&program, model, abstraction) else { break };
                let machine = AbstractMachine::new(&program, model, plainly(abstraction));
                let found = visible(&set);
                if let Ok(plain) = plain::explore(machine, 3_000, &mut || false) {
                    plain_states += plain.states.len();
                    states += packed(&set).len();
                    let plain: HashSet<Visible> = plain.states.into_iter().map(|s| seen(s.visible)).collect();
                    assert!(found == plain, "seed {seed}, {model:?}, {abstraction:?}");
                }
                assert!(exact.is_subset(&found), "seed {seed}, {model:?}, {abstraction:?}");
                reached.push(found);
            }
            if reached.len() < ABSTRACTIONS.len() {
                continue;
            }
            for (finer, coarser) in COARSER {
                assert!(
                    reached[finer].is_subset(&reached[coarser]),
                    "seed {seed}, {model:?}: {finer} and {coarser}"
                );
            }
            larger += (reached[0].len() > exact.len()) as usize;
            compared += 1;
        }
    }
    println!(
        "{compared} programs compared, {larger} times sets reach more; {states} states, {plain_states} on plain machines"
    );
    assert!(compared > 80 && larger > 5 && states < plain_states);
}

/// Expanded multisets reach the same states as the plain machine in which a store beyond the bound is disabled.
#[test]
fn expanded_multisets_reach_what_multisets_reach() {
    let (mut reached, mut not) = (0, 0);
    for seed in 0..programs_or(150) {
        let program = random_program(seed);
        let of_interest = |p: &&Property| p.kind != PropertyKind::NoDeadlock;
        let properties: Vec<Property> = program.properties.iter().filter(of_interest).cloned().collect();
        for many in 1..3 {
            let abstraction = Abstraction { cut: true, ..Abstraction::multiset(many) };
            let machine = AbstractMachine::new(&program, MemoryModel::Tso, plainly(abstraction));
            let Ok(plain) = plain::explore(machine, 2_000, &mut || false) else { continue };
            let task = Task::new(&program, MemoryModel::Tso, properties.clone());
            let progress = Progress::default();
            let found =
                abstracted::run(&task, &options(!seed.is_multiple_of(2)), abstraction, &limits(), &progress);
            let Ok(found) = found else { continue };
            for (property, outcome) in properties.iter().zip(found.outcomes) {
                let hit = plain.satisfies(property).map(|holds| holds == property.kind.is_existence());
                let path = matches!(outcome, Outcome::Path(_));
                assert_eq!(hit, Some(path), "seed {seed}, {many}: {}", property.name);
                *if path { &mut reached } else { &mut not } += 1;
                let definite = matches!(outcome, Outcome::Answer(ref answer) if answer.holds().is_some());
                assert!(!definite, "seed {seed}, {many}: {}", property.name);
            }
        }
    }
    println!("{reached} reached, {not} not");
    assert!(reached > 100 && not > 100);
}

#[test]
fn the_checker_takes_the_steps_of_the_engine() {
    let mut compared = 0;
    for seed in 0..programs_or(150) {
        let program = with_a_truth(random_program(seed));
        for (n, model) in WEAK.into_iter().enumerate() {
            let abstraction = ABSTRACTIONS[(seed + 3 * n) % ABSTRACTIONS.len()];
            let Some(set) = all_states(&program, model, abstraction) else { continue };
            if packed(&set).len() > 3_000 {
                continue;
            }
            let about = format!("seed {seed}, {model:?}, {abstraction:?}");
            assert_eq!(accepted((*set).clone(), &program, &["truth"]), Ok(()), "{about}");
            // Every non-initial state is the target of a step of the checker.
            let validated = set.validate(&program, &program.properties).expect("it was accepted");
            let mut steps = Steps::new(&program, &set, &validated);
            let mut arrived: HashSet<Vec<u64>> = HashSet::new();
            for state in packed(&set) {
                steps.all(state, &mut |_, next| _ = arrived.insert(next.to_vec())).expect("it was accepted");
            }
            let is_start = |state: &[u64]| {
                let layout = &set.layout;
                let entries = program.threads.iter().map(|t| i64::from(t.entry.0));
                layout.locations.iter().zip(entries).all(|(l, entry)| l.get(state) == entry)
                    && layout.buffers.iter().all(|b| b.count.get(state) == 0)
            };
            let mut others = packed(&set).filter(|state| !is_start(state));
            assert!(others.all(|state| arrived.contains(state)), "{about}: a state has no predecessor");
            compared += arrived.len();
        }
    }
    println!("{compared} states compared");
    assert!(compared > 5_000);
}

/// Each single abstraction, and all of them together, agree with the reference semantics.
#[test]
fn verdicts_are_those_of_the_reference_semantics() {
    let (mut safe, mut violated, mut unknown) = (0, 0, 0);
    for seed in 0..programs_or(300) {
        let program = random_program(seed);
        let all = || program.properties.iter().cloned().chain([Property::deadlock()]);
        for model in MemoryModel::ALL {
            let Ok(reachable) = explore(&program, model, 2_000, &mut || false) else { continue };
            let kept = if seed % 2 == 0 { Kept::Oldest } else { Kept::Newest };
            for domain in [None, DOMAINS[seed / 2 % DOMAINS.len()]] {
                let task = Task::new(&program, model, all().collect());
                let engine = engine(domain, kept, !seed.is_multiple_of(7));
                let results = check(&engine, &task, &limits(), &Progress::default(), Confirm::default());
                for result in results {
                    let name = &result.property.name;
                    let expected = reachable.satisfies(&program, model, &result.property);
                    let about = format!("seed {seed}, {model:?}, {domain:?}, {kept:?}: {name}: {result:?}");
                    match result.verdict() {
                        Verdict::Safe => {
                            assert_eq!(expected, Some(true), "{about}");
                            safe += 1;
                        }
                        Verdict::Unsafe => {
                            assert_eq!(expected, Some(false), "{about}");
                            violated += 1;
                        }
                        Verdict::Unknown(reason) => {
                            let is_defect = reason.to_string().contains("contradiction");
                            assert!(!is_defect, "{about}");
                            unknown += 1;
                        }
                    }
                    let decided = !matches!(result.verdict(), Verdict::Unknown(_));
                    assert!(!decided || result.checked() == Some(true), "{about}");
                    let deadlock = result.property.kind == PropertyKind::NoDeadlock;
                    assert!(!decided || !deadlock, "{about}");
                }
            }
        }
    }
    println!("{safe} safe, {violated} unsafe, {unknown} unknown");
    assert!(safe > 500 && violated > 500);
}

#[test]
fn sets_that_were_tampered_with_are_refused() {
    let (mut refused, mut still) = (0, 0);
    for seed in 0..programs_or(120) {
        let program = with_a_truth(random_program(seed));
        let model = WEAK[seed % 2];
        let abstraction = ABSTRACTIONS[seed / 2 % ABSTRACTIONS.len()];
        let Ok(exact) = explore(&program, model, 1_000, &mut || false) else { continue };
        let Some(set) = all_states(&program, model, abstraction) else { continue };
        let exact: HashSet<Visible> = exact.states.into_iter().map(seen).collect();
        let words = set.layout.words;
        let states: Vec<u64> = packed(&set).flatten().copied().collect();
        if states.len() > 2_000 {
            continue;
        }
        let mut random = Random::new(seed as u64);
        for n in 0..40 {
            let mut other = (*set).clone();
            let mut changed = states.clone();
            match n % 4 {
                // Remove a state.
                0 | 1 => {
                    let n = random.below(states.len() / words);
                    changed.drain(n * words..(n + 1) * words);
                }
                // Flip a bit.
                2 => changed[random.below(states.len())] ^= 1 << random.below(64),
                // Change the claimed abstraction.
                _ => {
                    let Claimed { k, kept, many } = set.abstraction.expect("these buffers forget");
                    let many = if random.one_in(2) { many + 1 } else { many };
                    let k = if random.one_in(2) { k + 1 } else { k.saturating_sub(1) };
                    other.abstraction = (!random.one_in(4)).then_some(Claimed { k, kept, many });
                }
            }
            other.states = PackedStates::Plain(words, changed);
            match accepted(other.clone(), &program, &["truth"]) {
                // A changed set that is accepted must still contain all reachable states.
                Ok(()) => {
                    assert!(exact.is_subset(&visible(&other)), "seed {seed}, {model:?}, {abstraction:?}");
                    still += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    println!("{refused} refused, {still} still proofs");
    assert!(refused > 1_000);
}

fn example(name: &str, define: &[(String, i64)]) -> Program {
    let path = format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read(path).expect("the example is there");
    load(name, &text, None, define).expect("it loads").program
}

fn verdict(program: &Program, model: MemoryModel, domain: Option<BufferDomain>, kept: Kept) -> Option<bool> {
    let task = Task::new(program, model, program.properties.clone());
    let engine = engine(domain, kept, true);
    let results = check(&engine, &task, &limits(), &Progress::default(), Confirm::default());
    assert!(results[0].checked() != Some(false));
    match results[0].verdict() {
        Verdict::Safe => Some(true),
        Verdict::Unsafe => Some(false),
        Verdict::Unknown(_) => None,
    }
}

/// THESIS16 Fig. 3.3 is proved with sets. There are 256 states if the value added last is ignored: 4 cells and registers with two values each, 2
/// buffers with four sets each. The plain machines reach all of them. Without rule WM-D, 2 of the 256 are unreachable.
#[test]
fn figure_3_3_is_proved_by_sets() {
    let program = example("thesis-3-3.fw", &[]);
    for model in WEAK {
        assert_eq!(verdict(&program, model, Some(BufferDomain::Set), Kept::Oldest), Some(true));
        assert_eq!(verdict(&program, model, None, Kept::Oldest), Some(true));
        let set = all_states(&program, model, Abstraction::SET).expect("it is a proof");
        let layout = &set.layout;
        let values = |state: &[u64], fields: &BufferFields| {
            let entries = &fields.entries[..fields.count.get(state) as usize];
            let mut values: Vec<i64> = entries.iter().map(|(_, value)| value.get(state)).collect();
            values.sort_unstable();
            values
        };
        let of = |state: &[u64]| {
            let buffers: Vec<Vec<i64>> = layout.buffers.iter().map(|b| values(state, b)).collect();
            let memory: Vec<i64> = layout.memory.iter().map(|m| m.get(state)).collect();
            let registers: Vec<Vec<i64>> =
                layout.registers.iter().map(|r| r.iter().map(|field| field.get(state)).collect()).collect();
            (buffers, memory, registers)
        };
        let states: HashSet<_> = packed(&set).map(of).collect();
        assert_eq!(states.len(), 254, "{model:?}");
    }
}

/// THESIS16 Fig. 3.7 needs multisets, or three stores in order if the oldest are kept, or one if the newest are kept.
#[test]
fn figure_3_7_needs_more_than_sets() {
    let program = example("thesis-3-7.fw", &[]);
    let tso = |domain, kept| verdict(&program, MemoryModel::Tso, domain, kept);
    assert_eq!(tso(Some(BufferDomain::Set), Kept::Oldest), None);
    assert_eq!(tso(Some(BufferDomain::Multiset), Kept::Oldest), Some(true));
    assert_eq!(tso(Some(BufferDomain::Partial(2)), Kept::Oldest), None);
    assert_eq!(tso(Some(BufferDomain::Partial(3)), Kept::Oldest), Some(true));
    assert_eq!(tso(Some(BufferDomain::Partial(1)), Kept::Newest), Some(true));
    for model in WEAK {
        assert_eq!(verdict(&program, model, None, Kept::Oldest), Some(true));
    }
}

#[test]
fn unwinding_dekker_is_decided() {
    for model in WEAK {
        let once = example("unwinding-dekker.fw", &[("N".into(), 1)]);
        assert_eq!(verdict(&once, model, None, Kept::Newest), Some(true), "{model:?}");
        let twice = example("unwinding-dekker.fw", &[]);
        assert_eq!(verdict(&twice, model, None, Kept::Newest), Some(false), "{model:?}");
    }
}

/// Abstract buffers may have steps where exact buffers have none, so a set of their states proves nothing about deadlocks.
#[test]
fn nothing_is_proved_about_deadlocks() {
    let program = example("thesis-3-3.fw", &[]);
    let set = all_states(&program, MemoryModel::Tso, Abstraction::SET).expect("it is a proof");
    assert_eq!(accepted((*set).clone(), &program, &["goal"]), Ok(()));
    assert!(matches!(accepted((*set).clone(), &program, &["deadlock"]), Err(Rejection::Format(_))));
}

/// Abstract buffers reach the states of the plain machine for any abstraction, also for those that the engine does not use, and on programs with
/// stores in atomic groups.
#[test]
fn any_abstraction_reaches_what_the_plain_machine_reaches() {
    let mut compared = 0;
    for seed in 0..programs_or(300) {
        let mut random = Random::new(seed as u64);
        let shape = Shape { threads: 2, length: 6, loops: random.one_in(3), corners: false };
        let mut program = program(&mut random, shape);
        match random.below(4) {
            0 => group(&mut random, &mut program),
            1 => separate(&mut random, &mut program),
            _ => contend(&mut random, &mut program, 4),
        }
        let program = with_a_truth(program);
        let model = *random.pick(&WEAK);
        for _ in 0..3 {
            let kept = *random.pick(&[Kept::Oldest, Kept::Newest]);
            let (k, many) = (random.below(4) as u32, 1 + random.below(3) as u32);
            let abstraction = Abstraction { k, kept, many, cut: false };
            let machine = AbstractMachine::new(&program, model, plainly(abstraction));
            let Ok(plain) = plain::explore(machine, 1_000, &mut || false) else { continue };
            let plain: HashSet<Visible> = plain.states.into_iter().map(|s| seen(s.visible)).collect();
            let Some(set) = all_states(&program, model, abstraction) else { continue };
            assert!(visible(&set) == plain, "seed {seed}, {model:?}, {abstraction:?}");
            assert_eq!(
                accepted((*set).clone(), &program, &["truth"]),
                Ok(()),
                "seed {seed}, {abstraction:?}"
            );
            compared += 1;
        }
    }
    println!("{compared} compared");
    assert!(compared > 200);
}
