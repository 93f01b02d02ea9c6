//! What could be put where, and at which price.

use std::collections::BTreeMap;

use fencewright_lang::places::{Place, Placed, Side};
use fencewright_program::{
    Action, EdgeId, LocationId, MemoryModel, Op, Price, Program, Span, Thread, ThreadId,
};

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
    /// What.
    pub kind: Kind,
    /// Where: the place of a fence, or the store that is replaced; and the edges that change.
    pub place: Place,
    /// What it costs, over all threads that share the text.
    pub price: u64,
    /// What the search minimises: the price, and among equal prices rather outside loops.
    pub(crate) weight: u64,
}

impl Candidate {
    /// The threads it is in.
    pub fn threads(&self) -> Vec<ThreadId> {
        let mut threads: Vec<ThreadId> = self.place.edges.iter().map(|(thread, _)| *thread).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }
}

/// Prices, for each thread that has the fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// A full fence.
    pub full: u64,
    /// A store-store fence.
    pub store_store: u64,
    /// A locked instruction in place of a store; nothing if none may be used.
    pub swap: Option<u64>,
    /// What more anything costs inside a loop.
    pub in_loop: u64,
}

impl Default for Prices {
    fn default() -> Self {
        Prices { full: 2, store_store: 1, swap: None, in_loop: 0 }
    }
}

/// Prices are refined below the unit: among sets of the same price, one with less inside loops is taken.
const UNIT: u64 = 1 << 16;

/// Everything that could be put into a program under a memory model, except at places that the source spares.
pub fn candidates(placed: &Placed, model: MemoryModel, prices: Prices) -> Vec<Candidate> {
    let program = &placed.program;
    let prices = stated(program, prices);
    let cyclic: Vec<Vec<bool>> = program.threads.iter().map(Thread::on_cycles).collect();
    let mut all = Vec::new();
    let mut add = |kind: Kind, place: Place| {
        let base = match kind {
            Kind::Full => prices.full,
            Kind::StoreStore => prices.store_store,
            Kind::Swap => prices.swap.unwrap_or(0),
        };
        let mut candidate = Candidate { kind, place, price: 0, weight: 0 };
        for thread in candidate.threads() {
            let here = candidate.place.edges.iter().filter(|(t, _)| *t == thread).map(|(_, e)| *e);
            let edges: Vec<EdgeId> = here.collect();
            let code = program.thread(thread);
            let at = |l: LocationId| edges.iter().any(|&e| code.edge(e).to == l || code.edge(e).from == l);
            let named = |found: &(ThreadId, LocationId)| found.0 == thread && at(found.1);
            if program.hints.spared.iter().any(named) {
                return;
            }
            let own = program.hints.costs.iter().find_map(|(price, cost)| match price {
                Price::Place(t, l) if named(&(*t, *l)) => Some(u64::from(*cost)),
                _ => None,
            });
            let in_loop = edges.iter().any(|&e| cyclic[thread.index()][code.edge(e).from.index()]);
            let price = own.unwrap_or(base).saturating_add(if in_loop { prices.in_loop } else { 0 });
            candidate.price = candidate.price.saturating_add(price);
            let weight = price.saturating_mul(UNIT).saturating_add(u64::from(in_loop));
            candidate.weight = candidate.weight.saturating_add(weight);
        }
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
                if matches!(edge.action, Action::Op(Op::Store(..))) {
                    stores.entry(edge.span).or_default().push((t, EdgeId(e as u32)));
                }
            }
        }
        for (span, edges) in stores {
            let place = Place { offset: span.start, side: Side::Before, statement: span, label: None, edges };
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
