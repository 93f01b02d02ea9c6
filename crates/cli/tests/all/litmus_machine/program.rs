//! Litmus tests as data and as text.

use std::fmt::Write as _;

pub const REGISTERS: usize = 4;
pub const LOCATIONS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reg {
    pub number: usize,
    pub bits: u32,
    pub high: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Arg {
    Reg(Reg),
    Mem(usize),
    Imm(i64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Alu {
    Add,
    Sub,
    And,
    Or,
    Xor,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unary {
    Inc,
    Dec,
    Neg,
    Not,
}

#[derive(Clone, Copy, Debug)]
pub enum Instr {
    Mov(Arg, Arg),
    Extend {
        to: Reg,
        from: Arg,
        from_bits: u32,
        signed: bool,
    },
    Alu(Alu, Arg, Arg, bool),
    Unary(Unary, Arg, bool),
    Xchg(Arg, Reg),
    Xadd(Arg, Reg, bool),
    Cmpxchg(usize, Reg, bool),
    Cmp(Arg, Arg),
    Test(Arg, Arg),
    /// A conditional jump: the name of the condition, and the index of the next instruction if the condition holds.
    Jump(&'static str, usize),
    Cmov(&'static str, Reg, Arg),
    Set(&'static str, Reg),
    Fence,
}

pub const CONDITIONS: [&str; 30] = [
    "e", "z", "ne", "nz", "s", "ns", "b", "c", "nae", "ae", "nb", "nc", "o", "no", "l", "lt", "nge", "ge",
    "nl", "le", "ng", "g", "gt", "nle", "be", "na", "a", "nbe", "e", "ne",
];

#[derive(Clone, Copy)]
pub struct Declared {
    pub bits: u32,
    pub signed: bool,
    /// Whether the test declares the type explicitly.
    pub said: bool,
}

pub struct Program {
    pub types: [Declared; LOCATIONS],
    pub memory: [u64; LOCATIONS],
    pub registers: Vec<[(u64, Declared); REGISTERS]>,
    pub code: Vec<Vec<(Instr, u32)>>,
}

pub fn mask(bits: u32) -> u64 {
    if bits == 64 { u64::MAX } else { (1 << bits) - 1 }
}

pub fn reg_name(reg: Reg) -> String {
    let letter = ["a", "b", "c", "d"][reg.number];
    match (reg.bits, reg.high) {
        (8, true) => format!("%{letter}h"),
        (8, _) => format!("%{letter}l"),
        (16, _) => format!("%{letter}x"),
        (32, _) => format!("%e{letter}x"),
        _ => format!("%r{letter}x"),
    }
}

pub fn arg_text(arg: Arg) -> String {
    match arg {
        Arg::Reg(reg) => reg_name(reg),
        Arg::Mem(location) => format!("({})", ["x", "y"][location]),
        Arg::Imm(value) => format!("${value}"),
    }
}

pub fn suffix(bits: u32) -> &'static str {
    match bits {
        8 => "b",
        16 => "w",
        32 => "l",
        _ => "q",
    }
}

pub fn instr_text(instr: Instr, bits: u32) -> String {
    let s = suffix(bits);
    let lock = |locked: bool| if locked { "lock " } else { "" };
    let two =
        |name: &str, target: Arg, source: Arg| format!("{name}{s} {},{}", arg_text(source), arg_text(target));
    match instr {
        Instr::Mov(target, source) => two("mov", target, source),
        Instr::Extend { to, from, from_bits, signed } => {
            let name = if signed { "movs" } else { "movz" };
            format!("{name}{}{s} {},{}", suffix(from_bits), arg_text(from), reg_name(to))
        }
        Instr::Alu(op, target, source, locked) => {
            let name = match op {
                Alu::Add => "add",
                Alu::Sub => "sub",
                Alu::And => "and",
                Alu::Or => "or",
                Alu::Xor => "xor",
            };
            lock(locked).to_owned() + &two(name, target, source)
        }
        Instr::Unary(op, target, locked) => {
            let name = match op {
                Unary::Inc => "inc",
                Unary::Dec => "dec",
                Unary::Neg => "neg",
                Unary::Not => "not",
            };
            format!("{}{name}{s} {}", lock(locked), arg_text(target))
        }
        Instr::Xchg(target, reg) => two("xchg", target, Arg::Reg(reg)),
        Instr::Xadd(target, reg, locked) => lock(locked).to_owned() + &two("xadd", target, Arg::Reg(reg)),
        Instr::Cmpxchg(location, reg, locked) => {
            // herd writes the operand in memory first.
            format!("{}cmpxchg{s} {},{}", lock(locked), arg_text(Arg::Mem(location)), reg_name(reg))
        }
        Instr::Cmp(left, right) => two("cmp", left, right),
        Instr::Test(left, right) => two("test", left, right),
        Instr::Jump(condition, to) => format!("j{condition} L{to}"),
        Instr::Cmov(condition, reg, from) => format!("cmov{condition} {},{}", arg_text(from), reg_name(reg)),
        Instr::Set(condition, reg) => format!("set{condition} {}", reg_name(reg)),
        Instr::Fence => "mfence".to_owned(),
    }
}

pub fn declared(d: Declared) -> String {
    match d.said {
        true => format!("{}int{}_t ", if d.signed { "" } else { "u" }, d.bits),
        false => String::new(),
    }
}

pub fn text(program: &Program, name: &str) -> String {
    let mut text = format!("X86_64 {name}\n{{\n");
    for (location, name) in ["x", "y"].iter().enumerate() {
        let _ = writeln!(text, "{}{name}={};", declared(program.types[location]), program.memory[location]);
    }
    for (thread, registers) in program.registers.iter().enumerate() {
        for (number, (value, d)) in registers.iter().enumerate() {
            let name = &reg_name(Reg { number, bits: 64, high: false })[1..];
            let _ = writeln!(text, "{}{thread}:{name}={};", declared(*d), *value as i64);
        }
    }
    text.push_str("}\n");
    let threads: Vec<String> = (0..program.code.len()).map(|n| format!("P{n}")).collect();
    let _ = writeln!(text, "{} ;", threads.join(" | "));
    let rows = program.code.iter().map(Vec::len).max().unwrap_or(0);
    for row in 0..=rows {
        let cell = |code: &Vec<(Instr, u32)>| match code.get(row) {
            Some((instr, bits)) => format!("L{row}: {}", instr_text(*instr, *bits)),
            None if row == code.len() => format!("L{row}:"),
            None => String::new(),
        };
        let cells: Vec<String> = program.code.iter().map(cell).collect();
        let _ = writeln!(text, "{} ;", cells.join(" | "));
    }
    let shown: Vec<String> = (0..program.code.len())
        .flat_map(|t| ["rax", "rbx", "rcx", "rdx"].map(|r| format!("{t}:{r};")))
        .collect();
    let _ = writeln!(text, "locations [{} x; y;]\nexists (0:rax={})", shown.concat(), CLAIM);
    text
}

/// The value that the condition compares with `rax`.
pub const CLAIM: i64 = 0xffff_ffff;
