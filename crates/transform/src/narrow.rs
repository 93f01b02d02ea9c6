//! Narrows choices: restricts `r = *` to a few values where most values behave alike.
//!
//! A chosen value that is copied, stored and loaded, and otherwise only compared, need not range over all numbers of its type. A flow analysis
//! computes where the values of each *site* (an operation `r = *` with very many values) may flow: a `Value` is the set of constants and sites from
//! which the content of a register at a location, or of a shared variable, may originate. Sites whose values are compared with each other form one
//! *group*. The constants that values of these sites are compared with are the constants of the group. A value is *used* if something else is done
//! with it: it is an operand, an index, checked against a range, compared with an unknown value, or compared by `<` with a value of a site. A value
//! that is used must lie between constants of its group. The same analysis checks this: at its choice, the `Value` of a chosen value is *open above*
//! and *open below*; where a condition like `r < 4` holds, 4 becomes a constant of the group, and the `Value` of `r` is no longer open above. If a
//! value that is open below is used, the least value of its site becomes a constant too. If a value that is open above is used, its group is not
//! narrowed.
//!
//! **The narrowed program gives the same verdicts.** Consider a group with its least and greatest constants, and an execution of the program.
//!
//! * *No two values of the group are compared with each other.* Replace each value chosen above the greatest constant by greatest + 1. Replace each
//!   value chosen below the least constant by least - 1; or by greatest + 1 too if there are no comparisons by order. Values in between are kept.
//! * *Otherwise* each site of the group is a step of its own that is executed at most once (it lies on no cycle), and the sites are numbered from 1
//!   to n. A value above the greatest constant is replaced by greatest + j, where j is the first site that chooses this value. A value below the
//!   least constant is replaced by least - j; or by greatest + j too if there are no comparisons by order. This is a single injective map for the
//!   whole execution.
//!
//! A value that is used is kept, because it lies between constants of its group: the conditions on its path imply that, or it is not below the least
//! value of its site. A comparison of a replaced value has the same result as before. If it is a comparison with a constant of the group: the new
//! value is on the same side of the constant as the old one, and equal to it if and only if the old one was. If it is a comparison with another value
//! of the group: the map is injective and keeps the values between the constants. All other values are unchanged. So the result is an execution along
//! the same edges, and properties, whose formulas are treated like conditions, have the same truth values. Its choices at site j are within j of the
//! constants: these are the values that the narrowed program allows. Conversely, the narrowed program allows only values that the original program
//! allows too, so its executions are executions of the original program. It has the same edges, locations and registers: only the ranges of choices
//! differ.
//!
//! Deadlocks agree: a choice that is a step of its own is always enabled. A choice within a larger step belongs to a group of the first kind, so the
//! step is enabled for some value if and only if it is enabled for the replacement of that value.

use std::collections::BTreeSet;

use fencewright_program::{
    Action, Address, BinaryOp, Expr, Init, LocationId, Numbers, Observable, Op, Program, PropertyKind, Range,
    RegisterId, Thread, UnaryOp,
};

/// Minimum number of values of a choice that may be narrowed.
const WIDE: u64 = 32;
/// Maximum number of values of a narrowed choice.
const NARROW: u64 = 1 << 10;
/// Maximum size of a program that is analysed: the number of pairs of an operation and a register of the same thread, where each edge counts as one
/// more operation.
const MOST_PLACES: usize = 1 << 19;
/// Maximum number of rounds of the fixpoint iteration.
const MOST_ROUNDS: usize = 64;
/// The bit of [`Value::constants`] that stands for unknown values.
const UNKNOWN: u64 = 1 << 63;

/// The lattice of the flow analysis: the origins of the content of a register or variable, as bit sets.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Value {
    /// A bit for each constant, by number, and the bit [`UNKNOWN`].
    constants: u64,
    /// A bit for each site, by number.
    sites: u64,
    /// Whether the content may be open below (or above): it was chosen at a site, and may be below (or above) all constants that it has been compared
    /// with so far.
    open: [bool; 2],
}

impl Value {
    const ANY: Value = Value { constants: UNKNOWN, sites: 0, open: [false; 2] };

