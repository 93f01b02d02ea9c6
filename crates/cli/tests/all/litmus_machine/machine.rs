//! The machine: 64-bit registers, flags computed from bits, and store buffers.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::fmt::Write as _;

use super::program::*;

#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Thread {
    pub next: usize,
    /// The value loaded by the current instruction, if it has loaded but not finished.
    pub loaded: Option<u64>,
    pub registers: [u64; REGISTERS],
    pub zero: bool,
    pub sign: bool,
    pub carry: bool,
    pub overflow: bool,
    pub buffer: VecDeque<(usize, u64)>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub memory: [u64; LOCATIONS],
    pub threads: Vec<Thread>,
}

impl Thread {
    pub fn get(&self, reg: Reg) -> u64 {
        self.registers[reg.number] >> (if reg.high { 8 } else { 0 }) & mask(reg.bits)
    }

    pub fn set(&mut self, reg: Reg, value: u64) {
        let whole = &mut self.registers[reg.number];
        let shift = if reg.high { 8 } else { 0 };
        *whole = match reg.bits {
            64 => value,
            32 => value & mask(32),
            bits => *whole & !(mask(bits) << shift) | (value & mask(bits)) << shift,
        };
    }

    pub fn results(&mut self, result: u64, bits: u32) {
        self.zero = result == 0;
        self.sign = result >> (bits - 1) & 1 == 1;
    }

    /// Computes `a op b` and sets the flags; `carries` says whether the carry flag changes.
    pub fn alu(&mut self, op: Alu, a: u64, b: u64, bits: u32, carries: bool) -> u64 {
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

    pub fn unary(&mut self, op: Unary, a: u64, bits: u32) -> u64 {
        match op {
            Unary::Inc => self.alu(Alu::Add, a, 1, bits, false),
            Unary::Dec => self.alu(Alu::Sub, a, 1, bits, false),
            Unary::Neg => self.alu(Alu::Sub, 0, a, bits, true),
            Unary::Not => !a & mask(bits),
        }
    }

    pub fn holds(&self, condition: &str) -> bool {
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

/// The location that an instruction loads from, and whether the instruction is locked; `None` if it loads from no location.
pub fn memory_use(instr: Instr) -> Option<(usize, bool)> {
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
pub fn steps(program: &Program, state: &State, t: usize) -> Vec<State> {
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

/// Executes the rest of an instruction after its load.
pub fn finish(state: &mut State, t: usize, instr: Instr, bits: u32) {
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

pub fn shown(value: u64, d: Declared) -> String {
    let unused = 64 - d.bits;
    match d.signed {
        true => ((value << unused) as i64 >> unused).to_string(),
        false => (value & mask(d.bits)).to_string(),
    }
}

/// Maximum number of states that are explored.
pub const MOST_STATES: usize = 30_000;

/// All final states in the notation of the tool, and whether the claim holds in each; `None` if there are too many states.
pub fn final_states(program: &Program) -> Option<BTreeSet<(String, bool)>> {
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
