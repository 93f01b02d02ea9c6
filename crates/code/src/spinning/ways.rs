//! Symbolic execution of the paths from the head of a loop to its departures, with constant memory.

use std::rc::Rc;

use fencewright_program::{Action, Address, BinaryOp, Expr, LocationId, Op, Range, RegisterId, Thread};
use fencewright_text::Stop;
use rustc_hash::FxHashMap;

use super::is_quiet;
use super::relevance::Relevance;
use super::value::{Facts, Source, Value, size};

/// Maximum number of path prefixes that are explored from one head.
const MOST_PIECES: usize = 4_096;
/// Maximum number of paths to departures.
const MOST_WAYS: usize = 256;
/// Maximum number of steps of a path.
const LONGEST: usize = 200;
/// Maximum number of nodes of a symbolic value.
const LARGEST: usize = 100;
/// Maximum number of combinations of the values of all enumerated choices on a path.
const MOST_CHOICES: u64 = 1 << 10;

/// A loop of a thread: the locations of a strongly connected component.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub thread: &'a Thread,
    /// For each location of the thread, whether it is in the loop.
    pub inside: &'a [bool],
    pub relevance: &'a Relevance,
}

/// The departures that are possible from the head of a loop.
pub(super) enum Departures {
    /// A departure is always possible, or the thread does not return to the head without one.
    Always,
    /// A departure is possible exactly on these paths.
    Sometimes(Vec<Vec<Op>>),
}

/// A path under exploration. It writes to copies of registers, whose numbers are above those of the thread's own registers.
#[derive(Clone)]
pub(super) struct Way {
    pub at: LocationId,
    values: FxHashMap<RegisterId, Value>,
    pub facts: Facts,
    /// The path condition, without assertions.
    pub conditions: Vec<Value>,
    ops: Vec<Op>,
    /// The visited locations, with the values of their relevant registers; `None` at the start of the path.
    visited: Option<Rc<Visited>>,
    choices: Vec<Choice>,
}

/// The visited locations of a path, as a list from the last to the first. Paths share their common prefix.
struct Visited {
    at: LocationId,
    values: Vec<Value>,
    before: Option<Rc<Visited>>,
    length: usize,
}

/// A nondeterministic choice on a path.
#[derive(Clone, Copy)]
enum Choice {
    /// The choice stays in the operations of the path, so that engines enumerate its values; this is the number of values.
    Tried(u64),
    /// The choice has too many values to enumerate, and no condition depends on it yet.
    Free(Option<Range>),
    /// The path has one condition on the choice, and some value satisfies it.
    Made,
}

/// The result of extending a path by a step.
pub(super) enum Next {
    /// The extended path.
    Goes(Box<Way>),
    /// The step is disabled.
    Blocked,
    /// Unknown whether the step is enabled.
    Undecided,
}

impl Way {
    pub fn new(at: LocationId) -> Self {
        Way {
            at,
            values: FxHashMap::default(),
            facts: Facts::default(),
            conditions: Vec::new(),
            ops: Vec::new(),
            visited: None,
            choices: Vec::new(),
        }
    }

    /// The symbolic value of a register.
    pub fn value_of(&self, register: RegisterId) -> Value {
        match self.values.get(&register) {
            Some(value) => self.facts.folded(value.clone()),
            None => self.facts.of(Source::Register(register)),
        }
    }

    fn value(&self, e: &Expr<RegisterId>) -> Value {
        self.facts.folded(e.map(&mut |register| self.value_of(*register)))
    }

    /// Whether the path has visited its location before with the same values of the relevant registers; records the visit.
    fn has_been_visited(&mut self, part: Part<'_>) -> bool {
        let values: Vec<Value> = part.relevance.at(self.at).iter().map(|r| self.value_of(*r)).collect();
        let mut places = std::iter::successors(self.visited.as_deref(), |visited| visited.before.as_deref());
        if places.any(|visited| visited.at == self.at && visited.values == values) {
            return true;
        }
        let length = self.length() + 1;
        self.visited = Some(Rc::new(Visited { at: self.at, values, before: self.visited.take(), length }));
        false
    }

    fn length(&self) -> usize {
        self.visited.as_ref().map_or(0, |visited| visited.length)
    }

    /// The expression on copies of those registers that the path has written.
    fn copied(&self, part: Part<'_>, e: &Expr<RegisterId>) -> Expr<RegisterId> {
        e.map(&mut |register| match self.values.contains_key(register) {
            true => Expr::Leaf(copy_of(part, *register)),
            false => Expr::Leaf(*register),
        })
    }

    fn address(&self, part: Part<'_>, Address { variable, index }: &Address) -> (Address, Value) {
        let copied = index.as_ref().map(|index| self.copied(part, index));
        let index = index.as_ref().map(|index| Box::new(self.value(index)));
        let held = self.facts.of(Source::Memory(*variable, index));
        (Address { variable: *variable, index: copied }, held)
    }

