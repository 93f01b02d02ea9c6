//! From symbolic code to flat code: addresses become numbers, and accesses are checked.
//!
//! Memory errors that depend on one thread only are checked by the thread itself, before the access, on its registers. Whether the memory has been
//! freed is checked by the property ([`crate::emit::property`]), in the state before each access that is announced by a [`CellEvent::Touch`].

mod places;
mod values;

use std::collections::{HashMap, HashSet};

use fencewright_front_end::facts::Holds;
use fencewright_program::{Span, UnaryOp};
use fencewright_text::{Diagnostic, Sources, Stop};

use crate::core::{
    Access, Core, Location, ObjectEvent, ObjectId, Register, Stmt, StmtKind, ThreadNumber, Value,
};
use crate::flat::claims::{About, Claims};
use crate::flat::{
    Array, Cell, CellEvent, Mark, Program, RegisterInfo, Step, StepKind, Term, Thread, Touching, UNDEFINED,
    Violation, Waiting, Wrong,
};
use crate::layout::classes::Layout;
use crate::layout::late::Postponed;
use crate::nodes::Nodes;
use crate::pipeline::Options;

/// Resolves all threads.
pub fn resolve(
    core: &Core,
    nodes: &Nodes,
    layout: &Layout,
    sources: &Sources,
    options: Options,
    stop: &Stop<'_>,
) -> Result<Program, Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let mut threads = Vec::new();
    for (number, thread) in core.threads.iter().enumerate() {
        let registers = thread.registers.iter().map(|register| RegisterInfo {
            name: register.name.clone(),
            init: register.initial.unwrap_or(UNDEFINED),
            holds: match register.about.variable {
                true => Holds::Variable(register.name.clone()),
                false => Holds::Temporary,
            },
            kind: register
                .points
                .filter(|_| register.about.pointer)
                .and_then(|node| layout.pointers_to(nodes, node))
                .unwrap_or_default(),
        });
        let mut resolver = Resolver {
            core,
            nodes,
            layout,
            sources,
            options,
            stop,
            thread: ThreadNumber(number as u32),
            registers: registers.collect(),
            arrays: Vec::new(),
            homes: HashMap::new(),
            marks: HashMap::new(),
            counters: HashMap::new(),
            guard: None,
            out: Vec::new(),
            span: thread.span,
            errors: Vec::new(),
            postponed: Vec::new(),
        };
        let mut code = resolver.block(&thread.code);
        resolver.test_after_sections(&mut code);
        errors.extend(resolver.errors);
        let (registers, arrays) = (resolver.registers, resolver.arrays);
        threads.push(Thread { name: thread.name.clone(), registers, arrays, code, span: thread.span });
    }
    if errors.is_empty() { Ok(Program { threads }) } else { Err(errors) }
}

/// The registers that represent memory private to a thread.
#[derive(Clone, Copy)]
pub(crate) enum Home {
    Register(Register),
    Array(usize),
}

pub(crate) struct Resolver<'a> {
    pub(crate) core: &'a Core,
    pub(crate) nodes: &'a Nodes,
    pub(crate) layout: &'a Layout,
    pub(crate) sources: &'a Sources,
    pub(crate) options: Options,
    stop: &'a Stop<'a>,
    pub(crate) thread: ThreadNumber,
    registers: Vec<RegisterInfo>,
    pub(crate) arrays: Vec<Array>,
    /// The registers that represent the places of classes private to this thread, by class.
    homes: HashMap<usize, Home>,
    /// The arrays of registers in which this thread marks freed objects, by class and meaning.
    pub(crate) marks: HashMap<(usize, Mark), usize>,
    /// The registers that count how often this thread has executed each allocation site.
    pub(crate) counters: HashMap<ObjectId, Register>,
    /// The condition under which the current part of a value is evaluated; `None` if it is always evaluated.
    pub(crate) guard: Option<Term>,
    pub(crate) out: Vec<Step>,
    pub(crate) span: Span,
    pub(crate) errors: Vec<Diagnostic>,
    /// The tests for late stores that wait for the end of an atomic section.
    pub(crate) postponed: Vec<Postponed>,
}

