//! Integer arithmetic against gcc: random expressions of all widths, compiled and run.

use std::fmt::Write;

use fencewright_c::arithmetic::{Arithmetic, Fault, binary, binary_type, constant_type, unary};
use fencewright_c::ast::{BinaryOp, Integer, Rank, UnaryOp};
use fencewright_c::literal;

use crate::xorshift::Random;

const TYPES: [(&str, Arithmetic); 10] = [
    ("_Bool", Arithmetic::Bool),
    ("signed char", int(Rank::Char, true)),
    ("unsigned char", int(Rank::Char, false)),
    ("short", int(Rank::Short, true)),
    ("unsigned short", int(Rank::Short, false)),
    ("int", int(Rank::Int, true)),
    ("unsigned", int(Rank::Int, false)),
    ("long", int(Rank::Long, true)),
    ("unsigned long", int(Rank::Long, false)),
    ("unsigned long long", int(Rank::LongLong, false)),
];

const fn int(rank: Rank, signed: bool) -> Arithmetic {
    Arithmetic::Integer(Integer { rank, signed })
}

const OPERATORS: [(&str, BinaryOp); 18] = [
    ("*", BinaryOp::Multiply),
    ("/", BinaryOp::Divide),
    ("%", BinaryOp::Remainder),
    ("+", BinaryOp::Add),
    ("-", BinaryOp::Subtract),
    ("<<", BinaryOp::ShiftLeft),
    (">>", BinaryOp::ShiftRight),
    ("<", BinaryOp::Less),
    (">", BinaryOp::Greater),
    ("<=", BinaryOp::LessOrEqual),
    (">=", BinaryOp::GreaterOrEqual),
    ("==", BinaryOp::Equal),
    ("!=", BinaryOp::NotEqual),
    ("&", BinaryOp::BitAnd),
    ("^", BinaryOp::BitXor),
    ("|", BinaryOp::BitOr),
    ("&&", BinaryOp::And),
    ("||", BinaryOp::Or),
];

impl Random {
    /// A value of a type, often near the limits of its range or near 0.
    fn value(&mut self, ty: Arithmetic) -> i128 {
        let near = self.below(4) as i128;
        let value = match self.below(5) {
            0 => ty.least() + near,
            1 => ty.greatest() - near,
            2 => self.below(70) as i128,
            3 => near - 2,
            _ => i128::from(self.0),
        };
        ty.converted(value)
    }
}

/// A random expression over variables `v0`, `v1`, ... with known values: its text, and its value and type.
fn expression(
    random: &mut Random,
    variables: &[(i128, Arithmetic)],
    depth: u32,
) -> (String, Result<i128, Fault>, Arithmetic) {
    if depth == 0 || random.below(6) == 0 {
        let n = random.below(variables.len());
        return (format!("v{n}"), Ok(variables[n].0), variables[n].1);
    }
    let (text, value, ty) = expression(random, variables, depth - 1);
    match random.below(8) {
        0 => {
            let (sign, op) = [
                ("-", UnaryOp::Minus),
                ("~", UnaryOp::Complement),
                ("!", UnaryOp::Not),
                ("+", UnaryOp::Plus),
            ][random.below(4)];
            let computed = value.and_then(|value| unary(op, (value, ty)));
            let result = match op {
                UnaryOp::Not => Integer::INT,
                _ => ty.promoted(),
            };
            (format!("({sign}{text})"), computed.map(|(value, _)| value), Arithmetic::Integer(result))
        }
        1 => {
            let (name, to) = TYPES[random.below(TYPES.len())];
            (format!("(({name}){text})"), value.map(|value| to.converted(value)), to)
        }
        _ => {
            let (other, second, second_type) = expression(random, variables, depth - 1);
            let (sign, op) = OPERATORS[random.below(OPERATORS.len())];
            let computed = value.and_then(|a| second.and_then(|b| binary(op, (a, ty), (b, second_type))));
            (
                format!("({text} {sign} {other})"),
                computed,
                Arithmetic::Integer(binary_type(op, ty, second_type)),
            )
        }
    }
}

#[test]
fn random_expressions_against_gcc() {
    let mut random = Random(0x5eed_0123_4567);
    let (mut program, mut expected, mut faults) =
        (String::from("#include <stdio.h>\nint main(void) {\n"), Vec::new(), 0);
    for _ in 0..3_000 {
        let variables: Vec<(i128, Arithmetic, &str)> = (0..3)
            .map(|_| {
                let (name, ty) = TYPES[random.below(TYPES.len())];
                (random.value(ty), ty, name)
            })
            .collect();
        let known: Vec<(i128, Arithmetic)> = variables.iter().map(|(value, ty, _)| (*value, *ty)).collect();
        let (text, value, ty) = expression(&mut random, &known, 3);
        let Ok(value) = value else {
            faults += 1;
            continue;
        };
        program.push_str("  {");
        for (n, (value, _, name)) in variables.iter().enumerate() {
            write!(program, " volatile {name} v{n} = ({name}){}ULL;", *value as u64).expect("text");
        }
        let signed = ty.least() < 0;
        let format = if signed { "%lld" } else { "%llu" };
        let to = if signed { "long long" } else { "unsigned long long" };
        // `volatile` keeps gcc from folding the expression, and does not change its type.
        writeln!(program, " printf(\"{format} %zu\\n\", ({to})({text}), sizeof({text})); }}").expect("text");
        let size = match ty {
            Arithmetic::Bool => 1,
            Arithmetic::Integer(ty) => ty.bits() / 8,
        };
        expected.push((text, format!("{value} {size}")));
    }
    program.push_str("  return 0;\n}\n");
    assert!(faults > 300 && expected.len() > 1_000, "{faults} faults, {} values", expected.len());
    let Some(found) = crate::common::run_with_gcc("arithmetic", &program) else { return };
    assert_eq!(found.lines().count(), expected.len());
    for ((text, expected), found) in expected.iter().zip(found.lines()) {
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn constants_have_the_first_type_that_fits() {
    for (spelling, rank, signed) in [
        ("2147483647", Rank::Int, true),
        ("2147483648", Rank::Long, true),
        ("0x80000000", Rank::Int, false),
        ("0xffffffffffffffff", Rank::Long, false),
        ("1u", Rank::Int, false),
        ("1ull", Rank::LongLong, false),
        ("0777L", Rank::Long, true),
    ] {
        let literal = literal::number(spelling).expect("a number");
        assert_eq!(constant_type(&literal), Some(Integer { rank, signed }), "{spelling}");
    }
}
