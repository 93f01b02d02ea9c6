//! The code for starts and ends of threads. It is emitted after all threads have been elaborated, because only then is known which threads are
//! joined.

use fencewright_code::core::{
    Access, Core, Label, ObjectId, Register, RegisterInfo, Stmt, StmtKind, Thread, ThreadNumber, Value,
};
use fencewright_code::ends::Ends;
use fencewright_program::{BinaryOp, Span};

use super::super::{Elaborator, Finished, RegisterState, Result, Writer};
use super::{Note, int};

impl Elaborator<'_> {
    /// The result of an attempt, after all threads have been elaborated.
    pub(in super::super) fn finished(mut self) -> Result<Finished> {
        self.finish_threads()?;
        let core = self.core();
        Ok(Finished { core, nodes: self.nodes, dispatches: self.dispatches, sizes: self.sizes })
    }

    /// Moves the core code of the elaborated threads out of the elaborator.
    pub(in super::super) fn core(&mut self) -> Core {
        let mut threads = Vec::new();
        for mut writer in std::mem::take(&mut self.done) {
            let registers = writer.registers.iter().map(|state| RegisterInfo {
                name: state.name.to_string(),
                initial: None,
                points: state.points,
                about: state.about,
            });
            threads.push(Thread {
                name: self.thread_name(writer.number),
                registers: registers.collect(),
                code: writer.blocks.pop().unwrap_or_default(),
                span: writer.span,
                late: self.is_late(writer.number),
                function: self.function_of(writer.number),
                creator: self.instances[writer.number.0 as usize].state.creator(),
                started: self.instances[writer.number.0 as usize].state.started(),
            });
        }
        Core {
            objects: std::mem::take(&mut self.objects),
            threads,
            compared: std::mem::take(&mut self.compared),
            functions: self.unit.functions.iter().map(|function| function.name.to_string()).collect(),
            calls: std::mem::take(&mut self.calls),
            warnings: std::mem::take(&mut self.warnings),
            assumed: std::mem::take(&mut self.functions.assumed),
            ends: Ends::default(),
        }
    }

    /// The name of a thread: the name of its function, followed by a number if several threads execute this function.
    pub(in super::super) fn thread_name(&self, number: ThreadNumber) -> String {
        let function = |n: usize| self.instances[n].start.function;
        let own = function(number.0 as usize);
        let name = self.function_of(number);
        let others = (1..self.instances.len()).filter(|n| function(*n) == own).count();
        match number.0 > 0 && others > 1 {
            true => format!("{name}_{}", (1..=number.0 as usize).filter(|n| function(*n) == own).count()),
            false => name,
        }
    }

    /// The name of the function that a thread executes.
    pub(in super::super) fn function_of(&self, number: ThreadNumber) -> String {
        let function = self.instances[number.0 as usize].start.function;
        self.unit.functions[function.index()].name.to_string()
    }

    /// Emits the starts and ends of all threads.
    pub(in super::super) fn finish_threads(&mut self) -> Result<()> {
        self.merge_starts();
        self.keep_detached();
        let mut writers = std::mem::take(&mut self.done);
        for writer in &mut writers {
            std::mem::swap(&mut self.writer, writer);
            let body = self.writer.blocks.pop().unwrap_or_default();
            self.writer.blocks.push(Vec::new());
            self.writer.reachable = true;
            let done = self.finish_thread(body);
            std::mem::swap(&mut self.writer, writer);
            done?;
        }
        self.done = writers;
        Ok(())
    }

    fn finish_thread(&mut self, body: Vec<Stmt>) -> Result<()> {
        let number = self.thread().0 as usize;
        let span = self.writer.span;
        let children: Vec<(Register, ObjectId)> = self
            .instances
            .iter()
            .filter_map(|instance| Some((instance.state.created?, instance.state.flag?)))
            .filter(|((creator, _), _)| creator.0 as usize == number)
            .map(|((_, register), flag)| (register, flag))
            .collect();
        for (register, _) in &children {
            self.emit(StmtKind::Assign(*register, Value::Number(0)), span);
        }
        let never = self.label();
        let state = &self.instances[number].state;
        let (flag, uncertain) = (state.flag, state.created.is_some());
        if let Some(flag) = flag {
            let register = self.temporary("start", &int());
            let place = self.location(flag, &[]);
            let set = Value::binary(BinaryOp::Ne, Value::Register(register), Value::Number(0));
            self.emit_await(register, place, set, Access::Own, span);
            if uncertain {
                let not_created = Value::binary(BinaryOp::Eq, Value::Register(register), Value::Number(2));
                let gone = vec![Stmt { kind: StmtKind::Goto(never), span }];
                self.emit(StmtKind::If(not_created, gone, Vec::new()), span);
            }
        }
        self.block().extend(body);
        let end = self.writer.end;
        self.emit(StmtKind::Label(end), span);
        self.end_reader(span);
        self.say_done(number, span)?;
        self.emit(StmtKind::Label(never), span);
        let mut flags: Vec<ObjectId> = Vec::new();
        for (register, flag) in children {
            if flags.contains(&flag) {
                continue;
            }
            flags.push(flag);
            let place = self.location(flag, &[]);
            let missing = Value::binary(BinaryOp::Eq, Value::Register(register), Value::Number(0));
            let store = Stmt { kind: StmtKind::Store(place, Value::Number(2), Access::Own), span };
            self.emit(StmtKind::If(missing, vec![store], Vec::new()), span);
        }
        if self.writer.exits {
            self.emit(StmtKind::Stop, span);
            self.emit(StmtKind::Label(Label::EXIT), span);
            self.emit(StmtKind::Goto(Label::EXIT), span);
        }
        Ok(())
    }

    /// If the thread may be joined, emits the step that stores its result and sets the flag which says that it has ended.
    fn say_done(&mut self, number: usize, span: Span) -> Result<()> {
        let state = &self.instances[number].state;
        let all = self.shared.dynamic && number > 0;
        let (joined, wanted) =
            (state.joined || all, state.wanted || (all && self.shared.notes.get(Note::Result).is_some()));
        if !joined {
            return Ok(());
        }
        let mut steps = Vec::new();
        if let (true, Some(register)) = (wanted, self.writer.result) {
            let RegisterState { points, .. } = self.writer.registers[register.0 as usize];
            let ty = super::pointer();
            let place = self.thread_note(Note::Result, number, &ty, span);
            if let Some(points) = points {
                let pointee = self.nodes.pointee(place.node);
                self.unify(pointee, points, span)?;
            }
            steps.push(Stmt { kind: StmtKind::Store(place, Value::Register(register), Access::Own), span });
        }
        let place = self.thread_note(Note::Done, number, &int(), span);
        steps.push(Stmt { kind: StmtKind::Store(place, Value::Number(1), Access::Own), span });
        self.emit(StmtKind::Atomic(steps), span);
        Ok(())
    }

    /// Merges thread starts that follow each other without a visible effect in between, so that these threads share one flag.
    fn merge_starts(&mut self) {
        let flags: Vec<ObjectId> = self.instances.iter().filter_map(|instance| instance.state.flag).collect();
        let mut renamed = Vec::new();
        for writer in &mut self.done {
            let Writer { blocks, .. } = writer;
            for block in blocks {
                let mut last = None;
                merge(block, &flags, &mut last, &mut renamed);
                settle(block);
            }
        }
        // The flag that replaces another flag may have been replaced itself, so the replacements are followed to the last flag.
        for instance in &mut self.instances {
            while let Some((_, to)) = renamed.iter().find(|(from, _)| Some(*from) == instance.state.flag) {
                instance.state.flag = Some(*to);
            }
        }
    }
}

