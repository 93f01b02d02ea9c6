//! What the command line says about how a program is read.

pub use fencewright_fw::lower::Awaits;

/// What is said about a program outside of its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `-D NAME=VALUE` and `-D NAME`: constants or, in C, macros.
    pub defines: Vec<(String, Option<String>)>,
    /// What only C programs are asked for.
    pub c: COptions,
    /// What becomes of `await`.
    pub awaits: Awaits,
}

/// How a C program is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct COptions {
    /// `-I DIR`: folders with files that it includes.
    pub folders: Vec<String>,
    /// `--heap N`: how many objects each allocation in a loop may give; the translation has a number of its own if nothing is said.
    pub heap: Option<u32>,
    /// `--no-reuse`: no allocation gives an object that was freed.
    pub no_reuse: bool,
    /// What becomes of loops that only wait.
    pub spins: Spins,
    /// Waiting for a condition variable ends only by a signal. C allows it to end without one, which hides that nobody signals.
    pub exact_waits: bool,
    /// The question is about the accesses of the program, as robustness is, and about no property. Then what only finds misuse of condition variables accesses nothing, and a call that
    /// drains buffers only where it finds something to do performs one event: a load, or an indivisible step.
    pub accesses_only: bool,
}

/// What becomes of a loop that does nothing but wait for other threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spins {
    /// It stays a loop: a thread in it can always take a step, and is not stuck. The author wrote a loop and no `await`, so that is what `deadlock`
    /// means.
    Loop,
    /// It becomes one step that can be taken when there is nothing left to wait for (`snapshot { assume x == 1; }`): a thread that waits in
    /// vain is stuck. Then the property `termination` is that there is no deadlock.
    #[default]
    Step,
}

impl Options {
    /// Reads the program as questions about these properties need it.
    pub fn ask(&mut self, properties: &[String]) {
        let asked = |name: &str| properties.iter().any(|property| property == name);
        let (termination, deadlock) = (asked("termination"), asked("deadlock"));
        if !termination && !deadlock {
            return;
        }
        self.c.spins = if termination { Spins::Step } else { Spins::Loop };
        self.c.exact_waits = true;
        self.awaits = if deadlock { Awaits::Block } else { Awaits::Spin };
    }

    /// Reads the program as the question whether it is robust needs it.
    pub fn ask_robustness(&mut self) {
        self.c.accesses_only = true;
    }

    /// The constants that `-D` gives values; in words what is wrong with one.
    pub fn constants(&self) -> Result<Vec<(String, i64)>, String> {
        let constant = |(name, value): &(String, Option<String>)| {
            let value = value.as_deref().ok_or_else(|| format!("-D {name}: expected {name}=VALUE"))?.trim();
            let number = integer(value);
            number
                .map(|number| (name.trim().to_owned(), number))
                .ok_or_else(|| format!("-D {name}: `{value}` is not an integer of 64 bits"))
        };
        self.defines.iter().map(constant).collect()
    }

    /// The first of these options that only C programs have.
    pub fn for_c_only(&self) -> Option<&'static str> {
        let COptions { folders, heap, no_reuse, spins: _, exact_waits: _, accesses_only: _ } = &self.c;
        [("-I", !folders.is_empty()), ("--heap", heap.is_some()), ("--no-reuse", *no_reuse)]
            .into_iter()
            .find_map(|(option, is_given)| is_given.then_some(option))
    }
}

/// An integer as it is written: `42`, `-4`, `0x10`.
fn integer(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let magnitude = match digits.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    let plain = digits.starts_with(|c: char| c.is_ascii_digit());
    magnitude.ok().filter(|_| plain).and_then(|m| i64::try_from(m.checked_mul(sign)?).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defined(value: Option<&str>) -> Result<Vec<(String, i64)>, String> {
        let defines = vec![("N".to_owned(), value.map(str::to_owned))];
        Options { defines, ..Options::default() }.constants()
    }

    #[test]
    fn constants() {
        for (text, value) in [("4", 4), (" -4", -4), ("0x10", 16), ("-9223372036854775808", i64::MIN)] {
            assert_eq!(defined(Some(text)), Ok(vec![("N".to_owned(), value)]), "{text}");
        }
        for wrong in ["", "x", "--1", "+1", "9223372036854775808", "1.5"] {
            assert!(defined(Some(wrong)).is_err(), "{wrong}");
        }
        assert_eq!(defined(None), Err("-D N: expected N=VALUE".into()));
    }
}
