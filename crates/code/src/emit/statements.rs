//! From flat code to the syntax tree of `.fw`: statements and expressions of one thread.

use std::collections::HashMap;

use fencewright_front_end::facts;
use fencewright_fw::ast::{Block, Expr, ExprKind, Place, Statement, StatementKind};
use fencewright_fw::build;
use fencewright_program::{BinaryOp, Span, UnaryOp};
use fencewright_text::Stop;

use crate::core::{Label, Register};
use crate::emit::Vocabulary;
use crate::emit::property::{Evidence, Touched};
use crate::flat::claims::{self, About, Claim, Claims};
use crate::flat::tidy::Reads;
use crate::flat::{Awaited, Cell, CellEvent, Step, StepKind, Term, Touching, Violation, Waiting, Wrong};

/// The message of the assertion that fails where an undefined value is used.
const UNDEFINED_DECIDES: &str = "the behaviour depends on an undefined value";

/// Emits the statements of one thread.
pub(crate) struct Statements<'a> {
    vocabulary: &'a mut Vocabulary,
    evidence: &'a mut Evidence,
    thread: &'a str,
    registers: Vec<String>,
    arrays: Vec<String>,
    reads: Reads,
    stop: &'a Stop<'a>,
    /// Number of labels emitted so far, by base name.
    labels: HashMap<&'static str, usize>,
    /// Labels for the next statement.
    pending: Vec<String>,
    /// Whether one of the pending labels marks an access to memory that can be freed. No other path through the thread may reach such a label.
    touching: bool,
}

impl<'a> Statements<'a> {
    pub fn new(
        vocabulary: &'a mut Vocabulary,
        evidence: &'a mut Evidence,
        thread: &'a str,
        registers: Vec<String>,
        arrays: Vec<String>,
        reads: Reads,
        stop: &'a Stop<'a>,
    ) -> Self {
        let (labels, pending, touching) = (HashMap::new(), Vec::new(), false);
        Statements { vocabulary, evidence, thread, registers, arrays, reads, stop, labels, pending, touching }
    }

    pub fn block(&mut self, steps: &[Step]) -> Vec<Statement> {
        let mut statements = Vec::new();
        for step in self.stop.polled(steps) {
            self.step(step, &mut statements);
        }
        if !self.pending.is_empty() {
            let span = steps.last().map(|step| step.span).unwrap_or_default();
            let kind = if self.touching { StatementKind::Skip } else { StatementKind::Empty };
            self.push(kind, span, &mut statements);
        }
        statements
    }

    fn push(&mut self, kind: StatementKind, span: Span, out: &mut Vec<Statement>) {
        self.touching = false;
        let names = std::mem::take(&mut self.pending);
        let labels = names.into_iter().map(|text| build::name(text, span)).collect();
        out.push(Statement { labels, kind, span });
    }

    /// A nested block. Pending labels belong to the enclosing statement, so they are set aside while the block is emitted.
    fn inner(&mut self, steps: &[Step], span: Span) -> Block {
        let (pending, touching) = (std::mem::take(&mut self.pending), std::mem::take(&mut self.touching));
        let statements = self.block(steps);
        (self.pending, self.touching) = (pending, touching);
        build::block(statements, span)
    }

    fn new_label(&mut self, kind: &'static str) -> String {
        let count = self.labels.entry(kind).or_default();
        *count += 1;
        format!("{kind}_{count}")
    }

