//! A new domain in one file: the parity of values. The search is not changed and uses the domain with the existing machines.

use std::collections::BTreeSet;

use fencewright_engines::domain::{Domain, Live, SpuriousPath};
use fencewright_engines::search::reach::{Reach, Reached};
use fencewright_engines::{Limits, Progress, Reason};
use fencewright_lang::load;
use fencewright_memory::linear::Cube;
use fencewright_memory::{BufferMachine, Buffers, CellId, Command, Kept, Summarised};
use fencewright_program::{BinaryOp, Expr, MemoryModel, Program, UnaryOp};

/// A set of possible remainders of a value modulo 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Parity {
    even: bool,
    odd: bool,
}

const ANY: Parity = Parity { even: true, odd: true };

impl Parity {
    fn of(value: i64) -> Self {
        Parity { even: value % 2 == 0, odd: value % 2 != 0 }
    }

    /// The remainder, if there is only one.
    fn single(self) -> Option<bool> {
        (self.even != self.odd).then_some(self.odd)
    }

    fn includes(self, other: Parity) -> bool {
        (self.even || !other.even) && (self.odd || !other.odd)
    }
}

/// The parity domain: the parity of each live cell.
struct Parities;

/// The commands of a step, and the live cells before and after it.
struct Commands {
    before: Vec<CellId>,
    commands: Vec<Command>,
    after: Vec<CellId>,
}

/// The parity of the value of an expression.
fn parity(e: &Expr<CellId>, of: &impl Fn(CellId) -> Parity) -> Parity {
    let both =
        |left: Parity, right: Parity, odd: fn(bool, bool) -> bool| match (left.single(), right.single()) {
            (Some(left), Some(right)) => Parity::of(odd(left, right) as i64),
            _ => ANY,
        };
    match e {
        Expr::Const(value) => Parity::of(*value),
        Expr::Leaf(cell) => of(*cell),
        Expr::Unary(UnaryOp::Neg, operand) => parity(operand, of),
        Expr::Binary(BinaryOp::Add | BinaryOp::Sub, left, right) => {
            both(parity(left, of), parity(right, of), |a, b| a != b)
        }
        Expr::Binary(BinaryOp::Mul, left, right) => {
            let (left, right) = (parity(left, of), parity(right, of));
            match left == Parity::of(0) || right == Parity::of(0) {
                true => Parity::of(0),
                false => both(left, right, |a, b| a && b),
            }
        }
        Expr::Binary(BinaryOp::Rem, left, right) if right.constant() == Some(2) => parity(left, of),
        _ => ANY,
    }
}

/// Whether a condition may have the value `wanted`.
fn may_hold(e: &Expr<CellId>, wanted: bool, of: &impl Fn(CellId) -> Parity) -> bool {
    match e {
        Expr::Unary(UnaryOp::Not, operand) => may_hold(operand, !wanted, of),
        Expr::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right) => {
            let (left, right) = (may_hold(left, wanted, of), may_hold(right, wanted, of));
            if (*op == BinaryOp::And) == wanted { left && right } else { left || right }
        }
        Expr::Binary(op @ (BinaryOp::Eq | BinaryOp::Ne), left, right) if (*op == BinaryOp::Eq) == wanted => {
            let (left, right) = (parity(left, of).single(), parity(right, of).single());
            left.is_none() || right.is_none() || left == right
        }
        _ => e.constant().is_none_or(|value| (value != 0) == wanted),
    }
}

impl Domain for Parities {
    type State = Vec<Parity>;
    type Transition = Commands;

    fn blank(&self) -> Vec<Parity> {
        Vec::new()
    }

    fn transition(&self, before: &Live, commands: &[Command], after: &Live) -> Commands {
        Commands { before: before.to_vec(), commands: commands.to_vec(), after: after.to_vec() }
    }

