//! Proofs by sets of states: compares the steps of their checker with the reference semantics, and tests that the checker accepts no false claim
//! about sets that were tampered with.
//!
//! A normal run tests some hundred programs; with `FENCEWRIGHT_LONG_TESTS=1`, fifty times as many are tested.

use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use fencewright_certify::states::{BufferFields, Field, Layout, PackedStates, Persistent, StateSet, Steps};
use fencewright_certify::{Certificate, Claim, Proof, Rejection, Stop, check as certify};
use fencewright_engines::explicit::{Explicit, Options, Reduction};
use fencewright_engines::{Confirm, Limits, Progress, Task, check};
use fencewright_executions::oracle::{Reachable, explore};
use fencewright_lang::load;
use fencewright_program::reference::{Buffered, Refusal};
use fencewright_program::{
    BinaryOp, Expr, Init, LocationId, MemoryModel, Observable, Program, Property, PropertyKind, Quantifier,
    Reference, State, Thread, ThreadId,
};
use fencewright_smt::Prover;
use fencewright_testing::apart::{keep_apart, lock_sections};
use fencewright_testing::families::family;
use fencewright_testing::{Random, Shape, contend, group, program, programs_or, separate, spread};
use fencewright_verdict::fingerprint::fingerprint;

fn programs(few: u64) -> u64 {
    if std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some() { few * 50 } else { few }
}

/// A random program, with corner cases in every other one.
fn random_program(seed: u64) -> Program {
    let shape = Shape { corners: seed % 2 == 1, ..Shape::default() };
    program(&mut Random::new(seed), shape)
}

/// The set of states that proves properties of a program, if there is one, with these properties: those that hold, and existential properties that
/// fail.
fn proof(program: &Program, model: MemoryModel, options: Options) -> Option<(Arc<StateSet>, Vec<Property>)> {
    // Programs with many states are skipped, because the search may not end.
    explore(program, model, 3_000, &mut || false).ok()?;
    let task = Task::new(program, model, program.properties.clone());
    let engine = Explicit { options };
    let results = check(&engine, &task, &Limits::default(), &Progress::default(), Confirm::NOTHING);
    let certificates = results.iter().filter_map(|result| result.certificate().map(|c| (c, result)));
    let mut set = None;
    let mut proved = Vec::new();
    for (certificate, result) in certificates {
        let Proof::States(states) = &certificate.proofs[0] else { panic!("engine explicit has states") };
        assert!(set.is_none_or(|known| Arc::ptr_eq(known, states)), "one set for all properties");
        set = Some(states);
        proved.push(result.property.clone());
    }
    set.map(|set| (Arc::clone(set), proved))
}

fn states(set: &StateSet) -> &[u64] {
    match &set.states {
        PackedStates::Plain(_, states) => states,
        PackedStates::Compressed { .. } => panic!("the engine does not compress states"),
    }
}

/// A packed state as a state of the reference semantics; dead registers are 0.
fn unpacked(set: &StateSet, program: &Program, state: &[u64]) -> State {
    let layout = &set.layout;
    let registers = |t: usize| {
        let mut values = vec![0; program.threads[t].registers.len()];
        let location = layout.locations[t].get(state) as usize;
        for &r in &set.live[t][location] {
            values[r as usize] = layout.registers[t][r as usize].get(state);
        }
        values
    };
    let entry = |fields: &BufferFields, (kind, value): &(Field, Field)| match fields
        .cells
        .get(kind.get(state) as usize)
    {
        Some(&cell) => Buffered::Store { cell, value: value.get(state) },
        None => Buffered::Barrier,
    };
    let buffer = |t: usize| match layout.buffers.get(t) {
        Some(fields) => {
            let count = fields.count.get(state) as usize;
            fields.entries[..count].iter().map(|e| entry(fields, e)).collect()
        }
        None => Vec::new(),
    };
    let threads = 0..program.threads.len();
    State {
        locations: layout.locations.iter().map(|l| LocationId(l.get(state) as u32)).collect(),
        registers: threads.clone().map(registers).collect(),
        memory: layout.memory.iter().map(|m| m.get(state)).collect(),
        buffers: threads.map(buffer).collect(),
        lock: Some(layout.lock.get(state)).filter(|&l| l > 0).map(|l| ThreadId(l as u32 - 1)),
    }
}

/// A state with 0 in all dead registers.
fn reduced(set: &StateSet, mut state: State) -> State {
    for (t, registers) in state.registers.iter_mut().enumerate() {
        let live = &set.live[t][state.locations[t].index()];
        for (r, value) in registers.iter_mut().enumerate() {
            if !live.contains(&(r as u32)) {
                *value = 0;
            }
        }
    }
    state
}

