//! The machines with abstract store buffers (THESIS16 s. 3.2): the simulation invariants with respect to the exact machine, the inclusions between
//! their reachable states, and the claims of THESIS16 about its examples.
//!
//! Runs thousands of random programs by default; `FENCEWRIGHT_PROGRAMS=N` runs N.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use fencewright_executions::oracle;
use fencewright_program::reference::{Buffered, Refusal};
use fencewright_program::{Event, MemoryModel, Program, PropertyKind, Reference, State};
use fencewright_testing::abstract_buffers::{
    AbstractMachine, AbstractState, Abstraction, Buffer, Counts, Kept, Reachable, Values, explore,
};
use fencewright_testing::{Random, Shape, contend, group, program, programs_or, separate};

fn seeds(normal: usize) -> std::ops::Range<u64> {
    0..programs_or(normal) as u64
}

/// A random program in which delayed stores are observable, with every kind of statement.
fn random_program(random: &mut Random, loops: bool) -> Program {
    let shape = Shape { threads: 3, length: 5, loops, corners: random.one_in(4) };
    let mut program = program(random, shape);
    match random.below(6) {
        0 | 1 => contend(random, &mut program, 3),
        2 => separate(random, &mut program),
        3 => group(random, &mut program),
        _ => {}
    }
    program
}

fn is_buffered(model: MemoryModel) -> bool {
    model != MemoryModel::Sc
}

fn partials(most: usize) -> impl Iterator<Item = Abstraction> {
    let both = |k| [Kept::Oldest, Kept::Newest].map(|kept| Abstraction::partial(k, kept));
    (0..=most).flat_map(both)
}

// Tests of the simulation: invariants I-7 to I-15 of THESIS16.

/// The stores of an exact buffer, oldest first; optionally only those to one memory cell.
fn stores(buffer: &[Buffered], of: Option<u32>) -> Vec<(u32, i64)> {
    let store = |entry: &Buffered| match entry {
        Buffered::Store { cell, value } => Some((*cell, *value)),
        Buffered::Barrier => None,
    };
    buffer.iter().filter_map(store).filter(|(cell, _)| of.is_none_or(|wanted| wanted == *cell)).collect()
}

/// The multisets that contain some stores, which are given oldest first, with this way of counting.
fn forgotten(counts: Counts, stores: &[(u32, i64)]) -> BTreeMap<u32, Values> {
    let mut rest = BTreeMap::new();
    for &(cell, value) in stores {
        let values = rest.entry(cell).or_insert(Values { last: value, counts: BTreeMap::new() });
        values.last = value;
        let count = values.counts.entry(value).or_insert(0);
        *count += 1;
        if let Counts::OrMore(most) = counts {
            *count = most.min(*count);
        }
    }
    rest
}

/// Invariants I-9, I-12 and I-15: the exact buffer consists of the stores in the queue and of other stores, which follow those of the queue if the
/// oldest are kept and precede them if the newest are kept. The multisets contain the values of the other stores, with the same last values. Under
/// PSO this holds for the stores to each memory cell.
fn represents(machine: &AbstractMachine<'_>, buffer: &Buffer, exact: &[Buffered]) -> bool {
    let Abstraction { k, kept, counts } = machine.abstraction;
    let cells = machine.reference.program.cells() as u32;
    let parts: Vec<Option<u32>> = match machine.reference.model {
        MemoryModel::Pso => (0..cells).map(Some).collect(),
        _ => vec![None],
    };
    parts.into_iter().all(|part| {
        let (queue, exact) = (stores(&buffer.queue, part), stores(exact, part));
        let Some(others) = exact.len().checked_sub(queue.len()) else { return false };
        let (in_order, others) = match kept {
            Kept::Oldest => exact.split_at(queue.len()),
            Kept::Newest => {
                let (others, in_order) = exact.split_at(others);
                (in_order, others)
            }
        };
        let rest: BTreeMap<u32, Values> = match part {
            None => buffer.rest.clone(),
            Some(cell) => buffer.rest.get(&cell).map(|values| (cell, values.clone())).into_iter().collect(),
        };
        queue.len() <= k && in_order == queue && forgotten(counts, others) == rest
    })
}

