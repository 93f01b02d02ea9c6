//! The families of `fencewright generate`, with their parameters.

use std::fmt;
use std::ops::RangeInclusive;

use crate::automata::{intersection, random_automata};
use crate::bakery::bakery;
use crate::lossy::{channel, random_lossy};
use crate::random::{Shape, random};

/// A program of one of the families.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Lamport's bakery without arithmetic.
    Bakery {
        /// The number of threads.
        threads: usize,
        /// Whether the program has the fences that make it safe under TSO.
        fences: bool,
    },
    /// The intersection problem for random automata.
    Automata {
        /// The number of automata.
        automata: usize,
        /// The number of states of each automaton.
        states: usize,
        /// The size of the alphabet.
        letters: usize,
        /// The seed that determines the automata.
        seed: u64,
    },
    /// A random lossy channel system with data.
    Lossy {
        /// The number of control states.
        states: usize,
        /// The number of variables.
        variables: usize,
        /// The size of the alphabet.
        letters: usize,
        /// The number of transitions.
        transitions: usize,
        /// The seed that determines the system.
        seed: u64,
    },
    /// A random program of the fragment that CONTEXT24 decides.
    Random {
        /// The size and the features of the program.
        shape: Shape,
        /// The seed that determines the program.
        seed: u64,
    },
}

/// The error for a size outside the range that a family allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// The command line option for this size.
    pub option: &'static str,
    /// The value that was given.
    pub value: usize,
    /// The range of allowed values.
    pub possible: RangeInclusive<usize>,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = (self.possible.start(), self.possible.end());
        write!(f, "{} is not possible: at least {least} and at most {most}", self.value)
    }
}

impl Family {
    /// The program text, which starts with a comment that contains the command line.
    pub fn text(&self) -> Result<String, OutOfRange> {
        for (option, value, possible) in self.sizes() {
            if !possible.contains(&value) {
                return Err(OutOfRange { option, value, possible });
            }
        }
        let program = match *self {
            Family::Bakery { threads, fences } => bakery(threads, fences),
            Family::Automata { automata, states, letters, seed } => {
                intersection(&random_automata(seed, automata, states, letters), letters)
            }
            Family::Lossy { states, variables, letters, transitions, seed } => {
                channel(&random_lossy(seed, states, variables, letters, transitions))
            }
            Family::Random { shape, seed } => random(seed, shape),
        };
        Ok(format!("// Written by `{}`.\n{program}", self.command()))
    }

    /// The sizes, each with its option and the range of allowed values. The ranges keep texts below a few megabytes.
    fn sizes(&self) -> Vec<(&'static str, usize, RangeInclusive<usize>)> {
        match *self {
            Family::Bakery { threads, .. } => vec![("--threads", threads, 2..=64)],
            Family::Automata { automata, states, letters, .. } => {
                vec![
                    ("--automata", automata, 1..=16),
                    ("--states", states, 1..=32),
                    ("--letters", letters, 1..=16),
                ]
            }
            Family::Lossy { states, variables, letters, transitions, .. } => vec![
                ("--states", states, 1..=256),
                ("--variables", variables, 1..=32),
                ("--letters", letters, 1..=32),
                ("--transitions", transitions, 0..=1024),
            ],
            Family::Random { shape, .. } => vec![
                ("--threads", shape.threads, 1..=16),
                ("--length", shape.length, 1..=200),
                ("--variables", shape.variables, 1..=16),
            ],
        }
    }

    /// The command line that writes the program.
    fn command(&self) -> String {
        let options = match *self {
            Family::Bakery { threads, fences } => {
                format!("bakery --threads {threads}{}", flag("fences", fences))
            }
            Family::Automata { automata, states, letters, seed } => {
                format!("automata --automata {automata} --states {states} --letters {letters} --seed {seed}")
            }
            Family::Lossy { states, variables, letters, transitions, seed } => format!(
                "lossy --states {states} --variables {variables} --letters {letters} --transitions {transitions} \
                 --seed {seed}"
            ),
            Family::Random { shape, seed } => {
                let Shape { threads, length, variables, numbers, distances, loops } = shape;
                format!(
                    "random --seed {seed} --threads {threads} --length {length} --variables {variables} --numbers {}{}{}",
                    numbers.name(),
                    flag("distances", distances),
                    flag("loops", loops)
                )
            }
        };
        format!("fencewright generate {options}")
    }
}

fn flag(name: &str, set: bool) -> String {
    if set { format!(" --{name}") } else { String::new() }
}
