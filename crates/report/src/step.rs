//! One event of an execution, with the states before and after it.

use std::rc::Rc;

use fencewright_kit::accesses::written_register;
use fencewright_lang::facts::{Holds, Role, Storage};
use fencewright_program::reference::{Access, Buffered};
use fencewright_program::{
    Action, Event, EventKind, Expr, Fault, Op, Program, RegisterId, Replayed, Span, State, Thread, UnaryOp,
};

use crate::named::joined;
use crate::origins::Origins;
use crate::words::{self, Source};

/// Maximum length of a condition, in characters; the rest is cut.
const LONGEST_CONDITION: usize = 60;

/// One event with the states before and after it.
#[derive(Clone)]
pub struct Step<'a> {
    /// The program, with its source text.
    pub source: Source<'a>,
    /// The state before the event.
    pub before: Rc<State>,
    /// The event itself.
    pub event: &'a Event,
    /// The accesses of the event to memory and buffers.
    pub effect: &'a [Access],
    /// The state after the event.
    pub after: Rc<State>,
    /// The origins of the values in registers before the event, if the program is a translation.
    pub origins: Rc<Origins>,
}

/// The steps of a replayed execution, in order. Only two states exist at a time, unless the caller keeps more.
pub fn steps<'a>(source: Source<'a>, replayed: &'a Replayed) -> impl ExactSizeIterator<Item = Step<'a>> {
    let mut before = Rc::new(replayed.states.first().clone());
    let mut after = Rc::clone(&before);
    let mut origins = Rc::new(Origins::default());
    let mut last: Option<(&Event, &[Access])> = None;
    replayed.events.iter().zip(&replayed.effects).enumerate().map(move |(n, (event, effect))| {
        if let Some((event, effect)) = last.replace((event, effect)) {
            if source.hides() {
                Rc::make_mut(&mut origins).follow(source, event, effect, &before);
            }
            replayed.states.advance(Rc::make_mut(&mut before), n - 1);
        }
        replayed.states.advance(Rc::make_mut(&mut after), n);
        let origins = Rc::clone(&origins);
        Step { source, before: Rc::clone(&before), event, effect, after: Rc::clone(&after), origins }
    })
}

/// Whether a register is a temporary, which the source does not name.
pub fn is_temporary(name: &str) -> bool {
    name.starts_with('%')
}

