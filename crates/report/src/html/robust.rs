//! Answers about robustness on a page: the verdict, the witness with its cycle or triangular race, and the table of attacks.

use std::fmt::Write as _;

use fencewright_engines::Reason;
use fencewright_engines::robust::{Finding, Robustness, Shape};
use fencewright_transform::attack::Notion;

use super::escape::text;
use super::execution::View;
use super::{Heading, Page, plain};
use crate::style::Style;
use crate::text::seconds;
use crate::words::{Source, grouped};
use crate::{robust, words};
use fencewright_lang::source::escape;

/// Maximum number of attacks in the table.
const MOST_ATTACKS: usize = 500;

impl Page {
    /// Adds an answer about robustness; `list` adds a table of the attacks.
    pub fn robust(&mut self, source: Source<'_>, answer: &Robustness, list: bool) {
        let (verdict, class) = match answer.robust() {
            Ok(true) => ("robust", "good"),
            Ok(false) => ("not robust", "bad"),
            Err(_) => ("unknown", "unsure"),
        };
        let line = robust::text(source, answer, false, true, Style::PLAIN);
        let name = format!("{}: ", escape(source.name()));
        let sentence = line.trim_end().strip_prefix(&name).unwrap_or_default();
        let mut body = format!("<p class=\"reason\">{}</p>\n", text(sentence));
        if let Err(Reason::Unsupported(_, Some(span)) | Reason::Limit(_, span)) = answer.robust() {
            let (at, statement) = (source.position(*span).line_name(), source.statement(*span));
            let _ = writeln!(body, "<p>Line {}: <code>{}</code></p>", text(&at), text(&statement));
        }
        let mut executions = Vec::new();
        if let Some((attack, witness)) = answer.witness() {
            let thread = source.program.thread(attack.thread);
            let place = |edge| {
                let span = thread.edge(edge).span;
                let (at, statement) = (source.position(span).line_name(), source.statement(span));
                format!("<code>{}</code> (line {})", text(&statement), text(&at))
            };
            let _ = writeln!(
                body,
                "<p><b>{}</b> delays the store {} past the load {}.</p>",
                text(&thread.name),
                place(attack.store),
                place(attack.load)
            );
            let (cycle, conclusion) = match witness.shape() {
                Shape::Cycle(cycle) => (Some(&cycle[..]), "no execution under SC does the same".to_owned()),
                Shape::Race(race) => {
                    let cell = source.cell(race.cell);
                    let conclusion = format!(
                        "a triangular race: the store of step {} is buffered while step {} loads {cell}, which step {} then writes",
                        race.store + 1,
                        race.load + 1,
                        race.write + 1
                    );
                    (None, conclusion)
                }
            };
            let replayed = witness.replayed();
            self.execution(
                &View { source, replayed, property: None, cycle, conclusion, written: None },
                &mut body,
                &mut executions,
            );
            body.push_str(&plain(source, replayed, None));
        }
        if list {
            body.push_str(&attacks(source, answer));
        }
        let facts = vec![
            answer.engine.to_string(),
            format!("{} states", grouped(answer.states)),
            seconds(answer.seconds),
        ];
        let question = match answer.notion {
            Notion::HappensBefore => "robustness",
            Notion::Triangular => "triangular races",
        };
        let heading = Heading { question, model: "tso", verdict, class, facts };
        self.answer(None, source, heading, body, executions);
    }
}

/// The table of the first attacks, at most [`MOST_ATTACKS`] of them, each with its verdict.
fn attacks(source: Source<'_>, answer: &Robustness) -> String {
    let mut html = String::from(
        "<h3>Attacks</h3>\n<div class=\"scroll\"><table><thead><tr><th>thread</th><th>delayed store</th><th>past this load</th><th></th></tr></thead><tbody>\n",
    );
    for attack in answer.attacks().iter().take(MOST_ATTACKS) {
        let thread = source.program.thread(attack.thread);
        let place = |edge| {
            let span = thread.edge(edge).span;
            let (at, statement) = (source.position(span).line_name(), source.statement(span));
            format!("<code>{}</code> line {}", text(&statement), text(&at))
        };
        let (class, word) = match &attack.verdict {
            Finding::Feasible => ("bad", "feasible".to_owned()),
            Finding::Infeasible => ("good", "infeasible".to_owned()),
            Finding::Unknown(reason) => {
                ("unsure", words::shortened(&format!("unknown: {}", words::reason(reason)), 200))
            }
            Finding::Unexamined => ("unsure", "not examined".to_owned()),
        };
        let _ = writeln!(
            html,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td><span class=\"verdict {class}\">{}</span></td></tr>",
            text(&thread.name),
            place(attack.store),
            place(attack.load),
            text(&word)
        );
    }
    html.push_str("</tbody></table></div>\n");
    if let Some(more @ 1..) = answer.attacks().len().checked_sub(MOST_ATTACKS) {
        let _ =
            writeln!(html, "<p class=\"left-out\">{} more attacks are left out.</p>", grouped(more as u64));
    }
    html
}
