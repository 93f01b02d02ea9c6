//! The fingerprint of a program changes with everything that determines its meaning, and with nothing else.

use std::collections::BTreeMap;
use std::path::Path;

use fencewright_fingerprint::fingerprint;
use fencewright_lang::fw::format;
use fencewright_lang::load;
use fencewright_program::{
    Action, Address, BinaryOp, Expr, Fault, Formula, Init, LocationId, Numbers, Observable, Op, Price,
    Program, PropertyKind, Quantifier, Range, RegisterId, Span, ThreadId, UnaryOp, VariableId, Width,
};

/// A program with every kind of action, operation, expression, initial value and property.
const RICH: &str = "\
shared x = 1, y: 0..4 = *, a[3] = 5;
thread p {
    var r = 7, s: 0..10 = *, t = *;
    r = x;
    a[r] = -s + 2;
    choose { assume !(r == 1); } or { assert s < 3; }
    t = *;
    t = * in 1..4;
    fence;
    sfence;
    lock;
    unlock;
    atomic { r = y; x = r * 2; }
here:
    skip;
}
thread q { var u; u = a[1]; a[u + 1] = 2; snapshot { u = x; } }
forbid first: p@here && q.u == 3 || x == 1;
finally second: never x == 2;
finally third: exists y == 2;
finally fourth: forall a[1] == 2;
";

fn program(text: &str) -> Program {
    match load("rich.fw", text.as_bytes(), None, &[]) {
        Ok(loaded) => loaded.program,
        Err(error) => panic!("{:?}", error.diagnostics),
    }
}

type Change = Box<dyn Fn(&mut Program)>;

/// The first action of the program that `wanted` accepts.
fn action(program: &mut Program, wanted: impl Fn(&Action) -> bool) -> &mut Action {
    let edges = program.threads.iter_mut().flat_map(|t| &mut t.edges);
    edges.map(|e| &mut e.action).find(|a| wanted(a)).expect("there is such an action")
}

/// The first operation of the program that `wanted` accepts.
fn operation(program: &mut Program, wanted: impl Fn(&Op) -> bool + Copy) -> &mut Op {
    let is_wanted = |a: &Action| a.ops().iter().any(wanted);
    match action(program, is_wanted) {
        Action::Op(op) => op,
        Action::Atomic { ops, .. } => ops.iter_mut().find(|op| wanted(op)).expect("it is in there"),
        _ => unreachable!("no operation"),
    }
}

fn formula(program: &mut Program, property: usize) -> &mut Formula {
    match &mut program.properties[property].kind {
        PropertyKind::Never(formula) | PropertyKind::Finally(_, formula) => formula,
        _ => unreachable!("no formula"),
    }
}

/// Replaces the first subexpression, in preorder, for which `change` returns true.
fn replace<L>(e: &mut Expr<L>, change: &dyn Fn(&mut Expr<L>) -> bool) -> bool {
    change(e)
        || match e {
            Expr::Const(_) | Expr::Leaf(_) => false,
            Expr::Unary(_, operand) => replace(operand, change),
            Expr::Binary(_, left, right) => replace(left, change) || replace(right, change),
            Expr::If(..) => false,
        }
}

/// Changes the first leaf of a formula for which `change` returns true.
fn leaf(program: &mut Program, change: &dyn Fn(&mut Observable) -> bool) {
    let formula = formula(program, 0);
    let found = replace(formula, &|e| match e {
        Expr::Leaf(observable) => change(observable),
        _ => false,
    });
    assert!(found, "there is such a leaf");
}

macro_rules! changes {
    ($(|$p:ident| $change:expr),* $(,)?) => {
        vec![$((stringify!($change), Box::new(|$p: &mut Program| { $change; }) as Change)),*]
    };
}

