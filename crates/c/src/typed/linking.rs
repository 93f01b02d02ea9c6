//! Several source files of one program (C11 5.1.1.1): each has its own names at file scope, and names with external linkage mean the same functions and
//! variables in all of them. What a model header declares is shared as well, even if it is `static` there.

use fencewright_program::Span;
use rustc_hash::FxHashMap;

use super::names::Entity;
use super::records::Layout;
use super::tree::{Field, FunctionId};
use super::types::{compatible, equally_qualified};
use super::{Typer, Typing};
use crate::ast::{self, RecordId};
use crate::error::Error;
use crate::preprocess::Origin;
use crate::token::Symbol;

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
