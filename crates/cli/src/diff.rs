//! Edits as unified diffs that `patch` and `git apply` accept.

use std::path::Path;

use fencewright::input::{is_standard_input, name_of};
use fencewright::lang::Sources;

/// The difference between two versions of the files of a program; `path` is the path of the main file as the user gave it.
pub fn unified(path: &Path, old: &Sources, new: &Sources) -> String {
    let mut text = String::new();
    for ((n, (_, old)), (_, new)) in old.iter().enumerate().zip(new.iter()) {
        let path = if n == 0 { path } else { Path::new(&old.name) };
        let name = |side: &str| diff_name(side, path);
        let diff = similar::TextDiff::from_lines(&old.text, &new.text);
        text += &diff.unified_diff().context_radius(3).header(&name("a/"), &name("b/")).to_string();
    }
    text
}

/// The name of a file in the header of a diff, quoted as git does: unusual bytes are written as in C, and a name with blanks is followed by a tab, so
/// that `patch` recognises its end.
fn diff_name(side: &str, path: &Path) -> String {
    let name = match is_standard_input(path) {
        true => name_of(path).into_bytes(),
        false => path.as_os_str().as_encoded_bytes().to_vec(),
    };
    // The first slash of an absolute name is dropped, because `a/` and `b/` end with a slash.
    let name = name.strip_prefix(b"/").unwrap_or(&name);
    let plain = |byte: &u8| (b' '..0x7f).contains(byte) && !matches!(byte, b'"' | b'\\');
    if name.iter().all(plain) {
        let end = if name.contains(&b' ') { "\t" } else { "" };
        return format!("{side}{}{end}", String::from_utf8_lossy(name));
    }
    let mut quoted = format!("\"{side}");
    for &byte in name {
        match byte {
            b'\t' => quoted.push_str("\\t"),
            b'\n' => quoted.push_str("\\n"),
            b'\r' => quoted.push_str("\\r"),
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            _ if plain(&byte) => quoted.push(char::from(byte)),
            _ => quoted.push_str(&format!("\\{byte:03o}")),
        }
    }
    quoted + "\""
}
