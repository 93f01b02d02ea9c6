//! The position of a thread in its syntax tree, and the moves of control that are not steps.
//!
//! A position is a path into the syntax tree: the index of the current statement in each block, from the body of the thread inwards. So loops, copies
//! of `for` and jumps are followed on the tree itself. A position is *settled* if the statement there takes a step.

use std::collections::HashMap;

use fencewright_lang::ast::*;
use fencewright_program::BinaryOp;

use super::declarations::{Declared, Interval, Thread, as_constant, binary, constant, interval, unary};

/// A statement of a block; `copy` is the value of the index if the block is the body of a `for`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    block: usize,
    at: usize,
    copy: Option<i64>,
}

/// The frames from the body of the thread inwards. Every frame except the last is at the statement that contains the block of the next frame. The
/// empty position is the end of the thread.
pub type Position = Vec<Frame>;

/// The target of an assignment.
pub enum Target<'p> {
    Register(usize),
    /// An element of an array of registers, with a computed index.
    Element(&'p str, Interval, &'p Expr),
    Shared,
}

/// The code of a thread, prepared for walking.
pub struct Code<'f> {
    declared: &'f Declared<'f>,
    pub thread: &'f Thread<'f>,
    blocks: Vec<&'f Block>,
    numbers: HashMap<*const Block, usize>,
    /// Every label with its positions. A label in a `for` has one position in each copy of the body.
    places: Vec<(&'f str, Position)>,
    /// The labels with the settled positions that they lead to.
    pub labels: Vec<(&'f str, Position)>,
}

impl<'f> Code<'f> {
    pub fn new(declared: &'f Declared<'f>, thread: &'f Thread<'f>) -> Self {
        let mut code = Code {
            declared,
            thread,
            blocks: Vec::new(),
            numbers: HashMap::new(),
            places: Vec::new(),
            labels: Vec::new(),
        };
        code.number(thread.body);
        let start = code.enter(&Vec::new(), thread.body, None);
        code.find_labels(start);
        code.labels = code.places.iter().map(|(l, p)| (*l, code.settle(p.clone()))).collect();
        code
    }

    /// The position where the thread starts.
    pub fn start(&self) -> Position {
        self.settle(self.enter(&Vec::new(), self.thread.body, None))
    }

    pub fn statement(&self, position: &[Frame]) -> Option<&'f Statement> {
        let frame = position.last()?;
        self.blocks[frame.block].statements.get(frame.at)
    }

    /// The position at the start of a block of the statement at `position`.
    pub fn enter(&self, position: &Position, block: &'f Block, copy: Option<i64>) -> Position {
        let block = self.numbers[&(block as *const Block)];
        [position.as_slice(), &[Frame { block, at: 0, copy }]].concat()
    }

    /// The position after the statement at `position`, not settled.
    pub fn after(&self, mut position: Position) -> Position {
        if let Some(frame) = position.last_mut() {
            frame.at += 1;
        }
        position
    }

    /// The constant with a name, as visible at `position`.
    pub fn constant(&self, position: &[Frame], name: &str) -> Option<i64> {
        let Some((frame, outer)) = position.split_last() else {
            let own = self.thread.index.filter(|(index, _)| *index == name).map(|(_, value)| value);
            return own.or_else(|| self.declared.constant(name));
        };
        let declared = self.blocks[frame.block].statements.iter().filter_map(as_constant);
        if let Some(c) = declared.into_iter().find(|c| c.name.text == name) {
            return constant(&c.value, &|name| self.constant(position, name));
        }
        match (frame.copy, self.statement(outer).map(|s| &s.kind)) {
            (Some(copy), Some(StatementKind::For(index, ..))) if index.text == name => Some(copy),
            _ => self.constant(outer, name),
        }
    }

    /// Follows control from `position` to a position whose statement takes a step. A cycle without a step is an empty loop, which counts as a step;
    /// its position is the least on the cycle, so that it does not depend on where the cycle was entered.
    pub fn settle(&self, mut position: Position) -> Position {
        let mut passed: Vec<Position> = Vec::new();
        while let Some(next) = self.without_step(&position) {
            if let Some(first) = passed.iter().position(|p| *p == position) {
                return passed[first..].iter().min().expect("a circle has a place").clone();
            }
            passed.push(position);
            position = next;
        }
        position
    }

    /// The next position, if control moves there without a step.
    pub fn without_step(&self, position: &Position) -> Option<Position> {
        if position.is_empty() {
            return None;
        }
        let Some(statement) = self.statement(position) else { return Some(self.leave(position)) };
        match &statement.kind {
            StatementKind::Empty | StatementKind::Const(_) | StatementKind::Var(_) => {
                Some(self.after(position.clone()))
            }
            StatementKind::Block(block) | StatementKind::Loop(block) => {
                Some(self.enter(position, block, None))
            }
            StatementKind::For(_, range, body) => {
                let (low, high) = interval(range, &|name| self.constant(position, name));
                Some(match low <= high {
                    true => self.enter(position, body, Some(low)),
                    false => self.after(position.clone()),
                })
            }
            // Jumps and constant conditions take a step only at labels and loop heads, and at the start of a block of `choose`.
            _ if self.has_place(position) => None,
            StatementKind::If(e, then, otherwise) => {
                let holds = self.decided_value(position, e)? != 0;
                Some(self.branch(position, holds, then, otherwise.as_ref()))
            }
            StatementKind::Assume(e) => {
                self.decided_value(position, e).filter(|value| *value != 0)?;
                Some(self.after(position.clone()))
            }
            StatementKind::Await(e) if !self.has_access(e) => {
                self.decided_value(position, e).filter(|value| *value != 0)?;
                Some(self.after(position.clone()))
            }
            _ => self.jump(position),
        }
    }

    /// The position where `if` continues.
    pub fn branch(
        &self,
        position: &Position,
        holds: bool,
        then: &'f Block,
        otherwise: Option<&'f Block>,
    ) -> Position {
        match (holds, otherwise) {
            (true, _) => self.enter(position, then, None),
            (false, Some(block)) => self.enter(position, block, None),
            (false, None) => self.after(position.clone()),
        }
    }

    /// The target of the jump at `position`, if there is one, not settled.
    pub fn jump(&self, position: &Position) -> Option<Position> {
        match &self.statement(position)?.kind {
            StatementKind::Goto(label) => Some(self.target(position, &label.text)),
            StatementKind::Stop => Some(Position::new()),
            kind @ (StatementKind::Break | StatementKind::Continue) => {
                let inside = (1..position.len()).rev().find(|&n| {
                    let owner = self.statement(&position[..n]).map(|s| &s.kind);
                    matches!(
                        owner,
                        Some(StatementKind::Loop(_) | StatementKind::While(..) | StatementKind::For(..))
                    )
                });
                let inside = inside.expect("inside a loop");
                Some(match kind {
                    StatementKind::Break => self.after(position[..inside].to_vec()),
                    _ => self.leave(&position[..inside + 1].to_vec()),
                })
            }
            _ => None,
        }
    }

    /// The position after the end of the innermost block: after the statement with the block, in the next copy of a `for`, or at the head of a loop.
    fn leave(&self, position: &Position) -> Position {
        let (frame, outer) = position.split_last().expect("inside a block");
        let outer = outer.to_vec();
        match self.statement(&outer).map(|s| &s.kind) {
            Some(StatementKind::Loop(_) | StatementKind::While(..)) => outer,
            Some(StatementKind::For(_, range, body)) => {
                let next = frame.copy.expect("a copy has a number") + 1;
                match next <= interval(range, &|name| self.constant(&outer, name)).1 {
                    true => self.enter(&outer, body, Some(next)),
                    false => self.after(outer),
                }
            }
            _ => self.after(outer),
        }
    }

    /// The position of the label that a `goto` refers to: the one in the innermost enclosing copy of a `for` that has such a label.
    fn target(&self, from: &Position, label: &str) -> Position {
        let copies = |p: &[Frame]| p.iter().rposition(|frame| frame.copy.is_some()).map_or(0, |n| n + 1);
        let visible = |place: &Position| {
            let depth = copies(place);
            let (Some(inner), Some(around)) =
                (place[..depth].last(), from.get(..depth).and_then(<[_]>::last))
            else {
                return depth == 0;
            };
            (inner.block, inner.copy) == (around.block, around.copy)
                && place[..depth - 1] == from[..depth - 1]
        };
        let places = self.places.iter().filter(|(name, place)| *name == label && visible(place));
        places.max_by_key(|(_, place)| copies(place)).expect("the generator aims at labels").1.clone()
    }

    /// The position where `await` continues if its condition is false: itself, or the `choose` whose block it starts.
    pub fn again(&self, position: &Position) -> Position {
        let (mut home, mut at) = (position.clone(), position.clone());
        while let Some((frame, outer)) = at.split_last().map(|(f, o)| (f.clone(), o.to_vec())) {
            let first = first_statement(self.blocks[frame.block]) == Some(frame.at);
            if !first || self.statement(&at).is_none_or(|s| !s.labels.is_empty()) {
                break;
            }
            match self.statement(&outer).map(|s| &s.kind) {
                Some(StatementKind::Choose(_)) => home = outer.clone(),
                Some(StatementKind::Block(_)) => {}
                _ => break,
            }
            at = outer;
        }
        self.settle(home)
    }

    /// Whether a jump at this position is a step: it has a label, is a loop head, or starts a block of `choose`.
    fn has_place(&self, position: &[Frame]) -> bool {
        if self.statement(position).is_some_and(|s| !s.labels.is_empty()) {
            return true;
        }
        let Some((frame, outer)) = position.split_last() else { return false };
        if first_statement(self.blocks[frame.block]) != Some(frame.at) {
            return false;
        }
        match self.statement(outer).map(|s| &s.kind) {
            Some(StatementKind::Loop(_)) => true,
            Some(StatementKind::Choose(_)) => !is_entered(self.blocks[frame.block]),
            Some(StatementKind::Block(_)) => self.has_place(outer),
            Some(StatementKind::For(_, range, _)) => {
                let low = interval(range, &|name| self.constant(outer, name)).0;
                frame.copy == Some(low) && self.has_place(outer)
            }
            _ => false,
        }
    }

    /// The value of an expression that constants decide, without an access.
    pub fn decided_value(&self, position: &[Frame], e: &Expr) -> Option<i64> {
        match &e.kind {
            ExprKind::Unary(op, operand) => unary(*op, self.decided_value(position, operand)?),
            ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right) => {
                let decides = *op == BinaryOp::Or;
                match (self.decided_value(position, left)? != 0) == decides {
                    true => Some(i64::from(decides)),
                    false => self.decided_value(position, right).map(|value| i64::from(value != 0)),
                }
            }
            ExprKind::Binary(op, left, right) => {
                let (left, right) =
                    (self.decided_value(position, left)?, self.decided_value(position, right)?);
                binary(*op, left, right)?.ok()
            }
            ExprKind::If(condition, then, otherwise) => {
                let chosen = if self.decided_value(position, condition)? != 0 { then } else { otherwise };
                self.decided_value(position, chosen)
            }
            _ => constant(e, &|name| self.constant(position, name)),
        }
    }

    /// The target of an assignment.
    pub fn written<'p>(&self, position: &[Frame], place: &'p Place) -> Target<'p> {
        let name = place.name.text.as_str();
        match (self.thread.array(name), &place.index) {
            (Some(indices), Some(index)) => match self.decided_value(position, index) {
                None => Target::Element(name, indices, index),
                constant => Target::Register(self.thread.register(name, constant).expect("inside the array")),
            },
            _ => self.thread.register(name, None).map_or(Target::Shared, Target::Register),
        }
    }

    /// Whether evaluating an expression accesses shared memory.
    pub fn has_access(&self, e: &Expr) -> bool {
        any_part(e, &|place| {
            let index = place.index.as_ref();
            self.declared.shared(&place.name.text).is_some()
                || index.is_some_and(|index| self.has_access(index))
        })
    }

    /// Whether evaluating an expression takes steps: accesses, and checks of computed indices.
    pub fn takes_steps(&self, position: &[Frame], e: &Expr) -> bool {
        any_part(e, &|place| match (self.thread.array(&place.name.text), &place.index) {
            (Some(indices), Some(index)) => {
                self.takes_steps(position, index) || !self.is_certain(position, indices, index)
            }
            _ => self.declared.shared(&place.name.text).is_some(),
        })
    }

    /// Whether an index of an array of registers is constant, or a register whose declared range is within the array.
    pub fn is_certain(&self, position: &[Frame], (low, high): Interval, index: &Expr) -> bool {
        let range = match &index.kind {
            ExprKind::Place(Place { name, index: None }) => {
                self.thread.register(&name.text, None).and_then(|r| self.thread.registers[r].values.range)
            }
            _ => None,
        };
        self.decided_value(position, index).is_some()
            || range.is_some_and(|(least, greatest)| low <= least && greatest <= high)
    }

    fn number(&mut self, block: &'f Block) {
        self.numbers.insert(block, self.blocks.len());
        self.blocks.push(block);
        for statement in &block.statements {
            inner_blocks(statement).into_iter().for_each(|inner| self.number(inner));
        }
    }

    fn find_labels(&mut self, mut position: Position) {
        while let Some(statement) = self.statement(&position) {
            let labels = statement.labels.iter().map(|label| (label.text.as_str(), position.clone()));
            self.places.extend(labels);
            match &statement.kind {
                StatementKind::For(_, range, body) => {
                    let (low, high) = interval(range, &|name| self.constant(&position, name));
                    for copy in low..=high {
                        self.find_labels(self.enter(&position, body, Some(copy)));
                    }
                }
                _ => {
                    for block in inner_blocks(statement) {
                        self.find_labels(self.enter(&position, block, None));
                    }
                }
            }
            position = self.after(position);
        }
    }
}

