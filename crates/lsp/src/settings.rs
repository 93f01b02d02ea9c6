//! Settings: from the command line of the server, the initialization options of the client, or the settings of the editor.

use std::time::Duration;

use fencewright::lang::{FrontEnd, Options};
use fencewright::program::MemoryModel;
use serde_json::Value;

/// The settings that the user can change.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The memory models under which programs are checked.
    pub models: Vec<MemoryModel>,
    /// Maximum time for each question and memory model; `None` for no limit.
    pub timeout: Option<Duration>,
    /// Maximum memory of the whole server in bytes.
    pub memory: Option<u64>,
    /// How programs are read. Options that exist only for C are ignored for programs in other languages.
    pub options: Options,
    /// Whether only the built-in solver may be used.
    pub own_solver: bool,
    /// Whether saving a program checks it.
    pub check_on_save: bool,
    /// Whether the client itself shows the executions and proofs that commands return.
    pub shows_texts: bool,
    /// Whether executions and proofs are shown as HTML pages as well as text.
    pub pages: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let options = fencewright::settings::Settings::default();
        Settings {
            models: options.model.models().to_vec(),
            timeout: options.patience.get(),
            memory: options.memory.get(),
            options: Options::default(),
            own_solver: false,
            check_on_save: true,
            shows_texts: false,
            pages: false,
        }
    }
}

/// The longest time limit that can be set, in seconds: a day.
const LONGEST: f64 = 86_400.0;

impl Settings {
    /// Overrides settings by those of a JSON object, in which `null` means not set. Also returns messages about errors in the object.
    pub fn with(&self, json: &Value) -> (Settings, Vec<String>) {
        let (mut settings, mut complaints) = (self.clone(), Vec::new());
        let object = match json {
            Value::Null => return (settings, complaints),
            Value::Object(object) => object,
            _ => return (settings, vec!["the settings are an object".into()]),
        };
        for (key, value) in object.iter().filter(|(_, value)| !value.is_null()) {
            if let Err(expected) = settings.set(key, value) {
                complaints.push(format!("the setting `{key}` is {expected}"));
            }
        }
        (settings, complaints)
    }

    fn set(&mut self, key: &str, value: &Value) -> Result<(), &'static str> {
        match key {
            "model" => self.models = models(value).ok_or("sc, tso, pso, all, or a list of models")?,
            "timeout" => {
                let seconds = value.as_f64().filter(|s| (0.0..=LONGEST).contains(s));
                self.timeout =
                    Some(Duration::from_secs_f64(seconds.ok_or("a number of seconds, at most a day")?));
            }
            "memory" => {
                let mebibytes = value.as_u64().filter(|&m| m > 0).and_then(|m| m.checked_mul(1 << 20));
                self.memory = Some(mebibytes.ok_or("a number of MiB above 0")?);
            }
            "defines" => {
                self.options.defines = defines(value).ok_or("an object, or a list of `NAME=VALUE`")?;
            }
            "heap" => {
                let heap = value.as_u64().filter(|heap| (1..=1000).contains(heap));
                self.options.c.heap = Some(heap.ok_or("a number from 1 to 1000")? as u32);
            }
            "includeFolders" => {
                self.options.c.folders = strings(value).ok_or("a list of folders")?;
            }
            "checkOnSave" => self.check_on_save = value.as_bool().ok_or("true or false")?,
            "showsTexts" => self.shows_texts = value.as_bool().ok_or("true or false")?,
            "executions" => {
                let is_page = value.as_str().and_then(|form| match form {
                    "page" => Some(true),
                    "text" => Some(false),
                    _ => None,
                });
                self.pages = is_page.ok_or("text or page")?;
            }
            // The object may also contain settings that only the client uses, such as the path of the server.
            _ => {}
        }
        Ok(())
    }

    /// The options for programs in this language.
    pub fn options_for(&self, front_end: &dyn FrontEnd) -> Options {
        front_end.own_options(&self.options)
    }
}

fn models(value: &Value) -> Option<Vec<MemoryModel>> {
    let named = |name: &str| MemoryModel::ALL.into_iter().find(|model| model.name() == name);
    if value == "all" {
        return Some(MemoryModel::ALL.to_vec());
    }
    let names = value.as_str().map(|name| vec![name.to_owned()]).or_else(|| strings(value))?;
    let mut models: Vec<MemoryModel> = names.iter().map(|name| named(name)).collect::<Option<_>>()?;
    models.sort_unstable();
    models.dedup();
    (!models.is_empty()).then_some(models)
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}

fn defines(value: &Value) -> Option<Vec<(String, Option<String>)>> {
    let number_or_text = |value: &Value| match value {
        Value::Null | Value::Bool(true) => Some(None),
        Value::Number(number) => Some(Some(number.to_string())),
        Value::String(text) => Some(Some(text.clone())),
        _ => None,
    };
    if let Value::Object(object) = value {
        return object.iter().map(|(name, value)| Some((name.clone(), number_or_text(value)?))).collect();
    }
    let define = |text: String| match text.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (text, None),
    };
    Some(strings(value)?.into_iter().map(define).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencewright::lang::front_end;
    use serde_json::json;

    #[test]
    fn what_is_wrong_is_told_and_the_rest_is_set() {
        let (settings, complaints) = Settings::default().with(&json!({
            "model": ["pso", "tso"], "timeout": 2.5, "memory": 0, "defines": {"N": 3, "FAST": true}, "heap": "x",
            "includeFolders": ["include"], "path": "/usr/bin/fencewright", "checkOnSave": null, "executions": "page",
        }));
        assert_eq!(settings.models, [MemoryModel::Tso, MemoryModel::Pso]);
        assert_eq!(settings.timeout, Some(Duration::from_millis(2_500)));
        assert_eq!(settings.memory, Settings::default().memory);
        assert_eq!(settings.options.defines, [("FAST".into(), None), ("N".into(), Some("3".into()))]);
        let options = |name| settings.options_for(front_end::named(name).expect("a front end"));
        assert_eq!(options("c").c.folders, ["include"]);
        assert!(options("fw").c.folders.is_empty() && settings.check_on_save && settings.pages);
        assert_eq!(
            complaints,
            [
                "the setting `heap` is a number from 1 to 1000",
                "the setting `memory` is a number of MiB above 0"
            ]
        );
        for wrong in [
            json!({"timeout": -1}),
            json!({"model": []}),
            json!({"model": "rmo"}),
            json!({"executions": 1}),
            json!([]),
        ] {
            assert_eq!(Settings::default().with(&wrong).1.len(), 1, "{wrong}");
        }
        assert!(Settings::default().with(&Value::Null).1.is_empty());
    }
}