impl<'a> Step<'a> {
    /// The thread that moves, or whose buffer is flushed.
    pub fn thread(&self) -> &'a Thread {
        self.source.program.thread(self.event.thread)
    }

    /// The source position; `None` for a flush.
    pub fn span(&self) -> Option<Span> {
        match &self.event.kind {
            EventKind::Step { edge, .. } => Some(self.thread().edge(*edge).span),
            EventKind::Flush { .. } => None,
        }
    }

    /// The source position that is shown; `None` for a flush. In a translated program, also `None` for the start and the end of a thread, unless all
    /// details are shown.
    pub fn shown_span(&self) -> Option<Span> {
        let ends = |access: &Access| match access {
            Access::Write { cell, .. } => matches!(self.source.role(*cell), Some(Role::End(_))),
            _ => false,
        };
        let creates = |access: &Access| match access {
            Access::Write { cell, .. } => matches!(self.source.role(*cell), Some(Role::Start(_))),
            _ => false,
        };
        // The steps that a thread takes before and after its start function have a misleading position: the call by which another thread creates it.
        let own = self.source.facts.threads.iter().find(|start| start.thread == self.thread().name);
        let is_outside = |span: Span| {
            own.is_some_and(|start| start.creator.is_some() && start.span == span)
                && !self.effect.iter().any(creates)
        };
        let hides = |span: Span| self.effect.iter().any(ends) || is_outside(span);
        self.span().filter(|span| !(self.source.hides() && hides(*span)))
    }

    /// The effect of the step, in words.
    pub fn words(&self) -> String {
        match &self.event.kind {
            EventKind::Flush { .. } => {
                let parts: Vec<String> = self.effect.iter().map(|access| self.flushed(access)).collect();
                format!("flush: {}", parts.join(", "))
            }
            EventKind::Step { edge, chosen } => {
                self.action_in_words(&self.thread().edge(*edge).action, chosen)
            }
        }
    }

    fn action_in_words(&self, action: &Action, chosen: &[i64]) -> String {
        let hides = self.source.hides();
        match action {
            Action::Fence => "fence: its buffer is empty".into(),
            Action::StoreFence if !self.grew_a_barrier() && hides => String::new(),
            Action::StoreFence if !self.grew_a_barrier() => "store fence: nothing to hold back".into(),
            Action::StoreFence => "store fence -> its buffer".into(),
            Action::Lock => "takes the lock".into(),
            Action::Unlock => "releases the lock".into(),
            Action::Op(Op::Skip) => String::new(),
            Action::Op(Op::Assume(_)) if self.effect.is_empty() && hides && self.is_own_decision() => {
                String::new()
            }
            Action::Op(Op::Assume(e)) if self.effect.is_empty() && hides => {
                let decision = self.origins.decision(self.source, self.event.thread, e, &self.before);
                decision.map_or_else(String::new, |text| words::shortened(&text, LONGEST_CONDITION))
            }
            Action::Op(Op::Assume(e)) if self.effect.is_empty() => self.condition_in_words(e),
            Action::Op(Op::Assert(_, Fault::Index)) if self.effect.is_empty() => match hides {
                true => String::new(),
                false => "the index is in the array".into(),
            },
            // Hides an assertion that the translation added (that a sum does not overflow, for example); such assertions have a text.
            Action::Op(Op::Assert(_, Fault::Assertion(Some(_)))) if self.effect.is_empty() && hides => {
                String::new()
            }
            Action::Op(Op::Assert(..)) if self.effect.is_empty() => "the assertion holds".into(),
            Action::Op(_) | Action::Atomic { .. } => {
                let mut parts: Vec<String> = self.threads_in_words();
                parts.extend(self.effect.iter().filter_map(|access| self.access_in_words(access)));
                if !self.effect.iter().any(|a| matches!(a, Access::Fault(_))) {
                    parts.extend(self.registers_in_words(action, !chosen.is_empty()));
                }
                let prefix = match action {
                    Action::Atomic { .. } if parts.len() > 1 => "at once: ",
                    _ => "",
                };
                match (parts.is_empty(), chosen) {
                    // The step only chooses a value, which a later step stores.
                    (true, [first, ..]) => format!("{first} is chosen"),
                    _ => format!("{prefix}{}", parts.join("; ")),
                }
            }
        }
    }

    /// Whether reports leave the step out: the translation added it, and its description is empty.
    pub fn is_hidden(&self) -> bool {
        self.source.hides() && self.words().is_empty()
    }

    /// Whether a branch was added by the translation: a memory check that passes, or a branch in an expression that has no branches in the source.
    fn is_own_decision(&self) -> bool {
        let around = self.span().and_then(|span| self.source.expression_around(span));
        if around.is_some_and(|whole| !whole.decides) {
            return true;
        }
        let thread = self.event.thread;
        let (from, to) = (self.before.locations[thread.index()], self.after.locations[thread.index()]);
        self.source.words.checks.contains(&(thread, from, to))
    }

    /// Sentences about threads that the step creates, ends or joins.
    fn threads_in_words(&self) -> Vec<String> {
        if !self.source.hides() {
            return Vec::new();
        }
        let (mut sentences, mut joins) = (Vec::new(), Vec::new());
        let own = &self.thread().name;
        let writes = |cell: u32| {
            self.effect
                .iter()
                .any(|access| matches!(access, Access::Write { cell: other, .. } if *other == cell))
        };
        for access in self.effect {
            let role = cell_of(access).and_then(|cell| self.source.role(cell));
            match (role, access) {
                (Some(Role::Start(threads)), Access::Write { value: 1, .. }) => {
                    sentences.push(format!("{own} creates {}", self.source.all_started(threads)));
                }
                (Some(Role::Start(_)), Access::Read { value: 1, .. }) => {
                    sentences.push(format!("{own} starts"));
                }
                (Some(Role::End(thread)), Access::Write { cell, .. }) => {
                    let counts = self.source.counts_in(*cell).any(|counting| counting == own);
                    sentences.push(format!("{} ends", if counts { own } else { thread }));
                }
                (Some(Role::End(thread)), Access::Read { cell, value, .. }) if !writes(*cell) => {
                    let mut ended: Vec<String> = self.source.counts_in(*cell).cloned().collect();
                    if ended.is_empty() {
                        ended.push(thread.clone());
                    }
                    match *value >= ended.len() as i64 {
                        true => joins.extend(ended),
                        false => sentences.push(format!("{own} waits for {}", joined(&ended))),
                    }
                }
                _ => {}
            }
        }
        if !joins.is_empty() {
            sentences.push(format!("{own} joins {}", joined(&joins)));
        }
        sentences
    }

    fn grew_a_barrier(&self) -> bool {
        let thread = self.event.thread.index();
        self.before.buffers[thread].len() < self.after.buffers[thread].len()
    }

    /// The condition of a branch and whether it holds. Temporaries are replaced by their values, which were just loaded.
    fn condition_in_words(&self, e: &Expr<RegisterId>) -> String {
        let (e, outcome) = match e {
            Expr::Unary(UnaryOp::Not, inner) => (&**inner, "false"),
            _ => (e, "true"),
        };
        let values = &self.before.registers[self.event.thread.index()];
        let text = words::expression_with(e, |register| {
            let name = &self.thread().registers[register.index()].name;
            if is_temporary(name) { values[register.index()].to_string() } else { name.clone() }
        });
        format!("{} is {outcome}", words::shortened(&text, LONGEST_CONDITION))
    }

    /// The access in words; `None` for an access that the translation added.
    fn access_in_words(&self, access: &Access) -> Option<String> {
        let source = self.source;
        if cell_of(access).is_some_and(|cell| !source.shows(cell)) {
            return None;
        }
        Some(match *access {
            Access::Read { cell, value, buffered } => {
                let where_from = match (source.is_translated(), buffered) {
                    (false, false) => "from memory",
                    (false, true) => "from its own buffer",
                    (true, false) => "in memory",
                    (true, true) => "in its own buffer",
                };
                format!("reads {} = {} {where_from}", source.cell(cell), source.cell_value(cell, value))
            }
            Access::Write { cell, value, buffered: true } => {
                let (cell, value) = (source.cell(cell), source.cell_value(cell, value));
                format!("{cell} = {value} -> buffer of {}", self.thread().name)
            }
            Access::Write { cell, value, buffered: false } => {
                format!("{} = {} -> memory", source.cell(cell), source.cell_value(cell, value))
            }
            Access::Fault(fault) => fault_in_words(source.program, fault),
        })
    }

    fn flushed(&self, access: &Access) -> String {
        match *access {
            Access::Read { cell, value, .. } | Access::Write { cell, value, .. } => {
                let (cell, value) = (self.source.cell(cell), self.source.cell_value(cell, value));
                format!("{cell} = {value} reaches memory")
            }
            Access::Fault(fault) => fault_in_words(self.source.program, fault),
        }
    }

    /// The named registers that the action writes, with their values, and the objects that it frees.
    fn registers_in_words(&self, action: &Action, chosen: bool) -> Vec<String> {
        let thread = self.event.thread;
        let values = &self.after.registers[thread.index()];
        let mut written: Vec<RegisterId> = action.ops().iter().filter_map(written_register).collect();
        written.sort_unstable();
        written.dedup();
        let was_chosen = |r: RegisterId| {
            chosen && action.ops().iter().any(|op| matches!(op, Op::Havoc(register, _) if *register == r))
        };
        let told = |r: RegisterId| match self.source.register(thread, r) {
            Some(name) => {
                let how = if was_chosen(r) { " (chosen)" } else { "" };
                let value = self.source.register_value(thread, r, values[r.index()]);
                Some(format!("{name} = {value}{how}"))
            }
            None => self.gives_back(r),
        };
        written.into_iter().filter_map(told).collect()
    }

    /// The sentence about the object whose lifetime the step ends by setting this mark: `frees node 1 from line 31`, `x goes out of scope`; `None` if
    /// the step ends no lifetime.
    fn gives_back(&self, register: RegisterId) -> Option<String> {
        let named = self.source.words.register(self.event.thread, register)?;
        let Holds::Mark(kind, number) = named.holds else { return None };
        let memory = &self.source.facts.memory;
        let part = memory.part(kind, number)?;
        let is_gone = |state: &State| memory.is_marked(self.source.program, state, part);
        let becomes_so = !is_gone(&self.before) && is_gone(&self.after);
        becomes_so.then(|| match memory.objects.get(part.object).map(|object| object.storage) {
            Some(Storage::Heap) => format!("frees {}", self.source.marked(kind, number)),
            _ => format!("{} goes out of scope", self.source.marked_place(kind, number)),
        })
    }

    /// Whether memory, a buffer or the lock changes.
    pub fn changes_memory_or_buffers(&self) -> bool {
        self.before.memory != self.after.memory
            || self.before.buffers != self.after.buffers
            || self.before.lock != self.after.lock
    }
}

/// A fault, with the message of the assertion if there is one.
fn fault_in_words(program: &Program, fault: Fault) -> String {
    match program.text_of(fault) {
        Some(text) => format!("{}: {text}", fault.describe()),
        None => fault.describe().to_string(),
    }
}

/// The memory cell that an access reads or writes; `None` for a fault.
pub fn cell_of(access: &Access) -> Option<u32> {
    match *access {
        Access::Read { cell, .. } | Access::Write { cell, .. } => Some(cell),
        Access::Fault(_) => None,
    }
}

/// The memory cell of a buffer entry; `None` for a store fence.
pub fn buffered_cell(entry: &Buffered) -> Option<u32> {
    match *entry {
        Buffered::Store { cell, .. } => Some(cell),
        Buffered::Barrier => None,
    }
}
