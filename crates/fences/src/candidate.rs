//! Candidates: the fences and locked instructions that can be inserted, with their places and costs.

use std::collections::{BTreeMap, HashMap};

use fencewright_engines::loops::loop_depths;
use fencewright_lang::places::{Place, Placed, Side};
use fencewright_program::{Action, EdgeId, LocationId, MemoryModel, Op, Price, Program, Span, ThreadId};

use crate::hitting::{Cost, Item};
use crate::home::{self, Home};

/// The kinds of instructions that can be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A full fence.
    Full,
    /// A store-store fence.
    StoreStore,
    /// A locked instruction that replaces a store.
    Swap,
}

impl Kind {
    /// The name in machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Full => "fence",
            Kind::StoreStore => "sfence",
            Kind::Swap => "xchg",
        }
    }
}

/// A fence or locked instruction that can be inserted.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The kind of fence.
    pub kind: Kind,
    /// The place where the fence is inserted, or the store that the locked instruction replaces, with the control-flow edges that change.
    pub place: Place,
    /// The total price: the sum over all threads that execute the candidate.
    pub price: u64,
    /// An estimate of how often the candidate is executed: once per thread and copy of the place, and `1 << MORE_OFTEN` times as often per enclosing
    /// loop. In the definition of a macro, the number of the macro's uses is added.
    pub runs: u64,
    /// Whether the source excludes this place by the hint `spare`.
    pub spared: bool,
    /// Whether the place is in a file that must not be changed.
    pub closed: bool,
    /// The function around it, if it is in one.
    pub home: Option<Home>,
}

impl Candidate {
    /// The threads that would execute the candidate.
    pub fn threads(&self) -> Vec<ThreadId> {
        let mut threads: Vec<ThreadId> = self.place.edges.iter().map(|(thread, _)| *thread).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// The cost that the search minimises: the price, for equal prices the number of executions, and if these are equal too, places in library
    /// functions cost less, then those in files that may be changed. In a set of more than 51 fences, the costs of the functions may overflow their 8
    /// bits and outweigh one execution.
    pub(crate) fn cost(&self) -> Cost {
        let preferred = match self.home.as_ref().map(|home| home.kind) {
            Some(home::Kind::Entry) => 0,
            Some(home::Kind::Inner) => 2,
            Some(home::Kind::Own) | None => 4,
        };
        let last = preferred + Cost::from(self.closed);
        Cost::from(self.price) << 72 | Cost::from(self.runs) << 8 | last
    }
}

/// Prices of fences, per thread that executes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// The price of a full fence.
    pub full: u64,
    /// The price of a store-store fence.
    pub store_store: u64,
    /// The price of a locked instruction that replaces a store; `None` forbids such instructions.
    pub swap: Option<u64>,
    /// The surcharge for a candidate inside a loop, even an unrolled loop.
    pub in_loop: u64,
}

impl Default for Prices {
    fn default() -> Self {
        Prices { full: 2, store_store: 1, swap: None, in_loop: 0 }
    }
}

/// Base-2 logarithm of the factor by which each enclosing loop multiplies the estimated number of executions.
const MORE_OFTEN: u32 = 12;

