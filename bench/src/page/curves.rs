//! Plots of time over program size: one per family, with a curve per section and setting.

use std::fmt::Write as _;

use crate::measurement::{Measurement, Source};
use crate::run::{Section, time};

use super::axis::{Axis, across, frame, up};
use super::mark::{colour, legend, mark};
use super::scatter::figure;

/// A curve: its name, whether it belongs to another tool, and its points in order of size. A point has a size, a time in seconds, and a tooltip.
struct Curve {
    name: String,
    theirs: bool,
    points: Vec<(i64, f64, String)>,
}

/// The plots of all families with more than one measured size.
pub fn curves(sections: &[Section]) -> Vec<String> {
    let mut families: Vec<(&str, Vec<Curve>)> = Vec::new();
    for section in sections {
        for ours in &section.measurements {
            let Some((family, n)) = &ours.size else { continue };
            let at = families.iter().position(|(name, _)| name == family).unwrap_or_else(|| {
                families.push((family, Vec::new()));
                families.len() - 1
            });
            add(&mut families[at].1, section.name, ours, *n);
        }
    }
    let grows = |curves: &[Curve]| curves.iter().any(|curve| curve.points.len() > 1);
    families.iter().filter(|(_, curves)| grows(curves)).map(|(name, curves)| picture(name, curves)).collect()
}

fn add(curves: &mut Vec<Curve>, section: &str, ours: &Measurement, n: i64) {
    let mut push = |name: String, theirs: bool, seconds: f64, text: String| {
        let at = curves.iter().position(|curve| curve.name == name).unwrap_or_else(|| {
            curves.push(Curve { name, theirs, points: Vec::new() });
            curves.len() - 1
        });
        curves[at].points.push((n, seconds, text));
    };
    let Measurement { program, setting, outcome, seconds, .. } = ours;
    if ours.is_answered() {
        let text = format!("{program}, {setting}: {outcome}, {}", time(*seconds));
        push(format!("{section}: {setting}"), false, *seconds, text);
    }
    for other in &ours.others {
        if let (Some(seconds), Source::Published | Source::Peer) = (other.seconds, other.source) {
            push(other.tool.clone(), true, seconds, format!("{program}: {} {}", other.tool, time(seconds)));
        }
    }
}

fn picture(family: &str, curves: &[Curve]) -> String {
    let points = || curves.iter().flat_map(|curve| curve.points.iter());
    let x = Axis::sizes(points().map(|(n, ..)| *n));
    let y = Axis::times(points().map(|(_, seconds, _)| *seconds));
    let mut svg = frame(&x, &y, "size N", "time");
    for (n, curve) in curves.iter().enumerate() {
        let mut points: Vec<_> = curve.points.iter().collect();
        points.sort_by_key(|(n, ..)| *n);
        let place = |(n, seconds, _): &(i64, f64, String)| (across(&x, *n as f64), up(&y, *seconds));
        let line: Vec<String> =
            points.iter().map(|p| place(p)).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"{}/>",
            line.join(" "),
            colour(n),
            if curve.theirs { " stroke-dasharray=\"4 3\"" } else { "" }
        );
        for point in points {
            let (x, y) = place(point);
            svg += &mark(n, x, y, curve.theirs, &point.2);
        }
    }
    svg += &legend(&curves.iter().map(|curve| (curve.name.clone(), curve.theirs)).collect::<Vec<_>>());
    let theirs = if curves.iter().any(|curve| curve.theirs) { "hollow: others" } else { "" };
    figure(family, theirs, &svg)
}