#[test]
fn the_steps_of_the_checker_are_those_of_the_reference_semantics() {
    let (mut compared, mut buffered, mut faults) = (0, 0, 0);
    for seed in 0..programs(400) {
        let program = random_program(seed);
        for model in MemoryModel::ALL {
            let live_variables = seed % 3 > 0;
            let options =
                Options { live_variables, reduction: Reduction::None, workers: 1, ..Options::default() };
            let Some((set, proved)) = proof(&program, model, options) else { continue };
            let validated = set.validate(&program, &proved).expect("the engine knows what is live");
            let mut steps = Steps::new(&program, &set, &validated);
            let reference = Reference::new(&program, model);
            for state in states(&set).chunks_exact(set.layout.words).take(500) {
                let before = unpacked(&set, &program, state);
                let mut found = HashSet::new();
                let moved = steps.all(state, &mut |_, next| _ = found.insert(unpacked(&set, &program, next)));
                let mut expected = HashSet::new();
                for event in reference.candidates(&before, &[]) {
                    match reference.step(&before, &event) {
                        Ok((next, _)) => _ = expected.insert(reduced(&set, next)),
                        Err(Refusal::Disabled(_)) => {}
                        Err(Refusal::Limit(..)) => panic!("seed {seed}: the search was complete"),
                    }
                }
                assert_eq!(found, expected, "seed {seed}, {model:?}: from {before:?}");
                assert_eq!(moved, Ok(!expected.is_empty()), "seed {seed}, {model:?}: from {before:?}");
                compared += found.len();
                buffered += before.buffers.iter().any(|b| b.len() > 1) as usize;
                faults += reference.has_fault(&before) as usize;
            }
        }
    }
    println!("{compared} steps compared, {buffered} states with long buffers, {faults} with faults");
    assert!(compared > 20_000 && buffered > 500 && faults > 500);
}

fn accepted(set: StateSet, program: &Program, claim: Claim) -> Result<(), Rejection> {
    let stop: Stop = Arc::new(|| false);
    let certificate = Certificate::new(fingerprint(program), claim, vec![Proof::States(Arc::new(set))]);
    certify(&certificate, program, &Prover, &stop).map(|_| ())
}

/// The claims that all these properties hold or, for `finally exists`, fail.
fn claims(properties: &[Property]) -> Vec<Claim> {
    let (exist, hold): (Vec<&Property>, Vec<&Property>) =
        properties.iter().partition(|p| p.kind.is_existence());
    let names = |properties: Vec<&Property>| properties.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
    let (exist, hold) = (names(exist), names(hold));
    let safe = (!hold.is_empty()).then_some(Claim::Safe { properties: hold });
    let unsatisfied = (!exist.is_empty()).then_some(Claim::Unsatisfied { properties: exist });
    safe.into_iter().chain(unsatisfied).collect()
}

#[test]
fn a_set_without_one_of_its_states_is_refused() {
    let mut tried = 0;
    for seed in 0..programs(60) {
        let program = random_program(seed);
        let model = MemoryModel::ALL[seed as usize % 3];
        let reduction = [Reduction::Local, Reduction::Persistent][seed as usize / 3 % 2];
        let options = Options { reduction, ..Options::default() };
        let Some((set, proved)) = proof(&program, model, options) else { continue };
        let words = set.layout.words;
        for claim in claims(&proved) {
            assert_eq!(accepted((*set).clone(), &program, claim.clone()), Ok(()), "seed {seed}");
            for n in (0..states(&set).len() / words).take(150) {
                let mut fewer = states(&set).to_vec();
                fewer.drain(n * words..(n + 1) * words);
                let fewer = StateSet { states: PackedStates::Plain(words, fewer), ..(*set).clone() };
                let rejection = accepted(fewer, &program, claim.clone());
                let missed = matches!(rejection, Err(Rejection::Start | Rejection::Step(..)));
                assert!(missed, "seed {seed}, {model:?}, without state {n}: {rejection:?}");
                tried += 1;
            }
        }
    }
    println!("{tried} states left out");
    assert!(tried > 1_000);
}

