//! Programs with names, types and constants resolved: the tree that gives C its meaning.
//!
//! Values ([`Expr`]) and places ([`Place`]) are apart, and every conversion that C makes by itself is an expression of its own, so that whoever
//! reads the tree needs to know nothing about ranks and promotions. Sizes are those of x86-64 under Linux.

use std::rc::Rc;

use fencewright_program::{Span, id};

use crate::arithmetic::Arithmetic;
use crate::ast::{Assembly as ParsedAssembly, BinaryOp, Definition, RecordId};
use crate::token::ExpansionId;

/// A whole program.
#[derive(Debug, Default)]
pub struct Unit {
    /// Structures and unions, with the numbers that the parser gave them.
    pub records: Vec<Record>,
    /// Variables with static storage: globals, `static` locals, strings, and those of each thread.
    pub globals: Vec<Variable>,
    /// Functions with a body.
    pub functions: Vec<Function>,
    /// What is odd but no error.
    pub warnings: Vec<crate::Error>,
}

id!(
    /// A variable with static storage, by its number in [`Unit::globals`].
    GlobalId
);
id!(
    /// A function with a body, by its number in [`Unit::functions`].
    FunctionId
);
id!(
    /// A parameter or local variable, by its number in [`Function::locals`].
    LocalId
);
id!(
    /// A label of a function, by its number in [`Function::labels`].
    LabelId
);

/// A structure or union.
#[derive(Debug)]
pub struct Record {
    /// Its tag, the name of a `typedef` for it, or a made-up name.
    pub name: Rc<str>,
    /// Whether it is a union.
    pub union: bool,
    /// Its members in order; members of a structure without a name are lent by that structure, which is a member with a made-up name.
    pub fields: Vec<Field>,
    /// Whether its members are known.
    pub complete: bool,
    /// How many bytes it takes.
    pub size: u64,
    /// Its alignment.
    pub align: u64,
    /// Where.
    pub span: Span,
}

/// A member.
#[derive(Debug)]
pub struct Field {
    /// Its name.
    pub name: Rc<str>,
    /// Its type.
    pub ty: Type,
    /// Which byte it starts at.
    pub offset: u64,
    /// How many bits it has, if it is a bit-field.
    pub bits: Option<u32>,
    /// Where.
    pub span: Span,
}

/// A type with the qualifiers that matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// What it is.
    pub kind: TypeKind,
    /// Whether it is `_Atomic`.
    pub atomic: bool,
    /// Whether it is `volatile`.
    pub volatile: bool,
}

/// What a type is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeKind {
    /// `void`.
    Void,
    /// An integer; enumerations are `int` or `unsigned`, as gcc has them.
    Integer(Arithmetic),
    /// A floating number of so many bytes: may be declared and passed on, but not computed with.
    Floating(u64),
    /// A pointer.
    Pointer(Rc<Type>),
    /// An array with its length; a flexible array at the end of a structure has length 0.
    Array(Rc<Type>, u64),
    /// A structure or union.
    Record(RecordId),
    /// A function.
    Function(Rc<FunctionType>),
}

/// The type of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionType {
    /// What it returns.
    pub result: Type,
    /// Its parameters; `None` if nothing is said about them.
    pub parameters: Option<Vec<Type>>,
    /// Whether further arguments may follow.
    pub variadic: bool,
}

/// A variable.
#[derive(Debug)]
pub struct Variable {
    /// Its name; that of a `static` local is `function.name`.
    pub name: Rc<str>,
    /// Its type, complete.
    pub ty: Type,
    /// Whether each thread has its own.
    pub thread_local: bool,
    /// How it starts; a global without any starts with zeros.
    pub initial: Option<Initial>,
    /// Where it is declared.
    pub span: Span,
}

/// How a variable starts: values of its parts, in the order in which they are written. All other parts are zero.
#[derive(Debug)]
pub struct Initial {
    /// The parts: the way from the variable to the part, and its value, converted to the part's type.
    pub parts: Vec<(Vec<Step>, Expr)>,
    /// Whether there are braces, or a string, so that parts that are not mentioned are zero. Otherwise there is one part, which is all of it.
    pub whole: bool,
}

