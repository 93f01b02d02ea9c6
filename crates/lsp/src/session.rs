//! The programs that are open: when each is read and examined, and what is known about it.
//!
//! A change makes a new *revision* of every program that the text is part of. Whatever runs for an older one is cancelled, and whatever it still says
//! is dropped. Reading begins a moment after the last change.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use fencewright::engines::{Progress, Token};
use lsp_server::{Request, RequestId};
use lsp_types::Uri;

use crate::Environment;
use crate::answers::Answers;
use crate::check::{self, Found};
use crate::documents::Documents;
use crate::load::{self, Answer};
use crate::pool::Pool;
use crate::settings::Settings;

/// A program is read after its text was unchanged for this time.
const PAUSE: Duration = Duration::from_millis(100);
/// Number of threads that read programs, and that examine them.
const READERS: usize = 2;
const EXAMINERS: usize = 2;

/// An event of a program.
pub struct Event {
    /// Its main file.
    pub uri: Uri,
    /// The revision that it is about.
    pub revision: u64,
    /// The kind of event.
    pub what: What,
}

/// The kinds of events.
pub enum What {
    /// It was read.
    Loaded(Answer),
    /// A run that examines it has begun.
    Begun,
    /// Something was found out.
    Found(Found),
    /// It has been examined; if that did not go well, in words.
    Ended(Option<String>),
}

/// A program that is open.
#[derive(Default)]
pub struct Program {
    /// Which revision this is. Numbers are never used again, even if the document is closed and opened.
    pub revision: u64,
    /// When to read it.
    due: Option<Instant>,
    /// Stops reading it.
    loading: Option<Token>,
    /// The files that it includes, including missing ones.
    files: Vec<PathBuf>,
    /// The program with its answers; `None` before it was read, or if it has errors.
    pub answers: Option<Answers>,
    /// The run that examines it.
    pub run: Option<Run>,
    /// Whether it is to be examined when it has been read.
    pub wanted: bool,
    /// Requests that wait for the verdicts.
    pub waiting: Vec<RequestId>,
    /// Requests that wait until it has been read.
    pub deferred: Vec<Request>,
}

/// A run that examines a program.
pub struct Run {
    /// Stops it.
    pub token: Token,
    /// How far it has come.
    pub progress: Arc<Progress>,
    /// The settings that it follows.
    pub settings: Arc<Settings>,
    /// When its turn came.
    pub begun: Option<Instant>,
    /// The name under which the client shows how far it has come, and whether that has begun.
    pub shown: Option<(String, bool)>,
}

impl Program {
    /// Whether it is still to be read.
    pub fn is_pending(&self) -> bool {
        self.due.is_some() || self.loading.is_some()
    }
}

/// All programs that are open.
pub struct Session {
    programs: BTreeMap<Uri, Program>,
    revisions: u64,
    loads: Pool,
    checks: Pool,
    environment: Environment,
    events: Sender<Event>,
}

impl Session {
    /// No programs; what happens to them goes here.
    pub fn new(environment: Environment, events: Sender<Event>) -> Self {
        Session {
            programs: BTreeMap::new(),
            revisions: 0,
            loads: Pool::new("reading", READERS),
            checks: Pool::new("examining", EXAMINERS),
            environment,
            events,
        }
    }

    /// A program.
    pub fn get(&self, uri: &Uri) -> Option<&Program> {
        self.programs.get(uri)
    }

    /// Mutable access to a program.
    pub fn get_mut(&mut self, uri: &Uri) -> Option<&mut Program> {
        self.programs.get_mut(uri)
    }