    fn step(&mut self, step: &Step, out: &mut Vec<Statement>) {
        let span = step.span;
        if self.touching && is_entered_elsewhere(step) {
            self.push(StatementKind::Skip, span, out);
        }
        let kind = match &step.kind {
            StepKind::Steps(steps) if steps.is_empty() => return,
            StepKind::Block(steps) if steps.is_empty() => return,
            StepKind::Steps(steps) => StatementKind::Steps(self.inner(steps, span)),
            StepKind::Block(steps) => StatementKind::Block(self.inner(steps, span)),
            StepKind::Assign(register, value) => self.assign(*register, value, span),
            StepKind::Special(CellEvent::Set(array, index, value)) => {
                let index = self.expression(index, span);
                let place = build::cell(&self.arrays[*array], index, span);
                StatementKind::Assign(place, self.expression(value, span))
            }
            StepKind::Havoc(register, low, high) => {
                StatementKind::Havoc(self.register(*register, span), Some(build::range(*low, *high, span)))
            }
            StepKind::Load(register, cell, _) => {
                StatementKind::Assign(self.register(*register, span), self.load(cell, span))
            }
            StepKind::Store(cell, value, _) => {
                StatementKind::Assign(self.cell(cell, span), self.expression(value, span))
            }
            StepKind::Atomic(steps) => StatementKind::Atomic(self.inner(steps, span)),
            StepKind::Update { place: cell, old, when, new, .. } => {
                self.update(cell, *old, when.as_ref(), new, span)
            }
            StepKind::Lock => StatementKind::Lock(None),
            StepKind::Unlock => StatementKind::Unlock(None),
            StepKind::Await { register, place: cell, until: condition, waiting, .. } => {
                self.wait(*register, cell, condition, *waiting, span)
            }
            StepKind::Special(CellEvent::AwaitAll(all)) => {
                let happened = |Awaited { cell, count }: &Awaited| {
                    let (op, number) = count.map_or((BinaryOp::Ne, 0), |count| (BinaryOp::Eq, count));
                    build::binary(op, self.load(cell, span), build::int(number, span), span)
                };
                let all = build::balanced(BinaryOp::And, all.iter().map(happened).collect(), span);
                StatementKind::Snapshot(build::block(vec![build::assume(all, span)], span))
            }
            StepKind::Special(CellEvent::Skip) => StatementKind::Skip,
            StepKind::Fence => StatementKind::Fence,
            StepKind::StoreFence => StatementKind::StoreFence,
            StepKind::Assume(condition) => StatementKind::Assume(self.expression(condition, span)),
            StepKind::Assert(condition, text) => {
                let text = Some(text.clone()).filter(|text| !text.is_empty());
                StatementKind::Assert(self.expression(condition, span), text)
            }
            StepKind::Check(condition, Violation { wrong, claims }) => {
                return self.check(condition, *wrong, claims, span, out);
            }
            StepKind::Special(CellEvent::Touch(class, number, touching)) => {
                let label = self.new_label("access");
                let number = self.in_formula(number);
                let (thread, at) = (self.thread.to_string(), label.clone());
                let about = match touching {
                    Touching::Access => facts::About::Access,
                    Touching::Free => facts::About::FreeAgain,
                };
                let place = Some((*class, number.clone()));
                self.mistake(&label, vec![facts::Claim { holds: None, about, place }], span);
                let frees = *touching == Touching::Free;
                self.evidence.touched.push(Touched { thread, at, class: *class, number, frees });
                self.touching = true;
                return self.pending.push(label);
            }
            StepKind::If(condition, then, otherwise) => {
                let otherwise = (!otherwise.is_empty()).then(|| self.inner(otherwise, span));
                StatementKind::If(self.expression(condition, span), self.inner(then, span), otherwise)
            }
            StepKind::Choose(ways) => {
                StatementKind::Choose(ways.iter().map(|way| self.inner(way, span)).collect())
            }
            StepKind::Loop(body) => StatementKind::Loop(self.inner(body, span)),
            StepKind::Break => StatementKind::Break,
            StepKind::Continue => StatementKind::Continue,
            StepKind::Label(label) => {
                let name = label_name(*label);
                if *label == Label::EXIT {
                    self.evidence.exits.push((self.thread.to_string(), name.clone()));
                }
                return self.pending.push(name);
            }
            StepKind::Goto(label) => StatementKind::Goto(build::name(label_name(*label), span)),
            StepKind::Stop => StatementKind::Stop,
            StepKind::Beyond(condition, text) => {
                // Pending labels belong to the whole statement: jumps to them must not enter the block.
                let (pending, touching) =
                    (std::mem::take(&mut self.pending), std::mem::take(&mut self.touching));
                let place = build::cell(&self.vocabulary.beyond[text], build::int(1, span), span);
                let end = StatementKind::Assume(build::value_of(place, span));
                let mut end = vec![build::statement(end, span)];
                // Earlier passes may have relied on execution not continuing after this point. So reaching it counts as the use of an undefined
                // value, which may violate any property.
                self.check(&Term::Number(0), Wrong::Undefined, &Claims::default(), span, &mut end);
                let end = build::block(end, span);
                (self.pending, self.touching) = (pending, touching);
                match condition.number() {
                    Some(_) => StatementKind::Block(end),
                    None => StatementKind::If(self.expression(condition, span), end, None),
                }
            }
        };
        self.push(kind, span, out);
    }