/// One change for each field that is part of the meaning.
#[rustfmt::skip]
fn meaningful() -> Vec<(&'static str, Change)> {
    changes![
        |p| p.numbers = Numbers::Nat,
        |p| p.numbers = Numbers::Real,
        |p| p.variables.pop(),
        |p| p.threads.pop(),
        |p| p.properties.pop(),
        |p| p.threads.swap(0, 1),
        |p| p.variables.swap(0, 1),
        |p| p.properties.swap(0, 1),
        |p| p.variables[2].base += 1,
        |p| p.variables[2].indices = None,
        |p| p.variables[2].indices = Some(Range { low: 1, high: 2 }),
        |p| p.variables[2].indices = Some(Range { low: 0, high: 3 }),
        |p| p.variables[2].open = true,
        |p| p.variables[1].range = None,
        |p| p.variables[1].range = Some(Range { low: 0, high: 2 }),
        |p| p.variables[0].init = vec![Init::Value(2)],
        |p| p.variables[0].init = vec![Init::Any(None)],
        |p| p.variables[0].init = vec![Init::Any(Some(Range { low: 1, high: 1 }))],
        |p| p.variables[0].init = vec![Init::Any(Some(Range { low: 1, high: 2 }))],
        |p| p.variables[2].init.push(Init::Value(5)),
        |p| p.threads[0].registers.pop(),
        |p| p.threads[0].registers[0].init = Init::Value(8),
        |p| p.threads[0].registers[0].init = Init::Any(None),
        |p| p.threads[0].registers[0].range = Some(Range { low: 1, high: 2 }),
        |p| p.threads[0].locations.push(Default::default()),
        |p| p.threads[0].locations[0].first_edge += 1,
        |p| p.threads[0].locations[0].last_edge += 1,
        |p| p.threads[0].entry = LocationId(1),
        |p| p.threads[0].fault = LocationId(1),
        |p| p.threads[0].edges.pop(),
        |p| p.threads[0].edges[0].from = LocationId(2),
        |p| p.threads[0].edges[0].to = LocationId(2),
        |p| p.threads[0].edges[0].action = Action::Fence,
        |p| p.threads[0].edges[0].action = Action::StoreFence,
        |p| p.threads[0].edges[0].action = Action::Lock,
        |p| p.threads[0].edges[0].action = Action::Unlock,
        |p| p.threads[0].edges[0].action = Action::Op(Op::Skip),
        |p| p.threads[0].edges[0].action = Action::Atomic { ops: vec![], drains: false },
        |p| p.threads[0].edges[0].action = Action::Atomic { ops: vec![], drains: true },
        |p| p.threads[0].edges[0].action = Action::Atomic { ops: vec![Op::Skip], drains: true },
        |p| p.threads[0].edges[0].action = Action::Op(Op::Assign(RegisterId(0), Expr::Const(0))),
        |p| p.threads[0].edges[0].action = Action::Op(Op::Assign(RegisterId(1), Expr::Const(0))),
        |p| p.threads[0].edges[0].action = Action::Op(Op::Assign(RegisterId(1), Expr::Const(1))),
        |p| p.threads[0].edges[0].action = Action::Op(Op::Havoc(RegisterId(0), None)),
        |p| p.threads[0].edges[0].action = Action::Op(Op::Havoc(RegisterId(1), None)),
        |p| p.threads[0].edges[0].action = Action::Op(Op::Havoc(RegisterId(1), Some(Range { low: 0, high: 0 }))),
        |p| p.threads[0].edges[0].action = Action::Op(Op::Assume(Expr::Const(0))),
        |p| p.threads[0].edges[0].action = Action::Op(Op::Assert(Expr::Const(0), Fault::Assertion(None))),
        |p| *operation(p, |op| matches!(op, Op::Load(..))) = Op::Load(RegisterId(1), Address { variable: VariableId(0), index: None }),
        |p| *operation(p, |op| matches!(op, Op::Load(..))) = Op::Load(RegisterId(0), Address { variable: VariableId(1), index: None }),
        |p| *operation(p, |op| matches!(op, Op::Load(..))) = Op::Load(RegisterId(0), Address { variable: VariableId(0), index: Some(Expr::Const(0)) }),
        |p| *operation(p, |op| matches!(op, Op::Store(..))) = Op::Store(Address { variable: VariableId(0), index: None }, Expr::Const(0)),
        |p| *operation(p, |op| matches!(op, Op::Store(..))) = Op::Store(Address { variable: VariableId(0), index: None }, Expr::Const(1)),
        |p| *operation(p, |op| matches!(op, Op::Store(..))) = Op::Store(Address { variable: VariableId(1), index: None }, Expr::Const(1)),
        |p| p.properties[0].name.push('!'),
        |p| p.properties[0].kind = PropertyKind::Assertions,
        |p| p.properties[0].kind = PropertyKind::NoDeadlock,
        |p| p.properties[0].kind = PropertyKind::Finally(Quantifier::Never, formula(p, 0).clone()),
        |p| p.properties[0].kind = PropertyKind::Finally(Quantifier::Forall, formula(p, 0).clone()),
        |p| p.properties[0].kind = PropertyKind::Finally(Quantifier::Exists, formula(p, 0).clone()),
        |p| *formula(p, 0) = Expr::Const(0),
        |p| *formula(p, 0) = Expr::Const(1),
        |p| *formula(p, 0) = Expr::Const(-1),
        |p| *formula(p, 0) = Expr::unary(UnaryOp::Neg, Expr::Const(1)),
        |p| *formula(p, 0) = Expr::unary(UnaryOp::Not, Expr::Const(1)),
        |p| *formula(p, 0) = Expr::binary(BinaryOp::Sub, Expr::Const(1), Expr::Const(1)),
        |p| *formula(p, 0) = Expr::binary(BinaryOp::Sub, Expr::Const(1), Expr::Const(2)),
        |p| *formula(p, 0) = Expr::binary(BinaryOp::Sub, Expr::Const(2), Expr::Const(1)),
        |p| leaf(p, &|o| match o { Observable::At(t, _) => { *t = ThreadId(1); true } _ => false }),
        |p| leaf(p, &|o| match o { Observable::At(_, l) => { l.push(LocationId(0)); true } _ => false }),
        |p| leaf(p, &|o| match o { Observable::At(_, l) => { l.clear(); true } _ => false }),
        |p| leaf(p, &|o| match o { Observable::Register(t, _) => { *t = ThreadId(0); true } _ => false }),
        |p| leaf(p, &|o| match o { Observable::Register(_, r) => { r.0 += 1; true } _ => false }),
        |p| leaf(p, &|o| match o { Observable::Memory(c) => { *c += 1; true } _ => false }),
        |p| leaf(p, &|o| match o { Observable::Memory(_) => { *o = Observable::At(ThreadId(0), vec![]); true } _ => false }),
    ]
}

