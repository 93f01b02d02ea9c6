//! The fragment of programs for which the domain is exact: CONTEXT24 Theorem 4, and the extensions proved in docs/contexts.md.

use std::collections::BTreeSet;

use fencewright_memory::{BufferMachine, Buffers, Cell, Command};
use fencewright_program::{
    Action, BinaryOp, EdgeId, Expr, Formula, Numbers, Observable, Program, Property, PropertyKind,
    Quantifier, Span, UnaryOp,
};
use fencewright_verdict::{Limits, Reason};

use super::condition::{Condition, Operand, Relation, Value, truth, value};
use super::{Components, MOST_OPERATIONS, Order, Relations};

/// Why a program is outside of the fragment, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// The construct outside of the fragment, in words.
    pub what: String,
    /// The source position of the construct, if it has one.
    pub span: Option<Span>,
}

impl From<Unfit> for Reason {
    fn from(unfit: Unfit) -> Reason {
        Reason::Unsupported(format!("domain order cannot represent {}", unfit.what), unfit.span)
    }
}

/// Maximum number of points. Ranks are bytes, so more points would leave too few ranks for cells.
const MOST_POINTS: i64 = 60;

/// Maximum number of free choices in one step, because more choices have too many orderings to enumerate.
pub(super) const MOST_CHOICES: usize = 6;

/// Maximum number of commands in a program. Scanning more commands would take seconds.
const MOST_COMMANDS: usize = 1 << 21;

fn choices(commands: &[Command]) -> usize {
    commands.iter().filter(|c| matches!(c, Command::Havoc(_))).count()
}

struct Scan {
    components: Components,
    constants: BTreeSet<i64>,
    ordered: bool,
    /// The first source position of a condition that requires a distance, if there is one.
    distance: Option<Span>,
    /// The first constant other than 0, with its source position, if there is one.
    constant: Option<(i64, Span)>,
}

/// The domain for a program and its properties, if they are in the fragment: values are copied, chosen freely, compared with each other and with
/// constants by `= != < <=`, or are the truth value of such comparisons; distances `x + n < y` and `x + n <= y` with n > 0 occur only where they are
/// not negated, and if there are any, 0 is the only constant.
///
/// The domain tracks at least the relations that `least` names. Tracking only equality gives fewer states, but a certificate cannot express that
/// values differ.
pub fn fragment(
    program: &Program,
    properties: &[Property],
    least: Relations,
    limits: &Limits,
) -> Result<Order, Reason> {
    let machine = BufferMachine::new(program, Buffers::Sc);
    let mut scan = Scan {
        components: Components::alone(0..machine.cells.memory(), machine.cells.variables().end),
        constants: BTreeSet::from([0]),
        ordered: least == Relations::Order,
        distance: None,
        constant: None,
    };
    let initial = machine.initial_values();
    if choices(&initial) > MOST_CHOICES {
        let what = format!("more than {MOST_CHOICES} initial values that are chosen freely");
        return Err(Unfit { what, span: None }.into());
    }
    scan.commands(&initial, Span::default(), program.numbers)?;
    let mut seen = 0;
    for (t, thread) in program.threads() {
        for (n, edge) in thread.edges.iter().enumerate() {
            if seen > MOST_COMMANDS {
                return Err(Unfit { what: "a program this large".into(), span: None }.into());
            }
            if let Some(reason) = limits.exceeded(0) {
                return Err(reason);
            }
            let mut control = machine.initial();
            control.locations[t.index()] = edge.from;
            control.lock = matches!(edge.action, Action::Unlock).then_some(t);
            let mut steps = Vec::new();
            machine.edge_steps(&control, t, EdgeId(n as u32), &mut steps);
            for step in steps {
                if let Some(reason) = limits.exceeded(0) {
                    return Err(reason);
                }
                seen += step.commands.len();
                let large =
                    match (step.commands.len() > MOST_OPERATIONS, choices(&step.commands) > MOST_CHOICES) {
                        (true, _) => format!("a step with more than {MOST_OPERATIONS} operations"),
                        (_, true) => format!("a step with more than {MOST_CHOICES} choices"),
                        _ => String::new(),
                    };
                if !large.is_empty() {
                    return Err(Unfit { what: large, span: Some(edge.span) }.into());
                }
                scan.commands(&step.commands, edge.span, program.numbers)?;
            }
        }
    }
    for property in properties {
        let wanted = !matches!(property.kind, PropertyKind::Finally(Quantifier::Forall, _));
        let Some(formula) = property.formula() else { continue };
        if mixes(formula) {
            let what = "a label inside a comparison of values".into();
            return Err(Unfit { what, span: Some(property.span) }.into());
        }
        if let Some(reason) = limits.exceeded(0) {
            return Err(reason);
        }
        // Labels depend on control states, not on values, so any constant can replace them here.
        let condition = formula.map(&mut |observable| match observable {
            Observable::At(..) => Expr::Const(1),
            Observable::Register(t, r) => Expr::Leaf(machine.cells.id(Cell::Register(*t, *r))),
            Observable::Memory(c) => Expr::Leaf(machine.cells.id(Cell::Memory(*c))),
        });
        let scanned = truth(&condition, wanted, program.numbers).map(|c| scan.condition(&c, property.span));
        scanned.map_err(|what| Unfit { what: what.into(), span: Some(property.span) })?;
    }
    Ok(scan.finish(program.numbers)?)
}

