//! Constant and copy propagation in the code of a thread: registers that hold a copy of another register, a number or an address.
//!
//! Variables that only this thread writes are tracked too: under every memory model the thread reads from such a variable the value that it wrote
//! last, from its buffer or from memory. Unreachable code is removed.

use fencewright_program::BinaryOp;
use fencewright_text::Stop;
use rustc_hash::{FxHashMap, FxHashSet};

use super::fold::{IsDefined, Whole, fold, fold_place};
use super::has_label;
use crate::core::{
    Location, ObjectEvent, ObjectId, Register, RegisterInfo, Stmt, StmtKind, Symbolic, Value, each_statement,
    known,
};
use crate::dataflow::forward::{Added, Cycles, Forward, Keep, walk};

/// Known values of registers, and of variables that only this thread writes. The join keeps the values that are equal on both paths.
#[derive(Clone, Default)]
struct Facts {
    registers: FxHashMap<Register, Value>,
    variables: FxHashMap<ObjectId, Value>,
}

/// Number of facts in one unit of work.
const FACTS_IN_A_PIECE: usize = 16;

impl Facts {
    fn count(&self) -> usize {
        self.registers.len() + self.variables.len()
    }

    /// Removes the facts that no longer hold once a register is written: the value of the register, and facts that other registers and variables hold
    /// a copy of that value.
    fn forget(&mut self, written: Register) {
        self.registers.remove(&written);
        self.registers.retain(|_, value| *value != Value::Register(written));
        self.variables.retain(|_, value| *value != Value::Register(written));
    }
}

/// Facts at the start of a thread.
pub(super) struct Start<'a> {
    /// The registers of the thread with their initial values.
    pub registers: &'a [RegisterInfo],
    /// The variables that no other thread writes, with their initial values where these are defined.
    pub variables: Vec<(ObjectId, Option<i64>)>,
}

struct Propagation<'a> {
    whole: &'a Whole<'a>,
    is_defined: IsDefined<'a>,
    stop: &'a Stop<'a>,
    /// The variables that no other thread writes.
    own: FxHashSet<ObjectId>,
    changed: bool,
}

/// Replaces registers by their known values. Returns whether anything changed.
pub(super) fn propagate(
    code: &mut Vec<Stmt>,
    start: &Start<'_>,
    whole: &Whole<'_>,
    is_defined: IsDefined<'_>,
    stop: &Stop<'_>,
) -> bool {
    let own = start.variables.iter().map(|(variable, _)| *variable).collect();
    let registers = (0..).map(Register).zip(start.registers);
    let registers = registers.filter_map(|(register, info)| Some((register, Value::Number(info.initial?))));
    let variables = start.variables.iter();
    let variables = variables.filter_map(|(variable, number)| Some((*variable, Value::Number((*number)?))));
    let facts = Facts { registers: registers.collect(), variables: variables.collect() };
    let mut propagation = Propagation { whole, is_defined, stop, own, changed: false };
    walk(code, facts, &mut propagation, &mut Cycles::default(), stop);
    propagation.changed
}

/// Whether a value can be copied to other statements.
fn is_plain(value: &Value) -> bool {
    matches!(value, Value::Register(_)) || known(value).is_some()
}

