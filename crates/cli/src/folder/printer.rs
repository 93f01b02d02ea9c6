//! Prints the table. Programs are in order: the rows of a program are printed after all rows of earlier programs. A row waits only briefly for the
//! rows of earlier properties of its program; after that, rows are printed in the order in which they arrive.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use fencewright::folder::{Asked, Event};
use fencewright_report::table::{Row, Summary, Table};

use crate::gathered::Gathered;
use crate::output::{Output, complain};
use crate::status::Status;
use crate::{progress, stop};

/// Maximum time an answer waits for the answers about earlier properties of its program, so that rows of quickly decided programs are always in the
/// same order.
const PATIENCE: Duration = Duration::from_millis(500);

/// Verdicts, the worst first.
const WORST_FIRST: [&str; 3] = ["unsafe", "unknown", "safe"];

/// An outcome, as it is printed.
pub struct Line {
    pub row: Box<Row>,
    /// The outcome as JSON.
    pub json: String,
    pub status: Status,
}

/// Outcomes of a question that have not been printed yet.
#[derive(Default)]
struct Waiting {
    answers: BTreeMap<usize, Line>,
    /// The indices of the properties whose rows have been printed.
    printed: BTreeSet<usize>,
    /// The time since which there has always been a waiting answer; `None` if there is none.
    since: Option<Instant>,
    /// The number of properties, once it is known.
    of: usize,
    /// The index of the worst printed verdict in [`WORST_FIRST`].
    worst: Option<usize>,
    /// Whether the worst verdict has been compared with the expected one.
    compared: bool,
    gathered: Option<Vec<Gathered>>,
}

/// Prints rows, and counts them.
pub struct Printer<'a> {
    pub json: bool,
    pub table: Table,
    pub summary: Summary,
    pub status: Status,
    pub gathered: &'a mut Gathered,
    pub out: &'a mut Output,
}

impl Printer<'_> {
    pub fn begin(&mut self) {
        if !self.json {
            self.out.print(&self.table.heading());
            self.out.flush();
        }
    }

    /// Prints the outcomes in the order of the questions; `done` is called with the number of finished questions.
    pub fn print_all(
        &mut self,
        questions: &[Asked],
        told: Receiver<(usize, Event<Line, Gathered>)>,
        done: impl Fn(usize),
    ) {
        let mut waiting: BTreeMap<usize, Waiting> = BTreeMap::new();
        let (mut printed, mut ended) = (0, 0);
        loop {
            let since = waiting.get(&printed).and_then(|first| first.since);
            let arrived = match since {
                Some(since) => told.recv_timeout(PATIENCE.saturating_sub(since.elapsed())),
                None => told.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match arrived {
                Ok((n, Event::Answer { property, of, line })) => {
                    let question = waiting.entry(n).or_default();
                    question.of = of;
                    question.since.get_or_insert_with(Instant::now);
                    question.answers.insert(property, line);
                }
                Ok((n, Event::Done(gathered))) => {
                    waiting.entry(n).or_default().gathered = Some(gathered);
                    ended += 1;
                    done(ended);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while let Some(first) = waiting.get_mut(&printed) {
                self.go_on(&questions[printed], first);
                let Some(gathered) = first.gathered.take() else { break };
                gathered.into_iter().for_each(|part| self.gathered.append(part));
                waiting.remove(&printed);
                printed += 1;
            }
        }
    }

    /// Prints the waiting answers to a question that are next in the order of the properties; or all of them, if the first has waited long enough or
    /// the question is finished.
    fn go_on(&mut self, question: &Asked, waiting: &mut Waiting) {
        let is_over = waiting.gathered.is_some();
        let is_late = |waiting: &Waiting| waiting.since.is_some_and(|since| since.elapsed() >= PATIENCE);
        loop {
            let next = waiting.printed.iter().zip(0..).take_while(|(printed, n)| *printed == n).count();
            let hurries = is_over || is_late(waiting);
            // A property that has been printed may get a second answer, if another engine contradicts the first one.
            let is_due = |property: usize| hurries || property <= next || waiting.printed.contains(&property);
            let Some(property) = waiting.answers.keys().copied().find(|property| is_due(*property)) else {
                break;
            };
            let Some(answer) = waiting.answers.remove(&property) else { break };
            waiting.printed.insert(property);
            self.print(question, answer, waiting);
        }
        if waiting.answers.is_empty() {
            waiting.since = None;
        }
    }

    fn print(&mut self, question: &Asked, answer: Line, waiting: &mut Waiting) {
        let Line { mut row, json, status } = answer;
        let expected = question.expected();
        // A search that was stopped has no verdict to compare with the expected one.
        let is_stopped = row.verdict == "unknown" && stop::is_asked();
        match expected {
            Some(expected) if row.model.is_some() && !is_stopped => {
                self.compare(question, expected, &mut row, waiting)
            }
            _ => {
                waiting.compared = true;
                self.summary.unexpected += (expected.is_some() && !is_stopped) as usize;
                self.status = self.status.and(status);
            }
        }
        progress::make_room(|| {
            self.summary.count(&row);
            match self.json {
                true => self.out.print(&json),
                false => self.out.print(&self.table.row(&row)),
            }
            self.out.flush();
        });
        if self.out.is_closed() {
            stop::token().cancel();
        }
    }

    /// Compares the worst verdict with the expected one, as soon as no further answer can change the result of the comparison.
    fn compare(&mut self, question: &Asked, expected: &str, row: &mut Row, waiting: &mut Waiting) {
        let rank = |verdict: &str| WORST_FIRST.iter().position(|other| *other == verdict);
        waiting.worst = waiting.worst.into_iter().chain(rank(row.verdict)).min();
        let is_last = waiting.printed.len() == waiting.of;
        let is_worse = waiting.worst < rank(expected);
        if waiting.compared || !(is_worse || is_last) {
            return;
        }
        waiting.compared = true;
        if waiting.worst == rank(expected) {
            self.summary.expected += 1;
            return;
        }
        self.summary.unexpected += 1;
        self.status = self.status.and(Status::Violated);
        row.expected = Some(expected.to_owned());
        if self.json {
            let why = format!("{} under {}, expected {expected}", row.verdict, question.model.name());
            complain(&row.file, &why);
        }
    }

    pub fn end(self) -> Status {
        let text = if self.json { self.summary.json() } else { self.summary.text(self.out.style) };
        self.out.print(&text);
        // If the command was stopped, the questions that were not asked count as unknown.
        match stop::is_asked() {
            true => self.status.and(Status::Unknown),
            false => self.status,
        }
    }
}