/// A place as class and number.
#[derive(Clone)]
struct Resolved {
    class: usize,
    number: Term,
    /// For an address: conditions under which it is a small number, with that number. If the pointer at which the path starts is null, the address is
    /// the offset of the part in bytes; if the pointer comes from `container_of` for null, it is the offset of the part from the member.
    of_null: Vec<(Term, i64)>,
}

impl<'a> Resolver<'a> {
    fn block(&mut self, block: &[Stmt]) -> Vec<Step> {
        let outside = std::mem::take(&mut self.out);
        for statement in self.stop.polled(block) {
            self.span = statement.span;
            self.statement(&statement.kind);
        }
        std::mem::replace(&mut self.out, outside)
    }

    pub(crate) fn push(&mut self, kind: StepKind) {
        self.out.push(Step { kind, span: self.span });
    }

    pub(crate) fn step(&self, kind: StepKind) -> Step {
        Step { kind, span: self.span }
    }

    /// The text with the line of the span.
    pub(crate) fn with_line(&self, text: &str, span: Span) -> String {
        format!("{text} from line {}", self.sources.position(span).line_name())
    }

    fn statement(&mut self, statement: &StmtKind) {
        let span = self.span;
        let kind = match statement {
            StmtKind::Steps(block) => StepKind::Steps(self.block(block)),
            StmtKind::Block(block) => StepKind::Block(self.block(block)),
            StmtKind::Loop(block) => StepKind::Loop(self.block(block)),
            StmtKind::Atomic(block) => return self.atomic(block),
            StmtKind::Assign(register, value) => {
                let term = self.value(value);
                self.kept(self.points_of(*register), value, &term);
                StepKind::Assign(*register, term)
            }
            StmtKind::Special(ObjectEvent::Undefined(register)) => {
                StepKind::Assign(*register, Term::Number(UNDEFINED))
            }
            StmtKind::Special(ObjectEvent::Begin(object)) => return self.begin(*object),
            StmtKind::Special(ObjectEvent::Take(object)) => return self.mark_local(*object, false),
            StmtKind::Special(ObjectEvent::End(object)) => return self.mark_local(*object, true),
            StmtKind::Special(ObjectEvent::Follow(object)) => {
                if !self.layout.is_freed_during(self.thread, *object) {
                    return;
                }
                let placed = self.layout.placed(*object);
                StepKind::Special(CellEvent::Touch(
                    placed.class,
                    Term::Number(placed.first),
                    Touching::Access,
                ))
            }
            StmtKind::Special(ObjectEvent::Reach(place)) => return self.reach(place),
            StmtKind::Havoc(register, low, high) => {
                self.push(StepKind::Havoc(*register, *low, *high));
                let node = self.points_of(*register);
                return self.kept_number(node, &Term::Register(*register));
            }
            StmtKind::Load(register, place, access) => {
                let Some(place) = self.access(place) else { return };
                match self.home(place.class) {
                    Some(home) => StepKind::Assign(*register, read(home, place.number)),
                    None => StepKind::Load(*register, self.cell(place), *access),
                }
            }
            StmtKind::Store(place, value, access) => {
                let term = self.value(value);
                self.kept(self.nodes.pointee_of(place.node), value, &term);
                let (value, Some(place)) = (term, self.access(place)) else { return };
                self.no_literal(place.class, &place.number);
                match self.home(place.class) {
                    Some(home) => write(home, place.number, value),
                    None => StepKind::Store(self.cell(place), value, *access),
                }
            }
            StmtKind::Update { place, old, when, new, access } => {
                return self.update(place, *access, *old, when.as_ref(), new);
            }
            StmtKind::Await { register, place, until: condition, access, .. } => {
                let own = *access == Access::Own || self.options.waiting_is_a_step;
                let waiting = if own { Waiting::Step } else { Waiting::Loop };
                return self.wait(*register, place, *access, condition, waiting);
            }
            StmtKind::Lock => StepKind::Lock,
            StmtKind::Unlock => StepKind::Unlock,
            StmtKind::Fence => StepKind::Fence,
            StmtKind::StoreFence => StepKind::StoreFence,
            StmtKind::Assume(value) => StepKind::Assume(self.value(value)),
            StmtKind::Assert(value, text) => StepKind::Assert(self.value(value), text.clone()),
            StmtKind::Check(value, text) => {
                let holds = self.value(value);
                let claims = Claims::one(&holds, About::Said(text.clone()), None);
                StepKind::Check(holds, Violation { wrong: Wrong::Other, claims })
            }
            StmtKind::If(condition, then, otherwise) => {
                let condition = self.value(condition);
                let then = self.block(then);
                StepKind::If(condition, then, self.block(otherwise))
            }
            StmtKind::Choose(ways) => StepKind::Choose(ways.iter().map(|way| self.block(way)).collect()),
            StmtKind::Break => StepKind::Break,
            StmtKind::Continue => StepKind::Continue,
            StmtKind::Label(label) => StepKind::Label(*label),
            StmtKind::Goto(label) => StepKind::Goto(*label),
            StmtKind::Stop => StepKind::Stop,
            StmtKind::Special(ObjectEvent::Allocate(register, object)) => {
                return self.allocate(*register, *object);
            }
            StmtKind::Special(ObjectEvent::Free(value, node, freeing)) => {
                return self.free(value, *node, *freeing);
            }
            StmtKind::Special(ObjectEvent::Retired { flag, pointer, target, .. }) => {
                return self.is_retired(*flag, pointer, *target);
            }
            StmtKind::Beyond(when, text) => StepKind::Beyond(self.value(when), self.with_line(text, span)),
        };
        self.span = span;
        self.push(kind);
    }

