//! Typed trees: programs with names, types and constants resolved.
//!
//! Values ([`Expr`]) and places ([`Place`]) are distinct, and every implicit conversion is an explicit expression, so that passes over the tree need
//! not implement C's rules for ranks and promotions. Sizes are those of x86-64 under Linux.

use std::rc::Rc;

use fencewright_program::{Span, id};

use crate::arithmetic::Arithmetic;
use crate::assembly::Constraint;
use crate::ast::{BinaryOp, Definition, RecordId};
use crate::token::ExpansionId;

/// A whole program: all source files after semantic analysis.
#[derive(Debug, Default)]
pub struct Unit {
    /// Structures and unions, by the parser's [`RecordId`].
    pub records: Vec<Record>,
    /// Static variables: globals, `static` locals, strings, and thread-local variables.
    pub globals: Vec<Variable>,
    /// Functions with a body.
    pub functions: Vec<Function>,
    /// The warnings of semantic analysis.
    pub warnings: Vec<crate::Error>,
}

impl Unit {
    /// All errors of functions and variables.
    pub fn errors(&self) -> impl Iterator<Item = &crate::Error> {
        let functions = self.functions.iter().flat_map(|function| &function.errors);
        functions.chain(self.globals.iter().filter_map(|global| global.error.as_ref()))
    }

    /// The errors of all functions that may be reached from this one, in the order of the text. Every mention of a function counts as a call.
    pub fn errors_from(&self, function: FunctionId) -> Vec<crate::Error> {
        let mut reached = vec![false; self.functions.len()];
        let mut next = vec![function];
        while let Some(function) = next.pop() {
            if !std::mem::replace(&mut reached[function.index()], true) {
                next.extend(&self.functions[function.index()].mentions);
            }
        }
        let functions = self.functions.iter().zip(reached).filter(|(_, reached)| *reached);
        functions.flat_map(|(function, _)| function.errors.iter().cloned()).collect()
    }
}

id!(
    /// A static variable, by its number in [`Unit::globals`].
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
    /// The tag, the name of a `typedef` for the type, or a generated name.
    pub name: Rc<str>,
    /// Whether this is a `union`, not a `struct`.
    pub union: bool,
    /// The members in order. An anonymous structure or union is one member with a generated name.
    pub fields: Vec<Field>,
    /// Whether the members are known, so that `fields`, `size` and `align` are valid.
    pub complete: bool,
    /// The size in bytes, including padding.
    pub size: u64,
    /// The alignment in bytes.
    pub align: u64,
    /// The position where the type is first mentioned.
    pub span: Span,
}

/// A member of a structure or union, with its layout.
#[derive(Debug)]
pub struct Field {
    /// The name of the member; a generated one for an anonymous structure or union.
    pub name: Rc<str>,
    /// The type of the member.
    pub ty: Type,
    /// The offset from the start of the structure, in bytes; for a bit-field that of the byte in which it starts.
    pub offset: u64,
    /// The width of a bit-field in bits; `None` for other members.
    pub bits: Option<u32>,
    /// The position of the member's name; for an anonymous structure or union, of the whole member.
    pub span: Span,
}

/// A type with the qualifiers that affect the translation; `const` does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// The type without qualifiers.
    pub kind: TypeKind,
    /// Whether the type is `_Atomic`.
    pub atomic: bool,
    /// Whether the type is `volatile`.
    pub volatile: bool,
}

/// The kinds of types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeKind {
    /// `void`.
    Void,
    /// An integer; enumerations are `unsigned` or `int` or, if their values need it, a 64-bit type, as in gcc.
    Integer(Arithmetic),
    /// A floating-point type of this size in bytes. Values can be copied, but arithmetic on them is an error.
    Floating(u64),
    /// A pointer to the given type.
    Pointer(Rc<Type>),
    /// An array with its length; a flexible array at the end of a structure has length 0.
    Array(Rc<Type>, u64),
    /// A structure or union.
    Record(RecordId),
    /// The type of a function, not of a pointer to it.
    Function(Rc<FunctionType>),
}

/// The type of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionType {
    /// The return type.
    pub result: Type,
    /// The parameter types; `None` for a declaration without a prototype.
    pub parameters: Option<Vec<Type>>,
    /// Whether further arguments may follow.
    pub variadic: bool,
}

/// A variable with static or thread storage duration: a global, a `static` local, a string, or a thread-local variable.
#[derive(Debug)]
pub struct Variable {
    /// The name of the variable; `function.name` for a `static` local.
    pub name: Rc<str>,
    /// The type, in which array lengths are complete.
    pub ty: Type,
    /// Whether each thread has a copy of the variable.
    pub thread_local: bool,
    /// Whether the variable is a string literal.
    pub literal: bool,
    /// The initial value; `None` means zero.
    pub initial: Option<Initial>,
    /// The error to report if the program uses the variable: it is defined nowhere, or its definition has an error.
    pub error: Option<crate::Error>,
    /// The position of the declaration.
    pub span: Span,
}

