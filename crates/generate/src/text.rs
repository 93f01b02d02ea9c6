//! A writer of formatted .fw text, which `fencewright fmt` would not change.

/// Maximum number of names in a declaration, so that lines are short.
const NAMES: usize = 8;

/// A .fw text that grows line by line.
#[derive(Default)]
pub struct Text {
    text: String,
    depth: usize,
}

impl Text {
    /// Adds a line, indented to the current block depth.
    pub fn line(&mut self, line: &str) {
        self.indented(self.depth, line);
    }

    /// Adds a comment line.
    pub fn comment(&mut self, line: &str) {
        self.line(&format!("// {line}"));
    }

    /// Adds an empty line.
    pub fn blank(&mut self) {
        self.text.push('\n');
    }

    /// Adds a label, indented one level less than the statement it names.
    pub fn label(&mut self, name: &str) {
        self.indented(self.depth.saturating_sub(1), &format!("{name}:"));
    }

    /// Opens a block: adds the line `head {`, and indents the following lines.
    pub fn open(&mut self, head: &str) {
        self.line(&format!("{head} {{"));
        self.depth += 1;
    }

    /// Closes a block and opens the next one of the same statement.
    pub fn next(&mut self, word: &str) {
        self.depth -= 1;
        self.line(&format!("}} {word} {{"));
        self.depth += 1;
    }

    /// Closes the innermost block.
    pub fn close(&mut self) {
        self.depth -= 1;
        self.line("}");
    }

    /// Adds declarations of these names, several per line.
    pub fn declare(&mut self, keyword: &str, names: &[String]) {
        for names in names.chunks(NAMES) {
            self.line(&format!("{keyword} {};", names.join(", ")));
        }
    }

    /// Adds a `choose` with one alternative for each element of `ways`, which must not be empty. `write` writes the statements of an alternative. A
    /// single alternative is written without `choose`.
    pub fn choose<T>(&mut self, ways: &[T], mut write: impl FnMut(&mut Self, &T)) {
        if let [only] = ways {
            return write(self, only);
        }
        for (n, way) in ways.iter().enumerate() {
            match n {
                0 => self.open("choose"),
                _ => self.next("or"),
            }
            write(self, way);
        }
        self.close();
    }

    /// The finished text.
    pub fn finish(self) -> String {
        self.text
    }

    fn indented(&mut self, depth: usize, line: &str) {
        self.text.extend(std::iter::repeat_n("    ", depth));
        self.text.push_str(line);
        self.text.push('\n');
    }
}
