//! Finds certificates about transformed programs: for robustness, and for proofs under SC by engine `lazy`.
//!
//! The certificate checker defines which transformed programs must satisfy which properties under SC (`fencewright_certify::check`). For each of
//! these programs, a proof is searched for by several engines in turn: briefly by `cegar`, whose invariants are small; then by `explicit`, which
//! always succeeds on small finite state spaces; finally by `cegar` again for the remaining time.

use std::sync::Arc;
use std::time::Duration;

use fencewright_certify::certificate::{Extension, NotionName};
use fencewright_certify::{Certificate, Claim, Proof};
use fencewright_program::{MemoryModel, Program, Property};
use fencewright_transform::attack::{self, Notion};
use fencewright_transform::extend::{Conclusion, Extended};
use fencewright_verdict::fingerprint::fingerprint;

use crate::cegar::Cegar;
use crate::check::proof;
use crate::explicit::Explicit;
use crate::robust::unsupported;
use crate::task::{Answer, Engine, Limits, Progress, Reason, Task};

/// Finds the proofs of one certificate, and collects them.
pub struct Prover<'a> {
    cegar: &'a Cegar,
    limits: &'a Limits,
    progress: &'a Progress,
    proofs: Vec<Proof>,
}

impl<'a> Prover<'a> {
    /// A prover that uses `cegar` with this precision, and the explicit engine.
    pub fn new(cegar: &'a Cegar, limits: &'a Limits, progress: &'a Progress) -> Self {
        Prover { cegar, limits, progress, proofs: Vec::new() }
    }

    /// A certificate that a program is robust, or the reason why none was found.
    pub fn robust(mut self, program: &Program, notion: Notion) -> Result<Arc<Certificate>, Reason> {
        self.show_robust(program, notion)?;
        let notion = match notion {
            Notion::HappensBefore => NotionName::HappensBefore,
            Notion::Triangular => NotionName::Triangular,
        };
        Ok(self.certificate(program, Claim::Robust { notion }))
    }

    /// A certificate that a program satisfies these properties under TSO, or the reason why none was found. `extended` is the program extended by
    /// `extensions`.
    pub fn lazy(
        mut self,
        program: &Program,
        extended: &Extended,
        extensions: &[Extension],
        properties: &[&Property],
    ) -> Result<Arc<Certificate>, Reason> {
        self.show_safe(&extended.program, properties.iter().map(|p| extended.property(p)).collect())?;
        self.show_robust(&extended.program, Notion::HappensBefore)?;
        let released = properties.iter().filter(|p| extended.conclusion(p) == Conclusion::IfReleased);
        let released: Vec<&&Property> = released.collect();
        if !released.is_empty() {
            let variant = extended.released();
            self.show_safe(&variant.program, released.iter().map(|p| variant.property(p)).collect())?;
            self.show_robust(&variant.program, Notion::HappensBefore)?;
        }
        let properties = properties.iter().map(|p| p.name.clone()).collect();
        Ok(self.certificate(program, Claim::Lazy { properties, extensions: extensions.to_vec() }))
    }

    fn certificate(self, program: &Program, claim: Claim) -> Arc<Certificate> {
        Arc::new(Certificate::new(fingerprint(program), claim, self.proofs))
    }

    /// Finds a single proof that a program satisfies all these properties under SC.
    fn show_safe(&mut self, program: &Program, properties: Vec<Property>) -> Result<(), Reason> {
        let task = Task::new(program, MemoryModel::Sc, properties);
        let explicit = Explicit::default();
        let turns: [(&dyn Engine, Limits); 3] = [
            (self.cegar, self.limits.within(QUICK)),
            (&explicit, self.limits.within(LONGER)),
            (self.cegar, self.limits.clone()),
        ];
        let mut why = Reason::Cancelled;
        for (engine, limits) in turns {
            match one_proof(&task, engine.run(&task, &limits, self.progress).answers) {
                Ok(found) => {
                    self.proofs.push(found);
                    return Ok(());
                }
                Err(reason) => why = reason,
            }
            if let Some(reason) = self.limits.exceeded(0) {
                return Err(reason);
            }
        }
        Err(why)
    }

    /// Finds, for each batch of attacks, a proof that all attacks of the batch fail.
    fn show_robust(&mut self, program: &Program, notion: Notion) -> Result<(), Reason> {
        let limits = self.limits;
        let stop = || limits.exceeded(0).is_some();
        let why_stopped = || limits.exceeded(0).unwrap_or(Reason::Cancelled);
        if let Some(why) = attack::unsupported(program) {
            return Err(unsupported(why));
        }
        let attacks = attack::candidates(program, notion, &stop).ok_or_else(why_stopped)?;
        for batch in attack::batches(program, &attacks, attack::MOST_EDGES) {
            let instrumented = attack::instrument(program, notion, &attacks[batch], &stop);
            let instrumented = instrumented.map_err(unsupported)?.ok_or_else(why_stopped)?;
            let robust = instrumented.program.properties.iter().filter(|p| p.name == attack::ROBUST);
            self.show_safe(&instrumented.program, robust.cloned().collect())?;
        }
        Ok(())
    }
}

/// Time limit of the first attempt, by `cegar`.
const QUICK: Duration = Duration::from_secs(2);
/// Time limit of the second attempt, by `explicit`.
const LONGER: Duration = Duration::from_secs(8);

/// The single proof that all answers share, or the reason why there is none.
fn one_proof(task: &Task<'_>, answers: Vec<Answer>) -> Result<Proof, Reason> {
    let mut found: Option<Answer> = None;
    for answer in answers {
        match (&answer, &found) {
            (Answer::Unknown(reason), _) => return Err(reason.clone()),
            (Answer::Proved(new), Some(Answer::Proved(old))) if Arc::ptr_eq(new, old) => {}
            (Answer::Certified(new), Some(Answer::Certified(old))) if Arc::ptr_eq(new, old) => {}
            (Answer::Proved(_) | Answer::Certified(_), None) => found = Some(answer),
            _ => return Err(Reason::Unsupported("there is no proof of all properties".into(), None)),
        }
    }
    match found {
        Some(Answer::Proved(invariant)) => Ok(proof(task.program, &invariant)),
        Some(Answer::Certified(certificate)) if certificate.proofs.len() == 1 => {
            Ok(certificate.proofs[0].clone())
        }
        _ => Err(Reason::Unsupported("there is no proof of all properties".into(), None)),
    }
}
