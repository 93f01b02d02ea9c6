//! One event of an execution, with the states before and after it.

use std::rc::Rc;

use fencewright_kit::accesses::written_register;
use fencewright_program::reference::{Access, Buffered};
use fencewright_program::{
    Action, Event, EventKind, Expr, Fault, Op, Program, RegisterId, Replayed, Span, State, Thread, UnaryOp,
};

use crate::words::{self, Source};

/// One event with the states before and after it.
#[derive(Clone)]
pub struct Step<'a> {
    /// The program, with its source text.
    pub source: Source<'a>,
    /// The state before the event.
    pub before: Rc<State>,
    /// The event itself.
    pub event: &'a Event,
    /// The accesses to memory and buffers.
    pub effect: &'a [Access],
    /// The state after the event.
    pub after: Rc<State>,
}

/// The steps of a replayed execution, in order. Only two states exist at a time, unless the caller keeps more.
pub fn steps<'a>(source: Source<'a>, replayed: &'a Replayed) -> impl ExactSizeIterator<Item = Step<'a>> {
    let mut before = Rc::new(replayed.states.first().clone());
    let mut after = Rc::clone(&before);
    replayed.events.iter().zip(&replayed.effects).enumerate().map(move |(n, (event, effect))| {
        if n > 0 {
            replayed.states.advance(Rc::make_mut(&mut before), n - 1);
        }
        replayed.states.advance(Rc::make_mut(&mut after), n);
        Step { source, before: Rc::clone(&before), event, effect, after: Rc::clone(&after) }
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

    /// The effect of the step, in words.
    pub fn words(&self) -> String {
        let program = self.source.program;
        match &self.event.kind {
            EventKind::Flush { .. } => {
                let parts: Vec<String> = self.effect.iter().map(|a| flushed(program, a)).collect();
                format!("flush: {}", parts.join(", "))
            }
            EventKind::Step { edge, chosen } => {
                self.action_in_words(&self.thread().edge(*edge).action, chosen)
            }
        }
    }

    fn action_in_words(&self, action: &Action, chosen: &[i64]) -> String {
        match action {
            Action::Fence => "fence: its buffer is empty".into(),
            Action::StoreFence if !self.grew_a_barrier() => "store fence: nothing to hold back".into(),
            Action::StoreFence => "store fence -> its buffer".into(),
            Action::Lock => "takes the lock".into(),
            Action::Unlock => "releases the lock".into(),
            Action::Op(Op::Skip) => String::new(),
            Action::Op(Op::Assume(e)) if self.effect.is_empty() => self.condition_in_words(e),
            Action::Op(Op::Assert(_, Fault::Index)) if self.effect.is_empty() => {
                "the index is in the array".into()
            }
            Action::Op(Op::Assert(..)) if self.effect.is_empty() => "the assertion holds".into(),
            Action::Op(_) | Action::Atomic { .. } => {
                let mut parts: Vec<String> = self.effect.iter().map(|a| self.access_in_words(a)).collect();
                if !self.effect.iter().any(|a| matches!(a, Access::Fault(_))) {
                    parts.extend(self.registers_in_words(action, !chosen.is_empty()));
                }
                let prefix = match action {
                    Action::Atomic { .. } if parts.len() > 1 => "at once: ",
                    _ => "",
                };
                match (parts.is_empty(), chosen) {
                    // The step only makes a choice, which a later step stores.
                    (true, [first, ..]) => format!("{first} is chosen"),
                    _ => format!("{prefix}{}", parts.join("; ")),
                }
            }
        }
    }

    fn grew_a_barrier(&self) -> bool {
        let thread = self.event.thread.index();
        self.before.buffers[thread].len() < self.after.buffers[thread].len()
    }

    /// The condition of a branch with its outcome. Temporaries, which were just loaded, are replaced by their values.
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
        format!("{} is {outcome}", words::shortened(&text, 60))
    }

    fn access_in_words(&self, access: &Access) -> String {
        let program = self.source.program;
        match *access {
            Access::Read { cell, value, buffered } => {
                let from = if buffered { "its own buffer" } else { "memory" };
                format!("reads {} = {value} from {from}", program.cell_name(cell))
            }
            Access::Write { cell, value, buffered: true } => {
                format!("{} = {value} -> buffer of {}", program.cell_name(cell), self.thread().name)
            }
            Access::Write { cell, value, buffered: false } => {
                format!("{} = {value} -> memory", program.cell_name(cell))
            }
            Access::Fault(fault) => fault_in_words(program, fault),
        }
    }

    /// The named registers that the action writes, with their values.
    fn registers_in_words(&self, action: &Action, chosen: bool) -> Vec<String> {
        let values = &self.after.registers[self.event.thread.index()];
        let mut written: Vec<RegisterId> = action.ops().iter().filter_map(written_register).collect();
        written.sort_unstable();
        written.dedup();
        let was_chosen = |r: RegisterId| {
            chosen && action.ops().iter().any(|op| matches!(op, Op::Havoc(register, _) if *register == r))
        };
        let named = written.into_iter().filter(|r| !is_temporary(&self.thread().registers[r.index()].name));
        named
            .map(|r| {
                let how = if was_chosen(r) { " (chosen)" } else { "" };
                format!("{} = {}{how}", self.thread().registers[r.index()].name, values[r.index()])
            })
            .collect()
    }

    /// Whether memory, a buffer or the lock changes.
    pub fn changes_memory_or_buffers(&self) -> bool {
        self.before.memory != self.after.memory
            || self.before.buffers != self.after.buffers
            || self.before.lock != self.after.lock
    }
}

fn flushed(program: &Program, access: &Access) -> String {
    match *access {
        Access::Read { cell, value, .. } | Access::Write { cell, value, .. } => {
            format!("{} = {value} reaches memory", program.cell_name(cell))
        }
        Access::Fault(fault) => fault_in_words(program, fault),
    }
}

/// A fault, with the message of the assertion if there is one.
fn fault_in_words(program: &Program, fault: Fault) -> String {
    match program.text_of(fault) {
        Some(text) => format!("{}: {text}", fault.describe()),
        None => fault.describe().to_string(),
    }
}

/// The memory cell of an access.
pub fn cell_of(access: &Access) -> Option<u32> {
    match *access {
        Access::Read { cell, .. } | Access::Write { cell, .. } => Some(cell),
        Access::Fault(_) => None,
    }
}

/// A buffer entry as text: `x=1`, or `|` for a store fence.
pub fn entry(program: &Program, entry: &Buffered) -> String {
    match *entry {
        Buffered::Store { cell, value } => format!("{}={value}", program.cell_name(cell)),
        Buffered::Barrier => "|".into(),
    }
}

/// The memory cell of a buffer entry; `None` for a store fence.
pub fn buffered_cell(entry: &Buffered) -> Option<u32> {
    match *entry {
        Buffered::Store { cell, .. } => Some(cell),
        Buffered::Barrier => None,
    }
}