    fn write(&mut self, part: Part<'_>, register: RegisterId, value: Value) -> RegisterId {
        self.values.insert(register, value);
        copy_of(part, register)
    }

    /// Adds a condition to the path. Returns whether the condition can hold; `None` if that is unknown.
    fn assume(&mut self, condition: Expr<RegisterId>, value: Value) -> Option<bool> {
        match value.constant() {
            Some(0) => return Some(false),
            Some(_) => return Some(true),
            None => {}
        }
        let mut chosen = Vec::new();
        for_each_source(&value, &mut |source| {
            if let Source::Chosen(n) = source {
                chosen.push(*n);
            }
        });
        chosen.dedup();
        match chosen.as_slice() {
            _ if chosen.iter().all(|n| matches!(self.choices[*n], Choice::Tried(_))) => {
                self.ops.push(Op::Assume(condition));
            }
            // The condition depends on one choice only. If no earlier condition depends on that choice, a sample value that satisfies the condition
            // shows that it can hold.
            [n] if is_about_choice(&value) => {
                let Choice::Free(range) = self.choices[*n] else { return None };
                if !samples(range, &value).into_iter().any(|sample| holds(&value, sample)) {
                    return None;
                }
                self.choices[*n] = Choice::Made;
            }
            _ => return None,
        }
        self.facts.learn(&value);
        self.conditions.push(value);
        Some(true)
    }
}

/// The copy of a register that a path writes to.
fn copy_of(part: Part<'_>, register: RegisterId) -> RegisterId {
    RegisterId(part.thread.registers.len() as u32 + register.0)
}

/// The register into which a path loads the present contents of a place, to compare them with the value of a store.
fn held_in(part: Part<'_>) -> RegisterId {
    RegisterId(2 * part.thread.registers.len() as u32)
}

fn for_each_source(value: &Value, visit: &mut dyn FnMut(&Source)) {
    value.for_each_leaf(&mut |source| {
        visit(source);
        if let Source::Memory(_, Some(index)) = source {
            for_each_source(index, visit);
        }
    });
}

fn is_about_choice(value: &Value) -> bool {
    let mut alone = true;
    for_each_source(value, &mut |source| alone &= matches!(source, Source::Chosen(_)));
    alone
}

/// Sample values for a choice, as far as they are in its range: its ends, and 0 and the constants in the condition with their neighbours.
fn samples(range: Option<Range>, condition: &Value) -> Vec<i64> {
    let mut numbers = vec![0];
    constants(condition, &mut numbers);
    let near = numbers.into_iter().flat_map(|n| [n.saturating_sub(1), n, n.saturating_add(1)]);
    let ends = range.into_iter().flat_map(|range| [range.low, range.high]);
    near.chain(ends).filter(|n| range.is_none_or(|range| range.contains(*n))).collect()
}

fn constants(value: &Value, out: &mut Vec<i64>) {
    match value {
        Expr::Const(number) => out.push(*number),
        Expr::Leaf(_) => {}
        Expr::Unary(_, a) => constants(a, out),
        Expr::Binary(_, a, b) => [a, b].into_iter().for_each(|part| constants(part, out)),
        Expr::If(a, b, c) => [a, b, c].into_iter().for_each(|part| constants(part, out)),
    }
}

fn holds(condition: &Value, chosen: i64) -> bool {
    condition.eval(&mut |_| chosen).is_ok_and(|value| value != 0)
}

/// Fixed cost of a path in units of work.
const PIECES_OF_A_WAY: usize = 32;

/// The departures from the head of a loop; `None` if a limit is reached or a condition is undecided.
pub(super) fn departures(part: Part<'_>, head: LocationId, stop: &Stop<'_>) -> Option<Departures> {
    let mut ways: Vec<Vec<Op>> = Vec::new();
    let mut open = vec![Way::new(head)];
    let (mut pieces, mut comes_back) = (0, false);
    while let Some(mut way) = open.pop() {
        pieces += 1;
        if pieces > MOST_PIECES || ways.len() > MOST_WAYS || way.length() > LONGEST {
            return None;
        }
        if stop.after(PIECES_OF_A_WAY + way.length()) {
            return None;
        }
        if way.has_been_visited(part) {
            comes_back = true;
            continue;
        }
        for (_, edge) in part.thread.edges_from(way.at) {
            let stays = part.inside[edge.to.index()];
            if !is_quiet(edge) {
                ways.push(way.ops.clone());
                continue;
            }
            match step(part, way.clone(), &edge.action, &mut ways) {
                Next::Blocked => {}
                Next::Undecided => return None,
                Next::Goes(mut next) if stays => {
                    next.at = edge.to;
                    open.push(*next);
                }
                Next::Goes(next) => ways.push(next.ops),
            }
        }
    }
    let is_free = |way: &Vec<Op>| !way.iter().any(|op| matches!(op, Op::Assume(_)));
    if !comes_back || ways.iter().any(is_free) {
        return Some(Departures::Always);
    }
    ways.sort_by_cached_key(|way| (way.len(), format!("{way:?}")));
    ways.dedup();
    Some(Departures::Sometimes(ways))
}

