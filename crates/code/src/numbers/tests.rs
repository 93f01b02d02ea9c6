//! Differential tests of integer operations against arithmetic on constants.

use fencewright_c::arithmetic::{self, Arithmetic};
use fencewright_c::ast::{BinaryOp as Operator, Integer, Rank, UnaryOp as Unary};
use fencewright_program::{BinaryOp, EvalError, Expr, UnaryOp, Width};
use fencewright_testing::Random;

use super::*;

const TYPES: [Arithmetic; 10] = [
    Arithmetic::Bool,
    int(Rank::Char, true),
    int(Rank::Char, false),
    int(Rank::Short, true),
    int(Rank::Short, false),
    int(Rank::Int, true),
    int(Rank::Int, false),
    int(Rank::Long, true),
    int(Rank::Long, false),
    int(Rank::LongLong, false),
];

const OPERATORS: [Operator; 18] = [
    Operator::Multiply,
    Operator::Divide,
    Operator::Remainder,
    Operator::Add,
    Operator::Subtract,
    Operator::ShiftLeft,
    Operator::ShiftRight,
    Operator::Less,
    Operator::Greater,
    Operator::LessOrEqual,
    Operator::GreaterOrEqual,
    Operator::Equal,
    Operator::NotEqual,
    Operator::BitAnd,
    Operator::BitXor,
    Operator::BitOr,
    Operator::And,
    Operator::Or,
];

const fn int(rank: Rank, signed: bool) -> Arithmetic {
    Arithmetic::Integer(Integer { rank, signed })
}

/// An interpreter of values and checks.
#[derive(Default)]
struct Machine {
    registers: Vec<i64>,
    faults: Vec<&'static str>,
    /// Number of registers requested for values.
    named: usize,
    /// Number of checks requested.
    checked: usize,
}

impl Machine {
    fn register(&mut self, number: i64) -> Value {
        self.registers.push(number);
        Value::Register(Register(self.registers.len() as u32 - 1))
    }

    fn eval(&self, value: &Value) -> Result<i64, EvalError> {
        expression(value).eval(&mut |register| self.registers[register.0 as usize])
    }
}

impl Sink for Machine {
    fn check(&mut self, condition: Value, fault: &'static str) {
        self.checked += 1;
        if self.faults.is_empty() && self.eval(&condition).expect("a check has a value") == 0 {
            self.faults.push(fault);
        }
    }

    fn name(&mut self, value: Value) -> Value {
        self.named += 1;
        // After a failed check nothing is evaluated.
        let number = match self.faults.is_empty() {
            true => self.eval(&value).expect("a name has a value"),
            false => 0,
        };
        self.register(number)
    }
}

fn expression(value: &Value) -> Expr<Register> {
    match value {
        Value::Number(number) => Expr::Const(*number),
        Value::Register(register) => Expr::Leaf(*register),
        Value::Unary(op, a) => Expr::unary(*op, expression(a)),
        Value::Binary(op, a, b) => Expr::binary(*op, expression(a), expression(b)),
        Value::If(c, a, b) => Expr::choice(expression(c), expression(a), expression(b)),
        other => panic!("not a number: {other:?}"),
    }
}

/// A value of a type, often near an end of its range or near 0.
fn value(random: &mut Random, ty: Arithmetic) -> i128 {
    let near = random.below(4) as i128;
    let value = match random.below(6) {
        0 => ty.least() + near,
        1 => ty.greatest() - near,
        2 => random.below(70) as i128,
        3 => near - 2,
        4 => (1 << random.below(64)) - near,
        _ => i128::from(random.between(i64::MIN, i64::MAX)),
    };
    ty.converted(value)
}

/// A value as an operand: a constant, or a register with the range of its type or a narrower one.
fn operand(random: &mut Random, machine: &mut Machine, value: i128, ty: Arithmetic) -> Operand {
    let register = |machine: &mut Machine| machine.register(value as i64);
    match random.below(4) {
        0 => Operand::number(value),
        1 => {
            let (below, above) = (random.below(9) as i128, 1 << random.below(40));
            let range = ((value - below).max(ty.least()), (value + above).min(ty.greatest()));
            Operand::new(register(machine), range)
        }
        _ => Operand::of(register(machine), ty),
    }
}

