//! Intervals of values, with a flag for the undefined value: the abstract domain of the interval analysis.

use fencewright_program::{BinaryOp, UnaryOp};

use crate::core::Register;
use crate::flat::{Term, UNDEFINED};

/// The numbers `low..=high`, none if `low > high`, and possibly the undefined value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub low: i64,
    pub high: i64,
    pub undefined: bool,
}

impl Range {
    pub const NOTHING: Range = Range { low: 1, high: 0, undefined: false };
    pub const EVERYTHING: Range = Range { low: i64::MIN, high: i64::MAX, undefined: true };

    pub fn new(low: i64, high: i64) -> Self {
        Range { low, high, undefined: false }
    }

    pub fn of(number: i64) -> Self {
        match number == UNDEFINED {
            true => Range { undefined: true, ..Range::NOTHING },
            false => Range::new(number, number),
        }
    }

    /// The interval of these bounds, cut to 64 bits. Values outside 64 bits do not occur, because engines give up where a computation overflows.
    fn clamped(low: i128, high: i128) -> Self {
        let clamp = |value: i128| value.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        Range::new(clamp(low), clamp(high))
    }

    fn has_numbers(self) -> bool {
        self.low <= self.high
    }

    pub fn is_nothing(self) -> bool {
        !self.has_numbers() && !self.undefined
    }

    pub fn joined(self, other: Range) -> Range {
        let undefined = self.undefined || other.undefined;
        match (self.has_numbers(), other.has_numbers()) {
            (false, _) => Range { undefined, ..other },
            (_, false) => Range { undefined, ..self },
            _ => Range { low: self.low.min(other.low), high: self.high.max(other.high), undefined },
        }
    }

    /// The intersection.
    pub fn both(self, other: Range) -> Range {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        let undefined = self.undefined && other.undefined;
        if low <= high { Range { low, high, undefined } } else { Range { undefined, ..Range::NOTHING } }
    }

    /// Widening: a bound that has grown moves to the next number in `stations`, a sorted list, or to infinity beyond the last one.
    pub fn widened(self, grown: Range, stations: &[i64]) -> Range {
        if !self.has_numbers() || !grown.has_numbers() {
            return grown;
        }
        let below = |bound: i64| {
            let n = stations.partition_point(|&station| station <= bound);
            if n == 0 { i64::MIN } else { stations[n - 1] }
        };
        let above = |bound: i64| {
            let n = stations.partition_point(|&station| station < bound);
            stations.get(n).copied().unwrap_or(i64::MAX)
        };
        let low = if grown.low < self.low { below(grown.low) } else { grown.low };
        let high = if grown.high > self.high { above(grown.high) } else { grown.high };
        Range { low, high, undefined: grown.undefined }
    }

    /// The interval of the numbers that represent these values, including [`UNDEFINED`] if the undefined value is possible.
    fn hull(self) -> (i128, i128) {
        let plain = match self.undefined {
            true => self.joined(Range::new(UNDEFINED, UNDEFINED)),
            false => self,
        };
        (plain.low.into(), plain.high.into())
    }

    /// `Some(true)` if all numbers of the hull are nonzero, `Some(false)` if 0 is the only one, otherwise `None`.
    pub fn truth(self) -> Option<bool> {
        let (low, high) = self.hull();
        match (low, high) {
            (0, 0) => Some(false),
            _ if low > 0 || high < 0 => Some(true),
            _ => None,
        }
    }
}

/// The intervals of registers and arrays at a program point.
pub(crate) trait Values {
    fn register(&self, register: Register) -> Range;
    fn element(&self, array: usize) -> Range;
}

