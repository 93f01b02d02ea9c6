//! Marks of the series in a plot, distinguished by shape and colour.

use std::fmt::Write as _;

use super::axis::{RIGHT, TOP};
use super::escape;

/// A palette for colour-blind readers (Okabe and Ito).
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d1f"];

/// The colour of a series by its number; with more series than colours, colours are reused.
pub fn colour(series: usize) -> &'static str {
    COLOURS[series % COLOURS.len()]
}

/// A mark with a tooltip. The text of the tooltip is escaped by this function.
pub fn mark(series: usize, x: f64, y: f64, hollow: bool, text: &str) -> String {
    let colour = colour(series);
    let fill = if hollow { "var(--page)" } else { colour };
    let paint = format!("fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.5\"");
    let title = format!("<title>{}</title>", escape(text));
    // Seven colours and four shapes distinguish 28 series.
    match series % 4 {
        0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" {paint}>{title}</circle>\n"),
        1 => format!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"7.4\" height=\"7.4\" {paint}>{title}</rect>\n",
            x - 3.7,
            y - 3.7
        ),
        2 => polygon(x, y, &[(0.0, -5.0), (5.0, 4.0), (-5.0, 4.0)], &paint, &title),
        _ => polygon(x, y, &[(0.0, -5.2), (5.2, 0.0), (0.0, 5.2), (-5.2, 0.0)], &paint, &title),
    }
}

fn polygon(x: f64, y: f64, corners: &[(f64, f64)], paint: &str, title: &str) -> String {
    let points: Vec<String> = corners.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx, y + dy)).collect();
    format!("<polygon points=\"{}\" {paint}>{title}</polygon>\n", points.join(" "))
}

/// The legend beside the plot, with the name of each series and whether its marks are hollow. The names are escaped by this function.
pub fn legend(series: &[(String, bool)]) -> String {
    let mut svg = String::new();
    for (n, (name, hollow)) in series.iter().enumerate() {
        let (x, y) = (RIGHT + 20.0, TOP + 10.0 + 19.0 * n as f64);
        svg += &mark(n, x, y, *hollow, name);
        let short: String = match name.chars().count() {
            ..=33 => name.clone(),
            _ => name.chars().take(32).chain(['…']).collect(),
        };
        let _ = writeln!(
            svg,
            "<text class=\"tick\" x=\"{}\" y=\"{}\">{}</text>",
            x + 12.0,
            y + 4.0,
            escape(&short)
        );
    }
    svg
}
