//! Which registers matter where: those whose value some path still reads.

use fencewright_kit::accesses::{for_each_read, written_register};
use fencewright_program::{RegisterId, Thread};

use super::outgoing;

/// Live registers of each location, one bit for each register.
pub(super) struct Liveness {
    words: usize,
    bits: Vec<u64>,
}

impl Liveness {
    /// Works backwards along the edges until nothing changes.
    pub(super) fn of(thread: &Thread) -> Self {
        let words = thread.registers.len().div_ceil(64).max(1);
        let mut live = Liveness { words, bits: vec![0; words * thread.locations.len()] };
        let mut incoming = vec![Vec::new(); thread.locations.len()];
        for edge in &thread.edges {
            incoming[edge.to.index()].push(edge.from.index());
        }
        let mut waiting: Vec<usize> = (0..thread.locations.len()).collect();
        while let Some(location) = waiting.pop() {
            let mut before = vec![0; words];
            for edge in outgoing(thread, location) {
                let mut after = live.at(edge.to.index()).to_vec();
                for op in edge.action.ops().iter().rev() {
                    if let Some(written) = written_register(op) {
                        after[written.index() / 64] &= !(1 << (written.index() % 64));
                    }
                    for_each_read(op, &mut |read| after[read.index() / 64] |= 1 << (read.index() % 64));
                }
                before.iter_mut().zip(after).for_each(|(b, a)| *b |= a);
            }
            let range = location * words..(location + 1) * words;
            if live.bits[range.clone()] != before[..] {
                live.bits[range].copy_from_slice(&before);
                waiting.extend(&incoming[location]);
            }
        }
        live
    }

    fn at(&self, location: usize) -> &[u64] {
        &self.bits[location * self.words..(location + 1) * self.words]
    }

    /// Whether some path from here reads the register before it is written.
    pub(super) fn is_live(&self, location: usize, register: RegisterId) -> bool {
        self.at(location)[register.index() / 64] & (1 << (register.index() % 64)) != 0
    }
}
