//! Checks properties of a program on [`Slice`]s of it: subsets of its threads that the other threads cannot affect.
//!
//! A property is split into one or several questions, each about one slice. For example, `assertions` becomes one question for each thread that may
//! fault, about the slice of the threads that can affect it. Slices that differ only in names share a question. Each slice is a member of a portfolio
//! and may use all engines; the whole program is another member, for properties that depend on every thread. An execution of a slice is an execution
//! of the program, and the proofs of all questions of a property together become a certificate that names the threads.

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fencewright_certify::certificate::Part;
use fencewright_certify::{Certificate, Claim};
use fencewright_program::{Init, Program, Property, ThreadId};
use fencewright_transform::slice::{Accesses, Concern, Slice, concerns};
use fencewright_verdict::answers::rank;
use fencewright_verdict::fingerprint::fingerprint;

use super::by_way_of::{Certificates, claimed, proofs_of};
use super::portfolio::{self, Member};
use super::{Auto, EngineName};
use crate::task::{About, Answer, Author, Early, Engine, Limits, Listener, Progress, Report, Task};
use crate::turns;

/// Maximum number of slices, because each slice needs separate operating-system threads. A property whose slices would exceed it is checked on the
/// whole program.
const MOST_SLICES: usize = 16;
/// Maximum number of steps for computing the slices of all properties.
const MOST_STEPS: u64 = 100_000_000;
/// Maximum number of pairs of a thread and a memory cell for which slices are computed.
const MOST_ACCESSES: usize = 1 << 22;

/// The question whether a property holds of one slice, or of the whole program if the property is not checked on slices.
#[derive(Debug)]
struct Question {
    /// The index of the property in the task.
    property: usize,
    /// The index of the slice in [`Sliced::slices`]; `None` for the whole program.
    slice: Option<usize>,
    /// The isomorphic slices that the answer covers; the first one is checked.
    alike: Vec<Vec<u32>>,
    /// Whether the question has an answer with evidence.
    shown: AtomicBool,
}

impl Question {
    fn new(property: usize, alike: Vec<Vec<u32>>) -> Self {
        Question { property, slice: None, alike, shown: AtomicBool::new(false) }
    }
}

/// A task with some properties that are checked on slices.
#[derive(Debug)]
pub struct Sliced<'a> {
    task: &'a Task<'a>,
    slices: Vec<Arc<Slice>>,
    questions: Vec<Question>,
    /// For each property, the indices of its questions.
    of_property: Vec<Range<usize>>,
    /// The best answer to each question so far.
    answers: Mutex<Vec<Answer>>,
}

impl<'a> Sliced<'a> {
    /// The sliced task. `None` if every property depends on every thread, if a register starts in an empty range, if the task asks for final
    /// states, or if the program is too large.
    pub fn of(task: &'a Task<'a>) -> Option<Self> {
        let program = task.program;
        // A register with an empty initial range means that the program has no executions, but a slice without that register may have some.
        let starts = |init: &Init| !matches!(init, Init::Any(Some(range)) if range.size() == 0);
        let registers = program.threads.iter().flat_map(|thread| &thread.registers);
        if !task.observed.is_empty() || !registers.map(|register| &register.init).all(starts) {
            return None;
        }
        if program.threads.len().saturating_mul(program.cells()) > MOST_ACCESSES {
            return None;
        }
        let accesses: Vec<Accesses> =
            program.threads.iter().map(|thread| Accesses::of(program, thread)).collect();
        let mut sliced = Sliced {
            task,
            slices: Vec::new(),
            questions: Vec::new(),
            of_property: Vec::new(),
            answers: Mutex::default(),
        };
        let mut steps = MOST_STEPS;
        for (n, property) in task.properties.iter().enumerate() {
            let first = sliced.questions.len();
            sliced.ask(n, property, &accesses, &mut steps);
            sliced.of_property.push(first..sliced.questions.len());
        }
        sliced.answers = Mutex::new(vec![Answer::Open; sliced.questions.len()]);
        (!sliced.slices.is_empty()).then_some(sliced)
    }

