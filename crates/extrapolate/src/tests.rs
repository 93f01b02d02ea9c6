//! Boolean programs over-approximate their programs: every step between reachable states is matched, and the tests detect broken boolean programs.

use fencewright_executions::oracle::explore;
use fencewright_memory::{BufferMachine, Buffers, Cell, CellId, Control};
use fencewright_program::{
    BinaryOp, EventKind, Expr, MemoryModel, Program, Reference, State, reference::Refusal,
};
use fencewright_testing::{Random, Shape, program, programs_or};
use fencewright_verdict::Limits;

use super::entailment::Judge;
use super::program::BooleanProgram;
use super::vector::{Literal, Vector};
use super::vocabulary::{Predicate, Vocabulary};

/// Random predicates over the cells of a machine.
fn predicates(random: &mut Random, machine: &BufferMachine<'_>) -> Vec<Predicate> {
    let cells: Vec<CellId> = machine.cells.variables().collect();
    let ops = [BinaryOp::Eq, BinaryOp::Le, BinaryOp::Ne];
    let atom = |random: &mut Random| {
        let right = match random.one_in(2) {
            true => Expr::Leaf(*random.pick(&cells)),
            false => Expr::Const(random.between(-1, 2)),
        };
        let sum = match random.one_in(5) {
            true => Expr::binary(BinaryOp::Add, Expr::Leaf(*random.pick(&cells)), right),
            false => right,
        };
        Expr::binary(*random.pick(&ops), Expr::Leaf(*random.pick(&cells)), sum)
    };
    let count = 2 + random.below(6);
    let formulas = (0..count).map(|_| match random.one_in(4) {
        true => Expr::binary(BinaryOp::And, atom(random), atom(random)),
        false => atom(random),
    });
    formulas.collect::<Vec<_>>().iter().filter_map(Predicate::new).collect()
}

fn value(machine: &BufferMachine<'_>, state: &State, cell: CellId) -> i64 {
    match machine.cells.cell(cell) {
        Cell::Memory(c) => state.memory[c as usize],
        Cell::Register(t, r) => state.registers[t.index()][r.index()],
        other => panic!("{other:?} under SC"),
    }
}

/// The value of each predicate in a state.
fn vector(machine: &BufferMachine<'_>, vocabulary: &Vocabulary, state: &State) -> Vector {
    let literal = |(n, predicate): (usize, &Predicate)| {
        let truth = predicate.formula().eval(&mut |cell| value(machine, state, *cell)).expect("small values");
        Literal::new(n, truth != 0)
    };
    Vector::of(vocabulary.len(), vocabulary.predicates().iter().enumerate().map(literal))
}

/// The number of steps between reachable states that the boolean program lacks, and the number of all such steps.
fn unmatched(program: &Program, machine: &BufferMachine<'_>, boolean: &BooleanProgram) -> (usize, usize) {
    let Ok(reachable) = explore(program, MemoryModel::Sc, 300, &mut || false) else { return (0, 0) };
    let reference = Reference::new(program, MemoryModel::Sc);
    let (mut missing, mut steps) = (0, 0);
    for state in &reachable.states {
        let before = vector(machine, &boolean.vocabulary, state);
        let control =
            |s: &State| Control { locations: s.locations.clone(), buffers: Vec::new(), lock: s.lock };
        for event in reference.candidates(state, &[]) {
            let next = match reference.step(state, &event) {
                Ok((next, _)) => next,
                Err(Refusal::Disabled(_)) => continue,
                Err(Refusal::Limit(..)) => panic!("small values"),
            };
            let EventKind::Step { edge, .. } = event.kind else { panic!("a flush under SC") };
            let after = vector(machine, &boolean.vocabulary, &next);
            let (cases, lock) = boolean.cases(&control(state), event.thread, edge).unwrap_or((&[], None));
            let to = next.locations[event.thread.index()];
            let matches = |way: &super::transformer::Transformer| {
                way.apply(&boolean.vocabulary, &before).is_some_and(|reached| reached.covers(&after))
            };
            let mut possible = cases.iter().filter(|case| case.to.as_ref().is_ok_and(|l| *l == to));
            let matched = lock == next.lock
                && possible.any(|case| boolean.ways(case).iter().any(|(_, way)| matches(way)))
                || cases.iter().any(|case| case.to.is_err());
            steps += 1;
            missing += usize::from(!matched);
        }
    }
    (missing, steps)
}

