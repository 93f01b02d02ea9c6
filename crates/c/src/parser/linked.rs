//! Structures and unions in several source files of one program. A tag at file scope means one type in all of them, so that pointers to it can be
//! passed from one file to another. If several files define it, the later definitions are kept as structures of their own, and type analysis
//! compares them with the first one ([`crate::ast::Unit::again`]).

use fencewright_program::Span;
use rustc_hash::FxHashMap;

use super::{MOST_ERRORS, Meaning, Parser, Read, Scope, Tag};
use crate::ast::{FunctionText, Item, RecordId, TypeKind};
use crate::token::{Kind, Symbol, Token};

/// Identifies a structure without a tag: the position of its keyword, and the position in the source text of the macro use that produced the keyword
/// (the same position again if no macro did).
pub(super) type Place = (Span, Span);

/// The structures and unions at file scope of the source files so far.
#[derive(Default)]
pub(super) struct Linked {
    tags: FxHashMap<Symbol, RecordId>,
    /// The structures without a tag: a header defines them in each source file that includes it.
    untagged: FxHashMap<Place, RecordId>,
    /// Number of structures before the current source file.
    before: usize,
    /// Pairs of a definition and a later definition of the same structure in another source file.
    pub again: Vec<(RecordId, RecordId)>,
    /// The structures that an earlier file mentions and the current file has defined, again or for the first time.
    here: Vec<RecordId>,
}

impl Linked {
    /// Begins a source file; `scope` is the file scope of the previous one.
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

    /// The structure without a tag that an earlier file defines at this place. If no file has defined one there, `id`, the number of the structure
    /// that is being defined, is recorded for the place.
    pub fn untagged(&mut self, place: Place, id: RecordId) -> Option<RecordId> {
        let known = *self.untagged.entry(place).or_insert(id);
        ((known.0 as usize) < self.before).then_some(known)
    }

    /// Whether an earlier file has a definition of this structure and the current file has none yet, provided that the structure is defined at all.
    pub fn was_defined_before(&self, id: RecordId) -> bool {
        (id.0 as usize) < self.before && !self.here.contains(&id)
    }

    /// Records that the current file defines a structure that an earlier file mentions.
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
