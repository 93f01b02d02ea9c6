//! A table of many answers, and the summary below it.

use std::fmt::Write;

use fencewright_engines::{Checked, Verdict};
use fencewright_lang::source::escape;
use fencewright_program::MemoryModel;
use serde::Serialize;

use crate::Style;
use crate::json::line;
use crate::text::{count, seconds};
use crate::words::{Source, grouped};

/// Minimum width of the column of properties, in characters.
const PROPERTY: usize = 16;

/// One answer, or an error.
#[derive(Clone, Debug)]
pub struct Row {
    /// The file of the program.
    pub file: String,
    /// The memory model; `None` if the program could not be checked.
    pub model: Option<MemoryModel>,
    /// The name of the property.
    pub property: String,
    /// The verdict in one word, or `error`.
    pub verdict: &'static str,
    /// The engine that gave the answer; empty for an error.
    pub engine: String,
    /// The time of the search and of checking its answer, in seconds.
    pub seconds: f64,
    /// The reason for an unknown verdict or an error.
    pub reason: Option<String>,
    /// The expected verdict, if it differs from the verdict.
    pub expected: Option<String>,
}

impl Row {
    /// The row of an answer.
    pub fn new(source: Source<'_>, model: MemoryModel, checked: &Checked) -> Self {
        let (verdict, reason) = match checked.verdict() {
            Verdict::Safe => ("safe", None),
            Verdict::Unsafe => ("unsafe", None),
            Verdict::Unknown(reason) => ("unknown", Some(crate::text::why(source, reason))),
        };
        Row {
            file: source.name().to_owned(),
            model: Some(model),
            property: checked.property.name.clone(),
            verdict,
            engine: checked.engine.to_string(),
            seconds: checked.seconds + checked.check_seconds,
            reason,
            expected: None,
        }
    }

    /// The row of a program that could not be checked.
    pub fn error(file: &str, reason: &str) -> Self {
        Row {
            file: file.to_owned(),
            model: None,
            property: String::new(),
            verdict: "error",
            engine: String::new(),
            seconds: 0.0,
            reason: Some(reason.to_owned()),
            expected: None,
        }
    }
}

/// The layout of a table: `file` is the width of the first column.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    file: usize,
    style: Style,
}

impl Table {
    /// A table whose first column is wide enough for these file names.
    pub fn new<'a>(files: impl Iterator<Item = &'a str>, style: Style) -> Self {
        let longest = files.map(|file| escape(file).chars().count()).max().unwrap_or(0);
        Table { file: longest.max(4), style }
    }

    /// The line with the names of the columns.
    pub fn heading(&self) -> String {
        let (file, property) = (self.file, PROPERTY);
        let line = format!(
            "{:file$}  {:5}  {:property$}  {:7}  {:10}  time",
            "file", "model", "property", "verdict", "engine"
        );
        format!("{}\n", self.style.dim(&line))
    }

    /// A row as one line.
    pub fn row(&self, row: &Row) -> String {
        let (file, property) = (self.file, PROPERTY);
        let word = format!("{:7}", row.verdict);
        let word = match row.verdict {
            "safe" => self.style.good(&word),
            "unsafe" => self.style.bad(&word),
            _ => self.style.unsure(&word),
        };
        let model = row.model.map_or("", MemoryModel::name);
        let mut line =
            format!("{:file$}  {model:5}  {:property$}  {word}", escape(&row.file), escape(&row.property));
        if row.model.is_some() {
            let _ = write!(line, "  {:10}  {:>7}", row.engine, seconds(row.seconds));
        }
        if let Some(expected) = &row.expected {
            let _ = write!(line, "  {}", self.style.bad(&format!("expected {expected}")));
        }
        if let Some(reason) = &row.reason {
            let _ = write!(line, "  {}", escape(reason));
        }
        line.push('\n');
        line
    }
}

/// Counts of all rows of a table.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Summary {
    /// The number of programs.
    pub programs: usize,
    /// The number of answers `safe`: a property counts once for each memory model.
    pub safe: usize,
    /// The number of answers `unsafe`.
    pub r#unsafe: usize,
    /// The number of answers `unknown`.
    pub unknown: usize,
    /// The number of programs that could not be checked: a program counts once for each memory model.
    pub errors: usize,
    /// The number of expectations that are met. An expectation is about the worst verdict of a check of a program under one memory model.
    pub expected: usize,
    /// The number of expectations that are not met.
    pub unexpected: usize,
    /// The total time in seconds.
    pub seconds: f64,
}

impl Summary {
    /// Adds a row to the counts by verdict.
    pub fn count(&mut self, row: &Row) {
        match row.verdict {
            "safe" => self.safe += 1,
            "unsafe" => self.r#unsafe += 1,
            "unknown" => self.unknown += 1,
            _ => self.errors += 1,
        }
    }

    /// The summary line.
    pub fn text(&self, style: Style) -> String {
        let Summary { programs, safe, r#unsafe, unknown, errors, expected, unexpected, .. } = *self;
        let mut line = format!(
            "{}, {} in {}: {} safe, {} unsafe, {} unknown",
            count(programs as u64, "program"),
            count((safe + r#unsafe + unknown) as u64, "answer"),
            seconds(self.seconds),
            grouped(safe as u64),
            grouped(r#unsafe as u64),
            grouped(unknown as u64),
        );
        if errors > 0 {
            let _ = write!(line, ", {}", style.bad(&count(errors as u64, "error")));
        }
        match (expected, unexpected) {
            (0, 0) => {}
            (_, 0) => _ = write!(line, "; {}", style.good(&format!("all {expected} as expected"))),
            _ => {
                let told = format!("{unexpected} of {} not as expected", expected + unexpected);
                _ = write!(line, "; {}", style.bad(&told));
            }
        }
        line.push('\n');
        line
    }

    /// The summary as JSON, the last line of the output.
    pub fn json(&self) -> String {
        #[derive(Serialize)]
        struct Last<'a> {
            summary: &'a Summary,
        }
        line(&Last { summary: self })
    }
}
