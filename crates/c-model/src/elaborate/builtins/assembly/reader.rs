//! Parses assembly templates in AT&T syntax to instructions with their arguments.
//!
//! ```text
//! template    = [ statement ] { ( ";" | newline ) [ statement ] }      comments: `#` to the end of the line, and `/* */`
//! statement   = { number ":" } { prefix } [ mnemonic [ argument { "," argument } ] ]
//!             | ".pushsection" ... ".popsection"                      data and labels of another section, which are skipped
//! prefix      = "lock" | "rep" | "repe" | "repz"                       may be a statement of its own: `lock; incl %0`
//! argument    = "$" constant | reference | register | [ constant ] "(" ( reference | register ) ")" | word
//! reference   = "%" [ "b" | "w" | "k" | "q" ] ( number | "[" number "]" )
//! register    = "%" [ "%" ] name
//! constant    = [ "-" ] ( decimal | "0x" hexadecimal | "0" octal )
//! ```
//!
//! Mnemonics may end in the size of their operands (`b`, `w`, `l`, `q`). Only fences of other processors have words as arguments (`dmb ish`). Whether
//! an instruction allows the given sizes and arguments is checked when it is executed.

use fencewright_c::assembly::Machine;

use super::mnemonics::{Bit, Kind, barrier, mnemonic};

/// Maximum length of a template in bytes.
const LONGEST: usize = 10_000;

/// A parsed instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    pub kind: Kind,
    /// The size of the operands in bytes, if the mnemonic determines it.
    pub size: Option<u64>,
    pub locked: bool,
    pub arguments: Vec<Argument>,
    /// The instruction as written, for messages.
    pub text: String,
}

/// An error in a template: the text of the instruction, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bad {
    pub text: String,
    pub reason: String,
}

/// An argument of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    /// An operand of the `asm` statement, and the size in bytes that its modifier selects (`%k0`: 4).
    Operand(usize, Option<u64>),
    /// A register, and the number of low bytes that its name denotes.
    Register(Machine, u64),
    Immediate(i128),
    /// Memory at a constant offset in bytes from the address in a register or operand.
    Address(i64, Box<Argument>),
    Word(String),
}

/// Parses a template to its instructions.
pub(super) fn instructions(text: &str) -> Result<Vec<Instruction>, Bad> {
    if text.len() > LONGEST {
        return Err(bad(&text[..text.len().min(40)], format!("the text has more than {LONGEST} bytes")));
    }
    let text = without_comments(text)?;
    let (mut found, mut locked, mut repeated, mut elsewhere) = (Vec::new(), false, false, false);
    for statement in text.split(['\n', ';']) {
        let rest = without_labels(statement.trim());
        let (first, _) = split(rest);
        if elsewhere {
            match first {
                ".popsection" => elsewhere = false,
                _ if first.is_empty() || first.starts_with('.') => {}
                _ => return Err(bad(rest, "instructions in another section are not supported")),
            }
            continue;
        }
        if first == ".pushsection" {
            elsewhere = true;
            continue;
        }
        let (mut name, mut after) = split(rest);
        loop {
            match name {
                "lock" => locked = true,
                "rep" | "repe" | "repz" => repeated = true,
                _ => break,
            }
            (name, after) = split(after);
        }
        if name.is_empty() {
            continue;
        }
        let shown = statement.split_whitespace().collect::<Vec<_>>().join(" ");
        let instruction = instruction(name, after, &shown, (locked, repeated));
        found.push(instruction.map_err(|reason| bad(&shown, reason))?);
        (locked, repeated) = (false, false);
    }
    match (locked || repeated, elsewhere) {
        (true, _) => Err(bad(if locked { "lock" } else { "rep" }, "no instruction follows this prefix")),
        (_, true) => Err(bad(".pushsection", "the section is never left")),
        _ => Ok(found),
    }
}

fn bad(text: &str, reason: impl Into<String>) -> Bad {
    Bad { text: text.to_string(), reason: reason.into() }
}