    fn or(self, other: Value) -> Value {
        let open = [0, 1].map(|side| self.open[side] || other.open[side]);
        Value { constants: self.constants | other.constants, sites: self.sites | other.sites, open }
    }
}

/// A choice that may be narrowed, and notes about the comparisons and uses of its values.
struct Site {
    thread: usize,
    edge: usize,
    op: usize,
    range: Range,
    /// The parent in a union-find forest of groups: another site of its group, or itself.
    parent: usize,
    /// The constants that its values are compared with.
    constants: BTreeSet<i64>,
    /// Whether some comparison of its values, with anything, is by order, not by `==` or `!=`.
    ordered: bool,
    /// Whether its values are compared with values of sites, by any comparison operator.
    mutual: bool,
    /// Whether values of the site that are open below (or above) are used.
    used: [bool; 2],
}

/// The state of the flow analysis.
struct Flow<'a> {
    program: &'a Program,
    sites: Vec<Site>,
    /// The constants, by number.
    constants: Vec<i64>,
    /// The origins of the contents of shared variables.
    variables: Vec<Value>,
    /// The origins of the contents of registers, for each location of each thread; `None` for an unreachable location.
    registers: Vec<Vec<Option<Vec<Value>>>>,
    changed: bool,
}

/// The program with narrowed choices; `None` if no choice can be narrowed.
pub fn narrowed(program: &Program) -> Option<Program> {
    narrowed_from(program, WIDE)
}

/// Like [`narrowed`], for choices among at least `wide` values.
pub fn narrowed_from(program: &Program, wide: u64) -> Option<Program> {
    let ops = |t: &Thread| t.edges.iter().map(|edge| 1 + edge.action.ops().len()).sum::<usize>();
    let places: usize = program.threads.iter().map(|t| ops(t) * t.registers.len()).sum();
    let sites = sites(program, wide);
    if sites.is_empty() || sites.len() > 64 || program.numbers != Numbers::Int || places > MOST_PLACES {
        return None;
    }
    let registers = program.threads.iter().map(|t| vec![None; t.locations.len()]).collect();
    let mut flow =
        Flow { program, sites, constants: Vec::new(), variables: Vec::new(), registers, changed: false };
    let ranges = flow.solve().then(|| flow.ranges())?;
    let mut narrowed = program.clone();
    for (site, &range) in flow.sites.iter().zip(&ranges) {
        let op = match &mut narrowed.threads[site.thread].edges[site.edge].action {
            Action::Op(op) => op,
            Action::Atomic { ops, .. } => &mut ops[site.op],
            Action::Fence | Action::StoreFence | Action::Lock | Action::Unlock => continue,
        };
        if let (Some(range), Op::Havoc(_, all)) = (range, op) {
            *all = Some(range);
        }
    }
    ranges.iter().any(Option::is_some).then_some(narrowed)
}

fn sites(program: &Program, wide: u64) -> Vec<Site> {
    let mut sites = Vec::new();
    for (thread, code) in program.threads.iter().enumerate() {
        for (edge, action) in code.edges.iter().map(|edge| &edge.action).enumerate() {
            for (op, range) in action.ops().iter().enumerate().filter_map(|(n, op)| match op {
                Op::Havoc(_, range) => Some((n, range.unwrap_or(Range { low: i64::MIN, high: i64::MAX }))),
                _ => None,
            }) {
                if range.size() >= wide {
                    let parent = sites.len();
                    let (constants, ordered, mutual, used) = (BTreeSet::new(), false, false, [false; 2]);
                    sites.push(Site { thread, edge, op, range, parent, constants, ordered, mutual, used });
                }
            }
        }
    }
    sites
}

