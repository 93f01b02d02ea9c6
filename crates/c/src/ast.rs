//! Syntax trees of C. The parser itself resolves type names and tags, because C cannot be parsed otherwise; [`typed`](crate::typed) resolves the
//! names of variables, functions and members.

mod types;

use std::rc::Rc;

use fencewright_program::Span;

pub use self::types::{
    Alignment, Attributes, EnumerationId, Field, FunctionType, Integer, Mode, Parameter, Rank, Record,
    RecordId, Type, TypeKind,
};
use crate::literal::Literal;
use crate::token::{ExpansionId, Kind, Symbol};

/// The declarations and definitions of all source files of a program, one file after the other.
#[derive(Debug, Default)]
pub struct Unit {
    /// The declarations and function definitions at file scope, in order.
    pub items: Vec<Item>,
    /// For each source file, the number of items up to its end.
    pub ends: Vec<usize>,
    /// All structures and unions, including those that are only mentioned and never defined. A [`RecordId`] is an index into this list.
    pub records: Vec<Record>,
    /// Pairs of a structure or union and a later definition of it in another source file.
    pub again: Vec<(RecordId, RecordId)>,
    /// The number of enumerations; an [`EnumerationId`] is less than this number.
    pub enumerations: u32,
}

/// A function definition or a declaration at file scope.
#[derive(Debug)]
pub enum Item {
    /// A function definition.
    Function(Function),
    /// A declaration of variables, types or functions without a body.
    Declaration(Declaration),
}

/// A function definition.
#[derive(Debug)]
pub struct Function {
    /// The name that the definition declares.
    pub name: Name,
    /// The return type and the parameters.
    pub ty: Rc<FunctionType>,
    /// Whether it is `static`.
    pub fixed: bool,
    /// Whether it is declared `inline`.
    pub inline: bool,
    /// Enumerators declared in the return type or in the parameter types.
    pub enumerators: Vec<Enumerator>,
    /// The statements in braces after the declarator.
    pub body: Block,
    /// The text, if the function may be defined in several source files.
    pub text: Option<FunctionText>,
}

/// The text of a function from its declarator on, to compare the definitions of one function in several source files.
#[derive(Debug)]
pub struct FunctionText {
    /// The tokens, each with its position: where it stands in a file or, if no file contains it, where the macro is used.
    pub tokens: Vec<(Kind, Symbol, Span)>,
    /// The names among the tokens that denote types at file scope, by the index of the token.
    pub types: Vec<(usize, Type)>,
}

/// A name with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// The spelling of the name.
    pub symbol: Symbol,
    /// The position of the name in the text, or of the outermost macro use that produced it.
    pub span: Span,
    /// The macro expansion that produced the token.
    pub expansion: ExpansionId,
}

/// A declaration of one or several names.
#[derive(Debug)]
pub struct Declaration {
    /// The storage class; `typedef` is none here, because declarations of types are kept elsewhere.
    pub storage: Storage,
    /// The names that the declaration declares, other than type names.
    pub declarators: Vec<Declarator>,
    /// Enumerators declared in the types; their scope begins before the first declarator.
    pub enumerators: Vec<Enumerator>,
    /// Structures and unions whose members are declared here.
    pub records: Vec<RecordId>,
    /// Type names declared by `typedef`.
    pub types: Vec<(Name, Type)>,
    /// The attributes of these types, if they request an alignment.
    pub aligned_types: Vec<(Name, Attributes)>,
    /// The conditions and messages of `_Static_assert`.
    pub assertions: Vec<(Expr, Option<String>)>,
    /// The position from the first specifier to the semicolon.
    pub span: Span,
}

/// A storage class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    /// `static`.
    pub fixed: bool,
    /// `extern`.
    pub external: bool,
    /// `_Thread_local` or `__thread`.
    pub thread_local: bool,
    /// `inline`.
    pub inline: bool,
}

