//! Programs with fewer values decide what the programs do: on random programs that choose, copy, store and compare, every property has
//! the same verdict in both, under every memory model.
//!
//! `FENCEWRIGHT_LONG_TESTS=1` takes 100,000 programs.

use fencewright_executions::oracle::explore;
use fencewright_lang::load;
use fencewright_program::{Action, MemoryModel, Op, Program, Range};
use fencewright_testing::Random;
use fencewright_transform::narrow::narrowed_from;

/// Choices have at least so many values.
const WIDE: u64 = 6;
const MOST_STATES: usize = 6_000;

/// Statements about registers r and s and variables x and y, in which choices are used in every way.
fn statement(random: &mut Random, depth: usize) -> String {
    let constant = |random: &mut Random| random.below(3) as i64 + 1;
    let register = |random: &mut Random| if random.one_in(2) { "r" } else { "s" };
    let variable = |random: &mut Random| if random.one_in(2) { "x" } else { "y" };
    let compare = |random: &mut Random| {
        let operators = ["==", "!=", "==", "!=", "<", ">="];
        let operator = operators[random.below(operators.len())];
        let left = register(random);
        match random.below(4) {
            0 if !operator.starts_with(['<', '>']) => format!("r {operator} s"),
            1 => left.to_string(),
            _ => format!("{left} {operator} {}", constant(random)),
        }
    };
    match random.below(if depth == 0 { 10 } else { 12 }) {
        9 => {
            // Used where it has bounds.
            let (from, to, register) = (constant(random), constant(random) + 2, register(random));
            let used = [format!("{register} + 1"), format!("{register} * {register}"), "r - s".into()];
            let kinds = if random.one_in(8) { 3 } else { 2 };
            let used = &used[random.below(kinds)];
            let bounds = match random.below(3) {
                0 => format!("{register} >= {from} && {to} > {register}"),
                1 => format!("!({register} < {from} || {register} > {to})"),
                _ => format!("({register} == {from} || {register} == {to}) && s != 0"),
            };
            if random.one_in(2) {
                format!("if {bounds} {{ {} = {used}; }}", variable(random))
            } else {
                format!("assume {bounds}; r = {used};")
            }
        }
        0..=2 => format!("{} = * in 0..{};", register(random), 6 + random.below(3)),
        3 | 4 => format!("{} = {};", variable(random), register(random)),
        5 | 6 => format!("{} = {};", register(random), variable(random)),
        7 => format!("{} = {};", variable(random), constant(random)),
        8 if random.one_in(6) => format!("{} = r + {};", register(random), constant(random)),
        8 => format!("assert {} || {};", compare(random), compare(random)),
        10 => format!(
            "if {} {{ {} }} else {{ {} }}",
            compare(random),
            statement(random, depth - 1),
            statement(random, depth - 1)
        ),
        _ if random.one_in(3) => format!("while {} {{ {} }}", compare(random), statement(random, depth - 1)),
        _ => format!("atomic {{ {} {} }}", "r = x; s = y;", "assume r == s || r == 1;"),
    }
}

fn text(seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut text = String::from("shared x = 2, y;\n");
    for name in ["p", "q"] {
        let length = 2 + random.below(2);
        let body: String = (0..length).map(|_| format!("    {}\n", statement(&mut random, 1))).collect();
        text += &format!("thread {name} {{\n    var r, s;\n{body}}}\n");
    }
    text + "forbid a: p@end && q@end && p.r == q.s;\nforbid b: x == 2 && y == 2 && p@end;\nforbid c: x == y && x > 3;\n\
            finally d: exists p.r != q.r && p.s == 1;\n"
}

/// What the reference semantics says about each property, and whether there is a deadlock; nothing if there are very many states.
fn verdicts(program: &Program, model: MemoryModel) -> Option<(Vec<Option<bool>>, bool)> {
    let reachable = explore(program, model, MOST_STATES, &mut || false).ok()?;
    let verdicts = program.properties.iter().map(|p| reachable.satisfies(program, model, p)).collect();
    Some((verdicts, !reachable.deadlocks.is_empty()))
}

/// The program with values missing in one of its choices: the greatest, the least, the upper half.
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
fn fewer_values_decide_the_same() {
    let seeds = if std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some() { 100_000 } else { 400 };
    let (mut compared, mut noticed) = (0, 0);
    for seed in 0..seeds {
        let text = text(seed);
        let program = load("random.fw", text.as_bytes(), None, &[]).expect("it can be read").program;
        let Some(fewer) = narrowed_from(&program, WIDE) else { continue };
        assert!(narrowed_from(&fewer, WIDE).is_none(), "seed {seed}: narrowed twice\n{text}");
        for model in MemoryModel::ALL {
            let Some(expected) = verdicts(&program, model) else { continue };
            let found = verdicts(&fewer, model).expect("there are fewer states");
            assert_eq!(found, expected, "seed {seed} under {}:\n{text}", model.name());
            compared += 1;
            // Without some of them there is a difference now and then: the values that are left are needed.
            let mut less = with_less(&program, &fewer).into_iter().filter_map(|less| verdicts(&less, model));
            noticed += usize::from(less.any(|found| found != expected));
        }
    }
    println!("{compared} compared, {noticed} noticed");
    assert!(compared > seeds as usize / 10, "only {compared} programs were compared");
    assert!(noticed > compared / 10, "only {noticed} of {compared} programs need their values");
}
