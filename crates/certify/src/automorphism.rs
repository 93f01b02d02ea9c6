//! Automorphisms: permutations of the threads of a family that also permute the numbers of the threads.
//!
//! In an instance of `thread p[me in 0..N]` the number of the thread is a constant. It may be the index of a cell that belongs to the thread
//! (`flag[me]`), and it may be a value: of a register, of a memory cell, of a store in a buffer (`tail = me`). Exchanging the threads a and b, whose
//! numbers are x and y, is a permutation g of states. In `g s`
//!
//! * a has the location, registers, buffer and lock that b has in s, and vice versa;
//! * in arrays whose *indices* are numbers of threads, the cells x and y are exchanged, in memory and in buffers;
//! * in registers and variables whose *values* are numbers of threads, x and y are exchanged, in buffers too. All other values are unchanged, for
//!   example a value that means "no thread".
//!
//! A [`Family`] states which indices and values are numbers of threads. The statement is not trusted: [`Exchange::check`] applies g to the program
//! and compares. It maps every operation of every thread t and accepts only if the operations that leave a location of t become, as a multiset, those
//! that leave the same location of `g t`. An expression is mapped so that
//!
//! * (e) in `g s` the image of e has the value that e has in s; or, if e is the number of a thread, this value with x and y exchanged.
//!
//! A constant satisfies (e); it is exchanged if it is a number of a thread. A register satisfies (e) if the register is known to hold a number of a
//! thread where e has to be one, and any other value where e must not be one; otherwise the register has no image. By induction, (e) holds for any
//! operator on values that are not numbers of threads; for `==` and `!=` between two numbers of threads, because exchanging x and y is injective; and
//! for a comparison of a number of a thread with a constant if x and y compare alike with that constant. Everything else, such as `<` between numbers
//! of threads or `+` on them, has no image, and the exchange is rejected.
//!
//! By (e), and because the ranges and array bounds that numbers of threads are checked against contain both x and y or neither, an operation has in s
//! the same effect as its image in `g s`: both are enabled or neither is, both fault or neither does, and the results of the operation are mapped to
//! those of its image. Fences, flushes and the lock treat all threads alike. Initial states are mapped to initial states, because initial values are
//! compared in the same way. A property has the same truth value in `g s` as in s, because its image is the property up to the order of conjunctions
//! and disjunctions. So g has the properties (a), (b) and (c) of a symmetry in [`symmetry`](crate::symmetry). All permutations that exchanges
//! generate have them, too, and the proof there shows that one state of each orbit is enough.
//!
//! One register may hold the number of a thread at one location and another value at another location. So a register has a *kind* at each location:
//! whether it holds the number of a thread there. The check follows an edge operation by operation: after the edge, the kinds must be those of its
//! target location; and before each operation, which may fault, they must be those of the fault location. Registers that are *dead* at a location
//! have no kind there: no operation may read them before writing them, no property may observe them, and states that differ only in dead registers
//! are identified. Such states behave alike because a dead register remains dead until it is written, which is checked together with the kinds.

use std::collections::{BTreeSet, HashMap};

use fencewright_program::{
    Action, Address, BinaryOp, Bounds, Edge, Expr, Init, LocationId, Observable, Op, Program, Property,
    PropertyKind, RegisterId, Thread, ThreadId, VariableId,
};
use serde::{Deserialize, Serialize};

use crate::symmetry::same;

/// Threads that may be exchanged, and the indices and values that are numbers of these threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// The threads that may be exchanged, by their indices in the program.
    pub threads: Vec<u32>,
    /// The number of each of these threads, in the same order.
    pub numbers: Vec<i64>,
    /// The arrays whose indices are numbers of threads.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub indices: BTreeSet<u32>,
    /// The shared variables whose values are numbers of threads, or mean "no thread".
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub values: BTreeSet<u32>,
    /// Triples (thread, location, register): the register is live at the location and holds a number of a thread there, or a value that means "no
    /// thread".
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub registers: BTreeSet<(u32, u32, u32)>,
}

