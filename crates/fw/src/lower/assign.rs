//! Lowers assignments, choices of values, and mutexes: the statements that write to registers or memory.

use fencewright_program::{Action, BinaryOp, Expr, Fault, Op, Range, RegisterId, Span};
use fencewright_text::Diagnostic;

use super::array::Target;
use super::expression::{Before, Pure};
use super::graph::{Gap, Node};
use super::thread::{ThreadLowering, Within};
use crate::ast::{self, Place};

type Result<T> = std::result::Result<T, Diagnostic>;

impl<'a> ThreadLowering<'a, '_> {
    pub fn assign(&mut self, place: &'a Place, value: &'a ast::Expr, gap: Gap) -> Result<Node> {
        let Gap { at, next, span } = gap;
        let mut before = Vec::new();
        match self.local(&place.name.text) {
            Some(binding) => {
                let target = self.target(place, binding, &mut before)?;
                if let Target::Register(register) = target {
                    return self.assign_register(register, value, gap);
                }
                let value = self.flatten(value, &mut before)?;
                let wraps = self.types.get(&target.first()).copied();
                let value = self.fitted(value, wraps, &before);
                self.write_element(target, before, gap, |r| Op::Assign(r, value.clone()))
            }
            None => {
                if self.constants.get(&place.name.text).is_some() {
                    return Err(Diagnostic::new(
                        place.name.span,
                        format!("`{}` is a constant", place.name.text),
                    ));
                }
                let address = self.address(place, &mut before)?;
                let value = self.flatten(value, &mut before)?;
                let value = self.fitted(value, self.type_of(&address), &before);
                self.store_allowed(span)?;
                self.precede(before, at, |this, at| {
                    Ok(this.graph.arc(at, next, Action::Op(Op::Store(address, value)), span))
                })
            }
        }
    }

    /// `r = value`. If the value is a single load, read-modify-write operation or call, and needs no check or wrapping by a further step, this
    /// operation writes `r` directly, without a temporary.
    pub fn assign_register(&mut self, register: RegisterId, value: &'a ast::Expr, gap: Gap) -> Result<Node> {
        let Gap { at, next, span } = gap;
        let mut before = Vec::new();
        let pure = self.flatten(value, &mut before)?;
        let wraps = self.types.get(&register).copied();
        let plain = self.registers[register.index()].range.is_none() && wraps.is_none();
        let fitted = self.fitted(pure.clone(), wraps, &before);
        match (&pure, before.last_mut()) {
            (Expr::Leaf(r), Some(Before::Load(target, ..))) if r == target && fitted == pure => {
                *target = register;
                self.precede(before, at, |_, _| Ok(next))
            }
            // Each `return` of the procedure wraps the result to the type of the register that it assigns.
            (Expr::Leaf(r), Some(Before::Call(target, ..))) if r == target => {
                *target = register;
                self.precede(before, at, |_, _| Ok(next))
            }
            (Expr::Leaf(r), Some(Before::Rmw(target, ..))) if r == target && plain => {
                *target = register;
                self.precede(before, at, |_, _| Ok(next))
            }
            _ => self.precede(before, at, |this, at| {
                Ok(this.graph.arc(at, next, Action::Op(Op::Assign(register, fitted)), span))
            }),
        }
    }

    pub fn havoc(&mut self, place: &'a Place, range: Option<&ast::RangeExpr>, gap: Gap) -> Result<Node> {
        let Gap { at, next, span } = gap;
        let range = range.map(|r| self.constants.nonempty_range(r)).transpose()?;
        let mut before = Vec::new();
        if let Some(binding) = self.local(&place.name.text) {
            let target = self.target(place, binding, &mut before)?;
            let wraps = self.types.get(&target.first()).copied();
            let range = self.fitted_range(range, wraps, span)?;
            let range = range.or(self.registers[target.first().index()].range);
            return self.write_element(target, before, gap, |r| Op::Havoc(r, range));
        }
        let address = self.address(place, &mut before)?;
        let range = self.fitted_range(range, self.type_of(&address), span)?;
        let range: Option<Range> = range.or(self.variable(address.variable).range);
        self.store_allowed(span)?;
        let value = self.temporary();
        self.precede(before, at, |this, at| {
            let store = this.graph.arc(None, next, Action::Op(Op::Store(address, Pure::Leaf(value))), span);
            Ok(this.graph.arc(at, store, Action::Op(Op::Havoc(value, range)), span))
        })
    }

    /// `lock m` and `unlock m`: an atomic step on a memory cell that holds the number of the thread that has locked the mutex, or 0.
    pub fn mutex(&mut self, mutex: &'a Place, takes: bool, gap: Gap) -> Result<Node> {
        let Gap { at, next, span } = gap;
        let mut before = Vec::new();
        let address = self.mutex_address(mutex, &mut before)?;
        let (holder, own) = (self.temporary(), self.number());
        let is = |value| Expr::binary(BinaryOp::Eq, Expr::Leaf(holder), Expr::Const(value));
        let (condition, value) = match takes {
            true => (Op::Assume(is(0)), own),
            false => (Op::Assert(is(own), Fault::Mutex), 0),
        };
        let load = Op::Load(holder, address.clone());
        let ops = vec![load, condition, Op::Store(address, Expr::Const(value))];
        self.precede(before, at, |this, at| {
            Ok(this.graph.arc(at, next, Action::Atomic { ops, drains: true }, span))
        })
    }

    fn store_allowed(&self, span: Span) -> Result<()> {
        match self.within == Within::Snapshot {
            true => {
                Err(Diagnostic::new(span, "a `snapshot` block cannot store").help("use `atomic { ... }`"))
            }
            false => Ok(()),
        }
    }
}
