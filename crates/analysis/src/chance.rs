//! Random choices for random executions: initial states, and values of `*`s.

use fencewright_generate::Random;
use fencewright_program::{Action, Init, Numbers, Op, Range, Reference, State};

/// Number of values around 0 that are tried for a `*` without a range.
const SMALL_VALUES: i64 = 5;
/// In a range with more values than this, only values around 0 are tried, if the range contains any.
const LARGE: u64 = 1_000;

/// A random initial state.
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

/// Random values for the `*`s of an action.
pub fn values(action: &Action, numbers: Numbers, random: &mut Random) -> Vec<i64> {
    let ranges = action.ops().iter().filter_map(|op| match op {
        Op::Havoc(_, range) => Some(*range),
        _ => None,
    });
    ranges.map(|range| value(random, range, numbers)).collect()
}

/// A random value for `*`: small if there is no range, or if the range is very large and contains small values.
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
    // A step that chooses from an empty range is disabled, so any value may be returned for it.
    random.between(range.low, range.high.max(range.low))
}
