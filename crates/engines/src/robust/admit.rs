//! Checks robustness verdicts: the only place that makes a [`Robustness`].
//!
//! An engine's answer about an instrumented program is checked like any other answer (`check` in this crate): a trace is replayed, an invariant is
//! checked as a certificate, and an exploration is repeated on the reference semantics if the state space is small. Then the answer is translated to
//! the original program. A feasible attack needs a [`Witness`]; infeasible attacks are recorded with a [`Proof`].

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use fencewright_certify::{Certificate, Claim};
use fencewright_program::{EdgeId, Program, ThreadId};
use fencewright_transform::attack::{self, Instrumented, Notion};

use super::witness::{self, Witness};
use crate::check::{self, Checked, Confirm, Verdict};
use crate::task::{EngineName, Limits, Reason};

/// What is known about an attack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The attack succeeds in the execution of its witness.
    Feasible,
    /// The attack never succeeds.
    Infeasible,
    /// The attack is undecided, for this reason.
    Unknown(Reason),
    /// The attack was not examined, because another attack is feasible or a limit was reached.
    Unexamined,
}

/// An attack: a store and a load of the same thread. The attack succeeds if the store is delayed past the load and another thread notices.
#[derive(Clone, Debug)]
pub struct Attack {
    /// The thread that delays the store.
    pub thread: ThreadId,
    /// The edge of the delayed store.
    pub store: EdgeId,
    /// The edge of the load past which the store is delayed.
    pub load: EdgeId,
    /// What is known about the attack.
    pub verdict: Finding,
    /// An execution in which the attack succeeds, if it is feasible.
    pub witness: Option<Witness>,
    /// The thread's edges from the store to the load in the execution of the witness, in program order; empty without a witness.
    pub path: Vec<EdgeId>,
}

/// The evidence for a verdict about robustness.
#[derive(Clone, Debug)]
pub enum Evidence {
    /// The witness of an attack (see [`Robustness::witness`]).
    Witness,
    /// Proofs that together show that every attack fails. The list is empty if there is no attack to examine.
    Proofs(Vec<Proof>),
    /// There is no verdict.
    None,
}

/// A proof that some attacks fail.
#[derive(Clone, Debug)]
pub struct Proof {
    /// The attacks that fail, as a range of indices in the list of all attacks.
    pub attacks: Range<usize>,
    /// A certificate of the program instrumented with these attacks, or an exploration of it.
    pub evidence: check::Evidence,
}

/// A checked verdict about robustness, with its evidence.
#[derive(Clone, Debug)]
pub struct Robustness {
    /// Robustness, or freedom from triangular races.
    pub notion: Notion,
    robust: Result<bool, Reason>,
    evidence: Evidence,
    attacks: Vec<Attack>,
    /// The reason why there is no certificate, if one was requested and not found.
    pub uncertified: Option<Reason>,
    /// The instrumented program that was searched, or the last of several such programs; `None` if none was searched.
    pub instrumented: Option<Instrumented>,
    /// The engine that gave the answer.
    pub engine: EngineName,
    /// The duration of the analysis in seconds.
    pub seconds: f64,
    /// The part of that duration, in seconds, that was spent on confirming answers.
    pub check_seconds: f64,
    /// The number of states stored, in all searches together.
    pub states: u64,
    /// Peak memory of the largest search, in bytes.
    pub bytes: u64,
}

impl Robustness {
    /// Whether the program is robust, or free of triangular races, depending on the notion; or the reason why that is undecided.
    pub fn robust(&self) -> Result<bool, &Reason> {
        self.robust.as_ref().copied()
    }

    /// The evidence for the verdict.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// The attacks that the program text does not rule out; if there are too many, only some of them, and the program is never found robust. For
    /// several threads with the same code, only the attacks of the first one are listed, unless all attacks were requested.
    pub fn attacks(&self) -> &[Attack] {
        &self.attacks
    }

    /// The first attack with a witness; `None` if no attack is known to be feasible.
    pub fn witness(&self) -> Option<(&Attack, &Witness)> {
        self.attacks.iter().find_map(|a| a.witness.as_ref().map(|w| (a, w)))
    }

    /// True if the witness was replayed and has a cycle or a triangular race, or if each proof is an accepted certificate or an exploration that was
    /// repeated on the reference semantics; false if the verdict was not checked independently of the engine; `None` if there is no verdict.
    pub fn checked(&self) -> Option<bool> {
        match &self.evidence {
            Evidence::Witness => Some(true),
            Evidence::Proofs(proofs) => Some(proofs.iter().all(|p| p.evidence.checked() == Some(true))),
            Evidence::None => None,
        }
    }

    /// The certificate that the program is robust, if one was requested and found.
    pub fn certificate(&self) -> Option<&Certificate> {
        match &self.evidence {
            Evidence::Proofs(proofs) => proofs.iter().find_map(|p| {
                let certificate = p.evidence.certificate()?;
                matches!(certificate.claim, Claim::Robust { .. }).then_some(&**certificate)
            }),
            _ => None,
        }
    }

    /// The certificates of all proofs; empty if some proof is not a certificate.
    pub fn certificates(&self) -> Vec<&Arc<Certificate>> {
        let Evidence::Proofs(proofs) = &self.evidence else { return Vec::new() };
        proofs.iter().map(|p| p.evidence.certificate()).collect::<Option<_>>().unwrap_or_default()
    }
}

/// Collects the engines' results about attacks.
pub(super) struct Admission<'p> {
    program: &'p Program,
    found: Robustness,
    proofs: Vec<Proof>,
    unknown: Option<Reason>,
    /// The reason why there is no certificate, if one was requested and not found.
    uncertified: Option<Reason>,
}

