//! Lowers expressions in threads: every read of a shared variable becomes a load of its own, left to right.
//!
//! Lowering works backwards: each function gets the location to continue at (`next`) and returns the location to start at. So `x = y + z` first
//! yields the store, then the loads before it. If the start has a location already (`at`), for example because it has a label, that location is
//! returned. Otherwise a jump takes no step, because the location to start at *is* its target.

use fencewright_program::{Action, Address, BinaryOp, Expr, Op, Range, RegisterId, Span, VariableId};
use fencewright_text::Diagnostic;

use super::array::Binding;
use super::call::Argument;
use super::graph::{Gap, Node};
use super::thread::ThreadLowering;
use crate::ast::{self, ExprKind, Name, Place};

type Result<T> = std::result::Result<T, Diagnostic>;

/// An expression without memory accesses.
pub type Pure = Expr<RegisterId>;

/// A step that must precede the evaluation of the pure rest of an expression.
pub enum Before<'a> {
    Load(RegisterId, Address, Span),
    /// A read-modify-write operation, whose result is written to the register.
    Rmw(RegisterId, &'a ast::Expr, Address, Vec<Pure>),
    /// A short-circuit condition with steps on its right side, whose value is written to the register.
    Condition(RegisterId, &'a ast::Expr),
    /// `c ? a : b` with steps in one of its branches, whose value is written to the register.
    Choice(RegisterId, &'a ast::Expr),
    /// A call, whose result is written to the register.
    Call(RegisterId, &'a ast::Procedure, Vec<Argument>, Span),
    /// A check that an index lies in its array of registers: a fault if the condition is false.
    Check(Pure, Span),
}

impl<'a> ThreadLowering<'a, '_> {
    /// Splits an expression into the steps that precede its evaluation, appended to `before`, and the pure rest.
    pub fn flatten(&mut self, e: &'a ast::Expr, before: &mut Vec<Before<'a>>) -> Result<Pure> {
        self.flatten_part(e, false, before)
    }

    /// Splits a part of an expression. With `pure`, the part is known to take no steps, so the search for steps is skipped.
    fn flatten_part(&mut self, e: &'a ast::Expr, pure: bool, before: &mut Vec<Before<'a>>) -> Result<Pure> {
        self.effort.spend(1, e.span)?;
        match &e.kind {
            ExprKind::Int(value) => Ok(Expr::Const(*value)),
            ExprKind::Place(place) => self.read(place, e.span, before),
            ExprKind::Unary(op, operand) => {
                let operand = self.flatten_part(operand, pure, before)?;
                self.constants.check_unary(*op, operand.constant(), e.span)?;
                Ok(folded(Expr::unary(*op, operand)))
            }
            ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right)
                if self.decided(*op, left).is_some() =>
            {
                match self.decided(*op, left) {
                    Some(true) => self.never_evaluated(*op, right),
                    _ => {
                        let right = self.flatten(right, before)?;
                        Ok(folded(Expr::binary(BinaryOp::Ne, right, Expr::Const(0))))
                    }
                }
            }
            ExprKind::Binary(BinaryOp::And | BinaryOp::Or, _, right) if !pure && self.takes_steps(right) => {
                // The right side must not be evaluated if the left side decides the value, so the expression becomes a branch in the control flow.
                let register = self.temporary();
                before.push(Before::Condition(register, e));
                Ok(Expr::Leaf(register))
            }
            ExprKind::If(condition, then, otherwise) => {
                if let Some(value) = self.constant(condition) {
                    let (chosen, other) = if value != 0 { (then, otherwise) } else { (otherwise, then) };
                    // The other branch is still checked for errors.
                    self.flatten(other, &mut Vec::new())?;
                    return self.flatten_part(chosen, pure, before);
                }
                if !pure && (self.takes_steps(then) || self.takes_steps(otherwise)) {
                    // Only the chosen branch may be evaluated, so the expression becomes a branch in the control flow.
                    let register = self.temporary();
                    before.push(Before::Choice(register, e));
                    return Ok(Expr::Leaf(register));
                }
                let condition = self.flatten_part(condition, pure, before)?;
                let then = self.flatten_part(then, true, before)?;
                Ok(Expr::choice(condition, then, self.flatten_part(otherwise, true, before)?))
            }
            ExprKind::Binary(op, left, right) => {
                let left = self.flatten_part(left, pure, before)?;
                let right_is_pure = pure || matches!(op, BinaryOp::And | BinaryOp::Or);
                let right = self.flatten_part(right, right_is_pure, before)?;
                self.constants.check_operator(*op, left.constant(), right.constant(), e.span)?;
                Ok(folded(Expr::binary(*op, left, right)))
            }
            ExprKind::Cas(place, ..) | ExprKind::Swap(place, _) | ExprKind::FetchAdd(place, _) => {
                let (address, arguments) = self.rmw_arguments(e, place, before)?;
                let register = self.temporary();
                before.push(Before::Rmw(register, e, address, arguments));
                Ok(Expr::Leaf(register))
            }
            ExprKind::Call(name, arguments) => {
                let (procedure, arguments) = self.call_arguments(name, arguments, before)?;
                let register = self.temporary();
                before.push(Before::Call(register, procedure, arguments, e.span));
                Ok(Expr::Leaf(register))
            }
            ExprKind::At(..) | ExprKind::Register(..) | ExprKind::Quantified(..) => Err(Diagnostic::new(
                e.span,
                "this can only be said in a property, not in a thread",
            )
            .help("threads see their own registers and shared memory; use `forbid` or `invariant` to speak about control states")),
        }
    }

    /// The value of a constant, a register or a shared variable.
    fn read(&mut self, place: &'a Place, span: Span, before: &mut Vec<Before<'a>>) -> Result<Pure> {
        if let Some(value) = self.constants.get(&place.name.text) {
            return match &place.index {
                None => Ok(Expr::Const(value)),
                Some(_) => Err(self.not_an_array(&place.name)),
            };
        }
        if let Some(binding) = self.local(&place.name.text) {
            return self.register_value(place, binding, span, before);
        }
        let address = self.address(place, before)?;
        let register = self.temporary();
        before.push(Before::Load(register, address, span));
        Ok(Expr::Leaf(register))
    }

    /// Resolves the place of a mutex to its memory cell; an error if it is not a mutex.
    pub fn mutex_address(&mut self, place: &'a Place, before: &mut Vec<Before<'a>>) -> Result<Address> {
        let name = &place.name;
        match self.shared(&name.text) {
            Some(variable) if self.names.mutexes.contains(&variable) => self.cell(variable, place, before),
            _ => Err(Diagnostic::new(name.span, format!("`{}` is not a mutex", name.text))
                .help(format!("declare it at the top level: `mutex {};`", name.text))),
        }
    }

    /// The address of a shared variable.
    pub fn address(&mut self, place: &'a Place, before: &mut Vec<Before<'a>>) -> Result<Address> {
        let name = &place.name;
        match self.shared(&name.text) {
            Some(variable) if self.names.mutexes.contains(&variable) => {
                Err(Diagnostic::new(name.span, format!("`{}` is a mutex, not a variable", name.text))
                    .help("it is locked by `lock` and unlocked by `unlock`"))
            }
            Some(variable) => self.cell(variable, place, before),
            None => Err(self.unknown_name(name)),
        }
    }

    /// The address of a cell of a shared variable.
    fn cell(
        &mut self,
        variable: VariableId,
        place: &'a Place,
        before: &mut Vec<Before<'a>>,
    ) -> Result<Address> {
        let name = &place.name;
        let indices = self.variable(variable).indices;
        let index = match (&place.index, indices) {
            (None, None) => None,
            (Some(index), Some(range)) => {
                let index = self.flatten(index, before)?;
                let open = self.variable(variable).open;
                if let Some(i) = index.constant().filter(|&i| !range.contains(i) && !open) {
                    return Err(self.outside(name, i, range));
                }
                Some(index)
            }
            (None, Some(_)) => return Err(self.needs_index(name)),
            (Some(_), None) => return Err(self.not_an_array(name)),
        };
        Ok(Address { variable, index })
    }

    /// Adds the steps of `before` in front of `next`, the first of them at `at`.
    pub fn precede(
        &mut self,
        before: Vec<Before<'a>>,
        at: Option<Node>,
        next: impl FnOnce(&mut Self, Option<Node>) -> Result<Node>,
    ) -> Result<Node> {
        let start = |n: usize| if n == 0 { at } else { None };
        let mut node = next(self, start(before.len()))?;
        for (n, step) in before.into_iter().enumerate().rev() {
            let at = start(n);
            node = match step {
                Before::Load(register, address, span) => {
                    self.graph.arc(at, node, Action::Op(Op::Load(register, address)), span)
                }
                Before::Rmw(register, e, address, arguments) => {
                    self.rmw(e, address, arguments, register, at, node)
                }
                Before::Condition(register, e) => {
                    let one =
                        self.graph.arc(None, node, Action::Op(Op::Assign(register, Expr::Const(1))), e.span);
                    let zero =
                        self.graph.arc(None, node, Action::Op(Op::Assign(register, Expr::Const(0))), e.span);
                    self.condition(e, at, Some(one), Some(zero))?
                }
                Before::Choice(register, e) => {
                    let ExprKind::If(condition, then, otherwise) = &e.kind else {
                        unreachable!("only conditional expressions are choices")
                    };
                    let gap = |span| Gap { at: None, next: node, span };
                    let then = self.assign_register(register, then, gap(then.span))?;
                    let otherwise = self.assign_register(register, otherwise, gap(otherwise.span))?;
                    self.condition(condition, at, Some(then), Some(otherwise))?
                }
                Before::Call(register, procedure, arguments, span) => {
                    self.inline(procedure, arguments, Some(register), span, at, node)?
                }
                Before::Check(condition, span) => self.check_step(condition, span, at, node),
            };
        }
        Ok(node)
    }

    /// The value of an expression if it is constant, that is, if it neither accesses memory nor depends on registers.
    pub fn constant(&self, e: &ast::Expr) -> Option<i64> {
        match &e.kind {
            ExprKind::Unary(op, operand) => op.apply(self.constant(operand)?).ok(),
            ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right) => {
                match self.decided(*op, left)? {
                    true => Some(i64::from(*op == BinaryOp::Or)),
                    false => self.constant(right).map(|value| i64::from(value != 0)),
                }
            }
            ExprKind::Binary(op, left, right) => op.apply(self.constant(left)?, self.constant(right)?).ok(),
            ExprKind::If(condition, then, otherwise) => {
                if self.constant(condition)? != 0 {
                    self.constant(then)
                } else {
                    self.constant(otherwise)
                }
            }
            _ => self.constants.eval(e).ok(),
        }
    }

    /// Jumps to `to`: without a step if `at` is not given, otherwise by a `skip` from the location `at`.
    pub fn jump(&mut self, at: Option<Node>, to: Node, span: Span) -> Node {
        match at {
            None => to,
            Some(_) => self.graph.arc(at, to, Action::Op(Op::Skip), span),
        }
    }

    /// Whether evaluating the expression accesses shared memory, or calls a procedure.
    pub fn has_access(&self, e: &ast::Expr) -> bool {
        self.any_part(e, &|this, place| match this.local(&place.name.text) {
            None => this.constants.get(&place.name.text).is_none(),
            Some(_) => place.index.as_ref().is_some_and(|index| this.has_access(index)),
        })
    }

    /// Whether evaluating the expression takes steps other than the one that uses its value: memory accesses, calls or index checks.
    pub fn takes_steps(&self, e: &ast::Expr) -> bool {
        self.any_part(e, &|this, place| match (this.local(&place.name.text), &place.index) {
            (None, _) => this.constants.get(&place.name.text).is_none(),
            (Some(Binding::Array(array)), Some(index)) => {
                this.takes_steps(index) || !this.is_certain(array, index)
            }
            (Some(_), _) => false,
        })
    }

    /// Whether the expression contains a read-modify-write operation or a call, or a place that `such` accepts.
    fn any_part(&self, e: &ast::Expr, such: &dyn Fn(&Self, &Place) -> bool) -> bool {
        match &e.kind {
            ExprKind::Int(_) | ExprKind::At(..) | ExprKind::Register(..) | ExprKind::Quantified(..) => false,
            ExprKind::Place(place) => such(self, place),
            ExprKind::Unary(_, operand) => self.any_part(operand, such),
            ExprKind::Binary(_, left, right) => self.any_part(left, such) || self.any_part(right, such),
            ExprKind::If(condition, then, otherwise) => {
                [condition, then, otherwise].into_iter().any(|part| self.any_part(part, such))
            }
            ExprKind::Cas(..) | ExprKind::Swap(..) | ExprKind::FetchAdd(..) | ExprKind::Call(..) => true,
        }
    }

    /// The error for an index outside its array.
    pub fn outside(&self, name: &Name, index: i64, indices: Range) -> Diagnostic {
        let Range { low, high } = indices;
        let message = format!("index {index} is outside `{}`, whose indices are {low} to {high}", name.text);
        Diagnostic::new(name.span, message)
    }

    /// The error for an array without an index.
    pub fn needs_index(&self, name: &Name) -> Diagnostic {
        Diagnostic::new(name.span, format!("`{}` is an array and needs an index", name.text))
            .help(format!("write `{}[0]`", name.text))
    }
}

/// Folds constants at the root. An expression without a value (division by zero, a shift out of range) is kept, so that it faults at run time.
pub fn folded(e: Pure) -> Pure {
    e.constant().map_or(e, Expr::Const)
}
