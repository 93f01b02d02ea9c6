//! Engine `cegar` against the reference semantics: never a wrong `safe`, never a wrong `unsafe`, and every proof is one that the
//! checker of certificates accepts.
//!
//! A normal run takes 1,500 random programs, each with k, kept end, clip constant and memory model drawn at random; with
//! `FENCEWRIGHT_LONG_TESTS=1` it is 50,000.

use std::time::Duration;

use fencewright_engines::cegar::{Cegar, DomainName, Fixed, Options};
use fencewright_engines::{Confirm, Limits, Progress, Reason, Task, Verdict, check};
use fencewright_memory::Kept;
use fencewright_program::MemoryModel;
use fencewright_program::oracle::explore;
use fencewright_testing::{Random, Shape, program};

#[test]
fn cegar_agrees_with_the_reference_semantics() {
    let wanted = if std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some() { 50_000 } else { 1_500 };
    let (mut programs, mut safe, mut not, mut unknown) = (0, 0, 0, 0);
    let mut seed = 1_000_000;
    while programs < wanted {
        seed += 1;
        let mut random = Random::new(seed);
        let program = program(&mut random, Shape { length: 4, ..Shape::default() });
        let model = *random.pick(&MemoryModel::ALL);
        let Ok(reachable) = explore(&program, model, 1_500, &mut || false) else { continue };
        programs += 1;
        let kept = *random.pick(&[Kept::Oldest, Kept::Newest]);
        let domain = *random.pick(&[DomainName::Zones, DomainName::Predicates]);
        let (k, clip) = (random.below(4) as u32, 1 + random.below(3) as i32);
        let fixed = Fixed { k: random.one_in(4), clip: random.one_in(4), predicates: random.one_in(8) };
        let options = Options { k, kept, domain, clip, fixed };
        let limits = Limits::starting_now(Some(Duration::from_millis(500)), None, Default::default());
        let task = Task::new(&program, model, program.properties.clone());
        for checked in check(&Cegar { options }, &task, &limits, &Progress::default(), Confirm::default()) {
            let holds = reachable.satisfies(&program, model, &checked.property).expect("small values");
            let name = &checked.property.name;
            match checked.verdict() {
                Verdict::Safe => {
                    safe += 1;
                    assert!(holds, "seed {seed}, {model:?}, {options:?}, property {name}: a wrong proof");
                }
                Verdict::Unsafe => {
                    not += 1;
                    assert!(
                        !holds,
                        "seed {seed}, {model:?}, {options:?}, property {name}: a wrong violation"
                    );
                }
                Verdict::Unknown(Reason::Contradiction(what)) => {
                    panic!("seed {seed}, {model:?}, {options:?}: {what}")
                }
                Verdict::Unknown(_) => unknown += 1,
            }
        }
    }
    println!("{programs} programs: {safe} safe, {not} unsafe, {unknown} unknown");
    assert!(
        safe > wanted / 4 && not > wanted / 4,
        "{safe} safe, {not} unsafe, {unknown} unknown: too few decided"
    );
}
