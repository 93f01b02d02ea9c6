//! What is found out about a program in the background: first the verdicts, each as soon as it is there, then what goes with them.
//!
//! Where a property is violated, fences are looked for; where all hold, it is found out which of the fences there are needed, and what the
//! proof says about variables. All verdicts come through the door of the engines.

use std::sync::Arc;
use std::time::Duration;

use fencewright::engines::auto::Auto;
use fencewright::engines::explicit::{Explicit, Options, Reduction};
use fencewright::engines::{
    Checked, Confirm, Evidence, Limits, Progress, Task, Token, Verdict, check, check_each, races,
};
use fencewright::fences::{Audited, Safety, audit};
use fencewright::lang::{Diagnostic, Loaded};
use fencewright::program::{Action, MemoryModel, Program, Property, Span};
use fencewright_report::known::{Known, known};
use fencewright_report::{Source, remarks};

use crate::Environment;
use crate::fixes::{Fixes, fixes};
use crate::load::limits;
use crate::settings::Settings;

/// What is found out.
pub enum Found {
    /// What somebody should look at.
    Warnings(Vec<Diagnostic>),
    /// The verdict on the property with this number.
    Verdict(MemoryModel, usize, Box<Checked>),
    /// That all properties have their verdicts.
    Decided,
    /// Fences that make the program safe, or why there are none.
    Fixes(Fixes),
    /// Which fences are needed.
    Needs(MemoryModel, Vec<Audited>),
    /// What a proof says about variables.
    Known(MemoryModel, Known),
}

/// A program to be examined.
pub struct Question {
    /// The program.
    pub loaded: Arc<Loaded>,
    /// What a user has set.
    pub settings: Arc<Settings>,
    /// What the process can do.
    pub environment: Environment,
    /// Stops it.
    pub token: Token,
    /// How far it has come.
    pub progress: Arc<Progress>,
}

/// To learn which values variables have, all states are looked at for at most this long.
const FOR_VALUES: Duration = Duration::from_secs(5);

impl Question {
    /// Finds out all there is to find out, unless somebody asks to stop.
    pub fn examine(&self, tell: &dyn Fn(Found)) {
        let races = self.races();
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
                tell(Found::Fixes(fixes(&self.loaded, model, &verdicts, &self.limits(), &self.progress)));
            } else if verdicts.iter().all(|checked| matches!(checked.verdict(), Verdict::Safe)) {
                self.progress.say("looking at values".into());
                self.known(model, &verdicts).into_iter().for_each(|known| tell(Found::Known(model, known)));
                self.progress.say("looking at the fences there are".into());
                self.needs(model).into_iter().for_each(|needs| tell(Found::Needs(model, needs)));
            }
        }
    }

    fn limits(&self) -> Limits {
        limits(&self.settings, self.environment, &self.token)
    }

    fn program(&self) -> &Program {
        &self.loaded.program
    }

    /// The verdicts, each told at once.
    fn verdicts(&self, model: MemoryModel, tell: &dyn Fn(Found)) -> Vec<Checked> {
        if self.token.is_cancelled() {
            return Vec::new();
        }
        self.progress.say(format!("checking under {}", model.name()));
        let task = Task::new(self.program(), model, self.program().properties.clone());
        let mut each =
            |n: usize, checked: &Checked| tell(Found::Verdict(model, n, Box::new(checked.clone())));
        let (limits, confirm) = (self.limits(), Confirm::default());
        check_each(&Auto::default(), &task, &limits, &self.progress, confirm, &mut each).verdicts
    }

    /// Races between accesses that a compiler may move.
    fn races(&self) -> Vec<Diagnostic> {
        if self.loaded.plain.is_empty() {
            return Vec::new();
        }
        let is_plain = |span: Span| self.loaded.plain.contains(&span.text());
        let races = races::races(self.program(), &is_plain, &self.limits());
        remarks::races(Source::from(&*self.loaded), &races)
    }

    /// What is known about variables: from one of the proofs or, if they say nothing, from all states, where these are few.
    fn known(&self, model: MemoryModel, verdicts: &[Checked]) -> Option<Known> {
        let source = Source::from(&*self.loaded);
        let limits = self.limits().within(FOR_VALUES);
        let stop = || limits.exceeded(0).is_some();
        let says = |checked: &Checked| match checked.evidence() {
            Evidence::Certified(certificate) => known(source, certificate, &stop),
            _ => None,
        };
        verdicts.iter().find_map(says).or_else(|| {
            let options = Options {
                reduction: Reduction::None,
                symmetry: false,
                live_variables: false,
                certificates: true,
                ..Options::default()
            };
            let universal = |property: &&Property| !property.kind.is_existence();
            let properties: Vec<Property> =
                self.program().properties.iter().filter(universal).cloned().collect();
            let task = Task::new(self.program(), model, properties);
            let confirm = Confirm { exploration: None, ..Confirm::default() };
            let verdicts = check(&Explicit { options }, &task, &limits, &self.progress, confirm);
            verdicts.iter().find_map(says)
        })
    }

    /// Which of the fences there are needed, if there are some.
    fn needs(&self, model: MemoryModel) -> Option<Vec<Audited>> {
        let is_fence = |action: &Action| matches!(action, Action::Fence | Action::StoreFence);
        let mut edges = self.program().threads.iter().flat_map(|thread| &thread.edges);
        if model == MemoryModel::Sc || !edges.any(|edge| is_fence(&edge.action)) {
            return None;
        }
        let goal =
            Safety { model, properties: Vec::new(), engine: Auto::default(), confirm: Confirm::default() };
        // Where nothing is stated that a fence could help with, none is needed, and that is no news.
        let about_fences = goal.is_about_fences(self.program());
        about_fences.then(|| audit(self.program(), &goal, &self.limits(), &self.progress).ok()).flatten()
    }
}
