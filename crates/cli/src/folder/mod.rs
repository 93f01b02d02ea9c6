//! `fencewright check FOLDER`: every program in it, side by side, as one table.
//!
//! Questions are answered by as many workers as there are cores, in one memory; whatever runs out of that beside others is asked once more,
//! alone. Rows are in the order of the files' names, and each is printed as soon as it and all before it are there. Where an
//! [`expected.toml`](expected) lies beside the programs, what it says is asked for and compared.

pub mod expected;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
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
use crate::input::{describe, display_name, load_quietly};
use crate::output::{Output, complain};
use crate::status::Status;
use crate::{progress, stop};
use expected::Entry;

/// Folders within folders, so deep.
const DEEPEST: usize = 32;
/// So much of the stack a worker may use: programs may be nested.
const STACK: usize = 64 << 20;

/// A program under a model, and what is expected of it.
struct Question {
    file: PathBuf,
    model: MemoryModel,
    entry: Option<Entry>,
}

impl Question {
    /// The program, with what is defined in it.
    fn name(&self) -> String {
        let mut name = display_name(&self.file);
        for (macro_name, value) in self.entry.iter().flat_map(|entry| &entry.define) {
            name.push_str(&format!(" -D {macro_name}"));
            name.extend(value.iter().map(|value| format!("={value}")));
        }
        name
    }
}

/// What came of a question.
struct Outcome {
    rows: Vec<Row>,
    /// The same as JSON, a line for each row.
    lines: Vec<String>,
    /// And for files, if that is wanted.
    gathered: Gathered,
    /// Whether it ran out of memory.
    is_pressed: bool,
    status: Status,
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
    let mut questions = Vec::new();
    for path in &args.common.files {
        let found = if path.is_dir() { programs(path, 0) } else { Ok(vec![(path.clone(), None)]) };
        match found {
            Ok(found) => {
                let models = args.model.models();
                questions.extend(found.into_iter().flat_map(|(file, entry)| {
                    models.iter().map(move |&model| Question {
                        file: file.clone(),
                        model,
                        entry: entry.clone(),
                    })
                }));
            }
            Err((about, why)) => {
                out.refuse(args.common.json, &about, &why, None);
                return Status::Bad;
            }
        }
    }
    if questions.is_empty() {
        let about = args.common.files.first().map_or_else(String::new, |path| display_name(path));
        out.refuse(args.common.json, &about, "there are no programs in this folder", None);
        return Status::Bad;
    }
    let names: BTreeSet<String> = questions.iter().map(Question::name).collect();
    let files: BTreeSet<&PathBuf> = questions.iter().map(|question| &question.file).collect();
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
    progress::shown(show, &measured, || answer_all(args, &questions, &measured, &mut printer));
    printer.summary.seconds = start.elapsed().as_secs_f64();
    printer.end()
}

/// The programs of a folder and of those in it, by name, with what is expected of them.
type Programs = Vec<(PathBuf, Option<Entry>)>;

