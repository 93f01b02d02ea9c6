//! Which threads may be exchanged, and that the steps of machines commute with exchanges.

use std::collections::BTreeSet;

use fencewright_certify::symmetry::{Permutation, Symmetry};
use fencewright_lang::load;
use fencewright_memory::{
    Bound, BufferMachine, Buffers, CellId, Command, Control, Kept, Outcome, Step, Summarised,
};
use fencewright_program::{
    BinaryOp, Expr, MemoryModel, Observable, Program, PropertyKind, RegisterId, ThreadId,
};
use fencewright_testing::{Random, Shape, program as random_program};

fn program(text: &str) -> Program {
    match load("test.fw", text.as_bytes(), None, &[]) {
        Ok(loaded) => loaded.program,
        Err(error) => panic!("{:?}", error.diagnostics),
    }
}

/// Whether all threads of a program may be exchanged, considering all its properties.
fn symmetric(text: &str) -> Result<Symmetry, String> {
    let program = program(text);
    let all = (0..program.threads.len() as u32).collect();
    Symmetry::new(&program, &program.properties, &[all])
}

const THREADS: &str =
    "const N = 3;\nshared x, a[N];\nthread p[me in 0..N] { var r; r = x; here: x = r + 1; }\n";

#[test]
fn uniform_properties_are_symmetric() {
    for property in [
        "forbid f: p[0]@here && p[1]@here || p[1]@here && p[2]@here || p[0]@here && p[2]@here;",
        "forbid f: i < j in 0..N: p[i]@here && p[j]@here;",
        "forbid f: p[2].r == 1 && (p[1].r == 1 && p[0].r == 1);",
        "invariant f: p[0].r >= 0 && p[1].r >= 0 && p[2].r >= 0;",
        "forbid f: !(p[0]@here || p[1]@here || p[2]@here) && x == 7;",
        "finally f: never x == 2 || a[1] == 1;",
        "finally f: forall x == 3 && (p[0].r == 0 || p[2].r == 0 || p[1].r == 0);",
    ] {
        assert!(symmetric(&format!("{THREADS}{property}")).is_ok(), "{property}");
    }
}

#[test]
fn properties_that_single_out_a_thread_are_not_symmetric() {
    for property in [
        "forbid f: p[1]@here;",
        "forbid f: p[0]@here && p[1]@here;",
        "forbid f: p[0]@here && p[1]@here || p[1]@here && p[2]@here;",
        "forbid f: p[0].r == 1 && p[1].r == 2 && p[2].r == 2;",
        "forbid f: p[0].r < p[1].r;",
        "finally f: never p[2].r == 1;",
        "invariant f: p[0].r <= p[1].r && p[1].r <= p[2].r && p[0].r <= p[2].r;",
    ] {
        let found = symmetric(&format!("{THREADS}{property}"));
        assert!(found.is_err_and(|why| why.contains("`f` changes if threads")), "{property}");
    }
}

/// If an operand may be undefined, the order of the operands matters.
#[test]
fn properties_that_may_divide_by_zero_are_not_symmetric() {
    let mut program = program(&format!("{THREADS}forbid f: x == 9;"));
    let part = |t: u32| {
        let register = Expr::Leaf(Observable::Register(ThreadId(t), RegisterId(0)));
        Expr::binary(BinaryOp::Div, Expr::Const(1), register)
    };
    let symmetric = |program: &Program| Symmetry::new(program, &program.properties, &[vec![0, 1]]).is_ok();
    assert!(symmetric(&program));
    program.properties[0].kind = PropertyKind::Never(Expr::binary(BinaryOp::And, part(0), part(1)));
    assert!(!symmetric(&program));
}

/// Threads that differ in code, initial values or ranges cannot be exchanged.
#[test]
fn threads_that_differ_are_not_symmetric() {
    for thread in [
        "thread p[me in 0..2] { var r; x = me; }",
        "thread p[me in 0..2] { var r = me; x = r; }",
        "thread p[me in 0..2] { var id; id = me; a[id] = 1; }",
        "thread p[me in 0..2] { a[me] = 1; }",
        "thread p[me in 0..2] { var r; r = a[1 - me]; }",
        "thread p { var r; r = x; } thread q { var r; r = x; skip; }",
        "thread p { var r; r = x; } thread q { var r: 0..9; r = x; }",
        "thread p { var r = 0; r = x; } thread q { var r = *; r = x; }",
        "thread p { var r = * in 0..2; r = x; } thread q { var r = * in 0..3; r = x; }",
        "thread p { x = 1; fence; x = 2; } thread q { x = 1; sfence; x = 2; }",
        "thread p { var r; atomic { r = x; } } thread q { var r; snapshot { r = x; } }",
        "thread p { var r; r = *; } thread q { var r; r = * in 0..9; }",
    ] {
        let found = symmetric(&format!("shared x, a[2];\n{thread}\nforbid f: x == 9;"));
        assert!(found.is_err_and(|why| why.contains("threads 0 and 1 differ")), "{thread}");
    }
}