/// One change for each field that is not part of the meaning.
fn meaningless() -> Vec<(&'static str, Change)> {
    changes![
        |p| p.variables[0].name = "other".into(),
        |p| p.variables[0].span = Span::new(1, 2),
        |p| p.threads[0].name = "other".into(),
        |p| p.threads[0].registers[0].name = "other".into(),
        |p| p.threads[0].family = Some(("other".into(), 3)),
        |p| p.threads[0].locations[0].labels.push("other".into()),
        |p| p.threads[0].locations[0].span = Some(Span::new(1, 2)),
        |p| p.threads[0].edges[0].span = Span::new(1, 2),
        |p| p.properties[0].span = Span::new(1, 2),
        |p| p.hints.predicates.push(Expr::Const(1)),
        |p| p.hints.spared.push((ThreadId(0), LocationId(0))),
        |p| p.hints.costs.push((Price::Fence, 3)),
    ]
}

#[test]
fn every_meaningful_field_changes_it() {
    let original = program(RICH);
    let mut seen = BTreeMap::from([(fingerprint(&original), "nothing")]);
    for (what, change) in meaningful() {
        let mut changed = original.clone();
        change(&mut changed);
        if let Some(other) = seen.insert(fingerprint(&changed), what) {
            panic!("`{what}` has the fingerprint of `{other}`");
        }
    }
}

#[test]
fn meaningless_fields_do_not_change_it() {
    let original = program(RICH);
    for (what, change) in meaningless() {
        let mut changed = original.clone();
        change(&mut changed);
        assert_eq!(fingerprint(&changed), fingerprint(&original), "{what}");
    }
}

/// Different operators have different fingerprints.
#[test]
fn operators_are_not_confused() {
    use BinaryOp::*;
    let with = |formula: Formula| {
        let mut program = program(RICH);
        program.properties[0].kind = PropertyKind::Never(formula);
        fingerprint(&program)
    };
    let all =
        [Add, Sub, Mul, Div, Rem, BitAnd, BitOr, BitXor, Eq, Ne, Lt, Le, Gt, Ge, And, Or, Shl, Shr, Min, Max];
    let mut seen: Vec<String> = all.map(|op| with(Expr::binary(op, Expr::Const(1), Expr::Const(2)))).into();
    let wraps = Width::ALL.into_iter().flat_map(|width| [UnaryOp::Unsigned(width), UnaryOp::Signed(width)]);
    let unary: Vec<UnaryOp> =
        [UnaryOp::Neg, UnaryOp::Not, UnaryOp::BitNot].into_iter().chain(wraps).collect();
    seen.extend(unary.iter().map(|op| with(Expr::unary(*op, Expr::Const(1)))));
    for (then, otherwise) in [(1, 2), (2, 1)] {
        seen.push(with(Expr::choice(Expr::Const(0), Expr::Const(then), Expr::Const(otherwise))));
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), all.len() + unary.len() + 2);
}

/// Formatting, comments and blank lines are not part of a program.
#[test]
fn examples_keep_it_when_they_are_formatted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut programs = 0;
    for entry in std::fs::read_dir(folder).expect("the examples are there") {
        let path = entry.expect("readable").path();
        if path.extension().is_none_or(|e| e != "fw") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("readable");
        let formatted = format(&text).expect("it parses");
        let spaced = text.replace('\n', "  // a remark\n\n");
        let expected = fingerprint(&program(&text));
        assert_eq!(fingerprint(&program(&formatted)), expected, "{path:?}");
        assert_eq!(fingerprint(&program(&spaced)), expected, "{path:?}");
        programs += 1;
    }
    assert!(programs > 30, "only {programs} examples");
}

/// If this fails, existing certificates no longer match their programs. If .fw is now lowered to a different program, that is correct, and the value
/// below has to change; otherwise the canonical form has changed, and its version has to change too.
#[test]
fn the_fingerprint_of_an_example_is_stable() {
    assert_eq!(
        fingerprint(&program(RICH)),
        "dd522c8ef9b5aa51d2ad2a17f5c7cef51dcfd746b8761b18c881f900669ac9a0"
    );
}
