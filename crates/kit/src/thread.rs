//! The builder of threads, used both for lowering source text and for transforming threads.
//!
//! Locations and edges may be added in any order, and locations may be merged later. [`ThreadBuilder::finish`] sorts the edges by the location that
//! they leave and renumbers the remaining locations. Each edge carries an *origin*, usually the edge of another thread that it was made from.
//! Likewise, each location carries a value that records what it *stands for*, usually a location of another thread.

use fencewright_program::{
    Action, Edge, EdgeId, Init, Location, LocationId, Op, Range, Register, RegisterId, Span, Thread,
};

use crate::validate::validate_thread;

/// A thread under construction, with origins of type `O` for edges and `L` for locations.
#[derive(Clone, Debug)]
pub struct ThreadBuilder<O, L = ()> {
    name: String,
    /// The name of the family and the number of the instance, if several threads share one text.
    pub family: Option<(String, i64)>,
    /// The registers of the thread; a `RegisterId` is an index into this list.
    pub registers: Vec<Register>,
    locations: Vec<NewLocation<L>>,
    /// The edges with their origins. Edges that leave the same location keep their order.
    pub edges: Vec<(Edge, O)>,
}

#[derive(Clone, Debug)]
struct NewLocation<L> {
    labels: Vec<String>,
    span: Option<Span>,
    stands_for: L,
    /// The location that this one was merged into.
    merged_into: Option<LocationId>,
}

/// A finished thread, with the origins of its edges and the meanings of its locations.
#[derive(Clone, Debug)]
pub struct Built<O, L = ()> {
    /// The thread with its final numbering of locations and edges.
    pub thread: Thread,
    /// For each edge of the thread, its origin.
    pub origins: Vec<O>,
    /// For each location, the value that records its meaning, such as the location that it was copied from.
    pub stand_for: Vec<L>,
    /// For each location of the builder, its number in the thread; `None` if the location was removed.
    pub numbers: Vec<Option<LocationId>>,
}

impl<O, L: Clone> ThreadBuilder<O, L> {
    /// A thread without registers, locations and edges.
    pub fn new(name: String, family: Option<(String, i64)>) -> Self {
        ThreadBuilder { name, family, registers: Vec::new(), locations: Vec::new(), edges: Vec::new() }
    }

    /// A thread with the registers and locations of another one, under the same numbers, and without edges.
    pub fn like(thread: &Thread, stands_for: impl Fn(LocationId) -> L) -> Self {
        let mut builder = ThreadBuilder::new(thread.name.clone(), thread.family.clone());
        builder.registers.clone_from(&thread.registers);
        for (location, n) in thread.locations.iter().zip(0..) {
            let copy = builder.location(stands_for(LocationId(n)), location.span);
            builder.locations[copy.index()].labels.clone_from(&location.labels);
        }
        builder
    }

    /// The number of locations, merged ones included.
    pub fn len(&self) -> usize {
        self.locations.len()
    }

    /// Whether there are no locations.
    pub fn is_empty(&self) -> bool {
        self.locations.is_empty()
    }

    /// Adds a location without edges; `span` is the statement that starts there, if known.
    pub fn location(&mut self, stands_for: L, span: Option<Span>) -> LocationId {
        self.locations.push(NewLocation { labels: Vec::new(), span, stands_for, merged_into: None });
        LocationId(self.locations.len() as u32 - 1)
    }

    /// Adds a location that stands for the same thing as an existing location.
    pub fn copy_of(&mut self, location: LocationId, span: Option<Span>) -> LocationId {
        let stands_for = self.stands_for(location).clone();
        self.location(stands_for, span)
    }

    /// The value that records what a location stands for.
    pub fn stands_for(&self, location: LocationId) -> &L {
        &self.locations[location.index()].stands_for
    }

    /// Gives a location a label.
    pub fn label(&mut self, location: LocationId, label: &str) {
        self.locations[location.index()].labels.push(label.to_string());
    }

    /// Records the statement that starts at a location, unless one is recorded already.
    pub fn starts(&mut self, location: LocationId, span: Span) {
        self.locations[location.index()].span.get_or_insert(span);
    }

    /// The representative of a location: itself, or the location that it was merged into.
    pub fn find(&self, mut location: LocationId) -> LocationId {
        while let Some(into) = self.locations[location.index()].merged_into {
            location = into;
        }
        location
    }

    /// Merges two different locations into one, with the labels and edges of both.
    pub fn merge(&mut self, location: LocationId, into: LocationId) {
        let (location, into) = (self.find(location), self.find(into));
        debug_assert_ne!(location, into, "a location cannot be merged into itself");
        self.locations[location.index()].merged_into = Some(into);
    }

    /// Merges a location into another one, and drops the labels and the statement of the first.
    pub fn dissolve(&mut self, location: LocationId, into: LocationId) {
        let dissolved = &mut self.locations[location.index()];
        (dissolved.labels, dissolved.span) = (Vec::new(), None);
        dissolved.merged_into = Some(into);
    }

    /// Adds an edge.
    pub fn edge(&mut self, from: LocationId, to: LocationId, action: Action, span: Span, origin: O) {
        self.edges.push((Edge { from, to, action, span }, origin));
    }

    /// Adds an edge that performs one operation.
    pub fn op(&mut self, from: LocationId, to: LocationId, op: Op, span: Span, origin: O) {
        self.edge(from, to, Action::Op(op), span, origin);
    }

