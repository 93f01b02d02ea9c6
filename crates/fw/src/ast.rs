//! The syntax tree of the `.fw` language.
//!
//! Every importer produces this tree too. So there is a single lowering to the program model ([`crate::lower`]), and every imported program can be
//! printed as `.fw` ([`crate::print`]). Spans point into the original text, whatever its format.

use fencewright_program::{BinaryOp, Numbers, Span, UnaryOp};

/// A name with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The text of the name.
    pub text: String,
    /// Where the name is written.
    pub span: Span,
}

/// The syntax tree of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct File {
    /// The items in the order of the text.
    pub items: Vec<Item>,
}

/// A top-level item.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// `const N = 2;`
    Const(Const),
    /// `numbers nat;`
    Numbers(Numbers, Span),
    /// `shared x = 3, a[8];`
    Shared(Vec<Declarator>),
    /// `mutex m, locks[8];`
    Mutex(Vec<Declarator>),
    /// `fn acquire(i) { ... }`
    Procedure(Procedure),
    /// `thread p[me in 0..N] { ... }`
    Thread(Thread),
    /// `forbid`, `invariant` or `finally`.
    Property(Property),
    /// `predicates { ...; }`
    Predicates(Vec<Expr>, Span),
    /// `spare p@label;`
    Spare(Expr, Span),
    /// `cost fence 4;` or `cost p@label 10;`
    Cost(CostTarget, Expr, Span),
}

/// The fences or locked instructions to which a `cost` line gives a cost.
#[derive(Clone, Debug, PartialEq)]
pub enum CostTarget {
    /// Any full fence.
    Fence,
    /// Any store-store fence.
    StoreFence,
    /// A locked instruction in place of a store.
    Swap,
    /// Any fence at this place (an [`ExprKind::At`]).
    Place(Expr),
}

/// `const NAME = value;`
#[derive(Clone, Debug, PartialEq)]
pub struct Const {
    /// The name that stands for the value.
    pub name: Name,
    /// The value: a constant expression.
    pub value: Expr,
}

/// One variable in a `shared`, `mutex` or `var` declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Declarator {
    /// The name of the variable, mutex or register.
    pub name: Name,
    /// The indices of an array, `[8]` or `[-2..3]`; `None` for a scalar.
    pub size: Option<ArraySize>,
    /// Whether the array is `open`, only for shared variables: see the language reference.
    pub open: bool,
    /// The declared range, if any: `: 0..4`.
    pub range: Option<RangeExpr>,
    /// The integer type, if any: `: u8`, as the operator that wraps assigned values around. A declarator with a type has no range.
    pub wraps: Option<UnaryOp>,
    /// The initial contents, if given: `= ...`.
    pub init: Option<Initial>,
    /// The span of the whole declarator.
    pub span: Span,
}

/// The indices of an array.
#[derive(Clone, Debug, PartialEq)]
pub enum ArraySize {
    /// `[8]`: 0 to 7.
    Length(Expr),
    /// `[-2..3]`
    Indices(RangeExpr),
}

/// The initial contents of a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Initial {
    /// `= 3`
    Value(Expr),
    /// `= *` or `= * in 0..4`
    Any(Option<RangeExpr>),
    /// `= [1, 2, 3]`
    List(Vec<Expr>),
}

/// `low..high` (exclusive) or `low..=high` (inclusive); both ends are constant expressions.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeExpr {
    /// The least value.
    pub low: Expr,
    /// The upper end.
    pub high: Expr,
    /// Whether the upper end belongs to the range.
    pub inclusive: bool,
    /// The span of the whole range.
    pub span: Span,
}

/// A thread, or a family of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// The name of the thread or family.
    pub name: Name,
    /// The name and the range of the index, if this is a family: `[me in 0..N]`.
    pub family: Option<(Name, RangeExpr)>,
    /// The statements, which every instance of a family executes.
    pub body: Block,
    /// The span from `thread` to the closing brace.
    pub span: Span,
}

/// `fn f(a, b) { ... }`.
#[derive(Clone, Debug, PartialEq)]
pub struct Procedure {
    /// The name that calls use, and that qualifies labels and registers of the procedure in formulas.
    pub name: Name,
    /// The parameters in the order of the arguments.
    pub parameters: Vec<Parameter>,
    /// The statements, which are inlined at every call.
    pub body: Block,
    /// The span from `fn` to the closing brace.
    pub span: Span,
}

/// A parameter of a procedure.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name in the body of the procedure.
    pub name: Name,
    /// The type `: u8`, if any: the argument, and values assigned to the parameter, wrap around.
    pub wraps: Option<UnaryOp>,
}

/// `{ ... }`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// The statements. The scope of a `const` declaration is its block, that of a `var` declaration its thread or procedure.
    pub statements: Vec<Statement>,
    /// The span, including the braces.
    pub span: Span,
}

/// A statement with its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// The labels: `a: b: statement`.
    pub labels: Vec<Name>,
    /// The statement itself. A label directly before `}` labels a [`StatementKind::Empty`].
    pub kind: StatementKind,
    /// The span of the statement without its labels.
    pub span: Span,
}