    /// Adds the questions of a property. If the computation of its slices could need more than the remaining `steps`, the property is checked on the
    /// whole program.
    fn ask(&mut self, property: usize, what: &Property, accesses: &[Accesses], steps: &mut u64) {
        let program = self.task.program;
        let concerns = concerns(program, what).unwrap_or_default();
        let taken = work(program, concerns.len());
        let mut first: Vec<(Question, Slice)> = Vec::new();
        for threads in if taken <= *steps { kept(program, &concerns, accesses) } else { Vec::new() } {
            let slice = Slice::new(program, &threads).expect("the threads are a closed set");
            let threads = threads.iter().map(|thread| thread.0).collect();
            match first.iter_mut().find(|(_, other)| other.is_like(&slice, std::slice::from_ref(&what.name)))
            {
                Some((question, _)) => question.alike.push(threads),
                None => first.push((Question::new(property, vec![threads]), slice)),
            }
        }
        *steps = steps.saturating_sub(taken);
        if first.is_empty() || self.slices.len() + first.len() > MOST_SLICES {
            self.questions.push(Question::new(property, Vec::new()));
            return;
        }
        for (question, slice) in first {
            let known = self.slices.iter().position(|known| known.threads == slice.threads);
            let number = known.unwrap_or_else(|| {
                self.slices.push(Arc::new(slice));
                self.slices.len() - 1
            });
            self.questions.push(Question { slice: Some(number), ..question });
        }
    }

    /// Answers all questions: questions about slices by the complete engine `auto`, questions about the whole program by `auto` without its first
    /// run.
    pub fn run(&self, auto: &Auto, cores: usize, limits: &Limits, progress: &Progress) -> Report {
        let properties = self.questions.iter().map(|q| self.task.properties[q.property].clone()).collect();
        let questions = self.task.about(self.task.program, self.task.model, properties);
        let questions = questions.heard_by(self);
        let about = |slice: Option<usize>| -> Vec<usize> {
            (0..self.questions.len()).filter(|&q| self.questions[q].slice == slice).collect()
        };
        let all = std::iter::once(None).chain((0..self.slices.len()).map(Some));
        let members = all.map(|slice| Member {
            engine: Box::new(OnSlice {
                auto: auto.clone(),
                slice: slice.map(|number| Arc::clone(&self.slices[number])),
                asked: about(slice).into_iter().map(|q| self.asked(q)).collect(),
            }),
            domain: None,
            numbers: about(slice),
            part: turns::Part { weight: 1.0, width: cores, head_start: Duration::ZERO },
        });
        let members: Vec<Member> = members.filter(|member| !member.numbers.is_empty()).collect();
        let report = match &members[..] {
            [only] => only.engine.run(&questions, limits, progress),
            _ => portfolio::run(&members, &questions, cores, limits, progress),
        };
        self.put_together(report)
    }

    fn asked(&self, q: usize) -> Asked {
        let Question { property, alike, .. } = &self.questions[q];
        Asked { alike: alike.clone(), is_all: self.is_all(*property) }
    }

    /// Combines the answers to the questions into answers to the properties.
    fn put_together(&self, mut report: Report) -> Report {
        for (q, answer) in std::mem::take(&mut report.answers).into_iter().enumerate() {
            self.learn(q, &answer);
        }
        let (authors, mut tried) = (std::mem::take(&mut report.authors), std::mem::take(&mut report.tried));
        for n in 0..self.task.properties.len() {
            let (decisive, answer) = self.answer(n);
            report.answers.push(answer);
            let author = authors[decisive].clone();
            let others = self.questions_of(n).filter(|q| *q != decisive).map(|q| &authors[q]);
            report.authors.push(others.fold(author, Author::together));
            report.tried.push(self.questions_of(n).flat_map(|q| std::mem::take(&mut tried[q])).collect());
        }
        report
    }

    /// The indices of the questions of a property.
    fn questions_of(&self, property: usize) -> Range<usize> {
        self.of_property[property].clone()
    }

    /// Whether a property has a single question.
    fn is_all(&self, property: usize) -> bool {
        self.of_property[property].len() == 1
    }

    fn learn(&self, q: usize, answer: &Answer) {
        if answer.has_evidence() {
            self.questions[q].shown.store(true, Ordering::Relaxed);
        }
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if rank(answer) > rank(&answers[q]) {
            answers[q] = answer.clone();
        }
    }

