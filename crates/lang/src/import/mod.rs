//! Importers for the formats of other tools.
//!
//! Each gives the same syntax tree as the `.fw` parser, with spans into the original text, so that whatever is said
//! later about the program points at the lines its author wrote. Names that `.fw` does not allow are changed, always in
//! the same way.

mod build;
mod litmus;
mod litmus_bounds;
mod litmus_code;
mod litmus_condition;
mod litmus_parse;
mod litmus_scan;
mod litmus_types;
pub(crate) mod names;
mod rmm;
mod rmm_process;
mod rmm_tokens;
mod rmm_values;
mod trencher;
mod trencher_values;

use crate::ast;

pub use litmus::litmus;
pub(crate) use litmus_scan::row_length as litmus_row_length;
pub use rmm::rmm;
pub use trencher::trencher;

/// An imported program.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The program.
    pub file: ast::File,
    /// The name the text gives itself: that of a litmus test.
    pub name: Option<String>,
    /// What a reader should know about the translation.
    pub notes: Vec<String>,
    /// How a litmus test shows its final states.
    pub view: Option<View>,
}

/// How a litmus test shows its final states.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The condition as herd writes it, with its quantifier.
    pub condition: String,
    /// What is shown: what the condition looks at, and what `locations` names.
    pub shown: Vec<Shown>,
    /// Which final states count at all: a property of the same form as the condition.
    pub filter: Option<ast::Property>,
}

/// A register or location as a litmus test shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// As herd writes it: `0:rax`, `[x]`.
    pub name: String,
    /// What it is in the program.
    pub place: ShownPlace,
    /// So many of the lowest bits are shown.
    pub bits: u32,
    /// Whether they are read as a signed number.
    pub signed: bool,
}

/// What a litmus test shows is in the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShownPlace {
    /// A shared variable of this name.
    Memory(String),
    /// A thread, and a register of it.
    Register(String, String),
    /// The address of a location, which the program does not need.
    Address(String),
}

/// A language a program can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// The language of this project.
    Fw,
    /// The language of memorax.
    Rmm,
    /// The automata of trencher.
    Trencher,
    /// x86 litmus tests.
    Litmus,
}

impl Format {
    /// The name in lower case, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Fw => "fw",
            Format::Rmm => "rmm",
            Format::Trencher => "trencher",
            Format::Litmus => "litmus",
        }
    }
}

/// Whether memorax has reserved the word.
pub(crate) fn is_rmm_word(word: &str) -> bool {
    rmm_tokens::RESERVED.contains(&word)
}

/// Whether a word names an x86 register or a part of one.
pub(crate) fn is_x86_register(word: &str) -> bool {
    litmus_types::RegisterPart::parse(word).is_some()
}

/// The format of a file: by the extension of its name, and where that says nothing by its first words.
pub fn detect(file_name: &str, text: &str) -> Format {
    let base = file_name.rsplit(['/', '\\']).next().unwrap_or(file_name);
    match base.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).as_deref() {
        Some("fw") => Format::Fw,
        Some("rmm") => Format::Rmm,
        Some("litmus") => Format::Litmus,
        _ => detect_by_content(text),
    }
}

fn detect_by_content(text: &str) -> Format {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut words = text.split_whitespace();
    match words.next() {
        Some("X86" | "X86_64") => return Format::Litmus,
        Some(word) if word.starts_with('#') => return Format::Trencher,
        Some("thread") if matches!(words.nth(1), Some("initial" | "transition" | "end")) => {
            return Format::Trencher;
        }
        _ => {}
    }
    let mut rest = text.trim_start();
    while let Some(comment) = rest.strip_prefix("/*") {
        rest = comment.split_once("*/").map_or("", |(_, after)| after).trim_start();
    }
    let first_word = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or("");
    if matches!(first_word, "forbidden" | "macro") { Format::Rmm } else { Format::Fw }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, text: &str, expected: Format) {
        assert_eq!(detect(name, text), expected, "{name}: {text}");
    }

    #[test]
    fn the_extension_decides() {
        check("dir.rmm/a.fw", "X86 SB", Format::Fw);
        check("a.RMM", "", Format::Rmm);
        check("SB.litmus", "", Format::Litmus);
    }

    #[test]
    fn otherwise_the_content_does() {
        check("-", "  X86 SB\n{}", Format::Litmus);
        check("a.txt", "# Dekker\nthread t", Format::Trencher);
        check("a.txt", "thread t\ninitial q", Format::Trencher);
        check("a.txt", "thread t {\n skip; }", Format::Fw);
        check("a", "/* one *//* two */ forbidden\n CS CS", Format::Rmm);
        check("a", "macro m() endmacro", Format::Rmm);
        check("a", "forbidden_zone", Format::Fw);
        check("a", "/* never closed", Format::Fw);
        check("", "", Format::Fw);
    }

    #[test]
    fn formats_have_names() {
        let names = [Format::Fw, Format::Rmm, Format::Trencher, Format::Litmus].map(Format::name);
        assert_eq!(names, ["fw", "rmm", "trencher", "litmus"]);
    }
}
