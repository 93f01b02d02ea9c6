//! Goals of fence synthesis: the conditions that the program must meet once fences have been inserted.

use fencewright_engines::auto::Auto;
use fencewright_engines::overflow::{Fit, fit, overfull};
use fencewright_engines::robust;
use fencewright_engines::{Checked, Confirm, Limits, Progress, Task, Verdict, check};
use fencewright_memory::Bound;
use fencewright_program::{MemoryModel, Program, Property, Replayed, Trace};
use fencewright_transform::attack::Notion;

/// The result of examining whether a program meets a goal.
pub enum Examined {
    /// The goal is met.
    Met(Proof),
    /// The goal is violated by an execution.
    Violated(Violation),
    /// The goal is not met: no execution satisfies the property with this name (`finally exists`).
    Lost(String),
    /// Undecided, with the reason.
    Unknown(String),
}

/// The evidence that a goal is met.
#[derive(Debug, Default)]
pub struct Proof {
    /// The verdicts, if the goal is about properties.
    pub verdicts: Vec<Checked>,
    /// Whether the whole proof was checked independently; if false, some verdict relies on the engine alone.
    pub checked: bool,
    /// Whether a certificate shows that all buffers stay within the bound. Meaningless for a goal without a bound.
    pub bound_checked: bool,
}

/// An execution that violates a goal.
pub struct Violation {
    /// The execution, which has not been replayed yet.
    pub trace: Trace,
    /// The part of the goal that the execution violates.
    pub broken: Broken,
}

/// The part of a goal that an execution violates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The property with this name.
    Property(String),
    /// A bound on buffers: in the last state of the execution, some buffer exceeds the bound.
    Bound(Bound),
    /// The goal as a whole, such as robustness. A replay of the execution cannot confirm the violation.
    Goal,
}

impl Broken {
    /// The violated property; `None` if the violation is not one of a property.
    pub fn property(&self, program: &Program) -> Option<Property> {
        match self {
            Broken::Property(name) => Some(named(program, name)),
            Broken::Bound(_) | Broken::Goal => None,
        }
    }

    /// The name of the violated part, for messages; `None` for the goal as a whole.
    pub fn name(&self) -> Option<&str> {
        match self {
            Broken::Property(name) => Some(name),
            Broken::Bound(_) => Some("overflow"),
            Broken::Goal => None,
        }
    }

    /// Replays an execution; `None` if it is not an execution of the program or does not violate this part of the goal. For [`Broken::Goal`], the
    /// violation is not checked.
    pub fn replay(&self, program: &Program, model: MemoryModel, trace: &Trace) -> Option<Replayed> {
        match self {
            Broken::Property(name) => trace.replay_for(program, model, &named(program, name)).ok(),
            Broken::Bound(bound) => {
                let replayed = trace.replay(program, model).ok()?;
                overfull(replayed.last(), *bound).is_some().then_some(replayed)
            }
            Broken::Goal => trace.replay(program, model).ok(),
        }
    }
}

/// The property of a program with this name. `assertions` exists even if the program does not state it.
pub(crate) fn named(program: &Program, name: &str) -> Property {
    let stated = program.properties.iter().find(|p| p.name == name).cloned();
    stated.unwrap_or_else(Property::assertions)
}

/// A goal: a condition that fences have to establish.
pub trait Goal {
    /// The name of the goal on the command line.
    fn name(&self) -> &'static str;
    /// The memory model under which the program must meet the goal.
    fn model(&self) -> MemoryModel;
    /// Whether an execution that violates the goal still violates it after a flush moves earlier without changing the value that any thread reads.
    fn ignores_unseen_delays(&self) -> bool {
        true
    }
    /// Decides whether a program meets the goal.
    fn examine(&self, program: &Program, limits: &Limits, progress: &Progress) -> Examined;
    /// The bound on buffers that is part of the goal, if there is one.
    fn bound(&self) -> Option<Bound> {
        None
    }
    /// Whether no execution of a program satisfies the `finally exists` property with this name; `None` if undecided.
    fn lacks(&self, program: &Program, property: &str, limits: &Limits, progress: &Progress) -> Option<bool>;
}

