//! Selection of a domain by name: the only place that lists all domains.

use fencewright_verdict::{DomainName, Limits, Reason, Task};

use super::Domain;
use super::concrete::Concrete;
use super::order::{Relations, fragment};
use super::predicates::Predicates;
use super::residues::Moduli;
use super::zones::{Marks, Zones};
use crate::examine;

/// The domain to use, and its initial precision.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The domain; `None` means `order` where it is exact, and zones elsewhere.
    pub name: Option<DomainName>,
    /// The initial clip constant of zones; ignored by other domains.
    pub clip: i32,
    /// Whether the clip constant is never refined.
    pub clip_is_fixed: bool,
    /// Whether only the predicates that the source suggests are used.
    pub predicates_are_fixed: bool,
    /// Whether states are to be written as certificates. A certificate cannot express that two values differ, so `order` must then distinguish less
    /// from greater.
    pub certificates: bool,
}

/// A computation that is generic over the domain.
pub trait WithDomain {
    /// What the computation returns, with any domain.
    type Output;
    /// Runs the computation with the chosen domain.
    fn run<D: Domain>(self, domain: D) -> Self::Output;
}

/// Runs a computation with the chosen domain. The error says why that domain cannot represent the program, or which limit was reached.
pub fn with_domain<W: WithDomain>(
    choice: Choice,
    task: &Task<'_>,
    limits: &Limits,
    with: W,
) -> Result<W::Output, Reason> {
    let name = match choice.name {
        None | Some(DomainName::Order) => {
            let least = if choice.certificates { Relations::Order } else { Relations::Equality };
            match fragment(task.program, &task.properties, least, limits) {
                Ok(order) => return Ok(with.run(order)),
                Err(reason) if choice.name.is_some() || limits.exceeded(0).is_some() => return Err(reason),
                // No other domain represents reals.
                Err(reason) if task.program.has_real_choices() => return Err(reason),
                Err(_) => DomainName::Zones,
            }
        }
        Some(name) => name,
    };
    if task.program.has_real_choices() {
        return Err(Reason::Unsupported("programs that choose real numbers need domain order".into(), None));
    }
    Ok(match name {
        DomainName::Predicates => {
            let fixed = choice.predicates_are_fixed;
            with.run(Predicates::new(examine::hints(task), fixed, limits.budget()))
        }
        DomainName::Concrete => with.run(Concrete::new()),
        DomainName::Zones | DomainName::Order => {
            let moduli = Moduli::new(task.program, &task.properties, limits)?;
            let zones = Zones::new(choice.clip, choice.clip_is_fixed).with_residues(moduli);
            with.run(zones.with_marks(Marks::new(task.program)))
        }
    })
}
