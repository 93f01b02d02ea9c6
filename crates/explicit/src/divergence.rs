//! Why a search did not terminate: the buffers and counters that grow, and the loop responsible.

use std::collections::HashMap;

use fencewright_analysis::loops::components;
use fencewright_program::{Action, Op, Program, Span, Thread};

use super::code::Code;
use super::layout::Sizes;

/// A buffer is reported only if it has grown until there is room for at least this many entries.
const LONG_BUFFER: u32 = 6;
/// A variable or register is reported only if its greatest and its least value differ by at least this much.
const WIDE_RANGE: u64 = 24;

/// Whether a buffer or value grew and a store or assignment in a loop explains the growth, so that the search is unlikely to terminate.
pub fn is_endless(program: &Program, code: &Code, sizes: &Sizes) -> bool {
    explain(program, code, sizes).iter().any(|(_, place)| place.is_some())
}

/// Whether a thread stores in a loop without draining its buffer, so that the buffer may grow without bound.
pub fn buffers_may_grow(program: &Program) -> bool {
    program.threads.iter().any(|thread| in_loop(thread, &|a| !a.drains(), &stores).is_some())
}

/// Whether an action puts a store into a buffer.
fn stores(action: &Action) -> bool {
    matches!(action, Action::Op(Op::Store(..)))
}

/// One sentence for each memory cell whose values grew, with the source position of a store in a loop to its variable, if there is one; for each
/// named register that an assignment in a loop made grow, with its position; and for each long buffer whose thread stores in a loop without draining
/// it, with the position of the store.
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
    let repeated: Vec<Repeated> = program.threads.iter().map(Repeated::new).collect();
    for (n, variable) in program.variables.iter().enumerate() {
        let place = repeated.iter().find_map(|r| r.stores.get(&n)).copied();
        for cell in variable.cells() {
            let Some(bounds) = wide(code.memory as usize + cell) else { continue };
            let sentence = format!(
                "the values of {} spread over {} to {}{}",
                program.cell_name(cell as u32),
                bounds.low,
                bounds.high,
                if place.is_some() { ": this store is in a loop" } else { "" }
            );
            sentences.push((sentence, place));
        }
    }
    for ((thread, compiled), repeated) in program.threads.iter().zip(&code.threads).zip(&repeated) {
        for (r, register) in thread.registers.iter().enumerate().filter(|(_, r)| !r.name.starts_with('%')) {
            let Some(bounds) = wide(compiled.registers[r] as usize) else { continue };
            if let Some(&place) = repeated.steps.get(&r).or_else(|| repeated.assignments.get(&r)) {
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

/// The first store in a loop to each variable, and the first assignment in a loop to each register, of one thread; writes of constants do not count.
/// Computed in one pass, because there may be thousands of cells and lines.
#[derive(Default)]
struct Repeated {
    /// The first store in a loop, by index of the variable.
    stores: HashMap<usize, Span>,
    /// The first assignment in a loop, by index of the register.
    assignments: HashMap<usize, Span>,
    /// The first assignment in a loop that reads the register itself (`r = r + 1`), by index of the register. It is preferred to `assignments`,
    /// because it is the more likely cause.
    steps: HashMap<usize, Span>,
}

impl Repeated {
    fn new(thread: &Thread) -> Self {
        let component = components(thread, &|_, _| true);
        let mut found = Repeated::default();
        for edge in thread.edges.iter().filter(|e| component[e.from.index()] == component[e.to.index()]) {
            for op in edge.action.ops() {
                match op {
                    Op::Store(address, value) if value.constant().is_none() => {
                        found.stores.entry(address.variable.index()).or_insert(edge.span);
                    }
                    Op::Assign(target, value) if value.constant().is_none() => {
                        found.assignments.entry(target.index()).or_insert(edge.span);
                        let mut itself = false;
                        value.for_each_leaf(&mut |leaf| itself |= leaf == target);
                        if itself {
                            found.steps.entry(target.index()).or_insert(edge.span);
                        }
                    }
                    _ => {}
                }
            }
        }
        found
    }
}

/// The span of an edge that satisfies `wanted` and lies on a cycle of edges that satisfy `passable`; `None` if there is no such edge.
fn in_loop(
    thread: &Thread,
    passable: &dyn Fn(&Action) -> bool,
    wanted: &dyn Fn(&Action) -> bool,
) -> Option<Span> {
    let component = components(thread, &|_, edge| passable(&edge.action));
    let mut candidates = thread.edges.iter().filter(|e| wanted(&e.action) && passable(&e.action));
    candidates.find(|e| component[e.from.index()] == component[e.to.index()]).map(|e| e.span)
}
