//! The trait of machines: control states, and steps between them that perform commands on integer cells.
//!
//! A search needs only this trait to explore a machine, with any domain. Certificates speak about the machines of this crate only; an engine may
//! define further machines.

use std::fmt;
use std::hash::Hash;

use fencewright_program::{EdgeId, Expr, Property, Span, ThreadId};

use crate::cells::CellId;
use crate::control::Control;

/// An effect of a step on cells; the commands of a step are performed in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Continues only if the value is not 0.
    Assume(Expr<CellId>),
    /// `cell := value`.
    Assign(CellId, Expr<CellId>),
    /// `cell := *`.
    Havoc(CellId),
    /// Adds the value to those that the summary cell ([`Cells`](crate::Cells)) stands for.
    Fold(CellId, Expr<CellId>),
    /// The first cell takes one of the values that the second, a summary cell, stands for.
    Expand(CellId, CellId),
}

/// A step of a machine.
#[derive(Clone, Debug)]
pub struct Step<N = StepName, C = Control> {
    /// Identifies the step among those of its control state, in paths.
    pub name: N,
    /// The commands that the step performs on cells, in order.
    pub commands: Vec<Command>,
    /// The control state after the step, or why there is none.
    pub outcome: Outcome<C>,
}

/// Identifies a step of a [`BufferMachine`](crate::BufferMachine) among those that leave the same control state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StepName {
    /// The thread that moves; for a flush, the owner of the buffer.
    pub thread: ThreadId,
    /// The edge; `None` for a flush.
    pub edge: Option<EdgeId>,
    /// The memory cell that a flush writes; `None` for an edge.
    pub flushed: Option<u32>,
    /// The case of the edge (element of an array, value in its range); a number means the same case in every machine of a program. For a flush, its
    /// number among the possible flushes of the buffer.
    pub case: u32,
}

/// The result of a step on control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<C = Control> {
    /// The step leads to this control state.
    Control(C),
    /// The step leads to a state that the machine cannot represent; the position in the source is that of the step. If the step is possible, nothing
    /// is proved: without a violation elsewhere, the verdict is `unknown`.
    Beyond(Limitation, Span),
}

/// A reason why a machine does not represent a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limitation {
    /// A buffer holds more stores than its bound allows.
    BufferOverflow,
    /// A step has too many cases.
    Cases,
    /// An access outside the window of an open array.
    Window,
}

impl fmt::Display for Limitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limitation::BufferOverflow => "a store buffer overflows",
            Limitation::Cases => "a step with too many cases",
            Limitation::Window => "an access that may be outside the modelled part of an open array",
        })
    }
}

/// Evidence that a control state gives about a property: a list of commands. A state with this control state is evidence if and only if all of these
/// commands can be performed in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Distinguishes this evidence from other evidence of the same control state; the meaning of the number depends on the machine.
    pub case: u32,
    /// The commands. The last one assumes the condition. If stores may leave the buffers at the very end, their flushes come before this assumption.
    pub commands: Vec<Command>,
}

/// The origin of the values of a cell. A domain that treats some cells differently distinguishes them by their contents, not by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Values of its own: the cell is a memory cell or a register.
    Own,
    /// Values of buffered stores to this memory cell.
    StoresTo(CellId),
    /// Values of buffered stores to any memory cell.
    Stores,
    /// Several values at a time, of buffered stores to this memory cell: a summary cell ([`Cells`](crate::Cells)).
    Summary(CellId),
}

/// A transition system over integer cells whose control is finite, or at least enumerable.
///
/// A machine never inspects the values of cells, so every machine works with every domain: a state of the combination is a control state and an
/// abstract value of the cells that are live there.
pub trait Machine {
    /// A control state: everything in a state except the integers.
    type Control: Clone + Eq + Hash + Send + 'static;
    /// Identifies a step among those of its control state.
    type Name: Clone + Send + 'static;
    /// The steps of a control state are divided into phases, which a search may expand at different times. Most machines have one: `()`.
    type Phase: Copy + Eq + Send + 'static;

    /// The control states in which an execution may start.
    fn initial_controls(&self) -> Vec<Self::Control>;

    /// The initial contents of cells. Each command concerns one cell.
    fn initial_values(&self) -> Vec<Command>;

    /// The steps of this phase that leave a control state, in a deterministic order; `None` if `stop` returned true.
    fn steps_in(
        &self,
        phase: Self::Phase,
        control: &Self::Control,
        stop: &dyn Fn() -> bool,
    ) -> Option<Vec<Step<Self::Name, Self::Control>>>;

    /// The ways in which a control state can be evidence about a property: a violation, or a witness for `finally exists`. `None` if the machine
    /// cannot decide the property.
    fn evidence(&self, control: &Self::Control, property: &Property) -> Option<Vec<Evidence>>;

    /// The cells that may be live in a control state, sorted.
    fn live(&self, control: &Self::Control) -> Vec<CellId>;

    /// The origin of the values of each cell.
    fn contents(&self) -> Vec<Contents>;
}
