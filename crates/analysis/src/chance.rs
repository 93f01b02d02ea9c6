//! Random choices of an execution: its initial state, and the values of its `*`s.

use fencewright_generate::Random;
use fencewright_program::{Action, Init, Numbers, Op, Range, Reference, State};

/// A `*` without a range is tried with this many values around 0.
const SMALL_VALUES: i64 = 5;
/// A range with more values is tried with small ones, if it has any.
const LARGE: u64 = 1_000;

/// An initial state.
pub fn initial(reference: &Reference<'_>, random: &mut Random) -> State {
    let program = reference.program;
    let mut value = |init: &Init| match *init {
        Init::Value(value) => value,
        Init::Any(range) => value(random, range, program.numbers),
    };
    let registers =
        program.threads.iter().map(|t| t.registers.iter().map(|r| value(&r.init)).collect()).collect();
    let memory = program.variables.iter().flat_map(|v| &v.init).map(&mut value).collect();
    reference.initial(registers, memory).expect("the values are chosen from the initial ranges")
}

/// Values for the `*`s of an action.
pub fn values(action: &Action, numbers: Numbers, random: &mut Random) -> Vec<i64> {
    let ranges = action.ops().iter().filter_map(|op| match op {
        Op::Havoc(_, range) => Some(*range),
        _ => None,
    });
    ranges.map(|range| value(random, range, numbers)).collect()
}

/// A value for `*`: small if there is no range, or the range is very large.
fn value(random: &mut Random, range: Option<Range>, numbers: Numbers) -> i64 {
    let small = match numbers {
        Numbers::Nat => Range { low: 0, high: SMALL_VALUES - 1 },
        Numbers::Int | Numbers::Real => Range { low: -SMALL_VALUES / 2, high: SMALL_VALUES / 2 },
    };
    let range = match range {
        Some(range) if range.size() > LARGE => {
            let overlap = Range { low: range.low.max(small.low), high: range.high.min(small.high) };
            if overlap.size() > 0 { overlap } else { range }
        }
        Some(range) => range,
        None => small,
    };
    // An empty range has no values; the step that needs one is not enabled.
    random.between(range.low, range.high.max(range.low))
}
