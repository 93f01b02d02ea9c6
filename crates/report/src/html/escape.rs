//! Escapes program text for HTML and JSON, so that it cannot become a tag, an attribute, a script, or text that displays misleadingly.

use fencewright_lang::source::escape;
use serde::Serialize;

/// Text for an element or a double-quoted attribute. Invisible characters, line breaks and changes of writing direction are spelled out.
pub fn text(text: &str) -> String {
    marked(&escape(text))
}

/// Several lines of text for an element.
pub fn lines(text: &str) -> String {
    text.lines().map(|line| marked(&line_of(line)) + "\n").collect()
}

/// A line of a source file with invisible characters spelled out and tabs as blanks; it is not escaped for HTML.
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

/// JSON for a `script` element: `<`, `>` and `&` are escaped, so that it contains neither the end of the element nor a comment.
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
