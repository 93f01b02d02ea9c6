//! Reading programs, with the texts of open documents in place of those on the disk.

use std::cell::{OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fencewright::engines::{Limits, Reason, Token};
use fencewright::lang::load::Failure;
use fencewright::lang::{FrontEnd, LoadError, Loaded, Loader, Stop};

use crate::Environment;
use crate::documents::Texts;
use crate::settings::Settings;
use crate::uri::plain;

/// A program to be read.
pub struct Question {
    /// What its main file is called.
    pub name: String,
    /// The text of its main file.
    pub text: Arc<str>,
    /// Its language.
    pub front_end: &'static dyn FrontEnd,
    /// The texts of open files.
    pub texts: Texts,
    /// What a user has set.
    pub settings: Arc<Settings>,
    /// Stops it.
    pub token: Token,
}

/// What came of it.
pub enum Outcome {
    /// A program.
    Program(Arc<Loaded>),
    /// Something is wrong with its text.
    Wrong(Box<LoadError>),
    /// It takes more time or memory than there is, in words.
    TooMuch(String),
    /// It is C without a `main`: a part of a program.
    Part,
    /// Somebody asked to stop.
    Cancelled,
}

/// What was read, and which files were read or looked for on the way: if one of them changes, so may this.
pub struct Answer {
    /// What came of it.
    pub outcome: Outcome,
    /// Included files, those that are not there too.
    pub files: Vec<PathBuf>,
}

/// What a question may use that begins now.
pub fn limits(settings: &Settings, environment: Environment, token: &Token) -> Limits {
    Limits::starting_now(settings.timeout, settings.memory, token.clone())
        .measured_by(environment.memory)
        .with_own_solver(settings.own_solver)
}

/// Reads a program.
pub fn load(question: &Question, environment: Environment) -> Answer {
    let limits = limits(&question.settings, environment, &question.token);
    // The reason is kept: by the time of the message the memory is free again.
    let reason = OnceCell::new();
    let ask = || limits.exceeded(0).is_some_and(|why| reason.set(why).is_ok());
    let files = RefCell::new(Vec::new());
    let open = |name: &str| {
        let path = plain(Path::new(name));
        files.borrow_mut().push(path.clone());
        match question.texts.get(&path) {
            Some(text) => Ok(text.as_bytes().to_vec()),
            None => (environment.read)(&path),
        }
    };
    let options = question.settings.options_for(question.front_end);
    let stop = Stop::when(&ask);
    let loader = Loader { front_end: Some(question.front_end), options: &options, stop: &stop, open: &open };
    let outcome = match loader.load(&question.name, question.text.as_bytes()) {
        Ok(loaded) => Outcome::Program(Arc::new(loaded)),
        Err(Failure::Wrong(error)) => match question.front_end.is_part(&error.diagnostics) {
            true => Outcome::Part,
            false => Outcome::Wrong(error),
        },
        Err(Failure::Stopped(at)) => match reason.get() {
            Some(Reason::Cancelled) | None => Outcome::Cancelled,
            Some(why) => {
                let at = at.map_or_else(String::new, |at| format!(" ({at})"));
                Outcome::TooMuch(format!("not even loaded: {why}{at}"))
            }
        },
    };
    Answer { outcome, files: files.into_inner() }
}
