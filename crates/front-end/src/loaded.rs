//! A loaded program with its sources and options.

use std::collections::HashSet;
use std::path::Path;

use fencewright_fw::ast::{self, ExprKind, Item};
use fencewright_program::{Call, Formula, Program, Span};
use fencewright_text::{Diagnostic, Sources};

use crate::FrontEnd;
use crate::facts::Facts;
use crate::options::Options;
use crate::places::Sites;
use crate::view::View;
use crate::words::Words;

/// A loaded program with its sources and options.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The source texts.
    pub sources: Sources,
    /// The front end of the source language.
    pub front_end: &'static dyn FrontEnd,
    /// The syntax tree.
    pub file: ast::File,
    /// The lowered program.
    pub program: Program,
    /// The name that the text gives itself, if any, as a litmus test does.
    pub name: Option<String>,
    /// Notes on the translation of an imported program.
    pub notes: Vec<String>,
    /// The presentation of the final states; only for a litmus test.
    pub view: Option<View>,
    /// The condition that a final state of a litmus test must satisfy to be counted, if there is one.
    pub filter: Option<Formula>,
    /// The calls that spans of the syntax tree refer to.
    pub calls: Vec<Call>,
    /// The statements beside which fences can be inserted; `None` if fences can be inserted beside every statement of the syntax tree.
    pub sites: Option<Sites>,
    /// Warnings about the program.
    pub warnings: Vec<Diagnostic>,
    /// The spans of plain (non-atomic) accesses, which a compiler may move. A data race on them is reported.
    pub plain: HashSet<Span>,
    /// Facts about the source for reports, by the names of the syntax tree.
    pub facts: Facts,
    /// Facts about the source for reports, by ids of the program.
    pub words: Words,
    /// The constants that were overridden, with their values.
    pub defines: Vec<(String, i64)>,
    /// The options with which the program was read.
    pub options: Options,
}

impl Loaded {
    /// The title of the program: the name it gives itself, otherwise its file name without the extension.
    pub fn title(&self) -> String {
        let stem = || Some(Path::new(self.sources.name()).file_stem()?.to_string_lossy().into_owned());
        self.name.clone().or_else(stem).unwrap_or_else(|| self.sources.name().to_owned())
    }

    /// Writes the values of overridden constants into the syntax tree, so that the printed program has these values.
    pub fn settle_constants(&mut self) {
        for item in &mut self.file.items {
            if let Item::Const(constant) = item
                && let Some((_, value)) =
                    self.defines.iter().rev().find(|(name, _)| *name == constant.name.text)
            {
                constant.value.kind = ExprKind::Int(*value);
            }
        }
    }
}
