//! Task definitions for BenchExec: which question about which program, and the answer that is known.
//!
//! ```text
//! DIR/properties/tso.prp       what is asked: `safe under tso`
//! DIR/examples/dekker.yml      a program with its constants, and the expected answer to each question
//! DIR/examples.set             the task definitions of one origin, for `includesfile`
//! ```
//!
//! The examples say in `expected.toml` what they should answer, the corpora in `expected.csv`. The same inputs give the same files.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use fencewright_program::MemoryModel;
use fencewright_testing::corpora::corpora;
use toml::{Table, Value};

use crate::save::save;

/// The questions: the name of the property file and what it says, which the tool-info module reads.
const QUESTIONS: [(&str, &str); 5] = [
    ("sc", "safe under sc"),
    ("tso", "safe under tso"),
    ("pso", "safe under pso"),
    ("robust", "robust against tso"),
    ("triangular", "free of triangular races"),
];

/// A program and what is known about it.
struct Task {
    /// The program.
    file: PathBuf,
    /// The property that is asked for, if it is one.
    property: Option<String>,
    /// As with -D.
    define: Vec<String>,
    /// The name of a question, and whether the answer is yes.
    expected: Vec<(&'static str, bool)>,
}

/// Writes all tasks to a folder; how many there are.
pub fn write(folder: &Path, examples: &Path) -> Result<usize, String> {
    let made =
        |path: &Path| std::fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()));
    let saved = |path: PathBuf, text: &str| save(&path, text).map_err(|error| error.to_string());
    made(&folder.join("properties"))?;
    for (name, question) in QUESTIONS {
        saved(folder.join("properties").join(format!("{name}.prp")), &format!("{question}\n"))?;
    }
    let mut sets = vec![("examples", from_toml(examples)?), ("examples-c", from_toml(&examples.join("c"))?)];
    if let Some(corpora) = corpora("tasks for the corpora") {
        for (corpus, read) in CORPORA {
            // Not everybody has all of them.
            if corpora.join(corpus).join("expected.csv").exists() {
                sets.push((corpus, from_csv(&corpora.join(corpus), read)?));
            }
        }
    }
    let mut count = 0;
    for (set, tasks) in sets {
        let place = folder.join(set);
        made(&place)?;
        let here = std::fs::canonicalize(&place).map_err(|error| format!("{}: {error}", place.display()))?;
        let (mut list, mut names) = (String::new(), BTreeSet::new());
        for task in &tasks {
            let name = task.name(&names);
            saved(place.join(format!("{name}.yml")), &task.definition(&here)?)?;
            let _ = writeln!(list, "{set}/{name}.yml");
            names.insert(name);
            count += 1;
        }
        saved(folder.join(format!("{set}.set")), &list)?;
    }
    Ok(count)
}

impl Task {
    /// A name that no other task has: the program, its constants, the property.
    fn name(&self, taken: &BTreeSet<String>) -> String {
        let stem = self.file.file_stem().unwrap_or_default().to_string_lossy();
        let words =
            std::iter::once(stem.into_owned()).chain(self.define.clone()).chain(self.property.clone());
        let name = words.collect::<Vec<_>>().join("-");
        let name: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "+=-_.".contains(c) { c } else { '_' })
            .collect();
        let numbered = (2..).map(|n| format!("{name}-{n}"));
        std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name)).unwrap_or(name)
    }

    /// The task definition, for a file in this folder.
    fn definition(&self, folder: &Path) -> Result<String, String> {
        let file = std::fs::canonicalize(&self.file);
        let file = file.map_err(|error| format!("{}: {error}", self.file.display()))?;
        let mut text =
            format!("format_version: \"2.0\"\ninput_files: {}\n", quoted(&relative(folder, &file)));
        let headers = headers(&file);
        if !headers.is_empty() {
            text += "required_files:\n";
            headers.iter().for_each(|header| _ = writeln!(text, "  - {}", quoted(&relative(folder, header))));
        }
        text += "properties:\n";
        for (question, holds) in &self.expected {
            let _ = writeln!(
                text,
                "  - property_file: \"../properties/{question}.prp\"\n    expected_verdict: {holds}"
            );
        }
        if self.property.is_some() || !self.define.is_empty() {
            text += "options:\n";
        }
        if let Some(property) = &self.property {
            let _ = writeln!(text, "  property: {}", quoted(property));
        }
        if !self.define.is_empty() {
            text += "  define:\n";
            self.define.iter().for_each(|define| _ = writeln!(text, "    - {}", quoted(define)));
        }
        Ok(text)
    }
}

/// A string as YAML has it: as JSON has it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The headers that a C program may include.
fn headers(file: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some("c")) = (file.parent(), file.extension().and_then(|e| e.to_str())) else {
        return Vec::new();
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut headers: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "h")).collect();
    headers.sort();
    headers
}

/// The way from a folder to a file, both absolute, so that a checkout can be moved.
fn relative(folder: &Path, file: &Path) -> String {
    let common = folder.components().zip(file.components()).take_while(|(a, b)| a == b).count();
    let back = folder.components().skip(common).map(|_| Component::ParentDir);
    let path: PathBuf = back.chain(file.components().skip(common)).collect();
    path.to_string_lossy().into_owned()
}

