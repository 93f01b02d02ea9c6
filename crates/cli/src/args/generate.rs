//! The command line of `generate`.

use clap::{Args, Subcommand};

use super::settings::{ForAutomata, ForBakery, ForGenerate, ForLossy, ForRandom, Given};

/// `generate`
#[derive(Args)]
pub struct GenerateArgs {
    #[command(subcommand)]
    pub family: FamilyArg,
    #[command(flatten)]
    pub settings: Given<ForGenerate>,
}

/// The families.
#[derive(Subcommand)]
pub enum FamilyArg {
    /// Lamport's bakery with tickets that are only compared
    Bakery(Given<ForBakery>),
    /// Random finite automata: is there a word that all of them accept?
    Automata(Given<ForAutomata>),
    /// A random lossy channel system with data, whose channel is a store buffer
    Lossy(Given<ForLossy>),
    /// A random program that copies, guesses and compares values
    Random(Given<ForRandom>),
}
