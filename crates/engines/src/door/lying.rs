//! Tests of the check of verdicts with engines that must not be believed: no proof of an engine with an unsound domain passes, and a claim to have
//! explored all executions is confirmed only by those of the reference semantics.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use fencewright_lang::load;
use fencewright_memory::linear::Cube;
use fencewright_memory::{BufferMachine, Buffers, Command, Kept, Summarised};
use fencewright_program::{MemoryModel, Property};

use super::{Confirm, Verdict, check};
use crate::cegar::Cegar;
use crate::domain::zones::Zones;
use crate::domain::{Domain, Live, SpuriousPath};
use crate::search::explore::ReachedControl;
use crate::search::live::LiveCells;
use crate::search::reach::{Reach, Reached};
use crate::search::reduced::Reduced;
use crate::task::{
    About, Answer, Counts, Engine, EngineName, Executions, Invariant, Limits, Progress, Reason, Report, Task,
    Work,
};
use crate::{Evidence, Exploration};

/// The domain of zones, except that after 21 correct calls `post` returns no states, as if no further step were possible.
struct LyingZones {
    honest: Zones,
    questions: std::cell::Cell<usize>,
}

impl Domain for LyingZones {
    type State = <Zones as Domain>::State;
    type Transition = <Zones as Domain>::Transition;

    fn cube(&self, live: &Live, state: &Self::State) -> Cube {
        self.honest.cube(live, state)
    }

    fn transition(&self, before: &Live, commands: &[Command], after: &Live) -> Self::Transition {
        self.honest.transition(before, commands, after)
    }

    fn blank(&self) -> Self::State {
        self.honest.blank()
    }

    fn post(
        &mut self,
        transition: &Self::Transition,
        state: &Self::State,
        out: &mut Vec<(u32, Self::State)>,
    ) -> Result<(), Reason> {
        self.honest.post(transition, state, out)?;
        if self.questions.get() > 20 {
            out.clear();
        }
        self.questions.set(self.questions.get() + 1);
        Ok(())
    }

    fn stored(&self, state: &Self::State) -> Self::State {
        self.honest.stored(state)
    }

    fn covers(&self, larger: &Self::State, smaller: &Self::State) -> bool {
        self.honest.covers(larger, smaller)
    }

    fn size(&self, state: &Self::State) -> usize {
        self.honest.size(state)
    }

    fn refine(&self, _path: &mut dyn SpuriousPath<Self>) -> Result<Self, String> {
        Err("it sees no violation".into())
    }

    fn doubt(&self) -> &'static str {
        "it has none"
    }
}

/// Engine `cegar` with the lying domain.
struct Liar;

impl Engine for Liar {
    fn name(&self) -> EngineName {
        EngineName::Cegar
    }

    fn about(&self) -> About {
        Cegar::default().about()
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        let buffers = Buffers::Partial {
            model: task.model,
            k: 1,
            kept: Kept::Newest,
            summaries: Summarised::default(),
        };
        let machine = BufferMachine::new(task.program, buffers);
        let live = LiveCells::new(task, limits).expect("a small program");
        let mut domain = LyingZones { honest: Zones::new(1, false), questions: Default::default() };
        let reduced = Reduced::new(&machine, &live, None);
        let mut reach = Reach::new(&reduced, &task.properties, &mut domain, limits);
        let Reached::Closed(states) = reach.run(limits, progress) else { panic!("it sees no violation") };
        let cubes = |reached: ReachedControl<_, _>| {
            let cube = |state| reach.domain().cube(&reached.live, state);
            (reached.control, reached.states.iter().map(cube).collect())
        };
        let states = states.into_iter().map(cubes).collect();
        let properties = task.properties.iter().map(|p| p.name.clone()).collect();
        let invariant = Arc::new(Invariant { buffers, properties, symmetry: Vec::new(), states });
        let answers = task.properties.iter().map(|_| Answer::Proved(Arc::clone(&invariant))).collect();
        Report { answers, ..Report::default() }
    }
}

#[test]
fn a_lying_domain_gets_no_proof_past_the_checker() {
    for name in ["peterson.fw", "bakery.fw", "dekker.fw", "lamport-fast.fw"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
        let program = load(name, &fs::read(path).expect("readable"), None, &[]).expect("it loads").program;
        let task = Task::new(&program, MemoryModel::Tso, program.properties.clone());
        for result in check(&Liar, &task, &Limits::default(), &Progress::default(), Confirm::default()) {
            let caught = matches!(result.verdict(), Verdict::Unknown(Reason::Contradiction(_)));
            assert!(caught, "{name}: {:?}", result.verdict());
        }
    }
}

/// An engine that claims to have explored executions, in all of which every property holds.
struct Believer;

impl Engine for Believer {
    fn name(&self) -> EngineName {
        EngineName::Explicit
    }

    fn about(&self) -> About {
        Cegar::default().about()
    }

    fn run(&self, task: &Task<'_>, _limits: &Limits, _progress: &Progress) -> Report {
        let answers = task.properties.iter().map(|_| Answer::Holds(None)).collect();
        let counts = Counts::Executions(Executions::default());
        Report { answers, work: Work { counts, ..Work::default() }, ..Report::default() }
    }
}

#[test]
fn a_claim_about_executions_is_confirmed_by_those_of_the_reference_semantics() {
    // With a limit of 0 states, the states are not explored, so the executions decide.
    let exploration = Exploration { states: 0, ..Exploration::default() };
    let confirm = Confirm { exploration: Some(exploration), ..Confirm::default() };
    let text =
        "shared x, y; thread p { var r; x = 1; r = y; assert r < 2; } thread q { var s; y = 1; s = x; }
        finally both: never p.r == 0 && q.s == 0;
        finally one: exists p.r == 1;
        forbid early: y == 1 && p.r == 0;";
    let program = load("sb.fw", text.as_bytes(), None, &[]).expect("it loads").program;
    let properties = program.properties.iter().cloned().chain([Property::assertions(), Property::deadlock()]);
    let properties: Vec<Property> = properties.collect();
    for (model, both) in [(MemoryModel::Sc, true), (MemoryModel::Tso, false)] {
        let task = Task::new(&program, model, properties.clone());
        let results = check(&Believer, &task, &Limits::default(), &Progress::default(), confirm);
        for (result, holds) in results.iter().zip([both, true, false, true, true]) {
            let name = &result.property.name;
            match result.verdict() {
                Verdict::Safe => {
                    assert!(holds, "{name} does not hold under {model:?}");
                    assert!(
                        matches!(result.evidence(), Evidence::Enumerated(2..)),
                        "{name}: {:?}",
                        result.evidence()
                    );
                    assert_eq!(result.checked(), Some(true));
                }
                Verdict::Unknown(Reason::Contradiction(_)) => assert!(!holds, "{name} holds under {model:?}"),
                other => panic!("{name}: {other:?}"),
            }
        }
    }
    let endless = load("endless.fw", b"shared x; thread p { while true { x = 1; x = 0; } }", None, &[]);
    let endless = endless.expect("it loads").program;
    let task = Task::new(&endless, MemoryModel::Tso, vec![Property::assertions()]);
    let result = check(&Believer, &task, &Limits::default(), &Progress::default(), confirm).remove(0);
    assert!(matches!(result.evidence(), Evidence::Engine) && result.checked() == Some(false), "{result:?}");
}
