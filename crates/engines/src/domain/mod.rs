//! Domains: how the integer cells of a machine are represented.
//!
//! A domain never looks at control: it is given the cells that matter before and after a step, and the commands in between.
//!
//! Summary cells stand for several values each ([`Cells`](fencewright_memory::Cells) says what commands do with them). With them, a state stands for those valuations all of whose
//! choices, of one value for each summary cell, satisfy its cube. `post` must respect that: for every such valuation and every way to
//! take the step there is *one* resulting state that all choices after the step satisfy.

mod bounds;
pub mod order;
pub mod predicates;
pub mod zones;

use fencewright_memory::linear::Cube;
use fencewright_memory::{CellId, Command};

/// The domains that one can ask for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DomainName {
    /// Difference bounds, clipped at a constant.
    Zones,
    /// Conjunctions of predicates from interpolants.
    Predicates,
    /// How values compare.
    Order,
}

/// The cells that matter in a control state, sorted.
pub type Live = [CellId];

/// A representation of the contents of cells. A state stands for a set of valuations of the live cells; every operation may
/// make it larger, never smaller.
pub trait Domain: 'static {
    /// A set of valuations.
    type State: Clone + Eq + std::hash::Hash + Send;
    /// The commands of a step, prepared for the cells that matter before and after it.
    type Transition: Send;

    /// The state as a conjunction of constraints on the live cells.
    fn cube(&self, live: &Live, state: &Self::State) -> Cube;

    /// Prepares the commands of a step.
    fn transition(&self, before: &Live, commands: &[Command], after: &Live) -> Self::Transition;

    /// The state in which nothing is known about the live cells.
    fn anything(&self, live: &Live) -> Self::State;

    /// The valuations after the step, as states whose union covers them, each with the number of the way through the commands
    /// ([`fencewright_memory::linear::ways`]) that leads to it; none if the step is impossible.
    fn post(&mut self, transition: &Self::Transition, state: &Self::State, out: &mut Vec<(u32, Self::State)>);

    /// The state to store for one that a step led to: from a finite choice, so that a search ends.
    fn stored(&self, state: &Self::State) -> Self::State;

    /// Whether every valuation in `smaller` (as a step gave it) is one in `larger` (as it is stored).
    fn covers(&self, larger: &Self::State, smaller: &Self::State) -> bool;

    /// Whether a state covers no other than itself.
    fn is_discrete(&self) -> bool {
        false
    }

    /// Whether a state can say something about the values of summary cells ([`Cells`](fencewright_memory::Cells)); if not, they are never live.
    fn keeps_summaries(&self) -> bool {
        true
    }

    /// With more live cells than this a single step takes too long, or does not fit.
    fn most_cells(&self) -> usize {
        300
    }

    /// Roughly how many bytes a state takes.
    fn size(&self, state: &Self::State) -> usize;
}
