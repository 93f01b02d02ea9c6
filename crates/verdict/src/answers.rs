//! Combination of the answers of several engines.

use fencewright_program::MemoryModel;

use crate::task::{Answer, Author, DomainName, Engine, EngineName, Reason, Report, Task, Tried, Work};

impl Report {
    /// A report without an answer to any of `properties` properties.
    pub fn unanswered(properties: usize) -> Report {
        Report {
            answers: vec![Answer::Open; properties],
            authors: vec![Author { engine: EngineName::Auto, work: Work::default() }; properties],
            tried: vec![Vec::new(); properties],
            ..Report::default()
        }
    }

    /// Whether every property has a definite answer or a verdict already, or one is violated and the task needs only one violation.
    pub fn is_decided(&self, task: &Task<'_>) -> bool {
        self.is_violated_and_enough(task) || self.open(task).is_empty()
    }

    /// Whether every property has an answer with evidence or a verdict already, or one is violated and the task needs only one violation.
    pub fn is_decided_with_evidence(&self, task: &Task<'_>) -> bool {
        self.is_violated_and_enough(task) || self.without_evidence(task).is_empty()
    }

    /// Whether one property is violated and the task needs only one violation.
    pub fn is_violated_and_enough(&self, task: &Task<'_>) -> bool {
        task.first_violation && self.answers.iter().any(|a| a.holds() == Some(false))
    }

    /// The indices of the properties that have neither a definite answer in this report nor a verdict already.
    pub fn open(&self, task: &Task<'_>) -> Vec<usize> {
        let is_open = |&n: &usize| !self.answers[n].is_definite() && !task.is_settled(n);
        (0..self.answers.len()).filter(is_open).collect()
    }

    /// The indices of the properties that have neither an answer with evidence in this report nor a verdict already.
    pub fn without_evidence(&self, task: &Task<'_>) -> Vec<usize> {
        let is_open = |&n: &usize| !self.answers[n].has_evidence() && !task.is_settled(n);
        (0..self.answers.len()).filter(is_open).collect()
    }

    /// Clears the reasons of missing answers. An engine that failed within a short time slice may succeed later, so its reason does not explain the
    /// result of the whole run.
    pub fn reopen(&mut self) {
        self.answers
            .iter_mut()
            .filter(|answer| !answer.is_definite())
            .for_each(|answer| *answer = Answer::Open);
    }

    /// This report with `engine` as the author of each answer and with an attempt in `tried` for each property with the answer `Unknown`, unless the
    /// report already has authors or attempts.
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

    /// Takes over the answers of a later report about the properties with these indices, as far as they are more informative, and adds the attempts
    /// and statistics of that report.
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
        // The later search usually took longer, so its information about growth replaces the earlier one.
        if !later.growth.is_empty() {
            self.growth = later.growth;
        }
    }
}

/// Orders answers by how informative they are, the least informative first: open answers; cancelled runs; tasks that the engine does not support, or
/// has searched up to a number of contexts only; reached limits; other reasons; answers without evidence; answers with evidence.
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
