//! Statistics of the runs of engines.

use crate::task::EngineName;

/// The engine that gave an answer, and the statistics of its run until it gave the answer.
#[derive(Clone, Debug)]
pub struct Author {
    /// The engine that gave the answer.
    pub engine: EngineName,
    /// The statistics of this engine alone.
    pub work: Work,
}

/// Statistics of the run of one engine. [`Report::work`](crate::task::Report::work) says how the statistics of several engines are combined.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// Number of stored states.
    pub states: u64,
    /// Peak memory use in bytes.
    pub bytes: u64,
    /// Statistics that depend on the kind of engine.
    pub counts: Counts,
}

/// The statistics of an engine besides states and bytes.
#[derive(Clone, Debug, Default)]
pub enum Counts {
    /// The engine has no statistics besides states and bytes.
    #[default]
    Nothing,
    /// For engines that store concrete states.
    States {
        /// Bytes of the stored states alone, without other data of the search.
        state_bytes: u64,
        /// Number of transitions; `None` if not all of them were counted.
        transitions: Option<u64>,
        /// Classes of threads that may be permuted, by their names. Of several states that are equal up to such a permutation, only one was stored.
        symmetry: Vec<Vec<String>>,
    },
    /// For engines that explore executions one by one.
    Executions(Executions),
    /// For engines that increase the number of contexts: statistics for each number.
    Rounds(Vec<Round>),
    /// For engines that search for predicates: the number of predicates found.
    Predicates(usize),
}

impl Work {
    /// Bytes of the stored states themselves; 0 if the engine does not count them.
    pub fn state_bytes(&self) -> u64 {
        match self.counts {
            Counts::States { state_bytes, .. } => state_bytes,
            _ => 0,
        }
    }

    /// The number of transitions, if the engine counted all of them.
    pub fn transitions(&self) -> Option<u64> {
        match self.counts {
            Counts::States { transitions, .. } => transitions,
            _ => None,
        }
    }

    /// The classes of threads that may be permuted, by their names; empty if the engine uses no symmetry.
    pub fn symmetry(&self) -> &[Vec<String>] {
        match &self.counts {
            Counts::States { symmetry, .. } => symmetry,
            _ => &[],
        }
    }

    /// The number of explored executions, if the engine explores executions.
    pub fn executions(&self) -> Option<Executions> {
        match self.counts {
            Counts::Executions(executions) => Some(executions),
            _ => None,
        }
    }

    /// The statistics for each number of contexts; empty if the engine does not increase the number of contexts.
    pub fn rounds(&self) -> &[Round] {
        match &self.counts {
            Counts::Rounds(rounds) => rounds,
            _ => &[],
        }
    }

    /// The number of predicates found; 0 if the engine searches for none.
    pub fn predicates(&self) -> usize {
        match self.counts {
            Counts::Predicates(predicates) => predicates,
            _ => 0,
        }
    }

    /// Adds the statistics for one more number of contexts.
    pub fn add_round(&mut self, round: Round) {
        match &mut self.counts {
            Counts::Rounds(rounds) => rounds.push(round),
            counts => *counts = Counts::Rounds(vec![round]),
        }
    }

    /// Removes the number of transitions, because some were not counted.
    pub(crate) fn forget_transitions(&mut self) {
        if let Counts::States { transitions, .. } = &mut self.counts {
            *transitions = None;
        }
    }
}

impl Author {
    /// Adds the statistics of another part of the same answer, if the same engine gave it and did not explore executions one by one.
    pub fn together(mut self, other: &Author) -> Author {
        let (own, more) = (&mut self.work, &other.work);
        if self.engine == other.engine && own.executions().is_none() && more.executions().is_none() {
            own.states += more.states;
            own.bytes = own.bytes.max(more.bytes);
            if let Counts::States { transitions, .. } = &mut own.counts {
                *transitions = transitions.zip(more.transitions()).map(|(own, more)| own + more);
            }
        }
        self
    }
}

/// Numbers of explored executions, by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executions {
    /// Executions in which every thread has ended or faulted.
    pub complete: u64,
    /// Executions in which some thread waits forever.
    pub blocked: u64,
    /// Executions that were not explored to their end, because they are infinite or too long.
    pub cut: u64,
    /// Executions abandoned because all their continuations were equivalent to explored ones. There should be none.
    pub redundant: u64,
    /// Number of events of all executions, common prefixes counted once.
    pub events: u64,
}

/// Statistics of the search for one number of contexts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// The number of contexts that the search allowed.
    pub contexts: u32,
    /// Number of states stored since the previous round, or since the search was restarted.
    pub states: u64,
    /// Time for this number of contexts alone, in seconds.
    pub seconds: f64,
}
