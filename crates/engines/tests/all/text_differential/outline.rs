//! Moves statements into procedures. The program with calls must have the same behaviour as the original program.

use std::collections::HashSet;

use fencewright_lang::ast::*;
use fencewright_testing::Random;

use super::control::inner_blocks;
use super::generate::NOWHERE;

/// The program with some of its statements in procedures, and the number of procedures.
pub fn outlined(file: &File, random: &mut Random) -> (File, usize) {
    let mut global = HashSet::new();
    for item in &file.items {
        match item {
            Item::Const(constant) => drop(global.insert(constant.name.text.clone())),
            Item::Shared(all) | Item::Mutex(all) => global.extend(all.iter().map(|d| d.name.text.clone())),
            _ => {}
        }
    }
    let mut file = file.clone();
    let mut outliner = Outliner { random, global, procedures: Vec::new() };
    for item in &mut file.items {
        if let Item::Thread(thread) = item {
            outliner.block(&mut thread.body, false);
        }
    }
    let procedures = outliner.procedures;
    let (count, first) = (procedures.len(), file.items.iter().position(|i| matches!(i, Item::Thread(_))));
    let at = first.unwrap_or(0);
    file.items.splice(at..at, procedures.into_iter().map(Item::Procedure));
    (file, count)
}

struct Outliner<'r> {
    random: &'r mut Random,
    /// The names that are visible in procedures without being parameters.
    global: HashSet<String>,
    procedures: Vec<Procedure>,
}

impl Outliner<'_> {
    /// Moves some statements of a block into procedures. With `shares`, the first statement has the same control location as the enclosing statement;
    /// it is not moved, because a call would have a separate location.
    fn block(&mut self, block: &mut Block, shares: bool) {
        let mut is_first = shares;
        for statement in &mut block.statements {
            if matches!(statement.kind, StatementKind::Const(_) | StatementKind::Var(_)) {
                continue;
            }
            if !std::mem::take(&mut is_first) {
                self.inside(statement);
                self.statement(statement);
            }
        }
    }

    fn inside(&mut self, statement: &mut Statement) {
        match &mut statement.kind {
            StatementKind::If(_, then, otherwise) => {
                self.block(then, false);
                otherwise.iter_mut().for_each(|block| self.block(block, false));
            }
            StatementKind::While(_, body) | StatementKind::Atomic(body) | StatementKind::Snapshot(body) => {
                self.block(body, false);
            }
            StatementKind::Loop(body) | StatementKind::For(_, _, body) | StatementKind::Block(body) => {
                self.block(body, true);
            }
            StatementKind::Choose(blocks) => blocks.iter_mut().for_each(|block| self.block(block, true)),
            _ => {}
        }
    }

    fn statement(&mut self, statement: &mut Statement) {
        if !statement.labels.is_empty() || self.random.one_in(3) {
            return;
        }
        let inner = match &statement.kind {
            // The index of an array element is evaluated before the value. With a call as the value, it would be evaluated after the call.
            StatementKind::Assign(Place { name, index: Some(_) }, _) if !self.global.contains(&name.text) => {
                return;
            }
            StatementKind::Assign(place, value) if !self.global.contains(&place.name.text) => {
                StatementKind::Return(Some(value.clone()))
            }
            kind if self.is_closed(statement) => kind.clone(),
            _ => return,
        };
        let inner = Statement { labels: Vec::new(), kind: inner, span: NOWHERE };
        let mut used = Names::default();
        used.statement(&inner);
        let mut free: Vec<String> = used.used.difference(&used.declared).cloned().collect();
        free.retain(|name| !self.global.contains(name));
        // Arrays of registers cannot be arguments.
        if free.iter().any(|name| used.indexed.contains(name)) {
            return;
        }
        free.sort_unstable();
        let named = |text: &String| Name { text: text.clone(), span: NOWHERE };
        let name = named(&format!("call{}", self.procedures.len()));
        let parameters = free.iter().map(|text| Parameter { name: named(text), wraps: None }).collect();
        let body = Block { statements: vec![inner], span: NOWHERE };
        self.procedures.push(Procedure { name: name.clone(), parameters, body, span: NOWHERE });
        let argument = |text: &String| {
            let place = Place { name: named(text), index: None };
            Expr { kind: ExprKind::Place(place), span: NOWHERE }
        };
        let kind = ExprKind::Call(name, free.iter().map(argument).collect());
        let call = Expr { kind, span: NOWHERE };
        statement.kind = match &statement.kind {
            StatementKind::Assign(place, _) if !self.global.contains(&place.name.text) => {
                StatementKind::Assign(place.clone(), call)
            }
            _ => StatementKind::Expr(call),
        };
    }

    /// Whether a statement writes no registers, and no jump leaves or enters it.
    fn is_closed(&self, statement: &Statement) -> bool {
        let closed = match &statement.kind {
            StatementKind::Assign(place, _) | StatementKind::Havoc(place, _) => {
                self.global.contains(&place.name.text)
            }
            StatementKind::Goto(_) | StatementKind::Break | StatementKind::Continue => false,
            StatementKind::Empty | StatementKind::Var(_) => false,
            _ => true,
        };
        let inside = inner_blocks(statement).into_iter().flat_map(|block| &block.statements);
        closed && inside.into_iter().all(|inner| inner.labels.is_empty() && self.is_closed(inner))
    }
}

