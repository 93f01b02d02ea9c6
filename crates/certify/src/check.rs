//! The checker: accepts a certificate only if it proves what it claims.
//!
//! What has to be shown follows from the claim and the program that is given, whatever program the certificate was made for. Each part of it
//! is shown by one proof of the certificate: an inductive invariant, which `inductive` checks, or a set of states, which `states` checks.
//! Claims about robustness and claims by way of a stronger memory model are shown by proofs about other programs, which crate `transform`
//! makes from the given one: whoever believes such a certificate believes these transformations too. Nothing about them is taken from the
//! certificate but the paths of a lazy claim.

use std::fmt;

use fencewright_program::{EdgeId, MemoryModel, Program, Property, PropertyKind, Quantifier, ThreadId};
use fencewright_proof::{Refuter, Stop};
use fencewright_transform::attack::{self, Notion};
use fencewright_transform::extend::{self, AttackingStore, Conclusion, Extended};
use fencewright_transform::narrow::narrowed;
use fencewright_transform::slice::{Slice, concerns};

use crate::certificate::{Certificate, Claim, Extension, FORMAT, NotionName, Part, Proof, VERSION};
use crate::{inductive, states};

/// Why a certificate is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// It is not a certificate this checker knows.
    Format(String),
    /// It is about a property that the program does not have, or that no certificate of this kind can show.
    Property(String),
    /// Its threads cannot be exchanged as it says.
    Symmetry(String),
    /// What it leaves out may matter.
    Reduction(String),
    /// More than the order of what it calls versions may matter.
    Versions(String),
    /// The program cannot be transformed as the claim needs it.
    Transformation(String),
    /// One of several proofs is none.
    Proof(usize, Box<Rejection>),
    /// It has a control state that no machine of this program has, or has it twice, or a cell that does not exist.
    State(usize),
    /// It does not cover the start.
    Start,
    /// A step leads out of it.
    Step(usize, String),
    /// A forbidden state is in it.
    Forbidden(usize, String),
    /// Nothing is known to be wrong with it, but the checker cannot tell that it is right.
    Undecided(Undecided),
}

/// What keeps the checker from deciding whether a certificate is right: a limit of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// It was asked to stop.
    Stopped,
    /// It has more than the checker looks at.
    TooLarge(String),
    /// This about a state of it, in words, has neither a proof nor a counterexample.
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

/// What was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// States of sets of states.
    pub states: usize,
    /// Control states of invariants.
    pub controls: usize,
    /// Cubes of all invariants.
    pub cubes: usize,
    /// Steps.
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
    let mut proofs =
        Proofs { all: &certificate.proofs, used: 0, accepted: Accepted::default(), refuter, stop };
    proofs.shows(program, &certificate.claim)?;
    match proofs.used == certificate.proofs.len() {
        true => Ok(proofs.accepted),
        false => Err(Rejection::Format("it has more proofs than its claim takes".into())),
    }
}

/// The proofs of a certificate, each of which shows one thing.
struct Proofs<'a> {
    all: &'a [Proof],
    used: usize,
    accepted: Accepted,
    refuter: &'a dyn Refuter,
    stop: &'a Stop,
}

impl Proofs<'_> {
    /// The next proofs show a claim.
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

    /// The next proofs show that slices have what makes up these properties. Which threads are kept is only a hint: that the others do not
    /// matter is computed here.
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

    /// The next proof shows that a program has these properties, under the memory model of its machine.
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

    /// The next proof shows that a program has these properties under SC.
    fn safe_under_sc(&mut self, program: &Program, properties: &[Property]) -> Result<(), Rejection> {
        match self.all.get(self.used) {
            Some(proof) if proof.model() != MemoryModel::Sc => {
                Err(Rejection::Format(format!("proof {} is not about sc", self.used)))
            }
            _ => self.safe(program, properties),
        }
    }

    /// The next proofs show that a program is robust. Which attacks have to fail is computed here, from the program alone.
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

    /// The next proofs show that a program has these properties under TSO (THESIS16 Algorithm 3.1). The paths are only a hint: along whatever paths
    /// stores are delayed, the extended program has all TSO executions of the program.
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

/// The properties of a program with these names, of which there must be one.
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

/// The property of a program that a certificate calls by this name. One can ask every program for freedom from deadlock.
pub fn property(program: &Program, name: &str) -> Option<Property> {
    let own = program.properties.iter().find(|p| p.name == name).cloned();
    own.or_else(|| Some(Property::deadlock()).filter(|deadlock| deadlock.name == name))
}

/// What has to be shown so that these `finally exists` do not hold.
fn unsatisfied(properties: Vec<Property>) -> Result<Vec<Property>, Rejection> {
    let never = |property: Property| match property.kind {
        PropertyKind::Finally(Quantifier::Exists, formula) => {
            Ok(Property { kind: PropertyKind::Finally(Quantifier::Never, formula), ..property })
        }
        _ => Err(Rejection::Property(property.name)),
    };
    properties.into_iter().map(never).collect()
}
