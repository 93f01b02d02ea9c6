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
