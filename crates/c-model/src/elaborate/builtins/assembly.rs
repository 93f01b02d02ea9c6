//! Inline assembly: fences, pauses, and the locked instructions of x86 with their usual constraints.

use fencewright_c::typed::tree::{Assembly, TypeKind};
use fencewright_code::core::Access;
use fencewright_code::numbers::{self, Operand};
use fencewright_program::Span;

use super::super::objects::Target;
use super::super::{Elaborator, Result};
use super::atomics::Modify;
use super::fences::Fence;

/// The advice for unsupported assembly.
const INSTEAD: &str = "use `atomic_thread_fence`, `__sync_synchronize` or an operation of <stdatomic.h>";

/// One instruction of an assembly template: its mnemonic, its operands as text, and whether it has a `lock` prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Instruction {
    name: String,
    operands: Vec<String>,
    locked: bool,
}

/// The instructions of a text, in lower case and without comments.
fn instructions(text: &str) -> Vec<Instruction> {
    let mut found = Vec::new();
    let mut locked = false;
    for part in text.to_lowercase().split(['\n', ';']) {
        let part = part.split('#').next().unwrap_or_default().trim();
        let (mut name, mut rest) = split(part);
        if name == "lock" {
            locked = true;
            (name, rest) = split(rest);
        }
        if name == "rep" || name == "repz" {
            // `rep; nop` is a pause, so the prefix is skipped.
            (name, rest) = split(rest);
        }
        if name.is_empty() {
            continue;
        }
        let operands =
            rest.split(',').map(|operand| operand.trim().to_string()).filter(|operand| !operand.is_empty());
        found.push(Instruction { name: name.to_string(), operands: operands.collect(), locked });
        locked = false;
    }
    found
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    text.split_once(char::is_whitespace).map_or((text, ""), |(name, rest)| (name, rest.trim()))
}

impl Instruction {
    /// The name without the suffix for the operand size.
    fn stem(&self) -> &str {
        let name = self.name.as_str();
        let known = |name: &str| {
            matches!(
                name,
                "add" | "sub" | "and" | "or" | "xor" | "inc" | "dec" | "xchg" | "xadd" | "cmpxchg" | "mov"
            )
        };
        match name.strip_suffix(['b', 'w', 'l', 'q']) {
            Some(stem) if known(stem) => stem,
            _ => name,
        }
    }

    /// The fence that the instruction stands for, if it has no operands from the program.
    fn fence(&self) -> Option<Fence> {
        let kind = self.operands.first().map_or("", String::as_str);
        Some(match self.name.as_str() {
            "nop" | "pause" | "lfence" | "isync" | "yield" | "isb" => Fence::Nothing,
            "mfence" | "sync" | "hwsync" => Fence::Full,
            "sfence" | "lwsync" | "eieio" => Fence::Stores,
            "dmb" | "dsb" => match kind {
                "ishld" | "ld" | "nshld" | "oshld" => Fence::Nothing,
                "ishst" | "st" | "nshst" | "oshst" => Fence::Stores,
                _ => Fence::Full,
            },
            // A locked operation that leaves memory unchanged is a full fence, wherever its operand is.
            _ if self.locked && matches!(self.stem(), "add" | "or" | "xor" | "sub") => {
                match self.operands.first().map(String::as_str) {
                    Some("$0" | "$0x0" | "%0" | "$0x00")
                        if !self.operands.iter().any(|operand| is_operand(operand)) =>
                    {
                        Fence::Full
                    }
                    _ => return None,
                }
            }
            _ => return None,
        })
    }
}

/// Whether an operand is passed by the program, like `%0` or `%[name]`.
fn is_operand(operand: &str) -> bool {
    let Some(rest) = operand.strip_prefix('%') else { return false };
    let rest = rest.strip_prefix(['b', 'w', 'k', 'q']).unwrap_or(rest);
    rest.starts_with(|c: char| c.is_ascii_digit() || c == '[')
}

/// The number of an operand; `None` for a symbolic name, which is not supported.
fn number_of(operand: &str) -> Option<usize> {
    let rest = operand.strip_prefix('%')?;
    rest.strip_prefix(['b', 'w', 'k', 'q']).unwrap_or(rest).parse().ok()
}