/// The initial value of a variable, given for its initialised parts in the order of the text.
#[derive(Debug)]
pub struct Initial {
    /// The initialised parts: the path from the variable to each part, and the value, converted to the type of the part.
    pub parts: Vec<(Vec<Step>, Expr)>,
    /// Whether all parts that are not listed are zero, because the initialiser has braces or is a string. Otherwise the single listed part is the
    /// whole variable.
    pub whole: bool,
}

/// One step of a path from an object to one of its parts.
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
    /// The name of the function.
    pub name: Rc<str>,
    /// The return type and the parameter types.
    pub ty: Rc<FunctionType>,
    /// The parameters, which are also the first entries of `locals`; empty for a `main` that does not use its parameters.
    pub parameters: Vec<LocalId>,
    /// All local variables, including those of nested blocks and the parameters.
    pub locals: Vec<Local>,
    /// The labels; a [`LabelId`] is an index into this list.
    pub labels: Vec<Label>,
    /// The body; empty if `errors` is not.
    pub body: Block,
    /// The errors in the body, to be reported if an execution may call the function.
    pub errors: Vec<crate::Error>,
    /// The functions with a body that this body names.
    pub mentions: Vec<FunctionId>,
    /// The position of the function's name.
    pub span: Span,
}

/// A local variable or parameter.
#[derive(Debug)]
pub struct Local {
    /// The name in the source, or a generated name.
    pub name: Rc<str>,
    /// The complete type. Parameters of array or function type have been adjusted to pointers.
    pub ty: Type,
    /// Whether the program takes the address of the variable, other than implicitly in `x[i]` and `x.member`.
    pub address_taken: bool,
    /// The position of the declaration.
    pub span: Span,
}

/// A label of a function.
#[derive(Debug)]
pub struct Label {
    /// The name of the label.
    pub name: Rc<str>,
    /// The position of the label's definition.
    pub span: Span,
}

/// `{ ... }`.
#[derive(Debug)]
pub struct Block {
    /// The statements in the order of the text, including declarations.
    pub statements: Vec<Statement>,
    /// The position, including the braces.
    pub span: Span,
}

/// A statement with its position.
#[derive(Debug)]
pub struct Statement {
    /// The kind of statement, with its parts.
    pub kind: StatementKind,
    /// The position from the first to the last token.
    pub span: Span,
    /// The macro expansion that produced the first token.
    pub expansion: ExpansionId,
    /// The position of the statement in the definition of a macro, if a single expansion produced the whole statement and fences can be inserted only
    /// there.
    pub definition: Option<Rc<Definition>>,
}

/// The kinds of statements.
#[derive(Debug)]
pub enum StatementKind {
    /// `;`, or a declaration that declares no variable.
    Empty,
    /// An expression statement.
    Expression(Expr),
    /// The lifetime of a local variable starts, in a loop again for each iteration, with an indeterminate value or with this initial value.
    Declare(LocalId, Option<Initial>),
    /// `{ ... }`.
    Block(Block),
    /// `if`, with all its `else if`s, and the final `else` if any.
    If(Vec<(Expr, Statement)>, Option<Box<Statement>>),
    /// `while`.
    While(Expr, Box<Statement>),
    /// `do`.
    DoWhile(Box<Statement>, Expr),
    /// `for`: the initial statements (declarations or an expression), the condition, the step, the body.
    For(Vec<Statement>, Option<Expr>, Option<Expr>, Box<Statement>),
    /// `switch`: the promoted value, and a body with its `case`s.
    Switch(Expr, Box<Statement>),
    /// `case low ... high` of the innermost enclosing `switch`; `low` equals `high` for `case value`.
    Case(i128, i128, Box<Statement>),
    /// `default`.
    Default(Box<Statement>),
    /// `label: statement`.
    Label(LabelId, Box<Statement>),
    /// `goto`.
    Goto(LabelId),
    /// `break`.
    Break,
    /// `continue`.
    Continue,
    /// `return`, with the value converted to the return type.
    Return(Option<Expr>),
    /// An `asm` statement.
    Assembly(Assembly),
}

/// `asm("...")`.
#[derive(Debug)]
pub struct Assembly {
    /// The instructions, in which operands are referred to by number.
    pub text: String,
    /// Whether the statement is `asm goto`, which is not supported.
    pub jumps: bool,
    /// Whether it is `volatile`. A statement without outputs always is. A compiler may remove any other one if its outputs are not used.
    pub volatile: bool,
    /// Outputs: the constraint and the place that is written.
    pub outputs: Vec<(Constraint, Place)>,
    /// Inputs: the constraint and the value or the place that is read.
    pub inputs: Vec<(Constraint, AssemblyInput)>,
    /// What the instructions may change besides the outputs: `memory`, `cc` (the flags), or registers.
    pub clobbers: Vec<String>,
}

