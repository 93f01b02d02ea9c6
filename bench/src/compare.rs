//! Compares a run with other tools, as ratios of times, and with an earlier run, as a list of regressions.

use std::collections::BTreeMap;

use crate::baseline::Baseline;
use crate::measurement::{Measurement, Other, Source};
use crate::run::{Run, Section, time};
use crate::{out, table};

/// A measurement with the same outcome as in the earlier run is a regression only if its time is more than this many times the earlier time.
const TIMES: f64 = 2.0;
/// Such a measurement is a regression only if its time also exceeds the earlier time by more than this many seconds. Smaller differences are noise.
const SECONDS: f64 = 0.05;

/// A regression, as a sentence.
#[derive(Debug, PartialEq)]
pub struct Regression(pub String);

/// The regressions since the earlier run.
pub fn regressions(sections: &[Section]) -> Vec<Regression> {
    let mut worse = Vec::new();
    for section in sections {
        for measurement in &section.measurements {
            let earlier = measurement.others.iter().find(|other| other.source == Source::Baseline);
            if let Some(what) = earlier.and_then(|earlier| regression(measurement, earlier)) {
                let Measurement { program, setting, .. } = measurement;
                worse.push(Regression(format!("{}: {program}, {setting}: {what}", section.name)));
            }
        }
    }
    worse
}

fn regression(now: &Measurement, earlier: &Other) -> Option<String> {
    let before = earlier.seconds?;
    if !now.is_answered() {
        return Some(format!("{}, was {} in {}", now.outcome, earlier.outcome, time(before)));
    }
    if now.outcome != earlier.outcome {
        return Some(format!("{}, was {}", now.outcome, earlier.outcome));
    }
    let is_slower = |now: f64, before: f64| now > TIMES * before && now > before + SECONDS;
    // On a busy machine the wall-clock time increases, but the processor time hardly does. So both times must have increased.
    let computes = now.processor.zip(earlier.processor).is_none_or(|(now, before)| is_slower(now, before));
    (computes && is_slower(now.seconds, before))
        .then(|| format!("{}, was {} ({:.1} times)", time(now.seconds), time(before), now.seconds / before))
}

/// Prints how a section compares with the earlier run and with peers, if there are any. The section's own tables compare it with papers.
pub fn section(run: &mut Run) {
    let Some(section) = run.sections.last() else { return };
    let mut tools: Vec<String> = Vec::new();
    let measured = |m: &Measurement| {
        m.others.iter().filter(|o| o.source != Source::Published).map(|o| o.tool.clone()).collect::<Vec<_>>()
    };
    for tool in section.measurements.iter().flat_map(measured) {
        if !tools.contains(&tool) {
            tools.push(tool);
        }
    }
    if tools.is_empty() {
        return;
    }
    let mut header = vec!["program".to_string(), "setting".into(), "outcome".into(), "time".into()];
    tools.iter().for_each(|tool| header.extend([tool.clone(), "times".to_string()]));
    let row = |measurement: &Measurement| {
        let Measurement { program, setting, outcome, seconds, .. } = measurement;
        let mut row = vec![program.clone(), setting.clone(), outcome.clone(), time(*seconds)];
        for tool in &tools {
            let is_it = |o: &&Other| o.source != Source::Published && o.tool == *tool;
            let other = measurement.others.iter().find(is_it);
            row.push(other.map_or(String::new(), |o| o.seconds.map_or_else(|| o.outcome.clone(), time)));
            row.push(other.and_then(|o| o.ratio(measurement)).map_or(String::new(), times));
        }
        row
    };
    let compared = |m: &&Measurement| m.others.iter().any(|o| o.source != Source::Published);
    let rows: Vec<_> = section.measurements.iter().filter(compared).map(row).collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    run.say("Compared, in this run: `times` is how many times as long the other took.");
    run.table(&header, &rows);
}

/// A ratio with a suitable number of digits.
pub fn times(ratio: f64) -> String {
    if ratio < 10.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") }
}

/// For each section and tool, the number of ratios, how many of them are above 1, their geometric mean, and the smallest one with its measurement.
pub fn summary(sections: &[Section]) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let mut rows = Vec::new();
    for section in sections {
        let mut ratios: BTreeMap<&str, Vec<(f64, &Measurement)>> = BTreeMap::new();
        for measurement in &section.measurements {
            for other in &measurement.others {
                // The name identifies the tool, because peers cannot have the name of a published tool.
                let of_tool = ratios.entry(&other.tool).or_default();
                of_tool.extend(other.ratio(measurement).map(|ratio| (ratio, measurement)));
            }
        }
        for (tool, ratios) in ratios {
            let mean = ratios.iter().map(|(ratio, _)| ratio.max(1e-9).ln()).sum::<f64>()
                / ratios.len().max(1) as f64;
            let least = ratios.iter().min_by(|a, b| a.0.total_cmp(&b.0));
            let faster = ratios.iter().filter(|(ratio, _)| *ratio > 1.0).count();
            rows.push(vec![
                section.name.to_string(),
                tool.to_string(),
                ratios.len().to_string(),
                faster.to_string(),
                least.map_or(String::new(), |_| times(mean.exp())),
                least.map_or(String::new(), |(ratio, _)| times(*ratio)),
                least.map_or(String::new(), |(_, m)| format!("{}, {}", m.program, m.setting)),
            ]);
        }
    }
    (vec!["section", "compared with", "figures", "we are faster", "times, mean", "least", "at"], rows)
}

