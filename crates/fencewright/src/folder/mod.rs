//! Checks all programs in folders, several at a time.
//!
//! [`programs`] lists the programs of folders. A [`Batch`] asks the same [`Question`] about programs, each with its memory model, on several threads
//! of one process that share its memory. A run that lacks memory because of the other runs is repeated alone. A folder may contain a file
//! [`expected.toml`](expected) with the expected verdicts.
//!
//! ```no_run
//! use std::path::PathBuf;
//!
//! use fencewright::engines::Progress;
//! use fencewright::folder::{self, Asked, Batch, Event, Outcome, Scribe};
//! use fencewright::{Budget, MemoryModel, Question, Reader};
//!
//! /// One line for each answer.
//! struct Lines;
//!
//! impl Scribe for Lines {
//!     type Line = String;
//!     type Part = ();
//!
//!     fn line(&self, asked: &Asked, outcome: Outcome<'_>) -> String {
//!         match outcome {
//!             Outcome::Answer { checked, .. } => format!("{}: {}", asked.name(), checked.property.name),
//!             Outcome::Failure(why) => format!("{}: {why}", asked.name()),
//!         }
//!     }
//!
//!     fn part(&self, _: &Asked, _: Outcome<'_>) {}
//! }
//!
//! let asked = folder::programs(&[PathBuf::from("examples")]).expect("it can be listed").into_iter();
//! let batch = Batch {
//!     asked: asked.map(|program| Asked { program, model: MemoryModel::Tso }).collect(),
//!     reader: Reader::default(),
//!     question: Question::under(MemoryModel::Tso),
//!     jobs: 0,
//!     warn_of_races: false,
//! };
//! batch.run(&Lines, &Progress::default(), |events| {
//!     for (_, event) in events {
//!         if let Event::Answer { line, .. } = event {
//!             println!("{line}");
//!         }
//!     }
//! });
//! ```

pub mod expected;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, PoisonError, RwLock};
use std::{fs, thread};

use fencewright_engines::{Checked, Limits, Progress, Reason, Verdict};
use fencewright_lang::front_end;
use fencewright_program::MemoryModel;

use crate::input::{in_words, is_standard_input, name_of, read};
use crate::{Error, Program, Question, Reader};
use expected::Entry;

/// Maximum nesting depth of folders.
const DEEPEST: usize = 32;
/// Stack size of a worker in bytes: parsers recurse over nested programs.
const STACK: usize = 64 << 20;

/// A folder that cannot be listed, or whose expected verdicts cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The folder or file.
    pub name: String,
    /// The error message.
    pub why: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.why)
    }
}

impl std::error::Error for Unreadable {}

/// A program of a folder, or a program that the user named directly.
#[derive(Clone, Debug)]
pub struct Item {
    /// The path of the program's file, as it was found in the folder or named by the user.
    pub file: PathBuf,
    /// The program's entry in `expected.toml`; `None` if there is no entry, or the user named the program directly.
    pub entry: Option<Entry>,
    /// The text of a program from a pipe or the standard input, which can be read only once; `None` for other programs.
    text: Option<Arc<Vec<u8>>>,
    /// The reason why the program cannot be read, if that is already known.
    wrong: Option<String>,
}

impl Item {
    fn new(file: PathBuf, entry: Option<Entry>) -> Self {
        Item { file, entry, text: None, wrong: None }
    }

    /// The item for an existing file or folder that cannot be read.
    fn wrong(file: &Path, why: impl Into<String>) -> Self {
        Item { wrong: Some(why.into()), ..Item::new(file.to_owned(), None) }
    }

    /// The item for a path that the user named and that is not a folder. Pipes and the standard input are read immediately, because they can be read
    /// only once.
    fn given(path: &Path) -> Self {
        let item = Item::new(path.to_owned(), None);
        if !is_standard_input(path) && fs::metadata(path).map_or(true, |about| about.is_file()) {
            return item;
        }
        match read(path) {
            Ok(text) => Item { text: Some(Arc::new(text)), ..item },
            Err(error) => Item { wrong: Some(in_words(&error)), ..item },
        }
    }
}

/// A program and the memory model under which it is checked.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The program that the question is about.
    pub program: Item,
    /// The memory model under which the program is checked.
    pub model: MemoryModel,
}

impl Asked {
    /// The name of the file, followed by the constants and macros that `expected.toml` defines.
    pub fn name(&self) -> String {
        let mut name = name_of(&self.program.file);
        for (macro_name, value) in self.program.entry.iter().flat_map(|entry| &entry.define) {
            name.push_str(&format!(" -D {macro_name}"));
            name.extend(value.iter().map(|value| format!("={value}")));
        }
        name
    }