/// What `expected.toml` says about the programs of a folder.
fn from_toml(folder: &Path) -> Result<Vec<Task>, String> {
    let path = folder.join("expected.toml");
    let wrong = |what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(&error))?;
    let table: Table = text.parse().map_err(|error: toml::de::Error| wrong(&error))?;
    let entries =
        table.get("example").and_then(Value::as_array).ok_or_else(|| wrong(&"it has no [[example]]"))?;
    let task = |(n, entry): (usize, &Value)| {
        let word = |key: &str| entry.get(key).and_then(Value::as_str);
        let file = word("file").ok_or_else(|| wrong(&format!("example {}: it names no `file`", n + 1)))?;
        let define = entry.get("define").and_then(Value::as_table).into_iter().flatten();
        let define = define.map(|(name, value)| match value {
            Value::String(text) if text.is_empty() => name.clone(),
            Value::String(text) => format!("{name}={text}"),
            other => format!("{name}={other}"),
        });
        let expected =
            MemoryModel::ALL.into_iter().filter_map(|model| verdict(model.name(), word(model.name())?));
        Ok(Task {
            file: folder.join(file),
            property: word("property").map(str::to_string),
            define: define.collect(),
            expected: expected.collect(),
        })
    };
    let tasks = entries.iter().enumerate().map(task).collect::<Result<Vec<_>, String>>()?;
    Ok(tasks.into_iter().filter(|task| !task.expected.is_empty()).collect())
}

/// An answer that is known.
fn verdict(question: &'static str, word: &str) -> Option<(&'static str, bool)> {
    match word {
        "safe" | "yes" | "1" => Some((question, true)),
        "unsafe" | "no" | "0" => Some((question, false)),
        _ => None,
    }
}

/// How a corpus says what it knows: the columns of `expected.csv` that answer questions, and the property that is meant.
struct Corpus {
    answers: &'static [(&'static str, &'static str)],
    property: Option<&'static str>,
}

const MODELS: [(&str, &str); 3] = [("sc", "sc"), ("tso", "tso"), ("pso", "pso")];

const CORPORA: [(&str, Corpus); 6] = [
    ("algorithms", Corpus { answers: &MODELS, property: None }),
    ("litmus-x86", Corpus { answers: &MODELS, property: None }),
    ("memorax", Corpus { answers: &MODELS, property: None }),
    (
        "trencher",
        Corpus { answers: &[("robust", "robust"), ("triangular_race_free", "triangular")], property: None },
    ),
    ("c-litmus", Corpus { answers: &MODELS, property: Some("assertions") }),
    ("c-programs", Corpus { answers: &MODELS, property: Some("assertions") }),
];

fn from_csv(folder: &Path, corpus: Corpus) -> Result<Vec<Task>, String> {
    let path = folder.join("expected.csv");
    let wrong = |what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
    let mut reader =
        csv::ReaderBuilder::new().flexible(true).from_path(&path).map_err(|error| wrong(&error))?;
    let header = reader.headers().map_err(|error| wrong(&error))?.clone();
    let column = |name: &str| header.iter().position(|column| column == name);
    let file = column("file").or(column("test")).ok_or_else(|| wrong(&"it has no column `file`"))?;
    let mut tasks = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| wrong(&error))?;
        let cell = |name: &str| column(name).and_then(|column| record.get(column)).unwrap_or_default();
        let answer = |(column, question): &(&'static str, &'static str)| verdict(question, cell(column));
        let expected: Vec<_> = corpus.answers.iter().filter_map(answer).collect();
        if expected.is_empty() {
            continue;
        }
        tasks.push(Task {
            file: folder.join(record.get(file).unwrap_or_default()),
            property: corpus.property.map(str::to_string),
            define: cell("defines").split_whitespace().map(str::to_string).collect(),
            expected,
        });
    }
    Ok(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_from_a_folder_to_a_file() {
        let way = |folder: &str, file: &str| relative(Path::new(folder), Path::new(file));
        assert_eq!(way("/a/b/tasks/examples", "/a/examples/x.fw"), "../../../examples/x.fw");
        assert_eq!(way("/a", "/a/x.fw"), "x.fw");
        assert_eq!(way("/b", "/a/x.fw"), "../a/x.fw");
    }

    #[test]
    fn names_are_names_of_files_and_differ() {
        let task = |define: &[&str]| Task {
            file: PathBuf::from("/x/2+2w.pso.fw"),
            property: Some("a/b".into()),
            define: define.iter().map(|d| d.to_string()).collect(),
            expected: Vec::new(),
        };
        let mut taken = BTreeSet::new();
        for (define, name) in
            [(&["N=3"][..], "2+2w.pso-N=3-a_b"), (&[], "2+2w.pso-a_b"), (&[], "2+2w.pso-a_b-2")]
        {
            let made = task(define).name(&taken);
            assert_eq!(made, name);
            taken.insert(made);
        }
    }
}
