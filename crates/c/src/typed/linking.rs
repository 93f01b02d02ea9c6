//! Several source files of one program (C11 5.1.1.1): each has its own names at file scope, and names with external linkage mean the same functions and
//! variables in all of them. What a model header declares is shared as well, even if it is `static` there.
//!
//! A function in a header that several files include is one function. Macros, types and static names of a file may give it a body of its own there, and
//! C leaves open which of the bodies a call executes. So calls of such a function are refused.

use std::rc::Rc;

use fencewright_program::Span;
use rustc_hash::FxHashMap;

use super::names::Entity;
use super::records::Layout;
use super::tree::{Field, FunctionId, FunctionType, Type};
use super::types::{compatible, equally_qualified};
use super::{Typer, Typing};
use crate::arithmetic::Arithmetic;
use crate::ast::{self, FunctionText, RecordId};
use crate::error::Error;
use crate::preprocess::Origin;
use crate::token::{Kind, Symbol};

/// Functions with a body, by name.
pub(super) type Bodies<'a> = FxHashMap<Symbol, (FunctionId, &'a ast::Function)>;

/// The functions and variables that source files share, and the functions that belong to a single file.
#[derive(Default)]
pub(super) struct Linking<'a> {
    /// The number of the source file that is analysed.
    pub file: usize,
    /// The functions that all files can call.
    pub external: Bodies<'a>,
    /// The functions that only one file can call, by its number.
    pub internal: Vec<Bodies<'a>>,
    /// The variables that earlier files share, by their numbers in `Typer::objects`.
    objects: FxHashMap<Symbol, usize>,
    /// The position of the last declaration of each function.
    pub declared: FxHashMap<Symbol, Span>,
    /// The definitions of external functions that are analysed.
    analysed: FxHashMap<FunctionId, Definition<'a>>,
}

/// A definition of an external function, with everything by which it may differ from a definition in another source file.
struct Definition<'a> {
    name: Span,
    text: &'a FunctionText,
    ty: Rc<FunctionType>,
    /// The meaning of each token.
    meanings: Vec<Meaning>,
}

/// The meaning of a token at file scope.
#[derive(PartialEq)]
enum Meaning {
    /// The same in all source files.
    Shared,
    Number(i128, Arithmetic),
    /// A variable or function of the source file with this number, which only this file can access.
    Internal(usize),
    /// A type, the tag of an enumeration, or both; `None` if there is an error.
    Types(Vec<Option<Type>>),
}

