//! Syntactic facts about a program: which functions create or join threads, whose address is taken, which labels are targets of jumps, which
//! variables keep their initial values, and which features are used.

use fencewright_c::typed::tree::{
    AssemblyInput, Block, Callee, Expr, ExprKind, FunctionId, GlobalId, Initial, LabelId, Place, PlaceKind,
    Statement, StatementKind, Type, Unit,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::raw;

/// Syntactic facts about the whole program.
#[derive(Debug, Default)]
pub(super) struct Graph {
    creates: Vec<bool>,
    waits: Vec<bool>,
    /// Functions whose address is taken.
    kept: Vec<FunctionId>,
    targets: FxHashSet<(FunctionId, LabelId)>,
    /// Targets of backward jumps, each with the number of the last statement that jumps to it.
    backward: FxHashMap<(FunctionId, LabelId), usize>,
    /// For functions with backward jumps, the statements numbered in source order.
    order: FxHashMap<*const Statement, usize>,
    /// Whether the program sets the type of a mutex to recursive or error-checking.
    pub(super) typed_mutexes: bool,
    /// Whether the program uses thread attributes to create detached threads.
    pub(super) detached_by_attributes: bool,
    /// Whether the program cancels threads.
    pub(super) cancels: bool,
    /// Variables with static storage that are written or whose address is taken.
    changed: FxHashSet<GlobalId>,
    /// For each byte array that serves as memory for a structure, the type with which it is laid out.
    raw: FxHashMap<GlobalId, Type>,
}

const CREATE: [&str; 2] = ["pthread_create", "thrd_create"];
const JOIN: [&str; 2] = ["pthread_join", "thrd_join"];

/// Facts about one function body or loop, without the functions that it calls.
#[derive(Debug, Default)]
struct Text {
    creates: bool,
    waits: bool,
    calls: Vec<FunctionId>,
    indirect: bool,
    kept: Vec<FunctionId>,
}

impl Graph {
    pub(super) fn new(unit: &Unit) -> Self {
        let mut graph = Graph { raw: raw::types(unit), ..Graph::default() };
        let mut texts = Vec::new();
        for (n, function) in unit.functions.iter().enumerate() {
            let id = FunctionId(n as u32);
            let mut text = Text::default();
            let mut seen = FxHashSet::default();
            let mut order: Vec<*const Statement> = Vec::new();
            let mut visit = |part: Part<'_>| match part {
                Part::Statement(statement) => {
                    order.push(statement);
                    match &statement.kind {
                        StatementKind::Label(label, _) => {
                            seen.insert(*label);
                            text.creates |= is_asynchronous(unit, id, *label);
                        }
                        StatementKind::Goto(label) => {
                            graph.targets.insert((id, *label));
                            if seen.contains(label) {
                                graph.backward.insert((id, *label), order.len());
                            }
                        }
                        StatementKind::Assembly(assembly) => {
                            let outputs = assembly.outputs.iter().map(|(_, place)| place);
                            let inputs = assembly.inputs.iter().filter_map(|(_, input)| match input {
                                // `asm` that clobbers memory may write to its memory inputs.
                                AssemblyInput::Memory(place) => Some(place),
                                AssemblyInput::Value(_) => None,
                            });
                            graph.changed.extend(outputs.chain(inputs).filter_map(root));
                        }
                        _ => {}
                    }
                }
                Part::Expr(expr) => {
                    text.expression(expr);
                    graph.changed.extend(changed(expr));
                    graph.typed_mutexes |= sets_type(expr);
                    graph.detached_by_attributes |= calls(expr, &["pthread_attr_setdetachstate"]);
                    graph.cancels |= calls(expr, &["pthread_cancel"]);
                }
            };
            walk_block(&function.body, &mut visit);
            if graph.backward.keys().any(|(function, _)| *function == id) {
                graph.order.extend(order.into_iter().zip(1..));
            }
            graph.kept.extend(&text.kept);
            texts.push(text);
        }
        for global in &unit.globals {
            let mut text = Text::default();
            if let Some(initial) = &global.initial {
                walk_initial(initial, &mut |part| {
                    if let Part::Expr(expr) = part {
                        text.expression(expr);
                        graph.changed.extend(changed(expr));
                    }
                });
            }
            graph.kept.extend(&text.kept);
        }
        graph.kept.sort();
        graph.kept.dedup();
        graph.creates = texts.iter().map(|text| text.creates).collect();
        graph.waits = texts.iter().map(|text| text.waits).collect();
        loop {
            let (mut creates, mut waits) = (graph.creates.clone(), graph.waits.clone());
            for (n, text) in texts.iter().enumerate() {
                creates[n] |= graph.any(text, &graph.creates);
                waits[n] |= graph.any(text, &graph.waits);
            }
            if creates == graph.creates && waits == graph.waits {
                return graph;
            }
            (graph.creates, graph.waits) = (creates, waits);
        }
    }

    fn any(&self, text: &Text, of: &[bool]) -> bool {
        let kept = self.kept.iter().filter(|_| text.indirect);
        text.calls.iter().chain(kept).any(|function| of[function.index()])
    }

    fn text(&self, unit: &Unit, function: FunctionId, visit: impl FnOnce(&mut dyn FnMut(Part<'_>))) -> Text {
        let mut text = Text::default();
        visit(&mut |part| match part {
            Part::Statement(Statement { kind: StatementKind::Label(label, _), .. }) => {
                text.creates |= is_asynchronous(unit, function, *label);
            }
            Part::Expr(expr) => text.expression(expr),
            Part::Statement(_) => {}
        });
        text
    }

    /// Whether a loop with these parts creates threads, and whether it joins threads, directly or in called functions.
    pub(super) fn of_loop(
        &self,
        unit: &Unit,
        function: FunctionId,
        body: &Statement,
        others: &[&Expr],
    ) -> (bool, bool) {
        let text = self.text(unit, function, |visit| {
            walk(body, visit);
            others.iter().for_each(|expr| walk_expr(expr, visit));
        });
        (text.creates || self.any(&text, &self.creates), text.waits || self.any(&text, &self.waits))
    }

    /// Whether a statement jumps to a label.
    pub(super) fn is_target(&self, function: FunctionId, label: LabelId) -> bool {
        self.targets.contains(&(function, label))
    }

    /// Whether a function has a label that is the target of a jump.
    pub(super) fn has_jumps(&self, function: FunctionId) -> bool {
        self.targets.iter().any(|(other, _)| *other == function)
    }

    /// The number of the last statement that jumps backwards to a label; `None` if no statement does.
    pub(super) fn repeated_until(&self, function: FunctionId, label: LabelId) -> Option<usize> {
        self.backward.get(&(function, label)).copied()
    }

    /// The number of a statement in source order; `None` if its function has no backward jumps.
    pub(super) fn number(&self, statement: &Statement) -> Option<usize> {
        self.order.get(&std::ptr::from_ref(statement)).copied()
    }

    /// Whether a variable is never written and its address is never taken, so that it keeps its initial value.
    pub(super) fn is_constant(&self, global: GlobalId) -> bool {
        !self.changed.contains(&global)
    }

    /// The type with which a byte array that serves as memory for a structure is laid out; `None` for other variables.
    pub(super) fn raw(&self, global: GlobalId) -> Option<&Type> {
        self.raw.get(&global)
    }

    /// The functions whose address is taken.
    pub(super) fn kept(&self) -> &[FunctionId] {
        &self.kept
    }
}

/// Whether an expression sets a mutex type other than the normal one.
fn sets_type(expr: &Expr) -> bool {
    let ExprKind::Call(Callee::Builtin(name), arguments) = &expr.kind else { return false };
    &**name == "pthread_mutexattr_settype"
        && !matches!(arguments.get(1).map(|kind| &kind.kind), Some(ExprKind::Constant(0)))
}

/// Whether an expression calls a builtin with one of these names.
fn calls(expr: &Expr, names: &[&str]) -> bool {
    matches!(&expr.kind, ExprKind::Call(Callee::Builtin(name), _) if names.contains(&&**name))
}

/// The variable with static storage that an expression writes or whose address it takes.
fn changed(expr: &Expr) -> Option<GlobalId> {
    match &expr.kind {
        ExprKind::Assign(place, _) | ExprKind::Modify { place, .. } | ExprKind::Address(place) => root(place),
        ExprKind::String(global) => Some(*global),
        _ => None,
    }
}

/// The variable with static storage that contains a place.
pub(super) fn root(place: &Place) -> Option<GlobalId> {
    match &place.kind {
        PlaceKind::Global(global) => Some(*global),
        PlaceKind::Field(of, _) | PlaceKind::Element(of, _) => root(of),
        _ => None,
    }
}

fn is_asynchronous(unit: &Unit, function: FunctionId, label: LabelId) -> bool {
    unit.functions[function.index()].labels[label.index()].name.starts_with("__CPROVER_ASYNC_")
}

impl Text {
    fn expression(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Function(function) => self.kept.push(*function),
            ExprKind::Call(Callee::Function(function), _) => self.calls.push(*function),
            ExprKind::Call(Callee::Pointer(_), _) => self.indirect = true,
            ExprKind::Call(Callee::Builtin(name), _) => {
                self.creates |= CREATE.contains(&&**name);
                self.waits |= JOIN.contains(&&**name);
            }
            _ => {}
        }
    }
}

/// A node of the typed tree.
pub(crate) enum Part<'a> {
    /// A statement.
    Statement(&'a Statement),
    /// An expression.
    Expr(&'a Expr),
}

/// Calls `visit` for all statements and expressions of a block, outer ones first.
pub(crate) fn walk_block(block: &Block, visit: &mut dyn FnMut(Part<'_>)) {
    block.statements.iter().for_each(|statement| walk(statement, visit));
}

fn walk(statement: &Statement, visit: &mut dyn FnMut(Part<'_>)) {
    visit(Part::Statement(statement));
    match &statement.kind {
        StatementKind::Empty | StatementKind::Goto(_) | StatementKind::Break | StatementKind::Continue => {}
        StatementKind::Expression(expr) => walk_expr(expr, visit),
        StatementKind::Declare(_, initial) => initial.iter().for_each(|initial| walk_initial(initial, visit)),
        StatementKind::Block(block) => walk_block(block, visit),
        StatementKind::If(branches, otherwise) => {
            for (condition, body) in branches {
                walk_expr(condition, visit);
                walk(body, visit);
            }
            otherwise.iter().for_each(|body| walk(body, visit));
        }
        StatementKind::While(expr, body)
        | StatementKind::DoWhile(body, expr)
        | StatementKind::Switch(expr, body) => {
            walk_expr(expr, visit);
            walk(body, visit);
        }
        StatementKind::For(first, condition, step, body) => {
            first.iter().for_each(|statement| walk(statement, visit));
            condition.iter().chain(step).for_each(|expr| walk_expr(expr, visit));
            walk(body, visit);
        }
        StatementKind::Case(_, _, inner) | StatementKind::Default(inner) | StatementKind::Label(_, inner) => {
            walk(inner, visit)
        }
        StatementKind::Return(value) => value.iter().for_each(|expr| walk_expr(expr, visit)),
        StatementKind::Assembly(assembly) => {
            assembly.outputs.iter().for_each(|(_, place)| walk_place(place, visit));
            assembly.inputs.iter().for_each(|(_, input)| match input {
                AssemblyInput::Value(expr) => walk_expr(expr, visit),
                AssemblyInput::Memory(place) => walk_place(place, visit),
            });
        }
    }
}

pub(super) fn walk_initial(initial: &Initial, visit: &mut dyn FnMut(Part<'_>)) {
    initial.parts.iter().for_each(|(_, expr)| walk_expr(expr, visit));
}

fn walk_expr(expr: &Expr, visit: &mut dyn FnMut(Part<'_>)) {
    visit(Part::Expr(expr));
    match &expr.kind {
        ExprKind::Constant(_) | ExprKind::Function(_) | ExprKind::Unknown(_) | ExprKind::String(_) => {}
        ExprKind::Load(place) | ExprKind::Address(place) => walk_place(place, visit),
        ExprKind::Negate(a) | ExprKind::Complement(a) | ExprKind::Not(a) | ExprKind::Convert(a) => {
            walk_expr(a, visit)
        }
        ExprKind::Binary(_, a, b)
        | ExprKind::Move(a, b)
        | ExprKind::Difference(a, b)
        | ExprKind::And(a, b)
        | ExprKind::Or(a, b)
        | ExprKind::Otherwise(a, b)
        | ExprKind::Comma(a, b) => {
            walk_expr(a, visit);
            walk_expr(b, visit);
        }
        ExprKind::Assign(place, value) | ExprKind::Modify { place, value, .. } => {
            walk_place(place, visit);
            walk_expr(value, visit);
        }
        ExprKind::Conditional(a, b, c) => [a, b, c].into_iter().for_each(|part| walk_expr(part, visit)),
        ExprKind::Call(callee, arguments) => {
            if let Callee::Pointer(pointer) = callee {
                walk_expr(pointer, visit);
            }
            arguments.iter().for_each(|argument| walk_expr(argument, visit));
        }
        ExprKind::Statements(block, value) => {
            walk_block(block, visit);
            value.iter().for_each(|value| walk_expr(value, visit));
        }
    }
}

fn walk_place(place: &Place, visit: &mut dyn FnMut(Part<'_>)) {
    match &place.kind {
        PlaceKind::Local(_) | PlaceKind::Global(_) => {}
        PlaceKind::Pointed(expr) | PlaceKind::Value(expr) => walk_expr(expr, visit),
        PlaceKind::Field(of, _) => walk_place(of, visit),
        PlaceKind::Element(of, index) => {
            walk_place(of, visit);
            walk_expr(index, visit);
        }
        PlaceKind::Compound(_, initial) => walk_initial(initial, visit),
    }
}
