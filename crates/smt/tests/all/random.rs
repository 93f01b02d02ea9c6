//! Random problems: answers are compared with enumeration (and with Z3 if it is there), and every answer's evidence is
//! checked: models are evaluated, proofs verified, interpolants confirmed.

use fencewright_smt::interpolate::{Failure, check_interpolants, interpolants};
use fencewright_smt::proof::Step;
use fencewright_smt::z3::Z3;
use fencewright_smt::{Answer, Budget, Formula, Int, Linear, Native, Proof, Relation, Solver, Var, verify};
use fencewright_testing::corpora::tell_skipped;

use crate::xorshift::Random;

impl Random {
    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64) as i64
    }

    fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }
}

/// The number of repetitions and the seed: more repetitions, with other problems, in long tests.
fn rounds(usual: u64) -> (u64, u64) {
    match std::env::var("FENCEWRIGHT_LONG_TESTS") {
        Ok(seed) if seed != "0" => (usual * 40, seed.parse().unwrap_or(1)),
        _ => (usual, 0),
    }
}

/// The shape of a random problem.
#[derive(Clone, Copy)]
struct Shape {
    variables: u64,
    coefficient: i64,
    constant: i64,
    differences: bool,
}

fn atom(random: &mut Random, shape: Shape) -> Formula {
    let relation = random.pick(&[Relation::Le, Relation::Le, Relation::Le, Relation::Eq, Relation::Ne]);
    let variable = |random: &mut Random| Var(random.below(shape.variables) as u32);
    let terms: Vec<(i64, Var)> = if shape.differences {
        let (left, right) = (variable(random), variable(random));
        match random.below(4) {
            0 => vec![(1, left)],
            1 => vec![(-1, left)],
            _ => vec![(1, left), (-1, right)],
        }
    } else {
        (0..1 + random.below(3))
            .map(|_| (random.between(-shape.coefficient, shape.coefficient), variable(random)))
            .collect()
    };
    Formula::atom(Linear::sum(terms, random.between(-shape.constant, shape.constant)), relation)
}

fn formula(random: &mut Random, shape: Shape, depth: u32) -> Formula {
    if depth == 0 || random.below(3) == 0 {
        return atom(random, shape);
    }
    let parts: Vec<Formula> = (0..2 + random.below(2)).map(|_| formula(random, shape, depth - 1)).collect();
    let whole = if random.below(2) == 0 { Formula::and(parts) } else { Formula::or(parts) };
    if random.below(4) == 0 { !whole } else { whole }
}

fn boxed(shape: Shape, size: i64) -> Vec<Formula> {
    (0..shape.variables as u32)
        .flat_map(|var| [Formula::le(Var(var), size), Formula::le(-size, Var(var))])
        .collect()
}

/// Whether there is a solution with all variables within the box, by enumeration.
fn enumerate(assertions: &[Formula], variables: u64, size: i64) -> bool {
    let mut values = vec![-size; variables as usize];
    loop {
        if assertions.iter().all(|f| f.evaluate(&|var| Int::from(values[var.0 as usize]))) {
            return true;
        }
        let Some(place) = values.iter().position(|value| *value < size) else { return false };
        values[place] += 1;
        values[..place].fill(-size);
    }
}

/// The answer as a truth value, after checking its evidence; `None` for unknown.
fn decided(assertions: &[Formula], answer: &Answer) -> Option<bool> {
    match answer {
        Answer::Sat(model) => {
            for assertion in assertions {
                assert!(model.satisfies(assertion), "{assertion} is false in {model:?}");
            }
            Some(true)
        }
        Answer::Unsat(refutation) => {
            assert!(verify(assertions, &refutation.proof), "{assertions:?}\n{:#?}", refutation.proof);
            let core: Vec<Formula> = refutation.core.iter().map(|index| assertions[*index].clone()).collect();
            let again = Native::new().check(&core, &Budget::default());
            assert!(!again.is_sat(), "the core {core:?} is satisfiable");
            Some(false)
        }
        Answer::UnsatUnproved => Some(false),
        Answer::Unknown(_) => None,
    }
}

