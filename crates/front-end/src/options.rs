//! Options of the command line for reading a program.

use std::collections::BTreeMap;

pub use fencewright_fw::lower::Awaits;
use fencewright_program::MemoryModel;

/// Options for reading a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `-D NAME=VALUE` and `-D NAME`: constants or, in C, macros.
    pub defines: Vec<(String, Option<String>)>,
    /// Options for C programs only.
    pub c: COptions,
    /// How `await` is translated.
    pub awaits: Awaits,
}

/// Options for reading a C program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct COptions {
    /// `-I DIR`: directories of include files.
    pub folders: Vec<String>,
    /// `-isystem DIR`: directories of include files that belong to the system.
    pub system_folders: Vec<String>,
    /// `--sysroot DIR`: the root of the headers of the system; the root of this machine if `None`.
    pub sysroot: Option<String>,
    /// `--as-one`: the names of the other source files of the program.
    pub also: Vec<String>,
    /// `-p`: how the build system compiles source files, by name. These options come before those of the command line.
    pub compilations: BTreeMap<String, Compilation>,
    /// `--heap N`: maximum number of objects per allocation in a loop; `None` for the default of the translation.
    pub heap: Option<u32>,
    /// `--recursion N`: maximum number of nested calls of a function that calls itself; `None` for the default of the translation.
    pub recursion: Option<u32>,
    /// `--havoc NAME`: functions whose calls return any value and write nothing.
    pub havoc: Vec<String>,
    /// `--skip NAME`: functions whose calls do nothing and return zero.
    pub skip: Vec<String>,
    /// `--stub FILE`: files with definitions that are read after the program.
    pub stubs: Vec<String>,
    /// `--no-reuse`: allocations never reuse the address of a freed object.
    pub no_reuse: bool,
    /// `--allow DIR`: directories outside of the program's own in which edits may change files.
    pub allowed: Vec<String>,
    /// How loops that only wait are translated.
    pub spins: Spins,
    /// Whether a wait for a condition variable ends only when the variable is signalled. C also allows spurious wake-ups, which would hide a missing
    /// signal.
    pub exact_waits: bool,
    /// Whether the analysis is about the accesses of the program (robustness) instead of a property. Then checks for misuse of condition variables
    /// add no accesses, and a conditional read-modify-write is a single event, chosen nondeterministically: an atomic step, or a load of a value for
    /// which it does not write.
    pub accesses_only: bool,
    /// Whether the program is only checked under models in which the stores of a thread reach memory in program order (SC and TSO). Then no store is
    /// late, and the translation contains no tests for late stores.
    pub in_order: bool,
}

/// The options with which a source file is compiled, as far as they affect its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compilation {
    /// `-D` and `-U`, in order.
    pub macros: Vec<MacroOption>,
    /// `-iquote DIR`: directories for `#include "file"` only.
    pub quote_folders: Vec<String>,
    /// `-I DIR`.
    pub folders: Vec<String>,
    /// `-isystem DIR` and `-idirafter DIR`.
    pub system_folders: Vec<String>,
    /// `-include FILE`: files that are included first.
    pub includes: Vec<String>,
    /// `--sysroot DIR`.
    pub sysroot: Option<String>,
    /// The option that gives signed overflow a meaning: `-fwrapv`, `-fno-strict-overflow` or `-ftrapv`.
    pub overflow: Option<String>,
}

/// An option for one macro.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MacroOption {
    /// `-D NAME` and `-D NAME=VALUE`.
    Define(String, Option<String>),
    /// `-U NAME`.
    Undefine(String),
}

/// The translation of a loop that only waits for other threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spins {
    /// The loop stays a loop: a thread in it can always take a step, so it is not blocked. `deadlock` has this meaning for loops that the author
    /// wrote out instead of using `await`.
    Loop,
    /// The loop becomes one step that is enabled when the awaited condition holds (`snapshot { assume x == 1; }`), so a thread whose condition never
    /// holds is blocked. The property `termination` is then the absence of deadlocks.
    #[default]
    Step,
}

impl Options {
    /// Sets the options that a check of these properties requires.
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

    /// Sets the options for a program that is checked under these models only.
    pub fn ask_models(&mut self, models: &[MemoryModel]) {
        self.c.in_order = !models.contains(&MemoryModel::Pso);
    }

    /// Sets the options that a check of robustness requires.
    pub fn ask_robustness(&mut self) {
        self.c.accesses_only = true;
    }

    /// The constants that `-D` overrides, or an error message.
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

    /// The name of the first option set here that applies to C programs only, if there is one.
    pub fn for_c_only(&self) -> Option<&'static str> {
        let COptions {
            folders,
            system_folders,
            sysroot,
            also,
            compilations,
            heap,
            recursion,
            havoc,
            skip,
            stubs,
            no_reuse,
            allowed,
            ..
        } = &self.c;
        [
            ("-I", !folders.is_empty()),
            ("--isystem", !system_folders.is_empty()),
            ("--sysroot", sysroot.is_some()),
            ("--as-one", !also.is_empty()),
            ("-p", !compilations.is_empty()),
            ("--heap", heap.is_some()),
            ("--recursion", recursion.is_some()),
            ("--havoc", !havoc.is_empty()),
            ("--skip", !skip.is_empty()),
            ("--stub", !stubs.is_empty()),
            ("--no-reuse", *no_reuse),
            ("--allow", !allowed.is_empty()),
        ]
        .into_iter()
        .find_map(|(option, is_given)| is_given.then_some(option))
    }
}

/// Parses an integer: `42`, `-4`, `0x10`. `None` if the text is not an integer of 64 bits.
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
