//! How the explicit engine searches, wherever it runs.

use clap::{Args, ValueEnum};
use fencewright::engines::explicit::{Options, Order, Reduction};

use super::ENGINES;

/// The options of a search state by state.
#[derive(Args)]
pub struct SearchArgs {
    /// The order of the search: bfs gives the shortest counterexamples, dfs needs less memory
    #[arg(long, value_name = "ORDER", default_value = "bfs", help_heading = ENGINES)]
    pub search: SearchArg,
    /// Which interleavings the explicit engine leaves out
    #[arg(long, value_name = "REDUCTION", default_value = "suited", help_heading = ENGINES)]
    pub reduction: ReductionArg,
    /// Switch off live variables: keep the values of registers that no longer matter
    #[arg(long, help_heading = ENGINES)]
    pub no_live: bool,
}

impl SearchArgs {
    /// The order of the search.
    pub fn order(&self) -> Order {
        match self.search {
            SearchArg::Bfs => Order::BreadthFirst,
            SearchArg::Dfs => Order::DepthFirst,
        }
    }

    /// How to search with so many threads; 0 means all cores.
    pub fn options(&self, jobs: u16) -> Options {
        let defaults = Options::default();
        Options {
            order: self.order(),
            live_variables: !self.no_live,
            reduction: match self.reduction {
                ReductionArg::Suited => Reduction::Suited,
                ReductionArg::None => Reduction::None,
                ReductionArg::Ample => Reduction::Ample,
                ReductionArg::Local => Reduction::Local,
                ReductionArg::Persistent => Reduction::Persistent,
                ReductionArg::Sleep => Reduction::Sleep,
                ReductionArg::Cartesian => Reduction::Cartesian,
                ReductionArg::Dynamic => Reduction::Dynamic,
            },
            workers: if jobs == 0 { defaults.workers } else { jobs.into() },
            ..defaults
        }
    }
}

/// The order of the search.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
#[allow(missing_docs)]
pub enum SearchArg {
    Bfs,
    Dfs,
}

/// Which interleavings are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReductionArg {
    /// `local` where there are at most two threads, `persistent` where there are more
    Suited,
    /// None: every interleaving is explored
    None,
    /// Steps of one thread where no other thread can disturb them
    Ample,
    /// Local events first: a thread goes on until others can see what it does
    Local,
    /// Steps of a group of threads that nobody outside can disturb
    Persistent,
    /// The same, without steps that were taken already in another order: fewer transitions
    Sleep,
    /// Each thread runs until its steps may depend on those of others; states in between are not stored
    Cartesian,
    /// One execution of each trace, and no states are stored: for programs whose executions all end
    Dynamic,
}
