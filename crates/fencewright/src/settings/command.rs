//! The commands that have options, and the groups in which help lists options.

/// A command that has options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Command {
    Check,
    Robust,
    Fences,
    Certify,
    Litmus,
    Run,
    Show,
    Fmt,
    Convert,
    Reduce,
    Generate,
    Bakery,
    Automata,
    Lossy,
    Random,
    Lsp,
    Engines,
}

impl Command {
    /// All commands, in the order of the manual.
    pub const ALL: [Command; 17] = [
        Command::Check,
        Command::Robust,
        Command::Fences,
        Command::Certify,
        Command::Litmus,
        Command::Run,
        Command::Show,
        Command::Fmt,
        Command::Convert,
        Command::Reduce,
        Command::Generate,
        Command::Bakery,
        Command::Automata,
        Command::Lossy,
        Command::Random,
        Command::Lsp,
        Command::Engines,
    ];

    /// The name on the command line; for a family of programs, `generate` and the name of its subcommand.
    pub fn name(self) -> &'static str {
        match self {
            Command::Check => "check",
            Command::Robust => "robust",
            Command::Fences => "fences",
            Command::Certify => "certify",
            Command::Litmus => "litmus",
            Command::Run => "run",
            Command::Show => "show",
            Command::Fmt => "fmt",
            Command::Convert => "convert",
            Command::Reduce => "reduce",
            Command::Generate => "generate",
            Command::Bakery => "generate bakery",
            Command::Automata => "generate automata",
            Command::Lossy => "generate lossy",
            Command::Random => "generate random",
            Command::Lsp => "lsp",
            Command::Engines => "engines",
        }
    }

    /// Whether the command has subcommands that accept its options. The options may stand before or after the name of the subcommand.
    pub fn is_above_others(self) -> bool {
        self == Command::Generate
    }
}

/// A group of options, with a heading of its own in the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Options for most users.
    Main,
    /// Options for C programs.
    C,
    /// Options for output formats and files.
    Output,
    /// Options that only some engines use.
    Engines,
    /// Options for experiments with engines.
    Research,
    /// Options that are accepted but not shown in the help.
    Hidden,
}

impl Group {
    /// The heading; `None` for the options that come first without one.
    pub fn heading(self) -> Option<&'static str> {
        match self {
            Group::Main | Group::Hidden => None,
            Group::C => Some("C programs"),
            Group::Output => Some("Output"),
            Group::Engines => Some("Options of engines"),
            Group::Research => Some("Options for research"),
        }
    }
}
