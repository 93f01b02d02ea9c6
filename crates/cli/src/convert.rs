//! `fencewright convert`: translates a program into another format.

use fencewright::engines::Limits;

use crate::args::ConvertArgs;
use crate::files;
use crate::input::{load_program, tell_assumed, tell_notes};
use crate::output::{Output, complain, error_colour, write_error};
use crate::status::Status;

/// Translates a program.
pub fn run(args: &ConvertArgs, out: &mut Output) -> Status {
    if let Some(output) = &args.settings.output
        && let Some(why) = files::is_also_read(output, [args.file.as_path()])
    {
        complain(&output.to_string_lossy(), &why);
        return Status::Bad;
    }
    let mut program = match load_program(&args.file, &args.settings.reader(), &Limits::default()) {
        Ok(program) => program,
        Err(status) => return status,
    };
    if let Some(output) = &args.settings.output
        && let Some(why) = files::is_also_read(output, files::included(&program.loaded().sources))
    {
        complain(&output.to_string_lossy(), &why);
        return Status::Bad;
    }
    program.loaded_mut().settle_constants();
    let loaded = program.loaded();
    let to = args.settings.to.expect("the option is required");
    let converted = match to.0.print(loaded) {
        Ok(converted) => converted,
        Err(diagnostics) => {
            write_error(&loaded.sources.render(&diagnostics, error_colour()));
            return Status::Bad;
        }
    };
    tell_notes(loaded);
    tell_assumed(loaded);
    files::deliver(&converted, args.settings.output.as_deref(), out)
}
