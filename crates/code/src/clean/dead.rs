//! Live registers, and assignments to registers that are not.

use crate::core::ObjectEvent;
use crate::statement::Parts;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::{Label, Register, Stmt, StmtKind};
use fencewright_text::Stop;

/// A set of registers: of 64 at a time, one bit for each, those without any left out. A long function has many registers, and few are live at once.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Set(Vec<(u32, u64)>);

impl Set {
    fn word(register: Register) -> (u32, u64) {
        (register.0 / 64, 1 << (register.0 % 64))
    }

    fn find(&self, number: u32) -> Result<usize, usize> {
        self.0.binary_search_by_key(&number, |(number, _)| *number)
    }

    fn insert(&mut self, register: Register) {
        let (number, bit) = Set::word(register);
        match self.find(number) {
            Ok(n) => self.0[n].1 |= bit,
            Err(n) => self.0.insert(n, (number, bit)),
        }
    }

    fn remove(&mut self, register: Register) {
        let (number, bit) = Set::word(register);
        if let Ok(n) = self.find(number) {
            self.0[n].1 &= !bit;
            if self.0[n].1 == 0 {
                self.0.remove(n);
            }
        }
    }

    fn contains(&self, register: Register) -> bool {
        let (number, bit) = Set::word(register);
        self.find(number).is_ok_and(|n| self.0[n].1 & bit != 0)
    }

    fn union(&mut self, other: &Set) {
        for &(number, bits) in &other.0 {
            match self.find(number) {
                Ok(n) => self.0[n].1 |= bits,
                Err(n) => self.0.insert(n, (number, bits)),
            }
        }
    }
}

/// What is live where control can go from inside.
#[derive(Clone)]
struct Around {
    leave: Set,
    again: Set,
}

struct Liveness<'s> {
    stop: &'s Stop<'s>,
    labels: FxHashMap<Label, Set>,
    empty: Set,
    changed: bool,
    /// Whether assignments to registers that are not live are taken out.
    remove: bool,
    removed: bool,
}

/// Takes out assignments that nobody sees. The registers that are live at the start.
pub(super) fn eliminate(code: &mut Vec<Stmt>, count: usize, stop: &Stop<'_>) -> FxHashSet<Register> {
    loop {
        let empty = Set::default();
        let around = Around { leave: empty.clone(), again: empty.clone() };
        let mut liveness = Liveness {
            stop,
            labels: FxHashMap::default(),
            empty,
            changed: true,
            remove: false,
            removed: false,
        };
        while std::mem::take(&mut liveness.changed) {
            liveness.block(code, liveness.empty.clone(), &around);
        }
        liveness.remove = true;
        let live = liveness.block(code, liveness.empty.clone(), &around);
        if !liveness.removed {
            return (0..count as u32).map(Register).filter(|register| live.contains(*register)).collect();
        }
    }
}

impl Liveness<'_> {
    /// What is live before a block.
    fn block(&mut self, code: &mut Vec<Stmt>, mut live: Set, around: &Around) -> Set {
        let mut gone = Vec::new();
        for (n, statement) in self.stop.polled(code.iter_mut().enumerate().rev()) {
            if let StmtKind::Assign(register, _) | StmtKind::Special(ObjectEvent::Undefined(register)) =
                &statement.kind
                && !live.contains(*register)
            {
                gone.push(n);
                continue;
            }
            live = self.statement(&mut statement.kind, live, around);
        }
        if self.remove && !gone.is_empty() {
            self.removed = true;
            let mut n = 0;
            code.retain(|_| {
                n += 1;
                let goes = gone.last() == Some(&(n - 1));
                if goes {
                    gone.pop();
                }
                !goes
            });
        }
        live
    }

    fn statement(&mut self, kind: &mut StmtKind, mut live: Set, around: &Around) -> Set {
        match kind {
            StmtKind::Steps(inner) | StmtKind::Block(inner) | StmtKind::Atomic(inner) => {
                return self.block(inner, live, around);
            }
            StmtKind::If(_, then, otherwise) => {
                let mut other = self.block(otherwise, live.clone(), around);
                let then = self.block(then, live, around);
                other.union(&then);
                live = other;
            }
            StmtKind::Loop(inner) => {
                let mut head = self.empty.clone();
                loop {
                    let inside = Around { leave: live.clone(), again: head.clone() };
                    // Nothing is taken out before it is known what is live at the head.
                    let remove = std::mem::take(&mut self.remove);
                    let mut before = self.block(inner, head.clone(), &inside);
                    self.remove = remove;
                    before.union(&head);
                    if before == head {
                        if remove {
                            self.block(inner, head.clone(), &inside);
                        }
                        return head;
                    }
                    head = before;
                }
            }
            StmtKind::Break => return around.leave.clone(),
            StmtKind::Continue => return around.again.clone(),
            StmtKind::Label(label) => {
                let known = self.labels.entry(*label).or_insert_with(|| self.empty.clone());
                let before = known.clone();
                known.union(&live);
                self.changed |= before != *known;
                return live;
            }
            StmtKind::Goto(label) => return self.labels.get(label).unwrap_or(&self.empty).clone(),
            StmtKind::Stop | StmtKind::Beyond(..) => return self.empty.clone(),
            _ => {}
        }
        let old = kind.writes();
        if let Some(register) = old {
            live.remove(register);
        }
        kind.values(&mut |value| value.registers(&mut |register| live.insert(register)));
        // What an update or an await reads into its own register is not live before.
        if let (StmtKind::Update { place, old, .. } | StmtKind::Await { register: old, place, .. }, true) =
            (&*kind, old.is_some())
        {
            let mut uses = false;
            place.values(&mut |value| uses |= value.has(*old));
            if !uses {
                live.remove(*old);
            }
        }
        live
    }
}