    fn post(
        &mut self,
        transition: &Commands,
        state: &Vec<Parity>,
        out: &mut Vec<(u32, Vec<Parity>)>,
    ) -> Result<(), Reason> {
        let mut values: Vec<(CellId, Parity)> =
            transition.before.iter().copied().zip(state.iter().copied()).collect();
        for command in &transition.commands {
            // The last entry of a cell is its current value.
            let of = |cell: CellId| values.iter().rev().find(|(c, _)| *c == cell).map_or(ANY, |(_, p)| *p);
            let written = match command {
                Command::Assume(e) if !may_hold(e, true, &of) => return Ok(()),
                Command::Assume(_) => continue,
                Command::Assign(cell, e) => (*cell, parity(e, &of)),
                Command::Havoc(cell) | Command::Fold(cell, _) | Command::Expand(cell, _) => (*cell, ANY),
            };
            values.push(written);
        }
        let of = |cell: &CellId| values.iter().rev().find(|(c, _)| c == cell).map_or(ANY, |(_, p)| *p);
        out.push((0, transition.after.iter().map(of).collect()));
        Ok(())
    }

    fn stored(&self, state: &Vec<Parity>) -> Vec<Parity> {
        state.clone()
    }

    fn covers(&self, larger: &Vec<Parity>, smaller: &Vec<Parity>) -> bool {
        larger.iter().zip(smaller).all(|(large, small)| large.includes(*small))
    }

    fn tells_branches(&self) -> bool {
        false
    }

    fn size(&self, state: &Vec<Parity>) -> usize {
        size_of::<Vec<Parity>>() + size_of_val(&**state)
    }

    /// Parity cannot be expressed by bounds.
    fn cube(&self, _live: &Live, _state: &Vec<Parity>) -> Cube {
        Cube::new()
    }

    fn is_checkable(&self) -> bool {
        false
    }

    fn refine(&self, _path: &mut dyn SpuriousPath<Self>) -> Result<Self, String> {
        Err("a value is even or odd, and there is no more to know".into())
    }

    fn doubt(&self) -> &'static str {
        "a path to a violation remains that parity does not rule out"
    }
}

/// The properties of a program that parity does not prove on a machine.
fn unproved(program: &Program, buffers: Buffers) -> BTreeSet<&str> {
    let machine = BufferMachine::new(program, buffers);
    let limits = Limits::default();
    let proved = |name: &&str| {
        let property = program.properties.iter().filter(|p| p.name == **name).cloned().collect::<Vec<_>>();
        let mut domain = Parities;
        let mut reach = Reach::new(&machine, &property, &mut domain, &limits);
        matches!(reach.run(&limits, &Progress::default()), Reached::Closed(_))
    };
    let names = program.properties.iter().map(|p| p.name.as_str());
    names.filter(|name| !proved(name)).collect()
}

#[test]
fn parity_proves_what_no_bound_does() {
    // Both variables are unbounded, and each of them may be greater than the other.
    let text = "shared x, y = 1;
        thread p { var r; loop { r = x; x = r + 2; fence; } }
        thread q { var s; loop { s = x; y = 3 * s + 1; fence; } }
        forbid equal: x == y;
        forbid odd: x % 2 == 1 || y * x % 2 == 1;
        forbid four: x == 4;";
    let loaded = load("parity.fw", text.as_bytes(), None, &[]).unwrap_or_else(|e| panic!("{e:?}"));
    let (model, summaries) = (MemoryModel::Tso, Summarised::default());
    for kept in [Kept::Oldest, Kept::Newest] {
        let partial = Buffers::Partial { model, k: 1, kept, summaries };
        for buffers in [Buffers::Sc, partial] {
            // `four` is violated, because x reaches 4.
            assert_eq!(unproved(&loaded.program, buffers), ["four"].into(), "{buffers:?}");
        }
        // With k = 0 and without parity of summaries, a value read from the buffer may be any number, so no property is proved.
        let forgetful = Buffers::Partial { model, k: 0, kept, summaries };
        assert_eq!(unproved(&loaded.program, forgetful).len(), 3);
    }
}
