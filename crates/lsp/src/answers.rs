//! All results about a program so far.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use fencewright::Program;
use fencewright::engines::{Checked, Verdict};
use fencewright::fences::Audited;
use fencewright::lang::Diagnostic;
use fencewright::program::{MemoryModel, Property};
use fencewright_report::html::Page;
use fencewright_report::known::Known;
use fencewright_report::{Source, Style, text};

use crate::check::Found;
use crate::fixes::Fixes;

/// All results about a program so far. Large parts are reference counted, so that other threads can read them while more results arrive.
#[derive(Clone)]
pub struct Answers {
    /// The program that the results are about.
    pub program: Program,
    /// The memory models under which the program was last examined; empty if it has not been examined.
    pub models: Vec<MemoryModel>,
    /// Whether verdicts are still to come.
    pub checking: bool,
    /// Warnings found after the program was read.
    pub warnings: Vec<Diagnostic>,
    /// The verdicts, by memory model and index of the property.
    pub verdicts: BTreeMap<(MemoryModel, usize), Arc<Checked>>,
    /// For each memory model under which a property is violated, the missing fences, or the reason why there are none.
    pub fixes: Vec<Arc<Fixes>>,
    /// For each relaxed memory model under which all properties hold: the existing fences, and whether each is needed. A model is missing if there
    /// are no fences or its audit failed.
    pub needs: Vec<(MemoryModel, Arc<Vec<Audited>>)>,
    /// For each memory model under which all properties hold, the facts about variables, if there are any.
    pub known: Vec<(MemoryModel, Arc<Known>)>,
}

impl Answers {
    /// A program without answers.
    pub fn new(program: Program) -> Self {
        Answers {
            program,
            models: Vec::new(),
            checking: false,
            warnings: Vec::new(),
            verdicts: BTreeMap::new(),
            fixes: Vec::new(),
            needs: Vec::new(),
            known: Vec::new(),
        }
    }

    /// Adds a result.
    pub fn add(&mut self, found: Found) {
        match found {
            Found::Warnings(warnings) => self.warnings = warnings,
            Found::Verdict(model, n, checked) => _ = self.verdicts.insert((model, n), Arc::from(checked)),
            Found::Decided => self.checking = false,
            Found::Fixes(fixes) => self.fixes.push(Arc::new(fixes)),
            Found::Needs(model, needs) => self.needs.push((model, Arc::new(needs))),
            Found::Known(model, known) => self.known.push((model, Arc::new(known))),
        }
    }

    /// The program with its text.
    pub fn source(&self) -> Source<'_> {
        Source::from(self.program.loaded())
    }

    /// The properties that verdicts are about.
    pub fn properties(&self) -> &[Property] {
        &self.program.loaded().program.properties
    }

    /// The verdicts on a property, one for each model that has one.
    pub fn of(&self, property: usize) -> impl Iterator<Item = (MemoryModel, &Checked)> {
        let models = self.models.iter();
        models.filter_map(move |model| Some((*model, &**self.verdicts.get(&(*model, property))?)))
    }

    /// The verdict on the property with this name.
    pub fn named(&self, property: &str, model: &str) -> Option<(MemoryModel, &Checked)> {
        let n = self.properties().iter().position(|known| known.name == property)?;
        self.of(n).find(|(known, _)| known.name() == model)
    }

    /// A verdict with its evidence, as the command prints them.
    pub fn told(&self, model: MemoryModel, checked: &Checked) -> String {
        let (source, style) = (self.source(), Style::PLAIN);
        text::verdict(source, model, checked, style) + &text::evidence(source, checked, style)
    }

    /// A verdict with its evidence as an HTML page, for a panel of the editor or for a browser.
    pub fn page(&self, model: MemoryModel, checked: &Checked, for_editor: bool) -> String {
        let source = self.source();
        let name = Path::new(source.name()).file_name().map(|name| name.to_string_lossy());
        let mut page = Page::default();
        page.check(name.as_deref(), source, model, checked);
        if for_editor { page.for_editor() } else { page.for_browser() }
    }
}

/// A verdict in one word.
pub fn word(checked: &Checked) -> &'static str {
    match checked.verdict() {
        Verdict::Safe => "safe",
        Verdict::Unsafe => "unsafe",
        Verdict::Unknown(_) => "unknown",
    }
}