    fn assign(&mut self, register: Register, value: &Term, span: Span) -> StatementKind {
        StatementKind::Assign(self.register(register, span), self.expression(value, span))
    }

    /// Emits a memory check: if it fails, the thread ends at a label that the property forbids.
    fn check(
        &mut self,
        condition: &Term,
        wrong: Wrong,
        claims: &Claims,
        span: Span,
        out: &mut Vec<Statement>,
    ) {
        let label = self.new_label(wrong.label());
        let claims = claims.0.iter().map(|claim| self.claim(claim, condition)).collect();
        self.mistake(&label, claims, span);
        self.evidence.failed.push((self.thread.to_string(), label.clone()));
        let labels = vec![build::name(label, span)];
        let stop = Statement { labels, kind: StatementKind::Stop, span };
        let plain = |kind| Statement { labels: Vec::new(), kind, span };
        let failure = match wrong {
            // Behaviour after the use of an undefined value is arbitrary, so it may also make an assertion fail.
            Wrong::Undefined => {
                let fails = StatementKind::Assert(build::int(0, span), Some(UNDEFINED_DECIDES.to_string()));
                let ways = [vec![plain(StatementKind::Skip), stop], vec![plain(fails)]];
                plain(StatementKind::Choose(ways.map(|way| build::block(way, span)).into()))
            }
            _ => stop,
        };
        let failure = build::block(vec![failure], span);
        if condition.number() == Some(0) {
            return self.push(StatementKind::Block(failure), span, out);
        }
        let failed = self.expression(&Term::unary(UnaryOp::Not, condition.clone()), span);
        self.push(StatementKind::If(failed, failure, None), span, out);
    }

    fn mistake(&mut self, label: &str, claims: Vec<facts::Claim>, span: Span) {
        let (thread, label) = (self.thread.to_string(), label.to_string());
        self.evidence.mistakes.push(facts::Mistake { thread, label, span, claims });
    }

    /// The claim of a check, for reports. A term is included only if the check itself reads all its registers, because other values may not be
    /// available after the failure.
    fn claim(&self, claim: &Claim, condition: &Term) -> facts::Claim {
        let about = match &claim.about {
            About::Pointer => facts::About::Pointer,
            About::Moved => facts::About::Moved,
            About::Free => facts::About::Free,
            About::Said(text) => facts::About::Said(text.clone()),
            About::Element(index, length) => {
                facts::About::Element { index: self.known(index, condition), length: *length }
            }
            About::Undefined(Term::Register(register)) => {
                facts::About::Undefined { register: Some(self.registers[register.0 as usize].clone()) }
            }
            About::Undefined(Term::Element(array, _)) => {
                facts::About::Undefined { register: Some(self.arrays[*array].clone()) }
            }
            About::Undefined(_) => facts::About::Undefined { register: None },
        };
        let place =
            claim.place.as_ref().and_then(|(class, number)| Some((*class, self.known(number, condition)?)));
        facts::Claim { holds: self.known(&claim.holds, condition), about, place }
    }

