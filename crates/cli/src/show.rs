//! `fencewright show`: the control-flow graphs of a program.

use fencewright_report::{Source, dot};

use crate::args::ShowArgs;
use crate::input::load_program;
use crate::output::Output;
use crate::status::Status;

/// Prints the graphs of all threads.
pub fn run(args: &ShowArgs, out: &mut Output) -> Status {
    let Some(loaded) = load_program(&args.file, &args.input) else { return Status::Bad };
    out.print(&dot::graphs(Source::from(&loaded)));
    Status::Fine
}
