//! A value analysis that computes which addresses a trencher program can access.
//!
//! Memory in trencher has a cell for every integer, but in a program every cell must be declared. The analysis keeps one set of possible values for
//! every register and every address, independent of the order of instructions, and joins values into these sets until a fixpoint. A set that exceeds
//! its limit becomes "any value". Values are mathematical integers here, not those of 32 bits.

use std::collections::{BTreeMap, BTreeSet};

use fencewright_program::{BinaryOp, UnaryOp};

/// Maximum number of values of a set; a larger one becomes "any value".
const SET_LIMIT: usize = 256;

/// Maximum number of operations on values in the whole analysis.
const WORK_LIMIT: usize = 5_000_000;

/// An expression of a thread; registers have numbers that are unique in the program.
#[derive(Clone, Debug)]
pub(super) enum Term {
    Constant(i64),
    Register(usize),
    Unary(UnaryOp, Box<Term>),
    Binary(BinaryOp, Box<Term>, Box<Term>),
}

impl Term {
    /// The value, if it does not depend on registers.
    pub(super) fn constant(&self) -> Option<i64> {
        match self {
            Term::Constant(value) => Some(*value),
            Term::Register(_) => None,
            Term::Unary(op, operand) => op.apply(operand.constant()?).ok(),
            Term::Binary(op, left, right) => op.apply(left.constant()?, right.constant()?).ok(),
        }
    }
}

/// The data flow of an instruction.
#[derive(Clone, Debug)]
pub(super) enum Flow {
    /// `register := memory[address]`
    Read(usize, Term),
    /// `memory[address] := value`
    Write { address: Term, value: Term },
    /// `register := value`
    Local(usize, Term),
}

/// Possible values; `None` means any value.
type Values = Option<BTreeSet<i64>>;

struct Analysis {
    registers: Vec<Values>,
    /// The values that each address may hold, for addresses that are known to be written. Initially every address holds 0.
    memory: BTreeMap<i64, Values>,
    /// The values that may be stored at unknown addresses, and so at any address.
    anywhere: Values,
    work: usize,
    changed: bool,
}

/// All addresses that the program can access; `None` if they are unknown.
pub(super) fn addresses(flows: &[Flow], registers: usize) -> Values {
    let zero = || Some(BTreeSet::from([0]));
    let mut analysis = Analysis {
        registers: vec![zero(); registers],
        memory: BTreeMap::new(),
        anywhere: Some(BTreeSet::new()),
        work: 0,
        changed: true,
    };
    while analysis.changed && analysis.work <= WORK_LIMIT {
        analysis.changed = false;
        flows.iter().for_each(|flow| analysis.step(flow));
    }
    if analysis.changed {
        return None;
    }
    let mut all = BTreeSet::new();
    for flow in flows {
        if let Flow::Read(_, address) | Flow::Write { address, .. } = flow {
            all.append(&mut analysis.evaluate(address)?);
        }
    }
    (analysis.work <= 2 * WORK_LIMIT).then_some(all)
}

impl Analysis {
    fn step(&mut self, flow: &Flow) {
        if self.work > WORK_LIMIT {
            self.changed = true;
            return;
        }
        match flow {
            Flow::Local(register, value) => {
                let value = self.evaluate(value);
                self.changed |= join(&mut self.registers[*register], value);
            }
            Flow::Read(register, address) => {
                let value = self.evaluate(address).and_then(|addresses| self.contents(&addresses));
                self.changed |= join(&mut self.registers[*register], value);
            }
            Flow::Write { address, value } => {
                let value = self.evaluate(value);
                match self.evaluate(address) {
                    None => self.changed |= join(&mut self.anywhere, value),
                    Some(addresses) => {
                        for address in addresses {
                            let cell =
                                self.memory.entry(address).or_insert_with(|| Some(BTreeSet::from([0])));
                            self.changed |= join(cell, value.clone());
                            self.work += 1;
                        }
                    }
                }
            }
        }
    }

    fn contents(&mut self, addresses: &BTreeSet<i64>) -> Values {
        let mut all = self.anywhere.clone();
        join(&mut all, Some(BTreeSet::from([0])));
        for address in addresses {
            if let Some(cell) = self.memory.get(address) {
                self.work += cell.as_ref().map_or(1, BTreeSet::len);
                join(&mut all, cell.clone());
            }
        }
        all
    }

