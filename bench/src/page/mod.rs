//! A run as one self-contained HTML page with plots, without scripts or network access.

mod axis;
mod curves;
mod mark;
mod scatter;

use std::fmt::Write as _;

use crate::compare::{Regression, regressions, summary};
use crate::measurement::{Other, Source};
use crate::run::{Block, Section};

use curves::curves;
use scatter::scatter;

/// The page with the tables and plots of these sections.
pub fn page(sections: &[Section]) -> String {
    let mut body = String::from("<h1>Fencewright: what it takes</h1>\n");
    body += "<p>Times are on the wall clock of one machine, which others may have used too: compare what was measured in one run. \
             Point at a mark to see what it is.</p>\n";
    let (header, rows) = summary(sections);
    if !rows.is_empty() {
        body += "<h2>How many times as long others took</h2>\n";
        let header: Vec<String> = header.iter().map(|cell| cell.to_string()).collect();
        body += &table(&header, &rows);
    }
    let worse = regressions(sections);
    if !worse.is_empty() {
        body += "<h2>Worse than before</h2>\n<ul class=\"worse\">\n";
        for Regression(what) in worse {
            let _ = writeln!(body, "<li>{}</li>", escape(&what));
        }
        body += "</ul>\n";
    }
    body += &pictures("Beside others", &beside_others(sections));
    body += &pictures("How time grows", &curves(sections));
    for section in sections {
        let _ = writeln!(
            body,
            "<h2 id=\"{0}\">{0}</h2>\n<p>{1}</p>",
            escape(section.name),
            escape(section.about)
        );
        for block in &section.blocks {
            match block {
                Block::Text(text) => body += &paragraphs(text),
                Block::Table { header, rows } => body += &table(header, rows),
            }
        }
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>Fencewright: what it takes</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
}

/// Plots under a heading; empty if there are none.
fn pictures(heading: &str, pictures: &[String]) -> String {
    if pictures.is_empty() {
        return String::new();
    }
    format!("<h2>{heading}</h2>\n<div class=\"pictures\">\n{}</div>\n", pictures.concat())
}

/// Plots of our times against those of papers, of an earlier run and of each peer.
fn beside_others(sections: &[Section]) -> Vec<String> {
    let of = |title: &str, axis: &str, source: Source| {
        scatter(sections, title, axis, |other| other.source == source)
    };
    let mut plots = Vec::new();
    plots.extend(of("Papers.", "published, time", Source::Published));
    plots.extend(of("An earlier run.", "earlier run, time", Source::Baseline));
    for peer in peers(sections) {
        let is_it = |other: &Other| other.source == Source::Peer && other.tool == peer;
        plots.extend(scatter(
            sections,
            &format!("{peer}, in the same run."),
            &format!("{peer}, time"),
            is_it,
        ));
    }
    plots
}

/// The peers of this run, in the order of their first answers.
fn peers(sections: &[Section]) -> Vec<String> {
    let mut tools: Vec<String> = Vec::new();
    let others = sections.iter().flat_map(|section| &section.measurements).flat_map(|m| &m.others);
    for other in others.filter(|other| other.source == Source::Peer) {
        if !tools.contains(&other.tool) {
            tools.push(other.tool.clone());
        }
    }
    tools
}

/// A text as HTML paragraphs.
fn paragraphs(text: &str) -> String {
    text.split("\n\n").map(|paragraph| format!("<p>{}</p>\n", escape(paragraph.trim()))).collect()
}

fn table(header: &[String], rows: &[Vec<String>]) -> String {
    let cells = |tag: &str, cells: &[String]| -> String {
        cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect()
    };
    let mut html =
        format!("<div class=\"wide\"><table>\n<thead><tr>{}</tr></thead>\n<tbody>\n", cells("th", header));
    for row in rows {
        let _ = writeln!(html, "<tr>{}</tr>", cells("td", row));
    }
    html + "</tbody></table></div>\n"
}

/// Escapes a text for HTML.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            c if c.is_control() && c != '\n' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

const STYLE: &str = "
:root { color-scheme: light dark; --page: #fff; --text: #1b1f24; --faint: #dfe3e8; --soft: #59636e; --stripe: #f5f7f9; --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171a; --text: #e4e8ec; --faint: #333a41; --soft: #9aa5b0; --stripe: #1c2126; --bad: #ff8a80; }
}
body { background: var(--page); color: var(--text); font: 15px/1.45 system-ui, sans-serif; margin: 24px auto; max-width: 1560px; padding: 0 20px; }
h1 { font-size: 24px; } h2 { font-size: 18px; margin: 36px 0 8px; }
p { max-width: 90ch; }
.pictures { display: flex; flex-wrap: wrap; gap: 24px; }
figure { margin: 0; flex: 1 1 620px; max-width: 760px; }
figcaption { font-size: 14px; margin-bottom: 6px; }
svg { width: 100%; height: auto; font-family: system-ui, sans-serif; }
.frame { fill: none; stroke: var(--soft); }
.grid { stroke: var(--faint); }
.tick { fill: var(--soft); font-size: 11.5px; }
.label { fill: var(--text); font-size: 13px; }
.same { stroke: var(--text); stroke-width: 1.2; }
.ratio { stroke: var(--soft); stroke-dasharray: 5 4; stroke-width: .8; }
.along { fill: var(--soft); font-size: 10.5px; }
.beyond { fill: none; stroke: var(--soft); stroke-width: 1.2; }
.wide { overflow-x: auto; margin: 8px 0 20px; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 10px; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 4px; }
th { border-bottom: 1px solid var(--soft); font-weight: 600; }
tbody tr:nth-child(even) { background: var(--stripe); }
.worse { color: var(--bad); }
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Measurement;

    fn pages(program: &str, others: bool) -> String {
        let measurement = |n: i64, seconds| {
            let new = Measurement::new(program, "tso \"x\" <i>", "safe", seconds).size(program, n);
            if others { new.published(program, 2.0).given_up("Paper", 36_000.0) } else { new }
        };
        let blocks = vec![
            Block::Text(format!("about {program}")),
            Block::Table { header: vec![program.to_string()], rows: vec![vec![program.to_string()]] },
        ];
        page(&[Section {
            name: "lazy",
            about: "what <b>it</b> measures",
            blocks,
            measurements: vec![measurement(1, 0.001), measurement(2, 0.0), measurement(4, 3.0)],
        }])
    }

    /// Names of programs and other measured texts must not add tags to the page.
    #[test]
    fn measured_texts_never_become_markup() {
        let tags = |page: &str| page.matches('<').count();
        let hostile = "</title><script>alert(1)</script><img src=x onerror=alert(1)>\"'&\u{1b}";
        for others in [false, true] {
            let (plain, hostile) = (pages("dekker.fw", others), pages(hostile, others));
            assert_eq!(tags(&plain), tags(&hostile));
            assert!(!hostile.contains("<script") && !hostile.contains("<img") && !hostile.contains('\u{1b}'));
            assert!(!hostile.contains("<i>") && !hostile.contains("<b>it"));
            assert!(!plain.contains("NaN") && !plain.contains("inf"), "{plain}");
        }
    }

    #[test]
    fn the_page_needs_nothing_else() {
        let page = pages("dekker.fw", true);
        assert!(!page.contains("http:") && !page.contains("https:") && !page.contains("src="));
        for words in ["published, time", "Fencewright, time", "size N", "10 ms", "10× faster", "hollow"] {
            assert!(page.contains(words), "{words}");
        }
    }
}