/// The kinds of statements.
#[derive(Clone, Debug, PartialEq)]
pub enum StatementKind {
    /// No statement and no step: only carries the labels directly before `}`.
    Empty,
    /// `const other = 1 - me;`
    Const(Const),
    /// `var r, s = 3;`
    Var(Vec<Declarator>),
    /// `x = e;`, `a[i] = e;`, `r = e;`
    Assign(Place, Expr),
    /// `r = *;` or `r = * in 0..4;`
    Havoc(Place, Option<RangeExpr>),
    /// A read-modify-write operation, or a call, used as a statement.
    Expr(Expr),
    /// `skip;`
    Skip,
    /// `fence;`
    Fence,
    /// `sfence;`
    StoreFence,
    /// `lock;`, or `lock m;` for a mutex.
    Lock(Option<Place>),
    /// `unlock;`, or `unlock m;` for a mutex.
    Unlock(Option<Place>),
    /// `atomic { ... }`
    Atomic(Block),
    /// `snapshot { ... }`
    Snapshot(Block),
    /// `assume e;`
    Assume(Expr),
    /// `assert e;` or `assert e, "text";`
    Assert(Expr, Option<String>),
    /// `await e;`
    Await(Expr),
    /// `if e { } else { }`; `else if` is an else block with one statement.
    If(Expr, Block, Option<Block>),
    /// `while e { }`
    While(Expr, Block),
    /// `loop { }`
    Loop(Block),
    /// `for j in 0..N { }`
    For(Name, RangeExpr, Block),
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `choose { } or { }`
    Choose(Vec<Block>),
    /// `goto label;`
    Goto(Name),
    /// `stop;`
    Stop,
    /// `return;` or `return e;`: only in procedures.
    Return(Option<Expr>),
    /// `{ ... }`
    Block(Block),
    /// The translation of one statement of another language, printed without braces. Fences can be inserted before and after the translation as a
    /// whole, and inside the blocks that it contains (such as the body of an `if` or the inlined text of a call), but not between its statements.
    Steps(Block),
}

/// The target of an assignment.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// A register or shared variable.
    pub name: Name,
    /// The index, if any: `[e]`.
    pub index: Option<Box<Expr>>,
}

/// An expression or formula.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The expression itself.
    pub kind: ExprKind,
    /// The span of the whole expression.
    pub span: Span,
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A number: `42`, `true`.
    Int(i64),
    /// A constant, register or shared variable: `x`, `a[i]`.
    Place(Place),
    /// `-e`, `!e`, `u8(e)`
    Unary(UnaryOp, Box<Expr>),
    /// `c ? a : b`
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `e + e`, `min(e, e)`
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `cas(x, old, new)`
    Cas(Place, Box<Expr>, Box<Expr>),
    /// `swap(x, v)`
    Swap(Place, Box<Expr>),
    /// `fetch_add(x, v)`
    FetchAdd(Place, Box<Expr>),
    /// `f(a, b)`
    Call(Name, Vec<Expr>),
    /// `p@label`, `p[i]@label`: only in formulas. A label in a procedure is qualified with the name of the procedure: `p@acquire.wait`.
    At(ThreadRef, Name),
    /// `p.r`, `p[i].r`, `p.a[i]`: only in formulas. A register of a procedure is qualified with the name of the procedure: `p.acquire.r`.
    Register(ThreadRef, Place),
    /// `exists i in 0..N: e` or `forall ...`: only in formulas.
    Quantified(Quantified, Vec<Binder>, Box<Expr>),
}

/// A thread in a formula.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadRef {
    /// The name of the thread or family.
    pub name: Name,
    /// The number of the instance: a constant expression. `None` for a single thread.
    pub index: Option<Box<Expr>>,
}

/// Existential or universal quantifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Quantified {
    Exists,
    Forall,
}

/// `i in 0..N`, `i < j in 0..N` or `i != j in 0..N`
#[derive(Clone, Debug, PartialEq)]
pub struct Binder {
    /// The first (or only) variable.
    pub first: Name,
    /// The relation and the second variable, if any.
    pub second: Option<(BinderRelation, Name)>,
    /// The range of the variables.
    pub range: RangeExpr,
}

/// The relation between the two variables of a binder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BinderRelation {
    Less,
    NotEqual,
}

/// `forbid`, `invariant` or `finally`.
#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    /// The name, if given: `NAME:`.
    pub name: Option<Name>,
    /// Whether the formula is forbidden, invariant, or about final states, and with which quantifier.
    pub kind: PropertyKind,
    /// The binders before the formula.
    pub binders: Vec<Binder>,
    /// The formula after the binders.
    pub formula: Expr,
    /// The span of the whole item.
    pub span: Span,
}

/// The kinds of properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum PropertyKind {
    Forbid,
    Invariant,
    FinallyExists,
    FinallyNever,
    FinallyForall,
}
