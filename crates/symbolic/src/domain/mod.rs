//! Domains: how the integer cells of a machine are represented.
//!
//! A domain never looks at control: it is given the cells that are live before and after a step, and the commands in between. The machine
//! tells it what each cell contains ([`Contents`]); a domain does not depend on how cells are numbered.
//!
//! A summary cell stands for several values ([`Cells`](fencewright_memory::Cells) says what commands do with it). A valuation gives such a
//! cell a set of values, and a *choice* picks one value for each summary cell. A state stands for those valuations all of whose choices
//! satisfy its cube. `post` must respect that: for every such valuation and every way to take the step, there is *one* resulting state that
//! all choices after the step satisfy.

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

/// A representation of the contents of cells. A state stands for a set of valuations of the live cells; an operation may make this set
/// larger than the exact result, never smaller.
pub trait Domain: Sized + 'static {
    /// A set of valuations.
    type State: Clone + Eq + std::hash::Hash + Send;
    /// The commands of a step, prepared for the cells that are live before and after it.
    type Transition: Send;

    /// Tells the domain what the machine's cells contain, before the first transition is prepared. Few domains need it.
    fn attach(&mut self, _contents: &[Contents]) {}

    /// Whether this many live cells can be represented and a single step takes little time; if not, why not, in words.
    fn fits(&self, cells: usize) -> Result<(), String> {
        const MOST: usize = 300;
        match cells <= MOST {
            true => Ok(()),
            false => Err(format!("{cells} cells matter at once, too many to know their differences")),
        }
    }

    /// The only state where no cell is live.
    fn blank(&self) -> Self::State;

    /// Prepares the commands of a step.
    fn transition(&self, before: &Live, commands: &[Command], after: &Live) -> Self::Transition;

    /// Adds the valuations after the step to `out`, as states whose union covers them, each with the number of the branch through the
    /// commands ([`fencewright_memory::linear::ways`]) that leads to it. If the step is impossible there are no states. An error says that
    /// some valuations cannot be represented; the others are in `out` nevertheless.
    fn post(
        &mut self,
        transition: &Self::Transition,
        state: &Self::State,
        out: &mut Vec<(u32, Self::State)>,
    ) -> Result<(), Reason>;

    /// The state that is stored for the result of a step. There are finitely many such states, so that a search ends.
    fn stored(&self, state: &Self::State) -> Self::State;

    /// Whether every valuation in `smaller` (the result of a step) is one in `larger` (a stored state). Every state is covered by the one
    /// that is stored for it. What covers a stored state also covers every state that the stored one covers.
    fn covers(&self, larger: &Self::State, smaller: &Self::State) -> bool;

    /// Whether each state covers only itself.
    fn is_discrete(&self) -> bool {
        false
    }

    /// Whether `post` tells which branch through the commands leads to a state; if not, the numbers mean nothing.
    fn tells_branches(&self) -> bool {
        true
    }

    /// Whether a state can say something about the values of summary cells ([`Cells`](fencewright_memory::Cells)); if not, they are never
    /// live.
    fn keeps_summaries(&self) -> bool {
        true
    }

    /// Roughly how many bytes a state takes.
    fn size(&self, state: &Self::State) -> usize;

    /// The state as a conjunction of constraints on the live cells, for certificates.
    fn cube(&self, live: &Live, state: &Self::State) -> Cube;

    /// Whether the cubes of what was searched so far are a certificate that can be checked. The checker knows linear arithmetic only.
    fn is_checkable(&self) -> bool {
        true
    }

    /// How precise the domain is at the moment, in a few words; `None` if its precision never changes.
    fn describe(&self) -> Option<String> {
        None
    }

    /// A domain that is precise enough to rule out a path that is no execution; or why there is none, in words.
    fn refine(&self, path: &mut dyn SpuriousPath<Self>) -> Result<Self, String>;

    /// What to say about a path that is no execution and that no refinement rules out.
    fn doubt(&self) -> &'static str;

    /// How many predicates it has, if it is made of predicates.
    fn predicates(&self) -> usize {
        0
    }
}

/// The cells that a domain keeps, of those given: summary cells only if it can say something about their values.
pub(crate) fn kept<D: Domain>(domain: &D, contents: &[Contents], mut cells: Vec<CellId>) -> Vec<CellId> {
    if !domain.keeps_summaries() {
        cells.retain(|&cell| !matches!(contents[cell as usize], Contents::Summary(_)));
    }
    cells
}

/// A path that a search found and that is no execution, as a domain sees it.
pub trait SpuriousPath<D> {
    /// Whether the path can be taken, as far as another domain can tell.
    fn is_feasible(&mut self, domain: &mut D) -> bool;

    /// Constraints on cells along the path that show together that it cannot be taken with exact integers, if a solver found some.
    fn interpolants(&mut self) -> Option<Vec<Linear>>;

    /// Sums of variables that the path computes with and that decide whether it can be taken: what must hold at its end and what is assumed on
    /// the way, in terms of the values at each point before.
    fn sums(&mut self) -> Vec<Linear> {
        Vec::new()
    }
}