/// Tests a state with more steps than the checker looks up at a time, and sets without the target of the first or the last step.
#[test]
fn all_steps_of_a_state_with_very_many_are_looked_up() {
    let text = "shared x; thread p { var r; r = * in 0..10000; x = r; } forbid negative: x < 0;";
    let program = load("many.fw", text.as_bytes(), None, &[]).expect("it loads").program;
    let task = Task::new(&program, MemoryModel::Sc, program.properties.clone());
    let (limits, progress) = (Limits::default(), Progress::default());
    let results = check(&Explicit::default(), &task, &limits, &progress, Confirm::NOTHING);
    let Some(certificate) = results[0].certificate() else { panic!("{:?}", results[0]) };
    let Proof::States(set) = &certificate.proofs[0] else { panic!("engine explicit has states") };
    let words = set.layout.words;
    let count = states(set).len() / words;
    assert!(count > 20_000);
    for n in [1, 2, 5_000, 10_000, count - 1] {
        let mut fewer = states(set).to_vec();
        fewer.drain(n * words..(n + 1) * words);
        let fewer = StateSet { states: PackedStates::Plain(words, fewer), ..(**set).clone() };
        let rejection = accepted(fewer, &program, certificate.claim.clone());
        assert!(matches!(rejection, Err(Rejection::Step(..))), "without state {n}: {rejection:?}");
    }
}

/// Changes a set of states in one of many ways.
fn tampered(set: &StateSet, program: &Program, random: &mut Random) -> StateSet {
    let mut set = set.clone();
    let words = set.layout.words;
    let mut packed = states(&set).to_vec();
    let thread = random.below(program.threads.len());
    if let Some(persistent) = &mut set.persistent
        && random.one_in(3)
    {
        let location = random.below(program.threads[thread].locations.len());
        let cells = persistent.classes.len();
        match random.below(5) {
            0 => persistent.future[thread][location] = [0; 3],
            1 => persistent.future[thread][location][random.below(3)] ^= 1 << random.below(4),
            2 => persistent.order[thread][location] = random.below(20) as u32,
            3 => persistent.classes[random.below(cells)] = 1 << random.below(4) & !1,
            _ => set.persistent = None,
        }
        return set;
    }
    match random.below(9) {
        0 => {
            let n = random.below(packed.len());
            packed[n] ^= 1 << random.below(64);
        }
        1 => {
            // Removes all states that are final, faulty or deadlocked.
            let reference = Reference::new(program, set.model.into());
            let keep = |state: &&[u64]| {
                let state = unpacked(&set, program, state);
                !reference.is_final(&state) && !reference.has_fault(&state) && !reference.is_deadlock(&state)
            };
            packed = packed.chunks_exact(words).filter(keep).flatten().copied().collect();
        }
        2 | 3 => {
            // Marks a register as dead.
            let location = random.below(set.live[thread].len());
            let live = &mut set.live[thread][location];
            if !live.is_empty() {
                live.remove(random.below(live.len()));
            }
        }
        4 => set.live[thread].iter_mut().for_each(Vec::clear),
        5 | 6 => {
            let edges = program.threads[thread].edges.len();
            if edges > 0 {
                set.local[thread].push(random.below(edges) as u32);
            }
        }
        7 => {
            let other = random_field(random, words);
            let memory = set.layout.memory.len();
            match random.below(5) {
                0 => set.layout.locations[thread] = other,
                1 => set.layout.favourite = other,
                2 => set.layout.lock = other,
                3 => set.layout.memory[random.below(memory)] = other,
                _ => {
                    if let Some(field) = set.layout.registers[thread].first_mut() {
                        *field = other;
                    }
                }
            }
        }
        _ => {
            let other = random_field(random, words);
            match set.layout.buffers.get_mut(thread) {
                Some(buffer) => match random.below(4) {
                    0 => buffer.count = other,
                    1 => _ = buffer.entries.pop(),
                    2 => _ = buffer.cells.pop(),
                    _ => {
                        if let Some(entry) = buffer.entries.first_mut() {
                            entry.1 = other;
                        }
                    }
                },
                None => set.model = MemoryModel::Tso.into(),
            }
        }
    }
    set.states = PackedStates::Plain(words, packed);
    set
}

fn random_field(random: &mut Random, words: usize) -> Field {
    let shift = random.below(64) as u32;
    let bits = random.below(65 - shift as usize) as u32;
    Field::new(random.below(words) as u32, shift, bits, random.between(-2, 2)).expect("it fits")
}

/// The oracle's answer about a claim for a property.
fn is_true(reachable: &Reachable, program: &Program, model: MemoryModel, property: &Property) -> bool {
    let holds = reachable.satisfies(program, model, property).expect("small values");
    holds != property.kind.is_existence()
}

