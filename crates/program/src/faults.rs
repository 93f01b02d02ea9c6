//! The conditions under which operations fault: the one definition that lowering, machines, transformations and engines share. The reference
//! semantics defines faults independently, and tests compare the two definitions.
//!
//! | operation | faults if |
//! |---|---|
//! | every operation with an expression | a divisor is 0, or a shift is by less than 0 or more than 63 |
//! | `assert e`, and checks that lowering inserts | `e` is 0 |
//! | load, store | the index is outside the array, unless the array is open |
//! | write of a register, store | the value is outside the declared [bounds](Bounds), or below 0 over the naturals |
//!
//! Over the naturals, registers, memory and buffers never hold a value below 0: lowering refuses negative initial values, and every write is checked
//! even where no range is declared. So a value that is merely copied has to be checked against declared ranges only. A `*` with a range chooses any
//! value of the range, even a negative one; a `*` without a range chooses a natural number.

use crate::expr::{BinaryOp, Expr};
use crate::model::{Address, Edge, Numbers, Op, Program, Range, Register, RegisterId, Thread};

/// An interval of numbers; an absent bound means that the interval is unbounded on that side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// The least value; `None` if unbounded below.
    pub low: Option<i64>,
    /// The greatest value; `None` if unbounded above.
    pub high: Option<i64>,
}

impl From<Range> for Bounds {
    fn from(range: Range) -> Self {
        Bounds { low: Some(range.low), high: Some(range.high) }
    }
}

impl Bounds {
    /// All numbers.
    pub const ANY: Bounds = Bounds { low: None, high: None };
    /// The natural numbers.
    pub const NATURALS: Bounds = Bounds { low: Some(0), high: None };

    /// Whether `value` lies within the bounds.
    #[inline]
    pub fn contains(self, value: i64) -> bool {
        self.low.is_none_or(|low| low <= value) && self.high.is_none_or(|high| value <= high)
    }

    /// The values within both bounds.
    pub fn and(self, other: Bounds) -> Bounds {
        let tighter = |a: Option<i64>, b: Option<i64>, pick: fn(i64, i64) -> i64| match (a, b) {
            (Some(a), Some(b)) => Some(pick(a, b)),
            (a, b) => a.or(b),
        };
        Bounds { low: tighter(self.low, other.low, i64::max), high: tighter(self.high, other.high, i64::min) }
    }

    /// The values within the bounds that fit 64 bits.
    pub fn range(self) -> Range {
        Range { low: self.low.unwrap_or(i64::MIN), high: self.high.unwrap_or(i64::MAX) }
    }

    /// The bounds that a value within the bounds `known` may violate; all other bounds are dropped.
    pub fn beyond(self, known: Bounds) -> Bounds {
        Bounds {
            low: self.low.filter(|low| known.low.is_none_or(|known| known < *low)),
            high: self.high.filter(|high| known.high.is_none_or(|known| *high < known)),
        }
    }

    /// The condition that a value satisfies these bounds; `None` if there are no bounds, or if the value is a constant that satisfies them.
    pub fn condition<L: Clone>(self, value: &Expr<L>) -> Option<Expr<L>> {
        if value.constant().is_some_and(|v| self.contains(v)) {
            return None;
        }
        let compare = |op, bound| Expr::binary(op, value.clone(), Expr::Const(bound));
        both(
            self.low.map(|low| compare(BinaryOp::Ge, low)),
            self.high.map(|high| compare(BinaryOp::Le, high)),
        )
    }
}

/// The conditions under which an operation does not fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// The condition on registers that must hold before a value is loaded, chosen or written; `None` if it always holds.
    pub before: Option<Expr<RegisterId>>,
    /// The bounds that a loaded or chosen value must satisfy; `None` if every possible value does.
    pub value: Option<Bounds>,
}

impl Program {
    /// The values that registers and memory can hold, given the data domain.
    pub fn values(&self) -> Bounds {
        if self.numbers == Numbers::Nat { Bounds::NATURALS } else { Bounds::ANY }
    }

    /// The values that may be written where this range is declared; writing any other value faults.
    pub fn writable(&self, declared: Option<Range>) -> Bounds {
        declared.map_or(Bounds::ANY, Bounds::from).and(self.values())
    }

    /// The values that a `*` with this range can choose.
    pub fn chosen(&self, range: Option<Range>) -> Bounds {
        range.map_or(self.values(), Bounds::from)
    }

