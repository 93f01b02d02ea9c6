//! Syntax trees of C. Names of types and tags are resolved during parsing, because C cannot be parsed otherwise; names of variables, functions and
//! members are resolved later, in [`typed`](crate::typed).

use std::rc::Rc;

use fencewright_program::Span;

use crate::literal::Literal;
use crate::token::{ExpansionId, Symbol};

/// A translation unit.
#[derive(Debug, Default)]
pub struct Unit {
    /// Its declarations and function definitions, in order.
    pub items: Vec<Item>,
    /// For each source file, the number of items up to its end.
    pub ends: Vec<usize>,
    /// The structures and unions that it mentions.
    pub records: Vec<Record>,
    /// Structures and unions with later definitions of them, by other source files.
    pub again: Vec<(RecordId, RecordId)>,
    /// The number of enumerations that it mentions.
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
    /// Enumerators declared in its type.
    pub enumerators: Vec<Enumerator>,
    /// The statements in braces after the declarator.
    pub body: Block,
}

/// A name with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// The spelling.
    pub symbol: Symbol,
    /// The position.
    pub span: Span,
    /// The macro expansion that produced it.
    pub expansion: ExpansionId,
}

/// A structure or a union, by its number in [`Unit::records`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId(pub u32);

/// An enumeration, by its number, which is less than [`Unit::enumerations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EnumerationId(pub u32);

/// A structure or a union.
#[derive(Debug)]
pub struct Record {
    /// The tag, if any.
    pub tag: Option<Symbol>,
    /// Whether it is a union.
    pub union: bool,
    /// The members; `None` while the type is incomplete.
    pub fields: Option<Vec<Field>>,
    /// The attributes that affect the layout.
    pub attributes: Attributes,
    /// The position of the first mention.
    pub span: Span,
}

/// Attributes that affect the layout.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    /// Whether there is no padding: `__attribute__((packed))`.
    pub packed: bool,
    /// Requested alignments.
    pub aligned: Vec<Rc<Alignment>>,
    /// The type that `mode` or `vector_size` substitutes for the written one, if any.
    pub mode: Option<Mode>,
}

/// A type given by an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// An integer of this rank, signed or unsigned like the written type.
    Integer(Rank),
    /// A floating-point type of this size in bytes.
    Floating(u64),
    /// A type that is not supported, with its name in messages.
    Unsupported(&'static str),
}

/// A requested alignment.
#[derive(Debug)]
pub enum Alignment {
    /// This number of bytes.
    Value(Expr),
    /// The alignment of a type.
    Type(Type),
    /// The largest alignment that the machine uses.
    Most,
}

/// A member of a structure or union.
#[derive(Debug)]
pub struct Field {
    /// The name, if any. The members of a structure or union without a name count as members of the enclosing structure or union.
    pub name: Option<Name>,
    /// Its type.
    pub ty: Type,
    /// The width of a bit-field; `None` for other members.
    pub bits: Option<Expr>,
    /// The attributes that affect the layout.
    pub attributes: Attributes,
    /// The position.
    pub span: Span,
}

/// A type with its qualifiers.
#[derive(Clone, Debug)]
pub struct Type {
    /// The type itself.
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

/// The kinds of types, as they are written.
#[derive(Clone, Debug)]
pub enum TypeKind {
    /// `void`.
    Void,
    /// `_Bool`.
    Bool,
    /// An integer type other than `_Bool` and enumerations.
    Integer(Integer),
    /// The type of an `enum`.
    Enumeration(EnumerationId),
    /// A floating-point type of this size in bytes; floating-point numbers are not modelled.
    Floating(u64),
    /// A type that is not supported, with its name in messages. It is an error where something uses it.
    Unsupported(&'static str),
    /// A structure or union.
    Record(RecordId),
    /// A pointer to the given type.
    Pointer(Rc<Type>),
    /// An array; the length may be omitted.
    Array(Rc<Type>, Option<Rc<Expr>>),
    /// The type of a function, not of a pointer to it.
    Function(Rc<FunctionType>),
    /// `typeof` an expression.
    TypeOf(Rc<Expr>),
    /// The type of the initial value: `__auto_type`.
    Inferred,
}

/// An integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Integer {
    /// The conversion rank (C11 6.3.1.1).
    pub rank: Rank,
    /// Whether it is signed.
    pub signed: bool,
}

impl Integer {
    /// `int`.
    pub const INT: Integer = Integer { rank: Rank::Int, signed: true };

