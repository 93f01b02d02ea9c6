//! The origins of values in temporary registers, so that a branch on a temporary is shown in terms of the source: `mutex.last == 0`, not `t == 0`.

use std::collections::{HashMap, HashSet};

use fencewright_kit::accesses::written_register;
use fencewright_lang::facts::Kind;
use fencewright_program::reference::{Access, Buffered};
use fencewright_program::{BinaryOp, Event, EventKind, Expr, Op, RegisterId, State, ThreadId, UnaryOp};

use crate::words::{Source, expression_of_texts};

/// Maximum length of the text of an origin, in bytes; instead of a longer one, the value is shown.
const LONGEST_ORIGIN: usize = 80;

/// For each temporary register, the origin of the value that it holds after a prefix of an execution.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    known: HashMap<(ThreadId, RegisterId), Origin>,
}

/// The origin of a value: an expression of the source that gives this value.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    /// The text of the origin: the place that was read, or an expression over such places.
    pub text: String,
    /// The interpretation of the value.
    pub kind: Kind,
    /// Whether the text names a variable rather than a number.
    pub is_named: bool,
    /// Whether the value was read from memory unchanged.
    pub is_read: bool,
    /// The register that holds the value.
    pub register: Option<RegisterId>,
    /// The places that the text names, each with the value that was read from it. Once one of these places holds another value, the text no longer
    /// describes the value.
    pub about: Vec<(Place, i64)>,
}

/// A place whose value a text names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A memory cell, as the thread sees it.
    Cell(u32),
    /// A register of the thread.
    Register(RegisterId),
}

/// The registers that an execution has written.
#[derive(Clone, Debug, Default)]
pub struct Written {
    registers: HashSet<(ThreadId, RegisterId)>,
}

impl Written {
    /// The registers that these events write.
    pub fn after(source: Source<'_>, events: &[Event]) -> Self {
        let mut written = Written::default();
        events.iter().for_each(|event| written.follow(source, event));
        written
    }

    /// Adds the registers that an event writes.
    pub fn follow(&mut self, source: Source<'_>, event: &Event) {
        let EventKind::Step { edge, .. } = &event.kind else { return };
        let ops = source.program.thread(event.thread).edge(*edge).action.ops();
        self.registers
            .extend(ops.iter().filter_map(written_register).map(|register| (event.thread, register)));
    }

    /// Whether the execution has written a register.
    pub fn contains(&self, thread: ThreadId, register: RegisterId) -> bool {
        self.registers.contains(&(thread, register))
    }
}

impl Origins {
    /// Updates the origins for an event with this effect, where `before` is the state before the event.
    pub fn follow(&mut self, source: Source<'_>, event: &Event, effect: &[Access], before: &State) {
        let EventKind::Step { edge, .. } = &event.kind else { return };
        let thread = event.thread;
        let mut reads = effect.iter().filter_map(|access| match access {
            Access::Read { cell, value, .. } => Some((*cell, *value)),
            _ => None,
        });
        // The registers that the event has written so far: `before` has their old values.
        let mut written = HashSet::new();
        for op in source.program.thread(thread).edge(*edge).action.ops() {
            let origin = match op {
                Op::Load(..) => {
                    let Some((cell, value)) = reads.next() else { return };
                    let (text, kind) = (source.cell(cell), source.cell_kind(cell));
                    let about = vec![(Place::Cell(cell), value)];
                    Some(Origin { text, kind, is_named: true, is_read: true, register: None, about })
                }
                Op::Assign(register, value) => {
                    let kind = source.register_kind(thread, *register);
                    self.computed(source, thread, value, before, &written).map(|(text, about)| Origin {
                        text,
                        kind,
                        is_named: true,
                        is_read: false,
                        register: None,
                        about,
                    })
                }
                _ => None,
            };
            if let Some(register) = written_register(op) {
                self.set(thread, register, origin);
                written.insert(register);
            }
        }
    }

    /// The text of a computed value, and the values that the text is about ([`Origin::about`]); `None` if there is no text, or the text is too long
    /// or depends on values that `before` does not have.
    fn computed(
        &self,
        source: Source<'_>,
        thread: ThreadId,
        value: &Expr<RegisterId>,
        before: &State,
        written: &HashSet<RegisterId>,
    ) -> Option<(String, Vec<(Place, i64)>)> {
        let (mut about, mut is_known) = (Vec::new(), true);
        value.for_each_leaf(&mut |register| {
            let origin = self.of(source, thread, *register, before);
            is_known &= origin.is_named || !written.contains(register);
            about.extend(origin.about);
        });
        let text = self.text(source, thread, value, before).filter(|text| text.len() <= LONGEST_ORIGIN)?;
        is_known.then_some((text, about))
    }

    fn set(&mut self, thread: ThreadId, register: RegisterId, origin: Option<Origin>) {
        match origin {
            Some(origin) => self.known.insert((thread, register), origin),
            None => self.known.remove(&(thread, register)),
        };
    }