/// Whether one comparison or computation involves both labels and values, so that its meaning for values depends on the control state.
fn mixes(formula: &Formula) -> bool {
    match formula {
        Expr::Const(_) | Expr::Leaf(_) => false,
        Expr::Unary(UnaryOp::Not, operand) => mixes(operand),
        Expr::Binary(BinaryOp::And | BinaryOp::Or, left, right) => mixes(left) || mixes(right),
        Expr::Unary(..) | Expr::Binary(..) | Expr::If(..) => {
            let (mut labels, mut values) = (false, false);
            formula.for_each_leaf(&mut |leaf| match leaf {
                Observable::At(..) => labels = true,
                Observable::Register(..) | Observable::Memory(_) => values = true,
            });
            labels && values
        }
    }
}

impl Scan {
    fn commands(&mut self, commands: &[Command], span: Span, numbers: Numbers) -> Result<(), Unfit> {
        let unfit = |what: &str| Unfit { what: what.into(), span: Some(span) };
        for command in commands {
            match command {
                Command::Assume(e) => match truth(e, true, numbers).map_err(unfit)? {
                    // The commands after a false assumption are unreachable.
                    Condition::Constant(false) => return Ok(()),
                    condition => self.condition(&condition, span),
                },
                Command::Assign(cell, e) => match value(e, numbers).map_err(unfit)? {
                    Value::Same(operand) => {
                        self.operand(&operand, span);
                        self.meet(&operand, &Operand::Cell(*cell));
                    }
                    Value::Truth(condition) => {
                        self.condition(&condition, span);
                        // If the negated condition holds, 0 is assigned, so the negated condition must be in the fragment too.
                        let other = truth(e, false, numbers).map_err(unfit)?;
                        self.condition(&other, span);
                        [0, 1].iter().for_each(|&c| self.operand(&Operand::Constant(c), span));
                    }
                },
                Command::Havoc(_) | Command::Fold(..) | Command::Expand(..) => {}
            }
        }
        Ok(())
    }

    fn condition(&mut self, condition: &Condition<Operand>, span: Span) {
        condition.for_each_comparison(&mut |relation, left, right, distant| {
            self.operand(left, span);
            self.operand(right, span);
            self.meet(left, right);
            self.ordered |= matches!(relation, Relation::Less | Relation::AtMost);
            if distant {
                self.distance.get_or_insert(span);
            }
        });
    }

    fn meet(&mut self, left: &Operand, right: &Operand) {
        if let (Operand::Cell(left), Operand::Cell(right)) = (left, right) {
            self.components.join(*left, *right);
        }
    }

    fn operand(&mut self, operand: &Operand, span: Span) {
        if let Operand::Constant(value) = operand
            && self.constants.insert(*value)
        {
            self.constant.get_or_insert((*value, span));
        }
    }

    fn finish(self, numbers: Numbers) -> Result<Order, Unfit> {
        if let (Some(span), Some((value, _))) = (self.distance, self.constant) {
            let what =
                format!("a distance between values, in a program with a constant other than 0 ({value})");
            return Err(Unfit { what, span: Some(span) });
        }
        if let (Numbers::Nat, Some(..=-1)) = (numbers, self.constants.first()) {
            return Err(Unfit { what: "a negative number among naturals".into(), span: None });
        }
        let relations = if self.ordered { Relations::Order } else { Relations::Equality };
        let far = || Unfit {
            what: format!(
                "constants that are more than {MOST_POINTS} apart, in a program that compares by order"
            ),
            span: self.constant.map(|(_, span)| span),
        };
        let (first, last) = (self.constants.first().copied(), self.constants.last().copied());
        let (first, last) = (first.unwrap_or(0), last.unwrap_or(0));
        let points: Vec<i64> = match (relations, numbers) {
            // There are finitely many integers between two constants, so each of these integers is a point.
            (Relations::Order, Numbers::Int | Numbers::Nat) => {
                if last.checked_sub(first).is_none_or(|width| width >= MOST_POINTS) {
                    return Err(far());
                }
                (first..=last).collect()
            }
            _ => self.constants.iter().copied().collect(),
        };
        if points.len() as i64 > MOST_POINTS {
            return Err(Unfit { what: format!("more than {MOST_POINTS} constants"), span: None });
        }
        Ok(Order::new(numbers, relations, points, self.components))
    }
}
