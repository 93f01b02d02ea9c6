//! Reduced programs printed as text: the .fw text is read back as a program with the same verdicts, and the C text compiles.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::common::{bounds, random_program};
use fencewright_executions::oracle::explore;
use fencewright_lang::{export, fw, load, lower};
use fencewright_program::{MemoryModel, Program, PropertyKind};
use fencewright_reduce::c::{Width, c};
use fencewright_reduce::{Bounds, Reduced, reduce};
use fencewright_testing::{Random, programs_or};

const MOST_STATES: usize = 20_000;

/// All `.fw` examples, each with its file name.
fn examples() -> Vec<(String, Program)> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .expect("the examples")
        .map(|entry| entry.expect("an example").path())
        .filter(|path| path.extension().is_some_and(|e| e == "fw"))
        .collect();
    paths.sort();
    let read = |path: std::path::PathBuf| {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).expect("an example");
        let loaded = load(&name, &bytes, None, &[]).unwrap_or_else(|_| panic!("{name} is no program"));
        (name, loaded.program)
    };
    paths.into_iter().map(read).collect()
}

/// Parses a text; `None` if it has a constant index that is out of range. Random programs may have such indices, which .fw rejects.
fn read_back(text: &str, context: &str) -> Option<Program> {
    let (file, errors) = fw::parse(text);
    assert!(errors.is_empty(), "{context}: {errors:?}\n{text}");
    match lower::lower(&file, &[]) {
        Ok(program) => Some(program),
        Err(errors) => {
            let refused = errors.iter().all(|e| e.message.contains("is outside"));
            assert!(refused, "{context}: {errors:?}\n{text}");
            None
        }
    }
}

#[test]
fn printed_programs_have_the_same_verdicts() {
    let (mut compared, mut violated) = (0, 0);
    for seed in 0..programs_or(300) as u64 {
        let mut random = Random::new(70_000 + seed);
        let program = random_program(&mut random, seed);
        let model = *random.pick(&[MemoryModel::Tso, MemoryModel::Pso]);
        let bounds = bounds(&mut random, &program, model);
        let Ok(reduced) = reduce(&program, model, &bounds) else { continue };
        // Array elements with different initial choices cannot be expressed in .fw.
        let Ok(text) = export::fw(&reduced.program) else { continue };
        let context = format!("seed {seed}");
        let Some(read) = read_back(&text, &context) else { continue };
        let explored = |p: &Program| explore(p, MemoryModel::Sc, MOST_STATES, &mut || false).ok();
        let (Some(here), Some(there)) = (explored(&reduced.program), explored(&read)) else { continue };
        for property in &reduced.program.properties {
            let expected = here.satisfies(&reduced.program, MemoryModel::Sc, property);
            let found = match property.kind {
                // Freedom from deadlock is not printed, because every program can be checked for it.
                PropertyKind::NoDeadlock => there.satisfies(&read, MemoryModel::Sc, property),
                _ => {
                    let again = read.properties.iter().find(|p| p.name == property.name);
                    let again = again.unwrap_or_else(|| panic!("{context}: no {}\n{text}", property.name));
                    there.satisfies(&read, MemoryModel::Sc, again)
                }
            };
            assert_eq!(found, expected, "{context}: {}\n{text}", property.name);
            violated += usize::from(expected == Some(false));
        }
        compared += 1;
    }
    assert!(compared > 100 && violated > 80, "{compared} programs, {violated} violations");
}

#[test]
fn every_example_is_printed_and_read_back() {
    for (name, program) in examples() {
        for (model, k) in [(MemoryModel::Tso, 1), (MemoryModel::Tso, 2), (MemoryModel::Pso, 1)] {
            let context = format!("{name}, {model:?}, k = {k}");
            let reduced = reduced(&program, model, k, &context);
            let text = export::fw(&reduced.program).unwrap_or_else(|e| panic!("{context}: {e}"));
            let read = read_back(&text, &context).expect("its indices are inside");
            // Properties without a formula are not printed.
            let stated = |p: &Program| p.properties.iter().filter(|p| p.formula().is_some()).count();
            assert_eq!(stated(&read), stated(&reduced.program), "{context}");
            assert!(!reduced.explanation(&program, &name).is_empty());
        }
    }
}

