//! Control-flow graphs in DOT, the language of Graphviz.

use std::fmt::Write as _;

use fencewright_lang::source::escape;
use fencewright_program::{Location, LocationId, Thread, ThreadId};

use crate::words::{self, Source, shortened};

/// The control-flow graphs of all threads, one cluster per thread.
pub fn graphs(source: Source<'_>) -> String {
    let mut text = String::from("digraph program {\n");
    let _ = writeln!(text, "    label={};", quoted(source.name()));
    text.push_str("    node [shape=box, style=rounded, fontname=\"monospace\"];\n");
    text.push_str("    edge [fontname=\"monospace\"];\n");
    for (id, thread) in source.program.threads() {
        cluster(&mut text, source, id, thread);
    }
    text.push_str("}\n");
    text
}

fn cluster(text: &mut String, source: Source<'_>, id: ThreadId, thread: &Thread) {
    let _ = writeln!(text, "    subgraph cluster_{} {{", id.0);
    let _ = writeln!(text, "        label={};", quoted(&thread.name));
    let faults = thread.edges.iter().any(|edge| source.program.edge_may_fault(thread, edge));
    for (n, location) in thread.locations.iter().enumerate() {
        let at = LocationId(n as u32);
        if at == thread.fault && !faults {
            continue;
        }
        let label = location_label(source, thread, at, location);
        let style = if at == thread.entry {
            ", penwidth=2"
        } else if at == thread.fault {
            ", color=red"
        } else if thread.is_end(at) {
            ", shape=doublecircle"
        } else {
            ""
        };
        let _ = writeln!(text, "        t{}_{n} [label={}{style}];", id.0, quoted(&label));
    }
    for edge in &thread.edges {
        let action = words::action(source.program, thread, &edge.action);
        let _ = writeln!(
            text,
            "        t{0}_{1} -> t{0}_{2} [label={3}];",
            id.0,
            edge.from.0,
            edge.to.0,
            quoted(&shortened(&action, 200))
        );
    }
    text.push_str("    }\n");
}

/// The labels of a location, whether it is the end or the fault location, and the line of the statement that starts there; its number if it has none
/// of these.
fn location_label(source: Source<'_>, thread: &Thread, at: LocationId, location: &Location) -> String {
    let mut parts: Vec<String> = location.labels.iter().map(|label| format!("{label}:")).collect();
    if at == thread.fault {
        parts.push("fault".into());
    } else if thread.is_end(at) {
        parts.push("end".into());
    }
    match location.span {
        Some(span) => parts.push(format!("line {}", source.position(span).line_name())),
        None if parts.is_empty() => parts.push(at.0.to_string()),
        None => {}
    }
    parts.join(" ")
}

/// A quoted DOT string: quotes and backslashes are escaped, so that program text cannot end the string.
fn quoted(text: &str) -> String {
    let escaped = escape(text).replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn no_text_ends_a_string() {
        let check = |text: &str, expected: &str| assert_eq!(quoted(text), expected);
        check("r = x", r#""r = x""#);
        check(r#"a"]; b"#, r#""a\"]; b""#);
        check("\\", r#""\\""#);
        check("\\\"", r#""\\\"""#);
        check("line\nbreak", r#""line\\u{a}break""#);
    }
}
