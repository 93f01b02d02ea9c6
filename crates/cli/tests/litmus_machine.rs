//! Random litmus tests, against a second interpreter of x86 that shares nothing with the tool: registers are 64 bits, flags
//! are computed from bits, stores wait in a buffer.

mod common;

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::fmt::Write as _;

use common::*;
use serde_json::Value;

const REGISTERS: usize = 4;
const LOCATIONS: usize = 2;

/// Choices for one test.
struct Random {
    choices: fencewright_testing::Random,
    /// Whether numbers are small.
    small: bool,
    /// Whether jumps may go back.
    back: bool,
}

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.choices.below(n)
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        *self.choices.pick(from)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Reg {
    number: usize,
    bits: u32,
    high: bool,
}

#[derive(Clone, Copy, Debug)]
enum Arg {
    Reg(Reg),
    Mem(usize),
    Imm(i64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Alu {
    Add,
    Sub,
    And,
    Or,
    Xor,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Unary {
    Inc,
    Dec,
    Neg,
    Not,
}

#[derive(Clone, Copy, Debug)]
enum Instr {
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
    /// A condition by name, and the instruction that is next if it holds.
    Jump(&'static str, usize),
    Cmov(&'static str, Reg, Arg),
    Set(&'static str, Reg),
    Fence,
}

const CONDITIONS: [&str; 30] = [
    "e", "z", "ne", "nz", "s", "ns", "b", "c", "nae", "ae", "nb", "nc", "o", "no", "l", "lt", "nge", "ge",
    "nl", "le", "ng", "g", "gt", "nle", "be", "na", "a", "nbe", "e", "ne",
];

#[derive(Clone, Copy)]
struct Declared {
    bits: u32,
    signed: bool,
    /// Whether the test says so.
    said: bool,
}

struct Program {
    types: [Declared; LOCATIONS],
    memory: [u64; LOCATIONS],
    registers: Vec<[(u64, Declared); REGISTERS]>,
    code: Vec<Vec<(Instr, u32)>>,
}

fn mask(bits: u32) -> u64 {
    if bits == 64 { u64::MAX } else { (1 << bits) - 1 }
}

fn generate(random: &mut Random) -> Program {
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

/// A number that is interesting for this width.
fn number(random: &mut Random, bits: u32) -> i64 {
    let all =
        [0, 1, 1, 2, -1, 3, 127, 128, 255, -128, 256, 32767, 65535, 0x7fff_ffff, -0x8000_0000, 0xffff_ffff];
    match bits {
        _ if random.small => random.pick(&[0, 1, 1, 2, 3, 5, 7, 100, -1][..if random.back { 5 } else { 9 }]),
        // Now and then something that may leave 64 bits.
        64 if random.chance(2) => i64::MAX,
        32 | 64 => random.pick(&all),
        _ => random.pick(&all[..13]),
    }
}

fn register(random: &mut Random, bits: u32) -> Reg {
    Reg { number: random.below(REGISTERS), bits, high: bits == 8 && random.chance(30) }
}

/// A register, or with some luck a location of this width.
fn place(random: &mut Random, bits: u32, widths: &[u32]) -> Arg {
    let fitting: Vec<usize> = (0..LOCATIONS).filter(|l| widths[*l] == bits).collect();
    match !fitting.is_empty() && random.chance(75) {
        true => Arg::Mem(random.pick(&fitting)),
        false => Arg::Reg(register(random, bits)),
    }
}

/// What may stand beside a target: not memory twice.
fn source(random: &mut Random, bits: u32, widths: &[u32], target: Arg) -> Arg {
    match (random.below(3), target) {
        (0, _) => Arg::Imm(number(random, bits)),
        (_, Arg::Mem(_)) => Arg::Reg(register(random, bits)),
        _ => place(random, bits, widths),
    }
}

fn instruction(random: &mut Random, widths: &[u32], at: usize, length: usize) -> (Instr, u32) {
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

// ---- the test as text

fn reg_name(reg: Reg) -> String {
    let letter = ["a", "b", "c", "d"][reg.number];
    match (reg.bits, reg.high) {
        (8, true) => format!("%{letter}h"),
        (8, _) => format!("%{letter}l"),
        (16, _) => format!("%{letter}x"),
        (32, _) => format!("%e{letter}x"),
        _ => format!("%r{letter}x"),
    }
}

fn arg_text(arg: Arg) -> String {
    match arg {
        Arg::Reg(reg) => reg_name(reg),
        Arg::Mem(location) => format!("({})", ["x", "y"][location]),
        Arg::Imm(value) => format!("${value}"),
    }
}

fn suffix(bits: u32) -> &'static str {
    match bits {
        8 => "b",
        16 => "w",
        32 => "l",
        _ => "q",
    }
}

fn instr_text(instr: Instr, bits: u32) -> String {
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
            // herd's order.
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

fn declared(d: Declared) -> String {
    match d.said {
        true => format!("{}int{}_t ", if d.signed { "" } else { "u" }, d.bits),
        false => String::new(),
    }
}

fn text(program: &Program, name: &str) -> String {
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

/// What the condition claims of `rax`.
const CLAIM: i64 = 0xffff_ffff;

// ---- the machine

#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Thread {
    next: usize,
    /// What an instruction that is half done has loaded.
    loaded: Option<u64>,
    registers: [u64; REGISTERS],
    zero: bool,
    sign: bool,
    carry: bool,
    overflow: bool,
    buffer: VecDeque<(usize, u64)>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    memory: [u64; LOCATIONS],
    threads: Vec<Thread>,
}

impl Thread {
    fn get(&self, reg: Reg) -> u64 {
        self.registers[reg.number] >> (if reg.high { 8 } else { 0 }) & mask(reg.bits)
    }

    fn set(&mut self, reg: Reg, value: u64) {
        let whole = &mut self.registers[reg.number];
        let shift = if reg.high { 8 } else { 0 };
        *whole = match reg.bits {
            64 => value,
            32 => value & mask(32),
            bits => *whole & !(mask(bits) << shift) | (value & mask(bits)) << shift,
        };
    }

    fn results(&mut self, result: u64, bits: u32) {
        self.zero = result == 0;
        self.sign = result >> (bits - 1) & 1 == 1;
    }

    /// `a op b` with all flags; `carries` says whether the carry flag changes.
    fn alu(&mut self, op: Alu, a: u64, b: u64, bits: u32, carries: bool) -> u64 {
        let sign = |v: u64| v >> (bits - 1) & 1;
        let (result, carry, overflow) = match op {
            Alu::Add => {
                let result = a.wrapping_add(b) & mask(bits);
                (
                    result,
                    u128::from(a) + u128::from(b) > u128::from(mask(bits)),
                    sign(a) == sign(b) && sign(a) != sign(result),
                )
            }
            Alu::Sub => {
                let result = a.wrapping_sub(b) & mask(bits);
                (result, a < b, sign(a) != sign(b) && sign(a) != sign(result))
            }
            Alu::And => (a & b, false, false),
            Alu::Or => (a | b, false, false),
            Alu::Xor => (a ^ b, false, false),
        };
        self.results(result, bits);
        self.overflow = overflow;
        if carries {
            self.carry = carry;
        }
        result
    }

    fn unary(&mut self, op: Unary, a: u64, bits: u32) -> u64 {
        match op {
            Unary::Inc => self.alu(Alu::Add, a, 1, bits, false),
            Unary::Dec => self.alu(Alu::Sub, a, 1, bits, false),
            Unary::Neg => self.alu(Alu::Sub, 0, a, bits, true),
            Unary::Not => !a & mask(bits),
        }
    }

    fn holds(&self, condition: &str) -> bool {
        match condition {
            "e" | "z" => self.zero,
            "ne" | "nz" => !self.zero,
            "s" => self.sign,
            "ns" => !self.sign,
            "b" | "c" | "nae" => self.carry,
            "ae" | "nb" | "nc" => !self.carry,
            "o" => self.overflow,
            "no" => !self.overflow,
            "l" | "lt" | "nge" => self.sign != self.overflow,
            "ge" | "nl" => self.sign == self.overflow,
            "le" | "ng" => self.zero || self.sign != self.overflow,
            "g" | "gt" | "nle" => !self.zero && self.sign == self.overflow,
            "be" | "na" => self.carry || self.zero,
            "a" | "nbe" => !self.carry && !self.zero,
            other => panic!("{other}"),
        }
    }
}

/// The location that an instruction loads from, whether it has to be alone, and whether it stores later.
fn memory_use(instr: Instr) -> Option<(usize, bool)> {
    let of = |arg: Arg| if let Arg::Mem(location) = arg { Some(location) } else { None };
    match instr {
        Instr::Mov(_, from) | Instr::Extend { from, .. } | Instr::Cmov(_, _, from) => {
            of(from).map(|l| (l, false))
        }
        Instr::Cmp(a, b) | Instr::Test(a, b) => of(a).or(of(b)).map(|l| (l, false)),
        Instr::Alu(_, a, b, locked) => of(a).map(|l| (l, locked)).or(of(b).map(|l| (l, false))),
        Instr::Unary(_, a, locked) | Instr::Xadd(a, _, locked) => of(a).map(|l| (l, locked)),
        Instr::Xchg(a, _) => of(a).map(|l| (l, true)),
        Instr::Cmpxchg(location, _, locked) => Some((location, locked)),
        Instr::Jump(..) | Instr::Set(..) | Instr::Fence => None,
    }
}

/// The states after one step of a thread: a flush, a load, or the rest of an instruction.
fn steps(program: &Program, state: &State, t: usize) -> Vec<State> {
    let mut after = Vec::new();
    let thread = &state.threads[t];
    if let Some((location, value)) = thread.buffer.front().copied() {
        let mut next = state.clone();
        next.memory[location] = value;
        next.threads[t].buffer.pop_front();
        after.push(next);
    }
    let Some(&(instr, bits)) = program.code[t].get(thread.next) else { return after };
    let mut next = state.clone();
    if let Instr::Fence = instr {
        if thread.buffer.is_empty() {
            next.threads[t].next += 1;
            after.push(next);
        }
        return after;
    }
    match memory_use(instr) {
        Some((location, alone)) if thread.loaded.is_none() => {
            if alone && !thread.buffer.is_empty() {
                return after;
            }
            let own = thread.buffer.iter().rev().find(|(l, _)| *l == location).map(|(_, v)| *v);
            let value = own.unwrap_or(state.memory[location]);
            next.threads[t].loaded = Some(value);
            if alone {
                finish(&mut next, t, instr, bits);
                if let Some((location, value)) = next.threads[t].buffer.pop_front() {
                    next.memory[location] = value;
                }
            }
        }
        _ => finish(&mut next, t, instr, bits),
    }
    after.push(next);
    after
}

/// What an instruction does once it has loaded.
fn finish(state: &mut State, t: usize, instr: Instr, bits: u32) {
    let thread = &mut state.threads[t];
    let loaded = thread.loaded.take();
    let value = |thread: &Thread, arg: Arg, bits: u32| match arg {
        Arg::Reg(reg) => thread.get(reg),
        Arg::Imm(value) => value as u64 & mask(bits),
        Arg::Mem(_) => loaded.expect("it was loaded"),
    };
    let store = |thread: &mut Thread, arg: Arg, value: u64| match arg {
        Arg::Reg(reg) => thread.set(reg, value),
        Arg::Mem(location) => thread.buffer.push_back((location, value)),
        Arg::Imm(_) => panic!("a number is no target"),
    };
    thread.next += 1;
    match instr {
        Instr::Mov(target, source) => {
            let value = value(thread, source, bits);
            store(thread, target, value);
        }
        Instr::Extend { to, from, from_bits, signed } => {
            let narrow = value(thread, from, from_bits);
            let unused = 64 - from_bits;
            let wide = if signed { ((narrow << unused) as i64 >> unused) as u64 } else { narrow };
            thread.set(to, wide & mask(to.bits));
        }
        Instr::Alu(op, target, source, _) => {
            let (a, b) = (value(thread, target, bits), value(thread, source, bits));
            let result = thread.alu(op, a, b, bits, true);
            store(thread, target, result);
        }
        Instr::Unary(op, target, _) => {
            let a = value(thread, target, bits);
            let result = thread.unary(op, a, bits);
            store(thread, target, result);
        }
        Instr::Xchg(target, reg) => {
            let (a, b) = (value(thread, target, bits), thread.get(reg));
            store(thread, target, b);
            thread.set(reg, a);
        }
        Instr::Xadd(target, reg, _) => {
            let (a, b) = (value(thread, target, bits), thread.get(reg));
            let sum = thread.alu(Alu::Add, a, b, bits, true);
            thread.set(reg, a);
            store(thread, target, sum);
        }
        Instr::Cmpxchg(location, reg, _) => {
            let accumulator = Reg { number: 0, bits, high: false };
            let (old, expected, new) =
                (loaded.expect("it was loaded"), thread.get(accumulator), thread.get(reg));
            thread.alu(Alu::Sub, expected, old, bits, true);
            match thread.zero {
                true => thread.buffer.push_back((location, new)),
                false => thread.set(accumulator, old),
            }
        }
        Instr::Cmp(a, b) => {
            let (a, b) = (value(thread, a, bits), value(thread, b, bits));
            thread.alu(Alu::Sub, a, b, bits, true);
        }
        Instr::Test(a, b) => {
            let (a, b) = (value(thread, a, bits), value(thread, b, bits));
            thread.alu(Alu::And, a, b, bits, true);
        }
        Instr::Jump(condition, to) => {
            if thread.holds(condition) {
                thread.next = to;
            }
        }
        Instr::Cmov(condition, reg, from) => {
            let value = if thread.holds(condition) { value(thread, from, bits) } else { thread.get(reg) };
            thread.set(reg, value);
        }
        Instr::Set(condition, reg) => {
            let value = thread.holds(condition) as u64;
            thread.set(reg, value);
        }
        Instr::Fence => {}
    }
}

fn shown(value: u64, d: Declared) -> String {
    let unused = 64 - d.bits;
    match d.signed {
        true => ((value << unused) as i64 >> unused).to_string(),
        false => (value & mask(d.bits)).to_string(),
    }
}

/// More states than this are not looked at.
const MOST_STATES: usize = 30_000;

/// All final states as the tool shows them, and whether the claim holds in each; nothing if there are too many states.
fn final_states(program: &Program) -> Option<BTreeSet<(String, bool)>> {
    let thread = |registers: &[(u64, Declared); REGISTERS]| Thread {
        registers: registers.map(|(v, _)| v),
        ..Thread::default()
    };
    let start = State { memory: program.memory, threads: program.registers.iter().map(thread).collect() };
    let mut seen = HashSet::from([start.clone()]);
    let mut work = vec![start];
    let mut finals = BTreeSet::new();
    while let Some(state) = work.pop() {
        if seen.len() > MOST_STATES {
            return None;
        }
        let ended =
            |(t, thread): (usize, &Thread)| thread.next >= program.code[t].len() && thread.buffer.is_empty();
        if state.threads.iter().enumerate().all(ended) {
            let mut text = String::new();
            for (t, thread) in state.threads.iter().enumerate() {
                for (number, value) in thread.registers.iter().enumerate() {
                    let name = &reg_name(Reg { number, bits: 64, high: false })[1..];
                    let d = program.registers[t][number].1;
                    let _ = write!(text, "{t}:{name}={} ", shown(*value, d));
                }
            }
            for (location, name) in ["x", "y"].iter().enumerate() {
                let _ = write!(text, "[{name}]={} ", shown(state.memory[location], program.types[location]));
            }
            let d = program.registers[0][0].1;
            let claimed = (state.threads[0].registers[0] ^ CLAIM as u64) & mask(d.bits) == 0;
            finals.insert((text, claimed));
        }
        for t in 0..state.threads.len() {
            for next in steps(program, &state, t) {
                if seen.insert(next.clone()) {
                    work.push(next);
                }
            }
        }
    }
    Some(finals)
}

#[test]
fn random_tests_have_the_final_states_of_the_machine() {
    let long = std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some();
    let count = if long { 30_000 } else { 3_000 };
    let mut random = Random { choices: fencewright_testing::Random::new(1), small: false, back: false };
    let programs: Vec<Program> = (0..count).map(|_| generate(&mut random)).collect();
    let texts: Vec<(String, String)> = programs
        .iter()
        .enumerate()
        .map(|(n, p)| (format!("{n:06}.litmus"), text(p, &format!("t{n}"))))
        .collect();
    let texts: Vec<(&str, &str)> = texts.iter().map(|(n, t)| (n.as_str(), t.as_str())).collect();
    let files = Files::new(&texts);
    let outcome = run(["litmus", "--json", "--timeout", "200ms", &files.text(".")]);
    let array: Value = serde_json::from_str(&outcome.stdout).expect("one array");
    let array = array.as_array().expect("an array");
    assert_eq!(array.len(), programs.len());
    let (mut compared, mut several) = (0, 0);
    for ((program, (_, text)), answer) in programs.iter().zip(&texts).zip(array) {
        assert!(answer["error"].is_null(), "{}\n{text}", answer["error"]);
        let Some(expected) = final_states(program) else { continue };
        if let Some(reason) = answer["reason"].as_str() {
            // 64 bits do not wrap around: there is no answer then. Nor is there if a loop does not end.
            let known = ["64 bits", "no answer within", "when the condition was decided"];
            assert!(known.iter().any(|k| reason.contains(k)), "{reason}\n{text}");
            continue;
        }
        let found: BTreeSet<(String, bool)> = answer["final_states"]
            .as_array()
            .expect("an array")
            .iter()
            .map(|state| {
                let values = state["values"].as_object().expect("an object").iter();
                let text: String = values.map(|(name, value)| format!("{name}={value} ")).collect();
                (text, state["satisfies"].as_bool().expect("decided"))
            })
            .collect();
        assert_eq!(found, expected, "{text}");
        compared += 1;
        several += (found.len() > 1) as usize;
    }
    println!("compared {compared} of {count}, {several} with several final states");
    assert!(several * 10 >= count, "only {several} of {count} have several final states");
    assert!(compared * 10 >= count * 8, "only {compared} of {count} have an answer");
}