/// Whether some part of an expression is a read-modify-write operation or a place with the property `such`.
fn any_part(e: &Expr, such: &dyn Fn(&Place) -> bool) -> bool {
    match &e.kind {
        ExprKind::Place(place) => such(place),
        ExprKind::Unary(_, operand) => any_part(operand, such),
        ExprKind::Binary(_, left, right) => any_part(left, such) || any_part(right, such),
        ExprKind::If(condition, then, otherwise) => {
            [condition, then, otherwise].into_iter().any(|part| any_part(part, such))
        }
        ExprKind::Cas(..) | ExprKind::Swap(..) | ExprKind::FetchAdd(..) => true,
        _ => false,
    }
}

/// The blocks directly inside a statement, not those inside these blocks.
pub fn inner_blocks(statement: &Statement) -> Vec<&Block> {
    match &statement.kind {
        StatementKind::Atomic(block)
        | StatementKind::Snapshot(block)
        | StatementKind::Block(block)
        | StatementKind::Loop(block)
        | StatementKind::While(_, block)
        | StatementKind::For(_, _, block) => vec![block],
        StatementKind::If(_, then, otherwise) => std::iter::once(then).chain(otherwise).collect(),
        StatementKind::Choose(blocks) => blocks.iter().collect(),
        _ => Vec::new(),
    }
}

/// The index of the first statement of a block that is not a declaration.
fn first_statement(block: &Block) -> Option<usize> {
    let declares = |s: &Statement| matches!(s.kind, StatementKind::Const(_) | StatementKind::Var(_));
    block.statements.iter().position(|s| !declares(s) || !s.labels.is_empty())
}

/// Whether a block of `choose` is entered by a separate step: it is empty, or starts with a label, with a loop, or with a `choose` of such a block.
pub fn is_entered(block: &Block) -> bool {
    let Some(first) = first_statement(block).map(|n| &block.statements[n]) else { return true };
    match &first.kind {
        _ if !first.labels.is_empty() => true,
        StatementKind::While(..) | StatementKind::Loop(_) | StatementKind::For(..) => true,
        StatementKind::Block(inner) => is_entered(inner),
        _ => false,
    }
}
