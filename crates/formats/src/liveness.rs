//! Computes live registers by a backward data-flow analysis. A register is live at a location if some path from there reads it before writing it.

use fencewright_kit::accesses::{for_each_read, written_register};
use fencewright_program::{RegisterId, Thread};
use fixedbitset::FixedBitSet;

use crate::export::outgoing;

/// The live registers of each location.
pub(super) struct Liveness(Vec<FixedBitSet>);

impl Liveness {
    /// Iterates backwards along the edges until a fixpoint.
    pub(super) fn of(thread: &Thread) -> Self {
        let none = FixedBitSet::with_capacity(thread.registers.len());
        let mut live = vec![none.clone(); thread.locations.len()];
        let mut incoming = vec![Vec::new(); thread.locations.len()];
        for edge in &thread.edges {
            incoming[edge.to.index()].push(edge.from.index());
        }
        let mut waiting: Vec<usize> = (0..thread.locations.len()).collect();
        while let Some(location) = waiting.pop() {
            let mut before = none.clone();
            for edge in outgoing(thread, location) {
                let mut after = live[edge.to.index()].clone();
                for op in edge.action.ops().iter().rev() {
                    if let Some(written) = written_register(op) {
                        after.remove(written.index());
                    }
                    for_each_read(op, &mut |read| after.insert(read.index()));
                }
                before.union_with(&after);
            }
            if live[location] != before {
                live[location] = before;
                waiting.extend(&incoming[location]);
            }
        }
        Liveness(live)
    }

    /// Whether some path from a location reads the register before writing it.
    pub(super) fn is_live(&self, location: usize, register: RegisterId) -> bool {
        self.0[location].contains(register.index())
    }
}
