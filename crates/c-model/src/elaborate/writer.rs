//! The current thread: its registers, and the statements emitted for it.

use std::collections::BTreeSet;
use std::rc::Rc;

use fencewright_c::typed::tree::{Type, TypeKind};
use fencewright_code::core::{
    About, Access, Label, Location, NodeId, ObjectEvent, Register, Stmt, StmtKind, ThreadNumber, Value,
};
use fencewright_code::numbers::{Operand, Range, Sink};
use fencewright_program::Span;

use super::env::Env;
use super::frames::Frame;
use super::{Elaborator, Phase, Result};

/// The state of the thread being elaborated.
#[derive(Debug)]
pub(super) struct Writer {
    pub number: ThreadNumber,
    pub registers: Vec<RegisterState>,
    pub labels: u32,
    /// The open blocks, innermost last.
    pub blocks: Vec<Vec<Stmt>>,
    pub env: Env,
    /// Whether control may reach the current point.
    pub reachable: bool,
    pub frames: Vec<Frame>,
    /// The number of enclosing loops of core code, plus the number of enclosing backward jumps; unrolled loops do not count.
    pub loops: usize,
    /// The number of enclosing branches.
    pub branches: usize,
    /// The nesting depth of functions, loops and `switch`es.
    pub level: usize,
    /// The nesting levels of functions, loops and `switch`es to whose end a conditional jump leads. The code up to that end is executed only if the
    /// jump is not taken.
    pub pending: BTreeSet<usize>,
    /// The threads that this thread is known to have joined.
    pub joined: BTreeSet<usize>,
    /// The label at the end of the thread.
    pub end: Label,
    /// Whether the thread may end the process.
    pub exits: bool,
    pub result: Option<Register>,
    /// Whether the code belongs to a function that is called because the thread ends.
    pub ending: bool,
    /// Whether the code belongs to a function that `pthread_once` calls.
    pub in_once: bool,
    /// The number of nested read-side critical sections of RCU that the thread is in; `None` if it does not use RCU.
    pub nesting: Option<Register>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(super) struct RegisterState {
    pub name: Rc<str>,
    pub range: Range,
    pub points: Option<NodeId>,
    /// Describes the register in reports.
    pub about: About,
}

impl Writer {
    pub fn new(number: ThreadNumber, span: Span) -> Self {
        Writer {
            number,
            registers: Vec::new(),
            labels: 1,
            blocks: vec![Vec::new()],
            env: Env::default(),
            reachable: true,
            frames: Vec::new(),
            loops: 0,
            branches: 0,
            level: 1,
            pending: BTreeSet::new(),
            joined: BTreeSet::new(),
            end: Label(0),
            exits: false,
            result: None,
            ending: false,
            in_once: false,
            nesting: None,
            span,
        }
    }
}

impl Elaborator<'_> {
    /// Emits a statement. While `main` is executed at translation time, a statement without effect is left out, and any other ends that execution.
    pub fn emit(&mut self, kind: StmtKind, span: Span) {
        if !self.writer.reachable {
            return;
        }
        if self.executing() {
            match kind {
                StmtKind::Fence | StmtKind::StoreFence => {
                    if self.phase == Phase::Creating {
                        self.keep_initial();
                    }
                    return;
                }
                StmtKind::Assert(Value::Number(1..), _) | StmtKind::Assume(Value::Number(1..)) => return,
                // Any other statement may wait for other threads or have an effect that they can observe, so the execution at translation time ends.
                _ if self.phase == Phase::Creating => self.run(),
                _ => {
                    self.refuted = true;
                    return;
                }
            }
        }
        match &kind {
            StmtKind::Load(_, _, access) => {
                self.accesses.reads += 1;
                self.accesses.ordered += usize::from(matches!(access, Access::Volatile | Access::Atomic));
            }
            StmtKind::Store(..) | StmtKind::Update { .. } | StmtKind::Atomic(_) => self.accesses.writes += 1,
            // Freed memory counts as escaped, so that later accesses to it are emitted and checked.
            StmtKind::Special(ObjectEvent::Free(value, ..)) => self.publish(&value.clone()),
            _ => {}
        }
        self.statements += 1;
        let span = self.here(span);
        self.block().push(Stmt { kind, span });
    }

