//! The exit status of a command.

/// The exit status; the meanings are those for `check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Every property holds.
    Fine = 0,
    /// Some property is violated.
    Violated = 1,
    /// Bad usage or input.
    Bad = 2,
    /// Some property is neither proved nor refuted.
    Unknown = 3,
}

impl Status {
    /// Combines two statuses: returns the first of 2, 1, 3, 0 that is one of them.
    pub fn and(self, other: Status) -> Status {
        let order = [Status::Bad, Status::Violated, Status::Unknown];
        order.into_iter().find(|&s| s == self || s == other).unwrap_or(Status::Fine)
    }
}

#[cfg(test)]
mod tests {
    use super::Status::*;

    #[test]
    fn the_worst_status_wins() {
        assert_eq!(Fine.and(Fine), Fine);
        assert_eq!(Fine.and(Unknown), Unknown);
        assert_eq!(Unknown.and(Violated), Violated);
        assert_eq!(Violated.and(Bad), Bad);
        assert_eq!(Bad.and(Fine), Bad);
    }
}