/// One step from an object to a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// The member with this number.
    Field(u32),
    /// The element with this number.
    Element(u64),
}

/// A function with a body.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: Rc<str>,
    /// Its type.
    pub ty: Rc<FunctionType>,
    /// Its parameters, which are the first of its locals; those of `main` only if it looks at them.
    pub parameters: Vec<LocalId>,
    /// All local variables, of all blocks.
    pub locals: Vec<Local>,
    /// Its labels.
    pub labels: Vec<Label>,
    /// Its body.
    pub body: Block,
    /// Its name in the text.
    pub span: Span,
}

/// A local variable or parameter.
#[derive(Debug)]
pub struct Local {
    /// Its name.
    pub name: Rc<str>,
    /// Its type, complete; arrays and functions as parameters have become pointers.
    pub ty: Type,
    /// Whether its address is taken anywhere, other than to reach a member or element of it at once.
    pub address_taken: bool,
    /// Where it is declared.
    pub span: Span,
}

/// A label.
#[derive(Debug)]
pub struct Label {
    /// Its name.
    pub name: Rc<str>,
    /// Where it stands.
    pub span: Span,
}

/// `{ ... }`.
#[derive(Debug)]
pub struct Block {
    /// The statements.
    pub statements: Vec<Statement>,
    /// With its braces.
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
    /// Where it stands in the definition of a macro, if a use of one brought all of it.
    pub definition: Option<Rc<Definition>>,
}

/// What a statement is.
#[derive(Debug)]
pub enum StatementKind {
    /// `;`, and declarations of no variable.
    Empty,
    /// An expression for its effects.
    Expression(Expr),
    /// A local variable comes into being (again): its value is not defined, or this one.
    Declare(LocalId, Option<Initial>),
    /// `{ ... }`.
    Block(Block),
    /// `if`, with all its `else if`.
    If(Vec<(Expr, Statement)>, Option<Box<Statement>>),
    /// `while`.
    While(Expr, Box<Statement>),
    /// `do`.
    DoWhile(Box<Statement>, Expr),
    /// `for`: what comes first (declarations or an expression), the condition, the step, the body.
    For(Vec<Statement>, Option<Expr>, Option<Expr>, Box<Statement>),
    /// `switch`: a promoted value, and a body with `case`s of it.
    Switch(Expr, Box<Statement>),
    /// `case low ... high`, of the switch around it.
    Case(i128, i128, Box<Statement>),
    /// `default`.
    Default(Box<Statement>),
    /// A label.
    Label(LabelId, Box<Statement>),
    /// `goto`.
    Goto(LabelId),
    /// `break`.
    Break,
    /// `continue`.
    Continue,
    /// `return`, the value converted to the type of the function.
    Return(Option<Expr>),
    /// Assembly.
    Assembly(Assembly),
}

/// `asm("...")`.
#[derive(Debug)]
pub struct Assembly {
    /// The instructions.
    pub text: String,
    /// Outputs: the constraint and the place.
    pub outputs: Vec<(String, Place)>,
    /// Inputs: the constraint and the value; of an input in memory its address.
    pub inputs: Vec<(String, Expr)>,
}

impl Assembly {
    /// Assembly whose operands are not typed yet.
    pub fn new(parsed: &ParsedAssembly, outputs: Vec<(String, Place)>, inputs: Vec<(String, Expr)>) -> Self {
        Assembly { text: parsed.text.clone(), outputs, inputs }
    }
}

/// An expression that has a value (or none, if its type is `void`).
#[derive(Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// The type of its value, without qualifiers.
    pub ty: Type,
    /// Where.
    pub span: Span,
    /// Which use of a macro brought its first token.
    pub expansion: ExpansionId,
}

