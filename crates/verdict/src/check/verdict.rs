//! Verdicts and their evidence.

use std::sync::Arc;
use std::time::Duration;

use fencewright_certify::Certificate;
use fencewright_program::{Property, Replayed, Span};

use crate::task::{EngineName, Reason, Tried, Work};

/// The verdict about a property under one memory model.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// The property holds.
    Safe,
    /// The property is violated.
    Unsafe,
    /// It is unknown whether the property holds, for this reason.
    Unknown(Reason),
}

/// The evidence for a verdict.
#[derive(Clone, Debug)]
pub enum Evidence {
    /// An execution, replayed on the reference semantics.
    Replayed(Replayed),
    /// An exploration of all states that the reference semantics reaches.
    Explored,
    /// An enumeration of the executions of the reference semantics, up to the order of independent events, with their number.
    Enumerated(u64),
    /// A certificate, accepted by the checker.
    Certified(Arc<Certificate>),
    /// A certificate that was not checked.
    Unchecked(Arc<Certificate>),
    /// Only the answer of the engine, which was not confirmed.
    Engine,
    /// There is no verdict.
    None,
}

/// A verdict. Only the module [`check`](mod@crate::check) can make one.
#[derive(Clone, Debug)]
pub struct Checked {
    pub(super) verdict: Verdict,
    pub(super) evidence: Evidence,
    /// The engine that gave the answer.
    pub engine: EngineName,
    /// Whether the violating execution, with every store written to memory immediately, is also a violation under SC. If so, no fence can help
    /// (FENCES12 s. 7, case 1). If not, another violating execution may still be a violation under SC.
    pub happens_under_sc: bool,
    /// The property that the verdict is about.
    pub property: Property,
    /// Seconds from the start of the run to the answer of the engine.
    pub seconds: f64,
    /// Seconds that the confirmation took.
    pub check_seconds: f64,
    /// Statistics of the engine that gave the answer, without those of other engines.
    pub work: Work,
    /// If the verdict is `Unknown`: a sentence for each buffer or value that grew without bound, with the place in the source that makes it grow, if
    /// it is known.
    pub growth: Vec<(String, Option<Span>)>,
    /// If the verdict is `Unknown`: the attempts of the engines.
    pub tried: Vec<Tried>,
}

impl Checked {
    /// The verdict: safe, unsafe, or unknown with a reason.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The replayed execution that shows the verdict, if that is the evidence.
    pub fn trace(&self) -> Option<&Replayed> {
        match &self.evidence {
            Evidence::Replayed(trace) => Some(trace),
            _ => None,
        }
    }

    /// The evidence for the verdict.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// The certificate, if that is the evidence.
    pub fn certificate(&self) -> Option<&Certificate> {
        self.evidence.certificate().map(|certificate| &**certificate)
    }

    /// Whether the verdict was confirmed independently of the engine: see [`Evidence::checked`].
    pub fn checked(&self) -> Option<bool> {
        self.evidence.checked()
    }
}

impl Evidence {
    /// The certificate, if that is the evidence, checked or not.
    pub fn certificate(&self) -> Option<&Arc<Certificate>> {
        match self {
            Evidence::Certified(certificate) | Evidence::Unchecked(certificate) => Some(certificate),
            _ => None,
        }
    }

    /// True if the trace was replayed, the certificate was accepted, or the states or executions of the reference semantics were enumerated
    /// completely; false if the verdict relies on the engine alone; `None` if there is no verdict.
    pub fn checked(&self) -> Option<bool> {
        match self {
            Evidence::Replayed(_) | Evidence::Explored | Evidence::Enumerated(_) | Evidence::Certified(_) => {
                Some(true)
            }
            Evidence::Unchecked(_) | Evidence::Engine => Some(false),
            Evidence::None => None,
        }
    }
}

/// The result of a run: verdicts and statistics.
#[derive(Clone, Debug)]
pub struct Checks {
    /// The verdicts, in the order of the properties.
    pub verdicts: Vec<Checked>,
    /// Statistics of the whole run.
    pub statistics: Work,
}

/// How answers without a trace are confirmed.
#[derive(Clone, Copy, Debug)]
pub struct Confirm {
    /// Whether certificates are checked; if not, they are reported as unchecked.
    pub certificates: bool,
    /// Limits for exploring the reference semantics, for answers without a certificate; `None` to skip it.
    pub exploration: Option<Exploration>,
}

/// Limits for exploring the states of the reference semantics and for enumerating its executions. Executions are enumerated only if the states exceed
/// their limits and the engine itself has explored executions. If no attempt completes within its limits, the answer is not confirmed.
#[derive(Clone, Copy, Debug)]
pub struct Exploration {
    /// Maximum number of states; 0 if states are not explored.
    pub states: usize,
    /// Maximum number of events taken when executions are enumerated.
    pub events: u64,
    /// Maximum time for exploring the states, and again for enumerating the executions.
    pub time: Duration,
}

impl Default for Exploration {
    fn default() -> Self {
        Exploration { states: 20_000, events: 1_000_000, time: Duration::from_secs(2) }
    }
}

impl Default for Confirm {
    fn default() -> Self {
        Confirm { certificates: true, exploration: Some(Exploration::default()) }
    }
}

impl Confirm {
    /// No confirmation of answers without a trace; traces are replayed in any case.
    pub const NOTHING: Confirm = Confirm { certificates: false, exploration: None };

    /// These settings, but without an exploration of states if the engine has stored more states than the exploration may. The reference semantics
    /// has no reductions, so it has at least about as many states as the engine has stored, and the exploration could not succeed.
    pub fn unless_hopeless(self, states: u64) -> Confirm {
        let few = |e: &Exploration| states <= e.states as u64;
        let exploration =
            self.exploration.map(|e| Exploration { states: if few(&e) { e.states } else { 0 }, ..e });
        Confirm { exploration, ..self }
    }
}
