//! Syntax trees of C. Names of types and tags are resolved while a text is parsed, because C cannot be parsed otherwise; names of
//! variables, functions and members are left to whoever gives the tree its meaning.

use std::rc::Rc;

use fencewright_program::Span;

use crate::literal::Literal;
use crate::token::{ExpansionId, Symbol};

/// A translation unit.
#[derive(Debug, Default)]
pub struct Unit {
    /// What it declares and defines, in order.
    pub items: Vec<Item>,
    /// The structures and unions it mentions.
    pub records: Vec<Record>,
    /// How many enumerations it mentions.
    pub enumerations: u32,
}

/// A function or a declaration at the outermost level.
#[derive(Debug)]
pub enum Item {
    /// A function with its body.
    Function(Function),
    /// Anything else that is declared.
    Declaration(Declaration),
}

/// A function with its body.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: Rc<FunctionType>,
    /// Enumerators that its type brings.
    pub enumerators: Vec<Enumerator>,
    /// Its body.
    pub body: Block,
}

/// A name and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// How it is spelled.
    pub symbol: Symbol,
    /// Where.
    pub span: Span,
    /// Which use of a macro brought it.
    pub expansion: ExpansionId,
}

/// A structure or a union, by its number in [`Unit::records`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId(pub u32);

/// An enumeration, by its number; there are [`Unit::enumerations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EnumerationId(pub u32);

/// A structure or a union.
#[derive(Debug)]
pub struct Record {
    /// Its tag, if it has one.
    pub tag: Option<Symbol>,
    /// Whether it is a union.
    pub union: bool,
    /// Its members, once they are known.
    pub fields: Option<Vec<Field>>,
    /// How its members lie.
    pub attributes: Attributes,
    /// Where it was mentioned first.
    pub span: Span,
}

/// What is said about where something lies.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    /// Whether nothing is left free: `__attribute__((packed))`.
    pub packed: bool,
    /// Alignments that are asked for.
    pub aligned: Vec<Rc<Alignment>>,
}

/// An alignment that is asked for.
#[derive(Debug)]
pub enum Alignment {
    /// So many bytes.
    Value(Expr),
    /// That of a type.
    Type(Type),
    /// The largest that the machine has a use for.
    Most,
}

/// A member of a structure or union.
#[derive(Debug)]
pub struct Field {
    /// Its name; a structure or union without one lends its members.
    pub name: Option<Name>,
    /// Its type.
    pub ty: Type,
    /// How many bits it has, if it says so.
    pub bits: Option<Expr>,
    /// Where it lies.
    pub attributes: Attributes,
    /// Where.
    pub span: Span,
}

/// A type with its qualifiers.
#[derive(Clone, Debug)]
pub struct Type {
    /// What it is.
    pub kind: TypeKind,
    /// Whether it is `_Atomic`.
    pub atomic: bool,
    /// Whether it is `const`.
    pub constant: bool,
    /// Whether it is `volatile`.
    pub volatile: bool,
}

impl From<TypeKind> for Type {
    fn from(kind: TypeKind) -> Self {
        Type { kind, atomic: false, constant: false, volatile: false }
    }
}

/// What a type is.
#[derive(Clone, Debug)]
pub enum TypeKind {
    /// `void`.
    Void,
    /// `_Bool`.
    Bool,
    /// An integer.
    Integer(Integer),
    /// An enumeration.
    Enumeration(EnumerationId),
    /// A floating number that takes so many bytes; nothing more is known of it.
    Floating(u64),
    /// A structure or union.
    Record(RecordId),
    /// A pointer.
    Pointer(Rc<Type>),
    /// An array; its length may be left open.
    Array(Rc<Type>, Option<Rc<Expr>>),
    /// A function.
    Function(Rc<FunctionType>),
    /// `typeof` an expression.
    TypeOf(Rc<Expr>),
    /// The type of the initial value: `__auto_type`.
    Inferred,
}

/// An integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Integer {
    /// How it ranks among the others (C11 6.3.1.1).
    pub rank: Rank,
    /// Whether it is signed.
    pub signed: bool,
}

impl Integer {
    /// `int`.
    pub const INT: Integer = Integer { rank: Rank::Int, signed: true };

    /// How many bits it has, as on x86-64 under Linux.
    pub fn bits(self) -> u32 {
        match self.rank {
            Rank::Char => 8,
            Rank::Short => 16,
            Rank::Int => 32,
            Rank::Long | Rank::LongLong => 64,
        }
    }
}

/// The ranks of integer types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rank {
    /// `char`.
    Char,
    /// `short`.
    Short,
    /// `int`.
    Int,
    /// `long`.
    Long,
    /// `long long`.
    LongLong,
}

/// The type of a function.
#[derive(Debug)]
pub struct FunctionType {
    /// What it returns.
    pub result: Type,
    /// Its parameters; `None` if nothing is said about them.
    pub parameters: Option<Vec<Parameter>>,
    /// Whether further arguments may follow.
    pub variadic: bool,
}

/// A parameter of a function.
#[derive(Debug)]
pub struct Parameter {
    /// Its name, if it has one.
    pub name: Option<Name>,
    /// Its type.
    pub ty: Type,
}

/// One or several names declared together.
#[derive(Debug)]
pub struct Declaration {
    /// How they are stored.
    pub storage: Storage,
    /// The names.
    pub declarators: Vec<Declarator>,
    /// Enumerators that their types bring, which are declared before them.
    pub enumerators: Vec<Enumerator>,
    /// Structures and unions that got their members.
    pub records: Vec<RecordId>,
    /// Names for types: `typedef`.
    pub types: Vec<(Name, Type)>,
    /// What must hold, and what is said if it does not: `_Static_assert`.
    pub assertions: Vec<(Expr, Option<String>)>,
    /// Where.
    pub span: Span,
}