/// A declared name with its type and initialiser.
#[derive(Debug)]
pub struct Declarator {
    /// The declared name, with its position.
    pub name: Name,
    /// The type of the name: the specifiers of the declaration combined with the declarator.
    pub ty: Type,
    /// The initialiser, if any.
    pub initial: Option<Initializer>,
}

/// A constant declared in an `enum`.
#[derive(Debug)]
pub struct Enumerator {
    /// The name of the constant.
    pub name: Name,
    /// The value; if omitted, one more than that of the previous enumerator.
    pub value: Option<Expr>,
    /// The enumeration in which the enumerator is declared.
    pub enumeration: EnumerationId,
    /// Whether this is the first enumerator of its enumeration.
    pub first: bool,
    /// Whether the enumeration has the smallest integer type that holds its values: `__attribute__((packed))`.
    pub packed: bool,
}

/// An initialiser: the part of a declaration after `=`, or the braces of a compound literal.
#[derive(Debug)]
pub enum Initializer {
    /// An initialiser without braces.
    Expression(Expr),
    /// An initialiser list: values of elements or members.
    List(Vec<(Vec<Designator>, Initializer)>, Span),
}

/// A designator: names the element or member that the following initial value is for.
#[derive(Debug)]
pub enum Designator {
    /// `[3]`.
    Index(Expr),
    /// `[1 ... 3]`.
    Range(Expr, Expr),
    /// `.member`.
    Member(Name),
}

/// `{ ... }`.
#[derive(Debug)]
pub struct Block {
    /// The statements, including declarations.
    pub statements: Vec<Statement>,
    /// The position, including the braces.
    pub span: Span,
}

/// A statement, together with the places where a fence can be inserted before or after it.
#[derive(Debug)]
pub struct Statement {
    /// The kind of statement, with its parts.
    pub kind: StatementKind,
    /// The position from the first to the last token.
    pub span: Span,
    /// The macro expansion that produced the first token.
    pub expansion: ExpansionId,
    /// Whether text can be inserted before the statement: no macro use produced both its first token and the preceding token.
    pub starts: bool,
    /// Whether text can be inserted after the statement: no macro use produced both its last token and the following token.
    pub ends: bool,
    /// The position of the statement in the definition of a macro, if a single expansion produced the whole statement.
    pub definition: Option<Rc<Definition>>,
}

/// The position of a statement in the definition of a macro, where a fence can be inserted if none can be inserted in the text that uses the macro.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The name of the outermost macro used in the text.
    pub name: Rc<str>,
    /// The position of the statement in the replacement list.
    pub span: Span,
    /// The position in the text where that macro is used.
    pub used: Span,
    /// Whether another statement can be inserted before the statement in the definition.
    pub starts: bool,
    /// Whether another statement can be inserted after the statement in the definition.
    pub ends: bool,
}