/// The interval of a term.
pub(crate) fn range_of(term: &Term, values: &impl Values) -> Range {
    match term {
        Term::Number(number) => Range::of(*number),
        Term::Register(register) => values.register(*register),
        Term::Element(array, _) => values.element(*array),
        Term::Unary(op, a) => unary(*op, range_of(a, values)),
        Term::Binary(op, a, b) => binary(*op, range_of(a, values), range_of(b, values)),
        Term::If(condition, a, b) => match range_of(condition, values).truth() {
            Some(true) => range_of(a, values),
            Some(false) => range_of(b, values),
            None => range_of(a, values).joined(range_of(b, values)),
        },
    }
}

const TRUTH: Range = Range { low: 0, high: 1, undefined: false };

fn known(truth: Option<bool>) -> Range {
    truth.map_or(TRUTH, |truth| Range::of(truth.into()))
}

fn unary(op: UnaryOp, a: Range) -> Range {
    if a.is_nothing() {
        return a;
    }
    let (low, high) = a.hull();
    match op {
        UnaryOp::Neg => Range::clamped(-high, -low),
        UnaryOp::BitNot => Range::clamped(-high - 1, -low - 1),
        UnaryOp::Not => known(a.truth().map(|truth| !truth)),
        UnaryOp::Unsigned(width) => wrapped(low, high, 0, (1_i128 << width.bits()) - 1),
        UnaryOp::Signed(width) => {
            wrapped(low, high, -(1_i128 << (width.bits() - 1)), (1_i128 << (width.bits() - 1)) - 1)
        }
    }
}

fn wrapped(low: i128, high: i128, least: i128, greatest: i128) -> Range {
    // A bound at the limit of 64 bits may be the result of clamping. Then the exact bound is unknown, and wrapping may give any value of the type.
    let (open, closed) = (i128::from(i64::MIN), i128::from(i64::MAX));
    if low >= least && high <= greatest && low > open && high < closed {
        Range::clamped(low, high)
    } else {
        Range::clamped(least, greatest)
    }
}

fn binary(op: BinaryOp, a: Range, b: Range) -> Range {
    use BinaryOp::*;
    if a.is_nothing() || b.is_nothing() {
        return Range::NOTHING;
    }
    let ((low, high), (least, greatest)) = (a.hull(), b.hull());
    let both = i128::from(i64::MIN)..=i128::from(i64::MAX);
    let everything = Range::clamped(*both.start(), *both.end());
    match op {
        Add => Range::clamped(low + least, high + greatest),
        Sub => Range::clamped(low - greatest, high - least),
        Mul => {
            let corners = [low * least, low * greatest, high * least, high * greatest];
            Range::clamped(corners.into_iter().min().unwrap_or(0), corners.into_iter().max().unwrap_or(0))
        }
        Div if least > 0 => {
            let corners = [low / least, low / greatest, high / least, high / greatest];
            Range::clamped(corners.into_iter().min().unwrap_or(0), corners.into_iter().max().unwrap_or(0))
        }
        Rem if least > 0 => {
            let most = greatest - 1;
            Range::clamped(
                if low < 0 { (-most).max(low) } else { 0 },
                if high > 0 { most.min(high) } else { 0 },
            )
        }
        BitAnd if least >= 0 => Range::clamped(0, if low >= 0 { high.min(greatest) } else { greatest }),
        BitAnd if low >= 0 => Range::clamped(0, high),
        BitOr | BitXor if low >= 0 && least >= 0 => {
            let bits = 128 - high.max(greatest).leading_zeros();
            Range::clamped(0, (1 << bits) - 1)
        }
        Shr if least >= 0 && greatest < 64 => {
            let corners = [low >> least, low >> greatest, high >> least, high >> greatest];
            Range::clamped(corners.into_iter().min().unwrap_or(0), corners.into_iter().max().unwrap_or(0))
        }
        Eq if high < least || greatest < low => Range::of(0),
        Eq if low == high && least == greatest => Range::of((low == least).into()),
        Ne => unary(UnaryOp::Not, binary(Eq, a, b)),
        Lt if high < least => Range::of(1),
        Lt if low >= greatest => Range::of(0),
        Ge => unary(UnaryOp::Not, binary(Lt, a, b)),
        Gt => binary(Lt, b, a),
        Le => unary(UnaryOp::Not, binary(Lt, b, a)),
        Eq | Lt => TRUTH,
        And => match (a.truth(), b.truth()) {
            (Some(false), _) | (_, Some(false)) => Range::of(0),
            (Some(true), Some(true)) => Range::of(1),
            _ => TRUTH,
        },
        Or => match (a.truth(), b.truth()) {
            (Some(true), _) | (_, Some(true)) => Range::of(1),
            (Some(false), Some(false)) => Range::of(0),
            _ => TRUTH,
        },
        Min => Range::clamped(low.min(least), high.min(greatest)),
        Max => Range::clamped(low.max(least), high.max(greatest)),
        Div | Rem | BitAnd | BitOr | BitXor | Shl | Shr => everything,
    }
}

