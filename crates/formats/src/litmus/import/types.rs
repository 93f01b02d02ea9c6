//! Types and widths of x86: types of locations, parts of registers, and arithmetic modulo a width.
//!
//! A value of n bits is represented by the signed number with these bits: eight bits that are all 1 represent -1, not 255.

use fencewright_fw::ast::{Expr, ExprKind};
use fencewright_fw::build;
use fencewright_program::{BinaryOp, Span};

/// The width of a value in bits (8, 16, 32 or 64), and whether its final value is shown as a signed number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) bits: u32,
    pub(super) signed: bool,
}

impl Type {
    /// The type that herd assumes for locations and registers without a declared type.
    pub(super) const INT: Type = Type { bits: 32, signed: true };

    /// The type that these C words name; `None` if they name no supported type.
    pub(super) fn parse(words: &[&str]) -> Option<Type> {
        let words: Vec<&str> =
            words.iter().copied().filter(|w| !matches!(*w, "volatile" | "const" | "_Atomic")).collect();
        let signed = !words.contains(&"unsigned");
        let rest: Vec<&str> =
            words.iter().copied().filter(|w| !matches!(*w, "unsigned" | "signed" | "int")).collect();
        let plain = |bits| Some(Type { bits, signed });
        match rest[..] {
            [] if !words.is_empty() => plain(32),
            ["char"] => plain(8),
            ["short"] => plain(16),
            ["long"] | ["long", "long"] => plain(64),
            ["atomic_int"] if words.len() == 1 => plain(32),
            [name] if words.len() == 1 => {
                let (name, signed) = name.strip_prefix('u').map_or((name, true), |n| (n, false));
                let bits = match name {
                    "int8_t" => 8,
                    "int16_t" => 16,
                    "int32_t" => 32,
                    "int64_t" | "intptr_t" => 64,
                    _ => return None,
                };
                Some(Type { bits, signed })
            }
            _ => None,
        }
    }
}

/// The lowest `bits` bits of a value, read as a signed number.
pub(super) fn reduce(value: i128, bits: u32) -> i64 {
    (value << (128 - bits) >> (128 - bits)) as i64
}

/// A mask of the lowest `bits` bits, which must be fewer than 64.
pub(super) fn mask(bits: u32) -> i64 {
    (1 << bits) - 1
}

/// An expression for the lowest `bits` bits of a value, read as a signed number. No intermediate result exceeds 64 bits.
pub(super) fn wrap(value: Expr, bits: u32, span: Span) -> Expr {
    if bits == 64 {
        return value;
    }
    let half = || build::int(1 << (bits - 1), span);
    let low = unsigned(value, bits, span);
    build::binary(BinaryOp::Sub, build::binary(BinaryOp::BitXor, low, half(), span), half(), span)
}

/// An expression for the lowest `bits` bits of a value (fewer than 64), read as an unsigned number.
pub(super) fn unsigned(value: Expr, bits: u32, span: Span) -> Expr {
    if let ExprKind::Int(value) = value.kind {
        return build::int(value & mask(bits), span);
    }
    build::binary(BinaryOp::BitAnd, value, build::int(mask(bits), span), span)
}

/// A part of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The lowest bits; the number is the width.
    Low(u32),
    /// Bits 8 to 15: `ah`.
    High,
}

/// A register, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RegisterPart {
    /// The number of the whole register, which is the same for `rax`, `eax`, `ax`, `al` and `ah`.
    pub(super) family: usize,
    pub(super) part: Part,
}

/// The lettered registers, by the names of their 16-bit parts, in herd's order.
const LETTERED: [&str; 8] = ["AX", "BX", "CX", "DX", "SI", "DI", "BP", "SP"];
/// The number of the first numbered register, `R8`.
const NUMBERED: usize = 8;
/// The number of x86 registers.
pub(super) const FAMILIES: usize = 16;

impl RegisterPart {
    /// The register, or part of a register, that a word in upper or lower case names, if any.
    pub(super) fn parse(word: &str) -> Option<RegisterPart> {
        // No register has a longer name, so long words are not copied.
        let upper = if word.len() <= 4 { word.to_ascii_uppercase() } else { return None };
        let lettered = |name: &str| LETTERED.iter().position(|l| *l == name);
        let low = |family: usize, bits| Some(RegisterPart { family, part: Part::Low(bits) });
        if let Some(family) = lettered(&upper) {
            return low(family, 16);
        }
        if let Some(family) = upper.strip_prefix('E').and_then(lettered) {
            return low(family, 32);
        }
        if let Some(family) = upper.strip_prefix('R').and_then(lettered) {
            return low(family, 64);
        }
        if let Some(stem) = upper.strip_suffix('L')
            && let Some(family) = LETTERED.iter().position(|l| match l.strip_suffix('X') {
                Some(letter) => letter == stem,
                None => *l == stem,
            })
        {
            return low(family, 8);
        }
        if let Some(stem) = upper.strip_suffix('H')
            && let Some(family) = LETTERED.iter().position(|l| l.strip_suffix('X') == Some(stem))
        {
            return Some(RegisterPart { family, part: Part::High });
        }
        let number = upper.strip_prefix('R')?;
        let (number, bits) = match number.as_bytes().last()? {
            b'D' => (&number[..number.len() - 1], 32),
            b'W' => (&number[..number.len() - 1], 16),
            b'B' | b'L' => (&number[..number.len() - 1], 8),
            _ => (number, 64),
        };
        let number: usize = number.bytes().all(|b| b.is_ascii_digit()).then(|| number.parse().ok())??;
        (NUMBERED..FAMILIES).contains(&number).then(|| low(number, bits))?
    }