impl<'p> Admission<'p> {
    /// Starts with all attacks unexamined.
    pub fn new(program: &'p Program, notion: Notion, attacks: &[attack::Attack]) -> Self {
        let unexamined = |attack: &attack::Attack| Attack {
            thread: attack.thread,
            store: attack.store,
            load: attack.load,
            verdict: Finding::Unexamined,
            witness: None,
            path: Vec::new(),
        };
        let found = Robustness {
            notion,
            robust: Ok(true),
            evidence: Evidence::None,
            attacks: attacks.iter().map(unexamined).collect(),
            uncertified: None,
            instrumented: None,
            engine: EngineName::Robust,
            seconds: 0.0,
            check_seconds: 0.0,
            states: 0,
            bytes: 0,
        };
        Admission { program, found, proofs: Vec::new(), unknown: None, uncertified: None }
    }

    /// Whether some attack is known to succeed.
    pub fn has_witness(&self) -> bool {
        self.found.witness().is_some()
    }

    /// Whether every attack is known to fail.
    pub fn is_robust(&self) -> bool {
        self.unknown.is_none() && !self.has_witness()
    }

    /// Records a certificate that every attack fails, or the reason why there is none. The certificate replaces earlier proofs.
    pub fn admit_certificate(
        &mut self,
        found: Result<Arc<Certificate>, Reason>,
        limits: &Limits,
        confirm: Confirm,
    ) {
        let start = Instant::now();
        match found.and_then(|certificate| check::accepted(&certificate, self.program, limits, confirm)) {
            Ok(evidence) => {
                self.proofs = vec![Proof { attacks: 0..self.found.attacks.len(), evidence }];
            }
            Err(reason @ Reason::Contradiction(_)) => self.give_up(reason),
            Err(reason) => self.uncertified = Some(reason),
        }
        self.found.check_seconds += start.elapsed().as_secs_f64();
    }

    /// Records the reason why some attack remains undecided. Only the first such reason is reported.
    pub fn give_up(&mut self, reason: Reason) {
        self.unknown.get_or_insert(reason);
    }

    /// Records the reason why these attacks remain undecided, and discards earlier results about them.
    pub fn give_up_attacks(&mut self, attacks: Range<usize>, reason: Reason) {
        for attack in &mut self.found.attacks[attacks] {
            attack.verdict = Finding::Unknown(reason.clone());
            attack.witness = None;
            attack.path.clear();
        }
        self.give_up(reason);
    }

    /// Records a checked result about a program that is instrumented with the attacks from index `first` on. The checked property states that the
    /// attacks in `attacks` fail.
    pub fn admit(
        &mut self,
        instrumented: &Instrumented,
        first: usize,
        attacks: Range<usize>,
        checked: &Checked,
    ) {
        let found = &mut self.found;
        found.engine = checked.engine;
        found.check_seconds += checked.check_seconds;
        match (checked.verdict(), checked.trace()) {
            (Verdict::Safe, _) => {
                let concerned = found.attacks[attacks.clone()].iter_mut();
                concerned.for_each(|attack| attack.verdict = Finding::Infeasible);
                self.proofs.push(Proof { attacks, evidence: checked.evidence().clone() });
            }
            (Verdict::Unknown(reason), _) => self.give_up_attacks(attacks, reason.clone()),
            (Verdict::Unsafe, None) => {
                let what = "an attack without an execution that shows it";
                self.give_up_attacks(attacks, Reason::Contradiction(what.into()));
            }
            (Verdict::Unsafe, Some(trace)) => {
                match witness::from_instrumented(self.program, found.notion, instrumented, trace) {
                    Ok(shown) => {
                        let attack = &mut found.attacks[first + shown.attack];
                        attack.verdict = Finding::Feasible;
                        attack.path = shown.path;
                        attack.witness = Some(shown.witness);
                    }
                    Err(reason) => self.give_up_attacks(attacks, reason),
                }
            }
        }
    }

    /// Adds the cost of a search, and keeps the program that was searched.
    pub fn searched(&mut self, instrumented: Instrumented, states: u64, bytes: u64) {
        self.found.states += states;
        self.found.bytes = self.found.bytes.max(bytes);
        self.found.instrumented = Some(instrumented);
    }

    /// The verdict of an analysis that began at `start`. With `all`, the attacks of the first of several threads with the same code are copied to the
    /// others.
    pub fn finish(self, all: bool, start: Instant) -> Robustness {
        let Admission { program, mut found, proofs, unknown, uncertified } = self;
        found.uncertified = uncertified;
        (found.robust, found.evidence) = match unknown {
            _ if found.witness().is_some() => (Ok(false), Evidence::Witness),
            Some(reason) => (Err(reason), Evidence::None),
            None => (Ok(true), Evidence::Proofs(proofs)),
        };
        if all {
            found.repeat_for_alike(program);
        }
        Robustness { seconds: start.elapsed().as_secs_f64(), ..found }
    }
}

impl Robustness {
    /// Copies the attacks of the first of several threads with the same code to the others, with the threads exchanged in the witnesses.
    fn repeat_for_alike(&mut self, program: &Program) {
        let first: Vec<Attack> = self.attacks.clone();
        for (t, thread) in program.threads() {
            let like = program.threads().take(t.index()).find(|(_, earlier)| earlier.is_like(thread));
            let Some((original, _)) = like else { continue };
            for attack in first.iter().filter(|a| a.thread == original) {
                let swapped = attack
                    .witness
                    .as_ref()
                    .map(|w| witness::checked(program, self.notion, w.trace_with_exchanged(original, t)));
                let mut repeated = Attack { thread: t, ..attack.clone() };
                match swapped.transpose() {
                    Ok(witness) => repeated.witness = witness,
                    Err(reason) => repeated.verdict = Finding::Unknown(reason),
                }
                self.attacks.push(repeated);
            }
        }
    }
}
