//! Tests that every domain over-approximates commands: if the values of cells satisfy the cube of a domain state, the values after a command satisfy
//! the cube of *one* of the computed domain states.

use std::collections::BTreeSet;

use fencewright_engines::Limits;
use fencewright_engines::domain::Domain;
use fencewright_engines::domain::order::{Relations, fragment};
use fencewright_engines::domain::predicates::{Predicates, Template};
use fencewright_engines::domain::zones::Zones;
use fencewright_lang::load;
use fencewright_memory::{BufferMachine, Buffers, CellId, Command, Contents, Linear, Machine};
use fencewright_program::Expr;
use fencewright_testing::sets::{Sets, Vocabulary};
use fencewright_testing::{Random, spread};

const ORDINARY: std::ops::Range<CellId> = 0..4;
const SUMMARIES: std::ops::Range<CellId> = 10..13;

/// Exchanges cells as symmetry does, through temporary cells: returns the commands, and applies them to the state.
fn exchange(a: CellId, b: CellId, sets: &mut Sets) -> Vec<Command> {
    let copy = |to: CellId, from: CellId| Command::Assign(to, Expr::Leaf(from));
    match (sets.sets.remove(&a), sets.sets.remove(&b)) {
        (Some(of_a), Some(of_b)) => sets.sets.extend([(a, of_b), (b, of_a)]),
        _ => {
            let (of_a, of_b) = (sets.values[&a], sets.values[&b]);
            sets.values.extend([(a, of_b), (b, of_a)]);
        }
    }
    vec![copy(100, a), copy(101, b), copy(a, 101), copy(b, 100)]
}

/// The numbers of steps, and of constraints about summary cells that held after them.
#[derive(Default, Debug)]
struct Count {
    steps: usize,
    known: usize,
}

impl std::iter::Sum for Count {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Count::default(), |a, b| Count { steps: a.steps + b.steps, known: a.known + b.known })
    }
}

/// Takes random steps, each from a domain state that represents the values after the previous step.
fn walk<D: Domain>(mut domain: D, random: &mut Random, arithmetic: bool, count: &mut Count) {
    let vocabulary = Vocabulary {
        ordinary: ORDINARY.collect(),
        summaries: SUMMARIES.collect(),
        arithmetic,
        // Remainders split into many cases, which slow down the solver of the predicate domain.
        remainders: arithmetic && domain.predicates() == 0,
    };
    let keeps = domain.keeps_summaries();
    let mut live: Vec<CellId> = ORDINARY.chain(SUMMARIES.filter(|_| keeps)).collect();
    let mut sets = Sets {
        values: ORDINARY.map(|c| (c, 0)).collect(),
        sets: SUMMARIES.map(|c| (c, BTreeSet::from([0]))).collect(),
    };
    let initial: Vec<Command> =
        ORDINARY.chain(SUMMARIES).map(|c| Command::Assign(c, Expr::Const(0))).collect();
    let start = domain.transition(&[], &initial, &live);
    let mut state = only(&mut domain, &start, &live, &sets, None).expect("the start is represented");
    for _ in 0..12 {
        let mut next = sets.clone();
        let mut commands: Vec<Command> =
            (0..1 + random.below(4)).map(|_| vocabulary.command(random)).collect();
        if commands.iter().any(|c| next.perform(c, random).is_none()) {
            continue;
        }
        // Cells may be renamed at the end of a step.
        if random.one_in(4) {
            let (a, b) = if random.one_in(2) { (0, 1) } else { (SUMMARIES.start, SUMMARIES.start + 1) };
            commands.extend(exchange(a, b, &mut next));
        }
        // Cells may become dead if the domain keeps summaries. No machine makes a dead cell live again without an assignment to it. In domain `order`
        // such a cell would have no position.
        let all = ORDINARY.chain(SUMMARIES.filter(|_| keeps));
        let after: Vec<CellId> = all.filter(|_| !keeps || !random.one_in(12)).collect();
        let transition = domain.transition(&live, &commands, &after);
        let found = only(&mut domain, &transition, &after, &next, Some(&state));
        state = found.unwrap_or_else(|| {
            let cube = domain.cube(&live, &state);
            panic!("from {sets:?}\nin {cube:?}\nby {commands:?}\nto {next:?}: not represented")
        });
        let is_summary = |linear: &Linear| linear.terms.iter().any(|(c, _)| SUMMARIES.contains(c));
        count.known += domain.cube(&after, &state).iter().filter(|l| is_summary(l.form())).count();
        count.steps += 1;
        (live, sets) = (after, next);
    }
}