    /// A term as a formula, if the check reads all registers of the term.
    fn known(&self, term: &Term, condition: &Term) -> Option<Expr> {
        claims::is_read_in(term, condition)
            .then(|| crate::emit::property::about(self.thread, self.plain(term)))
    }

    /// A term as an expression in which the undefined value is a number, not the named constant.
    fn plain(&self, term: &Term) -> Expr {
        let span = Span::default();
        let again = |term: &Term| self.plain(term);
        match term {
            Term::Number(number) => build::int(*number, span),
            Term::Register(register) => build::value_of(self.register(*register, span), span),
            Term::Element(array, index) => {
                build::value_of(build::cell(&self.arrays[*array], again(index), span), span)
            }
            Term::Unary(op, a) => build::unary(*op, again(a), span),
            Term::Binary(op, a, b) => build::binary(*op, again(a), again(b), span),
            Term::If(condition, a, b) => {
                let parts = [condition, a, b].map(|term| Box::new(again(term)));
                let [condition, a, b] = parts;
                Expr { kind: ExprKind::If(condition, a, b), span }
            }
        }
    }

    /// Emits a read-modify-write: as `swap`, `fetch_add` or `cas` if it has that form, otherwise as an atomic block.
    fn update(
        &mut self,
        cell: &Cell,
        old: Register,
        when: Option<&Term>,
        new: &Term,
        span: Span,
    ) -> StatementKind {
        let place = self.cell(cell, span);
        let expression = |kind| Expr { kind, span };
        let operation = match (when, new) {
            (None, new) if !new.has(old) => ExprKind::Swap(place, Box::new(self.expression(new, span))),
            (None, Term::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), left, by))
                if **left == Term::Register(old) && !by.has(old) =>
            {
                let by = match op {
                    BinaryOp::Sub => Term::unary(UnaryOp::Neg, (**by).clone()),
                    _ => (**by).clone(),
                };
                ExprKind::FetchAdd(place, Box::new(self.expression(&by, span)))
            }
            (Some(Term::Binary(BinaryOp::Eq, left, right)), new)
                if **left == Term::Register(old)
                    && !right.has(old)
                    && !new.has(old)
                    && !self.reads.is_read(old) =>
            {
                let (right, new) = (self.expression(right, span), self.expression(new, span));
                return StatementKind::Expr(expression(ExprKind::Cas(place, Box::new(right), Box::new(new))));
            }
            _ => return self.atomic_update(place, old, when, new, span),
        };
        match self.reads.is_read(old) {
            true => StatementKind::Assign(self.register(old, span), expression(operation)),
            false => StatementKind::Expr(expression(operation)),
        }
    }

    fn atomic_update(
        &mut self,
        place: Place,
        old: Register,
        when: Option<&Term>,
        new: &Term,
        span: Span,
    ) -> StatementKind {
        let load = build::assign(self.register(old, span), build::value_of(place.clone(), span), span);
        let store = build::assign(place, self.expression(new, span), span);
        let store = match when {
            None => store,
            Some(when) => {
                let when = self.expression(when, span);
                build::statement(StatementKind::If(when, build::block(vec![store], span), None), span)
            }
        };
        StatementKind::Atomic(build::block(vec![load, store], span))
    }

    /// Emits a wait. No register is needed if each evaluation of the condition uses the value, the value occurs in it only once, and nothing uses the
    /// value afterwards. [`Waiting::Loop`] becomes a loop rather than `await`, because a thread at an `await` counts as blocked, but a thread in the
    /// loop of the source does not.
    fn wait(
        &mut self,
        register: Register,
        cell: &Cell,
        condition: &Term,
        waiting: Waiting,
        span: Span,
    ) -> StatementKind {
        let load = self.load(cell, span);
        let place = self.register(register, span);
        let test = self.expression(condition, span);
        let once = condition.count(register) == 1 && condition.is_strict_in(register);
        let direct = once && !self.reads.is_read_outside_waiting(register);
        let statements = match (waiting, direct) {
            (Waiting::Loop, true) => {
                let not_yet = build::unary(UnaryOp::Not, replaced(test, &place, &load), span);
                return StatementKind::While(not_yet, build::block(Vec::new(), span));
            }
            (Waiting::Step, true) => vec![build::assume(replaced(test, &place, &load), span)],
            (Waiting::Step, false) => vec![build::assign(place, load, span), build::assume(test, span)],
            (Waiting::Loop, false) => {
                let leave = build::block(vec![build::statement(StatementKind::Break, span)], span);
                let test = build::statement(StatementKind::If(test, leave, None), span);
                let body = vec![build::assign(place, load, span), test];
                return StatementKind::Loop(build::block(body, span));
            }
        };
        StatementKind::Snapshot(build::block(statements, span))
    }

    fn register(&self, register: Register, span: Span) -> Place {
        build::scalar(&self.registers[register.0 as usize], span)
    }

    fn cell(&mut self, cell: &Cell, span: Span) -> Place {
        let index = cell.index.as_ref().map(|index| self.expression(index, span));
        let variable = &self.vocabulary.variables[&cell.class];
        match index {
            None => build::scalar(variable, span),
            Some(index) => build::cell(variable, index, span),
        }
    }

    fn load(&mut self, cell: &Cell, span: Span) -> Expr {
        build::value_of(self.cell(cell, span), span)
    }

    fn expression(&mut self, term: &Term, span: Span) -> Expr {
        match term {
            Term::Number(number) => self.vocabulary.number(*number, span),
            Term::Register(register) => build::value_of(self.register(*register, span), span),
            Term::Element(array, index) => {
                let index = self.expression(index, span);
                build::value_of(build::cell(&self.arrays[*array], index, span), span)
            }
            Term::Unary(op, a) => build::unary(*op, self.expression(a, span), span),
            Term::Binary(op, a, b) => {
                let a = self.expression(a, span);
                build::binary(*op, a, self.expression(b, span), span)
            }
            Term::If(condition, a, b) => {
                let condition = self.expression(condition, span);
                let a = self.expression(a, span);
                let b = self.expression(b, span);
                let kind = ExprKind::If(Box::new(condition), Box::new(a), Box::new(b));
                Expr { kind, span }
            }
        }
    }

    /// A term as a formula, in which each register is qualified with the thread.
    fn in_formula(&mut self, term: &Term) -> Expr {
        let span = Span::default();
        let expression = self.expression(term, span);
        crate::emit::property::about(self.thread, expression)
    }
}