    /// Adds a register with initial value 0. A name that begins with `%` cannot occur in the source.
    pub fn register(&mut self, name: String, range: Option<Range>) -> RegisterId {
        self.registers.push(Register { name, init: Init::Value(0), range });
        RegisterId(self.registers.len() as u32 - 1)
    }

    /// The thread with all locations that were not merged into others, in the order in which they were added.
    pub fn finish(self, entry: LocationId, fault: LocationId) -> Built<O, L> {
        let roots = self.roots();
        let order = (0..self.len() as u32).map(LocationId).filter(|l| roots[l.index()] == *l).collect();
        self.assemble(&roots, order, entry, fault)
    }

    /// The thread with its reachable locations only, in breadth-first order from the entry so that numbers follow the text; then its end and its
    /// fault location, reachable or not.
    pub fn finish_reachable(self, entry: LocationId, end: LocationId, fault: LocationId) -> Built<O, L> {
        let roots = self.roots();
        let mut leaving: Vec<Vec<LocationId>> = vec![Vec::new(); self.len()];
        for (edge, _) in &self.edges {
            leaving[roots[edge.from.index()].index()].push(roots[edge.to.index()]);
        }
        let mut seen = vec![false; self.len()];
        let mut order = Vec::new();
        let mut visit = |location: LocationId, order: &mut Vec<LocationId>| {
            if !std::mem::replace(&mut seen[location.index()], true) {
                order.push(location);
            }
        };
        visit(roots[entry.index()], &mut order);
        let mut next = 0;
        while next < order.len() {
            leaving[order[next].index()].iter().for_each(|&to| visit(to, &mut order));
            next += 1;
        }
        visit(roots[end.index()], &mut order);
        visit(roots[fault.index()], &mut order);
        self.assemble(&roots, order, entry, fault)
    }

    /// The representative of each location.
    fn roots(&self) -> Vec<LocationId> {
        let mut roots: Vec<Option<LocationId>> = vec![None; self.len()];
        let mut way = Vec::new();
        for start in 0..self.len() {
            let mut here = LocationId(start as u32);
            let root = loop {
                match (roots[here.index()], self.locations[here.index()].merged_into) {
                    (Some(root), _) => break root,
                    (None, None) => break here,
                    (None, Some(into)) => {
                        way.push(here);
                        here = into;
                    }
                }
            };
            roots[here.index()] = Some(root);
            way.drain(..).for_each(|on_the_way| roots[on_the_way.index()] = Some(root));
        }
        roots.into_iter().flatten().collect()
    }

    fn assemble(
        mut self,
        roots: &[LocationId],
        order: Vec<LocationId>,
        entry: LocationId,
        fault: LocationId,
    ) -> Built<O, L> {
        for n in (0..self.len()).filter(|&n| roots[n].index() != n) {
            let labels = std::mem::take(&mut self.locations[n].labels);
            let span = self.locations[n].span;
            let root = &mut self.locations[roots[n].index()];
            root.labels.extend(labels);
            root.span = root.span.or(span);
        }
        let mut numbers = vec![None; self.len()];
        for (&location, number) in order.iter().zip(0..) {
            numbers[location.index()] = Some(LocationId(number));
        }
        let numbers: Vec<Option<LocationId>> = roots.iter().map(|root| numbers[root.index()]).collect();
        let numbered = |(edge, origin): (Edge, O)| {
            let (from, to) = (numbers[edge.from.index()]?, numbers[edge.to.index()]?);
            Some((Edge { from, to, ..edge }, origin))
        };
        let mut edges: Vec<(Edge, O)> = self.edges.into_iter().filter_map(numbered).collect();
        edges.sort_by_key(|(edge, _)| edge.from);
        let (edges, origins): (Vec<Edge>, Vec<O>) = edges.into_iter().unzip();
        let (mut locations, mut stand_for) = (Vec::with_capacity(order.len()), Vec::new());
        let mut first_edge = 0;
        for (location, number) in order.iter().zip(0..) {
            let new = &mut self.locations[location.index()];
            let leaving = edges[first_edge..].iter().take_while(|e| e.from == LocationId(number)).count();
            let last_edge = first_edge + leaving;
            locations.push(Location {
                labels: std::mem::take(&mut new.labels),
                span: new.span,
                first_edge: first_edge as u32,
                last_edge: last_edge as u32,
            });
            stand_for.push(new.stands_for.clone());
            first_edge = last_edge;
        }
        let kept = |location: LocationId| numbers[location.index()].expect("entry and fault are kept");
        let (entry, fault) = (kept(entry), kept(fault));
        let thread = Thread {
            name: self.name,
            registers: self.registers,
            locations,
            entry,
            edges,
            fault,
            family: self.family,
        };
        debug_assert_eq!(validate_thread(&thread), Ok(()));
        Built { thread, origins, stand_for, numbers }
    }
}

impl<O: Clone, L: Clone> ThreadBuilder<O, L> {
    /// A copy of another thread, with origins that depend on edges and locations.
    pub fn copying(
        thread: &Thread,
        origin: impl Fn(EdgeId) -> O,
        stands_for: impl Fn(LocationId) -> L,
    ) -> Self {
        let mut builder = ThreadBuilder::like(thread, stands_for);
        builder.edges = thread.edges.iter().cloned().zip((0..).map(|e| origin(EdgeId(e)))).collect();
        builder
    }
}