#[test]
fn tampered_sets_prove_only_true_claims() {
    let (mut refused, mut still) = (0, 0);
    for seed in 0..programs(250) {
        let program = random_program(seed);
        let mut random = Random::new(seed);
        let model = *random.pick(&MemoryModel::ALL);
        let reduction = *random.pick(&[Reduction::Local, Reduction::None, Reduction::Persistent]);
        let options = Options { workers: 1, reduction, ..Options::default() };
        let Ok(reachable) = explore(&program, model, 3_000, &mut || false) else { continue };
        // The engine issues a set only after a complete search, so every property that is not in `proved` is refuted and a claim for it is false.
        let Some((set, proved)) = proof(&program, model, options) else { continue };
        let names: BTreeSet<&String> = proved.iter().map(|p| &p.name).collect();
        for property in &program.properties {
            assert_eq!(names.contains(&property.name), is_true(&reachable, &program, model, property));
            for claim in claims(std::slice::from_ref(property)) {
                for n in 0..6 {
                    let set = if n == 0 { (*set).clone() } else { tampered(&set, &program, &mut random) };
                    match accepted(set, &program, claim.clone()) {
                        Ok(()) => {
                            assert!(
                                is_true(&reachable, &program, model, property),
                                "seed {seed}, {model:?}: {}",
                                property.name
                            );
                            still += 1;
                        }
                        Err(_) => refused += 1,
                    }
                }
            }
        }
    }
    println!("{refused} refused, {still} still proofs");
    assert!(refused > 1_000 && still > 200);
}

#[test]
fn damaged_certificates_are_unreadable_or_not_wrong() {
    let mut random = Random::new(7);
    let (mut written, mut unreadable) = (0, 0);
    for seed in 0..programs(60) {
        let program = random_program(seed);
        let model = MemoryModel::ALL[seed as usize % 3];
        let Some((set, proved)) = proof(&program, model, Options::default()) else { continue };
        let stop: Stop = Arc::new(|| false);
        let Some(claim) = claims(&proved).pop() else { continue };
        let certificate =
            Certificate::new(fingerprint(&program), claim, vec![Proof::States(Arc::clone(&set))]);
        let mut text = Vec::new();
        certificate.write(&mut text).expect("it is written to memory");
        let read = Certificate::read(text.as_slice()).expect("it was just written");
        let here = certify(&certificate, &program, &Prover, &stop).expect("a proof");
        assert_eq!(certify(&read, &program, &Prover, &stop), Ok(here), "seed {seed}");
        let mut again = Vec::new();
        read.write(&mut again).expect("it is written to memory");
        assert!(again == text, "seed {seed}: what is read and written again is the same");
        written += 1;
        for _ in 0..20 {
            let mut damaged = text.clone();
            let n = random.below(damaged.len());
            match random.below(3) {
                0 => damaged.truncate(n),
                1 => damaged[n] = *random.pick(b"0123456789AZaz+/,[]{}\""),
                _ => _ = damaged.remove(n),
            }
            // The damaged certificate may still be a proof, perhaps of a property with another name. If it is accepted, its claim must be true.
            match Certificate::read(damaged.as_slice()) {
                Err(_) => unreadable += 1,
                Ok(damaged) => {
                    if certify(&damaged, &program, &Prover, &stop).is_ok() {
                        let reachable = explore(&program, model, 3_000, &mut || false);
                        let named = |p: &&Property| damaged.properties().contains(&p.name);
                        for property in program.properties.iter().filter(named) {
                            assert!(is_true(reachable.as_ref().expect("small"), &program, model, property));
                        }
                    }
                }
            }
        }
    }
    println!("{written} written, {unreadable} unreadable");
    assert!(written > 20 && unreadable > 100);
}

#[test]
fn no_final_state_is_not_some_final_state() {
    // A claim that a `finally exists` fails is neither a claim that it holds nor one about another property.
    let mut asked = 0;
    for seed in 0..programs(60) {
        let program = random_program(seed);
        let Some((set, _)) = proof(&program, MemoryModel::Sc, Options::default()) else { continue };
        for property in &program.properties {
            let properties = vec![property.name.clone()];
            asked += property.kind.is_existence() as usize;
            let wrong = match property.kind {
                PropertyKind::Finally(Quantifier::Exists, _) => Claim::Safe { properties },
                _ => Claim::Unsatisfied { properties },
            };
            let rejection = accepted((*set).clone(), &program, wrong);
            assert_eq!(rejection, Err(Rejection::Property(property.name.clone())));
        }
    }
    assert!(asked > 5);
}

