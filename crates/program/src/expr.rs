//! Integer expressions.
//!
//! One type serves thread code and properties. In thread code, leaves are registers: an expression never accesses shared memory, because every access
//! is an event of its own. In properties, leaves are observables of a whole state.

/// An expression over leaves of type `L`. Comparisons and logical operators give 0 or 1; any value but 0 is true.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Expr<L> {
    /// A constant.
    Const(i64),
    /// A leaf: a register in thread code, an observable in a property.
    Leaf(L),
    /// A unary operation.
    Unary(UnaryOp, Box<Expr<L>>),
    /// A binary operation. `And` and `Or` evaluate their right side only when the left one does not decide.
    Binary(BinaryOp, Box<Expr<L>>, Box<Expr<L>>),
    /// The second expression if the first one is true, otherwise the third one. Only the selected expression is evaluated.
    If(Box<Expr<L>>, Box<Expr<L>>, Box<Expr<L>>),
}

/// Unary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnaryOp {
    /// Arithmetic negation: `-x`.
    Neg,
    /// Logical negation: 1 for 0, and 0 for any other value.
    Not,
    /// Bitwise negation: `-x - 1`.
    BitNot,
    /// The number from 0 to 2^n - 1 that differs from the operand by a multiple of 2^n, for n bits.
    Unsigned(Width),
    /// The number from -2^(n-1) to 2^(n-1) - 1 that differs from the operand by a multiple of 2^n, for n bits.
    Signed(Width),
}

/// The number of bits of an integer that wraps around.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Width {
    Bits8,
    Bits16,
    Bits32,
    Bits64,
}

impl Width {
    /// All widths, in increasing order.
    pub const ALL: [Width; 4] = [Width::Bits8, Width::Bits16, Width::Bits32, Width::Bits64];

    /// The width as a number of bits.
    pub fn bits(self) -> u32 {
        match self {
            Width::Bits8 => 8,
            Width::Bits16 => 16,
            Width::Bits32 => 32,
            Width::Bits64 => 64,
        }
    }
}

/// Binary operators. Division and remainder truncate towards zero. Bit operations treat numbers as two's complement of unlimited width, so `a << n`
/// is `a * 2^n` and `a >> n` is `a / 2^n` rounded down, for n from 0 to 63.
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
    Shl,
    Shr,
    Min,
    Max,
}

/// The reason why an expression has no value in 64-bit integers, in which explicit engines compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// Division or remainder by zero: a violation.
    DivisionByZero,
    /// A shift by less than 0 or by more than 63: a violation.
    ShiftOutOfRange,
    /// The mathematical result does not fit 64 bits: a limit of the tool, not a violation by the program.
    Overflow,
}

impl UnaryOp {
    /// The operator as .fw writes it.
    pub fn symbol(self) -> &'static str {
        match self {
            UnaryOp::Neg => "-",
            UnaryOp::Not => "!",
            UnaryOp::BitNot => "~",
            UnaryOp::Unsigned(Width::Bits8) => "u8",
            UnaryOp::Unsigned(Width::Bits16) => "u16",
            UnaryOp::Unsigned(Width::Bits32) => "u32",
            UnaryOp::Unsigned(Width::Bits64) => "u64",
            UnaryOp::Signed(Width::Bits8) => "i8",
            UnaryOp::Signed(Width::Bits16) => "i16",
            UnaryOp::Signed(Width::Bits32) => "i32",
            UnaryOp::Signed(Width::Bits64) => "i64",
        }
    }

    /// Whether this operator wraps around. Such an operator is written like a function and depends only on the low 64 bits of its operand.
    pub fn wraps(self) -> bool {
        matches!(self, UnaryOp::Unsigned(_) | UnaryOp::Signed(_))
    }

    /// Applies the operator to a value.
    pub fn apply(self, value: i64) -> Result<i64, EvalError> {
        match self {
            UnaryOp::Neg => value.checked_neg().ok_or(EvalError::Overflow),
            UnaryOp::Not => Ok((value == 0) as i64),
            UnaryOp::BitNot => Ok(!value),
            UnaryOp::Signed(width) => {
                let unused = 64 - width.bits();
                Ok(value << unused >> unused)
            }
            UnaryOp::Unsigned(width) => {
                let unused = 64 - width.bits();
                i64::try_from((value as u64) << unused >> unused).map_err(|_| EvalError::Overflow)
            }
        }
    }

    /// The low 64 bits of the result, given the low 64 bits of the operand. Meaningless for the operator `Not`, whose result depends on all bits of
    /// the operand.
    pub fn apply_low(self, low: i64) -> Result<i64, EvalError> {
        match self {
            UnaryOp::Neg => Ok(low.wrapping_neg()),
            UnaryOp::Unsigned(Width::Bits64) => Ok(low),
            _ => self.apply(low),
        }
    }
}

