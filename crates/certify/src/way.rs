//! One way through some commands, executed symbolically: the value of each changed cell, over the values before, and what was
//! assumed.

use fencewright_memory::linear::{Cube, Simple};
use fencewright_memory::{CellId, Linear};

use crate::difference::Difference;

/// One way through some commands.
pub struct Way {
    /// Changed cells with their values.
    values: Vec<(CellId, Linear)>,
    /// What was assumed.
    pub assumed: Cube,
}

impl Way {
    /// Executes simple commands. A value that nothing is known about is a variable of its own, the next one after `unknown`.
    pub fn through(commands: Vec<Simple>, unknown: &mut CellId) -> Self {
        let mut way = Way { values: Vec::new(), assumed: Vec::new() };
        for command in commands {
            match command {
                // A constraint that does not fit machine integers is left out: the way is then more possible.
                Simple::AtMost(linear) => way.assumed.extend(linear.substituted(&|c| way.value(c))),
                Simple::Assign(cell, value) => {
                    let value = value.and_then(|v| v.substituted(&|c| way.value(c)));
                    let value = value.unwrap_or_else(|| {
                        *unknown += 1;
                        Linear::cell(*unknown - 1)
                    });
                    way.values.retain(|(changed, _)| *changed != cell);
                    way.values.push((cell, value));
                }
            }
        }
        way
    }

    /// The value of a cell after the commands.
    pub fn value(&self, cell: CellId) -> Linear {
        self.changed(cell).cloned().unwrap_or_else(|| Linear::cell(cell))
    }

    fn changed(&self, cell: CellId) -> Option<&Linear> {
        self.values.iter().find(|(changed, _)| *changed == cell).map(|(_, value)| value)
    }

    /// A difference of values after the commands as one of values before them, if it is one and fits.
    pub fn before(&self, after: &Difference) -> Option<Difference> {
        let (x, above_x) = self.shifted(after.x)?;
        let (y, above_y) = self.shifted(after.y)?;
        Some(Difference { x, y, c: after.c.checked_sub(above_x)?.checked_add(above_y)? })
    }

    /// The value of a cell (or of 0) as a cell (or 0) and a constant, if it is that.
    fn shifted(&self, cell: Option<CellId>) -> Option<(Option<CellId>, i64)> {
        let Some(value) = cell.and_then(|cell| self.changed(cell)) else { return Some((cell, 0)) };
        match *value.terms.as_slice() {
            [] => Some((None, value.constant)),
            [(other, 1)] => Some((Some(other), value.constant)),
            _ => None,
        }
    }
}
