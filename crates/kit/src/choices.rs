//! Values of `*` with which an edge faults.

use fencewright_program::{EdgeId, Op, Program, Range, Register, ThreadId};

/// A value that a `*` with this range can choose and that a register cannot hold; `None` if there is no such value of 64 bits.
fn unfit_choice(program: &Program, register: &Register, range: Option<Range>) -> Option<i64> {
    let (chosen, writable) = (program.chosen(range), program.writable(register.range));
    let below = writable.low.and_then(|low| low.checked_sub(1));
    let above = writable.high.and_then(|high| high.checked_add(1));
    let candidates = [chosen.low, chosen.high, below, above].into_iter().flatten();
    candidates.into_iter().find(|v| chosen.contains(*v) && !writable.contains(*v))
}

/// The values to choose along an edge so that it faults: the values `chosen` before the fault and, if the next choice can fault, a value with which
/// this choice faults.
pub fn faulting_choices(program: &Program, thread: ThreadId, edge: EdgeId, mut chosen: Vec<i64>) -> Vec<i64> {
    let code = program.thread(thread);
    let mut choices = code.edge(edge).action.ops().iter().filter_map(|op| match op {
        Op::Havoc(register, range) => Some((register, *range)),
        _ => None,
    });
    if let Some((register, range)) = choices.nth(chosen.len()) {
        chosen.extend(unfit_choice(program, &code.registers[register.index()], range));
    }
    chosen
}
