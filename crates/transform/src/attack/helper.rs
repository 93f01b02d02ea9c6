//! The instrumentation of the threads other than the attacker: outside the cone of the attacking load ([`attack`](super)) they run as before, except
//! that they do not access memory while `closed` is set; in the cone their accesses are recorded.

use fencewright_program::{Action, Address, BinaryOp, Edge, EdgeId, Expr, Op, RegisterId};

use super::Origin;
use super::accesses::{access, reachable};
use super::auxiliary::{is, one, scalar};
use super::instrumenter::{CopiedLocation, Instrumenter, Meeting};

impl Instrumenter<'_> {
    /// Adds the copies of an edge outside the cone: a copy that stays outside, and, for each operation that may conflict with the cone, a copy that
    /// enters the cone. If the edge takes the lock, the edges of `gates` are added too.
    pub fn plain_edge(&mut self, id: EdgeId, edge: &Edge) {
        let (from, to) = (CopiedLocation::Plain(edge.from), CopiedLocation::Plain(edge.to));
        let ops = edge.action.ops();
        let accesses = ops.iter().any(|op| access(op).is_some());
        if edge.action == Action::Lock {
            self.gates(id, edge);
        }
        if !accesses {
            self.edge(from, to, edge.action.clone(), Origin::Edge(id), edge.span);
            return;
        }
        let mut gated = is(scalar(self.auxiliary.closed), 0, self.scratch());
        gated.extend_from_slice(ops);
        self.atomic(from, to, gated, Origin::Edge(id), edge.span);
        for hit in 0..ops.len() {
            if let Some(entering) = self.entering(ops, hit) {
                self.atomic(from, CopiedLocation::Cone(edge.to), entering, Origin::Edge(id), edge.span);
            }
        }
    }

    /// The operations of a step that enters the cone because its operation number `hit` conflicts with an access that was in the cone before the
    /// step. Therefore the accesses of the step are marked only after the conflict is established; until then, computed indices are saved in
    /// registers.
    fn entering(&mut self, ops: &[Op], hit: usize) -> Option<Vec<Op>> {
        let (address, stores) = access(&ops[hit])?;
        if self.notion == super::Notion::Triangular && !stores {
            return None;
        }
        let flag = self.scratch();
        let meet = self.auxiliary.meet(self.program, address, stores, flag)?;
        let mut entering = Vec::new();
        let mut marks = Vec::new();
        for (n, op) in ops[..hit].iter().enumerate() {
            if let Some((address, stores)) = access(op) {
                let mut saved = address.clone();
                if let Some(index) = &address.index
                    && self.is_computed(address)
                {
                    // Over the naturals, saving a negative index in a register would be a fault, although an access to an open array at a negative
                    // index is not: it leaves the modelled window. So the array is loaded at this index first, which leaves the window in the same
                    // way.
                    if self.program.variables[address.variable.index()].open {
                        let ignored = self.register("%ignored", None);
                        entering.push(Op::Load(ignored, address.clone()));
                    }
                    let register = self.register(&format!("%index{n}"), None);
                    entering.push(Op::Assign(register, index.clone()));
                    saved.index = Some(Expr::Leaf(register));
                }
                marks.extend(self.auxiliary.mark(self.program, &saved, stores));
            }
            entering.push(op.clone());
        }
        entering.extend(meet);
        let marked = self.marked(&ops[hit]);
        if stores {
            // A store whose value is out of range does not happen.
            entering.push(ops[hit].clone());
            entering.extend(marks);
            entering.extend(self.auxiliary.mark(self.program, address, true));
        } else {
            entering.extend(marks);
            entering.extend(marked);
        }
        entering.extend(self.raced());
        entering.extend(ops[hit + 1..].iter().flat_map(|op| self.marked(op)));
        Some(entering)
    }

    /// The operation that records a triangular race when another thread enters the cone with a store; `None` if robustness is decided.
    fn raced(&self) -> Option<Op> {
        self.auxiliary.raced.map(|flag| Op::Store(scalar(flag), one()))
    }

    /// An operation in the cone, with its marks. A load is marked first: it happens even if the loaded value is out of range, and it may change
    /// registers that its own address reads. A store is marked afterwards: it does not happen if its value is out of range.
    fn marked(&self, op: &Op) -> Vec<Op> {
        match access(op) {
            None => vec![op.clone()],
            Some((address, stores)) => {
                let mut ops = self.auxiliary.mark(self.program, address, stores);
                ops.insert(if stores { 0 } else { ops.len() }, op.clone());
                ops
            }
        }
    }

    /// Adds the copy of an edge in the cone.
    pub fn cone_edge(&mut self, id: EdgeId, edge: &Edge) {
        let action = self.in_cone(&edge.action);
        self.edge(
            CopiedLocation::Cone(edge.from),
            CopiedLocation::Cone(edge.to),
            action,
            Origin::Edge(id),
            edge.span,
        );
    }

    /// The action of an edge in the cone: each of its accesses also sets the auxiliary variables that record the access.
    fn in_cone(&self, action: &Action) -> Action {
        let ops: Vec<Op> = action.ops().iter().flat_map(|op| self.marked(op)).collect();
        if ops == action.ops() { action.clone() } else { Action::Atomic { ops, drains: true } }
    }

    /// Adds edges before a locked section outside the cone. Each of them guesses the variable, the element and the kind of access through which the
    /// section will conflict with the cone.
    fn gates(&mut self, id: EdgeId, edge: &Edge) {
        let inside = reachable(self.code, edge.to, |action| *action != Action::Unlock);
        let mut meetings: Vec<Meeting> = Vec::new();
        for op in self.code.edges.iter().filter(|e| inside[e.from.index()]).flat_map(|e| e.action.ops()) {
            if let Some((address, stores)) = access(op)
                && self.auxiliary.is_contended(self.program, address)
                && (stores || self.notion == super::Notion::HappensBefore)
            {
                let meeting = Meeting { variable: address.variable, stores };
                if !meetings.contains(&meeting) {
                    meetings.push(meeting);
                }
            }
        }
        for meeting in meetings {
            let mut ops = Vec::new();
            let indices = self.program.variables[meeting.variable.index()].indices;
            let index = indices.map(|range| {
                let chosen = self.chosen();
                ops.push(Op::Havoc(chosen, Some(range)));
                Expr::Leaf(chosen)
            });
            let address = Address { variable: meeting.variable, index };
            let flag = self.scratch();
            if let Some(meet) = self.auxiliary.meet(self.program, &address, meeting.stores, flag) {
                ops.extend(meet);
                let (from, to) = (CopiedLocation::Plain(edge.from), CopiedLocation::Gate(meeting, id));
                self.atomic(from, to, ops, Origin::Nothing, edge.span);
            }
        }
    }

    /// The register with the guessed index of the array element on which a locked section will conflict with the cone.
    fn chosen(&mut self) -> RegisterId {
        self.register("%chosen", None)
    }

    /// Adds the copies of an edge in a locked section that has to conflict with the cone; `met` is whether it has done so.
    pub fn section_edge(&mut self, meeting: Meeting, met: bool, id: EdgeId, edge: &Edge) {
        let from = CopiedLocation::Section(meeting, met, edge.from);
        let origin = Origin::Edge(id);
        if edge.action == Action::Unlock {
            if met {
                self.edge(from, CopiedLocation::Cone(edge.to), Action::Unlock, origin, edge.span);
            }
            return;
        }
        let to = CopiedLocation::Section(meeting, met, edge.to);
        self.edge(from, to, self.in_cone(&edge.action), origin, edge.span);
        if met {
            return;
        }
        let ops = edge.action.ops();
        for (n, op) in ops.iter().enumerate() {
            let Some((address, stores)) = access(op) else { continue };
            if (Meeting { variable: address.variable, stores }) != meeting {
                continue;
            }
            let mut meeting_ops: Vec<Op> = ops[..n].iter().flat_map(|op| self.marked(op)).collect();
            if let Some(index) = &address.index {
                let chosen = Expr::Leaf(self.chosen());
                meeting_ops.push(Op::Assume(Expr::binary(BinaryOp::Eq, index.clone(), chosen)));
            }
            meeting_ops.extend(self.marked(op));
            meeting_ops.extend(self.raced());
            meeting_ops.extend(ops[n + 1..].iter().flat_map(|op| self.marked(op)));
            let to = CopiedLocation::Section(meeting, true, edge.to);
            self.atomic(from, to, meeting_ops, origin, edge.span);
        }
    }
}
