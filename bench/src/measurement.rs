//! What is measured, and what it is compared with.

use std::path::PathBuf;

use fencewright_program::MemoryModel;

use crate::stopwatch::Took;

/// One run of an engine.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The program, with its constants.
    pub program: String,
    /// The memory model and how it was asked. Within a section, program and setting name the measurement.
    pub setting: String,
    /// The family that the program belongs to and its size there, if time over size is worth a curve.
    pub size: Option<(String, i64)>,
    /// The verdict, or what was found.
    pub outcome: String,
    /// How long it took, on the wall clock.
    pub seconds: f64,
    /// How long it computed, if that is known.
    pub processor: Option<f64>,
    /// How many states were stored.
    pub states: Option<u64>,
    /// What others took.
    pub others: Vec<Other>,
    /// The question, for peers.
    pub question: Option<Question>,
}

/// What somebody else took for the same.
#[derive(Clone, Debug)]
pub struct Other {
    /// Who.
    pub tool: String,
    /// Where the figure comes from.
    pub source: Source,
    /// The verdict, or how it ended; empty where that is not known.
    pub outcome: String,
    /// How long it took; nothing if it did not get there.
    pub seconds: Option<f64>,
    /// How long it computed, if that is known.
    pub processor: Option<f64>,
    /// It was given up by then.
    pub at_least: bool,
}

/// Where a figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A paper.
    Published,
    /// An earlier run of this program.
    Baseline,
    /// Another tool, in this run.
    Peer,
}

impl Other {
    /// How many times as long the other took; nothing unless both came to an end.
    pub fn ratio(&self, ours: &Measurement) -> Option<f64> {
        self.seconds.filter(|_| ours.is_answered()).map(|seconds| seconds / ours.seconds.max(1e-6))
    }
}

/// What was asked, in a form that another tool can be asked too.
#[derive(Clone, Debug)]
pub struct Question {
    /// The command of `fencewright` that asks it.
    pub command: &'static str,
    /// The memory model.
    pub model: MemoryModel,
    /// The program.
    pub program: Input,
}

/// Where a program comes from.
#[derive(Clone, Debug)]
pub enum Input {
    /// A file, and values for its constants.
    File(PathBuf, Vec<(String, i64)>),
    /// A text in .fw.
    Text(String),
}

impl Measurement {
    /// A measurement with nothing to compare it with yet.
    pub fn new(
        program: impl Into<String>,
        setting: impl Into<String>,
        outcome: impl Into<String>,
        took: impl Into<Took>,
    ) -> Self {
        let Took { wall, processor } = took.into();
        Measurement {
            program: program.into(),
            setting: setting.into(),
            size: None,
            outcome: outcome.into(),
            seconds: wall,
            processor,
            states: None,
            others: Vec::new(),
            question: None,
        }
    }

    /// So many states were stored.
    pub fn states(self, states: u64) -> Self {
        Measurement { states: Some(states), ..self }
    }

    /// It is the member of this size of a family.
    pub fn size(self, family: &str, n: i64) -> Self {
        Measurement { size: Some((family.to_string(), n)), ..self }
    }

    /// A paper says that a tool took so many seconds.
    pub fn published(self, tool: &str, seconds: f64) -> Self {
        self.compared(Other {
            tool: tool.to_string(),
            source: Source::Published,
            outcome: String::new(),
            seconds: Some(seconds),
            processor: None,
            at_least: false,
        })
    }

    /// A paper says that a tool was given up after so many seconds.
    pub fn given_up(self, tool: &str, seconds: f64) -> Self {
        self.compared(Other {
            tool: tool.to_string(),
            source: Source::Published,
            outcome: "given up".to_string(),
            seconds: Some(seconds),
            processor: None,
            at_least: true,
        })
    }

    /// With something to compare with.
    pub fn compared(mut self, other: Other) -> Self {
        self.others.push(other);
        self
    }

    /// What was asked, for peers.
    pub fn asked(self, command: &'static str, model: MemoryModel, program: Input) -> Self {
        Measurement { question: Some(Question { command, model, program }), ..self }
    }

    /// Whether it came to an answer: only then its time means something.
    pub fn is_answered(&self) -> bool {
        !self.outcome.contains("unknown")
    }
}