    /// The width in bits, as on x86-64 under Linux.
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

/// The return type and the parameters of a function.
#[derive(Debug)]
pub struct FunctionType {
    /// The return type.
    pub result: Type,
    /// The parameters; `None` for a declaration without a prototype.
    pub parameters: Option<Vec<Parameter>>,
    /// Whether further arguments may follow.
    pub variadic: bool,
}

/// A parameter of a function.
#[derive(Debug)]
pub struct Parameter {
    /// The name, if any.
    pub name: Option<Name>,
    /// Its type.
    pub ty: Type,
}

/// A declaration of one or several names.
#[derive(Debug)]
pub struct Declaration {
    /// The storage class.
    pub storage: Storage,
    /// The declared names.
    pub declarators: Vec<Declarator>,
    /// Enumerators declared in the types; they precede the declarators.
    pub enumerators: Vec<Enumerator>,
    /// Structures and unions whose members are declared here.
    pub records: Vec<RecordId>,
    /// Type names declared by `typedef`.
    pub types: Vec<(Name, Type)>,
    /// The conditions and messages of `_Static_assert`.
    pub assertions: Vec<(Expr, Option<String>)>,
    /// The position.
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
}

/// A declared name.
#[derive(Debug)]
pub struct Declarator {
    /// The declared name, with its position.
    pub name: Name,
    /// Its type.
    pub ty: Type,
    /// The initialiser, if any.
    pub initial: Option<Initializer>,
}

/// A constant declared in an `enum`.
#[derive(Debug)]
pub struct Enumerator {
    /// The name.
    pub name: Name,
    /// The value; if omitted, one more than that of the previous enumerator.
    pub value: Option<Expr>,
    /// The enumeration that it belongs to.
    pub enumeration: EnumerationId,
    /// Whether it is the first enumerator of its enumeration.
    pub first: bool,
}

/// An initialiser.
#[derive(Debug)]
pub enum Initializer {
    /// A value.
    Expression(Expr),
    /// An initialiser list: values of elements or members.
    List(Vec<(Vec<Designator>, Initializer)>, Span),
}

/// A designator: the element or member that an initial value is for.
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

/// A statement, with the information whether fences can be inserted beside it.
#[derive(Debug)]
pub struct Statement {
    /// The statement itself.
    pub kind: StatementKind,
    /// The position.
    pub span: Span,
    /// The macro expansion that produced its first token.
    pub expansion: ExpansionId,
    /// Whether a statement can be inserted before this one: this one is inside a block, and its first token and the token before that do not come
    /// from the same macro expansion.
    pub starts: bool,
    /// Whether a statement can be inserted after this one.
    pub ends: bool,
    /// Its position in the definition of a macro, if a single expansion produced all of it.
    pub definition: Option<Rc<Definition>>,
}

/// The position of a statement in the definition of a macro.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The name of the macro that is expanded.
    pub name: Rc<str>,
    /// The position in the definition.
    pub span: Span,
    /// The position of the use of the macro.
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
    /// A construct that is not supported, with the message for where an execution may reach it.
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
    /// The instructions, in which operands have numbers: `%[2]` where the program says `%[name]`.
    pub text: String,
    /// Whether it is `asm goto`.
    pub jumps: bool,
    /// Outputs: the constraint and the operand.
    pub outputs: Vec<(String, Expr)>,
    /// Inputs: the constraint and the operand.
    pub inputs: Vec<(String, Expr)>,
    /// The clobbered registers.
    pub clobbers: Vec<String>,
}

/// An expression.
#[derive(Debug)]
pub struct Expr {
    /// The expression itself.
    pub kind: ExprKind,
    /// The position.
    pub span: Span,
    /// The macro expansion that produced its first token.
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
    /// A construct that is not supported, with the message for where an execution may reach it.
    Unsupported(String),
    /// A string literal.
    String(String),
    /// A prefix operator.
    Unary(UnaryOp, Box<Expr>),
    /// `++` or `--`.
    Step(Step, Box<Expr>),
    /// A binary operator, including `&&` and `||`.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// An assignment, compound or not.
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
    /// `_Generic`: the controlling expression, and the associations; `None` is `default`.
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
    /// Whether it increments.
    pub up: bool,
    /// Whether it is a prefix operator.
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
