//! `fencewright check FOLDER`: every program in it, side by side, as one table.
//!
//! Questions are answered by as many workers as there are cores, in one memory. Whatever runs out of that beside others is asked once more, as soon
//! as it can be alone. Rows are in the order of the files' names, and each is printed as soon as it and all before it are there. Where an
//! [`expected.toml`](expected) lies beside the programs, what it says is asked for and compared.

pub mod expected;
mod printer;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, mpsc};
use std::time::Instant;
use std::{fs, thread};

use fencewright_engines::{Checked, Progress, Reason, Task, Verdict, check_each};
use fencewright_lang::front_end;
use fencewright_program::MemoryModel;
use fencewright_report::table::{Row, Summary, Table};
use fencewright_report::{Source, json};

use crate::args::CheckArgs;
use crate::check;
use crate::gathered::Gathered;
use crate::input::{Unloadable, describe, display_name, is_standard_input, load_quietly, load_text, read};
use crate::output::Output;
use crate::status::Status;
use crate::{files, progress, stop};
use expected::Entry;
use printer::{Printer, Told};

/// Folders within folders, so deep.
const DEEPEST: usize = 32;
/// So much of the stack a worker may use: programs may be nested.
const STACK: usize = 64 << 20;

/// A program under a model, and what is expected of it.
struct Question {
    program: Named,
    model: MemoryModel,
}

/// A program that is asked about.
#[derive(Clone)]
struct Named {
    file: PathBuf,
    entry: Option<Entry>,
    /// Its text, if that can be read only once.
    text: Option<Arc<Vec<u8>>>,
    /// Why it cannot be asked about, if that is known already.
    wrong: Option<String>,
}

impl Named {
    fn new(file: PathBuf, entry: Option<Entry>) -> Self {
        Named { file, entry, text: None, wrong: None }
    }

    /// Something that is there and cannot be asked about.
    fn wrong(file: &Path, why: impl Into<String>) -> Self {
        Named { wrong: Some(why.into()), ..Named::new(file.to_owned(), None) }
    }

    /// What the command line names, and is no folder. What is no regular file can be read only once, whatever is asked about it.
    fn given(path: &Path) -> Self {
        let named = Named::new(path.to_owned(), None);
        if !is_standard_input(path) && fs::metadata(path).map_or(true, |about| about.is_file()) {
            return named;
        }
        match read(path) {
            Ok(text) => Named { text: Some(Arc::new(text)), ..named },
            Err(error) => Named { wrong: Some(describe(&error)), ..named },
        }
    }
}

impl Question {
    /// The program, with what is defined in it.
    fn name(&self) -> String {
        let mut name = display_name(&self.program.file);
        for (macro_name, value) in self.program.entry.iter().flat_map(|entry| &entry.define) {
            name.push_str(&format!(" -D {macro_name}"));
            name.extend(value.iter().map(|value| format!("={value}")));
        }
        name
    }
}

/// Whether a command line asks about a folder.
pub fn is_asked(args: &CheckArgs) -> bool {
    args.common.files.iter().any(|path| path.is_dir())
}

