//! Examines a program in the background: warnings about data races first, then verdicts, each published at once, then for each memory model fences
//! and facts about variables.
//!
//! If a property is violated, the server searches for fences that prevent the violation. If all properties hold, it audits the existing fences, and
//! extracts facts about variables from a proof or from the set of all states. A verdict that could not be confirmed is marked as such.

use std::sync::Arc;
use std::time::Duration;

use fencewright::engines::explicit::{self, Reduction};
use fencewright::engines::{Checked, Confirm, Evidence, Progress};
use fencewright::fences::Audited;
use fencewright::lang::Diagnostic;
use fencewright::program::Action;
use fencewright::{Budget, EngineName, EngineOptions, MemoryModel, Program, Token, Verdict};
use fencewright_report::Source;
use fencewright_report::known::{Known, known};

use crate::Environment;
use crate::fixes::{Fixes, fixes};
use crate::load::budget;
use crate::settings::Settings;

/// A result of examining a program.
pub enum Found {
    /// Warnings about data races.
    Warnings(Vec<Diagnostic>),
    /// The verdict on the property with this index.
    Verdict(MemoryModel, usize, Box<Checked>),
    /// All properties have their verdicts.
    Decided,
    /// Fences that make the program safe, or the reason why there are none.
    Fixes(Fixes),
    /// Fences that make the violated properties hold, as far as fences can, or the reason why there are none.
    Needs(MemoryModel, Vec<Audited>),
    /// Facts about variables from a proof.
    Known(MemoryModel, Known),
}

/// A program to be examined.
pub struct Question {
    /// The program.
    pub program: Program,
    /// The settings with which the program is examined.
    pub settings: Arc<Settings>,
    /// The services of the process that the server runs in, which measure memory.
    pub environment: Environment,
    /// Cancels the examination.
    pub token: Token,
    /// The progress of the examination.
    pub progress: Arc<Progress>,
}

/// Maximum time for enumerating all states to learn the values of variables.
const FOR_VALUES: Duration = Duration::from_secs(5);

impl Question {
    /// Examines the program until it is finished or cancelled.
    pub fn examine(&self, tell: &dyn Fn(Found)) {
        let races = self.program.races(&self.budget().start());
        if !races.is_empty() {
            tell(Found::Warnings(races));
        }
        let models = &self.settings.models;
        let verdicts: Vec<_> = models.iter().map(|&model| (model, self.verdicts(model, tell))).collect();
        tell(Found::Decided);
        for (model, verdicts) in verdicts {
            if self.token.is_cancelled() || verdicts.is_empty() {
                return;
            }
            if verdicts.iter().any(|checked| matches!(checked.verdict(), Verdict::Unsafe)) {
                self.progress.say("looking for fences".into());
                tell(Found::Fixes(fixes(
                    &self.program,
                    &self.under(model),
                    model,
                    &verdicts,
                    &self.progress,
                )));
            } else if verdicts.iter().all(|checked| matches!(checked.verdict(), Verdict::Safe)) {
                self.progress.say("looking at values".into());
                self.known(model, &verdicts).into_iter().for_each(|known| tell(Found::Known(model, known)));
                self.progress.say("looking at the fences there are".into());
                self.needs(model).into_iter().for_each(|needs| tell(Found::Needs(model, needs)));
            }
        }
    }

    /// A question about the program under a memory model.
    fn under(&self, model: MemoryModel) -> fencewright::Question {
        fencewright::Question::under(model).budget(self.budget())
    }

    fn budget(&self) -> Budget {
        budget(&self.settings, self.environment, &self.token)
    }

    /// The verdicts; each is published as soon as it is found.
    fn verdicts(&self, model: MemoryModel, tell: &dyn Fn(Found)) -> Vec<Checked> {
        if self.token.is_cancelled() {
            return Vec::new();
        }
        self.progress.say(format!("checking under {}", model.name()));
        // A program without properties has no verdicts.
        let Ok(posed) = self.under(model).pose(&self.program) else { return Vec::new() };
        let mut each =
            |n: usize, checked: &Checked| tell(Found::Verdict(model, n, Box::new(checked.clone())));
        posed.check(model, &self.budget().start(), &self.progress, &mut each)
    }

    /// Facts about variables: from one of the proofs or, if the proofs contain no such facts, from the set of all states if it can be enumerated in a
    /// short time.
    fn known(&self, model: MemoryModel, verdicts: &[Checked]) -> Option<Known> {
        let source = Source::from(self.program.loaded());
        let limits = self.budget().start().within(FOR_VALUES);
        let stop = || limits.exceeded(0).is_some();
        let says = |checked: &Checked| match checked.evidence() {
            Evidence::Certified(certificate) => known(source, certificate, &stop),
            _ => None,
        };
        verdicts.iter().find_map(says).or_else(|| {
            let explicit = explicit::Options {
                reduction: Reduction::None,
                symmetry: false,
                live_variables: false,
                certificates: true,
                ..explicit::Options::default()
            };
            let mut universal =
                self.program.loaded().program.properties.iter().filter(|p| !p.kind.is_existence()).peekable();
            // If all properties are existential, the question below would name no property, and such a question is about all properties.
            universal.peek()?;
            let question = self
                .under(model)
                .engine(EngineName::Explicit)
                .options(EngineOptions { explicit, ..EngineOptions::default() })
                .confirm(Confirm { exploration: None, ..Confirm::default() });
            let question = universal.fold(question, |question, property| question.property(&property.name));
            let posed = question.pose(&self.program).ok()?;
            posed.check(model, &limits, &self.progress, &mut |_, _| {}).iter().find_map(says)
        })
    }

    /// The existing fences, and whether each is needed; `None` under SC, if there are no fences, or if the audit did not succeed.
    fn needs(&self, model: MemoryModel) -> Option<Vec<Audited>> {
        let is_fence = |action: &Action| matches!(action, Action::Fence | Action::StoreFence);
        let mut edges = self.program.loaded().program.threads.iter().flat_map(|thread| &thread.edges);
        if model == MemoryModel::Sc || !edges.any(|edge| is_fence(&edge.action)) {
            return None;
        }
        // If no property can depend on fences, no fence is needed. This is not worth reporting.
        let posed = self.under(model).repair().pose(&self.program).ok()?;
        posed.audit_fences(&self.budget().start(), &self.progress).ok()
    }
}