/// What an expression is.
#[derive(Debug)]
pub enum ExprKind {
    /// A number; of pointer type: that number made a pointer (0 is null).
    Constant(i128),
    /// The value of a place: a number, a pointer, or a whole structure.
    Load(Box<Place>),
    /// `&place`, and an array where a pointer is wanted: then the place is its first element.
    Address(Box<Place>),
    /// A function where a pointer is wanted.
    Function(FunctionId),
    /// A function without a body where a pointer is wanted, by name.
    Unknown(Rc<str>),
    /// `-` or `~`, on a promoted value.
    Negate(Box<Expr>),
    /// `~` on a promoted value.
    Complement(Box<Expr>),
    /// `!`: 0 or 1.
    Not(Box<Expr>),
    /// An operation on two integers of the type in which it is computed (shifts: each promoted by itself), or a comparison of two integers or two pointers of the same type.
    /// Never `&&` or `||`.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// A pointer moved by so many elements (a value of type `long`); the sign is in the value.
    Move(Box<Expr>, Box<Expr>),
    /// The difference of two pointers, in elements.
    Difference(Box<Expr>, Box<Expr>),
    /// `&&`.
    And(Box<Expr>, Box<Expr>),
    /// `||`.
    Or(Box<Expr>, Box<Expr>),
    /// Another type for the same value: between integers, between pointers, between the two, to `_Bool`, to `void`.
    Convert(Box<Expr>),
    /// `place = value`, the value converted to the type of the place; its value is what was written.
    Assign(Box<Place>, Box<Expr>),
    /// `place op= value`: the place is read, converted to the type of `left`, the operation is computed as in [`ExprKind::Binary`], the result converted to the type of the place and
    /// written. `++` and `--` as well: their value may be the old one.
    Modify {
        /// What is read and written.
        place: Box<Place>,
        /// The operation; of a pointer only `+` (the sign is in the value).
        op: BinaryOp,
        /// The type in which it is computed; for a pointer its own.
        left: Type,
        /// The other operand, converted.
        value: Box<Expr>,
        /// Whether the value of the expression is that before.
        old: bool,
    },
    /// `a ? b : c`, both converted to one type.
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `a ?: c`: the first value, evaluated once, if it is not zero.
    Otherwise(Box<Expr>, Box<Expr>),
    /// `a, b`.
    Comma(Box<Expr>, Box<Expr>),
    /// A call, the arguments converted to the types of the parameters. There may be more arguments than parameters, which are evaluated and nothing else.
    Call(Callee, Vec<Expr>),
    /// `({ ... })`: the value of its last expression, if it has one.
    Statements(Block, Option<Box<Expr>>),
    /// A string, as the address of its first character: a global.
    String(GlobalId),
}

/// What a call calls.
#[derive(Debug)]
pub enum Callee {
    /// A function with a body.
    Function(FunctionId),
    /// A function without a body, by name: of the library, of the compiler, or not known at all. Its arguments have the types that its name asks for, and generic ones
    /// (`atomic_load`) those that their pointer argument asks for.
    Builtin(Rc<str>),
    /// A pointer to a function.
    Pointer(Box<Expr>),
}

/// A place in memory.
#[derive(Debug)]
pub struct Place {
    /// Which.
    pub kind: PlaceKind,
    /// The type of what is there, with its qualifiers.
    pub ty: Type,
    /// Where it is written.
    pub span: Span,
}

/// Which place.
#[derive(Debug)]
pub enum PlaceKind {
    /// A local variable or parameter.
    Local(LocalId),
    /// A variable with static storage.
    Global(GlobalId),
    /// Where a pointer points.
    Pointed(Box<Expr>),
    /// A member of a structure or union.
    Field(Box<Place>, u32),
    /// An element of an array that is a place itself; the index has type `long`.
    Element(Box<Place>, Box<Expr>),
    /// `(type){ ... }`: a variable of its own, a local of the function (a global outside), with its initial value, which it gets each time.
    Compound(LocalId, Box<Initial>),
    /// A structure that is a value, as that of a call or an assignment, of which a member is wanted.
    Value(Box<Expr>),
}
