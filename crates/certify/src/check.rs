//! The checker: accepts a certificate only if it proves what it claims.
//!
//! The proof obligations follow from the claim and the given program, whatever program the certificate was made for. Each obligation is discharged by
//! one proof of the certificate: an inductive invariant, which `inductive` checks, or a set of states, which `states` checks. All claims except
//! `Safe` and `Unsatisfied` lead to obligations about other programs, which crate `transform` makes from the given one: trusting such a certificate
//! includes trusting these transformations. The only parameters of a transformation that come from the certificate are the paths of a lazy claim and
//! the threads of slices; neither is trusted.

use std::fmt;

use fencewright_program::{EdgeId, MemoryModel, Program, Property, PropertyKind, Quantifier, ThreadId};
use fencewright_proof::{Refuter, Stop};
use fencewright_transform::attack::{self, Notion};
use fencewright_transform::extend::{self, AttackingStore, Conclusion, Extended};
use fencewright_transform::narrow::narrowed;
use fencewright_transform::slice::{Slice, concerns};

use crate::certificate::{Certificate, Claim, Extension, FORMAT, NotionName, Part, Proof, VERSION};
use crate::{inductive, states};

/// The reason why a certificate is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The certificate is malformed, or has a form that this checker does not know.
    Format(String),
    /// The certificate is about a property that the program does not have, or that no certificate of this kind can show.
    Property(String),
    /// The families or classes of the certificate contain threads that cannot be exchanged, or slices that should be equal up to names are not.
    Symmetry(String),
    /// A reduction that the certificate states, or the omission of threads from a slice, is not justified; the text gives the reason.
    Reduction(String),
    /// What the certificate declares about versions does not fit the program; the text gives the reason. For example, the program depends on more
    /// than the order of a declared version, or a number that is not declared would have to be a version too.
    Versions(String),
    /// The program cannot be transformed as the claim requires.
    Transformation(String),
    /// The proof with this index is wrong, for the given reason; used if the certificate has several proofs.
    Proof(usize, Box<Rejection>),
    /// The state with this index is not a state of the machine, occurs twice, has an odd version, or has constraints that are not in normal form,
    /// for example because they mention a cell that does not exist.
    State(usize),
    /// The proof does not cover all initial states.
    Start,
    /// A step, described in words, from the state with this index leads outside the proof.
    Step(usize, String),
    /// The state with this index violates the named property.
    Forbidden(usize, String),
    /// The checker found no mistake, but could not verify the certificate either.
    Undecided(Undecided),
}

/// The reason why the checker could not decide whether a certificate is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// The caller's `stop` returned true.
    Stopped,
    /// A part of the input, described in words, is too large for the checker.
    TooLarge(String),
    /// A condition of the state with this index, described in words, has neither a proof nor a counterexample.
    Hard(usize, String),
}

/// The rejection after a cancellation or a deadline.
pub(crate) const STOPPED: Rejection = Rejection::Undecided(Undecided::Stopped);

pub(crate) fn too_large(what: String) -> Rejection {
    Rejection::Undecided(Undecided::TooLarge(what))
}

pub(crate) fn hard(state: usize, what: String) -> Rejection {
    Rejection::Undecided(Undecided::Hard(state, what))
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::Format(what) => write!(f, "not a certificate: {what}"),
            Rejection::Property(name) => write!(f, "the certificate cannot be about the property `{name}`"),
            Rejection::Symmetry(why) => write!(f, "threads of the certificate cannot be exchanged: {why}"),
            Rejection::Reduction(why) => write!(f, "the certificate leaves out what may matter: {why}"),
            Rejection::Versions(why) => write!(f, "more than the order of versions may matter: {why}"),
            Rejection::Transformation(what) => {
                write!(f, "the program cannot be transformed: {what} is not supported")
            }
            Rejection::Proof(n, why) => write!(f, "proof {n}: {why}"),
            Rejection::State(n) => write!(f, "state {n} of the certificate is not a state of the machine"),
            Rejection::Start => write!(f, "the initial state is not covered"),
            Rejection::Step(n, step) => write!(f, "state {n} of the certificate is left by {step}"),
            Rejection::Forbidden(n, name) => write!(f, "state {n} of the certificate violates `{name}`"),
            Rejection::Undecided(why) => write!(f, "{why}"),
        }
    }
}

impl fmt::Display for Undecided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undecided::Stopped => write!(f, "stopped"),
            Undecided::TooLarge(what) => write!(f, "too large for the checker: {what}"),
            Undecided::Hard(n, what) => write!(f, "state {n} of the certificate: {what}"),
        }
    }
}

/// Statistics of a successful check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Number of states in all sets of states.
    pub states: usize,
    /// Number of control states in all invariants.
    pub controls: usize,
    /// Number of cubes in all invariants.
    pub cubes: usize,
    /// Number of steps checked: successor states in proofs by sets of states, and steps of control states in proofs by invariants.
    pub steps: usize,
}

