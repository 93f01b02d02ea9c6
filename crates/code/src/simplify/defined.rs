//! Registers that never hold an undefined value: a flow-insensitive analysis of the whole program.
//!
//! Only copies between registers and memory pass an undefined value on. Every other operation first checks that its operands are defined, so its
//! result is defined.

use fencewright_text::Stop;
use rustc_hash::FxHashSet;

use crate::core::{
    Base, Core, Known, Location, ObjectEvent, ObjectId, Register, StmtKind, Value, each_place, each_statement,
};

/// Where undefined values may be: the result of the analysis.
pub(super) struct Defined {
    /// Registers that may hold an undefined value, with their threads.
    undefined: FxHashSet<(usize, Register)>,
    /// Whether some memory may hold an undefined value.
    memory: bool,
}

impl Defined {
    /// Computes the least fixpoint for a program.
    pub fn of(core: &Core, stop: &Stop<'_>) -> Self {
        let mut undefined = FxHashSet::default();
        for (number, thread) in core.threads.iter().enumerate() {
            let registers = (0..).map(Register).zip(&thread.registers);
            undefined.extend(
                registers.filter(|(_, info)| info.initial.is_none()).map(|(register, _)| (number, register)),
            );
        }
        let mut defined = Defined { undefined, memory: starts_undefined(core, stop) };
        while defined.grow(core, stop) {}
        defined
    }

    /// Whether a register never holds an undefined value.
    pub fn is(&self, thread: usize, register: Register) -> bool {
        !self.undefined.contains(&(thread, register))
    }

    fn grow(&mut self, core: &Core, stop: &Stop<'_>) -> bool {
        let before = (self.undefined.len(), self.memory);
        for (number, thread) in core.threads.iter().enumerate() {
            each_statement(&thread.code, stop, &mut |statement| {
                let undefined = match &statement.kind {
                    StmtKind::Assign(_, value) => self.passes(number, value),
                    StmtKind::Special(ObjectEvent::Undefined(_)) => true,
                    StmtKind::Load(..) | StmtKind::Await { .. } => self.memory,
                    StmtKind::Store(_, value, _) => {
                        self.memory |= self.passes(number, value);
                        false
                    }
                    StmtKind::Update { new, .. } => {
                        self.memory |= self.passes(number, new);
                        self.memory
                    }
                    _ => false,
                };
                if let (true, Some(register)) = (undefined, statement.kind.writes()) {
                    self.undefined.insert((number, register));
                }
            });
        }
        before != (self.undefined.len(), self.memory)
    }

    /// Whether a value may be a copy of an undefined value.
    fn passes(&self, thread: usize, value: &Value) -> bool {
        match value {
            Value::Unary(..) | Value::Binary(..) | Value::Difference(..) => false,
            value => {
                let mut found = false;
                value.registers(&mut |register| found |= !self.is(thread, register));
                found
            }
        }
    }
}

/// Whether some object that the program uses starts undefined.
fn starts_undefined(core: &Core, stop: &Stop<'_>) -> bool {
    let mut reached: FxHashSet<ObjectId> = FxHashSet::default();
    for object in &core.objects {
        for (_, known) in &object.initial {
            match known {
                Known::Address(target, _) => _ = reached.insert(*target),
                Known::Undefined => return true,
                Known::Number(_) | Known::Function(_) => {}
            }
        }
    }
    for thread in &core.threads {
        each_statement(&thread.code, stop, &mut |statement| {
            each_place(&statement.kind, &mut |place: &Location| {
                if let Base::Object(object) = place.base {
                    reached.insert(object);
                }
            });
            if let StmtKind::Special(ObjectEvent::Allocate(_, object)) = &statement.kind {
                reached.insert(*object);
            }
        });
    }
    reached.iter().any(|object| core.objects[object.0 as usize].undefined)
}
