//! Partition of the cells into components: cells whose values may meet in an assignment or a comparison. Only cells of one component are compared.

use std::ops::Range;
use std::sync::Arc;

use fencewright_memory::{CellId, Contents};

/// For each cell, its component. A union-find structure while it is built.
#[derive(Clone, Debug)]
pub struct Components {
    parent: Vec<u32>,
    /// The memory cells of the program.
    memory: Range<CellId>,
    /// The component of every cell of a machine, once the machine is known.
    of: Arc<[u32]>,
}

impl Components {
    /// Components in which every cell of a program is alone: its memory cells and its registers, which are the cells below `end`.
    pub fn alone(memory: Range<CellId>, end: CellId) -> Self {
        Components { parent: (0..end).collect(), memory, of: Arc::new([]) }
    }

    /// Merges the components of two cells whose values meet.
    pub fn join(&mut self, a: CellId, b: CellId) {
        let (a, b) = (self.root(a), self.root(b));
        self.parent[a as usize] = b;
    }

    fn root(&mut self, mut cell: CellId) -> u32 {
        // The buffer cells of a program without memory have no parent; they are never used.
        while self.parent.get(cell as usize).is_some_and(|&parent| parent != cell) {
            let above = self.parent[self.parent[cell as usize] as usize];
            self.parent[cell as usize] = above;
            cell = above;
        }
        cell
    }

    /// Extends the components to the cells of a machine, a superset of those of the program. A buffered value belongs to the component of the memory
    /// cell that it is stored to. If a machine's cell may hold a store to any memory cell, all memory cells are in one component.
    pub fn extend(&mut self, contents: &[Contents]) {
        let memory: Vec<CellId> = self.memory.clone().collect();
        if contents.contains(&Contents::Stores) {
            memory.windows(2).for_each(|pair| self.join(pair[0], pair[1]));
        }
        let home = |(id, contents): (usize, &Contents)| match contents {
            Contents::Own => id as CellId,
            Contents::StoresTo(cell) | Contents::Summary(cell) => *cell,
            Contents::Stores => self.memory.start,
        };
        let homes: Vec<CellId> = contents.iter().enumerate().map(home).collect();
        self.of = homes.into_iter().map(|cell| self.root(cell)).collect();
    }

    /// The component of a cell.
    pub fn of(&self, cell: CellId) -> u32 {
        self.of[cell as usize]
    }
}
