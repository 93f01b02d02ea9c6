//! What a machine is: control states, and steps between them that perform commands on integer cells.
//!
//! A search needs nothing else to explore a machine with any domain. The machines of this crate are the ones that certificates speak
//! about; an engine may bring its own.

use std::fmt;
use std::hash::Hash;

use fencewright_program::{EdgeId, Expr, Property, Span, ThreadId};

use crate::cells::CellId;
use crate::control::Control;

/// What a step does to cells; the commands of a step are performed in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Goes on only if the value is not 0.
    Assume(Expr<CellId>),
    /// `cell := value`.
    Assign(CellId, Expr<CellId>),
    /// `cell := *`.
    Havoc(CellId),
    /// The summary cell ([`Cells`](crate::Cells)) stands for this value too, beside those it stands for already.
    Fold(CellId, Expr<CellId>),
    /// `cell :=` one of the values that the summary cell stands for: the first is the cell, the second the summary.
    Expand(CellId, CellId),
}

/// A step of a machine.
#[derive(Clone, Debug)]
pub struct Step<N = StepName, C = Control> {
    /// What tells it from the other steps of its control state, for paths.
    pub name: N,
    /// What happens to cells.
    pub commands: Vec<Command>,
    /// Where it leads.
    pub outcome: Outcome<C>,
}

/// What tells a step of a [`BufferMachine`](crate::BufferMachine) from the others that leave the same control state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StepName {
    /// Who moves; for a flush, whose buffer.
    pub thread: ThreadId,
    /// The edge, or nothing for a flush.
    pub edge: Option<EdgeId>,
    /// For a flush, the memory cell that is written.
    pub flushed: Option<u32>,
    /// Which of the cases of the edge (element of an array, value in its range) this is: the same number means the same case in
    /// every machine of a program. For a flush, which of the ways to flush this cell.
    pub case: u32,
}

/// Where a step leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<C = Control> {
    /// To a control state.
    Control(C),
    /// Out of what the machine represents, at this place of the source. Neither safe nor unsafe.
    Beyond(Limitation, Span),
}

/// What a machine does not represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limitation {
    /// More stores in a buffer than its bound allows.
    BufferOverflow,
    /// A step with very many cases.
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

/// How a state is evidence about a property: commands that can be performed exactly if it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// What tells it from other evidence of the same control state; each machine says what it means.
    pub case: u32,
    /// The commands. The last one assumes the condition; a machine that lets stores leave at the very end does that first.
    pub commands: Vec<Command>,
}

/// Whose values a cell holds. A domain that treats cells differently asks for this instead of knowing how a machine numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Its own: it is a variable, or a register.
    Own,
    /// Only values on their way to this memory cell.
    StoresTo(CellId),
    /// Values on their way to any memory cell.
    Stores,
    /// Not one value but several, on their way to this memory cell: it is a summary cell ([`Cells`](crate::Cells)).
    Summary(CellId),
}

/// A transition system over integer cells whose control is finite, or at least enumerable.
///
/// A machine never looks at the values of cells. So every machine works with every domain: a state of the whole is a control state
/// together with what a domain knows about the cells that are live there.
pub trait Machine {
    /// A control state: everything about a state but the integers.
    type Control: Clone + Eq + Hash + Send + 'static;
    /// What tells a step from the others of its control state.
    type Name: Clone + Send + 'static;
    /// The steps of a control state come in phases, which a search may take at different times. Most machines have one: `()`.
    type Phase: Copy + Eq + Send + 'static;

    /// The control states in which an execution may begin.
    fn initial_controls(&self) -> Vec<Self::Control>;

    /// What is known about cells at the start. Each command is about one cell.
    fn initial_values(&self) -> Vec<Command>;

    /// The steps of this phase that leave a control state, always in the same order; `None` if `stop` says that there is no time for that.
    fn steps_in(
        &self,
        phase: Self::Phase,
        control: &Self::Control,
        stop: &dyn Fn() -> bool,
    ) -> Option<Vec<Step<Self::Name, Self::Control>>>;

    /// The ways in which a control state can be evidence about a property: that it is violated, or for a final state that is to exist, that
    /// it does. `None`: the machine cannot tell.
    fn evidence(&self, control: &Self::Control, property: &Property) -> Option<Vec<Evidence>>;

    /// The cells whose values may still matter in a control state, sorted.
    fn live(&self, control: &Self::Control) -> Vec<CellId>;

    /// For each cell whose values it holds.
    fn contents(&self) -> Vec<Contents>;
}
