//! From core code to flat code: addresses become numbers, accesses are checked.
//!
//! What can go wrong with memory is checked by the thread itself, before the access, with its registers alone. That nobody gave the memory back is a question about
//! several threads: it is asked by the property ([`crate::emit::property`]), wherever a thread is about to [touch](StepKind::Touch) something.

use crate::core::ObjectEvent;
use crate::flat::CellEvent;
use crate::flat::Violation;
use std::collections::{HashMap, HashSet};

use fencewright_c::typed::tree::Step as PathStep;
use fencewright_program::{BinaryOp, Span, UnaryOp};
use fencewright_text::{Diagnostic, Sources};

use crate::core::{
    Access, Base, Core, Location, NodeId, ObjectId, Projection, Register, Stmt, StmtKind, Strangers,
    ThreadNumber, Value, function_number,
};
use crate::flat::claims::{About, Claims};
use crate::flat::{
    Array, Cell, Mark, Program, RegisterInfo, Step, StepKind, Term, Thread, Touching, UNDEFINED, Waiting,
    Wrong,
};
use crate::layout::addresses::{Unknown, WayBack};
use crate::layout::classes::Layout;
use crate::nodes::{Nodes, Shape};
use crate::pipeline::Options;
use fencewright_text::Stop;

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
        };
        let code = resolver.block(&thread.code);
        errors.extend(resolver.errors);
        let (registers, arrays) = (resolver.registers, resolver.arrays);
        threads.push(Thread { name: thread.name.clone(), registers, arrays, code, span: thread.span });
    }
    if errors.is_empty() { Ok(Program { threads }) } else { Err(errors) }
}

/// What memory that only one thread uses is made of.
#[derive(Clone, Copy)]
pub(crate) enum Home {
    Register(Register),
    Array(usize),
}

pub(crate) struct Resolver<'a> {
    pub(crate) core: &'a Core,
    pub(crate) nodes: &'a Nodes,
    pub(crate) layout: &'a Layout,
    sources: &'a Sources,
    pub(crate) options: Options,
    stop: &'a Stop<'a>,
    pub(crate) thread: ThreadNumber,
    registers: Vec<RegisterInfo>,
    pub(crate) arrays: Vec<Array>,
    /// The registers of classes that only this thread uses.
    homes: HashMap<usize, Home>,
    /// The arrays that mark what this thread gave back.
    pub(crate) marks: HashMap<(usize, Mark), usize>,
    /// How often this thread has allocated each object.
    pub(crate) counters: HashMap<ObjectId, Register>,
    /// When the part of a value that is being resolved is computed at all.
    pub(crate) guard: Option<Term>,
    pub(crate) out: Vec<Step>,
    pub(crate) span: Span,
    pub(crate) errors: Vec<Diagnostic>,
}

/// A place with its number.
#[derive(Clone)]
struct Resolved {
    class: usize,
    number: Term,
}

