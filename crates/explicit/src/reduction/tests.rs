//! The examples of THESIS16. The figures themselves were not available. Each program was reconstructed from its description in the text, such that it
//! has the numbers of states that the text states.

use std::collections::{HashSet, VecDeque};

use fencewright_program::{
    Action, Address, BinaryOp, Edge, Expr, Init, Location, LocationId, MemoryModel, Observable, Op, Program,
    Property, PropertyKind, Register, RegisterId, Span, Thread, ThreadId, Variable, VariableId,
};
use fencewright_verdict::{Limits, Progress, Task};

use super::{Reducer, Reduction};
use crate::Options;
use crate::code::Code;
use crate::expand::{Expander, Sink, Step};
use crate::layout::Layout;
use crate::search::search;

const R: RegisterId = RegisterId(0);

fn cell(variable: u32) -> Address {
    Address { variable: VariableId(variable), index: None }
}

fn load(variable: u32) -> Op {
    Op::Load(R, cell(variable))
}

fn store(variable: u32, value: Expr<RegisterId>) -> Op {
    Op::Store(cell(variable), value)
}

fn compare(op: BinaryOp, value: i64) -> Op {
    Op::Assume(Expr::binary(op, Expr::Leaf(R), Expr::Const(value)))
}

fn increment() -> Expr<RegisterId> {
    Expr::binary(BinaryOp::Add, Expr::Leaf(R), Expr::Const(1))
}

fn atomic(ops: impl Into<Vec<Op>>) -> Action {
    Action::Atomic { ops: ops.into(), drains: true }
}

/// A program with the given number of variables, all initially 0, whose threads have one register and these edges.
fn program(variables: usize, threads: Vec<Vec<(u32, u32, Action)>>, bad: Expr<Observable>) -> Program {
    let variable = |n: usize| Variable {
        name: format!("x{n}"),
        base: n as u32,
        indices: None,
        open: false,
        range: None,
        init: vec![Init::Value(0)],
        span: Span::default(),
    };
    let thread = |(n, edges): (usize, Vec<(u32, u32, Action)>)| {
        let places = edges.iter().map(|(from, to, _)| from.max(to) + 1).max().unwrap_or(1);
        let first = |l: u32| edges.partition_point(|(from, ..)| *from < l) as u32;
        let location = |l| Location { first_edge: first(l), last_edge: first(l + 1), ..Location::default() };
        let edge = |(from, to, action): &(u32, u32, Action)| Edge {
            from: LocationId(*from),
            to: LocationId(*to),
            action: action.clone(),
            span: Span::default(),
        };
        Thread {
            name: format!("t{n}"),
            registers: vec![Register { name: "r".into(), init: Init::Value(0), range: None }],
            locations: (0..=places).map(location).collect(),
            entry: LocationId(0),
            edges: edges.iter().map(edge).collect(),
            fault: LocationId(places),
            family: None,
        }
    };
    Program {
        variables: (0..variables).map(variable).collect(),
        threads: threads.into_iter().enumerate().map(thread).collect(),
        properties: vec![Property {
            name: "goal".into(),
            kind: PropertyKind::Never(bad),
            span: Span::default(),
        }],
        ..Program::default()
    }
}

/// Statistics of exploring a program. With sleep sets only `states` and `taken` are meaningful, because the steps taken from a state depend on how it
/// was reached.
#[derive(Debug)]
struct Explored {
    /// The number of states if the goal does not stop the search.
    states: usize,
    /// The number of steps taken from these states.
    taken: u64,
    /// The number of transitions until the goal is found: breadth first and depth first.
    transitions: [usize; 2],
    /// The program counters of the successors of the initial state.
    first: Vec<Vec<u64>>,
}

struct Successors(Vec<Vec<u64>>);

impl Sink for Successors {
    fn take(&mut self, _: Step<'_>, state: &[u64]) {
        self.0.push(state.to_vec());
    }
}

