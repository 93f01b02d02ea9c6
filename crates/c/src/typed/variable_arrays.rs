//! Local arrays whose length is not a constant (C11 6.7.6.2 p. 4): each becomes a pointer to memory that the function allocates.

use std::rc::Rc;

use super::conversions::convert;
use super::names::Entity;
use super::tree::{Callee, Expr, ExprKind, Initial, Place, PlaceKind, StatementKind, Type, TypeKind};
use super::types::UNSIGNED_LONG;
use super::{Typer, Typing};
use crate::ast;

impl Typer<'_> {
    /// The statements that declare and initialise the local variables of one declarator.
    pub(super) fn declared_locals(
        &mut self,
        declarator: &ast::Declarator,
        storage: ast::Storage,
    ) -> Typing<Vec<StatementKind>> {
        match self.variable_array(declarator, storage)? {
            Some(kinds) => Ok(kinds.into()),
            None => Ok(self.local_declarator(declarator, storage)?.into_iter().collect()),
        }
    }

    /// Declares a local array whose length is not a constant, as two variables: one for its size in bytes, and a pointer to its first element,
    /// initialised by a call of the builtin `__fencewright_array`. `None` for any other declarator.
    fn variable_array(
        &mut self,
        declarator: &ast::Declarator,
        storage: ast::Storage,
    ) -> Typing<Option<[StatementKind; 2]>> {
        let ast::TypeKind::Array(element, Some(length)) = &declarator.ty.kind else { return Ok(None) };
        let (symbol, span) = (declarator.name.symbol, declarator.name.span);
        if storage.external || storage.fixed || storage.thread_local || declarator.initial.is_some() {
            return Ok(None);
        }
        let length = self.value(length)?;
        if length.ty.arithmetic().is_none() || self.evaluated(&length).is_some() {
            return Ok(None);
        }
        let element = self.ty(element, span)?;
        let unit = self.size(&element, span)?;
        let expansion = length.expansion;
        let expression = |kind: ExprKind, ty: Type| Expr { kind, ty, span, expansion };
        let number: Type = TypeKind::Integer(UNSIGNED_LONG).into();
        let unit = expression(ExprKind::Constant(unit.into()), number.clone());
        let length = convert(length, &number);
        let product = ExprKind::Binary(ast::BinaryOp::Multiply, length.into(), unit.into());
        let bytes = expression(product, number.clone());
        let name = self.spelled(symbol);
        let size = self.local(format!("size of {name}").into(), number.clone(), span);
        let pointer: Type = TypeKind::Pointer(Rc::new(element)).into();
        let id = self.local(name, pointer.clone(), span);
        self.declare_new(symbol, Entity::Local(id), span)?;
        self.in_hand().sizes.insert(id, size);
        let place = Place { kind: PlaceKind::Local(size), ty: number.clone(), span };
        let load = expression(ExprKind::Load(place.into()), number);
        let call = ExprKind::Call(Callee::Builtin("__fencewright_array".into()), vec![load]);
        let only = |value: Expr| Initial { parts: vec![(Vec::new(), value)], whole: false };
        Ok(Some([
            StatementKind::Declare(size, Some(only(bytes))),
            StatementKind::Declare(id, Some(only(expression(call, pointer)))),
        ]))
    }
}