#[test]
fn answers_agree_with_enumeration_on_small_boxes() {
    let (rounds, seed) = rounds(6000);
    let mut random = Random(7 + seed);
    let mut seen = [0; 2];
    for round in 0..rounds {
        let variables = 1 + random.below(3);
        let shape = Shape { variables, coefficient: 3, constant: 8, differences: round % 2 == 0 };
        let mut assertions = boxed(shape, 4);
        for _ in 0..1 + random.below(5) {
            let depth = random.below(3) as u32;
            assertions.push(formula(&mut random, shape, depth));
        }
        let expected = enumerate(&assertions, variables, 4);
        for mut solver in [Native::new(), Native::simplex_only()] {
            let answer = solver.check(&assertions, &Budget::default());
            assert_eq!(decided(&assertions, &answer), Some(expected), "{assertions:?}");
        }
        seen[usize::from(expected)] += 1;
    }
    assert!(seen[0] > 1000 && seen[1] > 1000, "the problems are one-sided: {seen:?}");
}

#[test]
fn conjunctions_without_bounds_agree_with_z3() {
    let Some(mut z3) = Z3::find() else {
        tell_skipped(
            "conjunctions_without_bounds_agree_with_z3",
            "no Z3 found (set FENCEWRIGHT_Z3 or put z3 on the search path)",
        );
        return;
    };
    let (rounds, seed) = rounds(4000);
    let mut random = Random(99 + seed);
    let mut unknown = 0;
    for round in 0..rounds {
        let shape = Shape {
            variables: 2 + random.below(6),
            coefficient: random.pick(&[1, 2, 5, 100]),
            constant: random.pick(&[3, 20, 1000]),
            differences: round % 3 == 0,
        };
        let assertions: Vec<Formula> = (0..2 + random.below(12))
            .map(|_| {
                let depth = random.pick(&[0, 0, 0, 1, 2]);
                formula(&mut random, shape, depth)
            })
            .collect();
        let budget = Budget { steps: 5_000, ..Budget::default() };
        let ours = decided(&assertions, &Native::new().check(&assertions, &budget));
        let theirs = decided(&assertions, &z3.check(&assertions, &Budget::default()));
        match (ours, theirs) {
            (Some(ours), Some(theirs)) => assert_eq!(ours, theirs, "{assertions:?}"),
            _ => unknown += 1,
        }
    }
    println!("{unknown} of {rounds} without an answer");
    assert!(unknown < rounds / 100, "{unknown} unknown");
}

/// An execution: each step assigns one of the variables or tests some, in single-assignment form.
fn execution(random: &mut Random, steps: usize, integers: usize, linear: bool) -> Vec<Formula> {
    let mut current: Vec<Var> = (0..integers as u32).map(Var).collect();
    let mut next = integers as u32;
    let mut assertions = Vec::new();
    for _ in 0..steps {
        let mut parts = Vec::new();
        for _ in 0..1 + random.below(3) {
            let (left, right) =
                (random.below(integers as u64) as usize, random.below(integers as u64) as usize);
            let offset = random.between(-3, 3);
            let other = Linear::from(current[right]).times(&Int::from(if linear {
                random.between(-2, 2)
            } else {
                1
            }));
            match random.below(5) {
                0 | 1 => {
                    let old = std::mem::replace(&mut current[left], Var(next));
                    next += 1;
                    let value =
                        if linear && random.below(2) == 0 { other + Linear::from(old) } else { other };
                    parts.push(Formula::eq(current[left], value.plus(offset)));
                }
                2 => parts.push(Formula::le(current[left], other.plus(offset))),
                3 => parts.push(Formula::ne(current[left], other.plus(offset))),
                _ => parts.push(Formula::or([
                    Formula::lt(current[left], other.clone().plus(offset)),
                    Formula::eq(current[right], offset),
                ])),
            }
        }
        assertions.push(Formula::and(parts));
    }
    assertions
}

#[test]
fn infeasible_executions_have_interpolants() {
    let (rounds, seed) = rounds(4000);
    let mut random = Random(3 + seed);
    let mut solver = Native::new();
    let (mut infeasible, mut failed) = (0, 0);
    for round in 0..rounds {
        let steps = 2 + random.below(20) as usize;
        let integers = 2 + random.below(4) as usize;
        let assertions = execution(&mut random, steps, integers, round % 2 == 0);
        let answer = solver.check(&assertions, &Budget::default());
        decided(&assertions, &answer);
        let Answer::Unsat(refutation) = answer else { continue };
        infeasible += 1;
        match interpolants(&mut solver, &assertions, &refutation.proof, &Budget::default()) {
            Ok(sequence) => assert_eq!(sequence.len() + 1, assertions.len()),
            Err(failure) => {
                // Failures are allowed only for the documented gap: an integer argument over several steps.
                assert_eq!(failure, Failure::Mixed, "{assertions:?} {:#?}", refutation.proof);
                failed += 1;
            }
        }
    }
    assert!(infeasible > 1000, "{infeasible}");
    assert!(failed * 100 < infeasible, "{failed} of {infeasible} failed");
}

