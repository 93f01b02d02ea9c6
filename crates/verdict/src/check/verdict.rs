//! Verdicts, and what they stand on.

use std::sync::Arc;
use std::time::Duration;

use fencewright_certify::Certificate;
use fencewright_program::{Property, Replayed, Span};

use crate::task::{EngineName, Reason, Tried, Work};

/// What the tool says about a property.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It holds.
    Safe,
    /// It does not.
    Unsafe,
    /// It is not known whether it holds, for this reason.
    Unknown(Reason),
}

/// What a verdict stands on.
#[derive(Clone, Debug)]
pub enum Evidence {
    /// This execution, replayed on the reference semantics.
    Replayed(Replayed),
    /// A second exploration, on the reference semantics.
    Explored,
    /// This certificate, accepted by the checker.
    Certified(Arc<Certificate>),
    /// This certificate, which was not checked.
    Unchecked(Arc<Certificate>),
    /// The engine alone.
    Engine,
    /// There is no verdict.
    None,
}

/// A verdict that has gone through the door.
#[derive(Clone, Debug)]
pub struct Checked {
    pub(super) verdict: Verdict,
    pub(super) evidence: Evidence,
    /// The engine that gave the answer.
    pub engine: EngineName,
    /// Whether the violating execution, with every store reaching memory at once, is also a violation under SC: then no fence can help
    /// (FENCES12 s.7, case 1). If it is not, another violating execution may still be one.
    pub happens_under_sc: bool,
    /// The property.
    pub property: Property,
    /// How long the engine took.
    pub seconds: f64,
    /// How long confirming the answer took.
    pub check_seconds: f64,
    /// The figures of this engine alone.
    pub work: Work,
    /// What grew without end, if there is no verdict.
    pub growth: Vec<(String, Option<Span>)>,
    /// What was tried, engine by engine, if there is no verdict.
    pub tried: Vec<Tried>,
}

impl Checked {
    /// The verdict.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The execution that shows it, replayed.
    pub fn trace(&self) -> Option<&Replayed> {
        match &self.evidence {
            Evidence::Replayed(trace) => Some(trace),
            _ => None,
        }
    }

    /// What the verdict stands on.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// The certificate that shows it.
    pub fn certificate(&self) -> Option<&Certificate> {
        self.evidence.certificate().map(|certificate| &**certificate)
    }

    /// Whether something other than the engine confirms the verdict: see [`Evidence::checked`].
    pub fn checked(&self) -> Option<bool> {
        self.evidence.checked()
    }
}

impl Evidence {
    /// The certificate, if it is one.
    pub fn certificate(&self) -> Option<&Arc<Certificate>> {
        match self {
            Evidence::Certified(certificate) | Evidence::Unchecked(certificate) => Some(certificate),
            _ => None,
        }
    }

    /// True if the trace was replayed, the certificate accepted, or the reference semantics explored everything; false if the
    /// verdict stands on the engine alone; `None` if there is no verdict.
    pub fn checked(&self) -> Option<bool> {
        match self {
            Evidence::Replayed(_) | Evidence::Explored | Evidence::Certified(_) => Some(true),
            Evidence::Unchecked(_) | Evidence::Engine => Some(false),
            Evidence::None => None,
        }
    }
}

/// What comes of a run: its verdicts, and beside them what it took.
#[derive(Clone, Debug)]
pub struct Checks {
    /// The verdicts, in the order of the properties.
    pub verdicts: Vec<Checked>,
    /// What the whole run took.
    pub statistics: Work,
}

/// How much to do to confirm an answer that comes without a trace.
#[derive(Clone, Copy, Debug)]
pub struct Confirm {
    /// Whether certificates are checked.
    pub certificates: bool,
    /// How far the reference semantics is explored, if at all, for answers that come without a certificate.
    pub exploration: Option<Exploration>,
}

/// How far the reference semantics is explored. If the state space is larger, nothing is confirmed.
#[derive(Clone, Copy, Debug)]
pub struct Exploration {
    /// At most so many states.
    pub states: usize,
    /// At most for so long.
    pub time: Duration,
}

impl Default for Exploration {
    fn default() -> Self {
        Exploration { states: 20_000, time: Duration::from_secs(2) }
    }
}

impl Default for Confirm {
    fn default() -> Self {
        Confirm { certificates: true, exploration: Some(Exploration::default()) }
    }
}

impl Confirm {
    /// Nothing at all.
    pub const NOTHING: Confirm = Confirm { certificates: false, exploration: None };

    /// The same, but without an exploration that cannot succeed: the reference semantics has no reductions, so it reaches at least about as
    /// many states as an engine has stored.
    pub fn unless_hopeless(self, states: u64) -> Confirm {
        let exploration = self.exploration.filter(|e| states <= e.states as u64);
        Confirm { exploration, ..self }
    }
}
