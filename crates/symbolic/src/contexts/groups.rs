//! Buffers as groups of stores: an abstraction of TSO buffers that records only which stores leave together.
//!
//! CONTEXT24 Fig. 4 guesses, when a store is issued, the context in which it will leave the buffer, and keeps the last value for each context and
//! variable. Before a store leaves, the number of that context is irrelevant; only which stores leave in the same context matters. So a buffer is a
//! list of *groups*, oldest first. The stores of one group leave in the same context, and no other thread observes the memory in between. So of
//! several stores to one memory cell in a group only the last one counts. As long as there is room, every store is a group of its own and nothing is
//! guessed. When a store would exceed the maximum number of groups, two adjacent groups are merged, and every choice of two adjacent groups is
//! explored. The number of different contexts in which stores of one buffer can leave is bounded ([`most_groups`](super::layers::most_groups), which
//! also counts one group for stores that never leave), so merging loses nothing.
//!
//! The value of memory cell c in group g of a thread is in the cell `Cell::Entry(thread, g * n + c)`, where n is the number of memory cells. So
//! moving a group is a list of assignments. Every value moves to an older group or stays. So if the oldest group is moved first, no value is
//! overwritten before it has moved.

use fencewright_memory::{BufferShape, Cell, CellId, Cells, Change, Command, Entry, StoreBuffers, Stored};
use fencewright_program::{Expr, MemoryModel, ThreadId};

/// TSO buffers whose stores are in groups; under SC there are no buffers. Since the bound on the number of groups leaves executions out, this machine
/// can show violations but not prove their absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupedBuffers {
    /// SC or TSO; PSO is not supported.
    pub model: MemoryModel,
    /// Maximum number of groups in the buffer of a thread, at least 1.
    pub groups: u32,
}

impl StoreBuffers for GroupedBuffers {
    fn exist(self) -> bool {
        self.model != MemoryModel::Sc
    }

    fn positions(self, cells: usize) -> u32 {
        if self.exist() { self.groups.saturating_mul(cells as u32) } else { 0 }
    }

    fn store(
        self,
        cells: &Cells,
        thread: ThreadId,
        shape: &BufferShape,
        target: u32,
        value: Expr<CellId>,
    ) -> Stored {
        let most = self.groups.max(1) as usize;
        Stored::Buffered(Groups::of(shape).stored(cells, thread, target, value, most))
    }

    fn newest(self, cells: &Cells, thread: ThreadId, shape: &BufferShape, target: u32) -> Option<CellId> {
        Groups::of(shape).newest(cells, thread, target)
    }

    /// A store fence has no effect: under TSO stores leave in order anyway.
    fn barrier(self, shape: &BufferShape) -> BufferShape {
        shape.clone()
    }
}

/// The groups of a buffer, oldest first. Each is the list of the memory cells it writes, sorted, without repetition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups(pub Vec<Vec<u32>>);

impl Groups {
    /// The groups that a shape encodes; barriers separate them.
    pub fn of(shape: &BufferShape) -> Self {
        if shape.queue.is_empty() {
            return Groups::default();
        }
        let groups = shape.queue.split(|e| *e == Entry::Barrier);
        Groups(groups.map(|g| g.iter().filter_map(Entry::cell).collect()).collect())
    }

    /// The shape that encodes these groups.
    pub fn shape(&self) -> BufferShape {
        let mut queue = Vec::new();
        for (n, group) in self.0.iter().enumerate() {
            queue.extend((n > 0).then_some(Entry::Barrier));
            queue.extend(group.iter().map(|&c| Entry::Store(c)));
        }
        BufferShape { queue, set: Vec::new() }
    }

