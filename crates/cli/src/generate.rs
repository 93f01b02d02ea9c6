//! `fencewright generate`: programs of families that are hard for verifiers.

use fencewright::generate::Family;
use fencewright::generate::random::Shape;

use crate::args::{FamilyArg, GenerateArgs};
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
    files::deliver(&text, args.settings.output.as_deref(), out)
}

fn family(family: &FamilyArg) -> Family {
    match family {
        FamilyArg::Bakery(own) => Family::Bakery { threads: own.bakery_threads, fences: own.fences },
        FamilyArg::Automata(own) => Family::Automata {
            automata: own.automata,
            states: own.states,
            letters: own.letters,
            seed: own.variant,
        },
        FamilyArg::Lossy(own) => Family::Lossy {
            states: own.channel_states,
            variables: own.channel_variables,
            letters: own.channel_letters,
            transitions: own.transitions,
            seed: own.variant,
        },
        FamilyArg::Random(own) => {
            let shape = Shape {
                threads: own.threads,
                length: own.length,
                variables: own.variables,
                numbers: own.numbers,
                distances: own.distances,
                loops: own.loops,
            };
            Family::Random { shape, seed: own.variant }
        }
    }
}
