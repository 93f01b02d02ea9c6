//! Writes the control-flow graphs of a program as .fw, for programs that have no source text.
//!
//! Every reachable location except the fault location becomes a label, and every edge a statement and a `goto`, or a `stop` if the edge leads to the
//! fault location. The result can be loaded again. It has the same executions as the program, except that a thread of the language has a single end:
//! if a thread of the program has several ends, it gets a register that records which of them was reached, and a final step that sets this register.

use fencewright_kit::graph::reachable;
use fencewright_program::{
    self as model, Action, Address, BinaryOp, Init, LocationId, Observable, Op, Program, Quantifier, Range,
    RegisterId, Span,
};

use crate::ast::{
    ArraySize, Block, Declarator, Expr, ExprKind, File, Initial, Item, Name, Place, Property, PropertyKind,
    RangeExpr, Statement, StatementKind, Thread, ThreadRef,
};
use crate::names::Names;
use crate::print;

/// Writes a program; the error says what cannot be written.
pub fn fw(program: &Program) -> Result<String, String> {
    let mut names = Names::default();
    let variables: Vec<String> = program.variables.iter().map(|v| fresh(&mut names, &v.name)).collect();
    let threads: Vec<String> = program.threads.iter().map(|t| fresh(&mut names, &t.name)).collect();
    let named = program.threads.iter().zip(threads);
    let threads = named.map(|(thread, name)| ThreadNames::new(thread, name, &names)).collect();
    let writer = Writer { program, variables, threads };
    let mut items = vec![Item::Numbers(program.numbers, Span::default())];
    if program.numbers == model::Numbers::Int {
        items.clear();
    }
    for (n, variable) in program.variables.iter().enumerate() {
        items.push(Item::Shared(vec![writer.shared(n, variable)?]));
    }
    items.extend((0..program.threads.len()).map(|n| Item::Thread(writer.thread(n))));
    items.extend(program.properties.iter().filter_map(|p| writer.property(p)).map(Item::Property));
    Ok(print(&File { items }))
}

/// A fresh name as close to this one as .fw allows. The closing bracket of `p[0]` is dropped.
fn fresh(names: &mut Names<'_>, like: &str) -> String {
    names.fresh(like.trim_end_matches(']'), "n", "_")
}

/// The names of a thread and its parts.
struct ThreadNames {
    name: String,
    registers: Vec<String>,
    labels: Vec<String>,
    /// The reachable locations, in the order in which they are written, without the fault location.
    written: Vec<LocationId>,
    /// The locations among `written` where the thread has terminated.
    ends: Vec<LocationId>,
    /// The register that records which end the thread has reached; `None` if the thread has at most one end.
    ended: Option<String>,
}

impl ThreadNames {
    fn new(thread: &model::Thread, name: String, global: &Names<'_>) -> Self {
        let mut names = Names::inside(global);
        let registers = thread.registers.iter().map(|r| fresh(&mut names, r.name.trim_start_matches('%')));
        let registers = registers.collect();
        // Labels of the source are named first, so that no generated name takes the name of such a label.
        let labels = thread.locations.iter().map(|l| l.labels.first().map(|label| fresh(&mut names, label)));
        let labels: Vec<Option<String>> = labels.collect();
        let numbered = labels.into_iter().enumerate();
        let labels = numbered.map(|(n, label)| label.unwrap_or_else(|| fresh(&mut names, &format!("at{n}"))));
        let labels = labels.collect();
        let mut written = reachable(thread);
        written.retain(|&location| location != thread.fault);
        let ends: Vec<LocationId> = written.iter().copied().filter(|l| thread.is_end(*l)).collect();
        let ended = (ends.len() > 1).then(|| fresh(&mut names, "ended"));
        ThreadNames { name, registers, labels, written, ends, ended }
    }

    /// The number to which the register `ended` is set at an end location; `None` for other locations.
    fn end_number(&self, location: LocationId) -> Option<i64> {
        self.ends.iter().zip(0..).find(|(end, _)| **end == location).map(|(_, n)| n)
    }
}

struct Writer<'p> {
    program: &'p Program,
    variables: Vec<String>,
    threads: Vec<ThreadNames>,
}

