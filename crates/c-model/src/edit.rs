//! Inserts fences into the text of C programs, in the dialect of atomics that the program already uses.
//!
//! | dialect | full fence | store-store fence | in place of a store |
//! |---|---|---|---|
//! | `<stdatomic.h>` | `atomic_thread_fence(memory_order_seq_cst);` | `atomic_thread_fence(memory_order_release);` | its order becomes `memory_order_seq_cst` |
//! | Linux | `smp_mb();` | `smp_wmb();` | `WRITE_ONCE` becomes `smp_store_mb` |
//! | any other | `__sync_synchronize();` | `__atomic_thread_fence(__ATOMIC_RELEASE);` | its order becomes `__ATOMIC_SEQ_CST` |
//!
//! If a fence goes into a body without braces, the body gets braces.

use std::collections::BTreeMap;
use std::ops::Range;

use fencewright_c::{Kind, Names, Token, lex};
use fencewright_front_end::edit::{
    Change, Edit, What, indentation, inserted_after, inserted_before, line_end,
};
use fencewright_front_end::places::{Place, Side};
use fencewright_program::FileId;

/// The changes to the text of one file that make these edits. The error says why one of the edits cannot be made.
pub fn changes(text: &str, edits: &[&Edit]) -> Result<Vec<Change>, String> {
    let words = Words::of(text);
    let world = words.world();
    let mut changes = Vec::new();
    // Nested bodies are handled innermost first, so that inner braces are closed before outer ones.
    let mut bodies: BTreeMap<(u32, u32), Vec<(&Place, &str)>> = BTreeMap::new();
    for edit in edits {
        let place = &edit.place;
        let word = match edit.what {
            What::Fence => world.fence(),
            What::StoreFence => world.store_fence(),
            What::Swap => {
                let written = text.get(place.statement.range()).unwrap_or("");
                let (range, stronger) =
                    stronger(written).ok_or("this store cannot be given a stronger order")?;
                if stronger == STORE_MB && words.defines("WRITE_ONCE") {
                    return Err("this store is made by a macro of the program".into());
                }
                let at = place.statement.start as usize + range.start;
                changes.push(Change { at, length: range.len(), text: stronger.into() });
                continue;
            }
        };
        match (place.bare, place.side) {
            (true, _) => {
                let from = place.label.map_or(place.statement.start, |label| label.start);
                bodies.entry((from, place.statement.end)).or_default().push((place, word));
            }
            (false, Side::Before | Side::Labelled) if is_in_directive(text, place.offset as usize) => {
                changes.push(inline(text, place.offset as usize, word));
            }
            (false, Side::After) if is_in_directive(text, place.offset as usize) => {
                changes.push(inline(text, place.statement.end as usize, word));
            }
            (false, Side::Before | Side::Labelled) => changes.push(inserted_before(text, place, word)),
            (false, Side::After) => {
                let Range { start, end } = place.statement.range();
                changes.push(inserted_after(text, start, behind_comment(text, end), word));
            }
        }
    }
    for ((from, to), fences) in bodies.into_iter().rev() {
        with_braces(text, from as usize..to as usize, &fences, &mut changes);
    }
    Ok(changes)
}

/// Adds braces around the body of a statement, with fences before the body, behind its label, or after it.
fn with_braces(text: &str, body: Range<usize>, fences: &[(&Place, &str)], changes: &mut Vec<Change>) {
    let mut insert = |at: usize, text: String| changes.push(Change { at, length: 0, text });
    let (indent, starts_line) = indentation(text, body.start);
    let end = line_end(text);
    let on_side = |side: Side| fences.iter().filter(move |(place, _)| place.side == side);
    let before = on_side(Side::Before).map(|(_, word)| (body.start, *word));
    let labelled = on_side(Side::Labelled).map(|(place, word)| (place.offset as usize, *word));
    if !starts_line || is_in_directive(text, body.start) {
        insert(body.start, if touches(text, body.start) { " { ".into() } else { "{ ".into() });
        before.chain(labelled).for_each(|(at, word)| insert(at, format!("{word} ")));
        on_side(Side::After).for_each(|(_, word)| insert(body.end, format!(" {word}")));
        insert(body.end, " }".into());
        return;
    }
    let head = text[..body.start].trim_end();
    let (outer, _) = indentation(text, head.len());
    match can_open_behind(head) {
        true => insert(head.len(), " {".into()),
        false => insert(body.start, "{ ".into()),
    }
    before.chain(labelled).for_each(|(at, word)| {
        let (_, is_alone) = indentation(text, at);
        insert(at, if is_alone { format!("{word}{end}{indent}") } else { format!("{word} ") });
    });
    let close = behind_comment(text, body.end);
    on_side(Side::After).for_each(|(_, word)| insert(close, format!("{end}{indent}{word}")));
    insert(close, format!("{end}{outer}}}"));
}