/// A layout in which every part of a state has a separate word, with room for a few buffered stores.
fn roomy(program: &Program, model: MemoryModel) -> Layout {
    let words = Cell::new(0);
    let word = || {
        words.set(words.get() + 1);
        Field::new(words.get() - 1, 0, 64, i64::MIN).expect("a whole word")
    };
    let count = || {
        words.set(words.get() + 1);
        Field::new(words.get() - 1, 0, 16, 0).expect("part of a word")
    };
    let cells: Vec<u32> = (0..program.cells() as u32).collect();
    let buffer = |_| {
        let entries = (0..8).map(|_| (count(), word())).collect();
        BufferFields { cells: cells.clone(), count: count(), entries }
    };
    let threads = program.threads.iter();
    let buffers = if model == MemoryModel::Sc { 0 } else { program.threads.len() };
    let layout = Layout {
        words: 0,
        locations: threads.clone().map(|_| count()).collect(),
        lock: count(),
        favourite: count(),
        memory: cells.iter().map(|_| word()).collect(),
        registers: threads.map(|t| t.registers.iter().map(|_| word()).collect()).collect(),
        buffers: (0..buffers).map(buffer).collect(),
    };
    Layout { words: words.get() as usize, ..layout }
}

/// All possible initial values.
fn initial_values(init: Init) -> std::ops::RangeInclusive<i64> {
    match init {
        Init::Value(value) => value..=value,
        Init::Any(Some(range)) => range.low..=range.high,
        Init::Any(None) => panic!("random programs have finitely many initial states"),
    }
}

/// The steps that a set leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeftOut {
    /// Steps of other threads after local edges: as many edges as possible are local.
    LocalFirst,
    /// Steps outside persistent sets, with minimal sets of future operations. The field is the seed for a random order of each thread's locations.
    Persistent(u64),
}

/// Reduces the future operations of threads at each location, and the classes of cells, as far as the checker permits.
fn least_futures(set: &mut StateSet, program: &Program, properties: &[Property], seed: u64) {
    let mut random = Random::new(seed);
    let threads = || program.threads.iter();
    let order = |random: &mut Random, thread: &Thread| {
        let mut order: Vec<u32> = (0..thread.locations.len() as u32).collect();
        match random.below(3) {
            0 => (1..order.len()).for_each(|n| order.swap(n, random.below(n + 1))),
            1 => order.iter_mut().for_each(|n| *n /= 2),
            _ => {}
        }
        order
    };
    let bit = |cell: usize| 1 << if seed.is_multiple_of(4) { cell % 2 } else { cell };
    set.persistent = Some(Persistent {
        classes: (0..program.cells()).map(bit).collect(),
        order: threads().map(|thread| order(&mut random, thread)).collect(),
        future: threads().map(|thread| vec![[u64::MAX; 3]; thread.locations.len()]).collect(),
        edges: vec![Vec::new(); program.threads.len()],
        cells: Vec::new(),
    });
    let try_out = |set: &mut StateSet, change: &dyn Fn(&mut Persistent)| {
        let before = set.persistent.clone();
        change(set.persistent.as_mut().expect("it was made above"));
        if set.validate(program, properties).is_err() {
            set.persistent = before;
        }
    };
    for cell in 0..program.cells() {
        try_out(set, &|persistent| persistent.classes[cell] = 0);
    }
    let bits = (0..program.cells()).map(|cell| bit(cell).trailing_zeros());
    let bits: BTreeSet<u32> = bits.chain(0..3).collect();
    for (t, thread) in program.threads.iter().enumerate() {
        let places = thread.locations.len();
        // Bits other than those in `bits` are removed first, because the checker ignores them.
        let known = bits.iter().fold(0u64, |all, bit| all | 1 << bit);
        try_out(set, &|persistent| {
            persistent.future[t].iter_mut().flatten().for_each(|word| *word &= known);
        });
        for (word, bit) in (0..3).flat_map(|word| bits.iter().map(move |bit| (word, bit))) {
            let groups = (0..places).map(|first| first..places).chain((0..places).rev().map(|l| l..l + 1));
            for group in groups {
                try_out(set, &|persistent| {
                    persistent.future[t][group.clone()].iter_mut().for_each(|f| f[word] &= !(1 << bit));
                });
            }
        }
    }
}

