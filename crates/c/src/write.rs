//! Helpers for printing C: identifiers and constants.

/// Words reserved by C, by the headers that printed programs include, or by the system.
const TAKEN: &str = "auto break case char const continue default do double else enum extern float for goto if inline int long register restrict \
    return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof main abort assert exit errno \
    linux unix i386 bool true false NULL EOF INT_MIN INT_MAX LLONG_MIN LLONG_MAX signal read write index time y0 y1 yn j0 j1 jn";

/// The words that cannot be used as names.
pub fn taken() -> impl Iterator<Item = &'static str> {
    TAKEN.split_whitespace()
}

/// A C identifier as close to this name as possible. The caller has to check that it is not [`taken`].
pub fn identifier(like: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = like.trim_end_matches(']').chars().map(plain).collect();
    match name.chars().next() {
        None => "n".into(),
        Some(first) if first.is_ascii_digit() => format!("n{name}"),
        // Names that begin with `_` are reserved for the implementation and its headers.
        Some('_') => format!("v{name}"),
        Some(_)
            if ["pthread", "atomic", "memory_order", "thrd", "mtx"].iter().any(|p| name.starts_with(p)) =>
        {
            format!("v_{name}")
        }
        Some(_) => name,
    }
}

/// A constant of type `long long` if `long_long`, otherwise of type `int`, which must be able to represent it. C has no negative constants, so the
/// least value has to be written as a difference.
pub fn constant(value: i64, long_long: bool) -> String {
    let (suffix, least) = if long_long { ("LL", i64::MIN) } else { ("", i64::from(i32::MIN)) };
    match value {
        _ if value == least => format!("(-{}{suffix} - 1)", -(value + 1)),
        _ if value < 0 => format!("(-{}{suffix})", -value),
        _ => format!("{value}{suffix}"),
    }
}
