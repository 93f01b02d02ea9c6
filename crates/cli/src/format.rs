//! `fencewright fmt`: formats .fw files.

use std::path::Path;

use fencewright::input::{MOST_BYTES, in_words, is_standard_input, name_of, read};
use fencewright::lang::front_end;
use fencewright::lang::source::{SourceFile, decode, escape, marked_like};

use crate::args::FmtArgs;
use crate::files::Original;
use crate::output::{Output, error_colour, write_error};
use crate::status::Status;

/// Formats all files.
pub fn run(args: &FmtArgs, out: &mut Output) -> Status {
    args.files.iter().map(|path| format_file(path, args, out)).fold(Status::Fine, Status::and)
}

fn format_file(path: &Path, args: &FmtArgs, out: &mut Output) -> Status {
    let in_place = !args.settings.unformatted && !args.settings.stdout && !is_standard_input(path);
    let formatted =
        if in_place { format_in_place(path) } else { compare_or_print(path, args.settings.unformatted, out) };
    formatted.unwrap_or_else(|message| {
        write_error(&message);
        Status::Bad
    })
}

fn format_in_place(path: &Path) -> Result<Status, String> {
    let original = Original::read(path, MOST_BYTES).map_err(|error| failure(path, &in_words(&error)))?;
    let formatted = formatted(path, &original.bytes)?;
    if formatted.as_bytes() != original.bytes {
        let failed = |error| failure(path, &format!("cannot write it: {}", in_words(&error)));
        original.replace(path, formatted.as_bytes()).map_err(failed)?;
    }
    Ok(Status::Fine)
}

fn compare_or_print(path: &Path, compare: bool, out: &mut Output) -> Result<Status, String> {
    let bytes = read(path).map_err(|error| failure(path, &in_words(&error)))?;
    let formatted = formatted(path, &bytes)?;
    Ok(match compare {
        true if formatted.as_bytes() != bytes => {
            out.print(&format!("{}\n", escape(&name_of(path))));
            Status::Violated
        }
        true => Status::Fine,
        false => {
            out.print(&formatted);
            Status::Fine
        }
    })
}

fn failure(path: &Path, why: &str) -> String {
    format!("fencewright: {}: {why}\n", escape(&name_of(path)))
}

/// The formatted text, or the message why it cannot be formatted.
fn formatted(path: &Path, bytes: &[u8]) -> Result<String, String> {
    let name = &name_of(path);
    let text =
        decode(bytes).map_err(|error| SourceFile::lossy(name, bytes).render(&[error], error_colour()))?;
    let front_end = front_end::detect(name, &text);
    match front_end.format(&text) {
        Some(formatted) => {
            let formatted =
                formatted.map_err(|errors| SourceFile::new(name, text).render(&errors, error_colour()))?;
            Ok(marked_like(bytes, &formatted))
        }
        None => Err(format!(
            "fencewright: {0}: only .fw files can be formatted, and this is a {1} file\n  help: `fencewright convert {0} \
             --to fw` translates it\n",
            escape(name),
            front_end.name()
        )),
    }
}
