//! Engine `extrapolate`: predicate abstraction by way of boolean programs (EXTRA13 s. 4 and s. 6.1).
//!
//! A program becomes a boolean program over the predicates of a vocabulary, which a three-valued model checker explores. Where a
//! counterexample cannot be taken, interpolants give new predicates.

mod abstraction;
mod checker;
mod entailment;
mod print;
mod program;
mod proof;
#[cfg(test)]
mod tests;
mod transformer;
mod vector;
mod vocabulary;

use std::sync::{Arc, Mutex};

use fencewright_memory::{BufferMachine, Buffers};
use fencewright_program::{MemoryModel, Span};

use crate::cegar::path;
use crate::task::{
    About, Answer, Early, Engine, EngineName, Invariant, Limits, Progress, Reason, Report, Task,
};
use abstraction::{Abstraction, Ended, Precision};
use entailment::Judge;

/// How the predicates of the relaxed program are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// The predicates of the SC proof are extrapolated, and cubes of them are searched.
    #[default]
    Predicates,
    /// The cubes of the SC proof are extrapolated too, and no others are searched.
    Cubes,
}

/// How the engine works.
#[derive(Clone, Debug)]
pub struct Options {
    /// How predicates are found.
    pub method: Method,
    /// How many stores a buffer may hold at first; more if it overflows.
    pub k: u32,
    /// Receives the last boolean program as text.
    pub emitted: Option<Arc<Mutex<String>>>,
}

impl Default for Options {
    fn default() -> Self {
        Options { method: Method::default(), k: 1, emitted: None }
    }
}

/// The engine.
#[derive(Clone, Debug, Default)]
pub struct Extrapolate {
    /// How it works.
    pub options: Options,
}

/// Cubes of more literals than this are not searched.
const LARGEST_CUBE: usize = 4;

impl Engine for Extrapolate {
    fn name(&self) -> EngineName {
        EngineName::Extrapolate
    }

    fn about(&self) -> About {
        About {
            summary: "predicate abstraction: boolean programs and their three-valued checker",
            models: &[MemoryModel::Sc],
            machines: &["sc"],
            domains: &["predicates"],
            options: &["--emit-boolean"],
        }
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        let mut answers: Vec<Option<Answer>> = vec![None; task.properties.len()];
        let exact = BufferMachine::new(task.program, Buffers::Sc);
        for (answer, property) in answers.iter_mut().zip(&task.properties) {
            let reals = task.program.has_real_choices();
            if task.model != MemoryModel::Sc {
                let reason = "engine extrapolate knows SC only".to_string();
                *answer = Some(Answer::Unknown(Reason::Unsupported(reason, None)));
            } else if reals || exact.violation(&exact.initial(), property).is_none() {
                let what = if reals { "programs that choose real numbers" } else { &property.name };
                let reason = format!("engine extrapolate cannot decide {what}");
                let place = (!reals && property.span != Span::default()).then_some(property.span);
                *answer = Some(Answer::Unknown(Reason::Unsupported(reason, place)));
            }
        }
        let mut run =
            Run { options: &self.options, task, limits, progress, answers, report: Report::default() };
        if let Err(reason) = run.sc() {
            let unknown = Answer::Unknown(reason);
            run.answers.iter_mut().for_each(|answer| _ = answer.get_or_insert_with(|| unknown.clone()));
        }
        run.report.answers = run.answers.into_iter().map(|answer| answer.unwrap_or(Answer::Open)).collect();
        run.report
    }
}

/// A run of the engine.
struct Run<'a> {
    options: &'a Options,
    task: &'a Task<'a>,
    limits: &'a Limits,
    progress: &'a Progress,
    answers: Vec<Option<Answer>>,
    report: Report,
}

impl Run<'_> {
    /// The numbers of the properties that have no answer, here or elsewhere.
    fn open(&self) -> Vec<usize> {
        let is_open = |&n: &usize| self.answers[n].is_none() && !self.task.is_settled(n);
        (0..self.answers.len()).filter(is_open).collect()
    }

    /// Answers a property, and tells the answer at once.
    fn tell(&mut self, n: usize, answer: Answer) {
        self.task.tell(
            n,
            Early {
                answer: answer.clone(),
                engine: EngineName::Extrapolate,
                states: self.report.states,
                bytes: self.report.bytes,
                rounds: Vec::new(),
                symmetry: Vec::new(),
                executions: None,
                transitions: None,
            },
        );
        self.answers[n] = Some(answer);
    }

    /// Predicate abstraction of the program itself.
    fn sc(&mut self) -> Result<(), Reason> {
        let machine = BufferMachine::new(self.task.program, Buffers::Sc);
        let predicates = abstraction::suggested(self.task.program, &self.task.properties);
        let precision = Precision { cube_size: 1, most: LARGEST_CUBE, refined: true };
        let mut abstraction =
            Abstraction::new(&machine, self.task, predicates, precision, self.limits, self.progress)?;
        loop {
            let open = self.open();
            if open.is_empty() {
                return Ok(());
            }
            let properties: Vec<_> = open.iter().map(|&n| self.task.properties[n].clone()).collect();
            let ended = abstraction.run(&properties)?;
            let effort = abstraction.effort;
            self.report.states += effort.states;
            self.report.bytes = self.report.bytes.max(effort.bytes);
            self.report.predicates = effort.size.predicates;
            match ended {
                Ended::Proved(program, states) => {
                    if let Some(emitted) = &self.options.emitted {
                        let text = print::text(&machine, &program);
                        *emitted.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = text;
                    }
                    let mut judge = Judge::new(self.limits.budget());
                    let mut invariants = Vec::with_capacity(states.len());
                    for (control, vectors) in states {
                        let mut all = Vec::new();
                        for vector in &vectors {
                            let cubes = proof::cubes(&program.vocabulary, vector, &mut judge);
                            all.extend(cubes.ok_or_else(|| {
                                Reason::Unsupported("a state of the proof has too many cases".into(), None)
                            })?);
                        }
                        invariants.push((control, all));
                    }
                    let invariant = Arc::new(Invariant {
                        buffers: Buffers::Sc,
                        properties: properties.iter().map(|p| p.name.clone()).collect(),
                        symmetry: Vec::new(),
                        states: invariants,
                    });
                    open.iter().for_each(|&n| self.tell(n, Answer::Proved(Arc::clone(&invariant))));
                }
                Ended::Violated(n, path) => {
                    let answer = match path::execution(self.task, &path, &properties[n], self.limits) {
                        Some(trace) => Answer::Violated(Some(trace)),
                        None => Answer::Unknown(self.limits.exceeded(0).unwrap_or_else(|| {
                            Reason::Unsupported(
                                "the solver finds no values for a counterexample".into(),
                                None,
                            )
                        })),
                    };
                    self.tell(open[n], answer);
                    if self.task.first_violation {
                        return Ok(());
                    }
                }
                Ended::Stuck(Some(n), reason) => self.answers[open[n]] = Some(Answer::Unknown(reason)),
                Ended::Stuck(None, reason) => return Err(reason),
            }
        }
    }
}
