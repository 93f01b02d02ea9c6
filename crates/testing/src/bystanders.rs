//! Changes random programs so that some threads cannot affect some properties: readers, some of which are identical, and threads that share no
//! variable with other threads.

use fencewright_program::{
    Action, BinaryOp, Expr, Formula, Init, LocationId, Observable, Op, Program, Property, PropertyKind,
    Quantifier, RegisterId, Span, Thread, ThreadId, Variable, VariableId,
};

use crate::Random;
use crate::properties::{at, mixed};

/// Turns some threads of a random program into bystanders (readers, or threads that share no variable), sometimes duplicates a reader, and adds
/// properties that name threads.
pub fn detach(random: &mut Random, program: &mut Program) {
    for t in 0..program.threads.len() {
        match random.below(4) {
            0 | 1 => only_read(random, &mut program.threads[t]),
            2 => keep_to_itself(program, t),
            _ => {}
        }
    }
    if program.threads.len() < 3 && random.one_in(2) {
        let mut twin = program.threads[random.below(program.threads.len())].clone();
        only_read(random, &mut twin);
        twin.name = format!("t{}", program.threads.len());
        program.threads.push(twin.clone());
        if random.one_in(2) {
            twin.name = format!("t{}", program.threads.len());
            program.threads.push(twin);
        }
    }
    program.properties = properties(random, program);
}

/// The operations of an action, mutably.
fn ops_mut(action: &mut Action) -> &mut [Op] {
    match action {
        Action::Op(op) => std::slice::from_mut(op),
        Action::Atomic { ops, .. } => ops,
        Action::Fence | Action::StoreFence | Action::Lock | Action::Unlock => &mut [],
    }
}

/// Replaces the stores of a thread by loads.
fn only_read(random: &mut Random, thread: &mut Thread) {
    let registers = thread.registers.len();
    for op in thread.edges.iter_mut().flat_map(|edge| ops_mut(&mut edge.action)) {
        if let Op::Store(address, _) = op {
            *op = Op::Load(RegisterId(random.below(registers) as u32), address.clone());
        }
    }
}

/// Adds a variable named after thread `t`, initially 0, and returns its id.
pub(crate) fn own_variable(program: &mut Program, t: usize) -> VariableId {
    let own = VariableId(program.variables.len() as u32);
    program.variables.push(Variable {
        name: format!("own{t}"),
        base: program.cells() as u32,
        indices: None,
        open: false,
        range: None,
        init: vec![Init::Value(0)],
        span: Span::default(),
    });
    own
}

/// Makes all accesses of a thread go to a new variable that no other thread accesses.
fn keep_to_itself(program: &mut Program, t: usize) {
    let own = own_variable(program, t);
    for op in program.threads[t].edges.iter_mut().flat_map(|edge| ops_mut(&mut edge.action)) {
        if let Op::Load(_, address) | Op::Store(address, _) = op {
            address.variable = own;
            address.index = None;
        }
    }
}

/// A formula about one thread: a register has a certain value, perhaps while the thread is at a certain location.
fn about(random: &mut Random, program: &Program, id: ThreadId) -> Formula {
    let register = RegisterId(random.below(program.thread(id).registers.len()) as u32);
    let leaf = Expr::Leaf(Observable::Register(id, register));
    let value = Expr::binary(BinaryOp::Eq, leaf, Expr::Const(random.between(0, 2)));
    if random.one_in(2) { Expr::all(vec![at(random, program, id), value]) } else { value }
}

fn properties(random: &mut Random, program: &Program) -> Vec<Property> {
    let named = |name: &str, kind| Property { name: name.into(), kind, span: Span::default() };
    let quantifier = *random.pick(&[Quantifier::Exists, Quantifier::Never, Quantifier::Forall]);
    let id = ThreadId(random.below(program.threads.len()) as u32);
    let each: Vec<Formula> = program.threads().map(|(id, _)| about(random, program, id)).collect();
    // The condition is the same for every thread, so that exchanging identical threads does not change the property.
    let place = LocationId(random.below(2) as u32);
    let same = |(id, _)| {
        let value =
            Expr::binary(BinaryOp::Gt, Expr::Leaf(Observable::Register(id, RegisterId(0))), Expr::Const(0));
        Expr::all(vec![Expr::Leaf(Observable::At(id, vec![place])), value])
    };
    let none = each.iter().map(|part| part.clone().not()).collect();
    let cell = random.below(program.cells()) as u32;
    let memory =
        Expr::binary(BinaryOp::Gt, Expr::Leaf(Observable::Memory(cell)), Expr::Const(random.between(0, 2)));
    vec![
        named("one", PropertyKind::Never(about(random, program, id))),
        named("each", PropertyKind::Never(Expr::any(each.clone()))),
        named("none", PropertyKind::Never(Expr::all(none).not())),
        named("alike", PropertyKind::Never(Expr::any(program.threads().map(same).collect()))),
        named("memory", PropertyKind::Never(memory)),
        named("mixed", PropertyKind::Never(mixed(random, program, 2))),
        Property::assertions(),
        Property::deadlock(),
        named("final", PropertyKind::Finally(quantifier, mixed(random, program, 1))),
    ]
}
