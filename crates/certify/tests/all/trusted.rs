//! Limits on the size of the trusted crates, and on their dependencies.

use std::fs;
use std::path::{Path, PathBuf};

/// The crates that every certificate and every replayed trace depends on: programs with their reference semantics and replay, the machines that a
/// certificate may name, the checker of refutations, the checker of certificates.
const TRUSTED: [&str; 4] = ["program", "memory", "proof", "certify"];
/// Maximum number of lines of code in the trusted crates together, so that a reviewer can read them all. Each increase is justified here:
/// 4,000 initially; 150 for shifts, minima and maxima, numbers that wrap around, and conditional expressions;
/// 1,000 for sets of states: their steps on packed states, their layout, the checks of reductions, and the lookup table;
/// 50 for the calls of spans, the messages of assertions, and the kinds of faults;
/// 500 for automorphisms, so that sets of states up to symmetry of thread families can be checked;
/// 400 for quotients, remainders, bit operations and wraparound as cases, and for congruences in invariants;
/// 50 for claims about PSO that follow from claims about TSO;
/// 50 for claims about slices: the slices together cover the properties, all under one memory model;
/// 460 for versions: the rules under which only their order matters, the registers that hold them, and their renaming;
/// 220 for sets of states with abstract buffers: how stores enter and leave these;
/// 40 for exchanges under which a comparison with a constant, or the order of stores within a step, is invariant;
/// 70 for bounds on exact buffers that count the stores to each memory cell;
/// 20 for claims about programs with narrowed choices;
/// 320 for persistent sets: what threads may still access, checked edge by edge, and the sets computed from it in each state;
/// 50 for distinguishing certificates that are too hard for the checker from wrong ones;
/// 110 for formulas with disjuncts that depend on one thread only, and with registers that are observed at some locations only.
const MOST_TRUSTED: usize = 7_490;

/// The crates of the transformations that a certificate may name: trusting such a certificate includes trusting these.
const TRANSFORMATIONS: [&str; 2] = ["transform", "kit"];
/// Maximum number of lines of code in these crates together. Each increase is justified here:
/// 2,500 initially; 100 for programs that issue their stores in every order, so that PSO can be decided by way of TSO;
/// 150 for slices, which omit irrelevant threads;
/// 310 for narrowed choices: the flow of chosen values, what they are compared with, and which values are enough;
/// 60 for bounds of chosen values, so that values between them may be used in any way.
const MOST_TRANSFORMATIONS: usize = 3_120;

/// The external crates that the trusted crates may depend on.
const EXTERNAL: [&str; 5] = ["num-bigint", "num-integer", "num-traits", "serde", "serde_json"];

/// Crates that `certify` may depend on although they are not trusted: `packed` decodes states, all of which are checked afterwards; `counterexample`
/// only distinguishes wrong certificates from ones that are too hard, and both are rejected.
const UNTRUSTED: [&str; 2] = ["packed", "counterexample"];

fn crate_folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

/// All source files of a crate's library, with their texts.
fn sources(name: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![crate_folder(name).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the sources are there") {
            let path = entry.expect("they can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = fs::read_to_string(&path).expect("sources are text");
                found.push((path, text));
            }
        }
    }
    found
}

/// The number of lines of code: no comments, no blank lines, no `#[cfg(test)]` items. In formatted code such an item at the outermost level is one
/// line long, or ends with the first line that consists of a closing brace.
fn lines_of_code(text: &str) -> usize {
    let mut count = 0;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]" {
            let item = lines.next().unwrap_or_default();
            if !item.ends_with(';') {
                lines.by_ref().find(|line| *line == "}");
            }
            continue;
        }
        let line = line.trim();
        count += (!line.is_empty() && !line.starts_with("//")) as usize;
    }
    count
}