    fn evaluate(&mut self, term: &Term) -> Values {
        self.work += 1;
        match term {
            Term::Constant(value) => Some(BTreeSet::from([*value])),
            Term::Register(register) => {
                self.work += self.registers[*register].as_ref().map_or(0, BTreeSet::len);
                self.registers[*register].clone()
            }
            Term::Unary(op, operand) => {
                let operand = self.evaluate(operand)?;
                bounded(operand.iter().map(|&a| op.apply(a).ok()))
            }
            Term::Binary(op, left, right) => {
                let (left, right) = (self.evaluate(left), self.evaluate(right));
                let truth = op.is_comparison() || matches!(op, BinaryOp::And | BinaryOp::Or);
                match (left, right) {
                    (Some(left), Some(right)) => {
                        self.work += left.len() * right.len();
                        let pairs = left.iter().flat_map(|&a| right.iter().map(move |&b| (a, b)));
                        bounded(pairs.map(|(a, b)| op.apply(a, b).ok()))
                    }
                    _ if truth => Some(BTreeSet::from([0, 1])),
                    _ => None,
                }
            }
        }
    }
}

/// The set of these values; `None` (any value) if one of them is unknown, or if there are more than [`SET_LIMIT`].
fn bounded(values: impl Iterator<Item = Option<i64>>) -> Values {
    let mut set = BTreeSet::new();
    for value in values {
        set.insert(value?);
        if set.len() > SET_LIMIT {
            return None;
        }
    }
    Some(set)
}

/// Joins values into a set; returns whether the set grew.
fn join(into: &mut Values, values: Values) -> bool {
    let Some(set) = into else { return false };
    let before = set.len();
    match values {
        Some(mut values) => set.append(&mut values),
        None => {
            *into = None;
            return true;
        }
    }
    let grew = set.len() > before;
    if set.len() > SET_LIMIT {
        *into = None;
    }
    grew
}

/// The first and the last cell of memory to declare for these addresses. The range contains all addresses if at most `limit` cells suffice for that,
/// otherwise as many addresses as `limit` cells can cover.
pub(super) fn window(addresses: &BTreeSet<i64>, limit: u64) -> (i64, i64) {
    let sorted: Vec<i64> = addresses.iter().copied().collect();
    let (mut best, mut first) = (0..0, 0);
    for last in 0..sorted.len() {
        while sorted[last].abs_diff(sorted[first]) >= limit {
            first += 1;
        }
        if last + 1 - first > best.len() {
            best = first..last + 1;
        }
    }
    if best.is_empty() { (0, 0) } else { (sorted[best.start], sorted[best.end - 1]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plus(register: usize, value: i64) -> Term {
        Term::Binary(BinaryOp::Add, Box::new(Term::Register(register)), Box::new(Term::Constant(value)))
    }

    fn check(flows: &[Flow], expected: Option<&[i64]>) {
        assert_eq!(addresses(flows, 2), expected.map(|e| e.iter().copied().collect()), "{flows:?}");
    }

    #[test]
    fn pointers_are_followed_through_memory() {
        let store = Flow::Write { address: Term::Constant(5), value: Term::Constant(9) };
        let load = Flow::Read(0, Term::Constant(5));
        let follow = Flow::Read(1, plus(0, 1));
        check(&[follow, load, store], Some(&[1, 5, 10]));
    }

    #[test]
    fn a_counter_can_have_any_value() {
        let count = Flow::Local(0, plus(0, 1));
        check(std::slice::from_ref(&count), Some(&[]));
        check(&[count, Flow::Read(1, Term::Register(0))], None);
    }

    #[test]
    fn comparisons_with_anything_are_truth_values() {
        let count = Flow::Local(0, plus(0, 1));
        let less = Term::Binary(BinaryOp::Lt, Box::new(Term::Register(0)), Box::new(Term::Constant(3)));
        check(&[count, Flow::Read(1, less)], Some(&[0, 1]));
    }

    #[test]
    fn windows_hold_as_many_addresses_as_possible() {
        let check = |addresses: &[i64], expected| {
            assert_eq!(window(&addresses.iter().copied().collect(), 10), expected, "{addresses:?}");
        };
        check(&[3, -2, 7], (-2, 7));
        check(&[0, 100, 101, 109, 110], (100, 109));
        check(&[i64::MIN, i64::MAX], (i64::MIN, i64::MIN));
        check(&[], (0, 0));
    }
}
