//! Hazard pointers that are set while the store buffer of the thread may be nonempty.
//!
//! In the model a thread drains its buffer when it protects an object ([`crate::layout::hazards`]), as it does in implementations in which `protect`
//! executes a full fence. In those with asymmetric fences, such as `membarrier`, it does not. The two agree if the buffer contains no store of the
//! program. Before each protection where it may contain one, this pass adds a nondeterministic end of the model, so that a program is not verified
//! because of a fence that only the model executes.
//!
//! A forward analysis of each thread. Facts: whether a store of the program may be in the buffer. Lattice: false below true.

use fencewright_text::Stop;
use rustc_hash::FxHashSet;

use crate::core::{Core, NodeId, ObjectEvent, Stmt, StmtKind, Symbolic, Value};
use crate::dataflow::forward::{Added, Cycles, Forward, Keep, walk};
use crate::nodes::Nodes;
use crate::statement::each_statement;

const UNFENCED: &str = "a hazard pointer that protects an object while stores may be buffered (an implementation need not drain the buffer: put a full fence before \
     `__VERIFIER_hp_protect`)";

/// Lets the model end, nondeterministically, before each protection at which a store of the program may be in the buffer.
pub(crate) fn end_unfenced(core: &mut Core, nodes: &Nodes, stop: &Stop<'_>) {
    let mut hazards = FxHashSet::default();
    for thread in &core.threads {
        each_statement(&thread.code, stop, &mut |statement| {
            if let StmtKind::Special(ObjectEvent::Retired { hazard, .. }) = &statement.kind {
                hazards.insert(nodes.find(*hazard));
            }
        });
    }
    if hazards.is_empty() {
        return;
    }
    for thread in &mut core.threads {
        let mut analysis =
            Analysis { nodes, hazards: &hazards, indivisible: false, changed: true, last: false };
        let mut cycles = Cycles::default();
        while std::mem::take(&mut analysis.changed) && !stop.now() {
            walk(&mut thread.code, false, &mut analysis, &mut cycles, stop);
        }
        analysis.last = true;
        walk(&mut thread.code, false, &mut analysis, &mut cycles, stop);
    }
}

fn is_protection(kind: &StmtKind) -> bool {
    let StmtKind::Atomic(block) = kind else { return false };
    let is_retired =
        |statement: &Stmt| matches!(statement.kind, StmtKind::Special(ObjectEvent::Retired { .. }));
    block.iter().any(is_retired)
}

struct Analysis<'a> {
    nodes: &'a Nodes,
    /// The nodes of the places in hazard pointers.
    hazards: &'a FxHashSet<NodeId>,
    /// Whether the walk is in an indivisible step, whose stores reach memory at once.
    indivisible: bool,
    changed: bool,
    /// Whether this is the walk that changes the code.
    last: bool,
}

impl Forward<Symbolic> for Analysis<'_> {
    type Facts = bool;

    const ITERATES: bool = true;

    fn join(&self, one: bool, other: bool) -> bool {
        one || other
    }

    fn weaken(&mut self, kept: &mut Option<bool>, by: &bool) {
        let weaker = Some(kept.unwrap_or(false) || *by);
        self.changed |= *kept != weaker;
        *kept = weaker;
    }

    fn branch(&self, _: &Value, _: bool, facts: bool) -> Option<bool> {
        Some(facts)
    }

    fn rewrite(
        &mut self,
        statement: &mut Stmt,
        facts: &mut Option<bool>,
        added: &mut Added<Symbolic>,
    ) -> Keep {
        if self.last && *facts == Some(true) && is_protection(&statement.kind) {
            let span = statement.span;
            let end = Stmt { kind: StmtKind::Beyond(Value::Number(1), UNFENCED.to_string()), span };
            added.before.push(Stmt { kind: StmtKind::Choose(vec![Vec::new(), vec![end]]), span });
        }
        if let StmtKind::Atomic(_) = &statement.kind {
            *facts = facts.map(|_| false);
            self.indivisible = true;
        }
        Keep::Yes
    }

    fn rewritten(&mut self, statement: &mut Stmt) {
        if matches!(statement.kind, StmtKind::Atomic(_)) {
            self.indivisible = false;
        }
    }

    fn transfer(&mut self, kind: &StmtKind, facts: bool) -> Option<bool> {
        Some(match kind {
            // Stores to hazard pointers do not count: draining them early only ends protections early, and the only effect of this that the program
            // can see is that objects are freed earlier.
            StmtKind::Store(place, ..) => {
                facts || !self.indivisible && !self.hazards.contains(&self.nodes.find(place.node))
            }
            StmtKind::Update { .. } | StmtKind::Fence | StmtKind::Lock | StmtKind::Unlock => false,
            _ => facts,
        })
    }
}