/// Invariants I-8, I-11 and I-14 (the same locations, registers and memory), and the invariant about buffers.
fn related(machine: &AbstractMachine<'_>, state: &AbstractState, exact: &State) -> bool {
    let bare = State { buffers: vec![Vec::new(); exact.buffers.len()], ..exact.clone() };
    let mut buffers = state.buffers.iter().zip(&exact.buffers);
    state.visible == bare && buffers.all(|(buffer, exact)| represents(machine, buffer, exact))
}

/// A random step of the reference semantics.
fn random_step(reference: &Reference<'_>, state: &State, random: &mut Random) -> Option<(Event, State)> {
    let steps = reference.candidates(state, &[]).into_iter();
    let mut steps: Vec<(Event, State)> = steps
        .filter_map(|event| match reference.step(state, &event) {
            Ok((next, _)) => Some((event, next)),
            Err(Refusal::Disabled(_) | Refusal::Limit(..)) => None,
        })
        .collect();
    // Flushes are at the end of the list. The minimum of two random indices selects them less often than other steps, so buffers become long.
    let choice = random.below(steps.len()).min(random.below(steps.len()));
    (!steps.is_empty()).then(|| steps.swap_remove(choice))
}

#[test]
fn every_exact_execution_is_one_of_each_machine_with_the_invariants_of_the_thesis() {
    let mut deepest = 0;
    let (mut kept, mut taken) = (0, 0);
    for seed in seeds(4_000) {
        let mut random = Random::new(seed);
        let program = random_program(&mut random, true);
        let model = *random.pick(&[MemoryModel::Tso, MemoryModel::Pso]);
        let reference = Reference::new(&program, model);
        let Ok(initial) = oracle::initial_states(&reference, 100, &mut || false) else { continue };
        if initial.is_empty() {
            continue;
        }
        let initial = random.pick(&initial).clone();
        let machines = partials(3).chain([
            Abstraction::MULTISET,
            Abstraction::multiset(Counts::OrMore(2)),
            Abstraction { k: 1, kept: Kept::Oldest, counts: Counts::OrMore(2) },
            Abstraction { k: 2, kept: Kept::Newest, counts: Counts::UpTo(u32::MAX) },
        ]);
        let mut pairs: Vec<(AbstractMachine<'_>, AbstractState)> = machines
            .map(|abstraction| AbstractMachine::new(&program, model, abstraction))
            .map(|machine| (machine, machine.initial(initial.clone())))
            .collect();
        let mut exact = initial;
        for _ in 0..40 {
            let Some((event, next)) = random_step(&reference, &exact, &mut random) else { break };
            for (machine, state) in &mut pairs {
                let what = || format!("seed {seed}, {model:?}, {:?}: {event:?}", machine.abstraction);
                // I-7, I-10 and I-13: the event is a step of the machine too. The exact buffer determines which of its successors matches.
                let steps = machine.steps(state, &event).unwrap_or_else(|why| panic!("{}: {why:?}", what()));
                let mut matching = steps.iter().filter(|after| related(machine, after, &next));
                let after = matching.next().unwrap_or_else(|| panic!("{}: {steps:?}", what())).clone();
                assert!(matching.next().is_none(), "{}: more than one successor matches", what());
                if steps.len() > 1 {
                    let stays = after.buffers == state.buffers;
                    (kept, taken) = (kept + usize::from(stays), taken + usize::from(!stays));
                }
                *state = after;
            }
            deepest = next.buffers.iter().map(|b| stores(b, None).len()).fold(deepest, usize::max);
            exact = next;
        }
    }
    assert!(deepest >= 6, "buffers became only {deepest} deep");
    assert!(kept > 100 && taken > 1_000, "values that stayed {kept} times and left {taken} times");
}

// Tests of inclusions: a machine with a coarser abstraction of buffers reaches at least the states that a machine with a finer one reaches.

/// Maximum number of states explored per program.
const MOST_STATES: usize = 400;

/// States without their buffers.
type Visible = HashSet<State>;

fn exact(program: &Program, model: MemoryModel) -> Option<Visible> {
    let reachable = oracle::explore(program, model, MOST_STATES, &mut || false).ok()?;
    let bare = |s: State| State { buffers: vec![Vec::new(); s.buffers.len()], ..s };
    Some(reachable.states.into_iter().map(bare).collect())
}

fn visible(program: &Program, model: MemoryModel, abstraction: Abstraction) -> Option<Visible> {
    let machine = AbstractMachine::new(program, model, abstraction);
    let reachable = explore(machine, MOST_STATES, &mut || false).ok()?;
    Some(reachable.states.into_iter().map(|s| s.visible).collect())
}

/// For each inclusion, the number of times that it was checked, and the number of times that it was strict.
#[derive(Default)]
struct Compared(BTreeMap<String, (usize, usize)>);

impl Compared {
    /// Compares the states of a chain of machines, from the smallest set to the largest. Machines that were not fully explored are skipped.
    fn chain(&mut self, seed: u64, machines: &[(String, Option<Visible>)]) {
        let explored: Vec<_> =
            machines.iter().filter_map(|(name, states)| Some((name, states.as_ref()?))).collect();
        for pair in explored.windows(2) {
            let [(smaller, fewer), (larger, more)] = pair else { unreachable!("two in a window") };
            assert!(fewer.is_subset(more), "seed {seed}: {smaller} reaches more than {larger}");
            let (times, strict) = self.0.entry(format!("{smaller} <= {larger}")).or_default();
            (*times, *strict) = (*times + 1, *strict + usize::from(fewer.len() < more.len()));
        }
    }
}

#[test]
fn machines_that_forget_more_reach_more() {
    let mut compared = Compared::default();
    for seed in seeds(1_500) {
        let mut random = Random::new(seed);
        let loops = random.one_in(2);
        let program = random_program(&mut random, loops);
        let exactly: BTreeMap<&str, Option<Visible>> =
            MemoryModel::ALL.into_iter().map(|model| (model.name(), exact(&program, model))).collect();
        if exactly["tso"].is_none() {
            continue;
        }
        let named = |name: &str| (name.to_string(), exactly[name].clone());
        compared.chain(seed, &["sc", "tso", "pso"].map(named));
        for model in MemoryModel::ALL.into_iter().filter(|&model| is_buffered(model)) {
            let machine = |name: &str, abstraction| {
                (format!("{} {name}", model.name()), visible(&program, model, abstraction))
            };
            let set = machine("set", Abstraction::VALUE_SET);
            let counts = [
                machine("up to 1", Abstraction::multiset(Counts::UpTo(1))),
                machine("up to 2", Abstraction::multiset(Counts::UpTo(2))),
                machine("multiset", Abstraction::MULTISET),
                machine("2 or more", Abstraction::multiset(Counts::OrMore(2))),
                set.clone(),
            ];
            compared.chain(seed, &counts);
            compared.chain(seed, &[named(model.name()), counts[2].clone(), set.clone()]);
            for kept in [Kept::Oldest, Kept::Newest] {
                let partial = |k: usize| machine(&format!("{kept:?} {k}"), Abstraction::partial(k, kept));
                let chain = [3, 2, 1, 0].map(partial);
                assert_eq!(chain[3].1, set.1, "seed {seed}: a value set is partial:0");
                compared.chain(seed, &[&[named(model.name())], &chain[..]].concat());
            }
        }
    }
    let table: Vec<String> = compared
        .0
        .iter()
        .map(|(name, (times, strict))| format!("{name}: {times}, more in {strict}"))
        .collect();
    let table = table.join("\n");
    // Machines that keep three stores in order are not in this list, because their inclusions are rarely strict on these programs.
    let strict = [
        "sc <= tso",
        "tso <= pso",
        "tso <= tso multiset",
        "pso <= pso multiset",
        "tso multiset <= tso set",
        "pso multiset <= pso set",
        "tso Oldest 2 <= tso Oldest 1",
        "tso Newest 2 <= tso Newest 1",
        "pso Oldest 1 <= pso Oldest 0",
        "pso Newest 1 <= pso Newest 0",
    ];
    let any = [
        "tso <= tso Oldest 3",
        "tso <= tso Newest 3",
        "pso <= pso Oldest 3",
        "pso <= pso Newest 3",
        "tso Oldest 3 <= tso Oldest 2",
        "tso Newest 3 <= tso Newest 2",
        "pso Oldest 3 <= pso Oldest 2",
        "pso Newest 3 <= pso Newest 2",
    ];
    for (name, strictly) in strict.map(|name| (name, true)).into_iter().chain(any.map(|name| (name, false))) {
        let (times, more) = compared.0.get(name).copied().unwrap_or_default();
        assert!(times >= 1_000 && (more > 0 || !strictly), "{name} is not tested enough:\n{table}");
    }
    println!("{table}");
}

// The examples of THESIS16.

fn example(name: &str) -> Program {
    let path = format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    fencewright_lang::load(name, &bytes, None, &[]).unwrap_or_else(|e| panic!("{name}: {e:?}")).program
}

fn reached(program: &Program, model: MemoryModel, abstraction: Abstraction) -> Reachable<'_> {
    let machine = AbstractMachine::new(program, model, abstraction);
    explore(machine, 100_000, &mut || false).unwrap_or_else(|why| panic!("{abstraction:?}: {why:?}"))
}