/// Whether a position is in a preprocessor directive, such as a macro definition: its logical line, after line splices, begins with `#`.
fn is_in_directive(text: &str, at: usize) -> bool {
    let mut start = text[..at].rfind('\n').map_or(0, |n| n + 1);
    loop {
        let before = text[..start].strip_suffix('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
        match before.filter(|line| line.ends_with('\\')) {
            Some(joined) => start = joined.rfind('\n').map_or(0, |n| n + 1),
            None => return text[start..].trim_start_matches([' ', '\t']).starts_with('#'),
        }
    }
}

/// Inserts a statement into a macro definition, whose lines all end in a backslash except the last.
fn inline(text: &str, at: usize, word: &str) -> Change {
    let text = match (touches(text, at), indentation(text, at)) {
        (true, _) => format!(" {word}"),
        (false, (indent, true)) => format!("{word} \\{}{indent}", line_end(text)),
        (false, _) => format!("{word} "),
    };
    Change { at, length: 0, text }
}

/// Whether the character before a position is not white space.
fn touches(text: &str, at: usize) -> bool {
    text[..at].chars().next_back().is_some_and(|c| !c.is_whitespace())
}

/// Whether an opening brace can follow the head of a statement on the same line. After a `//` comment it cannot.
fn can_open_behind(head: &str) -> bool {
    let line = &head[head.rfind('\n').map_or(0, |n| n + 1)..];
    let is_head = head.ends_with(')') || head.ends_with("else") || head.ends_with("do");
    is_head && !line.contains("//")
}

/// The end of the line if only a `//` comment follows the position, otherwise the position itself.
fn behind_comment(text: &str, at: usize) -> usize {
    let line = text[at..].lines().next().unwrap_or("");
    if line.trim_start().starts_with("//") { at + line.len() } else { at }
}

/// The dialect in which a program writes atomic accesses and fences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum World {
    Atomics,
    Linux,
    Other,
}

impl World {
    fn fence(self) -> &'static str {
        match self {
            World::Atomics => "atomic_thread_fence(memory_order_seq_cst);",
            World::Linux => "smp_mb();",
            World::Other => "__sync_synchronize();",
        }
    }

    fn store_fence(self) -> &'static str {
        match self {
            World::Atomics => "atomic_thread_fence(memory_order_release);",
            World::Linux => "smp_wmb();",
            World::Other => "__atomic_thread_fence(__ATOMIC_RELEASE);",
        }
    }
}

/// The identifiers of a text, in order.
struct Words(Vec<String>);

impl Words {
    fn of(text: &str) -> Self {
        let mut names = Names::default();
        let tokens = lex(text, FileId::MAIN, &mut names).unwrap_or_default();
        let is_name = |token: &&Token| token.kind == Kind::Identifier;
        Words(tokens.iter().filter(is_name).map(|token| names.spelling(token.symbol).to_string()).collect())
    }

    fn world(&self) -> World {
        let any = |wanted: &dyn Fn(&str) -> bool| self.0.iter().any(|word| wanted(word));
        // A program that uses no `smp_mb` and defines `READ_ONCE` or `WRITE_ONCE` itself is not kernel code.
        let once = ["READ_ONCE", "WRITE_ONCE"];
        let defines_own = once.iter().any(|name| self.defines(name));
        if any(&|word| word == "stdatomic" || word.starts_with("memory_order_")) {
            World::Atomics
        } else if any(&|word| word == "smp_mb")
            || !defines_own && any(&|word| once.contains(&word) || word.starts_with("smp_"))
        {
            World::Linux
        } else {
            World::Other
        }
    }

    /// Whether the text defines a macro of this name.
    fn defines(&self, name: &str) -> bool {
        self.0.windows(2).any(|pair| pair[0] == "define" && pair[1] == name)
    }
}

