//! Types: evaluates array lengths and `typeof` in types of the parser, computes sizes (x86-64 under Linux), and decides compatibility (C11 6.2.7).

use std::rc::Rc;

use fencewright_program::Span;

use super::tree::{FunctionType, Type, TypeKind};
use super::{Typer, Typing};
use crate::arithmetic::Arithmetic;
use crate::ast::{self, Integer, Rank};
use crate::error::Error;

/// Maximum size of an object in bytes.
const LARGEST: u64 = 1 << 40;
/// Maximum number of pointers, arrays and functions in a type. A part that occurs several times counts each time.
const MOST_PARTS: usize = 1_000;

const fn integer(rank: Rank, signed: bool) -> Arithmetic {
    Arithmetic::Integer(Integer { rank, signed })
}

/// `unsigned`.
pub(super) const UNSIGNED: Arithmetic = integer(Rank::Int, false);
/// `long`.
pub(super) const LONG: Arithmetic = integer(Rank::Long, true);
/// `unsigned long`.
pub(super) const UNSIGNED_LONG: Arithmetic = integer(Rank::Long, false);
/// `char`.
pub(super) const CHAR: Arithmetic = integer(Rank::Char, true);

impl From<TypeKind> for Type {
    fn from(kind: TypeKind) -> Self {
        Type { kind, atomic: false, volatile: false }
    }
}

impl From<Arithmetic> for Type {
    fn from(values: Arithmetic) -> Self {
        TypeKind::Integer(values).into()
    }
}

impl Type {
    /// `int`.
    pub fn int() -> Type {
        Arithmetic::INT.into()
    }

    /// `void`.
    pub fn void() -> Type {
        TypeKind::Void.into()
    }

    /// The type of a pointer to this type.
    pub fn pointer(self) -> Type {
        TypeKind::Pointer(Rc::new(self)).into()
    }

    /// The type without its top-level qualifiers, as a value of this type has it.
    pub fn unqualified(&self) -> Type {
        self.kind.clone().into()
    }

    /// The pointee of a pointer type; `None` for other types.
    pub fn pointee(&self) -> Option<&Type> {
        match &self.kind {
            TypeKind::Pointer(to) => Some(to),
            _ => None,
        }
    }

    /// The integer type; `None` for other types.
    pub fn arithmetic(&self) -> Option<Arithmetic> {
        match self.kind {
            TypeKind::Integer(values) => Some(values),
            _ => None,
        }
    }

    pub(super) fn is_void(&self) -> bool {
        self.kind == TypeKind::Void
    }

    /// Whether a value of the type can be used as a condition.
    pub(super) fn is_scalar(&self) -> bool {
        matches!(self.kind, TypeKind::Integer(_) | TypeKind::Pointer(_))
    }
}

/// The size of an integer type in bytes.
fn bytes(values: Arithmetic) -> u64 {
    match values {
        Arithmetic::Bool => 1,
        Arithmetic::Integer(integer) => u64::from(integer.bits() / 8),
    }
}