    /// The origin of the value of a register in a state. Its text is the name of the variable that the register represents, or else the recorded
    /// origin. If there is none, or a place that its text names has changed since, the text is the value itself.
    fn of(&self, source: Source<'_>, thread: ThreadId, register: RegisterId, state: &State) -> Origin {
        let kind = source.register_kind(thread, register);
        let value = state.registers[thread.index()][register.index()];
        if let Some(text) = source.register(thread, register) {
            let about = vec![(Place::Register(register), value)];
            return Origin { text, kind, is_named: true, is_read: false, register: Some(register), about };
        }
        let origin = self.known.get(&(thread, register));
        let is_current = |(place, value): &(Place, i64)| seen(thread, *place, state) == *value;
        if let Some(origin) = origin.filter(|origin| origin.about.iter().all(is_current)) {
            return Origin { register: Some(register), ..origin.clone() };
        }
        Origin {
            text: source.value(origin.map_or(kind, |origin| origin.kind), value),
            kind: origin.map_or(kind, |origin| origin.kind),
            is_named: false,
            is_read: origin.is_some_and(|origin| origin.is_read),
            register: Some(register),
            about: Vec::new(),
        }
    }

    /// An expression in terms of the origins of its registers; `None` if the text would name no variable, or would use one name for two registers.
    pub fn text(
        &self,
        source: Source<'_>,
        thread: ThreadId,
        e: &Expr<RegisterId>,
        state: &State,
    ) -> Option<String> {
        let texts = self.texts(source, thread, e, state);
        let (mut is_named, mut names) = (false, HashMap::new());
        // Two values that were read from one place at different times have the same text, which would be misleading.
        let mut is_ambiguous = false;
        texts.for_each_leaf(&mut |origin: &Origin| {
            is_named |= origin.is_named;
            let known = names.entry(origin.text.clone()).or_insert(origin.register);
            is_ambiguous |= origin.is_named && *known != origin.register;
        });
        (is_named && !is_ambiguous).then(|| expression_of_texts(&texts, |origin| origin.text.clone()))
    }

    fn texts(
        &self,
        source: Source<'_>,
        thread: ThreadId,
        e: &Expr<RegisterId>,
        state: &State,
    ) -> Expr<Origin> {
        let again = |e: &Expr<RegisterId>| self.texts(source, thread, e, state);
        match e {
            Expr::Const(value) => Expr::Const(*value),
            Expr::Leaf(register) => Expr::Leaf(self.of(source, thread, *register, state)),
            Expr::Unary(op, operand) => Expr::Unary(*op, Box::new(again(operand))),
            Expr::Binary(op, left, right) => {
                let (left, right) = (again(left), again(right));
                let means = |side: &Expr<Origin>| match side {
                    Expr::Leaf(origin) => origin.kind,
                    _ => Kind::Number,
                };
                let (of_left, of_right) = (means(&left), means(&right));
                let with = |side: Expr<Origin>, kind: Kind| match side {
                    // A constant that is compared with a pointer is shown as a pointer.
                    Expr::Const(value) if op.is_comparison() => {
                        let text = source.value(kind, value);
                        Expr::Leaf(Origin {
                            text,
                            kind,
                            is_named: false,
                            is_read: false,
                            register: None,
                            about: Vec::new(),
                        })
                    }
                    other => other,
                };
                Expr::Binary(*op, Box::new(with(left, of_right)), Box::new(with(right, of_left)))
            }
            Expr::If(condition, then, otherwise) => {
                let [condition, then, otherwise] =
                    [condition, then, otherwise].map(|part| Box::new(again(part)));
                Expr::If(condition, then, otherwise)
            }
        }
    }

    /// Whether the value of a register is the result of a computation, and not the value of a variable or place.
    fn is_computed(&self, source: Source<'_>, thread: ThreadId, register: RegisterId) -> bool {
        let origin = self.known.get(&(thread, register));
        source.register(thread, register).is_none() && origin.is_some_and(|origin| !origin.is_read)
    }

    /// The condition that a branch establishes, in terms of the source: `mutex.last == 0`. `None` if it has no [`text`](Origins::text), or only
    /// repeats a value that was read.
    pub fn decision(
        &self,
        source: Source<'_>,
        thread: ThreadId,
        condition: &Expr<RegisterId>,
        state: &State,
    ) -> Option<String> {
        let (condition, holds) = match condition {
            Expr::Unary(UnaryOp::Not, inner) => (&**inner, false),
            _ => (condition, true),
        };
        let fact = match condition {
            Expr::Binary(op, left, right) if op.is_comparison() => {
                let op = if holds { *op } else { op.negated() };
                Expr::Binary(op, left.clone(), right.clone())
            }
            Expr::Leaf(register) if self.is_computed(source, thread, *register) => {
                let text = self.text(source, thread, condition, state)?;
                return Some(format!("{text} is {holds}"));
            }
            Expr::Leaf(_) => {
                let op = if holds { BinaryOp::Ne } else { BinaryOp::Eq };
                Expr::Binary(op, Box::new(condition.clone()), Box::new(Expr::Const(0)))
            }
            other => {
                let text = self.text(source, thread, other, state)?;
                return Some(format!("{text} is {holds}"));
            }
        };
        if let Expr::Binary(BinaryOp::Eq, left, right) = &fact
            && let (Expr::Leaf(register), Expr::Const(_)) | (Expr::Const(_), Expr::Leaf(register)) =
                (&**left, &**right)
            && self.of(source, thread, *register, state).is_read
        {
            return None;
        }
        self.text(source, thread, &fact, state)
    }
}

/// The value that a thread sees at a place: the youngest one in its buffer, or that in memory.
fn seen(thread: ThreadId, place: Place, state: &State) -> i64 {
    match place {
        Place::Register(register) => state.registers[thread.index()][register.index()],
        Place::Cell(cell) => {
            let own = state.buffers[thread.index()].iter().rev().find_map(|entry| match entry {
                Buffered::Store { cell: stored, value } if *stored == cell => Some(*value),
                _ => None,
            });
            own.unwrap_or(state.memory[cell as usize])
        }
    }
}
