//! Scatter plots of our times against those of another tool, with logarithmic axes. Points below the diagonal are measurements in which we are
//! faster.

use std::fmt::Write as _;

use crate::compare::times;
use crate::measurement::{Measurement, Other};
use crate::run::{Section, time};

use super::axis::{Axis, HEIGHT, WIDTH, across, frame, up};
use super::escape;
use super::mark::{legend, mark};

/// A point of a plot: the number of its series, and the results of both tools. `seconds` is the time of the other tool.
struct Point<'m> {
    series: usize,
    ours: &'m Measurement,
    other: &'m Other,
    seconds: f64,
}

/// The plot of all answered measurements with an `Other` that satisfies `wanted` and has a time, one series for each section; `None` if there are
/// none.
pub fn scatter(
    sections: &[Section],
    title: &str,
    x_label: &str,
    wanted: impl Fn(&Other) -> bool,
) -> Option<String> {
    let (mut points, mut series, mut left_out) = (Vec::new(), Vec::new(), 0);
    for section in sections {
        for ours in &section.measurements {
            for other in ours.others.iter().filter(|other| wanted(other)) {
                let Some(seconds) = other.seconds.filter(|_| ours.is_answered()) else {
                    left_out += 1;
                    continue;
                };
                if series.last().is_none_or(|(name, _)| name != section.name) {
                    series.push((section.name.to_string(), false));
                }
                points.push(Point { series: series.len() - 1, ours, other, seconds });
            }
        }
    }
    if points.is_empty() {
        return None;
    }
    // Both axes have the same range, so the line of equal times is the diagonal of the plot.
    let x = Axis::times(points.iter().flat_map(|point| [point.seconds, point.ours.seconds]));
    let y = x.clone();
    let mut svg = frame(&x, &y, &escape(x_label), "Fencewright, time");
    svg += &diagonals(&x, &y);
    for Point { series, ours, other, seconds } in &points {
        let bound = if other.at_least { "more than " } else { "" };
        let ratio = other.ratio(ours).map_or(String::new(), |ratio| format!(" ({} times)", times(ratio)));
        let text = format!(
            "{}, {}: {}; {}: {bound}{}{ratio}",
            ours.program,
            ours.setting,
            time(ours.seconds),
            other.tool,
            time(*seconds)
        );
        let (at, height) = (across(&x, *seconds), up(&y, ours.seconds));
        if other.at_least {
            let _ = writeln!(svg, "<path class=\"beyond\" d=\"M{at:.1} {height:.1}h14m-5 -4l5 4l-5 4\"/>");
        }
        svg += &mark(*series, at, height, other.at_least, &text);
    }
    svg += &legend(&series);
    let mut note = format!("{} figures", points.len());
    if points.iter().any(|point| point.other.at_least) {
        note += "; hollow: the other was given up by then";
    }
    if left_out > 0 {
        let _ = write!(note, "; {left_out} more, where one of the two has no answer, are not shown");
    }
    Some(figure(title, &note, &svg))
}

/// A picture with its caption.
pub fn figure(title: &str, note: &str, svg: &str) -> String {
    format!(
        "<figure><figcaption><b>{}</b> {}</figcaption>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n{svg}</svg></figure>\n",
        escape(title),
        escape(note)
    )
}

/// The lines of equal ratios: the other tool takes the same time, or a power of ten times our time.
fn diagonals(x: &Axis, y: &Axis) -> String {
    let (Axis::Times(left, right), Axis::Times(low, high)) = (x, y) else { return String::new() };
    let mut svg = String::new();
    for exponent in -2..=6 {
        // On this line, the time of the other tool is 10^`exponent` times our time.
        let (from, to) = (*left.max(&(low + exponent)), *right.min(&(high + exponent)));
        if from >= to {
            continue;
        }
        let at = |power: i32| (across(x, 10f64.powi(power)), up(y, 10f64.powi(power - exponent)));
        let ((x1, y1), (x2, y2)) = (at(from), at(to));
        let class = if exponent == 0 { "same" } else { "ratio" };
        let _ = writeln!(
            svg,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
        let words = match exponent {
            0 => "equal".to_string(),
            ahead if ahead > 0 => {
                format!("10{}× faster", if ahead > 1 { superscript(ahead) } else { String::new() })
            }
            behind => format!("10{}× slower", if behind < -1 { superscript(-behind) } else { String::new() }),
        };
        let angle = (y2 - y1).atan2(x2 - x1).to_degrees();
        // The label is above the line, just below its upper end.
        let (length, back) = ((x2 - x1).hypot(y2 - y1), 16.0);
        let along = (length - back).max(0.0) / length;
        let (tx, ty) = (x1 + (x2 - x1) * along, y1 + (y2 - y1) * along);
        let _ = writeln!(
            svg,
            "<text class=\"along\" transform=\"translate({tx:.1} {ty:.1}) rotate({angle:.1})\" dy=\"-4\" \
             text-anchor=\"end\">{words}</text>"
        );
    }
    svg
}

fn superscript(number: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    number.to_string().bytes().map(|digit| DIGITS[usize::from(digit - b'0') % 10]).collect()
}
