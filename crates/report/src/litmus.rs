//! The final states of litmus tests, in the output format of herd.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use fencewright_engines::{Condition, Doubt, FinalState, FinalStates, Observation};
use fencewright_lang::Loaded;
use fencewright_lang::import::{Shown, ShownPlace};
use fencewright_lang::source::escape;
use fencewright_program::{MemoryModel, Observable, Program, Property, Quantifier, RegisterId};
use serde::Serialize;

use crate::json::{self, Failure};
use crate::style::Style;
use crate::words::{self, Source, grouped, observable_name};

/// Maximum number of final states that are listed.
const MOST_LISTED: usize = 1_000;

/// A value in a final state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A signed number.
    Signed(i64),
    /// An unsigned number.
    Unsigned(u64),
    /// The address of a location, by the location's name.
    Address(String),
}

impl Value {
    /// The lowest `bits` bits of a number, sign-extended or zero-extended.
    fn new(number: i64, bits: u32, signed: bool) -> Self {
        let unused = 64 - bits;
        match signed {
            true => Value::Signed(number << unused >> unused),
            false => Value::Unsigned((number as u64) << unused >> unused),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Signed(number) => write!(f, "{number}"),
            Value::Unsigned(number) => write!(f, "{number}"),
            Value::Address(location) => write!(f, "{location}"),
        }
    }
}

/// A final state, restricted to the observables that the test shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// One value for each of [`Outcome::names`], in that order.
    pub values: Vec<Value>,
    /// Whether the state satisfies the condition; `None` if a value does not fit 64 bits.
    pub satisfies: Option<bool>,
}

/// The result of a litmus test under one memory model.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The name of the file.
    pub file: String,
    /// The name of the test.
    pub test: String,
    /// The memory model of the search.
    pub model: MemoryModel,
    /// The condition as the file states it.
    pub condition: String,
    /// The condition in herd's notation; as the file states it, if the file is not a litmus test.
    pub normal_condition: String,
    /// The quantifier of the condition.
    pub quantifier: Quantifier,
    /// The names of the values that are shown.
    pub names: Vec<String>,
    /// The final states that pass the filter, sorted.
    pub states: Vec<State>,
    /// The exploration's answer about the condition.
    pub found: FinalStates,
    /// The duration of the search, in seconds.
    pub seconds: f64,
}

/// A litmus test: its condition, and the presentation of its final states.
pub struct Test<'a> {
    /// The question for the engine.
    pub condition: Condition<'a>,
    loaded: &'a Loaded,
    property: &'a Property,
    model: MemoryModel,
    columns: Vec<Column>,
}

/// A value that is shown for each final state.
struct Column {
    name: String,
    value: ColumnValue,
}

enum ColumnValue {
    /// The low bits of an observable, whose value is at index `position` in a final state.
    Observed {
        position: usize,
        bits: u32,
        signed: bool,
    },
    Address(String),
}

impl<'a> Test<'a> {
    /// A `finally` property as a test; `None` if the property is not a `finally`. The values shown are those that a litmus file asks for; in other
    /// languages, all observables of the property.
    pub fn new(loaded: &'a Loaded, property: &'a Property, model: MemoryModel) -> Option<Self> {
        let program = &loaded.program;
        let places = loaded.view.iter().flat_map(|view| &view.shown);
        let shown = places.filter_map(|shown| observable(program, &shown.place));
        let condition = Condition::new(program, model, property, loaded.filter.as_ref(), shown)?;
        let column = |shown: &Shown| {
            let (bits, signed) = (shown.bits, shown.signed);
            let value = match (&shown.place, observable(program, &shown.place)) {
                (ShownPlace::Address(location), _) => ColumnValue::Address(location.clone()),
                (_, observable) => {
                    let position = observable.and_then(|o| condition.position(&o));
                    let position = position.expect("the condition observes what is shown");
                    ColumnValue::Observed { position, bits, signed }
                }
            };
            Column { name: shown.name.clone(), value }
        };
        let columns = match &loaded.view {
            Some(view) => view.shown.iter().map(column).collect(),
            None => {
                let whole = |(position, observable)| {
                    let value = ColumnValue::Observed { position, bits: 64, signed: true };
                    Column { name: observable_name(program, observable), value }
                };
                condition.looked_at().iter().enumerate().map(whole).collect()
            }
        };
        Some(Test { condition, loaded, property, model, columns })
    }

    /// Summarises the final states. States with the same shown values are merged. The merged state satisfies the condition if one of these states
    /// does, and violates the condition only if all of them are known to violate it.
    pub fn outcome(&self, test: String, found: FinalStates, seconds: f64) -> Outcome {
        let mut states: BTreeMap<Vec<Value>, Option<bool>> = BTreeMap::new();
        for FinalState { values, satisfies } in found.states() {
            let shown = self.columns.iter().map(|column| column.value(values)).collect();
            let known = states.entry(shown).or_insert(*satisfies);
            *known = match (*known, *satisfies) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (None, _) | (_, None) => None,
                (Some(false), Some(false)) => Some(false),
            };
        }
        let states = states.into_iter().map(|(values, satisfies)| State { values, satisfies }).collect();
        let condition = Source::from(self.loaded).excerpt(self.property.span);
        let normal = self.loaded.view.as_ref().map(|v| v.condition.clone());
        Outcome {
            file: self.loaded.sources.name().to_owned(),
            test,
            model: self.model,
            normal_condition: normal.unwrap_or_else(|| condition.clone()),
            condition,
            quantifier: self.condition.quantifier(),
            names: self.columns.iter().map(|c| c.name.clone()).collect(),
            states,
            found,
            seconds,
        }
    }
}

