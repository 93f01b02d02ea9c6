//! Static analysis: the memory cells that the steps from a location wait for.

use fencewright_kit::accesses::{cells_of, for_each_read, written_register};
use fencewright_program::{Action, Address, Edge, Expr, Op, Program, RegisterId, UnaryOp};

/// The cells that the steps from one location wait for, before they are grouped into classes.
pub enum Waits {
    /// No step from the location waits for a memory cell.
    Nothing,
    /// The cell with this address; an index is computed from the registers before the step.
    One(Address),
    /// Several cells, in ascending order.
    Several(Vec<u32>),
}

impl Waits {
    /// The cells that the steps along the given edges wait for. All these edges leave one location.
    pub fn new<'e>(program: &Program, edges: impl Iterator<Item = &'e Edge>) -> Self {
        let edges: Vec<&Edge> = edges.collect();
        let mut addresses: Vec<&Address> = Vec::new();
        let mut fixed = true;
        for edge in &edges {
            let Action::Atomic { ops, .. } = &edge.action else { continue };
            let Some(last) = ops.iter().rposition(|op| matches!(op, Op::Assume(_))) else { continue };
            let mut written = Vec::new();
            for op in &ops[..last] {
                if let Op::Load(_, address) = op {
                    for_each_read(op, &mut |r| fixed &= !written.contains(&r));
                    addresses.push(address);
                }
                written.extend(written_register(op));
            }
        }
        let Some(first) = addresses.first() else { return Waits::Nothing };
        if fixed && addresses.iter().all(|a| a == first) {
            return match edges[..] {
                [one, other] if is_decided(&one.action, &other.action) => Waits::Nothing,
                _ => Waits::One((*first).clone()),
            };
        }
        let mut cells: Vec<u32> = addresses.iter().flat_map(|a| cells_of(program, a)).collect();
        cells.sort_unstable();
        cells.dedup();
        Waits::Several(cells)
    }
}

/// Whether two steps have the form of the two outcomes of one test, such as a `cas`: for each loaded value exactly one of them is enabled, or both if
/// the operations up to the test fault. Both wait for an empty buffer, so both load from memory and have the cell in their footprints.
fn is_decided(one: &Action, other: &Action) -> bool {
    let (Action::Atomic { ops: one, drains: true }, Action::Atomic { ops: other, drains: true }) =
        (one, other)
    else {
        return false;
    };
    let is_test = |op: &Op| matches!(op, Op::Assume(_));
    let Some(test) = one.iter().position(is_test) else { return false };
    let once = |ops: &[Op]| ops.iter().filter(|op| is_test(op)).count() == 1;
    let (Op::Assume(a), Some(Op::Assume(b))) = (&one[test], other.get(test)) else { return false };
    one[..test] == other[..test] && once(one) && once(other) && are_opposite(a, b)
}

/// Whether the form of two conditions shows that they are complementary: one holds exactly if the other does not, unless they cannot be computed.
pub fn are_opposite(a: &Expr<RegisterId>, b: &Expr<RegisterId>) -> bool {
    let is_not = |a: &Expr<RegisterId>, b: &Expr<RegisterId>| matches!(a, Expr::Unary(UnaryOp::Not, operand) if **operand == *b);
    match (a, b) {
        (Expr::Binary(one, left, right), Expr::Binary(other, l, r)) if one.is_comparison() => {
            *other == one.negated() && left == l && right == r
        }
        _ => is_not(a, b) || is_not(b, a),
    }
}

/// Union-find over cells that some location awaits together.
pub struct Classes {
    parents: Vec<u32>,
}

impl Classes {
    /// Each cell in a class of its own.
    pub fn new(cells: usize) -> Self {
        Classes { parents: (0..cells as u32).collect() }
    }

    /// The representative of a cell's class: its smallest cell.
    pub fn of(&self, mut cell: u32) -> u32 {
        while self.parents[cell as usize] != cell {
            cell = self.parents[cell as usize];
        }
        cell
    }

    /// Merges the classes of two cells that some location awaits together.
    pub fn unite(&mut self, a: u32, b: u32) {
        let (a, b) = (self.of(a), self.of(b));
        self.parents[a.max(b) as usize] = a.min(b);
    }
}
