//! Options of text output: colours, and whether executions are shown in full.

/// Options of text output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Whether to use colours.
    pub colour: bool,
    /// Whether executions are shown step by step, with nothing folded or left out.
    pub full: bool,
}

impl Style {
    /// No colours, and executions folded.
    pub const PLAIN: Style = Style { colour: false, full: false };

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    /// Bold, for emphasis.
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Dimmed: less important than the text around it.
    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Bold green, for a positive verdict.
    pub fn good(self, text: &str) -> String {
        self.paint("1;32", text)
    }

    /// Bold red, for a negative verdict.
    pub fn bad(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    /// Bold yellow, for an unknown verdict or a warning.
    pub fn unsure(self, text: &str) -> String {
        self.paint("1;33", text)
    }

    /// Cyan, for a value that reaches memory.
    pub fn memory(self, text: &str) -> String {
        self.paint("36", text)
    }
}
