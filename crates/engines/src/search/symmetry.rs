//! Symmetry of identical threads: states that differ only in which of several identical threads does what are one state.
//!
//! Threads with the same code form a class. A control state is made canonical by sorting the threads of each class by where they are and
//! what their buffers look like; the step that leads there renames the cells accordingly. This is used only if the
//! properties say the same about all threads of a class. An invariant up to symmetry is expanded, by all permutations of each
//! class, before it is a proof: the checker of certificates knows nothing of symmetry.

use std::collections::BTreeSet;

use fencewright_memory::linear::Cube;
use fencewright_memory::{BufferMachine, BufferShape, Cell, CellId, Command, Control, Linear};
use fencewright_program::{
    BinaryOp, Expr, Formula, LocationId, Observable, Property, PropertyKind, ThreadId,
};

use crate::task::{Limits, Reason, Task};

/// Who stands where: position n is taken by the thread `self.0[n]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation(Vec<usize>);

impl Permutation {
    /// The thread at a position.
    pub fn at(&self, position: usize) -> usize {
        self.0[position]
    }

    /// Where everybody stands after this permutation, if they stood as in `before`.
    pub fn after(&self, before: &Permutation) -> Permutation {
        Permutation(self.0.iter().map(|&n| before.0[n]).collect())
    }

    /// Nobody moves.
    pub fn identity(threads: usize) -> Self {
        Permutation((0..threads).collect())
    }

    fn is_identity(&self) -> bool {
        self.0.iter().enumerate().all(|(n, &t)| n == t)
    }
}

/// The classes of identical threads of a program.
pub struct Symmetry {
    classes: Vec<Vec<usize>>,
    threads: usize,
}

/// Classes that have more permutations together are left alone: a proof is expanded by all of them.
const MOST_ORDERS: usize = 120;

impl Symmetry {
    /// The symmetry of a task, if it has any.
    pub fn new(task: &Task<'_>) -> Option<Self> {
        let program = task.program;
        let mut classes: Vec<Vec<usize>> = Vec::new();
        for (n, thread) in program.threads.iter().enumerate() {
            match classes.iter_mut().find(|class| program.threads[class[0]].is_like(thread)) {
                Some(class) => class.push(n),
                None => classes.push(vec![n]),
            }
        }
        let mut orders = 1;
        classes.retain(|class| {
            let own = (1..=class.len()).try_fold(1usize, |product, n| product.checked_mul(n));
            let sum = own.and_then(|own| own.checked_mul(orders)).filter(|&n| n <= MOST_ORDERS);
            orders = sum.unwrap_or(orders);
            class.len() > 1 && sum.is_some()
        });
        // Swapping neighbours generates all permutations of a class.
        let neighbours = classes.iter().flat_map(|class| class.windows(2).map(|w| (w[0], w[1])));
        let symmetric =
            neighbours.clone().all(|(a, b)| task.properties.iter().all(|p| is_symmetric(p, a, b)));
        (symmetric && !classes.is_empty()).then_some(Symmetry { classes, threads: program.threads.len() })
    }

    /// The canonical form of a control state, and who stands where in it; nothing if it is canonical already.
    pub fn canonical(&self, control: &Control) -> Option<(Control, Permutation)> {
        let mut order = Permutation::identity(self.threads);
        for class in &self.classes {
            let mut sorted = class.clone();
            sorted.sort_by_key(|&t| key(control, t));
            class.iter().zip(sorted).for_each(|(&position, thread)| order.0[position] = thread);
        }
        (!order.is_identity()).then(|| (permuted(control, &order), order))
    }

    /// The commands that rename the live cells of a canonical control state, after a step that knows them by their old names.
    pub fn renaming(
        &self,
        machine: &BufferMachine<'_>,
        live: &[CellId],
        order: &Permutation,
    ) -> Vec<Command> {
        let moved: Vec<(CellId, CellId)> = live
            .iter()
            .map(|&cell| (cell, renamed(machine, cell, &|position| order.at(position))))
            .filter(|(new, old)| new != old)
            .collect();
        // By way of cells that nothing else uses, because names are exchanged. This moves summary cells too: each is read once and
        // then overwritten or dead, so what is known about all its values is known under the new name.
        let aside = |n: usize| (machine.cells.len() + n) as CellId;
        let out = moved.iter().enumerate().map(|(n, (_, old))| Command::Assign(aside(n), Expr::Leaf(*old)));
        let back = moved.iter().enumerate().map(|(n, (new, _))| Command::Assign(*new, Expr::Leaf(aside(n))));
        out.chain(back).collect()
    }