/// Prints the summary; returns whether there are no regressions.
pub fn finish(run: &Run) -> Result<bool, String> {
    let (header, rows) = summary(&run.sections);
    if !rows.is_empty() && run.prints {
        out::line("\n## Summary: how many times as long others took\n");
        table::print(&header, &rows);
    }
    let Some(baseline) = &run.baseline else { return Ok(true) };
    let worse = regressions(&run.sections);
    let say = |line: &str| if run.prints { out::line(line) } else { eprintln!("{line}") };
    say(&format!("\n{} worse than before{}", worse.len(), coverage(baseline, &run.sections)?));
    worse.iter().for_each(|Regression(what)| say(&format!("  {}", out::plain(what))));
    Ok(worse.is_empty())
}

/// A text with the number of measurements that only one of the two runs has; an error if the runs have no measurement in common.
fn coverage(baseline: &Baseline, sections: &[Section]) -> Result<String, String> {
    let measurements = sections.iter().flat_map(|section| &section.measurements);
    let is_old = |m: &&Measurement| m.others.iter().any(|other| other.source == Source::Baseline);
    let (old, new): (Vec<_>, Vec<_>) = measurements.partition(is_old);
    if old.is_empty() && !new.is_empty() {
        return Err(
            "nothing that was measured is in the earlier run: there is nothing to compare with".into()
        );
    }
    let mut words = String::new();
    if !new.is_empty() {
        words += &format!("; {} of {} are new", new.len(), old.len() + new.len());
    }
    match baseline.not_measured(sections) {
        0 => {}
        missing => words += &format!("; {missing} of the earlier run were not measured"),
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stopwatch::Took;

    fn compared(outcome: &str, seconds: f64, was: &str, before: Option<f64>) -> Vec<Regression> {
        let other = Other {
            tool: crate::baseline::EARLIER.to_string(),
            source: Source::Baseline,
            outcome: was.to_string(),
            seconds: before,
            processor: Some(0.1),
            at_least: false,
        };
        let took = Took { wall: seconds, processor: Some(0.25 * seconds) };
        let measurement = Measurement::new("a.fw", "tso", outcome, took).compared(other);
        regressions(&[Section {
            name: "lazy",
            about: "",
            blocks: Vec::new(),
            measurements: vec![measurement],
        }])
    }

    #[test]
    fn regressions_are_named() {
        let said =
            |worse: Vec<Regression>| worse.into_iter().map(|Regression(what)| what).collect::<String>();
        assert_eq!(
            said(compared("safe", 1.0, "safe", Some(0.4))),
            "lazy: a.fw, tso: 1.00 s, was 400.0 ms (2.5 times)"
        );
        assert_eq!(
            said(compared("unknown", 2.0, "safe", Some(0.4))),
            "lazy: a.fw, tso: unknown, was safe in 400.0 ms"
        );
        assert_eq!(said(compared("unsafe", 0.1, "safe", Some(0.4))), "lazy: a.fw, tso: unsafe, was safe");
        // The wall-clock time increased, but the processor time did not: the run waited for other processes.
        assert_eq!(said(compared("safe", 0.7, "safe", Some(0.3))), "");
        // In turn: less than twice as slow, a difference below the noise, and no answer in either run.
        assert_eq!(said(compared("safe", 0.7, "safe", Some(0.4))), "");
        assert_eq!(said(compared("safe", 0.004, "safe", Some(0.001))), "");
        assert_eq!(said(compared("unknown", 60.0, "unknown", None)), "");
    }

    #[test]
    fn the_summary_has_means() {
        let measurement =
            |name: &str, seconds| Measurement::new(name, "tso", "safe", seconds).published("Paper", 8.0);
        let section = Section {
            name: "lazy",
            about: "",
            blocks: Vec::new(),
            measurements: vec![measurement("a", 4.0), measurement("b", 1.0)],
        };
        let (_, rows) = summary(&[section]);
        assert_eq!(
            rows,
            [["lazy", "Paper", "2", "2", "4.00", "2.00", "a, tso"].map(str::to_string).to_vec()]
        );
    }
}
