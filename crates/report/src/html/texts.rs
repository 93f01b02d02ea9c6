//! The source files of programs, as data of a page. Each distinct set of files is kept once and shared by all answers about it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use fencewright_program::{FileId, Span};
use serde::Serialize;

use super::escape::line_of;
use crate::words::{Source, shortened};

/// A file with more lines is shown only near the lines that the page mentions.
const MOST_LINES: usize = 3_000;
/// Number of lines shown before and after each line that the page mentions.
const AROUND: usize = 20;
/// Maximum length of a line, in characters.
const LONGEST_LINE: usize = 300;

/// The sets of source files of a page, each as JSON.
#[derive(Default)]
pub struct Texts(HashSet<Arc<str>>);

/// The files of one program.
#[derive(Serialize)]
struct Program {
    files: Vec<File>,
}

#[derive(Serialize)]
struct File {
    /// The number of the file in the program, which the page sends to an editor.
    id: u32,
    name: String,
    /// Runs of consecutive lines, each with the number of its first line.
    parts: Vec<(usize, Vec<String>)>,
    /// The number of lines that are left out.
    left_out: usize,
}

/// The index in the page of each file of a program.
pub type Numbers = BTreeMap<FileId, usize>;

impl Texts {
    /// Returns the shared copy of these files, and whether the page already had one.
    pub fn shared(&mut self, files: &Arc<str>) -> (Arc<str>, bool) {
        match self.0.get(files) {
            Some(known) => (known.clone(), true),
            None => {
                self.0.insert(files.clone());
                (files.clone(), false)
            }
        }
    }

    /// Drops the files that no execution refers to.
    pub fn forget_unused(&mut self) {
        self.0.retain(|files| Arc::strong_count(files) > 1);
    }
}

/// The files of a program as JSON; `places` are the positions that the page mentions. A file that the user did not write is
/// included only if it contains one of these positions.
pub fn files(source: Source<'_>, places: impl Iterator<Item = Span>) -> (String, Numbers) {
    let mut used: BTreeMap<FileId, BTreeSet<usize>> = BTreeMap::new();
    for span in places.collect::<HashSet<Span>>() {
        used.entry(span.file).or_default().insert(source.position(span).line);
    }
    let (mut files, mut numbers) = (Vec::new(), Numbers::new());
    for (id, file) in source.files.iter() {
        let lines = used.get(&id);
        if !source.files.is_users(id) && lines.is_none() {
            continue;
        }
        numbers.insert(id, files.len());
        files.push(File::new(id, &file.name, &file.text, lines));
    }
    (super::escape::data(&Program { files }), numbers)
}

impl File {
    fn new(id: FileId, name: &str, text: &str, used: Option<&BTreeSet<usize>>) -> Self {
        let all = text.lines().count();
        let is_kept = |line: usize| {
            all <= MOST_LINES
                || used.is_some_and(|used| {
                    used.range(line.saturating_sub(AROUND)..=line + AROUND).next().is_some()
                })
        };
        let mut parts: Vec<(usize, Vec<String>)> = Vec::new();
        let mut kept = 0;
        for (n, line) in text.lines().enumerate().map(|(n, line)| (n + 1, line)) {
            if !is_kept(n) || kept == MOST_LINES {
                continue;
            }
            kept += 1;
            let line = line_of(&shortened(line, LONGEST_LINE));
            match parts.last_mut() {
                Some((first, lines)) if *first + lines.len() == n => lines.push(line),
                _ => parts.push((n, vec![line])),
            }
        }
        File { id: id.0, name: line_of(name), parts, left_out: all - kept }
    }
}
