//! The scoreboard: a row for each list, the reasons of refusals and of unknown verdicts, and every unexpected verdict.

use std::collections::HashMap;
use std::time::Duration;

use super::list::{Checkout, List};
use super::row::{Outcome, Ran};
use crate::out;
use crate::table::print;

/// Maximum number of reasons of refusals, and likewise of unknown verdicts, that are printed for each list.
const MOST_REASONS: usize = 30;
/// Number of characters of a reason that are compared and printed.
const MOST_CHARACTERS: usize = 100;

/// The columns of the scoreboard.
const HEADER: [&str; 15] = [
    "list",
    "rows",
    "completed",
    "missing",
    "read",
    "right",
    "disagree",
    "right asserts",
    "no expectation",
    "unknown",
    "refused",
    "failed",
    "unchecked",
    "median s",
    "total s",
];

/// A list with the outcomes of its rows.
pub struct Scored {
    /// The name of the list.
    pub name: String,
    /// The checkouts that its rows refer to.
    pub checkouts: Vec<Checkout>,
    /// The rows with their outcomes, in the order of the list.
    pub ran: Vec<Ran>,
}

impl Scored {
    /// A list with its rows.
    pub fn new(list: List, ran: Vec<Ran>) -> Self {
        Scored { name: list.name, checkouts: list.checkouts, ran }
    }

    fn cells(&self) -> Vec<String> {
        let count =
            |wanted: &dyn Fn(&Ran) -> bool| self.ran.iter().filter(|ran| wanted(ran)).count().to_string();
        let is_decided = |ran: &Ran| matches!(ran.outcome, Outcome::Decided { .. });
        let mut times: Vec<Duration> =
            self.ran.iter().filter(|ran| ran.outcome != Outcome::Missing).map(|ran| ran.took).collect();
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        vec![
            self.name.clone(),
            self.ran.len().to_string(),
            count(&|ran| ran.row.is_completed),
            count(&|ran| ran.outcome == Outcome::Missing),
            count(&Ran::is_read),
            count(&|ran| ran.is_expected() == Some(true)),
            count(&|ran| ran.is_expected() == Some(false)),
            count(&Ran::is_right_about_asserts),
            count(&|ran| is_decided(ran) && ran.row.expected.is_none()),
            count(&|ran| matches!(ran.outcome, Outcome::Unknown(_))),
            count(&|ran| matches!(ran.outcome, Outcome::Refused(..))),
            count(&|ran| matches!(ran.outcome, Outcome::Failed(_))),
            count(&|ran| matches!(ran.outcome, Outcome::Decided { checked: false, .. })),
            format!("{:.2}", median.as_secs_f64()),
            format!("{:.1}", times.iter().sum::<Duration>().as_secs_f64()),
        ]
    }
}

/// Prints the scoreboard; then, for each list, the commits, the reasons, the unexpected verdicts, and the rows without an answer.
pub fn show(lists: &[Scored]) {
    print(&HEADER, &lists.iter().map(Scored::cells).collect::<Vec<_>>());
    for list in lists {
        let commits: Vec<String> = list
            .checkouts
            .iter()
            .map(|checkout| {
                format!("{} {}", checkout.name, checkout.commit.as_deref().unwrap_or("(commit not known)"))
            })
            .collect();
        out::line(&format!("\n{}: {}", list.name, out::plain(&commits.join(", "))));
        reasons("refused", &list.ran);
        reasons("unknown", &list.ran);
        for ran in &list.ran {
            let named = || out::plain(&format!("{} {}", ran.row.name, ran.row.flags)).trim_end().to_string();
            if ran.is_expected() == Some(false) {
                let how =
                    if ran.reason().is_empty() { String::new() } else { format!(" ({})", ran.reason()) };
                let expected = if ran.row.expected == Some(true) { "safe" } else { "unsafe" };
                out::line(&format!("  {}{}, expected {expected}: {}", ran.word(), out::plain(&how), named()));
            }
            if let Outcome::Failed(why) = &ran.outcome {
                out::line(&format!("  FAILED ({}): {}", out::plain(why), named()));
            }
        }
    }
}

