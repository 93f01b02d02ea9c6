//! Integer expressions.
//!
//! One type serves thread code (leaves are registers) and properties (leaves are observables of a whole state):
//! an expression never touches shared memory by itself, because every access is an event of its own.

/// An expression over leaves of type `L`. Comparisons and logical operators give 0 or 1; any value but 0 is true.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Expr<L> {
    /// A constant.
    Const(i64),
    /// A register, or whatever else `L` says.
    Leaf(L),
    /// A unary operation.
    Unary(UnaryOp, Box<Expr<L>>),
    /// A binary operation. `And` and `Or` evaluate their right side only when the left one does not decide.
    Binary(BinaryOp, Box<Expr<L>>, Box<Expr<L>>),
}

/// Unary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnaryOp {
    /// Arithmetic negation.
    Neg,
    /// Logical negation.
    Not,
}

/// Binary operators. Division and remainder truncate towards zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    BitAnd,
    BitOr,
    BitXor,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
}

/// Why an expression has no value in the machine integers that explicit engines compute in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// Division or remainder by zero: a violation.
    DivisionByZero,
    /// The mathematical result does not fit 64 bits: the tool, not the program, is at its limit.
    Overflow,
}

impl UnaryOp {
    /// The operator as it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            UnaryOp::Neg => "-",
            UnaryOp::Not => "!",
        }
    }

    /// The operator on a value.
    pub fn apply(self, value: i64) -> Result<i64, EvalError> {
        match self {
            UnaryOp::Neg => value.checked_neg().ok_or(EvalError::Overflow),
            UnaryOp::Not => Ok((value == 0) as i64),
        }
    }
}

impl BinaryOp {
    /// The operator as it is written.
    pub fn symbol(self) -> &'static str {
        use BinaryOp::*;
        match self {
            Add => "+",
            Sub => "-",
            Mul => "*",
            Div => "/",
            Rem => "%",
            BitAnd => "&",
            BitOr => "|",
            BitXor => "^",
            Eq => "==",
            Ne => "!=",
            Lt => "<",
            Le => "<=",
            Gt => ">",
            Ge => ">=",
            And => "&&",
            Or => "||",
        }
    }

    /// Whether this is one of `== != < <= > >=`.
    pub fn is_comparison(self) -> bool {
        use BinaryOp::*;
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge)
    }

    /// The comparison that holds exactly where this one does not; any other operator is left as it is.
    pub fn negated(self) -> Self {
        use BinaryOp::*;
        match self {
            Eq => Ne,
            Ne => Eq,
            Lt => Ge,
            Le => Gt,
            Gt => Le,
            Ge => Lt,
            other => other,
        }
    }

    /// The operator on two values.
    #[inline]
    pub fn apply(self, a: i64, b: i64) -> Result<i64, EvalError> {
        use BinaryOp::*;
        let overflow = EvalError::Overflow;
        match self {
            Add => a.checked_add(b).ok_or(overflow),
            Sub => a.checked_sub(b).ok_or(overflow),
            Mul => a.checked_mul(b).ok_or(overflow),
            Div | Rem if b == 0 => Err(EvalError::DivisionByZero),
            Div => a.checked_div(b).ok_or(overflow),
            Rem => Ok(a.checked_rem(b).unwrap_or(0)),
            BitAnd => Ok(a & b),
            BitOr => Ok(a | b),
            BitXor => Ok(a ^ b),
            Eq => Ok((a == b) as i64),
            Ne => Ok((a != b) as i64),
            Lt => Ok((a < b) as i64),
            Le => Ok((a <= b) as i64),
            Gt => Ok((a > b) as i64),
            Ge => Ok((a >= b) as i64),
            And => Ok((a != 0 && b != 0) as i64),
            Or => Ok((a != 0 || b != 0) as i64),
        }
    }
}

impl<L> Expr<L> {
    /// `op operand`.
    pub fn unary(op: UnaryOp, operand: Expr<L>) -> Self {
        Expr::Unary(op, Box::new(operand))
    }

    /// `left op right`.
    pub fn binary(op: BinaryOp, left: Expr<L>, right: Expr<L>) -> Self {
        Expr::Binary(op, Box::new(left), Box::new(right))
    }

    /// Logical negation.
    #[allow(clippy::should_implement_trait)]
    pub fn not(self) -> Self {
        Expr::unary(UnaryOp::Not, self)
    }

    /// The conjunction of all parts (1 if there are none), as a balanced tree so that its depth stays small.
    pub fn all(parts: Vec<Expr<L>>) -> Self {
        Self::balanced(BinaryOp::And, parts, 1)
    }

    /// The disjunction of all parts (0 if there are none), as a balanced tree.
    pub fn any(parts: Vec<Expr<L>>) -> Self {
        Self::balanced(BinaryOp::Or, parts, 0)
    }

    fn balanced(op: BinaryOp, mut parts: Vec<Expr<L>>, neutral: i64) -> Self {
        while parts.len() > 1 {
            let mut halved = Vec::with_capacity(parts.len().div_ceil(2));
            let mut rest = parts.into_iter();
            while let Some(left) = rest.next() {
                halved.push(match rest.next() {
                    Some(right) => Expr::binary(op, left, right),
                    None => left,
                });
            }
            parts = halved;
        }
        parts.pop().unwrap_or(Expr::Const(neutral))
    }

    /// The value of the expression where `leaf` gives the value of each leaf.
    pub fn eval(&self, leaf: &mut impl FnMut(&L) -> i64) -> Result<i64, EvalError> {
        match self {
            Expr::Const(value) => Ok(*value),
            Expr::Leaf(l) => Ok(leaf(l)),
            Expr::Unary(op, operand) => op.apply(operand.eval(leaf)?),
            Expr::Binary(BinaryOp::And, left, right) => {
                Ok((left.eval(leaf)? != 0 && right.eval(leaf)? != 0) as i64)
            }
            Expr::Binary(BinaryOp::Or, left, right) => {
                Ok((left.eval(leaf)? != 0 || right.eval(leaf)? != 0) as i64)
            }
            Expr::Binary(op, left, right) => op.apply(left.eval(leaf)?, right.eval(leaf)?),
        }
    }

    /// The constant this expression is, if it has no leaves and a value.
    pub fn constant(&self) -> Option<i64> {
        match self {
            Expr::Const(value) => Some(*value),
            Expr::Leaf(_) => None,
            Expr::Unary(op, operand) => op.apply(operand.constant()?).ok(),
            Expr::Binary(op, left, right) => op.apply(left.constant()?, right.constant()?).ok(),
        }
    }

    /// Calls `visit` on every leaf, left to right.
    pub fn for_each_leaf(&self, visit: &mut impl FnMut(&L)) {
        match self {
            Expr::Const(_) => {}
            Expr::Leaf(l) => visit(l),
            Expr::Unary(_, operand) => operand.for_each_leaf(visit),
            Expr::Binary(_, left, right) => {
                left.for_each_leaf(visit);
                right.for_each_leaf(visit);
            }
        }
    }

    /// The same expression with every leaf replaced.
    pub fn map<M>(&self, leaf: &mut impl FnMut(&L) -> Expr<M>) -> Expr<M> {
        match self {
            Expr::Const(value) => Expr::Const(*value),
            Expr::Leaf(l) => leaf(l),
            Expr::Unary(op, operand) => Expr::unary(*op, operand.map(leaf)),
            Expr::Binary(op, left, right) => {
                let left = left.map(leaf);
                Expr::binary(*op, left, right.map(leaf))
            }
        }
    }
}
