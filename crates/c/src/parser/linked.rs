//! Structures and unions in several source files of one program. A tag at file scope means one type in all of them, so that pointers to it can be
//! passed from one file to another. If several files define it, the later definitions are kept as structures of their own, and type analysis
//! compares them with the first one ([`crate::ast::Unit::again`]).

use fencewright_program::Span;
use rustc_hash::FxHashMap;

use super::{MOST_ERRORS, Meaning, Parser, Read, Scope, Tag};
use crate::ast::{FunctionText, Item, RecordId, TypeKind};
use crate::token::{Kind, Symbol, Token};

/// The position of a structure without a tag: that of its keyword in the text of a file and, if a macro brings it, of the use.
pub(super) type Place = (Span, Span);

/// The structures and unions at file scope of the source files so far.
#[derive(Default)]
pub(super) struct Linked {
    tags: FxHashMap<Symbol, RecordId>,
    /// Those without a tag, which a header defines in each file that includes it.
    untagged: FxHashMap<Place, RecordId>,
    /// Number of structures before the current source file.
    before: usize,
    /// Definitions, with later definitions of the same structure.
    pub again: Vec<(RecordId, RecordId)>,
    /// The numbers of structures that the current file defines again or, though an earlier file mentions them, for the first time.
    here: Vec<RecordId>,
}

impl Linked {
    /// Begins a source file; `scope` is the one of the file before.
    pub fn next(&mut self, scope: Scope, records: usize) {
        for (symbol, tag) in scope.tags {
            if let Tag::Record(id) = tag {
                self.tags.entry(symbol).or_insert(id);
            }
        }
        self.before = records;
        self.here.clear();
    }

    /// The structure that earlier files call by this tag.
    pub fn tagged(&self, tag: Symbol) -> Option<RecordId> {
        self.tags.get(&tag).copied()
    }

    /// The structure without a tag that earlier files define at this place; `id` is the number of the present one, if there is none.
    pub fn untagged(&mut self, place: Place, id: RecordId) -> Option<RecordId> {
        let known = *self.untagged.entry(place).or_insert(id);
        ((known.0 as usize) < self.before).then_some(known)
    }

    /// Whether a structure that is defined was defined by an earlier file, and not yet by this one.
    pub fn was_defined_before(&self, id: RecordId) -> bool {
        (id.0 as usize) < self.before && !self.here.contains(&id)
    }

    /// Records that this file defines a structure of an earlier one.
    pub fn defines(&mut self, id: RecordId) {
        if (id.0 as usize) < self.before {
            self.here.push(id);
        }
    }
}

impl<'a> Parser<'a> {
    /// The text of an external function that was parsed, from the token with index `from` on; `None` if there is only one source file.
    pub(super) fn text_of_function(&self, from: usize) -> Option<FunctionText> {
        if self.text.ends.len() < 2 {
            return None;
        }
        let tokens = &self.tokens[from..self.at];
        let at = |token: &Token| match token.expansion.index() {
            Some(n) if self.text.expansions[n].body.is_none() => self.text.written(token),
            _ => token.span,
        };
        let scope = &self.scopes[0];
        let named = |symbol: Symbol| {
            let ty = match scope.names.get(&symbol) {
                Some(Meaning::Type(ty, _)) => Some(ty.clone()),
                _ => None,
            };
            let tag = match scope.tags.get(&symbol) {
                Some(Tag::Enumeration(id)) => Some(TypeKind::Enumeration(*id).into()),
                _ => None,
            };
            ty.into_iter().chain(tag)
        };
        let names = tokens.iter().enumerate().filter(|(_, token)| token.kind == Kind::Identifier);
        Some(FunctionText {
            tokens: tokens.iter().map(|token| (token.kind, token.symbol, at(token))).collect(),
            types: names.flat_map(|(n, token)| named(token.symbol).map(move |ty| (n, ty))).collect(),
        })
    }

    /// Parses the items of one source file, which sees no names of the ones before it.
    pub(super) fn source(&mut self, tokens: &'a [Token], items: &mut Vec<Item>) -> Read<()> {
        let last = tokens.last().map_or(Span::default(), |last| self.text.written(last));
        (self.tokens, self.at, self.end) = (tokens, 0, last.point(last.end));
        self.linked.next(std::mem::take(&mut self.scopes[0]), self.records.len());
        self.declared_by.clear();
        while self.at < self.tokens.len() && self.errors.len() < MOST_ERRORS {
            let (before, errors) = (self.at, self.errors.len());
            self.go_on()?;
            match self.item() {
                Ok(found) => items.extend(found),
                Err(error) => {
                    self.errors.push(error);
                    self.scopes.truncate(1);
                    self.depth = 0;
                    self.recover(before);
                }
            }
            if self.errors.len() > errors {
                self.forget(before, errors, items);
            }
        }
        Ok(())
    }
}
