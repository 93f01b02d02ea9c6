//! Every file of the corpora can be imported, lowered, and written as `.fw`.

use std::collections::HashMap;
use std::path::PathBuf;

use fencewright_executions::oracle;
use fencewright_lang::{fw, import, load, lower};
use fencewright_program::MemoryModel;
use fencewright_testing::corpora::corpora;

/// Maximum number of states of a litmus test that is compared with its answer.
const STATE_LIMIT: usize = 200_000;

/// The files of a corpus with this extension; `None`, with a message, if the corpora are missing.
fn files(corpus: &str, extension: &str) -> Option<Vec<PathBuf>> {
    let folder = corpora(&format!("import of {corpus}"))?.join(corpus);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == extension));
    files.sort();
    Some(files)
}

/// Imports the files. Each must be recognised as this language, have `expected_properties` properties with formulas, be lowered without errors, and
/// be unchanged by printing and parsing.
fn check(corpus: &str, extension: &str, front_end: &str, expected_files: usize, expected_properties: usize) {
    let Some(files) = files(corpus, extension) else { return };
    assert_eq!(files.len(), expected_files, "{corpus}");
    for file in files {
        let shown = file.display();
        let text = std::fs::read_to_string(&file).unwrap();
        let loaded = load(&file.to_string_lossy(), text.as_bytes(), None, &[])
            .unwrap_or_else(|e| panic!("{}", e.sources.render(&e.diagnostics, false)));
        assert_eq!(loaded.front_end.name(), front_end, "{shown}");
        assert_eq!(loaded.notes, Vec::<String>::new(), "{shown}");
        let program = loaded.program;
        let stated = program.properties.iter().filter(|p| p.formula().is_some()).count();
        assert_eq!(stated, expected_properties, "{shown}");
        let printed = fw::print(&loaded.file);
        let (parsed, errors) = fw::parse(&printed);
        assert_eq!(errors, [], "{shown}\n{printed}");
        assert_eq!(fw::print(&parsed), printed, "{shown}");
        let again = lower::lower(&parsed, &[]).unwrap_or_else(|e| panic!("{shown}: {e:?}\n{printed}"));
        let edges =
            |p: &fencewright_program::Program| p.threads.iter().map(|t| t.edges.len()).collect::<Vec<_>>();
        assert_eq!(edges(&again), edges(&program), "{shown}");
    }
}

#[test]
fn memorax() {
    check("memorax", "rmm", "rmm", 12, 1);
}

#[test]
fn trencher() {
    check("trencher", "txt", "trencher", 18, 0);
}

#[test]
fn litmus() {
    check("litmus-x86", "litmus", "litmus", 216, 1);
}

/// The answers stored with the litmus tests, found by exploring the reference semantics.
#[test]
fn litmus_answers() {
    let Some(files) = files("litmus-x86", "litmus") else { return };
    let answers = std::fs::read_to_string(files[0].with_file_name("expected.csv")).unwrap();
    let answers: HashMap<&str, bool> = answers
        .lines()
        .skip(1)
        .filter_map(|l| l.rsplit_once(','))
        .map(|(test, tso)| (test, tso == "1"))
        .collect();
    let mut compared = 0;
    for file in files {
        let shown = file.display();
        let imported = import::litmus(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let program = lower::lower(&imported.file, &[]).unwrap_or_else(|e| panic!("{shown}: {e:?}"));
        let reachable = oracle::explore(&program, MemoryModel::Tso, STATE_LIMIT, &mut || false);
        let property = program.properties.iter().find(|p| p.name == "condition").unwrap();
        let answer = match reachable {
            Ok(reachable) => reachable.satisfies(&program, MemoryModel::Tso, property),
            Err(oracle::Incomplete::TooManyStates) => continue,
            Err(other) => panic!("{shown}: {other:?}"),
        };
        let name = file.file_name().unwrap().to_string_lossy();
        let expected = answers.get(name.as_ref()).or_else(|| answers.get(name.trim_end_matches(".litmus")));
        assert_eq!(answer.as_ref(), expected, "{shown}");
        compared += 1;
    }
    assert!(compared >= 200, "only {compared} tests are small enough");
}
