//! Runs the command on lists of public C programs, and keeps the score: `fencewright-bench real DIR`.
//!
//! The programs are files of other projects, whose repositories are checked out side by side in a folder; `list` describes the format of lists. Each
//! row is a process of the real command with limits on time and memory, so no file can stop the run. An unexpected verdict is not a failure, because
//! some expectations are about bounded runs or about other properties: it is listed, so that it can be investigated.

mod list;
mod row;
mod score;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::args::Real;
use crate::{command, out, save};

use list::{List, lists, placed};
use row::{Limits, Outcome, Ran, run};
use score::{Scored, csv, show};

/// Number of rows that run at a time.
const JOBS: usize = 2;

/// Runs the lists and prints the score. Returns whether every row with an existing file has an answer: a verdict, `unknown` or a refusal.
pub fn table(options: &Real) -> Result<bool, String> {
    let repositories = std::path::absolute(&options.folder).unwrap_or(options.folder.clone());
    if !repositories.is_dir() {
        return Err(format!("{}: there is no such folder", options.folder.display()));
    }
    let extra: Vec<String> = options.extra.iter().map(|word| placed(word, &repositories)).collect();
    let limits = Limits { timeout: options.timeout, memory: options.memory.clone() };
    let command = command()?;
    if let Some(path) = options.csv.as_deref().filter(|path| !is_output(path)) {
        save::can_be_saved(path)?;
    }
    let mut scored: Vec<Scored> = Vec::new();
    for mut list in lists(&options.lists, &repositories)? {
        list.rows.retain(|row| {
            let text = format!("{} {}", row.name, row.flags);
            options.part.iter().all(|part| text.contains(part.as_str()))
        });
        let ran = in_parallel(&list, |row| run(&command, row, &extra, &limits, &repositories));
        scored.push(Scored::new(list, ran));
        // The file is written after each list, so that an interrupted run leaves results.
        if let Some(path) = options.csv.as_deref().filter(|path| !is_output(path)) {
            save::save(path, &csv(&scored))?;
        }
    }
    match options.csv.as_deref().is_some_and(is_output) {
        true => out::print(&csv(&scored)),
        false => show(&scored),
    }
    let failed = |ran: &Ran| matches!(ran.outcome, Outcome::Failed(_));
    Ok(!scored.iter().any(|list| list.ran.iter().any(failed)))
}

fn is_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// Runs the rows of a list, [`JOBS`] at a time, and reports each outcome on the standard error. The results are in the order of the list.
fn in_parallel(list: &List, run: impl Fn(&list::Row) -> Ran + Sync) -> Vec<Ran> {
    let next = AtomicUsize::new(0);
    let mut done: Vec<(usize, Ran)> = Vec::new();
    std::thread::scope(|scope| {
        let (to, from) = mpsc::channel();
        for _ in 0..JOBS {
            let (to, next, run) = (to.clone(), &next, &run);
            scope.spawn(move || {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let Some(row) = list.rows.get(n) else { break };
                    if to.send((n, run(row))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(to);
        for (n, ran) in from {
            let (name, word, seconds) = (&ran.row.name, ran.word(), ran.took.as_secs_f64());
            let count = format!("{}/{}", done.len() + 1, list.rows.len());
            eprintln!("{} {count} {}: {word}, {seconds:.2} s", list.name, out::plain(name));
            done.push((n, ran));
        }
    });
    done.sort_by_key(|(n, _)| *n);
    done.into_iter().map(|(_, ran)| ran).collect()
}
