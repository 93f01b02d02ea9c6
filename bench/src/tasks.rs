//! Task definitions for BenchExec: questions about programs, with the expected answers.
//!
//! ```text
//! DIR/properties/tso.prp       a question: `safe under tso`
//! DIR/examples/dekker.yml      a program with its constants, and the expected answer to each question
//! DIR/examples.set             the task definitions of one origin, for `includesfile`
//! ```
//!
//! The expected answers are read from `expected.toml` of the examples and from `expected.csv` of the corpora. The same inputs give the same files.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use fencewright_program::MemoryModel;
use fencewright_testing::corpora::corpora;
use toml::{Table, Value};

use crate::save::save;

/// The questions: the name of each property file without its extension, and its contents, which the tool-info module for BenchExec reads.
const QUESTIONS: [(&str, &str); 9] = [
    ("sc", "safe under sc"),
    ("tso", "safe under tso"),
    ("pso", "safe under pso"),
    ("robust", "robust against tso"),
    ("triangular", "free of triangular races"),
    ("fences-tso", "made safe under tso by fences"),
    ("fences-pso", "made safe under pso by fences"),
    ("fences-robust", "made robust against tso by fences"),
    ("fences-triangular", "made free of triangular races by fences"),
];

/// A program with its expected answers.
struct Task {
    /// The file of the program.
    file: PathBuf,
    /// The name of the property that the question is about; `None` for all properties.
    property: Option<String>,
    /// Values of constants, in the form of arguments of `-D`.
    define: Vec<String>,
    /// The name of each question, and whether the answer is yes.
    expected: Vec<(&'static str, bool)>,
    /// The name of each question about fences, and the number of fences in a cheapest set, over all threads.
    fences: Vec<(&'static str, u32)>,
}

/// Writes all tasks to a folder; returns their number.
pub fn write(folder: &Path, examples: &Path) -> Result<usize, String> {
    let made =
        |path: &Path| std::fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()));
    let saved = |path: PathBuf, text: &str| save(&path, text);
    made(&folder.join("properties"))?;
    for (name, question) in QUESTIONS {
        saved(folder.join("properties").join(format!("{name}.prp")), &format!("{question}\n"))?;
    }
    let mut sets = vec![("examples", from_toml(examples)?), ("examples-c", from_toml(&examples.join("c"))?)];
    if let Some(corpora) = corpora("tasks for the corpora") {
        for (corpus, read) in CORPORA {
            // Each corpus is optional.
            if corpora.join(corpus).join("expected.csv").exists() {
                sets.push((corpus, from_csv(&corpora.join(corpus), read)?));
            }
        }
    }
    // BenchExec names its output files after tasks without their folders, so task names must be unique across folders.
    let mut names = BTreeSet::new();
    for (set, tasks) in sets {
        let place = folder.join(set);
        made(&place)?;
        let here = std::fs::canonicalize(&place).map_err(|error| format!("{}: {error}", place.display()))?;
        let mut list = String::new();
        for task in &tasks {
            let name = task.name(&names);
            saved(place.join(format!("{name}.yml")), &task.definition(&here)?)?;
            let _ = writeln!(list, "{set}/{name}.yml");
            names.insert(name);
        }
        saved(folder.join(format!("{set}.set")), &list)?;
    }
    Ok(names.len())
}

