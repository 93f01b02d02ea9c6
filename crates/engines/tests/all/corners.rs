//! Compares all engines with the reference semantics on random programs with corner cases of the language: negative lower bounds of ranges and
//! choices, mostly with `numbers nat`; remainders, quotients, bit operations and wraparound; open arrays; atomic steps with an operation that may
//! fault between two stores; locks held by threads that have faulted.
//!
//! If an execution may access an open array outside its modelled part, a violation found before such an access counts, but nothing is proved. The
//! exception is `assertions`, which is proved if no thread can fault after such an access.
//!
//! A normal run tests a few hundred programs, a run with `FENCEWRIGHT_LONG_TESTS=1` fifty times as many; `FENCEWRIGHT_PROGRAMS` sets the number.
//! `FENCEWRIGHT_SEED=N` tests that program and prints it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;

use fencewright_engines::auto::Auto;
use fencewright_engines::cegar::{self, Cegar};
use fencewright_engines::contexts::ContextBound;
use fencewright_engines::domain::DomainName;
use fencewright_engines::explicit::{self, Explicit, Reduction};
use fencewright_engines::lazy::{self, Lazy, OracleName};
use fencewright_engines::{Confirm, Engine, Limits, Progress, Reason, Task, Verdict, check};
use fencewright_executions::oracle::{Reachable, initial_states};
use fencewright_program::reference::{Limit, Refusal};
use fencewright_program::{MemoryModel, Program, Property, PropertyKind, Reference, State};
use fencewright_testing::arithmetic::compute;
use fencewright_testing::{Random, Shape, program, programs_or};

const MOST_STATES: usize = 1_500;

/// All states that are reachable without an access outside the modelled part of an open array, and those of them in which a thread may have such an
/// access; `None` if there are too many states, or if a value does not fit 64 bits.
fn reachable(program: &Program, model: MemoryModel) -> Option<(Reachable, Vec<State>)> {
    let reference = Reference::new(program, model);
    let mut work = initial_states(&reference, MOST_STATES, &mut || false).ok()?;
    let mut states: HashSet<_> = work.iter().cloned().collect();
    let (mut deadlocks, mut leaving) = (HashSet::new(), Vec::new());
    while let Some(state) = work.pop() {
        if states.len() > MOST_STATES {
            return None;
        }
        if reference.is_deadlock(&state) {
            deadlocks.insert(state.clone());
        }
        for event in reference.candidates(&state, &[]) {
            match reference.step(&state, &event) {
                Ok((next, _)) if states.insert(next.clone()) => work.push(next),
                Ok(_) | Err(Refusal::Disabled(_)) => {}
                Err(Refusal::Limit(Limit::Window, _)) => leaving.push(state.clone()),
                // Numbers of the language are unbounded, but the reference semantics computes in 64 bits, so the program is skipped.
                Err(Refusal::Limit(Limit::Overflow, _)) => return None,
            }
        }
    }
    Some((Reachable { states, deadlocks }, leaving))
}

/// Whether a thread may come to an operation that may fault, if any edge may be taken.
fn may_fault_later(program: &Program, state: &State) -> bool {
    program.threads().any(|(id, thread)| {
        let mut work = vec![state.locations[id.index()]];
        let mut seen: HashSet<_> = work.iter().copied().collect();
        while let Some(location) = work.pop() {
            for (_, edge) in thread.edges_from(location) {
                if program.edge_may_fault(thread, edge) {
                    return true;
                }
                work.extend(seen.insert(edge.to).then_some(edge.to));
            }
        }
        false
    })
}

/// One instance of each engine, with random options.
fn engines(random: &mut Random) -> Vec<(&'static str, Box<dyn Engine>)> {
    let options = explicit::Options {
        live_variables: random.one_in(2),
        reduction: if random.one_in(2) { Reduction::Local } else { Reduction::None },
        workers: 1,
        ..explicit::Options::default()
    };
    let dynamic = explicit::Options { reduction: Reduction::Dynamic, ..explicit::Options::default() };
    let oracle = *random.pick(&[OracleName::Robust, OracleName::Enumerate]);
    let cegar = |domain, random: &mut Random| {
        let k = random.below(3) as u32;
        Box::new(Cegar { options: cegar::Options { k, domain, ..cegar::Options::default() } })
    };
    let mut auto = Auto::default();
    auto.explicit.options.workers = 1;
    let mut lazy = Lazy { options: lazy::Options { oracle, ..lazy::Options::default() }, ..Lazy::default() };
    lazy.sc.explicit.options.workers = 1;
    vec![
        ("explicit", Box::new(Explicit { options })),
        ("dynamic", Box::new(Explicit { options: dynamic })),
        ("zones", cegar(DomainName::Zones, random)),
        ("predicates", cegar(DomainName::Predicates, random)),
        ("order", cegar(DomainName::Order, random)),
        ("contexts", Box::new(ContextBound::default())),
        ("lazy", Box::new(lazy)),
        ("auto", Box::new(auto)),
    ]
}

/// The numbers of answers of each kind: safe, unsafe, unknown.
type Counts = BTreeMap<&'static str, [usize; 3]>;

