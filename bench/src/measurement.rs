//! Measurements, and the results of other tools and of earlier runs that they are compared with.

use std::path::PathBuf;

use fencewright_program::MemoryModel;

use crate::stopwatch::Took;

/// The measurement of one run of an engine.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The program, with its constants.
    pub program: String,
    /// The memory model and the options. Within a section, program and setting identify the measurement.
    pub setting: String,
    /// The family and the size of the program, if the measurement is part of a plot of time over size.
    pub size: Option<(String, i64)>,
    /// The verdict, or another result.
    pub outcome: String,
    /// The wall-clock time in seconds.
    pub seconds: f64,
    /// The processor time in seconds, if known.
    pub processor: Option<f64>,
    /// The number of states stored.
    pub states: Option<u64>,
    /// Results of other tools, papers and earlier runs for the same question.
    pub others: Vec<Other>,
    /// The question for other tools (`--peer`); `None` if they cannot answer it.
    pub question: Option<Question>,
}

/// The result of another tool, a paper or an earlier run for the same question.
#[derive(Clone, Debug)]
pub struct Other {
    /// The name of the tool, or of the earlier run.
    pub tool: String,
    /// The origin of the result.
    pub source: Source,
    /// The verdict, or the way in which the run ended; empty if unknown.
    pub outcome: String,
    /// The wall-clock time in seconds: until the answer or, with `at_least`, until the run was stopped. `None` if neither is known.
    pub seconds: Option<f64>,
    /// The processor time in seconds, if known.
    pub processor: Option<f64>,
    /// Whether the run was stopped after `seconds` without an answer.
    pub at_least: bool,
}

/// The origin of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A paper.
    Published,
    /// An earlier run of this benchmark.
    Baseline,
    /// Another tool, in this run.
    Peer,
}

impl Other {
    /// The other time divided by ours; `None` if our run has no answer or the other run has no time.
    pub fn ratio(&self, ours: &Measurement) -> Option<f64> {
        self.seconds.filter(|_| ours.is_answered()).map(|seconds| seconds / ours.seconds.max(1e-6))
    }
}

/// A question for other tools.
#[derive(Clone, Debug)]
pub struct Question {
    /// The subcommand of `fencewright` that answers the question.
    pub command: &'static str,
    /// The memory model of the question.
    pub model: MemoryModel,
    /// The program that the question is about.
    pub program: Input,
}

/// The source of a program.
#[derive(Clone, Debug)]
pub enum Input {
    /// A file, and values for its constants.
    File(PathBuf, Vec<(String, i64)>),
    /// A text in .fw.
    Text(String),
}

impl Measurement {
    /// A measurement without comparisons.
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

    /// Adds the number of states stored.
    pub fn states(self, states: u64) -> Self {
        Measurement { states: Some(states), ..self }
    }

    /// Adds the family and the size of the program.
    pub fn size(self, family: &str, n: i64) -> Self {
        Measurement { size: Some((family.to_string(), n)), ..self }
    }

    /// Adds the time that a paper reports for a tool.
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

    /// Adds the time after which a run of a tool was stopped without an answer, according to a paper.
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

    /// Adds a result to compare with.
    pub fn compared(mut self, other: Other) -> Self {
        self.others.push(other);
        self
    }

    /// Adds the question for other tools (`--peer`).
    pub fn asked(self, command: &'static str, model: MemoryModel, program: Input) -> Self {
        Measurement { question: Some(Question { command, model, program }), ..self }
    }

    /// Whether the run has an answer. Otherwise its time cannot be compared.
    pub fn is_answered(&self) -> bool {
        !self.outcome.contains("unknown")
    }
}
