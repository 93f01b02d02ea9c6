//! Domain `concrete`: one value for each live cell.
//!
//! It is exact: a state represents one valuation, and every operator, including nonlinear ones, is computed as in the reference semantics. The price
//! is that `x := *` produces one state per value, so the choice needs a range. (If the program declares one, the machine assumes it directly after
//! the choice.) A choice without a range, or a value that does not fit into 64 bits, cannot be represented; then [`Domain::post`] reports that states
//! are missing.
//!
//! Certificates can express the value of a cell, but their checker supports linear arithmetic only. See [`Domain::is_checkable`].

use fencewright_analysis::nonlinear::is_nonlinear;
use fencewright_memory::linear::{Constraint, Cube, Linear};
use fencewright_memory::{CellId, Command};
use fencewright_program::reference::Limit;
use fencewright_program::{BinaryOp, EvalError, Expr};
use fencewright_verdict::Reason;
use smallvec::SmallVec;

use super::{Domain, Live, SpuriousPath};

/// The values of the live cells, in their order.
pub type Values = SmallVec<[i64; 12]>;

/// Maximum number of values tried in one step.
const MOST_TRIES: usize = 1 << 16;

/// Domain `concrete`: a state gives every live cell one value.
#[derive(Clone, Debug, Default)]
pub struct Concrete {
    /// Whether some step computed a value that the checker cannot verify: a nonlinear one, or the smallest 64-bit integer, whose negation does not
    /// fit and which no constraint `cell = value` can express.
    uncheckable: bool,
    work: Vec<i64>,
}

/// A step compiled to operations on a vector of values. The vector starts with the cells that are live before the step; the other cells that the step
/// accesses follow.
pub struct ConcreteTransition {
    ops: Vec<ValueOp>,
    /// The length of the vector: the number of cells that are live before the step or accessed by it.
    size: usize,
    /// The positions in the vector of the cells that are live after the step.
    after: Vec<u32>,
    nonlinear: bool,
}

enum ValueOp {
    Assume(Expr<u32>),
    Assign(u32, Expr<u32>),
    /// The cell at this index takes any value from the first number to the second, both included.
    Choose(u32, i64, i64),
    /// The rest of the step cannot be represented, for this reason.
    Decline(&'static str),
}

const NO_RANGE: &str = "domain concrete needs a range for every `*` and for every store that is forgotten";
const TOO_MANY: &str = "domain concrete does not try as many values as one step can choose here";

impl Concrete {
    /// The domain before any step; it has no parameters.
    pub fn new() -> Self {
        Concrete::default()
    }
}

fn declined(what: &str) -> Reason {
    Reason::Unsupported(what.into(), None)
}

/// The range of a cell that the conditions directly after a choice allow.
#[derive(Clone, Copy, Default)]
struct Range {
    low: Option<i64>,
    high: Option<i64>,
}

impl Range {
    /// Intersects the range with the conjuncts of a condition that have the form `cell >= c`, `cell <= c` or `cell == c`. Returns false if there are
    /// others.
    fn restrict(&mut self, cell: CellId, condition: &Expr<CellId>) -> bool {
        match condition {
            Expr::Binary(BinaryOp::And, left, right) => {
                let both = [self.restrict(cell, left), self.restrict(cell, right)];
                both == [true, true]
            }
            Expr::Binary(op, left, right) => {
                let (Expr::Leaf(leaf), Some(bound)) = (&**left, right.constant()) else { return false };
                if *leaf != cell {
                    return false;
                }
                let (low, high) = match op {
                    BinaryOp::Ge => (Some(bound), None),
                    BinaryOp::Le => (None, Some(bound)),
                    BinaryOp::Eq => (Some(bound), Some(bound)),
                    _ => return false,
                };
                // The range becomes the intersection. If it is empty, no value is chosen.
                self.low = self.low.max(low);
                self.high = self.high.into_iter().chain(high).min();
                true
            }
            _ => false,
        }
    }
}

/// The operation that gives a cell an arbitrary value. The commands that follow may restrict the value.
fn choice(cell: CellId, index: u32, later: &[Command], after: &Live) -> ValueOp {
    let mut range = Range::default();
    let (mut is_read, mut is_overwritten) = (false, false);
    for command in later {
        let mut reads = false;
        let mut look = |leaf: &CellId| reads |= *leaf == cell;
        let written = match command {
            Command::Assume(e) => {
                e.for_each_leaf(&mut look);
                reads = reads && !range.restrict(cell, e);
                None
            }
            Command::Assign(to, e) => {
                e.for_each_leaf(&mut look);
                Some(*to)
            }
            Command::Fold(..) => None,
            Command::Havoc(to) | Command::Expand(to, _) => Some(*to),
        };
        is_read |= reads;
        is_overwritten = written == Some(cell);
        if is_overwritten {
            break;
        }
    }
    let matters = is_read || (!is_overwritten && after.binary_search(&cell).is_ok());
    match (range.low, range.high) {
        (Some(low), Some(high)) => ValueOp::Choose(index, low, high),
        _ if matters => ValueOp::Decline(NO_RANGE),
        // The value is never used, so one value represents all.
        (low, high) => {
            let value = low.or(high).unwrap_or(0);
            ValueOp::Choose(index, value, value)
        }
    }
}

/// The cells that a step accesses, by index.
struct Indices {
    cells: Vec<CellId>,
    /// For each cell, whether it has a value yet.
    known: Vec<bool>,
}

impl Indices {
    fn position(&self, cell: CellId) -> Option<usize> {
        self.cells.iter().position(|&c| c == cell)
    }