impl BinaryOp {
    /// The operator as .fw writes it.
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
            Shl => "<<",
            Shr => ">>",
            Min => "min",
            Max => "max",
        }
    }

    /// Whether the operator is written like a function, before its operands.
    pub fn is_function(self) -> bool {
        matches!(self, BinaryOp::Min | BinaryOp::Max)
    }

    /// Whether this is one of `== != < <= > >=`.
    pub fn is_comparison(self) -> bool {
        use BinaryOp::*;
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge)
    }

    /// The complementary comparison, such as `>=` for `<`; any other operator is returned unchanged.
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

    /// Applies the operator to two values.
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
            Shl | Shr if !(0..64).contains(&b) => Err(EvalError::ShiftOutOfRange),
            Shl => i64::try_from(i128::from(a) << b).map_err(|_| overflow),
            Shr => Ok(a >> b),
            Min => Ok(a.min(b)),
            Max => Ok(a.max(b)),
        }
    }

    /// Whether the low 64 bits of the operands determine the low 64 bits of the result. (A shift depends on all of its right operand.)
    pub fn keeps_low_bits(self) -> bool {
        use BinaryOp::*;
        matches!(self, Add | Sub | Mul | BitAnd | BitOr | BitXor | Shl)
    }

    /// The low 64 bits of the result, for operators that [keep low bits](BinaryOp::keeps_low_bits).
    #[inline]
    pub fn apply_low(self, a: i64, b: i64) -> Result<i64, EvalError> {
        match self {
            BinaryOp::Add => Ok(a.wrapping_add(b)),
            BinaryOp::Sub => Ok(a.wrapping_sub(b)),
            BinaryOp::Mul => Ok(a.wrapping_mul(b)),
            BinaryOp::Shl if (0..64).contains(&b) => Ok(a << b),
            _ => self.apply(a, b),
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

    /// `then` if the condition is true, `otherwise` if not.
    pub fn choice(condition: Expr<L>, then: Expr<L>, otherwise: Expr<L>) -> Self {
        Expr::If(Box::new(condition), Box::new(then), Box::new(otherwise))
    }

    /// Logical negation: `!self`.
    #[allow(clippy::should_implement_trait)]
    pub fn not(self) -> Self {
        Expr::unary(UnaryOp::Not, self)
    }

    /// The conjunction of all parts (1 if there are none), as a balanced tree to keep the depth logarithmic.
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

    /// The value of the expression; `leaf` gives the value of each leaf.
    pub fn eval(&self, leaf: &mut impl FnMut(&L) -> i64) -> Result<i64, EvalError> {
        match self {
            Expr::Const(value) => Ok(*value),
            Expr::Leaf(l) => Ok(leaf(l)),
            Expr::Unary(op, operand) if op.wraps() => op.apply(operand.eval_low(leaf)?),
            Expr::Unary(op, operand) => op.apply(operand.eval(leaf)?),
            Expr::Binary(BinaryOp::And, left, right) => {
                Ok((left.eval(leaf)? != 0 && right.eval(leaf)? != 0) as i64)
            }
            Expr::Binary(BinaryOp::Or, left, right) => {
                Ok((left.eval(leaf)? != 0 || right.eval(leaf)? != 0) as i64)
            }
            Expr::Binary(op, left, right) => op.apply(left.eval(leaf)?, right.eval(leaf)?),
            Expr::If(condition, then, otherwise) => {
                if condition.eval(leaf)? != 0 {
                    then.eval(leaf)
                } else {
                    otherwise.eval(leaf)
                }
            }
        }
    }

    /// The low 64 bits of the value, even if the value itself does not fit: operators that wrap around depend only on these bits.
    fn eval_low(&self, leaf: &mut impl FnMut(&L) -> i64) -> Result<i64, EvalError> {
        match self {
            Expr::Unary(op, operand) if *op != UnaryOp::Not => op.apply_low(operand.eval_low(leaf)?),
            Expr::Binary(op, left, right) if op.keeps_low_bits() => {
                let low = left.eval_low(leaf)?;
                let right = if *op == BinaryOp::Shl { right.eval(leaf)? } else { right.eval_low(leaf)? };
                op.apply_low(low, right)
            }
            Expr::If(condition, then, otherwise) => {
                if condition.eval(leaf)? != 0 {
                    then.eval_low(leaf)
                } else {
                    otherwise.eval_low(leaf)
                }
            }
            other => other.eval(leaf),
        }
    }

    /// The value of an expression that does not depend on leaves; `None` if it depends on one or the evaluation fails. The unselected branch of an
    /// `If` is not evaluated, but both sides of `And` and `Or` are.
    pub fn constant(&self) -> Option<i64> {
        match self {
            Expr::Const(value) => Some(*value),
            Expr::Leaf(_) => None,
            Expr::Unary(op, operand) => op.apply(operand.constant()?).ok(),
            Expr::Binary(op, left, right) => op.apply(left.constant()?, right.constant()?).ok(),
            Expr::If(condition, then, otherwise) => {
                if condition.constant()? != 0 {
                    then.constant()
                } else {
                    otherwise.constant()
                }
            }
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
            Expr::If(condition, then, otherwise) => {
                [condition, then, otherwise].into_iter().for_each(|part| part.for_each_leaf(visit));
            }
        }
    }

    /// Replaces every leaf by the expression that `leaf` returns for it.
    pub fn map<M>(&self, leaf: &mut impl FnMut(&L) -> Expr<M>) -> Expr<M> {
        match self {
            Expr::Const(value) => Expr::Const(*value),
            Expr::Leaf(l) => leaf(l),
            Expr::Unary(op, operand) => Expr::unary(*op, operand.map(leaf)),
            Expr::Binary(op, left, right) => {
                let left = left.map(leaf);
                Expr::binary(*op, left, right.map(leaf))
            }
            Expr::If(condition, then, otherwise) => {
                let (condition, then) = (condition.map(leaf), then.map(leaf));
                Expr::choice(condition, then, otherwise.map(leaf))
            }
        }
    }
}
