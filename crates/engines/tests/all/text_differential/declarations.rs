//! The declarations of a file: its shared variables, threads and registers, and the values of constants.

use fencewright_lang::ast::*;
use fencewright_program::{BinaryOp, Numbers, UnaryOp};

/// The least and the greatest value, both included.
pub type Interval = (i64, i64);

/// The values that a variable or register accepts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Values {
    pub range: Option<Interval>,
    /// The operator of the declared type, which wraps values that are written.
    pub wraps: Option<UnaryOp>,
}

impl Values {
    /// Whether the type includes all values of the other type, so that writing them changes nothing.
    pub fn take(self, other: Values) -> bool {
        match (self.wraps.map(type_values), other.wraps.map(type_values)) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some((low, high)), Some((least, greatest))) => low <= least && greatest <= high,
        }
    }
}

/// The least and the greatest value of a type.
pub fn type_values(wraps: UnaryOp) -> (i128, i128) {
    match wraps {
        UnaryOp::Unsigned(width) => (0, (1 << width.bits()) - 1),
        UnaryOp::Signed(width) => (-(1 << (width.bits() - 1)), (1 << (width.bits() - 1)) - 1),
        _ => unreachable!("not a type"),
    }
}

/// A file with its declarations evaluated; statements and formulas remain syntax.
pub struct Declared<'f> {
    pub numbers: Numbers,
    pub constants: Vec<(&'f str, i64)>,
    pub shared: Vec<Shared<'f>>,
    pub threads: Vec<Thread<'f>>,
    pub properties: Vec<&'f Property>,
    /// The initial values of each memory cell.
    pub memory: Vec<Interval>,
}

pub struct Shared<'f> {
    pub name: &'f str,
    /// The index of the first memory cell.
    pub first: usize,
    /// The indices, if the variable is an array.
    pub indices: Option<Interval>,
    pub open: bool,
    pub values: Values,
}

/// A thread, or a member of a family.
pub struct Thread<'f> {
    pub name: &'f str,
    /// The name and value of the index of a family.
    pub index: Option<(&'f str, i64)>,
    pub body: &'f Block,
    pub registers: Vec<Register<'f>>,
}

/// A register, or an element of an array of registers.
pub struct Register<'f> {
    pub name: &'f str,
    /// The index, if this is an element of an array.
    pub element: Option<i64>,
    pub values: Values,
    pub initial: Interval,
}

impl Thread<'_> {
    /// The index of a register, or of an element of an array.
    pub fn register(&self, name: &str, element: Option<i64>) -> Option<usize> {
        self.registers.iter().position(|r| r.name == name && r.element == element)
    }

    /// The indices of an array of registers.
    pub fn array(&self, name: &str) -> Option<Interval> {
        let elements = || self.registers.iter().filter(|r| r.name == name).filter_map(|r| r.element);
        elements().min().zip(elements().max())
    }
}

/// The value of an expression without accesses, if all its names are constants and every operation has a value.
pub fn constant(e: &Expr, named: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
    match &e.kind {
        ExprKind::Int(value) => Some(*value),
        ExprKind::Place(place) if place.index.is_none() => named(&place.name.text),
        ExprKind::Unary(op, operand) => unary(*op, constant(operand, named)?),
        ExprKind::Binary(op, left, right) => {
            binary(*op, constant(left, named)?, constant(right, named)?).and_then(Result::ok)
        }
        ExprKind::If(condition, then, otherwise) => {
            constant(if constant(condition, named)? != 0 { then } else { otherwise }, named)
        }
        _ => None,
    }
}

/// Evaluates an operator; `None` if the result does not fit.
pub fn unary(op: UnaryOp, value: i64) -> Option<i64> {
    match op {
        UnaryOp::Neg => value.checked_neg(),
        UnaryOp::Not => Some(i64::from(value == 0)),
        UnaryOp::BitNot => Some(-1 - value),
        UnaryOp::Unsigned(_) | UnaryOp::Signed(_) => {
            let (low, high) = type_values(op);
            i64::try_from(low + (i128::from(value) - low).rem_euclid(high - low + 1)).ok()
        }
    }
}

