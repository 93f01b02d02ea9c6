//! Name resolution: from a position in a text to the declaration of the name there.
//!
//! Names are resolved in the syntax tree of .fw. A program in another language is translated to such a tree; a name in its text is resolved if the
//! tree declares the same name.

use std::collections::HashMap;

use fencewright::lang::ast::{
    Block, Declarator, File, Item, Name, Procedure, Property, Statement, StatementKind, Thread,
};
use fencewright::program::{FileId, Span};

/// The kind of a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `shared x`
    Shared,
    /// `mutex m`
    Mutex,
    /// `const N`, also in a thread.
    Constant,
    /// `var r`, a parameter, or the variable of a `for`.
    Register,
    /// The number of a thread in its family.
    Member,
    /// `l:`
    Label,
    /// `thread p`
    Thread,
    /// `fn f`
    Procedure,
    /// A named property.
    Property,
}

/// The declaration of a name, with the spans that editors need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The kind of entity that the name stands for.
    pub kind: Kind,
    /// The name as it is written, without that of the enclosing thread or procedure.
    pub name: String,
    /// The span of the name.
    pub span: Span,
    /// The span of the whole declaration.
    pub whole: Span,
    /// The thread or procedure that contains the declaration; `None` at the top level.
    pub inside: Option<String>,
}

/// The name at or right before an offset, with the offset of its start.
pub fn word_at(text: &str, offset: usize) -> Option<(usize, &str)> {
    let is_part = |c: char| c == '_' || c.is_alphanumeric();
    let before = text.get(..offset)?;
    let start = before
        .rfind(|c| !is_part(c))
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let end = offset + text[offset..].find(|c| !is_part(c)).unwrap_or(text.len() - offset);
    let word = &text[start..end];
    word.starts_with(|c: char| c == '_' || c.is_alphabetic()).then_some((start, word))
}

/// The declaration of the name at an offset of the main file.
pub fn declaration(file: &File, text: &str, offset: usize) -> Option<Declaration> {
    Names::new(file).declaration(text, offset).cloned()
}

/// The declarations of a file, indexed for many queries.
pub struct Names {
    all: Vec<Declaration>,
    /// For each enclosing thread or procedure and each name, the indices of the declarations in `all`.
    named: HashMap<(Option<String>, String), Vec<usize>>,
    /// The indices of the declarations of threads and procedures.
    outer: Vec<usize>,
}

impl Names {
    /// Indexes the declarations of a file.
    pub fn new(file: &File) -> Self {
        let all = declarations(file);
        let mut named: HashMap<(Option<String>, String), Vec<usize>> = HashMap::new();
        for (n, declared) in all.iter().enumerate() {
            named.entry((declared.inside.clone(), declared.name.clone())).or_default().push(n);
        }
        let is_outer = |n: &usize| matches!(all[*n].kind, Kind::Thread | Kind::Procedure);
        let outer = (0..all.len()).filter(is_outer).collect();
        Names { all, named, outer }
    }

    /// All declarations of the file.
    pub fn all(&self) -> &[Declaration] {
        &self.all
    }

    /// The declaration of the name at an offset of the text.
    pub fn declaration(&self, text: &str, offset: usize) -> Option<&Declaration> {
        let (start, word) = word_at(text, offset)?;
        // In `p.r`, `p[1]@l` or `p.f.r`, the thread or procedure before the name contains the declaration.
        let owner = owner(&text[..start]).or_else(|| {
            let here = Span::new(start, start + word.len());
            let outer = self.outer.iter().rev().map(|n| &self.all[*n]);
            outer.filter(|d| d.whole.covers(here)).map(|d| d.name.clone()).next()
        });
        let named = |inside: Option<String>| {
            let found = self.named.get(&(inside, word.to_owned())).map_or(&[][..], |found| found);
            let found = found.iter().map(|n| &self.all[*n]);
            found.filter(|d| text.get(d.span.range()) == Some(word))
        };
        // The last declaration before the name or, because labels may be declared after their use, the first one after it.
        let own = |owner: String| {
            let mut before = named(Some(owner.clone())).rev();
            before.find(|d| d.span.start as usize <= start).or_else(|| named(Some(owner)).next())
        };
        owner.and_then(own).or_else(|| named(None).next())
    }
}

/// The name before a `.` or an `@`, without an index: the `p` of `p[0].`.
fn owner(before: &str) -> Option<String> {
    let mut rest = before.strip_suffix(['.', '@'])?;
    if rest.ends_with('.') {
        // In `0..N`, the dot is part of the range operator.
        return None;
    }
    if rest.ends_with(']') {
        rest = &rest[..rest.rfind('[')?];
    }
    word_at(rest, rest.len()).map(|(_, word)| word.to_owned())
}

/// All declarations in the main file.
pub fn declarations(file: &File) -> Vec<Declaration> {
    let mut found = Collector { found: Vec::new(), inside: None };
    file.items.iter().for_each(|item| found.item(item));
    found.found.retain(|d| d.span.file == FileId::MAIN);
    found.found
}

struct Collector {
    found: Vec<Declaration>,
    inside: Option<String>,
}

