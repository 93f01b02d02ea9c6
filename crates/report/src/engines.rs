//! The list of engines, as text and as JSON. `docs/json.md` describes every key.

use std::fmt::Write as _;

use fencewright_engines::{About, EngineName};
use fencewright_program::MemoryModel;
use serde::Serialize;

use crate::json;
use crate::style::Style;

/// An engine with its own options: those that it uses but some other engine ignores.
pub struct Described {
    /// The name that `--engine` takes.
    pub name: EngineName,
    /// The memory models, machines and domains that the engine supports.
    pub about: About,
    /// The names of the engine's own options, with the leading dashes.
    pub options: Vec<String>,
}

/// The engines for a terminal: models, machines, domains and options of each.
pub fn text(engines: &[Described], style: Style) -> String {
    let mut text = String::new();
    for Described { name, about, options } in engines {
        let _ = writeln!(text, "{}: {}", style.bold(name.as_str()), about.summary);
        let rows = [
            ("models", models(about).join(", ")),
            ("machines", about.machines.join(", ")),
            ("domains", about.domains.join(", ")),
            ("options", options.join(" ")),
        ];
        for (what, items) in rows {
            let _ = writeln!(text, "  {what:8}  {items}");
        }
    }
    text
}

/// The engines as one JSON array.
pub fn json(engines: &[Described]) -> String {
    let objects = engines.iter().map(|Described { name, about, options }| Object {
        engine: name.as_str(),
        about: about.summary,
        models: models(about),
        machines: about.machines,
        domains: about.domains,
        options: options.iter().map(String::as_str).collect(),
    });
    json::line(&objects.collect::<Vec<_>>())
}

fn models(about: &About) -> Vec<&'static str> {
    about.models.iter().copied().map(MemoryModel::name).collect()
}

#[derive(Serialize)]
struct Object<'a> {
    engine: &'static str,
    about: &'static str,
    models: Vec<&'static str>,
    machines: &'static [&'static str],
    domains: &'static [&'static str],
    options: Vec<&'a str>,
}
