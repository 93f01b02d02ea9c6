//! Lowers read-modify-write operations: compare-and-swap, swap and fetch-and-add.

use fencewright_program::{Action, Address, BinaryOp, Expr, Op, RegisterId, Span};
use fencewright_text::Diagnostic;

use super::expression::{Before, Pure, folded};
use super::graph::Node;
use super::thread::{ThreadLowering, Within};
use crate::ast::{self, ExprKind, Place};

type Result<T> = std::result::Result<T, Diagnostic>;

impl<'a> ThreadLowering<'a, '_> {
    /// The address and the other arguments of a read-modify-write operation.
    pub fn rmw_arguments(
        &mut self,
        e: &'a ast::Expr,
        place: &'a Place,
        before: &mut Vec<Before<'a>>,
    ) -> Result<(Address, Vec<Pure>)> {
        if matches!(self.within, Within::Snapshot | Within::Atomic) {
            return Err(Diagnostic::new(
                e.span,
                "a read-modify-write operation cannot stand inside an atomic block",
            )
            .help("inside the block, read and write the variable: everything there is one step already"));
        }
        if self.constants.get(&place.name.text).is_some() || self.local(&place.name.text).is_some() {
            return Err(Diagnostic::new(
                place.name.span,
                format!("`{}` is not a shared variable", place.name.text),
            ));
        }
        let address = self.address(place, before)?;
        let wraps = self.type_of(&address);
        let arguments = match &e.kind {
            ExprKind::Cas(_, old, new) => {
                let (old, new) = (self.flatten(old, before)?, self.flatten(new, before)?);
                vec![old, self.fitted(new, wraps, before)]
            }
            ExprKind::Swap(_, value) => {
                let value = self.flatten(value, before)?;
                vec![self.fitted(value, wraps, before)]
            }
            ExprKind::FetchAdd(_, value) => vec![self.flatten(value, before)?],
            _ => unreachable!("only called on read-modify-write operations"),
        };
        Ok((address, arguments))
    }

    /// Adds the atomic step of a read-modify-write operation, which also assigns the result of the operation to `result`.
    pub fn rmw(
        &mut self,
        e: &ast::Expr,
        address: Address,
        mut arguments: Vec<Pure>,
        result: RegisterId,
        at: Option<Node>,
        next: Node,
    ) -> Node {
        let old = self.temporary();
        let load = Op::Load(old, address.clone());
        match &e.kind {
            ExprKind::Cas(..) => {
                let from = at.unwrap_or_else(|| self.graph.node());
                let set = |value| Op::Assign(result, Expr::Const(value));
                self.cas(
                    e.span,
                    load,
                    address,
                    arguments,
                    from,
                    Some((vec![set(1)], next)),
                    Some((vec![set(0)], next)),
                );
                from
            }
            ExprKind::Swap(..) | ExprKind::FetchAdd(..) => {
                let value = arguments.pop().expect("one argument");
                let value = match &e.kind {
                    ExprKind::FetchAdd(..) => {
                        let sum = folded(Expr::binary(BinaryOp::Add, Expr::Leaf(old), value));
                        self.fitted(sum, self.type_of(&address), &[])
                    }
                    _ => value,
                };
                let ops = vec![load, Op::Store(address, value), Op::Assign(result, Expr::Leaf(old))];
                self.graph.arc(at, next, Action::Atomic { ops, drains: true }, e.span)
            }
            _ => unreachable!("only called on read-modify-write operations"),
        }
    }

    /// Adds an edge for the success and an edge for the failure of a compare-and-swap. An outcome that is `None` gets no edge.
    #[allow(clippy::too_many_arguments)]
    pub fn cas(
        &mut self,
        span: Span,
        load: Op,
        address: Address,
        mut arguments: Vec<Pure>,
        from: Node,
        success: Option<(Vec<Op>, Node)>,
        failure: Option<(Vec<Op>, Node)>,
    ) {
        let new = arguments.pop().expect("two arguments");
        let expected = arguments.pop().expect("two arguments");
        let Op::Load(old, _) = load else { unreachable!("a compare-and-swap starts with a load") };
        let compare = |op| Op::Assume(Expr::binary(op, Expr::Leaf(old), expected.clone()));
        if let Some((rest, next)) = success {
            let mut ops = vec![load.clone(), compare(BinaryOp::Eq), Op::Store(address, new)];
            ops.extend(rest);
            self.graph.arc(Some(from), next, Action::Atomic { ops, drains: true }, span);
        }
        if let Some((rest, next)) = failure {
            let mut ops = vec![load, compare(BinaryOp::Ne)];
            ops.extend(rest);
            self.graph.arc(Some(from), next, Action::Atomic { ops, drains: true }, span);
        }
    }
}
