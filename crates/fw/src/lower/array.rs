//! Lowers registers and arrays of registers: one register for each element.
//!
//! An element with a constant index is an ordinary register. For a computed index, a conditional expression selects the element that is read, and a
//! choice between steps selects the element that is written. If the index may be outside the array, a preceding step checks it.

use fencewright_program::{Action, BinaryOp, Bounds, Expr, Fault, Op, Range, RegisterId, Span};
use fencewright_text::Diagnostic;

use super::expression::{Before, Pure};
use super::graph::{Gap, Node};
use super::thread::ThreadLowering;
use crate::ast::{self, ExprKind, Place};

type Result<T> = std::result::Result<T, Diagnostic>;

/// The meaning of a register name: a register or an array of registers.
#[derive(Clone, Copy)]
pub enum Binding {
    Register(RegisterId),
    Array(Array),
}

/// An array of registers.
#[derive(Clone, Copy)]
pub struct Array {
    pub first: RegisterId,
    pub indices: Range,
}

impl Array {
    /// The register that represents the element with this index.
    fn element(self, index: i64) -> RegisterId {
        RegisterId(self.first.0 + (index - self.indices.low) as u32)
    }

    /// The value of the element with a computed index, which must lie in `indices`. The conditional expressions form a balanced tree, whose depth is
    /// logarithmic.
    fn chosen(self, index: &Pure, indices: Range) -> Pure {
        if indices.low == indices.high {
            return Expr::Leaf(self.element(indices.low));
        }
        let middle = indices.low + (indices.high - indices.low) / 2;
        let low = self.chosen(index, Range { high: middle, ..indices });
        let high = self.chosen(index, Range { low: middle + 1, ..indices });
        Expr::choice(Expr::binary(BinaryOp::Le, index.clone(), Expr::Const(middle)), low, high)
    }
}

/// The target of an assignment to registers.
pub enum Target {
    Register(RegisterId),
    /// The element with a computed index.
    Element(Array, Pure),
}

impl Target {
    /// The register, or the first register of the array.
    pub fn first(&self) -> RegisterId {
        match self {
            Target::Register(register) => *register,
            Target::Element(array, _) => array.first,
        }
    }
}

impl<'a> ThreadLowering<'a, '_> {
    /// The value of a register, or of an element of an array.
    pub fn register_value(
        &mut self,
        place: &'a Place,
        binding: Binding,
        span: Span,
        before: &mut Vec<Before<'a>>,
    ) -> Result<Pure> {
        match self.target(place, binding, before)? {
            Target::Register(register) => Ok(Expr::Leaf(register)),
            Target::Element(array, index) => {
                self.effort.spend(copies(array, &index), span)?;
                before.extend(self.index_check(array, &index, span));
                Ok(array.chosen(&index, array.indices))
            }
        }
    }

    /// The register that a place names, or the element of an array.
    pub fn target(
        &mut self,
        place: &'a Place,
        binding: Binding,
        before: &mut Vec<Before<'a>>,
    ) -> Result<Target> {
        match (binding, &place.index) {
            (Binding::Register(register), None) => Ok(Target::Register(register)),
            (Binding::Register(_), Some(_)) => Err(self.not_an_array(&place.name)),
            (Binding::Array(_), None) => Err(self.needs_index(&place.name)),
            (Binding::Array(array), Some(index)) => {
                let index = self.flatten(index, before)?;
                match index.constant() {
                    None => Ok(Target::Element(array, index)),
                    Some(i) if array.indices.contains(i) => Ok(Target::Register(array.element(i))),
                    Some(i) => Err(self.outside(&place.name, i, array.indices)),
                }
            }
        }
    }

    /// The check of a computed index; `None` if the index certainly lies in the array.
    fn index_check(&self, array: Array, index: &Pure, span: Span) -> Option<Before<'a>> {
        let known = match index {
            Expr::Leaf(register) => self.registers[register.index()].range.map_or(Bounds::ANY, Bounds::from),
            _ => Bounds::ANY,
        };
        let condition = Bounds::from(array.indices).beyond(known).condition(index)?;
        Some(Before::Check(condition, span))
    }

    /// Whether no step has to check an index, because it certainly lies in the array or is constant.
    pub fn is_certain(&self, array: Array, index: &ast::Expr) -> bool {
        let declared = match &index.kind {
            ExprKind::Place(Place { name, index: None }) => match self.local(&name.text) {
                Some(Binding::Register(register)) => self.registers[register.index()].range,
                _ => None,
            },
            _ => None,
        };
        let inside = |range: Range| array.indices.contains(range.low) && array.indices.contains(range.high);
        declared.is_some_and(inside) || self.constant(index).is_some()
    }

    /// Performs `op` on the target. For a register that is one step; for an element with a computed index, a first step determines the element and a
    /// second one writes it.
    pub fn write_element(
        &mut self,
        target: Target,
        mut before: Vec<Before<'a>>,
        Gap { at, next, span }: Gap,
        op: impl Fn(RegisterId) -> Op,
    ) -> Result<Node> {
        let (array, index) = match target {
            Target::Register(register) => {
                return self.precede(before, at, |this, at| {
                    Ok(this.graph.arc(at, next, Action::Op(op(register)), span))
                });
            }
            Target::Element(array, index) => (array, index),
        };
        self.effort.spend(copies(array, &index), span)?;
        before.extend(self.index_check(array, &index, span));
        self.precede(before, at, |this, at| {
            let from = at.unwrap_or_else(|| this.graph.node());
            for i in array.indices.low..=array.indices.high {
                let write = this.graph.arc(None, next, Action::Op(op(array.element(i))), span);
                let is = Expr::binary(BinaryOp::Eq, index.clone(), Expr::Const(i));
                this.graph.arc(Some(from), write, Action::Op(Op::Assume(is)), span);
            }
            Ok(from)
        })
    }

    /// Adds the step that checks an index.
    pub fn check_step(&mut self, condition: Pure, span: Span, at: Option<Node>, next: Node) -> Node {
        self.graph.arc(at, next, Action::Op(Op::Assert(condition, Fault::Index)), span)
    }
}

/// The approximate size of code that contains a copy of the index expression for each element of the array.
fn copies(array: Array, index: &Pure) -> usize {
    let mut leaves = 1;
    index.for_each_leaf(&mut |_| leaves += 1);
    leaves * array.indices.size() as usize
}
