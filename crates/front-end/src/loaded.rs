//! A program that was read, with everything needed to talk about it.

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

/// A program with everything needed to talk about it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The texts, for messages.
    pub sources: Sources,
    /// What reads and writes the language of the texts.
    pub front_end: &'static dyn FrontEnd,
    /// Its syntax tree.
    pub file: ast::File,
    /// The program.
    pub program: Program,
    /// The name the text gives itself: that of a litmus test.
    pub name: Option<String>,
    /// What a reader should know about an imported program.
    pub notes: Vec<String>,
    /// How a litmus test shows its final states.
    pub view: Option<View>,
    /// Which final states of a litmus test count.
    pub filter: Option<Formula>,
    /// The calls that spans of the syntax tree name.
    pub calls: Vec<Call>,
    /// Where fences can be put, if not everywhere between statements of the syntax tree.
    pub sites: Option<Sites>,
    /// What somebody should look at although it is no error.
    pub warnings: Vec<Diagnostic>,
    /// The accesses that a compiler may move, by their places: they must not race.
    pub plain: HashSet<Span>,
    /// What the front end knows beside the syntax tree.
    pub facts: Facts,
    /// How the author of the text calls the parts of the program.
    pub words: Words,
    /// The constants that were given other values.
    pub defines: Vec<(String, i64)>,
    /// How it was read.
    pub options: Options,
}

impl Loaded {
    /// What to call the program: the name it gives itself, otherwise that of its file without the extension.
    pub fn title(&self) -> String {
        let stem = || Some(Path::new(self.sources.name()).file_stem()?.to_string_lossy().into_owned());
        self.name.clone().or_else(stem).unwrap_or_else(|| self.sources.name().to_owned())
    }

    /// Writes the constants that were given other values into the syntax tree, as lowering has used them: then it can be printed.
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