/// Refines the values of registers, assuming that a condition is true (or false).
fn suppose(e: &Expr<RegisterId>, is_true: bool, registers: &mut [Value]) {
    use BinaryOp::{And, Eq, Ge, Gt, Le, Lt, Ne, Or};
    match e {
        Expr::Unary(UnaryOp::Not, operand) => suppose(operand, !is_true, registers),
        Expr::Binary(op @ (And | Or), left, right) => {
            if (*op == And) == is_true {
                suppose(left, is_true, registers);
                suppose(right, is_true, registers);
            } else {
                let mut others = registers.to_vec();
                suppose(left, is_true, registers);
                suppose(right, is_true, &mut others);
                registers.iter_mut().zip(others).for_each(|(one, other)| *one = one.or(other));
            }
        }
        Expr::Binary(op, left, right) => {
            let (register, turned) = match (&**left, &**right) {
                (Expr::Leaf(register), Expr::Const(_)) => (register, false),
                (Expr::Const(_), Expr::Leaf(register)) => (register, true),
                _ => return,
            };
            let bounded = match (op, is_true) {
                (Eq, true) | (Ne, false) => [true, true],
                (Lt | Le, _) => [is_true == turned, is_true != turned],
                (Gt | Ge, _) => [is_true != turned, is_true == turned],
                _ => return,
            };
            let open = &mut registers[register.index()].open;
            open.iter_mut().zip(bounded).for_each(|(open, bounded)| *open &= !bounded);
        }
        _ => {}
    }
}

/// The numbers of the sites in a bit set.
fn members(sites: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |n| sites >> n & 1 == 1)
}

