//! Residues of cells, x = r mod m: a domain used in addition to bounds and differences.
//!
//! The cells whose residues matter are determined from the program ([`Moduli`]): cells whose remainders or low bits it uses, and cells whose values
//! flow into such cells. If there are none, residues cost nothing.

use fencewright_memory::linear::Simple;
use fencewright_memory::{BufferMachine, Buffers, Cell, CellId, Constraint, Contents, Linear};
use fencewright_program::{BinaryOp, Expr, Observable, Op, Program, Property, RegisterId, ThreadId};

use fencewright_verdict::{Limits, Reason};

/// Maximum modulus; larger moduli would lead to too many states.
const MOST: i64 = 64;

/// Number of operations between two polls of the limits. It is small because each operation may involve all cells.
const OPS_AT_A_STRETCH: usize = 64;

/// The known residue of a value: `value = rest mod modulus`. Modulus 1 means that nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Residue {
    modulus: i64,
    rest: i64,
}

impl Residue {
    /// The residue of a value about which nothing is known.
    pub const ANY: Residue = Residue { modulus: 1, rest: 0 };

    /// The residue of a number.
    pub fn of(value: i64, modulus: i64) -> Self {
        Residue { modulus, rest: value.rem_euclid(modulus) }
    }

    /// The modulus; 1 if nothing is known.
    pub fn modulus(self) -> i64 {
        self.modulus
    }

    /// The residue, at least 0 and less than the modulus.
    pub fn rest(self) -> i64 {
        self.rest
    }

    /// The residue modulo a divisor of the modulus.
    fn modulo(self, divisor: i64) -> Self {
        Residue::of(self.rest, divisor)
    }

    /// The residue modulo the greatest common divisor of the modulus and the given number.
    pub fn limited(self, modulus: i64) -> Self {
        self.modulo(gcd(self.modulus, modulus))
    }

    /// The residue of a sum.
    pub fn plus(self, other: Residue) -> Self {
        Residue::of(self.rest + other.rest, gcd(self.modulus, other.modulus))
    }

    /// The residue of a difference.
    pub fn minus(self, other: Residue) -> Self {
        Residue::of(self.rest - other.rest, gcd(self.modulus, other.modulus))
    }

    /// The residue of the value plus a number.
    pub fn shifted(self, by: i64) -> Self {
        Residue::of(self.rest + by % self.modulus, self.modulus)
    }

    /// The residue of a value that has both residues; only the one with the greater modulus if their common multiple is too large; `None` if they
    /// contradict each other.
    pub fn meet(self, other: Residue) -> Option<Self> {
        let common = gcd(self.modulus, other.modulus);
        if (self.rest - other.rest) % common != 0 {
            return None;
        }
        let (more, less) = if self.modulus >= other.modulus { (self, other) } else { (other, self) };
        let modulus = more.modulus / common * less.modulus;
        if modulus > MOST {
            return Some(more);
        }
        // One of the residues modulo the least common multiple satisfies both.
        let mut candidates = (0..less.modulus).map(|n| more.rest + n * more.modulus);
        candidates.find(|r| (r - less.rest) % less.modulus == 0).map(|r| Residue::of(r, modulus))
    }

    /// The strongest residue that each of the two implies (least upper bound).
    pub fn join(self, other: Residue) -> Self {
        self.modulo(gcd(gcd(self.modulus, other.modulus), self.rest - other.rest))
    }

    /// Whether every value with residue `smaller` also has this residue.
    pub fn covers(self, smaller: Residue) -> bool {
        smaller.modulus % self.modulus == 0 && smaller.rest % self.modulus == self.rest
    }

