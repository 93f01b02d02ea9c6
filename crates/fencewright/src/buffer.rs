//! Bounds on store buffers, for each thread or for each variable.

use std::str::FromStr;

use fencewright_lang::source::escape;
use fencewright_memory::{Bound, CellBounds};
use fencewright_program::Program;

/// Maximum value of a bound on the stores of a thread to one variable.
const MOST_OF_A_VARIABLE: u8 = 64;

/// A bound on buffers as the user states it: for threads, or for variables by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BufferBound {
    /// At most this many stores in each thread.
    Thread(u32),
    /// At most this many stores in each thread to each variable: bounds for single variables, and the bound of all other variables. Without the
    /// latter, every variable of the program must have a bound of its own.
    Variables(Vec<(String, u8)>, Option<u8>),
}

impl FromStr for BufferBound {
    type Err = String;

    /// `N`, `N/variable`, `NAME=N,...`, `NAME=N,...,N/variable`
    fn from_str(text: &str) -> Result<BufferBound, String> {
        if let Ok(bound) = text.parse() {
            return Ok(BufferBound::Thread(bound));
        }
        let expected = || {
            format!(
                "expected N, N/variable, or NAME=N,NAME=N,N/variable, with N at most {MOST_OF_A_VARIABLE} for a variable"
            )
        };
        let number = |text: &str| {
            text.parse::<u8>().ok().filter(|bound| *bound <= MOST_OF_A_VARIABLE).ok_or_else(expected)
        };
        let (mut own, mut others) = (Vec::new(), None);
        for part in text.split(',') {
            match (part.split_once('='), part.strip_suffix("/variable")) {
                (Some((name, bound)), _) if own.iter().all(|(other, _)| other != name) => {
                    own.push((name.to_string(), number(bound)?));
                }
                (None, Some(bound)) if others.is_none() => others = Some(number(bound)?),
                _ => return Err(expected()),
            }
        }
        Ok(BufferBound::Variables(own, others))
    }
}

impl BufferBound {
    /// The bound on the buffers of this program. A bound on an array applies to each of its elements.
    pub fn bound(&self, program: &Program) -> Result<Bound, String> {
        let (own, others) = match self {
            BufferBound::Thread(bound) => return Ok(Bound::Thread(*bound)),
            BufferBound::Variables(own, others) => (own, others),
        };
        if let Some((name, _)) =
            own.iter().find(|(name, _)| !program.variables.iter().any(|v| v.name == *name))
        {
            return Err(format!("no shared variable is called `{}`", escape(name)));
        }
        let mut bounds = Vec::with_capacity(program.cells().max(1));
        for variable in &program.variables {
            let named = own.iter().find(|(name, _)| *name == variable.name).map(|(_, bound)| *bound);
            let Some(bound) = named.or(*others) else {
                let name = escape(&variable.name);
                return Err(format!("there is no bound for `{name}`; N/variable gives one for all others"));
            };
            bounds.extend(variable.cells().map(|_| bound));
        }
        while bounds.len() > 1 && bounds[bounds.len() - 2] == bounds[bounds.len() - 1] {
            bounds.pop();
        }
        if bounds.is_empty() {
            bounds.push(0);
        }
        CellBounds::new(&bounds).map(Bound::Cell).ok_or_else(|| {
            "only the first 64 memory cells can have bounds of their own; give one for all with N/variable".into()
        })
    }

    /// Whether this bounds the stores to each variable. Such a bound makes sense for PSO, where each variable has a buffer of its own.
    pub fn is_for_variables(&self) -> bool {
        matches!(self, BufferBound::Variables(..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(text: &str) -> Result<BufferBound, String> {
        text.parse()
    }

    #[test]
    fn bounds() {
        let own = |name: &str, bound| (name.to_string(), bound);
        assert_eq!(buffer("3"), Ok(BufferBound::Thread(3)));
        assert_eq!(buffer("2/variable"), Ok(BufferBound::Variables(vec![], Some(2))));
        assert_eq!(buffer("x=2,y=1"), Ok(BufferBound::Variables(vec![own("x", 2), own("y", 1)], None)));
        assert_eq!(buffer("x=2,1/variable"), Ok(BufferBound::Variables(vec![own("x", 2)], Some(1))));
        for wrong in [
            "",
            "x",
            "x=",
            "=,",
            "-1",
            "65/variable",
            "x=2,x=1",
            "1/variable,2/variable",
            "2/thread",
            "1,x=2",
        ] {
            assert!(buffer(wrong).is_err(), "{wrong}");
        }
    }
}
