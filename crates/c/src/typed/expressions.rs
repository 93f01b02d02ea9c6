//! Expressions (C11 6.5), except calls and most operators, which have modules of their own. Each expression is resolved to a place, a value, a string
//! or a function ([`Operand`]).

use std::rc::Rc;

use fencewright_program::Span;

use super::constants::folded;
use super::conversions::convert;
use super::names::Entity;
use super::tree::{
    Expr, ExprKind, FunctionId, FunctionType, GlobalId, Initial, LocalId, Place, PlaceKind, Step, Type,
    TypeKind, Variable,
};
use super::types::{CHAR, LONG, UNSIGNED_LONG, compatible};
use super::{Typer, Typing};
use crate::arithmetic::{self, Arithmetic};
use crate::ast::{self, BinaryOp, UnaryOp};
use crate::error::Error;
use crate::token::{ExpansionId, Symbol};

/// The prefix of the functions in model headers that stand for functions without a body where these are used as pointers.
const AS_POINTER: &str = "__fencewright_as_pointer_";

/// A resolved expression, before its context determines whether its value, its address or only its type is used.
pub(super) enum Operand {
    /// A place in memory.
    Place(Place),
    /// A value that is not read from a place, such as the result of an operation.
    Value(Expr),
    /// A string literal, of array type; it decays to a pointer where its value is used.
    String(GlobalId, Type),
    /// A function: its name, its number if it has a body, and its type.
    Function(Rc<str>, Option<FunctionId>, Rc<FunctionType>),
}