impl Task {
    /// A name for the task that is not in `taken`. It consists of the program (with its extension unless that is .fw), its constants, and the
    /// property.
    fn name(&self, taken: &BTreeSet<String>) -> String {
        let is_ours = self.file.extension().is_some_and(|extension| extension == "fw");
        let file = if is_ours { self.file.file_stem() } else { self.file.file_name() };
        let stem = file.unwrap_or_default().to_string_lossy();
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

    /// The text of the task definition, in which paths are relative to `folder`.
    fn definition(&self, folder: &Path) -> Result<String, String> {
        let file = std::fs::canonicalize(&self.file);
        let file = file.map_err(|error| format!("{}: {error}", self.file.display()))?;
        let mut text =
            format!("format_version: \"2.0\"\ninput_files: {}\n", quoted(&pattern(&relative(folder, &file))));
        let headers = headers(&file);
        if !headers.is_empty() {
            text += "required_files:\n";
            headers
                .iter()
                .for_each(|header| _ = writeln!(text, "  - {}", quoted(&pattern(&relative(folder, header)))));
        }
        text += "properties:\n";
        for (question, holds) in &self.expected {
            let _ = writeln!(
                text,
                "  - property_file: \"../properties/{question}.prp\"\n    expected_verdict: {holds}"
            );
        }
        if self.property.is_some() || !self.define.is_empty() || !self.fences.is_empty() {
            text += "options:\n";
        }
        if let Some(property) = &self.property {
            let _ = writeln!(text, "  property: {}", quoted(property));
        }
        if !self.define.is_empty() {
            text += "  define:\n";
            self.define.iter().for_each(|define| _ = writeln!(text, "    - {}", quoted(define)));
        }
        if !self.fences.is_empty() {
            text += "  fences:\n";
            self.fences.iter().for_each(|(question, count)| _ = writeln!(text, "    {question}: {count}"));
        }
        Ok(text)
    }
}

/// A YAML string, in JSON notation.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A glob pattern that matches only this path.
fn pattern(path: &str) -> String {
    path.chars().map(|c| if "[*?".contains(c) { format!("[{c}]") } else { c.to_string() }).collect()
}

/// The headers in the folder of a C program, which it may include; empty for other programs.
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

/// The relative path from a folder to a file, both of which are absolute. The task definitions contain relative paths so that the checkout can be
/// moved.
fn relative(folder: &Path, file: &Path) -> String {
    let common = folder.components().zip(file.components()).take_while(|(a, b)| a == b).count();
    let back = folder.components().skip(common).map(|_| Component::ParentDir);
    let path: PathBuf = back.chain(file.components().skip(common)).collect();
    path.to_string_lossy().into_owned()
}

/// The tasks of a folder, from its `expected.toml`.
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
        let fixed = entry.get("fixed").and_then(Value::as_array).into_iter().flatten();
        let fixed = fixed.filter_map(|model| match model.as_str()? {
            "tso" => Some(("fences-tso", true)),
            "pso" => Some(("fences-pso", true)),
            _ => None,
        });
        Ok(Task {
            file: folder.join(file),
            property: word("property").map(str::to_string),
            define: define.collect(),
            expected: expected.chain(fixed).collect(),
            fences: Vec::new(),
        })
    };
    let tasks = entries.iter().enumerate().map(task).collect::<Result<Vec<_>, String>>()?;
    Ok(tasks.into_iter().filter(|task| !task.expected.is_empty()).collect())
}

/// An expected answer; `None` if it is unknown.
fn verdict(question: &'static str, word: &str) -> Option<(&'static str, bool)> {
    match word {
        "safe" | "yes" | "1" => Some((question, true)),
        "unsafe" | "no" | "0" => Some((question, false)),
        _ => None,
    }
}

