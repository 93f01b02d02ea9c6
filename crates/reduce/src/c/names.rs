//! Identifiers of the C program, without clashes.

use std::collections::HashSet;

use fencewright_c::write::{identifier, taken};
use fencewright_program::Program;

/// Identifiers that the prelude and the rest of the text use for themselves.
const USED: &str = "check check_final choose any assume inside natural add subtract multiply divide remainder_of shift_left shift_right least \
    greatest reach_error unused lock_holder";

/// The identifiers of the C program for all entities of `P_M`.
pub(super) struct Names {
    pub variables: Vec<String>,
    /// The functions of threads.
    pub threads: Vec<String>,
    /// The variables that hold the locations of threads.
    pub places: Vec<String>,
    pub registers: Vec<Vec<String>>,
}

impl Names {
    pub fn new(program: &Program) -> Self {
        let mut taken: HashSet<String> = taken().chain(USED.split_whitespace()).map(String::from).collect();
        let mut fresh = |like: &str| {
            let mut name = identifier(like);
            while !taken.insert(name.clone()) {
                name.push('_');
            }
            name
        };
        let variables = program.variables.iter().map(|v| fresh(&format!("shared_{}", v.name))).collect();
        let threads: Vec<String> =
            program.threads.iter().map(|t| fresh(&format!("thread_{}", t.name))).collect();
        let places = program.threads.iter().map(|t| fresh(&format!("{}_at", t.name))).collect();
        let registers = program.threads.iter();
        let registers =
            registers.map(|t| t.registers.iter().map(|r| fresh(&format!("{}_{}", t.name, r.name))).collect());
        let registers = registers.collect();
        Names { variables, threads, places, registers }
    }
}

/// The macro that enables the check of a property.
pub(super) fn check(property: &str) -> String {
    format!("CHECK_{}", identifier(property))
}
