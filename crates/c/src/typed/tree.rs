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

/// A whole program.
#[derive(Debug, Default)]
pub struct Unit {
    /// Structures and unions, with the parser's numbers.
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

    /// The errors of the functions that calls from this one may reach, in the order of the text. A name of a function counts as a call.
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
    /// Its tag, the name of a `typedef` for it, or a generated name.
    pub name: Rc<str>,
    /// Whether it is a union.
    pub union: bool,
    /// Its members in order; an anonymous structure is a member with a generated name.
    pub fields: Vec<Field>,
    /// Whether the type is complete.
    pub complete: bool,
    /// The size in bytes.
    pub size: u64,
    /// The alignment in bytes.
    pub align: u64,
    /// The position.
    pub span: Span,
}

/// A member.
#[derive(Debug)]
pub struct Field {
    /// The name of the member; a generated one for an anonymous structure or union.
    pub name: Rc<str>,
    /// Its type.
    pub ty: Type,
    /// The offset in bytes.
    pub offset: u64,
    /// The width of a bit-field; `None` for other members.
    pub bits: Option<u32>,
    /// The position.
    pub span: Span,
}

/// A type with the qualifiers that matter for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// The type itself.
    pub kind: TypeKind,
    /// Whether it is `_Atomic`.
    pub atomic: bool,
    /// Whether it is `volatile`.
    pub volatile: bool,
}

/// The kinds of types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeKind {
    /// `void`.
    Void,
    /// An integer; enumerations are `int` or `unsigned`, as in gcc.
    Integer(Arithmetic),
    /// A floating-point type of this size in bytes: can be declared and passed on, but not computed with.
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
    /// The return type.
    pub result: Type,
    /// The parameter types; `None` for a declaration without a prototype.
    pub parameters: Option<Vec<Type>>,
    /// Whether further arguments may follow.
    pub variadic: bool,
}

/// A global variable, a `static` local variable, a string, or a thread-local variable.
#[derive(Debug)]
pub struct Variable {
    /// The name; that of a `static` local is `function.name`.
    pub name: Rc<str>,
    /// Its type, complete.
    pub ty: Type,
    /// Whether it is thread-local.
    pub thread_local: bool,
    /// Whether it is a string literal.
    pub literal: bool,
    /// The initial value, if any; a static variable without an initial value is zero.
    pub initial: Option<Initial>,
    /// The reason why the program cannot use the variable: it is defined nowhere, or its definition has an error.
    pub error: Option<crate::Error>,
    /// The position of the declaration.
    pub span: Span,
}

/// The initial value of a variable: values of its parts, in the order in which they are written. All other parts are zero.
#[derive(Debug)]
pub struct Initial {
    /// The parts: the path from the variable to the part, and its value, converted to the part's type.
    pub parts: Vec<(Vec<Step>, Expr)>,
    /// Whether the initialiser has braces or is a string, so that all other parts are zero. Otherwise there is a single part, which is the whole
    /// variable.
    pub whole: bool,
}

/// One step of a path from an object to a part of it.
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
    /// Its parameters, which are the first of its locals; empty for a `main` that does not use them.
    pub parameters: Vec<LocalId>,
    /// All local variables, of all nested blocks.
    pub locals: Vec<Local>,
    /// The labels; a `LabelId` is an index into this list.
    pub labels: Vec<Label>,
    /// Its body; empty if there are `errors`.
    pub body: Block,
    /// Errors in its body, which are errors of the program if an execution may call the function.
    pub errors: Vec<crate::Error>,
    /// The functions that its body names, and that have a body themselves.
    pub mentions: Vec<FunctionId>,
    /// The position of its name.
    pub span: Span,
}

/// A local variable or parameter.
#[derive(Debug)]
pub struct Local {
    /// Its name.
    pub name: Rc<str>,
    /// The complete type; parameters that are arrays or functions have become pointers.
    pub ty: Type,
    /// Whether its address is taken, other than to immediately access a member or element.
    pub address_taken: bool,
    /// The position of the declaration.
    pub span: Span,
}