    /// The expected verdict under the memory model, if `expected.toml` has one.
    pub fn expected(&self) -> Option<&str> {
        self.program.entry.as_ref().and_then(|entry| entry.verdict(self.model))
    }
}

/// The programs that these paths name: each file itself, and for each folder all programs in it. Duplicates are left out.
pub fn programs(paths: &[PathBuf]) -> Result<Vec<Item>, Unreadable> {
    let mut all: Vec<Item> = Vec::new();
    let mut known: BTreeSet<(PathBuf, Option<Entry>)> = BTreeSet::new();
    for path in paths {
        let found = match path.is_dir() {
            true => programs_in(path, 0)?,
            false if known.contains(&(path.clone(), None)) => continue,
            false => vec![Item::given(path)],
        };
        all.extend(
            found.into_iter().filter(|program| known.insert((program.file.clone(), program.entry.clone()))),
        );
    }
    Ok(all)
}

/// The programs of a folder and its subfolders, sorted by name, with their expected verdicts. Hidden files and folders are left out, unless
/// `expected.toml` names such a file.
fn programs_in(folder: &Path, depth: usize) -> Result<Vec<Item>, Unreadable> {
    let entries = expected::of(folder)
        .map_err(|why| Unreadable { name: name_of(&folder.join(expected::NAME)), why })?;
    let mut paths: BTreeSet<PathBuf> = BTreeSet::new();
    let listed: Result<Vec<fs::DirEntry>, _> = fs::read_dir(folder).and_then(Iterator::collect);
    match listed {
        Ok(items) => {
            let shown = |item: &fs::DirEntry| !item.file_name().to_string_lossy().starts_with('.');
            paths.extend(items.into_iter().filter(shown).map(|item| item.path()));
        }
        Err(error) if depth == 0 => return Err(Unreadable { name: name_of(folder), why: in_words(&error) }),
        Err(error) => return Ok(vec![Item::wrong(folder, in_words(&error))]),
    }
    // Files that `expected.toml` names are added, so that a missing one is reported like a program.
    paths.extend(entries.iter().map(|entry| entry.file.clone()));
    let mut found = Vec::new();
    for path in paths {
        // Symbolic links to folders are not followed, because they may form a cycle.
        if fs::symlink_metadata(&path).is_ok_and(|about| about.is_dir()) {
            match depth < DEEPEST {
                true => found.extend(programs_in(&path, depth + 1)?),
                false => found.push(Item::wrong(&path, "this folder lies too deep to be looked into")),
            }
            continue;
        }
        let before = found.len();
        let own = entries.iter().filter(|entry| entry.file == path);
        found.extend(own.map(|entry| Item::new(path.clone(), Some(entry.clone()))));
        if found.len() == before && is_program(&path) && !path.is_dir() {
            found.push(Item::new(path.clone(), None));
        }
        // Opening a pipe would block until another process writes to it.
        if fs::metadata(&path).is_ok_and(|about| !about.is_file() && !about.is_dir()) {
            let why = Some("this is not a regular file".to_string());
            found[before..].iter_mut().for_each(|program| program.wrong.clone_from(&why));
        }
    }
    Ok(found)
}

/// Whether a file is a program, by its extension.
fn is_program(path: &Path) -> bool {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    extension
        .is_some_and(|extension| front_end::ALL.iter().any(|known| known.extension() == Some(&extension)))
}

/// The outcome of a question: a verdict on one property, or a failure for a whole program.
#[derive(Clone, Copy)]
pub enum Outcome<'a> {
    /// A verdict on one property.
    Answer {
        /// The program as it was read for this question.
        program: &'a Program,
        /// The memory model under which the program is checked.
        model: MemoryModel,
        /// The verdict with its evidence.
        checked: &'a Checked,
    },
    /// There are no verdicts, for this reason.
    Failure(&'a Failure),
}

/// Why a program of a batch has no verdicts.
#[derive(Debug)]
pub enum Failure {
    /// The file is unusable, for this reason in words.
    Unusable(String),
    /// The batch was stopped before this program was read.
    Stopped,
    /// The program cannot be read, or the question does not fit it.
    Error(Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Unusable(why) => f.write_str(why),
            Failure::Stopped => f.write_str("stopped"),
            Failure::Error(error) => write!(f, "{error}"),
        }
    }
}

fn outcome<'a>(program: &'a Program, asked: &Asked, checked: &'a Checked) -> Outcome<'a> {
    Outcome::Answer { program, model: asked.model, checked }
}

/// Renders outcomes. The methods are called on the thread that found the outcome.
pub trait Scribe: Sync {
    /// A rendered outcome, to be shown as soon as it is found.
    type Line: Send;
    /// A rendered outcome, to be kept until the batch is finished.
    type Part: Send;

