//! The prelude of the C text: headers, declarations of verifier functions, and helper functions.

use std::collections::BTreeSet;
use std::fmt::Write;

/// A helper function of the prelude, written only if the program needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Helper {
    Assume,
    Any,
    AnyOf,
    Within,
    At,
    Least,
    Greatest,
    ShiftLeft,
    ShiftRight,
    /// `cas` on variables of this type.
    Cas(&'static str),
}

/// The name of the helper for `cas` on variables of a type.
pub(super) fn cas(c_type: &str, integer: &str) -> String {
    match c_type == integer {
        true => "cas".into(),
        false => format!("cas_{c_type}"),
    }
}

pub(super) fn before(title: &str, wide: bool, helpers: &BTreeSet<Helper>) -> String {
    let (integer, nondet) =
        if wide { ("int64_t", "__VERIFIER_nondet_long") } else { ("int", "__VERIFIER_nondet_int") };
    // The title is put into a `//` comment. A line break would end this comment, and a backslash at the end would continue it on the next line.
    let title = title.replace(|c: char| c == '\\' || c.is_control(), "/");
    let mut text = format!(
        "// {title}, printed as C. There, integers are mathematical; here, one that does not fit `{integer}` is a fault.\n"
    );
    text.push_str(
        "#include <assert.h>\n#include <pthread.h>\n#include <stdatomic.h>\n#include <stdint.h>\n\n",
    );
    if helpers.contains(&Helper::Assume) || helpers.contains(&Helper::AnyOf) {
        text.push_str("extern void __VERIFIER_assume(int condition);\n");
    }
    if helpers.contains(&Helper::Any) || helpers.contains(&Helper::AnyOf) {
        let long = if wide { "long" } else { "int" };
        let _ = writeln!(text, "extern {long} {nondet}(void);");
    }
    text.push_str("#define load(place) atomic_load_explicit(&(place), memory_order_relaxed)\n");
    text.push_str(
        "#define store(place, value) atomic_store_explicit(&(place), value, memory_order_relaxed)\n\n",
    );
    for helper in helpers {
        let function = match helper {
            Helper::Assume | Helper::Any => continue,
            Helper::Cas(c_type) => compare_and_swap(c_type, integer),
            Helper::AnyOf => ANY.replace("NONDET", nondet),
            Helper::Within => WITHIN.into(),
            Helper::At => AT.into(),
            Helper::Least => "static TYPE least(TYPE a, TYPE b) { return a < b ? a : b; }\n".into(),
            Helper::Greatest => "static TYPE greatest(TYPE a, TYPE b) { return a > b ? a : b; }\n".into(),
            Helper::ShiftLeft => SHIFT_LEFT.into(),
            Helper::ShiftRight => SHIFT_RIGHT.into(),
        };
        text.push_str(&function.replace("TYPE", integer));
        text.push('\n');
    }
    text
}

const ANY: &str = "static TYPE any(TYPE least, TYPE most) {
    TYPE value = NONDET();
    __VERIFIER_assume(least <= value && value <= most);
    return value;
}
";

const WITHIN: &str = "static TYPE within(TYPE value, TYPE least, TYPE most) {
    assert(least <= value && value <= most);
    return value;
}
";

const AT: &str = "static TYPE at(TYPE index, TYPE length) {
    assert(0 <= index && index < length);
    return index;
}
";

const SHIFT_LEFT: &str = "static TYPE shift_left(TYPE value, TYPE bits) {
    assert(0 <= bits && bits <= 63);
    while (bits-- > 0 && value != 0)
        value *= 2;
    return value;
}
";

const SHIFT_RIGHT: &str = "static TYPE shift_right(TYPE value, TYPE bits) {
    assert(0 <= bits && bits <= 63);
    if (bits >= (TYPE)(8 * sizeof(TYPE)))
        return value < 0 ? -1 : 0;
    return value >> bits;
}
";

/// A `cas` may compare with any integer. If the variable's type cannot represent this integer, the comparison fails, but the store buffer is still
/// drained.
fn compare_and_swap(c_type: &str, integer: &str) -> String {
    let name = cas(c_type, integer);
    if c_type == integer {
        return format!(
            "static int {name}(_Atomic {c_type} *place, {c_type} old, {c_type} value) {{
    return atomic_compare_exchange_strong(place, &old, value);
}}
"
        );
    }
    format!(
        "static int {name}(_Atomic {c_type} *place, {integer} old, {c_type} value) {{
    {c_type} expected = ({c_type})old;
    if (expected != old) {{
        atomic_thread_fence(memory_order_seq_cst);
        return 0;
    }}
    return atomic_compare_exchange_strong(place, &expected, value);
}}
"
    )
}
