//! Groups the steps of an execution into rows, so that a long execution is readable.
//!
//! Two kinds of steps are grouped. In neither case could other threads notice the difference:
//!
//! * A condition on a value that was just read joins the row of the read. It only evaluates registers, so it may be shown before steps that other
//!   threads take in between. Reads of the same statement are grouped if no step lies between them.
//! * Several iterations of a loop become one row that lists the changes. Either the iterations access only registers; or no other thread moves
//!   meanwhile and the thread's buffer is empty before and after them, so that other threads can observe only the result.
//!
//! If the front end lists source expressions that are shown as one step, all steps of a thread for one such expression are one row, unless another
//! thread moves between two of its accesses.
//!
//! Every step belongs to exactly one row, and each row has the indices of its steps.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use fencewright_program::reference::Access;
use fencewright_program::{Action, EventKind, Fault, FileId, LocationId, Op, Replayed, Span, ThreadId};

use crate::step::{Step, steps};
use crate::words::Source;

/// Minimum number of steps of a loop that is folded into one row.
const FEWEST_FOLDED: usize = 4;

/// Steps that are shown in one row.
pub struct Row {
    /// The indices of the steps, counted from 0, in order.
    pub steps: Vec<usize>,
    /// The loop, if the row consists of folded iterations.
    pub passes: Option<Passes>,
}

/// The iterations of a loop that one row stands for.
pub struct Passes {
    /// The number of iterations.
    pub times: usize,
    /// The file that contains the loop.
    pub file: FileId,
    /// The range of lines that the iterations execute.
    pub lines: RangeInclusive<usize>,
    /// Whether the iterations access memory, rather than registers only.
    pub touches_memory: bool,
}

/// The facts about a step that the grouping depends on.
struct Fact {
    thread: ThreadId,
    /// The number of the statement in [`Statements`]; `None` for a flush.
    statement: Option<usize>,
    /// The file and line of the statement.
    line: Option<(FileId, usize)>,
    kind: Kind,
    /// Whether the step reads memory or a buffer.
    reads: bool,
    from: LocationId,
    to: LocationId,
    /// Whether the thread's buffer is empty and the global lock is free: before the step, and after it.
    quiet: (bool, bool),
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Evaluates a condition on registers.
    Condition,
    /// Changes only registers.
    Local,
    /// Only reads: from memory or from the thread's own buffer.
    Read,
    /// Any other step.
    Other,
}

/// Numbers statements: spans of parts of the same statement get the same number.
#[derive(Default)]
struct Statements {
    known: HashMap<Span, (usize, usize)>,
    texts: HashMap<(FileId, usize, String), usize>,
    /// The numbers of the source expressions that are shown as one step, by their spans.
    expressions: HashMap<Span, usize>,
    count: usize,
}

impl Statements {
    /// The line and the number of the statement at a span.
    fn at(&mut self, source: Source<'_>, span: Span) -> (usize, usize) {
        *self.known.entry(span).or_insert_with(|| {
            let line = source.position(span).line;
            let next = &mut self.count;
            let number = || {
                *next += 1;
                *next
            };
            let number = match source.expression_around(span) {
                Some(whole) => *self.expressions.entry(whole.span).or_insert_with(number),
                None => *self.texts.entry((span.file, line, source.statement(span))).or_insert_with(number),
            };
            (line, number)
        })
    }
}

impl Fact {
    fn new(step: &Step<'_>, statements: &mut Statements) -> Self {
        let thread = step.event.thread;
        let t = thread.index();
        let kind = match &step.event.kind {
            EventKind::Flush { .. } => Kind::Other,
            EventKind::Step { edge, .. } => match &step.thread().edge(*edge).action {
                Action::Op(Op::Assume(_) | Op::Assert(_, Fault::Index)) if step.effect.is_empty() => {
                    Kind::Condition
                }
                Action::Op(_) if step.effect.is_empty() => Kind::Local,
                Action::Op(_) if step.effect.iter().all(|a| matches!(a, Access::Read { .. })) => Kind::Read,
                _ => Kind::Other,
            },
        };
        let quiet = |state: &fencewright_program::State| state.buffers[t].is_empty() && state.lock.is_none();
        let place = step.span().map(|span| (span.file, statements.at(step.source, span)));
        Fact {
            thread,
            statement: place.map(|(_, (_, statement))| statement),
            line: place.map(|(file, (line, _))| (file, line)),
            kind,
            reads: step.effect.iter().any(|a| matches!(a, Access::Read { .. })),
            from: step.before.locations[t],
            to: step.after.locations[t],
            quiet: (quiet(&step.before), quiet(&step.after)),
        }
    }

    fn is_local(&self) -> bool {
        matches!(self.kind, Kind::Condition | Kind::Local)
    }
}