    /// Renders an outcome as soon as it is found.
    fn line(&self, asked: &Asked, outcome: Outcome<'_>) -> Self::Line;

    /// Renders an outcome once it is final.
    fn part(&self, asked: &Asked, outcome: Outcome<'_>) -> Self::Part;
}

/// An event of one question of a batch.
pub enum Event<L, P> {
    /// A property has an outcome, or the whole program a failure: then `property` is 0 and `of` is 1.
    Answer {
        /// The index of the property.
        property: usize,
        /// The number of properties of the question.
        of: usize,
        /// The rendered outcome.
        line: L,
    },
    /// All properties have their outcomes; the rendered outcomes in the order of the properties.
    Done(Vec<P>),
}

/// An event with the index of its question in [`Batch::asked`].
pub type Numbered<S> = (usize, Event<<S as Scribe>::Line, <S as Scribe>::Part>);

/// Questions about programs that are answered in parallel.
pub struct Batch {
    /// The programs and memory models.
    pub asked: Vec<Asked>,
    /// How the programs are read. Definitions given here override those of `expected.toml`.
    pub reader: Reader,
    /// The question about each program. Its memory model is replaced by that of [`Asked`]. If it names no properties, the property in `expected.toml`
    /// is checked, or all if there is none.
    pub question: Question,
    /// Number of threads; 0 for the number of cores.
    pub jobs: usize,
    /// Whether to search for data races of plain accesses.
    pub warn_of_races: bool,
}

impl Batch {
    /// Answers all questions. `receive` is called once, with a receiver of the events in the order in which they occur, each with the index of its
    /// question. The events end when all questions are answered. Once the token of the question is cancelled, the remaining programs fail with
    /// `Failure::Stopped`.
    pub fn run<S: Scribe>(
        &self,
        scribe: &S,
        progress: &Progress,
        receive: impl FnOnce(Receiver<Numbered<S>>),
    ) {
        let workers = match self.jobs {
            0 => thread::available_parallelism().map_or(1, usize::from),
            jobs => jobs,
        };
        let workers = workers.min(self.asked.len());
        let next = AtomicUsize::new(0);
        let (sender, receiver) = mpsc::channel();
        let turns = RwLock::new(());
        thread::scope(|scope| {
            let mut started = 0;
            for _ in 0..workers {
                let (sender, next, turns) = (sender.clone(), &next, &turns);
                let work = move || {
                    let run = Run { batch: self, scribe, progress, turns, beside: workers > 1, sender };
                    while let Some(n) =
                        Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&n| n < self.asked.len())
                    {
                        run.answer(n);
                    }
                };
                // If a thread cannot be started, the remaining workers just take longer.
                started +=
                    thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).is_ok() as usize;
            }
            if started == 0 {
                let run = Run { batch: self, scribe, progress, turns: &turns, beside: false, sender };
                (0..self.asked.len()).for_each(|n| run.answer(n));
            } else {
                drop(sender);
            }
            receive(receiver);
        });
    }
}

/// The outcome of a search that ran out of memory while others ran. It is rendered already, in case a second search, which runs alone, has no better
/// outcome.
struct Pressed<L, P> {
    /// The index of the property.
    property: usize,
    of: usize,
    line: L,
    part: P,
    /// Number of bytes that this search used itself; 0 if memory ran out before, while the program was read.
    bytes: u64,
}

/// One worker of a batch.
struct Run<'a, S: Scribe> {
    batch: &'a Batch,
    scribe: &'a S,
    progress: &'a Progress,
    /// Ordinary runs hold the lock for reading, so they can run in parallel. A run that needs all memory holds it for writing, so that no other run
    /// uses memory.
    turns: &'a RwLock<()>,
    /// Whether there are other workers.
    beside: bool,
    sender: mpsc::Sender<Numbered<S>>,
}

/// The rendered outcomes of a question, by the indices of their properties.
type Parts<S> = BTreeMap<usize, <S as Scribe>::Part>;
/// The outcomes of a question for which memory ran out.
type PressedOnes<S> = Vec<Pressed<<S as Scribe>::Line, <S as Scribe>::Part>>;

