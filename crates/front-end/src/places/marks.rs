//! Writes an empty step into the syntax tree at every place where a fence could go.

use std::collections::{BTreeSet, HashSet};

use fencewright_fw::ast::{Block, Name, Statement, StatementKind};
use fencewright_program::{Observable, Program, Property, Span};

use super::{EMPTY_STEPS, Place, Side, Site, Sites};

/// Whether there is a place before the first statement of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// There is a place.
    Free,
    /// There is no place, because the statement starts an alternative of `choose`.
    Choice,
}

pub(super) struct Marks<'l> {
    pub(super) places: Vec<Place>,
    /// For each place, whether a block or a `for` follows it.
    pub(super) opens: Vec<bool>,
    /// The indices of the places at which no empty step is inserted.
    pub(super) left_out: HashSet<usize>,
    pub(super) mentioned: BTreeSet<String>,
    /// The prefix of labels in the code that is being walked: the name of the procedure and a dot, or empty in a thread.
    pub(super) prefix: String,
    /// The statements beside which a fence can be inserted; `None` if a fence can be inserted beside every statement.
    pub(super) sites: Option<&'l Sites>,
    /// The source statements that enclose the current one. A tree statement with the same text as one of them is part of that source statement and
    /// has no places of its own.
    pub(super) around: Vec<Span>,
}

/// The labels of all locations that some property mentions.
pub(super) fn mentioned(program: &Program) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for formula in program.properties.iter().filter_map(Property::formula) {
        formula.for_each_leaf(&mut |observable| {
            if let Observable::At(thread, locations) = observable {
                let code = program.thread(*thread);
                found.extend(locations.iter().flat_map(|l| code.locations[l.index()].labels.iter().cloned()));
            }
        });
    }
    found
}

impl Marks<'_> {
    /// Inserts empty steps into a block; `start` says whether there is a place before its first statement, `ends` whether there is one after its
    /// last.
    pub(super) fn block(&mut self, block: &mut Block, start: Start, ends: bool) {
        let mut start = start;
        let statements = std::mem::take(&mut block.statements);
        let last = statements.last().filter(|last| self.site(last).after).map(|s| (s.span, leaves(s)));
        let mut statements = statements.into_iter().peekable();
        while let Some(mut statement) = statements.next() {
            if matches!(statement.kind, StatementKind::Const(_) | StatementKind::Var(_)) {
                block.statements.push(statement);
                continue;
            }
            let site = self.site(&statement);
            let label = statement.labels.first().map(|l| l.span);
            let is_written = label.is_none_or(|l| self.sites.is_none() || stands_before(l, statement.span));
            let is_labelled = label.is_some() && site.before && statement.kind != StatementKind::Empty;
            let opens = matches!(statement.kind, StatementKind::Block(_) | StatementKind::For(..));
            if start == Start::Free && is_written && site.before {
                let offset = label.map_or(statement.span.start, |l| l.start);
                // If the statement has labels, they are between this place and the block, so that the block does not follow the place directly.
                let opens = opens && label.is_none();
                block.statements.extend(self.mark(offset, Side::Before, statement.span, label, opens));
            }
            // Adds a place between the labels and the statement, which every jump to the labels passes. If a property mentions one of the labels,
            // there is no such place: a thread that waits at a fence there would count as being at the label.
            let named = |l: &Name| format!("{}{}", self.prefix, l.text);
            let looked_at = statement.labels.iter().any(|l| self.mentioned.contains(&named(l)));
            if is_labelled && !looked_at {
                let offset = statement.span.start;
                if let Some(mark) = self.mark(offset, Side::Labelled, statement.span, label, opens) {
                    let labels = std::mem::take(&mut statement.labels);
                    block.statements.push(Statement { labels, ..mark });
                }
            }
            self.inside(&mut statement, start);
            start = Start::Free;
            let (span, leaves) = (statement.span, leaves(&statement));
            block.statements.push(statement);
            // If the next statement of the same function has a place before it, a place after this statement would be the same place.
            let is_apart = |next: &Statement| !self.site(next).before || next.span.call != span.call;
            if site.after && !leaves && statements.peek().is_some_and(is_apart) {
                block.statements.extend(self.mark(span.end, Side::After, span, None, false));
            }
        }
        // An alternative of `choose` that has only declarations gets no place at its end: a fence there would be the first statement of the
        // alternative, where no fence may be inserted.
        if let (true, Some((span, false))) = (ends && start == Start::Free, last) {
            block.statements.extend(self.mark(span.end, Side::After, span, None, false));
        }
    }

    /// The sides of a statement on which a fence can be inserted.
    fn site(&self, statement: &Statement) -> Site {
        let Some(sites) = self.sites else { return Site { before: true, after: true, ..Site::default() } };
        let belongs_to = |outer: &Span| outer.text() == statement.span.text();
        if self.around.iter().any(belongs_to) { Site::default() } else { sites.beside(statement.span) }
    }

    fn inside(&mut self, statement: &mut Statement, start: Start) {
        match &mut statement.kind {
            StatementKind::If(_, then, otherwise) => {
                self.block(then, Start::Free, true);
                match otherwise {
                    // `else if` is a block without braces: nothing can be inserted into it.
                    Some(Block { statements, span }) if is_bare(statements, *span) => {
                        statements.iter_mut().for_each(|inner| self.inside(inner, Start::Free));
                    }
                    Some(block) => self.block(block, Start::Free, true),
                    None => {}
                }
            }
            StatementKind::While(_, body) | StatementKind::For(_, _, body) => {
                self.block(body, Start::Free, true);
            }
            StatementKind::Loop(body) => self.block(body, start, true),
            StatementKind::Block(body) => self.block(body, start, true),
            StatementKind::Choose(blocks) => {
                blocks.iter_mut().for_each(|block| self.block(block, Start::Choice, true));
            }
            StatementKind::Steps(steps) => {
                self.around.push(statement.span);
                let mut start = start;
                for step in &mut steps.statements {
                    self.inside(step, start);
                    start = Start::Free;
                }
                self.around.pop();
            }
            _ => {}
        }
    }

    /// Adds a place and returns its empty step; `None` if the place is left out.
    fn mark(
        &mut self,
        offset: u32,
        side: Side,
        statement: Span,
        label: Option<Span>,
        opens: bool,
    ) -> Option<Statement> {
        let number = self.places.len();
        let Site { bare, uses, .. } = self.sites.map_or_else(Site::default, |sites| sites.beside(statement));
        self.places.push(Place { offset, side, statement, label, bare, uses, edges: Vec::new() });
        self.opens.push(opens);
        let span = Span::new(number, number).in_file(EMPTY_STEPS).called(statement.call);
        let mark = Statement { labels: Vec::new(), kind: StatementKind::Skip, span };
        (!self.left_out.contains(&number)).then_some(mark)
    }
}

/// Whether a label is written before the statement; importers also create labels that are not in the text.
fn stands_before(label: Span, statement: Span) -> bool {
    label.file == statement.file && label.start < label.end && label.end <= statement.start
}

/// Whether a block is a single `if` without braces.
fn is_bare(statements: &[Statement], block: Span) -> bool {
    matches!(statements, [Statement { kind: StatementKind::If(..), span, .. }] if span.start <= block.start)
}

/// Whether a statement jumps away, stops the thread or returns, so that control never reaches the point after it.
fn leaves(statement: &Statement) -> bool {
    matches!(
        statement.kind,
        StatementKind::Goto(_)
            | StatementKind::Break
            | StatementKind::Continue
            | StatementKind::Stop
            | StatementKind::Return(_)
    )
}
