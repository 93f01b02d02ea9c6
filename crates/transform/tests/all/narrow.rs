//! Narrowed programs against their originals, on random programs that choose, copy, store and compare values. Both reach the same states up to
//! values, with the same truth values of all formulas and the same deadlocks, under every memory model.
//!
//! `FENCEWRIGHT_LONG_TESTS=1` takes 100,000 programs, `FENCEWRIGHT_PROGRAMS=N` takes N.

use std::collections::HashSet;

use fencewright_executions::oracle::explore;
use fencewright_lang::load;
use fencewright_program::reference::{Buffered, holds};
use fencewright_program::{Action, LocationId, MemoryModel, Op, Program, Property, Range, State};
use fencewright_testing::{Random, programs_or};
use fencewright_transform::narrow::narrowed_from;

/// Minimum number of values of a choice that is narrowed.
const WIDE: u64 = 6;
const MOST_STATES: usize = 6_000;

fn constant(random: &mut Random) -> i64 {
    random.between(-1, 4)
}

fn register(random: &mut Random) -> &'static str {
    if random.one_in(2) { "r" } else { "s" }
}

fn variable(random: &mut Random) -> &'static str {
    if random.one_in(2) { "x" } else { "y" }
}

/// A random range of a choice: nearly always wide, often with values below the constants, often different from the range of another choice.
fn range(random: &mut Random) -> String {
    let low = *random.pick(&[0, 0, 0, -2, -3, 1, 2]);
    let size = if random.one_in(12) { 3 } else { 6 + random.below(3) as i64 };
    format!("{low}..{}", low + size)
}

fn compare(random: &mut Random) -> String {
    let operator = *random.pick(&["==", "!=", "==", "!=", "==", "<", ">=", "<=", ">"]);
    let (left, equality) = (register(random), operator.ends_with('=') && !operator.starts_with(['<', '>']));
    match random.below(9) {
        0 | 1 if equality || random.one_in(4) => format!("r {operator} s"),
        2 if equality || random.one_in(4) => format!("{} {operator} {left}", variable(random)),
        3 => left.to_string(),
        4 => format!("!{left}"),
        5 => format!("{} {operator} {left}", constant(random)),
        6 => format!("(r == {} ? s : {left}) {operator} {}", constant(random), constant(random)),
        _ => format!("{left} {operator} {}", constant(random)),
    }
}

/// A use of a value that is not a comparison.
fn used(random: &mut Random) -> String {
    let register = register(random);
    let kinds = if random.one_in(6) { 9 } else { 7 };
    match random.below(kinds) {
        0 => format!("{register} + 1"),
        1 => format!("{register} * {register}"),
        2 => format!("6 / {register}"),
        3 => format!("max({register}, 2)"),
        4 => format!("a[{register}]"),
        5 => format!("-{register} & 3"),
        6 => format!("1 << {register}"),
        7 => "r - s".into(),
        _ => "(r < s) + z".into(),
    }
}

