//! The checker on single steps with summary cells, against an interpreter in which a summary cell is a set of values.

use std::collections::BTreeSet;
use std::sync::Arc;

use fencewright_lang::load;
use fencewright_memory::{Kept, Summarised};
use fencewright_smt::Prover;
use fencewright_testing::Random;
use fencewright_testing::sets::{Sets, Vocabulary};

use super::*;

/// A random form over a few cells, for a constraint: a cell or its negation, a difference, occasionally a sum; each plus a constant.
fn form(cells: &[CellId], constant: i64, random: &mut Random) -> Linear {
    let (x, y) = (Linear::cell(*random.pick(cells)), Linear::cell(*random.pick(cells)));
    let form = match random.below(10) {
        0..3 => Some(x),
        3..6 => x.scaled(-1),
        6..9 => x.minus(&y),
        _ => x.plus(&y),
    };
    form.and_then(|form| form.plus(&Linear::constant(constant))).expect("small numbers")
}

/// Random states that satisfy a cube; the list is shorter if few random states do.
fn states(pre: &Cube, vocabulary: &Vocabulary, random: &mut Random) -> Vec<Sets> {
    let mut found = Vec::new();
    for _ in 0..60 {
        let mut state = Sets::default();
        state.values.extend(vocabulary.ordinary.iter().map(|&c| (c, random.between(-3, 3))));
        for &cell in &vocabulary.summaries {
            let values: BTreeSet<i64> = (0..1 + random.below(3)).map(|_| random.between(-3, 3)).collect();
            state.sets.insert(cell, values);
        }
        found.extend(state.satisfies(pre).then_some(state));
    }
    found
}

/// Cubes that may or may not be an invariant of the states after a step: upper bounds of some forms, or congruences, that hold in all observed
/// states, only in a few of them, or only for the least value of each summary cell. One time in three there are two such cubes, which divide the
/// values of a summary cell into small and large ones.
fn posts(after: &[Sets], cells: &[CellId], vocabulary: &Vocabulary, random: &mut Random) -> Vec<Cube> {
    let mut after = after.to_vec();
    if random.one_in(3) {
        after.truncate(1 + random.below(3));
    }
    if random.one_in(3) {
        for set in after.iter_mut().flat_map(|state| state.sets.values_mut()) {
            *set = set.iter().take(1).copied().collect();
        }
    }
    let mut cube = Cube::new();
    for _ in 0..1 + random.below(3) {
        let form = form(cells, 0, random);
        if random.one_in(4) {
            // A congruence that all values of the form satisfy, or, one time in three, one that possibly only the first value satisfies.
            let modulus = random.between(2, 4);
            let values: Vec<i64> = after.iter().flat_map(|state| state.values_of(&form)).collect();
            let first = values.first().copied().unwrap_or(0);
            if random.one_in(3) || values.iter().all(|v| (v - first) % modulus == 0) {
                let form = form.plus(&Linear::constant(-first)).expect("small numbers");
                cube.push(Constraint::Multiple(form, modulus));
                continue;
            }
        }
        let greatest = after.iter().map(|state| state.greatest(&form)).max().unwrap_or(0);
        let slack = random.one_in(3) as i64;
        cube.extend(form.plus(&Linear::constant(-greatest - slack)).map(Constraint::AtMost));
    }
    if !random.one_in(3) {
        return vec![cube];
    }
    let (cell, middle) = (Linear::cell(*random.pick(&vocabulary.summaries)), random.between(-1, 1));
    let below = cell.plus(&Linear::constant(-middle)).expect("small numbers");
    let above = cell.scaled(-1).and_then(|c| c.plus(&Linear::constant(middle + 1))).expect("small numbers");
    [below, above].map(|form| [cube.as_slice(), &[Constraint::AtMost(form)]].concat()).into()
}

#[test]
fn covered_steps_lead_into_one_cube() {
    let program = load("s.fw", b"shared x, y; thread p { x = 1; } thread q { y = 1; }", None, &[]);
    let program = program.expect("it loads").program;
    let summaries = Summarised::all(2);
    let buffers = Buffers::Partial { model: MemoryModel::Tso, k: 1, kept: Kept::Newest, summaries };
    let machine = BufferMachine::new(&program, buffers);
    let all = 0..machine.cells.len() as CellId;
    let large = Vocabulary {
        ordinary: all.clone().filter(|&c| !machine.cells.is_summary(c)).take(3).collect(),
        summaries: all.filter(|&c| machine.cells.is_summary(c)).take(2).collect(),
        arithmetic: true,
        remainders: true,
    };
    let stop: Stop = Arc::new(|| false);
    let (mut covered, mut not, mut wrong) = (0, 0, 0);
    for seed in 0..40_000 {
        let mut random = Random::new(seed);
        let mut vocabulary = large.clone();
        if random.one_in(2) {
            // With few cells, commands and constraints often mention the same cell.
            vocabulary.ordinary.truncate(1);
            vocabulary.summaries.truncate(1);
        }
        let cells = [vocabulary.ordinary.as_slice(), &vocabulary.summaries].concat();
        let pre: Cube = (0..random.below(5))
            .map(|_| {
                let constant = random.between(-2, 1);
                let form = form(&cells, constant, &mut random);
                match random.one_in(4) {
                    true => Constraint::Multiple(form, random.between(2, 4)),
                    false => Constraint::AtMost(form),
                }
            })
            .collect();
        let commands: Vec<Command> =
            (0..1 + random.below(4)).map(|_| vocabulary.command(&mut random)).collect();
        let mut after = Vec::new();
        for mut state in states(&pre, &vocabulary, &mut random) {
            let possible = commands.iter().all(|command| state.perform(command, &mut random).is_some());
            after.extend(possible.then_some(state));
        }
        let posts = posts(&after, &cells, &vocabulary, &mut random);
        let invariant = |cubes: Vec<Cube>| Invariant {
            control: machine.initial(),
            differences: cubes.iter().map(|cube| cube.iter().map(Difference::of).collect()).collect(),
            cubes,
        };
        let states = vec![invariant(vec![pre.clone()]), invariant(posts.clone())];
        let checker = Checker {
            machine: &machine,
            symmetry: Symmetry::default(),
            states,
            numbers: HashMap::new(),
            refuter: &Prover,
            stop: &stop,
        };
        let target = Target { state: 1, order: None };
        let mut index = checker.met(0).expect("few cells");
        let branches = checker.prepared(&commands, Some(&target), &mut index).expect("few cells");
        let paths = index.paths(&checker.states[0].differences[0], &stop);
        let mut scratch = Paths::new(1);
        let mut covered_by =
            |branch| checker.covered(&paths, &pre, &commands, branch, Some(&target), &mut scratch);
        let outcome = branches.iter().map(&mut covered_by).find(|covered| *covered != Covered::Yes);
        let claimed = outcome.is_none();
        wrong += (outcome == Some(Covered::No)) as usize;
        // A step without successor states tests nothing, so it is not counted.
        covered += (claimed && !after.is_empty()) as usize;
        not += !claimed as usize;
        for state in after.iter().filter(|_| claimed) {
            let one = posts.iter().any(|cube| state.satisfies(cube));
            assert!(one, "seed {seed}: {commands:?}\nfrom {pre:?}\nto {state:?}\nis not in one of {posts:?}");
        }
    }
    println!("{covered} steps covered, {not} not, {wrong} of them with a counterexample");
    assert!(covered > 1_000 && not > 4_000, "{covered} steps covered, {not} not");
    assert!(wrong > 1_000, "{wrong} counterexamples");
}
