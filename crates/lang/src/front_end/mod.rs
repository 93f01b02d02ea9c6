//! The registry of front ends. No other module depends on which front ends exist.
//!
//! A new front end is an implementation of [`FrontEnd`] and an entry in [`ALL`].

mod fw;

use fencewright_c_model::C;
use fencewright_formats::{Litmus, Rmm, Trencher};
pub use fencewright_front_end::{FrontEnd, Input, Open, Parsed};

/// The front end for texts that no front end recognises.
const DEFAULT: &dyn FrontEnd = &fw::Fw;

/// All front ends, in the order in which they are shown to users.
pub static ALL: [&dyn FrontEnd; 5] = [DEFAULT, &Rmm, &Trencher, &Litmus, &C];

/// The front end with this name, if there is one.
pub fn named(name: &str) -> Option<&'static dyn FrontEnd> {
    ALL.into_iter().find(|front_end| front_end.name() == name)
}

/// The front end for a file: by its extension, or else by the beginning of its text.
pub fn detect(file_name: &str, text: &str) -> &'static dyn FrontEnd {
    let base = file_name.rsplit(['/', '\\']).next().unwrap_or(file_name);
    let extension = base.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let by_name = ALL.into_iter().find(|f| extension.is_some() && f.extension() == extension.as_deref());
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    by_name.or_else(|| ALL.into_iter().find(|f| f.detect(text))).unwrap_or(DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, text: &str, expected: &str) {
        assert_eq!(detect(name, text).name(), expected, "{name}: {text}");
    }

    #[test]
    fn the_extension_decides() {
        check("dir.rmm/a.fw", "X86 SB", "fw");
        check("a.RMM", "", "rmm");
        check("SB.litmus", "", "litmus");
        check("a.c", "X86 SB", "c");
    }

    #[test]
    fn otherwise_the_content_does() {
        check("-", "  X86 SB\n{}", "litmus");
        check("a.txt", "# Dekker\nthread t", "trencher");
        check("a.txt", "thread t\ninitial q", "trencher");
        check("a.txt", "thread t {\n skip; }", "fw");
        check("a", "/* one *//* two */ forbidden\n CS CS", "rmm");
        check("a", "macro m() endmacro", "rmm");
        check("a", "forbidden_zone", "fw");
        check("a", "/* never closed", "fw");
        check("", "", "fw");
    }

    #[test]
    fn front_ends_have_names() {
        assert_eq!(ALL.map(|front_end| front_end.name()), ["fw", "rmm", "trencher", "litmus", "c"]);
        assert!(ALL.iter().all(|front_end| named(front_end.name()).is_some()) && named("pl1").is_none());
    }

    /// Checks the statement around the first occurrence of `part`.
    fn statement(name: &str, line: &str, part: &str, expected: &str) {
        let start = line.find(part).expect("the part occurs");
        let front_end = named(name).expect("a front end");
        assert_eq!(line[front_end.statement_at(line, start..start + part.len())].trim(), expected);
    }

    #[test]
    fn statements_are_split_at_separators() {
        statement("fw", "  x = 1; r = y + z; skip;", "z", "r = y + z;");
        statement("fw", "  x = 1; r = y + z; skip;", "x = 1;", "x = 1;");
        statement("fw", "    if x == 0 {\n", "x == 0", "if x == 0 {");
        statement("fw", "atomic {", "atomic {", "atomic {");
        statement("litmus", " MOV [x],$1  | MOV EAX,[y] ;", "MOV [x],$1", "MOV [x],$1");
        statement("litmus", " MOV [x],$1  | MOV EAX,[y] ;", "[y]", "MOV EAX,[y]");
        statement("trencher", "transition q0 q1 write x 1", "x", "transition q0 q1 write x 1");
    }
}
