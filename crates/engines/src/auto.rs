//! Engine `auto`: a simple choice among the others.
//!
//! The explicit engine goes first, for a moment: most programs of the literature have few states, and then nothing is faster or
//! more exact. What it has not decided by then goes to the explicit engine and to `cegar` side by side, the one to find
//! violations and finish large finite state spaces, the other to prove programs that have no finite one. The first definite answer to each
//! property counts, and when all have one the other engine is stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crate::cegar::Cegar;
use crate::explicit::{Explicit, Options};
use crate::task::{Answer, Engine, Limits, Progress, Reason, Report, Task};

/// How long the explicit engine goes alone, for most questions.
const ALONE: Duration = Duration::from_millis(100);

/// The engine.
#[derive(Clone, Debug)]
pub struct Auto {
    /// The one for finite state spaces.
    pub explicit: Explicit,
    /// The one for unbounded programs.
    pub cegar: Cegar,
    /// How long the one for finite state spaces goes alone.
    pub alone: Duration,
}

impl Default for Auto {
    fn default() -> Self {
        Auto { explicit: Explicit::default(), cegar: Cegar::default(), alone: ALONE }
    }
}

impl Engine for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn about(&self) -> &'static str {
        "explicit where the state space is soon seen to be finite, otherwise explicit and cegar side by side"
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        let first = self.explicit.run(task, &limits.within(self.alone), progress);
        if first.is_decided(task) {
            return first.by(self.explicit.name());
        }
        // Only one engine reports final states.
        if !task.observed.is_empty() {
            return self.explicit.run(task, limits, progress).by(self.explicit.name());
        }
        let workers = (self.explicit.options.workers / 2).max(1);
        let explicit = Explicit { options: Options { workers, ..self.explicit.options.clone() } };
        let engines: [&dyn Engine; 2] = [&explicit, &self.cegar];
        let stop = Arc::new(AtomicBool::new(false));
        let shared = limits.halved().stopped_by(&stop);
        let ignored = Progress::default();
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for (n, engine) in engines.into_iter().enumerate() {
                let (sender, shared) = (sender.clone(), &shared);
                let shown = if n == 0 { progress } else { &ignored };
                scope.spawn(move || {
                    let report = engine.run(task, shared, shown).by(engine.name());
                    // The receiver waits for both, so sending cannot fail before it has all it needs.
                    let _ = sender.send(report);
                });
            }
            drop(sender);
            let mut merged: Option<Report> = None;
            for report in receiver {
                let sum = match merged.take() {
                    None => report,
                    Some(earlier) => earlier.merged(report),
                };
                if sum.is_decided(task) {
                    stop.store(true, Ordering::Relaxed);
                }
                merged = Some(sum);
            }
            merged.unwrap_or(first)
        })
    }
}

impl Report {
    /// Whether every property has a definite answer, or one is violated and that is enough.
    fn is_decided(&self, task: &Task<'_>) -> bool {
        let violated = |a: &Answer| matches!(a, Answer::Violated(_));
        (task.first_violation && self.answers.iter().any(violated))
            || !self.answers.iter().any(|a| matches!(a, Answer::Unknown(_)))
    }

    /// The report with the name of the engine that gave the answers.
    fn by(mut self, engine: &'static str) -> Report {
        self.engines = vec![engine; self.answers.len()];
        self
    }

    /// For each property the definite answer of the two, or else the one whose reason says more.
    fn merged(mut self, later: Report) -> Report {
        for (n, answer) in later.answers.into_iter().enumerate() {
            if rank(&answer) > rank(&self.answers[n]) {
                self.answers[n] = answer;
                self.engines[n] = later.engines[n];
            }
        }
        self.states += later.states;
        self.bytes += later.bytes;
        self.growth.extend(later.growth);
        self.predicates = self.predicates.max(later.predicates);
        self
    }
}

/// How much an answer says. An engine that was stopped, or is not made for the question, says least.
fn rank(answer: &Answer) -> u8 {
    match answer {
        Answer::Unknown(Reason::Cancelled) => 0,
        Answer::Unknown(Reason::Unsupported(..)) => 1,
        Answer::Unknown(Reason::Timeout(_) | Reason::Memory(_)) => 2,
        Answer::Unknown(_) => 3,
        Answer::Holds(_) | Answer::Proved(_) | Answer::Violated(_) => 4,
    }
}
