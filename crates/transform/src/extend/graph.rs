//! A control-flow graph that is being changed: locations with the edges that leave them.

use fencewright_program::{
    Action, Edge, EdgeId, Init, Location, LocationId, Op, Register, RegisterId, Span, Thread,
};

use super::{Mapping, Origin};

/// A thread taken apart.
pub(super) struct Graph {
    name: String,
    pub registers: Vec<Register>,
    pub places: Vec<Place>,
    pub entry: LocationId,
    pub fault: LocationId,
}

/// A location.
pub(super) struct Place {
    labels: Vec<String>,
    span: Option<Span>,
    /// The original location it stands for.
    pub original: LocationId,
    /// The edges that leave it.
    pub arcs: Vec<Arc>,
}

/// An edge.
#[derive(Clone)]
pub(super) struct Arc {
    /// Its number in the thread that was taken apart; new edges have none.
    pub number: Option<EdgeId>,
    pub to: LocationId,
    pub action: Action,
    pub span: Span,
    pub origin: Origin,
}

impl Graph {
    pub fn new(thread: &Thread, mapping: &Mapping) -> Self {
        let places = thread.locations.iter().enumerate().map(|(n, location)| Place {
            labels: location.labels.clone(),
            span: location.span,
            original: mapping.locations[n],
            arcs: thread
                .edges_from(LocationId(n as u32))
                .map(|(id, edge)| Arc {
                    number: Some(id),
                    to: edge.to,
                    action: edge.action.clone(),
                    span: edge.span,
                    origin: mapping.edges[id.index()],
                })
                .collect(),
        });
        Graph {
            name: thread.name.clone(),
            registers: thread.registers.clone(),
            places: places.collect(),
            entry: thread.entry,
            fault: thread.fault,
        }
    }

    /// Puts the thread together again. Threads that share a text may not do so any more.
    pub fn finish(self) -> (Thread, Vec<LocationId>, Vec<Origin>) {
        let (mut locations, mut edges) = (Vec::new(), Vec::new());
        let (mut originals, mut origins) = (Vec::new(), Vec::new());
        for (n, place) in self.places.into_iter().enumerate() {
            let first_edge = edges.len() as u32;
            for arc in place.arcs {
                edges.push(Edge {
                    from: LocationId(n as u32),
                    to: arc.to,
                    action: arc.action,
                    span: arc.span,
                });
                origins.push(arc.origin);
            }
            let last_edge = edges.len() as u32;
            locations.push(Location { labels: place.labels, span: place.span, first_edge, last_edge });
            originals.push(place.original);
        }
        let thread = Thread {
            name: self.name,
            registers: self.registers,
            locations,
            entry: self.entry,
            edges,
            fault: self.fault,
            family: None,
        };
        (thread, originals, origins)
    }

    /// A new location that stands for an original one. Labels stay with the location that had them.
    pub fn place(&mut self, original: LocationId, span: Option<Span>) -> LocationId {
        self.places.push(Place { labels: Vec::new(), span, original, arcs: Vec::new() });
        LocationId(self.places.len() as u32 - 1)
    }

    /// A new edge.
    pub fn arc(&mut self, from: LocationId, to: LocationId, action: Action, span: Span, origin: Origin) {
        self.places[from.index()].arcs.push(Arc { number: None, to, action, span, origin });
    }

    /// A new edge that performs one operation.
    pub fn op(&mut self, from: LocationId, to: LocationId, op: Op, span: Span, origin: Origin) {
        self.arc(from, to, Action::Op(op), span, origin);
    }

    /// A new register. Its name cannot be one of the source.
    pub fn register(&mut self, name: &str) -> RegisterId {
        let id = RegisterId(self.registers.len() as u32);
        self.registers.push(Register { name: format!("%{name}{}", id.0), init: Init::Value(0), range: None });
        id
    }

    /// The original location a location stands for.
    pub fn original(&self, location: LocationId) -> LocationId {
        self.places[location.index()].original
    }
}
