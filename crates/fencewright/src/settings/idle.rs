//! Options that were set although nothing uses them.

use super::{Command, Row, Settings, row};

/// An option that was set without effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idle {
    /// The option with its dashes.
    pub option: String,
    /// The reason why the option has no effect, and where it would have an effect.
    pub why: String,
}

/// The state of another option in which a group of options has no effect.
pub(super) enum Other {
    /// The other option was not set.
    Missing,
    /// The other option was set.
    Set,
    /// The other option has one of these values.
    Is(&'static [&'static str]),
}

/// Options that have no effect because of another option.
pub(super) struct Rule {
    pub(super) command: Command,
    /// The engines for which the rule holds; empty if it holds for all engines.
    engines: &'static [&'static str],
    /// The fields of the options without effect.
    pub(super) idle: &'static [&'static str],
    /// The field of the other option.
    pub(super) field: &'static str,
    other: Other,
}

const fn rule(command: Command, idle: &'static [&'static str], field: &'static str, other: Other) -> Rule {
    Rule { command, engines: &[], idle, field, other }
}

const fn of_cegar(idle: &'static [&'static str], field: &'static str, other: Other) -> Rule {
    Rule { command: Command::Check, engines: &["cegar"], idle, field, other }
}

/// All rules about pairs of options. Which engines use an option is not stated here, but in the row of the option.
pub(super) const RULES: [Rule; 7] = [
    rule(Command::Show, &["oracle", "keep_store", "rounds", "no_z3"], "extended", Other::Missing),
    rule(Command::Check, &["invariants"], "json", Other::Set),
    rule(
        Command::Fences,
        &["price", "all_sets", "diff", "write", "no_evidence", "allowed"],
        "audit",
        Other::Set,
    ),
    rule(Command::Fences, &["property"], "goal", Other::Is(&["robustness", "triangular"])),
    of_cegar(&["k", "kept", "summaries"], "buffer", Other::Set),
    of_cegar(&["clip"], "domain", Other::Is(&["predicates", "order", "concrete"])),
    of_cegar(&["summaries"], "domain", Other::Is(&["order", "concrete"])),
];

impl Rule {
    fn idle(&self, settings: &Settings) -> Option<&'static str> {
        let text = settings.text(self.field);
        match self.other {
            Other::Missing if !settings.is_given(self.field) => Some("without"),
            Other::Set if settings.is_given(self.field) => Some("with"),
            Other::Is(values) if values.contains(&text) => Some("with"),
            _ => None,
        }
    }
}

impl Settings {
    /// The options that were set for a command although nothing uses them.
    pub fn idle(&self, command: Command) -> Vec<Idle> {
        let mut idle = Vec::new();
        let engine = match command {
            Command::Check => Some(row("engine")),
            Command::Robust => Some(row("attack_engine")),
            _ => None,
        };
        let chosen = engine.map_or("", |engine| self.text(engine.field));
        let looks = |row: &Row, engine: &str| row.engines.iter().any(|known| known.as_str() == engine);
        for row in self.given().filter(|row| !row.engines.is_empty()) {
            let Some(engine) = engine.filter(|_| !looks(row, chosen)) else { continue };
            let others = (engine.choices)()
                .iter()
                .map(|choice| choice.name)
                .filter(|name| looks(row, name))
                .collect::<Vec<_>>();
            let why = format!("means nothing to engine {chosen}, only to {}", others.join(", "));
            idle.push(Idle { option: row.name(), why });
        }
        let holds = |rule: &&Rule| {
            rule.command == command && (rule.engines.is_empty() || rule.engines.contains(&chosen))
        };
        for rule in RULES.iter().filter(holds) {
            let Some(with) = rule.idle(self) else { continue };
            let value = if row(rule.field).value.is_empty() {
                String::new()
            } else {
                format!(" {}", self.text(rule.field))
            };
            for field in rule.idle.iter().filter(|field| self.is_given(field)) {
                let why = format!("means nothing {with} {}{value}", row(rule.field).name());
                idle.push(Idle { option: row(field).name(), why });
            }
        }
        idle
    }

    /// Whether an option was set.
    fn is_given(&self, field: &str) -> bool {
        self.given.contains_key(field)
    }

    /// The value of an option as it was written, or its default.
    fn text(&self, field: &str) -> &str {
        self.given.get(field).map_or(row(field).default, String::as_str)
    }
}