    /// An atomic block. The property checks for use after free in the state before a step, so the announcements of accesses are emitted before the
    /// block. So the number of a place in memory that may be freed must not depend on registers that the block itself assigns.
    fn atomic(&mut self, block: &[Stmt]) {
        let span = self.span;
        let mut assigned = HashSet::new();
        let mut inner = Vec::new();
        for step in self.block(block) {
            match &step.kind {
                StepKind::Special(CellEvent::Touch(_, number, _)) => {
                    let mut known = true;
                    number.registers(&mut |register| known &= !assigned.contains(&register));
                    if !known {
                        let message = "an indivisible block finds out itself which allocated memory it uses";
                        self.errors.push(Diagnostic::new(step.span, message).help(
                            "whether that memory has been freed cannot be checked here: leave out `free`, or load the pointer before the block",
                        ));
                    }
                    self.out.push(step);
                    continue;
                }
                StepKind::Assign(register, _) | StepKind::Load(register, ..) => {
                    _ = assigned.insert(*register)
                }
                _ => {}
            }
            inner.push(step);
        }
        self.span = span;
        self.push(StepKind::Atomic(inner));
    }

    fn update(&mut self, place: &Location, access: Access, old: Register, when: Option<&Value>, new: &Value) {
        let node = self.nodes.pointee_of(place.node);
        let Some(place) = self.access(place) else { return };
        self.no_literal(place.class, &place.number);
        let outside = std::mem::take(&mut self.out);
        let when = when.map(|when| self.value(when));
        let value = new;
        let new = self.value(value);
        self.kept(node, value, &new);
        let checks = std::mem::replace(&mut self.out, outside);
        let home = self.home(place.class);
        if home.is_none() && checks.is_empty() {
            let place = self.cell(place);
            return self.push(StepKind::Update { place, old, when, new, access });
        }
        // The new value may depend on the old one, so the checks of the new value follow the read of the old one.
        let (span, number) = (self.span, place.number.clone());
        let step = |kind| Step { kind, span };
        let (read, write) = match home {
            Some(home) => (StepKind::Assign(old, read(home, number.clone())), write(home, number, new)),
            None => {
                let cell = self.cell(place);
                (StepKind::Load(old, cell.clone(), access), StepKind::Store(cell, new, access))
            }
        };
        let mut steps = vec![step(read)];
        steps.extend(checks);
        steps.push(match when {
            None => step(write),
            Some(when) => step(StepKind::If(when, vec![step(write)], Vec::new())),
        });
        match home {
            // A read-modify-write of private memory still drains the store buffer.
            Some(_) => {
                self.push(StepKind::Fence);
                self.out.extend(steps);
            }
            None => self.push(StepKind::Atomic(steps)),
        }
    }

