//! Random statements.

use fencewright_lang::ast::*;
use fencewright_program::{Numbers, UnaryOp};

use super::{Generator, NOWHERE, expr, name};

impl Generator {
    /// A statement, sometimes with labels.
    pub fn statement(&mut self, kind: StatementKind) -> Statement {
        let labels = match self.indivisible.is_some() {
            true => 0,
            false => [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2][self.random.below(15)],
        };
        Statement { labels: (0..labels).map(|_| self.label()).collect(), kind, span: NOWHERE }
    }

    /// A new label in its scope; a `for` and its surroundings may use the same names.
    fn label(&mut self) -> Name {
        let number = self.labels.last_mut().expect("a thread is a layer");
        *number += 1;
        name(format!("l{}", *number - 1))
    }

    pub fn block(&mut self) -> Block {
        let constants = self.constants.len();
        self.depth += 1;
        let mut statements = Vec::new();
        if self.one_in(12) {
            statements.push(self.constant_declaration());
        }
        let wanted = match self.depth {
            1 => self.fuel,
            _ => *self.random.pick(&[0, 1, 1, 1, 2, 2, 3]),
        };
        while statements.len() < wanted && self.fuel > 0 {
            self.fuel -= 1;
            let mut more = self.statements();
            statements.append(&mut more);
        }
        if self.indivisible.is_none() && self.one_in(8) {
            let labels = vec![self.label()];
            statements.push(Statement { labels, kind: StatementKind::Empty, span: NOWHERE });
        }
        self.depth -= 1;
        self.constants.truncate(constants);
        Block { statements, span: NOWHERE }
    }

    /// One statement, or a section between `lock` and `unlock`.
    fn statements(&mut self) -> Vec<Statement> {
        if self.indivisible.is_some() {
            let kind = self.indivisible_statement();
            return vec![self.statement(kind)];
        }
        if self.one_in(24) {
            let inside = self.simple();
            let mutex = if self.one_in(2) { self.mutex_place() } else { None };
            let section = [StatementKind::Lock(mutex.clone()), inside, StatementKind::Unlock(mutex)];
            return section.into_iter().map(|kind| self.statement(kind)).collect();
        }
        // Labels are numbered in the order of the text, so the labels of the statement are made before the labels inside it.
        let Statement { labels, .. } = self.statement(StatementKind::Skip);
        let kind = match self.random.below(5) {
            0 | 1 if self.depth < 4 => self.compound(),
            _ => self.simple(),
        };
        vec![Statement { labels, kind, span: NOWHERE }]
    }

    fn simple(&mut self) -> StatementKind {
        if self.loops > 0 && self.one_in(6) {
            return if self.one_in(2) { StatementKind::Break } else { StatementKind::Continue };
        }
        match self.random.below(30) {
            0..=6 => StatementKind::Assign(self.shared_place(), self.value(1)),
            7..=11 => match self.register_place() {
                Some((place, _)) => {
                    let value = if self.one_in(2) { self.load() } else { self.value(2) };
                    StatementKind::Assign(place, value)
                }
                None => StatementKind::Skip,
            },
            12 | 13 => self.havoc(),
            14 | 15 => StatementKind::Expr(self.read_modify_write()),
            16 => StatementKind::Skip,
            17 => StatementKind::Fence,
            18 => StatementKind::StoreFence,
            19 if self.one_in(2) => StatementKind::Lock(None),
            19 => StatementKind::Lock(self.mutex_place()),
            20 if self.one_in(2) => StatementKind::Unlock(None),
            20 => StatementKind::Unlock(self.mutex_place()),
            21 => StatementKind::Assume(self.condition()),
            22 | 23 => StatementKind::Assert(self.condition(), None),
            24 | 25 => StatementKind::Await(self.condition()),
            26 | 27 => StatementKind::Goto(name("nowhere yet")),
            28 => StatementKind::Stop,
            _ => StatementKind::Block(self.block()),
        }
    }