    /// The residue of a linear form modulo a divisor of `modulus`, given the residues of its variables.
    pub fn of_form<V: Copy>(
        terms: &[(V, i64)],
        constant: i64,
        modulus: i64,
        of: impl Fn(V) -> Residue,
    ) -> Self {
        let term = |&(variable, factor): &(V, i64)| {
            let (residue, factor) = (of(variable), factor.rem_euclid(modulus));
            // Even if nothing is known about the variable, its term is a multiple of the factor.
            Residue::of(residue.rest * factor, gcd(residue.modulus * factor, modulus))
        };
        terms.iter().map(term).fold(Residue::of(constant, modulus), Residue::plus)
    }

    /// The residue of a form as a constraint; `None` if nothing is known or a number does not fit 64 bits.
    pub fn constraint(self, form: &Linear) -> Option<Constraint> {
        let difference = form.plus(&Linear::constant(-self.rest))?;
        (self.modulus > 1).then_some(Constraint::Multiple(difference, self.modulus))
    }
}

/// The greatest common divisor; not negative.
fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The least common multiple of two moduli; the first modulus if the result would be too large.
pub fn common_multiple(a: i64, b: i64) -> i64 {
    let multiple = a / gcd(a, b) * b.min(MOST + 1);
    if b <= MOST && multiple <= MOST { multiple } else { a }
}

/// The effect of a step on residues, for each branch through its commands.
#[derive(Debug)]
pub struct ResidueStep {
    /// All residues are computed modulo this number, the least common multiple of the moduli of the step unless that is too large.
    modulus: i64,
    /// The number of cells that the step accesses.
    cells: usize,
    /// The number of cells that are live before the step; these cells come first.
    before: usize,
    /// The live cells after the step, with their moduli; empty if no residues are kept.
    after: Vec<(usize, i64)>,
    ways: Vec<Vec<ResidueOp>>,
}

/// A linear form over the cells of a step: terms and constant.
type Terms = (Vec<(usize, i64)>, i64);

#[derive(Debug)]
enum ResidueOp {
    /// The cell is assigned a form, or an arbitrary value.
    Assign(usize, Option<Terms>),
    /// The form is assumed to be a multiple of this number.
    Multiple(Terms, i64),
    /// The summary cell additionally stands for the value of the form, or for an arbitrary value.
    Fold(usize, Option<Terms>),
}

impl ResidueStep {
    /// The step with these branches. Its first cells are the cells that are live before the step. `None` if residues do not matter.
    pub fn new(
        moduli: &Moduli,
        before: &[CellId],
        cells: &[CellId],
        ways: &[Vec<Simple>],
        after: &[CellId],
    ) -> Option<Self> {
        let mut modulus = cells.iter().map(|&cell| moduli.of(cell)).fold(1, common_multiple);
        for simple in ways.iter().flatten() {
            if let Simple::Assume(Constraint::Multiple(_, m)) = simple {
                modulus = common_multiple(modulus, *m);
            }
        }
        if modulus == 1 && moduli.is_empty() {
            return None;
        }
        let index = |cell: CellId| cells.iter().position(|&c| c == cell).expect("every cell was collected");
        let terms = |form: &Linear| -> Terms {
            (form.terms.iter().map(|&(cell, c)| (index(cell), c)).collect(), form.constant)
        };
        let op = |simple: &Simple| match simple {
            Simple::Assume(Constraint::AtMost(_)) => None,
            Simple::Assume(Constraint::Multiple(form, m)) => Some(ResidueOp::Multiple(terms(form), *m)),
            Simple::Assign(cell, value) => Some(ResidueOp::Assign(index(*cell), value.as_ref().map(terms))),
            Simple::Fold(cell, value) => Some(ResidueOp::Fold(index(*cell), value.as_ref().map(terms))),
            // All values of a summary cell have its residue.
            Simple::Expand(cell, summary) => {
                Some(ResidueOp::Assign(index(*cell), Some((vec![(index(*summary), 1)], 0))))
            }
        };
        let after = match moduli.is_empty() {
            true => Vec::new(),
            false => after.iter().map(|&cell| (index(cell), moduli.of(cell))).collect(),
        };
        let ways = ways.iter().map(|way| way.iter().filter_map(op).collect()).collect();
        Some(ResidueStep { modulus, cells: cells.len(), before: before.len(), after, ways })
    }