/// The kinds of statements.
#[derive(Debug)]
pub enum StatementKind {
    /// `;`.
    Empty,
    /// An expression statement.
    Expression(Expr),
    /// An unsupported construct. Its message is reported if an execution may reach the construct.
    Unsupported(&'static str),
    /// A declaration.
    Declaration(Declaration),
    /// `{ ... }`.
    Block(Block),
    /// `if`, with all its `else if`s, and the final `else` if any.
    If(Vec<(Expr, Statement)>, Option<Box<Statement>>),
    /// `while`.
    While(Expr, Box<Statement>),
    /// `do`.
    DoWhile(Box<Statement>, Expr),
    /// `for`: the initial statement, the condition, the step, the body.
    For(Option<Box<Statement>>, Option<Expr>, Option<Expr>, Box<Statement>),
    /// `switch`.
    Switch(Expr, Box<Statement>),
    /// `case`, or in GNU C a range of cases.
    Case(Expr, Option<Expr>, Box<Statement>),
    /// `default`.
    Default(Box<Statement>),
    /// `label: statement`.
    Label(Name, Box<Statement>),
    /// `goto`.
    Goto(Name),
    /// `break`.
    Break,
    /// `continue`.
    Continue,
    /// `return`.
    Return(Option<Expr>),
    /// `asm ( ... );`
    Assembly(Assembly),
}

/// `asm("...")`.
#[derive(Debug)]
pub struct Assembly {
    /// The instructions. References to operands by name are replaced by references by number: `%[name]` becomes `%[2]`.
    pub text: String,
    /// Whether the statement is `asm goto`, which may jump to labels of the function.
    pub jumps: bool,
    /// Whether it is `volatile`. A statement without outputs always is. A compiler may remove any other one if its outputs are not used.
    pub volatile: bool,
    /// Outputs: the constraint and the operand.
    pub outputs: Vec<(String, Expr)>,
    /// Inputs: the constraint and the operand.
    pub inputs: Vec<(String, Expr)>,
    /// The clobbers: names of registers, `memory` and `cc`.
    pub clobbers: Vec<String>,
}

/// An expression.
#[derive(Debug)]
pub struct Expr {
    /// The kind of expression, with its operands.
    pub kind: ExprKind,
    /// The position from the first to the last token.
    pub span: Span,
    /// The macro expansion that produced the first token.
    pub expansion: ExpansionId,
}

/// The kinds of expressions.
#[derive(Debug)]
pub enum ExprKind {
    /// A variable, an enumerator or a function, by name.
    Name(Symbol),
    /// An integer constant.
    Integer(Literal),
    /// A character constant.
    Character(i64),
    /// An unsupported construct. Its message is reported if an execution may reach the construct.
    Unsupported(String),
    /// A string literal.
    String(String),
    /// A prefix operator.
    Unary(UnaryOp, Box<Expr>),
    /// `++` or `--`.
    Step(Step, Box<Expr>),
    /// A binary operator, including `&&` and `||`.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// An assignment; with a binary operation for compound assignments such as `+=`.
    Assign(Option<BinaryOp>, Box<Expr>, Box<Expr>),
    /// `a ? b : c`; in GNU C, `b` may be omitted.
    Conditional(Box<Expr>, Option<Box<Expr>>, Box<Expr>),
    /// `a, b`.
    Comma(Box<Expr>, Box<Expr>),
    /// `(type) a`.
    Cast(Type, Box<Expr>),
    /// `sizeof a`.
    SizeOf(Box<Expr>),
    /// `sizeof (type)`.
    SizeOfType(Type),
    /// `_Alignof (type)`.
    AlignOf(Type),
    /// `f(a, b)`: the called expression and the arguments.
    Call(Box<Expr>, Vec<Expr>),
    /// `a[i]`.
    Index(Box<Expr>, Box<Expr>),
    /// `a.member`.
    Member(Box<Expr>, Name),
    /// `a->member`.
    Arrow(Box<Expr>, Name),
    /// `(type) { ... }`.
    Compound(Type, Box<Initializer>),
    /// `({ ... })`, a statement expression.
    Statements(Block),
    /// `_Generic`: the controlling expression and the associations; an association without a type is `default`.
    Generic(Box<Expr>, Vec<(Option<Type>, Expr)>),
    /// `__builtin_offsetof(type, member)`.
    OffsetOf(Type, Vec<Designator>),
    /// `__builtin_types_compatible_p(type, type)`.
    TypesCompatible(Type, Type),
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `+`.
    Plus,
    /// `-`.
    Minus,
    /// `!`.
    Not,
    /// `~`.
    Complement,
    /// `*`.
    Dereference,
    /// `&`.
    Address,
}

/// `++` and `--`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Whether the operator is `++`.
    pub up: bool,
    /// Whether the operator precedes its operand.
    pub prefix: bool,
}

/// Binary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BinaryOp {
    Multiply,
    Divide,
    Remainder,
    Add,
    Subtract,
    ShiftLeft,
    ShiftRight,
    Less,
    Greater,
    LessOrEqual,
    GreaterOrEqual,
    Equal,
    NotEqual,
    BitAnd,
    BitXor,
    BitOr,
    And,
    Or,
}
