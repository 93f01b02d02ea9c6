//! Random litmus tests.

use super::program::*;

/// The random choices for one test.
pub struct Random {
    pub choices: fencewright_testing::Random,
    /// Whether all numbers are small.
    pub small: bool,
    /// Whether backward jumps are allowed.
    pub back: bool,
}

impl Random {
    pub fn below(&mut self, n: usize) -> usize {
        self.choices.below(n)
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        *self.choices.pick(from)
    }
}

pub fn generate(random: &mut Random) -> Program {
    random.small = random.chance(50);
    random.back = random.chance(5);
    let same = random.chance(50);
    let widths: [u32; LOCATIONS] =
        std::array::from_fn(|_| if same { 32 } else { random.pick(&[8, 16, 32, 32, 64]) });
    let types = widths.map(|bits| {
        let said = bits != 32 || random.chance(50);
        Declared { bits, signed: !said || random.chance(50), said }
    });
    let memory = widths.map(|bits| number(random, bits) as u64 & mask(bits));
    let threads = if random.chance(25) { 1 } else { 2 };
    let registers = (0..threads).map(|_| {
        std::array::from_fn(|_| {
            let said = random.chance(50);
            let bits = if said { random.pick(&[8, 16, 32, 64]) } else { 32 };
            (number(random, 64) as u64, Declared { bits, signed: !said || random.chance(50), said })
        })
    });
    let registers = registers.collect();
    let length = if threads == 1 { 10 } else { 5 };
    let mut program = Program { types, memory, registers, code: Vec::new() };
    for _ in 0..threads {
        let length = 1 + random.below(length);
        program.code.push((0..length).map(|at| instruction(random, &widths, at, length)).collect());
    }
    program
}

/// A random number, often near a boundary of this width.
pub fn number(random: &mut Random, bits: u32) -> i64 {
    let all =
        [0, 1, 1, 2, -1, 3, 127, 128, 255, -128, 256, 32767, 65535, 0x7fff_ffff, -0x8000_0000, 0xffff_ffff];
    match bits {
        _ if random.small => random.pick(&[0, 1, 1, 2, 3, 5, 7, 100, -1][..if random.back { 5 } else { 9 }]),
        // Sometimes a number with which results may exceed 64 bits.
        64 if random.chance(2) => i64::MAX,
        32 | 64 => random.pick(&all),
        _ => random.pick(&all[..13]),
    }
}

pub fn register(random: &mut Random, bits: u32) -> Reg {
    Reg { number: random.below(REGISTERS), bits, high: bits == 8 && random.chance(30) }
}

/// A random register or, less often, a location of this width.
pub fn place(random: &mut Random, bits: u32, widths: &[u32]) -> Arg {
    let fitting: Vec<usize> = (0..LOCATIONS).filter(|l| widths[*l] == bits).collect();
    match !fitting.is_empty() && random.chance(75) {
        true => Arg::Mem(random.pick(&fitting)),
        false => Arg::Reg(register(random, bits)),
    }
}

/// A random source operand for a target operand: at most one of the two is in memory.
pub fn source(random: &mut Random, bits: u32, widths: &[u32], target: Arg) -> Arg {
    match (random.below(3), target) {
        (0, _) => Arg::Imm(number(random, bits)),
        (_, Arg::Mem(_)) => Arg::Reg(register(random, bits)),
        _ => place(random, bits, widths),
    }
}

pub fn instruction(random: &mut Random, widths: &[u32], at: usize, length: usize) -> (Instr, u32) {
    let bits = if random.chance(85) { random.pick(widths) } else { random.pick(&[8, 16, 32, 64]) };
    let target = place(random, bits, widths);
    let lockable = matches!(target, Arg::Mem(_));
    let locked = lockable && random.chance(50);
    let instr = match random.below(16) {
        0..=2 => Instr::Mov(target, source(random, bits, widths, target)),
        3 => {
            let (from_bits, to) = random.pick(&[(8, 16), (8, 32), (8, 64), (16, 32), (16, 64), (32, 64)]);
            let signed = from_bits == 32 || random.chance(50);
            let to = Reg { high: false, ..register(random, to) };
            let from = place(random, from_bits, widths);
            return (Instr::Extend { to, from, from_bits, signed }, to.bits);
        }
        4..=6 => {
            let op = random.pick(&[Alu::Add, Alu::Add, Alu::Sub, Alu::And, Alu::Or, Alu::Xor]);
            Instr::Alu(op, target, source(random, bits, widths, target), locked)
        }
        7 => {
            let op = random.pick(&[Unary::Inc, Unary::Dec, Unary::Neg, Unary::Not]);
            Instr::Unary(op, target, locked)
        }
        8 => Instr::Xchg(target, register(random, bits)),
        9 => Instr::Xadd(target, register(random, bits), locked),
        10 => match target {
            Arg::Mem(location) => Instr::Cmpxchg(location, register(random, bits), locked),
            _ => Instr::Fence,
        },
        11 | 12 => {
            let other = source(random, bits, widths, target);
            if random.chance(70) { Instr::Cmp(target, other) } else { Instr::Test(target, other) }
        }
        13 => {
            let first = if random.back { 0 } else { at + 1 };
            Instr::Jump(random.pick(&CONDITIONS), first + random.below(length + 1 - first))
        }
        14 if bits > 8 => {
            let from = place(random, bits, widths);
            Instr::Cmov(random.pick(&CONDITIONS), register(random, bits), from)
        }
        _ => return (Instr::Set(random.pick(&CONDITIONS), register(random, 8)), 8),
    };
    (instr, bits)
}
