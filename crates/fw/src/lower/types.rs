//! Integer types: a value that is written to a typed variable is wrapped to the type.
//!
//! Expressions are mathematical; only writes wrap. If a value is known to fit the type of its target, no wrapping is inserted, so copying between
//! variables of one type adds no operation.

use fencewright_program::{Address, Expr, Range, RegisterId, Span, UnaryOp};
use fencewright_text::Diagnostic;

use super::expression::{Before, Pure};
use super::scope::values_of;
use super::thread::ThreadLowering;

type Result<T> = std::result::Result<T, Diagnostic>;

impl<'a> ThreadLowering<'a, '_> {
    /// The type of the shared variable at an address, if the variable has one.
    pub fn type_of(&self, address: &Address) -> Option<UnaryOp> {
        self.names.types.get(&address.variable).copied()
    }

    /// The value as it is written to a variable of this type; `before` are the steps that precede its computation.
    pub fn fitted(&self, value: Pure, wraps: Option<UnaryOp>, before: &[Before<'a>]) -> Pure {
        let Some(wraps) = wraps else { return value };
        match value {
            Expr::Const(value) => Expr::Const(wraps.apply(value).unwrap_or(value)),
            Expr::Leaf(register) if self.fits(register, wraps, before) => Expr::Leaf(register),
            // Wrapping twice to the same type is redundant.
            Expr::Unary(op, value) if op == wraps => Expr::Unary(op, value),
            value => Expr::unary(wraps, value),
        }
    }

    /// Whether the value of a register certainly fits a type. That follows from the type of the variable it was loaded from, or else from the type of
    /// the register.
    fn fits(&self, register: RegisterId, wraps: UnaryOp, before: &[Before<'a>]) -> bool {
        let loaded = before.iter().rev().find_map(|step| match step {
            Before::Load(target, address, _) if *target == register => Some(self.type_of(address)),
            _ => None,
        });
        let known = loaded.unwrap_or_else(|| self.types.get(&register).copied());
        let (Some(known), Some(values)) = (known.and_then(values_of), values_of(wraps)) else { return false };
        values.contains(known.low) && values.contains(known.high)
    }

    /// The range of a `*` that is written to a variable of this type: its own range, which must lie in the type, or all values of the type.
    pub fn fitted_range(
        &self,
        range: Option<Range>,
        wraps: Option<UnaryOp>,
        span: Span,
    ) -> Result<Option<Range>> {
        let Some((wraps, values)) = wraps.and_then(|wraps| Some((wraps, values_of(wraps)?))) else {
            return Ok(range);
        };
        match range {
            Some(range) if !(values.contains(range.low) && values.contains(range.high)) => {
                Err(Diagnostic::new(span, format!("this leaves the values of `{}`", wraps.symbol())))
            }
            Some(range) => Ok(Some(range)),
            None => Ok(Some(values)),
        }
    }
}
