//! The CSV file of a run, with a row for each measurement of this tool and of other tools. A later run can compare its measurements with the file.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::measurement::{Measurement, Other, Source};
use crate::run::Section;

/// The columns of the CSV file. The first three identify a measurement; `ratio` is the time of another tool divided by ours.
const COLUMNS: [&str; 11] = [
    "section",
    "program",
    "setting",
    "family",
    "n",
    "tool",
    "outcome",
    "seconds",
    "processor",
    "states",
    "ratio",
];

/// The name of this tool in the column `tool`.
pub const OURS: &str = "fencewright";

/// The name of an earlier run in the column `tool`.
pub const EARLIER: &str = "baseline";

/// Identifies a measurement: section, program and setting.
type Key = (String, String, String);

/// The measurements of an earlier run.
pub struct Baseline {
    rows: HashMap<Key, Row>,
}

struct Row {
    outcome: String,
    seconds: f64,
    processor: Option<f64>,
}

impl Baseline {
    /// Reads the CSV file of an earlier run.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Baseline::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn parse(text: &[u8]) -> Result<Self, String> {
        let mut reader = csv::Reader::from_reader(text);
        let header = reader.headers().map_err(|error| error.to_string())?.clone();
        let column = |name: &str| {
            let found = header.iter().position(|column| column == name);
            found.ok_or_else(|| format!("there is no column `{name}`: this is not what `--csv` writes"))
        };
        let [section, program, setting] = [column("section")?, column("program")?, column("setting")?];
        let [tool, outcome, seconds] = [column("tool")?, column("outcome")?, column("seconds")?];
        // The column is optional. It shows whether a slower run computed more or only waited for other processes.
        let processor = header.iter().position(|column| column == "processor");
        let mut rows = HashMap::new();
        for record in reader.records() {
            let record = record.map_err(|error| error.to_string())?;
            let line = record.position().map_or(0, |position| position.line());
            let cell = |column: usize| record.get(column).unwrap_or_default().to_string();
            if cell(tool) != OURS {
                continue;
            }
            let time = |column: usize| cell(column).parse().ok().filter(|s: &f64| s.is_finite() && *s >= 0.0);
            let took =
                time(seconds).ok_or_else(|| format!("line {line}: `{}` is not a time", cell(seconds)))?;
            let key = (cell(section), cell(program), cell(setting));
            let row = Row { outcome: cell(outcome), seconds: took, processor: processor.and_then(time) };
            if let Some(section) = rows.insert(key, row).map(|_| cell(section)) {
                // Two files may have been concatenated. Then it is unclear which of the two rows to compare with.
                let named = [section, cell(program), cell(setting)].join(", ");
                return Err(format!("line {line}: `{named}` is there twice"));
            }
        }
        Ok(Baseline { rows })
    }

    /// The result of the earlier run for a measurement.
    pub fn of(&self, section: &str, measurement: &Measurement) -> Option<Other> {
        let key = (section.to_string(), measurement.program.clone(), measurement.setting.clone());
        let row = self.rows.get(&key)?;
        let answered = !row.outcome.contains("unknown");
        Some(Other {
            tool: EARLIER.to_string(),
            source: Source::Baseline,
            outcome: row.outcome.clone(),
            seconds: answered.then_some(row.seconds),
            processor: row.processor,
            at_least: false,
        })
    }
}

impl Baseline {
    /// The number of measurements in these sections that only the earlier run has.
    pub fn not_measured(&self, sections: &[Section]) -> usize {
        let key = |section: &Section, m: &Measurement| {
            (section.name.to_string(), m.program.clone(), m.setting.clone())
        };
        let now: HashSet<Key> = sections
            .iter()
            .flat_map(|section| section.measurements.iter().map(|m| key(section, m)))
            .collect();
        let ran = |name: &str| sections.iter().any(|section| section.name == name);
        self.rows.keys().filter(|key| ran(&key.0) && !now.contains(*key)).count()
    }
}

/// All measurements of a run as CSV.
pub fn write(sections: &[Section]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // The result is ignored because writing to memory cannot fail and all rows have the same length.
    let _ = writer.write_record(COLUMNS);
    for section in sections {
        for measurement in &section.measurements {
            let (family, n) =
                measurement.size.clone().map_or_else(Default::default, |(f, n)| (f, n.to_string()));
            let seconds = |time: Option<f64>| time.map_or(String::new(), |time| format!("{time:.6}"));
            let mut row = |cells: [&str; 6]| {
                let named = [section.name, &measurement.program, &measurement.setting, &family, &n];
                let _ = writer.write_record(named.into_iter().chain(cells));
            };
            let states = measurement.states.map_or(String::new(), |states| states.to_string());
            let (wall, processor) = (seconds(Some(measurement.seconds)), seconds(measurement.processor));
            row([OURS, &measurement.outcome, &wall, &processor, &states, ""]);
            for other in &measurement.others {
                let ratio = other.ratio(measurement).map_or(String::new(), |ratio| format!("{ratio:.3}"));
                let (wall, processor) = (seconds(other.seconds), seconds(other.processor));
                row([&other.tool, &other.outcome, &wall, &processor, "", &ratio]);
            }
        }
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(measurements: Vec<Measurement>) -> Section {
        Section { name: "fences", about: "", blocks: Vec::new(), measurements }
    }

    #[test]
    fn written_runs_are_read_back() {
        let hostile = "a,\"b\"\n=c";
        let text = write(&[section(vec![
            Measurement::new(hostile, "tso", "safe", 0.5).published("FENCES12", 2.0),
            Measurement::new("b.fw", "tso", "unknown", 60.0),
        ])]);
        assert_eq!(text.lines().next(), Some(COLUMNS.join(",").as_str()));
        assert!(text.contains(",FENCES12,,2.000000,,,4.000"), "{text}");
        let baseline = Baseline::parse(text.as_bytes()).expect("it is a table");
        let again = Measurement::new(hostile, "tso", "safe", 1.0);
        let before = baseline.of("fences", &again).expect("it was measured");
        assert_eq!((before.outcome.as_str(), before.seconds), ("safe", Some(0.5)));
        assert_eq!(before.ratio(&again), Some(0.5));
        assert!(baseline.of("lazy", &again).is_none());
        // The earlier run has no answer to this measurement, so its time is not compared.
        let other =
            baseline.of("fences", &Measurement::new("b.fw", "tso", "safe", 1.0)).expect("it was measured");
        assert_eq!(other.seconds, None);
    }

    #[test]
    fn files_that_are_not_a_run_are_refused() {
        for (text, why) in [
            ("", "no column"),
            ("a,b\n1,2\n", "no column `section`"),
            ("section,program,setting,tool,outcome,seconds\ns,p,t,fencewright,safe,soon\n", "line 2: `soon`"),
            ("section,program,setting,tool,outcome,seconds\ns,p,t,fencewright,safe,-1\n", "is not a time"),
            ("section,program,setting,tool,outcome,seconds\ns,p\n", "line"),
            (
                "section,program,setting,tool,outcome,seconds\ns,p,t,fencewright,safe,1\ns,p,t,fencewright,safe,2\n",
                "line 3: `s, p, t` is there twice",
            ),
        ] {
            let refused = Baseline::parse(text.as_bytes()).err().unwrap_or_default();
            assert!(refused.contains(why), "{text}: {refused}");
        }
        assert!(
            Baseline::parse(b"section,program,setting,tool,outcome,seconds\n\xff,p,t,fencewright,safe,1\n")
                .is_err()
        );
    }
}
