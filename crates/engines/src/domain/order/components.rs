//! Which cells have values that meet, in an assignment or a comparison: only these are compared.

use std::sync::Arc;

use fencewright_memory::{Cell, CellId, Cells};

/// For each cell the number of its component. A union-find structure while it is built.
#[derive(Clone, Debug)]
pub struct Components {
    parent: Vec<u32>,
    /// For all cells of a machine, once it is known.
    of: Arc<[u32]>,
}

impl Components {
    /// Every cell alone, for so many memory cells and registers.
    pub fn alone(cells: usize) -> Self {
        Components { parent: (0..cells as u32).collect(), of: Arc::new([]) }
    }

    /// The values of these two meet.
    pub fn join(&mut self, a: CellId, b: CellId) {
        let (a, b) = (self.root(a), self.root(b));
        self.parent[a as usize] = b;
    }

    fn root(&mut self, mut cell: CellId) -> u32 {
        while self.parent[cell as usize] != cell {
            let above = self.parent[self.parent[cell as usize] as usize];
            self.parent[cell as usize] = above;
            cell = above;
        }
        cell
    }

    /// For the cells of a machine: a buffered value belongs to its memory cell, if values of buffers are kept for each apart (`grouped`),
    /// and otherwise to all of them.
    pub fn extend(&mut self, cells: &Cells, grouped: bool) {
        if !grouped {
            (1..cells.memory()).for_each(|c| self.join(0, c));
        }
        let of = |id: CellId| match cells.cell(id) {
            Cell::Memory(_) | Cell::Register(..) => id,
            Cell::Last(_, c) | Cell::Forgotten(_, c) => c,
            Cell::Entry(_, position) if grouped => position % cells.memory(),
            Cell::Entry(..) => 0,
        };
        self.of = (0..cells.len() as u32).map(|id| self.root(of(id))).collect();
    }

    /// The component of a cell.
    pub fn of(&self, cell: CellId) -> u32 {
        self.of[cell as usize]
    }
}
