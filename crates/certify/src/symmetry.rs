//! Certificates up to symmetry: interchangeable threads may be permuted.
//!
//! A permutation g of the threads acts on the states of a machine: in `g s` thread `g(t)` has the location, registers and buffer that t has in s, and
//! holds the lock if t holds it in s; memory is unchanged. The permutation is a *symmetry* if for all states s and t
//!
//! * (a) s is initial if and only if `g s` is;
//! * (b) there is a step from s to t if and only if there is a step from `g s` to `g t`; and there is a step from s that leaves the states that the
//!   machine represents if and only if there is one from `g s`;
//! * (c) s violates a property that the certificate is about if and only if `g s` does.
//!
//! Exchanging two threads satisfies (a) and (b) if both have the same code and initial values, because machines treat all threads in the same way (a
//! test compares their steps). It satisfies (c) if the properties are invariant under the exchange. [`Symmetry::new`] checks this for neighbours in
//! each class of threads; exchanges of neighbours generate the group G of all permutations within classes, and all of them are symmetries because
//! (a), (b) and (c) are closed under composition.
//!
//! Let R be the set of states that the certificate describes. The checker shows that
//!
//! 1. all initial states are in R;
//! 2. if r is in R and there is a step from r to t, then some g in G maps t into R (the checker tries the one that sorts the threads of t), and no
//!    step from r leaves the states that the machine represents;
//! 3. no state in R violates a property.
//!
//! Then `G R`, the image of R under all permutations, contains every reachable state, and no state that violates a property. It contains the initial
//! states, by 1. If there is a step from `g r` to t, there is one from r to `g⁻¹ t` by (b), so some `h g⁻¹ t` is in R by 2, and t, which is `(g h⁻¹)
//! (h g⁻¹ t)`, is in `G R`. No step leaves the machine, by (b) and 2. And if `g r` violated a property, r would too, by (c), contradicting 3.
//!
//! So the proof depends neither on which states represent an orbit, nor on how many of them are in R.

use std::collections::BTreeSet;

use fencewright_memory::{BufferShape, Cell, CellId, Cells, Control};
use fencewright_program::{
    BinaryOp, Expr, Formula, LocationId, Observable, Program, Property, ThreadId, UnaryOp,
};

/// A permutation of threads: place n is taken by thread `self.0[n]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation(Vec<usize>);

impl Permutation {
    /// The permutation that moves no thread.
    pub fn identity(threads: usize) -> Self {
        Permutation((0..threads).collect())
    }

    /// The transposition of two threads.
    pub fn exchange(threads: usize, a: usize, b: usize) -> Self {
        let mut order = Permutation::identity(threads);
        order.0.swap(a, b);
        order
    }

    /// The thread that takes a place.
    pub fn at(&self, place: usize) -> usize {
        self.0[place]
    }

    /// The composition: this permutation applied after `before`.
    pub fn after(&self, before: &Permutation) -> Permutation {
        Permutation(self.0.iter().map(|&n| before.0[n]).collect())
    }

    fn is_identity(&self) -> bool {
        self.0.iter().enumerate().all(|(n, &t)| n == t)
    }

    /// The image of a control state.
    pub fn control(&self, control: &Control) -> Control {
        let place = |thread: ThreadId| self.0.iter().position(|&t| t == thread.index());
        Control {
            locations: self.0.iter().map(|&t| control.locations[t]).collect(),
            // Under SC there are no buffers.
            buffers: self.0.iter().filter_map(|&t| control.buffers.get(t).cloned()).collect(),
            lock: control.lock.map(|holder| ThreadId(place(holder).expect("everybody has a place") as u32)),
        }
    }

    /// The cell whose content the permutation moves to the cell `now`.
    pub fn before(&self, cells: &Cells, now: CellId) -> CellId {
        let thread = |place: ThreadId| ThreadId(self.at(place.index()) as u32);
        cells.id(match cells.cell(now) {
            Cell::Memory(cell) => Cell::Memory(cell),
            Cell::Register(place, register) => Cell::Register(thread(place), register),
            Cell::Entry(place, position) => Cell::Entry(thread(place), position),
            Cell::Last(place, cell) => Cell::Last(thread(place), cell),
            Cell::Forgotten(place, cell) => Cell::Forgotten(thread(place), cell),
        })
    }
}

/// Classes of threads that may be exchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symmetry {
    classes: Vec<Vec<usize>>,
    threads: usize,
}

