//! How text is written: colours, if they are wanted, and how much of an execution.

/// How to write text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Whether to colour at all.
    pub colour: bool,
    /// Whether executions are shown step by step, nothing folded and nothing left out.
    pub full: bool,
}

impl Style {
    /// No colours, and executions folded.
    pub const PLAIN: Style = Style { colour: false, full: false };

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    /// Important.
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Less important than the text around it.
    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Good news.
    pub fn good(self, text: &str) -> String {
        self.paint("1;32", text)
    }

    /// Bad news.
    pub fn bad(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    /// No news.
    pub fn unsure(self, text: &str) -> String {
        self.paint("1;33", text)
    }

    /// Something that reached memory.
    pub fn memory(self, text: &str) -> String {
        self.paint("36", text)
    }
}