impl Column {
    /// The value of this column in a final state whose observables have these values.
    fn value(&self, values: &[i64]) -> Value {
        match &self.value {
            ColumnValue::Observed { position, bits, signed } => Value::new(values[*position], *bits, *signed),
            ColumnValue::Address(location) => Value::Address(location.clone()),
        }
    }
}

/// The observable of the program for a shown value; `None` for an address, which is constant.
fn observable(program: &Program, place: &ShownPlace) -> Option<Observable> {
    let found = match place {
        ShownPlace::Memory(name) => {
            program.variables.iter().find(|v| v.name == *name).map(|v| Observable::Memory(v.base))
        }
        ShownPlace::Register(thread, register) => program
            .threads()
            .find(|(_, t)| t.name == *thread)
            .and_then(|(id, t)| Some((id, t.registers.iter().position(|r| r.name == *register)?)))
            .map(|(id, register)| Observable::Register(id, RegisterId(register as u32))),
        ShownPlace::Address(_) => return None,
    };
    Some(found.expect("the importer has made the variables that it shows"))
}

/// How often final states satisfy the condition, in herd's words: always, sometimes or never.
fn observation(found: &FinalStates) -> Option<&'static str> {
    found.observation().map(|observation| match observation {
        Observation::Always => "Always",
        Observation::Sometimes => "Sometimes",
        Observation::Never => "Never",
    })
}

/// The reason why the answer is incomplete, as a sentence.
fn words(doubt: &Doubt) -> String {
    match doubt {
        Doubt::EndedWhenDecided => "the search ended when the condition was decided".into(),
        Doubt::Unseen(reason) => words::reason(reason),
        Doubt::NotComputable => "the condition cannot be computed in 64 bits in some final state".into(),
    }
}

impl Outcome {
    /// The number of shown final states that satisfy the condition or, if `satisfies` is false, violate it.
    fn count(&self, satisfies: bool) -> usize {
        self.states.iter().filter(|s| s.satisfies == Some(satisfies)).count()
    }

    /// The reason why the answer is incomplete, if it is.
    fn doubt(&self) -> Option<String> {
        self.found.doubt().as_ref().map(words)
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
            let values = self.names.iter().zip(&state.values);
            let values: Vec<String> = values.map(|(name, value)| format!("{name}={value};")).collect();
            let _ = writeln!(text, "{}", escape(&values.join(" ")));
        }
        if let Some(more) = self.states.len().checked_sub(MOST_LISTED + 1) {
            let _ = writeln!(text, "... and {} more", grouped(more as u64 + 1));
        }
        let verdict = match (self.found.holds(), self.doubt()) {
            (Some(true), _) => style.good("Ok"),
            (Some(false), _) => style.bad("No"),
            (None, Some(doubt)) => format!("{}: {doubt}", style.unsure("Unknown")),
            (None, None) => style.unsure("Unknown"),
        };
        let (positive, negative) = (self.count(true), self.count(false));
        let _ = writeln!(text, "{verdict}\nWitnesses\nPositive: {positive} Negative: {negative}");
        if let (Some(doubt), Some(_)) = (self.doubt(), self.found.holds()) {
            let _ = writeln!(text, "Not all final states were seen: {doubt}");
        }
        if self.found.checked() == Some(false) {
            text.push_str("Not confirmed: this stands on the engine alone\n");
        }
        let _ = writeln!(text, "Condition {}", escape(&self.normal_condition));
        let observation = observation(&self.found).unwrap_or("Unknown");
        let _ = writeln!(text, "Observation {test} {observation} {positive} {negative}");
        let _ = writeln!(text, "Time {test} {:.2}", self.seconds);
        text
    }
}

/// The output of `fencewright litmus` for one condition of a file.
pub enum Entry {
    /// The result of a condition.
    Outcome(Box<Outcome>),
    /// A file that is not a litmus test.
    Failure(Failure),
}

#[derive(Serialize)]
struct Object<'a> {
    file: &'a str,
    test: &'a str,
    model: &'static str,
    condition: &'a str,
    holds: Option<bool>,
    checked: Option<bool>,
    observation: Option<&'static str>,
    states: usize,
    final_states: Vec<StateObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize)]
struct StateObject<'a> {
    #[serde(serialize_with = "by_name")]
    values: (&'a [String], &'a [Value]),
    satisfies: Option<bool>,
}

/// Serialises values as an object with the names as keys.
fn by_name<S: serde::Serializer>(
    (names, values): &(&[String], &[Value]),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(names.iter().zip(values.iter()))
}

impl<'a> From<&'a Outcome> for Object<'a> {
    fn from(outcome: &'a Outcome) -> Self {
        let state =
            |s: &'a State| StateObject { values: (&outcome.names, &s.values), satisfies: s.satisfies };
        Object {
            file: &outcome.file,
            test: &outcome.test,
            model: outcome.model.name(),
            condition: &outcome.condition,
            holds: outcome.found.holds(),
            checked: outcome.found.checked(),
            observation: observation(&outcome.found),
            states: outcome.states.len(),
            final_states: outcome.states.iter().map(state).collect(),
            reason: outcome.doubt(),
        }
    }
}

/// All results as one JSON array.
pub fn json(entries: &[Entry]) -> String {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Element<'a> {
        Outcome(Object<'a>),
        Failure(&'a Failure),
    }
    let elements: Vec<Element<'_>> = entries
        .iter()
        .map(|entry| match entry {
            Entry::Outcome(outcome) => Element::Outcome(Object::from(&**outcome)),
            Entry::Failure(failure) => Element::Failure(failure),
        })
        .collect();
    json::line(&elements)
}
