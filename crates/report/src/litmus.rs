//! The final states of litmus tests, summarised as herd does.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write as _};

use fencewright_lang::Loaded;
use fencewright_lang::import::ShownPlace;
use fencewright_lang::source::escape;
use fencewright_program::{
    Expr, Formula, LocationId, MemoryModel, Observable, Program, Property, PropertyKind, Quantifier,
    RegisterId, Thread,
};
use serde::Serialize;

use crate::json::{self, Failure};
use crate::style::Style;
use crate::words::{Source, grouped, observable_name};

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

/// A value in a final state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Signed(i64),
    /// A number that is read as unsigned.
    Unsigned(u64),
    /// The address of a location.
    Address(String),
}

impl Value {
    /// The lowest bits of a number, read as signed or not.
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

/// A final state, as far as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The values, in the order of [`Outcome::names`].
    pub values: Vec<Value>,
    /// Whether it satisfies the proposition; not known if that cannot be computed in 64 bits.
    pub satisfies: Option<bool>,
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
    /// The condition as herd would write it.
    pub normal_condition: String,
    /// Which final states must satisfy it.
    pub quantifier: Quantifier,
    /// What is shown of final states.
    pub names: Vec<String>,
    /// The final states that the filter lets pass, sorted.
    pub states: Vec<State>,
    /// Why not all final states were seen.
    pub reason: Option<String>,
    /// How long it took.
    pub seconds: f64,
}

/// The final states that a search has found.
pub struct Finals {
    /// The values of what [`View::observed`] names.
    pub values: Vec<Vec<i64>>,
    /// Why there may be more.
    pub reason: Option<String>,
    /// How long it took.
    pub seconds: f64,
}

/// What a search must look at in final states, and how that is shown.
pub struct View {
    /// What a search must look at.
    pub observed: Vec<Observable>,
    columns: Vec<Column>,
    filter: Option<Expr<usize>>,
    proposition: Expr<usize>,
}

/// Something that is shown of final states.
struct Column {
    name: String,
    value: ColumnValue,
}

enum ColumnValue {
    /// The lowest bits of something that is observed.
    Observed {
        position: usize,
        bits: u32,
        signed: bool,
    },
    Address(String),
}

impl View {
    /// What the condition of a test looks at, and for a litmus test what it asks to show. The property must be a `finally`.
    pub fn new(loaded: &Loaded, property: &Property) -> Self {
        let mut observing = Observing::default();
        let mut columns = Vec::new();
        if let Some(view) = &loaded.view {
            for shown in &view.shown {
                let (bits, signed) = (shown.bits, shown.signed);
                let value = match &shown.place {
                    ShownPlace::Address(location) => ColumnValue::Address(location.clone()),
                    place => {
                        let position = observing.position(&observable(&loaded.program, place));
                        ColumnValue::Observed { position, bits, signed }
                    }
                };
                columns.push(Column { name: shown.name.clone(), value });
            }
        }
        let filter = loaded.filter.as_ref().map(|f| observing.formula(f));
        let proposition = observing.formula(property.formula().unwrap_or(&Expr::Const(1)));
        if loaded.view.is_none() {
            for (position, observable) in observing.observed.iter().enumerate() {
                let value = ColumnValue::Observed { position, bits: 64, signed: true };
                columns.push(Column { name: observable_name(&loaded.program, observable), value });
            }
        }
        if observing.observed.is_empty() {
            // The condition looks at nothing, but it matters whether there is a final state.
            let ends = |thread: &Thread| {
                let locations = (0..thread.locations.len() as u32).map(LocationId);
                locations.filter(|&location| thread.is_end(location)).collect()
            };
            let mut threads = loaded.program.threads();
            observing.observed.extend(threads.next().map(|(id, thread)| Observable::At(id, ends(thread))));
        }
        View { observed: observing.observed, columns, filter, proposition }
    }

    /// What the values that were observed in a final state look like; nothing if the filter holds it back.
    fn state(&self, values: &[i64]) -> Option<State> {
        let truth = |formula: &Expr<usize>| formula.eval(&mut |&n| values[n]).ok().map(|v| v != 0);
        let passes = self.filter.as_ref().map_or(Some(true), truth);
        let shown = |column: &Column| match &column.value {
            ColumnValue::Observed { position, bits, signed } => Value::new(values[*position], *bits, *signed),
            ColumnValue::Address(location) => Value::Address(location.clone()),
        };
        let satisfies = passes.and_then(|_| truth(&self.proposition));
        (passes != Some(false)).then(|| State { values: self.columns.iter().map(shown).collect(), satisfies })
    }
}

/// What formulas look at, each thing once.
#[derive(Default)]
struct Observing {
    observed: Vec<Observable>,
    positions: HashMap<Observable, usize>,
}

impl Observing {
    fn position(&mut self, observable: &Observable) -> usize {
        *self.positions.entry(observable.clone()).or_insert_with(|| {
            self.observed.push(observable.clone());
            self.observed.len() - 1
        })
    }

    fn formula(&mut self, formula: &Formula) -> Expr<usize> {
        formula.map(&mut |o| Expr::Leaf(self.position(o)))
    }
}