impl Typer<'_> {
    /// Converts a type of the parser, evaluating array lengths and `typeof` expressions.
    pub(super) fn ty(&mut self, ty: &ast::Type, at: Span) -> Typing<Type> {
        let kind = match &ty.kind {
            ast::TypeKind::Void => TypeKind::Void,
            ast::TypeKind::Bool => TypeKind::Integer(Arithmetic::Bool),
            ast::TypeKind::Integer(integer) => TypeKind::Integer(Arithmetic::Integer(*integer)),
            ast::TypeKind::Enumeration(id) => TypeKind::Integer(self.enumerations[id.0 as usize]),
            ast::TypeKind::Floating(bytes) => TypeKind::Floating(*bytes),
            ast::TypeKind::Unsupported(what) => {
                return Err(Error::new(at, format!("{what} are not supported"))
                    .help("use integers of at most 64 bits"));
            }
            ast::TypeKind::Record(id) => TypeKind::Record(*id),
            ast::TypeKind::Pointer(to) => TypeKind::Pointer(Rc::new(self.ty(to, at)?)),
            ast::TypeKind::Array(element, length) => {
                let element = self.ty(element, at)?;
                let length = match length {
                    None => 0,
                    Some(length) => self.array_length(length)?,
                };
                self.array(element, length, at)?
            }
            ast::TypeKind::Function(function) => TypeKind::Function(self.function_type(function, at)?),
            ast::TypeKind::TypeOf(expr) => {
                let key: *const ast::Expr = Rc::as_ptr(expr);
                let found = match self.types.get(&key) {
                    Some(known) => known.clone(),
                    None => {
                        let found = self.type_of(expr);
                        self.types.insert(key, found.clone());
                        found
                    }
                }?;
                return Ok(Type {
                    atomic: found.atomic || ty.atomic,
                    volatile: found.volatile || ty.volatile,
                    ..found
                });
            }
            ast::TypeKind::Inferred => {
                return Err(Error::new(at, "`__auto_type` needs an initial value")
                    .help("write the type, or give the variable a value"));
            }
        };
        let found = Type { kind, atomic: ty.atomic, volatile: ty.volatile };
        self.few_parts(&found, at)?;
        Ok(found)
    }

    /// An error if a type has more than [`MOST_PARTS`] parts.
    pub(super) fn few_parts(&self, ty: &Type, at: Span) -> Typing<()> {
        match few_parts(ty, &mut { MOST_PARTS }) {
            true => Ok(()),
            false => Err(Error::new(at, "this type is made of too many others").help("use simpler types")),
        }
    }

    pub(super) fn function_type(
        &mut self,
        function: &Rc<ast::FunctionType>,
        at: Span,
    ) -> Typing<Rc<FunctionType>> {
        let key = Rc::as_ptr(function);
        if let Some(known) = self.function_types.get(&key) {
            return Ok(known.clone());
        }
        let result = self.ty(&function.result, at)?;
        if matches!(result.kind, TypeKind::Array(..) | TypeKind::Function(_)) {
            return Err(Error::new(at, "a function cannot return an array or a function")
                .help("return a pointer to it, or a structure that contains it"));
        }
        let parameters = match &function.parameters {
            None => None,
            Some(parameters) => {
                let mut types = Vec::new();
                for parameter in parameters {
                    let at = parameter.name.map_or(at, |name| name.span);
                    let ty = self.ty(&parameter.ty, at)?;
                    if ty.is_void() {
                        return Err(Error::new(at, "a parameter cannot be `void`"));
                    }
                    types.push(ty);
                }
                Some(types)
            }
        };
        let ty =
            Rc::new(FunctionType { result: result.unqualified(), parameters, variadic: function.variadic });
        self.function_types.insert(key, ty.clone());
        Ok(ty)
    }

    /// The value of the length expression of an array, evaluated only once.
    fn array_length(&mut self, expr: &Rc<ast::Expr>) -> Typing<u64> {
        let key: *const ast::Expr = Rc::as_ptr(expr);
        if let Some(known) = self.lengths.get(&key) {
            return known.clone();
        }
        let length = self.new_array_length(expr);
        self.lengths.insert(key, length.clone());
        length
    }

    fn new_array_length(&mut self, expr: &ast::Expr) -> Typing<u64> {
        let value = self.value(expr)?;
        if value.ty.arithmetic().is_none() {
            return Err(Error::new(expr.span, "the length of an array is an integer"));
        }
        let Some(length) = self.evaluated(&value) else {
            return Err(Error::new(
                expr.span,
                "the length of this array is not known before the program runs",
            )
            .help("use a constant (`#define`, `enum`, a literal, or a variable that nothing changes), the largest that is needed"));
        };
        u64::try_from(length).map_err(|_| {
            Error::new(expr.span, format!("the length of this array is {length}"))
                .always()
                .help("a length is not negative")
        })
    }

    fn array(&mut self, element: Type, length: u64, at: Span) -> Typing<TypeKind> {
        if element.is_void() || matches!(element.kind, TypeKind::Function(_)) {
            return Err(Error::new(at, "there are no arrays of this type").help("use an array of pointers"));
        }
        let size = self.size(&element, at)?;
        match size.checked_mul(length) {
            Some(bytes) if bytes <= LARGEST && length <= LARGEST => {
                Ok(TypeKind::Array(Rc::new(element), length))
            }
            _ => Err(too_large(at)),
        }
    }

    /// The array type with its length set to `length`.
    pub(super) fn of_length(&mut self, ty: &Type, length: u64, at: Span) -> Typing<Type> {
        match &ty.kind {
            TypeKind::Array(element, _) => {
                let kind = self.array((**element).clone(), length, at)?;
                Ok(Type { kind, ..*ty })
            }
            _ => Ok(ty.clone()),
        }
    }

    /// The size of a value in bytes; 1 for `void` and functions, as in GNU C.
    pub(super) fn size(&mut self, ty: &Type, at: Span) -> Typing<u64> {
        Ok(match &ty.kind {
            TypeKind::Void | TypeKind::Function(_) => 1,
            TypeKind::Integer(values) => bytes(*values),
            TypeKind::Floating(bytes) => *bytes,
            TypeKind::Pointer(_) => 8,
            // The size of the array was checked when its type was made, so nothing overflows.
            TypeKind::Array(element, length) => self.size(element, at)?.saturating_mul(*length),
            TypeKind::Record(id) => {
                self.complete(*id, at)?;
                match self.records[id.0 as usize].size {
                    // gcc pads atomic types up to the size of a single access.
                    size if ty.atomic && size <= 16 => size.next_power_of_two(),
                    size => size,
                }
            }
        })
    }

    pub(super) fn align(&mut self, ty: &Type, at: Span) -> Typing<u64> {
        match &ty.kind {
            TypeKind::Array(element, _) => self.align(element, at),
            TypeKind::Record(id) => {
                self.complete(*id, at)?;
                let record = &self.records[id.0 as usize];
                match record.size {
                    size if ty.atomic && size <= 16 => Ok(record.align.max(size.next_power_of_two())),
                    _ => Ok(record.align),
                }
            }
            _ => self.size(ty, at),
        }
    }

    /// The type in C syntax, for messages.
    pub(super) fn said(&self, ty: &Type) -> String {
        let mut text = String::new();
        if ty.atomic {
            text.push_str("_Atomic ");
        }
        if ty.volatile {
            text.push_str("volatile ");
        }
        text + &match &ty.kind {
            TypeKind::Void => "void".into(),
            TypeKind::Integer(Arithmetic::Bool) => "_Bool".into(),
            TypeKind::Integer(Arithmetic::Integer(integer)) => {
                let rank = match integer.rank {
                    Rank::Char => "char",
                    Rank::Short => "short",
                    Rank::Int => "int",
                    Rank::Long => "long",
                    Rank::LongLong => "long long",
                };
                format!("{}{rank}", if integer.signed { "" } else { "unsigned " })
            }
            TypeKind::Floating(4) => "float".into(),
            TypeKind::Floating(8) => "double".into(),
            TypeKind::Floating(_) => "long double".into(),
            TypeKind::Pointer(to) => match &to.kind {
                TypeKind::Function(function) => format!("{} (*)(...)", self.said(&function.result)),
                _ => format!("{} *", self.said(to)),
            },
            TypeKind::Array(element, length) => format!("{}[{length}]", self.said(element)),
            TypeKind::Record(id) => {
                let record = &self.records[id.0 as usize];
                format!("{} {}", if record.union { "union" } else { "struct" }, record.name)
            }
            TypeKind::Function(function) => format!("{}(...)", self.said(&function.result)),
        }
    }
}