/// Statements about registers r and s and variables x, y, z and a, which use chosen values in every way.
fn statement(random: &mut Random, depth: usize) -> String {
    match random.below(if depth == 0 { 14 } else { 17 }) {
        0..=2 => format!("{} = * in {};", register(random), range(random)),
        3 => format!("{} = * in {};", variable(random), range(random)),
        4 | 5 => format!("{} = {};", variable(random), register(random)),
        6 | 7 => format!("{} = {};", register(random), variable(random)),
        8 => format!("{} = {};", variable(random), constant(random)),
        9 if random.one_in(6) => format!("{} = {};", register(random), used(random)),
        9 => format!("{} = {} ? r : {};", register(random), compare(random), constant(random)),
        10 => format!("assert {} || {};", compare(random), compare(random)),
        // A use of a value that conditions have bounded from both sides.
        11 | 12 => {
            let (from, register, used) = (constant(random), register(random), used(random));
            let to = from + random.between(0, 3);
            let bounds = match random.below(5) {
                0 => format!("{register} >= {from} && {to} > {register}"),
                1 => format!("!({register} < {from} || {register} > {to})"),
                2 => format!("{from} < {register} && !({to} < {register})"),
                3 => format!("{register} == {from}"),
                _ => format!("({register} == {from} || {register} == {to}) && s != 0"),
            };
            match random.below(4) {
                0 => format!("if {bounds} {{ a[{register}] = 1; }}"),
                1 | 2 => format!("if {bounds} {{ {} = {used}; }}", variable(random)),
                _ => format!("assume {bounds}; r = {used};"),
            }
        }
        // A choice within an atomic step, which is disabled for some values.
        13 => {
            let (one, x, y) = (range(random), variable(random), variable(random));
            match random.below(4) {
                0 => "atomic { r = x; s = y; assume r == s || r == 1; }".into(),
                1 => format!("await {x} != 0; atomic {{ s = * in {one}; assume s == {x}; {y} = s; }}"),
                2 => format!("atomic {{ r = * in {one}; s = * in {}; assume r == s; }}", range(random)),
                _ => {
                    let (first, second) = (compare(random), compare(random));
                    format!("atomic {{ r = * in {one}; assume {first}; {x} = r; assert {second}; }}")
                }
            }
        }
        14 => {
            let (then, otherwise) = (statement(random, depth - 1), statement(random, depth - 1));
            format!("if {} {{ {then} }} else {{ {otherwise} }}", compare(random))
        }
        15 => {
            format!("choose {{ {} }} or {{ {} }}", statement(random, depth - 1), statement(random, depth - 1))
        }
        _ if random.one_in(2) => format!("while {} {{ {} }}", compare(random), statement(random, depth - 1)),
        _ => format!("assume {};", compare(random)),
    }
}

/// Properties that observe all registers and variables.
const PROPERTIES: [&str; 9] = [
    "forbid p@end && q@end && p.r == q.s",
    "forbid x == 2 && y == 2 && p@end",
    "forbid x == y && x > 3",
    "finally exists p.r != q.r && p.s == 1",
    "finally forall x != y || p.r <= 2",
    "finally never (x == 1 ? p.r : q.s) == 3",
    "finally exists p.s && !q.r && a[1] == 1",
    "invariant -1 <= y || y != z",
    "forbid p.s < q.r",
];

fn text(seed: u64) -> String {
    let mut random = Random::new(seed);
    let z = *random.pick(&["0", "3", "* in 0..2"]);
    let y = if random.one_in(12) { "y: -3..7" } else { "y" };
    let mut text = format!("shared x = 2, {y}, z = {z}, a[3];\n");
    for name in ["p", "q"] {
        let length = 2 + random.below(2);
        let body: String = (0..length).map(|_| format!("    {}\n", statement(&mut random, 1))).collect();
        let s = if random.one_in(12) { "s: -1..5" } else { "s = 1" };
        text += &format!("thread {name} {{\n    var r, {s};\n{body}}}\n");
    }
    // The last two properties use values other than by comparisons, or compare values that the program does not compare.
    let last = if random.one_in(4) { PROPERTIES.len() } else { PROPERTIES.len() - 2 };
    let chosen = PROPERTIES[..last].iter().filter(|_| random.one_in(3));
    chosen.enumerate().fold(text, |text, (n, property)| {
        let (kind, formula) = property.split_once(' ').expect("a kind and a formula");
        text + &format!("{kind} f{n}: {formula};\n")
    })
}

/// The observable part of a state without values: locations, cells of buffer entries, truth values of formulas, and whether it is a deadlock.
type Seen = (Vec<LocationId>, Vec<Vec<Option<u32>>>, Vec<Option<bool>>, bool);