    /// `eax`, `rax`, ...: the register that CMPXCHG compares with.
    pub(super) fn accumulator(bits: u32) -> RegisterPart {
        RegisterPart { family: 0, part: Part::Low(bits) }
    }

    /// The width of this part in bits.
    pub(super) fn bits(self) -> u32 {
        match self.part {
            Part::Low(bits) => bits,
            Part::High => 8,
        }
    }

    /// The number of low bits of the whole register that contain this part.
    pub(super) fn reach(self) -> u32 {
        match self.part {
            Part::Low(bits) => bits,
            Part::High => 16,
        }
    }

    /// The name of the part, in upper case.
    pub(super) fn name(self) -> String {
        let RegisterPart { family, part } = self;
        if family >= NUMBERED {
            let suffix = match part {
                Part::Low(64) => "",
                Part::Low(32) => "D",
                Part::Low(16) => "W",
                _ => "B",
            };
            return format!("R{family}{suffix}");
        }
        let name = LETTERED[family];
        match part {
            Part::Low(64) => format!("R{name}"),
            Part::Low(32) => format!("E{name}"),
            Part::Low(16) => name.to_owned(),
            Part::Low(_) => format!("{}L", name.strip_suffix('X').unwrap_or(name)),
            Part::High => format!("{}H", name.strip_suffix('X').unwrap_or(name)),
        }
    }
}

/// The names of all registers and their parts. No location gets one of these names.
pub(super) fn register_names() -> impl Iterator<Item = String> {
    let parts = [Part::Low(64), Part::Low(32), Part::Low(16), Part::Low(8), Part::High];
    let all = (0..FAMILIES).flat_map(move |family| parts.map(|part| RegisterPart { family, part }));
    all.filter(|r| r.part != Part::High || LETTERED.get(r.family).is_some_and(|l| l.ends_with('X')))
        .map(RegisterPart::name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in register_names() {
            let part = RegisterPart::parse(&name).expect(&name);
            assert_eq!((part.name(), RegisterPart::parse(&name.to_ascii_lowercase())), (name, Some(part)));
        }
        for word in ["", "R", "E", "L", "H", "R7", "R16", "RR", "SIH", "EAXX", "R8X", "R8é", "P0", "x"] {
            assert_eq!(RegisterPart::parse(word), None, "{word}");
        }
        let part = |word| RegisterPart::parse(word).map(|p| (p.family, p.bits(), p.reach()));
        assert_eq!(part("rax"), Some((0, 64, 64)));
        assert_eq!(part("dh"), Some((3, 8, 16)));
        assert_eq!(part("sil"), Some((4, 8, 8)));
        assert_eq!(part("R10w"), Some((10, 16, 16)));
    }

    #[test]
    fn types() {
        let check = |text: &str, expected: Option<(u32, bool)>| {
            let words: Vec<&str> = text.split_whitespace().collect();
            assert_eq!(Type::parse(&words).map(|t| (t.bits, t.signed)), expected, "{text}");
        };
        check("int", Some((32, true)));
        check("volatile unsigned", Some((32, false)));
        check("unsigned long long int", Some((64, false)));
        check("uint8_t", Some((8, false)));
        check("int16_t", Some((16, true)));
        check("float", None);
        check("unsigned uint8_t", None);
        check("", None);
    }

    #[test]
    fn numbers_modulo_a_width() {
        assert_eq!(reduce(0xffff_ffff, 32), -1);
        assert_eq!(reduce(0xffff_ffff, 64), 0xffff_ffff);
        assert_eq!(reduce(i128::from(u64::MAX), 64), -1);
        assert_eq!(reduce(-129, 8), 127);
        for (value, bits) in [(128, 8), (-1, 16), (i64::MAX, 32), (i64::MIN, 32), (255, 8), (0, 8)] {
            let expr = wrap(build::int(value, Span::default()), bits, Span::default());
            assert_eq!(eval(&expr), reduce(value.into(), bits), "{value} {bits}");
        }
    }

    fn eval(e: &Expr) -> i64 {
        match &e.kind {
            ExprKind::Int(value) => *value,
            ExprKind::Binary(op, a, b) => op.apply(eval(a), eval(b)).unwrap(),
            other => panic!("{other:?}"),
        }
    }
}