    /// Emits an await: repeatedly loads a place into a register until the register satisfies the condition `until`.
    pub fn emit_await(
        &mut self,
        register: Register,
        place: Location,
        until: Value,
        access: Access,
        span: Span,
    ) {
        self.emit(StmtKind::Await { register, place, until, access, waiting: () }, span);
    }

    pub(super) fn block(&mut self) -> &mut Vec<Stmt> {
        self.writer.blocks.last_mut().expect("a block is open")
    }

    /// A new register for an intermediate value.
    pub fn temporary(&mut self, name: &str, ty: &Type) -> Register {
        self.register(name.into(), ty)
    }

    pub(super) fn register(&mut self, name: Rc<str>, ty: &Type) -> Register {
        let register = Register(self.writer.registers.len() as u32);
        let (range, points) = match &ty.kind {
            TypeKind::Integer(arithmetic) => {
                let wide = arithmetic.greatest() > u32::MAX.into();
                ((arithmetic.least(), arithmetic.greatest()), wide.then(|| self.nodes.unknown()))
            }
            _ => ((0, u64::MAX.into()), Some(self.nodes.unknown())),
        };
        let about = About { variable: false, pointer: matches!(ty.kind, TypeKind::Pointer(_)) };
        self.writer.registers.push(RegisterState { name, range, points, about });
        register
    }

    /// A register for a variable of the source program.
    pub(super) fn variable(&mut self, name: Rc<str>, ty: &Type) -> Register {
        let register = self.register(name, ty);
        self.writer.registers[register.0 as usize].about.variable = true;
        register
    }

    pub(super) fn label(&mut self) -> Label {
        self.writer.labels += 1;
        Label(self.writer.labels - 1)
    }

    /// The value of a register: the constant that it is known to hold, or the register itself.
    pub fn register_value(&mut self, register: Register) -> Operand {
        let state = &self.writer.registers[register.0 as usize];
        let fact = self.writer.env.registers.get(&register);
        let (range, points) = (fact.map_or(state.range, |fact| fact.range), state.points);
        if let Some(known) = fact.and_then(|fact| fact.known.clone())
            && let Some(operand) = self.known_operand(&known, range)
        {
            return operand;
        }
        let range = if range.0 < state_range(&self.writer, register).0 {
            state_range(&self.writer, register)
        } else {
            range
        };
        Operand { points, ..Operand::new(Value::Register(register), range) }
    }

    /// Runs `work` and returns the statements that it emits.
    pub(super) fn written(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<Vec<Stmt>> {
        self.writer.blocks.push(Vec::new());
        let result = work(self);
        let block = self.writer.blocks.pop().expect("it was pushed");
        result.map(|()| block)
    }

    /// Groups the statements that `work` emits for one statement of C.
    pub(super) fn group(&mut self, span: Span, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let mut steps = self.written(work)?;
        match steps.as_slice() {
            [] => {}
            [Stmt { kind: StmtKind::Block(_), .. }] => {
                if let Some(Stmt { kind: StmtKind::Block(inner), .. }) = steps.pop() {
                    self.block().extend(inner);
                }
            }
            [_] => {
                steps[0].span = self.here(span);
                self.block().append(&mut steps);
            }
            _ => {
                let span = self.here(span);
                self.block().push(Stmt { kind: StmtKind::Steps(steps), span });
            }
        }
        Ok(())
    }
}

fn state_range(writer: &Writer, register: Register) -> Range {
    writer.registers[register.0 as usize].range
}

impl Sink for Elaborator<'_> {
    fn check(&mut self, condition: Value, fault: &'static str) {
        let span = self.writer.frames.last().map_or(Span::default(), |frame| frame.at);
        self.emit(StmtKind::Assert(condition, fault.to_string()), span);
    }

    fn name(&mut self, value: Value) -> Value {
        let span = self.writer.frames.last().map_or(Span::default(), |frame| frame.at);
        let registers = &self.writer.registers;
        let points = value.pointed_to(&|register| registers[register.0 as usize].points).first().copied();
        let range = (i64::MIN.into(), u64::MAX.into());
        let register = Register(self.writer.registers.len() as u32);
        self.writer.registers.push(RegisterState {
            name: "t".into(),
            range,
            points,
            about: About::default(),
        });
        self.kept(&value);
        self.emit(StmtKind::Assign(register, value), span);
        Value::Register(register)
    }
}
