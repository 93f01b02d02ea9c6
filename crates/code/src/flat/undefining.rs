//! A variable whose declaration is reached again becomes undefined. Here that assignment is removed where the variable is written before it
//! is read: liveness of registers, and of the elements of arrays of registers.

use crate::flat::CellEvent;
use std::collections::HashMap;

use crate::core::{Label, Register};
use crate::flat::{Step, StepKind, Term, Thread, UNDEFINED};
use fencewright_text::Stop;

/// Threads of which statements times cells are more than this stay as they are.
const MOST_WORK: usize = 50_000_000;

/// Takes out assignments of the undefined value that nobody can find.
pub(crate) fn forget(thread: &mut Thread, stop: &Stop<'_>) {
    let mut starts = Vec::new();
    let mut cells = thread.registers.len();
    for array in &thread.arrays {
        starts.push((cells, array.first, array.init.len()));
        cells += array.init.len();
    }
    let (mut statements, mut any) = (0, false);
    let mut open: Vec<&Step> = thread.code.iter().collect();
    while let Some(step) = open.pop().filter(|_| !stop.now()) {
        statements += 1;
        any |= is_undefining(&step.kind);
        step.kind.blocks().for_each(|block| open.extend(block));
    }
    if !any || statements * cells > MOST_WORK {
        return;
    }
    let empty = Set(vec![0; cells.div_ceil(64)]);
    let around = Around { leave: empty.clone(), again: empty.clone() };
    let (labels, heads) = (HashMap::new(), Vec::new());
    let mut liveness =
        Liveness { stop, starts, labels, heads, loops: 0, empty, changed: true, remove: false };
    while std::mem::take(&mut liveness.changed) {
        liveness.loops = 0;
        liveness.block(&mut thread.code, liveness.empty.clone(), &around);
    }
    (liveness.loops, liveness.remove) = (0, true);
    liveness.block(&mut thread.code, liveness.empty.clone(), &around);
}

fn is_undefining(kind: &StepKind) -> bool {
    let undefined = Term::Number(UNDEFINED);
    match kind {
        StepKind::Assign(_, value) => *value == undefined,
        StepKind::Special(CellEvent::Set(_, Term::Number(_), value)) => *value == undefined,
        _ => false,
    }
}

/// A set of registers and elements.
#[derive(Clone, PartialEq, Eq)]
struct Set(Vec<u64>);

impl Set {
    fn insert(&mut self, cell: usize) {
        self.0[cell / 64] |= 1 << (cell % 64);
    }

    fn remove(&mut self, cell: usize) {
        self.0[cell / 64] &= !(1 << (cell % 64));
    }

    fn contains(&self, cell: usize) -> bool {
        self.0[cell / 64] & (1 << (cell % 64)) != 0
    }

    fn union(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(here, there)| *here |= there);
    }
}

/// What is live where control can go from inside a loop.
struct Around {
    leave: Set,
    again: Set,
}

struct Liveness<'s> {
    stop: &'s Stop<'s>,
    /// For each array: the cell of its first element, its first index, and its length.
    starts: Vec<(usize, i64, usize)>,
    labels: HashMap<Label, Set>,
    /// What is live at the heads of loops, as far as it is known, in the order in which a pass comes to them.
    heads: Vec<Set>,
    loops: usize,
    empty: Set,
    changed: bool,
    /// Whether what is not live is taken out.
    remove: bool,
}