/// An input of assembly.
#[derive(Debug)]
pub enum AssemblyInput {
    /// The value of an expression.
    Value(Expr),
    /// An object in memory.
    Memory(Place),
}

/// An expression with a value; an expression of type `void` has none.
#[derive(Debug)]
pub struct Expr {
    /// The kind of expression, with its operands.
    pub kind: ExprKind,
    /// The type of the value, without qualifiers.
    pub ty: Type,
    /// The position from the first to the last token.
    pub span: Span,
    /// The macro expansion that produced the first token.
    pub expansion: ExpansionId,
}

/// The kinds of expressions.
#[derive(Debug)]
pub enum ExprKind {
    /// An integer constant. With a pointer type, this integer converted to a pointer; 0 is the null pointer.
    Constant(i128),
    /// The value of a place: a number, a pointer, or a whole structure.
    Load(Box<Place>),
    /// `&place`. Also an array that decays to a pointer: then the place is its first element.
    Address(Box<Place>),
    /// A function that decays to a pointer.
    Function(FunctionId),
    /// A function without a body that decays to a pointer, by name.
    Unknown(Rc<str>),
    /// `-` on an operand of promoted type.
    Negate(Box<Expr>),
    /// `~` on an operand of promoted type.
    Complement(Box<Expr>),
    /// `!`: 0 or 1.
    Not(Box<Expr>),
    /// A binary operation other than `&&` and `||`. Both operands are integers converted to the common type (for shifts, each to its own promoted
    /// type) or, for a comparison, two pointers of the same type.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// A pointer plus a number of elements; the number has type `long` and may be negative.
    Move(Box<Expr>, Box<Expr>),
    /// The difference of two pointers, in elements.
    Difference(Box<Expr>, Box<Expr>),
    /// `&&`.
    And(Box<Expr>, Box<Expr>),
    /// `||`.
    Or(Box<Expr>, Box<Expr>),
    /// A conversion to the type of this expression: between integers, between pointers, between an integer and a pointer, to `_Bool`, or to `void`.
    Convert(Box<Expr>),
    /// `place = value`, where the value already has the type of the place; the result is the written value.
    Assign(Box<Place>, Box<Expr>),
    /// `place op= value`, `++` and `--`: the value of the place is converted to the type `left`, the operation is computed as in
    /// [`ExprKind::Binary`], and the result is converted to the type of the place and written.
    Modify {
        /// The place that is read and written.
        place: Box<Place>,
        /// The operation; for a pointer always `+`, with a possibly negative number of elements.
        op: BinaryOp,
        /// The type in which the operation is computed; for a pointer its own type.
        left: Type,
        /// The right operand, already converted.
        value: Box<Expr>,
        /// Whether the expression yields the old value, as `x++` does, instead of the new one.
        old: bool,
    },
    /// `a ? b : c`, with both alternatives converted to one type.
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `a ?: c`: the value of `a`, evaluated once, if it is not zero, otherwise that of `c`.
    Otherwise(Box<Expr>, Box<Expr>),
    /// `a, b`.
    Comma(Box<Expr>, Box<Expr>),
    /// A call, with the arguments converted to the types of the parameters. Additional arguments are evaluated and ignored.
    Call(Callee, Vec<Expr>),
    /// `({ ... })`: the value of its last expression, if any.
    Statements(Block, Option<Box<Expr>>),
    /// A string literal: the address of the first character of this static variable.
    String(GlobalId),
}

/// The target of a call.
#[derive(Debug)]
pub enum Callee {
    /// A function with a body.
    Function(FunctionId),
    /// A function without a body, by name: of the library, of the compiler, or unknown. The arguments have the parameter types of the declaration or
    /// of the table in `builtins`; for generic functions such as `atomic_load` these depend on the type of the pointer argument.
    Builtin(Rc<str>),
    /// The function to which the value of an expression points.
    Pointer(Box<Expr>),
}

/// A place in memory.
#[derive(Debug)]
pub struct Place {
    /// The kind of place, with the places and indices from which it is derived.
    pub kind: PlaceKind,
    /// The type of the object there, with its qualifiers.
    pub ty: Type,
    /// The position of the expression.
    pub span: Span,
}

/// The kinds of places.
#[derive(Debug)]
pub enum PlaceKind {
    /// A local variable or parameter.
    Local(LocalId),
    /// A variable with static storage.
    Global(GlobalId),
    /// The target of a pointer.
    Pointed(Box<Expr>),
    /// The member of this number of a structure or union.
    Field(Box<Place>, u32),
    /// An element of an array that is itself a place; the index has type `long`.
    Element(Box<Place>, Box<Expr>),
    /// `(type){ ... }`: an unnamed local variable, which is initialised at each evaluation. At file scope, compound literals are static variables
    /// instead.
    Compound(LocalId, Box<Initial>),
    /// A structure value whose member is accessed, such as the result of a call or an assignment.
    Value(Box<Expr>),
}