/// A set that leaves out everything that the checker permits: minimal live registers, as many steps as possible in one of two ways, and all states
/// that are not required. `None` if it has more than a few thousand states, or a step cannot be computed.
fn least(
    program: &Program,
    model: MemoryModel,
    properties: &[Property],
    left_out: LeftOut,
) -> Option<StateSet> {
    let everywhere = |t: &Thread| vec![(0..t.registers.len() as u32).collect(); t.locations.len()];
    let mut set = StateSet {
        model: model.into(),
        abstraction: None,
        layout: roomy(program, model),
        live: program.threads.iter().map(everywhere).collect(),
        symmetry: Vec::new(),
        persistent: None,
        versions: None,
        local: vec![Vec::new(); program.threads.len()],
        states: PackedStates::Plain(1, Vec::new()),
    };
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for (t, thread) in program.threads.iter().enumerate() {
            for location in 0..thread.locations.len() {
                for register in set.live[t][location].clone() {
                    let before = set.live[t][location].clone();
                    set.live[t][location].retain(|&r| r != register);
                    match set.validate(program, properties) {
                        Ok(_) => changed = true,
                        Err(_) => set.live[t][location] = before,
                    }
                }
            }
        }
    }
    match left_out {
        LeftOut::Persistent(seed) => least_futures(&mut set, program, properties, seed),
        LeftOut::LocalFirst => {
            for (t, thread) in program.threads.iter().enumerate() {
                for edge in 0..thread.edges.len() as u32 {
                    set.local[t].push(edge);
                    if set.validate(program, properties).is_err() {
                        set.local[t].pop();
                    }
                }
            }
        }
    }
    let layout = &set.layout;
    let mut start = vec![0; layout.words];
    let mut parts = Vec::new();
    for field in layout.buffers.iter().map(|b| b.count).chain([layout.lock, layout.favourite]) {
        field.put(&mut start, 0)?;
    }
    let cells = program.variables.iter().flat_map(|v| &v.init);
    parts.extend(layout.memory.iter().zip(cells));
    for (t, thread) in program.threads.iter().enumerate() {
        layout.locations[t].put(&mut start, i64::from(thread.entry.0))?;
        let live = set.live[t][thread.entry.index()].iter().map(|&r| r as usize);
        parts.extend(live.map(|r| (&layout.registers[t][r], &thread.registers[r].init)));
    }
    let mut waiting = vec![start];
    for (field, init) in parts {
        let with = |state: &Vec<u64>| {
            let state = state.clone();
            initial_values(*init).map(move |value| {
                let mut state = state.clone();
                field.put(&mut state, value).expect("it has 64 bits");
                state
            })
        };
        waiting = waiting.iter().flat_map(with).collect();
    }
    let validated = set.validate(program, properties).expect("only what is allowed was left out");
    let mut steps = Steps::new(program, &set, &validated);
    let mut found: BTreeSet<Vec<u64>> = waiting.iter().cloned().collect();
    while let Some(state) = waiting.pop() {
        if found.len() > 5_000 {
            return None;
        }
        let visit = &mut |_: ThreadId, next: &[u64]| {
            if found.insert(next.to_vec()) {
                waiting.push(next.to_vec());
            }
        };
        steps.all(&state, visit).ok()?;
    }
    let states = found.into_iter().flatten().collect();
    Some(StateSet { states: PackedStates::Plain(set.layout.words, states), ..set })
}

#[test]
fn minimal_accepted_sets_prove_only_true_claims() {
    let (mut proofs, mut refused, mut reduced) = (0, 0, 0);
    for seed in 0..programs(400) {
        let program = random_program(seed);
        for model in MemoryModel::ALL {
            let Ok(reachable) = explore(&program, model, 1_000, &mut || false) else { continue };
            for property in &program.properties {
                let one = std::slice::from_ref(property);
                let Some(set) = least(&program, model, one, LeftOut::LocalFirst) else { continue };
                reduced += set.local.iter().any(|local| !local.is_empty()) as usize;
                let claim = claims(one).remove(0);
                let result = accepted(set, &program, claim);
                let holds = is_true(&reachable, &program, model, property);
                assert_eq!(result.is_ok(), holds, "seed {seed}, {model:?}, {}: {result:?}", property.name);
                *if holds { &mut proofs } else { &mut refused } += 1;
            }
        }
    }
    println!("{proofs} proofs, {refused} refused, {reduced} with local edges");
    assert!(proofs > 200 && refused > 200 && reduced > 200);
}

