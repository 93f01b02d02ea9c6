//! Adversarial problems: huge numbers, deep formulas, searches without end, broken proofs.

use fencewright_smt::interpolate::{Failure, interpolants};
use fencewright_smt::proof::{Branch, Step};
use fencewright_smt::z3::Z3;
use fencewright_smt::{
    Answer, Budget, Formula, Int, Linear, Native, Proof, Reason, Solver, Stop, Tiered, Var, verify,
};
use fencewright_testing::corpora::tell_skipped;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Decides with both procedures and checks the evidence.
fn check(assertions: &[Formula], satisfiable: bool) {
    for mut solver in [Native::new(), Native::simplex_only()] {
        match solver.check(assertions, &Budget::default()) {
            Answer::Sat(model) => {
                assert!(satisfiable, "{assertions:?}");
                assert!(
                    assertions.iter().all(|assertion| model.satisfies(assertion)),
                    "{assertions:?} {model:?}"
                );
            }
            Answer::Unsat(refutation) => {
                assert!(!satisfiable, "{assertions:?}");
                assert!(verify(assertions, &refutation.proof), "{assertions:?} {:?}", refutation.proof);
            }
            other => panic!("{assertions:?}: {other:?}"),
        }
    }
}

fn times(factor: &Int, var: Var) -> Linear {
    Linear::from(var).times(factor)
}

#[test]
fn nothing_to_decide() {
    check(&[], true);
    check(&[Formula::True], true);
    check(&[Formula::True, Formula::False], false);
    check(
        &[
            Formula::le(Var(0), 0),
            Formula::False,
            Formula::or([Formula::eq(Var(1), 1), Formula::eq(Var(2), 1)]),
        ],
        false,
    );
    check(&[Formula::eq(Var(u32::MAX), 3), Formula::le(Var(u32::MAX), Var(0))], true);
}

#[test]
fn numbers_grow_beyond_machine_words() {
    let (x, y, z) = (Var(0), Var(1), Var(2));
    let huge = Int::from(i64::MAX);
    let wide = &(&huge * &huge) * &huge;
    // y = huge * x, z = huge * y, and so z = huge^2 * x.
    let chain = [Formula::eq(y, times(&huge, x)), Formula::eq(z, times(&huge, y)), Formula::le(1, x)];
    let with = |last: Formula| [chain.as_slice(), &[last]].concat();
    check(&with(Formula::le(z, Linear::constant(&huge * &huge))), true);
    check(&with(Formula::lt(z, Linear::constant(&huge * &huge))), false);
    check(
        &[Formula::le(Linear::constant(wide.clone()), x), Formula::lt(x, Linear::constant(wide.clone()))],
        false,
    );
    check(&[Formula::le(Linear::constant(wide.clone()), x), Formula::lt(x, y), Formula::lt(y, z)], true);
    // Differences whose constants are the extreme 64-bit values.
    for bound in [i64::MAX, i64::MIN, i64::MIN + 1] {
        check(
            &[Formula::le(x, bound), Formula::le(Linear::from(y).plus(bound), x), Formula::le(1, y)],
            false,
        );
        check(&[Formula::le(x, bound), Formula::le(Linear::from(y).plus(bound), x), Formula::le(0, y)], true);
    }
    // Large prime factors: p*(x - z) = q*y forces y to be a multiple of p.
    let (p, q) = (Int::from(1_000_000_007), Int::from(998_244_353));
    let multiple = Formula::eq(times(&p, x) - times(&p, z), times(&q, y));
    check(&[multiple.clone(), Formula::eq(y, Linear::from(x) - times(&q, z)), Formula::eq(x, 0)], true);
    check(&[multiple, Formula::eq(Linear::from(x) - Linear::from(z), 1)], false);
}

#[test]
fn equations_without_integer_solution_are_refuted() {
    let (x, y, a, b) = (Var(0), Var(1), Var(2), Var(3));
    let sum = Linear::from(x) + Linear::from(y);
    let difference = Linear::from(x) - Linear::from(y);
    let even = Formula::eq(sum, times(&Int::from(2), a));
    let odd = Formula::eq(difference, times(&Int::from(2), b).plus(1));
    check(&[even.clone(), odd.clone()], false);
    check(&[even, Formula::eq(times(&Int::from(2), b), 4)], true);
    // Three equations modulo 3 and 5.
    let three = Formula::eq(x, times(&Int::from(3), a).plus(1));
    let fifteen = Formula::eq(Linear::from(x) + Linear::from(y), times(&Int::from(15), b));
    let y_is_one = Formula::eq(y, times(&Int::from(3), Var(4)).plus(1));
    check(&[three, fifteen, y_is_one], false);
}