/// Checks a certificate against a program, on all cores. The refuter supplies proofs of entailments, which are verified here; `stop` is polled
/// regularly.
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
    let mut proofs =
        Proofs { all: &certificate.proofs, used: 0, accepted: Accepted::default(), refuter, stop };
    proofs.shows(program, &certificate.claim)?;
    match proofs.used == certificate.proofs.len() {
        true => Ok(proofs.accepted),
        false => Err(Rejection::Format("it has more proofs than its claim takes".into())),
    }
}

/// The proofs of a certificate, used one after the other; each discharges one obligation.
struct Proofs<'a> {
    all: &'a [Proof],
    used: usize,
    accepted: Accepted,
    refuter: &'a dyn Refuter,
    stop: &'a Stop,
}

impl Proofs<'_> {
    /// Checks that the next proofs show a claim about a program.
    fn shows(&mut self, program: &Program, claim: &Claim) -> Result<(), Rejection> {
        match claim {
            Claim::Safe { properties } => self.safe(program, &named(program, properties)?),
            Claim::Unsatisfied { properties } => {
                self.safe(program, &unsatisfied(named(program, properties)?)?)
            }
            Claim::Robust { notion: NotionName::HappensBefore } => {
                self.robust(program, Notion::HappensBefore)
            }
            Claim::Robust { notion: NotionName::Triangular } => self.robust(program, Notion::Triangular),
            Claim::Lazy { properties, extensions } => self.lazy(program, properties, extensions),
            Claim::Reordered { tso } => {
                let reordered = Extended::reordered(program).map_err(refused)?;
                match tso.model(&self.all[self.used..]) {
                    Some(MemoryModel::Tso) if !matches!(**tso, Claim::Robust { .. }) => {
                        self.shows(&reordered.program, tso)
                    }
                    _ => Err(Rejection::Format("what it says about tso is not about tso".into())),
                }
            }
            Claim::Sliced { properties, parts } => self.sliced(program, properties, parts),
            Claim::Narrowed { fewer } => {
                let narrowed = narrowed(program);
                let narrowed =
                    narrowed.ok_or_else(|| Rejection::Transformation("none of its choices".into()))?;
                match **fewer {
                    Claim::Robust { .. } => Err(Rejection::Format("it is not about properties".into())),
                    _ => self.shows(&narrowed, fewer),
                }
            }
        }
    }

    /// Checks that the next proofs show the properties for slices, and that the slices cover all concerns of the properties. The certificate only
    /// proposes the threads to keep: whether the other threads are irrelevant is computed here.
    fn sliced(&mut self, program: &Program, names: &[String], parts: &[Part]) -> Result<(), Rejection> {
        let concerns: Option<Vec<_>> = named(program, names)?.iter().map(|p| concerns(program, p)).collect();
        let concerns = concerns.ok_or_else(|| Rejection::Property(names.join(", ")))?;
        let mut covered: Vec<Vec<bool>> = concerns.iter().map(|of| vec![false; of.len()]).collect();
        let mut models = Vec::new();
        for Part { slices, claim } in parts {
            models.push(claim.model(&self.all[self.used..]));
            let mut first: Option<Slice> = None;
            for threads in slices {
                if (self.stop)() {
                    return Err(STOPPED);
                }
                let threads: Vec<ThreadId> = threads.iter().map(|&thread| ThreadId(thread)).collect();
                let slice = Slice::new(program, &threads).map_err(Rejection::Reduction)?;
                match &first {
                    None => self.shows(&slice.program, claim)?,
                    Some(first) if first.is_like(&slice, names) => {}
                    Some(_) => return Err(Rejection::Symmetry("two slices differ".into())),
                }
                let shown = (0..names.len()).filter(|&n| claim.properties().contains(&names[n]));
                for n in shown {
                    let now = concerns[n].iter().map(|concern| slice.covers(concern));
                    covered[n].iter_mut().zip(now).for_each(|(covered, now)| *covered |= now);
                }
                first.get_or_insert(slice);
            }
        }
        if models.windows(2).any(|pair| pair[0] != pair[1]) {
            return Err(Rejection::Format("its parts are about different memory models".into()));
        }
        let open = covered.iter().position(|covered| covered.contains(&false));
        open.map_or(Ok(()), |n| Err(Rejection::Reduction(format!("no slice shows all of `{}`", names[n]))))
    }

    /// Checks that the next proof shows these properties of a program, under the memory model of its machine.
    fn safe(&mut self, program: &Program, properties: &[Property]) -> Result<(), Rejection> {
        let fewer = || Rejection::Format("it has fewer proofs than its claim takes".into());
        let proof = self.all.get(self.used).ok_or_else(fewer)?;
        let accepted = match proof {
            Proof::Invariant(invariant) => {
                inductive::check(invariant, program, properties, self.refuter, self.stop)
            }
            Proof::States(set) => states::check(set, program, properties, self.stop),
        };
        let accepted = accepted.map_err(|rejection| match rejection {
            Rejection::Undecided(_) => rejection,
            rejection if self.all.len() == 1 => rejection,
            rejection => Rejection::Proof(self.used, Box::new(rejection)),
        })?;
        self.used += 1;
        self.accepted.states += accepted.states;
        self.accepted.controls += accepted.controls;
        self.accepted.cubes += accepted.cubes;
        self.accepted.steps += accepted.steps;
        Ok(())
    }

    /// Checks that the next proof shows these properties of a program under SC.
    fn safe_under_sc(&mut self, program: &Program, properties: &[Property]) -> Result<(), Rejection> {
        match self.all.get(self.used) {
            Some(proof) if proof.model() != MemoryModel::Sc => {
                Err(Rejection::Format(format!("proof {} is not about sc", self.used)))
            }
            _ => self.safe(program, properties),
        }
    }

    /// Checks that the next proofs show that a program is robust. Which attacks have to fail is computed from the program alone.
    fn robust(&mut self, program: &Program, notion: Notion) -> Result<(), Rejection> {
        let unsupported = |attack::Unsupported(what, _)| Rejection::Transformation(what);
        attack::unsupported(program).map_or(Ok(()), |why| Err(unsupported(why)))?;
        let stop = &**self.stop;
        let attacks = attack::candidates(program, notion, stop).ok_or(STOPPED)?;
        if attacks.len() > attack::MOST_ATTACKS {
            return Err(too_large("so many pairs of a store and a load".into()));
        }
        for batch in attack::batches(program, &attacks, attack::MOST_EDGES) {
            let instrumented = attack::instrument(program, notion, &attacks[batch], stop);
            let instrumented = instrumented.map_err(unsupported)?.ok_or(STOPPED)?.program;
            self.safe_under_sc(&instrumented, &named(&instrumented, &[attack::ROBUST.into()])?)?;
        }
        Ok(())
    }

    /// Checks that the next proofs show these properties under TSO (THESIS16 Algorithm 3.1). The paths need not be trusted: whatever they are, the
    /// program extended by them has all TSO executions of the program.
    fn lazy(
        &mut self,
        program: &Program,
        names: &[String],
        extensions: &[Extension],
    ) -> Result<(), Rejection> {
        let mut extended = Extended::new(program).map_err(refused)?;
        for Extension { thread, paths } in extensions {
            if (self.stop)() {
                return Err(STOPPED);
            }
            if *thread as usize >= program.threads.len() {
                return Err(Rejection::Format(format!("there is no thread {thread}")));
            }
            let paths: Vec<Vec<EdgeId>> =
                paths.iter().map(|path| path.iter().map(|&edge| EdgeId(edge)).collect()).collect();
            let extension = extended.extend(ThreadId(*thread), &paths, AttackingStore::Removed);
            extended = extension.map_err(refused)?;
        }
        let mut under_lock = Vec::new();
        for property in named(program, names)? {
            match extended.conclusion(&property) {
                Conclusion::Certain => {}
                Conclusion::IfReleased => under_lock.push(property.name),
                Conclusion::PendingStores | Conclusion::BlockedByLock => {
                    return Err(Rejection::Property(property.name));
                }
            }
        }
        self.safe_under_sc(&extended.program, &named(&extended.program, names)?)?;
        self.robust(&extended.program, Notion::HappensBefore)?;
        if !under_lock.is_empty() {
            let released = extended.released();
            self.safe_under_sc(&released.program, &named(&released.program, &under_lock)?)?;
            self.robust(&released.program, Notion::HappensBefore)?;
        }
        Ok(())
    }
}

