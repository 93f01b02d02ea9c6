//! Measures the time of typical queries: `cargo run --release -p fencewright-smt --example timings`.

#[path = "../tests/all/xorshift.rs"]
mod xorshift;

use fencewright_smt::difference::{Differences, Source};
use fencewright_smt::interpolate::interpolants;
use fencewright_smt::{Answer, Budget, Formula, Int, Linear, Native, Solver, Var, verify};
use std::hint::black_box;
use std::time::{Duration, Instant};
use xorshift::Random;

fn report(what: &str, total: Duration, count: u32) {
    println!("{what:60} {:>10.3} us", total.as_secs_f64() * 1e6 / f64::from(count));
}

fn matrix(random: &mut Random) {
    let nodes = 17;
    let mut adds = 0;
    let mut total = Duration::ZERO;
    for _ in 0..2_000 {
        let mut matrix = Differences::new(nodes);
        let constraints: Vec<(usize, usize, i64)> = (0..60)
            .map(|_| (random.below(17) as usize, random.below(17) as usize, random.below(20) as i64 - 4))
            .collect();
        let start = Instant::now();
        for (left, right, bound) in &constraints {
            let mark = matrix.mark();
            if matrix.add(*left, *right, *bound, Source::default()).is_err() {
                matrix.undo(mark);
            }
        }
        total += start.elapsed();
        adds += 60;
        black_box(matrix.bound(1, 2));
    }
    report("bound matrix, 17 nodes: add one constraint", total, adds);
}

/// Ten atoms over six variables and a conclusion.
fn entailment(random: &mut Random, linear: bool) -> (Vec<Formula>, Formula) {
    let mut atom = || {
        let (left, right) = (Var(random.below(6) as u32), Var(random.below(6) as u32));
        let factor = Int::from(if linear { 1 + random.below(3) as i64 } else { 1 });
        Formula::le(Linear::from(left).times(&factor), Linear::from(right).plus(random.below(12) as i64 - 4))
    };
    ((0..10).map(|_| atom()).collect(), atom())
}

fn entailments(random: &mut Random, solver: &mut Native, what: &str, linear: bool) {
    let problems: Vec<_> = (0..2_000).map(|_| entailment(random, linear)).collect();
    let start = Instant::now();
    for (hypotheses, conclusion) in &problems {
        black_box(solver.entails(hypotheses, conclusion, &Budget::default()));
    }
    report(what, start.elapsed(), 2_000);
}

/// Thirty steps over twelve integers, two or three atoms a step.
fn execution(random: &mut Random, linear: bool) -> Vec<Formula> {
    let mut current: Vec<Var> = (0..12).map(Var).collect();
    let mut next = 12;
    let mut step = || {
        let mut parts = Vec::new();
        for _ in 0..2 + random.below(2) {
            let (left, right) = (random.below(12) as usize, random.below(12) as usize);
            let other = Linear::from(current[right]).plus(random.below(7) as i64 - 3);
            if random.below(2) == 0 {
                let old = std::mem::replace(&mut current[left], Var(next));
                next += 1;
                let value = if linear && random.below(2) == 0 { other + Linear::from(old) } else { other };
                parts.push(Formula::eq(current[left], value));
            } else if random.below(6) == 0 {
                parts.push(Formula::ne(current[left], other));
            } else {
                parts.push(Formula::le(current[left], other));
            }
        }
        Formula::and(parts)
    };
    (0..30).map(|_| step()).collect()
}

fn executions(random: &mut Random, solver: &mut Native, what: &str, linear: bool) {
    let (mut solving, mut interpolating, mut verifying) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let (mut infeasible, mut failed, mut unknown) = (0, 0, 0);
    for _ in 0..2_000 {
        let assertions = execution(random, linear);
        let start = Instant::now();
        let answer = solver.check(&assertions, &Budget::default());
        solving += start.elapsed();
        unknown += u32::from(matches!(answer, Answer::Unknown(_)));
        let Answer::Unsat(refutation) = answer else { continue };
        infeasible += 1;
        let start = Instant::now();
        assert!(verify(&assertions, &refutation.proof));
        verifying += start.elapsed();
        let start = Instant::now();
        failed +=
            u32::from(interpolants(solver, &assertions, &refutation.proof, &Budget::default()).is_err());
        interpolating += start.elapsed();
    }
    report(&format!("{what}: decide"), solving, 2_000);
    report(&format!("{what}: verify the proof"), verifying, infeasible);
    report(&format!("{what}: interpolate and check"), interpolating, infeasible);
    println!("    {infeasible} infeasible, {failed} without interpolants, {unknown} unknown");
}

fn main() {
    let mut random = Random(5);
    let mut solver = Native::new();
    let mut simplex = Native::simplex_only();
    matrix(&mut random);
    entailments(&mut random, &mut solver, "entailment, 10 differences, matrix", false);
    entailments(&mut random, &mut simplex, "entailment, 10 differences, simplex", false);
    entailments(&mut random, &mut solver, "entailment, 10 linear atoms", true);
    executions(&mut random, &mut solver, "30 steps, 12 integers, differences, matrix", false);
    executions(&mut random, &mut simplex, "30 steps, 12 integers, differences, simplex", false);
    executions(&mut random, &mut solver, "30 steps, 12 integers, linear", true);
}