impl Flow<'_> {
    /// Iterates over all edges until a fixpoint; false if that takes more than [`MOST_ROUNDS`] rounds. Notes that were taken about sites in earlier
    /// rounds remain valid, because the `Value`s grow monotonically.
    fn solve(&mut self) -> bool {
        let program = self.program;
        self.variables = program.variables.iter().map(|_| Value::default()).collect();
        for (v, variable) in program.variables.iter().enumerate() {
            self.variables[v] = variable.init.iter().fold(Value::default(), |sum, i| sum.or(self.initial(i)));
        }
        for (t, thread) in program.threads.iter().enumerate() {
            let start = thread.registers.iter().map(|register| self.initial(&register.init)).collect();
            self.registers[t][thread.entry.index()] = Some(start);
        }
        for _ in 0..MOST_ROUNDS {
            for (t, thread) in program.threads.iter().enumerate() {
                (0..thread.edges.len()).for_each(|edge| self.edge(t, thread, edge));
            }
            self.properties();
            if !std::mem::take(&mut self.changed) {
                return true;
            }
        }
        false
    }

    fn initial(&mut self, init: &Init) -> Value {
        match init {
            Init::Value(value) => self.constant(*value),
            Init::Any(_) => Value::ANY,
        }
    }

    fn constant(&mut self, value: i64) -> Value {
        let known = self.constants.iter().position(|&constant| constant == value);
        let number = known.unwrap_or(self.constants.len());
        if number >= 63 {
            return Value::ANY;
        }
        if known.is_none() {
            self.constants.push(value);
        }
        Value { constants: 1 << number, ..Value::default() }
    }

    /// The transfer function of an edge, for its target and for the fault location.
    fn edge(&mut self, t: usize, thread: &Thread, number: usize) {
        let edge = &thread.edges[number];
        let Some(mut registers) = self.registers[t][edge.from.index()].clone() else { return };
        for (n, op) in edge.action.ops().iter().enumerate() {
            // If an operation faults, the operations before it have been performed.
            self.reach(t, thread.fault, &registers);
            let (target, value) = match op {
                Op::Skip => continue,
                Op::Assume(e) | Op::Assert(e, _) => {
                    self.condition(e, &|r| registers[r.index()]);
                    suppose(e, true, &mut registers);
                    continue;
                }
                Op::Store(address, e) => {
                    let value = self.value(e, &|r| registers[r.index()]);
                    self.index(address, &registers);
                    let variable = address.variable.index();
                    self.bounded(value, self.program.variables[variable].range);
                    let sum = self.variables[variable].or(value);
                    self.changed |= sum != std::mem::replace(&mut self.variables[variable], sum);
                    continue;
                }
                Op::Assign(target, e) => (target, self.value(e, &|r| registers[r.index()])),
                Op::Load(target, address) => {
                    self.index(address, &registers);
                    (target, self.variables[address.variable.index()])
                }
                Op::Havoc(target, _) => {
                    let is_it = |s: &Site| (s.thread, s.edge, s.op) == (t, number, n);
                    let chosen = self.sites.iter().position(is_it);
                    let chosen = chosen.map(|site| Value { constants: 0, sites: 1 << site, open: [true; 2] });
                    (target, chosen.unwrap_or(Value::ANY))
                }
            };
            self.bounded(value, thread.registers[target.index()].range);
            registers[target.index()] = value;
        }
        self.reach(t, edge.to, &registers);
    }

    fn reach(&mut self, t: usize, location: LocationId, registers: &[Value]) {
        match &mut self.registers[t][location.index()] {
            Some(known) => {
                for (known, value) in known.iter_mut().zip(registers) {
                    let sum = known.or(*value);
                    self.changed |= sum != std::mem::replace(known, sum);
                }
            }
            new => {
                *new = Some(registers.to_vec());
                self.changed = true;
            }
        }
    }

    /// Treats the formulas of properties as conditions on memory, and on registers at any location.
    fn properties(&mut self) {
        let anywhere = |locations: &Vec<Option<Vec<Value>>>| {
            let mut sum: Vec<Value> = Vec::new();
            for registers in locations.iter().flatten() {
                sum.resize(registers.len(), Value::default());
                sum.iter_mut().zip(registers).for_each(|(sum, value)| *sum = sum.or(*value));
            }
            sum
        };
        let registers: Vec<Vec<Value>> = self.registers.iter().map(anywhere).collect();
        let (program, variables) = (self.program, self.variables.clone());
        for property in &program.properties {
            if let PropertyKind::Never(formula) | PropertyKind::Finally(_, formula) = &property.kind {
                self.condition(formula, &|observable| match observable {
                    Observable::At(..) => Value::ANY,
                    Observable::Register(t, r) => registers[t.index()][r.index()],
                    Observable::Memory(cell) => {
                        let of = program.variables.partition_point(|v| v.base <= *cell);
                        variables[of - 1]
                    }
                });
            }
        }
    }

    /// Notes that an expression is a condition: its value is compared with 0.
    fn condition<L>(&mut self, e: &Expr<L>, leaf: &dyn Fn(&L) -> Value) {
        let value = self.value(e, leaf);
        members(value.sites).for_each(|site| self.note(site, [0], false));
    }

    /// The origins of the value of an expression; notes the comparisons and uses of values of sites in it.
    fn value<L>(&mut self, e: &Expr<L>, leaf: &dyn Fn(&L) -> Value) -> Value {
        use BinaryOp::{And, Eq, Ge, Gt, Le, Lt, Ne, Or};
        match e {
            Expr::Const(value) => return self.constant(*value),
            Expr::Leaf(l) => return leaf(l),
            Expr::If(condition, then, otherwise) => {
                self.condition(condition, leaf);
                return self.value(then, leaf).or(self.value(otherwise, leaf));
            }
            Expr::Unary(UnaryOp::Not, operand) => self.condition(operand, leaf),
            Expr::Binary(And | Or, left, right) => {
                self.condition(left, leaf);
                self.condition(right, leaf);
            }
            Expr::Binary(op @ (Eq | Ne | Lt | Le | Gt | Ge), left, right) => {
                let (left, right) = (self.value(left, leaf), self.value(right, leaf));
                let ordered = !matches!(op, Eq | Ne);
                self.compared(left, right, ordered);
                self.compared(right, left, ordered);
            }
            Expr::Unary(_, operand) => {
                let value = self.value(operand, leaf);
                self.used(value);
            }
            Expr::Binary(_, left, right) => {
                let value = self.value(left, leaf).or(self.value(right, leaf));
                self.used(value);
            }
        }
        Value::ANY
    }

    /// Notes that the values of sites in `one` are compared with the values in `other`.
    fn compared(&mut self, one: Value, other: Value, ordered: bool) {
        let unknown = other.constants & UNKNOWN != 0 || (ordered && other.sites != 0);
        if unknown {
            self.used(one);
        }
        let constants = (0..self.constants.len()).filter(|n| other.constants >> n & 1 == 1);
        let constants: Vec<i64> = constants.map(|n| self.constants[n]).collect();
        for site in members(one.sites) {
            self.note(site, constants.iter().copied(), ordered);
            self.sites[site].mutual |= other.sites != 0;
            let first = members(one.sites | other.sites).next().filter(|_| other.sites != 0);
            if let Some(first) = first {
                let (root, other) = (self.root(site), self.root(first));
                self.sites[root.max(other)].parent = root.min(other);
            }
        }
    }

    fn note(&mut self, site: usize, constants: impl IntoIterator<Item = i64>, ordered: bool) {
        self.sites[site].constants.extend(constants);
        self.sites[site].ordered |= ordered;
    }

    fn used(&mut self, value: Value) {
        for site in members(value.sites) {
            let used = &mut self.sites[site].used;
            used.iter_mut().zip(value.open).for_each(|(used, open)| *used |= open);
        }
    }

    fn index(&mut self, address: &Address, registers: &[Value]) {
        if let Some(index) = &address.index {
            let value = self.value(index, &|r| registers[r.index()]);
            self.used(value);
        }
    }

    /// Notes that a value is written to a register or variable, whose range is checked if there is one.
    fn bounded(&mut self, value: Value, range: Option<Range>) {
        if range.is_some() {
            self.used(value);
        }
    }

    fn root(&self, mut site: usize) -> usize {
        while self.sites[site].parent != site {
            site = self.sites[site].parent;
        }
        site
    }

    /// The new range of each site that is narrowed.
    fn ranges(&self) -> Vec<Option<Range>> {
        let mut ranges = vec![None; self.sites.len()];
        for root in (0..self.sites.len()).filter(|&n| self.sites[n].parent == n) {
            let group: Vec<usize> = (0..self.sites.len()).filter(|&n| self.root(n) == root).collect();
            for (&site, range) in group.iter().zip(self.of_group(&group).into_iter().flatten()) {
                let shrinks = range.size() < self.sites[site].range.size();
                ranges[site] = (shrinks && range.size() <= NARROW).then_some(range);
            }
        }
        ranges
    }

    /// The ranges of the sites of a group; `None` if the group cannot be narrowed.
    fn of_group(&self, group: &[usize]) -> Option<Vec<Range>> {
        let sites = || group.iter().map(|&n| &self.sites[n]);
        let mutual = sites().any(|site| site.mutual);
        if sites().any(|site| site.used[1] || (mutual && !self.is_passed_once(site))) {
            return None;
        }
        let mut constants: BTreeSet<i64> = sites().flat_map(|site| site.constants.iter().copied()).collect();
        constants.extend(sites().filter(|site| site.used[0]).map(|site| site.range.low));
        let least = constants.first().copied().unwrap_or(0);
        let greatest = constants.last().copied().unwrap_or(0);
        let ordered = sites().any(|site| site.ordered);
        let most = if mutual { group.len() as i64 } else { 1 };
        let (below, above) = (least.checked_sub(most)?, greatest.checked_add(most)?);
        let mut ranges = Vec::new();
        for (n, Site { range, .. }) in sites().enumerate() {
            // Every replacement must be a value that the site can choose.
            let fits = range.low <= greatest && range.high >= above;
            if !fits || (ordered && range.low < least && range.low > below) {
                return None;
            }
            let far = if mutual { n as i64 + 1 } else { 1 };
            let low = if ordered { least - far } else { least };
            ranges.push(Range { low: low.max(range.low), high: greatest + far });
        }
        Some(ranges)
    }

    /// Whether the choice is a step of its own that lies on no cycle.
    fn is_passed_once(&self, site: &Site) -> bool {
        let thread = &self.program.threads[site.thread];
        let edge = &thread.edges[site.edge];
        let (mut seen, mut work) = (vec![false; thread.locations.len()], vec![edge.to]);
        while let Some(location) = work.pop() {
            if !std::mem::replace(&mut seen[location.index()], true) {
                work.extend(thread.edges_from(location).map(|(_, edge)| edge.to));
            }
        }
        !seen[edge.from.index()] && matches!(edge.action, Action::Op(_))
    }
}