fn explored(program: &Program, model: MemoryModel, reduction: Reduction) -> Explored {
    let (limits, progress) = (Limits::default(), Progress::default());
    let task = Task::new(program, model, program.properties.clone());
    // Threads may be symmetric, but all states are to be counted.
    let options = Options { reduction, workers: 1, symmetry: false, ..Options::default() };
    let code = Code::new(&task, &options, None, &limits).expect("a small program");
    // A property that is already known does not stop the search.
    let found = search(&task, &code, &options, &[], &[true], &limits, &progress, &mut |_| {});
    let found = found.expect("a small program");
    let layout = Layout::new(&code, &found.sizes);
    let (mut expander, mut reducer) = (Expander::new(&code, &[], None), Reducer::new(&code, reduction));
    let mut successors = |state: &[u64]| {
        let mut successors = Successors(Vec::new());
        let expanded = match &mut reducer {
            None => expander.expand(&layout, state, &mut successors),
            Some(reducer) => reducer.expand(&mut expander, &layout, state, &mut successors),
        };
        expanded.expect("everything fits");
        successors.0
    };
    let is_goal = |state: &[u64]| {
        let formula = code.formulas[0].as_ref().expect("a formula");
        formula.eval(&layout.slots, state, &mut Vec::new()) == Ok(1)
    };
    let initial = found.stores[0].state(0).to_vec();
    let pcs =
        |state: &Vec<u64>| (0..code.threads.len()).map(|t| layout.slots[code.pc(t)].raw(state)).collect();
    let first = successors(&initial).iter().map(pcs).collect();
    let mut count = |depth_first: bool| {
        let mut transitions = 0;
        let mut seen = HashSet::from([initial.clone()]);
        // The states to visit, each with its unvisited successors.
        let mut work = VecDeque::from([VecDeque::from(successors(&initial))]);
        while let Some(here) = if depth_first { work.back_mut() } else { work.front_mut() } {
            let Some(next) = here.pop_front() else {
                _ = if depth_first { work.pop_back() } else { work.pop_front() };
                continue;
            };
            transitions += 1;
            if is_goal(&next) {
                return transitions;
            }
            if seen.insert(next.clone()) {
                work.push_back(VecDeque::from(successors(&next)));
            }
        }
        transitions
    };
    let transitions = [count(false), count(true)];
    Explored { states: found.stores[0].len(), taken: found.transitions, transitions, first }
}

/// Figs. 2.14 to 2.16: the turn-based mutex. The locations are those of Fig. 2.16, and a test of `turn` is one step, as in the figure.
#[test]
fn ample_sets_save_5_of_the_12_states_of_the_turn_mutex() {
    let process = |me: i64| {
        let test = |op| atomic([load(0), compare(op, me)]);
        vec![
            (0, 1, Action::Op(Op::Skip)),
            (1, 1, test(BinaryOp::Ne)),
            (1, 2, test(BinaryOp::Eq)),
            (2, 0, Action::Op(store(0, Expr::Const(1 - me)))),
        ]
    };
    let critical = |t: u32| Expr::Leaf(Observable::At(ThreadId(t), vec![LocationId(2)]));
    let turn = program(1, vec![process(0), process(1)], Expr::all(vec![critical(0), critical(1)]));
    let states = |reduction| explored(&turn, MemoryModel::Sc, reduction).states;
    assert_eq!(states(Reduction::None), 12);
    assert_eq!(states(Reduction::Ample), 12 - 5);
    assert!(states(Reduction::Persistent) <= 7 && states(Reduction::Cartesian) <= 12);
    let taken = |reduction| explored(&turn, MemoryModel::Sc, reduction).taken;
    assert_eq!(states(Reduction::Sleep), 7);
    assert_eq!([Reduction::None, Reduction::Ample, Reduction::Sleep].map(taken), [24, 11, 11]);
}

/// Threads that record their last states in memory, as in s. 4.2.1: `goal` counts them, and `success` is set when all threads are there.
fn marking(goal: u32, success: u32, threads: Vec<Vec<Op>>) -> Program {
    let all = threads.len() as i64;
    let marked = |ops: Vec<Op>| {
        let last = ops.len() as u32;
        let steps = (0..).zip(ops).map(|(n, op)| (n, n + 1, Action::Op(op)));
        let own = (last, last + 1, atomic([load(goal), store(goal, increment())]));
        let ops = [load(goal), compare(BinaryOp::Eq, all), store(success, Expr::Const(1))];
        steps.chain([own, (last + 1, last + 1, atomic(ops))]).collect()
    };
    let bad = Expr::binary(BinaryOp::Eq, Expr::Leaf(Observable::Memory(success)), Expr::Const(1));
    program(success as usize + 1, threads.into_iter().map(marked).collect(), bad)
}

