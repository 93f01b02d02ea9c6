//! Standard output and standard error: all commands write to them through this module.
//!
//! If the reader of the output has closed it (`| head`), further output is discarded, and the command ends silently as soon as it notices. Any other
//! failure is reported once, at the end.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use fencewright::lang::Position;
use fencewright::lang::source::escape;
use fencewright_report::Style;
use fencewright_report::json::Failure;

/// The standard output, buffered.
pub struct Output {
    stdout: BufWriter<Stdout>,
    failure: Option<io::Error>,
    /// The style of the text output.
    pub style: Style,
}

impl Output {
    /// The standard output of this process.
    pub fn new() -> Self {
        let style = Style { colour: wants_colour(&io::stdout()), ..Style::default() };
        Output { stdout: BufWriter::new(io::stdout()), failure: None, style }
    }

    /// Prints a text as it is.
    pub fn print(&mut self, text: &str) {
        if self.failure.is_none() {
            self.failure = self.stdout.write_all(text.as_bytes()).err();
        }
    }

    /// Flushes the output.
    pub fn flush(&mut self) {
        if self.failure.is_none() {
            self.failure = self.stdout.flush().err();
        }
    }

    /// Reports an error about a file, or a position in it, on the standard error. With `json`, also prints an object in place of the answer.
    pub fn refuse(&mut self, json: bool, about: &str, message: &str, position: Option<Position<'_>>) {
        match position {
            Some(position) => write_error(&format!("fencewright: {position}: {message}\n")),
            None => complain(about, message),
        }
        let first = message.lines().next().unwrap_or(message);
        self.tell_failure(json, &Failure::new(about, first, position));
    }

    /// With `json`, prints an object in place of the answer.
    pub fn tell_failure(&mut self, json: bool, failure: &Failure) {
        if json {
            self.print(&failure.json());
            self.flush();
        }
    }

    /// Whether writing has failed, so that further output would be lost.
    pub fn is_closed(&self) -> bool {
        self.failure.is_some()
    }

    /// Ends the output. A closed pipe is not an error.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush();
        // Takes the writer apart, because dropping it would try to write the buffered output again.
        let (failure, stdout) = (self.failure, self.stdout);
        drop(stdout.into_parts());
        match failure {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }
}

/// Whether a stream is a terminal that supports colours, and the user has not disabled them.
fn wants_colour(stream: &impl IsTerminal) -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
    stream.is_terminal() && !unwanted && !dumb
}

/// Whether error messages are coloured.
pub fn error_colour() -> bool {
    wants_colour(&io::stderr())
}

/// Writes to the standard error; failures are ignored.
pub fn write_error(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Reports an error on the standard error; `about` is usually the name of a file.
pub fn complain(about: &str, message: &str) {
    write_error(&format!("fencewright: {}: {message}\n", escape(about)));
}