impl Elaborator<'_> {
    /// An `asm` statement.
    pub(in super::super) fn assembly(&mut self, assembly: &Assembly, span: Span) -> Result<()> {
        let found = instructions(&assembly.text);
        let fences: Option<Vec<Fence>> = found.iter().map(Instruction::fence).collect();
        if let Some(fences) = fences {
            // Operands that no instruction uses only constrain the compiler.
            if found.iter().all(|instruction| !instruction.operands.iter().any(|operand| is_operand(operand)))
            {
                fences.into_iter().for_each(|fence| self.fence(fence, span));
                return Ok(());
            }
        }
        match found.as_slice() {
            [instruction] => self.instruction(instruction, assembly, span),
            _ => self.not_understood(&assembly.text, span),
        }
    }

    fn not_understood<T>(&self, text: &str, span: Span) -> Result<T> {
        let text = text.replace(['\n', '\t'], " ");
        self.error(span, format!("the assembly `{}` is not supported", text.trim()), INSTEAD)
    }

    /// An instruction with a memory operand, which it modifies atomically or stores to.
    fn instruction(&mut self, instruction: &Instruction, assembly: &Assembly, span: Span) -> Result<()> {
        let numbers: Option<Vec<usize>> = instruction
            .operands
            .iter()
            .filter(|operand| !operand.starts_with('$'))
            .map(|operand| number_of(operand))
            .collect();
        let immediate =
            instruction.operands.iter().find_map(|operand| operand.strip_prefix('$')?.parse::<i128>().ok());
        let memory = |number: &usize| assembly.outputs.get(*number).is_some_and(|(how, _)| how.contains('m'));
        let (Some(operands), locked) = (numbers, instruction.locked) else {
            return self.not_understood(&assembly.text, span);
        };
        let Some(&at) = operands.iter().find(|number| memory(number)) else {
            return self.not_understood(&assembly.text, span);
        };
        let target = self.place(&assembly.outputs[at].1)?;
        let place = self.scalar(target, span)?.accessed(Access::Atomic);
        let other = operands.iter().copied().find(|number| *number != at);
        if instruction.stem() == "mov" && !locked {
            let to = instruction.operands.last().and_then(|last| number_of(last));
            let value = match (immediate, other, to == Some(at)) {
                (Some(number), None, true) => Operand::number(number),
                (None, Some(register), true) => self.operand_value(assembly, register, &place, span)?,
                _ => return self.not_understood(&assembly.text, span),
            };
            return self.write(&place.accessed(Access::Volatile), value, span);
        }
        let modify = match instruction.stem() {
            "xchg" => {
                let (Some(register), None) = (other, immediate) else {
                    return self.not_understood(&assembly.text, span);
                };
                let value = self.operand_value(assembly, register, &place, span)?;
                let old = self.swapped(&place, value, span)?;
                return self.operand_result(assembly, register, old, span);
            }
            "xadd" if locked => {
                let (Some(register), None) = (other, immediate) else {
                    return self.not_understood(&assembly.text, span);
                };
                let by = self.operand_value(assembly, register, &place, span)?;
                let old = self.atomic_modify(&place, Modify::Add, by, span)?;
                return self.operand_result(assembly, register, old, span);
            }
            "cmpxchg" if locked => return self.assembly_exchange(assembly, other, &place, span),
            "add" if locked => Modify::Add,
            "sub" if locked => Modify::Sub,
            "and" if locked => Modify::And,
            "or" if locked => Modify::Or,
            "xor" if locked => Modify::Xor,
            "inc" if locked => Modify::Add,
            "dec" if locked => Modify::Sub,
            _ => return self.not_understood(&assembly.text, span),
        };
        let one = matches!(instruction.stem(), "inc" | "dec");
        let by = match (immediate, other) {
            _ if one => Operand::number(1),
            (Some(number), None) => Operand::number(number),
            (None, Some(register)) => self.operand_value(assembly, register, &place, span)?,
            _ => return self.not_understood(&assembly.text, span),
        };
        if assembly.outputs.len() > 1 {
            // A second output is probably a condition flag, and flags are not modelled.
            return self.not_understood(&assembly.text, span);
        }
        self.atomic_modify(&place, modify, by, span).map(|_| ())
    }

    /// `lock cmpxchg`: register `a` holds the expected value before and the old value after.
    fn assembly_exchange(
        &mut self,
        assembly: &Assembly,
        desired: Option<usize>,
        place: &Target,
        span: Span,
    ) -> Result<()> {
        let result = assembly.outputs.iter().position(|(how, _)| how.ends_with('a'));
        let expected = match result {
            Some(at) if assembly.outputs[at].0.starts_with('+') => Some(at),
            Some(at) => {
                let tied = |how: &str| how.parse() == Ok(at) || how.ends_with('a');
                let input = assembly.inputs.iter().position(|(how, _)| tied(how));
                input.map(|input| input + assembly.outputs.len())
            }
            None => None,
        };
        let (Some(result), Some(expected), Some(desired)) = (result, expected, desired) else {
            return self.not_understood(&assembly.text, span);
        };
        let expected = self.operand_value(assembly, expected, place, span)?;
        let desired = self.operand_value(assembly, desired, place, span)?;
        let (old, _) = self.compare_and_swap(place, expected, desired, span)?;
        self.operand_result(assembly, result, old, span)
    }

    /// The value of an input operand, converted to the type of the place.
    fn operand_value(
        &mut self,
        assembly: &Assembly,
        number: usize,
        place: &Target,
        span: Span,
    ) -> Result<Operand> {
        let (value, ty) = if let Some((how, output)) = assembly.outputs.get(number) {
            let tied = assembly.inputs.iter().find(|(input, _)| input.parse() == Ok(number));
            match tied {
                Some((_, input)) => (self.value(input)?, input.ty.clone()),
                None if how.starts_with('+') => {
                    let target = self.place(output)?;
                    (self.read(&target, span)?, output.ty.clone())
                }
                None => return self.not_understood(&assembly.text, span),
            }
        } else if let Some((_, input)) = assembly.inputs.get(number - assembly.outputs.len()) {
            (self.value(input)?, input.ty.clone())
        } else {
            return self.not_understood(&assembly.text, span);
        };
        self.cast(value, &ty, &place.ty, span)
    }

    /// Writes a value to an output operand.
    fn operand_result(
        &mut self,
        assembly: &Assembly,
        number: usize,
        value: Operand,
        span: Span,
    ) -> Result<()> {
        let Some((_, output)) = assembly.outputs.get(number) else {
            // The operand is an input, whose register the program does not read after the instruction.
            return Ok(());
        };
        let target = self.place(output)?;
        let value = match &output.ty.kind {
            TypeKind::Integer(ty) => numbers::convert(*ty, value),
            _ => value,
        };
        self.write(&target, value, span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fences in a text without operands from the program.
    fn fence(text: &str) -> Vec<Option<Fence>> {
        instructions(text).iter().map(Instruction::fence).collect()
    }

    #[test]
    fn fences_are_known() {
        for (text, expected) in [
            ("mfence", vec![Some(Fence::Full)]),
            ("MFENCE ;", vec![Some(Fence::Full)]),
            ("rep; nop", vec![Some(Fence::Nothing)]),
            ("rep nop", vec![Some(Fence::Nothing)]),
            ("lock; addl $0,0(%%rsp)", vec![Some(Fence::Full)]),
            ("lock addl $0x0, -4(%rsp)\n\t", vec![Some(Fence::Full)]),
            ("lock; orl $0,(%rsp)", vec![Some(Fence::Full)]),
            ("addl $0,(%rsp)", vec![None]),
            ("lock; addl $1,(%rsp)", vec![None]),
            ("sfence", vec![Some(Fence::Stores)]),
            ("lwsync", vec![Some(Fence::Stores)]),
            ("dmb ish", vec![Some(Fence::Full)]),
            ("dmb ishst", vec![Some(Fence::Stores)]),
            ("", vec![]),
            ("# nothing", vec![]),
            ("pause\n\tmfence", vec![Some(Fence::Nothing), Some(Fence::Full)]),
            ("hlt", vec![None]),
        ] {
            assert_eq!(fence(text), expected, "{text}");
        }
    }
}
