//! The list of engines, as text and as JSON. `docs/json.md` describes every key.

use std::fmt::Write as _;

use fencewright_engines::{About, EngineName};
use fencewright_program::MemoryModel;
use serde::Serialize;

use crate::json;
use crate::style::Style;

/// The engines for a terminal: the machines and domains of each, and the options it takes.
pub fn text(engines: &[(EngineName, About)], style: Style) -> String {
    let mut text = String::new();
    for (name, about) in engines {
        let _ = writeln!(text, "{}: {}", style.bold(name.as_str()), about.summary);
        let rows = [
            ("models", models(about).join(", ")),
            ("machines", about.machines.join(", ")),
            ("domains", about.domains.join(", ")),
            ("options", about.options.join(" ")),
        ];
        for (what, items) in rows {
            let _ = writeln!(text, "  {what:8}  {items}");
        }
    }
    text
}

/// The engines as one JSON array.
pub fn json(engines: &[(EngineName, About)]) -> String {
    let object = |(name, about): &(EngineName, About)| Object {
        engine: name.as_str(),
        about: about.summary,
        models: models(about),
        machines: about.machines,
        domains: about.domains,
        options: about.options,
    };
    json::line(&engines.iter().map(object).collect::<Vec<_>>())
}

fn models(about: &About) -> Vec<&'static str> {
    about.models.iter().copied().map(MemoryModel::name).collect()
}

#[derive(Serialize)]
struct Object {
    engine: &'static str,
    about: &'static str,
    models: Vec<&'static str>,
    machines: &'static [&'static str],
    domains: &'static [&'static str],
    options: &'static [&'static str],
}
