//! What fences are for: a goal says whether a program meets it, and shows an execution if not.

use fencewright_engines::auto::Auto;
use fencewright_engines::{Checked, Confirm, Limits, Progress, Task, Verdict, check};
use fencewright_program::{MemoryModel, Program, Property, PropertyKind, Quantifier, Trace};

/// What a goal says about a program.
pub enum Examined {
    /// It is met; the verdicts that show it, if it is about properties.
    Met(Vec<Checked>),
    /// It is not.
    Violated(Violation),
    /// Nobody knows, and why.
    Unknown(String),
}

/// An execution that violates a goal.
pub struct Violation {
    /// The execution.
    pub trace: Trace,
    /// The property it violates, by name; nothing if the goal is not about properties.
    pub property: Option<String>,
}

/// A goal.
pub trait Goal {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    /// The memory model it is about.
    fn model(&self) -> MemoryModel;
    /// Whether a program meets it.
    fn examine(&self, program: &Program, limits: &Limits, progress: &Progress) -> Examined;
}

/// Every property holds (FENCES12).
pub struct Safety {
    /// The memory model.
    pub model: MemoryModel,
    /// The names of the properties; all if empty.
    pub properties: Vec<String>,
    /// The engine.
    pub engine: Auto,
    /// How much to confirm proofs.
    pub confirm: Confirm,
}

impl Safety {
    /// The properties that fences can help with: `finally exists` asks for an execution, and fences only take some away.
    pub fn of(&self, program: &Program) -> Vec<Property> {
        let mut properties = program.properties.clone();
        if self.properties.iter().any(|name| name == "deadlock") {
            properties.push(Property::deadlock());
        }
        properties.retain(|p| {
            let wanted = self.properties.is_empty() || self.properties.contains(&p.name);
            wanted && !matches!(p.kind, PropertyKind::Finally(Quantifier::Exists, _))
        });
        properties
    }
}

impl Goal for Safety {
    fn name(&self) -> &'static str {
        "safety"
    }

    fn model(&self) -> MemoryModel {
        self.model
    }

    fn examine(&self, program: &Program, limits: &Limits, progress: &Progress) -> Examined {
        let task = Task::new(program, self.model, self.of(program));
        let verdicts = check(&self.engine, &task, limits, progress, self.confirm);
        let violated = verdicts.iter().find_map(|checked| match (checked.verdict(), checked.trace()) {
            (Verdict::Unsafe, Some(replayed)) => Some(Violation {
                trace: Trace {
                    registers: replayed.states[0].registers.clone(),
                    memory: replayed.states[0].memory.clone(),
                    events: replayed.events.clone(),
                },
                property: Some(checked.property.name.clone()),
            }),
            _ => None,
        });
        let unknown = verdicts.iter().find_map(|checked| match checked.verdict() {
            Verdict::Unknown(reason) => Some(format!("{}: {reason}", checked.property.name)),
            _ => None,
        });
        match (violated, unknown) {
            (Some(violation), _) => Examined::Violated(violation),
            (None, Some(reason)) => Examined::Unknown(reason),
            (None, None) => Examined::Met(verdicts),
        }
    }
}
