//! The abstract domains: representations of the integer cells of a machine.
//!
//! A domain does not depend on control states: it receives the cells that are live before and after a step, and the commands in between. The machine
//! tells it the contents of each cell ([`Contents`]); a domain does not depend on the numbering of cells.
//!
//! A summary cell stands for several values ([`Cells`](fencewright_memory::Cells) defines the effect of commands on it). A valuation gives such a
//! cell a set of values, and a *choice* picks one value for each summary cell. A state represents those valuations all of whose choices satisfy its
//! cube. `post` must respect that: for every such valuation and every way to take the step, there is *one* resulting state that all choices after the
//! step satisfy.

pub mod bounds;
mod choice;
pub mod concrete;
pub mod order;
pub mod predicates;
pub mod residues;
pub mod zones;

use fencewright_memory::linear::Cube;
use fencewright_memory::{CellId, Command, Contents, Linear};
use fencewright_verdict::Reason;

pub use choice::{Choice, WithDomain, with_domain};

pub use fencewright_verdict::DomainName;

/// The cells that are live in a control state, sorted.
pub type Live = [CellId];

/// An abstract domain. A state represents a set of valuations of the live cells; operations may over-approximate the exact result.
pub trait Domain: Sized + 'static {
    /// A representation of a set of valuations of the live cells.
    type State: Clone + Eq + std::hash::Hash + Send;
    /// The commands of a step, prepared for the cells that are live before and after it.
    type Transition: Send;

    /// Passes the contents of the machine's cells to the domain, before the first transition is prepared. Few domains need it.
    fn attach(&mut self, _contents: &[Contents]) {}

    /// Whether the domain supports this many live cells: it can represent them, and a single step takes acceptable time. The error says why
    /// not.
    fn fits(&self, cells: usize) -> Result<(), String> {
        const MOST: usize = 300;
        match cells <= MOST {
            true => Ok(()),
            false => Err(format!("{cells} cells matter at once, too many to know their differences")),
        }
    }

    /// The only state without live cells.
    fn blank(&self) -> Self::State;

    /// Prepares the commands of a step.
    fn transition(&self, before: &Live, commands: &[Command], after: &Live) -> Self::Transition;

    /// The abstract post. Adds states to `out` whose union covers the valuations after the step, each with the number of the branch through the
    /// commands ([`fencewright_memory::linear::ways`]) that leads to it. An impossible step adds no states. The error says that some valuations
    /// cannot be represented; `out` then has states for the other valuations.
    fn post(
        &mut self,
        transition: &Self::Transition,
        state: &Self::State,
        out: &mut Vec<(u32, Self::State)>,
    ) -> Result<(), Reason>;

    /// The state that is stored for the result of a step (widening). Except in domain `concrete`, there are finitely many such states for given
    /// cells, so the search terminates.
    fn stored(&self, state: &Self::State) -> Self::State;

    /// Whether every valuation of `smaller` (the result of a step) is also one of `larger` (a stored state). Every state is covered by the state
    /// stored for it, and covering is transitive.
    fn covers(&self, larger: &Self::State, smaller: &Self::State) -> bool;

    /// Whether each state covers only itself.
    fn is_discrete(&self) -> bool {
        false
    }

    /// Whether `post` returns the number of the branch; if not, the numbers are meaningless.
    fn tells_branches(&self) -> bool {
        true
    }

    /// Whether a state can constrain the values of summary cells ([`Cells`](fencewright_memory::Cells)); if not, they are never live.
    fn keeps_summaries(&self) -> bool {
        true
    }

    /// Estimated memory use of a state, in bytes.
    fn size(&self, state: &Self::State) -> usize;

    /// The state as a conjunction of constraints on the live cells, for certificates.
    fn cube(&self, live: &Live, state: &Self::State) -> Cube;

    /// Whether the cubes of the states explored so far are a checkable certificate. The checker supports linear arithmetic only.
    fn is_checkable(&self) -> bool {
        true
    }

    /// The current precision in a few words, such as the clip constant of zones; `None` if the domain is never refined.
    fn describe(&self) -> Option<String> {
        None
    }

    /// A refinement of the domain that is to exclude a spurious path. The error says why there is none.
    fn refine(&self, path: &mut dyn SpuriousPath<Self>) -> Result<Self, String>;

    /// The message about a spurious path that no refinement excludes.
    fn doubt(&self) -> &'static str;

    /// The number of predicates, for predicate abstraction; otherwise 0.
    fn predicates(&self) -> usize {
        0
    }
}

/// The given cells without those that a domain does not represent: summary cells, if the domain cannot constrain their values.
pub(crate) fn kept<D: Domain>(domain: &D, contents: &[Contents], mut cells: Vec<CellId>) -> Vec<CellId> {
    if !domain.keeps_summaries() {
        cells.retain(|&cell| !matches!(contents[cell as usize], Contents::Summary(_)));
    }
    cells
}

/// A spurious path found by a search, as seen by a domain.
pub trait SpuriousPath<D> {
    /// Whether the path is feasible, as far as another domain can tell.
    fn is_feasible(&mut self, domain: &mut D) -> bool;

    /// Interpolants: constraints along the path that together prove that it is infeasible over the integers; `None` if the solver found none.
    fn interpolants(&mut self) -> Option<Vec<Linear>>;

    /// The sums of variables that the path depends on: the sums in the conditions at the end of the path and in its assumptions, rewritten backward
    /// to each earlier point.
    fn sums(&mut self) -> Vec<Linear> {
        Vec::new()
    }
}
