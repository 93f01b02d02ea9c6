//! Every program of `examples/` has the verdicts in `examples/expected.toml`.
//!
//! If explicit search does not terminate on a program, it gets only a fraction of a second and must not give a wrong verdict. Slow entries are
//! checked with `FENCEWRIGHT_LONG_TESTS=1`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::repository;
use fencewright::engines::contexts::{self, ContextBound};
use fencewright::engines::domain::DomainName;
use fencewright::engines::explicit::{Explicit, Options};
use fencewright::engines::{Checked, Confirm, Engine, Limits, Progress, Task, Verdict, check};
use fencewright::lang::load;
use fencewright::program::{MemoryModel, Program, Property, PropertyKind};
use toml::Value;

/// Time limit of explicit search for a verdict that it can find.
const ENOUGH: Duration = Duration::from_secs(10);
/// Time limit of explicit search for a verdict that it cannot find.
const LITTLE: Duration = Duration::from_millis(300);

/// The entries of `expected.toml`.
fn entries(directory: &Path) -> Vec<Value> {
    let text =
        fs::read_to_string(directory.join("expected.toml")).expect("examples/expected.toml can be read");
    let table: toml::Table = text.parse().expect("it is TOML");
    table["example"].as_array().expect("it has examples").clone()
}

fn word<'a>(entry: &'a Value, key: &str) -> Option<&'a str> {
    entry.get(key).map(|value| value.as_str().unwrap_or_else(|| panic!("{key} is a string")))
}

/// The program of an entry and the properties to check.
fn question(directory: &Path, entry: &Value) -> Result<(Program, Vec<Property>), String> {
    let file = word(entry, "file").expect("an entry has a file");
    let bytes = fs::read(directory.join(file)).map_err(|e| e.to_string())?;
    let defines: Vec<(String, i64)> =
        entry.get("define").and_then(Value::as_table).map_or(Vec::new(), |table| {
            table
                .iter()
                .map(|(name, value)| (name.clone(), value.as_integer().expect("constants are integers")))
                .collect()
        });
    let loaded = load(file, &bytes, None, &defines).map_err(|e| e.sources.render(&e.diagnostics, false))?;
    let properties = match word(entry, "property") {
        None => loaded.program.properties.clone(),
        Some("deadlock") => vec![Property::deadlock()],
        Some(name) => loaded.program.properties.iter().filter(|p| p.name == name).cloned().collect(),
    };
    match properties.is_empty() {
        true => Err("there is no such property".into()),
        false => Ok((loaded.program, properties)),
    }
}

/// The worst verdict over these properties; checks that every violation has a replayed trace.
fn verdict(
    directory: &Path,
    entry: &Value,
    model: MemoryModel,
    time: Duration,
) -> Result<&'static str, String> {
    let (program, properties) = question(directory, entry)?;
    let task = Task::new(&program, model, properties);
    let limits = Limits::starting_now(Some(time), Some(2 << 30), Default::default());
    let engine = Explicit { options: Options { workers: 1, ..Options::default() } };
    let results = check(&engine, &task, &limits, &Progress::default(), Confirm::default());
    let is = |wanted: fn(&Verdict) -> bool| move |c: &&Checked| wanted(c.verdict());
    if let Some(violated) = results.iter().find(is(|v| matches!(v, Verdict::Unsafe))) {
        let finally_exists = violated.trace().is_none() && violated.property.formula().is_some();
        let shown = violated.trace().is_some() || (finally_exists && violated.checked() == Some(true));
        return if shown { Ok("unsafe") } else { Err("a violation without a trace".into()) };
    }
    let unknown = results.iter().any(|c| matches!(c.verdict(), Verdict::Unknown(_)));
    Ok(if unknown { "unknown" } else { "safe" })
}