/// The text in lower case, without comments.
fn without_comments(text: &str) -> Result<String, Bad> {
    let mut rest = text;
    let mut plain = String::new();
    while let Some(at) = rest.find(['#', '/']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with('#') {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if let Some(inside) = rest.strip_prefix("/*") {
            let Some(end) = inside.find("*/") else {
                return Err(bad("/*", "this comment is never closed"));
            };
            plain.push(' ');
            rest = &inside[end + 2..];
        } else {
            return Err(bad("/", "this character is not supported"));
        }
    }
    plain.push_str(rest);
    Ok(plain.to_ascii_lowercase())
}

/// The statement without numeric labels, which have no effect because jumps are not supported.
fn without_labels(statement: &str) -> &str {
    let mut rest = statement;
    while let Some((label, after)) = rest.split_once(':') {
        if label.is_empty() || !label.bytes().all(|byte| byte.is_ascii_digit()) {
            break;
        }
        rest = after.trim();
    }
    rest
}

fn split(text: &str) -> (&str, &str) {
    text.split_once(char::is_whitespace).map_or((text, ""), |(name, rest)| (name, rest.trim()))
}

fn instruction(name: &str, rest: &str, text: &str, prefixes: (bool, bool)) -> Result<Instruction, String> {
    let (locked, repeated) = prefixes;
    let Some((kind, size)) = mnemonic(name) else {
        let reason = match name {
            "cmpxchg8b" | "cmpxchg16b" => {
                format!("`{name}` accesses two words at once, which is not supported")
            }
            _ if name.starts_with('j') => format!("jumps inside assembly (`{name}`) are not supported"),
            _ if name.starts_with('.') => format!("the directive `{name}` is not supported"),
            _ => format!("the instruction `{name}` is not supported"),
        };
        return Err(reason);
    };
    let mut arguments = Vec::new();
    let mut rest = rest;
    while !rest.is_empty() {
        let end = end_of_argument(rest);
        arguments.push(argument(rest[..end].trim())?);
        match rest[end..].strip_prefix(',') {
            Some(after) if after.trim().is_empty() => {
                return Err("an operand is missing after the comma".into());
            }
            Some(after) => rest = after.trim(),
            None => break,
        }
    }
    let expected = match kind {
        Kind::Fence(_) if name == "dmb" || name == "dsb" => 1,
        Kind::Fence(_) => 0,
        Kind::Prefetch | Kind::Unary(_) | Kind::Set(_) => 1,
        _ => 2,
    };
    let word = arguments.iter().any(|argument| matches!(argument, Argument::Word(_)));
    let kind = match (kind, arguments.first()) {
        (Kind::Fence(_), Some(Argument::Word(word))) if expected == 1 => Kind::Fence(barrier(word)),
        (Kind::Fence(fence), None) if expected == 1 => Kind::Fence(fence),
        _ if word => return Err("an operand starts with `$` or `%`, or is an address `0(%0)`".into()),
        _ if arguments.len() != expected => {
            return Err(format!("`{name}` has {expected} operands, not {}", arguments.len()));
        }
        (kind, _) => kind,
    };
    if repeated && name != "nop" {
        return Err(format!("the prefix `rep` of `{name}` is not supported"));
    }
    let lockable = matches!(kind, Kind::Exchange | Kind::ExchangeAdd | Kind::CompareExchange)
        || matches!(
            kind,
            Kind::Binary(_) | Kind::Unary(_) | Kind::Bit(Bit::Set | Bit::Reset | Bit::Complement)
        );
    if locked && !lockable {
        return Err(format!("processors do not allow `lock` before `{name}`"));
    }
    Ok(Instruction { kind, size, locked, arguments, text: text.to_string() })
}

/// The end of the first argument: the first comma outside of parentheses, or the end of the text.
fn end_of_argument(text: &str) -> usize {
    let mut depth = 0usize;
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

fn argument(text: &str) -> Result<Argument, String> {
    let wrong = || format!("the operand `{text}` is not supported");
    if let Some(number) = text.strip_prefix('$') {
        return constant(number).map(Argument::Immediate).ok_or_else(wrong);
    }
    if let Some((offset, rest)) = text.split_once('(') {
        let inside = rest.strip_suffix(')').ok_or_else(wrong)?;
        let offset = match offset.trim() {
            "" => 0,
            offset => constant(offset).and_then(|offset| i32::try_from(offset).ok()).ok_or_else(wrong)?,
        };
        let base = argument(inside.trim())?;
        return match base {
            Argument::Operand(..) | Argument::Register(..) => {
                Ok(Argument::Address(offset.into(), Box::new(base)))
            }
            _ => Err(wrong()),
        };
    }
    let Some(rest) = text.strip_prefix('%') else {
        let word = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase());
        return if word { Ok(Argument::Word(text.to_string())) } else { Err(wrong()) };
    };
    let register = Machine::named(rest.strip_prefix('%').unwrap_or(rest));
    if let Some((machine, bytes)) = register {
        return Ok(Argument::Register(machine, bytes));
    }
    let modifier = rest.bytes().next().filter(u8::is_ascii_lowercase);
    let size = match modifier {
        None => None,
        Some(b'b') => Some(1),
        Some(b'w') => Some(2),
        Some(b'k') => Some(4),
        Some(b'q') => Some(8),
        Some(b'h') => return Err(format!("the second byte of a register, `{text}`, is not supported")),
        Some(_) => return Err(wrong()),
    };
    let number = &rest[usize::from(modifier.is_some())..];
    let number = number.strip_prefix('[').and_then(|number| number.strip_suffix(']')).unwrap_or(number);
    let digits = (1..=2).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    match number.parse() {
        Ok(number) if digits => Ok(Argument::Operand(number, size)),
        _ => Err(wrong()),
    }
}

/// A constant that fits into 64 bits.
fn constant(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (radix, digits) = match digits.strip_prefix("0x") {
        Some(digits) => (16, digits),
        None if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        None => (10, digits),
    };
    // The sign was read above, but `from_str_radix` would accept another one.
    let value = u64::from_str_radix(digits, radix).ok().filter(|_| !digits.starts_with('+'))?;
    let value = if negative { -i128::from(value) } else { value.into() };
    (value >= i64::MIN.into()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::super::super::fences::Fence;
    use super::super::mnemonics::{Binary, Unary};
    use super::*;
    use fencewright_c::assembly::Condition;

    /// For each instruction of a text, the fence that it is, or `None`; an error if the text cannot be parsed.
    fn fences(text: &str) -> Result<Vec<Option<Fence>>, String> {
        let fence = |instruction: Instruction| match instruction.kind {
            Kind::Fence(fence) => Some(fence),
            _ => None,
        };
        instructions(text).map(|found| found.into_iter().map(fence).collect()).map_err(|bad| bad.reason)
    }

    #[test]
    fn fences_are_known() {
        for (text, expected) in [
            ("mfence", vec![Some(Fence::Full)]),
            ("MFENCE ;", vec![Some(Fence::Full)]),
            ("rep; nop", vec![Some(Fence::Nothing)]),
            ("rep nop", vec![Some(Fence::Nothing)]),
            ("sfence", vec![Some(Fence::Stores)]),
            ("lwsync", vec![Some(Fence::Stores)]),
            ("dmb ish", vec![Some(Fence::Full)]),
            ("dmb ishst", vec![Some(Fence::Stores)]),
            ("dmb ishld", vec![Some(Fence::Nothing)]),
            ("", vec![]),
            ("# nothing", vec![]),
            ("/* nothing */ # at all\n", vec![]),
            ("pause\n\tmfence", vec![Some(Fence::Nothing), Some(Fence::Full)]),
            ("prefetchw (%0)", vec![None]),
        ] {
            assert_eq!(fences(text), Ok(expected), "{text}");
        }
    }

    /// The single instruction of a text, with its arguments in a readable form.
    fn one(text: &str) -> (Kind, Option<u64>, bool, String) {
        let found = instructions(text).unwrap_or_else(|bad| panic!("{text}: {}", bad.reason));
        assert_eq!(found.len(), 1, "{text}");
        let Instruction { kind, size, locked, arguments, .. } = found.into_iter().next().unwrap();
        let shown: Vec<String> = arguments.iter().map(shown).collect();
        (kind, size, locked, shown.join(", "))
    }

    fn shown(argument: &Argument) -> String {
        match argument {
            Argument::Operand(number, None) => format!("{number}"),
            Argument::Operand(number, Some(size)) => format!("{number}:{size}"),
            Argument::Register(machine, size) => format!("{machine}:{size}"),
            Argument::Immediate(number) => format!("${number}"),
            Argument::Address(offset, base) => format!("{offset}({})", shown(base)),
            Argument::Word(word) => word.clone(),
        }
    }

    #[test]
    fn instructions_have_sizes_and_operands() {
        let condition = |code| Condition::named(code).unwrap();
        let binary = |binary, size| (Kind::Binary(binary), size);
        let section = ".pushsection .smp_locks,\"a\"\n.balign 4\n.long 671f - .\n.popsection\n671:\n\tlock; ";
        for (text, (kind, size), locked, arguments) in [
            ("lock; addl $0,0(%%rsp)", binary(Binary::Add, Some(4)), true, "$0, 0(%rsp:8)"),
            ("lock addq $-0x10, -8(%[0])", binary(Binary::Add, Some(8)), true, "$-16, -8(0)"),
            ("sub %1, %0", binary(Binary::Sub, None), false, "1, 0"),
            ("subb %b1,%0", binary(Binary::Sub, Some(1)), false, "1:1, 0"),
            ("sbb %0,%0", binary(Binary::SubWithBorrow, None), false, "0, 0"),
            (&format!("{section}decl %0"), (Kind::Unary(Unary::Decrement), Some(4)), true, "0"),
            ("btsl %2,%q[1]", (Kind::Bit(Bit::Set), Some(4)), false, "2, 1:8"),
            ("bt %w2,%0", (Kind::Bit(Bit::Test), None), false, "2:2, 0"),
            ("setb %0", (Kind::Set(condition("b")), Some(1)), false, "0"),
            ("setl %b0", (Kind::Set(condition("l")), Some(1)), false, "0:1"),
            ("cmovl %1, %0", (Kind::ConditionalMove(condition("l")), None), false, "1, 0"),
            ("cmovll %1, %0", (Kind::ConditionalMove(condition("l")), Some(4)), false, "1, 0"),
            ("cmovnel %%eax, %0", (Kind::ConditionalMove(condition("ne")), Some(4)), false, "%rax:4, 0"),
            ("movzbl %1, %0", (Kind::Extend(false, 1), Some(4)), false, "1, 0"),
            ("movslq %1, %0", (Kind::Extend(true, 4), Some(8)), false, "1, 0"),
            ("movq $017, %0", (Kind::Move, Some(8)), false, "$15, 0"),
            ("cmpxchg %3,%1 ;\t# atomic_cmpset_int", (Kind::CompareExchange, None), false, "3, 1"),
        ] {
            assert_eq!(one(text), (kind, size, locked, arguments.to_string()), "{text}");
        }
        assert_eq!(instructions("lock; incl %0; setz %1\n\tmov %1, %2").unwrap().len(), 3);
    }

    #[test]
    fn anything_else_is_named() {
        for (text, expected) in [
            ("hlt", "`hlt`"),
            ("lock; cmpxchg16b %0", "`cmpxchg16b`"),
            ("1: jmp 1b", "`jmp`"),
            ("foo: nop", "`foo:`"),
            ("xchgb %h0, %b0", "`%h0`"),
            ("lock; mov %0, %1", "`lock` before `mov`"),
            ("lock; bt %0, %1", "`lock` before `bt`"),
            ("rep; movsb", "`movsb`"),
            ("rep; stosl", "`stosl`"),
            ("incl %0, %1", "1 operands, not 2"),
            ("addl %0", "2 operands, not 1"),
            ("addl %0, ", "missing"),
            ("addl 4, %0", "`4`"),
            ("addl foo, %0", "starts with"),
            ("addl $foo, %0", "`$foo`"),
            ("addl $99999999999999999999, %0", "`$99999999999999999999`"),
            ("addl $+1, %0", "`$+1`"),
            ("addl %1, (%2,%3,4)", "`%2,%3,4`"),
            ("addl %1, %%gs:%0", "`%%gs:%0`"),
            ("movl %1, foo(%0)", "`foo(%0)`"),
            ("movl %100, %0", "`%100`"),
            ("movl %, %0", "`%`"),
            ("mov{l %1, %0| %0, %1}", "`mov{l`"),
            (".byte 0x0f, 0x1c", "`.byte`"),
            ("lock", "no instruction follows"),
            ("/* open", "never closed"),
            (".pushsection a; .long 1", "never left"),
            (".pushsection a; incl %0; .popsection", "another section"),
            ("movzlq %1, %0", "`movzlq`"),
            ("cmovzb %1, %0", "`cmovzb`"),
            ("setq %0", "`setq`"),
            ("é %0", "`é`"),
        ] {
            let bad = instructions(text).expect_err(text);
            assert!(bad.reason.contains(expected), "{text}: {}", bad.reason);
        }
    }
}