/// The error for a divisor 0, or a shift by less than 0 or more than 63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undefined;

/// Evaluates an operator; `None` if the result does not fit.
pub fn binary(op: BinaryOp, a: i64, b: i64) -> Option<Result<i64, Undefined>> {
    let (wide_a, wide_b) = (i128::from(a), i128::from(b));
    let value = match op {
        BinaryOp::Add => wide_a + wide_b,
        BinaryOp::Sub => wide_a - wide_b,
        BinaryOp::Mul => wide_a * wide_b,
        BinaryOp::Div | BinaryOp::Rem if b == 0 => return Some(Err(Undefined)),
        BinaryOp::Div => wide_a / wide_b,
        BinaryOp::Rem => wide_a % wide_b,
        BinaryOp::BitAnd => wide_a & wide_b,
        BinaryOp::BitOr => wide_a | wide_b,
        BinaryOp::BitXor => wide_a ^ wide_b,
        BinaryOp::Eq => i128::from(a == b),
        BinaryOp::Ne => i128::from(a != b),
        BinaryOp::Lt => i128::from(a < b),
        BinaryOp::Le => i128::from(a <= b),
        BinaryOp::Gt => i128::from(a > b),
        BinaryOp::Ge => i128::from(a >= b),
        BinaryOp::And => i128::from(a != 0 && b != 0),
        BinaryOp::Or => i128::from(a != 0 || b != 0),
        BinaryOp::Shl | BinaryOp::Shr if !(0..64).contains(&b) => return Some(Err(Undefined)),
        BinaryOp::Shl => wide_a * (1 << b),
        BinaryOp::Shr => wide_a.div_euclid(1 << b),
        BinaryOp::Min => wide_a.min(wide_b),
        BinaryOp::Max => wide_a.max(wide_b),
    };
    i64::try_from(value).ok().map(Ok)
}

/// The interval of a range with constant ends.
pub fn interval(range: &RangeExpr, named: &dyn Fn(&str) -> Option<i64>) -> Interval {
    let end = |e| constant(e, named).expect("the ends of a range are constants");
    (end(&range.low), end(&range.high) - i64::from(!range.inclusive))
}

/// The least and the greatest index of an array.
fn indices(size: &ArraySize, named: &dyn Fn(&str) -> Option<i64>) -> Interval {
    match size {
        ArraySize::Length(length) => (0, constant(length, named).expect("a length is a constant") - 1),
        ArraySize::Indices(range) => interval(range, named),
    }
}

/// The initial contents of a variable or register, one interval per cell.
fn initial(
    declarator: &Declarator,
    range: Option<Interval>,
    cells: usize,
    named: &dyn Fn(&str) -> Option<i64>,
) -> Vec<Interval> {
    let value = |e| {
        let value = constant(e, named).expect("initial values are constants");
        (value, value)
    };
    match &declarator.init {
        None => vec![(0, 0); cells],
        Some(Initial::Value(e)) => vec![value(e); cells],
        Some(Initial::Any(chosen)) => {
            let chosen = chosen.as_ref().map(|r| interval(r, named)).or(range);
            vec![chosen.expect("the generator bounds every choice"); cells]
        }
        Some(Initial::List(values)) => values.iter().map(value).collect(),
    }
}

