//! Programs whose proofs depend on the values that a buffer has forgotten.

use std::path::Path;
use std::time::Duration;

use fencewright_certify::certificate::MachineName;
use fencewright_engines::cegar::{Cegar, Options};
use fencewright_engines::{Confirm, Limits, Progress, Task, Verdict, check};
use fencewright_lang::load;
use fencewright_memory::Summarised;
use fencewright_program::{MemoryModel, Program};

fn example(name: &str) -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    load(name, &std::fs::read(path).expect("readable"), None, &[]).expect("it loads").program
}

/// Proves a property with these options, and returns the memory cells whose summaries the certificate uses.
fn summaries(program: &Program, model: MemoryModel, property: &str, options: Options) -> Vec<String> {
    let property = program.properties.iter().find(|p| p.name == property).expect("it has the property");
    let task = Task::new(program, model, vec![property.clone()]);
    let limits = Limits::starting_now(Some(Duration::from_secs(120)), None, Default::default());
    let results = check(&Cegar { options }, &task, &limits, &Progress::default(), Confirm::default());
    let result = &results[0];
    assert!(matches!(result.verdict(), Verdict::Safe), "{:?}", result.verdict());
    assert_eq!(result.checked(), Some(true));
    match result.certificate().expect("a proof has a certificate").proofs[0]
        .invariant()
        .expect("an invariant")
        .machine
    {
        MachineName::Partial { summaries, .. } => summaries.cells().map(|c| program.cell_name(c)).collect(),
        other => panic!("{other:?} has no buffers to forget anything"),
    }
}

#[test]
fn an_index_is_in_range_because_only_indices_are_stored() {
    let program = example("dijkstra.fw");
    assert_eq!(summaries(&program, MemoryModel::Tso, "assertions", Options::default()), ["turn"]);
    // Under PSO stores are ordered per memory cell, and keeping one is sufficient.
    assert_eq!(summaries(&program, MemoryModel::Pso, "assertions", Options::default()), [""; 0]);
}

#[test]
fn values_that_were_never_stored_are_never_read() {
    let program = example("thesis-3-3.fw");
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        assert!(!summaries(&program, model, "goal", Options::default()).is_empty());
        let all = Summarised::all(program.cells()).cells().count();
        let from_the_start = Options { summaries: true, ..Options::default() };
        assert_eq!(summaries(&program, model, "goal", from_the_start).len(), all);
    }
}