/// The differences between actual and expected answers for one entry.
fn failures(directory: &Path, entry: &Value) -> Vec<String> {
    let file = word(entry, "file").expect("an entry has a file");
    let mut failures = Vec::new();
    for model in MemoryModel::ALL {
        let Some(truth) = word(entry, model.name()) else {
            failures.push(format!("{file}: no verdict is given for {}", model.name()));
            continue;
        };
        let explicit = entry.get("explicit").and_then(|e| word(e, model.name()));
        let (expected, time) = match explicit {
            Some(answer) => (answer, LITTLE),
            None => (truth, ENOUGH),
        };
        match verdict(directory, entry, model, time) {
            Ok(found) if found == expected => {}
            Ok(found) => {
                failures.push(format!("{file} {entry} under {}: {found}, not {expected}", model.name()))
            }
            Err(message) => failures.push(format!("{file} under {}: {message}", model.name())),
        }
    }
    failures
}

#[test]
fn every_example_has_its_verdicts() {
    let directory = repository("examples");
    let long = std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some();
    let is_slow = |entry: &Value| entry.get("slow").and_then(Value::as_bool) == Some(true);
    let entries: Vec<Value> =
        entries(&directory).into_iter().filter(|entry| long || !is_slow(entry)).collect();
    assert!(!entries.is_empty());
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(entry) = entries.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = failures(&directory, entry);
                    failed.lock().expect("no thread panicked").extend(found);
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no thread panicked");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// The verdict of an engine on one property under TSO.
fn under_tso(engine: &dyn Engine, program: &Program, property: &Property, time: Duration) -> Checked {
    let task = Task::new(program, MemoryModel::Tso, vec![property.clone()]);
    let limits = Limits::starting_now(Some(time), Some(2 << 30), Default::default());
    let mut results = check(engine, &task, &limits, &Progress::default(), Confirm::NOTHING);
    results.pop().expect("one for each property")
}

#[test]
fn every_violation_is_found_within_the_contexts_of_the_shortest_trace() {
    let directory = repository("examples");
    for entry in entries(&directory).iter().filter(|entry| word(entry, "tso") == Some("unsafe")) {
        let (program, properties) = question(&directory, entry).expect("it loads");
        let mut compared = 0;
        for property in properties.iter().filter(|p| p.kind != PropertyKind::NoDeadlock) {
            let explicit = Explicit { options: Options { workers: 1, ..Options::default() } };
            let shortest = under_tso(&explicit, &program, property, ENOUGH / 5);
            let Some(trace) = shortest.trace().filter(|_| matches!(shortest.verdict(), Verdict::Unsafe))
            else {
                continue;
            };
            let needed = trace.contexts() as u32;
            let options = contexts::Options {
                contexts: Some(needed),
                domain: Some(DomainName::Zones),
                ..Default::default()
            };
            let found = under_tso(&ContextBound { options }, &program, property, ENOUGH);
            let verdict = found.verdict();
            assert!(matches!(verdict, Verdict::Unsafe), "{entry}: {verdict:?} within {needed} contexts");
            compared += 1;
        }
        // Some violations are too hard for explicit search, and the other engine does not support deadlocks.
        let hard = entry.get("explicit").is_some_and(|e| word(e, "tso") == Some("unknown"));
        let deadlock = word(entry, "property") == Some("deadlock");
        assert!(compared > 0 || hard || deadlock, "{entry}: explicit search finds no violation");
    }
}

#[test]
fn every_example_is_listed() {
    let directory = repository("examples");
    let listed: BTreeSet<String> =
        entries(&directory).iter().filter_map(|e| word(e, "file")).map(str::to_string).collect();
    let names = fs::read_dir(&directory)
        .expect("examples/ can be read")
        .map(|entry| entry.expect("an entry").file_name());
    let present: BTreeSet<String> =
        names.map(|name| name.to_string_lossy().into_owned()).filter(|name| name.ends_with(".fw")).collect();
    assert_eq!(listed, present);
}

#[test]
fn every_example_is_formatted() {
    for entry in entries(&repository("examples")) {
        let file = word(&entry, "file").expect("an entry has a file").to_string();
        let text = fs::read_to_string(repository("examples").join(&file)).expect("the example can be read");
        let formatted =
            fencewright::lang::fw::format(&text).unwrap_or_else(|e| panic!("{file}: {}", e[0].message));
        assert!(text == formatted, "{file} is not formatted");
    }
}