/// Extends a path by a step. Departures in the middle of the step are added to `departures`.
pub(super) fn step(part: Part<'_>, way: Way, action: &Action, departures: &mut Vec<Vec<Op>>) -> Next {
    let mut way = Box::new(way);
    let ops = action.ops();
    for (n, op) in ops.iter().enumerate() {
        match op {
            Op::Skip => {}
            Op::Assign(register, e) => {
                let value = way.value(e);
                if size(&value) > LARGEST {
                    return Next::Undecided;
                }
                let copied = way.copied(part, e);
                let copy = way.write(part, *register, value);
                way.ops.push(Op::Assign(copy, copied));
            }
            Op::Havoc(register, range) => {
                let tried = way.choices.iter().map(|choice| match choice {
                    Choice::Tried(values) => *values,
                    _ => 1,
                });
                let values = range.map_or(u64::MAX, Range::size);
                let is_small = tried.fold(values, u64::saturating_mul) <= MOST_CHOICES;
                way.choices.push(if is_small { Choice::Tried(values) } else { Choice::Free(*range) });
                let chosen = Expr::Leaf(Source::Chosen(way.choices.len() - 1));
                let copy = way.write(part, *register, chosen);
                if is_small {
                    way.ops.push(Op::Havoc(copy, *range));
                }
            }
            Op::Assume(e) => {
                let (copied, value) = (way.copied(part, e), way.value(e));
                match way.assume(copied, value) {
                    Some(true) => {}
                    Some(false) => return Next::Blocked,
                    None => return Next::Undecided,
                }
            }
            Op::Assert(e, _) => {
                let failed = e.clone().not();
                let (copied, value) = (way.copied(part, &failed), way.value(&failed));
                let mut fails = way.clone();
                match fails.assume(copied, value) {
                    Some(true) => departures.push(fails.ops),
                    Some(false) => {}
                    None => return Next::Undecided,
                }
                let (copied, value) = (way.copied(part, e), way.value(e));
                let conditions = way.conditions.len();
                match way.assume(copied, value) {
                    // The condition of an assertion is dropped again, because an assertion does not count as a bound of a counting loop.
                    Some(true) => way.conditions.truncate(conditions),
                    Some(false) => return Next::Blocked,
                    None => return Next::Undecided,
                }
            }
            Op::Load(register, address) => {
                let (copied, held) = way.address(part, address);
                if is_chosen(&way, &held) {
                    return Next::Undecided;
                }
                let copy = way.write(part, *register, held);
                way.ops.push(Op::Load(copy, copied));
            }
            Op::Store(address, e) => {
                // Memory is constant during the search, so a step that may read the value of this store later is undecided.
                if ops[n + 1..].iter().any(|op| matches!(op, Op::Assume(_) | Op::Assert(..) | Op::Load(..))) {
                    return Next::Undecided;
                }
                let (copied, held) = way.address(part, address);
                let (new, value) = (way.copied(part, e), way.value(e));
                if is_chosen(&way, &held) {
                    return Next::Undecided;
                }
                let there = held_in(part);
                let compare = |op| Expr::binary(op, Expr::Leaf(there), new.clone());
                let is_same = |op, way: &Way| way.facts.folded(Expr::binary(op, held.clone(), value.clone()));
                let mut changes = way.clone();
                changes.ops.push(Op::Load(there, copied.clone()));
                let condition = is_same(BinaryOp::Ne, &way);
                match changes.assume(compare(BinaryOp::Ne), condition) {
                    Some(true) => departures.push(changes.ops),
                    Some(false) => {}
                    None => return Next::Undecided,
                }
                way.ops.push(Op::Load(there, copied));
                let condition = is_same(BinaryOp::Eq, &way);
                match way.assume(compare(BinaryOp::Eq), condition) {
                    Some(true) => {}
                    Some(false) => return Next::Blocked,
                    None => return Next::Undecided,
                }
            }
        }
    }
    Next::Goes(way)
}

/// Whether a value depends on a choice that is not enumerated.
fn is_chosen(way: &Way, value: &Value) -> bool {
    let mut found = false;
    for_each_source(value, &mut |source| {
        found |= matches!(source, Source::Chosen(n) if !matches!(way.choices[*n], Choice::Tried(_)));
    });
    found
}
