//! The orbits of the stored states partition the states that a search without symmetry stores.

use std::collections::BTreeSet;

use fencewright_executions::oracle::explore;
use fencewright_lang::load;
use fencewright_program::{Expr, LocationId, MemoryModel, Program, PropertyKind};
use fencewright_testing::Random;
use fencewright_testing::families::family;
use fencewright_verdict::{Limits, Progress, Task};

use super::super::code::Code;
use super::super::layout::Layout;
use super::super::search::{Found, search};
use super::super::{Options, Order, Reduction};
use super::Class;
use super::representatives::{Representatives, next_permutation};

/// All states of a search in which no property is decided.
fn all_states(task: &Task<'_>, options: &Options) -> (Code, Found) {
    let (limits, progress) = (Limits::default(), Progress::default());
    let code = Code::new(task, options, None, &limits).expect("a small program");
    let known = vec![false; task.properties.len()];
    let found = search(task, &code, options, &[], &known, &limits, &progress, &mut |_| {});
    (code, found.expect("a small program"))
}

/// The contents of a packed state, independently of its layout.
fn unpacked(code: &Code, layout: &Layout, state: &[u64]) -> Vec<i64> {
    let slots = 0..code.first_register();
    let mut values: Vec<i64> = slots.map(|slot| layout.slots[slot].get(state)).collect();
    for (t, thread) in code.threads.iter().enumerate() {
        let location = LocationId(layout.slots[code.pc(t)].raw(state) as u32);
        let register = |r: fencewright_program::RegisterId| thread.registers[r.index()] as usize;
        values.extend(thread.live.at(location).map(|r| layout.slots[register(r)].get(state)));
        let Some(buffer) = layout.buffers.get(t) else { continue };
        let count = buffer.count.raw(state) as usize;
        values.push(count as i64);
        for (kind, value) in &buffer.entries[..count] {
            let cell = thread.buffered_cells.get(kind.raw(state) as usize);
            values.extend(cell.map_or([-1, 0], |&cell| [i64::from(cell), value.get(state)]));
        }
    }
    values
}

/// All images of a state under the permutations of its families, unpacked.
fn orbit(code: &Code, layout: &Layout, state: &[u64]) -> BTreeSet<Vec<i64>> {
    let mut representatives = Representatives::new(code);
    let whole = |(n, class): (usize, &Class)| (n, 0, class.threads.len());
    representatives.ties = code.orbits.classes.iter().enumerate().map(whole).collect();
    for order in &mut representatives.orders {
        (0..).zip(order.iter_mut()).for_each(|(n, place)| *place = n);
    }
    let mut orbit = BTreeSet::new();
    let mut image = Vec::new();
    loop {
        representatives.arrange(layout, state, &mut image);
        orbit.insert(unpacked(code, layout, &image));
        if !representatives.next_arrangement() {
            return orbit;
        }
    }
}

/// The program with only its properties of kind `Never`. Their formulas are made false in every state, but depend on the same observables.
fn undecided(program: &Program) -> Program {
    let mut program = program.clone();
    for property in &mut program.properties {
        if let PropertyKind::Never(formula) = &mut property.kind {
            *formula = Expr::all(vec![formula.clone(), Expr::Const(0)]);
        }
    }
    program.properties.retain(|p| matches!(p.kind, PropertyKind::Never(_)));
    program
}

#[test]
fn orbits_of_the_stored_states_are_all_states() {
    let mut symmetric = 0;
    for seed in 0..250 {
        let mut random = Random::new(9_000 + seed);
        let text = family(&mut random, seed % 4 == 0);
        let program = load("family.fw", text.as_bytes(), None, &[]).expect("it is a program").program;
        let model = *random.pick(&MemoryModel::ALL);
        if explore(&program, model, 2_000, &mut || false).is_err() {
            continue;
        }
        let program = undecided(&program);
        let task = Task::new(&program, model, program.properties.clone());
        let options = Options {
            order: *random.pick(&[Order::BreadthFirst, Order::DepthFirst]),
            reduction: if random.one_in(2) { Reduction::Local } else { Reduction::None },
            workers: 1 + random.below(2),
            ..Options::default()
        };
        let (code, some) = all_states(&task, &options);
        let (plain, all) = all_states(&task, &Options { symmetry: false, ..options.clone() });
        let layout = Layout::new(&plain, &all.sizes);
        let states = all.stores.iter().flat_map(|store| (0..store.len()).map(|n| store.state(n as u32)));
        let all: BTreeSet<Vec<i64>> = states.map(|state| unpacked(&plain, &layout, state)).collect();
        let layout = Layout::new(&code, &some.sizes);
        let states = some.stores.iter().flat_map(|store| (0..store.len()).map(|n| store.state(n as u32)));
        let mut covered = BTreeSet::new();
        for state in states {
            for image in orbit(&code, &layout, state) {
                assert!(covered.insert(image), "seed {seed}: two representatives of one orbit\n{text}");
            }
        }
        assert_eq!(covered, all, "seed {seed}, {model:?}, {options:?}\n{text}");
        symmetric += usize::from(!code.orbits.families().is_empty());
    }
    assert!(symmetric > 60, "only {symmetric} programs are symmetric");
}

#[test]
fn permutations_come_in_order_and_start_again() {
    let mut items = [0, 1, 2];
    let mut seen = vec![items];
    while next_permutation(&mut items) {
        seen.push(items);
    }
    assert_eq!(seen, [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]);
    assert_eq!(items, [0, 1, 2]);
}
