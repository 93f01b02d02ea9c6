//! `expected.toml`: the expected verdicts of the programs of a folder.
//!
//! ```toml
//! [[example]]
//! file = "dekker.fw"
//! property = "mutex"        # without it, the worst verdict over all properties of the file
//! define = { N = 3 }        # as with -D
//! tso = "unsafe"            # and sc, pso: "safe", "unsafe" or "unknown"
//! ```

use std::path::{Path, PathBuf};

use fencewright_program::MemoryModel;
use toml::{Table, Value};

use crate::input::{in_words, read_included};

/// The name of the file with the expected verdicts.
pub const NAME: &str = "expected.toml";

/// The expected verdicts of a program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The path of the program: the folder joined with `file` of the entry.
    pub file: PathBuf,
    /// The property to check; `None` for all properties.
    pub property: Option<String>,
    /// Constants or macros with their values.
    pub define: Vec<(String, Option<String>)>,
    /// The expected verdict under each memory model that the entry names.
    verdicts: Vec<(MemoryModel, String)>,
}

impl Entry {
    /// The expected verdict under a model, if there is one.
    pub fn verdict(&self, model: MemoryModel) -> Option<&str> {
        self.verdicts.iter().find(|(of, _)| *of == model).map(|(_, verdict)| verdict.as_str())
    }
}

/// Reads the expected verdicts of a folder. Returns an empty list if the folder has no such file, and an error message if the file is malformed.
pub fn of(folder: &Path) -> Result<Vec<Entry>, String> {
    let path = folder.join(NAME);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let bytes = read_included(&path).map_err(|error| in_words(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| "this is not UTF-8".to_string())?;
    let table: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let examples = match table.get("example") {
        None => return Ok(Vec::new()),
        Some(Value::Array(examples)) => examples,
        Some(_) => return Err("`example` is not a list: write [[example]]".into()),
    };
    examples.iter().enumerate().map(|(n, entry)| self::entry(folder, n, entry)).collect()
}

fn entry(folder: &Path, number: usize, entry: &Value) -> Result<Entry, String> {
    let wrong = |what: &str| format!("example {}: {what}", number + 1);
    let text = |key: &str| match entry.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(wrong(&format!("`{key}` is not a string"))),
    };
    let file = text("file")?.ok_or_else(|| wrong("it names no `file`"))?;
    let mut verdicts = Vec::new();
    for model in MemoryModel::ALL {
        let Some(verdict) = text(model.name())? else { continue };
        if !["safe", "unsafe", "unknown"].contains(&verdict.as_str()) {
            return Err(wrong(&format!("`{}` is none of safe, unsafe, unknown", model.name())));
        }
        verdicts.push((model, verdict));
    }
    let define = match entry.get("define") {
        None => Vec::new(),
        Some(Value::Table(table)) => {
            table.iter().map(|(name, value)| (name.clone(), defined(value))).collect()
        }
        Some(_) => return Err(wrong("`define` is not a table: write { NAME = 1 }")),
    };
    Ok(Entry { file: folder.join(file), property: text("property")?, define, verdicts })
}

/// The value of a definition; `None` for a macro that is defined without a value.
fn defined(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}
