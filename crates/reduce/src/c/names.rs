//! Names in C.

use std::collections::HashSet;

use fencewright_program::Program;

/// Words that C, its headers or the text around the program use.
const TAKEN: &str = "auto break case char const continue default do double else enum extern float for goto if inline int long register restrict \
    return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof main abort assert exit errno \
    check check_final choose any assume inside natural add subtract multiply divide remainder_of shift_left shift_right least \
    greatest reach_error unused lock_holder linux unix i386 NULL EOF INT_MIN INT_MAX LLONG_MIN LLONG_MAX";

/// What everything is called.
pub(super) struct Names {
    pub variables: Vec<String>,
    /// The functions of threads.
    pub threads: Vec<String>,
    /// The variables that say where threads are.
    pub places: Vec<String>,
    pub registers: Vec<Vec<String>>,
}

impl Names {
    pub fn new(program: &Program) -> Self {
        let mut taken: HashSet<String> = TAKEN.split_whitespace().map(String::from).collect();
        let mut fresh = |like: &str| {
            let mut name = identifier(like);
            // The implementation and its headers have these for themselves.
            if name.starts_with('_') || name.starts_with("pthread") {
                name.insert_str(0, "v_");
            }
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

/// The macro that switches a property on.
pub(super) fn check(property: &str) -> String {
    format!("CHECK_{}", identifier(property))
}

fn identifier(like: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = like.trim_end_matches(']').chars().map(plain).collect();
    match name.chars().next() {
        Some(first) if !first.is_ascii_digit() => name,
        _ => format!("n{name}"),
    }
}
