//! Steps that access store buffers: loads, stores that enter a buffer, barriers, and flushes; both for exact and for abstract buffers. Rules such as
//! (LS) are those of `fencewright_program::reference`.

use fencewright_memory::Bound;
use fencewright_program::MemoryModel;

use super::{Expander, Flow, Sink, Step, StepKind, copy};
use crate::abstract_buffer::Abstraction;
use crate::layout::{Growth, Layout};

impl Expander<'_> {
    /// Rules (RB) and (RM): the newest value of the cell in the thread's own buffer, or the value in memory if the buffer has none.
    #[inline]
    pub(super) fn load(&self, layout: &Layout, t: usize, cell: u32) -> i64 {
        if let Some(buffer) = layout.buffers.get(t) {
            let kind = u64::from(self.code.threads[t].cell_kind[cell as usize]);
            let count = buffer.count.raw(&self.next) as usize;
            let newest = buffer.entries[..count].iter().rev().find(|(k, _)| k.raw(&self.next) == kind);
            if let Some((_, value)) = newest {
                return value.get(&self.next);
            }
        }
        layout.slots[(self.code.memory + cell) as usize].get(&self.next)
    }

    /// Rule (LS): a store enters the buffer; under PSO the entries after the last barrier are sorted by cell.
    pub(super) fn buffer(
        &mut self,
        layout: &Layout,
        t: usize,
        cell: u32,
        value: i64,
    ) -> Result<Flow, Growth> {
        if let Some(abstraction) = self.code.abstraction {
            return self.abstract_store(abstraction, layout, t, cell, value);
        }
        let fields = &layout.buffers[t];
        let count = fields.count.raw(&self.next) as usize;
        let barrier = self.code.threads[t].barrier();
        let has_room = |bound: Bound| {
            let kinds = fields.entries[..count].iter().map(|(kind, _)| kind.raw(&self.next));
            let stores = kinds.filter(|kind| *kind != barrier);
            let cells = &self.code.threads[t].buffered_cells;
            bound.has_room(stores.map(|kind| cells[kind as usize]), cell)
        };
        if !self.bound.is_none_or(has_room) {
            self.summary.bounded = true;
            return Ok(Flow::Disabled);
        }
        if count == fields.entries.len() {
            return Err(Growth::Buffer(t as u32));
        }
        let kind = u64::from(self.code.threads[t].cell_kind[cell as usize]);
        let mut position = count;
        if self.code.model == MemoryModel::Pso {
            while position > 0 {
                let older = fields.entries[position - 1].0.raw(&self.next);
                if older <= kind || older == barrier {
                    break;
                }
                self.copy_entry(layout, t, position - 1, position);
                position -= 1;
            }
        }
        fields.entries[position].0.set_raw(&mut self.next, kind);
        if !fields.entries[position].1.set(&mut self.next, value) {
            return Err(Growth::BufferValue(t as u32, value));
        }
        fields.count.set_raw(&mut self.next, count as u64 + 1);
        Ok(Flow::Done)
    }

    /// `sfence`: under PSO it adds a barrier, unless the buffer is empty or already ends with a barrier.
    pub(super) fn barrier(&mut self, layout: &Layout, t: usize) -> Result<(), Growth> {
        if self.code.model != MemoryModel::Pso {
            return Ok(());
        }
        let fields = &layout.buffers[t];
        if let Some(abstraction) = self.code.abstraction {
            let thread = &self.code.threads[t];
            self.unpacked.read(abstraction, thread, fields, &self.next);
            self.unpacked.barrier(abstraction, thread);
            return self.unpacked.write(abstraction, (t, thread), fields, &mut self.next);
        }
        let barrier = self.code.threads[t].barrier();
        let count = fields.count.raw(&self.next) as usize;
        if count == 0 || fields.entries[count - 1].0.raw(&self.next) == barrier {
            return Ok(());
        }
        if count == fields.entries.len() {
            return Err(Growth::Buffer(t as u32));
        }
        fields.entries[count].0.set_raw(&mut self.next, barrier);
        fields.entries[count].1.set_raw(&mut self.next, 0);
        fields.count.set_raw(&mut self.next, count as u64 + 1);
        Ok(())
    }

    /// Rule (WM): TSO flushes the oldest entry; PSO flushes, for any cell, the oldest entry of the cell before the first barrier.
    pub(super) fn flushes<S: Sink>(
        &mut self,
        layout: &Layout,
        state: &[u64],
        t: usize,
        wanted: impl Fn(u64) -> bool,
        sink: &mut S,
    ) -> Result<(), Growth> {
        let code = self.code;
        if let Some(abstraction) = code.abstraction {
            return self.abstract_flushes(abstraction, layout, state, t, sink);
        }
        let thread = &code.threads[t];
        let fields = &layout.buffers[t];
        let count = fields.count.raw(state) as usize;
        let candidates = if code.model == MemoryModel::Pso { count } else { 1 };
        let mut previous = u64::MAX;
        for position in 0..candidates {
            let kind = fields.entries[position].0.raw(state);
            if kind == thread.barrier() {
                break;
            }
            // Entries of one cell are adjacent, oldest first.
            if kind == previous {
                continue;
            }
            previous = kind;
            if !wanted(kind) {
                continue;
            }
            copy(state, &mut self.next);
            let cell = thread.buffered_cells[kind as usize];
            let value = fields.entries[position].1.get(state);
            self.set(layout, code.memory + cell, value)?;
            self.remove_entry(layout, t, position, count);
            if count > 1 && fields.entries[0].0.raw(&self.next) == thread.barrier() {
                self.remove_entry(layout, t, 0, count - 1);
            }
            self.flushed(layout, t, kind, sink);
        }
        Ok(())
    }

    /// Completes a flush to a cell, and passes the successor to the sink.
    #[inline]
    fn flushed<S: Sink>(&mut self, layout: &Layout, t: usize, kind: u64, sink: &mut S) {
        let code = self.code;
        if code.local_first {
            layout.slots[code.favourite()].set_raw(&mut self.next, 0);
        }
        self.summary.moved = true;
        let thread = &code.threads[t];
        let (cell, visible) = (thread.buffered_cells[kind as usize], thread.flush_visible[kind as usize]);
        let step = Step { thread: t as u32, kind: StepKind::Flush(cell), visible, fault: false };
        sink.take(step, &self.next);
    }

    /// Rule (LS) for an abstract buffer: a store enters the buffer.
    fn abstract_store(
        &mut self,
        abstraction: Abstraction,
        layout: &Layout,
        t: usize,
        cell: u32,
        value: i64,
    ) -> Result<Flow, Growth> {
        let (thread, fields) = (&self.code.threads[t], &layout.buffers[t]);
        let pso = self.code.model == MemoryModel::Pso;
        let kind = u64::from(thread.cell_kind[cell as usize]);
        self.unpacked.read(abstraction, thread, fields, &self.next);
        if !self.unpacked.store(abstraction, thread, pso, (kind, value)) {
            self.summary.bounded = true;
            return Ok(Flow::Disabled);
        }
        self.unpacked.write(abstraction, (t, thread), fields, &mut self.next)?;
        Ok(Flow::Done)
    }

    /// Rule (WM) for an abstract buffer: every flush that the abstraction allows.
    fn abstract_flushes<S: Sink>(
        &mut self,
        abstraction: Abstraction,
        layout: &Layout,
        state: &[u64],
        t: usize,
        sink: &mut S,
    ) -> Result<(), Growth> {
        let code = self.code;
        let (thread, fields) = (&code.threads[t], &layout.buffers[t]);
        let mut leaving = std::mem::take(&mut self.leaving);
        self.unpacked.read(abstraction, thread, fields, state);
        self.unpacked.leaving(abstraction, thread, code.model == MemoryModel::Pso, &mut leaving);
        for way in &leaving {
            copy(state, &mut self.next);
            self.set(layout, code.memory + thread.buffered_cells[way.kind as usize], way.value)?;
            self.unpacked.read(abstraction, thread, fields, state);
            self.unpacked.leave(thread, way);
            self.unpacked.write(abstraction, (t, thread), fields, &mut self.next)?;
            self.flushed(layout, t, way.kind, sink);
        }
        self.leaving = leaving;
        Ok(())
    }

    fn copy_entry(&mut self, layout: &Layout, t: usize, from: usize, to: usize) {
        let entries = &layout.buffers[t].entries;
        let kind = entries[from].0.raw(&self.next);
        let value = entries[from].1.raw(&self.next);
        entries[to].0.set_raw(&mut self.next, kind);
        entries[to].1.set_raw(&mut self.next, value);
    }

    /// Removes the entry at `position` from a buffer of `count` entries.
    fn remove_entry(&mut self, layout: &Layout, t: usize, position: usize, count: usize) {
        for n in position + 1..count {
            self.copy_entry(layout, t, n, n - 1);
        }
        let fields = &layout.buffers[t];
        fields.entries[count - 1].0.set_raw(&mut self.next, 0);
        fields.entries[count - 1].1.set_raw(&mut self.next, 0);
        fields.count.set_raw(&mut self.next, count as u64 - 1);
    }
}