#[test]
fn lines_are_counted() {
    let text = "//! A file.\n\nuse a::b;\n\n/// A function.\nfn f() {\n    // Nothing.\n    g(\"//\");\n}\n\n\
                #[cfg(test)]\nmod tests {\n    fn t() {\n    }\n}\nfn h() {}\n";
    assert_eq!(lines_of_code(text), 5);
    assert_eq!(lines_of_code("#[cfg(test)]\nmod tests;\nfn f() {}\n"), 1);
}

fn count(names: &[&str]) -> usize {
    let mut total = 0;
    for name in names {
        let mut lines = 0;
        let sources = sources(name);
        for (path, text) in &sources {
            // A file `tests.rs` is not counted; its module must declare it under `#[cfg(test)]`.
            if path.ends_with("tests.rs") {
                let module = path.parent().expect("a file is in a folder").with_extension("rs");
                let declares = |(path, text): &(PathBuf, String)| {
                    *path == module && text.contains("#[cfg(test)]\nmod tests;\n")
                };
                assert!(sources.iter().any(declares), "{} is not declared as tests", path.display());
                continue;
            }
            // Either of these would include code that is not counted.
            for hidden in ["include!", "#[path"] {
                assert!(!text.contains(hidden), "{}: {hidden}", path.display());
            }
            lines += lines_of_code(text);
        }
        println!("{name}: {lines} lines of code");
        total += lines;
    }
    println!("together: {total}");
    total
}

#[test]
fn the_trusted_part_is_small() {
    let lines = count(&TRUSTED);
    assert!(lines > 1_000, "{lines} lines cannot be all of it");
    assert!(lines <= MOST_TRUSTED, "{lines} lines of code, {MOST_TRUSTED} at most: what can live elsewhere?");
}

#[test]
fn the_transformations_that_certificates_name_are_small() {
    let lines = count(&TRANSFORMATIONS);
    assert!(lines > 500, "{lines} lines cannot be all of it");
    assert!(lines <= MOST_TRANSFORMATIONS, "{lines} lines of code, {MOST_TRANSFORMATIONS} at most");
}

/// The names of a manifest's dependencies, without development dependencies.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut section = "";
    let mut names = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
            // A dependency may also be a section of its own.
            let own_section = line.trim_matches(['[', ']']).rsplit_once("dependencies.");
            names.extend(own_section.filter(|(kind, _)| *kind != "dev-").map(|(_, name)| name.to_string()));
        } else if section.ends_with("dependencies]") && section != "[dev-dependencies]" {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            names.extend((!name.is_empty() && !name.starts_with('#')).then(|| name.to_string()));
        }
    }
    names
}

#[test]
fn manifests_are_parsed() {
    let manifest = "[package]\nname = \"a\"\n\n[dependencies]\nb.workspace = true\nc = \"1\"\n\n[dependencies.d]\n\
                    version = \"1\"\n\n[dev-dependencies]\ne = \"1\"\n\n[target.'cfg(unix)'.dependencies]\nf = \"1\"\n";
    assert_eq!(dependencies(manifest), ["b", "c", "d", "f"]);
}

#[test]
fn the_trusted_part_has_only_trusted_dependencies() {
    for name in TRUSTED.iter().chain(&TRANSFORMATIONS) {
        let folder = crate_folder(name);
        assert!(!folder.join("build.rs").exists(), "{name} runs a program when it is built");
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a crate has a manifest");
        for dependency in dependencies(&manifest) {
            let allowed = match dependency.strip_prefix("fencewright-") {
                // The other trusted crates are independent of transformations; only certificates name them.
                Some(own) if TRANSFORMATIONS.contains(&own) => {
                    *name == "certify" || TRANSFORMATIONS.contains(name)
                }
                Some(own) if UNTRUSTED.contains(&own) => *name == "certify",
                Some(own) => TRUSTED.contains(&own),
                None => EXTERNAL.contains(&dependency.as_str()),
            };
            assert!(allowed, "{name} depends on {dependency}");
        }
    }
}