/// For each thread and location, the registers that are live there, in order.
pub type Live = [Vec<Vec<u32>>];

/// The reductions that were applied to a set of states. An exchange of threads must preserve them: see [`states`](crate::states).
#[derive(Clone, Copy, Debug)]
pub struct Reductions<'a> {
    /// The registers that are live at each location; all others are dead there.
    pub live: &'a Live,
    /// Whether each edge of each thread is local. An edge must be local if and only if its image is.
    pub local: &'a [Vec<bool>],
}

impl Family {
    /// Whether numbers of the family's threads occur as indices or values.
    pub fn has_numbers(&self) -> bool {
        !(self.indices.is_empty() && self.values.is_empty() && self.registers.is_empty())
    }

    /// Checks that all threads of the family may be exchanged in this program without changing the truth of these properties; the error is the reason
    /// why not.
    pub fn check(
        &self,
        program: &Program,
        properties: &[Property],
        reductions: Reductions<'_>,
    ) -> Result<(), String> {
        let exists = |t: &u32| (*t as usize) < program.threads.len();
        let distinct = self.threads.iter().collect::<BTreeSet<_>>().len() == self.threads.len()
            && self.numbers.iter().collect::<BTreeSet<_>>().len() == self.threads.len();
        if !self.threads.iter().all(exists) || !distinct || self.numbers.len() != self.threads.len() {
            return Err("its threads do not exist or have no numbers of their own".into());
        }
        // A scalar has no index that could be exchanged.
        let is_array = |v: &u32| program.variables.get(*v as usize).is_some_and(|v| v.indices.is_some());
        if !self.indices.iter().all(is_array) {
            return Err("its threads are no indices of what is no array".into());
        }
        // Exchanges of neighbours in the list of threads generate all permutations of the list.
        (1..self.threads.len())
            .try_for_each(|n| self.exchange(program, reductions, n - 1, n).check(properties))
    }

    /// The exchange of two threads, given by their positions in the family.
    pub fn exchange<'a>(
        &'a self,
        program: &'a Program,
        reductions: Reductions<'a>,
        a: usize,
        b: usize,
    ) -> Exchange<'a> {
        let thread = |n: usize| ThreadId(self.threads[n]);
        let (threads, numbers) = ([thread(a), thread(b)], [self.numbers[a], self.numbers[b]]);
        Exchange { program, reductions, family: self, threads, numbers }
    }
}

/// The exchange of two threads of a family.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    program: &'a Program,
    reductions: Reductions<'a>,
    family: &'a Family,
    threads: [ThreadId; 2],
    numbers: [i64; 2],
}

/// Whether a register holds the number of a thread; `None` if it is dead.
type Kind = Option<bool>;

/// The other element of the pair if `of` is one of the two; otherwise `of`.
fn exchanged<T: PartialEq + Copy>(pair: [T; 2], of: T) -> T {
    match pair {
        [a, b] if of == a => b,
        [a, b] if of == b => a,
        _ => of,
    }
}