fn programs(folder: &Path, depth: usize) -> Result<Programs, (String, String)> {
    let entries = expected::of(folder).map_err(|why| (display_name(&folder.join(expected::NAME)), why))?;
    let wrong = |error: std::io::Error| (display_name(folder), describe(&error));
    let mut paths: BTreeSet<PathBuf> = BTreeSet::new();
    for item in fs::read_dir(folder).map_err(wrong)? {
        let item = item.map_err(wrong)?;
        if !item.file_name().to_string_lossy().starts_with('.') {
            paths.insert(item.path());
        }
    }
    // What is expected of a file that is not there is an error of its own.
    paths.extend(entries.iter().map(|entry| entry.file.clone()));
    let mut found = Programs::new();
    for path in paths {
        // A link to a folder may lead back.
        let is_folder = fs::symlink_metadata(&path).is_ok_and(|about| about.is_dir());
        if is_folder && depth < DEEPEST {
            found.extend(programs(&path, depth + 1)?);
            continue;
        }
        let before = found.len();
        found.extend(
            entries
                .iter()
                .filter(|entry| entry.file == path)
                .map(|entry| (path.clone(), Some(entry.clone()))),
        );
        if found.len() == before && !is_folder && is_program(&path) {
            found.push((path, None));
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

/// Answers all questions, and prints what comes of them in their order.
fn answer_all(args: &CheckArgs, questions: &[Question], measured: &Progress, printer: &mut Printer<'_>) {
    let workers = match args.jobs {
        0 => thread::available_parallelism().map_or(1, usize::from),
        jobs => jobs.into(),
    };
    let workers = workers.min(questions.len());
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    let _search = stop::Search::begin();
    thread::scope(|scope| {
        for _ in 0..workers {
            let (sender, next) = (sender.clone(), &next);
            let work = move || {
                while let Some(n) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&n| n < questions.len())
                {
                    if sender.send((n, answer(args, &questions[n], measured))).is_err() {
                        return;
                    }
                }
            };
            let started = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
            started.expect("the system starts another thread");
        }
        drop(sender);
        let mut waiting: BTreeMap<usize, Outcome> = BTreeMap::new();
        let (mut printed, mut done) = (0, 0);
        for (n, outcome) in receiver {
            done += 1;
            measured.say(format!("{done} of {}", questions.len()));
            waiting.insert(n, outcome);
            // What had too little memory beside others waits until it can be alone.
            while waiting.get(&printed).is_some_and(|outcome| !outcome.is_pressed || workers == 1) {
                waiting
                    .remove(&printed)
                    .into_iter()
                    .for_each(|outcome| printer.print(&questions[printed], outcome));
                printed += 1;
            }
        }
        for (n, mut outcome) in waiting {
            if outcome.is_pressed && workers > 1 && !stop::is_asked() {
                outcome = answer(args, &questions[n], measured);
            }
            printer.print(&questions[n], outcome);
        }
    });
}

/// Answers one question.
fn answer(args: &CheckArgs, question: &Question, measured: &Progress) -> Outcome {
    let name = question.name();
    let failed = |failure: json::Failure, status| {
        let at = failure.line.zip(failure.column).map(|(line, column)| format!("{line}:{column}: "));
        let reason = format!("{}{}", at.unwrap_or_default(), failure.error);
        let rows = vec![Row::error(&name, &reason)];
        let mut gathered = Gathered::new(args.sarif.as_ref(), args.html.as_ref());
        gathered.fail(&name, &reason);
        Outcome { rows, lines: vec![failure.json()], gathered, is_pressed: false, status }
    };
    if stop::is_asked() {
        return failed(json::Failure::new(&name, "stopped", None), Status::Unknown);
    }
    let mut input = args.common.input.clone();
    let mut names = args.property.clone();
    if let Some(entry) = &question.entry {
        // What the command line says comes last, and counts.
        input.define.splice(0..0, entry.define.iter().cloned());
        if names.is_empty() {
            names.extend(entry.property.clone());
        }
    }
    input.settle(&names);
    let limits = args.common.limits_from_now();
    let mut loaded = match load_quietly(&question.file, &input, &limits) {
        Ok(loaded) => loaded,
        Err(unloadable) => {
            let is_pressed = unloadable.is_pressed;
            return Outcome { is_pressed, ..failed(unloadable.failure, unloadable.status) };
        }
    };
    let mut gathered = Gathered::new(args.sarif.as_ref(), args.html.as_ref());
    if args.common.json || gathered.is_wanted() {
        let races = check::races(&loaded, &limits);
        loaded.warnings.extend(races);
    }
    let asked = check::select(&loaded, &names).and_then(|properties| {
        let buffer = args.buffer.as_ref().map(|buffer| buffer.bound(&loaded.program)).transpose();
        Ok((properties, buffer.map_err(|why| format!("--buffer: {why}"))?))
    });
    let (properties, bound) = match asked {
        Ok(asked) => asked,
        Err(why) => {
            let first = why.lines().next().unwrap_or_default().to_owned();
            return failed(json::Failure::new(&name, first, None), Status::Bad);
        }
    };
    let Some(engine) = check::engine(args, 1, bound, None) else {
        return failed(json::Failure::new(&name, "no such engine", None), Status::Bad);
    };
    let task = Task::new(&loaded.program, question.model, properties);
    let checks = check_each(&*engine, &task, &limits, measured, args.common.confirm(), &mut |_, _| {});
    let source = Source::from(&*loaded);
    let row = |checked| Row { file: name.clone(), ..Row::new(source, question.model, checked) };
    let rows = checks.verdicts.iter().map(row).collect();
    let line = |checked: &Checked| json::verdict(source, question.model, checked);
    let is_pressed = |checked: &Checked| matches!(checked.verdict(), Verdict::Unknown(Reason::Memory(_)));
    for checked in &checks.verdicts {
        gathered.add(Some(&name), source, question.model, checked);
    }
    Outcome {
        rows,
        gathered,
        lines: if args.common.json { checks.verdicts.iter().map(line).collect() } else { Vec::new() },
        is_pressed: checks.verdicts.iter().any(is_pressed),
        status: check::status(&checks.verdicts),
    }
}

/// Prints rows, and counts them.
struct Printer<'a> {
    json: bool,
    table: Table,
    summary: Summary,
    status: Status,
    gathered: &'a mut Gathered,
    out: &'a mut Output,
}

impl Printer<'_> {
    fn begin(&mut self) {
        if !self.json {
            self.out.print(&self.table.heading());
        }
    }

    fn print(&mut self, question: &Question, outcome: Outcome) {
        self.gathered.append(outcome.gathered);
        let mut rows = outcome.rows;
        let expected = question.entry.as_ref().and_then(|entry| entry.verdict(question.model));
        let is_answered = rows.iter().all(|row| row.model.is_some());
        match expected {
            Some(expected) if is_answered => {
                // The worst verdict is what is compared.
                let worst = ["unsafe", "unknown", "safe"];
                let rank = |row: &&mut Row| worst.iter().position(|verdict| *verdict == row.verdict);
                let row = rows.iter_mut().min_by_key(rank).expect("a question is about some property");
                if row.verdict == expected {
                    self.summary.expected += 1;
                } else {
                    self.summary.unexpected += 1;
                    self.status = self.status.and(Status::Violated);
                    row.expected = Some(expected.to_owned());
                    if self.json {
                        let why =
                            format!("{} under {}, expected {expected}", row.verdict, question.model.name());
                        complain(&row.file, &why);
                    }
                }
            }
            _ => {
                self.summary.unexpected += expected.is_some() as usize;
                self.status = self.status.and(outcome.status);
            }
        }
        progress::make_room(|| {
            for (n, row) in rows.iter().enumerate() {
                self.summary.count(row);
                match outcome.lines.get(n).filter(|_| self.json) {
                    Some(line) => self.out.print(line),
                    None => self.out.print(&self.table.row(row)),
                }
            }
            self.out.flush();
        });
        if self.out.is_closed() {
            stop::token().cancel();
        }
    }

    fn end(self) -> Status {
        let text = if self.json { self.summary.json() } else { self.summary.text(self.out.style) };
        self.out.print(&text);
        self.status
    }
}