    /// The conditions under which an operation of a thread with these registers does not fault.
    pub fn checks(&self, registers: &[Register], op: &Op) -> Checks {
        let declared = |register: &RegisterId| self.writable(registers[register.index()].range);
        let arrives =
            |bounds: Bounds, known: Bounds| Some(bounds.beyond(known)).filter(|b| *b != Bounds::ANY);
        match op {
            Op::Skip => Checks::default(),
            Op::Assign(register, value) => {
                Checks { before: self.fits(declared(register), value), value: None }
            }
            Op::Havoc(register, range) => {
                let value = match range {
                    Some(range) if range.size() == 0 => None,
                    _ => arrives(declared(register), self.chosen(*range)),
                };
                Checks { before: None, value }
            }
            Op::Assume(condition) => Checks { before: condition.defined(), value: None },
            Op::Assert(condition, _) => {
                let fails = condition.constant().is_none_or(|v| v == 0);
                Checks {
                    before: fails.then(|| both(condition.defined(), Some(condition.clone()))).flatten(),
                    value: None,
                }
            }
            Op::Load(register, address) => {
                Checks { before: self.in_array(address), value: arrives(declared(register), self.values()) }
            }
            Op::Store(address, value) => {
                let bounds = self.writable(self.variables[address.variable.index()].range);
                Checks { before: both(self.in_array(address), self.fits(bounds, value)), value: None }
            }
        }
    }

    /// The given bounds, without those that the value satisfies by its form alone: a constant within the bounds, or a register, which over the
    /// naturals is never negative. A sufficient condition only, so bounds that always hold may remain.
    pub fn doubtful(&self, bounds: Bounds, value: &Expr<RegisterId>) -> Bounds {
        match (value.constant(), value) {
            (Some(v), _) if bounds.contains(v) => Bounds::ANY,
            (None, Expr::Leaf(_)) => bounds.beyond(self.values()),
            _ => bounds,
        }
    }

    /// The condition that a value is defined and satisfies bounds; `None` if that is certain.
    pub fn fits(&self, bounds: Bounds, value: &Expr<RegisterId>) -> Option<Expr<RegisterId>> {
        both(value.defined(), self.doubtful(bounds, value).condition(value))
    }

    /// The condition that an index is defined and lies in its array; `None` if that is certain. An index outside an open array is not a fault.
    fn in_array(&self, address: &Address) -> Option<Expr<RegisterId>> {
        let variable = &self.variables[address.variable.index()];
        let (Some(index), Some(range)) = (&address.index, variable.indices) else { return None };
        let certain = variable.open || index.constant().is_some_and(|i| range.contains(i));
        both(index.defined(), if certain { None } else { Bounds::from(range).condition(index) })
    }

    /// Whether an operation of a thread with these registers could fault.
    pub fn op_may_fault(&self, registers: &[Register], op: &Op) -> bool {
        self.checks(registers, op) != Checks::default()
    }

    /// Whether this edge could fault.
    pub fn edge_may_fault(&self, thread: &Thread, edge: &Edge) -> bool {
        edge.action.ops().iter().any(|op| self.op_may_fault(&thread.registers, op))
    }

    /// Whether any action could fault; if not, the property `assertions` holds trivially.
    pub fn may_fault(&self) -> bool {
        self.threads.iter().any(|thread| thread.edges.iter().any(|edge| self.edge_may_fault(thread, edge)))
    }
}

impl<L: Clone> Expr<L> {
    /// The condition under which evaluating the expression does not fault (no division by 0, every shift by 0 to 63); `None` if it cannot fault.
    pub fn defined(&self) -> Option<Expr<L>> {
        match self {
            Expr::Const(_) | Expr::Leaf(_) => None,
            Expr::Unary(_, operand) => operand.defined(),
            Expr::Binary(op, left, right) => {
                let right_is_defined = match op {
                    // The right side is evaluated only if the left one does not decide, so it has to be defined only then.
                    BinaryOp::And => {
                        right.defined().map(|d| Expr::binary(BinaryOp::Or, (**left).clone().not(), d))
                    }
                    BinaryOp::Or => right.defined().map(|d| Expr::binary(BinaryOp::Or, (**left).clone(), d)),
                    BinaryOp::Div | BinaryOp::Rem if right.constant().is_none_or(|d| d == 0) => {
                        let divisor = Expr::binary(BinaryOp::Ne, (**right).clone(), Expr::Const(0));
                        both(right.defined(), Some(divisor))
                    }
                    BinaryOp::Shl | BinaryOp::Shr => {
                        both(right.defined(), Bounds { low: Some(0), high: Some(63) }.condition(right))
                    }
                    _ => right.defined(),
                };
                both(left.defined(), right_is_defined)
            }
            Expr::If(condition, then, otherwise) => {
                let chosen = match (then.defined(), otherwise.defined()) {
                    (None, None) => None,
                    (then, otherwise) => {
                        let [then, otherwise] = [then, otherwise].map(|d| d.unwrap_or(Expr::Const(1)));
                        Some(Expr::choice((**condition).clone(), then, otherwise))
                    }
                };
                both(condition.defined(), chosen)
            }
        }
    }
}

/// The conjunction of both conditions, in this order: the second is evaluated only if the first holds.
pub fn both<L>(first: Option<Expr<L>>, second: Option<Expr<L>>) -> Option<Expr<L>> {
    match (first, second) {
        (Some(first), Some(second)) => Some(Expr::binary(BinaryOp::And, first, second)),
        (first, second) => first.or(second),
    }
}