fn number(machine: &Machine, operand: &Operand) -> i128 {
    let number = machine.eval(&operand.value).expect("no limit is reached");
    match operand.range.0 >= 0 {
        true if number < 0 => i128::from(number as u64),
        _ => number.into(),
    }
}

/// The value, which must be in its range; `None` if a check failed.
fn outcome(machine: &Machine, operand: &Operand) -> Option<i128> {
    machine.faults.is_empty().then(|| {
        let number = number(machine, operand);
        assert!(operand.range.0 <= number && number <= operand.range.1, "{number} in {operand:?}");
        number
    })
}

/// A random expression, translated and evaluated on constants; `None` is a fault.
fn random_expression(
    random: &mut Random,
    machine: &mut Machine,
    depth: u32,
) -> (Operand, Option<i128>, Arithmetic) {
    if depth == 0 || random.one_in(6) {
        let ty = *random.pick(&TYPES);
        let value = value(random, ty);
        return (operand(random, machine, value, ty), Some(value), ty);
    }
    let (a, x, ty) = random_expression(random, machine, depth - 1);
    match random.below(8) {
        0 => {
            let promoted = Arithmetic::Integer(ty.promoted());
            let a = convert(promoted, a);
            let op = *random.pick(&[Unary::Minus, Unary::Complement, Unary::Not]);
            let result = x.and_then(|x| arithmetic::unary(op, (x, ty)).ok()).map(|(value, _)| value);
            match op {
                Unary::Minus => (negate(machine, promoted, a), result, promoted),
                Unary::Complement => (complement(promoted, a), result, promoted),
                _ => (not(a), result, Arithmetic::INT),
            }
        }
        1 => {
            let to = *random.pick(&TYPES);
            (convert(to, a), x.map(|x| to.converted(x)), to)
        }
        _ => {
            let (b, y, other) = random_expression(random, machine, depth - 1);
            let op = *random.pick(&OPERATORS);
            let result = x.zip(y).and_then(|(x, y)| arithmetic::binary(op, (x, ty), (y, other)).ok());
            let result_type = Arithmetic::Integer(arithmetic::binary_type(op, ty, other));
            let (computed_in, a, b) = match op {
                Operator::And | Operator::Or => (Arithmetic::INT, a, b),
                Operator::ShiftLeft | Operator::ShiftRight => {
                    let promoted = Arithmetic::Integer(other.promoted());
                    (result_type, convert(result_type, a), convert(promoted, b))
                }
                _ => {
                    let common = Arithmetic::Integer(ty.common(other));
                    (common, convert(common, a), convert(common, b))
                }
            };
            (binary(machine, op, computed_in, a, b), result, result_type)
        }
    }
}