/// The rows of an execution. They are ordered by their first steps; if the front end lists expressions that are shown as one step, a row of such an
/// expression is placed by its first step that does more than access registers. Steps with an index in `kept` are not folded.
pub fn rows(source: Source<'_>, replayed: &Replayed, kept: &[usize]) -> Vec<Row> {
    let mut statements = Statements::default();
    let facts: Vec<Fact> = steps(source, replayed).map(|step| Fact::new(&step, &mut statements)).collect();
    let mut rows = folded(&facts, kept);
    let mut covered = vec![false; facts.len()];
    rows.iter().flat_map(|row| &row.steps).for_each(|&n| covered[n] = true);
    // For each thread, the row that further steps of the same statement may join.
    let mut last: HashMap<ThreadId, usize> = HashMap::new();
    let whole = !source.facts.steps.is_empty();
    for (n, fact) in facts.iter().enumerate() {
        if covered[n] {
            last.remove(&fact.thread);
            continue;
        }
        let open = last.get(&fact.thread).copied().filter(|&row| {
            let steps = &rows[row].steps;
            if whole {
                return joins(&facts, steps, n);
            }
            let (first, previous) = (&facts[steps[0]], steps[steps.len() - 1]);
            // A second iteration of the statement gets a new row.
            let same = fact.statement.is_some()
                && facts[previous].statement == fact.statement
                && fact.from != first.from
                && (facts[previous].reads || facts[previous].kind == Kind::Condition);
            same && match fact.kind {
                Kind::Condition => true,
                Kind::Read => steps[0] + steps.len() == n,
                Kind::Local | Kind::Other => false,
            }
        });
        match open {
            Some(row) => rows[row].steps.push(n),
            None => {
                // After a flush, the thread keeps its current row: a flush has no statement, and no condition depends on it.
                if fact.statement.is_some() {
                    last.insert(fact.thread, rows.len());
                }
                rows.push(Row { steps: vec![n], passes: None });
            }
        }
    }
    rows.sort_by_key(|row| match row.passes {
        None if whole => first_visible(&facts, &row.steps).unwrap_or(row.steps[0]),
        _ => row.steps[0],
    });
    rows
}

/// The first of these steps that does more than access registers.
fn first_visible(facts: &[Fact], steps: &[usize]) -> Option<usize> {
    steps.iter().copied().find(|&step| !facts[step].is_local())
}

/// Whether step `n` can join a row that consists of `steps`, earlier steps of the same thread. It has to belong to the same source expression. In
/// addition, it accesses only registers, or no other thread has moved since the first of `steps` that accesses more than registers.
fn joins(facts: &[Fact], steps: &[usize], n: usize) -> bool {
    let fact = &facts[n];
    // If a loop returns to the expression, its steps get a new row.
    let same = fact.statement.is_some()
        && steps.iter().all(|&step| facts[step].statement == fact.statement && facts[step].from != fact.from);
    let undisturbed = || match first_visible(facts, steps) {
        None => true,
        Some(first) => steps.iter().filter(|&&step| step >= first).count() == n - first,
    };
    same && (fact.is_local() || undisturbed())
}

/// The rows of folded loops.
fn folded(facts: &[Fact], kept: &[usize]) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut covered = vec![false; facts.len()];
    kept.iter().for_each(|&n| covered[n] = true);
    // Iterations during which no other thread moves.
    let mut start = 0;
    for n in 0..=facts.len() {
        let goes_on =
            n < facts.len() && !covered[n] && (n == start || facts[n].thread == facts[start].thread);
        if !goes_on {
            let run: Vec<usize> = (start..n).collect();
            rows.extend(passes(facts, &run, |fact| fact.quiet));
            start = if n < facts.len() && covered[n] { n + 1 } else { n };
        }
    }
    rows.iter().flat_map(|row: &Row| &row.steps).for_each(|&n| covered[n] = true);
    // Iterations that access only registers.
    let mut runs: HashMap<ThreadId, Vec<usize>> = HashMap::new();
    let mut ended = Vec::new();
    for (n, fact) in facts.iter().enumerate() {
        let run = runs.entry(fact.thread).or_default();
        match covered[n] || !fact.is_local() {
            true => ended.push(std::mem::take(run)),
            false => run.push(n),
        }
    }
    for run in ended.into_iter().chain(runs.into_values()) {
        rows.extend(passes(facts, &run, |_| (true, true)));
    }
    rows
}

/// Folds a run of steps of one thread. Each fold extends from a location to the last return to this location. For a step, `may_be_cut` returns
/// whether a fold may begin before the step, and whether a fold may end after the step.
fn passes(facts: &[Fact], run: &[usize], may_be_cut: impl Fn(&Fact) -> (bool, bool)) -> Vec<Row> {
    let mut returns: HashMap<LocationId, usize> = HashMap::new();
    for (position, &n) in run.iter().enumerate() {
        if may_be_cut(&facts[n]).1 {
            returns.insert(facts[n].to, position);
        }
    }
    let mut rows = Vec::new();
    let mut position = 0;
    while position < run.len() {
        let first = &facts[run[position]];
        let back = returns.get(&first.from).copied().filter(|_| may_be_cut(first).0);
        let Some(back) = back.filter(|&back| back >= position + FEWEST_FOLDED - 1) else {
            position += 1;
            continue;
        };
        let steps = run[position..=back].to_vec();
        let here = |n: &&usize| facts[**n].to == first.from && may_be_cut(&facts[**n]).1;
        let times = steps.iter().filter(here).count();
        let places = steps.iter().filter_map(|&n| facts[n].line);
        let file = places.clone().next().map_or(FileId::MAIN, |(file, _)| file);
        let lines = places.filter(|place| place.0 == file).map(|(_, line)| line);
        let lines = lines.clone().min().unwrap_or(0)..=lines.max().unwrap_or(0);
        let touches_memory = steps.iter().any(|&n| !facts[n].is_local());
        rows.push(Row { steps, passes: Some(Passes { times, file, lines, touches_memory }) });
        position = back + 1;
    }
    rows
}

/// Indices of steps as numbers from 1, with consecutive numbers as ranges: `3`, `4-6`, `7-8,12`.
pub fn numbered(steps: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &step in steps {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == step => *last = step,
            _ => ranges.push((step, step)),
        }
    }
    let range = |(first, last): (usize, usize)| match first == last {
        true => (first + 1).to_string(),
        false => format!("{}-{}", first + 1, last + 1),
    };
    ranges.into_iter().map(range).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::numbered;

    #[test]
    fn numbers_are_ranges() {
        assert_eq!(numbered(&[0]), "1");
        assert_eq!(numbered(&[3, 4, 5]), "4-6");
        assert_eq!(numbered(&[6, 7, 11]), "7-8,12");
    }
}
