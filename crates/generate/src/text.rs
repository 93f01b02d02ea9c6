//! Text in the one style of .fw files: what `fencewright fmt` would not change.

/// The most names in one declaration, so that no line gets too long.
const NAMES: usize = 8;

/// A text that grows line by line.
#[derive(Default)]
pub struct Text {
    text: String,
    depth: usize,
}

impl Text {
    /// One line, indented as deep as the blocks around it.
    pub fn line(&mut self, line: &str) {
        self.indented(self.depth, line);
    }

    /// A line of comment.
    pub fn comment(&mut self, line: &str) {
        self.line(&format!("// {line}"));
    }

    /// An empty line.
    pub fn blank(&mut self) {
        self.text.push('\n');
    }

    /// A label: it stands one step further out than what it names.
    pub fn label(&mut self, name: &str) {
        self.indented(self.depth.saturating_sub(1), &format!("{name}:"));
    }

    /// The start of a block.
    pub fn open(&mut self, head: &str) {
        self.line(&format!("{head} {{"));
        self.depth += 1;
    }

    /// The end of a block and the start of the next one of the same statement.
    pub fn next(&mut self, word: &str) {
        self.depth -= 1;
        self.line(&format!("}} {word} {{"));
        self.depth += 1;
    }

    /// The end of a block.
    pub fn close(&mut self) {
        self.depth -= 1;
        self.line("}");
    }

    /// Declarations of these names, several to a line.
    pub fn declare(&mut self, keyword: &str, names: &[String]) {
        for names in names.chunks(NAMES) {
            self.line(&format!("{keyword} {};", names.join(", ")));
        }
    }

    /// A `choose` between the ways, of which there must be at least one; a single way is written without `choose`.
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

    /// The text.
    pub fn finish(self) -> String {
        self.text
    }

    fn indented(&mut self, depth: usize, line: &str) {
        self.text.extend(std::iter::repeat_n("    ", depth));
        self.text.push_str(line);
        self.text.push('\n');
    }
}
