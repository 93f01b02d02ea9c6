//! Lowers blocks that are one step, `atomic` and `snapshot`: each path through the block becomes one edge.

use std::collections::HashMap;

use fencewright_program::{Action, Edge, Op, Span};
use fencewright_text::Diagnostic;

use super::graph::{ControlFlow, Node};
use super::thread::{ThreadLowering, Within};
use crate::ast::{Block, Statement, StatementKind};

type Result<T> = std::result::Result<T, Diagnostic>;

/// Maximum number of paths through one atomic block.
const MOST_PATHS: usize = 1 << 10;

impl<'a> ThreadLowering<'a, '_> {
    /// An atomic step: every path through the block becomes one edge.
    pub fn atomic(
        &mut self,
        body: &'a Block,
        drains: bool,
        at: Option<Node>,
        next: Node,
        span: Span,
    ) -> Result<Node> {
        let within = if drains { Within::Atomic } else { Within::Snapshot };
        let ways = self.ways(within, span, |this, exit| Ok(this.block(body, None, exit)))?;
        let from = at.unwrap_or_else(|| self.graph.node());
        for ops in ways {
            self.graph.arc(Some(from), next, Action::Atomic { ops, drains }, span);
        }
        Ok(from)
    }

    /// The operations on each path through an atomic block, or through the evaluation of a condition, in the order of the text. `lower` adds the
    /// edges, which end at the location given to it. These edges are only used to find the paths; they do not become edges of the thread.
    pub fn ways(
        &mut self,
        within: Within,
        span: Span,
        lower: impl FnOnce(&mut Self, Node) -> Result<Node>,
    ) -> Result<Vec<Vec<Op>>> {
        let outer_edges = self.graph.exchange_edges(Vec::new());
        self.within = within;
        let exit = self.graph.node();
        let entry = lower(self, exit);
        self.within = Within::Steps;
        let edges = self.graph.exchange_edges(outer_edges);
        let entry = entry?;
        let mut leaving: HashMap<Node, Vec<usize>> = HashMap::new();
        for (n, (edge, ())) in edges.iter().enumerate() {
            leaving.entry(self.graph.find(edge.from)).or_default().push(n);
        }
        let mut paths: Vec<(Node, Vec<Op>)> = vec![(self.graph.find(entry), Vec::new())];
        let mut ways = Vec::new();
        // The search is depth first with the first branch on top of the stack, so the paths are found in the order of the text.
        while let Some((node, ops)) = paths.pop() {
            if node == self.graph.find(exit) {
                ways.push(ops);
            } else {
                let extended = |mut ops: Vec<Op>, edge: &Edge, graph: &ControlFlow| {
                    ops.extend(edge.action.ops().iter().filter(|op| **op != Op::Skip).cloned());
                    (graph.find(edge.to), ops)
                };
                let mut out = leaving.get(&node).into_iter().flatten().rev().map(|&n| &edges[n].0);
                if let Some(last) = out.next() {
                    for edge in out.by_ref() {
                        self.effort.spend(1 + ops.len(), span)?;
                        paths.push(extended(ops.clone(), edge, &self.graph));
                    }
                    self.effort.spend(1, span)?;
                    let position = paths.len() + 1 - leaving[&node].len();
                    paths.insert(position, extended(ops, last, &self.graph));
                }
            }
            if paths.len() + ways.len() > MOST_PATHS {
                return Err(Diagnostic::new(
                    span,
                    format!("more than {MOST_PATHS} ways lead through this block"),
                ));
            }
        }
        Ok(ways)
    }

    pub fn check_atomic(&self, statement: &Statement) -> Result<()> {
        let what = match &statement.kind {
            StatementKind::Fence | StatementKind::StoreFence => "a fence",
            StatementKind::Lock(None) | StatementKind::Unlock(None) => "the lock",
            StatementKind::Lock(Some(_)) | StatementKind::Unlock(Some(_)) => "a mutex",
            StatementKind::Atomic(_) | StatementKind::Snapshot(_) => "another indivisible block",
            StatementKind::Await(_) => "`await`",
            StatementKind::While(..) | StatementKind::Loop(_) => "a loop",
            StatementKind::Break | StatementKind::Continue | StatementKind::Goto(_) | StatementKind::Stop => {
                "a jump"
            }
            _ if !statement.labels.is_empty() => "a label",
            _ => return Ok(()),
        };
        let error =
            Diagnostic::new(statement.span, format!("{what} cannot stand inside an indivisible block"));
        Err(match &statement.kind {
            StatementKind::Await(_) => error.help("use `assume`: the whole block waits until it holds"),
            _ => match self.active.last() {
                Some(procedure) => error.help(format!("`{procedure}` is called inside one")),
                None => error,
            },
        })
    }
}