    /// The residue of a number with the modulus of the step.
    pub fn of(&self, value: i64) -> Residue {
        Residue::of(value, self.modulus)
    }

    /// The residues of all cells before the step, from the stored residues and the known values.
    pub fn start(&self, stored: &[Residue], value: impl Fn(usize) -> Option<i64>) -> Vec<Residue> {
        let residue = |cell: usize| {
            let exact = (cell < self.before).then(|| value(cell)).flatten().map(|value| self.of(value));
            exact.or_else(|| stored.get(cell).copied().filter(|_| cell < self.before)).unwrap_or(Residue::ANY)
        };
        (0..self.cells).map(residue).collect()
    }

    /// The residues after one branch of the step; `None` if the residues make the branch infeasible.
    pub fn run(&self, way: usize, start: &[Residue]) -> Option<Vec<Residue>> {
        let mut known = start.to_vec();
        let value = |known: &[Residue], form: &Option<Terms>| match form {
            Some((terms, constant)) => Residue::of_form(terms, *constant, self.modulus, |cell| known[cell]),
            None => Residue::ANY,
        };
        for op in &self.ways[way] {
            match op {
                ResidueOp::Assign(cell, form) => known[*cell] = value(&known, form),
                ResidueOp::Fold(cell, form) => known[*cell] = known[*cell].join(value(&known, form)),
                ResidueOp::Multiple(form, m) => self.assume(&mut known, form, *m)?,
            }
        }
        Some(known)
    }

    /// Assumes that a form is a multiple of m; `None` if that is contradictory.
    fn assume(&self, known: &mut [Residue], (terms, constant): &Terms, m: i64) -> Option<()> {
        if self.modulus % m != 0 {
            return Some(());
        }
        let multiple = Residue::of(0, m);
        Residue::of_form(terms, *constant, m, |cell| known[cell]).meet(multiple)?;
        for &(cell, c) in terms.iter().filter(|(_, c)| c.abs() == 1) {
            let others: Vec<(usize, i64)> =
                terms.iter().copied().filter(|(other, _)| *other != cell).collect();
            let rest = Residue::of_form(&others, *constant, m, |cell| known[cell]);
            // The cell is congruent to minus the rest; or to the rest, if the coefficient of the cell is -1.
            let wanted = if c > 0 { multiple.minus(rest) } else { rest };
            known[cell] = known[cell].meet(wanted)?;
        }
        Some(())
    }

    /// The residues that are stored after the step.
    pub fn kept(&self, known: &[Residue]) -> Box<[Residue]> {
        self.after.iter().map(|&(cell, modulus)| known[cell].limited(modulus)).collect()
    }
}

/// For each cell, the modulus of the residues that matter; 1 if no residue of the cell matters.
#[derive(Clone, Debug, Default)]
pub struct Moduli {
    of: Vec<i64>,
    memory: usize,
}

