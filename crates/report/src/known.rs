//! The facts that a proof gives about each variable, at a program point and everywhere, for editors.
//!
//! An invariant gives bounds ([`invariants`](crate::invariants)). A set of states gives the values themselves, provided that it contains all
//! reachable states: a set that was reduced by partial orders or symmetry proves the properties, but lacks some reachable states.

use std::collections::{BTreeMap, BTreeSet};

use fencewright_certify::states::StateSet;
use fencewright_certify::{Certificate, Proof};
use fencewright_memory::{BufferMachine, Cell, CellId};
use fencewright_program::{LocationId, RegisterId, ThreadId};

use crate::invariants::{Executions, about_itself, bounds_at_points, facts_about, range_of};
use crate::words::Source;

/// Maximum number of values that are listed; if there are more, their range is shown.
const MOST_VALUES: usize = 8;

/// The facts about the variables of a program.
#[derive(Clone, Debug, Default)]
pub struct Known {
    points: BTreeMap<(ThreadId, LocationId), Vec<Fact>>,
    everywhere: BTreeMap<Cell, String>,
}

/// A fact that holds whenever the thread is at a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The cells that the fact mentions.
    pub cells: Vec<Cell>,
    /// The fact as it is shown.
    pub text: String,
}

impl Known {
    /// The facts at a location; `None` if the thread never reaches it.
    pub fn at(&self, thread: ThreadId, location: LocationId) -> Option<&[Fact]> {
        self.points.get(&(thread, location)).map(Vec::as_slice)
    }

    /// The fact about a memory cell or register that holds in every state; if the proof is a set of states, the fact about a register is about the
    /// states in which it is live.
    pub fn everywhere(&self, cell: Cell) -> Option<&str> {
        self.everywhere.get(&cell).map(String::as_str)
    }
}

/// The facts of an accepted certificate. `None` if its proof is not about all executions of this program itself, if it is a set without some of the
/// reachable states, or if `stop` ends the computation.
pub fn known(source: Source<'_>, certificate: &Certificate, stop: &dyn Fn() -> bool) -> Option<Known> {
    // A proof about a transformed program says nothing about this program's points, and a proof about some executions does not bound the values in
    // all of them.
    let (proof, Executions::All) = about_itself(source, certificate)? else { return None };
    match proof {
        Proof::Invariant(invariant) => {
            let machine = BufferMachine::new(source.program, invariant.machine.buffers());
            let cell = |id: &CellId| machine.cells.cell(*id);
            let (mut known, mut ranges) = (Known::default(), BTreeMap::<Cell, Range>::new());
            for ((thread, location), (cells, bounds)) in bounds_at_points(&machine, invariant) {
                for (n, id) in cells.iter().enumerate() {
                    let low = bounds.get(0, n + 1).and_then(i64::checked_neg);
                    let range = Range(low, bounds.get(n + 1, 0));
                    ranges.entry(cell(id)).and_modify(|known| known.join(range)).or_insert(range);
                }
                let facts = facts_about(&machine, &cells, &bounds).into_iter();
                let facts = facts.map(|(cells, text)| Fact { cells: cells.iter().map(cell).collect(), text });
                known.points.insert((ThreadId(thread as u32), location), facts.collect());
            }
            let in_words = |(cell, Range(low, high))| Some((cell, range_of(&name(source, cell), low, high)?));
            known.everywhere = ranges.into_iter().filter_map(in_words).collect();
            Some(known)
        }
        Proof::States(set) => is_complete(set).then(|| seen(source, set, stop)).flatten(),
    }
}

/// The least and the greatest value; `None` if there is no bound.
#[derive(Clone, Copy)]
struct Range(Option<i64>, Option<i64>);

impl Range {
    fn join(&mut self, other: Range) {
        self.0 = self.0.zip(other.0).map(|(a, b)| a.min(b));
        self.1 = self.1.zip(other.1).map(|(a, b)| a.max(b));
    }
}

/// Whether a set contains all reachable states: no abstraction or reduction was used.
fn is_complete(set: &StateSet) -> bool {
    set.abstraction.is_none()
        && set.versions.is_none()
        && set.persistent.is_none()
        && set.symmetry.is_empty()
        && set.local.iter().all(Vec::is_empty)
}

/// The values of each cell in a set of states, at each location and everywhere.
fn seen(source: Source<'_>, set: &StateSet, stop: &dyn Fn() -> bool) -> Option<Known> {
    let program = source.program;
    let states = set.states.unpacked(set.layout.words, stop).ok()?;
    type Values = BTreeMap<Cell, BTreeSet<i64>>;
    let mut points: BTreeMap<(ThreadId, LocationId), Values> = BTreeMap::new();
    for (n, state) in states.chunks(set.layout.words).enumerate() {
        if n % 1_024 == 0 && stop() {
            return None;
        }
        for (t, thread) in program.threads.iter().enumerate() {
            let id = ThreadId(t as u32);
            let location = LocationId(u32::try_from(set.layout.locations[t].get(state)).ok()?);
            let values = points.entry((id, location)).or_default();
            for (cell, field) in (0..).zip(&set.layout.memory).filter(|(cell, _)| source.shows(*cell)) {
                values.entry(Cell::Memory(cell)).or_default().insert(field.get(state));
            }
            for &r in set.live.get(t)?.get(location.index())? {
                if (r as usize) < thread.registers.len() && source.register(id, RegisterId(r)).is_some() {
                    let value = set.layout.registers[t][r as usize].get(state);
                    values.entry(Cell::Register(id, RegisterId(r))).or_default().insert(value);
                }
            }
        }
    }
    let (mut known, mut all) = (Known::default(), Values::new());
    for (point, values) in points {
        let fact = |(cell, values): (&Cell, &BTreeSet<i64>)| Fact {
            cells: vec![*cell],
            text: in_words(source, *cell, values),
        };
        known.points.insert(point, values.iter().map(fact).collect());
        values.into_iter().for_each(|(cell, values)| all.entry(cell).or_default().extend(values));
    }
    known.everywhere =
        all.into_iter().map(|(cell, values)| (cell, in_words(source, cell, &values))).collect();
    Some(known)
}