/// A label of a function, by its name.
#[derive(Debug)]
pub struct Label {
    /// Its name.
    pub name: Rc<str>,
    /// The position.
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

/// A statement.
#[derive(Debug)]
pub struct Statement {
    /// The statement itself.
    pub kind: StatementKind,
    /// The position.
    pub span: Span,
    /// The macro expansion that produced its first token.
    pub expansion: ExpansionId,
    /// Its position in the definition of a macro, if a single expansion produced all of it.
    pub definition: Option<Rc<Definition>>,
}

/// The kinds of statements.
#[derive(Debug)]
pub enum StatementKind {
    /// `;`, and declarations of no variable.
    Empty,
    /// An expression statement.
    Expression(Expr),
    /// A local variable starts its lifetime (again): with an indeterminate value, or with this initial value.
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
    /// `case low ... high`, of the enclosing `switch`.
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
    /// Assembly.
    Assembly(Assembly),
}

/// `asm("...")`.
#[derive(Debug)]
pub struct Assembly {
    /// The instructions.
    pub text: String,
    /// Whether it is `asm goto`.
    pub jumps: bool,
    /// Whether it is `volatile`, as it also is without outputs. Otherwise a compiler may remove it if its outputs are not used.
    pub volatile: bool,
    /// Outputs: the constraint and the place.
    pub outputs: Vec<(Constraint, Place)>,
    /// Inputs: the constraint and the operand.
    pub inputs: Vec<(Constraint, AssemblyInput)>,
    /// What else it changes: `memory`, `cc`, and registers.
    pub clobbers: Vec<String>,
}

/// An input of assembly.
#[derive(Debug)]
pub enum AssemblyInput {
    /// A value.
    Value(Expr),
    /// An object in memory.
    Memory(Place),
}

/// An expression with a value (none if its type is `void`).
#[derive(Debug)]
pub struct Expr {
    /// The expression itself.
    pub kind: ExprKind,
    /// The type of its value, without qualifiers.
    pub ty: Type,
    /// The position.
    pub span: Span,
    /// The macro expansion that produced its first token.
    pub expansion: ExpansionId,
}

/// The kinds of expressions.
#[derive(Debug)]
pub enum ExprKind {
    /// A number; with a pointer type, that number converted to a pointer (0 is null).
    Constant(i128),
    /// Reads a place: a number, a pointer, or a whole structure.
    Load(Box<Place>),
    /// `&place`; also an array that decays to a pointer, where the place is its first element.
    Address(Box<Place>),
    /// A function that decays to a pointer.
    Function(FunctionId),
    /// A function without a body that decays to a pointer, by name.
    Unknown(Rc<str>),
    /// `-` on a promoted value.
    Negate(Box<Expr>),
    /// `~` on a promoted value.
    Complement(Box<Expr>),
    /// `!`: 0 or 1.
    Not(Box<Expr>),
    /// An operation on two integers of the type in which it is computed (shifts: each operand promoted separately), or a comparison of two integers
    /// or two pointers of the same type. Never `&&` or `||`.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// A pointer moved by a number of elements (a value of type `long`, possibly negative).
    Move(Box<Expr>, Box<Expr>),
    /// The difference of two pointers, in elements.
    Difference(Box<Expr>, Box<Expr>),
    /// `&&`.
    And(Box<Expr>, Box<Expr>),
    /// `||`.
    Or(Box<Expr>, Box<Expr>),
    /// A conversion of the value to the type of the expression: between integers, between pointers, between the two, to `_Bool`, to `void`.
    Convert(Box<Expr>),
    /// `place = value`, with the value converted to the type of the place; the result is the written value.
    Assign(Box<Place>, Box<Expr>),
    /// `place op= value`: the place is read and converted to the type `left`, the operation is computed as in [`ExprKind::Binary`], and the result is
    /// converted to the type of the place and written. Also `++` and `--`, whose result may be the old value.
    Modify {
        /// The place that is read and written.
        place: Box<Place>,
        /// The operation; for a pointer only `+` (the value may be negative).
        op: BinaryOp,
        /// The type of the computation; for a pointer its own type.
        left: Type,
        /// The right operand, converted.
        value: Box<Expr>,
        /// Whether the result of the expression is the old value.
        old: bool,
    },
    /// `a ? b : c`, with both alternatives converted to one type.
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `a ?: c`: the first value, evaluated once, if it is not zero, else the second.
    Otherwise(Box<Expr>, Box<Expr>),
    /// `a, b`.
    Comma(Box<Expr>, Box<Expr>),
    /// A call, with the arguments converted to the types of the parameters. Additional arguments are evaluated and ignored.
    Call(Callee, Vec<Expr>),
    /// `({ ... })`: the value of its last expression, if any.
    Statements(Block, Option<Box<Expr>>),
    /// A string, as the address of its first character in a static variable.
    String(GlobalId),
}

/// The target of a call.
#[derive(Debug)]
pub enum Callee {
    /// A function with a body.
    Function(FunctionId),
    /// A function without a body, by name: of the library, of the compiler, or unknown. Its arguments have the types that its name requires; those of
    /// generic functions (`atomic_load`) depend on the pointer argument.
    Builtin(Rc<str>),
    /// A pointer to a function.
    Pointer(Box<Expr>),
}

/// A place in memory.
#[derive(Debug)]
pub struct Place {
    /// The place itself.
    pub kind: PlaceKind,
    /// The type of the object there, with its qualifiers.
    pub ty: Type,
    /// The position of the expression.
    pub span: Span,
}

/// The kinds of places: how a place is reached.
#[derive(Debug)]
pub enum PlaceKind {
    /// A local variable or parameter.
    Local(LocalId),
    /// A variable with static storage.
    Global(GlobalId),
    /// The target of a pointer.
    Pointed(Box<Expr>),
    /// A member of a structure or union.
    Field(Box<Place>, u32),
    /// An element of an array that is itself a place; the index has type `long`.
    Element(Box<Place>, Box<Expr>),
    /// `(type){ ... }`: an unnamed local variable of the function (at file scope: a static variable), initialised at each evaluation.
    Compound(LocalId, Box<Initial>),
    /// A structure value whose member is accessed, such as the result of a call or an assignment.
    Value(Box<Expr>),
}