/// The observable parts of all reachable states of the reference semantics; `None` if there are too many states.
fn seen(program: &Program, model: MemoryModel) -> Option<HashSet<Seen>> {
    let reachable = explore(program, model, MOST_STATES, &mut || false).ok()?;
    let cell = |entry: &Buffered| match entry {
        Buffered::Store { cell, .. } => Some(*cell),
        Buffered::Barrier => None,
    };
    let seen = |state: &State| {
        let buffers = state.buffers.iter().map(|buffer| buffer.iter().map(cell).collect()).collect();
        let formulas = program.properties.iter().filter_map(Property::formula);
        let formulas = formulas.map(|formula| holds(state, formula)).collect();
        (state.locations.clone(), buffers, formulas, reachable.deadlocks.contains(state))
    };
    Some(reachable.states.iter().map(seen).collect())
}

/// The narrowed program with fewer values of one of its choices: without the greatest, without the least, without the upper half.
fn with_less(program: &Program, narrowed: &Program) -> Vec<Program> {
    let missing = |range: Range| {
        let middle = range.low + (range.high - range.low) / 2;
        [(range.low, range.high - 1), (range.low + 1, range.high), (range.low, middle)]
    };
    for (t, (thread, old)) in narrowed.threads.iter().zip(&program.threads).enumerate() {
        for (e, (edge, old)) in thread.edges.iter().zip(&old.edges).enumerate() {
            let Action::Op(Op::Havoc(register, Some(range))) = edge.action else { continue };
            if edge.action != old.action {
                let less = missing(range).map(|(low, high)| {
                    let mut less = narrowed.clone();
                    less.threads[t].edges[e].action =
                        Action::Op(Op::Havoc(register, Some(Range { low, high })));
                    less
                });
                return less.to_vec();
            }
        }
    }
    Vec::new()
}

#[test]
fn narrowed_programs_have_the_same_verdict() {
    let seeds = programs_or(if std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some() { 100_000 } else { 400 });
    let (mut compared, mut noticed) = (0, 0);
    for seed in 0..seeds as u64 {
        let text = text(seed);
        let program = load("random.fw", text.as_bytes(), None, &[]).expect("it can be read").program;
        let Some(mut fewer) = narrowed_from(&program, WIDE) else { continue };
        // When one choice has been narrowed, another choice whose values are compared with its values may become narrowable, so narrowing is
        // repeated.
        while let Some(again) = narrowed_from(&fewer, WIDE) {
            fewer = again;
        }
        for model in MemoryModel::ALL {
            let Some(expected) = seen(&program, model) else { continue };
            let found = seen(&fewer, model).expect("there are fewer states");
            assert_eq!(found, expected, "seed {seed} under {}:\n{text}", model.name());
            compared += 1;
            // With even fewer values the narrowed program sometimes behaves differently, which shows that the kept values are needed.
            let mut less = with_less(&program, &fewer).into_iter().filter_map(|less| seen(&less, model));
            noticed += usize::from(less.any(|found| found != expected));
        }
    }
    println!("{compared} compared, {noticed} noticed");
    assert!(compared > seeds / 10, "only {compared} programs were compared");
    assert!(noticed > compared / 10, "only {noticed} of {compared} programs need their values");
}

/// The ranges of all choices of the narrowed program, `all` for those that are not narrowed; also checks that verdicts agree.
fn ranges(text: &str) -> String {
    let program = load("small.fw", text.as_bytes(), None, &[]).expect("it can be read").program;
    let fewer = narrowed_from(&program, WIDE).unwrap_or_else(|| program.clone());
    for model in MemoryModel::ALL {
        let all = seen(&program, model);
        assert!(all.is_none() || all == seen(&fewer, model), "{}: {text}", model.name());
    }
    let ops = |program: &Program| {
        let edges: Vec<Action> =
            program.threads.iter().flat_map(|t| &t.edges).map(|edge| edge.action.clone()).collect();
        edges.iter().flat_map(|action| action.ops().to_vec()).collect::<Vec<Op>>()
    };
    let range = |(op, old): (Op, Op)| match (&op, &old) {
        (Op::Havoc(_, Some(range)), Op::Havoc(..)) if op != old => {
            Some(format!("{}..{}", range.low, range.high))
        }
        (Op::Havoc(..), _) => Some("all".into()),
        _ => None,
    };
    ops(&fewer).into_iter().zip(ops(&program)).filter_map(range).collect::<Vec<_>>().join(" ")
}