/// Checks all programs of all folders, and all other files, and gathers the answers where that is wanted.
pub fn run(args: &CheckArgs, gathered: &mut Gathered, out: &mut Output) -> Status {
    let start = Instant::now();
    let one_program =
        [("--certificate", args.certificate.is_some()), ("--emit-boolean", args.emit_boolean.is_some())];
    if let Some((option, _)) = one_program.into_iter().find(|(_, given)| *given) {
        out.refuse(args.common.json, option, "it is about one program, not about a folder", None);
        return Status::Bad;
    }
    let programs = match all_programs(&args.common.files) {
        Ok(programs) => programs,
        Err((about, why)) => {
            gathered.fail(&about, why.lines().next().unwrap_or_default());
            out.refuse(args.common.json, &about, &why, None);
            return Status::Bad;
        }
    };
    if programs.is_empty() {
        let about = args.common.files.first().map_or_else(String::new, |path| display_name(path));
        let why = "there are no programs in this folder";
        gathered.fail(&about, why);
        out.refuse(args.common.json, &about, why, None);
        return Status::Bad;
    }
    let expectations: BTreeSet<PathBuf> =
        programs.iter().filter_map(|program| Some(program.file.parent()?.join(expected::NAME))).collect();
    for (option, path) in [("--sarif", &args.sarif), ("--html", &args.html)] {
        let read = programs.iter().map(|program| &program.file).chain(&expectations).map(PathBuf::as_path);
        if let Some(why) = path.as_ref().and_then(|path| files::is_also_read(path, read)) {
            out.refuse(args.common.json, option, &why, None);
            // Nothing is written.
            *gathered = Gathered::default();
            return Status::Bad;
        }
    }
    let files: BTreeSet<PathBuf> = programs.iter().map(|program| program.file.clone()).collect();
    let of_model = |program: Named| {
        args.model.models().iter().map(move |&model| Question { program: program.clone(), model })
    };
    let questions: Vec<Question> = programs.into_iter().flat_map(of_model).collect();
    let names: BTreeSet<String> = questions.iter().map(Question::name).collect();
    let part = gathered.part();
    let mut printer = Printer {
        json: args.common.json,
        table: Table::new(names.iter().map(String::as_str), out.style),
        summary: Summary { programs: files.len(), ..Summary::default() },
        status: Status::Fine,
        gathered,
        out,
    };
    printer.begin();
    let measured = Progress::default();
    let show = args.common.is_talkative() && progress::is_watched();
    let asking = Asking { args, questions: &questions, part, measured: &measured, turns: RwLock::default() };
    progress::shown(show, &measured, || asking.answer_all(&mut printer));
    printer.summary.seconds = start.elapsed().as_secs_f64();
    printer.end()
}

/// The programs that paths name: files as they are, and what is in folders. None is there twice.
fn all_programs(paths: &[PathBuf]) -> Result<Vec<Named>, (String, String)> {
    let mut all: Vec<Named> = Vec::new();
    let mut known: BTreeSet<(PathBuf, Option<Entry>)> = BTreeSet::new();
    for path in paths {
        let found = match path.is_dir() {
            true => programs(path, 0)?,
            false if known.contains(&(path.clone(), None)) => continue,
            false => vec![Named::given(path)],
        };
        all.extend(
            found.into_iter().filter(|program| known.insert((program.file.clone(), program.entry.clone()))),
        );
    }
    Ok(all)
}

