//! Engine `auto`: a simple choice among the others.
//!
//! The explicit engine goes first, for a moment: most programs of the literature have few states, and for these it is the fastest and
//! exact. Then `contexts` runs for a moment: most violations take few contexts, whatever the values and however long the buffers.
//! Properties that are still open go to the explicit engine and to `cegar` side by side. The first finds violations and finishes large
//! finite state spaces; the second proves programs whose state space is infinite (over the reals, `contexts` takes its place). The first
//! definite answer to each property counts. When every property has one, the other engine is stopped.

use std::sync::mpsc;
use std::time::Duration;

use fencewright_program::MemoryModel;

use crate::cegar::Cegar;
use crate::contexts::ContextBound;
use crate::explicit::{Explicit, Options};
use crate::task::{About, Answer, Engine, EngineName, Limits, Part, Progress, Reason, Report, Task};

/// How long the explicit engine goes alone, for most questions.
const ALONE: Duration = Duration::from_millis(100);

/// The engine.
#[derive(Clone, Debug)]
pub struct Auto {
    /// The engine for finite state spaces.
    pub explicit: Explicit,
    /// The engine for unbounded programs.
    pub cegar: Cegar,
    /// How long the explicit engine runs alone, and then how long `contexts` does.
    pub alone: Duration,
}

impl Default for Auto {
    fn default() -> Self {
        Auto { explicit: Explicit::default(), cegar: Cegar::default(), alone: ALONE }
    }
}

impl Engine for Auto {
    fn name(&self) -> EngineName {
        EngineName::Auto
    }

    fn about(&self) -> About {
        About {
            summary: "explicit and contexts for a moment each, then explicit and cegar side by side",
            models: &MemoryModel::ALL,
            machines: &["exact", "partial", "contexts"],
            domains: &["concrete", "zones", "predicates", "order"],
            options: &[
                "--search",
                "--jobs",
                "--buffer",
                "--no-live",
                "--no-local-first",
                "--no-symmetry",
                "--k",
                "--kept",
                "--summaries",
                "--domain",
                "--clip",
                "--fix",
            ],
        }
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        let mut known =
            self.explicit.run(task, &limits.within(self.alone), progress).by(self.explicit.name());
        if known.is_decided(task) {
            return known;
        }
        let open = known.open(task);
        let contexts = ContextBound::default();
        let part = Part::new(task, &open, known.states);
        let mut few = contexts.run(&part.task(), &limits.within(self.alone), progress).by(contexts.name());
        // A definite answer without evidence waits: another engine may find the same answer with a certificate.
        let unproved =
            few.split_off(|answer| !matches!(answer, Answer::Holds(None) | Answer::Violated(None)));
        known.adopt(&open, few);
        if known.is_decided(task) {
            return known;
        }
        let rest = known.open(task);
        rest.iter().for_each(|&n| known.answers[n] = Answer::Open);
        let part = Part::new(task, &rest, known.states);
        known.adopt(&rest, self.side_by_side(&part.task(), limits, progress));
        known.adopt(&open, unproved);
        known
    }
}

impl Auto {
    /// The explicit engine and one that abstracts, at the same time.
    fn side_by_side(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        let workers = (self.explicit.options.workers / 2).max(1);
        let explicit = Explicit { options: Options { workers, ..self.explicit.options.clone() } };
        let contexts = ContextBound::default();
        let abstracting: &dyn Engine = if task.program.has_real_choices() { &contexts } else { &self.cegar };
        let engines = [&explicit, abstracting];
        let shared = limits.halved().part();
        let ignored = Progress::default();
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for (n, engine) in engines.into_iter().enumerate() {
                let (sender, shared) = (sender.clone(), &shared);
                let shown = if n == 0 { progress } else { &ignored };
                scope.spawn(move || {
                    let report = engine.run(task, shared, shown).by(engine.name());
                    // The receiver waits for the reports of both engines, so sending does not fail.
                    let _ = sender.send(report);
                });
            }
            drop(sender);
            let all: Vec<usize> = (0..task.properties.len()).collect();
            let answers = vec![Answer::Open; all.len()];
            let mut known = Report { answers, ..Report::default() }.by(self.name());
            for report in receiver {
                known.adopt(&all, report);
                if known.is_decided(task) {
                    shared.token.cancel();
                }
            }
            known
        })
    }
}

impl Report {
    /// Whether every property has a definite answer, or one is violated and that is enough.
    fn is_decided(&self, task: &Task<'_>) -> bool {
        let violated = |a: &Answer| a.holds() == Some(false);
        (task.first_violation && self.answers.iter().any(violated)) || self.open(task).is_empty()
    }

    /// The numbers of the properties without a definite answer, here or elsewhere.
    fn open(&self, task: &Task<'_>) -> Vec<usize> {
        let is_open =
            |&n: &usize| matches!(self.answers[n], Answer::Open | Answer::Unknown(_)) && !task.is_settled(n);
        (0..self.answers.len()).filter(is_open).collect()
    }

    /// The report with the name of the engine that gave the answers.
    fn by(mut self, engine: EngineName) -> Report {
        self.engines = vec![engine; self.answers.len()];
        self
    }

    /// Takes the answers to the properties with these numbers from a later report, where they say more.
    fn adopt(&mut self, numbers: &[usize], later: Report) {
        for ((&n, answer), engine) in numbers.iter().zip(later.answers).zip(later.engines) {
            if rank(&answer) > rank(&self.answers[n]) {
                self.answers[n] = answer;
                self.engines[n] = engine;
            }
        }
        self.states += later.states;
        self.bytes = self.bytes.max(later.bytes);
        // Of two reports about what grows, that of the longer search is better.
        if !later.growth.is_empty() {
            self.growth = later.growth;
        }
        self.predicates = self.predicates.max(later.predicates);
        if !later.symmetry.is_empty() {
            self.symmetry = later.symmetry;
        }
    }

    /// Keeps only the answers that satisfy `keep`; the others go to the report that is returned.
    fn split_off(&mut self, keep: impl Fn(&Answer) -> bool) -> Report {
        let mut other = Report { answers: self.answers.clone(), ..Report::default() };
        other.engines = self.engines.clone();
        for (mine, theirs) in self.answers.iter_mut().zip(&mut other.answers) {
            let dropped = if keep(mine) { theirs } else { mine };
            *dropped = Answer::Open;
        }
        other
    }
}

/// How much an answer says: least if the engine was stopped or is not made for the question.
fn rank(answer: &Answer) -> u8 {
    match answer {
        Answer::Open => 0,
        Answer::Unknown(Reason::Cancelled) => 1,
        Answer::Unknown(Reason::Unsupported(..) | Reason::Contexts(..)) => 2,
        Answer::Unknown(Reason::Timeout(_) | Reason::Memory(_)) => 3,
        Answer::Unknown(_) => 4,
        Answer::Holds(_) | Answer::Proved(_) | Answer::Certified(_) | Answer::Violated(_) => 5,
    }
}