impl Writer<'_> {
    fn shared(&self, n: usize, variable: &model::Variable) -> Result<Declarator, String> {
        let all_alike = variable.init.windows(2).all(|pair| pair[0] == pair[1]);
        let values = variable.init.iter().map(|init| match init {
            Init::Value(value) => Some(int(*value)),
            Init::Any(_) => None,
        });
        let init = match (variable.init.first(), values.collect::<Option<Vec<Expr>>>()) {
            (Some(&first), _) if all_alike => initial(first),
            (_, Some(values)) => Initial::List(values),
            _ => {
                return Err(format!(
                    "the cells of `{}` start with different choices of values",
                    variable.name
                ));
            }
        };
        Ok(Declarator {
            name: name(&self.variables[n]),
            size: variable.indices.map(|indices| ArraySize::Indices(range(indices))),
            open: variable.open,
            range: variable.range.map(range),
            wraps: None,
            init: Some(init),
            span: Span::default(),
        })
    }

    fn thread(&self, n: usize) -> Thread {
        let (thread, names) = (&self.program.threads[n], &self.threads[n]);
        let mut statements = Vec::new();
        let declared = thread.registers.iter().zip(&names.registers).map(|(register, given)| Declarator {
            name: name(given),
            size: None,
            open: false,
            range: register.range.map(range),
            wraps: None,
            init: Some(initial(register.init)),
            span: Span::default(),
        });
        statements.extend(declared.map(|d| statement(StatementKind::Var(vec![d]))));
        if let Some(ended) = &names.ended {
            let init = Some(Initial::Value(int(0)));
            let name = name(ended);
            let ended = Declarator {
                name,
                size: None,
                open: false,
                range: None,
                wraps: None,
                init,
                span: Span::default(),
            };
            statements.push(statement(StatementKind::Var(vec![ended])));
        }
        for &location in &names.written {
            let mut place = self.place(n, location);
            place[0].labels.push(name(&names.labels[location.index()]));
            statements.extend(place);
        }
        Thread {
            name: name(&names.name),
            family: None,
            body: Block { statements, span: Span::default() },
            span: Span::default(),
        }
    }

    /// The statements for a location: the edges that leave it, or the end of the thread.
    fn place(&self, thread: usize, location: LocationId) -> Vec<Statement> {
        let code = &self.program.threads[thread];
        let mut ways = code.edges_from(location).map(|(_, edge)| {
            let mut done = vec![statement(self.action(thread, &edge.action))];
            // After a fault the thread stops.
            let to = match edge.to == code.fault {
                true => StatementKind::Stop,
                false => StatementKind::Goto(name(&self.threads[thread].labels[edge.to.index()])),
            };
            done.push(statement(to));
            done
        });
        match (ways.next(), ways.next()) {
            (None, _) => {
                let names = &self.threads[thread];
                let number = names.ended.as_ref().zip(names.end_number(location));
                let set = number.map(|(ended, n)| statement(StatementKind::Assign(place(ended), int(n))));
                set.into_iter().chain([statement(StatementKind::Stop)]).collect()
            }
            (Some(only), None) => only,
            (Some(first), Some(second)) => {
                let ways = [first, second].into_iter().chain(ways);
                let blocks = ways.map(|statements| Block { statements, span: Span::default() });
                vec![statement(StatementKind::Choose(blocks.collect()))]
            }
        }
    }

    fn action(&self, thread: usize, action: &Action) -> StatementKind {
        match action {
            Action::Op(op) => self.op(thread, op),
            Action::Fence => StatementKind::Fence,
            Action::StoreFence => StatementKind::StoreFence,
            Action::Lock => StatementKind::Lock(None),
            Action::Unlock => StatementKind::Unlock(None),
            Action::Atomic { ops, drains } => {
                let mut statements: Vec<Statement> =
                    ops.iter().map(|op| statement(self.op(thread, op))).collect();
                if statements.is_empty() {
                    statements.push(statement(StatementKind::Skip));
                }
                let block = Block { statements, span: Span::default() };
                if *drains { StatementKind::Atomic(block) } else { StatementKind::Snapshot(block) }
            }
        }
    }

    fn op(&self, thread: usize, op: &Op) -> StatementKind {
        let register = |r: &RegisterId| place(&self.threads[thread].registers[r.index()]);
        match op {
            Op::Skip => StatementKind::Skip,
            Op::Assign(target, value) => StatementKind::Assign(register(target), self.value(thread, value)),
            Op::Havoc(target, chosen) => StatementKind::Havoc(register(target), chosen.map(range)),
            Op::Assume(value) => StatementKind::Assume(self.value(thread, value)),
            Op::Assert(value, fault) => {
                let text = self.program.text_of(*fault).map(str::to_owned);
                StatementKind::Assert(self.value(thread, value), text)
            }
            Op::Load(target, address) => {
                let loaded = expr(ExprKind::Place(self.address(thread, address)));
                StatementKind::Assign(register(target), loaded)
            }
            Op::Store(address, value) => {
                StatementKind::Assign(self.address(thread, address), self.value(thread, value))
            }
        }
    }

    fn address(&self, thread: usize, address: &Address) -> Place {
        let index = address.index.as_ref().map(|index| Box::new(self.value(thread, index)));
        Place { name: name(&self.variables[address.variable.index()]), index }
    }

    fn value(&self, thread: usize, value: &model::Expr<RegisterId>) -> Expr {
        written(value, &mut |r| expr(ExprKind::Place(place(&self.threads[thread].registers[r.index()]))))
    }

    /// A property; `None` for `assertions`, which is implicit, and for freedom from deadlock, which cannot be written.
    fn property(&self, property: &model::Property) -> Option<Property> {
        use model::PropertyKind::{Assertions, Finally, Never, NoDeadlock};
        let (kind, formula) = match &property.kind {
            Never(formula) => (PropertyKind::Forbid, formula),
            Finally(Quantifier::Exists, formula) => (PropertyKind::FinallyExists, formula),
            Finally(Quantifier::Never, formula) => (PropertyKind::FinallyNever, formula),
            Finally(Quantifier::Forall, formula) => (PropertyKind::FinallyForall, formula),
            Assertions | NoDeadlock => return None,
        };
        let formula = written(formula, &mut |observable| self.observable(observable));
        let name = Some(name(&property.name));
        Some(Property { name, kind, binders: Vec::new(), formula, span: Span::default() })
    }

    fn observable(&self, observable: &Observable) -> Expr {
        let thread =
            |id: model::ThreadId| ThreadRef { name: name(&self.threads[id.index()].name), index: None };
        match observable {
            Observable::At(id, locations) => {
                let names = &self.threads[id.index()];
                let at = |l: &LocationId| expr(ExprKind::At(thread(*id), name(&names.labels[l.index()])));
                let reachable = locations.iter().filter(|l| names.written.contains(l));
                // A thread that has reached the label of an end location goes on to `end`, the single location where threads of the language
                // terminate. So the formula names both.
                let places = reachable.flat_map(|location| {
                    let has_ended = names.end_number(*location).map(|number| {
                        let end = expr(ExprKind::At(thread(*id), name("end")));
                        match &names.ended {
                            None => end,
                            Some(ended) => {
                                let register = expr(ExprKind::Register(thread(*id), place(ended)));
                                binary(BinaryOp::And, end, binary(BinaryOp::Eq, register, int(number)))
                            }
                        }
                    });
                    [at(location)].into_iter().chain(has_ended)
                });
                any(places.collect())
            }
            Observable::Register(id, register) => {
                let named = &self.threads[id.index()].registers[register.index()];
                expr(ExprKind::Register(thread(*id), place(named)))
            }
            Observable::Memory(cell) => {
                let owner = self.program.variables.partition_point(|v| v.base <= *cell) - 1;
                let variable = &self.program.variables[owner];
                let index = variable.indices.map(|r| Box::new(int(r.low + i64::from(cell - variable.base))));
                expr(ExprKind::Place(Place { name: name(&self.variables[owner]), index }))
            }
        }
    }
}

