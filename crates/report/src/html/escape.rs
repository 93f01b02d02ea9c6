//! Text from a program, as parts of a page: nothing in it can become a tag, an attribute, a script or an instruction to a reader's eyes.

use fencewright_lang::source::escape;
use serde::Serialize;

/// A text between tags, or in an attribute with double quotes. What is invisible or turns the direction of reading is spelled out, line
/// breaks too.
pub fn text(text: &str) -> String {
    marked(&escape(text))
}

/// Several lines of text between tags.
pub fn lines(text: &str) -> String {
    text.lines().map(|line| marked(&line_of(line)) + "\n").collect()
}

/// A line of a source file with what is invisible in it spelled out, for a place where nothing else can happen to it. Tabs are blanks.
pub fn line_of(line: &str) -> String {
    escape(&line.replace('\t', "    "))
}

fn marked(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(c),
        }
    }
    safe
}

/// JSON that stands in a `script` element: without `<`, `>` and `&` it contains neither the end of the element nor a comment.
pub fn data(value: &impl Serialize) -> String {
    let json =
        serde_json::to_string(value).expect("all keys are strings and writing into memory cannot fail");
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_leaves_its_place() {
        let hostile = "</script><!-- <img src=x onerror=\"a('b')\"> & \u{202e}";
        assert_eq!(
            text(hostile),
            "&lt;/script&gt;&lt;!-- &lt;img src=x onerror=&quot;a(&#39;b&#39;)&quot;&gt; &amp; \\u{202e}"
        );
        let json = data(&hostile);
        assert!(!json.contains(['<', '>', '&']), "{json}");
        let back: String = serde_json::from_str(&json).expect("it is still JSON");
        assert_eq!(back, hostile);
        assert_eq!(lines("a\n\t<b>\n"), "a\n    &lt;b&gt;\n");
    }
}