impl Liveness<'_> {
    fn cell(&self, array: usize, index: i64) -> Option<usize> {
        let (start, first, length) = self.starts[array];
        let offset = usize::try_from(index.checked_sub(first)?).ok()?;
        (offset < length).then_some(start + offset)
    }

    /// What is live before a block.
    fn block(&mut self, code: &mut Vec<Step>, mut live: Set, around: &Around) -> Set {
        let mut gone = Vec::new();
        for n in self.stop.polled((0..code.len()).rev()) {
            if is_undefining(&code[n].kind) {
                let cell = self.written(&code[n].kind);
                if cell.is_some_and(|cell| !live.contains(cell)) {
                    if self.remove {
                        gone.push(n);
                    }
                    continue;
                }
            }
            live = self.step(&mut code[n].kind, live, around);
        }
        let mut n = 0;
        code.retain(|_| {
            n += 1;
            gone.pop_if(|next| *next == n - 1).is_none()
        });
        live
    }

    /// What a step writes for certain.
    fn written(&self, kind: &StepKind) -> Option<usize> {
        match kind {
            StepKind::Special(CellEvent::Set(array, Term::Number(index), _)) => self.cell(*array, *index),
            kind => kind.writes().map(|Register(register)| register as usize),
        }
    }

    fn read(&self, term: &Term, live: &mut Set) {
        match term {
            Term::Number(_) => {}
            Term::Register(register) => live.insert(register.0 as usize),
            Term::Element(array, index) => match (&**index, self.starts[*array]) {
                (Term::Number(index), _) => {
                    self.cell(*array, *index).into_iter().for_each(|cell| live.insert(cell))
                }
                (index, (start, _, length)) => {
                    (start..start + length).for_each(|cell| live.insert(cell));
                    self.read(index, live);
                }
            },
            Term::Unary(_, a) => self.read(a, live),
            Term::Binary(_, a, b) => {
                self.read(a, live);
                self.read(b, live);
            }
            Term::If(a, b, c) => [a, b, c].into_iter().for_each(|part| self.read(part, live)),
        }
    }

    fn step(&mut self, kind: &mut StepKind, mut live: Set, around: &Around) -> Set {
        match kind {
            StepKind::Steps(inner) | StepKind::Block(inner) | StepKind::Atomic(inner) => {
                return self.block(inner, live, around);
            }
            StepKind::If(_, then, otherwise) => {
                let mut other = self.block(otherwise, live.clone(), around);
                other.union(&self.block(then, live, around));
                live = other;
            }
            StepKind::Choose(ways) => {
                let mut any = self.empty.clone();
                for way in ways {
                    any.union(&self.block(way, live.clone(), around));
                }
                return any;
            }
            StepKind::Loop(inner) => return self.endless(inner, live),
            StepKind::Break => return around.leave.clone(),
            StepKind::Continue => return around.again.clone(),
            StepKind::Label(label) => {
                let known = self.labels.entry(*label).or_insert_with(|| self.empty.clone());
                let before = known.clone();
                known.union(&live);
                self.changed |= before != *known;
                return live;
            }
            StepKind::Goto(label) => return self.labels.get(label).unwrap_or(&self.empty).clone(),
            StepKind::Stop | StepKind::Beyond(Term::Number(1), _) => return self.empty.clone(),
            _ => {}
        }
        if let Some(cell) = self.written(kind) {
            live.remove(cell);
        }
        kind.values(&mut |term| self.read(term, &mut live));
        // What an update or an await reads into its own register is not live before.
        if let StepKind::Update { place: cell, old, .. } | StepKind::Await { register: old, place: cell, .. } =
            &*kind
            && !cell.index.as_ref().is_some_and(|index| index.has(*old))
        {
            live.remove(old.0 as usize);
        }
        live
    }

    /// A loop. What is live at its head grows from pass to pass, so that loops in loops are not gone through again and again.
    fn endless(&mut self, inner: &mut Vec<Step>, leave: Set) -> Set {
        let number = self.loops;
        self.loops += 1;
        if self.heads.len() == number {
            self.heads.push(self.empty.clone());
        }
        let mut head = self.heads[number].clone();
        let inside = Around { leave, again: head.clone() };
        head.union(&self.block(inner, head.clone(), &inside));
        self.changed |= head != self.heads[number];
        self.heads[number].clone_from(&head);
        head
    }
}