/// A random program whose threads have many local steps, hold the lock, or interact often.
fn eventful_program(seed: u64) -> Program {
    let mut random = Random::new(21_000_000 + seed);
    if seed % 8 == 7 {
        let text = family(&mut random, false);
        return load("family.fw", text.as_bytes(), None, &[]).expect("it loads").program;
    }
    let mut program = program(&mut random, Shape { corners: seed % 5 == 4, ..Shape::default() });
    match seed % 8 {
        0 => contend(&mut random, &mut program, 3),
        1 | 2 => lock_sections(&mut random, &mut program),
        3 => {
            lock_sections(&mut random, &mut program);
            keep_apart(&mut random, &mut program);
        }
        4 => separate(&mut random, &mut program),
        5 => group(&mut random, &mut program),
        _ => keep_apart(&mut random, &mut program),
    }
    program
}

/// If the checker accepts a certificate, its claim is true, whatever the certificate states about future operations, orders and classes of cells, and
/// even if its set has only the states that the required steps reach.
#[test]
fn minimal_persistent_sets_prove_only_true_claims() {
    let wanted = programs_or(500) as u64;
    let tried = |seed: u64| {
        let (mut proofs, mut refused, mut states, mut all) = (0, 0, 0, 0);
        let program = eventful_program(seed);
        let model = MemoryModel::ALL[(seed / 8) as usize % 3];
        let Ok(reachable) = explore(&program, model, 1_500, &mut || false) else { return [0; 4] };
        for property in &program.properties {
            let one = std::slice::from_ref(property);
            let Some(set) = least(&program, model, one, LeftOut::Persistent(seed)) else { continue };
            states += self::states(&set).len() / set.layout.words;
            all += reachable.states.len();
            let claim = claims(one).remove(0);
            let result = accepted(set, &program, claim);
            let holds = is_true(&reachable, &program, model, property);
            assert_eq!(result.is_ok(), holds, "seed {seed}, {model:?}, {}: {result:?}", property.name);
            *if holds { &mut proofs } else { &mut refused } += 1;
        }
        [proofs, refused, states, all]
    };
    let counts = spread(0..wanted, tried);
    let [proofs, refused, states, all] =
        counts.into_iter().fold([0; 4], |sum, more| std::array::from_fn(|n| sum[n] + more[n]));
    println!("{proofs} proofs, {refused} refused, with {states} of {all} states");
    assert!(proofs > 200 && refused > 200 && states * 5 < all * 4);
}

/// Conditions on persistent sets that matter in hardly any random program. Each of these programs violates its property, and a search without one of
/// the conditions would miss the violation.
#[test]
fn each_condition_of_persistent_sets_is_needed() {
    let never =
        "shared x, y; thread t { var r; r = y; } thread u { x = 1; y = 1; } finally f: never t.r == 1;";
    let programs = [
        // A store behind other stores in a buffer cannot leave yet, but matters for later states.
        (MemoryModel::Tso, never),
        // A thread that waits for the lock has another step, with a different effect.
        (
            MemoryModel::Sc,
            "shared x; thread t { var r; choose { r = x; } or { skip; } } thread u { lock; x = 5; skip; unlock; }
             finally f: never t.r == 5;",
        ),
        // The property depends on a location of the thread and on a cell that its buffer writes.
        (MemoryModel::Tso, "shared x; thread t { x = 1; a: skip; b: skip; } forbid f: x == 1 && t@a;"),
        // A store can never leave its buffer, because the thread that holds the lock has faulted.
        (MemoryModel::Tso, "shared x; thread t { x = 1; fence; } thread u { lock; assert 0; unlock; }"),
        // A fault is visible.
        (MemoryModel::Sc, "shared x; thread t { assert 0; } thread u { x = 1; x = 2; }"),
        // The first write may hide a value from readers, and it is not the last write.
        (MemoryModel::Sc, "shared x; thread t { x = 1; } thread u { var r; r = x; } finally f: never u.r == 0;"),
        (MemoryModel::Sc, "shared x; thread t { x = 1; } thread u { x = 2; } finally f: never x == 1;"),
        (MemoryModel::Sc, "shared x; thread t { x = 1; } thread u { x = 2; } finally f: never x == 2;"),
        // A thread that waits for the lock has another step.
        (
            MemoryModel::Sc,
            "shared x; thread t { var r; choose { lock; r = x; unlock; } or { skip; } } thread u { lock; x = 1; unlock; }
             finally f: never t.r == 1;",
        ),
    ];
    for (n, (model, text)) in programs.into_iter().enumerate() {
        let mut program = load("f.fw", text.as_bytes(), None, &[]).expect("it loads").program;
        let name = || "f".to_string();
        match n {
            3 => {
                program.properties = vec![Property {
                    name: "deadlock".into(),
                    kind: PropertyKind::NoDeadlock,
                    ..Property::assertions()
                }]
            }
            4 => {
                let thread = &program.threads[0];
                let others =
                    (0..thread.locations.len() as u32).map(LocationId).filter(|l| *l != thread.fault);
                let stays = Expr::Leaf(Observable::At(ThreadId(0), others.collect()));
                let one = Expr::binary(BinaryOp::Eq, Expr::Leaf(Observable::Memory(0)), Expr::Const(1));
                let kind = PropertyKind::Never(Expr::binary(BinaryOp::And, one, stays));
                program.properties = vec![Property { name: name(), kind, ..Property::assertions() }];
            }
            _ => program.properties.retain(|p| p.name == name()),
        }
        let reachable = explore(&program, model, 1_000, &mut || false).expect("a small program");
        assert!(!is_true(&reachable, &program, model, &program.properties[0]), "{text}");
        for order in 0..6 {
            let set = least(&program, model, &program.properties, LeftOut::Persistent(order))
                .expect("a small program");
            let result = accepted(set, &program, claims(&program.properties).remove(0));
            assert!(matches!(result, Err(Rejection::Forbidden(..))), "{text}: {result:?}");
        }
    }
}