#[test]
fn ranges_of_expressions_agree_with_single_values() {
    let mut random = Random::new(1);
    let programs = std::env::var("FENCEWRIGHT_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(200_000);
    let (mut faults, mut large) = (0, 0);
    for _ in 0..programs {
        let mut machine = Machine::default();
        let depth = 1 + random.below(3) as u32;
        let (operand, expected, _) = random_expression(&mut random, &mut machine, depth);
        let found = outcome(&machine, &operand);
        assert_eq!(found, expected, "{operand:?} with {:?}", machine.registers);
        faults += usize::from(expected.is_none());
        large += usize::from(expected.is_some_and(|value| value > i64::MAX.into()));
    }
    assert!(faults > programs / 25 && large > programs / 25, "{faults} faults, {large} large values");
}

#[test]
fn read_modify_writes_wrap_around() {
    let mut random = Random::new(2);
    for _ in 0..50_000 {
        let mut machine = Machine::default();
        let ty = *random.pick(&TYPES);
        let (x, y) = (value(&mut random, ty), value(&mut random, ty));
        let a = operand(&mut random, &mut machine, x, ty);
        let b = operand(&mut random, &mut machine, y, ty);
        let (op, exact) = match random.below(5) {
            0 => (Operator::Add, x + y),
            1 => (Operator::Subtract, x - y),
            2 => (Operator::BitAnd, x & y),
            3 => (Operator::BitOr, x | y),
            _ => (Operator::BitXor, x ^ y),
        };
        let result = wrapping(op, ty, a, b);
        assert_eq!(outcome(&machine, &result), Some(ty.converted(exact)), "{result:?}");
    }
}

/// The translation of an operation on two registers of a type, or on a register and a constant; also how many checks and names it requested.
fn written(op: Operator, ty: Arithmetic, b: Option<i128>) -> (Value, usize, usize) {
    let mut machine = Machine::default();
    let a = Operand::of(machine.register(0), ty);
    let b = match b {
        Some(number) => Operand::number(number),
        None => Operand::of(machine.register(0), ty),
    };
    let result = binary(&mut machine, op, ty, a, b);
    (result.value, machine.checked, machine.named)
}

#[test]
fn simple_expressions_stay_unchanged() {
    let is_plain = |value: &Value, wanted: BinaryOp| match value {
        Value::Binary(op, a, b) => {
            *op == wanted
                && matches!(**a, Value::Register(_))
                && matches!(**b, Value::Register(_) | Value::Number(_))
        }
        _ => false,
    };
    let (value, checks, _) = written(Operator::Add, Arithmetic::INT, Some(1));
    assert!(is_plain(&value, BinaryOp::Add) && checks == 1, "{value:?}");
    let (value, checks, _) = written(Operator::Equal, int(Rank::Long, false), None);
    assert!(is_plain(&value, BinaryOp::Eq) && checks == 0, "{value:?}");
    let (value, checks, _) = written(Operator::Less, int(Rank::Int, false), None);
    assert!(is_plain(&value, BinaryOp::Lt) && checks == 0, "{value:?}");
    let (value, checks, _) = written(Operator::Add, int(Rank::Int, false), Some(1));
    let Value::Unary(UnaryOp::Unsigned(Width::Bits32), inner) = &value else { panic!("{value:?}") };
    assert!(is_plain(inner, BinaryOp::Add) && checks == 0, "{value:?}");
    // (unsigned char)(ticket + 1), the sum as int.
    let ticket = Operand::of(Value::Register(Register(0)), int(Rank::Char, false));
    let mut machine = Machine::default();
    let sum = binary(&mut machine, Operator::Add, Arithmetic::INT, ticket, Operand::number(1));
    let next = convert(int(Rank::Char, false), sum);
    let Value::Unary(UnaryOp::Unsigned(Width::Bits8), inner) = &next.value else { panic!("{next:?}") };
    assert!(is_plain(inner, BinaryOp::Add) && machine.checked == 0, "{next:?}");
}

#[test]
fn conditions_narrow_the_ranges_of_registers() {
    let register = || Value::Register(Register(3));
    let within = |condition: &Value, holds| {
        let mut range = (i128::from(i64::MIN), i128::from(i64::MAX));
        implied(condition, holds, &mut |found, (low, high)| {
            assert_eq!(found, Register(3));
            range = (range.0.max(low), range.1.min(high));
        });
        range
    };
    let below = register().with(BinaryOp::Lt, 10);
    assert_eq!(within(&below, true).1, 9);
    assert_eq!(within(&below, false).0, 10);
    let both = Value::binary(BinaryOp::And, below, Value::binary(BinaryOp::Le, Value::Number(2), register()));
    assert_eq!(within(&both, true), (2, 9));
    assert_eq!(within(&both, false), (i64::MIN.into(), i64::MAX.into()));
    let unsigned = Operand::of(register(), int(Rank::Long, false));
    assert_eq!(unsigned.clone().narrowed((i64::MIN.into(), 9)).range, unsigned.range);
    assert_eq!(unsigned.narrowed((2, 9)).range, (2, 9));
}