    /// All that an invariant up to symmetry stands for.
    pub fn expanded(
        &self,
        machine: &BufferMachine<'_>,
        states: Vec<(Control, Vec<Cube>)>,
        limits: &Limits,
    ) -> Result<Vec<(Control, Vec<Cube>)>, Reason> {
        let mut all: std::collections::BTreeMap<Control, BTreeSet<Cube>> = Default::default();
        let mut bytes = 0;
        for order in self.permutations() {
            if let Some(reason) = limits.exceeded(bytes) {
                return Err(reason);
            }
            let mut position = vec![0; self.threads];
            (0..self.threads).for_each(|n| position[order.at(n)] = n);
            for (control, cubes) in &states {
                let rename = |linear: &Linear| {
                    let name = |cell: CellId| renamed(machine, cell, &|thread| position[thread]);
                    let mut terms: Vec<(CellId, i64)> =
                        linear.terms.iter().map(|&(c, k)| (name(c), k)).collect();
                    terms.sort_unstable();
                    Linear { terms, constant: linear.constant }
                };
                let renamed = cubes.iter().map(|cube| {
                    let mut cube: Cube = cube.iter().map(rename).collect();
                    cube.sort();
                    cube
                });
                bytes += cubes.iter().flatten().map(|l| 48 + 16 * l.terms.len() as u64).sum::<u64>();
                all.entry(permuted(control, &order)).or_default().extend(renamed);
            }
        }
        Ok(all.into_iter().map(|(control, cubes)| (control, cubes.into_iter().collect())).collect())
    }

    fn permutations(&self) -> Vec<Permutation> {
        let mut all = vec![Permutation::identity(self.threads)];
        for class in &self.classes {
            // Each place in turn is taken by any of those not yet placed.
            for (n, &place) in class.iter().enumerate() {
                all = all
                    .into_iter()
                    .flat_map(|order| {
                        class[n..].iter().map(move |&other| {
                            let mut order = order.clone();
                            order.0.swap(place, other);
                            order
                        })
                    })
                    .collect();
            }
        }
        all
    }
}

fn key(control: &Control, thread: usize) -> (LocationId, Option<&BufferShape>, bool) {
    let holds = control.lock == Some(ThreadId(thread as u32));
    (control.locations[thread], control.buffers.get(thread), holds)
}

fn permuted(control: &Control, order: &Permutation) -> Control {
    let position =
        |thread: ThreadId| order.0.iter().position(|&t| t == thread.index()).unwrap_or(thread.index());
    Control {
        locations: order.0.iter().map(|&t| control.locations[t]).collect(),
        buffers: match control.buffers.is_empty() {
            true => Vec::new(),
            false => order.0.iter().map(|&t| control.buffers[t].clone()).collect(),
        },
        lock: control.lock.map(|thread| ThreadId(position(thread) as u32)),
    }
}

/// A cell with its thread renamed.
fn renamed(machine: &BufferMachine<'_>, cell: CellId, name: &impl Fn(usize) -> usize) -> CellId {
    let to = |t: ThreadId| ThreadId(name(t.index()) as u32);
    machine.cells.id(match machine.cells.cell(cell) {
        Cell::Memory(c) => Cell::Memory(c),
        Cell::Register(t, r) => Cell::Register(to(t), r),
        Cell::Entry(t, position) => Cell::Entry(to(t), position),
        Cell::Last(t, c) => Cell::Last(to(t), c),
        Cell::Forgotten(t, c) => Cell::Forgotten(to(t), c),
    })
}

/// Whether a property says the same with two threads exchanged: its disjuncts, as sets of conjuncts, are the same.
fn is_symmetric(property: &Property, a: usize, b: usize) -> bool {
    let formula = match &property.kind {
        PropertyKind::Never(formula) | PropertyKind::Finally(_, formula) => formula,
        PropertyKind::Assertions | PropertyKind::NoDeadlock => return true,
    };
    let exchange = |thread: ThreadId| match thread.index() {
        n if n == a => ThreadId(b as u32),
        n if n == b => ThreadId(a as u32),
        _ => thread,
    };
    let exchanged = formula.map(&mut |observable| {
        Expr::Leaf(match observable {
            Observable::At(t, locations) => Observable::At(exchange(*t), locations.clone()),
            Observable::Register(t, r) => Observable::Register(exchange(*t), *r),
            Observable::Memory(cell) => Observable::Memory(*cell),
        })
    });
    disjuncts(formula) == disjuncts(&exchanged)
}

fn disjuncts(formula: &Formula) -> BTreeSet<BTreeSet<String>> {
    let parts = |op: BinaryOp, formula: &Formula| {
        let mut parts = Vec::new();
        let mut open = vec![formula.clone()];
        while let Some(next) = open.pop() {
            match next {
                Expr::Binary(found, left, right) if found == op => open.extend([*left, *right]),
                other => parts.push(other),
            }
        }
        parts
    };
    let conjuncts =
        |disjunct: &Formula| parts(BinaryOp::And, disjunct).iter().map(|c| format!("{c:?}")).collect();
    parts(BinaryOp::Or, formula).iter().map(conjuncts).collect()
}