/// The macro of Linux for a store followed by a full fence.
const STORE_MB: &str = "smp_store_mb";

/// The part of the text of a store that must be replaced to make the store a locked instruction, with the replacement; `None` if there is not exactly
/// one such part.
pub fn stronger(store: &str) -> Option<(Range<usize>, &'static str)> {
    let mut names = Names::default();
    let tokens = lex(store, FileId::MAIN, &mut names).ok()?;
    let spelling = |token: &Token| names.spelling(token.symbol).to_string();
    let mut found = None;
    for (n, token) in tokens.iter().enumerate() {
        let replaced = match spelling(token).as_str() {
            "atomic_store_explicit" => {
                last_argument(&tokens[n + 1..], &spelling, ["memory_order_relaxed", "memory_order_release"])
                    .map(|order| (order.span.range(), "memory_order_seq_cst"))
            }
            "__atomic_store_n" | "__atomic_store" => {
                last_argument(&tokens[n + 1..], &spelling, ["__ATOMIC_RELAXED", "__ATOMIC_RELEASE"])
                    .map(|order| (order.span.range(), "__ATOMIC_SEQ_CST"))
            }
            "WRITE_ONCE" => Some((token.span.range(), STORE_MB)),
            _ => None,
        };
        // The text contains two such parts, so it is unclear which of them belongs to the store.
        if replaced.is_some() && found.is_some() {
            return None;
        }
        found = found.or(replaced);
    }
    found
}

