//! `fencewright generate`: programs of families that are hard for verifiers.

use fencewright::generate::Family;
use fencewright::generate::random::{Numbers, Shape};

use crate::args::{FamilyArg, GenerateArgs, NumbersArg};
use crate::files;
use crate::output::{Output, complain};
use crate::status::Status;

/// Writes a program.
pub fn run(args: &GenerateArgs, out: &mut Output) -> Status {
    let text = match family(&args.family).text() {
        Ok(text) => text,
        Err(error) => {
            complain(error.option, &error.to_string());
            return Status::Bad;
        }
    };
    files::deliver(&text, args.output.as_deref(), out)
}

fn family(args: &FamilyArg) -> Family {
    match *args {
        FamilyArg::Bakery { threads, fences } => Family::Bakery { threads, fences },
        FamilyArg::Automata { automata, states, letters, seed } => {
            Family::Automata { automata, states, letters, seed }
        }
        FamilyArg::Lossy { states, variables, letters, transitions, seed } => {
            Family::Lossy { states, variables, letters, transitions, seed }
        }
        FamilyArg::Random { seed, threads, length, variables, numbers, distances, loops } => {
            let numbers = match numbers {
                NumbersArg::Nat => Numbers::Nat,
                NumbersArg::Int => Numbers::Int,
                NumbersArg::Real => Numbers::Real,
            };
            let shape = Shape { threads, length, variables, numbers, distances, loops };
            Family::Random { shape, seed }
        }
    }
}
