//! Advice for names that are not known.

/// Among more names than this no advice is given: looking for it would take longer than reading the program.
const MOST_COMPARED: usize = 2_000;
/// Of longer names only so many characters are compared.
const COMPARED_LENGTH: usize = 40;

/// The known name that differs least from `name`, if any is close.
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
