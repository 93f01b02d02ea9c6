//! The options of a command as a table of the manual.

use std::fmt::Write as _;

use super::{Command, Group, Row, rows};

/// The options of a command in Markdown, as `docs/cli.md` has them.
pub fn reference(command: Command) -> String {
    let mut text = "| option | meaning | default |\n|---|---|---|\n".to_owned();
    let mut shown: Vec<&Row> = rows(command).filter(|row| row.group != Group::Hidden).collect();
    shown.sort_by_key(|row| row.group);
    for row in shown {
        let _ = writeln!(text, "| {} | {} | {} |", usage(row), meaning(row), default(row));
    }
    text
}

/// The option in the notation of the command line, with its values.
fn usage(row: &Row) -> String {
    let choices: Vec<&str> = (row.choices)().iter().map(|choice| choice.name).collect();
    let value = match (row.value, choices.is_empty()) {
        ("", _) => String::new(),
        (value, true) => format!(" {value}"),
        (_, false) => format!(" {}", choices.join("\\|")),
    };
    let short = row.short().filter(|_| row.long().is_some());
    let short = short.map_or_else(String::new, |short| format!(", `-{short}`"));
    format!("`{}{value}`{short}", row.name())
}

/// The help, the meaning of each value, and the further explanations for the manual.
fn meaning(row: &Row) -> String {
    let choices = (row.choices)();
    let mut text = row.help.to_owned();
    let explained: Vec<String> = choices
        .iter()
        .filter(|choice| !choice.help.is_empty())
        .map(|choice| format!("`{}`: {}", choice.name, choice.help))
        .collect();
    if !explained.is_empty() {
        let _ = write!(text, ". {}", explained.join("; "));
    }
    if !row.more.is_empty() {
        let _ = write!(text, ". {}", row.more.trim_end_matches('.'));
    }
    text.replace('|', "\\|")
}

fn default(row: &Row) -> String {
    match row.default {
        "" if row.is_required => "required".into(),
        "" => String::new(),
        default => format!("`{default}`"),
    }
}
