//! Allocations and copies whose sizes are not constants: a case distinction over the possible sizes.
//!
//! The possible sizes are a small range, or numbers that an analysis found in the code of the previous attempt ([`possible`]). Other sizes are
//! outside the model: if an execution allocates one of them, the verdict is `unknown`.

use std::collections::BTreeSet;

use fencewright_c::ast::BinaryOp as Operator;
use fencewright_c::typed::tree::{Step, Type, TypeKind};
use fencewright_code::core::{Core, Object, ObjectEvent, Origin, Purpose, Register, StmtKind, Value};
use fencewright_code::nodes::Nodes;
use fencewright_code::numbers::{Operand, compare};
use fencewright_code::possible;
use fencewright_program::Span;
use fencewright_text::Stop;
use rustc_hash::FxHashMap;

use super::dispatch::Path;
use super::objects::{Spot, Target};
use super::{Elaborator, Result};

/// Maximum number of sizes per allocation that are taken from the analysis.
const MOST_SIZES: usize = 4;
/// Maximum number of sizes per allocation that are taken from a range.
const MOST_IN_RANGE: usize = 32;
/// Maximum number of bytes of a size that is taken from the analysis. Short executions rarely need arrays that grow beyond it.
const MOST_BYTES: u64 = 512;
/// Maximum number of attempts that look for more sizes.
const MOST_ROUNDS: usize = 6;

/// The sizes assumed for allocations, as multiples of the unit of each allocation.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes {
    by_path: FxHashMap<Path, BTreeSet<i64>>,
    rounds: usize,
}

/// An allocation whose size is not a constant.
#[derive(Debug)]
pub(super) struct Sized {
    path: Path,
    size: Register,
    unit: u64,
}

/// An operation on a number of bytes that is not a constant. In messages, `what` names the operation ("an allocation"), and `verb` what the program
/// does ("allocate").
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizing {
    pub what: &'static str,
    pub verb: &'static str,
    /// The number of bytes of each unit of the size.
    pub unit: u64,
    /// Whether an analysis suggests sizes, which takes further attempts. Otherwise only sizes of a small range are distinguished.
    pub suggested: bool,
    pub span: Span,
}

/// The size of an allocation in bytes, if such an allocation is possible.
fn bytes(size: i128, unit: u64) -> Option<u64> {
    let bytes = u64::try_from(size).ok()?.checked_mul(unit)?;
    (bytes > 0 && bytes < 1 << 32).then_some(bytes)
}

/// Analyses the code of an attempt, and adds to `sizes` the sizes that these allocations may have, but none above `MOST_BYTES`, and
/// at most `MOST_SIZES` for each allocation. Returns whether some of them are new. After `MOST_ROUNDS` attempts, does nothing and returns false.
pub(super) fn found_more(
    sizes: &mut Sizes,
    allocations: &[Sized],
    (core, nodes): (&Core, &Nodes),
    stop: &Stop<'_>,
) -> bool {
    if allocations.is_empty() || sizes.rounds == MOST_ROUNDS {
        return false;
    }
    sizes.rounds += 1;
    let registers: Vec<_> =
        allocations.iter().map(|allocation| (allocation.path.0, allocation.size)).collect();
    let mut more = false;
    for (allocation, found) in allocations.iter().zip(possible::numbers(core, nodes, &registers, stop)) {
        let known = sizes.by_path.entry(allocation.path.clone()).or_default();
        for size in found {
            let fits = bytes(size.into(), allocation.unit).is_some_and(|bytes| bytes <= MOST_BYTES);
            more |= fits && known.len() < MOST_SIZES && known.insert(size);
        }
    }
    more
}

