//! The final states of litmus tests, summarised as herd does.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;

use fencewright_engines::Reason;
use fencewright_lang::source::escape;
use fencewright_program::{Expr, Formula, MemoryModel, Observable, Property, PropertyKind, Quantifier};
use serde::Serialize;

use crate::json;
use crate::style::Style;
use crate::text::seconds;
use crate::words::{Source, grouped};

/// At most so many final states are listed.
const MOST_LISTED: usize = 1_000;

/// How many of the final states satisfy the proposition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// All of them.
    Always,
    /// Some of them.
    Sometimes,
    /// None of them.
    Never,
}

impl Observation {
    /// As herd writes it.
    pub fn name(self) -> &'static str {
        match self {
            Observation::Always => "Always",
            Observation::Sometimes => "Sometimes",
            Observation::Never => "Never",
        }
    }
}

/// What is known about the condition of a test.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The file.
    pub file: String,
    /// The name of the test.
    pub test: String,
    /// The memory model.
    pub model: MemoryModel,
    /// The condition as the file states it.
    pub condition: String,
    /// Which final states must satisfy it.
    pub quantifier: Quantifier,
    /// The final states, as far as the condition looks at them; each as text.
    pub states: Vec<String>,
    /// How many final states satisfy the proposition.
    pub positive: usize,
    /// How many do not.
    pub negative: usize,
    /// Why not all final states were seen.
    pub reason: Option<Reason>,
    /// How long it took.
    pub seconds: f64,
}

/// The final states that a search has found.
pub struct Finals<'a> {
    /// What it looked at: at least what the formula of the property looks at.
    pub observed: &'a [Observable],
    /// The values of these in the final states.
    pub values: &'a [Vec<i64>],
    /// Why there may be more.
    pub reason: Option<Reason>,
    /// How long it took.
    pub seconds: f64,
}

/// What a formula looks at, each thing once.
pub fn observed(formula: &Formula) -> Vec<Observable> {
    let mut observed: Vec<Observable> = Vec::new();
    let mut seen = HashSet::new();
    formula.for_each_leaf(&mut |observable| {
        if seen.insert(observable.clone()) {
            observed.push(observable.clone());
        }
    });
    observed
}

/// An observable of a litmus test: `0:EAX` for a register of `P0` in a litmus file, otherwise as the source writes it.
fn observable_name(source: Source<'_>, observable: &Observable) -> String {
    match observable {
        Observable::Register(thread, register) if source.format == fencewright_lang::Format::Litmus => {
            let thread = source.program.thread(*thread);
            let number = thread.name.strip_prefix('P').unwrap_or(&thread.name);
            format!("{number}:{}", thread.registers[register.index()].name)
        }
        _ => source.program.observable_name(observable),
    }
}

impl Outcome {
    /// Summarises the final states that were found. The property must be a `finally`.
    pub fn new(
        source: Source<'_>,
        test: String,
        model: MemoryModel,
        property: &Property,
        found: Finals<'_>,
    ) -> Self {
        let Finals { observed, values, reason, seconds } = found;
        let (quantifier, formula) = match &property.kind {
            PropertyKind::Finally(quantifier, formula) => (*quantifier, formula),
            _ => unreachable!("only `finally` properties are conditions of litmus tests"),
        };
        let names: Vec<String> = observed.iter().map(|o| observable_name(source, o)).collect();
        let positions: HashMap<&Observable, usize> =
            observed.iter().enumerate().map(|(n, o)| (o, n)).collect();
        // Everything the formula looks at is observed.
        let formula: Expr<usize> = formula.map(&mut |o| Expr::Leaf(positions[o]));
        let satisfies = |values: &[i64]| formula.eval(&mut |&n| values[n]).is_ok_and(|value| value != 0);
        let finals: BTreeSet<&Vec<i64>> = values.iter().collect();
        let positive = finals.iter().filter(|values| satisfies(values)).count();
        let states = finals.iter().map(|values| {
            let mut state = String::new();
            for (name, value) in names.iter().zip(values.iter()) {
                let _ = write!(state, "{name}={value}; ");
            }
            escape(state.trim_end())
        });
        Outcome {
            file: source.file.name.clone(),
            test,
            model,
            condition: source.excerpt(property.span),
            quantifier,
            states: states.collect(),
            positive,
            negative: finals.len() - positive,
            reason,
            seconds,
        }
    }

    /// Whether the condition holds, if that is known.
    pub fn holds(&self) -> Option<bool> {
        let decided = match self.quantifier {
            Quantifier::Exists => (self.positive > 0).then_some(true),
            Quantifier::Never => (self.positive > 0).then_some(false),
            Quantifier::Forall => (self.negative > 0).then_some(false),
        };
        match (decided, &self.reason) {
            (Some(holds), _) => Some(holds),
            (None, None) => Some(self.quantifier != Quantifier::Exists),
            (None, Some(_)) => None,
        }
    }

    /// How many of the final states satisfy the proposition.
    pub fn observation(&self) -> Observation {
        match (self.positive, self.negative) {
            (0, _) => Observation::Never,
            (_, 0) => Observation::Always,
            _ => Observation::Sometimes,
        }
    }

    /// The summary for a terminal.
    pub fn text(&self, style: Style) -> String {
        let kind = match self.quantifier {
            Quantifier::Exists => "Allowed",
            Quantifier::Never => "Forbidden",
            Quantifier::Forall => "Required",
        };
        let test = escape(&self.test);
        let mut text = format!("Test {} {kind}\nStates {}\n", style.bold(&test), self.states.len());
        for state in self.states.iter().take(MOST_LISTED) {
            let _ = writeln!(text, "{state}");
        }
        if let Some(more) = self.states.len().checked_sub(MOST_LISTED + 1) {
            let _ = writeln!(text, "... and {} more", grouped(more as u64 + 1));
        }
        let verdict = match (self.holds(), &self.reason) {
            (Some(true), _) => style.good("Ok"),
            (Some(false), _) => style.bad("No"),
            (None, Some(reason)) => format!("{}: {reason}", style.unsure("Unknown")),
            (None, None) => style.unsure("Unknown"),
        };
        let incomplete = match (&self.reason, self.holds()) {
            (Some(reason), Some(_)) => format!(" (but not all final states were seen: {reason})"),
            _ => String::new(),
        };
        let _ = writeln!(
            text,
            "{verdict}{incomplete}\nWitnesses\nPositive: {} Negative: {}",
            self.positive, self.negative
        );
        let _ = writeln!(text, "Condition {}", escape(&self.condition));
        let observation = self.observation().name();
        let _ = writeln!(text, "Observation {test} {observation} {} {}", self.positive, self.negative);
        let _ = writeln!(text, "Time {test} {}", seconds(self.seconds));
        text
    }
}

#[derive(Serialize)]
struct Object<'a> {
    file: &'a str,
    test: &'a str,
    model: &'static str,
    condition: &'a str,
    holds: Option<bool>,
    observation: &'static str,
    states: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// All summaries as one JSON array.
pub fn json(outcomes: &[Outcome]) -> String {
    let objects: Vec<Object<'_>> = outcomes
        .iter()
        .map(|outcome| Object {
            file: &outcome.file,
            test: &outcome.test,
            model: outcome.model.name(),
            condition: &outcome.condition,
            holds: outcome.holds(),
            observation: outcome.observation().name(),
            states: outcome.states.len(),
            reason: outcome.reason.as_ref().map(ToString::to_string),
        })
        .collect();
    json::line(&objects)
}
