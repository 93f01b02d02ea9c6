//! Buffers that forget: what they reach against the reference semantics and against each other, their proofs, and proofs that were tampered with.
//!
//! A normal run takes some hundred programs; `FENCEWRIGHT_BUFFERS=20000` takes so many.

use std::collections::HashSet;
use std::sync::Arc;

use fencewright_certify::states::{Abstraction, BufferFields, PackedStates, StateSet, Steps};
use fencewright_certify::{Certificate, Claim, Proof, Rejection, Stop, check as certify};
use fencewright_engines::buffers::{BufferDomain, Buffers, Options};
use fencewright_engines::{Confirm, Limits, Progress, Task, Verdict, check, explicit};
use fencewright_executions::oracle::explore;
use fencewright_fingerprint::fingerprint;
use fencewright_lang::load;
use fencewright_memory::Kept;
use fencewright_program::{Expr, LocationId, MemoryModel, Program, Property, PropertyKind, Span, ThreadId};
use fencewright_smt::Prover;
use fencewright_testing::{Random, Shape, contend, program, separate};

const WEAK: [MemoryModel; 2] = [MemoryModel::Tso, MemoryModel::Pso];

/// All abstractions, with the end that is kept.
const DOMAINS: [(BufferDomain, Kept); 6] = [
    (BufferDomain::Set, Kept::Oldest),
    (BufferDomain::Multiset, Kept::Oldest),
    (BufferDomain::Partial(1), Kept::Oldest),
    (BufferDomain::Partial(1), Kept::Newest),
    (BufferDomain::Partial(2), Kept::Oldest),
    (BufferDomain::Partial(2), Kept::Newest),
];

fn programs(few: u64) -> u64 {
    std::env::var("FENCEWRIGHT_BUFFERS").map_or(few, |many| many.parse().expect("a number of programs"))
}

/// A random program; in most of them stores meet loads of other threads, or are separated by store fences.
fn random_program(seed: u64) -> Program {
    let mut random = Random::new(seed);
    let shape = Shape { corners: seed % 5 == 4, ..Shape::default() };
    let mut program = program(&mut random, shape);
    if seed % 3 > 0 {
        contend(&mut random, &mut program, 3);
    }
    if seed % 4 == 1 {
        separate(&mut random, &mut program);
    }
    program
}

fn engine(domain: Option<BufferDomain>, kept: Kept, reduced: bool) -> Buffers {
    let explicit = explicit::Options {
        workers: 1,
        live_variables: reduced,
        local_first: reduced,
        ..explicit::Options::default()
    };
    Buffers { explicit, options: Options { domain, kept } }
}

/// Few states, because random programs may have infinitely many.
fn limits() -> Limits {
    Limits { memory: Some(4 << 20), ..Limits::default() }
}

/// All states that an abstraction reaches, as a proof that nothing is impossible; nothing if they are too many.
fn all_states(
    program: &Program,
    model: MemoryModel,
    (domain, kept): (BufferDomain, Kept),
) -> Option<Arc<StateSet>> {
    let task = Task::new(program, model, program.properties.clone());
    let engine = engine(Some(domain), kept, false);
    let results = check(&engine, &task, &limits(), &Progress::default(), Confirm::NOTHING);
    let certificate = results[0].certificate()?;
    let Proof::States(set) = &certificate.proofs[0] else { panic!("engine buffers has states") };
    Some(Arc::clone(set))
}

/// The program with one property, which always holds.
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

/// Everything but the buffers.
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

#[test]
fn abstractions_reach_what_exact_buffers_reach_and_coarser_ones_reach_more() {
    let (mut compared, mut larger) = (0, 0);
    for seed in 0..programs(250) {
        let program = with_a_truth(random_program(seed));
        for model in WEAK {
            let Ok(exact) = explore(&program, model, 2_000, &mut || false) else { continue };
            let exact: HashSet<Visible> =
                exact.states.into_iter().map(|s| (s.locations, s.registers, s.memory, s.lock)).collect();
            let reached: Option<Vec<HashSet<Visible>>> = DOMAINS
                .iter()
                .map(|&domain| all_states(&program, model, domain).map(|set| visible(&set)))
                .collect();
            let Some(reached) = reached else { continue };
            for (of, domain) in reached.iter().zip(DOMAINS) {
                assert!(exact.is_subset(of), "seed {seed}, {model:?}, {domain:?}");
            }
            // Each one with a coarser one.
            for (finer, coarser) in [(1, 0), (2, 0), (3, 0), (4, 2), (5, 3)] {
                assert!(
                    reached[finer].is_subset(&reached[coarser]),
                    "seed {seed}, {model:?}: {:?} and {:?}",
                    DOMAINS[finer],
                    DOMAINS[coarser]
                );
            }
            larger += (reached[0].len() > exact.len()) as usize;
            compared += 1;
        }
    }
    println!("{compared} programs compared, {larger} times sets reach more");
    assert!(compared > 150 && larger > 10);
}