    /// The answer to a property, and the question whose answer it is: a violated question if there is one, otherwise a question without an answer if
    /// there is one, otherwise one without a certificate if there is one, otherwise the first.
    fn answer(&self, property: usize) -> (usize, Answer) {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let order = |q: &usize| match answers[*q].holds() {
            Some(false) => 0,
            None => 1,
            Some(true) => 2,
        };
        let decisive =
            self.questions_of(property).min_by_key(order).expect("every property is some question");
        let answer = &answers[decisive];
        if answer.holds() != Some(true) || self.is_all(property) {
            return (decisive, answer.clone());
        }
        let (mut parts, mut proofs) = (Vec::new(), Vec::new());
        for q in self.questions_of(property) {
            let Answer::Certified(certificate) = &answers[q] else { return (q, Answer::Holds(None)) };
            if let Claim::Sliced { parts: new, .. } = &certificate.claim {
                parts.extend(new.iter().cloned());
            }
            proofs.extend(certificate.proofs.iter().cloned());
        }
        let claim = Claim::Sliced { properties: vec![self.task.properties[property].name.clone()], parts };
        let certificate = Certificate::new(fingerprint(self.task.program), claim, proofs);
        (decisive, Answer::Certified(Arc::new(certificate)))
    }
}

/// An upper bound on the number of steps for computing the slices of a property with `concerns` concerns: the closures of the concerns, and the
/// isomorphisms between them.
fn work(program: &Program, concerns: usize) -> u64 {
    let [concerns, threads, cells, properties] =
        [concerns, program.threads.len(), program.cells(), program.properties.len()].map(|n| n as u64);
    let edges: u64 = program.threads.iter().map(|thread| thread.edges.len() as u64).sum();
    let sets = threads.saturating_mul(threads).saturating_mul(cells + 1);
    concerns.saturating_mul(sets.saturating_add((concerns + 1).saturating_mul(edges + properties)))
}

/// The closures of the concerns of a property, without closures that are contained in others. The list is empty if a closure contains all threads.
fn kept(program: &Program, concerns: &[Concern], accesses: &[Accesses]) -> Vec<Vec<ThreadId>> {
    let mut sets: Vec<Vec<ThreadId>> = Vec::new();
    for concern in concerns {
        let set = closure(program, concern, accesses);
        if set.len() == program.threads.len() {
            return Vec::new();
        }
        let within = |one: &[ThreadId], other: &[ThreadId]| one.iter().all(|thread| other.contains(thread));
        if !sets.iter().any(|known| within(&set, known)) {
            sets.retain(|known| !within(known, &set));
            sets.push(set);
        }
    }
    // A concern about cells that no thread stores to has an empty closure, and a slice without threads is not worth checking.
    sets.retain(|set| !set.is_empty());
    sets
}

/// The least set of threads that covers a concern, has all threads that may access an open array outside its modelled part, and that no other
/// thread can affect; computed as a fixpoint.
fn closure(program: &Program, concern: &Concern, accesses: &[Accesses]) -> Vec<ThreadId> {
    let mut read = vec![false; program.cells()];
    concern.cells.iter().for_each(|&cell| read[cell as usize] = true);
    let mut kept = vec![false; program.threads.len()];
    let beyond = program.threads().map(|(id, _)| id).filter(|id| accesses[id.index()].beyond);
    let mut new: Vec<ThreadId> = concern.threads.iter().copied().chain(beyond).collect();
    loop {
        for thread in new.drain(..) {
            kept[thread.index()] = true;
            let loaded = &accesses[thread.index()].loaded;
            read.iter_mut().zip(loaded).for_each(|(read, loaded)| *read |= loaded);
        }
        let matters =
            |t: &usize| accesses[*t].stored.iter().zip(&read).any(|(stored, read)| *stored && *read);
        new = (0..kept.len()).filter(|&t| !kept[t]).filter(matters).map(|t| ThreadId(t as u32)).collect();
        if new.is_empty() {
            break;
        }
    }
    (0..kept.len()).filter(|&t| kept[t]).map(|t| ThreadId(t as u32)).collect()
}