impl Collector {
    fn add(&mut self, kind: Kind, name: &Name, whole: Span) {
        let inside = self.inside.clone();
        self.found.push(Declaration { kind, name: name.text.clone(), span: name.span, whole, inside });
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Const(constant) => {
                self.add(Kind::Constant, &constant.name, constant.name.span.to(constant.value.span));
            }
            Item::Shared(variables) => self.variables(Kind::Shared, variables),
            Item::Mutex(variables) => self.variables(Kind::Mutex, variables),
            Item::Procedure(procedure) => self.procedure(procedure),
            Item::Thread(thread) => self.thread(thread),
            Item::Property(Property { name: Some(name), span, .. }) => self.add(Kind::Property, name, *span),
            Item::Property(_)
            | Item::Numbers(..)
            | Item::Predicates(..)
            | Item::Spare(..)
            | Item::Cost(..) => {}
        }
    }

    fn variables(&mut self, kind: Kind, variables: &[Declarator]) {
        variables.iter().for_each(|variable| self.add(kind, &variable.name, variable.span));
    }

    fn procedure(&mut self, procedure: &Procedure) {
        self.add(Kind::Procedure, &procedure.name, procedure.span);
        self.inside = Some(procedure.name.text.clone());
        for parameter in &procedure.parameters {
            self.add(Kind::Register, &parameter.name, parameter.name.span);
        }
        self.block(&procedure.body);
        self.inside = None;
    }

    fn thread(&mut self, thread: &Thread) {
        self.add(Kind::Thread, &thread.name, thread.span);
        self.inside = Some(thread.name.text.clone());
        if let Some((name, range)) = &thread.family {
            self.add(Kind::Member, name, name.span.to(range.span));
        }
        self.block(&thread.body);
        self.inside = None;
    }

    fn block(&mut self, block: &Block) {
        block.statements.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &Statement) {
        for label in &statement.labels {
            self.add(Kind::Label, label, label.span);
        }
        match &statement.kind {
            StatementKind::Const(constant) => {
                self.add(Kind::Constant, &constant.name, constant.name.span.to(constant.value.span));
            }
            StatementKind::Var(variables) => self.variables(Kind::Register, variables),
            StatementKind::For(name, range, body) => {
                self.add(Kind::Register, name, name.span.to(range.span));
                self.block(body);
            }
            StatementKind::If(_, then, otherwise) => {
                self.block(then);
                otherwise.iter().for_each(|block| self.block(block));
            }
            StatementKind::Choose(blocks) => blocks.iter().for_each(|block| self.block(block)),
            StatementKind::Atomic(block)
            | StatementKind::Snapshot(block)
            | StatementKind::While(_, block)
            | StatementKind::Loop(block)
            | StatementKind::Block(block)
            | StatementKind::Steps(block) => self.block(block),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencewright::lang::fw;

    const TEXT: &str = "const N = 2; shared x, y;
fn get(v) { var r; again: r = v; goto again; return r; }
thread p[me in 0..N] { var r; cs: r = x + me; r = get(r); }
forbid both: p[0]@cs && p[1]@cs && p[0].r == 1 && y == N;";

    /// Checks the kind, line and name of the declaration that the `n`th occurrence of `written` refers to.
    fn check(written: &str, n: usize, kind: Kind, declared: &str) {
        let (file, diagnostics) = fw::parse(TEXT);
        assert!(diagnostics.is_empty());
        let (at, _) = TEXT.match_indices(written).nth(n).expect("it is written there");
        for offset in [at, at + written.len()] {
            let found = declaration(&file, TEXT, offset).expect("a declaration");
            let line = TEXT[..found.span.start as usize].lines().count().max(1);
            assert_eq!((found.kind, &*format!("{line} {}", found.name)), (kind, declared), "{written} {n}");
        }
    }

    #[test]
    fn names_lead_to_their_declarations() {
        check("N", 1, Kind::Constant, "1 N");
        check("x", 1, Kind::Shared, "1 x");
        check("y", 1, Kind::Shared, "1 y");
        check("again", 1, Kind::Label, "2 again");
        check("v", 2, Kind::Register, "2 v");
        check("me", 1, Kind::Member, "3 me");
        check("get", 1, Kind::Procedure, "2 get");
        check("cs", 1, Kind::Label, "3 cs");
        check("both", 0, Kind::Property, "4 both");
    }

    #[test]
    fn what_stands_before_a_name_says_whose_it_is() {
        let (file, _) = fw::parse(TEXT);
        let at = TEXT.find("r == 1").expect("it is there");
        let found = declaration(&file, TEXT, at).expect("a declaration");
        assert_eq!((found.kind, found.inside.as_deref()), (Kind::Register, Some("p")));
        let in_procedure = declaration(&file, TEXT, TEXT.find("r = v").expect("it is there"));
        assert_eq!(in_procedure.and_then(|d| d.inside).as_deref(), Some("get"));
        assert_eq!(declaration(&file, TEXT, TEXT.find("&&").expect("it is there")), None);
        assert_eq!(declaration(&file, "", 0), None);
    }
}
