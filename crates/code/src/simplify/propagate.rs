//! What registers are known to hold, forwards through the code of a thread: a copy of another register, a number, an address.
//!
//! The same is known about variables that nobody else writes: under every memory model a thread reads there what it wrote last, from its buffer or from memory.
//!
//! Where ways meet, what holds on all of them is known; at the head of a loop, what the loop does not change; at a label to which a jump goes back, or into a
//! loop, nothing. Code that nobody comes to is taken out.

use crate::core::ObjectEvent;
use fencewright_program::BinaryOp;
use fencewright_text::Stop;
use rustc_hash::{FxHashMap, FxHashSet};

use super::fold::{IsDefined, Whole, fold, fold_place};
use super::has_label;
use crate::core::{
    Label, Location, ObjectId, Register, RegisterInfo, Stmt, StmtKind, Value, each_statement, known,
};

/// What registers hold, and variables that only this thread writes. What is not there is not known.
#[derive(Clone, Default)]
struct Facts {
    registers: FxHashMap<Register, Value>,
    variables: FxHashMap<ObjectId, Value>,
}

/// So many facts are changed in the time that a small piece of work takes.
const FACTS_IN_A_PIECE: usize = 16;

impl Facts {
    fn count(&self) -> usize {
        self.registers.len() + self.variables.len()
    }

    /// The register is written: what was known about it, and by it, is not any more.
    fn forget(&mut self, written: Register) {
        self.registers.remove(&written);
        self.registers.retain(|_, value| *value != Value::Register(written));
        self.variables.retain(|_, value| *value != Value::Register(written));
    }
}

/// What is known before a thread does anything.
pub(super) struct Start<'a> {
    /// What its registers hold.
    pub registers: &'a [RegisterInfo],
    /// The variables that nobody else writes, and what they hold, if that is defined.
    pub variables: Vec<(ObjectId, Option<i64>)>,
}

struct Propagation<'a> {
    whole: &'a Whole<'a>,
    is_defined: IsDefined<'a>,
    stop: &'a Stop<'a>,
    /// The variables that nobody else writes.
    own: FxHashSet<ObjectId>,
    /// For each label how many jumps go there, how many were passed, and what is known at those.
    labels: FxHashMap<Label, Jumps>,
    /// For each loop around: what is known where it is left.
    left: Vec<Option<Facts>>,
    changed: bool,
}

#[derive(Default)]
struct Jumps {
    all: usize,
    passed: usize,
    facts: Option<Facts>,
}

/// Says at once what is known. Whether anything changed.
pub(super) fn propagate(
    code: &mut Vec<Stmt>,
    start: &Start<'_>,
    whole: &Whole<'_>,
    is_defined: IsDefined<'_>,
    stop: &Stop<'_>,
) -> bool {
    let mut labels: FxHashMap<Label, Jumps> = FxHashMap::default();
    jumps(code, stop, &mut |label| labels.entry(label).or_default().all += 1);
    let own = start.variables.iter().map(|(variable, _)| *variable).collect();
    let mut propagation =
        Propagation { whole, is_defined, stop, own, labels, left: Vec::new(), changed: false };
    let registers = (0..).map(Register).zip(start.registers);
    let registers = registers.filter_map(|(register, info)| Some((register, Value::Number(info.initial?))));
    let variables = start.variables.iter();
    let variables = variables.filter_map(|(variable, number)| Some((*variable, Value::Number((*number)?))));
    let facts = Facts { registers: registers.collect(), variables: variables.collect() };
    propagation.block(code, Some(facts));
    propagation.changed
}

fn jumps(code: &[Stmt], stop: &Stop<'_>, visit: &mut dyn FnMut(Label)) {
    each_statement(code, stop, &mut |statement| {
        if let StmtKind::Goto(label) = &statement.kind {
            visit(*label);
        }
    });
}

/// What holds on both of two ways.
fn met(one: Option<Facts>, other: Option<Facts>) -> Option<Facts> {
    match (one, other) {
        (Some(mut one), Some(other)) => {
            one.registers.retain(|register, value| other.registers.get(register) == Some(value));
            one.variables.retain(|variable, value| other.variables.get(variable) == Some(value));
            Some(one)
        }
        (one, other) => one.or(other),
    }
}

/// Whether a value says all there is to know, and can be said again elsewhere.
fn is_plain(value: &Value) -> bool {
    matches!(value, Value::Register(_)) || known(value).is_some()
}