    fn wait(
        &mut self,
        register: Register,
        place: &Location,
        access: Access,
        condition: &Value,
        waiting: Waiting,
    ) {
        let Some(place) = self.access(place) else { return };
        let outside = std::mem::take(&mut self.out);
        let condition = self.value(condition);
        let checks = std::mem::replace(&mut self.out, outside);
        let (span, cell) = (self.span, self.cell(place.clone()));
        let step = |kind| Step { kind, span };
        match self.home(place.class) {
            // No other thread can change the value, so one read decides whether the thread ever continues.
            Some(home) => {
                self.push(StepKind::Assign(register, read(home, place.number)));
                self.out.extend(checks);
                match waiting {
                    Waiting::Step => self.push(StepKind::Assume(condition)),
                    // A thread that spins forever does not count as blocked, so it enters an empty loop.
                    Waiting::Loop => {
                        let spins = vec![step(StepKind::Loop(Vec::new()))];
                        let not_yet = Term::unary(UnaryOp::Not, condition);
                        self.push(StepKind::If(not_yet, spins, Vec::new()));
                    }
                }
            }
            None if checks.is_empty() => {
                self.push(StepKind::Await { register, place: cell, until: condition, access, waiting })
            }
            None => {
                let mut steps = vec![step(StepKind::Load(register, cell, access))];
                steps.extend(checks);
                steps.push(step(StepKind::If(condition, vec![step(StepKind::Break)], Vec::new())));
                self.push(StepKind::Loop(steps));
            }
        }
    }

    pub(crate) fn register(&mut self, name: impl Into<String>, init: i64) -> Register {
        self.registers.push(RegisterInfo::temporary(name, init));
        Register(self.registers.len() as u32 - 1)
    }

    /// The registers that represent the places of a class, if it is private to this thread.
    pub(crate) fn home(&mut self, class: usize) -> Option<Home> {
        let layout = self.layout;
        let of = &layout.classes[class];
        if of.private_to() != Some(self.thread) {
            return None;
        }
        if let Some(&home) = self.homes.get(&class) {
            return Some(home);
        }
        let home = if of.is_single() {
            let kind = layout.contents(class, self.core, self.nodes);
            let (holds, init) = (Holds::Place(class, of.first), of.initial[0]);
            self.registers.push(RegisterInfo { name: of.name.clone(), init, holds, kind });
            Home::Register(Register(self.registers.len() as u32 - 1))
        } else {
            let (name, init) = (of.name.clone(), of.initial.clone());
            let (class, kind) = (Some(class), layout.contents(class, self.core, self.nodes));
            self.arrays.push(Array { name, first: of.first, init, class, kind, marks: None });
            Home::Array(self.arrays.len() - 1)
        };
        self.homes.insert(class, home);
        Some(home)
    }

    fn cell(&self, place: Resolved) -> Cell {
        let index = (!self.layout.classes[place.class].is_single()).then_some(place.number);
        Cell { class: place.class, index }
    }

    pub(crate) fn check(&mut self, condition: Term, wrong: Wrong) {
        let claims = Claims::plain(&condition, wrong);
        self.check_with(condition, wrong, claims);
    }

    /// Adds a check with an explanation for reports.
    pub(crate) fn claim(
        &mut self,
        condition: Term,
        wrong: Wrong,
        about: About,
        place: Option<(usize, Term)>,
    ) {
        let claims = Claims::one(&condition, about, place);
        self.check_with(condition, wrong, claims);
    }

    fn check_with(&mut self, condition: Term, wrong: Wrong, mut claims: Claims) {
        let condition = match &self.guard {
            None => condition,
            Some(guard) => not(guard.clone()).or(condition),
        };
        if condition.number().is_none_or(|number| number == 0) {
            claims.0.iter_mut().for_each(|claim| claim.holds = condition.clone());
            self.push(StepKind::Check(condition, Violation { wrong, claims }));
        }
    }
}

fn read(home: Home, number: Term) -> Term {
    match home {
        Home::Register(register) => Term::Register(register),
        Home::Array(array) => Term::Element(array, Box::new(number)),
    }
}

pub(crate) fn write(home: Home, number: Term, value: Term) -> StepKind {
    match home {
        Home::Register(register) => StepKind::Assign(register, value),
        Home::Array(array) => StepKind::Special(CellEvent::Set(array, number, value)),
    }
}

fn not(condition: Term) -> Term {
    Term::unary(UnaryOp::Not, condition)
}