/// Prints the reasons of all rows with this outcome, the most frequent reason first, each with one example.
fn reasons(outcome: &str, ran: &[Ran]) {
    let ran: Vec<&Ran> = ran.iter().filter(|ran| ran.word() == outcome).collect();
    let mut counts: HashMap<String, (usize, usize)> = HashMap::new();
    for (n, ran) in ran.iter().enumerate() {
        counts.entry(class(ran.reason())).or_insert((0, n)).0 += 1;
    }
    let mut counts: Vec<(usize, usize)> = counts.into_values().collect();
    counts.sort_by_key(|(count, first)| (std::cmp::Reverse(*count), *first));
    for (count, first) in counts.iter().take(MOST_REASONS) {
        let example = ran[*first];
        let place = match &example.outcome {
            Outcome::Refused(_, place) if !place.is_empty() => place,
            _ => &example.row.name,
        };
        let why: String = example.reason().chars().take(MOST_CHARACTERS).collect();
        out::line(&format!("  {count:4} {outcome}: {} ({})", out::plain(&why), out::plain(place)));
    }
    if counts.len() > MOST_REASONS {
        out::line(&format!("       and {} more reasons", counts.len() - MOST_REASONS));
    }
}

/// The reason with numbers and quoted names replaced by placeholders, for counting. Names of headers are kept, so that missing headers are counted
/// separately.
pub fn class(reason: &str) -> String {
    let mut class = String::new();
    for (n, part) in reason.split('`').enumerate() {
        if n % 2 == 1 {
            class += if part.ends_with(".h") { part } else { "_" };
            continue;
        }
        let mut last = ' ';
        for c in part.chars() {
            // The digits of a number become one `0`.
            let shown = if c.is_ascii_digit() { '0' } else { c };
            if shown != '0' || last != '0' {
                class.push(shown);
            }
            last = shown;
        }
    }
    class.chars().take(MOST_CHARACTERS).collect()
}

/// All rows with their outcomes as CSV.
pub fn csv(lists: &[Scored]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = [
        "list",
        "file",
        "flags",
        "model",
        "expected",
        "outcome",
        "agrees",
        "checked",
        "seconds",
        "class",
        "reason",
        "place",
        "asserts",
        "completed",
    ];
    let mut records = vec![header.map(str::to_string)];
    for list in lists {
        for ran in &list.ran {
            let yes = |known: Option<bool>| match known {
                Some(true) => "yes",
                Some(false) => "no",
                None => "",
            };
            let expected = ran.row.expected.map_or("?", |safe| if safe { "safe" } else { "unsafe" });
            let (checked, place) = match &ran.outcome {
                Outcome::Decided { checked, .. } => (Some(*checked), ""),
                Outcome::Refused(_, place) => (None, place.as_str()),
                _ => (None, ""),
            };
            let is_counted = matches!(ran.outcome, Outcome::Refused(..) | Outcome::Unknown(_));
            records.push([
                list.name.clone(),
                ran.row.name.clone(),
                ran.row.flags.clone(),
                ran.row.model.clone(),
                expected.to_string(),
                ran.word().to_string(),
                yes(ran.is_expected()).to_string(),
                yes(checked).to_string(),
                format!("{:.3}", ran.took.as_secs_f64()),
                if is_counted { class(ran.reason()) } else { String::new() },
                ran.reason().to_string(),
                place.to_string(),
                ran.asserts.map_or("", |safe| if safe { "safe" } else { "unsafe" }).to_string(),
                if ran.row.is_completed { "yes" } else { "" }.to_string(),
            ]);
        }
    }
    for record in records {
        writer.write_record(record).expect("memory can be written to");
    }
    String::from_utf8(writer.into_inner().expect("memory can be written to")).expect("all cells are text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_alike_up_to_names_and_numbers() {
        assert_eq!(class("`f` has 12 parameters"), class("`g` has 3 parameters"));
        assert_ne!(class("cannot include `a.h`"), class("cannot include `b.h`"));
        assert_ne!(class("`f` is a union"), class("`f` is a float"));
    }
}