impl Propagation<'_> {
    /// What is known behind a block; nothing if nobody comes there.
    fn block(&mut self, code: &mut Vec<Stmt>, mut facts: Option<Facts>) -> Option<Facts> {
        let mut kept = Vec::new();
        for mut statement in std::mem::take(code) {
            // A statement may make others of all that is known. Nobody reads the code if there is no time for the rest of it.
            if self.stop.after(1 + facts.as_ref().map_or(0, Facts::count) / FACTS_IN_A_PIECE) {
                kept.push(statement);
                continue;
            }
            if facts.is_none() && !has_label(std::slice::from_ref(&statement), self.stop) {
                self.changed = true;
                continue;
            }
            let needed;
            (facts, needed) = self.statement(&mut statement, facts);
            match needed {
                true => kept.push(statement),
                false => self.changed = true,
            }
        }
        *code = kept;
        facts
    }

    /// What is known behind a statement, and whether it is needed.
    fn statement(&mut self, statement: &mut Stmt, facts: Option<Facts>) -> (Option<Facts>, bool) {
        match &mut statement.kind {
            StmtKind::Label(label) => {
                let Jumps { all, passed, facts: there } = self.labels.entry(*label).or_default();
                let back = passed < all;
                return (if back { Some(Facts::default()) } else { met(facts, there.take()) }, true);
            }
            StmtKind::Loop(body) => return (self.endless(body, facts), true),
            StmtKind::Steps(block) | StmtKind::Block(block) | StmtKind::Atomic(block) => {
                return (self.block(block, facts), true);
            }
            StmtKind::If(..) => return (self.branch(statement, facts), true),
            _ => {}
        }
        let Some(mut facts) = facts else { return (None, true) };
        self.insert(&mut statement.kind, &facts);
        if let StmtKind::Load(register, place, _) = &statement.kind
            && let Some(value) = self.own(place).and_then(|variable| facts.variables.get(&variable))
        {
            statement.kind = StmtKind::Assign(*register, value.clone());
            self.changed = true;
        }
        match &mut statement.kind {
            StmtKind::Goto(label) => {
                let jumps = self.labels.entry(*label).or_default();
                jumps.passed += 1;
                jumps.facts = met(jumps.facts.take(), Some(facts));
                return (None, true);
            }
            StmtKind::Break => {
                if let Some(left) = self.left.last_mut() {
                    *left = met(left.take(), Some(facts));
                }
                return (None, true);
            }
            StmtKind::Continue | StmtKind::Stop | StmtKind::Beyond(..) => return (None, true),
            StmtKind::Assign(register, value) => {
                if *value == Value::Register(*register) {
                    return (Some(facts), false);
                }
                facts.forget(*register);
                if is_plain(value) {
                    facts.registers.insert(*register, value.clone());
                }
            }
            StmtKind::Load(register, place, _) => {
                facts.forget(*register);
                if let Some(variable) = self.own(place) {
                    facts.variables.insert(variable, Value::Register(*register));
                }
            }
            StmtKind::Store(place, value, _) => {
                if let Some(variable) = self.own(place) {
                    facts.variables.remove(&variable);
                    if is_plain(value) {
                        facts.variables.insert(variable, value.clone());
                    }
                }
            }
            StmtKind::Assume(condition) | StmtKind::Assert(condition, _) | StmtKind::Check(condition, _) => {
                match condition {
                    Value::Number(0) => return (None, true),
                    Value::Number(_) => return (Some(facts), false),
                    condition => learn(&mut facts, condition, true),
                }
            }
            kind => self.written(kind, &mut facts),
        }
        (Some(facts), true)
    }

    /// The variable that a place is, if nobody else writes it.
    fn own(&self, place: &Location) -> Option<ObjectId> {
        place.whole().filter(|variable| self.own.contains(variable))
    }

    /// What a statement writes is not known any more.
    fn written(&self, kind: &StmtKind, facts: &mut Facts) {
        if let Some(register) = kind.writes() {
            facts.forget(register);
        }
        if let StmtKind::Store(place, ..) | StmtKind::Update { place, .. } = kind
            && let Some(variable) = self.own(place)
        {
            facts.variables.remove(&variable);
        }
        if let StmtKind::Special(ObjectEvent::Begin(variable)) = kind {
            facts.variables.remove(variable);
        }
    }

    fn endless(&mut self, body: &mut Vec<Stmt>, facts: Option<Facts>) -> Option<Facts> {
        let head = match self.is_entered(body) {
            true => Some(Facts::default()),
            false => facts.map(|mut facts| {
                each_statement(body, self.stop, &mut |statement| self.written(&statement.kind, &mut facts));
                facts
            }),
        };
        self.left.push(None);
        self.block(body, head);
        self.left.pop().flatten()
    }

    /// Whether a jump from outside goes into some code.
    fn is_entered(&self, body: &[Stmt]) -> bool {
        let mut inside: FxHashMap<Label, usize> = FxHashMap::default();
        jumps(body, self.stop, &mut |label| *inside.entry(label).or_default() += 1);
        let mut entered = false;
        each_statement(body, self.stop, &mut |statement| {
            if let StmtKind::Label(label) = &statement.kind {
                let all = self.labels.get(label).map_or(0, |jumps| jumps.all);
                entered |= all > inside.get(label).copied().unwrap_or(0);
            }
        });
        entered
    }

    fn branch(&mut self, statement: &mut Stmt, facts: Option<Facts>) -> Option<Facts> {
        if let Some(facts) = &facts {
            self.insert(&mut statement.kind, facts);
        }
        let StmtKind::If(condition, then, otherwise) = &mut statement.kind else { return facts };
        let known = match condition {
            Value::Number(number) => Some(*number != 0),
            _ => None,
        };
        let way = |holds: bool| {
            let mut facts = facts.clone().filter(|_| known != Some(!holds))?;
            learn(&mut facts, condition, holds);
            Some(facts)
        };
        let (yes, no) = (way(true), way(false));
        let yes = self.block(then, yes);
        let no = self.block(otherwise, no);
        if let Some(holds) = known {
            let (taken, other) = if holds { (then, otherwise) } else { (otherwise, then) };
            if !has_label(other, self.stop) {
                let taken = std::mem::take(taken);
                statement.kind = StmtKind::Block(taken);
                self.changed = true;
            }
        }
        met(yes, no)
    }

    /// Puts what is known into the values of a statement.
    fn insert(&mut self, kind: &mut StmtKind, facts: &Facts) {
        // What stands in an update or an await means by its own register what is there.
        let own = kind.found();
        let mut mentioned: FxHashSet<Register> = FxHashSet::default();
        kind.values(&mut |value| value.registers(&mut |register| _ = mentioned.insert(register)));
        let (whole, is_defined) = (self.whole, self.is_defined);
        let by = |register: Register| {
            let value = facts.registers.get(&register)?;
            let bound = own.is_some_and(|own| register == own || value.has(own));
            (!bound).then_some(value)
        };
        let known: Vec<(Register, &Value)> =
            mentioned.iter().filter_map(|&register| Some((register, by(register)?))).collect();
        let mut changed = !known.is_empty();
        kind.values_mut(&mut |value| {
            put(value, &known);
            let before = value.clone();
            fold(value, whole, is_defined);
            changed |= *value != before;
        });
        if let Some(place) = kind.accessed_mut() {
            let before = place.clone();
            fold_place(place, whole, is_defined);
            changed |= *place != before;
        }
        self.changed |= changed;
    }
}

/// Puts values in the place of registers. All of them hold, so it does not matter in which order.
fn put(value: &mut Value, known: &[(Register, &Value)]) {
    for (register, by) in known {
        value.substitute(*register, by);
    }
}

/// What is known where a condition holds, or does not.
fn learn(facts: &mut Facts, condition: &Value, holds: bool) {
    let equal = match condition {
        Value::Register(register) if !holds => Some((*register, 0)),
        Value::Binary(BinaryOp::Eq, a, b) if holds => equality(a, b),
        Value::Binary(BinaryOp::Ne, a, b) if !holds => equality(a, b),
        Value::Binary(BinaryOp::And, a, b) if holds => {
            learn(facts, a, true);
            return learn(facts, b, true);
        }
        Value::Binary(BinaryOp::Or, a, b) if !holds => {
            learn(facts, a, false);
            return learn(facts, b, false);
        }
        _ => None,
    };
    if let Some((register, number)) = equal {
        facts.registers.insert(register, Value::Number(number));
    }
}

fn equality(a: &Value, b: &Value) -> Option<(Register, i64)> {
    match (a, b) {
        (Value::Register(register), Value::Number(number))
        | (Value::Number(number), Value::Register(register)) => Some((*register, *number)),
        _ => None,
    }
}