impl<'f> Declared<'f> {
    /// Reads the declarations of a file; `defines` override its top-level constants.
    pub fn new(file: &'f File, defines: &[(String, i64)]) -> Self {
        let mut declared = Declared {
            numbers: Numbers::Int,
            constants: Vec::new(),
            shared: Vec::new(),
            threads: Vec::new(),
            properties: Vec::new(),
            memory: Vec::new(),
        };
        for item in &file.items {
            match item {
                Item::Const(c) => {
                    let given = defines.iter().find(|(name, _)| *name == c.name.text).map(|(_, v)| *v);
                    let value = given.or_else(|| constant(&c.value, &|name| declared.constant(name)));
                    declared.constants.push((&c.name.text, value.expect("constants are constant")));
                }
                Item::Numbers(numbers, _) => declared.numbers = *numbers,
                // A mutex is a variable that only `lock` and `unlock` access.
                Item::Shared(declarators) | Item::Mutex(declarators) => {
                    declarators.iter().for_each(|d| declared.share(d))
                }
                Item::Thread(thread) => declared.thread(thread),
                Item::Property(property) => declared.properties.push(property),
                Item::Predicates(..) | Item::Spare(..) | Item::Cost(..) => {}
                Item::Procedure(_) => unreachable!("not generated"),
            }
        }
        declared
    }

    pub fn constant(&self, name: &str) -> Option<i64> {
        self.constants.iter().find(|(n, _)| *n == name).map(|(_, value)| *value)
    }

    pub fn shared(&self, name: &str) -> Option<&Shared<'f>> {
        self.shared.iter().find(|s| s.name == name)
    }

    fn share(&mut self, declarator: &'f Declarator) {
        let named = |name: &str| self.constant(name);
        let indices = declarator.size.as_ref().map(|size| indices(size, &named));
        let cells = indices.map_or(1, |(low, high)| (high - low + 1) as usize);
        let range = declarator.range.as_ref().map(|r| interval(r, &named));
        let mut contents = initial(declarator, range, cells, &named);
        let first = self.memory.len();
        let (name, open) = (declarator.name.text.as_str(), declarator.open);
        self.memory.append(&mut contents);
        let values = Values { range, wraps: declarator.wraps };
        self.shared.push(Shared { name, first, indices, open, values });
    }

    fn thread(&mut self, thread: &'f fencewright_lang::ast::Thread) {
        let instances = match &thread.family {
            None => vec![None],
            Some((index, range)) => {
                let (low, high) = interval(range, &|name| self.constant(name));
                (low..=high).map(|value| Some((index.text.as_str(), value))).collect()
            }
        };
        for index in instances {
            let mut registers = Vec::new();
            let constants: Vec<&Const> = thread.body.statements.iter().filter_map(as_constant).collect();
            let named = |name: &str| self.in_thread(&constants, index, name);
            for statement in &thread.body.statements {
                let StatementKind::Var(declarators) = &statement.kind else { continue };
                for d in declarators {
                    let range = d.range.as_ref().map(|r| interval(r, &named));
                    let values = Values { range, wraps: d.wraps };
                    let elements: Vec<Option<i64>> = match d.size.as_ref().map(|size| indices(size, &named)) {
                        None => vec![None],
                        Some((low, high)) => (low..=high).map(Some).collect(),
                    };
                    let contents = initial(d, range, elements.len(), &named);
                    let all = elements.into_iter().zip(contents);
                    let name = d.name.text.as_str();
                    registers.extend(all.map(|(element, initial)| Register {
                        name,
                        element,
                        values,
                        initial,
                    }));
                }
            }
            self.threads.push(Thread { name: &thread.name.text, index, body: &thread.body, registers });
        }
    }

    /// A constant of a thread's body, its index, or a top-level constant.
    fn in_thread(&self, own: &[&Const], index: Option<(&str, i64)>, name: &str) -> Option<i64> {
        let of_body = own.iter().find(|c| c.name.text == name);
        let value = |c: &Const| constant(&c.value, &|name| self.in_thread(own, index, name));
        let of_index = index.filter(|(n, _)| *n == name).map(|(_, value)| value);
        of_body.and_then(|c| value(c)).or(of_index).or_else(|| self.constant(name))
    }
}

pub fn as_constant(statement: &Statement) -> Option<&Const> {
    match &statement.kind {
        StatementKind::Const(c) => Some(c),
        _ => None,
    }
}
