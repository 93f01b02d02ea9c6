//! The checker: accepts a certificate only if it proves what it claims.
//!
//! What has to be shown follows from the claim and the program that is given, whatever program the certificate was made for. Each part of it is shown by one inductive invariant of the
//! certificate, which [`inductive`] checks.

use std::fmt;

use fencewright_program::{Program, Property};
use fencewright_proof::{Refuter, Stop};

use crate::certificate::{Certificate, Claim, FORMAT, VERSION};
use crate::inductive;

/// Why a certificate is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// It is not a certificate this checker knows.
    Format(String),
    /// It is about a property that the program does not have, or that no certificate of this kind can show.
    Property(String),
    /// Its threads cannot be exchanged as it says.
    Symmetry(String),
    /// It has another number of proofs than its claim takes.
    Proofs {
        /// How many there are.
        found: usize,
        /// How many there should be.
        needed: usize,
    },
    /// It has a control state that no machine of this program has, or has it twice, or a cell that does not exist.
    State(usize),
    /// It does not cover the start.
    Start,
    /// A step leads out of it.
    Step(usize, String),
    /// A forbidden state is in it.
    Forbidden(usize, String),
    /// The checker was asked to stop.
    Stopped,
    /// A step from this state takes numbers beyond what the checker computes with.
    Numbers(usize, String),
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::Format(what) => write!(f, "not a certificate: {what}"),
            Rejection::Property(name) => write!(f, "the certificate cannot be about the property `{name}`"),
            Rejection::Symmetry(why) => write!(f, "threads of the certificate cannot be exchanged: {why}"),
            Rejection::Proofs { found, needed } => {
                write!(f, "the certificate has {found} proofs, its claim takes {needed}")
            }
            Rejection::State(n) => write!(f, "state {n} of the certificate is not a state of the machine"),
            Rejection::Start => write!(f, "the initial state is not covered"),
            Rejection::Step(n, step) => write!(f, "state {n} of the certificate is left by {step}"),
            Rejection::Forbidden(n, name) => write!(f, "state {n} of the certificate violates `{name}`"),
            Rejection::Stopped => write!(f, "stopped"),
            Rejection::Numbers(n, step) => {
                write!(f, "state {n} of the certificate: {step} takes numbers beyond 64 bits")
            }
        }
    }
}

/// What was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Control states.
    pub controls: usize,
    /// Cubes of all invariants.
    pub cubes: usize,
    /// Steps of the machine.
    pub steps: usize,
}

/// Checks a certificate against a program, on all cores. The refuter is asked for proofs of what follows from an invariant,
/// and `stop` now and then whether to give up.
pub fn check(
    certificate: &Certificate,
    program: &Program,
    refuter: &dyn Refuter,
    stop: &Stop,
) -> Result<Accepted, Rejection> {
    if certificate.format != FORMAT || certificate.version != VERSION {
        let what = format!("format `{}` version {}", certificate.format, certificate.version);
        return Err(Rejection::Format(what));
    }
    match (&certificate.claim, &certificate.proofs[..]) {
        (Claim::Safe { properties }, [proof]) => {
            inductive::check(proof, program, &named(program, properties)?, refuter, stop)
        }
        (Claim::Safe { .. }, proofs) => Err(Rejection::Proofs { found: proofs.len(), needed: 1 }),
    }
}

/// The properties of a program with these names, of which there must be one.
fn named(program: &Program, names: &[String]) -> Result<Vec<Property>, Rejection> {
    if names.is_empty() {
        return Err(Rejection::Format("it is about no property".into()));
    }
    let find = |name: &String| {
        let found = program.properties.iter().find(|p| p.name == *name);
        found.cloned().ok_or_else(|| Rejection::Property(name.clone()))
    };
    names.iter().map(find).collect()
}
