//! Bounds on the number of stores in a buffer.

use fencewright_program::{MemoryModel, Program};

use crate::Unsupported;

/// Maximum bound. Each place of a buffer is a register, and every flush assigns all these registers.
const MOST_PLACES: u32 = 64;

/// The capacities of the buffers of a thread; one more store is an overflow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Bounds {
    /// Maximum number of buffered stores of each thread, to all memory cells together.
    PerThread(u32),
    /// Under PSO, a bound for each memory cell of a variable, indexed by variable (EXTRA13 s. 3).
    PerVariable(Vec<u32>),
}

impl Bounds {
    /// The same bound k everywhere, as in EXTRA13: under TSO for each thread, under PSO for each memory cell.
    pub fn uniform(program: &Program, model: MemoryModel, k: u32) -> Self {
        match model {
            MemoryModel::Pso => Bounds::PerVariable(vec![k; program.variables.len()]),
            MemoryModel::Sc | MemoryModel::Tso => Bounds::PerThread(k),
        }
    }

    /// The maximum number of stores to this memory cell in the buffers of a thread.
    pub fn of_cell(&self, program: &Program, cell: u32) -> u32 {
        match self {
            Bounds::PerThread(k) => *k,
            Bounds::PerVariable(each) => {
                each[program.variables.partition_point(|v| v.base <= cell).saturating_sub(1)]
            }
        }
    }

    /// The maximum number of stores in the buffers of a thread together, if that is bounded.
    pub fn of_thread(&self) -> Option<u32> {
        match self {
            Bounds::PerThread(k) => Some(*k),
            Bounds::PerVariable(_) => None,
        }
    }

    /// The largest of the bounds.
    pub fn largest(&self) -> u32 {
        match self {
            Bounds::PerThread(k) => *k,
            Bounds::PerVariable(each) => each.iter().copied().max().unwrap_or(0),
        }
    }

    /// Whether the program can be reduced with these bounds.
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

/// The capacity of buffers, and the treatment of stores that exceed it.
#[derive(Clone, Debug)]
pub(crate) struct Size {
    pub bounds: Bounds,
    /// Whether only the cells and newest values of stores that exceed the bounds are kept. Otherwise such a store is an overflow.
    pub forgets: bool,
}