/// The programs of a folder and of those in it, by name, with what is expected of them.
fn programs(folder: &Path, depth: usize) -> Result<Vec<Named>, (String, String)> {
    let entries = expected::of(folder).map_err(|why| (display_name(&folder.join(expected::NAME)), why))?;
    let mut paths: BTreeSet<PathBuf> = BTreeSet::new();
    let listed: Result<Vec<fs::DirEntry>, _> = fs::read_dir(folder).and_then(Iterator::collect);
    match listed {
        Ok(items) => {
            let shown = |item: &fs::DirEntry| !item.file_name().to_string_lossy().starts_with('.');
            paths.extend(items.into_iter().filter(shown).map(|item| item.path()));
        }
        Err(error) if depth == 0 => return Err((display_name(folder), describe(&error))),
        Err(error) => return Ok(vec![Named::wrong(folder, describe(&error))]),
    }
    // What is expected of a file that is not there is an error of its own.
    paths.extend(entries.iter().map(|entry| entry.file.clone()));
    let mut found = Vec::new();
    for path in paths {
        // A link to a folder may lead back.
        if fs::symlink_metadata(&path).is_ok_and(|about| about.is_dir()) {
            match depth < DEEPEST {
                true => found.extend(programs(&path, depth + 1)?),
                false => found.push(Named::wrong(&path, "this folder lies too deep to be looked into")),
            }
            continue;
        }
        let before = found.len();
        let own = entries.iter().filter(|entry| entry.file == path);
        found.extend(own.map(|entry| Named::new(path.clone(), Some(entry.clone()))));
        if found.len() == before && is_program(&path) && !path.is_dir() {
            found.push(Named::new(path.clone(), None));
        }
        // To open a pipe would be to wait for somebody to write into it.
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

/// What workers say about questions, by their numbers.
type Sender = mpsc::Sender<(usize, Told)>;

/// An answer that lacks memory, and what is to be said of it if there is no better one.
struct Pressed {
    /// Which property it is about.
    property: usize,
    told: Told,
    gathered: Gathered,
    /// How much memory the search itself had.
    bytes: u64,
}

/// All questions, and who may answer them now.
struct Asking<'a> {
    args: &'a CheckArgs,
    questions: &'a [Question],
    /// An empty part of what is gathered.
    part: Gathered,
    measured: &'a Progress,
    /// Shared by questions side by side; whoever needs all memory is alone.
    turns: RwLock<()>,
}

impl Asking<'_> {
    /// Answers all questions, and prints what comes of them in their order.
    fn answer_all(&self, printer: &mut Printer<'_>) {
        let workers = match self.args.jobs {
            0 => thread::available_parallelism().map_or(1, usize::from),
            jobs => jobs.into(),
        };
        let workers = workers.min(self.questions.len());
        let next = AtomicUsize::new(0);
        let (sender, receiver) = mpsc::channel();
        let _search = stop::Search::begin();
        thread::scope(|scope| {
            let mut started = 0;
            for _ in 0..workers {
                let (sender, next) = (sender.clone(), &next);
                let work = move || {
                    while let Some(n) =
                        Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&n| n < self.questions.len())
                    {
                        self.answer(n, workers > 1, &sender);
                    }
                };
                // Fewer workers than wanted take longer.
                started +=
                    thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).is_ok() as usize;
            }
            if started == 0 {
                (0..self.questions.len()).for_each(|n| self.answer(n, false, &sender));
            }
            drop(sender);
            let done = |done: usize| {
                self.measured.say(format!("{done} of {}", self.questions.len()));
            };
            printer.print_all(self.questions, receiver, done);
        });
    }

    /// Answers one question, perhaps beside others.
    fn answer(&self, n: usize, beside: bool, sender: &Sender) {
        let mut parts = BTreeMap::new();
        let mut pressed = {
            let _beside = self.turns.read().unwrap_or_else(PoisonError::into_inner);
            self.ask(n, None, &mut parts, sender)
        };
        if beside && !pressed.is_empty() && !stop::is_asked() && self.may_gain(&pressed) {
            let _alone = self.turns.write().unwrap_or_else(PoisonError::into_inner);
            let again: Vec<usize> = pressed.iter().map(|pressed| pressed.property).collect();
            drop(pressed);
            pressed = self.ask(n, Some(&again), &mut parts, sender);
        }
        for Pressed { property, told, gathered, .. } in pressed {
            parts.insert(property, gathered);
            tell(sender, n, told);
        }
        let mut gathered = self.part.part();
        parts.into_values().for_each(|part| gathered.append(part));
        tell(sender, n, Told::All(Box::new(gathered)));
    }

    /// Whether a search may have more memory when it is alone, and not only a little.
    fn may_gain(&self, pressed: &[Pressed]) -> bool {
        let had = pressed.iter().map(|pressed| pressed.bytes).max().unwrap_or(0);
        self.args.common.limits.memory.get().is_none_or(|limit| had < limit / 8 * 7)
    }

    /// Asks about a program, or about some of its properties only, and tells each answer when it is there. What lacks memory is given back instead.
    fn ask(
        &self,
        n: usize,
        only: Option<&[usize]>,
        parts: &mut BTreeMap<usize, Gathered>,
        sender: &Sender,
    ) -> Vec<Pressed> {
        let (args, question) = (self.args, &self.questions[n]);
        let name = question.name();
        let empty = || self.part.part();
        // There are no answers, and this is why.
        let failed =
            |failure: json::Failure, status, is_pressed: bool, parts: &mut BTreeMap<usize, Gathered>| {
                let at = failure.line.zip(failure.column).map(|(line, column)| format!("{line}:{column}: "));
                let reason = format!("{}{}", at.unwrap_or_default(), failure.error);
                let mut gathered = empty();
                gathered.fail(&name, &reason);
                let (row, line) = (Row::error(&name, &reason), failure.json());
                let told = Told::Answer { property: 0, of: 1, row: Box::new(row), line, status };
                if is_pressed {
                    return vec![Pressed { property: 0, told, gathered, bytes: 0 }];
                }
                parts.insert(0, gathered);
                tell(sender, n, told);
                Vec::new()
            };
        if let Some(why) = &question.program.wrong {
            return failed(json::Failure::new(&name, why, None), Status::Bad, false, parts);
        }
        if stop::is_asked() {
            return failed(json::Failure::new(&name, "stopped", None), Status::Unknown, false, parts);
        }
        let mut input = args.common.input.clone();
        let mut names = args.property.clone();
        if let Some(entry) = &question.program.entry {
            // What the command line says comes last, and counts.
            input.define.splice(0..0, entry.define.iter().cloned());
            if names.is_empty() {
                names.extend(entry.property.clone());
            }
        }
        input.settle(&names);
        let limits = args.common.limits_from_now();
        let loaded = match &question.program.text {
            Some(text) => load_text(&question.program.file, text, &input, &limits),
            None => load_quietly(&question.program.file, &input, &limits),
        };
        let mut loaded = match loaded {
            Ok(loaded) => loaded,
            Err(unloadable) => {
                let Unloadable { failure, status, is_pressed, .. } = *unloadable;
                return failed(failure, status, is_pressed, parts);
            }
        };
        if args.common.json || empty().is_wanted() {
            let races = check::races(&loaded, &limits);
            loaded.warnings.extend(races);
        }
        let asked = check::select(&loaded, &names).and_then(|properties| {
            let buffer = args.buffer.as_ref().map(|buffer| buffer.bound(&loaded.program)).transpose();
            Ok((properties, buffer.map_err(|why| format!("--buffer: {why}"))?))
        });
        let (mut properties, bound) = match asked {
            Ok(asked) => asked,
            Err(why) => {
                let first = why.lines().next().unwrap_or_default().to_owned();
                return failed(json::Failure::new(&name, first, None), Status::Bad, false, parts);
            }
        };
        let Some(engine) = check::engine(args, 1, bound, None) else {
            return failed(json::Failure::new(&name, "no such engine", None), Status::Bad, false, parts);
        };
        let of = properties.len();
        let numbers: Vec<usize> = match only {
            Some(only) => only.to_vec(),
            None => (0..of).collect(),
        };
        properties = numbers.iter().map(|&number| properties[number].clone()).collect();
        let task = Task::new(&loaded.program, question.model, properties);
        let source = Source::from(&*loaded);
        let told = |k: usize, checked: &Checked| Told::Answer {
            property: numbers[k],
            of,
            row: Box::new(Row { file: name.clone(), ..Row::new(source, question.model, checked) }),
            line: match args.common.json {
                true => json::verdict(source, question.model, checked),
                false => String::new(),
            },
            status: check::status(std::slice::from_ref(checked)),
        };
        let is_pressed = |checked: &Checked| matches!(checked.verdict(), Verdict::Unknown(Reason::Memory(_)));
        let mut say = |k: usize, checked: &Checked| {
            if !is_pressed(checked) {
                tell(sender, n, told(k, checked));
            }
        };
        let checks = check_each(&*engine, &task, &limits, self.measured, args.common.confirm(), &mut say);
        let mut pressed = Vec::new();
        for (k, checked) in checks.verdicts.iter().enumerate() {
            let mut gathered = empty();
            gathered.read(&loaded.sources);
            gathered.add(Some(&name), source, question.model, checked);
            match is_pressed(checked) {
                true => pressed.push(Pressed {
                    property: numbers[k],
                    told: told(k, checked),
                    gathered,
                    bytes: checked.work.bytes,
                }),
                false => _ = parts.insert(numbers[k], gathered),
            }
        }
        pressed
    }
}

/// Says something about a question; if nobody listens any more, there is nobody to tell.
fn tell(sender: &Sender, n: usize, told: Told) {
    let _ = sender.send((n, told));
}