impl<S: Scribe> Run<'_, S> {
    /// Answers the question with index `n`, beside others if there are any. Searches that then run out of memory may be repeated alone.
    fn answer(&self, n: usize) {
        let mut parts = BTreeMap::new();
        let mut pressed = {
            let _beside = self.turns.read().unwrap_or_else(PoisonError::into_inner);
            self.ask(n, None, &mut parts)
        };
        if self.beside && !pressed.is_empty() && !self.is_stopped() && self.may_gain(&pressed) {
            let _alone = self.turns.write().unwrap_or_else(PoisonError::into_inner);
            let again: Vec<usize> = pressed.iter().map(|pressed| pressed.property).collect();
            drop(pressed);
            pressed = self.ask(n, Some(&again), &mut parts);
        }
        for Pressed { property, of, line, part, .. } in pressed {
            parts.insert(property, part);
            self.tell(n, Event::Answer { property, of, line });
        }
        self.tell(n, Event::Done(parts.into_values().collect()));
    }

    fn is_stopped(&self) -> bool {
        self.batch.question.own_budget().token.is_cancelled()
    }

    /// Whether a search could have considerably more memory if it ran alone.
    fn may_gain(&self, pressed: &PressedOnes<S>) -> bool {
        let had = pressed.iter().map(|pressed| pressed.bytes).max().unwrap_or(0);
        self.batch.question.own_budget().memory.is_none_or(|limit| had < limit / 8 * 7)
    }

    /// Sends an event. If the receiver is gone, the event is dropped.
    fn tell(&self, n: usize, event: Event<S::Line, S::Part>) {
        let _ = self.sender.send((n, event));
    }

    /// Checks all properties of a program, or the properties with the indices `only`, and sends each outcome as soon as it is found. Outcomes for
    /// which memory ran out are not sent but returned.
    fn ask(&self, n: usize, only: Option<&[usize]>, parts: &mut Parts<S>) -> PressedOnes<S> {
        let asked = &self.batch.asked[n];
        self.ask_about(n, asked, only, parts).unwrap_or_else(|failure| {
            let outcome = Outcome::Failure(&failure);
            let (line, part) = (self.scribe.line(asked, outcome), self.scribe.part(asked, outcome));
            if matches!(&failure, Failure::Error(error) if error.lacks_memory()) {
                return vec![Pressed { property: 0, of: 1, line, part, bytes: 0 }];
            }
            parts.insert(0, part);
            self.tell(n, Event::Answer { property: 0, of: 1, line });
            Vec::new()
        })
    }

    fn ask_about(
        &self,
        n: usize,
        asked: &Asked,
        only: Option<&[usize]>,
        parts: &mut Parts<S>,
    ) -> Result<PressedOnes<S>, Failure> {
        if let Some(why) = &asked.program.wrong {
            return Err(Failure::Unusable(why.clone()));
        }
        if self.is_stopped() {
            return Err(Failure::Stopped);
        }
        let question = self.question(asked);
        let limits = question.own_budget().start();
        let mut program = self.read(asked, &question, &limits).map_err(Failure::Error)?;
        if self.batch.warn_of_races {
            program.warn_of_races(&limits);
        }
        let mut posed = question.pose(&program).map_err(Failure::Error)?;
        let of = posed.properties.len();
        let numbers: Vec<usize> = only.map_or_else(|| (0..of).collect(), <[usize]>::to_vec);
        posed.properties = numbers.iter().map(|&number| posed.properties[number].clone()).collect();
        let is_pressed = |checked: &Checked| matches!(checked.verdict(), Verdict::Unknown(Reason::Memory(_)));
        let mut tell = |k: usize, checked: &Checked| {
            if !is_pressed(checked) {
                let line = self.scribe.line(asked, outcome(&program, asked, checked));
                self.tell(n, Event::Answer { property: numbers[k], of, line });
            }
        };
        let verdicts = posed.check(asked.model, &limits, self.progress, &mut tell);
        let mut pressed = Vec::new();
        for (&property, checked) in numbers.iter().zip(&verdicts) {
            let part = self.scribe.part(asked, outcome(&program, asked, checked));
            if is_pressed(checked) {
                let (line, bytes) =
                    (self.scribe.line(asked, outcome(&program, asked, checked)), checked.work.bytes);
                pressed.push(Pressed { property, of, line, part, bytes });
            } else {
                parts.insert(property, part);
            }
        }
        Ok(pressed)
    }

    /// The question about a program. If it names no properties, the property in `expected.toml` is added.
    fn question(&self, asked: &Asked) -> Question {
        let question = self.batch.question.clone();
        match asked.program.entry.as_ref().and_then(|entry| entry.property.as_deref()) {
            Some(property) if question.own_properties().is_empty() => question.property(property),
            _ => question,
        }
    }

    /// Reads a program with the translation that its question requires.
    fn read(&self, asked: &Asked, question: &Question, limits: &Limits) -> Result<Program, Error> {
        let mut reader = self.batch.reader.within(limits);
        let own = asked.program.entry.iter().flat_map(|entry| entry.define.iter().cloned());
        reader.options.defines.splice(0..0, own);
        reader.options.ask(question.own_properties());
        reader.options.ask_models(&[asked.model]);
        match &asked.program.text {
            Some(text) => reader.read(&name_of(&asked.program.file), text),
            None => reader.open(&asked.program.file),
        }
    }
}