/// What a litmus test shows, as the program knows it.
fn observable(program: &Program, place: &ShownPlace) -> Observable {
    let found = match place {
        ShownPlace::Memory(name) => {
            program.variables.iter().find(|v| v.name == *name).map(|v| Observable::Memory(v.base))
        }
        ShownPlace::Register(thread, register) => program
            .threads()
            .find(|(_, t)| t.name == *thread)
            .and_then(|(id, t)| Some((id, t.registers.iter().position(|r| r.name == *register)?)))
            .map(|(id, register)| Observable::Register(id, RegisterId(register as u32))),
        ShownPlace::Address(_) => None,
    };
    found.expect("the importer has made the variables that it shows")
}

impl Outcome {
    /// Summarises the final states that were found. The property must be a `finally`.
    pub fn new(
        loaded: &Loaded,
        test: String,
        model: MemoryModel,
        property: &Property,
        view: &View,
        found: Finals,
    ) -> Self {
        let PropertyKind::Finally(quantifier, _) = property.kind else {
            unreachable!("only `finally` properties are conditions of litmus tests")
        };
        let source = Source::from(loaded);
        // States that look the same are one: satisfied if one of them is, since the filter may look at more than is shown.
        let mut states: BTreeMap<Vec<Value>, Option<bool>> = BTreeMap::new();
        for State { values, satisfies } in found.values.iter().filter_map(|v| view.state(v)) {
            let known = states.entry(values).or_insert(satisfies);
            *known = known.or(satisfies);
        }
        let states = states.into_iter().map(|(values, satisfies)| State { values, satisfies }).collect();
        let condition = source.excerpt(property.span);
        let normal = loaded.view.as_ref().map(|v| v.condition.clone());
        Outcome {
            file: loaded.sources.name().to_owned(),
            test,
            model,
            normal_condition: normal.unwrap_or_else(|| condition.clone()),
            condition,
            quantifier,
            names: view.columns.iter().map(|c| c.name.clone()).collect(),
            states,
            reason: found.reason,
            seconds: found.seconds,
        }
    }

    /// How many final states satisfy the proposition (`Some(true)`), do not, or might.
    fn count(&self, satisfies: Option<bool>) -> usize {
        self.states.iter().filter(|s| s.satisfies == satisfies).count()
    }

    /// How many final states satisfy the proposition.
    pub fn positive(&self) -> usize {
        self.count(Some(true))
    }

    /// How many final states do not satisfy the proposition.
    pub fn negative(&self) -> usize {
        self.count(Some(false))
    }

    /// Whether there may be final states that nothing is known of: not seen, or beyond 64 bits.
    fn is_incomplete(&self) -> bool {
        self.reason.is_some() || self.count(None) > 0
    }

    /// Whether the condition holds, if that is known.
    pub fn holds(&self) -> Option<bool> {
        let decided = match self.quantifier {
            Quantifier::Exists => (self.positive() > 0).then_some(true),
            Quantifier::Never => (self.positive() > 0).then_some(false),
            Quantifier::Forall => (self.negative() > 0).then_some(false),
        };
        decided.or_else(|| (!self.is_incomplete()).then_some(self.quantifier != Quantifier::Exists))
    }

    /// How many of the final states satisfy the proposition, if that is known.
    pub fn observation(&self) -> Option<Observation> {
        match (self.positive(), self.negative()) {
            (1.., 1..) => Some(Observation::Sometimes),
            _ if self.is_incomplete() => None,
            (0, _) => Some(Observation::Never),
            (_, 0) => Some(Observation::Always),
        }
    }

    /// Why not everything is known.
    fn doubt(&self) -> Option<String> {
        let beyond = (self.count(None) > 0)
            .then(|| "the condition cannot be computed in 64 bits in some final state".to_owned());
        self.reason.clone().or(beyond)
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
        let verdict = match (self.holds(), self.doubt()) {
            (Some(true), _) => style.good("Ok"),
            (Some(false), _) => style.bad("No"),
            (None, Some(doubt)) => format!("{}: {doubt}", style.unsure("Unknown")),
            (None, None) => style.unsure("Unknown"),
        };
        let (positive, negative) = (self.positive(), self.negative());
        let _ = writeln!(text, "{verdict}\nWitnesses\nPositive: {positive} Negative: {negative}");
        if let (Some(doubt), Some(_)) = (self.doubt(), self.holds()) {
            let _ = writeln!(text, "Not all final states were seen: {doubt}");
        }
        let _ = writeln!(text, "Condition {}", escape(&self.normal_condition));
        let observation = self.observation().map_or("Unknown", Observation::name);
        let _ = writeln!(text, "Observation {test} {observation} {positive} {negative}");
        let _ = writeln!(text, "Time {test} {:.2}", self.seconds);
        text
    }
}

/// What `fencewright litmus` says about one file.
pub enum Entry {
    /// A test and one of its conditions.
    Outcome(Box<Outcome>),
    /// A file that is no test.
    Failure(Failure),
}

#[derive(Serialize)]
struct Object<'a> {
    file: &'a str,
    test: &'a str,
    model: &'static str,
    condition: &'a str,
    holds: Option<bool>,
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

/// An object with the names as keys.
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
            holds: outcome.holds(),
            observation: outcome.observation().map(Observation::name),
            states: outcome.states.len(),
            final_states: outcome.states.iter().map(state).collect(),
            reason: outcome.doubt(),
        }
    }
}

/// All summaries as one JSON array.
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
