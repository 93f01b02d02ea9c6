//! Axes of plots: positions of values, and ticks.

use std::fmt::Write as _;

/// The left edge of the plot without its labels, in pixels.
pub const LEFT: f64 = 78.0;
/// The top edge of the plot, in pixels.
pub const TOP: f64 = 14.0;
/// The right edge of the plot, in pixels.
pub const RIGHT: f64 = 508.0;
/// The bottom edge of the plot without its labels, in pixels.
pub const BOTTOM: f64 = 384.0;
/// The width of the whole picture in pixels. The legend is to the right of the plot.
pub const WIDTH: f64 = 760.0;
/// The height of the whole picture, in pixels.
pub const HEIGHT: f64 = 440.0;

/// The shortest time on an axis, in seconds.
const SHORTEST: f64 = 1e-6;

/// An axis of a plot: its scale and its range.
#[derive(Clone, Debug)]
pub enum Axis {
    /// Times in seconds on a logarithmic scale. The fields are the exponents of the powers of ten at both ends.
    Times(i32, i32),
    /// Sizes on a linear scale, from the first field to the second.
    Sizes(f64, f64),
}

impl Axis {
    /// A time axis that covers these values.
    pub fn times(values: impl Iterator<Item = f64>) -> Self {
        let exponents: Vec<f64> = values.map(|value| value.max(SHORTEST).log10()).collect();
        let least = exponents.iter().copied().fold(f64::INFINITY, f64::min);
        let most = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match least.is_finite() && most.is_finite() {
            // The axis has a margin so that no mark is on the frame, but it does not extend below the shortest time.
            true => Axis::Times(((least - 0.1).floor() as i32).max(-6), (most + 0.1).ceil() as i32),
            false => Axis::Times(-3, 0),
        }
    }

    /// A size axis that covers these values.
    pub fn sizes(values: impl Iterator<Item = i64> + Clone) -> Self {
        let least = values.clone().min().unwrap_or(0) as f64;
        let most = values.max().unwrap_or(1) as f64;
        let air = ((most - least) * 0.05).max(0.5);
        Axis::Sizes(least - air, most + air)
    }

    /// The relative position of a value on the axis, from 0 to 1.
    pub fn place(&self, value: f64) -> f64 {
        match *self {
            Axis::Times(least, most) => {
                (value.max(SHORTEST).log10() - f64::from(least)) / f64::from((most - least).max(1))
            }
            Axis::Sizes(least, most) => (value - least) / (most - least).max(1e-9),
        }
    }

    /// The ticks with their labels.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        match *self {
            Axis::Times(least, most) => (least..=most).map(|e| (10f64.powi(e), power_of_ten(e))).collect(),
            Axis::Sizes(least, most) => {
                let step = step((most - least) / 8.0);
                let first = (least / step).ceil() as i64;
                let last = (most / step).floor() as i64;
                (first..=last).map(|n| (n as f64 * step, format!("{}", n as f64 * step))).collect()
            }
        }
    }
}

/// The smallest number in the sequence 1, 2, 5, 10, 20, 50, ... that is at least `least`.
fn step(least: f64) -> f64 {
    let mut step = 1.0;
    for factor in [2.0, 2.5, 2.0].into_iter().cycle() {
        if step >= least {
            break;
        }
        step *= factor;
    }
    step
}

/// A power of ten seconds, with a unit.
fn power_of_ten(exponent: i32) -> String {
    let number = |zeros: i32| format!("1{}", "0".repeat(usize::try_from(zeros).unwrap_or(0)));
    match exponent {
        ..-6 => format!("1e{exponent} s"),
        -6..-3 => format!("{} µs", number(exponent + 6)),
        -3..0 => format!("{} ms", number(exponent + 3)),
        0..=4 => format!("{} s", number(exponent)),
        5.. => format!("1e{exponent} s"),
    }
}

/// The x coordinate of a value.
pub fn across(axis: &Axis, value: f64) -> f64 {
    LEFT + axis.place(value) * (RIGHT - LEFT)
}

/// The y coordinate of a value.
pub fn up(axis: &Axis, value: f64) -> f64 {
    BOTTOM - axis.place(value) * (BOTTOM - TOP)
}

/// The frame, the grid and the labels of a plot. The labels must be escaped already.
pub fn frame(x: &Axis, y: &Axis, x_label: &str, y_label: &str) -> String {
    let mut svg = format!(
        "<rect class=\"frame\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{}\" height=\"{}\"/>\n",
        RIGHT - LEFT,
        BOTTOM - TOP
    );
    for (value, label) in x.ticks() {
        let at = across(x, value);
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{BOTTOM}\"/>\
             <text class=\"tick\" x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
            BOTTOM + 17.0
        );
    }
    for (value, label) in y.ticks() {
        let at = up(y, value);
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            LEFT - 7.0,
            at + 4.0
        );
    }
    let (middle, centre) = ((LEFT + RIGHT) / 2.0, (TOP + BOTTOM) / 2.0);
    let _ = writeln!(
        svg,
        "<text class=\"label\" x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{x_label}</text>\n\
         <text class=\"label\" transform=\"translate(16 {centre}) rotate(-90)\" text-anchor=\"middle\">{y_label}</text>",
        BOTTOM + 42.0
    );
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_have_units_and_places_are_within_the_plot() {
        let axis = Axis::times([0.0004, 2.0, 36_000.0].into_iter());
        let labels: Vec<String> = axis.ticks().into_iter().map(|(_, label)| label).collect();
        assert_eq!(
            labels,
            ["100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s", "100 s", "1000 s", "10000 s", "1e5 s"]
        );
        for value in [0.0004, 2.0, 36_000.0] {
            assert!((0.0..=1.0).contains(&axis.place(value)), "{value}");
        }
        let axis = Axis::sizes([2, 4, 16].into_iter());
        assert_eq!(axis.ticks().first().map(|(_, label)| label.as_str()), Some("2"));
        assert!(axis.ticks().len() <= 9);
        // Times below the shortest one do not extend the axis, so no two ticks have the same position.
        assert_eq!(
            Axis::times([0.0, 1e-5].into_iter()).ticks().first().map(|(_, label)| label.as_str()),
            Some("1 µs")
        );
        // Axes without values or with a single value have ticks too.
        assert_eq!(Axis::times(std::iter::empty()).ticks().len(), 4);
        assert!(!Axis::sizes([5].into_iter()).ticks().is_empty());
    }
}
