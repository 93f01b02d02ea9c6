//! `fencewright show`: the control-flow graphs of a program, or the program as engine `lazy` extends it.

use fencewright::engines::Progress;
use fencewright::engines::lazy::Lazy;
use fencewright::lang::export;
use fencewright_report::{Source, dot};

use crate::args::{ShowArgs, limits};
use crate::input::load_program;
use crate::output::{Output, complain};
use crate::status::Status;
use crate::stop;

/// Prints the graphs of all threads, or the extended program.
pub fn run(args: &ShowArgs, out: &mut Output) -> Status {
    args.settings.tell_idle();
    let limits = limits(&args.settings);
    let program = match load_program(&args.file, &args.settings.reader(), &limits) {
        Ok(program) => program,
        Err(status) => return status,
    };
    let loaded = program.loaded();
    if !args.settings.extended {
        out.print(&dot::graphs(Source::from(loaded)));
        return Status::Fine;
    }
    let lazy = Lazy { options: args.settings.delays(), ..Lazy::default() };
    let _search = stop::Search::begin();
    let extended = match lazy.extended(&loaded.program, &limits, &Progress::default()) {
        Ok(extended) => extended,
        Err(reason) => {
            complain(loaded.sources.name(), &reason.to_string());
            return Status::Unknown;
        }
    };
    match export::fw(&extended.program) {
        Ok(text) => {
            out.print(&text);
            Status::Fine
        }
        Err(what) => {
            complain(
                loaded.sources.name(),
                &format!("the extended program cannot be written as .fw: {what}"),
            );
            Status::Unknown
        }
    }
}