/// The last argument of a call, if it is one of `names`. `tokens` starts at the opening parenthesis.
fn last_argument<'t>(
    tokens: &'t [Token],
    spelling: &impl Fn(&Token) -> String,
    names: [&str; 2],
) -> Option<&'t Token> {
    let mut depth = 0;
    for (n, token) in tokens.iter().enumerate() {
        match spelling(token).as_str() {
            "(" => depth += 1,
            ")" if depth == 1 => {
                let (comma, order) = (tokens.get(n.checked_sub(2)?)?, &tokens[n - 1]);
                let is_order = names.contains(&spelling(order).as_str()) && spelling(comma) == ",";
                return is_order.then_some(order);
            }
            ")" => depth -= 1,
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use fencewright_front_end::edit::changed;
    use fencewright_program::Span;

    use super::*;

    /// The text after a fence has been inserted before or after the first occurrence of a statement.
    fn fenced(text: &str, statement: &str, side: Side, bare: bool) -> String {
        edited(text, &[(What::Fence, statement, side, bare)])
    }

    fn edited(text: &str, edits: &[(What, &str, Side, bool)]) -> String {
        let edits: Vec<Edit> = edits
            .iter()
            .map(|&(what, statement, side, bare)| {
                let start = text.find(statement).expect("it is there");
                let statement = Span::new(start, start + statement.len());
                let offset = if side == Side::After { statement.end } else { statement.start };
                let place = Place { offset, side, statement, label: None, bare, uses: 0, edges: Vec::new() };
                Edit { what, place }
            })
            .collect();
        let edits: Vec<&Edit> = edits.iter().collect();
        changed(text, changes(text, &edits).expect("it can be written")).expect("it fits")
    }

    fn world(text: &str) -> World {
        Words::of(text).world()
    }

    #[test]
    fn fences_use_the_api_of_the_program() {
        assert_eq!(world("#include <stdatomic.h>\n#define READ_ONCE(x) x"), World::Atomics);
        assert_eq!(world("void f(void) { g(memory_order_relaxed); }"), World::Atomics);
        assert_eq!(world("void f(void) { WRITE_ONCE(x, 1); }"), World::Linux);
        assert_eq!(world("#define READ_ONCE(x) (*(volatile int *)&x)\nint y = READ_ONCE(x);"), World::Other);
        assert_eq!(world("#define smp_mb() __sync_synchronize()\n#define READ_ONCE(x) x"), World::Linux);
        // Comments and strings are ignored.
        assert_eq!(world("int x; // smp_mb and memory_order_relaxed\nchar *s = \"smp_mb\";"), World::Other);
    }

    #[test]
    fn statements_in_a_block() {
        let text = "int f(void) {\n\tx = 1; // one\n\treturn y;\n}\n";
        assert_eq!(
            fenced(text, "x = 1;", Side::Before, false),
            "int f(void) {\n\t__sync_synchronize();\n\tx = 1; // one\n\treturn y;\n}\n"
        );
        assert_eq!(
            fenced(text, "x = 1;", Side::After, false),
            "int f(void) {\n\tx = 1; // one\n\t__sync_synchronize();\n\treturn y;\n}\n"
        );
        assert_eq!(
            edited(text, &[(What::StoreFence, "x = 1;", Side::Before, false)]).lines().nth(1),
            Some("\t__atomic_thread_fence(__ATOMIC_RELEASE);")
        );
    }

    #[test]
    fn definitions_of_macros_stay_one_line() {
        let text = "#define M(a) \\\r\n\tdo { \\\r\n\t\tx = a; \\\r\n\t\ty = a; \\\r\n\t} while (0)\r\n";
        let fenced = |side| super::tests::fenced(text, "y = a;", side, false);
        let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines(fenced(Side::Before))[3..5], ["\t\t__sync_synchronize(); \\", "\t\ty = a; \\"]);
        assert_eq!(lines(fenced(Side::After))[3], "\t\ty = a; __sync_synchronize(); \\");
        let text = "#define M(a) if (a) x = 1; else x = 2\nint x;\n";
        assert_eq!(
            super::tests::fenced(text, "x = 1;", Side::After, true).lines().next(),
            Some("#define M(a) if (a) { x = 1; __sync_synchronize(); } else x = 2")
        );
        // The line after the last line of a continued directive is not part of the directive.
        assert!(!is_in_directive("#define M \\\n 1\nint x;", 16));
    }

    #[test]
    fn bodies_get_braces() {
        assert_eq!(
            fenced("  if (a) x = 1; else y = 1;\n", "x = 1;", Side::After, true),
            "  if (a) { x = 1; __sync_synchronize(); } else y = 1;\n"
        );
        let text = "  while (a)\n    if (b)\n      x = 1; // why\n  y = 1;\n";
        assert_eq!(
            fenced(text, "x = 1;", Side::Before, true),
            "  while (a)\n    if (b) {\n      __sync_synchronize();\n      x = 1; // why\n    }\n  y = 1;\n"
        );
        // A comment before the body must not swallow the brace.
        assert_eq!(
            fenced("  else // not a\n    x = 1;\n", "x = 1;", Side::Before, true),
            "  else // not a\n    { __sync_synchronize();\n    x = 1;\n  }\n"
        );
        // Fences on both sides of a body share one pair of braces.
        let body = |side| (What::Fence, "x = 1;", side, true);
        assert_eq!(
            edited("do\n  x = 1;\nwhile (a);\n", &[body(Side::Before), body(Side::After)]),
            "do {\n  __sync_synchronize();\n  x = 1;\n  __sync_synchronize();\n}\nwhile (a);\n"
        );
        let text = "  while (a)\n    if (b)\n      x = 1;\n  y = 1;\n";
        let both = [body(Side::Before), (What::Fence, "if (b)\n      x = 1;", Side::After, true)];
        assert_eq!(
            edited(text, &both),
            "  while (a) {\n    if (b) {\n      __sync_synchronize();\n      x = 1;\n    }\n    \
             __sync_synchronize();\n  }\n  y = 1;\n"
        );
    }

    #[test]
    fn stores_become_stronger() {
        let swapped = |text: &str| edited(text, &[(What::Swap, text, Side::Before, false)]);
        assert_eq!(
            swapped("atomic_store_explicit(&x, f(1, 2), memory_order_relaxed);"),
            "atomic_store_explicit(&x, f(1, 2), memory_order_seq_cst);"
        );
        assert_eq!(
            swapped("__atomic_store_n(&x, 1, __ATOMIC_RELEASE);"),
            "__atomic_store_n(&x, 1, __ATOMIC_SEQ_CST);"
        );
        assert_eq!(swapped("WRITE_ONCE(x, 1);"), "smp_store_mb(x, 1);");
        for fixed in [
            "x = 1;",
            "atomic_store_explicit(&x, 1, order);",
            "atomic_store_explicit(&x, 1, memory_order_seq_cst);",
            "WRITE_ONCE(x, 1), WRITE_ONCE(y, 1);",
            "atomic_store_explicit",
        ] {
            assert_eq!(stronger(fixed), None, "{fixed}");
        }
    }
}