    /// The index of a cell; `None` if the cell has no value.
    fn read(&self, cell: CellId) -> Option<u32> {
        self.position(cell).filter(|&i| self.known[i]).map(|i| i as u32)
    }

    /// The index of a cell that is assigned a value.
    fn write(&mut self, cell: CellId) -> u32 {
        let index = self.position(cell).unwrap_or_else(|| {
            self.cells.push(cell);
            self.known.push(false);
            self.cells.len() - 1
        });
        self.known[index] = true;
        index as u32
    }

    /// Records that a cell no longer has a value.
    fn forget(&mut self, cell: CellId) {
        if let Some(i) = self.position(cell) {
            self.known[i] = false;
        }
    }

    /// An expression over indices; `None` if some cell has no value.
    fn expression(&self, e: &Expr<CellId>) -> Option<Expr<u32>> {
        let mut all_known = true;
        let indexed = e.map(&mut |&cell| {
            let index = self.read(cell);
            all_known &= index.is_some();
            Expr::Leaf(index.unwrap_or(0))
        });
        all_known.then_some(indexed)
    }
}

impl Domain for Concrete {
    type State = Values;
    type Transition = ConcreteTransition;

    fn fits(&self, _cells: usize) -> Result<(), String> {
        Ok(())
    }

    fn blank(&self) -> Values {
        Values::new()
    }

    fn transition(&self, before: &Live, commands: &[Command], after: &Live) -> ConcreteTransition {
        let mut indices = Indices { cells: before.to_vec(), known: vec![true; before.len()] };
        let mut ops = Vec::with_capacity(commands.len());
        let mut nonlinear = false;
        for (n, command) in commands.iter().enumerate() {
            let op = match command {
                Command::Assume(e) => indices.expression(e).map(ValueOp::Assume),
                Command::Assign(to, e) => match indices.expression(e) {
                    Some(e) => Some(ValueOp::Assign(indices.write(*to), e)),
                    // The source has no value, because it is a summary cell that is renamed.
                    None => {
                        indices.forget(*to);
                        continue;
                    }
                },
                // Summary cells are never live in this domain.
                Command::Fold(..) => continue,
                Command::Havoc(to) | Command::Expand(to, _) => {
                    let index = indices.write(*to);
                    Some(choice(*to, index, &commands[n + 1..], after))
                }
            };
            if let Command::Assume(e) | Command::Assign(_, e) = command {
                nonlinear |= is_nonlinear(e);
            }
            ops.push(op.unwrap_or(ValueOp::Decline(NO_RANGE)));
        }
        let positions: Option<Vec<u32>> = after.iter().map(|&cell| indices.read(cell)).collect();
        if positions.is_none() {
            ops.push(ValueOp::Decline(NO_RANGE));
        }
        let size = indices.cells.len();
        ConcreteTransition { ops, size, after: positions.unwrap_or_default(), nonlinear }
    }