/// One thread with a choice in r, between given statements.
fn one(before: &str, after: &str) -> String {
    ranges(&format!(
        "shared x, y, z = * in 0..9, a[3]; thread p {{ var r, s; {before} r = * in 0..20; {after} }}"
    ))
}

/// Two threads that choose values; one value is copied to the other thread, which then executes `then`.
fn two(first: &str, second: &str, then: &str) -> String {
    ranges(&format!(
        "shared x, y; thread p {{ var r; r = * in {first}; x = r; }} \
         thread q {{ var r, s; r = * in {second}; s = x; {then} }} forbid p.r == q.r && q.r != 0;"
    ))
}

#[test]
fn constants_of_comparisons_are_kept() {
    assert_eq!(one("", "if r == 7 { x = 1; } if r != 5 { y = 1; }"), "5..8");
    assert_eq!(one("", "if r < 7 { x = 1; }"), "6..8");
    assert_eq!(one("", "if r { x = 1; } if !r { y = 1; }"), "0..1");
    assert_eq!(one("", "if r == 7 && r || x { y = 1; }"), "0..8");
    assert_eq!(one("", "if r == 7 { x = 1; } y = r ? 1 : 2; "), "0..8");
    assert_eq!(one("", "if (x == 0 ? r : 4) == 7 || (x == 0 ? 4 : r) == 9 { y = 1; }"), "7..10");
    assert_eq!(one("", "if r == 18 { x = 1; }"), "18..19");
    assert_eq!(one("", "if r == 19 { x = 1; }"), "all");
    assert_eq!(one("", "if r == -3 { x = 1; }"), "all");
    assert_eq!(one("", "if r == 25 { x = 1; }"), "all");
    // The value is compared later: after a store and a load, in a loop, in a property that observes the register, after a fault.
    let later = "shared x, y; thread p { var s; s = y; if s == 7 { x = 1; } } \
                 thread q { var r; loop { choose { y = r; } or { r = * in 0..20; skip; } } }";
    assert_eq!(ranges(later), "7..8");
    assert_eq!(one("loop { if s == 7 { x = 1; } s = r;", "}"), "7..8");
    assert_eq!(one("", "x = r; } forbid x == 7 || p.r == 4; thread q {"), "4..8");
    let fault = "shared x; thread p { var r; atomic { r = * in 0..20; assert x == 0; r = 1; } } \
                 thread q { x = 1; } forbid p.r == 7;";
    assert_eq!(ranges(fault), "7..8");
}

