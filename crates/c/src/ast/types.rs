//! Types in syntax trees of C: structures and unions with their members and attributes, integers, functions.

use std::rc::Rc;

use fencewright_program::Span;

use super::{Expr, Name};
use crate::token::Symbol;

/// A structure or a union, by its number in [`Unit::records`](super::Unit::records).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId(pub u32);

/// An enumeration, by its number, which is less than [`Unit::enumerations`](super::Unit::enumerations).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EnumerationId(pub u32);

/// A structure or a union, once for all mentions in the text.
#[derive(Debug)]
pub struct Record {
    /// The tag, if any.
    pub tag: Option<Symbol>,
    /// Whether this is a `union`, not a `struct`.
    pub union: bool,
    /// The members; `None` while the type is incomplete.
    pub fields: Option<Vec<Field>>,
    /// The attributes that affect the layout.
    pub attributes: Attributes,
    /// The position where the structure or union is first mentioned.
    pub span: Span,
}

/// Attributes that affect the layout, or what a name stands for.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    /// Whether there is no padding: `__attribute__((packed))`.
    pub packed: bool,
    /// Requested alignments.
    pub aligned: Vec<Rc<Alignment>>,
    /// The type that replaces the written type because of the attribute `mode` or `vector_size`, if any.
    pub mode: Option<Mode>,
    /// Whether the declared name is another name for something else: `alias`, `weakref`.
    pub alias: bool,
}

/// A type given by an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// An integer of this rank, signed or unsigned like the written type.
    Integer(Rank),
    /// A floating-point type of this size in bytes.
    Floating(u64),
    /// An unsupported type, as messages describe it.
    Unsupported(&'static str),
}

/// One alignment requested by `aligned` or `_Alignas`.
#[derive(Debug)]
pub enum Alignment {
    /// This number of bytes.
    Value(Expr),
    /// The alignment of this type: `_Alignas(type)`.
    Type(Type),
    /// `aligned` without a number: the largest alignment of any type on the target, which is 16 bytes.
    Most,
}

/// A member of a structure or union.
#[derive(Debug)]
pub struct Field {
    /// The name; `None` for padding bit-fields and for anonymous structures and unions, whose members count as members of the enclosing type.
    pub name: Option<Name>,
    /// The type of the member.
    pub ty: Type,
    /// The width of a bit-field; `None` for other members.
    pub bits: Option<Expr>,
    /// The attributes that affect the layout.
    pub attributes: Attributes,
    /// The position of the declarator.
    pub span: Span,
}

/// A type with its qualifiers.
#[derive(Clone, Debug)]
pub struct Type {
    /// The type without qualifiers.
    pub kind: TypeKind,
    /// Whether the type is `_Atomic`.
    pub atomic: bool,
    /// Whether the type is `const`.
    pub constant: bool,
    /// Whether the type is `volatile`.
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
    /// A floating-point type of this size in bytes. Objects of this type may be declared, but arithmetic on them is an error.
    Floating(u64),
    /// An unsupported type, as messages describe it. Only a use of the type is an error, not its declaration.
    Unsupported(&'static str),
    /// A structure or union.
    Record(RecordId),
    /// A pointer to the given type.
    Pointer(Rc<Type>),
    /// An array with its length expression; `None` for `[]`.
    Array(Rc<Type>, Option<Rc<Expr>>),
    /// The type of a function, not of a pointer to it.
    Function(Rc<FunctionType>),
    /// `typeof` an expression.
    TypeOf(Rc<Expr>),
    /// `__auto_type`: the type is that of the initial value.
    Inferred,
}

/// An integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Integer {
    /// The conversion rank (C11 6.3.1.1).
    pub rank: Rank,
    /// Whether the type is signed; plain `char` is.
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
    /// The name; `None` in a prototype that omits it.
    pub name: Option<Name>,
    /// The type, in which arrays and functions have become pointers.
    pub ty: Type,
}
