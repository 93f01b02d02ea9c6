//! Constructors for syntax trees, used by importers.

use fencewright_program::{BinaryOp, Span, UnaryOp};

use crate::ast::{
    ArraySize, Block, Declarator, Expr, ExprKind, Initial, Name, Place, RangeExpr, Statement, StatementKind,
    Thread,
};

/// Maximum nesting depth of brackets, blocks and calls in a text that is imported.
pub const NESTING_LIMIT: usize = 100;

/// Maximum depth of the tree of one imported expression.
pub const DEPTH_LIMIT: usize = 1_000;

/// Maximum number of tokens or statements that an imported text may expand to.
pub const SIZE_LIMIT: usize = 1_000_000;

/// A name with its position.
pub fn name(text: impl Into<String>, span: Span) -> Name {
    Name { text: text.into(), span }
}

/// An integer literal.
pub fn int(value: i64, span: Span) -> Expr {
    Expr { kind: ExprKind::Int(value), span }
}

/// A scalar variable or register as a place.
pub fn scalar(text: impl Into<String>, span: Span) -> Place {
    Place { name: name(text, span), index: None }
}

/// An element of an array as a place.
pub fn cell(text: impl Into<String>, index: Expr, span: Span) -> Place {
    Place { name: name(text, span), index: Some(Box::new(index)) }
}

/// An expression that reads a place.
pub fn value_of(place: Place, span: Span) -> Expr {
    Expr { kind: ExprKind::Place(place), span }
}

/// The value of a register or scalar variable.
pub fn variable(text: impl Into<String>, span: Span) -> Expr {
    value_of(scalar(text, span), span)
}

/// A unary operation.
pub fn unary(op: UnaryOp, operand: Expr, span: Span) -> Expr {
    Expr { kind: ExprKind::Unary(op, Box::new(operand)), span }
}

/// A binary operation.
pub fn binary(op: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
    Expr { kind: ExprKind::Binary(op, Box::new(left), Box::new(right)), span }
}

/// All parts joined by `&&` (or `||`) as a balanced tree, whose depth is logarithmic in the number of parts. Without parts the result is 1 (or 0).
pub fn balanced(op: BinaryOp, mut parts: Vec<Expr>, span: Span) -> Expr {
    while parts.len() > 1 {
        let mut halved = Vec::with_capacity(parts.len().div_ceil(2));
        let mut rest = parts.into_iter();
        while let Some(left) = rest.next() {
            halved.push(match rest.next() {
                Some(right) => binary(op, left, right, span),
                None => left,
            });
        }
        parts = halved;
    }
    parts.pop().unwrap_or_else(|| int((op == BinaryOp::And) as i64, span))
}

/// A statement without labels.
pub fn statement(kind: StatementKind, span: Span) -> Statement {
    Statement { labels: Vec::new(), kind, span }
}

/// `place = value;`
pub fn assign(place: Place, value: Expr, span: Span) -> Statement {
    statement(StatementKind::Assign(place, value), span)
}

/// `assume condition;`
pub fn assume(condition: Expr, span: Span) -> Statement {
    statement(StatementKind::Assume(condition), span)
}

/// `goto label;`
pub fn goto(label: &str, span: Span) -> Statement {
    statement(StatementKind::Goto(name(label, span)), span)
}

/// Statements in braces.
pub fn block(statements: Vec<Statement>, span: Span) -> Block {
    Block { statements, span }
}

/// `low..=high`
pub fn range(low: i64, high: i64, span: Span) -> RangeExpr {
    RangeExpr { low: int(low, span), high: int(high, span), inclusive: true, span }
}

/// The declarator of a scalar or register.
pub fn declarator(text: impl Into<String>, init: Option<Initial>, span: Span) -> Declarator {
    Declarator { name: name(text, span), size: None, open: false, range: None, wraps: None, init, span }
}

/// The declarator of an array with these indices.
pub fn array(
    text: impl Into<String>,
    size: ArraySize,
    open: bool,
    init: Option<Initial>,
    span: Span,
) -> Declarator {
    Declarator { name: name(text, span), size: Some(size), open, range: None, wraps: None, init, span }
}

/// An initial value; `None` for 0, which is the default.
pub fn initial(value: i64, span: Span) -> Option<Initial> {
    (value != 0).then(|| Initial::Value(int(value, span)))
}

/// A thread that begins with the declarations of its registers.
pub fn thread(text: &str, registers: Vec<Declarator>, mut body: Vec<Statement>, span: Span) -> Thread {
    if !registers.is_empty() {
        let at = registers[0].span;
        body.insert(0, statement(StatementKind::Var(registers), at));
    }
    Thread { name: name(text, span), family: None, body: block(body, span), span }
}
