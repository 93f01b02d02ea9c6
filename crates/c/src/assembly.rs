//! Operands of GNU assembly for x86-64: constraints, condition codes and the names of machine registers.
//!
//! ```text
//! constraint = modifiers "@cc" code                    an output: a condition after the last instruction
//!            | modifiers letters | digits | "[" n "]"
//! modifiers  = { "=" | "+" | "&" | "%" | "?" | "!" }
//! letters    = { "m" | "o" | "V"                       memory
//!              | "r" | "q" | "Q" | "R" | "l" | "g"     any general register
//!              | "a" | "b" | "c" | "d" | "S" | "D"     this register
//!              | "i" | "n" | "e" | "Z" | "I" | "J" | "K" | "M" | "N" | "O" }      a constant in the range of the letter
//! ```
//!
//! An operand that may be in memory or in a register is always placed in a register: its value is read before the first instruction, and written back
//! after the last. Alternatives separated by commas are not supported.

use std::fmt;

/// The constraint of one operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// The constraint as written, for messages.
    pub text: String,
    /// The direction of the data.
    pub direction: Direction,
    /// Whether the operand may be written before all inputs have been read (`&`).
    pub early: bool,
    /// The storage of the operand.
    pub kind: ConstraintKind,
}

/// The direction of an operand's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The operand is only read.
    Input,
    /// The operand is only written (`=`).
    Output,
    /// The operand is read and written (`+`).
    Both,
}

/// The storage of an operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConstraintKind {
    /// An object in memory, addressed directly by the instructions.
    Memory,
    /// A register: the given one, or any general register if `None`. With a range, a constant operand in this range may be an immediate instead.
    Register(Option<Machine>, Option<(i128, i128)>),
    /// A constant in this range, both ends included.
    Immediate((i128, i128)),
    /// The same storage as the output with this number.
    Tied(usize),
    /// The value of a condition code after the last instruction: 0 or 1.
    Condition(Condition),
    /// An unsupported constraint, with the reason.
    Unknown(String),
}

/// A general register of the processor, by its number in the encoding: `rax` is 0, `rsp` is 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Machine(pub u8);

/// A condition code of x86-64: a test of the flags, possibly negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The test of the flags that the code names, before negation.
    pub test: Test,
    /// Whether the condition is the negation of the test, as in `nz`.
    pub negated: bool,
}

/// A test of the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Signed overflow.
    Overflow,
    /// The carry flag: less than, unsigned.
    Below,
    /// The zero flag: equal.
    Equal,
    /// At most, unsigned.
    BelowOrEqual,
    /// The sign flag: the result is negative.
    Sign,
    /// The parity flag: the low byte of the result has an even number of ones.
    Parity,
    /// Less than, signed.
    Less,
    /// At most, signed.
    LessOrEqual,
}

impl Condition {
    /// The condition with a code, such as `nz`.
    pub fn named(code: &str) -> Option<Self> {
        use Test::*;
        let (test, negated) = match code {
            "o" => (Overflow, false),
            "no" => (Overflow, true),
            "b" | "c" | "nae" => (Below, false),
            "ae" | "nb" | "nc" => (Below, true),
            "e" | "z" => (Equal, false),
            "ne" | "nz" => (Equal, true),
            "be" | "na" => (BelowOrEqual, false),
            "a" | "nbe" => (BelowOrEqual, true),
            "s" => (Sign, false),
            "ns" => (Sign, true),
            "p" | "pe" => (Parity, false),
            "np" | "po" => (Parity, true),
            "l" | "nge" => (Less, false),
            "ge" | "nl" => (Less, true),
            "le" | "ng" => (LessOrEqual, false),
            "g" | "nle" => (LessOrEqual, true),
            _ => return None,
        };
        Some(Condition { test, negated })
    }
}

/// The stems of the first eight registers: 16 bits without a prefix, 32 with `e`, 64 with `r`.
const STEMS: [&str; 8] = ["ax", "cx", "dx", "bx", "sp", "bp", "si", "di"];
/// The low bytes of the first eight registers.
const BYTES: [&str; 8] = ["al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil"];