impl Forward<Symbolic> for Propagation<'_> {
    type Facts = Facts;

    const ITERATES: bool = false;

    fn join(&self, mut one: Facts, other: Facts) -> Facts {
        one.registers.retain(|register, value| other.registers.get(register) == Some(value));
        one.variables.retain(|variable, value| other.variables.get(variable) == Some(value));
        one
    }

    fn nothing(&self) -> Option<Facts> {
        Some(Facts::default())
    }

    fn preserved(&self, body: &[Stmt], mut facts: Facts) -> Facts {
        each_statement(body, self.stop, &mut |statement| {
            if !self.writes_again(&statement.kind, &facts) {
                self.written(&statement.kind, &mut facts);
            }
        });
        facts
    }

    fn branch(&self, condition: &Value, holds: bool, mut facts: Facts) -> Option<Facts> {
        if constant(condition) == Some(!holds) {
            return None;
        }
        learn(&mut facts, condition, holds);
        Some(facts)
    }

    fn cost(&self, facts: &Option<Facts>) -> usize {
        1 + facts.as_ref().map_or(0, Facts::count) / FACTS_IN_A_PIECE
    }

    fn rewrite(&mut self, statement: &mut Stmt, facts: &mut Option<Facts>, _: &mut Added<Symbolic>) -> Keep {
        let Some(facts) = facts else {
            if has_label(std::slice::from_ref(statement), self.stop) {
                return Keep::Yes;
            }
            self.changed = true;
            return Keep::No;
        };
        self.insert(&mut statement.kind, facts);
        if let StmtKind::Load(register, place, _) = &statement.kind
            && let Some(value) = self.own(place).and_then(|variable| facts.variables.get(&variable))
        {
            statement.kind = StmtKind::Assign(*register, value.clone());
            self.changed = true;
        }
        let is_needed = match &statement.kind {
            StmtKind::Assign(register, value) => *value != Value::Register(*register),
            StmtKind::Assume(condition) | StmtKind::Assert(condition, _) | StmtKind::Check(condition, _) => {
                constant(condition) != Some(true)
            }
            _ => true,
        };
        self.changed |= !is_needed;
        if is_needed { Keep::Yes } else { Keep::No }
    }

    fn transfer(&mut self, kind: &StmtKind, mut facts: Facts) -> Option<Facts> {
        match kind {
            StmtKind::Beyond(condition, _) => return self.branch(condition, false, facts),
            StmtKind::Assign(register, value) => {
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
                return self.branch(condition, true, facts);
            }
            kind => self.written(kind, &mut facts),
        }
        Some(facts)
    }

    /// Replaces a branch with a constant condition by the block that control takes, unless a jump leads into the other block.
    fn rewritten(&mut self, statement: &mut Stmt) {
        let StmtKind::If(condition, then, otherwise) = &mut statement.kind else { return };
        let Some(holds) = constant(condition) else { return };
        let (taken, other) = if holds { (then, otherwise) } else { (otherwise, then) };
        if !has_label(other, self.stop) {
            let taken = std::mem::take(taken);
            statement.kind = StmtKind::Block(taken);
            self.changed = true;
        }
    }
}

impl Propagation<'_> {
    /// The variable at a place, if no other thread writes it.
    fn own(&self, place: &Location) -> Option<ObjectId> {
        place.whole().filter(|variable| self.own.contains(variable))
    }

    /// Whether a statement only writes the constant that a register or variable is known to hold.
    fn writes_again(&self, kind: &StmtKind, facts: &Facts) -> bool {
        match kind {
            StmtKind::Assign(register, value @ Value::Number(_)) => {
                facts.registers.get(register) == Some(value)
            }
            StmtKind::Store(place, value @ Value::Number(_), _) => {
                self.own(place).and_then(|variable| facts.variables.get(&variable)) == Some(value)
            }
            _ => false,
        }
    }

    /// Removes the facts about the register and the variable that a statement writes.
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

    /// Inserts known values into the values of a statement.
    fn insert(&mut self, kind: &mut StmtKind, facts: &Facts) {
        // The register into which an update or await loads stands for the value found in memory. So no value is inserted for this register, nor any
        // value that reads this register.
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

/// Substitutes values for registers. Each value equals its register, so the order does not matter.
fn put(value: &mut Value, known: &[(Register, &Value)]) {
    for (register, by) in known {
        value.substitute(*register, by);
    }
}

/// The truth value of a condition, if it is a constant.
fn constant(condition: &Value) -> Option<bool> {
    match condition {
        Value::Number(number) => Some(*number != 0),
        _ => None,
    }
}

/// Adds the values of registers that are implied by a condition, or by its negation.
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
