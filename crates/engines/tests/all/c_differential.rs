//! Compares C with `.fw`: random programs in both languages have the same verdicts under all memory models, whichever of its equivalent forms the C
//! program has; and `.fw` programs that are printed as C have the same verdicts when they are read back.
//!
//! `FENCEWRIGHT_PROGRAMS=N` tests N programs; `FENCEWRIGHT_SEED=N` tests only the program with seed N and prints it.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use fencewright_engines::explicit::{Explicit, Options};
use fencewright_engines::{Confirm, Limits, Progress, Task, Verdict, check};
use fencewright_lang::{Loaded, export, front_end, load};
use fencewright_program::{MemoryModel, Property, PropertyKind};
use fencewright_testing::c::{Pair, pair};
use fencewright_testing::corpora::tell_skipped;
use fencewright_testing::{Random, programs_or};
use fencewright_transform::narrow::narrowed;

/// Whether all asserts and the final condition hold; `None` if the program is too large.
fn holds(loaded: &Loaded, model: MemoryModel) -> Option<bool> {
    let asked = |p: &&Property| {
        matches!(p.kind, PropertyKind::Assertions | PropertyKind::Finally(..)) && p.name != "memory"
    };
    let properties: Vec<Property> = loaded.program.properties.iter().filter(asked).cloned().collect();
    if properties.is_empty() {
        return Some(true);
    }
    // A choice from a range is printed in C as a choice from all values of a type, restricted by an assumption. Narrowing makes the search small
    // again.
    let program = narrowed(&loaded.program);
    let task = Task::new(program.as_ref().unwrap_or(&loaded.program), model, properties);
    let engine = Explicit { options: Options { workers: 1, ..Options::default() } };
    let limits = Limits::starting_now(Some(Duration::from_secs(20)), Some(1 << 30), Default::default());
    let found = check(&engine, &task, &limits, &Progress::default(), Confirm::NOTHING);
    let mut all = true;
    for checked in found {
        match checked.verdict() {
            Verdict::Safe => {}
            Verdict::Unsafe => return Some(false),
            Verdict::Unknown(_) => all = false,
        }
    }
    all.then_some(true)
}

fn read(name: &str, text: &str) -> Result<Loaded, String> {
    load(name, text.as_bytes(), None, &[]).map_err(|e| e.sources.render(&e.diagnostics, false))
}

fn seeds(otherwise: usize) -> Vec<u64> {
    match std::env::var("FENCEWRIGHT_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => vec![seed],
        None => (0..programs_or(otherwise) as u64).collect(),
    }
}

/// Compares a program with its C version. Returns whether both were small enough to compare; an error describes the difference.
fn compare(fw: &Loaded, text: &str) -> Result<bool, String> {
    let shown = || format!("{}\n{text}", fw.sources.main().text);
    let c = read("test.c", text).map_err(|why| format!("not read: {why}\n{}", shown()))?;
    for model in MemoryModel::ALL {
        let (Some(expected), Some(found)) = (holds(fw, model), holds(&c, model)) else { return Ok(false) };
        if found != expected {
            let translated = front_end::named("fw").expect("it is there").print(&c).unwrap_or_default();
            let what = format!("{}: asserts hold: {expected} in .fw, {found} in C", model.name());
            return Err(format!("{what}\n{}\n{translated}", shown()));
        }
    }
    Ok(true)
}

/// Compares programs with their C versions, which `written` makes, and prints the first program that differs.
fn compare_all(seeds: &[u64], written: impl Fn(&Pair, &Loaded) -> String) {
    let (mut compared, mut differ, mut shown) = (0, Vec::new(), None);
    for &seed in seeds {
        let pair = pair(&mut Random::new(seed));
        let fw = read("test.fw", &pair.fw).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        let text = written(&pair, &fw);
        match compare(&fw, &text) {
            Ok(decided) => compared += usize::from(decided),
            Err(why) => {
                differ.push(seed);
                shown.get_or_insert(why);
            }
        }
    }
    assert!(differ.is_empty(), "seeds {differ:?}, the first:\n{}", shown.unwrap_or_default());
    println!("{compared} of {} compared", seeds.len());
    assert!(compared * 20 >= seeds.len() * 19, "{compared} of {}", seeds.len());
}

#[test]
fn c_means_what_fw_means_however_it_is_written() {
    compare_all(&seeds(80), |pair, _| pair.c.clone());
}

#[test]
fn programs_printed_as_c_keep_their_meaning() {
    compare_all(&seeds(40), |_, fw| export::c(&fw.file, &fw.program, "test").expect("C can say this"));
}

/// Random programs distinguish memory models: some are safe in some models and unsafe in others.
#[test]
fn verdicts_differ_between_models() {
    let mut differ = [0; 4];
    for seed in 0..200 {
        let fw = read("test.fw", &pair(&mut Random::new(seed)).fw).expect("it is well formed");
        let holds = MemoryModel::ALL.map(|model| holds(&fw, model) == Some(true));
        differ[holds.into_iter().filter(|holds| *holds).count()] += 1;
    }
    assert!(differ[0] > 20 && differ[3] > 20 && differ[1] + differ[2] > 2, "{differ:?}");
}

/// A C compiler accepts the generated programs, and so does our front end. Otherwise the other tests would compare nothing.
#[test]
fn random_programs_are_c() {
    for seed in seeds(20) {
        let Pair { c, fw } = pair(&mut Random::new(seed));
        let fw = read("test.fw", &fw).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        let printed = export::c(&fw.file, &fw.program, "test").expect("C can say this");
        // These warnings are ignored, because random conditions may compare a variable with itself or with a value outside its type.
        let of = ["tautological-compare", "type-limits", "sign-compare", "bool-operation"];
        let senseless = of.map(|warning| format!("-Wno-{warning}"));
        for (text, warnings) in [(&c, ["-w".to_owned()].as_slice()), (&printed, senseless.as_slice())] {
            let gcc = Command::new("gcc")
                .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c"])
                .args(warnings)
                .arg("-")
                .stdin(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn();
            let Ok(mut gcc) = gcc else { return tell_skipped("random_programs_are_c", "there is no gcc") };
            let mut stdin = gcc.stdin.take().expect("it is piped");
            stdin.write_all(text.as_bytes()).expect("gcc reads it");
            drop(stdin);
            let output = gcc.wait_with_output().expect("gcc ends");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "seed {seed}: {said}\n{text}");
        }
    }
}