    /// All buffered values: for each, its group, the memory cell that it is stored to, and the cell that holds it.
    pub fn values<'a>(
        &'a self,
        cells: &'a Cells,
        thread: ThreadId,
    ) -> impl Iterator<Item = (usize, u32, CellId)> + 'a {
        let groups = self.0.iter().enumerate();
        groups.flat_map(move |(g, group)| group.iter().map(move |&c| (g, c, value(cells, thread, g, c))))
    }

    /// The index of the group with the newest store to a memory cell; `None` if no group has one.
    pub fn newest_group(&self, target: u32) -> Option<usize> {
        self.0.iter().rposition(|group| group.contains(&target))
    }

    /// The cell that holds the value of the newest store to a memory cell; `None` if no group has one.
    pub fn newest(&self, cells: &Cells, thread: ThreadId, target: u32) -> Option<CellId> {
        self.newest_group(target).map(|g| value(cells, thread, g, target))
    }

    /// The effect of a store: it becomes a new group or, if there are `most` groups already, two adjacent groups are merged. Result n merges groups n
    /// and n + 1, where the new store counts as the last group.
    pub fn stored(
        &self,
        cells: &Cells,
        thread: ThreadId,
        target: u32,
        stored: Expr<CellId>,
        most: usize,
    ) -> Vec<Change> {
        let appended = |groups: &Groups, mut commands: Vec<Command>| {
            let mut groups = groups.clone();
            groups.0.push(vec![target]);
            commands.push(Command::Assign(value(cells, thread, groups.0.len() - 1, target), stored.clone()));
            Change { commands, shape: groups.shape() }
        };
        let count = self.0.len();
        if count < most {
            return vec![appended(self, Vec::new())];
        }
        let mut ways: Vec<Change> = (0..count - 1)
            .map(|n| {
                let (commands, merged) = self.merged(cells, thread, n);
                appended(&merged, commands)
            })
            .collect();
        let mut groups = self.clone();
        if let Err(position) = groups.0[count - 1].binary_search(&target) {
            groups.0[count - 1].insert(position, target);
        }
        let joined = Command::Assign(value(cells, thread, count - 1, target), stored);
        ways.push(Change { commands: vec![joined], shape: groups.shape() });
        ways
    }

    /// Merges groups n and n + 1.
    fn merged(&self, cells: &Cells, thread: ThreadId, n: usize) -> (Vec<Command>, Groups) {
        let mut sources: Vec<Vec<(usize, u32)>> = self.sources().collect();
        let newer = sources.remove(n + 1);
        let is_newer = |c: u32| newer.iter().any(|&(_, d)| d == c);
        sources[n].retain(|&(_, c)| !is_newer(c));
        sources[n].extend(newer.iter().copied());
        sources[n].sort_unstable_by_key(|&(_, c)| c);
        moved(cells, thread, &sources)
    }

    /// Merges all groups into one.
    pub fn united(&self, cells: &Cells, thread: ThreadId) -> (Vec<Command>, Groups) {
        let mut newest: Vec<(usize, u32)> = Vec::new();
        for (g, c) in self.sources().rev().flatten() {
            if newest.iter().all(|&(_, known)| known != c) {
                newest.push((g, c));
            }
        }
        newest.sort_unstable_by_key(|&(_, c)| c);
        let one: Vec<Vec<(usize, u32)>> = (!newest.is_empty()).then_some(newest).into_iter().collect();
        moved(cells, thread, &one)
    }

    /// Writes the oldest `count` groups to memory, in order.
    pub fn flushed(&self, cells: &Cells, thread: ThreadId, count: usize) -> Change {
        let written = self.values(cells, thread).filter(|(g, _, _)| *g < count);
        let mut commands: Vec<Command> =
            written.map(|(_, c, id)| Command::Assign(cells.id(Cell::Memory(c)), Expr::Leaf(id))).collect();
        let rest: Vec<Vec<(usize, u32)>> = self.sources().skip(count).collect();
        let (moves, groups) = moved(cells, thread, &rest);
        commands.extend(moves);
        Change { commands, shape: groups.shape() }
    }

    /// The argument of [`moved`] that moves nothing: for each group, the memory cells that it writes, each with the index of the group itself.
    fn sources(&self) -> impl DoubleEndedIterator<Item = Vec<(usize, u32)>> + '_ {
        self.0.iter().enumerate().map(|(g, group)| group.iter().map(|&c| (g, c)).collect())
    }
}

/// The cell that holds the value of a memory cell in a group.
fn value(cells: &Cells, thread: ThreadId, group: usize, cell: u32) -> CellId {
    cells.id(Cell::Entry(thread, group as u32 * cells.memory() + cell))
}

/// The new groups, and the assignments that move the values to them. `sources[g]` has each memory cell of new group g with the group that holds the
/// value of the cell now.
fn moved(cells: &Cells, thread: ThreadId, sources: &[Vec<(usize, u32)>]) -> (Vec<Command>, Groups) {
    let mut commands = Vec::new();
    for (to, group) in sources.iter().enumerate() {
        for &(from, c) in group.iter().filter(|(from, _)| *from != to) {
            debug_assert!(from > to, "values move to older groups");
            let source = Expr::Leaf(value(cells, thread, from, c));
            commands.push(Command::Assign(value(cells, thread, to, c), source));
        }
    }
    (commands, Groups(sources.iter().map(|group| group.iter().map(|&(_, c)| c).collect()).collect()))
}

#[cfg(test)]
mod tests {
    use fencewright_program::{Init, Program, Span, Thread, Variable};

    use super::*;