fn refused(refused: extend::Refused) -> Rejection {
    Rejection::Transformation(refused.to_string())
}

/// The properties with these names; an error if the list is empty, or a name is unknown or occurs twice.
fn named(program: &Program, names: &[String]) -> Result<Vec<Property>, Rejection> {
    if names.is_empty() {
        return Err(Rejection::Format("it is about no property".into()));
    }
    if let Some(twice) = (1..names.len()).find(|&n| names[..n].contains(&names[n])) {
        return Err(Rejection::Format(format!("it names the property `{}` twice", names[twice])));
    }
    let find = |name: &String| property(program, name).ok_or_else(|| Rejection::Property(name.clone()));
    names.iter().map(find).collect()
}

/// The property that a certificate refers to by this name. Freedom from deadlock can be checked for every program, even if the program does not
/// declare it.
pub fn property(program: &Program, name: &str) -> Option<Property> {
    let own = program.properties.iter().find(|p| p.name == name).cloned();
    own.or_else(|| Some(Property::deadlock()).filter(|deadlock| deadlock.name == name))
}

/// The properties to prove in order to show that these `finally exists` do not hold: no final state satisfies the formula.
fn unsatisfied(properties: Vec<Property>) -> Result<Vec<Property>, Rejection> {
    let never = |property: Property| match property.kind {
        PropertyKind::Finally(Quantifier::Exists, formula) => {
            Ok(Property { kind: PropertyKind::Finally(Quantifier::Never, formula), ..property })
        }
        _ => Err(Rejection::Property(property.name)),
    };
    properties.into_iter().map(never).collect()
}