fn any(mut parts: Vec<Expr>) -> Expr {
    // A balanced tree, to keep its depth logarithmic.
    while parts.len() > 1 {
        let mut halved = Vec::new();
        let mut rest = parts.into_iter();
        while let Some(left) = rest.next() {
            halved.push(match rest.next() {
                Some(right) => binary(BinaryOp::Or, left, right),
                None => left,
            });
        }
        parts = halved;
    }
    parts.pop().unwrap_or_else(|| int(0))
}

fn written<L>(value: &model::Expr<L>, leaf: &mut impl FnMut(&L) -> Expr) -> Expr {
    match value {
        model::Expr::Const(value) => int(*value),
        model::Expr::Leaf(l) => leaf(l),
        model::Expr::Unary(op, operand) => expr(ExprKind::Unary(*op, Box::new(written(operand, leaf)))),
        model::Expr::Binary(op, left, right) => {
            let left = Box::new(written(left, leaf));
            expr(ExprKind::Binary(*op, left, Box::new(written(right, leaf))))
        }
        model::Expr::If(condition, then, otherwise) => {
            let (condition, then) = (written(condition, leaf), written(then, leaf));
            let otherwise = Box::new(written(otherwise, leaf));
            expr(ExprKind::If(Box::new(condition), Box::new(then), otherwise))
        }
    }
}

fn name(text: &str) -> Name {
    Name { text: text.to_owned(), span: Span::default() }
}

fn place(text: &str) -> Place {
    Place { name: name(text), index: None }
}

fn expr(kind: ExprKind) -> Expr {
    Expr { kind, span: Span::default() }
}

fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    expr(ExprKind::Binary(op, Box::new(left), Box::new(right)))
}

fn int(value: i64) -> Expr {
    expr(ExprKind::Int(value))
}

fn statement(kind: StatementKind) -> Statement {
    Statement { labels: Vec::new(), kind, span: Span::default() }
}

fn range(range: Range) -> RangeExpr {
    RangeExpr { low: int(range.low), high: int(range.high), inclusive: true, span: Span::default() }
}

fn initial(init: Init) -> Initial {
    match init {
        Init::Value(value) => Initial::Value(int(value)),
        Init::Any(chosen) => Initial::Any(chosen.map(range)),
    }
}
