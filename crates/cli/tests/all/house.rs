//! The source tree: the map in ARCHITECTURE.md is true, modules have descriptions, and crates, files and functions stay small.

use crate::common::repository;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Maximum number of lines in `src` of one crate.
const MOST_LINES_OF_A_CRATE: usize = 20_000;
/// Maximum number of source files with more than 500 lines.
const MOST_LONG_FILES: usize = 15;
/// Maximum number of functions with more than 80 lines.
const MOST_LONG_FUNCTIONS: usize = 10;
/// Maximum size of the map in bytes.
const MOST_BYTES_OF_THE_MAP: usize = 12 << 10;

/// The names of the folders in `crates`.
fn crates() -> BTreeSet<String> {
    let entries = std::fs::read_dir(repository("crates")).expect("the crates");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

/// All Rust files below a folder, in order.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The source files of all crates with their texts, except unit tests in separate files.
fn sources() -> Vec<(PathBuf, String)> {
    let folders = crates().into_iter().map(|name| repository("crates").join(name).join("src"));
    let files = folders.chain([repository("bench/src")]).flat_map(|folder| rust_files(&folder));
    let is_test = |path: &PathBuf| {
        path.components().any(|part| ["tests", "tests.rs"].iter().any(|&name| part.as_os_str() == name))
    };
    let files = files.filter(|path| !is_test(path));
    files
        .map(|path| (std::fs::read_to_string(&path).expect("a source file"), path))
        .map(|(text, path)| (path, text))
        .collect()
}

/// The functions of a file that `cargo fmt` has formatted: the line of each `fn` and how many lines it has.
fn functions(text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let is_head = |line: &str| {
        let words =
            line.trim_start().split(' ').take_while(|word| !word.contains('(') || word.starts_with("pub("));
        let mut words = words.skip_while(|word| {
            ["pub", "const", "async", "unsafe"].contains(word) || word.starts_with("pub(")
        });
        words.next() == Some("fn") || line.trim_start().starts_with("fn ")
    };
    let heads =
        lines.iter().enumerate().filter(|(_, line)| is_head(line) && !line.trim_end().ends_with([';', '}']));
    heads
        .filter_map(|(head, line)| {
            let end = lines[head..]
                .iter()
                .position(|other| indent(other) == indent(line) && other.trim() == "}")?;
            Some((head + 1, end + 1))
        })
        .collect()
}

#[test]
fn functions_are_measured() {
    let text = "impl A {\n    pub(crate) fn f(\n        a: u8,\n    ) -> u8 {\n        a\n    }\n\n    fn g() {}\n}\n\nconst fn h() {\n}\n";
    assert_eq!(functions(text), [(2, 5), (11, 2)]);
}

#[test]
fn crates_files_and_functions_are_small() {
    let sources = sources();
    for name in crates() {
        let folder = repository("crates").join(&name);
        let lines: usize = sources
            .iter()
            .filter(|(path, _)| path.starts_with(&folder))
            .map(|(_, text)| text.lines().count())
            .sum();
        assert!(lines <= MOST_LINES_OF_A_CRATE, "crate {name} has {lines} lines");
    }
    let long: Vec<_> =
        sources.iter().filter(|(_, text)| text.lines().count() > 500).map(|(path, _)| path).collect();
    assert!(long.len() <= MOST_LONG_FILES, "files with more than 500 lines: {long:#?}");
    let of_file = |(path, text): &(PathBuf, String)| {
        let functions = functions(text).into_iter().filter(|&(_, lines)| lines > 80);
        functions.map(|(line, lines)| format!("{}:{line}: {lines} lines", path.display())).collect::<Vec<_>>()
    };
    let long: Vec<_> = sources.iter().flat_map(of_file).collect();
    assert!(long.len() <= MOST_LONG_FUNCTIONS, "functions with more than 80 lines: {long:#?}");
}

#[test]
fn every_module_says_what_it_is() {
    let silent: Vec<_> =
        sources().into_iter().filter(|(_, text)| !text.starts_with("//!")).map(|(path, _)| path).collect();
    assert!(silent.is_empty(), "no comment `//!` at the head: {silent:#?}");
}

/// The file or folder that a word of the map names, if any: relative to `crates`, or to the folder of the file named last.
fn named(word: &str, last: &Path) -> Option<PathBuf> {
    let root = repository("crates");
    let within = last.strip_prefix(&root).ok().and_then(|path| path.iter().next());
    let source = within.map(|name| root.join(name).join("src"));
    let near = last.ancestors().take_while(|above| Some(*above) != source.as_deref().and_then(Path::parent));
    let from =
        [root.clone(), repository("")].into_iter().chain(near.map(Path::to_path_buf)).chain(source.clone());
    from.map(|from| from.join(word)).find(|path| path.exists())
}

#[test]
fn the_map_is_short_and_true() {
    let page = std::fs::read_to_string(repository("ARCHITECTURE.md")).expect("the map");
    assert!(page.len() <= MOST_BYTES_OF_THE_MAP, "{} bytes", page.len());
    let (_, behind) = page.split_once("## Crates").expect("a section about crates");
    let drawn = behind.split("```").nth(1).expect("a drawing");
    let rows = drawn.lines().map(|line| line.split("   ").next().unwrap_or_default());
    let drawn: BTreeSet<String> =
        rows.flat_map(str::split_whitespace).map(|name| name.trim_end_matches('*').to_string()).collect();
    let missing: Vec<_> = crates().into_iter().filter(|name| !drawn.contains(name)).collect();
    assert!(missing.is_empty(), "not on the map: {missing:?}");
    let mut last = repository("crates");
    let mut count = 0;
    for line in page.lines() {
        for word in line.split([' ', ',', ';', ':', '`', '(', ')']) {
            let word = word.trim_end_matches('.');
            if word.ends_with(".rs") || (word.ends_with('/') && word.len() > 1) {
                last = named(word, &last).unwrap_or_else(|| panic!("there is no {word}: {line}"));
                count += 1;
            }
        }
    }
    assert!(count > 50, "the map names {count} files");
}
