//! Answers of several engines put together.

use fencewright_program::MemoryModel;

use crate::task::{Answer, Author, DomainName, Engine, EngineName, Reason, Report, Task, Tried, Work};

impl Report {
    /// No answer to any of so many properties.
    pub fn unanswered(properties: usize) -> Report {
        Report {
            answers: vec![Answer::Open; properties],
            authors: vec![Author { engine: EngineName::Auto, work: Work::default() }; properties],
            tried: vec![Vec::new(); properties],
            ..Report::default()
        }
    }

    /// Whether every property has a definite answer, or one is violated and that is enough.
    pub fn is_decided(&self, task: &Task<'_>) -> bool {
        self.is_violated_and_enough(task) || self.open(task).is_empty()
    }

    /// The same, counting only answers with evidence.
    pub fn is_decided_with_evidence(&self, task: &Task<'_>) -> bool {
        self.is_violated_and_enough(task) || self.without_evidence(task).is_empty()
    }

    /// Whether one property is violated and the task asks for no more.
    pub fn is_violated_and_enough(&self, task: &Task<'_>) -> bool {
        task.first_violation && self.answers.iter().any(|a| a.holds() == Some(false))
    }

    /// The numbers of the properties without a definite answer, here or elsewhere.
    pub fn open(&self, task: &Task<'_>) -> Vec<usize> {
        let is_open = |&n: &usize| !self.answers[n].is_definite() && !task.is_settled(n);
        (0..self.answers.len()).filter(is_open).collect()
    }

    /// The numbers of the properties that have no verdict elsewhere, and no answer with evidence here.
    pub fn without_evidence(&self, task: &Task<'_>) -> Vec<usize> {
        let is_open = |&n: &usize| !self.answers[n].has_evidence() && !task.is_settled(n);
        (0..self.answers.len()).filter(is_open).collect()
    }

    /// Forgets why there are no answers: what an engine said after a moment of its own is not why the whole run has none.
    pub fn reopen(&mut self) {
        self.answers
            .iter_mut()
            .filter(|answer| !answer.is_definite())
            .for_each(|answer| *answer = Answer::Open);
    }

    /// The report of an engine that took this long, with its name at each answer, and at each property without one what was tried.
    pub fn by(mut self, engine: &dyn Engine, domain: Option<DomainName>, model: MemoryModel) -> Report {
        if self.authors.is_empty() {
            self.authors =
                vec![Author { engine: engine.name(), work: self.work.clone() }; self.answers.len()];
        }
        if self.tried.is_empty() {
            let tried = |answer: &Answer| match answer {
                Answer::Unknown(reason) => vec![Tried {
                    engine: engine.name(),
                    domain,
                    model,
                    states: self.work.states,
                    seconds: 0.0,
                    threads: Vec::new(),
                    reason: reason.to_string(),
                }],
                _ => Vec::new(),
            };
            self.tried = self.answers.iter().map(tried).collect();
        }
        self
    }

    /// Takes the answers to the properties with these numbers from a later report, where they say more.
    pub fn adopt(&mut self, numbers: &[usize], later: Report) {
        let answers = later.answers.into_iter().zip(later.authors);
        for (&n, (answer, author)) in numbers.iter().zip(answers) {
            if rank(&answer) > rank(&self.answers[n]) {
                self.answers[n] = answer;
                self.authors[n] = author;
            }
        }
        for (&n, tried) in numbers.iter().zip(later.tried) {
            for new in tried {
                let same = |old: &Tried| old.who() == new.who();
                self.tried[n].retain(|old| !same(old));
                self.tried[n].push(new);
            }
        }
        self.work.states += later.work.states;
        self.work.bytes = self.work.bytes.max(later.work.bytes);
        // Of two reports about what grows, that of the longer search is better.
        if !later.growth.is_empty() {
            self.growth = later.growth;
        }
    }
}

/// How much an answer says: least if the engine was stopped or is not made for the question.
pub fn rank(answer: &Answer) -> u8 {
    match answer {
        Answer::Open => 0,
        Answer::Unknown(Reason::Cancelled) => 1,
        Answer::Unknown(Reason::Unsupported(..) | Reason::Contexts(..)) => 2,
        Answer::Unknown(Reason::Timeout(_) | Reason::Memory(_) | Reason::Endless) => 3,
        Answer::Unknown(_) => 4,
        Answer::Holds(None) | Answer::Violated(None) => 5,
        Answer::Holds(_) | Answer::Proved(_) | Answer::Certified(_) | Answer::Violated(_) => 6,
    }
}