/// The names that a statement uses, indexes and declares.
#[derive(Default)]
struct Names {
    used: HashSet<String>,
    indexed: HashSet<String>,
    declared: HashSet<String>,
}

impl Names {
    fn statement(&mut self, statement: &Statement) {
        match &statement.kind {
            StatementKind::Const(constant) => {
                self.declared.insert(constant.name.text.clone());
                self.expr(&constant.value);
            }
            StatementKind::Assign(place, value) => {
                self.place(place);
                self.expr(value);
            }
            StatementKind::Lock(Some(mutex)) | StatementKind::Unlock(Some(mutex)) => self.place(mutex),
            StatementKind::Havoc(place, range) => {
                self.place(place);
                range.iter().for_each(|range| self.range(range));
            }
            StatementKind::For(index, range, _) => {
                self.declared.insert(index.text.clone());
                self.range(range);
            }
            StatementKind::Expr(e)
            | StatementKind::Assume(e)
            | StatementKind::Assert(e, _)
            | StatementKind::Await(e)
            | StatementKind::If(e, ..)
            | StatementKind::While(e, _)
            | StatementKind::Return(Some(e)) => self.expr(e),
            _ => {}
        }
        for block in inner_blocks(statement) {
            block.statements.iter().for_each(|inner| self.statement(inner));
        }
    }

    fn range(&mut self, range: &RangeExpr) {
        self.expr(&range.low);
        self.expr(&range.high);
    }

    fn place(&mut self, place: &Place) {
        self.used.insert(place.name.text.clone());
        if let Some(index) = &place.index {
            self.indexed.insert(place.name.text.clone());
            self.expr(index);
        }
    }

    fn expr(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Place(place) => self.place(place),
            ExprKind::Unary(_, operand) => self.expr(operand),
            ExprKind::Binary(_, left, right) => [left, right].into_iter().for_each(|part| self.expr(part)),
            ExprKind::If(condition, then, otherwise) => {
                [condition, then, otherwise].into_iter().for_each(|part| self.expr(part));
            }
            ExprKind::Cas(place, old, new) => {
                self.place(place);
                [old, new].into_iter().for_each(|part| self.expr(part));
            }
            ExprKind::Swap(place, value) | ExprKind::FetchAdd(place, value) => {
                self.place(place);
                self.expr(value);
            }
            ExprKind::Call(_, arguments) => arguments.iter().for_each(|argument| self.expr(argument)),
            _ => {}
        }
    }
}