impl Machine {
    /// The stack pointer.
    pub const STACK: Machine = Machine(4);

    /// The register with a name (without `%`), and the number of bytes that the name denotes: `eax` is 4 bytes of `rax`.
    pub fn named(name: &str) -> Option<(Self, u64)> {
        if let Some(number) = BYTES.iter().position(|byte| *byte == name) {
            return Some((Machine(number as u8), 1));
        }
        if let Some(number) =
            name.strip_prefix('r').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        {
            let digits = number.trim_end_matches(['b', 'w', 'd']);
            let bytes = match &number[digits.len()..] {
                "" => 8,
                "d" => 4,
                "w" => 2,
                "b" => 1,
                _ => return None,
            };
            let plain = !digits.starts_with('0') && digits.len() <= 2;
            let number = digits.parse().ok().filter(|number| plain && (8..16).contains(number))?;
            return Some((Machine(number), bytes));
        }
        let (stem, bytes) = match name.len() {
            2 => (name, 2),
            _ => match (name.strip_prefix('r'), name.strip_prefix('e')) {
                (Some(stem), _) => (stem, 8),
                (None, Some(stem)) => (stem, 4),
                (None, None) => return None,
            },
        };
        let number = STEMS.iter().position(|other| *other == stem)?;
        Some((Machine(number as u8), bytes))
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match STEMS.get(usize::from(self.0)) {
            Some(stem) => write!(f, "%r{stem}"),
            None => write!(f, "%r{}", self.0),
        }
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Constraint {
    /// Parses the constraint of an output (if `output`) or of an input.
    pub fn new(text: &str, output: bool) -> Self {
        let rest = text.trim_start_matches(['=', '+', '&', '%']);
        let modifiers = &text[..text.len() - rest.len()];
        let early = text.contains('&');
        let direction = match (output, modifiers.contains('+')) {
            (false, _) => Direction::Input,
            (true, false) => Direction::Output,
            (true, true) => Direction::Both,
        };
        let misplaced = output != modifiers.contains(['=', '+']) || !output && early;
        let kind = match misplaced {
            true if output => ConstraintKind::Unknown("an output starts with `=` or `+`".into()),
            true => ConstraintKind::Unknown("an input has no `=`, `+` or `&`".into()),
            false => storage(rest, output),
        };
        Constraint { text: text.to_string(), direction, early, kind }
    }

    /// Whether the operand is an object in memory.
    pub fn is_memory(&self) -> bool {
        self.kind == ConstraintKind::Memory
    }
}

/// The storage that the letters of a constraint select, after the modifiers `=`, `+`, `&` and `%` have been removed.
fn storage(letters: &str, output: bool) -> ConstraintKind {
    use ConstraintKind::*;
    if let Some(code) = letters.strip_prefix("@cc") {
        return match self::Condition::named(code) {
            Some(condition) if output => Condition(condition),
            _ => Unknown(format!("`{code}` is no condition of an output")),
        };
    }
    let tied = letters.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(letters);
    if tied.starts_with(|c: char| c.is_ascii_digit()) {
        return match tied.parse() {
            Ok(number) if !output && number < 100 => Tied(number),
            _ => Unknown("a number names an output that an input shares its storage with".into()),
        };
    }
    let (mut memory, mut general, mut fixed, mut range) = (false, false, None, None);
    for letter in letters.chars() {
        let mut constant = |low: i128, high: i128| {
            let (first, last) = range.unwrap_or((low, high));
            range = Some((low.min(first), high.max(last)));
        };
        match letter {
            'm' | 'o' | 'V' => memory = true,
            'r' | 'q' | 'Q' | 'R' | 'l' => general = true,
            'g' => {
                general = true;
                constant(i64::MIN.into(), u64::MAX.into());
            }
            'a' | 'b' | 'c' | 'd' | 'S' | 'D' => {
                let number =
                    ['a', 'c', 'd', 'b', ' ', ' ', 'S', 'D'].iter().position(|other| *other == letter);
                let machine = number.map(|number| Machine(number as u8));
                if fixed.is_some() {
                    return Unknown("several registers to choose from are not supported".into());
                }
                fixed = machine;
            }
            'i' | 'n' => constant(i64::MIN.into(), u64::MAX.into()),
            'e' => constant(i32::MIN.into(), i32::MAX.into()),
            'Z' => constant(0, u32::MAX.into()),
            'I' => constant(0, 31),
            'J' => constant(0, 63),
            'K' => constant(-128, 127),
            'M' => constant(0, 3),
            'N' => constant(0, 255),
            'O' => constant(0, 127),
            '?' | '!' => {}
            _ => return Unknown(format!("`{letter}` is not supported")),
        }
    }
    if range.is_some() && output {
        range = None;
        if !memory && !general && fixed.is_none() {
            return Unknown("an output cannot be a constant".into());
        }
    }
    match (general || fixed.is_some(), memory, range) {
        (true, _, range) => Register(fixed.filter(|_| !general), range),
        (false, true, None) => Memory,
        // An input that is in memory or a constant. A constant is an immediate, or in memory that no other thread accesses, so a register is
        // equivalent. Any other value is read into a register before the statement.
        (false, true, Some(_)) => Register(None, range),
        (false, false, Some(range)) => Immediate(range),
        (false, false, None) => Unknown("it names no storage".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_have_names_of_four_sizes() {
        for (name, expected) in [
            ("rax", Some((0, 8))),
            ("eax", Some((0, 4))),
            ("ax", Some((0, 2))),
            ("al", Some((0, 1))),
            ("rsp", Some((4, 8))),
            ("sil", Some((6, 1))),
            ("edi", Some((7, 4))),
            ("r8", Some((8, 8))),
            ("r15d", Some((15, 4))),
            ("r9w", Some((9, 2))),
            ("r10b", Some((10, 1))),
            ("r16", None),
            ("r7", None),
            ("r08", None),
            ("r8bw", None),
            ("ah", None),
            ("xmm0", None),
            ("rip", None),
            ("", None),
        ] {
            let found = Machine::named(name).map(|(machine, bytes)| (machine.0, bytes));
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn constraints_select_storage() {
        use ConstraintKind::*;
        let all = (i64::MIN.into(), u64::MAX.into());
        for (text, output, direction, kind) in [
            ("=r", true, Direction::Output, Register(None, None)),
            ("+m", true, Direction::Both, Memory),
            ("=&a", true, Direction::Output, Register(Some(Machine(0)), None)),
            ("=rm", true, Direction::Output, Register(None, None)),
            ("=qm", true, Direction::Output, Register(None, None)),
            (
                "=@ccz",
                true,
                Direction::Output,
                Condition(self::Condition { test: Test::Equal, negated: false }),
            ),
            (
                "=@ccnb",
                true,
                Direction::Output,
                Condition(self::Condition { test: Test::Below, negated: true }),
            ),
            ("m", false, Direction::Input, Memory),
            ("ir", false, Direction::Input, Register(None, Some(all))),
            ("Ir", false, Direction::Input, Register(None, Some((0, 31)))),
            ("i", false, Direction::Input, Immediate(all)),
            ("D", false, Direction::Input, Register(Some(Machine(7)), None)),
            ("0", false, Direction::Input, Tied(0)),
            ("[2]", false, Direction::Input, Tied(2)),
        ] {
            let constraint = Constraint::new(text, output);
            assert_eq!((constraint.direction, constraint.kind), (direction, kind), "{text}");
        }
        for (text, output) in [
            ("r", true),
            ("=r", false),
            ("&r", false),
            ("=x", true),
            ("r,m", false),
            ("=@ccq", true),
            ("@ccz", false),
            ("=i", true),
            ("", false),
            ("=", true),
            ("=0", true),
            ("ab", false),
            ("A", false),
        ] {
            let kind = Constraint::new(text, output).kind;
            assert!(matches!(kind, Unknown(_)), "{text}: {kind:?}");
        }
    }
}