/// Figs. 4.2 to 4.4: each thread assigns, checks, and then counts itself in `goal`.
#[test]
fn local_events_first_takes_7_steps_depth_first_and_13_breadth_first() {
    let ops = || vec![Op::Assign(R, Expr::Const(1)), compare(BinaryOp::Eq, 1)];
    let assigning = marking(0, 1, vec![ops(), ops()]);
    for model in [MemoryModel::Sc, MemoryModel::Tso] {
        let all = explored(&assigning, model, Reduction::None);
        let local = explored(&assigning, model, Reduction::Local);
        assert_eq!(local.transitions, [13, 7], "{model:?}");
        // Local events first leaves out 4 of the 17 states.
        assert_eq!((all.states, local.states), (17, 13), "{model:?}");
        // The first cartesian vectors have three events: assign, check, atomic.
        let cartesian = explored(&assigning, model, Reduction::Cartesian);
        assert_eq!(cartesian.first, [[3, 0], [0, 3]], "{model:?}");
        assert_eq!(cartesian.states, 5, "{model:?}");
        for reduction in [Reduction::Ample, Reduction::Persistent, Reduction::Sleep] {
            assert!(explored(&assigning, model, reduction).states < 13, "{model:?}, {reduction:?}");
        }
    }
}

/// Figs. 4.5 and 4.6: each thread increments its own variable twice, loads that of the other, and checks the value. There are 15 events in all.
#[test]
fn cartesian_vectors_are_those_of_the_text() {
    let ops = |own, other| {
        let add = [load(own), store(own, increment())];
        [add.to_vec(), add.to_vec(), vec![load(other), compare(BinaryOp::Eq, 2)]].concat()
    };
    let incrementing = marking(2, 3, vec![ops(0, 1), ops(1, 0)]);
    let cartesian = explored(&incrementing, MemoryModel::Sc, Reduction::Cartesian);
    // The first of the two vectors of the figure: thread 1 performs load1; store1, and thread 2 performs load2; store2; load2'; store2'; load2''.
    assert_eq!(cartesian.first, [[2, 0], [0, 5]]);
    let all = explored(&incrementing, MemoryModel::Sc, Reduction::None);
    let [persistent, sleep] =
        [Reduction::Persistent, Reduction::Sleep].map(|r| explored(&incrementing, MemoryModel::Sc, r));
    assert_eq!([all.taken, persistent.taken, sleep.taken], [100, 56, 50]);
    assert!(sleep.states < persistent.states, "{sleep:?} instead of {persistent:?}");
    assert!(cartesian.states * 3 < all.states, "{} of {} states", cartesian.states, all.states);
}

fn straight(ops: Vec<Op>) -> Vec<(u32, u32, Action)> {
    (0..).zip(ops).map(|(n, op)| (n, n + 1, Action::Op(op))).collect()
}

/// Two independent loads, each before a store that conflicts with the other thread's load: both loads are in every persistent set, so that only sleep
/// sets avoid taking them in both orders.
#[test]
fn steps_that_commute_are_not_taken_in_both_orders() {
    let ops = |from, to| straight(vec![load(from), store(to, Expr::Const(1))]);
    let crossed = program(2, vec![ops(0, 1), ops(1, 0)], Expr::Const(0));
    for model in MemoryModel::ALL {
        let seen = [Reduction::None, Reduction::Persistent, Reduction::Sleep].map(|reduction| {
            let explored = explored(&crossed, model, reduction);
            (explored.states, explored.taken)
        });
        match model {
            MemoryModel::Sc => assert_eq!(seen, [(9, 12), (9, 11), (9, 10)]),
            MemoryModel::Tso | MemoryModel::Pso => assert_eq!(seen, [(16, 24), (15, 17), (13, 14)]),
        }
    }
}

/// A program for which the first algorithm of s. 4.1, as printed, computes a set that is not persistent: only t1, because the next step of t2 is a
/// skip. Every reduction must find both values that t1 may load.
#[test]
fn future_steps_of_other_threads_count_not_only_next_ones() {
    let late = vec![Op::Skip, store(0, Expr::Const(1))];
    let program = program(1, vec![straight(vec![load(0)]), straight(late)], Expr::Const(0));
    for (model, reduction) in MemoryModel::ALL.into_iter().flat_map(|m| Reduction::ALL.map(|r| (m, r))) {
        let mut task = Task::new(&program, model, Vec::new());
        task.observed = vec![Observable::Register(ThreadId(0), R)];
        let options = Options { reduction, workers: 1, ..Options::default() };
        let limits = Limits::default();
        let code = Code::new(&task, &options, None, &limits).expect("a small program");
        let found = search(&task, &code, &options, &[], &[], &limits, &Progress::default(), &mut |_| {});
        let finals: Vec<Vec<i64>> = found.expect("a small program").finals.into_iter().collect();
        assert_eq!(finals, [[0], [1]], "{model:?}, {reduction:?}");
    }
}
