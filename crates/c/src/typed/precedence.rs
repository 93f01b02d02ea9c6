//! Functions that are declared or defined repeatedly: in the user's text, in model headers, and in headers of the system.
//!
//! Declarations by the user take precedence over those in model headers, and these over those in headers of the system. So a function of a model
//! header has the type that crate `c-model` expects, whatever the system's headers declare, and a user may define a function that a model header
//! declares.

use std::rc::Rc;

use fencewright_program::Span;
use rustc_hash::FxHashSet;

use super::linking::Bodies;
use super::names::Entity;
use super::tree::{FunctionId, FunctionType, TypeKind};
use super::types::compatible;
use super::{Typer, Typing};
use crate::ast;
use crate::error::Error;
use crate::preprocess::Origin;
use crate::token::Symbol;

impl<'a> Typer<'a> {
    /// Allocates a number for each function that has a body. If it has several, the definition that takes precedence is kept; two definitions of the
    /// same origin are an error.
    pub(super) fn find_bodies(&mut self) -> Typing<()> {
        let of_models = self.declared_by_models();
        for (number, items) in self.source_files().into_iter().enumerate() {
            self.linking.internal.push(Bodies::default());
            for item in items {
                let ast::Item::Function(function) = item else { continue };
                let origin = self.origin(function.name.span);
                if origin != Origin::System || !of_models.contains(&function.name.symbol) {
                    self.find_body(function, number)?;
                }
            }
        }
        Ok(())
    }

    fn find_body(&mut self, function: &'a ast::Function, file: usize) -> Typing<()> {
        let ast::Name { symbol, span, .. } = function.name;
        let origin = self.origin(span);
        let internal = self.is_internal(function.fixed, span);
        let known = match internal {
            true => self.linking.internal[file].get(&symbol),
            false => self.linking.external.get(&symbol),
        };
        let id = match known {
            None => {
                self.functions.push(None);
                FunctionId(self.functions.len() as u32 - 1)
            }
            Some(&(id, before)) => {
                let other = self.origin(before.name.span);
                if self.is_static_elsewhere((function, origin), (before, other)) {
                    let name = self.spelled(symbol);
                    let message =
                        format!("`{name}` is defined by the program, and `static` in a model header");
                    return Err(self.both(span, before.name.span, &message).help("give it another name"));
                }
                // A function in a header that several source files include is one function.
                if other.precedes(origin) || before.name.span == span {
                    return Ok(());
                }
                if !origin.precedes(other) {
                    let message = format!("function `{}` is defined twice", self.spelled(symbol));
                    return Err(self
                        .both(span, before.name.span, &message)
                        .help("give one of them another name, or leave it out"));
                }
                id
            }
        };
        let bodies = match internal {
            true => &mut self.linking.internal[file],
            false => &mut self.linking.external,
        };
        bodies.insert(symbol, (id, function));
        Ok(())
    }

    /// Whether one of two functions is `static` in a model header and the other one is the user's, in a program of several source files: a file that
    /// includes the header may mean its function, and the others the user's.
    fn is_static_elsewhere(&self, one: (&ast::Function, Origin), other: (&ast::Function, Origin)) -> bool {
        let clash = |(model, of): (&ast::Function, Origin), (_, user): (&ast::Function, Origin)| {
            of == Origin::Model && model.fixed && user == Origin::User
        };
        self.unit.ends.len() > 1 && (clash(one, other) || clash(other, one))
    }

    /// The functions that model headers declare.
    fn declared_by_models(&self) -> FxHashSet<Symbol> {
        let declarations = self.unit.items.iter().filter_map(|item| match item {
            ast::Item::Declaration(declaration) => Some(declaration),
            ast::Item::Function(_) => None,
        });
        let declarators = declarations.flat_map(|declaration| &declaration.declarators);
        let of_models = declarators.filter(|declarator| {
            matches!(declarator.ty.kind, ast::TypeKind::Function(_))
                && self.origin(declarator.name.span) == Origin::Model
        });
        of_models.map(|declarator| declarator.name.symbol).collect()
    }

    /// Whether this definition is ignored because another definition of the function takes precedence.
    pub(super) fn is_left_out(&self, function: &ast::Function) -> bool {
        self.bodies.get(&function.name.symbol).is_none_or(|(_, chosen)| !std::ptr::eq(*chosen, function))
    }

    /// Passes over a function whose definition another one replaces. It declares the name all the same.
    pub(super) fn leave_out(&mut self, function: &ast::Function) {
        if self.bodies.contains_key(&function.name.symbol) {
            self.scopes[0].entry(function.name.symbol).or_insert(Entity::Function);
        }
    }

    /// Processes a function declaration without a body.
    pub(super) fn declare_function(&mut self, name: Symbol, ty: Rc<FunctionType>, span: Span) -> Typing<()> {
        let origin = self.origin(span);
        let mut replaced = false;
        if let Some((known, other)) = self.known_function(name)? {
            let same = |a: &Rc<FunctionType>, b: &Rc<FunctionType>| {
                compatible(&TypeKind::Function(a.clone()).into(), &TypeKind::Function(b.clone()).into())
            };
            replaced = origin.precedes(other);
            if !same(&known, &ty) && !replaced && !other.precedes(origin) {
                let message =
                    format!("function `{}` is declared with another type elsewhere", self.spelled(name));
                let body = self.bodies.get(&name).map(|(_, function)| function.name.span);
                let other = body.or_else(|| self.linking.declared.get(&name).copied()).unwrap_or(span);
                return Err(self
                    .both(span, other, &message)
                    .help("the declarations and the definition must agree"));
            }
        }
        if let Some(error) = self.failed(self.scopes[0].get(&name).copied()) {
            return Err(error);
        }
        if !matches!(self.scopes[0].get(&name), None | Some(Entity::Function)) {
            let name = self.spelled(name);
            return Err(Error::new(span, format!("`{name}` was declared as something else"))
                .always()
                .help("give one of them another name"));
        }
        self.linking.declared.insert(name, span);
        self.scopes[0].insert(name, Entity::Function);
        self.declare(name, Entity::Function);
        // If some declarations of a function have a prototype and others have none, a declaration with a prototype is kept.
        let known = self.declared.get(&name);
        let counts = known.is_none_or(|(known, other)| {
            known.parameters.is_none() && !other.precedes(origin) || origin.precedes(*other)
        });
        if replaced || counts {
            self.declared.insert(name, (ty, origin));
        }
        Ok(())
    }

    /// The type of a function that is declared, or has a body anywhere in the text, and the origin of that declaration or definition.
    pub(super) fn known_function(&mut self, name: Symbol) -> Typing<Option<(Rc<FunctionType>, Origin)>> {
        match self.bodies.get(&name) {
            Some(&(_, function)) => {
                let at = function.name.span;
                Ok(Some((self.function_type(&function.ty, at)?, self.origin(at))))
            }
            None => Ok(self.declared.get(&name).cloned()),
        }
    }
}