/// The class of the first cells of a large array stands for all of its cells.
#[test]
fn cells_of_a_large_array_are_in_one_class() {
    let text = "shared a[20]; thread t { var i; i = 19; a[i] = 1; } thread u { var r; r = a[19]; }
                finally f: never u.r == 2;";
    let mut program = load("f.fw", text.as_bytes(), None, &[]).expect("it loads").program;
    program.properties.retain(|p| p.name == "f");
    let options = Options { reduction: Reduction::Persistent, ..Options::default() };
    let (set, proved) = proof(&program, MemoryModel::Sc, options).expect("a proof");
    assert!(set.validate(&program, &proved).is_ok());
    let mut set = (*set).clone();
    set.persistent.as_mut().expect("the engine names it").classes[18] = 1 << 40;
    assert!(matches!(set.validate(&program, &proved), Err(Rejection::Reduction(_))));
}

/// Future operations are exact: removing any bit is rejected, and so is removing a cell from a class.
#[test]
fn threads_that_may_do_less_than_they_do_are_refused() {
    let (mut bits, mut cells, mut families) = (0, 0, 0);
    for seed in 0..programs(150) {
        let program = eventful_program(seed);
        let model = MemoryModel::ALL[seed as usize % 3];
        let options = Options { reduction: Reduction::Persistent, ..Options::default() };
        let Some((set, proved)) = proof(&program, model, options) else { continue };
        let refused = |change: &dyn Fn(&mut Persistent)| {
            let mut set = (*set).clone();
            change(set.persistent.as_mut().expect("the engine names it"));
            matches!(set.validate(&program, &proved), Err(Rejection::Reduction(_)))
        };
        let said = set.persistent.as_ref().expect("the engine names it");
        for (t, places) in said.future.iter().enumerate() {
            for (location, footprint) in places.iter().enumerate() {
                for (word, bit) in (0..3).flat_map(|word| (0..64).map(move |bit| (word, 1u64 << bit))) {
                    if footprint[word] & bit != 0 {
                        let lied = refused(&|p| p.future[t][location][word] &= !bit);
                        assert!(lied, "seed {seed}, {model:?}, thread {t} at {location}");
                        bits += 1;
                    }
                }
            }
        }
        for cell in (0..said.classes.len()).filter(|&cell| said.classes[cell] != 0) {
            assert!(refused(&|p| p.classes[cell] = 0), "seed {seed}, {model:?}, cell {cell}");
            cells += 1;
        }
        let refused = |change: &dyn Fn(&mut StateSet)| {
            let mut set = (*set).clone();
            change(&mut set);
            set.validate(&program, &proved).is_err()
        };
        for edge in 0..program.threads[0].edges.len() as u32 {
            assert!(
                refused(&|set| set.local[0] = vec![edge]),
                "seed {seed}: no edge is local at the same time"
            );
        }
        if let Some(family) = set.symmetry.first() {
            let last = *family.threads.last().expect("it has threads") as usize;
            let other =
                |set: &mut StateSet| set.persistent.as_mut().expect("it is there").order[last].reverse();
            let palindrome = said.order[last].iter().eq(said.order[last].iter().rev());
            assert!(palindrome || refused(&other), "seed {seed}: threads of a family go alike");
            families += 1;
        }
    }
    println!("{bits} bits and {cells} cells left out, {families} programs with families");
    assert!(bits > 500 && cells > 50 && families > 3);
}
