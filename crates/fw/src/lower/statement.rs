//! Lowers single statements: each statement becomes its steps, and control flow becomes edges between them.

use fencewright_program::{Action, Fault, Op, Span};
use fencewright_text::Diagnostic;

use super::graph::{Gap, Node};
use super::nearest;
use super::thread::{MOST_NODES, TOO_LARGE, ThreadLowering, Within, is_declaration};
use crate::ast::{self, Block, Name, Statement, StatementKind};

type Result<T> = std::result::Result<T, Diagnostic>;

impl<'a> ThreadLowering<'a, '_> {
    pub fn lower_statement(
        &mut self,
        statement: &'a Statement,
        at: Option<Node>,
        next: Node,
    ) -> Result<Node> {
        let span = statement.span;
        if self.within != Within::Steps {
            self.check_atomic(statement)?;
        }
        let gap = Gap { at, next, span };
        let simple = |this: &mut Self, action| Ok(this.graph.arc(at, next, action, span));
        match &statement.kind {
            StatementKind::Empty | StatementKind::Const(_) => Ok(self.graph.join(at, next, span)),
            StatementKind::Var(_) => self.declaration(at, next, span),
            StatementKind::Assign(place, value) => self.assign(place, value, gap),
            StatementKind::Havoc(place, range) => self.havoc(place, range.as_ref(), gap),
            StatementKind::Expr(ast::Expr { kind: ast::ExprKind::Call(name, arguments), .. }) => {
                let mut before = Vec::new();
                let (procedure, arguments) = self.call_arguments(name, arguments, &mut before)?;
                self.precede(before, at, |this, at| this.inline(procedure, arguments, None, span, at, next))
            }
            StatementKind::Expr(e) => self.effect(e, at, next, span),
            StatementKind::Skip => simple(self, Action::Op(Op::Skip)),
            StatementKind::Fence => simple(self, Action::Fence),
            StatementKind::StoreFence => simple(self, Action::StoreFence),
            StatementKind::Lock(None) => simple(self, Action::Lock),
            StatementKind::Unlock(None) => simple(self, Action::Unlock),
            StatementKind::Lock(Some(mutex)) => self.mutex(mutex, true, gap),
            StatementKind::Unlock(Some(mutex)) => self.mutex(mutex, false, gap),
            StatementKind::Atomic(body) => self.atomic(body, true, at, next, span),
            StatementKind::Snapshot(body) => self.atomic(body, false, at, next, span),
            StatementKind::Assume(e) => self.condition(e, at, Some(next), None),
            StatementKind::Assert(e, text) => {
                let mut before = Vec::new();
                let pure = self.flatten(e, &mut before)?;
                let fault = Fault::Assertion(text.as_ref().map(|text| self.notes.text(text)));
                self.precede(before, at, |this, at| {
                    Ok(this.graph.arc(at, next, Action::Op(Op::Assert(pure, fault)), span))
                })
            }
            StatementKind::Await(e) => {
                if !self.has_access(e) {
                    return self.condition(e, at, Some(next), None);
                }
                self.wait(e, at, next, span)
            }
            StatementKind::If(e, then, otherwise) => {
                let then = self.block(then, None, next);
                let otherwise = otherwise.as_ref().map_or(next, |block| self.block(block, None, next));
                self.condition(e, at, Some(then), Some(otherwise))
            }
            StatementKind::While(e, body) => {
                let head = at.unwrap_or_else(|| self.graph.node());
                let body = self.loop_body(body, None, head, next);
                self.condition(e, Some(head), Some(body), Some(next))
            }
            StatementKind::Loop(body) => {
                let head = at.unwrap_or_else(|| self.graph.node());
                self.loop_body(body, Some(head), head, next);
                Ok(head)
            }
            StatementKind::For(name, range, body) => self.unrolled(name, range, body, at, next),
            StatementKind::Break => self.leave_iteration(|(after, _)| after, at, span),
            StatementKind::Continue => self.leave_iteration(|(_, head)| head, at, span),
            StatementKind::Choose(blocks) => Ok(self.choice(blocks, at, next)),
            StatementKind::Goto(label) => self.goto(label, at, span),
            StatementKind::Stop => Ok(self.jump(at, self.end, span)),
            StatementKind::Return(value) => self.return_from(value.as_ref(), at, span),
            StatementKind::Block(block) => Ok(self.block(block, at, next)),
            StatementKind::Steps(steps) => {
                // The statements belong to the enclosing block, so a declaration among them is not nested.
                self.frame.depth -= 1;
                let start = self.block(steps, at, next);
                self.frame.depth += 1;
                Ok(start)
            }
        }
    }

    /// A declaration of registers. Registers are declared once, at the top level of a thread or procedure: in an inner block, a declaration would
    /// suggest that each execution of the block creates a fresh register.
    fn declaration(&mut self, at: Option<Node>, next: Node, span: Span) -> Result<Node> {
        match self.frame.depth {
            1 => Ok(self.graph.join(at, next, span)),
            _ => {
                Err(Diagnostic::new(span, "registers are declared at the top level of a thread or procedure")
                    .help("move the declaration out of the block"))
            }
        }
    }

    /// An expression as a statement: a read-modify-write operation whose result is not used.
    fn effect(&mut self, e: &'a ast::Expr, at: Option<Node>, next: Node, span: Span) -> Result<Node> {
        let mut before = Vec::new();
        self.flatten(e, &mut before)?;
        match e.kind {
            ast::ExprKind::Cas(..) | ast::ExprKind::Swap(..) | ast::ExprKind::FetchAdd(..) => {
                self.precede(before, at, |_, _| Ok(next))
            }
            _ => Err(Diagnostic::new(span, "this expression has no effect")
                .help("write `r = ...;` to keep its value, or `assume ...;` to wait for it")),
        }
    }

    /// The body of a loop, whose end leads back to `head`; `break` in it leads to `after`.
    fn loop_body(&mut self, body: &'a Block, at: Option<Node>, head: Node, after: Node) -> Node {
        self.frame.loops.push((after, head));
        let start = self.block(body, at, head);
        self.frame.loops.pop();
        start
    }

    /// `break` or `continue`: a jump to one of the two targets of the innermost loop, the location after it and its head.
    fn leave_iteration(
        &mut self,
        target: impl FnOnce((Node, Node)) -> Node,
        at: Option<Node>,
        span: Span,
    ) -> Result<Node> {
        match self.frame.loops.last() {
            Some(&targets) => Ok(self.jump(at, target(targets), span)),
            None => Err(Diagnostic::new(span, "this stands outside every loop")),
        }
    }

    fn choice(&mut self, blocks: &'a [Block], at: Option<Node>, next: Node) -> Node {
        let from = at.unwrap_or_else(|| self.graph.node());
        for block in blocks {
            match starts_with_own_place(block) {
                true => {
                    let entry = self.block(block, None, next);
                    self.graph.arc(Some(from), entry, Action::Op(Op::Skip), block.span);
                }
                false => {
                    self.block(block, Some(from), next);
                }
            }
        }
        from
    }

    fn goto(&mut self, label: &Name, at: Option<Node>, span: Span) -> Result<Node> {
        let labels = &self.frame.labels;
        if let Some(target) = labels.iter().rev().find_map(|layer| layer.get(&label.text)).copied() {
            return Ok(self.jump(at, target, span));
        }
        let error = Diagnostic::new(label.span, format!("unknown label `{}`", label.text));
        let known = labels.iter().flat_map(|layer| layer.keys().map(String::as_str));
        Err(match nearest(&label.text, known) {
            Some(other) => error.help(format!("did you mean `{other}`?")),
            None => error,
        })
    }

    fn unrolled(
        &mut self,
        name: &'a Name,
        range: &ast::RangeExpr,
        body: &'a Block,
        at: Option<Node>,
        next: Node,
    ) -> Result<Node> {
        self.check_fresh(name)?;
        let values = self.constants.range(range)?;
        if values.size() > MOST_NODES as u64 {
            return Err(Diagnostic::new(
                range.span,
                format!("a `for` loop is unrolled; {} copies are too many", values.size()),
            ));
        }
        if values.size() == 0 {
            return Ok(self.graph.join(at, next, range.span));
        }
        let mut node = next;
        for value in (values.low..=values.high).rev() {
            self.copies += 1;
            if self.copies > MOST_NODES {
                return Err(Diagnostic::new(range.span, TOO_LARGE));
            }
            if self.gives_up(body.statements.len(), range.span) {
                return Ok(node);
            }
            let at = if value == values.low { at } else { None };
            self.constants.push(&name.text, value);
            let labels = self.collect_labels(body);
            self.frame.labels.push(labels);
            // `break` leaves the whole loop, `continue` proceeds to the next copy.
            node = self.loop_body(body, at, node, next);
            self.frame.labels.pop();
            self.constants.pop(&name.text);
        }
        Ok(node)
    }
}

/// Whether a block of `choose` needs a start location of its own instead of the location of the choice. An empty block does, and so does a block to
/// whose start control can return, because the return must not lead back to the choice. An `await` at the start is an exception: while the thread
/// waits, it can still choose the other blocks.
fn starts_with_own_place(block: &Block) -> bool {
    let Some(first) = block.statements.iter().find(|s| !is_declaration(s)) else { return true };
    !first.labels.is_empty()
        || match &first.kind {
            StatementKind::While(..) | StatementKind::Loop(_) | StatementKind::Empty => true,
            StatementKind::Block(inner) | StatementKind::Steps(inner) => starts_with_own_place(inner),
            // A `for` may have no iterations, or start with a loop. The same holds for the body of a procedure.
            StatementKind::For(..) => true,
            StatementKind::Expr(ast::Expr { kind: ast::ExprKind::Call(..), .. }) => true,
            _ => false,
        }
}