/// In these problems the factors of the multiples are unbounded, and cuts at single variables never refute them.
#[test]
fn residues_and_inequalities_are_refuted() {
    let [x, y, p, q, r] = [0, 1, 2, 3, 4].map(Var);
    let multiple = |m: i64, var, rest: i64| times(&Int::from(m), var).plus(rest);
    for m in [2, 3, 7, 64] {
        let even = [Formula::eq(x, multiple(m, p, 0)), Formula::eq(y, multiple(m, q, 1))];
        let between = |low: i64, high: i64| {
            let difference = Linear::from(x) - Linear::from(y);
            [Formula::le(low, difference.clone()), Formula::le(difference, high)]
        };
        check(&[even.as_slice(), &between(0, m - 2)].concat(), false);
        check(&[even.as_slice(), &between(0, m - 1)].concat(), true);
        // A number that is not a multiple of m: m times some number plus a remainder.
        let no_multiple =
            [Formula::eq(x, Linear::from(r) + multiple(m, q, 0)), Formula::le(1, r), Formula::le(r, m - 1)];
        check(&[&even[..1], &no_multiple].concat(), false);
        let next = Formula::eq(Linear::from(y), Linear::from(x).plus(m));
        let multiple = Formula::eq(y, multiple(m, Var(5), 0));
        check(&[&no_multiple[..], &[next.clone(), multiple]].concat(), false);
        check(&[&no_multiple[..], &[next]].concat(), true);
        // The remainder y is fixed by its bounds.
        let sum =
            Formula::eq(Linear::from(y) + times(&Int::from(m), p), Linear::from(r) + times(&Int::from(m), q));
        let bounds = [Formula::le(0, y), Formula::le(y, 0), Formula::le(1, r), Formula::le(r, m - 1)];
        check(&[&bounds[..], &[sum]].concat(), false);
    }
}

#[test]
fn deep_formulas_are_decided() {
    // Alternating and, or: x = 0 and (x = 1 or (x <= 1 and (x = 2 or ...))), with false at the bottom.
    let x = Var(0);
    let mut formula = Formula::eq(x, -1);
    for level in (0..400).rev() {
        formula = Formula::or([Formula::eq(x, level + 1), Formula::and([Formula::le(x, level), formula])]);
    }
    check(&[Formula::eq(x, 0), formula.clone()], false);
    check(&[Formula::eq(x, -1), formula], true);
}

#[test]
fn long_lists_are_decided() {
    let x = Var(0);
    let differences: Vec<Formula> = (0..4_000).map(|value| Formula::ne(x, value)).collect();
    check(&[Formula::and(differences.clone()), Formula::le(2_000, x)], true);
    check(&[Formula::and(differences[..300].to_vec()), Formula::le(0, x), Formula::lt(x, 300)], false);
    let chain: Vec<Formula> = (0..300).map(|var| Formula::lt(Var(var), Var(var + 1))).collect();
    check(&chain, true);
    check(&[chain, vec![Formula::lt(Var(300), Var(0))]].concat(), false);
}

/// The pigeonhole principle: exponential for case splitting.
fn pigeons(count: u32) -> Vec<Formula> {
    let mut assertions: Vec<Formula> = (0..count)
        .flat_map(|var| [Formula::le(0, Var(var)), Formula::le(Var(var), i64::from(count) - 2)])
        .collect();
    for left in 0..count {
        assertions.extend((0..left).map(|right| Formula::ne(Var(left), Var(right))));
    }
    assertions
}

