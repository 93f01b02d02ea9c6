//! What can go wrong before there is an answer.

use std::path::PathBuf;
use std::{fmt, io};

use fencewright_certify::Rejection;
use fencewright_lang::LoadError;

/// Why there is no program, no answer, or no proof.
#[derive(Debug)]
pub enum Error {
    /// The file cannot be read.
    File(PathBuf, io::Error),
    /// The text is no program. It is displayed with places, as the command shows it.
    Text(Box<LoadError>),
    /// The question does not fit the program: why, in words.
    Question(String),
    /// The certificate is no proof about the program.
    Rejected(Rejection),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::File(path, error) => write!(f, "{}: {error}", path.display()),
            Error::Text(error) => f.write_str(error.sources.render(&error.diagnostics, false).trim_end()),
            Error::Question(why) => f.write_str(why),
            Error::Rejected(rejection) => write!(f, "{rejection}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::File(_, error) => Some(error),
            Error::Text(_) | Error::Question(_) | Error::Rejected(_) => None,
        }
    }
}

impl From<Box<LoadError>> for Error {
    fn from(error: Box<LoadError>) -> Self {
        Error::Text(error)
    }
}
