//! The algorithms of EXTRA13 s. 6.2 as in the paper, at k = 1: finds fences that keep every buffer within one store, and extrapolates the proof
//! under SC to the program with these fences.

use std::sync::{Arc, Mutex};

use fencewright_engines::auto::Auto;
use fencewright_engines::extrapolate::{Attempt, Extrapolate, Method, Record};
use fencewright_engines::{Confirm, Evidence, Limits, Progress, Task, Verdict, check};
use fencewright_fences::fenced::Fenced;
use fencewright_fences::{Bounded, Candidate, Options, Safety, synthesise};
use fencewright_lang::load;
use fencewright_lang::places::places;
use fencewright_memory::{Bound, CellBounds};
use fencewright_program::{MemoryModel, Program};

/// The algorithms with their properties. The paper has predicate extrapolation for the first four (Table 1) and cube extrapolation for
/// the others (Table 2).
const ALGORITHMS: [(&str, &str); 7] = [
    ("dekker", "mutex"),
    ("peterson", "mutex"),
    ("alternating-bit", "in_step"),
    ("szymanski", "mutex"),
    ("array-queue", "in_bounds"),
    ("bakery", "mutex"),
    ("ticket-lock", "mutex"),
];

/// An example with the cheapest fences with which the property holds and every buffer has at most one store; and the number of fences.
fn with_fences(name: &str, property: &str, model: MemoryModel) -> (Program, usize) {
    let path = format!("{}/../../examples/{name}.fw", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let loaded = load(&format!("{name}.fw"), &bytes, None, &[]).expect("an example is a program");
    let placed = places(&loaded, &[]).expect("it was lowered before");
    let bound = match model {
        MemoryModel::Pso => Bound::Cell(CellBounds::new(&[1]).expect("one bound")),
        _ => Bound::Thread(1),
    };
    let properties = vec![property.to_string()];
    let safety = Safety { model, properties, engine: Auto::default(), confirm: Confirm::default() };
    let goal = Bounded { goal: Box::new(safety), bound };
    let options = Options { evidence: false, ..Options::default() };
    let found = synthesise(&placed, &goal, &options, &Limits::default(), &Progress::default());
    assert!(found.proof.checked && found.proof.bound_checked, "{name} under {model:?}: {:?}", found.verdict);
    let chosen: Vec<&Candidate> = found.fences.iter().map(|chosen| &chosen.fence).collect();
    (Fenced::new(&placed, &chosen).program, chosen.len())
}

/// Proves a property, with an accepted certificate; returns the bound on buffers and the source of the predicates.
fn prove(program: &Program, property: &str, model: MemoryModel, method: Method) -> (u32, Attempt) {
    let record = Arc::new(Mutex::new(Record::default()));
    let options = fencewright_engines::extrapolate::Options {
        method,
        record: Some(Arc::clone(&record)),
        ..Default::default()
    };
    let wanted = program.properties.iter().filter(|p| p.name == property).cloned().collect();
    let task = Task::new(program, model, wanted);
    let engine = Extrapolate { options };
    let all = check(&engine, &task, &Limits::default(), &Progress::default(), Confirm::default());
    let [checked] = all.as_slice() else { panic!("there is a property {property}") };
    assert!(matches!(checked.verdict(), Verdict::Safe), "{:?}", checked.verdict());
    assert!(matches!(checked.evidence(), Evidence::Certified(_)), "an unchecked proof");
    let record = record.lock().expect("the engine has ended");
    let last = record.accounts.last().expect("there was a proof");
    last.k.zip(last.attempt).expect("the proof is about buffers")
}

#[test]
fn one_store_in_a_buffer_is_enough_with_fences_that_keep_it() {
    let mut fences = 0;
    for (n, (name, property)) in ALGORITHMS.into_iter().enumerate() {
        for model in [MemoryModel::Tso, MemoryModel::Pso] {
            let (program, count) = with_fences(name, property, model);
            fences += count;
            let methods = [Method::Cubes, Method::Predicates];
            for method in if n < 4 { &methods[..] } else { &methods[..1] } {
                let (k, attempt) = prove(&program, property, model, *method);
                println!("{name} under {model:?}, {count} fences, {method:?}: k = {k}, {attempt:?}");
                assert_eq!(k, 1, "{name} under {model:?}, {method:?}");
                // The predicates of the SC proof suffice: none were found by refinement on P_M, the program with the memory model encoded.
                assert_ne!(attempt, Attempt::Refined, "{name} under {model:?}, {method:?}");
            }
        }
    }
    assert!(fences > 0, "buffers overflow without fences");
}
