//! Mnemonics of instructions: the operations that they denote, and the operand sizes in their suffixes.

use fencewright_c::assembly::Condition;

use super::super::fences::Fence;

/// The operation of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Fence(Fence),
    /// `prefetch`: takes an operand, but has no effect.
    Prefetch,
    Move,
    /// `movz` and `movs`: whether the source is sign-extended, and its size in bytes.
    Extend(bool, u64),
    Exchange,
    ExchangeAdd,
    CompareExchange,
    Binary(Binary),
    /// `cmp` and `test`: set the flags of this operation, without writing its result.
    Compare(Binary),
    Unary(Unary),
    Bit(Bit),
    Set(Condition),
    ConditionalMove(Condition),
}

/// An operation of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Sub,
    And,
    Or,
    Xor,
    AddWithCarry,
    SubWithBorrow,
}

/// An operation of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unary {
    Increment,
    Decrement,
    Negate,
    Not,
}

/// An operation on one bit of its operand; the old value of the bit becomes the carry flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bit {
    Test,
    Set,
    Reset,
    Complement,
}

/// The operation that a mnemonic denotes, and the operand size in bytes if the mnemonic determines it.
pub(super) fn mnemonic(name: &str) -> Option<(Kind, Option<u64>)> {
    if let Some(kind) = whole_name(name) {
        return Some((kind, None));
    }
    if let Some(kind) = stem(name) {
        return Some((kind, None));
    }
    if let Some(code) = name.strip_prefix("set") {
        return Some((Kind::Set(Condition::named(code)?), Some(1)));
    }
    if let Some(condition) = name.strip_prefix("cmov").and_then(Condition::named) {
        return Some((Kind::ConditionalMove(condition), None));
    }
    let (before, last) = name.split_at_checked(name.len().checked_sub(1)?)?;
    let size = size_of(last.as_bytes()[0])?;
    if let Some(kind) = stem(before) {
        return Some((kind, Some(size)));
    }
    if let Some(condition) = before.strip_prefix("cmov").and_then(Condition::named) {
        return (size > 1).then_some((Kind::ConditionalMove(condition), Some(size)));
    }
    let (signed, from) = match (before.strip_prefix("movz"), before.strip_prefix("movs")) {
        (Some(from), _) => (false, from),
        (None, Some(from)) => (true, from),
        (None, None) => return None,
    };
    let from = match from.as_bytes() {
        [letter] => size_of(*letter)?,
        _ => return None,
    };
    let exists = from < size && (from < 4 || signed);
    exists.then_some((Kind::Extend(signed, from), Some(size)))
}

/// The operand size in bytes that a suffix denotes.
fn size_of(letter: u8) -> Option<u64> {
    Some(match letter {
        b'b' => 1,
        b'w' => 2,
        b'l' => 4,
        b'q' => 8,
        _ => return None,
    })
}

/// The operation of a mnemonic that has no size suffix.
fn whole_name(name: &str) -> Option<Kind> {
    Some(Kind::Fence(match name {
        "nop" | "pause" | "lfence" | "isync" | "yield" | "isb" => Fence::Nothing,
        "mfence" | "sync" | "hwsync" | "dmb" | "dsb" => Fence::Full,
        "sfence" | "lwsync" | "eieio" => Fence::Stores,
        "prefetcht0" | "prefetcht1" | "prefetcht2" | "prefetchnta" | "prefetchw" | "prefetch" => {
            return Some(Kind::Prefetch);
        }
        _ => return None,
    }))
}

/// The fence that `dmb` or `dsb` of ARM with this option denotes.
pub(super) fn barrier(option: &str) -> Fence {
    match option {
        "ishld" | "ld" | "nshld" | "oshld" => Fence::Nothing,
        "ishst" | "st" | "nshst" | "oshst" => Fence::Stores,
        _ => Fence::Full,
    }
}

/// The operation of a mnemonic that may be followed by a size suffix.
fn stem(name: &str) -> Option<Kind> {
    Some(match name {
        "mov" | "movabs" => Kind::Move,
        "xchg" => Kind::Exchange,
        "xadd" => Kind::ExchangeAdd,
        "cmpxchg" => Kind::CompareExchange,
        "add" => Kind::Binary(Binary::Add),
        "sub" => Kind::Binary(Binary::Sub),
        "and" => Kind::Binary(Binary::And),
        "or" => Kind::Binary(Binary::Or),
        "xor" => Kind::Binary(Binary::Xor),
        "adc" => Kind::Binary(Binary::AddWithCarry),
        "sbb" => Kind::Binary(Binary::SubWithBorrow),
        "cmp" => Kind::Compare(Binary::Sub),
        "test" => Kind::Compare(Binary::And),
        "inc" => Kind::Unary(Unary::Increment),
        "dec" => Kind::Unary(Unary::Decrement),
        "neg" => Kind::Unary(Unary::Negate),
        "not" => Kind::Unary(Unary::Not),
        "bt" => Kind::Bit(Bit::Test),
        "bts" => Kind::Bit(Bit::Set),
        "btr" => Kind::Bit(Bit::Reset),
        "btc" => Kind::Bit(Bit::Complement),
        _ => return None,
    })
}
