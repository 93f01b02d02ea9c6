//! Suggestions for unknown names.

/// Maximum number of known names. With more names no suggestion is made, because comparing them would take longer than reading the program.
const MOST_COMPARED: usize = 2_000;
/// Maximum number of characters of a name that are compared; the rest is ignored.
const COMPARED_LENGTH: usize = 40;

/// The known name with the smallest edit distance from `name`; `None` if no name is close, or if too many are known.
pub fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<String> {
    let length = name.chars().count();
    let start = |name: &str| name.chars().take(COMPARED_LENGTH).collect::<String>();
    let allowed = (length / 3).clamp(1, 3);
    let known: Vec<&str> = known.take(MOST_COMPARED + 1).collect();
    if known.len() > MOST_COMPARED {
        return None;
    }
    known
        .into_iter()
        .filter(|other| other.chars().count().abs_diff(length) <= allowed)
        .map(|other| (strsim::osa_distance(&start(name), &start(other)), other))
        .filter(|&(distance, _)| distance <= allowed)
        .min()
        .map(|(_, other)| other.to_string())
}
