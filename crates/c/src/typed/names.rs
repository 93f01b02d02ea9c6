//! Scopes (C11 6.2.1): the meaning of names, the variables at file scope, and suggestions for undeclared names.

use fencewright_program::Span;
use rustc_hash::FxHashMap;

use super::tree::{GlobalId, LocalId, Type, Variable};
use super::{Typer, Typing};
use crate::arithmetic::Arithmetic;
use crate::error::Error;
use crate::preprocess::Origin;
use crate::token::Symbol;

/// The meaning of a name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entity {
    /// A local variable or parameter.
    Local(LocalId),
    /// A local variable that is `static` or thread-local.
    Static(GlobalId),
    /// A variable at file scope, by its number in `Typer::objects`.
    Object(usize),
    /// A function, which is looked up by its name.
    Function,
    /// A name whose declaration has an error, by the number of the error in `Typer::failed`.
    Failed(usize),
    /// An enumerator, with its value and type.
    Number(i128, Arithmetic),
}

/// A variable at file scope.
pub(super) struct Object {
    pub symbol: Symbol,
    pub ty: Type,
    /// Whether the variable is an array whose length is not known yet.
    pub open: bool,
    pub thread_local: bool,
    /// Whether it has internal linkage: other source files cannot access it by its name.
    pub internal: bool,
    /// The number of the source file that declares it first or, if one defines it, of that file.
    pub file: usize,
    /// The position of the variable's declaration, preferably of its definition.
    pub span: Span,
    /// Whether the variable is defined: by a declaration without `extern`, or by one with an initial value.
    pub defined: bool,
    /// The variable's number in the typed tree; `None` until the variable is defined or used.
    pub id: Option<GlobalId>,
    /// The position of the variable's first use, if any.
    pub used: Option<Span>,
}

impl Typer<'_> {
    pub(super) fn look_up(&self, name: Symbol) -> Option<Entity> {
        self.scopes.iter().rev().find_map(|scope| scope.get(&name)).copied()
    }

    /// Declares a name in the innermost scope. Returns the previous meaning of the name in that scope, if it had one.
    pub(super) fn declare(&mut self, name: Symbol, entity: Entity) -> Option<Entity> {
        self.scopes.last_mut().expect("there is always a scope").insert(name, entity)
    }

    /// Declares a name; an error if the innermost scope already declares it.
    pub(super) fn declare_new(&mut self, name: Symbol, entity: Entity, at: Span) -> Typing<()> {
        match self.declare(name, entity) {
            None => Ok(()),
            Some(_) => {
                let name = self.spelled(name);
                Err(Error::new(at, format!("`{name}` is declared twice"))
                    .always()
                    .help("give one of them another name"))
            }
        }
    }

    /// Runs `look` inside a new innermost scope.
    pub(super) fn scoped<T>(&mut self, look: impl FnOnce(&mut Self) -> Typing<T>) -> Typing<T> {
        self.scopes.push(FxHashMap::default());
        let found = look(self);
        self.scopes.pop();
        found
    }

    /// The number of a variable at file scope, allocated when it is defined or used.
    pub(super) fn global(&mut self, object: usize) -> GlobalId {
        if let Some(id) = self.objects[object].id {
            return id;
        }
        let name = self.spelled(self.objects[object].symbol);
        let object = &mut self.objects[object];
        let id = GlobalId(self.globals.len() as u32);
        object.id = Some(id);
        let (ty, thread_local, span) = (object.ty.clone(), object.thread_local, object.span);
        self.globals.push(Variable {
            name,
            ty,
            thread_local,
            literal: false,
            initial: None,
            error: None,
            span,
        });
        id
    }

    /// The error of a name whose declaration failed.
    pub(super) fn failed(&self, entity: Option<Entity>) -> Option<Error> {
        match entity {
            Some(Entity::Failed(number)) => self.failed.get(number).cloned(),
            _ => None,
        }
    }

    /// Stores the error of a declaration at file scope, to be reported where the declared name is used. An error that no compiler accepts is reported
    /// at once.
    pub(super) fn postpone(&mut self, name: Symbol, error: Error) {
        if error.always && self.origin(error.span) != Origin::System {
            return self.errors.push(error);
        }
        match self.scopes[0].get(&name) {
            Some(&Entity::Object(object)) => {
                let id = self.global(object);
                self.globals[id.index()].error.get_or_insert(error);
            }
            _ => {
                self.scopes[0].insert(name, Entity::Failed(self.failed.len()));
                self.failed.push(error);
            }
        }
    }

    pub(super) fn undeclared(&self, name: Symbol, at: Span) -> Error {
        let name = self.spelled(name);
        let error = Error::new(at, format!("`{name}` is not declared"));
        // A model header may lack a constant or an internal function of the real header. So an undeclared name that looks like one (capitals, or a
        // leading `_`) is an error only if an execution may reach it.
        let constant = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let error = match name.starts_with('_') || name.chars().all(constant) {
            true => error,
            false => error.always(),
        };
        let header = match &*name {
            "NULL" | "offsetof" => Some("stddef.h"),
            "true" | "false" | "bool" => Some("stdbool.h"),
            "EXIT_SUCCESS" | "EXIT_FAILURE" => Some("stdlib.h"),
            "INT_MAX" | "INT_MIN" | "UINT_MAX" | "LONG_MAX" | "CHAR_BIT" => Some("limits.h"),
            name if name.starts_with("memory_order") || name.starts_with("ATOMIC_") => Some("stdatomic.h"),
            name if name.starts_with("PTHREAD_") => Some("pthread.h"),
            _ => None,
        };
        if let Some(header) = header {
            return error.help(format!("`#include <{header}>` declares it"));
        }
        let known = self.scopes.iter().flat_map(|scope| scope.keys());
        match fencewright_text::nearest(&name, known.map(|&symbol| &**self.names.spelling(symbol))) {
            Some(other) => error.help(format!("did you mean `{other}`?")),
            None => error.help("declare it before it is used"),
        }
    }
}
