//! Engine `extrapolate`: extends a proof under SC to TSO or PSO (EXTRA13).
//!
//! A program under SC is abstracted to a boolean program over the predicates of a vocabulary (s. 4.1), which a three-valued model checker explores
//! (s. 6.1). Interpolants of spurious counterexamples give new predicates. Under TSO and PSO the same is done with the reduced program `P_M`, which
//! encodes store buffers as registers; its predicates are extrapolated from those of the proof under SC (s. 5).

#![forbid(unsafe_code)]

mod abstraction;
mod checker;
mod entailment;
mod evidence;
mod lift;
mod print;
mod program;
mod proof;
mod relaxed;
#[cfg(test)]
mod tests;
mod transformer;
mod vector;
mod vocabulary;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fencewright_memory::linear::Cube;
use fencewright_memory::{BufferMachine, Buffers, Control};
use fencewright_program::{MemoryModel, Property, Span, Trace};
use fencewright_symbolic::cegar::path;
use fencewright_verdict::{
    About, Answer, Author, Counts, Early, Engine, EngineName, Invariant, Limits, Progress, Reason, Report,
    Task,
};

use abstraction::{Abstraction, Ended, Precision};
use entailment::Judge;
use program::BooleanProgram;
use vector::Vector;

pub use abstraction::Effort;
pub use program::Size;
pub use relaxed::Attempt;

/// How the predicates of the relaxed program are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// The predicates of the SC proof are extrapolated, and cubes (conjunctions of predicates and their negations) of at most two of them are
    /// searched; in the last attempt, larger cubes too.
    #[default]
    Predicates,
    /// The cubes of the SC proof are extrapolated too. No other cubes are searched, except in the last attempt, which refines the abstraction of
    /// `P_M` itself.
    Cubes,
}

/// Options of engine `extrapolate`.
#[derive(Clone, Debug)]
pub struct Options {
    /// How the predicates of the relaxed program are found.
    pub method: Method,
    /// Initial number of stores that a buffer can hold. It is increased on overflow, and if a spurious path cannot be excluded.
    pub k: u32,
    /// Receives additional results of a run; `None` if they are not needed.
    pub record: Option<Arc<Mutex<Record>>>,
}

/// Results of a run besides its answers.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The boolean program of the proof as text; empty if there is none.
    pub boolean: String,
    /// The statistics of each abstraction, in order.
    pub accounts: Vec<Account>,
}

/// The statistics of one abstraction.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    /// The number of stores that a buffer can hold; `None` for the proof under SC.
    pub k: Option<u32>,
    /// How its predicates were found; `None` for the proof under SC.
    pub attempt: Option<Attempt>,
    /// The size of the boolean program, and the cost of building and checking it.
    pub effort: Effort,
}

impl Default for Options {
    fn default() -> Self {
        Options { method: Method::default(), k: 1, record: None }
    }
}

/// Engine `extrapolate`, which extends proofs under SC to TSO and PSO.
#[derive(Clone, Debug, Default)]
pub struct Extrapolate {
    /// How predicates are found, the initial size of buffers, and the recipient of additional results.
    pub options: Options,
}

/// Initial time slice per property. Properties take turns, so that a property that the engine cannot decide does not block the others; in each
/// further turn, the time slices are four times as long as in the turn before.
const FIRST_SLICE: Duration = Duration::from_secs(2);

/// Maximum number of literals per cube.
const LARGEST_CUBE: usize = 4;

impl Engine for Extrapolate {
    fn name(&self) -> EngineName {
        EngineName::Extrapolate
    }

    fn about(&self) -> About {
        About {
            summary: "a proof under SC by predicate abstraction, extrapolated to bounded store buffers",
            models: &MemoryModel::ALL,
            machines: &["sc", "queue"],
            domains: &["predicates"],
        }
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        let mut answers: Vec<Option<Answer>> = vec![None; task.properties.len()];
        let exact = BufferMachine::new(task.program, Buffers::Sc);
        for (answer, property) in answers.iter_mut().zip(&task.properties) {
            let reals = task.program.has_real_choices();
            if reals || exact.violation(&exact.initial(), property).is_none() {
                let what = if reals { "programs that choose real numbers" } else { &property.name };
                let reason = format!("engine extrapolate cannot decide {what}");
                let place = (!reals && property.span != Span::default()).then_some(property.span);
                *answer = Some(Answer::Unknown(Reason::Unsupported(reason, place)));
            }
        }
        let mut report = Report::default();
        let mut slice = FIRST_SLICE;
        loop {
            let is_open = |&n: &usize| answers[n].is_none() && !task.is_settled(n);
            let open: Vec<usize> = (0..answers.len()).filter(is_open).collect();
            let violated = answers.iter().flatten().any(|answer| matches!(answer, Answer::Violated(_)));
            if open.is_empty() || violated && task.first_violation {
                break;
            }
            for &asked in &open {
                let part = if open.len() == 1 { limits.clone() } else { limits.within(slice) };
                let mut run =
                    Run { options: &self.options, task, limits: &part, progress, asked, answers, report };
                let ended = if task.model == MemoryModel::Sc { run.sc() } else { run.relaxed() };
                (answers, report) = (run.answers, run.report);
                // A property whose time slice was too short is tried again, unless there is no time left at all.
                let again = part.exceeded(0).is_some() && limits.exceeded(0).is_none();
                if let Err(reason) = ended
                    && !again
                {
                    answers[asked].get_or_insert(Answer::Unknown(reason));
                }
            }
            slice *= 4;
        }
        report.answers = answers.into_iter().map(|answer| answer.unwrap_or(Answer::Open)).collect();
        report
    }
}