#[test]
fn values_that_are_used_are_kept() {
    for used in ["r + 1", "-r", "a[r]", "r == z", "z != r", "max(r, 3)", "u8(r)"] {
        assert_eq!(one("", &format!("x = {used};")), "all", "{used}");
        assert_eq!(one("", &format!("if r < 3 {{ x = {used}; }}")), "0..4", "{used}");
        assert_eq!(one("", &format!("if 5 < r && !(r > 7) {{ x = {used}; }}")), "4..8", "{used}");
        assert_eq!(one("", &format!("if r == 3 || r == 5 {{ x = {used}; }}")), "3..6", "{used}");
        for open in
            ["r > 3", "3 < r", "!(r <= 3)", "!(r > 3 && s == 0)", "r < 3 || s == 0", "r != 3", "!(r == 3)"]
        {
            assert_eq!(one("", &format!("if {open} {{ x = {used}; }}")), "all", "{open}: {used}");
        }
    }
    assert_eq!(one("", "if x == 0 { assume r < 3; } else { assume r > 5; } y = r + 1;"), "all");
    assert_eq!(one("", "s = r; assume r < 3; y = s + 1;"), "all");
    assert_eq!(one("", "x = r + 1; if r < 3 { y = r + 1; }"), "all");
    assert_eq!(one("s = * in 0..3;", "if r == s { y = 1; }"), "all all");
    assert_eq!(one("", "s = x == 0; if r < s { y = 1; }"), "all");
    assert_eq!(one("", "s = x == 0; if r == 3 || r == 5 { y = s > r; }"), "2..6");
    assert_eq!(one("", "if r == 7 { a[2] = r; } if r < 3 { a[r] = 1; }"), "0..8");
    assert_eq!(one("", "} forbid (p@end) == p.r; thread q {"), "all");
    assert_eq!(one("s = * in 0..20;", "if (r == 7) == s { x = 1; }"), "all 7..8");
    assert_eq!(one("s = * in 0..20;", "if r < s { x = 1; }"), "all all");
    // A value that is checked against a range is used.
    assert_eq!(ranges("shared x: 0..9; thread p { var r; r = * in 0..20; x = r; }"), "all");
    assert_eq!(ranges("shared x; thread p { var r, s: 0..9; r = * in 0..20; s = r; }"), "all");
    // No narrowing over the naturals or reals, at the limits of 64 bits, or with very many constants.
    for numbers in ["nat", "real"] {
        assert_eq!(ranges(&format!("numbers {numbers}; thread p {{ var r; r = *; assume r == 7; }}")), "all");
    }
    for (condition, range) in [
        ("r != 9223372036854775807", "all"),
        ("r != 9223372036854775806", "9223372036854775806..9223372036854775807"),
        ("r >= -9223372036854775807 - 1", "all"),
        ("r >= -9223372036854775807", "-9223372036854775808..-9223372036854775806"),
        ("r == -9223372036854775807 || r != 9223372036854775806", "all"),
    ] {
        assert_eq!(
            ranges(&format!("thread p {{ var r; r = *; assume {condition}; }}")),
            range,
            "{condition}"
        );
    }
    let many = |n: usize| (0..n).map(|n| format!("x = {n}; ")).collect::<String>();
    assert_eq!(one(&many(63), "assume r != 7;"), "7..8");
    assert_eq!(one(&many(63), "assume r != 70;"), "all");
}

#[test]
fn values_that_are_compared_with_each_other_stay_apart() {
    assert_eq!(two("0..20", "0..20", "if r == s { y = 1; }"), "0..1 0..2");
    assert_eq!(two("-9..20", "-9..20", "if r == s { y = 1; } assert s != 5;"), "0..6 0..7");
    assert_eq!(two("-9..20", "-9..20", "if r == s && r < 5 { y = 1; }"), "-1..6 -2..7");
    assert_eq!(two("0..20", "0..30", "if r == s && 5 > s { y = 1; }"), "0..6 0..7");
    // Too few values remain beyond the constants: for all sites, for the first site, for the second site.
    assert_eq!(two("0..8", "0..8", "if r == s && r == 6 { y = 1; }"), "all all");
    assert_eq!(two("0..8", "0..20", "if r == s && r == 6 { y = 1; }"), "all all");
    assert_eq!(two("-1..20", "-9..20", "if r == s && r < 1 { y = 1; }"), "all all");
    // A site that is executed repeatedly chooses more than one value.
    assert_eq!(two("0..20", "0..20", "loop { r = * in 0..20; if r == s { y = 1; } }"), "all all all");
    // A choice within an atomic step may disable the step.
    let waits = |first: &str, second: &str| {
        let p = format!("thread p {{ var r; r = * in {first}; x = r; fence; f = 1; }}");
        let q = format!("thread q {{ var s; await f == 1; atomic {{ s = * in {second}; assume s == x; }} }}");
        (ranges(&format!("shared x, f; {p} {q}")), ranges(&format!("shared x, f; {q} {p}")))
    };
    for (first, second) in [("0..30", "0..20"), ("-9..20", "0..20"), ("0..20", "0..20")] {
        assert_eq!(waits(first, second), ("all all".into(), "all all".into()));
    }
}