/// All candidates of a program under a memory model.
pub fn candidates(placed: &Placed, model: MemoryModel, prices: Prices) -> Vec<Candidate> {
    let program = &placed.program;
    let prices = stated(program, prices);
    let depths: Vec<Vec<u32>> = program.threads.iter().map(loop_depths).collect();
    let mut all = Vec::new();
    let mut add = |kind: Kind, place: Place| {
        let base = match kind {
            Kind::Full => prices.full,
            Kind::StoreStore => prices.store_store,
            Kind::Swap => prices.swap.unwrap_or(0),
        };
        let closed = placed.closed.contains(&place.statement.file);
        let home = Home::of(placed, &place);
        let mut candidate = Candidate { kind, place, price: 0, runs: 0, spared: false, closed, home };
        for thread in candidate.threads() {
            let here = candidate.place.edges.iter().filter(|(t, _)| *t == thread).map(|(_, e)| *e);
            let edges: Vec<EdgeId> = here.collect();
            let code = program.thread(thread);
            let at = |l: LocationId| edges.iter().any(|&e| code.edge(e).to == l || code.edge(e).from == l);
            let named = |found: &(ThreadId, LocationId)| found.0 == thread && at(found.1);
            candidate.spared |= program.hints.spared.iter().any(named);
            let own = program.hints.costs.iter().find_map(|(price, cost)| match price {
                Price::Place(t, l) if named(&(*t, *l)) => Some(u64::from(*cost)),
                _ => None,
            });
            let depth = |e: &EdgeId| depths[thread.index()][code.edge(*e).from.index()];
            // A place with several edges in one thread comes from an unrolled `for`.
            let in_loop = edges.len() > 1 || edges.iter().any(|e| depth(e) > 0);
            let price = own.unwrap_or(base).saturating_add(if in_loop { prices.in_loop } else { 0 });
            candidate.price = candidate.price.saturating_add(price);
            let runs = edges.iter().map(|e| 1u64 << (MORE_OFTEN * depth(e))).sum();
            candidate.runs = candidate.runs.saturating_add(runs);
        }
        // A fence in the definition of a macro affects all uses of the macro, so a place at a single use is preferred if it is otherwise equal.
        candidate.runs = candidate.runs.saturating_add(candidate.place.uses.into());
        all.push(candidate);
    };
    for place in &placed.places {
        add(Kind::Full, place.clone());
        if model == MemoryModel::Pso {
            add(Kind::StoreStore, place.clone());
        }
    }
    if prices.swap.is_some() {
        let mut stores: BTreeMap<Span, Vec<(ThreadId, EdgeId)>> = BTreeMap::new();
        for (t, thread) in program.threads() {
            for (e, edge) in thread.edges.iter().enumerate() {
                let changeable = !placed.fixed.contains(&edge.span.text())
                    && !placed.indivisible.iter().any(|text| text.covers(edge.span));
                if matches!(edge.action, Action::Op(Op::Store(..))) && changeable {
                    stores.entry(edge.span.text()).or_default().push((t, EdgeId(e as u32)));
                }
            }
        }
        for (span, edges) in stores {
            let place = Place {
                offset: span.start,
                side: Side::Before,
                statement: span,
                label: None,
                bare: false,
                uses: placed.in_macros.get(&span).copied().unwrap_or(0),
                edges,
            };
            add(Kind::Swap, place);
        }
    }
    all
}

/// The prices, where costs stated in the source replace the given ones.
fn stated(program: &Program, prices: Prices) -> Prices {
    program.hints.costs.iter().fold(prices, |prices, (price, cost)| {
        let cost = u64::from(*cost);
        match price {
            Price::Fence => Prices { full: cost, ..prices },
            Price::StoreFence => Prices { store_store: cost, ..prices },
            Price::Swap => Prices { swap: Some(cost), ..prices },
            Price::Place(..) => prices,
        }
    })
}

/// All candidates, indexed by the edges they change.
pub(crate) struct Catalogue {
    pub all: Vec<Candidate>,
    at: HashMap<(ThreadId, EdgeId), Vec<Item>>,
}

impl Catalogue {
    pub fn new(all: Vec<Candidate>) -> Self {
        let mut at: HashMap<(ThreadId, EdgeId), Vec<Item>> = HashMap::new();
        for (item, candidate) in all.iter().enumerate() {
            for &edge in &candidate.place.edges {
                at.entry(edge).or_default().push(item);
            }
        }
        Catalogue { all, at }
    }

    /// The candidates at an edge: fences at a place, or a locked instruction for a store.
    pub fn at(&self, thread: ThreadId, edge: EdgeId) -> &[Item] {
        self.at.get(&(thread, edge)).map_or(&[], Vec::as_slice)
    }

    /// The candidates with these indices.
    pub fn chosen(&self, set: &[Item]) -> Vec<&Candidate> {
        set.iter().map(|&item| &self.all[item]).collect()
    }
}