fn reduced(program: &Program, model: MemoryModel, k: u32, context: &str) -> Reduced {
    reduce(program, model, &Bounds::uniform(program, model, k))
        .unwrap_or_else(|e| panic!("{context}: {}", e.why))
}

#[test]
fn the_c_text_of_every_example_compiles() {
    if Command::new("gcc").arg("--version").output().is_err() {
        println!("there is no gcc, so nothing was compiled");
        return;
    }
    let mut texts = Vec::new();
    for (name, program) in examples() {
        for (model, k, width) in [(MemoryModel::Tso, 1, Width::Bits32), (MemoryModel::Pso, 2, Width::Bits64)]
        {
            let context = format!("{name}, {model:?}, k = {k}");
            let reduced = reduced(&program, model, k, &context);
            match c(&reduced.program, &reduced.explanation(&program, &name), width) {
                Ok(text) => texts.push((context, text, &["-Wall", "-Wextra", "-Werror"][..])),
                Err(why) => assert!(why.why.contains("real"), "{context}: {why:?}"),
            }
        }
    }
    for seed in 0..40 {
        let mut random = Random::new(80_000 + seed);
        let program = random_program(&mut random, seed);
        let model = *random.pick(&[MemoryModel::Tso, MemoryModel::Pso]);
        let bounds = bounds(&mut random, &program, model);
        let Ok(reduced) = reduce(&program, model, &bounds) else { continue };
        let width = *random.pick(&[Width::Bits32, Width::Bits64]);
        let Ok(text) = c(&reduced.program, &[], width) else { continue };
        // Warnings are expected: these programs compare truth values with numbers.
        texts.push((format!("seed {seed}"), text, &["-w"]));
    }
    assert!(texts.len() > 100, "only {} texts", texts.len());
    for (context, text, flags) in texts {
        let mut gcc = Command::new("gcc")
            .args(["-std=gnu11", "-fsyntax-only", "-x", "c", "-"])
            .args(flags)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("gcc was there a moment ago");
        gcc.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("gcc reads it");
        let output = gcc.wait_with_output().expect("gcc ends");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{context}:\n{errors}\n{text}");
    }
}

#[test]
fn too_large_programs_are_refused() {
    let refused = |text: &str, model, k: u32, why: &str| {
        let program = read_back(text, text).expect("a program");
        let refusal = reduce(&program, model, &Bounds::uniform(&program, model, k)).expect_err(text);
        assert!(refusal.why.contains(why), "{refusal:?}");
    };
    let many = "shared a[4096]; thread p { var i; loop { a[i] = 1; i = i + 1; } }";
    refused(many, MemoryModel::Pso, 64, "too many registers");
    let longer = format!("shared a[4096]; thread p {{ var i; loop {{ {} }} }}", "a[i] = 1; ".repeat(40));
    refused(&longer, MemoryModel::Tso, 64, "too many memory cells");
    refused("shared x; thread p { loop { x = 1; } }", MemoryModel::Tso, 65, "64 places");
    let loads = "a[i] = 1; i = a[i + i + i + i + i];".repeat(400);
    refused(
        &format!("shared a[4]; thread p {{ var i; loop {{ {loads} }} }}"),
        MemoryModel::Tso,
        64,
        "too large",
    );
    let parts: Vec<String> = (0..40).map(|n| format!("x{n}")).collect();
    let stores: String = parts.iter().map(|x| format!("{x} = 1; ")).collect();
    let loads: String = (0..8).map(|n| format!("r = x{n}; ")).collect();
    let shared = parts.join(", ");
    let snapshot =
        format!("shared {shared}; thread p {{ var r; loop {{ {stores} snapshot {{ {loads} }} }} }}");
    refused(&snapshot, MemoryModel::Tso, 2, "too many places");
}