/// A fact such as `x == 1`, `x is 0 or 2`, `0 <= x <= 20`.
fn in_words(source: Source<'_>, cell: Cell, values: &BTreeSet<i64>) -> String {
    let kind = match cell {
        Cell::Register(thread, register) => source.register_kind(thread, register),
        Cell::Memory(cell) | Cell::Entry(_, cell) | Cell::Last(_, cell) | Cell::Forgotten(_, cell) => {
            source.cell_kind(cell)
        }
    };
    values_in_words(&name(source, cell), values, |value| source.value(kind, value))
}

fn values_in_words(name: &str, values: &BTreeSet<i64>, in_words: impl Fn(i64) -> String) -> String {
    let (low, high) = (values.first().copied(), values.last().copied());
    if values.len() < 2 || values.len() > MOST_VALUES {
        return match (low, low.map(&in_words)) {
            (Some(number), Some(word)) if values.len() == 1 && word != number.to_string() => {
                format!("{name} == {word}")
            }
            _ => range_of(name, low, high).unwrap_or_default(),
        };
    }
    let values: Vec<String> = values.iter().map(|value| in_words(*value)).collect();
    let (last, others) = values.split_last().expect("there are at least two");
    format!("{name} is {} or {last}", others.join(", "))
}

fn name(source: Source<'_>, cell: Cell) -> String {
    match cell {
        Cell::Register(id, register) => {
            let thread = source.program.thread(id);
            let name = source.register(id, register);
            let name = name.unwrap_or_else(|| thread.registers[register.index()].name.clone());
            format!("{}.{name}", thread.name)
        }
        Cell::Memory(cell) | Cell::Entry(_, cell) | Cell::Last(_, cell) | Cell::Forgotten(_, cell) => {
            source.cell(cell)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencewright_engines::cegar::Cegar;
    use fencewright_engines::explicit::{Explicit, Options, Reduction};
    use fencewright_engines::{Confirm, Engine, Limits, Progress, Task, check};
    use fencewright_lang::{Loaded, load};
    use fencewright_program::MemoryModel;

    const COUNTER: &str = "shared x, y = 5;
        thread p { var r; r = x; x = 1; }
        thread q { y = 7; }
        invariant small: x <= 1;";

    fn loaded() -> Loaded {
        load("counter.fw", COUNTER.as_bytes(), None, &[]).expect("it is a program")
    }

    fn from(loaded: &Loaded, engine: &dyn Engine) -> Option<Known> {
        let task = Task::new(&loaded.program, MemoryModel::Tso, loaded.program.properties.clone());
        let checked = check(engine, &task, &Limits::default(), &Progress::default(), Confirm::default());
        known(Source::from(loaded), checked[0].certificate().expect("a certificate"), &|| false)
    }

    #[test]
    fn values_from_all_states() {
        let loaded = loaded();
        let options = Options {
            reduction: Reduction::None,
            symmetry: false,
            live_variables: false,
            certificates: true,
            ..Options::default()
        };
        let known = from(&loaded, &Explicit { options }).expect("all states");
        assert_eq!(known.everywhere(Cell::Memory(0)), Some("x is 0 or 1"));
        assert_eq!(known.everywhere(Cell::Memory(1)), Some("y is 5 or 7"));
        assert_eq!(known.everywhere(Cell::Register(ThreadId(0), RegisterId(0))), Some("p.r == 0"));
        let entry = loaded.program.threads[0].entry;
        let facts = known.at(ThreadId(0), entry).expect("the thread starts there");
        assert_eq!(facts[0], Fact { cells: vec![Cell::Memory(0)], text: "x == 0".into() });
        let reduced = Explicit { options: Options { certificates: true, ..Options::default() } };
        assert!(from(&loaded, &reduced).is_none(), "states are missing there");
    }

    #[test]
    fn bounds_from_an_invariant() {
        let loaded = loaded();
        let known = from(&loaded, &Cegar::default()).expect("an invariant");
        let everywhere = known.everywhere(Cell::Memory(0)).expect("a bound");
        assert!(everywhere.ends_with("x <= 1"), "{everywhere}");
        let entry = loaded.program.threads[0].entry;
        let facts = known.at(ThreadId(0), entry).expect("the thread starts there");
        assert!(facts.iter().any(|fact| fact.text == "x == 0"), "{facts:?}");
    }

    #[test]
    fn few_values_are_named() {
        let words = |values: &[i64]| {
            values_in_words("x", &values.iter().copied().collect(), |value| value.to_string())
        };
        assert_eq!(words(&[3]), "x == 3");
        assert_eq!(words(&[1, 2, 7]), "x is 1, 2 or 7");
        assert_eq!(words(&(0..20).collect::<Vec<_>>()), "0 <= x <= 19");
    }
}
