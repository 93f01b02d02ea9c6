//! Live registers: at each location of a thread, those whose value there can still matter to the thread or to a property.

use fencewright_program::{Observable, Op, PropertyKind, Thread, ThreadId};

use crate::task::Task;

/// A set of registers of one thread.
pub type Registers = Vec<bool>;

/// For each location of a thread the registers that are live there.
pub fn live_registers(task: &Task<'_>, id: ThreadId) -> Vec<Registers> {
    let thread = task.program.thread(id);
    let (everywhere, at_end) = observed(task, id, thread.registers.len());
    fixpoint(thread, &everywhere, &at_end)
}

/// The registers that properties look at in every state, and in final states.
fn observed(task: &Task<'_>, id: ThreadId, registers: usize) -> (Registers, Registers) {
    let mut everywhere = vec![false; registers];
    let mut at_end = vec![false; registers];
    for property in &task.properties {
        let (formula, set) = match &property.kind {
            PropertyKind::Never(f) => (f, &mut everywhere),
            PropertyKind::Finally(_, f) => (f, &mut at_end),
            PropertyKind::Assertions | PropertyKind::NoDeadlock => continue,
        };
        formula.for_each_leaf(&mut |leaf| match leaf {
            Observable::Register(t, r) if *t == id => set[r.index()] = true,
            _ => {}
        });
    }
    for observable in &task.observed {
        if let Observable::Register(t, r) = observable
            && *t == id
        {
            at_end[r.index()] = true;
        }
    }
    (everywhere, at_end)
}

/// The least solution of: live before an edge is what it reads, and what is live after it and not written by it.
fn fixpoint(thread: &Thread, everywhere: &Registers, at_end: &Registers) -> Vec<Registers> {
    let ends = |location: usize| thread.is_end(fencewright_program::LocationId(location as u32));
    let mut live: Vec<Registers> = (0..thread.locations.len())
        .map(|l| everywhere.iter().zip(at_end).map(|(&e, &f)| e || (f && ends(l))).collect())
        .collect();
    loop {
        let mut changed = false;
        for edge in thread.edges.iter().rev() {
            let mut before = live[edge.to.index()].clone();
            for op in edge.action.ops().iter().rev() {
                step_back(op, &mut before, everywhere);
            }
            for (known, new) in live[edge.from.index()].iter_mut().zip(before) {
                changed |= new && !*known;
                *known |= new;
            }
        }
        if !changed {
            return live;
        }
    }
}

/// From what is live after an operation to what is live before it. Properties look at some registers `everywhere`, and that
/// includes the middle of an indivisible step: it may end there with a fault.
pub fn step_back(op: &Op, live: &mut Registers, everywhere: &Registers) {
    if let Some(written) = op.written_register() {
        live[written.index()] = everywhere[written.index()];
    }
    op.for_each_read(&mut |r| live[r.index()] = true);
}
