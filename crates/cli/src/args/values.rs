//! Types of option values for clap.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};
use fencewright::settings::Choice;

use super::examples;

/// Names that help and completion scripts list. The parser also accepts other names; they are refused later, so that the error can be printed as
/// JSON.
#[derive(Clone, Copy)]
pub struct Listed(pub fn() -> Vec<Choice>);

/// The names of the commands.
pub const COMMAND: Listed = Listed(|| examples::commands().map(|name| Choice { name, help: "" }).collect());

impl TypedValueParser for Listed {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let possible = (self.0)().into_iter().map(|choice| match choice.help {
            "" => PossibleValue::new(choice.name),
            help => PossibleValue::new(choice.name).help(help),
        });
        Some(Box::new(possible))
    }
}

/// Capacities of store buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The capacity for all variables that `single` does not name.
    pub all: u32,
    /// The capacities for single variables.
    pub single: Vec<(String, u32)>,
}

/// `2`, `x=2,y=1`, `2,x=3`; variables that are not named have 1 unless a number without a name gives another size.
pub fn buffer_sizes(text: &str) -> Result<Sizes, String> {
    let mut sizes = Sizes { all: 1, single: Vec::new() };
    for (n, part) in text.split(',').enumerate() {
        let (name, number) = part.split_once('=').map_or((None, part), |(name, k)| (Some(name.trim()), k));
        let digits = number.trim().chars().all(|c| c.is_ascii_digit());
        let k = number.trim().parse().ok().filter(|_| digits);
        let k = k.ok_or("expected numbers of stores, as in 2, x=2,y=1 or 2,x=3")?;
        match name {
            Some(name) => sizes.single.push((name.to_string(), k)),
            None if n == 0 => sizes.all = k,
            None => return Err("the number for all other variables comes first, and only once".into()),
        }
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_buffers() {
        let check = |text, all, single: &[(&str, u32)]| {
            let single = single.iter().map(|(name, k)| (name.to_string(), *k)).collect();
            assert_eq!(buffer_sizes(text), Ok(Sizes { all, single }), "{text}");
        };
        check("2", 2, &[]);
        check("0", 0, &[]);
        check("x=2,y=1", 1, &[("x", 2), ("y", 1)]);
        check("2, x = 3", 2, &[("x", 3)]);
        for wrong in ["", "x", "-1", "+1", "x=", "x=-1", "1,2", "x=1,2", "99999999999"] {
            assert!(buffer_sizes(wrong).is_err(), "{wrong}");
        }
    }
}