impl Elaborator<'_> {
    /// Allocates `size` times `unit` bytes. `allocate` performs an allocation of a constant number of bytes.
    pub(super) fn allocation(
        &mut self,
        size: Operand,
        unit: u64,
        span: Span,
        allocate: &dyn Fn(&mut Self, u64) -> Result<Operand>,
    ) -> Result<Operand> {
        if let Some(bytes) = size.known().and_then(|size| bytes(size, unit)) {
            return allocate(self, bytes);
        }
        let void = Type { kind: TypeKind::Void, atomic: false, volatile: false };
        let pointer = Type { kind: TypeKind::Pointer(void.into()), atomic: false, volatile: false };
        let result = self.temporary("new", &pointer);
        let assigned = |this: &mut Self, bytes| {
            let operand = allocate(this, bytes)?;
            let points = this.writer.registers[result.0 as usize].points;
            if let (Some(points), Some(node)) = (points, operand.points) {
                this.unify(points, node, span)?;
            }
            this.write_register(result, operand, span)
        };
        self.sized(
            size,
            Sizing { what: "an allocation", verb: "allocate", unit, suggested: true, span },
            &assigned,
        )?;
        Ok(self.register_value(result))
    }

    /// Work on a number of bytes that is not a constant: `work` has a case for each number of bytes that is distinguished.
    pub(super) fn sized(
        &mut self,
        size: Operand,
        sizing: Sizing,
        work: &dyn Fn(&mut Self, u64) -> Result<()>,
    ) -> Result<()> {
        let Sizing { unit, suggested, span, .. } = sizing;
        let mut sizes = self.in_range(&size.value);
        sizes.retain(|size| bytes((*size).into(), unit).is_some());
        let long = fencewright_c::ast::Integer { rank: fencewright_c::ast::Rank::Long, signed: false };
        let kind = TypeKind::Integer(fencewright_c::arithmetic::Arithmetic::Integer(long));
        let size = self.kept_value(size, &Type { kind, atomic: false, volatile: false }, span)?;
        if let (Value::Register(register), true, true) =
            (&size.value, suggested && sizes.is_empty(), self.writer.reachable)
        {
            let path = self.path(span);
            sizes = self.premises.sizes.by_path.get(&path).cloned().unwrap_or_default();
            self.sizes.push(Sized { path, size: *register, unit });
        }
        let sizes: Vec<i64> = sizes.into_iter().collect();
        self.distinguished(&sizes, &sizes, &size, sizing, work)
    }

    /// Begins the lifetime of a local array whose length is not constant. Returns a pointer to its first element.
    pub(super) fn local_array(
        &mut self,
        name: &str,
        element: &Type,
        bytes: u64,
        span: Span,
    ) -> Result<Operand> {
        if self.graph.has_jumps(self.frame().function) {
            let message =
                "the length of this array is not known before the program runs, and its function has labels";
            return self.error(
                span,
                message,
                "give the array a constant length, or write the jumps as loops",
            );
        }
        let length = bytes / self.size(element).max(1);
        let kind = TypeKind::Array(element.clone().into(), length);
        let ty = Type { kind, atomic: false, volatile: false };
        let node = self.nodes.object(&ty, span);
        let object = self.object(Object {
            name: name.to_string(),
            ty: Some(ty),
            node,
            origin: Origin::Local(self.thread()),
            initial: Vec::new(),
            undefined: true,
            purpose: Purpose::Program,
            span,
        });
        let blocks = self.frame().scopes.len();
        self.frame().arrays.push((blocks, object));
        if self.repeated() && !self.executing() {
            self.emit(StmtKind::Special(ObjectEvent::Begin(object)), span);
        } else {
            self.writer.env.taken.insert(object);
        }
        let location = self.location(object, &[Step::Element(0)]);
        self.address(&Target::new(Spot::Memory(location), element.clone()), span)
    }

    /// Emits a branch for each of the `remaining` sizes, and the end of the model for all sizes outside `all`.
    fn distinguished(
        &mut self,
        remaining: &[i64],
        all: &[i64],
        size: &Operand,
        sizing: Sizing,
        work: &dyn Fn(&mut Self, u64) -> Result<()>,
    ) -> Result<()> {
        let Sizing { what, verb, unit, span, .. } = sizing;
        let first = remaining
            .split_first()
            .and_then(|(size, rest)| Some((bytes((*size).into(), unit)?, *size, rest)));
        let Some((bytes, number, rest)) = first else {
            let text = match (size.known(), all) {
                (Some(size), _) => format!("{what} of {} bytes", size.saturating_mul(unit.into())),
                (None, []) => format!("{what} of a size that is not known before the program runs"),
                (None, _) => {
                    let sizes: Vec<String> =
                        all.iter().map(|size| (*size as u64 * unit).to_string()).collect();
                    format!("{what} of a size other than {} bytes", sizes.join(", "))
                }
            };
            if self.writer.reachable {
                let advice = format!(
                    "if an execution reaches it, the verdict is `unknown`; {verb} a number of bytes that is known before the program runs, such as the largest that the harness needs"
                );
                self.warn(span, format!("{text} is not modelled: {advice}"));
            }
            self.emit(StmtKind::Beyond(Value::Number(1), text), span);
            self.writer.reachable = false;
            return Ok(());
        };
        let same = compare(Operator::Equal, size.clone(), Operand::number(number.into()));
        self.branch(
            same,
            span,
            |this| work(this, bytes),
            |this| this.distinguished(rest, all, size, sizing, work),
        )
    }

    /// The values of an expression that contains one register with a small range; empty for any other expression.
    fn in_range(&mut self, value: &Value) -> BTreeSet<i64> {
        let mut registers = BTreeSet::new();
        value.registers(&mut |register| {
            registers.insert(register);
        });
        let Some(&register) = registers.first().filter(|_| registers.len() == 1) else {
            return BTreeSet::new();
        };
        let (low, high) = self.register_value(register).range;
        if high - low >= MOST_IN_RANGE as i128 || high > i64::MAX.into() {
            return BTreeSet::new();
        }
        (low..=high).filter_map(|number| evaluated(value, register, number as i64)).collect()
    }
}

/// The value of an expression if its only register has the value `number`; `None` if the value is undefined, or if the expression has other
/// registers or pointers.
fn evaluated(value: &Value, register: Register, number: i64) -> Option<i64> {
    match value {
        Value::Number(number) => Some(*number),
        Value::Register(this) => (*this == register).then_some(number),
        Value::Unary(op, inner) => op.apply(evaluated(inner, register, number)?).ok(),
        Value::Binary(op, a, b) => {
            op.apply(evaluated(a, register, number)?, evaluated(b, register, number)?).ok()
        }
        Value::If(condition, a, b) => match evaluated(condition, register, number)? {
            0 => evaluated(b, register, number),
            _ => evaluated(a, register, number),
        },
        _ => None,
    }
}
