//! How many stores fit into a buffer.

use fencewright_program::{MemoryModel, Program};

use crate::Unsupported;

/// The largest bound: each place of a buffer is a register and every flush moves all of them.
const MOST_PLACES: u32 = 64;

/// How many stores fit into the buffers of a thread; one more is an overflow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Bounds {
    /// So many in each thread, as the queue machine counts.
    PerThread(u32),
    /// Under PSO, so many for each memory cell of a variable, by the number of the variable (EXTRA13 s. 3).
    PerVariable(Vec<u32>),
}

impl Bounds {
    /// The same k for all, counted as the paper does: under TSO in each thread, under PSO for each memory cell.
    pub fn uniform(program: &Program, model: MemoryModel, k: u32) -> Self {
        match model {
            MemoryModel::Pso => Bounds::PerVariable(vec![k; program.variables.len()]),
            MemoryModel::Sc | MemoryModel::Tso => Bounds::PerThread(k),
        }
    }

    /// How many stores to this memory cell fit into the buffers of a thread.
    pub fn of_cell(&self, program: &Program, cell: u32) -> u32 {
        match self {
            Bounds::PerThread(k) => *k,
            Bounds::PerVariable(each) => {
                each[program.variables.partition_point(|v| v.base <= cell).saturating_sub(1)]
            }
        }
    }

    /// How many stores fit into the buffers of a thread together, if that is bounded.
    pub fn of_thread(&self) -> Option<u32> {
        match self {
            Bounds::PerThread(k) => Some(*k),
            Bounds::PerVariable(_) => None,
        }
    }

    /// The largest number of stores that fits anywhere.
    pub fn largest(&self) -> u32 {
        match self {
            Bounds::PerThread(k) => *k,
            Bounds::PerVariable(each) => each.iter().copied().max().unwrap_or(0),
        }
    }

    /// Whether the program can be reduced with these bounds at all.
    pub(crate) fn check(&self, program: &Program, model: MemoryModel) -> Result<(), Unsupported> {
        let why = match (self, model) {
            (_, MemoryModel::Sc) => "under SC there are no store buffers".into(),
            (Bounds::PerVariable(_), MemoryModel::Tso) => {
                "under TSO a thread has one buffer for all variables, so it has one bound".into()
            }
            (Bounds::PerVariable(each), MemoryModel::Pso) if each.len() != program.variables.len() => {
                "there must be one bound for each shared variable".into()
            }
            _ if self.largest() > MOST_PLACES => format!("a buffer may have {MOST_PLACES} places at most"),
            _ => return Ok(()),
        };
        Err(Unsupported::new(why, None))
    }
}

/// How large buffers are, and what becomes of stores that do not fit.
#[derive(Clone, Debug)]
pub(crate) struct Size {
    pub bounds: Bounds,
    /// They are forgotten but for their cells and newest values; otherwise there is an overflow.
    pub forgets: bool,
}