/// Whether the reachable states satisfy the only property of the example that is not about assertions.
fn is_safe(program: &Program, model: MemoryModel, abstraction: Abstraction) -> bool {
    let mut goals = program.properties.iter().filter(|p| matches!(p.kind, PropertyKind::Never(_)));
    let goal = goals.next().expect("the example has a goal");
    reached(program, model, abstraction).satisfies(goal).expect("small values")
}

/// Footnote 2 of s. 3.2.1: 2 x 2 x 2 x 2 valuations and 4 x 4 buffers.
#[test]
fn figure_3_3_has_256_states_with_sets_when_last_values_are_ignored() {
    let program = example("thesis-3-3.fw");
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        assert!(is_safe(&program, model, Abstraction::VALUE_SET));
        let reachable = reached(&program, model, Abstraction::VALUE_SET);
        let without_last: BTreeSet<String> = reachable
            .states
            .iter()
            .map(|s| {
                let sets = s.buffers.iter().map(|b| b.rest.values().map(|v| &v.counts).collect::<Vec<_>>());
                format!("{:?} {:?}", s.visible, sets.collect::<Vec<_>>())
            })
            .collect();
        assert_eq!(without_last.len(), 256);
    }
}

#[test]
fn figure_3_7_needs_multisets_or_three_stores_in_order() {
    let program = example("thesis-3-7.fw");
    // Under PSO, k is the number of stores to each cell, and the program has one store to each cell.
    for (model, k) in [(MemoryModel::Tso, 3), (MemoryModel::Pso, 1)] {
        let safe = |abstraction| is_safe(&program, model, abstraction);
        assert!(!safe(Abstraction::VALUE_SET));
        assert!(safe(Abstraction::MULTISET));
        assert!(!safe(Abstraction::partial(k - 1, Kept::Oldest)));
        assert!(safe(Abstraction::partial(k, Kept::Oldest)));
        assert!(safe(Abstraction::partial(1, Kept::Newest)));
    }
}