    /// All programs.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&Uri, &mut Program)> {
        self.programs.iter_mut()
    }

    /// A program, if this is still its revision.
    pub fn at(&mut self, uri: &Uri, revision: u64) -> Option<&mut Program> {
        self.programs.get_mut(uri).filter(|program| program.revision == revision)
    }

    /// The programs that a file is part of: their main file, or one that they include.
    pub fn with_file(&self, uri: &Uri, path: Option<&Path>) -> Vec<Uri> {
        let is_part = |(main, program): &(&Uri, &Program)| {
            *main == uri || path.is_some_and(|path| program.files.iter().any(|file| file == path))
        };
        self.programs.iter().filter(is_part).map(|(main, _)| main.clone()).collect()
    }

    /// Starts a new revision of a program, which is read at once or after a pause. Returns the old revision, with all its runs cancelled.
    pub fn revise(&mut self, uri: &Uri, at_once: bool) -> Program {
        self.revisions += 1;
        let due = Instant::now() + if at_once { Duration::ZERO } else { PAUSE };
        let program = self.programs.entry(uri.clone()).or_default();
        let new = Program {
            revision: self.revisions,
            due: Some(due),
            files: program.files.clone(),
            deferred: std::mem::take(&mut program.deferred),
            ..Program::default()
        };
        stopped(std::mem::replace(program, new))
    }

    /// Removes a program. Returns it, with all its runs cancelled.
    pub fn forget(&mut self, uri: &Uri) -> Option<Program> {
        self.programs.remove(uri).map(stopped)
    }

    /// Makes a program due now, if it is still to be read.
    pub fn hurry(&mut self, uri: &Uri) {
        if let Some(due) = self.programs.get_mut(uri).and_then(|program| program.due.as_mut()) {
            *due = Instant::now();
        }
    }

    /// When the next program is to be read.
    pub fn next(&self) -> Option<Instant> {
        self.programs.values().filter_map(|program| program.due).min()
    }

    /// Starts reading the programs that are due.
    pub fn read_due(&mut self, documents: &Documents, settings: &Arc<Settings>) {
        let now = Instant::now();
        for (uri, program) in &mut self.programs {
            if program.due.is_none_or(|due| due > now) {
                continue;
            }
            program.due = None;
            let Some(document) = documents.get(uri) else { continue };
            let Some(front_end) = document.front_end(uri) else { continue };
            let token = Token::default();
            program.loading = Some(token.clone());
            let question = load::Question {
                name: document.name(uri),
                text: Arc::clone(&document.text),
                front_end,
                texts: documents.texts(),
                settings: Arc::clone(settings),
                token,
            };
            let (environment, events) = (self.environment, self.events.clone());
            let event = about(uri, program.revision);
            let broken = (events.clone(), about(uri, program.revision));
            let job = move || {
                let answer = load::load(&question, environment);
                let _ = events.send(event(What::Loaded(answer)));
            };
            let panicked = move |why| {
                let answer = Answer { outcome: load::Outcome::TooMuch(why), files: Vec::new() };
                let _ = broken.0.send(broken.1(What::Loaded(answer)));
            };
            self.loads.run(job, panicked);
        }
    }

    /// Notes that a program has been read.
    pub fn loaded(&mut self, uri: &Uri, files: Vec<PathBuf>) {
        if let Some(program) = self.programs.get_mut(uri) {
            program.loading = None;
            program.files = files;
        }
    }

    /// Begins to examine a program that has been read; whether there is one.
    pub fn examine(&mut self, uri: &Uri, settings: &Arc<Settings>) -> bool {
        let Some(program) = self.programs.get_mut(uri) else { return false };
        let Some(answers) = &mut program.answers else { return false };
        *answers = Answers::new(answers.program.clone());
        (answers.models, answers.checking) = (settings.models.clone(), true);
        let (token, progress) = (Token::default(), Arc::new(Progress::default()));
        let question = check::Question {
            program: answers.program.clone(),
            settings: Arc::clone(settings),
            environment: self.environment,
            token: token.clone(),
            progress: Arc::clone(&progress),
        };
        // What an earlier run still says would be about another question.
        self.revisions += 1;
        program.revision = self.revisions;
        let run = Run { token, progress, settings: Arc::clone(settings), begun: None, shown: None };
        if let Some(earlier) = program.run.replace(run) {
            earlier.token.cancel();
        }
        let events = self.events.clone();
        let (event, ended) = (about(uri, program.revision), about(uri, program.revision));
        let broken = self.events.clone();
        let job = move || {
            let _ = events.send(event(What::Begun));
            question.examine(&|found| _ = events.send(event(What::Found(found))));
            let _ = events.send(event(What::Ended(None)));
        };
        self.checks.run(job, move |why| _ = broken.send(ended(What::Ended(Some(why)))));
        true
    }
}

/// Makes events about a revision of a program.
fn about(uri: &Uri, revision: u64) -> impl Fn(What) -> Event + Send + use<> {
    let uri = uri.clone();
    move |what| Event { uri: uri.clone(), revision, what }
}

/// Cancels everything that runs for a program.
fn stopped(program: Program) -> Program {
    program.loading.iter().for_each(|token| _ = token.cancel());
    program.run.iter().for_each(|run| _ = run.token.cancel());
    program
}
