//! Translates the instructions of one column of a litmus test to statements.
//!
//! Each flag is a register of its own. Only the flags that some instruction of the thread reads are computed.

use fencewright_fw::ast::{Expr, ExprKind, Name, Statement, StatementKind};
use fencewright_fw::build;
use fencewright_fw::names::Names;
use fencewright_program::{BinaryOp, Span, UnaryOp};

use super::Test;
use super::bounds::Bounds;
use super::mnemonic::{Action, Condition, FlagTest};
use super::parse::{Instruction, Operand};
use super::types::{Part, RegisterPart, mask, reduce, unsigned, wrap};

/// The register for a value read from memory, or for the first value while two registers are exchanged.
const LOADED: &str = "tmp";
/// The register for a second intermediate value.
const SPARE: &str = "tmp2";

/// The register for the zero flag.
const ZERO: &str = "ZF";
/// The register for the sign flag.
const SIGN: &str = "SF";
/// The register for the carry flag.
const CARRY: &str = "CF";
/// The register for the overflow flag.
const OVERFLOW: &str = "OF";
/// The register for the result of a signed comparison: whether the sign flag differs from the overflow flag.
const LESS: &str = "LF";

/// Names of the registers that the translation adds. No location gets one of these names.
pub(super) const SCRATCH_NAMES: &[&str] = &[LOADED, SPARE, ZERO, SIGN, CARRY, OVERFLOW, LESS];

/// The translation of a thread.
pub(super) struct Code<'t> {
    test: &'t Test,
    thread: usize,
    bounds: Bounds,
    /// The flags that some instruction reads.
    needed: Vec<&'static str>,
    /// The registers for flags and intermediate values used so far.
    scratch: Vec<(&'static str, Span)>,
    /// Labels for the next statement.
    pending: Vec<Name>,
    out: Vec<Statement>,
}

/// An arithmetic operation and its operands, before the result is wrapped to a width.
struct Computed {
    op: BinaryOp,
    left: Expr,
    right: Expr,
    bits: u32,
}

