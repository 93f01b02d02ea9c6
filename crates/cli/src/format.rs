//! `fencewright fmt`: the one style.

use std::path::Path;

use fencewright_lang::source::{SourceFile, decode, escape};
use fencewright_lang::{Format, fw, import};

use crate::args::FmtArgs;
use crate::files;
use crate::input::{describe, display_name, is_standard_input, read};
use crate::output::{Output, complain, error_colour, write_error};
use crate::status::Status;

/// Formats all files.
pub fn run(args: &FmtArgs, out: &mut Output) -> Status {
    args.files.iter().map(|path| format_file(path, args, out)).fold(Status::Fine, Status::and)
}

fn format_file(path: &Path, args: &FmtArgs, out: &mut Output) -> Status {
    let name = display_name(path);
    let bad = |message: &str| {
        complain(&name, message);
        Status::Bad
    };
    let bytes = match read(path) {
        Ok(bytes) => bytes,
        Err(error) => return bad(&describe(&error)),
    };
    let formatted = match formatted(&name, &bytes) {
        Ok(formatted) => formatted,
        Err(message) => {
            write_error(&message);
            return Status::Bad;
        }
    };
    let unchanged = formatted.as_bytes() == bytes;
    if args.check {
        if !unchanged {
            out.print(&format!("{}\n", escape(&name)));
        }
        return if unchanged { Status::Fine } else { Status::Violated };
    }
    if args.stdout || is_standard_input(path) {
        out.print(&formatted);
        return Status::Fine;
    }
    match if unchanged { Ok(()) } else { files::replace(path, &formatted) } {
        Ok(()) => Status::Fine,
        Err(error) => bad(&format!("cannot write it: {}", describe(&error))),
    }
}

/// The text in the one style, or the message that says why there is none.
fn formatted(name: &str, bytes: &[u8]) -> Result<String, String> {
    let text =
        decode(bytes).map_err(|error| SourceFile::lossy(name, bytes).render(&[error], error_colour()))?;
    match import::detect(name, &text) {
        Format::Fw => {
            fw::format(&text).map_err(|errors| SourceFile::new(name, text).render(&errors, error_colour()))
        }
        other => Err(format!(
            "fencewright: {0}: only .fw files can be formatted, and this is a {1} file\n  help: `fencewright convert {0} \
             --to fw` translates it\n",
            escape(name),
            other.name()
        )),
    }
}