/// A domain state after the step whose cube all choices of these values satisfy, in the form in which the search stores it; `None` if there is none.
fn only<D: Domain>(
    domain: &mut D,
    transition: &D::Transition,
    live: &[CellId],
    sets: &Sets,
    from: Option<&D::State>,
) -> Option<D::State> {
    let blank = domain.blank();
    let mut found = Vec::new();
    domain.post(transition, from.unwrap_or(&blank), &mut found).expect("everything can be represented");
    let stored: Vec<D::State> = found.iter().map(|(_, state)| domain.stored(state)).collect();
    stored.into_iter().find(|state| sets.satisfies(&domain.cube(live, state)))
}

fn templates(random: &mut Random) -> BTreeSet<Template> {
    let shape = |coefficients: &[i64], constant: i64| {
        let terms = coefficients.iter().enumerate().map(|(n, &c)| (n as CellId, c)).collect();
        Template::of(&Linear { terms, constant })
    };
    let mut all: BTreeSet<Template> = BTreeSet::new();
    for coefficients in [&[1][..], &[-1], &[1, -1], &[1, 1]] {
        all.extend((-2..=2).filter(|_| random.one_in(2)).map(|c| shape(coefficients, c)));
    }
    all
}

#[test]
fn zones_represent_what_commands_lead_to() {
    let mut count = Count::default();
    for seed in 0..4_000 {
        let mut random = Random::new(seed);
        let clip = *random.pick(&[1, 2, 5, 1_000]);
        walk(Zones::new(clip, false), &mut random, true, &mut count);
    }
    println!("{count:?}");
    assert!(count.steps > 20_000 && count.known > count.steps, "{count:?}: hardly anything was known");
}

/// Tests zones with rows for sums, some of which have a constant.
#[test]
fn zones_with_sums_represent_what_commands_lead_to() {
    let walked = |seed| {
        let mut count = Count::default();
        let mut random = Random::new(seed);
        let clip = *random.pick(&[1, 2, 5, 1_000]);
        let sum = |random: &mut Random| {
            let terms: Vec<(CellId, i64)> =
                ORDINARY.filter_map(|c| Some((c, random.between(-2, 2))).filter(|t| t.1 != 0)).collect();
            Linear { terms, constant: random.between(-3, 3) }
        };
        let sums: Vec<Linear> =
            (0..4).map(|_| sum(&mut random)).filter(|sum| sum.difference().is_none()).collect();
        walk(Zones::new(clip, false).with_forms(sums), &mut random, true, &mut count);
        count
    };
    let count: Count = spread(0..400, walked).into_iter().sum();
    println!("{count:?}");
    assert!(count.steps > 2_000 && count.known > count.steps, "{count:?}: hardly anything was known");
}

#[test]
fn predicates_represent_what_commands_lead_to() {
    let walked = |seed| {
        let mut count = Count::default();
        let mut random = Random::new(seed);
        let templates = templates(&mut random);
        let domain = Predicates::new(templates, false, Limits::default().budget());
        walk(domain, &mut random, true, &mut count);
        count
    };
    let count: Count = spread(0..300, walked).into_iter().sum();
    println!("{count:?}");
    assert!(count.steps > 1_500 && count.known > count.steps, "{count:?}: hardly anything was known");
}

#[test]
fn order_represents_what_commands_lead_to() {
    let text = "shared a, b, c, d; thread p { var r; r = a; assume r < 2; b = r; c = 1; d = r; }";
    let loaded = load("order.fw", text.as_bytes(), None, &[]).expect("it loads");
    let machine = BufferMachine::new(&loaded.program, Buffers::Sc);
    let limits = Limits::default();
    let mut count = Count::default();
    for seed in 0..4_000 {
        let mut domain = fragment(&loaded.program, &[], Relations::Order, &limits)
            .unwrap_or_else(|_| panic!("it only compares"));
        // The last entry of the contents may have values in common with all memory cells.
        domain.attach(&[machine.contents(), vec![Contents::Stores]].concat());
        walk(domain, &mut Random::new(seed), false, &mut count);
    }
    assert!(count.steps > 20_000 && count.known == 0, "{count:?}");
}