#[test]
fn every_budget_ends_a_search() {
    check(&pigeons(5), false);
    let hard = pigeons(14);
    let verdict = |budget: &Budget| match Native::new().check(&hard, budget) {
        Answer::Unknown(reason) => reason,
        other => panic!("{other:?}"),
    };
    let started = Instant::now();
    assert_eq!(verdict(&Budget { steps: 1_000, ..Budget::default() }), Reason::Steps);
    let deadline = Some(Instant::now() + Duration::from_millis(50));
    assert_eq!(verdict(&Budget { steps: u64::MAX, deadline, ..Budget::default() }), Reason::Deadline);
    let flag = Arc::new(AtomicBool::new(false));
    let setter = {
        let flag = Arc::clone(&flag);
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            flag.store(true, Ordering::Relaxed);
        })
    };
    let stop: Stop = Arc::new(move || flag.load(Ordering::Relaxed));
    assert_eq!(
        verdict(&Budget { steps: u64::MAX, stop: Some(stop), ..Budget::default() }),
        Reason::Cancelled
    );
    setter.join().unwrap();
    assert!(started.elapsed() < Duration::from_secs(10));
    // A strip without integer points and without bounds.
    let strip = Linear::sum([(3, Var(0)), (-3, Var(1)), (1, Var(2))], 0);
    let endless = [
        Formula::le(1, strip.clone()),
        Formula::le(strip, 2),
        Formula::eq(Var(2), Linear::sum([(3, Var(3))], 0)),
    ];
    match Native::new().check(&endless, &Budget { steps: 2_000, ..Budget::default() }) {
        Answer::Unknown(Reason::Steps) => {}
        Answer::Unsat(refutation) => assert!(verify(&endless, &refutation.proof)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn broken_proofs_are_rejected() {
    let x = Var(0);
    let assertions = [Formula::or([Formula::le(x, 0), Formula::le(2, x)]), Formula::eq(x, 1)];
    let leaf = |first: i64, other: i64| Step::Farkas(vec![(2, Int::from(first)), (1, Int::from(other))]);
    let split = |branches: &[(u32, usize)]| Step::Split {
        fact: 0,
        branches: branches.iter().map(|(first, step)| Branch { first: *first, step: *step }).collect(),
    };
    let accepted = |steps: Vec<Step>| verify(&assertions, &Proof { steps });
    assert!(accepted(vec![leaf(1, -1), leaf(1, 1), split(&[(2, 0), (2, 1)])]));
    assert!(!accepted(vec![]), "nothing is no proof");
    assert!(!accepted(vec![split(&[])]), "cases are missing");
    assert!(!accepted(vec![leaf(1, -1), split(&[(2, 0)])]), "a case is missing");
    assert!(!accepted(vec![leaf(1, -1), split(&[(2, 0), (2, 0)])]), "a step is used twice");
    assert!(!accepted(vec![split(&[(2, 0), (3, 0)])]), "a step uses itself");
    assert!(
        !accepted(vec![leaf(1, -1), leaf(1, 1), split(&[(1, 0), (2, 1)])]),
        "a number changes its meaning"
    );
    assert!(
        !accepted(vec![leaf(1, -1), leaf(1, 1), split(&[(2, 0), (u32::MAX, 1)])]),
        "the number is another"
    );
    assert!(!accepted(vec![leaf(1, 1), leaf(1, 1), split(&[(2, 0), (2, 1)])]), "the sum is no contradiction");
    assert!(!accepted(vec![leaf(-1, 1), leaf(1, 1), split(&[(2, 0), (2, 1)])]), "an inequality times -1");
    assert!(!accepted(vec![leaf(1, -1), leaf(1, 1), split(&[(2, 0), (2, 7)])]), "there is no such step");
    assert!(!accepted(vec![Step::Gcd(vec![(1, Int::ONE)])]), "one divides everything");
    assert!(!accepted(vec![Step::Farkas(vec![(9, Int::ONE)])]), "there is no such fact");
    assert!(!accepted(vec![Step::Farkas(vec![])]), "zero is at most zero");
    // A fact of one case is out of scope in the other case.
    let stray = Step::Farkas(vec![(2, Int::ONE), (1, Int::from(-1))]);
    assert!(!accepted(vec![stray.clone(), stray, split(&[(2, 0), (3, 1)])]));
}

#[test]
fn unsupported_interpolation_is_reported() {
    let (x, a, b) = (Var(0), Var(1), Var(2));
    // x is even, x is odd: no interpolant without divisibility.
    let assertions =
        [Formula::eq(x, times(&Int::from(2), a)), Formula::eq(x, times(&Int::from(2), b).plus(1))];
    let mut solver = Native::new();
    let Answer::Unsat(refutation) = solver.check(&assertions, &Budget::default()) else {
        panic!("satisfiable")
    };
    let found = interpolants(&mut solver, &assertions, &refutation.proof, &Budget::default());
    assert_eq!(found, Err(Failure::Mixed));
    // The proof refutes other assertions.
    let other = [Formula::le(x, 0), Formula::le(x, 5)];
    assert!(interpolants(&mut solver, &other, &refutation.proof, &Budget::default()).is_err());
    assert!(interpolants(&mut solver, &[], &Proof { steps: vec![] }, &Budget::default()).is_err());
    // One assertion has no cuts.
    let Answer::Unsat(refutation) = solver.check(&[Formula::False], &Budget::default()) else {
        panic!("satisfiable")
    };
    assert_eq!(
        interpolants(&mut solver, &[Formula::False], &refutation.proof, &Budget::default()),
        Ok(vec![])
    );
}

#[test]
fn z3_survives_and_keeps_its_limits() {
    let Some(mut z3) = Z3::find() else {
        tell_skipped(
            "z3_survives_and_keeps_its_limits",
            "no Z3 found (set FENCEWRIGHT_Z3 or put z3 on the search path)",
        );
        return;
    };
    let easy = [Formula::eq(Var(0), -7)];
    assert!(z3.check(&easy, &Budget::default()).is_sat());
    assert!(matches!(z3.check(&[Formula::False], &Budget::default()), Answer::UnsatUnproved));
    // A cancelled or late query ends the process; the solver still answers the next query.
    let cancelled = Budget { stop: Some(Arc::new(|| true)), ..Budget::default() };
    assert!(matches!(z3.check(&easy, &cancelled), Answer::Unknown(Reason::Cancelled)));
    assert!(z3.check(&easy, &Budget::default()).is_sat());
    let late = Budget { deadline: Some(Instant::now()), ..Budget::default() };
    assert!(matches!(z3.check(&easy, &late), Answer::Unknown(Reason::Deadline)));
    assert!(z3.check(&easy, &Budget::default()).is_sat());
}

/// When the native solver gives up, an external one is used; here it is a script that has a single answer.
#[cfg(unix)]
#[test]
fn another_solver_is_asked_when_the_budget_ends() {
    use std::os::unix::fs::PermissionsExt;
    let directory = std::env::temp_dir().join(format!("fencewright-tiers-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a temporary directory");
    // Refuting this takes a case split.
    let (x, y) = (Var(0), Var(1));
    let either = Formula::or([Formula::le(x, 0), Formula::le(y, 0)]);
    let question = [Formula::le(1, x), Formula::le(1, y), either];
    let one_step = Budget { steps: 1, ..Budget::default() };
    for (word, expected) in [("unsat", "UnsatUnproved"), ("no idea", "External(\"no idea\")")] {
        let script = directory.join(word.replace(' ', "-"));
        let text = format!(
            "#!/bin/sh\nn=0\nwhile read line; do case \"$line\" in\n\
             \"(check-sat)\"*) n=$((n+1)); if [ $n = 1 ]; then echo sat; else echo {word}; fi;;\n\
             *echo*) m=${{line#*\\\"}}; echo \"${{m%%\\\"*}}\";;\nesac; done\n"
        );
        std::fs::write(&script, text).expect("writable");
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("executable");
        let z3 = Z3::at(&script).expect("the script answers");
        let mut solver = Tiered::with(Some(z3));
        assert!(solver.check(&question, &Budget::default()).is_unsat(), "not asked");
        let answer = format!("{:?}", solver.check(&question, &one_step));
        assert!(answer.contains(expected), "{word}: {answer}");
        let alone = Budget { external: false, ..one_step.clone() };
        assert!(matches!(solver.check(&question, &alone), Answer::Unknown(Reason::Steps)), "{word}");
    }
    assert!(matches!(Tiered::with(None).check(&question, &one_step), Answer::Unknown(Reason::Steps)));
    let _ = std::fs::remove_dir_all(&directory);
}
