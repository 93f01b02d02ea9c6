//! Reads programs. For open documents, the text in the editor is used instead of the file on the disk.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fencewright::engines::Reason;
use fencewright::input::{in_words, read_included};
use fencewright::lang::{FrontEnd, LoadError};
use fencewright::{Budget, Error, Meter, Program, Reader, Token};

use crate::Environment;
use crate::documents::Texts;
use crate::settings::Settings;
use crate::uri::plain;

/// A program to be read.
pub struct Question {
    /// The name of the main file.
    pub name: String,
    /// The text of the main file.
    pub text: Arc<str>,
    /// The language of the program.
    pub front_end: &'static dyn FrontEnd,
    /// The texts of open files.
    pub texts: Texts,
    /// The settings, which include the options for reading.
    pub settings: Arc<Settings>,
    /// Cancels reading.
    pub token: Token,
}

/// The outcome of reading a program.
pub enum Outcome {
    /// The text was read without errors.
    Program(Program),
    /// The text has errors, which become diagnostics.
    Wrong(Box<LoadError>),
    /// Reading failed for another reason, such as a limit that was reached; the message.
    TooMuch(String),
    /// The text is C without a `main`: a part of a program.
    Part,
    /// Reading was cancelled.
    Cancelled,
}

/// The outcome of reading a program, with the files on which the outcome depends.
pub struct Answer {
    /// The program, or why there is none.
    pub outcome: Outcome,
    /// Included files, including missing ones.
    pub files: Vec<PathBuf>,
}

/// The limits of each question on time and memory; memory is counted for the whole server.
pub fn budget(settings: &Settings, environment: Environment, token: &Token) -> Budget {
    // Memory left over from earlier questions cannot be freed before a question starts, because other questions run at the same time.
    let meter = Meter { used: environment.memory, make_room: |_| {} };
    Budget {
        timeout: settings.timeout,
        memory: settings.memory,
        token: token.clone(),
        own_solver: settings.own_solver,
        meter: Some(meter),
    }
}

/// Reads a program, and collects the names of all files that reading has tried to open.
pub fn load(question: &Question, environment: Environment) -> Answer {
    let files = RefCell::new(Vec::new());
    let open = |name: &str| {
        let path = plain(Path::new(name));
        files.borrow_mut().push(path.clone());
        match question.texts.get(&path) {
            Some(text) => Ok(text.as_bytes().to_vec()),
            None => read_included(&path).map_err(|error| in_words(&error)),
        }
    };
    let reader = Reader {
        options: question.settings.options_for(question.front_end),
        format: Some(question.front_end),
        limits: budget(&question.settings, environment, &question.token).start(),
        ..Reader::default()
    };
    let outcome = match reader.read_with(&question.name, question.text.as_bytes(), &open) {
        Ok(program) => Outcome::Program(program),
        Err(Error::Text(error)) => match matches!(&error.diagnostics[..], [only] if only.lacks_start) {
            true => Outcome::Part,
            false => Outcome::Wrong(error),
        },
        Err(Error::Unfinished { reason: Reason::Cancelled, .. }) => Outcome::Cancelled,
        Err(Error::Unfinished { reason, at }) => {
            let at = at.map_or_else(String::new, |at| format!(" ({at})"));
            Outcome::TooMuch(format!("not even loaded: {reason}{at}"))
        }
        Err(error) => Outcome::TooMuch(error.to_string()),
    };
    Answer { outcome, files: files.into_inner() }
}