/// Compares all engines on one program; false if it is too large.
fn agree(seed: u64, counts: &Mutex<Counts>) -> bool {
    let mut random = Random::new(seed);
    let shape = Shape { length: 4, loops: seed.is_multiple_of(2), corners: true, ..Shape::default() };
    let mut program = program(&mut random, shape);
    if seed % 5 < 2 {
        compute(&mut random, &mut program);
    }
    let model = *random.pick(&[MemoryModel::Tso, MemoryModel::Tso, MemoryModel::Sc, MemoryModel::Pso]);
    let Some((reachable, leaving)) = reachable(&program, model) else { return false };
    let beyond = !leaving.is_empty();
    let faults_are_known = leaving.iter().all(|state| !may_fault_later(&program, state));
    if std::env::var_os("FENCEWRIGHT_SEED").is_some() {
        println!("{}", fencewright_lang::export::fw(&program).expect("it has a text"));
    }
    let task = Task::new(&program, model, program.properties.clone());
    for (name, engine) in engines(&mut random) {
        let time = Duration::from_millis(if name == "explicit" { 10_000 } else { 300 });
        let limits = Limits::starting_now(Some(time), Some(1 << 28), Default::default());
        for checked in check(&*engine, &task, &limits, &Progress::default(), Confirm::NOTHING) {
            let property = &checked.property;
            let holds = reachable.satisfies(&program, model, property).expect("small values");
            let about = format!("seed {seed}, {model:?}, {name}, property {}", property.name);
            // One final state proves an existential property, and one execution refutes any other property. The opposite answers need a complete
            // exploration of what can matter to the property.
            let complete = !beyond || property.kind == PropertyKind::Assertions && faults_are_known;
            let (proof, refutation) = match property.kind.is_existence() {
                true => (holds, !holds && complete),
                false => (holds && complete, !holds),
            };
            let answer = match checked.verdict() {
                Verdict::Safe => {
                    assert!(proof, "{about}: a wrong proof (beyond: {beyond})");
                    0
                }
                Verdict::Unsafe => {
                    assert!(refutation, "{about}: a wrong violation (beyond: {beyond})");
                    1
                }
                Verdict::Unknown(Reason::Contradiction(what)) => panic!("{about}: {what}"),
                Verdict::Unknown(reason) => {
                    assert!(name != "explicit" || beyond, "{about}: {reason}");
                    // The explicit searches miss nothing that happens before an access outside the modelled part of an open array.
                    let searches_all =
                        matches!(name, "explicit" | "dynamic") && matches!(reason, Reason::Limit(..));
                    let decided = holds == property.kind.is_existence();
                    assert!(!searches_all || !decided, "{about}: {reason}, although it is decided");
                    2
                }
            };
            counts.lock().expect("no other test has failed").entry(name).or_default()[answer] += 1;
        }
    }
    true
}

#[test]
fn all_engines_agree_with_the_reference_semantics() {
    let long = std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some();
    let wanted = programs_or(if long { 15_000 } else { 300 });
    let counts = Mutex::new(Counts::new());
    if let Some(seed) = std::env::var("FENCEWRIGHT_SEED").ok().and_then(|seed| seed.parse().ok()) {
        assert!(agree(seed, &counts), "the program is too large");
        return;
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for part in 0..threads {
            let counts = &counts;
            scope.spawn(move || {
                let seeds = (11_000_000 + part as u64..).step_by(threads);
                let decided = seeds.filter(|&seed| agree(seed, counts)).take(wanted.div_ceil(threads));
                for (n, seed) in decided.enumerate() {
                    if long && n % 500 == 0 {
                        eprintln!("part {part}: {n} programs, seed {seed}");
                    }
                }
            });
        }
    });
    let counts = counts.into_inner().expect("no test has failed");
    println!("{wanted} programs, safe, unsafe and unknown: {counts:?}");
    for (name, [safe, not, _]) in counts {
        assert!(name == "order" || safe > wanted / 4, "{name}: {safe} safe");
        assert!(name == "order" || not > wanted / 4, "{name}: {not} unsafe");
    }
}

/// The verdict on `assertions` of one thread with an open array.
fn assertions(engine: &dyn Engine, code: &str, model: MemoryModel) -> Verdict {
    let text = format!("shared a[2] open, b[2]; thread p {{ var r, i = 2; {code} }}");
    let program = fencewright_lang::load("open.fw", text.as_bytes(), None, &[]).expect("a program").program;
    let task = Task::new(&program, model, vec![Property::assertions()]);
    let checked = check(engine, &task, &Limits::default(), &Progress::default(), Confirm::default());
    checked[0].verdict().clone()
}

#[test]
fn an_access_outside_an_open_array_matters_only_to_what_can_still_be_violated() {
    for model in MemoryModel::ALL {
        let without_faults = assertions(&Auto::default(), "a[i] = 1; r = a[i];", model);
        assert!(matches!(without_faults, Verdict::Safe), "{model:?}: {without_faults:?}");
        let with_faults = assertions(&Auto::default(), "r = a[i]; b[r] = 1;", model);
        assert!(matches!(with_faults, Verdict::Unknown(Reason::Limit(..))), "{model:?}: {with_faults:?}");
        let before = assertions(&Auto::default(), "b[i] = 1; r = a[i];", model);
        assert!(matches!(before, Verdict::Unsafe), "{model:?}: {before:?}");
    }
}