/// A run of the engine for one property.
struct Run<'a> {
    options: &'a Options,
    task: &'a Task<'a>,
    limits: &'a Limits,
    progress: &'a Progress,
    /// The index of the property of this run.
    asked: usize,
    answers: Vec<Option<Answer>>,
    report: Report,
}

impl Run<'_> {
    /// The index of the property, unless this engine or another one has answered it.
    fn open(&self) -> Vec<usize> {
        let is_open = self.answers[self.asked].is_none() && !self.task.is_settled(self.asked);
        is_open.then_some(self.asked).into_iter().collect()
    }

    /// Answers a property, and publishes the answer at once.
    fn tell(&mut self, n: usize, answer: Answer) {
        let author = Author { engine: EngineName::Extrapolate, work: self.report.work.clone() };
        self.task.tell(n, Early { answer: answer.clone(), author });
        self.answers[n] = Some(answer);
    }

    /// Decides the property under SC, by predicate abstraction of the program itself.
    fn sc(&mut self) -> Result<(), Reason> {
        let machine = BufferMachine::new(self.task.program, Buffers::Sc);
        let predicates = abstraction::suggested(self.task.program, &self.task.properties, self.limits)?;
        let precision = Precision::under_sc(self.task.program);
        let mut abstraction =
            Abstraction::new(&machine, self.task, predicates, precision, self.limits, self.progress)?;
        loop {
            let open = self.open();
            if open.is_empty() {
                return Ok(());
            }
            let properties: Vec<Property> = open.iter().map(|&n| self.task.properties[n].clone()).collect();
            let ended = abstraction.run(&properties)?;
            self.account(None, &abstraction.effort);
            match ended {
                Ended::Proved(program, states) => {
                    self.emit(&machine, &program);
                    let states = self.cubes(&program, &states)?;
                    let properties = properties.iter().map(|p| p.name.clone()).collect();
                    let invariant =
                        Invariant { buffers: Buffers::Sc, properties, symmetry: Vec::new(), states };
                    self.prove(&open, invariant);
                }
                Ended::Violated(n, path) => {
                    let trace = path::execution(self.task, &path, &properties[n], self.limits);
                    self.violate(open[n], trace);
                    if self.task.first_violation {
                        return Ok(());
                    }
                }
                Ended::Stuck(Some(n), reason) => self.answers[open[n]] = Some(Answer::Unknown(reason)),
                Ended::Stuck(None, reason) => return Err(reason),
            }
        }
    }

    /// Answers these properties with a proof.
    fn prove(&mut self, open: &[usize], invariant: Invariant) {
        let invariant = Arc::new(invariant);
        open.iter().for_each(|&n| self.tell(n, Answer::Proved(Arc::clone(&invariant))));
    }

    /// Answers that a property is violated, if an execution was found.
    fn violate(&mut self, n: usize, trace: Option<Trace>) {
        let doubt = || Reason::Unsupported("the solver finds no values for a counterexample".into(), None);
        let answer = match trace {
            Some(trace) => Answer::Violated(Some(trace)),
            None => Answer::Unknown(self.limits.exceeded(0).unwrap_or_else(doubt)),
        };
        self.tell(n, answer);
    }

    /// The states of a boolean program as disjunctions of conjunctions of constraints.
    fn cubes(
        &self,
        program: &BooleanProgram,
        states: &[(Control, Vec<Vector>)],
    ) -> Result<Vec<(Control, Vec<Cube>)>, Reason> {
        let mut judge = Judge::new(self.limits.budget());
        let mut all = Vec::with_capacity(states.len());
        for (control, vectors) in states {
            let mut cubes = Vec::new();
            for vector in vectors {
                self.limits.exceeded(0).map_or(Ok(()), Err)?;
                let many = || Reason::Unsupported("a state of the proof has too many cases".into(), None);
                cubes.extend(proof::cubes(&program.vocabulary, vector, &mut judge).ok_or_else(many)?);
            }
            all.push((control.clone(), cubes));
        }
        Ok(all)
    }

    /// Records a boolean program as text, if the options request a record.
    fn emit(&self, machine: &BufferMachine<'_>, program: &BooleanProgram) {
        if let Some(record) = &self.options.record {
            let text = print::text(machine, program);
            record.lock().unwrap_or_else(PoisonError::into_inner).boolean = text;
        }
    }

    /// Adds the statistics of an abstraction. For a reduced program, `buffers` contains the size of the buffers and how the predicates were found.
    fn account(&mut self, buffers: Option<(u32, Attempt)>, effort: &Effort) {
        let work = &mut self.report.work;
        work.states += effort.states;
        work.bytes = work.bytes.max(effort.bytes);
        work.counts = Counts::Predicates(effort.size.predicates);
        if let Some(record) = &self.options.record {
            let (k, attempt) = buffers.unzip();
            let account = Account { k, attempt, effort: *effort };
            record.lock().unwrap_or_else(PoisonError::into_inner).accounts.push(account);
        }
    }
}
