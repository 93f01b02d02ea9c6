//! A control-flow graph under construction.
//!
//! Labels get their location before the statement they name is lowered; where it turns out that two locations are one (a label
//! before a closing brace, a label on the first statement of a loop), they are merged. [`Graph::finish`] drops what
//! cannot be reached and numbers the rest.

use fencewright_program::{Action, Edge, Location, LocationId, Op, Span};

/// A location while the graph is built.
pub type Node = usize;

/// An edge while the graph is built.
#[derive(Clone, Debug)]
pub struct Arc {
    pub from: Node,
    pub to: Node,
    pub action: Action,
    pub span: Span,
}

/// A graph under construction.
#[derive(Default)]
pub struct Graph {
    /// Union-find: the node each node was merged into.
    parents: Vec<Node>,
    labels: Vec<Vec<String>>,
    spans: Vec<Option<Span>>,
    pub arcs: Vec<Arc>,
}

impl Graph {
    pub fn node(&mut self) -> Node {
        self.parents.push(self.parents.len());
        self.labels.push(Vec::new());
        self.spans.push(None);
        self.parents.len() - 1
    }

    pub fn len(&self) -> usize {
        self.parents.len()
    }

    pub fn find(&self, mut node: Node) -> Node {
        while self.parents[node] != node {
            node = self.parents[node];
        }
        node
    }

    pub fn label(&mut self, node: Node, label: &str) {
        self.labels[node].push(label.to_string());
    }

    /// An edge from `at` (or a new node) to `to`; gives its start.
    pub fn arc(&mut self, at: Option<Node>, to: Node, action: Action, span: Span) -> Node {
        let from = at.unwrap_or_else(|| self.node());
        self.spans[from].get_or_insert(span);
        self.arcs.push(Arc { from, to, action, span });
        from
    }

    /// Makes `at`, if given, the same place as `to`. If it is already, an empty loop was written: it gets a step of its own.
    pub fn join(&mut self, at: Option<Node>, to: Node, span: Span) -> Node {
        if let Some(at) = at {
            let (from, into) = (self.find(at), self.find(to));
            if from == into {
                self.arc(Some(from), into, Action::Op(Op::Skip), span);
            } else {
                self.parents[from] = into;
            }
        }
        to
    }

    /// The finished locations and edges, entry and fault location.
    pub fn finish(mut self, entry: Node, end: Node) -> (Vec<Location>, Vec<Edge>, LocationId, LocationId) {
        let nodes = self.len();
        for node in 0..nodes {
            let root = self.find(node);
            if root != node {
                let labels = std::mem::take(&mut self.labels[node]);
                self.labels[root].extend(labels);
                let span = self.spans[node];
                self.spans[root] = self.spans[root].or(span);
            }
        }
        let mut leaving: Vec<Vec<usize>> = vec![Vec::new(); nodes];
        for (n, arc) in self.arcs.iter().enumerate() {
            leaving[self.find(arc.from)].push(n);
        }
        // Breadth first from the entry, so that numbers follow the text; the end is always there.
        let mut numbers = vec![None; nodes];
        let mut order = Vec::new();
        let mut visit = |node: Node, order: &mut Vec<Node>| {
            if numbers[node].is_none() {
                numbers[node] = Some(order.len() as u32);
                order.push(node);
            }
        };
        visit(self.find(entry), &mut order);
        let mut next = 0;
        while next < order.len() {
            for &n in &leaving[order[next]] {
                visit(self.find(self.arcs[n].to), &mut order);
            }
            next += 1;
        }
        visit(self.find(end), &mut order);
        let mut locations = Vec::with_capacity(order.len() + 1);
        let mut edges = Vec::new();
        for &node in &order {
            let first_edge = edges.len() as u32;
            for &n in &leaving[node] {
                let arc = &self.arcs[n];
                let number =
                    |node: Node| LocationId(numbers[self.find(node)].expect("reached from the entry"));
                edges.push(Edge {
                    from: number(arc.from),
                    to: number(arc.to),
                    action: arc.action.clone(),
                    span: arc.span,
                });
            }
            locations.push(Location {
                labels: std::mem::take(&mut self.labels[node]),
                span: self.spans[node],
                first_edge,
                last_edge: edges.len() as u32,
            });
        }
        let none = edges.len() as u32;
        locations.push(Location { labels: Vec::new(), span: None, first_edge: none, last_edge: none });
        let fault = LocationId(locations.len() as u32 - 1);
        (locations, edges, LocationId(0), fault)
    }
}