    fn compound(&mut self) -> StatementKind {
        match self.random.below(12) {
            0 | 1 => {
                let condition = self.condition();
                let then = self.block();
                StatementKind::If(condition, then, self.one_in(2).then(|| self.block()))
            }
            2 => {
                let condition = self.condition();
                StatementKind::While(condition, self.loop_body())
            }
            3 => StatementKind::Loop(self.loop_body()),
            4 | 5 => StatementKind::For(name(format!("j{}", self.depth)), self.for_range(), self.copied()),
            6..=8 => StatementKind::Choose((0..1 + self.random.below(3)).map(|_| self.block()).collect()),
            9 | 10 => StatementKind::Atomic(self.undivided(true)),
            _ => StatementKind::Snapshot(self.undivided(false)),
        }
    }

    /// A block, often with a `break` or `continue`.
    fn loop_body(&mut self) -> Block {
        self.loops += 1;
        let mut body = self.block();
        if self.one_in(3) {
            let jump = if self.one_in(2) { StatementKind::Break } else { StatementKind::Continue };
            let jump = self.statement(jump);
            let jump = match self.one_in(3) {
                true => jump,
                false => {
                    let inside = Block { statements: vec![jump], span: NOWHERE };
                    let condition = self.condition();
                    self.statement(StatementKind::If(condition, inside, None))
                }
            };
            let position = self.random.below(body.statements.len().max(1));
            body.statements.insert(position, jump);
        }
        self.loops -= 1;
        body
    }

    fn for_range(&mut self) -> RangeExpr {
        let low = self.random.between(-1, 1);
        let interval = (low, low + self.random.between(-1, 2));
        let range = self.range(interval);
        self.constants.push((format!("j{}", self.depth), interval));
        range
    }

    /// The body of a `for`, whose index is the last constant.
    fn copied(&mut self) -> Block {
        self.labels.push(0);
        let body = self.loop_body();
        self.labels.pop();
        self.constants.pop();
        body
    }

    fn undivided(&mut self, may_store: bool) -> Block {
        self.indivisible = Some(may_store);
        self.fuel += 2;
        let block = self.block();
        self.indivisible = None;
        block
    }

    fn indivisible_statement(&mut self) -> StatementKind {
        let may_store = self.indivisible == Some(true);
        match self.random.below(16) {
            0..=3 if may_store => StatementKind::Assign(self.shared_place(), self.value(1)),
            0..=6 => match self.register_place() {
                Some((place, _)) => StatementKind::Assign(place, self.value(2)),
                None => StatementKind::Skip,
            },
            7 => self.havoc(),
            8 | 9 => StatementKind::Assume(self.condition()),
            10 | 11 => StatementKind::Assert(self.condition(), None),
            12 => StatementKind::Skip,
            13 => {
                let condition = self.condition();
                let then = self.block();
                StatementKind::If(condition, then, self.one_in(2).then(|| self.block()))
            }
            14 => StatementKind::Choose((0..1 + self.random.below(2)).map(|_| self.block()).collect()),
            _ if self.one_in(2) => StatementKind::Block(self.block()),
            _ => {
                let index = name(format!("j{}", self.depth));
                let range = self.for_range();
                let body = self.block();
                self.constants.pop();
                StatementKind::For(index, range, body)
            }
        }
    }

    /// `= *`, with a range unless the declaration has one.
    fn havoc(&mut self) -> StatementKind {
        let to_register = self.one_in(2) || self.indivisible == Some(false);
        let (place, ranged, wraps) = match to_register.then(|| self.register_place()) {
            Some(None) => return StatementKind::Skip,
            Some(Some((place, shape))) => (place, shape.ranged, shape.wraps),
            None => {
                let place = self.shared_place();
                let shared = self.shared.iter().find(|s| s.name == place.name.text);
                let (ranged, wraps) = shared.map_or((false, None), |s| (s.ranged, s.wraps));
                (place, ranged, wraps)
            }
        };
        // A choice must stay within the type.
        let unsigned = matches!(wraps, Some(UnaryOp::Unsigned(_)));
        let low = self.random.between(if unsigned { 0 } else { -1 }, 1);
        // With `numbers real`, a range has infinitely many values unless both ends are the same.
        let real = self.numbers == Numbers::Real;
        let high = low + if real { 0 } else { self.random.between(0, 1) };
        let range = (!ranged || real || self.one_in(2)).then(|| self.range((low, high)));
        StatementKind::Havoc(place, range)
    }
}

/// A place in a formula or hint: `p@label`.
pub fn at(thread: ThreadRef, label: &str) -> Expr {
    expr(ExprKind::At(thread, name(label)))
}
