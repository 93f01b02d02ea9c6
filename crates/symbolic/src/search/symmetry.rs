//! Symmetry of identical threads: states that differ only by a permutation of identical threads are identified.
//!
//! Threads with the same code form a class. A control state is made canonical by sorting the threads of each class by their locations and the shapes
//! of their buffers; the step that leads to the control state renames the cells accordingly. This requires that the properties are invariant under
//! permutations of each class. The checker of certificates defines this condition and the sorting of control states
//! ([`fencewright_certify::symmetry`]), so it accepts an invariant up to symmetry without translation.

use fencewright_certify::symmetry;
pub use fencewright_certify::symmetry::Permutation;
use fencewright_memory::{BufferMachine, CellId, Command, Control};
use fencewright_program::Expr;
use fencewright_verdict::Task;

/// The classes of identical threads of a program.
pub struct Symmetry(symmetry::Symmetry);

/// Maximum size of a class, because checking that a property is symmetric reads the property once per thread of the class.
const MOST_ALIKE: usize = 16;

impl Symmetry {
    /// The symmetry of a task, if it has any.
    pub fn new(task: &Task<'_>) -> Option<Self> {
        let threads = &task.program.threads;
        let mut classes: Vec<Vec<u32>> = Vec::new();
        for (n, thread) in threads.iter().enumerate() {
            match classes.iter_mut().find(|class| threads[class[0] as usize].is_like(thread)) {
                Some(class) => class.push(n as u32),
                None => classes.push(vec![n as u32]),
            }
        }
        classes.retain(|class| (2..=MOST_ALIKE).contains(&class.len()));
        if classes.is_empty() {
            return None;
        }
        symmetry::Symmetry::new(task.program, &task.properties, &classes).ok().map(Symmetry)
    }

    /// The classes in the format of certificates.
    pub fn classes(&self) -> Vec<Vec<u32>> {
        self.0.classes()
    }

    /// The canonical form of a control state, and the permutation of threads that leads to it; `None` if it is canonical already.
    pub fn canonical(&self, control: &Control) -> Option<(Control, Permutation)> {
        self.0.canonical(control)
    }

    /// The commands that rename the live cells of a canonical control state, after a step that uses their old names.
    pub fn renaming(
        &self,
        machine: &BufferMachine<'_>,
        live: &[CellId],
        order: &Permutation,
    ) -> Vec<Command> {
        let moved: Vec<(CellId, CellId)> = live
            .iter()
            .map(|&cell| (cell, order.before(&machine.cells, cell)))
            .filter(|(new, old)| new != old)
            .collect();
        // Names are permuted, so values are moved via fresh temporary cells. This is correct for summary cells too: each summary cell is read once
        // and is then overwritten or dead, so all constraints on its values carry over to the new name.
        let aside = |n: usize| (machine.cells.len() + n) as CellId;
        let out = moved.iter().enumerate().map(|(n, (_, old))| Command::Assign(aside(n), Expr::Leaf(*old)));
        let back = moved.iter().enumerate().map(|(n, (new, _))| Command::Assign(*new, Expr::Leaf(aside(n))));
        out.chain(back).collect()
    }
}