/// How what is declared is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    /// `static`.
    pub fixed: bool,
    /// `extern`.
    pub external: bool,
    /// `_Thread_local` or `__thread`.
    pub thread_local: bool,
}

/// A declared name.
#[derive(Debug)]
pub struct Declarator {
    /// The name.
    pub name: Name,
    /// Its type.
    pub ty: Type,
    /// How it starts.
    pub initial: Option<Initializer>,
}

/// A name for a number.
#[derive(Debug)]
pub struct Enumerator {
    /// The name.
    pub name: Name,
    /// The number; one more than that of the enumerator before if nothing is said.
    pub value: Option<Expr>,
    /// Whose it is.
    pub enumeration: EnumerationId,
    /// Whether it is the first of its enumeration.
    pub first: bool,
}

/// How a variable starts.
#[derive(Debug)]
pub enum Initializer {
    /// A value.
    Expression(Expr),
    /// Values of elements or members.
    List(Vec<(Vec<Designator>, Initializer)>, Span),
}

/// Which element or member an initial value is for.
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
    /// The statements, declarations among them.
    pub statements: Vec<Statement>,
    /// All of it.
    pub span: Span,
}

/// A statement.
#[derive(Debug)]
pub struct Statement {
    /// What it is.
    pub kind: StatementKind,
    /// Where.
    pub span: Span,
    /// Which use of a macro brought its first token.
    pub expansion: ExpansionId,
    /// Whether another statement can be written before it: it stands among statements, and no use of a macro brings its first token and
    /// something before it.
    pub starts: bool,
    /// Whether another statement can be written behind it.
    pub ends: bool,
    /// Where it stands in the definition of a macro, if a use of one brought all of it.
    pub definition: Option<Rc<Definition>>,
}

/// Where a statement stands in the definition of a macro.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The macro that is used in the text.
    pub name: Rc<str>,
    /// The text.
    pub span: Span,
    /// The use of the macro.
    pub used: Span,
    /// Whether another statement can be written before it.
    pub starts: bool,
    /// Whether another statement can be written behind it.
    pub ends: bool,
}

/// What a statement is.
#[derive(Debug)]
pub enum StatementKind {
    /// `;`.
    Empty,
    /// An expression for its effects.
    Expression(Expr),
    /// A declaration.
    Declaration(Declaration),
    /// `{ ... }`.
    Block(Block),
    /// `if`, with all its `else if`; the last block may be without a condition.
    If(Vec<(Expr, Statement)>, Option<Box<Statement>>),
    /// `while`.
    While(Expr, Box<Statement>),
    /// `do`.
    DoWhile(Box<Statement>, Expr),
    /// `for`: what comes first, the condition, the step, the body.
    For(Option<Box<Statement>>, Option<Expr>, Option<Expr>, Box<Statement>),
    /// `switch`.
    Switch(Expr, Box<Statement>),
    /// `case`, or in GNU C a range of cases.
    Case(Expr, Option<Expr>, Box<Statement>),
    /// `default`.
    Default(Box<Statement>),
    /// A label.
    Label(Name, Box<Statement>),
    /// `goto`.
    Goto(Name),
    /// `break`.
    Break,
    /// `continue`.
    Continue,
    /// `return`.
    Return(Option<Expr>),
    /// Assembly.
    Assembly(Assembly),
}

/// `asm("...")`.
#[derive(Debug)]
pub struct Assembly {
    /// The instructions.
    pub text: String,
    /// Whether it is `volatile`.
    pub volatile: bool,
    /// Outputs: the constraint and the place.
    pub outputs: Vec<(String, Expr)>,
    /// Inputs: the constraint and the value.
    pub inputs: Vec<(String, Expr)>,
    /// What it clobbers.
    pub clobbers: Vec<String>,
}

/// An expression.
#[derive(Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where.
    pub span: Span,
    /// Which use of a macro brought its first token.
    pub expansion: ExpansionId,
}

/// What an expression is.
#[derive(Debug)]
pub enum ExprKind {
    /// A name.
    Name(Symbol),
    /// An integer constant.
    Integer(Literal),
    /// A character constant.
    Character(i64),
    /// A string.
    String(String),
    /// An operator before its operand.
    Unary(UnaryOp, Box<Expr>),
    /// `++` or `--`.
    Step(Step, Box<Expr>),
    /// An operator between two operands, `&&` and `||` among them.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// An assignment, compound or not.
    Assign(Option<BinaryOp>, Box<Expr>, Box<Expr>),
    /// `a ? b : c`; GNU C allows to leave out `b`.
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
    /// A call.
    Call(Box<Expr>, Vec<Expr>),
    /// `a[i]`.
    Index(Box<Expr>, Box<Expr>),
    /// `a.member`.
    Member(Box<Expr>, Name),
    /// `a->member`.
    Arrow(Box<Expr>, Name),
    /// `(type) { ... }`.
    Compound(Type, Box<Initializer>),
    /// `({ ... })`, whose value is that of its last expression.
    Statements(Block),
    /// `_Generic`: what decides, and what is chosen for a type, or for all others.
    Generic(Box<Expr>, Vec<(Option<Type>, Expr)>),
    /// `__builtin_offsetof(type, member)`.
    OffsetOf(Type, Vec<Designator>),
    /// `__builtin_types_compatible_p(type, type)`.
    TypesCompatible(Type, Type),
}

/// Operators before an operand.
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
    /// Whether it counts up.
    pub up: bool,
    /// Whether it stands before its operand.
    pub prefix: bool,
}

/// Operators between operands.
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