fn boolean(seed: u64, cube_size: usize) -> (Program, impl Fn(&Program) -> (usize, usize, usize)) {
    let mut random = Random::new(seed);
    let program = program(&mut random, Shape { length: 4, corners: seed % 4 == 3, ..Shape::default() });
    let compare = move |program: &Program| {
        let mut random = Random::new(seed + 1);
        let machine = BufferMachine::new(program, Buffers::Sc);
        let limits = Limits::default();
        let mut judge = Judge::new(limits.budget());
        let predicates = predicates(&mut random, &machine);
        let vocabulary = Vocabulary::new(predicates, &mut judge, &limits).expect("there are no limits");
        let mut made = BooleanProgram::new(&machine, vocabulary, cube_size, &mut judge, &limits)
            .expect("there are no limits");
        let (missing, steps) = unmatched(program, &machine, &made);
        assert_eq!(missing, 0, "seed {seed}, cubes of {cube_size}");
        made.exchange_polarities();
        (steps, unmatched(program, &machine, &made).0, made.vocabulary.len())
    };
    (program, compare)
}

#[test]
fn every_step_of_a_program_is_one_of_its_boolean_program() {
    let (mut steps, mut found_out) = (0, 0);
    let wanted = programs_or(300);
    for seed in 0..wanted as u64 {
        let (program, compare) = boolean(seed, 1 + seed as usize % 3);
        let (matched, missing, _) = compare(&program);
        steps += matched;
        found_out += usize::from(missing > 0);
    }
    println!(
        "{steps} steps; {found_out} of {wanted} boolean programs whose polarities were exchanged were found out"
    );
    assert!(steps > 20 * wanted && found_out > wanted / 4, "{steps} steps, {found_out} found out");
}

#[test]
fn three_valued_states() {
    let [p, q] = [0, 1].map(|n| Literal::new(n, true));
    let known = Vector::of(70, [p, q.negated(), Literal::new(69, true)]);
    assert!(known.contains(p) && !known.contains(p.negated()) && !known.contains(q));
    assert_eq!(known.literals().collect::<Vec<_>>(), [p, q.negated(), Literal::new(69, true)]);
    let general = Vector::of(70, [p]);
    assert!(general.covers(&known) && !known.covers(&general));
    assert!(!known.is_contradictory() && Vector::of(70, [p, p.negated()]).is_contradictory());
}

#[test]
fn implications_between_predicates() {
    let x = || Expr::Leaf(0);
    let y = || Expr::Leaf(1);
    let equal = |e, c| Expr::binary(BinaryOp::Eq, e, Expr::Const(c));
    let both = Expr::binary(BinaryOp::And, equal(x(), 0), equal(y(), 1));
    let limits = Limits::default();
    let mut judge = Judge::new(limits.budget());
    let formulas = [equal(x(), 0), equal(x(), 1), equal(y(), 1), both, equal(x(), 0).not()];
    let predicates = formulas.iter().filter_map(Predicate::new);
    let vocabulary = Vocabulary::new(predicates, &mut judge, &limits).expect("there are no limits");
    assert_eq!(vocabulary.len(), 4, "x = 0 and its negation are one predicate");
    let literal = Literal::new;
    let closed = |literals: &[Literal]| {
        let mut vector = Vector::of(4, literals.iter().copied());
        vocabulary.close(&mut vector).then(|| vector.literals().collect::<Vec<_>>())
    };
    assert_eq!(closed(&[literal(0, true)]), Some(vec![literal(0, true), literal(1, false)]));
    assert_eq!(closed(&[literal(0, true), literal(1, true)]), None);
    let all = vec![literal(0, true), literal(1, false), literal(2, true), literal(3, true)];
    assert_eq!(closed(&[literal(0, true), literal(2, true)]), Some(all.clone()), "parts imply the whole");
    assert_eq!(closed(&[literal(3, true)]), Some(all), "the whole implies its parts");
    let rest = vec![literal(0, true), literal(1, false), literal(2, false), literal(3, false)];
    assert_eq!(closed(&[literal(0, true), literal(3, false)]), Some(rest), "what is left of a negated cube");
}
