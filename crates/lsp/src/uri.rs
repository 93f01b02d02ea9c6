//! Conversion between `file:` URIs of editors and paths.

use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use lsp_types::Uri;

/// The path of a `file:` URI; `None` for other URIs.
pub fn path_of(uri: &Uri) -> Option<PathBuf> {
    let rest = uri.as_str().strip_prefix("file://")?;
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    // The URI may have an authority, as in file://localhost/x; the path begins at the first slash after it.
    let path = &rest[rest.find('/')?..];
    let path = decoded(path)?;
    // On Windows, the path of /c:/folder begins after the slash.
    let drive = path.as_bytes().get(2) == Some(&b':') && path.as_bytes()[1].is_ascii_alphabetic();
    Some(plain(Path::new(if cfg!(windows) && drive { &path[1..] } else { &path })))
}

/// The `file:` URI of a path; `None` if the path cannot be written as one.
pub fn uri_of(path: &Path) -> Option<Uri> {
    let mut text = String::from("file://");
    let path = path.to_str()?;
    if !path.starts_with('/') {
        text.push('/');
    }
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                text.push(byte as char);
            }
            b'\\' if cfg!(windows) => text.push('/'),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    Uri::from_str(&text).ok()
}

/// Removes `.`, and `..` after a folder name, so that the same file has the same path.
pub fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(plain.components().next_back(), Some(Component::Normal(_))) => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_uris_and_back() {
        for path in ["/a/b.fw", "/a b/ä%#?.fw", "/\u{1f600}"] {
            let uri = uri_of(Path::new(path)).expect("a URI");
            assert_eq!(path_of(&uri), Some(PathBuf::from(path)), "{}", uri.as_str());
        }
        let path = |text: &str| path_of(&Uri::from_str(text).expect("a URI"));
        assert_eq!(path("file://localhost/a/./b/../c.fw"), Some(PathBuf::from("/a/c.fw")));
        assert_eq!(path("untitled:Untitled-1"), None);
        assert_eq!(path("file:///%ff"), None);
        assert_eq!(path("file:///a%20b"), Some(PathBuf::from("/a b")));
    }
}
