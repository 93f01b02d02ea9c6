//! Errors that occur before there is an answer.

use std::path::PathBuf;
use std::{fmt, io};

use fencewright_certify::Rejection;
use fencewright_engines::Reason;
use fencewright_lang::LoadError;
use fencewright_program::Span;

use crate::input;

/// The reason why there is no program, no answer, or no proof.
#[derive(Debug)]
pub enum Error {
    /// The file cannot be read.
    File(PathBuf, io::Error),
    /// The text is not a program. Its errors are displayed with their source positions, as the command shows them.
    Text(Box<LoadError>),
    /// Reading the program was stopped: time or memory ran out, or the caller cancelled it.
    Unfinished {
        /// The reason for stopping.
        reason: Reason,
        /// The position in the text that was reached, if it is known.
        at: Option<String>,
    },
    /// The program states no property.
    NoProperty,
    /// A setting of the question does not fit the program or another setting: the name of the setting in [`settings`](crate::settings), and the
    /// reason.
    Setting(&'static str, String),
    /// Fences cannot help with any of the selected properties; with the position of the first of these properties, if the program states it.
    NothingForFences(Option<Span>),
    /// Time or memory ran out, or the caller cancelled the question by its token.
    Stopped(Reason),
    /// Two computations disagree, because of a defect of this project.
    Contradiction(&'static str),
    /// The question does not fit the program, for this reason.
    Question(String),
    /// The certificate does not prove its claim about the program, or is too hard for the checker.
    Rejected(Rejection),
}

impl Error {
    /// Whether memory ran out while the program was read. If so, the question may succeed when no other question runs.
    pub fn lacks_memory(&self) -> bool {
        matches!(self, Error::Unfinished { reason: Reason::Memory(_), .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::File(path, error) => write!(f, "{}: {}", path.display(), input::in_words(error)),
            Error::Text(error) => f.write_str(error.sources.render(&error.diagnostics, false).trim_end()),
            Error::Unfinished { reason, at: Some(at) } => {
                write!(f, "not even loaded (this far: {at}): {reason}")
            }
            Error::Unfinished { reason, at: None } => write!(f, "not even loaded: {reason}"),
            Error::NoProperty => f.write_str("the program states no property, so there is nothing to check"),
            Error::Setting(name, why) => write!(f, "{name}: {why}"),
            Error::NothingForFences(None) => {
                f.write_str("the program states no property that fences could help with")
            }
            Error::NothingForFences(Some(_)) => {
                f.write_str("fences cannot help with `finally exists`: they only take executions away")
            }
            Error::Stopped(reason) => write!(f, "{reason}"),
            Error::Contradiction(what) => write!(f, "internal contradiction, please report it: {what}"),
            Error::Question(why) => f.write_str(why),
            Error::Rejected(rejection) => write!(f, "{rejection}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::File(_, error) => Some(error),
            _ => None,
        }
    }
}

impl From<Box<LoadError>> for Error {
    fn from(error: Box<LoadError>) -> Self {
        Error::Text(error)
    }
}
