//! Why a search did not end: which buffer or counter grows, and which loop makes it grow.

use fencewright_program::{Action, Op, Program, Span, Thread};

use super::code::Code;
use super::layout::Sizes;
use crate::loops::components;

/// Shorter buffers are not reported.
const LONG_BUFFER: u32 = 6;
/// Values that stay in a smaller range are not reported.
const WIDE_RANGE: u64 = 24;

/// Whether something has grown in a loop that nothing seems to bound, so that the search will hardly end.
pub fn is_endless(program: &Program, code: &Code, sizes: &Sizes) -> bool {
    explain(program, code, sizes).iter().any(|(_, place)| place.is_some())
}

/// Whether a thread stores in a loop that nothing drains, so that its buffer may grow without end.
pub fn buffers_may_grow(program: &Program) -> bool {
    program.threads.iter().any(|thread| in_loop(thread, &|a| !a.drains(), &stores).is_some())
}

/// Whether an action puts a store into a buffer.
fn stores(action: &Action) -> bool {
    matches!(action, Action::Op(Op::Store(..)))
}

/// One sentence for each thing that grew, with the place that makes it grow.
pub fn explain(program: &Program, code: &Code, sizes: &Sizes) -> Vec<(String, Option<Span>)> {
    let mut sentences = Vec::new();
    for (thread, &entries) in program.threads.iter().zip(&sizes.entries) {
        if entries >= LONG_BUFFER
            && let Some(span) = in_loop(thread, &|a| !a.drains(), &stores)
        {
            let name = &thread.name;
            let sentence = format!(
                "the store buffer of {name} grew to {entries} entries: this store is in a loop that nothing drains"
            );
            sentences.push((sentence, Some(span)));
        }
    }
    let wide = |slot: usize| {
        let bounds = sizes.values[slot];
        (bounds.high.wrapping_sub(bounds.low) as u64 >= WIDE_RANGE).then_some(bounds)
    };
    for cell in 0..program.cells() as u32 {
        let Some(bounds) = wide((code.memory + cell) as usize) else { continue };
        let writes = |action: &Action| {
            action.ops().iter().any(|op| match op {
                Op::Store(address, value) => {
                    program.variables[address.variable.index()].cells().contains(&(cell as usize))
                        && value.constant().is_none()
                }
                _ => false,
            })
        };
        let place = program.threads.iter().find_map(|t| in_loop(t, &|_| true, &writes));
        let sentence = format!(
            "the values of {} spread over {} to {}{}",
            program.cell_name(cell),
            bounds.low,
            bounds.high,
            if place.is_some() { ": this store is in a loop" } else { "" }
        );
        sentences.push((sentence, place));
    }
    for (thread, compiled) in program.threads.iter().zip(&code.threads) {
        for (r, register) in thread.registers.iter().enumerate().filter(|(_, r)| !r.name.starts_with('%')) {
            let Some(bounds) = wide(compiled.registers[r] as usize) else { continue };
            // An assignment that reads the register itself is the more likely culprit.
            let assigns = |itself: bool| {
                move |action: &Action| {
                    action.ops().iter().any(|op| match op {
                        Op::Assign(target, e) if target.index() == r => {
                            let mut read = !itself && e.constant().is_none();
                            e.for_each_leaf(&mut |leaf| read |= leaf.index() == r);
                            read
                        }
                        _ => false,
                    })
                }
            };
            let place = in_loop(thread, &|_| true, &assigns(true));
            if let Some(place) = place.or_else(|| in_loop(thread, &|_| true, &assigns(false))) {
                let sentence = format!(
                    "the values of {}.{} spread over {} to {}: this assignment is in a loop",
                    thread.name, register.name, bounds.low, bounds.high
                );
                sentences.push((sentence, Some(place)));
            }
        }
    }
    sentences
}

/// An edge that satisfies `wanted` and lies on a cycle of edges that satisfy `passable`.
fn in_loop(
    thread: &Thread,
    passable: &dyn Fn(&Action) -> bool,
    wanted: &dyn Fn(&Action) -> bool,
) -> Option<Span> {
    let component = components(thread, &|_, edge| passable(&edge.action));
    let mut candidates = thread.edges.iter().filter(|e| wanted(&e.action) && passable(&e.action));
    candidates.find(|e| component[e.from.index()] == component[e.to.index()]).map(|e| e.span)
}