impl Moduli {
    /// The moduli of a program with respect to the given properties.
    pub fn new(program: &Program, properties: &[Property], limits: &Limits) -> Result<Self, Reason> {
        let machine = BufferMachine::new(program, Buffers::Sc);
        let cells = &machine.cells;
        let mut found = Moduli { of: vec![1; cells.len()], memory: program.cells() };
        for formula in properties.iter().filter_map(Property::formula) {
            found.ask(formula, &|observable| match observable {
                Observable::Register(t, r) => Some(cells.id(Cell::Register(*t, *r))),
                Observable::Memory(c) => Some(cells.id(Cell::Memory(*c))),
                Observable::At(..) => None,
            });
        }
        let ops = || {
            let edges = program.threads().flat_map(|(id, thread)| thread.edges.iter().map(move |e| (id, e)));
            edges.flat_map(|(id, edge)| edge.action.ops().iter().map(move |op| (id, op)))
        };
        let register = |t: ThreadId| move |r: &RegisterId| Some(cells.id(Cell::Register(t, *r)));
        for (t, op) in ops() {
            let (index, value) = match op {
                Op::Skip | Op::Havoc(..) => (None, None),
                Op::Assign(_, e) | Op::Assume(e) | Op::Assert(e, _) => (None, Some(e)),
                Op::Load(_, address) => (address.index.as_ref(), None),
                Op::Store(address, e) => (address.index.as_ref(), Some(e)),
            };
            index.into_iter().chain(value).for_each(|e| found.ask(e, &register(t)));
        }
        // Propagate moduli backward along assignments to a fixpoint, which is reached soon because each modulus grows only a few times.
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for (n, (t, op)) in ops().enumerate() {
                if n % OPS_AT_A_STRETCH == 0
                    && let Some(reason) = limits.exceeded(0)
                {
                    return Err(reason);
                }
                changed |= found.trace(program, &machine, t, op);
            }
        }
        Ok(found)
    }

    /// Raises the moduli of the leaves of all subexpressions whose residue determines the value of an expression, such as the left operand of `%`.
    fn ask<L>(&mut self, e: &Expr<L>, cell: &dyn Fn(&L) -> Option<CellId>) {
        match e {
            Expr::Const(_) | Expr::Leaf(_) => {}
            Expr::Unary(_, operand) => self.ask(operand, cell),
            Expr::Binary(op, left, right) => {
                for (operand, other) in [(left, right), (right, left)] {
                    let modulus = other.constant().and_then(|constant| asked(*op, constant));
                    // For `%`, the constant has to be on the right.
                    if let Some(modulus) =
                        modulus.filter(|_| *op != BinaryOp::Rem || std::ptr::eq(operand, left))
                    {
                        operand.for_each_leaf(&mut |l| _ = cell(l).map(|c| self.raise(c, modulus)));
                    }
                    self.ask(operand, cell);
                }
            }
            Expr::If(condition, then, otherwise) => {
                [condition, then, otherwise].into_iter().for_each(|part| self.ask(part, cell));
            }
        }
    }

    /// Propagates the moduli of written cells to the cells that are read, and those of the cells that an assumed or asserted `==` or `!=` compares to
    /// each other. Returns whether a modulus has changed.
    fn trace(&mut self, program: &Program, machine: &BufferMachine<'_>, t: ThreadId, op: &Op) -> bool {
        let register = |r: RegisterId| machine.cells.id(Cell::Register(t, r));
        let memory = |address: &fencewright_program::Address| -> Vec<CellId> {
            let cells = program.variables[address.variable.index()].cells();
            cells.map(|c| machine.cells.id(Cell::Memory(c as u32))).collect()
        };
        let leaves = |e: &Expr<RegisterId>| {
            let mut found = Vec::new();
            e.for_each_leaf(&mut |r| found.push(register(*r)));
            found
        };
        match op {
            Op::Skip | Op::Havoc(..) => false,
            Op::Assign(to, e) => self.flow(&leaves(e), &[register(*to)]),
            Op::Load(to, address) => self.flow(&memory(address), &[register(*to)]),
            Op::Store(address, e) => self.flow(&leaves(e), &memory(address)),
            Op::Assume(e) | Op::Assert(e, _) => {
                let mut changed = false;
                equations(e, &mut |left, right| {
                    let all = [leaves(left), leaves(right)].concat();
                    changed |= self.flow(&all, &all);
                });
                changed
            }
        }
    }

    /// Raises the moduli of `from` to those of `to`. Returns whether a modulus has changed.
    fn flow(&mut self, from: &[CellId], to: &[CellId]) -> bool {
        let modulus = to.iter().map(|&c| self.of(c)).fold(1, common_multiple);
        from.iter().fold(false, |changed, &c| self.raise(c, modulus) | changed)
    }

    fn raise(&mut self, cell: CellId, modulus: i64) -> bool {
        let known = &mut self.of[cell as usize];
        let raised = common_multiple(*known, modulus);
        std::mem::replace(known, raised) != raised
    }

    /// Extends the moduli to the cells of a machine, a superset of memory and registers.
    pub fn attach(&mut self, contents: &[Contents]) {
        if self.is_empty() {
            return;
        }
        let stores = self.of[..self.memory].iter().copied().fold(1, common_multiple);
        let own = std::mem::take(&mut self.of);
        let modulus = |(n, contents): (usize, &Contents)| match contents {
            Contents::Own => own.get(n).copied().unwrap_or(1),
            Contents::StoresTo(cell) | Contents::Summary(cell) => {
                own.get(*cell as usize).copied().unwrap_or(1)
            }
            Contents::Stores => stores,
        };
        self.of = contents.iter().enumerate().map(modulus).collect();
    }

    /// Whether no residue matters.
    pub fn is_empty(&self) -> bool {
        self.of.iter().all(|&modulus| modulus == 1)
    }

    /// The modulus of a cell.
    pub fn of(&self, cell: CellId) -> i64 {
        self.of.get(cell as usize).copied().unwrap_or(1)
    }
}