/// Refines the intervals of registers under a condition if `holds`, otherwise under its negation: calls `learned` with registers and intervals that
/// contain their values in that case.
pub(crate) fn refine(
    condition: &Term,
    holds: bool,
    values: &impl Values,
    learned: &mut impl FnMut(Register, Range),
) {
    match condition {
        Term::Unary(UnaryOp::Not, inner) => refine(inner, !holds, values, learned),
        Term::Binary(BinaryOp::And, a, b) if holds => {
            refine(a, true, values, learned);
            refine(b, true, values, learned);
        }
        Term::Binary(BinaryOp::Or, a, b) if !holds => {
            refine(a, false, values, learned);
            refine(b, false, values, learned);
        }
        Term::Binary(op, a, b) if op.is_comparison() => {
            let op = if holds { *op } else { op.negated() };
            constrain(a, op, range_of(b, values), values, learned);
            constrain(b, mirrored(op), range_of(a, values), values, learned);
        }
        Term::Register(_) => {
            let op = if holds { BinaryOp::Ne } else { BinaryOp::Eq };
            constrain(condition, op, Range::of(0), values, learned);
        }
        _ => {}
    }
}

fn mirrored(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Ge => BinaryOp::Le,
        other => other,
    }
}

/// Refines the register in `term` under `term op other`, where `other` is any value of an interval.
fn constrain(
    term: &Term,
    op: BinaryOp,
    other: Range,
    values: &impl Values,
    learned: &mut impl FnMut(Register, Range),
) {
    match term {
        Term::Register(register) => {
            learned(*register, constrained(values.register(*register), op, other));
        }
        // The constant is moved to the other side, which is sound because values do not overflow 64 bits.
        Term::Binary(BinaryOp::Add | BinaryOp::Sub, left, right)
            if !other.undefined && op != BinaryOp::Ne =>
        {
            let (Term::Register(register), Some(number)) = (&**left, right.number()) else { return };
            let inverse =
                if matches!(term, Term::Binary(BinaryOp::Add, ..)) { BinaryOp::Sub } else { BinaryOp::Add };
            let now = values.register(*register);
            if !now.undefined {
                learned(*register, constrained(now, op, binary(inverse, other, Range::of(number))));
            }
        }
        _ => {}
    }
}