fn label_name(label: Label) -> String {
    match label {
        Label::EXIT => "exit".to_string(),
        Label(number) => format!("label_{number}"),
    }
}

/// Substitutes an expression for a register.
fn replaced(expression: Expr, register: &Place, by: &Expr) -> Expr {
    let again = |expression: Box<Expr>| Box::new(replaced(*expression, register, by));
    let kind = match expression.kind {
        ExprKind::Place(place) if place == *register => return by.clone(),
        ExprKind::Unary(op, a) => ExprKind::Unary(op, again(a)),
        ExprKind::Binary(op, a, b) => ExprKind::Binary(op, again(a), again(b)),
        ExprKind::If(a, b, c) => ExprKind::If(again(a), again(b), again(c)),
        other => other,
    };
    Expr { kind, span: expression.span }
}

/// Whether control can reach the start of a step without passing the statement before it. This is so if the step starts with a loop or a label, or is
/// only a jump, which has no location of its own.
fn is_entered_elsewhere(step: &Step) -> bool {
    match &step.kind {
        StepKind::Steps(steps) | StepKind::Block(steps) => steps.first().is_some_and(is_entered_elsewhere),
        StepKind::Loop(_) | StepKind::Label(_) | StepKind::Goto(_) | StepKind::Break | StepKind::Continue => {
            true
        }
        _ => false,
    }
}