/// Whether a type has at most `left` parts. A part that occurs several times counts each time, because passes over the tree visit every occurrence.
fn few_parts(ty: &Type, left: &mut usize) -> bool {
    let mut inner = ty;
    loop {
        if *left == 0 {
            return false;
        }
        *left -= 1;
        inner = match &inner.kind {
            TypeKind::Pointer(to) | TypeKind::Array(to, _) => to,
            TypeKind::Function(function) => {
                let parameters = &mut function.parameters.iter().flatten();
                if !parameters.all(|parameter| few_parts(parameter, left)) {
                    return false;
                }
                &function.result
            }
            _ => return true,
        };
    }
}

pub(super) fn too_large(at: Span) -> Error {
    Error::new(at, "this takes more than 2^40 bytes").help("use a smaller array")
}

/// Whether two types are compatible, ignoring their top-level qualifiers.
pub(super) fn compatible(a: &Type, b: &Type) -> bool {
    match (&a.kind, &b.kind) {
        (TypeKind::Pointer(a), TypeKind::Pointer(b)) => a.atomic == b.atomic && compatible(a, b),
        // Length 0 may stand for an omitted length, which is compatible with every length.
        (TypeKind::Array(a, m), TypeKind::Array(b, n)) => {
            (m == n || *m == 0 || *n == 0) && a.atomic == b.atomic && compatible(a, b)
        }
        (TypeKind::Function(a), TypeKind::Function(b)) => {
            let parameters = match (&a.parameters, &b.parameters) {
                (Some(a_parameters), Some(b_parameters)) => {
                    a.variadic == b.variadic
                        && a_parameters.len() == b_parameters.len()
                        && a_parameters.iter().zip(b_parameters).all(|(a, b)| compatible(a, b))
                }
                _ => true,
            };
            parameters && compatible(&a.result, &b.result)
        }
        (a, b) => a == b,
    }
}

/// Whether two types have the same qualifiers that matter for accesses; for arrays, those of their elements.
pub(super) fn equally_qualified(a: &Type, b: &Type) -> bool {
    let inner = match (&a.kind, &b.kind) {
        (TypeKind::Array(a, _), TypeKind::Array(b, _)) => equally_qualified(a, b),
        _ => true,
    };
    inner && (a.atomic, a.volatile) == (b.atomic, b.volatile)
}