fn constrained(range: Range, op: BinaryOp, other: Range) -> Range {
    let (least, greatest) = other.hull();
    let (low, high) = (i128::from(range.low), i128::from(range.high));
    let numbers = match op {
        BinaryOp::Eq => (low.max(least), high.min(greatest)),
        BinaryOp::Lt => (low, high.min(greatest - 1)),
        BinaryOp::Le => (low, high.min(greatest)),
        BinaryOp::Gt => (low.max(least + 1), high),
        BinaryOp::Ge => (low.max(least), high),
        BinaryOp::Ne if least == greatest && low == least => (low + 1, high),
        BinaryOp::Ne if least == greatest && high == least => (low, high - 1),
        _ => (low, high),
    };
    let number = i128::from(UNDEFINED);
    let may_be = match op {
        BinaryOp::Eq => least <= number && number <= greatest,
        BinaryOp::Ne => !(least == number && greatest == number),
        BinaryOp::Lt => number < greatest,
        BinaryOp::Le => number <= greatest,
        BinaryOp::Gt => number > least,
        BinaryOp::Ge => number >= least,
        _ => true,
    };
    let undefined = range.undefined && may_be;
    match range.has_numbers() && numbers.0 <= numbers.1 {
        true => Range { undefined, ..Range::clamped(numbers.0, numbers.1) },
        false => Range { undefined, ..Range::NOTHING },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All registers and elements have the same interval.
    struct All(Range);

    impl Values for All {
        fn register(&self, _register: Register) -> Range {
            self.0
        }

        fn element(&self, _array: usize) -> Range {
            self.0
        }
    }

    /// The interval of an operation contains the result for every pair of operands.
    #[test]
    fn ranges_have_all_results() {
        use BinaryOp::*;
        let numbers = -5..=5;
        for op in [
            Add, Sub, Mul, Div, Rem, BitAnd, BitOr, BitXor, Eq, Ne, Lt, Le, Gt, Ge, And, Or, Shl, Shr, Min,
            Max,
        ] {
            for (low, high) in [(-5, 5), (0, 3), (1, 2), (-3, -1), (2, 2), (0, 0)] {
                for (least, greatest) in [(-5, 5), (0, 3), (1, 2), (-3, -1), (2, 2), (0, 0)] {
                    let range = binary(op, Range::new(low, high), Range::new(least, greatest));
                    for a in numbers.clone().filter(|a| (low..=high).contains(a)) {
                        for b in numbers.clone().filter(|b| (least..=greatest).contains(b)) {
                            let Ok(result) = op.apply(a, b) else { continue };
                            assert!(
                                (range.low..=range.high).contains(&result),
                                "{a} {op:?} {b} in {range:?}"
                            );
                        }
                    }
                }
            }
        }
    }

    /// Every number that satisfies a condition is kept where the condition holds.
    #[test]
    fn conditions_exclude_only_values_that_violate_them() {
        use BinaryOp::*;
        let register = Term::Register(Register(0));
        for op in [Eq, Ne, Lt, Le, Gt, Ge] {
            for bound in -4..=4 {
                for term in [register.clone(), register.clone().plus(2), register.clone().plus(-2)] {
                    let condition = term.with(op, bound);
                    for holds in [false, true] {
                        let mut learned = Range::new(-3, 3);
                        refine(&condition, holds, &All(Range::new(-3, 3)), &mut |_, range| {
                            learned = learned.both(range)
                        });
                        for value in -3..=3 {
                            let truth = condition.replaced(&|_| Term::Number(value)).number() != Some(0);
                            let possible = (learned.low..=learned.high).contains(&value);
                            assert!(possible || truth != holds, "{condition:?} {holds} {value} {learned:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn undefined_values_are_numbers_for_checks() {
        let undefined = All(Range { undefined: true, ..Range::new(1, 3) });
        let register = Term::Register(Register(0));
        let check = register.clone().within(1, 3);
        assert_eq!(range_of(&check, &undefined).truth(), None);
        let mut learned = undefined.0;
        refine(&check, true, &undefined, &mut |_, range| learned = learned.both(range));
        assert_eq!(learned, Range::new(1, 3));
        refine(&register.with(BinaryOp::Ne, UNDEFINED), true, &undefined, &mut |_, range| {
            learned = learned.both(range)
        });
        assert_eq!(learned, Range::new(1, 3));
    }

    #[test]
    fn ranges_are_widened_in_large_steps() {
        let grown = Range::new(0, 3).widened(Range::new(0, 4), &[0, 8]);
        assert_eq!(grown, Range::new(0, 8));
        assert_eq!(grown.widened(Range::new(-1, 9), &[0, 8]), Range::new(i64::MIN, i64::MAX));
    }
}