impl<'t> Code<'t> {
    /// Returns the statements for a thread, and the additional registers that these statements need.
    pub(super) fn translate(
        instructions: &[Instruction<'_>],
        thread: usize,
        test: &'t Test,
        bounds: Bounds,
    ) -> (Vec<Statement>, Vec<(&'static str, Span)>) {
        let needed = instructions.iter().flat_map(|i| needed_flags(i.action)).copied().collect();
        let (scratch, pending, out) = (Vec::new(), Vec::new(), Vec::new());
        let mut code = Code { test, thread, bounds, needed, scratch, pending, out };
        let mut names = Names::default();
        let labels: std::collections::HashMap<&str, String> = instructions
            .iter()
            .flat_map(|i| &i.labels)
            .map(|label| (label.text, names.fresh(label.text, "l", "_")))
            .collect();
        for instruction in instructions {
            let renamed = |l: &super::scan::Token<'_>| build::name(&labels[l.text], l.span);
            code.pending.extend(instruction.labels.iter().map(renamed));
            match instruction.label {
                Some(target) => code.jump(instruction, renamed(&target)),
                None => code.instruction(instruction),
            }
        }
        (code.out, code.scratch)
    }

    fn emit(&mut self, kind: StatementKind, span: Span) {
        let labels = std::mem::take(&mut self.pending);
        self.out.push(Statement { labels, kind, span });
    }

    fn emit_all(&mut self, statements: Vec<Statement>) {
        statements.into_iter().for_each(|s| self.emit(s.kind, s.span));
    }

    /// Records that an additional register is used, and returns its name.
    fn scratch(&mut self, name: &'static str, span: Span) -> &'static str {
        if !self.scratch.iter().any(|(known, _)| *known == name) {
            self.scratch.push((name, span));
        }
        name
    }

    fn assign(&mut self, target: &str, value: Expr, span: Span) {
        self.emit(StatementKind::Assign(build::scalar(target, span), value), span);
    }

    fn location(&self, number: usize) -> &'t str {
        &self.test.locations[number].name
    }

    /// The variable for a register, and its width in bits.
    fn whole(&self, part: RegisterPart) -> (String, u32) {
        let register = self.test.threads[self.thread].register(part.family);
        (register.name(), register.bits())
    }

    /// The value of a part of a register.
    fn read(&self, part: RegisterPart, span: Span) -> Expr {
        let (name, whole) = self.whole(part);
        let value = build::variable(name, span);
        match part.part {
            Part::Low(bits) if bits == whole || self.bounds.fit(bits) => value,
            Part::Low(bits) => wrap(value, bits, span),
            Part::High => {
                let second = build::binary(BinaryOp::BitAnd, value, build::int(mask(8) << 8, span), span);
                wrap(build::binary(BinaryOp::Div, second, build::int(1 << 8, span), span), 8, span)
            }
        }
    }

    /// Writes a value to a part of a register; the value is as wide as the part. Writing 32 bits zeroes the upper half; writing fewer leaves the
    /// other bits unchanged.
    fn write(&self, part: RegisterPart, value: Expr, span: Span) -> Statement {
        let (name, whole) = self.whole(part);
        let old = || build::variable(&name, span);
        let both = |kept: i64, new: Expr| {
            let kept = build::binary(BinaryOp::BitAnd, old(), build::int(kept, span), span);
            build::binary(BinaryOp::BitOr, kept, new, span)
        };
        let value = match part.part {
            Part::Low(bits) if bits == whole => value,
            Part::Low(32) if self.bounds.fit_and_positive(32) => value,
            Part::Low(32) => unsigned(value, 32, span),
            Part::Low(bits) => both(!mask(bits), unsigned(value, bits, span)),
            Part::High => {
                let new =
                    build::binary(BinaryOp::Mul, unsigned(value, 8, span), build::int(1 << 8, span), span);
                // In a variable of 16 bits, bit 15 is the sign, so the result is wrapped.
                wrap(both(!(mask(8) << 8), new), whole, span)
            }
        };
        build::assign(build::scalar(&name, span), value, span)
    }

    /// The value of an operand; a value in memory is loaded first.
    fn value(&mut self, operand: Operand, bits: u32, span: Span) -> Expr {
        match operand {
            Operand::Register(part) => self.read(part, span),
            Operand::Immediate(value) => build::int(reduce(value, bits), span),
            Operand::Memory(location) => {
                let loaded = self.scratch(LOADED, span);
                self.assign(loaded, build::variable(self.location(location), span), span);
                build::variable(loaded, span)
            }
        }
    }

    /// Writes a value to a register or to memory.
    fn store(&mut self, operand: Operand, value: Expr, span: Span) {
        let statement = match operand {
            Operand::Register(part) => self.write(part, value, span),
            Operand::Memory(location) => {
                build::assign(build::scalar(self.location(location), span), value, span)
            }
            Operand::Immediate(_) => unreachable!("a number is no target"),
        };
        self.emit(statement.kind, span);
    }

    fn instruction(&mut self, instruction: &Instruction<'_>) {
        let Instruction { action, ref operands, bits, locked, span, .. } = *instruction;
        let operand = |n: usize| operands[n];
        match action {
            Action::Fence => self.emit(StatementKind::Fence, span),
            Action::StoreFence => self.emit(StatementKind::StoreFence, span),
            // Labels at the end of a thread belong to an empty statement, which takes no step.
            Action::Nothing if bits == 0 => self.emit(StatementKind::Empty, span),
            Action::Nothing => self.emit(StatementKind::Skip, span),
            Action::Stop => self.emit(StatementKind::Stop, span),
            Action::Move => {
                let value = match operand(1) {
                    Operand::Memory(location) => build::variable(self.location(location), span),
                    source => self.value(source, bits, span),
                };
                let direct = match operand(0) {
                    Operand::Register(part) => {
                        self.whole(part).1 == bits || self.bounds.fit_and_positive(bits)
                    }
                    _ => true,
                };
                match operand(1) {
                    // The loaded value is masked or combined with the other bits of the target, so it is loaded into a scratch register first.
                    Operand::Memory(_) if !direct => {
                        let loaded = self.value(operand(1), bits, span);
                        self.store(operand(0), loaded, span);
                    }
                    _ => self.store(operand(0), value, span),
                }
            }
            Action::Extend { from, signed } => {
                let value = self.value(operand(1), from, span);
                let value = match signed || self.bounds.fit_and_positive(from) {
                    true => value,
                    false => unsigned(value, from, span),
                };
                self.store(operand(0), value, span);
            }
            Action::Exchange => self.exchange(operand(0), operand(1), span),
            Action::Binary(op) => self.arithmetic(op, operand(0), operand(1), bits, locked, true, span),
            Action::Count(op) => {
                self.arithmetic(op, operand(0), Operand::Immediate(1), bits, locked, false, span);
            }
            Action::Negate => {
                let negate = |value| (build::int(0, span), BinaryOp::Sub, value);
                self.update(operand(0), &negate, bits, locked, true, span);
            }
            Action::Invert => {
                let flags = std::mem::take(&mut self.needed);
                let invert = |value| (value, BinaryOp::BitXor, build::int(-1, span));
                self.update(operand(0), &invert, bits, locked, true, span);
                self.needed = flags;
            }
            Action::ExchangeAdd => self.exchange_and_add(operand(0), operand(1), bits, locked, span),
            Action::CompareExchange => self.compare_and_exchange(operand(0), operand(1), bits, locked, span),
            Action::Compare | Action::Test => {
                let left = self.value(operand(0), bits, span);
                let right = self.value(operand(1), bits, span);
                let op = if action == Action::Test { BinaryOp::BitAnd } else { BinaryOp::Sub };
                let flags = self.flags(&Computed { op, left, right, bits }, true, span);
                match flags.is_empty() {
                    // No flag is needed, so the instruction has no effect apart from its loads.
                    true => self.emit(StatementKind::Skip, span),
                    false => self.emit_all(flags),
                }
            }
            Action::MoveIf(condition) => self.move_if(condition, operand(0), operand(1), bits, span),
            Action::Set(condition) => {
                let value = self.condition(condition, span);
                self.store(operand(0), value, span);
            }
            Action::Jump(_) => unreachable!("jumps have labels"),
        }
    }

    /// `target := target op source`, and the flags: the carry flag only if `carries`.
    #[allow(clippy::too_many_arguments)]
    fn arithmetic(
        &mut self,
        op: BinaryOp,
        target: Operand,
        source: Operand,
        bits: u32,
        locked: bool,
        carries: bool,
        span: Span,
    ) {
        let source = self.value(source, bits, span);
        if let (true, Operand::Memory(location), BinaryOp::Add | BinaryOp::Sub) = (locked, target, op)
            && self.bounds.fit(bits)
        {
            let added = match (op, &source.kind) {
                (BinaryOp::Sub, ExprKind::Int(value)) => build::int(-value, span),
                (BinaryOp::Sub, _) => build::unary(UnaryOp::Neg, source.clone(), span),
                _ => source.clone(),
            };
            let fetch = ExprKind::FetchAdd(build::scalar(self.location(location), span), Box::new(added));
            let fetch = Expr { kind: fetch, span };
            if self.needed.is_empty() {
                self.emit(StatementKind::Expr(fetch), span);
                return;
            }
            let loaded = self.scratch(LOADED, span);
            self.assign(loaded, fetch, span);
            let left = build::variable(loaded, span);
            let flags = self.flags(&Computed { op, left, right: source, bits }, carries, span);
            self.emit_all(flags);
            return;
        }
        let operation = |value| (value, op, source.clone());
        self.update(target, &operation, bits, locked, carries, span);
    }

    /// `target := operation(target)`, and the flags, which are computed from the old value: the carry flag only if `carries`.
    fn update(
        &mut self,
        target: Operand,
        operation: &dyn Fn(Expr) -> (Expr, BinaryOp, Expr),
        bits: u32,
        locked: bool,
        carries: bool,
        span: Span,
    ) {
        let computed = |old: Expr| {
            let (left, op, right) = operation(old);
            Computed { op, left, right, bits }
        };
        match target {
            Operand::Register(part) => {
                let computed = computed(self.read(part, span));
                let result = self.result(&computed, span);
                let flags = self.flags(&computed, carries, span);
                self.emit_all(flags);
                self.store(target, result, span);
            }
            Operand::Memory(location) => {
                let (loaded, name) = (self.scratch(LOADED, span), self.location(location));
                let computed = computed(build::variable(loaded, span));
                let load = build::assign(build::scalar(loaded, span), build::variable(name, span), span);
                let result = self.result(&computed, span);
                let store = build::assign(build::scalar(name, span), result, span);
                if locked {
                    self.emit(StatementKind::Atomic(build::block(vec![load, store], span)), span);
                } else {
                    self.emit_all(vec![load, store]);
                }
                let flags = self.flags(&computed, carries, span);
                self.emit_all(flags);
            }
            Operand::Immediate(_) => unreachable!("a number is no target"),
        }
    }

    /// The result, wrapped to the width of the operation unless it certainly fits.
    fn result(&self, computed: &Computed, span: Span) -> Expr {
        let Computed { op, left, right, bits } = computed;
        let exact = match (&left.kind, op) {
            (ExprKind::Int(0), BinaryOp::Sub) => build::unary(UnaryOp::Neg, right.clone(), span),
            _ => build::binary(*op, left.clone(), right.clone(), span),
        };
        match matches!(op, BinaryOp::Add | BinaryOp::Sub) && !self.bounds.fit(*bits) {
            true => wrap(exact, *bits, span),
            false => exact,
        }
    }

    /// The statements that set the flags that some instruction of the thread reads. The carry flag is set only if `carries`: INC and DEC do not
    /// change it.
    fn flags(&mut self, computed: &Computed, carries: bool, span: Span) -> Vec<Statement> {
        let Computed { op, left, right, bits } = computed;
        let binary = |op, a: &Expr, b: &Expr| build::binary(op, a.clone(), b.clone(), span);
        let zero = build::int(0, span);
        let result = self.result(computed, span);
        let exact = binary(*op, left, right);
        let is_arithmetic = matches!(op, BinaryOp::Add | BinaryOp::Sub);
        let mut statements = Vec::new();
        for flag in [ZERO, SIGN, CARRY, OVERFLOW, LESS] {
            if !self.needed.contains(&flag) || (flag == CARRY && !carries) {
                continue;
            }
            let value = match (flag, op) {
                (ZERO, BinaryOp::Sub) => binary(BinaryOp::Eq, left, right),
                (ZERO, _) => binary(BinaryOp::Eq, &result, &zero),
                (SIGN, _) => binary(BinaryOp::Lt, &result, &zero),
                (CARRY | OVERFLOW, _) if !is_arithmetic => zero.clone(),
                (CARRY, BinaryOp::Sub) => self.below(left, right, *bits, span),
                // There is a carry exactly if the wrapped result, as an unsigned number, is less than an operand.
                (CARRY, _) => self.below(&result, left, *bits, span),
                (OVERFLOW, _) => binary(BinaryOp::Ne, &exact, &result),
                (_, BinaryOp::Sub) => binary(BinaryOp::Lt, left, right),
                _ => binary(BinaryOp::Lt, &exact, &zero),
            };
            let name = self.scratch(flag, span);
            statements.push(build::assign(build::scalar(name, span), value, span));
        }
        statements
    }

    /// Whether `left` is less than `right`, both as unsigned numbers.
    fn below(&self, left: &Expr, right: &Expr, bits: u32, span: Span) -> Expr {
        let (left, right) = (left.clone(), right.clone());
        if self.bounds.fit_and_positive(bits) {
            return build::binary(BinaryOp::Lt, left, right, span);
        }
        let order = |e| match bits {
            // The signed order of two numbers whose highest bits are inverted is the unsigned order of the original numbers.
            64 => {
                let least =
                    build::binary(BinaryOp::Sub, build::int(-i64::MAX, span), build::int(1, span), span);
                build::binary(BinaryOp::BitXor, e, least, span)
            }
            _ => unsigned(e, bits, span),
        };
        build::binary(BinaryOp::Lt, order(left), order(right), span)
    }

    /// Two registers, or a register and memory, exchange their values.
    fn exchange(&mut self, one: Operand, other: Operand, span: Span) {
        match (one, other) {
            (Operand::Memory(location), Operand::Register(part))
            | (Operand::Register(part), Operand::Memory(location)) => {
                let (name, whole) = self.whole(part);
                let place = build::scalar(self.location(location), span);
                let swap = |new| Expr { kind: ExprKind::Swap(place, Box::new(new)), span };
                if whole == part.bits() {
                    self.assign(&name, swap(build::variable(&name, span)), span);
                    return;
                }
                let loaded = self.scratch(LOADED, span);
                self.assign(loaded, swap(self.read(part, span)), span);
                self.store(Operand::Register(part), build::variable(loaded, span), span);
            }
            (Operand::Register(one), Operand::Register(other)) => {
                let loaded = self.scratch(LOADED, span);
                self.assign(loaded, self.read(one, span), span);
                self.store(Operand::Register(one), self.read(other, span), span);
                self.store(Operand::Register(other), build::variable(loaded, span), span);
            }
            _ => unreachable!("an exchange has a register"),
        }
    }

    /// XADD: the source gets the old value of the target, the target gets the sum of both old values.
    fn exchange_and_add(&mut self, target: Operand, source: Operand, bits: u32, locked: bool, span: Span) {
        let Operand::Register(source) = source else { unreachable!("the source is a register") };
        let variable = |name: &str| build::variable(name, span);
        let (name, whole) = self.whole(source);
        if let (Operand::Memory(location), true) = (target, locked)
            && self.needed.is_empty()
            && self.bounds.fit(bits)
            && whole == bits
        {
            let place = build::scalar(self.location(location), span);
            let fetch = Expr { kind: ExprKind::FetchAdd(place, Box::new(variable(&name))), span };
            self.assign(&name, fetch, span);
            return;
        }
        let (loaded, spare) = (self.scratch(LOADED, span), self.scratch(SPARE, span));
        self.assign(spare, self.read(source, span), span);
        let (left, right) = (variable(loaded), variable(spare));
        let computed = Computed { op: BinaryOp::Add, left, right, bits };
        let result = self.result(&computed, span);
        match target {
            Operand::Memory(location) => {
                let name = self.location(location);
                let load = build::assign(build::scalar(loaded, span), variable(name), span);
                let store = build::assign(build::scalar(name, span), result, span);
                if locked {
                    self.emit(StatementKind::Atomic(build::block(vec![load, store], span)), span);
                } else {
                    self.emit_all(vec![load, store]);
                }
                self.store(Operand::Register(source), variable(loaded), span);
            }
            Operand::Register(part) => {
                self.assign(loaded, self.read(part, span), span);
                self.store(Operand::Register(source), variable(loaded), span);
                self.store(target, result, span);
            }
            Operand::Immediate(_) => unreachable!("a number is no target"),
        }
        let flags = self.flags(&computed, true, span);
        self.emit_all(flags);
    }

    /// CMPXCHG: if the target equals the accumulator (`EAX`), the target gets the value of `new`; otherwise the accumulator gets the value of the
    /// target.
    fn compare_and_exchange(&mut self, target: Operand, new: Operand, bits: u32, locked: bool, span: Span) {
        let (Operand::Memory(location), Operand::Register(new)) = (target, new) else {
            unreachable!("a location and a register")
        };
        let accumulator = RegisterPart::accumulator(bits);
        let (loaded, name) = (self.scratch(LOADED, span), self.location(location));
        let old = self.read(accumulator, span);
        let computed =
            Computed { op: BinaryOp::Sub, left: old.clone(), right: build::variable(loaded, span), bits };
        let mut steps = vec![build::assign(build::scalar(loaded, span), build::variable(name, span), span)];
        steps.extend(self.flags(&computed, true, span));
        let equal = build::binary(BinaryOp::Eq, build::variable(loaded, span), old, span);
        let store = build::assign(build::scalar(name, span), self.read(new, span), span);
        let failure = self.write(accumulator, build::variable(loaded, span), span);
        let (success, failure) = (build::block(vec![store], span), build::block(vec![failure], span));
        steps.push(build::statement(StatementKind::If(equal, success, Some(failure)), span));
        if locked {
            self.emit(StatementKind::Atomic(build::block(steps, span)), span);
        } else {
            self.emit_all(steps);
        }
    }

    /// CMOV always reads its source, and with 32 bits zeroes the upper half of the target, even if the condition is false.
    fn move_if(&mut self, condition: Condition, target: Operand, source: Operand, bits: u32, span: Span) {
        let Operand::Register(part) = target else { unreachable!("the target is a register") };
        let value = self.value(source, bits, span);
        let condition = self.condition(condition, span);
        let then = build::block(vec![self.write(part, value, span)], span);
        let otherwise = (bits == 32 && self.whole(part).1 == 64 && !self.bounds.fit_and_positive(32))
            .then(|| build::block(vec![self.write(part, self.read(part, span), span)], span));
        self.emit(StatementKind::If(condition, then, otherwise), span);
    }

    fn jump(&mut self, instruction: &Instruction<'_>, label: Name) {
        let span = instruction.span;
        match instruction.action {
            Action::Jump(Some(condition)) => {
                let condition = self.condition(condition, span);
                let jump = build::block(vec![build::goto(&label.text, label.span)], span);
                self.emit(StatementKind::If(condition, jump, None), span);
            }
            _ => self.emit(StatementKind::Goto(label), span),
        }
    }

    /// The value of a condition on the flags: 1 or 0.
    fn condition(&mut self, condition: Condition, span: Span) -> Expr {
        let mut flag = |name| build::variable(self.scratch(name, span), span);
        let holds = match condition.test {
            FlagTest::Zero => flag(ZERO),
            FlagTest::Sign => flag(SIGN),
            FlagTest::Carry => flag(CARRY),
            FlagTest::Overflow => flag(OVERFLOW),
            FlagTest::Less => flag(LESS),
            FlagTest::LessOrEqual => build::binary(BinaryOp::Or, flag(LESS), flag(ZERO), span),
            FlagTest::BelowOrEqual => build::binary(BinaryOp::Or, flag(CARRY), flag(ZERO), span),
        };
        if condition.negated { build::unary(UnaryOp::Not, holds, span) } else { holds }
    }
}

/// The flags that an instruction reads.
fn needed_flags(action: Action) -> &'static [&'static str] {
    let (Action::Jump(Some(condition)) | Action::MoveIf(condition) | Action::Set(condition)) = action else {
        return &[];
    };
    match condition.test {
        FlagTest::Zero => &[ZERO],
        FlagTest::Sign => &[SIGN],
        FlagTest::Carry => &[CARRY],
        FlagTest::Overflow => &[OVERFLOW],
        FlagTest::Less => &[LESS],
        FlagTest::LessOrEqual => &[LESS, ZERO],
        FlagTest::BelowOrEqual => &[CARRY, ZERO],
    }
}