/// The flag that a statement sets if this statement starts a thread.
fn started(statement: &Stmt, flags: &[ObjectId]) -> Option<ObjectId> {
    let StmtKind::Atomic(steps) = &statement.kind else { return None };
    let StmtKind::Store(place, Value::Number(1), Access::Own) = &steps.last()?.kind else { return None };
    match place.base {
        super::Base::Object(object) if flags.contains(&object) => Some(object),
        _ => None,
    }
}

/// Removes every start that is followed by another start without a visible effect in between; `last` is the next start after `code`.
fn merge(
    code: &mut [Stmt],
    flags: &[ObjectId],
    last: &mut Option<Pending>,
    renamed: &mut Vec<(ObjectId, ObjectId)>,
) {
    // The statements are visited backwards, so that the later start which replaces a start is already known.
    for statement in code.iter_mut().rev() {
        if let Some(flag) = started(statement, flags) {
            if let Some(later) = last.as_mut() {
                renamed.push((flag, later.flag));
                if let StmtKind::Atomic(steps) = &mut statement.kind {
                    steps.pop();
                }
            } else {
                *last = Some(Pending { flag });
            }
            continue;
        }
        match &mut statement.kind {
            StmtKind::Assign(..) => {}
            StmtKind::Steps(inner) | StmtKind::Block(inner) => merge(inner, flags, last, renamed),
            StmtKind::If(_, then, otherwise) => {
                merge(then, flags, &mut None, renamed);
                merge(otherwise, flags, &mut None, renamed);
                *last = None;
            }
            StmtKind::Loop(inner) => {
                merge(inner, flags, &mut None, renamed);
                *last = None;
            }
            _ => *last = None,
        }
    }
}

/// The start that replaces those before it.
struct Pending {
    flag: ObjectId,
}

/// Removes empty atomic steps.
fn settle(code: &mut Vec<Stmt>) {
    code.retain_mut(|statement| match &mut statement.kind {
        StmtKind::Atomic(steps) => !steps.is_empty(),
        StmtKind::Steps(inner) | StmtKind::Block(inner) => {
            settle(inner);
            !inner.is_empty()
        }
        StmtKind::If(_, then, otherwise) => {
            settle(then);
            settle(otherwise);
            true
        }
        StmtKind::Loop(inner) => {
            settle(inner);
            true
        }
        _ => true,
    });
}