impl Typer<'_> {
    pub(super) fn made(&self, kind: ExprKind, ty: impl Into<Type>, at: &ast::Expr) -> Expr {
        folded(Expr { kind, ty: ty.into(), span: at.span, expansion: at.expansion })
    }

    /// The value of an expression; arrays and functions decay to pointers.
    pub(super) fn value(&mut self, expr: &ast::Expr) -> Typing<Expr> {
        let operand = self.operand(expr)?;
        self.loaded(operand, expr.span, expr.expansion)
    }

    pub(super) fn loaded(&mut self, operand: Operand, span: Span, expansion: ExpansionId) -> Typing<Expr> {
        let (kind, ty) = match operand {
            Operand::Value(value) => return Ok(value),
            Operand::String(id, _) => (ExprKind::String(id), Type::from(CHAR).pointer()),
            Operand::Function(_, Some(id), ty) => {
                (ExprKind::Function(id), Type::from(TypeKind::Function(ty)).pointer())
            }
            Operand::Function(name, None, ty) => {
                let replaced = self.replaced_function(&name, &ty, span);
                let kind = match replaced.or_else(|| self.as_pointer(&name)) {
                    Some(id) => ExprKind::Function(id),
                    None => ExprKind::Unknown(name),
                };
                (kind, Type::from(TypeKind::Function(ty)).pointer())
            }
            Operand::Place(place) => match &place.ty.kind {
                TypeKind::Array(element, _) => {
                    let element = (**element).clone();
                    let zero = Expr { kind: ExprKind::Constant(0), ty: LONG.into(), span, expansion };
                    let kind = PlaceKind::Element(place.into(), zero.into());
                    return self.address(Place { kind, ty: element, span }, span, expansion);
                }
                TypeKind::Void => (ExprKind::Load(place.into()), Type::void()),
                TypeKind::Record(id) => {
                    self.complete(*id, span)?;
                    let ty = place.ty.unqualified();
                    (ExprKind::Load(place.into()), ty)
                }
                _ => {
                    let ty = place.ty.unqualified();
                    (ExprKind::Load(place.into()), ty)
                }
            },
        };
        Ok(Expr { kind, ty, span, expansion })
    }

    /// `&place`: a constant if the address is known (as in `&((struct s *)0)->member`), and `p` itself for `&*p`; an error for a bit-field.
    pub(super) fn address(&mut self, place: Place, span: Span, expansion: ExpansionId) -> Typing<Expr> {
        if self.bits(&place).is_some() {
            return Err(Error::new(span, "a bit-field has no address").help("make it a member of its own"));
        }
        let ty = place.ty.clone().pointer();
        if let Some(value) = self.constant_address(&place)? {
            return Ok(Expr { kind: ExprKind::Constant(value), ty, span, expansion });
        }
        if let PlaceKind::Pointed(pointer) = place.kind {
            return Ok(Expr { span, expansion, ..convert(*pointer, &ty) });
        }
        self.mark_address(&place);
        Ok(Expr { kind: ExprKind::Address(place.into()), ty, span, expansion })
    }

    /// Records that the address of the local variable that contains `place` is taken.
    fn mark_address(&mut self, mut place: &Place) {
        loop {
            match &place.kind {
                PlaceKind::Field(inner, _) | PlaceKind::Element(inner, _) => place = inner,
                PlaceKind::Local(id) | PlaceKind::Compound(id, _) => {
                    if let Some(body) = &mut self.body {
                        body.locals[id.index()].address_taken = true;
                    }
                    return;
                }
                PlaceKind::Global(_) | PlaceKind::Pointed(_) | PlaceKind::Value(_) => return,
            }
        }
    }

    /// The type of an expression that is not evaluated, for `sizeof` and `typeof`: arrays do not decay.
    pub(super) fn type_of(&mut self, expr: &ast::Expr) -> Typing<Type> {
        if self.variable_size(expr).is_some() {
            let message = "the type of this array depends on its length, which is not a constant";
            return Err(Error::new(expr.span, message).help("give the array a constant length"));
        }
        Ok(match self.operand(expr)? {
            Operand::Place(place) => place.ty,
            Operand::Value(value) => value.ty,
            Operand::String(_, ty) => ty,
            Operand::Function(_, _, ty) => TypeKind::Function(ty).into(),
        })
    }

    /// The variable that holds the size of the array that an expression names, if the length of that array is not a constant.
    fn variable_size(&self, expr: &ast::Expr) -> Option<LocalId> {
        let (id, _) = self.mentioned(expr)?;
        self.body.as_ref()?.sizes.get(&id).copied()
    }

    /// The place that an expression denotes; an error if it is not an lvalue. Messages use `what` for the expression.
    pub(super) fn place(&mut self, expr: &ast::Expr, what: &str) -> Typing<Place> {
        match self.operand(expr)? {
            Operand::Place(place) => Ok(place),
            _ => Err(Error::new(expr.span, format!("{what} is not an lvalue"))
                .always()
                .help("a variable, a member, an element or the target of a pointer is expected here")),
        }
    }

    /// Resolves an expression, limiting the nesting depth.
    pub(super) fn operand(&mut self, expr: &ast::Expr) -> Typing<Operand> {
        self.nested(expr.span, |typer| typer.any_operand(expr))
    }

    fn any_operand(&mut self, expr: &ast::Expr) -> Typing<Operand> {
        use ast::ExprKind as Kind;
        let made = match &expr.kind {
            Kind::Name(name) => return self.named(*name, expr),
            Kind::Integer(literal) => {
                let ty = arithmetic::constant_type(literal).ok_or_else(|| {
                    Error::new(expr.span, "no integer type can represent this number")
                        .help("add the suffix `u`")
                })?;
                self.made(ExprKind::Constant(literal.value.into()), Arithmetic::Integer(ty), expr)
            }
            Kind::Unsupported(message) => {
                return Err(Error::new(expr.span, message.as_str()).help("write it without that"));
            }
            Kind::Character(value) => self.made(ExprKind::Constant((*value).into()), Arithmetic::INT, expr),
            Kind::String(text) => {
                let id = self.string(text, true, expr.span);
                let ty = self.globals[id.index()].ty.clone();
                return Ok(Operand::String(id, ty));
            }
            Kind::Unary(UnaryOp::Address, inner) => return self.address_of(inner, expr),
            Kind::Unary(UnaryOp::Dereference, inner) => return self.dereferenced(inner, expr),
            Kind::Unary(op, inner) => self.unary(*op, inner, expr)?,
            Kind::Step(step, inner) => self.step(*step, inner, expr)?,
            Kind::Binary(op, a, b) => self.binary(*op, a, b, expr)?,
            Kind::Assign(None, place, value) => self.assignment(place, value, expr)?,
            Kind::Assign(Some(op), place, value) => self.compound_assignment(*op, place, value, expr)?,
            Kind::Conditional(condition, a, b) => self.conditional(condition, a.as_deref(), b, expr)?,
            Kind::Comma(a, b) => {
                let a = self.value(a)?;
                let b = self.value(b)?;
                let ty = b.ty.clone();
                self.made(ExprKind::Comma(a.into(), b.into()), ty, expr)
            }
            Kind::Cast(ty, inner) => self.explicit_cast(ty, inner, expr)?,
            Kind::SizeOf(inner) if let Some(size) = self.variable_size(inner) => {
                let kind = ExprKind::Load(Box::new(Place {
                    kind: PlaceKind::Local(size),
                    ty: TypeKind::Integer(UNSIGNED_LONG).into(),
                    span: expr.span,
                }));
                self.made(kind, UNSIGNED_LONG, expr)
            }
            Kind::SizeOf(_) | Kind::SizeOfType(_) | Kind::AlignOf(_) | Kind::OffsetOf(..) => {
                let number = self.layout_constant(expr)?;
                self.made(ExprKind::Constant(number.into()), UNSIGNED_LONG, expr)
            }
            Kind::TypesCompatible(a, b) => {
                let (a, b) = (self.ty(a, expr.span)?, self.ty(b, expr.span)?);
                let same = compatible(&a, &b);
                self.made(ExprKind::Constant(same.into()), Arithmetic::INT, expr)
            }
            Kind::Call(callee, arguments) => return self.call(callee, arguments, expr),
            Kind::Index(a, b) => return self.indexed(a, b, expr).map(Operand::Place),
            Kind::Member(inner, name) => {
                let record = self.record_of_member(inner)?;
                return self.field(record, name, expr.span).map(Operand::Place);
            }
            Kind::Arrow(inner, name) => {
                let record = self.record_of_arrow(inner)?;
                return self.field(record, name, expr.span).map(Operand::Place);
            }
            Kind::Compound(ty, initial) => {
                return self.compound_literal(ty, initial, expr).map(Operand::Place);
            }
            Kind::Statements(block) => self.statement_expression(block, expr)?,
            Kind::Generic(decides, choices) => return self.generic_selection(decides, choices, expr),
        };
        Ok(Operand::Value(made))
    }

    /// The value of `sizeof`, `_Alignof` or `offsetof`, in bytes.
    fn layout_constant(&mut self, expr: &ast::Expr) -> Typing<u64> {
        use ast::ExprKind as Kind;
        let ty = match &expr.kind {
            Kind::SizeOf(inner) => self.type_of(inner)?,
            Kind::SizeOfType(ty) | Kind::AlignOf(ty) | Kind::OffsetOf(ty, _) => self.ty(ty, expr.span)?,
            _ => unreachable!("only called on constants that depend on the layout of a type"),
        };
        match &expr.kind {
            Kind::AlignOf(_) => self.align(&ty, expr.span),
            Kind::OffsetOf(_, path) => self.offset(&ty, path, expr),
            _ => self.size(&ty, expr.span),
        }
    }

    fn assignment(&mut self, place: &ast::Expr, value: &ast::Expr, expr: &ast::Expr) -> Typing<Expr> {
        let place = self.place(place, "the target of an assignment")?;
        self.writable(&place)?;
        let value = self.value(value)?;
        let value = self.implicit(value, &place.ty, "an assignment to a variable")?;
        let ty = place.ty.unqualified();
        Ok(self.made(ExprKind::Assign(place.into(), value.into()), ty, expr))
    }

    /// A cast. `(void)x` does not count as a use of the variable `x`.
    fn explicit_cast(&mut self, ty: &ast::Type, inner: &ast::Expr, expr: &ast::Expr) -> Typing<Expr> {
        let ty = self.ty(ty, expr.span)?;
        let before = self.mentioned(inner);
        let value = self.value(inner)?;
        if let (true, Some((id, false))) = (ty.is_void(), before) {
            self.in_hand().mentioned.remove(&id);
        }
        let value = self.cast(value, &ty)?;
        Ok(Expr { span: expr.span, expansion: expr.expansion, ..value })
    }

    /// The record on the left of `.`.
    fn record_of_member(&mut self, inner: &ast::Expr) -> Typing<Place> {
        match self.operand(inner)? {
            Operand::Place(place) => Ok(place),
            operand => {
                let value = self.loaded(operand, inner.span, inner.expansion)?;
                Ok(Place { ty: value.ty.clone(), kind: PlaceKind::Value(value.into()), span: inner.span })
            }
        }
    }

    /// The record that the pointer on the left of `->` points to.
    fn record_of_arrow(&mut self, inner: &ast::Expr) -> Typing<Place> {
        match &inner.kind {
            ast::ExprKind::Unary(UnaryOp::Address, place) => self.place(place, "the operand of `&`"),
            _ => {
                let pointer = self.value(inner)?;
                self.pointed(pointer, inner.span)
            }
        }
    }

    /// The local variable that an expression names, if any, and whether the function has used that variable before.
    fn mentioned(&self, expr: &ast::Expr) -> Option<(LocalId, bool)> {
        match (&expr.kind, &self.body) {
            (ast::ExprKind::Name(name), Some(body)) => match self.look_up(*name)? {
                Entity::Local(id) => Some((id, body.mentioned.contains(&id))),
                _ => None,
            },
            _ => None,
        }
    }

    fn named(&mut self, name: Symbol, expr: &ast::Expr) -> Typing<Operand> {
        let (kind, ty) = match self.look_up(name) {
            found @ Some(Entity::Failed(_)) => {
                return Err(self.failed(found).unwrap_or_else(|| self.undeclared(name, expr.span)));
            }
            Some(Entity::Number(value, ty)) => {
                return Ok(Operand::Value(self.made(ExprKind::Constant(value), ty, expr)));
            }
            Some(Entity::Local(id)) => {
                let body = self.in_hand();
                body.mentioned.insert(id);
                let ty = body.locals[id.index()].ty.clone();
                if body.sizes.contains_key(&id) {
                    // The variable stands for an array whose length is not constant: it holds the pointer to which the array decays.
                    let place = Place { kind: PlaceKind::Local(id), ty: ty.clone(), span: expr.span };
                    return Ok(Operand::Value(self.made(ExprKind::Load(place.into()), ty, expr)));
                }
                (PlaceKind::Local(id), ty)
            }
            Some(Entity::Static(id)) => (PlaceKind::Global(id), self.globals[id.index()].ty.clone()),
            Some(Entity::Object(object)) => {
                let id = self.global(object);
                self.objects[object].used.get_or_insert(expr.span);
                (PlaceKind::Global(id), self.objects[object].ty.clone())
            }
            Some(Entity::Function) => {
                let Some((ty, _)) = self.known_function(name)? else {
                    return Err(self.undeclared(name, expr.span));
                };
                let id = self.bodies.get(&name).map(|(id, _)| *id);
                self.mention(id);
                return Ok(Operand::Function(self.spelled(name), id, ty));
            }
            None => {
                let spelled = self.spelled(name);
                let function = self.body.as_ref().map(|body| body.name.clone());
                return match (&*spelled, function) {
                    ("__func__" | "__FUNCTION__" | "__PRETTY_FUNCTION__", Some(function)) => {
                        let id = self.function_name(&function, expr.span);
                        Ok(Operand::String(id, self.globals[id.index()].ty.clone()))
                    }
                    _ => Err(self.undeclared(name, expr.span)),
                };
            }
        };
        Ok(Operand::Place(Place { kind, ty, span: expr.span }))
    }

    /// The function of the model headers to which a pointer to a function without a body points, such as `free`; `None` if the headers have none.
    fn as_pointer(&mut self, name: &str) -> Option<FunctionId> {
        let named = |symbol: &Symbol| self.spelled(*symbol).strip_prefix(AS_POINTER) == Some(name);
        let id = self.bodies.iter().find(|(symbol, _)| named(symbol)).map(|(_, (id, _))| *id);
        self.mention(id);
        id
    }

    /// Records a mention of a function in the body of the current function; see [`Function::mentions`](super::tree::Function::mentions).
    pub(super) fn mention(&mut self, function: Option<FunctionId>) {
        if let (Some(body), Some(function)) = (&mut self.body, function) {
            body.mentions.push(function);
        }
    }

    fn address_of(&mut self, inner: &ast::Expr, expr: &ast::Expr) -> Typing<Operand> {
        match self.operand(inner)? {
            Operand::Place(place) => self.address(place, expr.span, expr.expansion).map(Operand::Value),
            Operand::String(id, ty) => {
                let place = Place { kind: PlaceKind::Global(id), ty, span: inner.span };
                self.address(place, expr.span, expr.expansion).map(Operand::Value)
            }
            function @ Operand::Function(..) => {
                self.loaded(function, expr.span, expr.expansion).map(Operand::Value)
            }
            Operand::Value(_) => {
                Err(Error::new(inner.span, "this value has no address").help("store it in a variable first"))
            }
        }
    }

    fn dereferenced(&mut self, inner: &ast::Expr, expr: &ast::Expr) -> Typing<Operand> {
        use ast::ExprKind as Kind;
        match &inner.kind {
            // `*&x` is `x`, and `*(a + i)` is `a[i]`.
            Kind::Unary(UnaryOp::Address, place) => return self.operand(place),
            Kind::Binary(BinaryOp::Add, a, b) => return self.indexed(a, b, expr).map(Operand::Place),
            _ => {}
        }
        let operand = self.operand(inner)?;
        match operand {
            function @ Operand::Function(..) => Ok(function),
            operand => {
                let pointer = self.loaded(operand, inner.span, inner.expansion)?;
                match pointer.ty.pointee().map(|to| &to.kind) {
                    // Dereferencing a function pointer yields a function, which decays to the pointer again.
                    Some(TypeKind::Function(_)) => Ok(Operand::Value(pointer)),
                    _ => self.pointed(pointer, expr.span).map(Operand::Place),
                }
            }
        }
    }

    /// The place that a pointer points to.
    pub(super) fn pointed(&mut self, pointer: Expr, span: Span) -> Typing<Place> {
        let Some(to) = pointer.ty.pointee().cloned() else {
            return Err(Error::new(pointer.span, format!("`{}` is no pointer", self.said(&pointer.ty)))
                .help("only a pointer can be dereferenced"));
        };
        match pointer.kind {
            ExprKind::Address(place) if place.ty == to => Ok(*place),
            _ => Ok(Place { kind: PlaceKind::Pointed(pointer.into()), ty: to, span }),
        }
    }

    /// `a[b]` or `b[a]`.
    fn indexed(&mut self, a: &ast::Expr, b: &ast::Expr, expr: &ast::Expr) -> Typing<Place> {
        let (first, second) = (self.operand(a)?, self.operand(b)?);
        let is_pointer = |operand: &Operand| match operand {
            Operand::Place(place) => matches!(place.ty.kind, TypeKind::Array(..) | TypeKind::Pointer(_)),
            Operand::Value(value) => value.ty.pointee().is_some(),
            Operand::String(..) => true,
            Operand::Function(..) => false,
        };
        let swapped = !is_pointer(&first) && is_pointer(&second);
        let ((base, base_at), (index, index_at)) =
            if swapped { ((second, b), (first, a)) } else { ((first, a), (second, b)) };
        let index = self.loaded(index, index_at.span, index_at.expansion)?;
        let index = convert(self.promoted(index)?, &LONG.into());
        let array = match base {
            Operand::Place(place) if matches!(place.ty.kind, TypeKind::Array(..)) => place,
            Operand::String(id, ty) => Place { kind: PlaceKind::Global(id), ty, span: base_at.span },
            base => {
                let pointer = self.loaded(base, base_at.span, base_at.expansion)?;
                if pointer.ty.pointee().is_none() {
                    return Err(Error::new(
                        base_at.span,
                        format!("`{}` has no elements", self.said(&pointer.ty)),
                    )
                    .help("only arrays and pointers have elements"));
                }
                let moved = match index.kind {
                    ExprKind::Constant(0) => pointer,
                    _ => {
                        let ty = pointer.ty.clone();
                        self.made(ExprKind::Move(pointer.into(), index.into()), ty, expr)
                    }
                };
                return self.pointed(moved, expr.span);
            }
        };
        let TypeKind::Array(element, _) = &array.ty.kind else {
            return Err(Error::new(base_at.span, "an array is expected here"));
        };
        let ty = self.part_type(element, &array.ty);
        Ok(Place { ty, kind: PlaceKind::Element(array.into(), index.into()), span: expr.span })
    }

    /// The type of a member or element, which is `volatile` if the whole object is.
    fn part_type(&self, part: &Type, whole: &Type) -> Type {
        Type { volatile: part.volatile || whole.volatile, ..part.clone() }
    }

    fn field(&mut self, place: Place, name: &ast::Name, span: Span) -> Typing<Place> {
        let TypeKind::Record(id) = place.ty.kind else {
            let member = self.spelled(name.symbol);
            let error = Error::new(name.span, format!("`{}` has no member `{member}`", self.said(&place.ty)));
            return Err(match place.ty.pointee().map(|to| &to.kind) {
                Some(TypeKind::Record(_)) => error.help(format!("it is a pointer: write `->{member}`")),
                _ => error.help("only structures and unions have members"),
            });
        };
        let path = self.member(id, name)?;
        let mut place = place;
        for &number in path.iter() {
            let TypeKind::Record(id) = place.ty.kind else { break };
            let ty = self.part_type(&self.records[id.0 as usize].fields[number as usize].ty, &place.ty);
            place = Place { kind: PlaceKind::Field(place.into(), number), ty, span };
        }
        Ok(place)
    }

    /// The variable that `__func__` denotes; each function has its own.
    fn function_name(&mut self, function: &str, span: Span) -> GlobalId {
        if let Some(&known) = self.function_names.get(function) {
            return known;
        }
        let id = self.string(function, false, span);
        self.function_names.insert(function.into(), id);
        id
    }

    /// A static variable that holds a string. Equal literals get distinct variables; C leaves open whether they are one object.
    fn string(&mut self, text: &str, literal: bool, span: Span) -> GlobalId {
        let id = GlobalId(self.globals.len() as u32);
        let part = |(n, byte): (usize, u8)| {
            let kind = ExprKind::Constant(i128::from(byte as i8));
            let value = Expr { kind, ty: CHAR.into(), span, expansion: ExpansionId::default() };
            (vec![Step::Element(n as u64)], value)
        };
        let initial = Initial { parts: text.bytes().enumerate().map(part).collect(), whole: true };
        let ty = TypeKind::Array(Rc::new(CHAR.into()), text.len() as u64 + 1).into();
        let name = format!("string.{}", self.literals).into();
        self.literals += 1;
        let (initial, thread_local, error) = (Some(initial), false, None);
        self.globals.push(Variable { name, ty, thread_local, literal, initial, error, span });
        id
    }
}
