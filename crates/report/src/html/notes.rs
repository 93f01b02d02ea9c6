//! The parts of an answer on a page that accompany its evidence: the property, the engines that were tried, and notes.

use std::fmt::Write as _;

use fencewright_engines::Checked;
use fencewright_program::{Property, Span};

use super::escape::text;
use crate::text::{explanations, seconds};
use crate::words::{Source, grouped};

/// The text of a property and its line; empty for a property without a position in the source.
pub(super) fn stated(source: Source<'_>, property: &Property) -> String {
    if property.span == Span::default() {
        return String::new();
    }
    let excerpt = crate::words::shortened(&source.excerpt(property.span), 400);
    let at = source.position(property.span).line_name();
    format!("<p class=\"stated\"><code>{}</code> <span>line {}</span></p>\n", text(&excerpt), text(&at))
}

/// For an unknown verdict: the engines that were tried, and explanations such as variables that grew without bound.
pub(super) fn tried(source: Source<'_>, checked: &Checked) -> String {
    let mut html = String::new();
    if !checked.tried.is_empty() {
        html.push_str("<h3>What was tried</h3>\n<div class=\"scroll\"><table><thead><tr><th>engine</th><th>states</th><th>time</th><th>why it gave up</th></tr></thead><tbody>\n");
        for tried in &checked.tried {
            let domain = tried.domain.map_or(String::new(), |domain| format!(", {}", domain.as_str()));
            let threads = match &tried.threads[..] {
                [] => String::new(),
                threads => format!(", {} alone", threads.join(", ")),
            };
            let name = format!("{}{domain} under {}{threads}", tried.engine, tried.model.name());
            let (states, time) = (grouped(tried.states), seconds(tried.seconds));
            let _ = writeln!(
                html,
                "<tr><td>{}</td><td class=\"number\">{states}</td><td class=\"number\">{time}</td><td>{}</td></tr>",
                text(&name),
                text(&tried.reason)
            );
        }
        html.push_str("</tbody></table></div>\n");
    }
    let explanations = explanations(checked);
    if !explanations.is_empty() {
        html.push_str("<h3>What stands against an answer</h3>\n<ul>\n");
        for (sentence, span) in &explanations {
            let place = span.map_or_else(String::new, |span| {
                let (at, statement) = (source.position(span).line_name(), source.statement(span));
                format!(" <span class=\"place\">line {}</span> <code>{}</code>", text(&at), text(&statement))
            });
            let _ = writeln!(html, "<li>{}{place}</li>", text(sentence));
        }
        html.push_str("</ul>\n");
    }
    html
}

/// Assumptions and notes of the translation, and warnings.
pub(super) fn remarks(source: Source<'_>) -> String {
    let mut items: Vec<String> = Vec::new();
    items.extend(
        source.facts.assumed.iter().map(|assumed| format!("<b>Assumed</b>: {}", text(&assumed.to_string()))),
    );
    items.extend(source.front_end.meaning().map(text));
    items.extend(source.notes.iter().map(|note| text(note)));
    for warning in source.warnings {
        let at = source.position(warning.span).line_name();
        items.push(format!("<b>Warning</b>, line {}: {}", text(&at), text(&warning.message)));
    }
    if items.is_empty() {
        return String::new();
    }
    let items: String = items.iter().map(|item| format!("<li>{item}</li>\n")).collect();
    format!("<h3>Notes</h3>\n<ul class=\"notes\">\n{items}</ul>\n")
}