/// The modulus of the residue that an operator with a constant operand depends on, if it is not too large.
fn asked(op: BinaryOp, constant: i64) -> Option<i64> {
    let modulus = match op {
        BinaryOp::Rem => constant.checked_abs()?,
        // The operation depends on the bits up to the highest 1 of the constant, or up to the highest 0 of a negative constant.
        BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => {
            let bits = if constant < 0 { !constant } else { constant };
            1i64.checked_shl(64 - bits.leading_zeros())?
        }
        _ => return None,
    };
    (2..=MOST).contains(&modulus).then_some(modulus)
}

/// Calls `visit` on both sides of every comparison by `==` or `!=` in a condition.
fn equations<L>(e: &Expr<L>, visit: &mut impl FnMut(&Expr<L>, &Expr<L>)) {
    match e {
        Expr::Binary(BinaryOp::Eq | BinaryOp::Ne, left, right) => visit(left, right),
        Expr::Binary(BinaryOp::And | BinaryOp::Or, left, right) => {
            equations(left, visit);
            equations(right, visit);
        }
        Expr::Unary(_, operand) => equations(operand, visit),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the operations on residues with the sets of numbers they represent.
    #[test]
    fn residues_are_sets_of_numbers() {
        let all = || [1i64, 2, 3, 4, 6, 12].into_iter().flat_map(|m| (0..m).map(move |r| Residue::of(r, m)));
        let numbers = || -30i64..30;
        let is = |n: i64, residue: Residue| n.rem_euclid(residue.modulus) == residue.rest;
        for a in all() {
            for b in all() {
                let both = a.meet(b);
                let joined = a.join(b);
                for n in numbers() {
                    assert_eq!(is(n, a) && is(n, b), both.is_some_and(|both| is(n, both)), "{a:?} {b:?} {n}");
                    assert!(!(is(n, a) || is(n, b)) || is(n, joined), "{a:?} {b:?} {n}");
                    assert!(!is(n, a) || is(n + 5, a.shifted(5)) && is(n, a.limited(4)));
                }
                assert_eq!(a.covers(b), numbers().all(|n| !is(n, b) || is(n, a)), "{a:?} {b:?}");
                for (x, y) in numbers().step_by(7).flat_map(|x| numbers().map(move |y| (x, y))) {
                    let sum = Residue::of_form(&[(0, 3), (1, -2)], 7, 12, |v| if v == 0 { a } else { b });
                    assert!(!(is(x, a) && is(y, b)) || is(3 * x - 2 * y + 7, sum) && is(x - y, a.minus(b)));
                }
            }
        }
    }
}