impl Exchange<'_> {
    /// Checks that the exchange is an automorphism of the program that preserves the properties; the error says what changes.
    pub fn check(&self, properties: &[Property]) -> Result<(), String> {
        let [a, b] = self.threads.map(|t| t.0);
        let differ = |what: String| Err(format!("{what} changes if threads {a} and {b} are exchanged"));
        if let Some(variable) = (0..self.program.variables.len()).find(|&v| !self.keeps_variable(v)) {
            return differ(format!("the shared variable `{}`", self.program.variables[variable].name));
        }
        if let Some((_, thread)) = self.program.threads().find(|(id, _)| !self.keeps_thread(*id)) {
            return differ(format!("thread {}", thread.name));
        }
        match properties.iter().find(|p| !self.keeps_property(p)) {
            Some(property) => differ(format!("`{}`", property.name)),
            None => Ok(()),
        }
    }

    /// The kind of a register at a location.
    fn kind(&self, thread: ThreadId, location: LocationId, register: u32) -> Kind {
        let live = &self.reductions.live[thread.index()][location.index()];
        live.binary_search(&register)
            .ok()
            .map(|_| self.family.registers.contains(&(thread.0, location.0, register)))
    }

    fn holds_numbers(&self, variable: VariableId) -> bool {
        self.family.values.contains(&variable.0)
    }

    /// The image of a value; `number` is whether it is a number of a thread.
    fn value(&self, value: i64, number: bool) -> i64 {
        if number { exchanged(self.numbers, value) } else { value }
    }

    /// Whether a value satisfies these bounds if and only if its image does; `number` is whether it is a number of a thread.
    fn keeps(&self, bounds: Bounds, number: bool) -> bool {
        !number || bounds.contains(self.numbers[0]) == bounds.contains(self.numbers[1])
    }

    fn init(&self, init: Init, number: bool) -> Option<Init> {
        match init {
            Init::Value(v) => Some(Init::Value(self.value(v, number))),
            Init::Any(range) => self.keeps(self.program.chosen(range), number).then_some(init),
        }
    }

    fn variable_of(&self, cell: u32) -> VariableId {
        VariableId(self.program.variables.partition_point(|v| v.base <= cell) as u32 - 1)
    }

    /// The image of a memory cell.
    fn cell(&self, cell: u32) -> u32 {
        let id = self.variable_of(cell);
        let variable = &self.program.variables[id.index()];
        match variable.indices {
            Some(range) if self.family.indices.contains(&id.0) && range.contains(self.numbers[0]) => {
                let cells = self.numbers.map(|n| variable.base + (n - range.low) as u32);
                exchanged(cells, cell)
            }
            _ => cell,
        }
    }

    fn keeps_variable(&self, n: usize) -> bool {
        let variable = &self.program.variables[n];
        let number = self.holds_numbers(VariableId(n as u32));
        let init = |cell: u32| variable.init[(cell - variable.base) as usize];
        self.keeps(self.program.writable(variable.range), number)
            && variable
                .indices
                .is_none_or(|range| self.keeps(range.into(), self.family.indices.contains(&(n as u32))))
            && variable.cells().all(|c| self.init(init(c as u32), number) == Some(init(self.cell(c as u32))))
    }

    fn keeps_thread(&self, id: ThreadId) -> bool {
        let other = exchanged(self.threads, id);
        let (from, to) = (self.program.thread(id), self.program.thread(other));
        let ends = |t: &Thread| (t.entry, t.fault, t.locations.len(), t.registers.len(), t.edges.len());
        if ends(from) != ends(to) {
            return false;
        }
        let locations = || (0..from.locations.len() as u32).map(LocationId);
        let register = |n: usize| {
            let (r, s) = (&from.registers[n], &to.registers[n]);
            let kinds = |thread| locations().map(move |l| self.kind(thread, l, n as u32));
            let number = self.kind(id, from.entry, n as u32) == Some(true);
            kinds(id).eq(kinds(other)) && r.range == s.range && self.init(r.init, number) == Some(s.init)
        };
        if !(0..from.registers.len()).all(register) {
            return false;
        }
        let local = |thread: ThreadId, n: usize| self.reductions.local[thread.index()][n];
        let mut missing: HashMap<(LocationId, LocationId, bool, Action), usize> = HashMap::new();
        for (n, edge) in to.edges.iter().enumerate() {
            let action = self.ordered(to, edge.action.clone());
            *missing.entry((edge.from, edge.to, local(other, n), action)).or_default() += 1;
        }
        from.edges.iter().enumerate().all(|(n, edge)| {
            let image = self
                .action(id, edge)
                .map(|action| (edge.from, edge.to, local(id, n), self.ordered(from, action)));
            match image.and_then(|image| missing.get_mut(&image)) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    true
                }
                _ => false,
            }
        })
    }

    /// In an atomic step that waits for an empty buffer, sorts adjacent stores of constants to constant addresses by cell. Their order is
    /// unobservable, because all stores of such a step reach memory in one step.
    fn ordered(&self, thread: &Thread, mut action: Action) -> Action {
        let constant = |op: &Op| match op {
            Op::Store(Address { variable, index }, Expr::Const(_)) => match index {
                None => Some((*variable, 0)),
                Some(Expr::Const(index)) => Some((*variable, *index)),
                Some(_) => None,
            },
            _ => None,
        };
        // A store that may fault is not moved, because the operations after it are performed only if it does not fault.
        let cell = |op: &Op| constant(op).filter(|_| !self.program.op_may_fault(&thread.registers, op));
        if let Action::Atomic { ops, drains: true } = &mut action {
            for run in ops.chunk_by_mut(|a, b| cell(a).is_some() && cell(b).is_some()) {
                run.sort_by_key(cell);
            }
        }
        action
    }

    /// The image of the action of an edge; `None` if it has no image, or if the kinds of registers are not those of the fault location before an
    /// operation or those of the target location at the end.
    fn action(&self, thread: ThreadId, edge: &Edge) -> Option<Action> {
        let registers = self.program.thread(thread).registers.len() as u32;
        let fault = self.program.thread(thread).fault;
        let mut kinds: Vec<Kind> = (0..registers).map(|r| self.kind(thread, edge.from, r)).collect();
        let fits = |kinds: &[Kind], location: LocationId| {
            let live = &self.reductions.live[thread.index()][location.index()];
            live.iter().all(|&r| kinds[r as usize] == self.kind(thread, location, r))
        };
        let mut ops = Vec::new();
        for op in edge.action.ops() {
            if !fits(&kinds, fault) {
                return None;
            }
            ops.push(self.op(thread, edge.to, op, &mut kinds)?);
        }
        let action = match &edge.action {
            Action::Op(_) => Action::Op(ops.pop()?),
            Action::Atomic { drains, .. } => Action::Atomic { ops, drains: *drains },
            Action::Fence | Action::StoreFence | Action::Lock | Action::Unlock => edge.action.clone(),
        };
        fits(&kinds, edge.to).then_some(action)
    }

    /// The image of an operation, given the kinds of registers before it; updates the kind of the register that it writes.
    fn op(&self, thread: ThreadId, to: LocationId, op: &Op, kinds: &mut [Kind]) -> Option<Op> {
        let image = |e: &Expr<RegisterId>, number: bool| {
            self.expr(e, number, &|r: &RegisterId| Some((kinds[r.index()]?, *r)))
        };
        let address = |a: &Address| {
            let of = |index| image(index, self.family.indices.contains(&a.variable.0));
            let index = match &a.index {
                Some(index) => Some(of(index)?),
                None => None,
            };
            Some(Address { variable: a.variable, index })
        };
        let (image, written) = match op {
            Op::Skip => (Op::Skip, None),
            Op::Assign(r, e) => {
                // Whether a constant is the number of a thread is determined by the kind of the register at the target location.
                let arrives = || self.kind(thread, to, r.0) == Some(true);
                let number = is_number(e, &|r: &RegisterId| kinds[r.index()]).unwrap_or_else(arrives);
                (Op::Assign(*r, image(e, number)?), Some((r, number)))
            }
            Op::Havoc(r, range) => {
                let number = self.kind(thread, to, r.0) == Some(true);
                let image = self.keeps(self.program.chosen(*range), number).then(|| op.clone());
                (image?, Some((r, number)))
            }
            Op::Assume(e) => (Op::Assume(image(e, false)?), None),
            Op::Assert(e, fault) => (Op::Assert(image(e, false)?, *fault), None),
            Op::Load(r, a) => (Op::Load(*r, address(a)?), Some((r, self.holds_numbers(a.variable)))),
            Op::Store(a, e) => (Op::Store(address(a)?, image(e, self.holds_numbers(a.variable))?), None),
        };
        if let Some((r, number)) = written {
            let range = self.program.thread(thread).registers[r.index()].range;
            if !self.keeps(self.program.writable(range), number) {
                return None;
            }
            kinds[r.index()] = Some(number);
        }
        Some(image)
    }

    fn keeps_property(&self, property: &Property) -> bool {
        // Properties without a formula (no fault, no deadlock) treat all threads alike.
        let Some(formula) = property.formula() else { return true };
        let finally = matches!(property.kind, PropertyKind::Finally(..));
        let thread = |t: ThreadId| exchanged(self.threads, t);
        let leaf = |observable: &Observable| match observable {
            Observable::At(t, locations) => Some((false, Observable::At(thread(*t), locations.clone()))),
            Observable::Register(t, r) => {
                let looked_at = |l: &LocationId| !finally || self.program.thread(*t).is_end(*l);
                let locations = (0..self.program.thread(*t).locations.len() as u32).map(LocationId);
                let mut kinds = locations.filter(looked_at).map(|l| self.kind(*t, l, r.0));
                let kind = kinds.next()??;
                kinds.all(|k| k == Some(kind)).then(|| (kind, Observable::Register(thread(*t), *r)))
            }
            Observable::Memory(cell) => {
                Some((self.holds_numbers(self.variable_of(*cell)), Observable::Memory(self.cell(*cell))))
            }
        };
        self.expr(formula, false, &leaf).is_some_and(|image| same(formula, &image))
    }

    /// Whether the operation compares a leaf with a constant, with the same result for both numbers of threads.
    fn are_alike<L>(&self, op: BinaryOp, left: &Expr<L>, right: &Expr<L>) -> bool {
        let [a, b] = match (left, right) {
            (Expr::Leaf(_), Expr::Const(c)) => self.numbers.map(|n| op.apply(n, *c)),
            (Expr::Const(c), Expr::Leaf(_)) => self.numbers.map(|n| op.apply(*c, n)),
            _ => return false,
        };
        op.is_comparison() && a.is_ok() && a == b
    }

    /// The image of an expression that is (`number`) or is not the number of a thread; `None` if it has no image. `leaf` returns, for a leaf, whether
    /// it is the number of a thread, and its image.
    fn expr<L>(&self, e: &Expr<L>, number: bool, leaf: &impl Fn(&L) -> Option<(bool, L)>) -> Option<Expr<L>> {
        match e {
            Expr::Const(value) => Some(Expr::Const(self.value(*value, number))),
            Expr::Leaf(l) => {
                let (is_number, image) = leaf(l)?;
                (is_number == number).then_some(Expr::Leaf(image))
            }
            Expr::If(condition, then, otherwise) => {
                let condition = self.expr(condition, false, leaf)?;
                let then = self.expr(then, number, leaf)?;
                Some(Expr::choice(condition, then, self.expr(otherwise, number, leaf)?))
            }
            // No other operator yields the number of a thread.
            _ if number => None,
            Expr::Unary(op, operand) => Some(Expr::unary(*op, self.expr(operand, false, leaf)?)),
            // A comparison with a constant is unchanged if both numbers of threads compare alike with the constant.
            Expr::Binary(op, left, right) if self.are_alike(*op, left, right) => {
                let image = |e: &Expr<L>| match e {
                    Expr::Leaf(l) => Some(Expr::Leaf(leaf(l)?.1)),
                    constant => self.expr(constant, false, leaf),
                };
                Some(Expr::binary(*op, image(left)?, image(right)?))
            }
            Expr::Binary(op, left, right) => {
                let is_number = |e: &Expr<L>| is_number(e, &|l| Some(leaf(l)?.0)) == Some(true);
                let equality = matches!(op, BinaryOp::Eq | BinaryOp::Ne);
                let numbers = equality && (is_number(left) || is_number(right));
                let left = self.expr(left, numbers, leaf)?;
                Some(Expr::binary(*op, left, self.expr(right, numbers, leaf)?))
            }
        }
    }
}

/// Whether an expression is the number of a thread; `None` if its form does not determine this, as for a constant.
fn is_number<L>(e: &Expr<L>, leaf: &impl Fn(&L) -> Kind) -> Kind {
    match e {
        Expr::Const(_) => None,
        Expr::Leaf(l) => leaf(l),
        Expr::If(_, then, otherwise) => is_number(then, leaf).or_else(|| is_number(otherwise, leaf)),
        Expr::Unary(..) | Expr::Binary(..) => Some(false),
    }
}
