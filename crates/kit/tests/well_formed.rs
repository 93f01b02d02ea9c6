//! All programs that front ends and transformations produce satisfy [`validate`], and ill-formed programs are rejected.

use std::fs;
use std::path::Path;

use fencewright_kit::{ThreadBuilder, validate};
use fencewright_program::{
    Action, Address, EdgeId, Expr, Location, LocationId, Observable, Op, Program, Property, PropertyKind,
    RegisterId, Span, ThreadId, VariableId,
};
use fencewright_testing::{Random, Shape, program};
use fencewright_transform::attack::{Notion, candidates, instrument};
use fencewright_transform::extend::Extended;

/// Checks a program and the results of its transformations.
fn check(program: &Program, what: &str) {
    assert_eq!(validate(program), Ok(()), "{what}");
    for notion in [Notion::HappensBefore, Notion::Triangular] {
        let attacks = candidates(program, notion, &|| false).unwrap_or_default();
        let some = &attacks[..attacks.len().min(20)];
        if let Ok(Some(instrumented)) = instrument(program, notion, some, &|| false) {
            assert_eq!(validate(&instrumented.program), Ok(()), "{what}, attacked");
            for (thread, origins) in instrumented.program.threads.iter().zip(&instrumented.origins) {
                assert_eq!(thread.edges.len(), origins.len(), "{what}: each edge has an origin");
            }
        }
    }
    if let Ok(extended) = Extended::new(program) {
        for made in [&extended, &extended.unrolled(1), &extended.released()] {
            assert_eq!(validate(&made.program), Ok(()), "{what}, extended");
        }
    }
}

#[test]
fn random_programs_survive_reduction() {
    for seed in 0..600 {
        let shape = Shape { loops: seed % 2 == 0, corners: seed % 3 == 2, ..Shape::default() };
        check(&program(&mut Random::new(seed), shape), &format!("seed {seed}"));
    }
}

#[test]
fn examples_survive_reduction() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut checked = 0;
    for entry in fs::read_dir(examples).expect("the examples are there") {
        let path = entry.expect("they can be listed").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Ok(loaded) = fencewright_lang::load(&name, &fs::read(&path).unwrap_or_default(), None, &[])
        else {
            continue;
        };
        check(&loaded.program, &name);
        checked += 1;
    }
    assert!(checked > 20, "only {checked} examples");
}

#[test]
fn broken_programs_are_reported() {
    let text = "shared a[2] = 0; shared x = 0; thread p { var r; r = a[x]; x = r + 1; L: stop; } forbid q: p@L && x == 1;";
    let loaded = fencewright_lang::load("test.fw", text.as_bytes(), None, &[]);
    let good = loaded.unwrap_or_else(|error| panic!("{:?}", error.diagnostics)).program;
    assert_eq!(validate(&good), Ok(()));
    let broken = |change: &dyn Fn(&mut Program), told: &str| {
        let mut program = good.clone();
        change(&mut program);
        let error = validate(&program).expect_err(told);
        assert!(error.contains(told), "{error}");
    };
    let op = |program: &mut Program, op: Op| program.threads[0].edges[0].action = Action::Op(op);
    broken(&|p| p.threads[0].fault = LocationId(99), "no entry, or no fault location");
    broken(&|p| p.threads[0].edges[0].to = LocationId(99), "leads nowhere");
    broken(&|p| p.threads[0].fault = p.threads[0].entry, "leaves the fault location");
    broken(&|p| p.threads[0].edges.reverse(), "not side by side");
    broken(&|p| _ = p.threads[0].edges.pop(), "edges that do not exist");
    let last = |p: &mut Program| *p.threads[0].locations.last_mut().expect("one") = Location::default();
    broken(&last, "edges that do not exist");
    broken(&|p| op(p, Op::Assign(RegisterId(99), Expr::Const(0))), "a register that does not exist");
    broken(&|p| op(p, Op::Assume(Expr::Leaf(RegisterId(99)))), "a register that does not exist");
    let x = Address { variable: VariableId(1), index: None };
    let store = Op::Store(x, Expr::Const(0));
    let snapshot = Action::Atomic { ops: vec![store], drains: false };
    broken(&|p| p.threads[0].edges[0].action = snapshot.clone(), "without draining");
    let a = Address { variable: VariableId(0), index: None };
    broken(&|p| op(p, Op::Load(RegisterId(0), a.clone())), "an address that does not fit");
    broken(&|p| p.variables[1].base = 7, "does not occupy the cells");
    broken(&|p| _ = p.variables[0].init.pop(), "does not occupy the cells");
    let speak = |p: &mut Program, observable: Observable| {
        let kind = PropertyKind::Never(Expr::Leaf(observable));
        p.properties.push(Property { name: "new".into(), kind, span: Span::default() });
    };
    broken(&|p| speak(p, Observable::Memory(3)), "does not exist");
    broken(&|p| speak(p, Observable::Register(ThreadId(1), RegisterId(0))), "does not exist");
    let unsorted = vec![LocationId(1), LocationId(0)];
    broken(&|p| speak(p, Observable::At(ThreadId(0), unsorted.clone())), "does not exist");
}

#[test]
fn merged_locations_have_the_labels_and_edges_of_both() {
    let mut builder: ThreadBuilder<&str> = ThreadBuilder::new("t".into(), None);
    let [a, b, c, fault] = [(); 4].map(|()| builder.location((), None));
    let skip = || Action::Op(Op::Skip);
    builder.edge(b, c, skip(), Span::default(), "second of them");
    builder.edge(a, b, skip(), Span::default(), "first");
    builder.edge(a, c, skip(), Span::default(), "third");
    builder.label(a, "A");
    builder.label(b, "B");
    builder.merge(b, a);
    let unreachable = builder.location((), None);
    builder.edge(unreachable, c, skip(), Span::default(), "never");
    let all = builder.clone().finish(a, fault);
    assert_eq!(all.thread.locations[0].labels, ["A", "B"]);
    assert_eq!(all.origins, ["second of them", "first", "third", "never"]);
    assert_eq!(all.thread.edge(EdgeId(1)).to, LocationId(0), "the two are one");
    assert_eq!(all.numbers, [0, 0, 1, 2, 3].map(|n| Some(LocationId(n))));
    let reachable = builder.finish_reachable(b, c, fault);
    assert_eq!(reachable.numbers, [Some(0), Some(0), Some(1), Some(2), None].map(|n| n.map(LocationId)));
    assert_eq!(reachable.origins, ["second of them", "first", "third"]);
}

#[test]
fn dissolved_locations_leave_nothing_behind() {
    let mut builder: ThreadBuilder<()> = ThreadBuilder::new("t".into(), None);
    let [a, b, c] = [(); 3].map(|()| builder.location((), None));
    builder.label(a, "A");
    builder.op(b, c, Op::Skip, Span::default(), ());
    builder.dissolve(a, b);
    let built = builder.finish(a, c);
    assert_eq!(built.thread.entry, LocationId(0));
    assert!(built.thread.locations.iter().all(|location| location.labels.is_empty()));
}