impl Symmetry {
    /// The symmetry with these classes; an error if the program or a property is not invariant under it.
    pub fn new(program: &Program, properties: &[Property], classes: &[Vec<u32>]) -> Result<Self, String> {
        let threads = program.threads.len();
        let mut seen = BTreeSet::new();
        if let Some(thread) = classes.iter().flatten().find(|&&t| t as usize >= threads || !seen.insert(t)) {
            return Err(format!("thread {thread} does not exist or is named twice"));
        }
        for pair in classes.iter().flat_map(|class| class.windows(2)) {
            let (a, b) = (ThreadId(pair[0]), ThreadId(pair[1]));
            if !program.thread(a).is_like(program.thread(b)) {
                return Err(format!("threads {} and {} differ", a.0, b.0));
            }
            if let Some(property) = properties.iter().find(|p| !is_invariant(p, a, b)) {
                return Err(format!(
                    "`{}` changes if threads {} and {} are exchanged",
                    property.name, a.0, b.0
                ));
            }
        }
        let classes = classes.iter().map(|class| class.iter().map(|&t| t as usize).collect()).collect();
        Ok(Symmetry { classes, threads })
    }

    /// The classes, in the form of certificates.
    pub fn classes(&self) -> Vec<Vec<u32>> {
        self.classes.iter().map(|class| class.iter().map(|&t| t as u32).collect()).collect()
    }

    /// The canonical form of a control state, in which the threads of each class are sorted by location, by buffer shape, and by whether they hold
    /// the lock; and the permutation that leads to it. `None` if they are sorted already.
    pub fn canonical(&self, control: &Control) -> Option<(Control, Permutation)> {
        let mut order = Permutation::identity(self.threads);
        for class in &self.classes {
            let mut sorted = class.clone();
            sorted.sort_by_key(|&t| key(control, t));
            class.iter().zip(sorted).for_each(|(&place, thread)| order.0[place] = thread);
        }
        (!order.is_identity()).then(|| (order.control(control), order))
    }
}

fn key(control: &Control, thread: usize) -> (LocationId, Option<&BufferShape>, bool) {
    let holds = control.lock == Some(ThreadId(thread as u32));
    (control.locations[thread], control.buffers.get(thread), holds)
}

/// Whether a property is invariant under the exchange of two threads; false if this is not evident from its formula.
fn is_invariant(property: &Property, a: ThreadId, b: ThreadId) -> bool {
    let exchange = |thread: ThreadId| match thread {
        t if t == a => b,
        t if t == b => a,
        t => t,
    };
    // Properties without a formula (no fault, no deadlock) treat all threads alike.
    let Some(formula) = property.formula() else { return true };
    let exchanged = formula.map(&mut |observable| {
        Expr::Leaf(match observable {
            Observable::At(t, locations) => Observable::At(exchange(*t), locations.clone()),
            Observable::Register(t, register) => Observable::Register(exchange(*t), *register),
            Observable::Memory(cell) => Observable::Memory(*cell),
        })
    });
    same(formula, &exchanged)
}

/// Whether two formulas are equal up to the order and multiplicity of the operands of conjunctions and disjunctions, and the order of the sides of
/// `==` and `!=`: a sufficient condition for equivalence. The order of evaluation matters only if an operand may be undefined, which is excluded.
pub(crate) fn same(formula: &Formula, other: &Formula) -> bool {
    formula.defined().is_none() && Parts::of(formula) == Parts::of(other)
}

/// The canonical form of a formula with respect to [`same`].
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Parts {
    All(BTreeSet<Parts>),
    Any(BTreeSet<Parts>),
    Not(Box<Parts>),
    Whole(Formula),
}

impl Parts {
    fn of(formula: &Formula) -> Self {
        match formula {
            Expr::Binary(op @ BinaryOp::And, ..) => Parts::All(Parts::operands(formula, *op)),
            Expr::Binary(op @ BinaryOp::Or, ..) => Parts::Any(Parts::operands(formula, *op)),
            Expr::Unary(UnaryOp::Not, operand) => Parts::Not(Box::new(Parts::of(operand))),
            Expr::Binary(op @ (BinaryOp::Eq | BinaryOp::Ne), left, right) if left > right => {
                Parts::Whole(Expr::binary(*op, (**right).clone(), (**left).clone()))
            }
            other => Parts::Whole(other.clone()),
        }
    }

    /// The canonical forms of the operands of nested operators `op`: those of a, b and c for `a && (b && c)`.
    fn operands(formula: &Formula, op: BinaryOp) -> BTreeSet<Parts> {
        let mut operands = BTreeSet::new();
        let mut open = vec![formula];
        while let Some(next) = open.pop() {
            match next {
                Expr::Binary(found, left, right) if *found == op => open.extend([&**left, &**right]),
                operand => _ = operands.insert(Parts::of(operand)),
            }
        }
        operands
    }
}
