//! What fences are for: a goal says whether a program meets it, and shows an execution if not.

use fencewright_engines::auto::Auto;
use fencewright_engines::robust;
use fencewright_engines::{Checked, Confirm, Limits, Progress, Task, Verdict, check};
use fencewright_program::{MemoryModel, Program, Property, Trace};
use fencewright_transform::attack::Notion;

/// What a goal says about a program.
pub enum Examined {
    /// It is met.
    Met(Proof),
    /// It is not.
    Violated(Violation),
    /// It is not: no execution is left that the property with this name (`finally exists`) asks for.
    Lost(String),
    /// Not known, and why.
    Unknown(String),
}

/// What shows that a goal is met.
#[derive(Debug, Default)]
pub struct Proof {
    /// The verdicts, if the goal is about properties.
    pub verdicts: Vec<Checked>,
    /// Whether all of it was checked; otherwise it stands on an engine alone.
    pub checked: bool,
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
    /// Whether an execution stays a violation if a store reaches memory earlier and no thread can tell the difference.
    fn ignores_unseen_delays(&self) -> bool {
        true
    }
    /// Whether a program meets it.
    fn examine(&self, program: &Program, limits: &Limits, progress: &Progress) -> Examined;
    /// Whether a program has no execution that a property asks for; none if that is not known.
    fn lacks(&self, program: &Program, property: &str, limits: &Limits, progress: &Progress) -> Option<bool>;
}

/// Every property holds (FENCES12), `finally exists` included.
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
    /// The properties that the program must have. `deadlock` is not among them: a fence may cause a deadlock.
    pub fn of(&self, program: &Program) -> Vec<Property> {
        let mut properties = program.properties.clone();
        properties.retain(|p| self.properties.is_empty() || self.properties.contains(&p.name));
        properties
    }

    /// Whether fences could help with some of them. `finally exists` asks for an execution, and fences only take some away.
    pub fn is_about_fences(&self, program: &Program) -> bool {
        self.of(program).iter().any(|p| !p.kind.is_existence())
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
        let mut task = Task::new(program, self.model, self.of(program));
        task.first_violation = true;
        let verdicts = check(&self.engine, &task, limits, progress, self.confirm);
        let violated = verdicts.iter().find_map(|checked| match (checked.verdict(), checked.trace()) {
            (Verdict::Unsafe, Some(replayed)) => Some(Violation {
                trace: Trace {
                    registers: replayed.states.first().registers.clone(),
                    memory: replayed.states.first().memory.clone(),
                    events: replayed.events.clone(),
                },
                property: Some(checked.property.name.clone()),
            }),
            _ => None,
        });
        let lost = verdicts.iter().find_map(|checked| match checked.verdict() {
            Verdict::Unsafe if checked.property.kind.is_existence() => Some(checked.property.name.clone()),
            _ => None,
        });
        let unknown = verdicts.iter().find_map(|checked| match checked.verdict() {
            Verdict::Unknown(reason) => Some(format!("{}: {reason}", checked.property.name)),
            _ => None,
        });
        match (violated, lost, unknown) {
            (Some(violation), ..) => Examined::Violated(violation),
            (None, Some(property), _) => Examined::Lost(property),
            (None, None, Some(reason)) => Examined::Unknown(reason),
            (None, None, None) => {
                let checked = verdicts.iter().all(|v| v.checked() == Some(true));
                Examined::Met(Proof { verdicts, checked })
            }
        }
    }

    fn lacks(&self, program: &Program, property: &str, limits: &Limits, progress: &Progress) -> Option<bool> {
        let wanted = program.properties.iter().filter(|p| p.name == property).cloned().collect();
        let task = Task::new(program, self.model, wanted);
        let verdicts = check(&self.engine, &task, limits, progress, self.confirm);
        match verdicts.first()?.verdict() {
            Verdict::Safe => Some(false),
            Verdict::Unsafe => Some(true),
            Verdict::Unknown(_) => None,
        }
    }
}

/// Every TSO execution looks like one under SC (THESIS16), or stronger notions of that.
pub struct Robustness {
    /// Which notion, and how to decide it.
    pub options: robust::Options,
}

impl Goal for Robustness {
    fn name(&self) -> &'static str {
        match self.options.notion {
            Notion::HappensBefore => "robustness",
            Notion::Triangular => "triangular",
        }
    }

    fn model(&self) -> MemoryModel {
        MemoryModel::Tso
    }

    /// A triangular race needs a delayed store, whether or not a thread can tell that it is delayed.
    fn ignores_unseen_delays(&self) -> bool {
        self.options.notion == Notion::HappensBefore
    }

    fn examine(&self, program: &Program, limits: &Limits, progress: &Progress) -> Examined {
        let found = robust::analyse(program, &self.options, limits, progress);
        match (found.robust(), found.witness()) {
            (Ok(true), _) => {
                Examined::Met(Proof { verdicts: Vec::new(), checked: found.checked() == Some(true) })
            }
            (Ok(false), Some((_, witness))) => {
                Examined::Violated(Violation { trace: witness.trace().clone(), property: None })
            }
            (Ok(false), None) => {
                Examined::Unknown("internal contradiction, please report it: no witness".into())
            }
            (Err(reason), _) => Examined::Unknown(reason.to_string()),
        }
    }

    /// Robustness asks for no execution.
    fn lacks(&self, _: &Program, _: &str, _: &Limits, _: &Progress) -> Option<bool> {
        Some(false)
    }
}
