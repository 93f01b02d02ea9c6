//! The control-flow graph of a thread during lowering.
//!
//! A label gets its location before the statement that it names is lowered. If two locations turn out to be the same (for a label before a closing
//! brace, or a label on the first statement of a loop), they are merged.

use std::ops::Range;

use fencewright_kit::ThreadBuilder;
use fencewright_program::{Action, CallId, Edge, LocationId, Op, Register, Span, Thread};

/// A location during construction.
pub type Node = LocationId;

/// A place for the steps of a statement: they start at `at`, or at a new node, and lead to `next`.
#[derive(Clone, Copy)]
pub struct Gap {
    pub at: Option<Node>,
    pub next: Node,
    /// The span of the statement.
    pub span: Span,
}

/// Edges of the builder. They carry no origins, because their spans tell where they come from.
pub type Edges = Vec<(Edge, ())>;

/// The control-flow graph of a thread under construction.
pub struct ControlFlow {
    builder: ThreadBuilder<()>,
    labels: Vec<(Node, String)>,
    /// The call that is being inlined; the default outside procedures.
    pub call: CallId,
}

impl ControlFlow {
    pub fn new(name: String, family: Option<(String, i64)>) -> Self {
        ControlFlow { builder: ThreadBuilder::new(name, family), labels: Vec::new(), call: CallId::default() }
    }

    /// Adds the call that is being inlined to a span. Outside calls the span is returned as it is: it may already name a call, if the importer has
    /// inlined that call.
    pub fn called(&self, span: Span) -> Span {
        if self.call.0.is_some() { span.called(self.call) } else { span }
    }

    pub fn node(&mut self) -> Node {
        self.builder.location((), None)
    }

    pub fn len(&self) -> usize {
        self.builder.len()
    }

    pub fn find(&self, node: Node) -> Node {
        self.builder.find(node)
    }

    pub fn label(&mut self, node: Node, label: &str) {
        self.labels.push((node, label.to_owned()));
        self.builder.label(node, label);
    }

    /// Gives a location all labels of another one, so that no formula distinguishes them.
    pub fn label_like(&mut self, node: Node, like: Node) {
        let like = self.find(like);
        for (labelled, label) in &self.labels {
            if self.builder.find(*labelled) == like {
                self.builder.label(node, label);
            }
        }
    }

    /// Adds an edge from `at` (or a new location) to `to`; returns its start.
    pub fn arc(&mut self, at: Option<Node>, to: Node, action: Action, span: Span) -> Node {
        let span = self.called(span);
        let from = at.unwrap_or_else(|| self.node());
        self.builder.starts(from, span);
        self.builder.edge(from, to, action, span, ());
        from
    }

    /// Adds a copy of an edge that starts at `from`.
    pub fn copy(&mut self, edge: &Edge, from: Node) {
        self.builder.edge(from, edge.to, edge.action.clone(), edge.span, ());
    }

    /// For each of these edges that leads to `old`, adds a copy that leads to `new`.
    pub fn also_to(&mut self, new: Node, edges: Range<usize>, old: Node) {
        let leads = |(edge, ()): &&(Edge, ())| self.find(edge.to) == self.find(old);
        let leading: Vec<_> = self.edges()[edges].iter().filter(leads).cloned().collect();
        for (Edge { from, action, span, .. }, ()) in leading {
            self.builder.edge(from, new, action, span, ());
        }
    }

    /// Merges `at`, if given, with `to`. If the two are the same location already, this is an empty loop, which gets a step of its own.
    pub fn join(&mut self, at: Option<Node>, to: Node, span: Span) -> Node {
        if let Some(at) = at {
            let (from, into) = (self.find(at), self.find(to));
            if from == into {
                self.arc(Some(from), into, Action::Op(Op::Skip), span);
            } else {
                self.builder.merge(from, into);
            }
        }
        to
    }

    /// The edges added so far.
    pub fn edges(&self) -> &[(Edge, ())] {
        &self.builder.edges
    }

    /// Replaces all edges, and returns the previous ones.
    pub fn exchange_edges(&mut self, edges: Edges) -> Edges {
        std::mem::replace(&mut self.builder.edges, edges)
    }

    /// The finished thread, without its unreachable locations.
    pub fn finish(mut self, registers: Vec<Register>, entry: Node, end: Node) -> Thread {
        self.builder.registers = registers;
        let fault = self.node();
        self.builder.finish_reachable(entry, end, fault).thread
    }
}
