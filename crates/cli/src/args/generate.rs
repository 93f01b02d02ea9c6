//! The command line of `generate`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// `generate`
#[derive(Args)]
pub struct GenerateArgs {
    #[command(subcommand)]
    pub family: FamilyArg,
    /// Where to write the program; otherwise to the standard output
    #[arg(long, short, value_name = "FILE", global = true)]
    pub output: Option<PathBuf>,
}

/// The families.
#[derive(Subcommand)]
pub enum FamilyArg {
    /// Lamport's bakery with tickets that are only compared
    Bakery {
        /// How many threads, from 2 to 64
        #[arg(long, value_name = "N", default_value_t = 2)]
        threads: usize,
        /// With the two fences for each thread that tso needs
        #[arg(long)]
        fences: bool,
    },
    /// Random finite automata: is there a word that all of them accept?
    Automata {
        /// How many automata, at most 16
        #[arg(long, value_name = "N", default_value_t = 3)]
        automata: usize,
        /// How many states each has, at most 32
        #[arg(long, value_name = "N", default_value_t = 3)]
        states: usize,
        /// How many letters there are, at most 16
        #[arg(long, value_name = "N", default_value_t = 2)]
        letters: usize,
        /// Another one for each seed
        #[arg(long, value_name = "N", default_value_t = 0)]
        seed: u64,
    },
    /// A random lossy channel system with data, whose channel is a store buffer
    Lossy {
        /// How many states the control has, at most 256
        #[arg(long, value_name = "N", default_value_t = 4)]
        states: usize,
        /// How many variables there are, at most 32
        #[arg(long, value_name = "N", default_value_t = 2)]
        variables: usize,
        /// How many letters there are, at most 32
        #[arg(long, value_name = "N", default_value_t = 2)]
        letters: usize,
        /// How many transitions the control has, at most 1024
        #[arg(long, value_name = "N", default_value_t = 6)]
        transitions: usize,
        /// Another one for each seed
        #[arg(long, value_name = "N", default_value_t = 0)]
        seed: u64,
    },
    /// A random program that copies, guesses and compares values
    Random {
        /// Another one for each seed
        #[arg(long, value_name = "N", default_value_t = 0)]
        seed: u64,
        /// How many threads, at most 16
        #[arg(long, value_name = "N", default_value_t = 2)]
        threads: usize,
        /// How many statements each thread has, about; at most 200
        #[arg(long, value_name = "N", default_value_t = 5)]
        length: usize,
        /// How many shared variables there are, at most 16
        #[arg(long, value_name = "N", default_value_t = 2)]
        variables: usize,
        /// The data domain
        #[arg(long, value_name = "DOMAIN", default_value = "nat")]
        numbers: NumbersArg,
        /// With guards like `r + 2 < s`
        #[arg(long)]
        distances: bool,
        /// With loops
        #[arg(long)]
        loops: bool,
    },
}

/// A data domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NumbersArg {
    /// Natural numbers
    Nat,
    /// Integers
    Int,
    /// Reals
    Real,
}
