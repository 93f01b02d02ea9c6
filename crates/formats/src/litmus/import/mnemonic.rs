//! The mnemonics of a litmus test, and their meaning.

use fencewright_program::BinaryOp;
use fencewright_text::Diagnostic;

use super::scan::Token;

/// The effect of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// MFENCE
    Fence,
    /// SFENCE
    StoreFence,
    /// NOP, and instructions without an effect in this model.
    Nothing,
    /// RET: the thread ends.
    Stop,
    Move,
    /// MOVZX, MOVSX: moves a source of `from` bits, extended with zeros or with its sign.
    Extend {
        from: u32,
        signed: bool,
    },
    Exchange,
    /// ADD, SUB, AND, OR, XOR
    Binary(BinaryOp),
    /// INC and DEC, which do not change the carry flag: `Add` or `Sub`.
    Count(BinaryOp),
    Negate,
    /// NOT
    Invert,
    ExchangeAdd,
    CompareExchange,
    Compare,
    Test,
    MoveIf(Condition),
    Set(Condition),
    Jump(Option<Condition>),
}

/// A condition on the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) test: FlagTest,
    pub(super) negated: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlagTest {
    Zero,
    Sign,
    Carry,
    Overflow,
    /// Less than, as signed numbers.
    Less,
    LessOrEqual,
    /// Carry or zero: below or equal, as unsigned numbers.
    BelowOrEqual,
}

impl Condition {
    /// Parses the condition at the end of a mnemonic such as `JNE`, `CMOVC` or `SETNB`; `None` if there is no such condition.
    fn parse(name: &str) -> Option<Condition> {
        use FlagTest::*;
        let (test, negated) = match name {
            "E" | "Z" => (Zero, false),
            "NE" | "NZ" => (Zero, true),
            "S" => (Sign, false),
            "NS" => (Sign, true),
            "B" | "C" | "NAE" => (Carry, false),
            "AE" | "NB" | "NC" => (Carry, true),
            "O" => (Overflow, false),
            "NO" => (Overflow, true),
            "L" | "LT" | "NGE" => (Less, false),
            "GE" | "NL" => (Less, true),
            "LE" | "NG" => (LessOrEqual, false),
            "G" | "GT" | "NLE" => (LessOrEqual, true),
            "BE" | "NA" => (BelowOrEqual, false),
            "A" | "NBE" => (BelowOrEqual, true),
            _ => return None,
        };
        Some(Condition { test, negated })
    }
}

/// The instruction that a word names, and its width if the word determines it: `movl` is `mov` of 32 bits, `sete` sets 8 bits.
pub(super) fn mnemonic(word: Token<'_>) -> Result<(Action, Option<u32>), Diagnostic> {
    let upper = if word.text.len() <= 12 { word.text.to_ascii_uppercase() } else { String::new() };
    if upper.starts_with("MOVNT") {
        let message = format!(
            "instruction {} is not supported: it is not ordered as other stores are",
            word.describe()
        );
        return Err(Diagnostic::new(word.span, message));
    }
    if let Some(action) = plain_mnemonic(&upper) {
        let bits = if let Action::Set(_) = action { Some(8) } else { None };
        return Ok((action, bits));
    }
    if let Some(found) = extension(&upper) {
        return Ok(found);
    }
    let with_suffix = upper.char_indices().next_back().and_then(|(at, suffix)| {
        let bits = match suffix {
            'B' => 8,
            'W' => 16,
            'L' => 32,
            'Q' => 64,
            _ => return None,
        };
        plain_mnemonic(&upper[..at])
            .filter(|a| {
                !matches!(a, Action::Jump(Some(_)) | Action::Set(_) | Action::Fence | Action::StoreFence)
            })
            .map(|action| (action, Some(bits)))
    });
    with_suffix.ok_or_else(|| {
        Diagnostic::new(word.span, format!("instruction {} is not supported", word.describe()))
    })
}

fn plain_mnemonic(upper: &str) -> Option<Action> {
    Some(match upper {
        "MOV" | "MOVABS" => Action::Move,
        "XCHG" => Action::Exchange,
        "MFENCE" => Action::Fence,
        "SFENCE" => Action::StoreFence,
        // LFENCE orders loads, which x86 does not reorder anyway.
        "LFENCE" | "NOP" | "PAUSE" | "ENDBR64" | "ENDBR32" => Action::Nothing,
        "RET" => Action::Stop,
        "INC" => Action::Count(BinaryOp::Add),
        "DEC" => Action::Count(BinaryOp::Sub),
        "ADD" => Action::Binary(BinaryOp::Add),
        "SUB" => Action::Binary(BinaryOp::Sub),
        "AND" => Action::Binary(BinaryOp::BitAnd),
        "OR" => Action::Binary(BinaryOp::BitOr),
        "XOR" => Action::Binary(BinaryOp::BitXor),
        "NEG" => Action::Negate,
        "NOT" => Action::Invert,
        "XADD" => Action::ExchangeAdd,
        "CMPXCHG" => Action::CompareExchange,
        "CMP" => Action::Compare,
        "TEST" => Action::Test,
        "JMP" => Action::Jump(None),
        _ => {
            if let Some(name) = upper.strip_prefix("CMOV") {
                Action::MoveIf(Condition::parse(name)?)
            } else if let Some(name) = upper.strip_prefix("SET") {
                Action::Set(Condition::parse(name)?)
            } else {
                Action::Jump(Some(Condition::parse(upper.strip_prefix('J')?)?))
            }
        }
    })
}

/// Parses a move with extension, whose name contains the widths of the source and of the target: `movzbl`, `movslq`. `None` for other names.
fn extension(upper: &str) -> Option<(Action, Option<u32>)> {
    let (widths, signed) = match upper.strip_prefix("MOVZ") {
        Some(widths) => (widths, false),
        None => (upper.strip_prefix("MOVS")?, true),
    };
    let (from, to) = match widths {
        "BW" => (8, 16),
        "BL" => (8, 32),
        "BQ" => (8, 64),
        "WL" => (16, 32),
        "WQ" => (16, 64),
        "LQ" if signed => (32, 64),
        _ => return None,
    };
    Some((Action::Extend { from, signed }, Some(to)))
}