/// Collects early answers to the questions, and passes on those that decide a property.
impl Listener for Sliced<'_> {
    fn hear(&self, question: usize, early: Early) {
        self.learn(question, &early.answer);
        let property = self.questions[question].property;
        if self.is_all(property) {
            return self.task.tell(property, early);
        }
        let (_, answer) = self.answer(property);
        if answer.has_evidence() {
            self.task.tell(property, Early { answer, ..early });
        }
    }

    fn is_settled(&self, question: usize) -> bool {
        let property = self.questions[question].property;
        // If a property has several questions, the proof of one can be checked only together with the others. So a question with evidence counts as
        // settled before its property is.
        let shown = || self.questions[question].shown.load(Ordering::Relaxed);
        self.task.is_settled(property) || (!self.is_all(property) && shown())
    }

    fn judges(&self) -> bool {
        self.task.is_judged()
    }
}

/// The facts about a question that a member needs to translate its answer.
#[derive(Clone, Debug)]
struct Asked {
    /// The isomorphic slices that the answer covers; the first one is checked.
    alike: Vec<Vec<u32>>,
    /// Whether the question alone decides the property.
    is_all: bool,
}

/// Engine `auto` on a slice of the program, or on the whole program.
struct OnSlice {
    auto: Auto,
    slice: Option<Arc<Slice>>,
    /// For each property of the task that this engine is run on, the facts about its question.
    asked: Vec<Asked>,
}

impl Engine for OnSlice {
    fn name(&self) -> EngineName {
        EngineName::Auto
    }

    fn about(&self) -> About {
        self.auto.about()
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        let Some(slice) = &self.slice else { return self.auto.rest(task, limits, progress) };
        let about = |property: &Property| slice.property(task.program, property);
        let about = task.properties.iter().map(|property| about(property).expect("it covers some of each"));
        let question = task.about(&slice.program, task.model, about.collect());
        let way = Way { task, slice, asked: &self.asked, certificates: Certificates::default() };
        let mut report = self.auto.run(&question.heard_by(&way), limits, progress);
        let answers = std::mem::take(&mut report.answers).into_iter().enumerate();
        report.answers = answers.map(|(n, answer)| way.back(n, answer)).collect();
        let names: Vec<String> = slice.program.threads.iter().map(|thread| thread.name.clone()).collect();
        report.tried.iter_mut().flatten().for_each(|tried| tried.threads.clone_from(&names));
        report
    }
}

/// A listener that translates answers about a slice into answers about the program.
#[derive(Debug)]
struct Way<'a> {
    task: &'a Task<'a>,
    slice: &'a Slice,
    asked: &'a [Asked],
    certificates: Certificates,
}

impl Way<'_> {
    fn back(&self, n: usize, answer: Answer) -> Answer {
        let program = self.task.program;
        if let Answer::Violated(Some(trace)) = &answer {
            return Answer::Violated(Some(self.slice.trace(program, trace)));
        }
        let Some(claim) = claimed(&answer) else { return answer };
        // The certificate is about this property and about all other properties that the claim proves for the same slices.
        let Asked { alike, is_all } = &self.asked[n];
        let shown = |(property, asked): (&Property, &Asked)| {
            let together = *is_all && asked.is_all && asked.alike == *alike;
            let own = property.name == self.task.properties[n].name;
            (own || together && claim.properties().contains(&property.name)).then(|| property.name.clone())
        };
        let properties: Vec<String> = self.task.properties.iter().zip(self.asked).filter_map(shown).collect();
        self.certificates.made(&answer, &properties, || {
            let parts = vec![Part { slices: alike.clone(), claim: claim.clone() }];
            let claim = Claim::Sliced { properties: properties.clone(), parts };
            Certificate::new(fingerprint(program), claim, proofs_of(&self.slice.program, &answer))
        })
    }
}

impl Listener for Way<'_> {
    fn hear(&self, property: usize, early: Early) {
        self.task.tell(property, Early { answer: self.back(property, early.answer), ..early });
    }

    fn is_settled(&self, property: usize) -> bool {
        self.task.is_settled(property)
    }

    fn judges(&self) -> bool {
        self.task.is_judged()
    }
}
