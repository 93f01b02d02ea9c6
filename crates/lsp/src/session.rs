//! The open programs: schedules their reading and examination, and keeps the results.
//!
//! A change of a text starts a new *revision* of every program that the text is part of. All jobs for earlier revisions are cancelled, and their
//! later results are dropped. Reading begins a moment after the last change.

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
/// Number of threads that read programs; `EXAMINERS` is the number of threads that examine them.
const READERS: usize = 2;
const EXAMINERS: usize = 2;

/// An event of a program.
pub struct Event {
    /// The main file of the program.
    pub uri: Uri,
    /// The revision of the program that the event is about.
    pub revision: u64,
    /// The kind of event.
    pub what: What,
}

/// The kinds of events.
pub enum What {
    /// The program was read.
    Loaded(Answer),
    /// A run that examines the program has begun.
    Begun,
    /// The run that examines the program has a result.
    Found(Found),
    /// The run has ended; with the panic message if it panicked.
    Ended(Option<String>),
}

/// A program that is open.
#[derive(Default)]
pub struct Program {
    /// The number of the current revision. Numbers are never used again, even if the document is closed and reopened.
    pub revision: u64,
    /// The time at which to start reading the program; `None` if reading has started.
    due: Option<Instant>,
    /// Cancels the job that reads the program.
    loading: Option<Token>,
    /// The files that the program includes, including missing ones.
    files: Vec<PathBuf>,
    /// The program with its results; `None` before it was read, or if it has errors.
    pub answers: Option<Answers>,
    /// The run that examines the program, if any.
    pub run: Option<Run>,
    /// Whether the program is to be examined when it has been read.
    pub wanted: bool,
    /// Requests that are answered with the verdicts as soon as all properties have one.
    pub waiting: Vec<RequestId>,
    /// Requests that are handled when the program has been read.
    pub deferred: Vec<Request>,
}

/// A run that examines a program.
pub struct Run {
    /// Cancels the run.
    pub token: Token,
    /// The progress of the run.
    pub progress: Arc<Progress>,
    /// The settings with which the run was started.
    pub settings: Arc<Settings>,
    /// The time at which a worker thread started the run; `None` while the run is queued.
    pub begun: Option<Instant>,
    /// The token for the progress display in the client, and whether the display has begun.
    pub shown: Option<(String, bool)>,
}

impl Program {
    /// Whether the program has not been read completely.
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
    /// A session without programs; their events are sent to `events`.
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

    /// The program whose main file this is; `None` if it is not open.
    pub fn get(&self, uri: &Uri) -> Option<&Program> {
        self.programs.get(uri)
    }

    /// Mutable access to a program.
    pub fn get_mut(&mut self, uri: &Uri) -> Option<&mut Program> {
        self.programs.get_mut(uri)
    }

    /// All open programs, by the URIs of their main files.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&Uri, &mut Program)> {
        self.programs.iter_mut()
    }

    /// The program, if its current revision is this one.
    pub fn at(&mut self, uri: &Uri, revision: u64) -> Option<&mut Program> {
        self.programs.get_mut(uri).filter(|program| program.revision == revision)
    }

    /// The programs that a file is part of: as the main file or as an included file.
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

    /// Makes a program due for reading now, if reading has not started.
    pub fn hurry(&mut self, uri: &Uri) {
        if let Some(due) = self.programs.get_mut(uri).and_then(|program| program.due.as_mut()) {
            *due = Instant::now();
        }
    }

    /// The time at which the next program is due for reading.
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

    /// Starts to examine a program that has been read; returns false if there is no such program.
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
        // The results of an earlier run may be for other settings; a new revision makes sure that they are dropped.
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

/// Returns a function that makes events for this revision of a program.
fn about(uri: &Uri, revision: u64) -> impl Fn(What) -> Event + Send + use<> {
    let uri = uri.clone();
    move |what| Event { uri: uri.clone(), revision, what }
}

/// Cancels all jobs for a program.
fn stopped(program: Program) -> Program {
    program.loading.iter().for_each(|token| _ = token.cancel());
    program.run.iter().for_each(|run| _ = run.token.cancel());
    program
}