/// Adds implied answers. Every execution under SC is possible under TSO, and every execution under TSO is possible under PSO.
fn implied(expected: &mut Vec<(&'static str, bool)>) {
    let models = ["sc", "tso", "pso"];
    let answer =
        |n: usize| expected.iter().find(|(question, _)| *question == models[n]).map(|(_, holds)| *holds);
    let known: Vec<Option<bool>> = (0..models.len()).map(answer).collect();
    for (n, model) in models.into_iter().enumerate().filter(|(n, _)| known[*n].is_none()) {
        let safe = known[n..].contains(&Some(true));
        let wrong = known[..n].contains(&Some(false));
        if safe || wrong {
            expected.push((model, safe));
        }
    }
    expected.sort_by_key(|(question, _)| QUESTIONS.iter().position(|(name, _)| name == question));
}

/// The format of a corpus: the columns of `expected.csv` that answer questions or count fences, each with the name of its question, and the name of
/// the property that the questions are about (`None` for all properties).
struct Corpus {
    answers: &'static [(&'static str, &'static str)],
    fences: &'static [(&'static str, &'static str)],
    property: Option<&'static str>,
    /// Whether all properties are safety properties, so that answers about one memory model imply answers about another.
    is_safety: bool,
}

const MODELS: [(&str, &str); 3] = [("sc", "sc"), ("tso", "tso"), ("pso", "pso")];

const CORPORA: [(&str, Corpus); 6] = [
    ("algorithms", Corpus { answers: &MODELS, fences: &[], property: None, is_safety: true }),
    // Some tests state that an outcome is possible, which is not a safety property.
    ("litmus-x86", Corpus { answers: &MODELS, fences: &[], property: None, is_safety: false }),
    (
        "memorax",
        Corpus {
            answers: &MODELS,
            fences: &[("memorax_fence_sites", "fences-tso")],
            property: None,
            is_safety: true,
        },
    ),
    (
        "trencher",
        Corpus {
            answers: &[("robust", "robust"), ("triangular_race_free", "triangular")],
            fences: &[("robustness_fences", "fences-robust"), ("trf_fences", "fences-triangular")],
            property: None,
            is_safety: false,
        },
    ),
    ("c-litmus", Corpus { answers: &MODELS, fences: &[], property: Some("assertions"), is_safety: true }),
    ("c-programs", Corpus { answers: &MODELS, fences: &[], property: Some("assertions"), is_safety: true }),
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
        let mut expected: Vec<_> = corpus.answers.iter().filter_map(answer).collect();
        if corpus.is_safety {
            implied(&mut expected);
        }
        let count =
            |(column, question): &(&'static str, &'static str)| Some((*question, cell(column).parse().ok()?));
        let fences: Vec<(&str, u32)> = corpus.fences.iter().filter_map(count).collect();
        expected.extend(fences.iter().map(|(question, _)| (*question, true)));
        if expected.is_empty() {
            continue;
        }
        tasks.push(Task {
            file: folder.join(record.get(file).unwrap_or_default()),
            property: corpus.property.map(str::to_string),
            define: cell("defines").split_whitespace().map(str::to_string).collect(),
            expected,
            fences,
        });
    }
    Ok(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_lead_from_a_folder_to_a_file() {
        let way = |folder: &str, file: &str| relative(Path::new(folder), Path::new(file));
        assert_eq!(way("/a/b/tasks/examples", "/a/examples/x.fw"), "../../../examples/x.fw");
        assert_eq!(way("/a", "/a/x.fw"), "x.fw");
        assert_eq!(way("/b", "/a/x.fw"), "../a/x.fw");
    }

    #[test]
    fn names_are_names_of_files_and_differ() {
        let task = |file: &str, define: &[&str]| Task {
            file: PathBuf::from(file),
            property: Some("a/b".into()),
            define: define.iter().map(|d| d.to_string()).collect(),
            expected: Vec::new(),
            fences: Vec::new(),
        };
        let mut taken = BTreeSet::new();
        for (file, define, name) in [
            ("/x/2+2w.pso.fw", &["N=3"][..], "2+2w.pso-N=3-a_b"),
            ("/x/2+2w.pso.fw", &[], "2+2w.pso-a_b"),
            ("/y/2+2w.pso.fw", &[], "2+2w.pso-a_b-2"),
            ("/y/2+2w.pso.c", &[], "2+2w.pso.c-a_b"),
        ] {
            let made = task(file, define).name(&taken);
            assert_eq!(made, name);
            taken.insert(made);
        }
    }

    #[test]
    fn implied_answers_for_other_memory_models_become_tasks() {
        let all = |known: &[(&'static str, bool)]| {
            let mut known = known.to_vec();
            implied(&mut known);
            known
        };
        assert_eq!(all(&[("tso", true)]), [("sc", true), ("tso", true)]);
        assert_eq!(all(&[("tso", false)]), [("tso", false), ("pso", false)]);
        assert_eq!(all(&[("pso", true)]), [("sc", true), ("tso", true), ("pso", true)]);
        assert_eq!(all(&[("sc", true), ("pso", false)]), [("sc", true), ("pso", false)]);
        assert_eq!(all(&[]), []);
    }

    /// Columns of a corpus become questions, and expected numbers of fences become options of the task.
    #[test]
    fn a_corpus_becomes_tasks() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
        let csv = "file,robust,robustness_fences,triangular_race_free,trf_fences\na [b].txt,no,4,?,?\nc.txt,?,?,?,?\n";
        write("expected.csv", csv);
        write("a [b].txt", "");
        let [.., (_, trencher), _, _] = CORPORA;
        let tasks = from_csv(folder.path(), trencher).expect("a corpus");
        let [task] = &tasks[..] else { panic!("one task, not {}", tasks.len()) };
        let here = std::fs::canonicalize(folder.path()).expect("the folder");
        assert_eq!(
            task.definition(&here).expect("a definition"),
            "format_version: \"2.0\"\ninput_files: \"a [[]b].txt\"\nproperties:\n  \
             - property_file: \"../properties/robust.prp\"\n    expected_verdict: false\n  \
             - property_file: \"../properties/fences-robust.prp\"\n    expected_verdict: true\n\
             options:\n  fences:\n    fences-robust: 4\n"
        );
    }
}
