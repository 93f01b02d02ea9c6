//! Functions that every program can call without defining them.

use fencewright_c::typed::tree::{Assembly, Expr};
use fencewright_program::Span;

use super::elaborate::{Elaborator, Result};
use super::numbers::Operand;

impl Elaborator<'_> {
    /// What a call of a function without a body does.
    pub(super) fn builtin(&mut self, name: &str, _arguments: &[Expr], call: &Expr) -> Result<Operand> {
        self.error(
            call.span,
            format!("the function `{name}` has no body and is not known"),
            "define it, or include the file that does",
        )
    }

    /// Assembly.
    pub(super) fn assembly(&mut self, _assembly: &Assembly, span: Span) -> Result<()> {
        self.error(
            span,
            "this assembly is not understood",
            "use an atomic operation or a fence of <stdatomic.h>",
        )
    }
}