impl<'a> Typer<'a> {
    /// The items of each source file.
    pub(super) fn source_files(&self) -> Vec<&'a [ast::Item]> {
        let unit = self.unit;
        let mut start = 0;
        let items = |&end: &usize| &unit.items[std::mem::replace(&mut start, end)..end];
        unit.ends.iter().map(items).collect()
    }

    /// Begins the analysis of a source file.
    pub(super) fn begin_file(&mut self, number: usize) {
        let scope = std::mem::take(&mut self.scopes[0]);
        for (symbol, entity) in scope {
            if let Entity::Object(object) = entity
                && !self.objects[object].internal
            {
                self.linking.objects.insert(symbol, object);
            }
        }
        if let Some(before) = number.checked_sub(1).and_then(|before| self.linking.internal.get(before)) {
            self.declared.retain(|symbol, _| !before.contains_key(symbol));
        }
        self.linking.file = number;
        self.bodies = self.linking.external.clone();
        if let Some(own) = self.linking.internal.get(number) {
            self.bodies.extend(own.iter().map(|(symbol, body)| (*symbol, *body)));
        }
    }

    /// Whether a declaration at this position has internal linkage. `fixed`: it is `static`.
    pub(super) fn is_internal(&self, fixed: bool, at: Span) -> bool {
        fixed && self.origin(at) != Origin::Model
    }

    /// The variable that earlier source files call by this name.
    pub(super) fn linked_object(&self, name: Symbol) -> Option<usize> {
        self.linking.objects.get(&name).copied()
    }

    /// Checks that no other source file defines this variable; returns whether it is one of a model header that is defined already.
    pub(super) fn define_once(&mut self, object: usize, at: Span) -> Typing<bool> {
        let known = &self.objects[object];
        if !known.defined || known.file == self.linking.file {
            return Ok(false);
        }
        if self.origin(at) == Origin::Model {
            return Ok(true);
        }
        let (name, other) = (self.spelled(known.symbol), known.span);
        let message = format!("`{name}` is defined in two source files");
        Err(self.both(at, other, &message).help("declare it `extern` in one of them, or make both `static`"))
    }

    /// An error at two places: returns the one at `at` and, in a program of several source files, reports the one at `other`.
    pub(super) fn both(&mut self, at: Span, other: Span, message: &str) -> Error {
        if self.unit.ends.len() > 1 {
            self.errors.push(Error::new(other, format!("{message}: here")).always());
        }
        Error::new(at, message).always()
    }

    /// Stores the definition of an external function, to compare it with those in later source files.
    pub(super) fn remember_definition(&mut self, function: &'a ast::Function) {
        let id = self.bodies.get(&function.name.symbol).map(|(id, _)| *id);
        if let (Some(id), Some(definition)) = (id, self.definition(function)) {
            self.linking.analysed.insert(id, definition);
        }
    }

    fn definition(&mut self, function: &'a ast::Function) -> Option<Definition<'a>> {
        let (text, name) = (function.text.as_ref()?, function.name.span);
        let ty = self.function_type(&function.ty, name).ok()?;
        let mut meanings: Vec<Meaning> = (0..text.tokens.len()).map(|n| self.meaning(text, n)).collect();
        for (n, ty) in &text.types {
            let ty = self.ty(ty, name).ok();
            match &mut meanings[*n] {
                Meaning::Types(types) => types.push(ty),
                other => *other = Meaning::Types(vec![ty]),
            }
        }
        Some(Definition { name, text, ty, meanings })
    }

    /// The meaning of a token at file scope, if it is not the name of a type.
    fn meaning(&self, text: &FunctionText, n: usize) -> Meaning {
        let (kind, symbol, _) = text.tokens[n];
        // Members and tags have names of their own.
        let before = n.checked_sub(1).map(|n| &**self.names.spelling(text.tokens[n].1));
        if kind != Kind::Identifier || matches!(before, Some("." | "->" | "struct" | "union" | "enum")) {
            return Meaning::Shared;
        }
        let file = self.linking.file;
        match self.scopes[0].get(&symbol) {
            Some(Entity::Number(number, ty)) => Meaning::Number(*number, *ty),
            Some(Entity::Object(object)) if self.objects[*object].internal => Meaning::Internal(file),
            Some(Entity::Function) if self.linking.internal[file].contains_key(&symbol) => {
                Meaning::Internal(file)
            }
            _ => Meaning::Shared,
        }
    }

    /// Compares a definition of an external function with the one in an earlier source file, which stands for both. If they differ, calls of the
    /// function are errors.
    pub(super) fn compare_definitions(&mut self, function: &'a ast::Function) {
        let Some((id, _)) = self.bodies.get(&function.name.symbol).copied() else { return };
        let Some(second) = self.definition(function) else { return };
        let Some(first) = self.linking.analysed.get(&id).filter(|first| first.name == second.name) else {
            return;
        };
        let Some((at, other)) = difference(first, &second) else { return };
        let message =
            format!("`{}` has different bodies in two source files", self.spelled(function.name.symbol));
        let error = |(n, definition): (usize, &Definition<'_>)| {
            let (_, symbol, span) = definition.text.tokens[n];
            Error::new(span, format!("{message}: `{}` here", self.names.spelling(symbol)))
        };
        let help = "make it `static`, or give both files the same macros and types";
        let errors = [error((at, first)).help(help), error((other, &second))];
        if let Some(function) = self.functions[id.index()].as_mut() {
            function.body.statements.clear();
            function.errors.extend(errors);
        }
    }

    /// Compares structures that several source files define.
    pub(super) fn compare_records(&mut self) {
        for &(first, again) in &self.unit.again {
            let laid_out = |id: RecordId| matches!(self.layouts[id.0 as usize], Layout::Done(..));
            if let Layout::Failed(error) = &self.layouts[again.0 as usize] {
                self.errors.push(error.clone());
            }
            if !laid_out(first) || !laid_out(again) {
                continue;
            }
            let (a, b) = (&self.records[first.0 as usize], &self.records[again.0 as usize]);
            let same = |a: &Field, b: &Field| {
                a.name == b.name
                    && a.offset == b.offset
                    && equally_qualified(&a.ty, &b.ty)
                    && compatible(&a.ty, &b.ty)
            };
            let same_fields =
                a.fields.len() == b.fields.len() && a.fields.iter().zip(&b.fields).all(|(a, b)| same(a, b));
            if same_fields && (a.size, a.align) == (b.size, b.align) {
                continue;
            }
            let message = format!("`{}` has different members in two source files", a.name);
            let (at, other) = (b.span, a.span);
            let error = self.both(at, other, &message).help("give one of them another name");
            self.errors.push(error);
        }
    }
}

/// The index of the first token in which two definitions differ, in each of them.
fn difference(first: &Definition<'_>, second: &Definition<'_>) -> Option<(usize, usize)> {
    let same = |n: usize| {
        let ((kind, symbol, _), (other_kind, other, _)) = (first.text.tokens[n], second.text.tokens[n]);
        (kind, symbol) == (other_kind, other) && first.meanings[n] == second.meanings[n]
    };
    let lengths = (first.text.tokens.len(), second.text.tokens.len());
    let found = (0..lengths.0.min(lengths.1)).find(|n| !same(*n));
    match found {
        Some(n) => Some((n, n)),
        None if lengths.0 != lengths.1 => Some((lengths.0 - 1, lengths.1 - 1)),
        None => (first.ty != second.ty).then_some((0, 0)),
    }
}
