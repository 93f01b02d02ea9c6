//! What could be put where, and at which price.

use std::collections::{BTreeMap, HashMap};

use fencewright_engines::loops::loop_depths;
use fencewright_lang::places::{Place, Placed, Side};
use fencewright_program::{Action, EdgeId, LocationId, MemoryModel, Op, Price, Program, Span, ThreadId};

use crate::hitting::{Cost, Item};

/// What is put into a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A full fence.
    Full,
    /// A store-store fence.
    StoreStore,
    /// A locked instruction in place of a store.
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

/// Something that could be put into a program.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What it is.
    pub kind: Kind,
    /// Where: the place of a fence, or the store that is replaced; and the edges that change.
    pub place: Place,
    /// What it costs, over all threads that share the text.
    pub price: u64,
    /// How often it runs, roughly: once for each copy in each thread, and far more often in a loop.
    pub runs: u64,
    /// Whether the source asks to put nothing here.
    pub spared: bool,
}

impl Candidate {
    /// The threads it is in.
    pub fn threads(&self) -> Vec<ThreadId> {
        let mut threads: Vec<ThreadId> = self.place.edges.iter().map(|(thread, _)| *thread).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// What the search minimises: the price, and among equal prices how often it runs.
    pub(crate) fn cost(&self) -> Cost {
        Cost::from(self.price) << 64 | Cost::from(self.runs)
    }
}

/// Prices, for each thread that has the fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// A full fence.
    pub full: u64,
    /// A store-store fence.
    pub store_store: u64,
    /// A locked instruction in place of a store; none if they may not be used.
    pub swap: Option<u64>,
    /// What each of these costs in addition inside a loop, unrolled ones included.
    pub in_loop: u64,
}

impl Default for Prices {
    fn default() -> Self {
        Prices { full: 2, store_store: 1, swap: None, in_loop: 0 }
    }
}

/// How much more often something is assumed to run for each loop around it: 2 to this power.
const MORE_OFTEN: u32 = 12;

/// Everything that could be put into a program under a memory model.
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
        let mut candidate = Candidate { kind, place, price: 0, runs: 0, spared: false };
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
            // A place with several copies in a thread is inside a `for` that was unrolled.
            let in_loop = edges.len() > 1 || edges.iter().any(|e| depth(e) > 0);
            let price = own.unwrap_or(base).saturating_add(if in_loop { prices.in_loop } else { 0 });
            candidate.price = candidate.price.saturating_add(price);
            let runs = edges.iter().map(|e| 1u64 << (MORE_OFTEN * depth(e))).sum();
            candidate.runs = candidate.runs.saturating_add(runs);
        }
        // Where a place beside the use of a macro does as well as one in its definition, the definition stays as it is.
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

/// The prices with those that the source states.
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

/// All candidates, and which of them change an edge.
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

    /// What could be put at an edge: fences at a place, or a locked instruction for a store.
    pub fn at(&self, thread: ThreadId, edge: EdgeId) -> &[Item] {
        self.at.get(&(thread, edge)).map_or(&[], Vec::as_slice)
    }

    /// The candidates with these numbers.
    pub fn chosen(&self, set: &[Item]) -> Vec<&Candidate> {
        set.iter().map(|&item| &self.all[item]).collect()
    }
}