#[test]
fn classes_have_existing_threads_once() {
    let program = program(&format!("{THREADS}forbid f: x == 9;"));
    let classes = |classes: &[Vec<u32>]| Symmetry::new(&program, &program.properties, classes);
    assert!(classes(&[vec![0, 2]]).is_ok() && classes(&[]).is_ok() && classes(&[vec![], vec![1]]).is_ok());
    for wrong in [&[vec![0, 3]][..], &[vec![0, 0]], &[vec![0, 1], vec![1, 2]], &[vec![u32::MAX]]] {
        assert!(classes(wrong).is_err(), "{wrong:?}");
    }
}

/// The image of a step under the exchange, in a comparable form.
fn exchanged(machine: &BufferMachine<'_>, order: &Permutation, step: &Step) -> String {
    // An exchange of two threads is its own inverse.
    let name = |cell: CellId| order.before(&machine.cells, cell);
    let renamed = |e: &Expr<CellId>| e.map(&mut |cell| Expr::Leaf(name(*cell)));
    let commands: Vec<Command> = step
        .commands
        .iter()
        .map(|command| match command {
            Command::Assume(e) => Command::Assume(renamed(e)),
            Command::Assign(cell, e) => Command::Assign(name(*cell), renamed(e)),
            Command::Havoc(cell) => Command::Havoc(name(*cell)),
            Command::Fold(cell, e) => Command::Fold(name(*cell), renamed(e)),
            Command::Expand(copy, summary) => Command::Expand(name(*copy), name(*summary)),
        })
        .collect();
    let outcome = match &step.outcome {
        Outcome::Control(next) => Outcome::Control(order.control(next)),
        beyond => beyond.clone(),
    };
    let thread = order.at(step.name.thread.index());
    format!("{thread} {:?} {commands:?} {outcome:?}", (step.name.edge, step.name.flushed, step.name.case))
}

fn steps(machine: &BufferMachine<'_>, order: &Permutation, control: &Control) -> BTreeSet<String> {
    machine.steps(control).iter().map(|step| exchanged(machine, order, step)).collect()
}

/// The assumption of proofs up to symmetry: the steps of a state with two like threads exchanged are the images of the steps of that state, and the
/// initial states and violations are unchanged.
#[test]
fn machines_treat_symmetric_threads_alike() {
    let (mut programs, mut compared) = (0, 0);
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let shape = Shape { corners: seed % 2 == 0, ..Shape::default() };
        let program = random_program(&mut random, shape);
        let threads = program.threads.len();
        if !program.threads[1..].iter().all(|t| t.is_like(&program.threads[0])) {
            continue;
        }
        programs += 1;
        let model = *random.pick(&[MemoryModel::Tso, MemoryModel::Pso]);
        let kept = *random.pick(&[Kept::Oldest, Kept::Newest]);
        let summaries = Summarised::all(random.below(3));
        for buffers in [
            Buffers::Sc,
            Buffers::Queue { model, bound: Bound::Thread(2) },
            Buffers::Partial { model, k: 1, kept, summaries },
        ] {
            let machine = BufferMachine::new(&program, buffers);
            let (same, order) = (Permutation::identity(threads), Permutation::exchange(threads, 0, 1));
            assert_eq!(order.control(&machine.initial()), machine.initial(), "seed {seed}");
            let mut controls = vec![machine.initial()];
            let mut seen: BTreeSet<Control> = controls.iter().cloned().collect();
            while let Some(control) = controls.pop().filter(|_| seen.len() < 60) {
                let image = order.control(&control);
                assert_eq!(steps(&machine, &order, &control), steps(&machine, &same, &image), "seed {seed}");
                compared += 1;
                for step in machine.steps(&control) {
                    if let Outcome::Control(next) = step.outcome
                        && seen.insert(next.clone())
                    {
                        controls.push(next);
                    }
                }
            }
        }
    }
    assert!(programs > 40 && compared > 2_000, "{programs} programs, {compared} control states");
}