/// Every property holds (FENCES12), including `finally exists`.
pub struct Safety {
    /// The memory model under which the properties are verified.
    pub model: MemoryModel,
    /// The names of the required properties; empty if all properties of the program are required.
    pub properties: Vec<String>,
    /// The engine that verifies programs.
    pub engine: Auto,
    /// The effort spent on checking proofs independently.
    pub confirm: Confirm,
}

impl Safety {
    /// The properties that the program must satisfy: those that it states and that `properties` names (all if that is empty). Freedom from deadlock
    /// is never required, because a program cannot state it; so an inserted fence may cause a deadlock.
    pub fn of(&self, program: &Program) -> Vec<Property> {
        let mut properties = program.properties.clone();
        properties.retain(|p| self.properties.is_empty() || self.properties.contains(&p.name));
        properties
    }

    /// Whether fences can help to satisfy some property. They cannot help with `finally exists`, because fences only remove executions.
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
                broken: Broken::Property(checked.property.name.clone()),
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
                Examined::Met(Proof { verdicts, checked, bound_checked: false })
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

/// Robustness: every TSO execution is equivalent to an SC execution (THESIS16), or the stronger freedom from triangular races.
pub struct Robustness {
    /// The notion of robustness, and the options of the analysis.
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

    /// False for freedom from triangular races: such a race consists of a delayed store, even if no thread can observe the delay.
    fn ignores_unseen_delays(&self) -> bool {
        self.options.notion == Notion::HappensBefore
    }

    fn examine(&self, program: &Program, limits: &Limits, progress: &Progress) -> Examined {
        let found = robust::analyse(program, &self.options, limits, progress);
        match (found.robust(), found.witness()) {
            (Ok(true), _) => {
                let checked = found.checked() == Some(true);
                Examined::Met(Proof { checked, ..Proof::default() })
            }
            (Ok(false), Some((_, witness))) => {
                Examined::Violated(Violation { trace: witness.trace().clone(), broken: Broken::Goal })
            }
            (Ok(false), None) => {
                Examined::Unknown("internal contradiction, please report it: no witness".into())
            }
            (Err(reason), _) => Examined::Unknown(reason.to_string()),
        }
    }

    /// Robustness is not an existential property, so this question does not arise.
    fn lacks(&self, _: &Program, _: &str, _: &Limits, _: &Progress) -> Option<bool> {
        Some(false)
    }
}

/// A goal together with a bound on buffers (EXTRA13 s.3). With small buffers, a program has fewer states.
pub struct Bounded {
    /// The goal without the bound.
    pub goal: Box<dyn Goal>,
    /// The bound that no buffer may exceed.
    pub bound: Bound,
}

impl Goal for Bounded {
    fn name(&self) -> &'static str {
        self.goal.name()
    }

    fn model(&self) -> MemoryModel {
        self.goal.model()
    }

    fn ignores_unseen_delays(&self) -> bool {
        self.goal.ignores_unseen_delays()
    }

    fn bound(&self) -> Option<Bound> {
        Some(self.bound)
    }

    /// Checks the bound first: programs with small buffers are easier to verify.
    fn examine(&self, program: &Program, limits: &Limits, progress: &Progress) -> Examined {
        match fit(program, self.model(), self.bound, limits, progress) {
            Ok(Fit::Overflow(trace)) => {
                Examined::Violated(Violation { trace, broken: Broken::Bound(self.bound) })
            }
            Ok(Fit::Always { checked }) => match self.goal.examine(program, limits, progress) {
                Examined::Met(proof) => Examined::Met(Proof {
                    checked: proof.checked && checked,
                    bound_checked: checked,
                    ..proof
                }),
                examined => examined,
            },
            Err(reason) => Examined::Unknown(format!("overflow: {reason}")),
        }
    }

    fn lacks(&self, program: &Program, property: &str, limits: &Limits, progress: &Progress) -> Option<bool> {
        self.goal.lacks(program, property, limits, progress)
    }
}