    /// The cells of a program with three memory cells and one thread.
    fn cells() -> Cells {
        let variable = |n: u32| Variable {
            name: format!("x{n}"),
            base: n,
            indices: None,
            open: false,
            range: None,
            init: vec![Init::Value(0)],
            span: Span::default(),
        };
        let thread = Thread {
            name: "t".into(),
            registers: Vec::new(),
            locations: Vec::new(),
            entry: fencewright_program::LocationId(0),
            edges: Vec::new(),
            fault: fencewright_program::LocationId(0),
            family: None,
        };
        let program = Program {
            variables: (0..3).map(variable).collect(),
            threads: vec![thread],
            ..Program::default()
        };
        Cells::new(&program, 4 * 3, false)
    }

    const T: ThreadId = ThreadId(0);

    /// The values of all cells after some commands.
    fn after(commands: &[Command], mut values: Vec<i64>) -> Vec<i64> {
        for command in commands {
            let Command::Assign(to, e) = command else { panic!("groups only move values") };
            values[*to as usize] = e.eval(&mut |c| values[*c as usize]).expect("a copy or a constant");
        }
        values
    }

    /// The contents of a buffer: for each group, the cells and values.
    fn contents(groups: &Groups, cells: &Cells, values: &[i64]) -> Vec<Vec<(u32, i64)>> {
        let mut found = vec![Vec::new(); groups.0.len()];
        groups.values(cells, T).for_each(|(g, c, id)| found[g].push((c, values[id as usize])));
        found
    }

    #[test]
    fn every_way_to_store_keeps_order_and_the_last_values() {
        let cells = cells();
        let mut buffers = vec![(Groups::default(), vec![0; cells.len()], Vec::<(u32, i64)>::new())];
        for (n, target) in [0, 1, 0, 2, 1, 0].into_iter().enumerate() {
            let value = n as i64 + 1;
            let mut longer = Vec::new();
            for (groups, values, stores) in &buffers {
                for change in groups.stored(&cells, T, target, Expr::Const(value), 3) {
                    let stores = [stores.as_slice(), &[(target, value)]].concat();
                    longer.push((Groups::of(&change.shape), after(&change.commands, values.clone()), stores));
                }
            }
            buffers = longer;
        }
        // Each result is a split of the six stores into three groups of consecutive stores, and all 10 such splits occur.
        let mut seen = std::collections::BTreeSet::new();
        for (groups, values, stores) in &buffers {
            let found = contents(groups, &cells, values);
            assert_eq!(found.len(), 3);
            let cuts = (1..6).flat_map(|a| (a + 1..6).map(move |b| (a, b)));
            let parts = |(a, b): (usize, usize)| [&stores[..a], &stores[a..b], &stores[b..]].map(last_values);
            let cut = cuts.filter(|&cut| parts(cut).to_vec() == found).collect::<Vec<_>>();
            assert!(!cut.is_empty(), "{found:?} is no split of {stores:?}");
            seen.extend(cut);
        }
        assert_eq!(seen.len(), 10, "some split is missing");
    }

    /// The last value of each cell, sorted by cell.
    fn last_values(stores: &[(u32, i64)]) -> Vec<(u32, i64)> {
        let last: std::collections::BTreeMap<u32, i64> = stores.iter().copied().collect();
        last.into_iter().collect()
    }

    #[test]
    fn united_groups_hold_the_last_values() {
        let cells = cells();
        let (mut groups, mut values) = (Groups::default(), vec![0; cells.len()]);
        for (target, value) in [(0, 10), (1, 11), (0, 12), (2, 13)] {
            let change = groups.stored(&cells, T, target, Expr::Const(value), 4).remove(0);
            values = after(&change.commands, values);
            groups = Groups::of(&change.shape);
        }
        let (commands, one) = groups.united(&cells, T);
        assert_eq!(contents(&one, &cells, &after(&commands, values)), [[(0, 12), (1, 11), (2, 13)]]);
        assert_eq!(Groups::default().united(&cells, T).1, Groups::default());
    }

    #[test]
    fn groups_leave_oldest_first() {
        let cells = cells();
        let (mut groups, mut values) = (Groups::default(), vec![0; cells.len()]);
        for (target, value) in [(0, 10), (1, 11), (0, 12)] {
            let change = groups.stored(&cells, T, target, Expr::Const(value), 3).remove(0);
            values = after(&change.commands, values);
            groups = Groups::of(&change.shape);
        }
        assert_eq!(groups.newest(&cells, T, 0).map(|id| values[id as usize]), Some(12));
        let change = groups.flushed(&cells, T, 2);
        values = after(&change.commands, values);
        assert_eq!(values[..3], [10, 11, 0]);
        assert_eq!(contents(&Groups::of(&change.shape), &cells, &values), [[(0, 12)]]);
    }
}