#[test]
fn wrong_interpolants_are_noticed() {
    let (x, y, z) = (Var(0), Var(1), Var(2));
    let assertions = [Formula::eq(x, 1), Formula::eq(y, Linear::from(x).plus(1)), Formula::le(y, 1)];
    let check = |sequence: &[Formula]| {
        check_interpolants(&mut Native::new(), &assertions, sequence, &Budget::default())
    };
    assert!(check(&[Formula::le(1, x), Formula::le(2, y)]));
    assert!(!check(&[Formula::le(2, x), Formula::le(2, y)]), "the first does not follow");
    assert!(!check(&[Formula::le(0, x), Formula::le(2, y)]), "the second does not follow");
    assert!(!check(&[Formula::le(1, x), Formula::le(1, y)]), "the last does not contradict");
    assert!(
        !check(&[Formula::le(1, x), Formula::and([Formula::le(2, y), Formula::le(1, x)])]),
        "x is not shared"
    );
    assert!(
        !check(&[Formula::and([Formula::le(1, x), Formula::eq(z, 0)]), Formula::le(2, y)]),
        "z is nowhere"
    );
    assert!(!check(&[Formula::le(1, x)]), "too short");
}

/// Makes one random change to a proof.
fn mutate(random: &mut Random, proof: &mut Proof) -> bool {
    let count = proof.steps.len() as u64;
    let place = random.below(count) as usize;
    let bump = |random: &mut Random, value: u32| value.wrapping_add(random.pick(&[1, 2, u32::MAX]));
    match &mut proof.steps[place] {
        Step::Farkas(sum) | Step::Gcd(sum) if !sum.is_empty() => {
            let index = random.below(sum.len() as u64) as usize;
            match random.below(4) {
                0 => sum[index].1 = &sum[index].1 + &Int::from(random.pick(&[-1, 1, 2])),
                1 => sum[index].0 = bump(random, sum[index].0),
                2 => sum[index].1 = -&sum[index].1,
                _ => drop(sum.remove(index)),
            }
        }
        Step::Split { branches, .. } if !branches.is_empty() => {
            let index = random.below(branches.len() as u64) as usize;
            match random.below(4) {
                0 => drop(branches.remove(index)),
                1 => branches[index].step = random.below(count + 1) as usize,
                2 => branches[index].first = bump(random, branches[index].first),
                _ => branches.push(branches[index].clone()),
            }
        }
        Step::Split { fact, .. } => *fact = bump(random, *fact),
        Step::Cut { term, branches } => match random.below(2) {
            0 => term.constant = &term.constant + &Int::from(random.pick(&[-1, 1])),
            _ => branches.swap(0, 1),
        },
        _ => return false,
    }
    true
}

#[test]
fn damaged_proofs_never_refute_satisfiable_formulas() {
    let (rounds, seed) = rounds(3000);
    let mut random = Random(21 + seed);
    let (mut accepted, mut rejected) = (0, 0);
    for round in 0..rounds {
        let shape = Shape { variables: 3, coefficient: 3, constant: 6, differences: round % 2 == 0 };
        let mut assertions = boxed(shape, 3);
        assertions.extend((0..4).map(|_| formula(&mut random, shape, 2)));
        let Answer::Unsat(refutation) = Native::new().check(&assertions, &Budget::default()) else {
            continue;
        };
        for _ in 0..10 {
            let mut proof = refutation.proof.clone();
            if mutate(&mut random, &mut proof) && proof != refutation.proof {
                *(if verify(&assertions, &proof) { &mut accepted } else { &mut rejected }) += 1;
            }
        }
        // No proof, damaged or not, refutes a satisfiable problem. Dropping one assertion of the core may make this problem satisfiable.
        for index in &refutation.core {
            let mut weaker = assertions.clone();
            weaker[*index] = Formula::True;
            if enumerate(&weaker, 3, 5) {
                assert!(!verify(&weaker, &refutation.proof));
                for _ in 0..10 {
                    let mut proof = refutation.proof.clone();
                    mutate(&mut random, &mut proof);
                    assert!(!verify(&weaker, &proof), "{weaker:?} {proof:?}");
                }
            }
        }
    }
    // A change may yield another correct proof (a larger factor on an equality that cancels, say), but rarely.
    assert!(rejected > 3000 && accepted * 5 < rejected, "{accepted} accepted, {rejected} rejected");
}