/// A way forward from a pointer: the way back that it undoes; whether the pointer was found on that way and points to no structure; the number of the member then.
type Forward<'a> = (&'a WayBack, Term, Term);

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

    /// What happens, with the line where it does.
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
                if !self.layout.is_freed(*object) {
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
            StmtKind::Special(ObjectEvent::Free(value, node)) => return self.free(value, *node),
            StmtKind::Beyond(when, text) => StepKind::Beyond(self.value(when), self.with_line(text, span)),
        };
        self.span = span;
        self.push(kind);
    }

    /// An indivisible block. That nothing is touched which somebody gave back is asked before the block, so the block must not compute what it touches.
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
        // What is written is checked when the old value is known.
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
            // It drains the buffers all the same.
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
            // Nobody else changes it.
            Some(home) => {
                self.push(StepKind::Assign(register, read(home, place.number)));
                self.out.extend(checks);
                match waiting {
                    Waiting::Step => self.push(StepKind::Assume(condition)),
                    // Whoever spins can move.
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
        self.registers.push(RegisterInfo { name: name.into(), init });
        Register(self.registers.len() as u32 - 1)
    }

    /// What the places of a class are made of, if only this thread uses them.
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
            Home::Register(self.register(of.name.clone(), of.initial[0]))
        } else {
            let (name, init) = (of.name.clone(), of.initial.clone());
            self.arrays.push(Array { name, first: of.first, init, marks: None });
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

    /// A check that says what it is about.
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

    /// A value that is computed only if something holds.
    fn guarded(&mut self, when: Term, value: &Value) -> Term {
        self.when(when, |this| this.value(value))
    }

    /// Work on parts of values that are computed only if something holds.
    pub(crate) fn when<T>(&mut self, when: Term, work: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.guard.clone();
        self.guard = Some(match &outer {
            None => when,
            Some(guard) => guard.clone().and(when),
        });
        let result = work(self);
        self.guard = outer;
        result
    }

    /// The node that a register points to.
    pub(crate) fn points_of(&self, register: Register) -> Option<NodeId> {
        self.core.threads[self.thread.0 as usize].registers[register.0 as usize].points
    }

    pub(crate) fn value(&mut self, value: &Value) -> Term {
        match value {
            Value::Number(number) => Term::Number(*number),
            Value::Register(register) => Term::Register(*register),
            Value::Function(function) => Term::Number(function_number(*function)),
            Value::Unary(op, a) => {
                let term = self.value(a);
                self.operation_on(*op, a, term)
            }
            Value::Binary(op, a, b) => {
                let x = self.value(a);
                let y = match op {
                    BinaryOp::And => self.guarded(x.clone(), b),
                    BinaryOp::Or => self.guarded(not(x.clone()), b),
                    _ => self.value(b),
                };
                self.operation(*op, (a, x), (b, y))
            }
            Value::If(condition, a, b) => {
                let condition = self.value(condition);
                let a = self.guarded(condition.clone(), a);
                let b = self.guarded(not(condition.clone()), b);
                Term::choice(condition, a, b)
            }
            Value::Address(place) => match self.place(place, false) {
                Some(place) => place.number.times(self.layout.classes[place.class].scale),
                None => Term::Number(0),
            },
            Value::Move(pointer, by, node) => {
                let (pointer, by) = (self.value(pointer), self.value(by));
                self.moved(pointer, by, *node)
            }
            Value::Difference(a, b, node) => {
                let (a, b) = (self.value(a), self.value(b));
                self.distance(a, b, *node)
            }
            Value::Container { member, node, path, .. } => {
                let member = self.value(member);
                self.container(member, *node, path)
            }
        }
    }

    /// A pointer moved by some elements: it stays in its array, or points behind its end.
    fn moved(&mut self, pointer: Term, by: Term, node: NodeId) -> Term {
        let Some(class) = self.layout.class(self.nodes, node) else {
            return Term::binary(BinaryOp::Add, pointer, by);
        };
        let of = &self.layout.classes[class];
        let scale = of.scale;
        let moved = Term::binary(BinaryOp::Add, pointer.clone(), by.clone().times(scale));
        if by.number() == Some(0) {
            return moved;
        }
        let mut same_array = Term::Number(0);
        for (low, high) in of.arrays() {
            let (low, high) = (low * scale, high * scale);
            same_array =
                same_array.or(pointer.clone().within(low, high).and(moved.clone().within(low, high)));
        }
        let number = moved.clone().with(BinaryOp::Div, scale);
        self.claim(same_array, Wrong::Bounds, About::Moved, Some((class, number)));
        moved
    }

    /// From a pointer to a member back to one to the structure; to nowhere, if there is no structure around the member.
    fn container(&mut self, member: Term, node: NodeId, path: &[PathStep]) -> Term {
        let layout = self.layout;
        let Some(outer) = layout.class(self.nodes, node) else { return Term::Number(0) };
        let way = layout.ways_back.iter().find(|way| way.outer == outer && way.path == path);
        let Some(way) = way else {
            if layout.way(self.nodes, outer, path).is_some() {
                // Members have the numbers of their structures.
                return member;
            }
            self.check(member.with(BinaryOp::Eq, 0), Wrong::Pointer);
            return Term::Number(0);
        };
        let (from, of) = (layout.classes[way.inner].scale, &layout.classes[outer]);
        let distance = member.clone().with(BinaryOp::Div, from).plus(-way.base);
        let number = distance.clone().with(BinaryOp::Div, way.width);
        // Behind the last element of an array there is a number too.
        let mut fits = of.has_number(&number);
        if from != 1 {
            fits = fits.and(member.clone().with(BinaryOp::Rem, from).with(BinaryOp::Eq, 0));
        }
        if way.width != 1 {
            fits = fits.and(distance.with(BinaryOp::Rem, way.width).with(BinaryOp::Eq, 0));
        }
        let outside = member.clone().plus(way.outside);
        let fits_or_out = fits.clone().or(way.is_outside(&outside));
        self.unknown_if(not(fits_or_out), Unknown::Number);
        let outside = match way.at_start {
            true => Term::choice(member.clone().with(BinaryOp::Eq, 0), Term::Number(0), outside),
            false => outside,
        };
        Term::choice(fits, number.times(of.scale), outside)
    }

    /// A place that is read or written now. If there can be none, the thread ends.
    fn access(&mut self, place: &Location) -> Option<Resolved> {
        let resolved = self.place(place, true);
        let Some(resolved) = resolved.filter(|place| self.layout.classes[place.class].count > 0) else {
            self.check_with(Term::Number(0), Wrong::Pointer, Claims::plain(&Term::Number(0), Wrong::Pointer));
            return None;
        };
        // Whoever accesses a local variable by its name does so while it is there; otherwise it says that it follows a pointer.
        let by_name = match place.base {
            Base::Object(object) => !self.layout.placed(object).heap,
            Base::Pointed(..) => false,
        };
        if !by_name && self.layout.can_be_freed(resolved.class) {
            let number = self.in_registers(resolved.number);
            self.push(StepKind::Special(CellEvent::Touch(resolved.class, number.clone(), Touching::Access)));
            return Some(Resolved { number, ..resolved });
        }
        Some(resolved)
    }

    /// A place has to be there. If somebody may give it back, that is asked before a step of its own, which does nothing: a label at what comes next could be reached again.
    fn reach(&mut self, place: &Location) {
        let before = self.out.len();
        self.access(place);
        if let Base::Object(object) = place.base
            && let placed = self.layout.placed(object)
            && !placed.heap
            && self.layout.is_freed(object)
        {
            self.push(StepKind::Special(CellEvent::Touch(
                placed.class,
                Term::Number(placed.first),
                Touching::Access,
            )));
        }
        if self.out[before..].iter().any(|step| matches!(step.kind, StepKind::Special(CellEvent::Touch(..))))
        {
            self.push(StepKind::Special(CellEvent::Skip));
        }
    }

    /// The same without elements of arrays of registers, which a property cannot choose by a register.
    pub(crate) fn in_registers(&mut self, number: Term) -> Term {
        if !number.has_element() {
            return number;
        }
        let register = self.register("address", 0);
        self.push(StepKind::Assign(register, number));
        Term::Register(register)
    }

    fn place(&mut self, place: &Location, access: bool) -> Option<Resolved> {
        let layout = self.layout;
        let mut ways = Vec::new();
        let (mut resolved, allocation) = match &place.base {
            Base::Object(object) => {
                let placed = layout.placed(*object);
                let resolved = Resolved { class: placed.class, number: Term::Number(placed.first) };
                (resolved, placed.heap.then_some(placed.elements))
            }
            Base::Pointed(pointer, node) => {
                let pointer = self.value(pointer);
                let class = layout.class(self.nodes, *node)?;
                let of = &layout.classes[class];
                let number = pointer.clone().with(BinaryOp::Div, of.scale);
                ways = Self::ways_forward(layout, class, place, &pointer);
                if access {
                    let mut is_there = of.is_place(&number);
                    if of.scale != 1 {
                        is_there = pointer.with(BinaryOp::Rem, of.scale).with(BinaryOp::Eq, 0).and(is_there);
                    }
                    for (way, is_outside, member) in &ways {
                        let is_member = layout.classes[way.inner].is_place(member);
                        is_there = is_there.or(is_outside.clone().and(is_member));
                    }
                    self.claim(is_there, Wrong::Pointer, About::Pointer, Some((class, number.clone())));
                } else if !place.path.is_empty() {
                    self.part_of_nothing(class, &pointer, &ways);
                }
                (Resolved { class, number }, None)
            }
        };
        let pointed = matches!(place.base, Base::Pointed(..));
        let start = resolved.number.clone();
        let end = layout.class(self.nodes, place.node);
        let mut path = place.path.as_slice();
        if let (Some(elements), Some((Projection::Element(index, _), rest))) =
            (allocation, path.split_first())
            && (self.end_of(resolved.class, path) != end || end.is_none())
        {
            let of = (resolved.class, resolved.number.clone());
            let number = self.element(index, elements, access || !rest.is_empty(), of);
            resolved.number = Term::binary(BinaryOp::Add, resolved.number, number);
            path = rest;
        }
        for (n, projection) in path.iter().enumerate() {
            let (step, index) = match projection {
                Projection::Field(field) => (PathStep::Field(*field), Term::Number(0)),
                Projection::Element(index, length) => {
                    let length = match (length, self.nodes.shape_of(layout.classes[resolved.class].node)) {
                        (0, Shape::Array(length, _)) => *length,
                        _ => *length,
                    };
                    let of = (resolved.class, resolved.number.clone());
                    (PathStep::Element(0), self.element(index, length, access || n + 1 < path.len(), of))
                }
            };
            let (class, width, base) = layout.part(resolved.class, self.nodes, step)?;
            let number = Term::binary(BinaryOp::Add, resolved.number.times(width).plus(base), index);
            resolved = Resolved { class, number };
            for (way, is_outside, member) in ways.iter().filter(|(way, ..)| way.path.len() == n + 1) {
                debug_assert_eq!(way.inner, class);
                resolved.number = Term::choice(is_outside.clone(), member.clone(), resolved.number);
            }
        }
        if Some(resolved.class) != end {
            let message = "this place is used as two different things";
            self.errors.push(Diagnostic::new(self.span, message).help("give every object one type"));
            return None;
        }
        // The address of a part of nothing is nothing.
        if !access && pointed && resolved.number != start {
            let is_null = start.with(BinaryOp::Eq, 0);
            resolved.number = Term::choice(is_null, Term::Number(0), resolved.number);
        }
        Some(resolved)
    }

    /// The address of a part of no structure is not known, unless it is the member that the pointer was found by.
    fn part_of_nothing(&mut self, class: usize, pointer: &Term, ways: &[Forward<'_>]) {
        let layout = self.layout;
        let of = &layout.classes[class];
        let possible = of.used.moved
            || of.strangers != Strangers::default()
            || layout.ways_back.iter().any(|way| way.outer == class);
        if !possible {
            return;
        }
        let number = pointer.clone().with(BinaryOp::Div, of.scale);
        let known = pointer.clone().with(BinaryOp::Eq, 0).or(of.is_place(&number));
        let known = ways.iter().fold(known, |known, (_, is_outside, _)| known.or(is_outside.clone()));
        self.beyond_if(not(known), Unknown::Number);
    }

    /// The ways back that a place, found by way of a pointer into a class, goes forward again.
    fn ways_forward(layout: &'a Layout, class: usize, place: &Location, pointer: &Term) -> Vec<Forward<'a>> {
        let goes = |way: &&WayBack| {
            way.outer == class
                && way.path.len() <= place.path.len()
                && way.path.iter().zip(&place.path).all(|(step, projection)| match (step, projection) {
                    (PathStep::Field(a), Projection::Field(b)) => a == b,
                    (PathStep::Element(a), Projection::Element(Value::Number(b), _)) => {
                        i64::try_from(*a) == Ok(*b)
                    }
                    _ => false,
                })
        };
        let ways = layout.ways_back.iter().filter(goes);
        let member = |way: &'_ WayBack| {
            let member = pointer.clone().plus(-way.outside);
            member.with(BinaryOp::Div, layout.classes[way.inner].scale)
        };
        ways.map(|way| (way, way.is_outside(pointer), member(way))).collect()
    }

    /// The class at the end of a way.
    fn end_of(&self, class: usize, path: &[Projection]) -> Option<usize> {
        path.iter().try_fold(class, |class, projection| {
            let step = match projection {
                Projection::Field(field) => PathStep::Field(*field),
                Projection::Element(..) => PathStep::Element(0),
            };
            Some(self.layout.part(class, self.nodes, step)?.0)
        })
    }

    /// An index, checked: an address may be that behind the last element.
    fn element(&mut self, index: &Value, length: u64, access: bool, of: (usize, Term)) -> Term {
        let index = self.value(index);
        if length == 0 {
            let message = "how long this array is, is not known";
            self.errors.push(Diagnostic::new(self.span, message).help("give it a length"));
        }
        let length = length.min(1 << 40) as i64;
        let within = index.clone().within(0, if access { length - 1 } else { length });
        self.claim(within, Wrong::Bounds, About::Element(index.clone(), length), Some(of));
        index
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