    fn post(
        &mut self,
        transition: &ConcreteTransition,
        state: &Values,
        out: &mut Vec<(u32, Values)>,
    ) -> Result<(), Reason> {
        let first = out.len();
        let mut work = std::mem::take(&mut self.work);
        work.clear();
        work.extend_from_slice(state);
        work.resize(transition.size, 0);
        let performed = perform(&transition.ops, &transition.after, &mut work, &mut 0, out);
        self.work = work;
        self.uncheckable |=
            transition.nonlinear || out[first..].iter().any(|(_, values)| values.contains(&i64::MIN));
        performed.map_err(declined)
    }

    fn stored(&self, state: &Values) -> Values {
        state.clone()
    }

    fn covers(&self, larger: &Values, smaller: &Values) -> bool {
        larger == smaller
    }

    fn is_discrete(&self) -> bool {
        true
    }

    fn tells_branches(&self) -> bool {
        false
    }

    fn keeps_summaries(&self) -> bool {
        false
    }

    fn size(&self, state: &Values) -> usize {
        size_of::<Values>() + if state.spilled() { size_of_val(&**state) } else { 0 }
    }

    fn cube(&self, live: &Live, state: &Values) -> Cube {
        let equation = |(&cell, &value): (&CellId, &i64)| {
            let above = Linear::constant(value).minus(&Linear::cell(cell));
            let below = Linear::cell(cell).minus(&Linear::constant(value));
            [below, above].into_iter().flatten().map(Constraint::AtMost)
        };
        live.iter().zip(state).flat_map(equation).collect()
    }

    fn is_checkable(&self) -> bool {
        !self.uncheckable
    }

    /// Values are exact, so there is nothing to refine.
    fn refine(&self, _path: &mut dyn SpuriousPath<Self>) -> Result<Self, String> {
        Err("its values are exact, and no finer domain rules it out".into())
    }

    fn doubt(&self) -> &'static str {
        "a path to a violation remains for which no execution was found"
    }
}

/// Performs operations. The error says why some results are missing.
fn perform(
    ops: &[ValueOp],
    after: &[u32],
    work: &mut Vec<i64>,
    tries: &mut usize,
    out: &mut Vec<(u32, Values)>,
) -> Result<(), &'static str> {
    for (n, op) in ops.iter().enumerate() {
        let value = |e: &Expr<u32>| match e.eval(&mut |i| work[*i as usize]) {
            Ok(value) => Ok(Some(value)),
            // Division by zero and shifts out of range are separate steps, which fault.
            Err(EvalError::DivisionByZero | EvalError::ShiftOutOfRange) => Ok(None),
            Err(EvalError::Overflow) => Err(Limit::Overflow.describe()),
        };
        match op {
            ValueOp::Assume(e) => {
                if matches!(value(e)?, None | Some(0)) {
                    return Ok(());
                }
            }
            ValueOp::Assign(to, e) => {
                let Some(value) = value(e)? else { return Ok(()) };
                work[*to as usize] = value;
            }
            ValueOp::Choose(to, low, high) => {
                let saved = work.clone();
                let mut performed = Ok(());
                for value in *low..=*high {
                    *tries += 1;
                    if *tries > MOST_TRIES {
                        return Err(TOO_MANY);
                    }
                    work.clone_from(&saved);
                    work[*to as usize] = value;
                    performed = performed.and(perform(&ops[n + 1..], after, work, tries, out));
                }
                return performed;
            }
            ValueOp::Decline(why) => return Err(why),
        }
    }
    out.push((0, after.iter().map(|&i| work[i as usize]).collect()));
    Ok(())
}
