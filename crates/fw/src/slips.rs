//! Suggestions for users who write `.fw` as if it were another language.

use strsim::osa_distance;

use super::token::Keyword;

/// The keyword that a misspelt word probably means, among those that `fits` accepts; `None` if no keyword is close.
pub fn keyword_meant(word: &str, fits: impl Fn(Keyword) -> bool) -> Option<Keyword> {
    if word.len() > 20 {
        return None;
    }
    let lower = word.to_ascii_lowercase();
    // Synonyms, which the edit distance does not find.
    let synonym = match lower.as_str() {
        "process" | "proctype" => Some(Keyword::Thread),
        "proc" | "func" | "function" | "def" | "procedure" => Some(Keyword::Fn),
        "global" | "globals" | "static" | "volatile" => Some(Keyword::Shared),
        "let" | "local" | "reg" | "register" | "auto" | "mut" => Some(Keyword::Var),
        "mfence" | "barrier" | "membar" | "sync" | "dmb" | "memory_barrier" => Some(Keyword::Fence),
        "wmb" | "dmbst" => Some(Keyword::StoreFence),
        "nop" | "noop" | "pass" => Some(Keyword::Skip),
        "exit" | "halt" => Some(Keyword::Stop),
        "require" | "requires" => Some(Keyword::Assume),
        "wait" | "when" | "waitfor" => Some(Keyword::Await),
        "forever" => Some(Keyword::Loop),
        "until" | "do" => Some(Keyword::While),
        "compare_and_swap" | "compare_exchange" | "cmpxchg" => Some(Keyword::Cas),
        "exchange" | "xchg" => Some(Keyword::Swap),
        "fetchadd" | "xadd" | "faa" => Some(Keyword::FetchAdd),
        "either" | "select" | "nondet" => Some(Keyword::Choose),
        "property" | "unreachable" => Some(Keyword::Forbid),
        "always" => Some(Keyword::Invariant),
        "any" | "some" => Some(Keyword::Exists),
        "all" => Some(Keyword::Forall),
        "acquire" => Some(Keyword::Lock),
        "release" => Some(Keyword::Unlock),
        _ => None,
    };
    if let Some(keyword) = synonym.filter(|&keyword| fits(keyword)) {
        return Some(keyword);
    }
    let allowed = if lower.len() <= 4 { 1 } else { 2 };
    Keyword::ALL
        .iter()
        .filter(|&&keyword| fits(keyword))
        .map(|&keyword| (osa_distance(&lower, keyword.text()), keyword))
        // More than half of a short word must match.
        .filter(|&(distance, keyword)| distance <= allowed && 2 * distance < keyword.text().len())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, keyword)| keyword)
}

/// Advice on the replacement for an operator of another language; `place` is the text before the operator.
pub fn foreign_operator(operator: &str, place: Option<&str>) -> String {
    let place = place.unwrap_or("x");
    match operator {
        ":=" => "an assignment is written with `=`".into(),
        "++" => format!("write `{place} = {place} + 1;`: it is a load and a store"),
        "--" => format!("write `{place} = {place} - 1;`: it is a load and a store"),
        "<>" => "write `!=`".into(),
        "=<" => "write `<=`".into(),
        "=>" | "->" => "at least is written `>=`, and `a` implies `b` is written `!a || b`".into(),
        "..." => "`0..4` is 0, 1, 2, 3 and `0..=3` is the same".into(),
        _ => {
            let plain = operator.trim_end_matches('=');
            format!("write `{place} = {place} {plain} ...;`: it is a load and a store")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_words_are_found_and_far_ones_are_not() {
        let check = |word, expected: Option<&str>| {
            assert_eq!(keyword_meant(word, |_| true).map(Keyword::text), expected, "{word}");
        };
        check("tread", Some("thread"));
        check("whlie", Some("while"));
        check("SHARED", Some("shared"));
        check("fnece", Some("fence"));
        check("invarient", Some("invariant"));
        check("mfence", Some("fence"));
        check("x", None);
        check("turn", None);
        check("flag", None);
        check("ticket", None);
    }
}