#[test]
fn the_checker_takes_the_steps_of_the_engine() {
    let mut compared = 0;
    for seed in 0..programs(120) {
        let program = with_a_truth(random_program(seed));
        for (n, model) in WEAK.into_iter().enumerate() {
            let domain = DOMAINS[(seed as usize + n) % DOMAINS.len()];
            let Some(set) = all_states(&program, model, domain) else { continue };
            if packed(&set).len() > 3_000 {
                continue;
            }
            assert_eq!(
                accepted((*set).clone(), &program, &["truth"]),
                Ok(()),
                "seed {seed}, {model:?}, {domain:?}"
            );
            // Every state but the initial ones is where a step of the checker leads.
            let validated = set.validate(&program, &program.properties).expect("it was accepted");
            let mut steps = Steps::new(&program, &set, &validated.local);
            let mut arrived: HashSet<Vec<u64>> = HashSet::new();
            for state in packed(&set) {
                steps.all(state, &mut |_, next| _ = arrived.insert(next.to_vec())).expect("it was accepted");
            }
            let starts = packed(&set).filter(|state| !arrived.contains(*state)).count();
            let first = |state: &[u64]| {
                let layout = &set.layout;
                let entries = program.threads.iter().map(|t| i64::from(t.entry.0));
                layout.locations.iter().zip(entries).all(|(l, entry)| l.get(state) == entry)
                    && layout.buffers.iter().all(|b| b.count.get(state) == 0)
            };
            let initial = packed(&set).filter(|state| first(state)).count();
            assert!(
                starts <= initial,
                "seed {seed}, {model:?}, {domain:?}: {starts} states come from nowhere"
            );
            compared += arrived.len();
        }
    }
    println!("{compared} states compared");
    assert!(compared > 5_000);
}

/// What each abstraction and all of them together answer is what the reference semantics says.
#[test]
fn verdicts_are_those_of_the_reference_semantics() {
    let (mut safe, mut violated, mut unknown) = (0, 0, 0);
    for seed in 0..programs(300) {
        let program = random_program(seed);
        let all = || program.properties.iter().cloned().chain([Property::deadlock()]);
        for model in MemoryModel::ALL {
            let Ok(reachable) = explore(&program, model, 2_000, &mut || false) else { continue };
            let domains = DOMAINS.map(|(domain, kept)| (Some(domain), kept));
            let domain = domains[seed as usize % domains.len()];
            for (domain, kept) in [domain, (None, domain.1)] {
                let task = Task::new(&program, model, all().collect());
                let engine = engine(domain, kept, seed % 7 > 0);
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
    for seed in 0..programs(120) {
        let program = with_a_truth(random_program(seed));
        let model = WEAK[seed as usize % 2];
        let domain = DOMAINS[seed as usize / 2 % DOMAINS.len()];
        let Ok(exact) = explore(&program, model, 1_000, &mut || false) else { continue };
        let Some(set) = all_states(&program, model, domain) else { continue };
        let exact: HashSet<Visible> =
            exact.states.into_iter().map(|s| (s.locations, s.registers, s.memory, s.lock)).collect();
        let words = set.layout.words;
        let states: Vec<u64> = packed(&set).flatten().copied().collect();
        if states.len() > 2_000 {
            continue;
        }
        let mut random = Random::new(seed);
        for n in 0..40 {
            let mut other = (*set).clone();
            let mut changed = states.clone();
            match n % 4 {
                // A state is missing.
                0 | 1 => {
                    let n = random.below(states.len() / words);
                    changed.drain(n * words..(n + 1) * words);
                }
                // A bit is another one.
                2 => changed[random.below(states.len())] ^= 1 << random.below(64),
                // The buffers are said to be others.
                _ => {
                    let Abstraction { k, kept, many } = set.abstraction.expect("these buffers forget");
                    let many = if random.one_in(2) { many + 1 } else { many };
                    let k = if random.one_in(2) { k + 1 } else { k.saturating_sub(1) };
                    other.abstraction = (!random.one_in(4)).then_some(Abstraction { k, kept, many });
                }
            }
            other.states = PackedStates::Plain(words, changed);
            match accepted(other.clone(), &program, &["truth"]) {
                // Then it is a proof all the same: it has what can be reached.
                Ok(()) => {
                    assert!(exact.is_subset(&visible(&other)), "seed {seed}, {model:?}, {domain:?}");
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

/// Fig. 3.3: sets are enough, and there are 256 of them if it does not matter which value was added last: 4 cells and registers with two values each, 2
/// buffers with four sets each.
#[test]
fn figure_3_3_has_256_states() {
    let program = example("thesis-3-3.fw", &[]);
    for model in WEAK {
        assert_eq!(verdict(&program, model, Some(BufferDomain::Set), Kept::Oldest), Some(true));
        assert_eq!(verdict(&program, model, None, Kept::Oldest), Some(true));
        let set = all_states(&program, model, (BufferDomain::Set, Kept::Oldest)).expect("it is a proof");
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
        assert_eq!(states.len(), 256, "{model:?}");
    }
}

/// Fig. 3.7 needs multisets, or three stores in order if the oldest are kept, or one if the newest are.
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

/// Abstract buffers can move where exact ones cannot, so a set of their states says nothing about deadlocks.
#[test]
fn nothing_is_proved_about_deadlocks() {
    let program = example("thesis-3-3.fw", &[]);
    let set =
        all_states(&program, MemoryModel::Tso, (BufferDomain::Set, Kept::Oldest)).expect("it is a proof");
    assert_eq!(accepted((*set).clone(), &program, &["goal"]), Ok(()));
    assert!(matches!(accepted((*set).clone(), &program, &["deadlock"]), Err(Rejection::Format(_))));
}
