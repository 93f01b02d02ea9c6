//! Options of the library's table as arguments of clap.

use std::marker::PhantomData;
use std::ops::Deref;

use clap::builder::{
    PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser, UnknownArgumentValueParser,
    ValueParser,
};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Error, FromArgMatches, ValueHint};
use fencewright::engines::Limits;
use fencewright::settings::{self, CONFLICTS, Command, FORMER, Group, Idle, Row, Settings};
use fencewright::{Budget, Question, Reader, Repair};

use super::values::Listed;
use crate::output::complain;
use crate::{memory, stop};

/// A command whose options are in the table.
pub trait Of {
    /// The command whose rows in the table of options these arguments are made from.
    const COMMAND: Command;
}

macro_rules! commands {
    ($($type:ident => $command:ident;)*) => {
        $(
            #[doc = concat!("Marks the options of `", stringify!($command), "`.")]
            pub struct $type;

            impl Of for $type {
                const COMMAND: Command = Command::$command;
            }
        )*
    };
}

commands! {
    ForCheck => Check;
    ForRobust => Robust;
    ForFences => Fences;
    ForCertify => Certify;
    ForLitmus => Litmus;
    ForRun => Run;
    ForShow => Show;
    ForFmt => Fmt;
    ForConvert => Convert;
    ForReduce => Reduce;
    ForGenerate => Generate;
    ForBakery => Bakery;
    ForAutomata => Automata;
    ForLossy => Lossy;
    ForRandom => Random;
    ForLsp => Lsp;
    ForEngines => Engines;
}

/// The values of the options of a command, as given on the command line.
pub struct Given<C> {
    settings: Box<Settings>,
    command: PhantomData<C>,
}

impl<C> Deref for Given<C> {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl<C> Given<C> {
    /// Adds source files of the same program.
    pub fn join(&mut self, files: Vec<String>) {
        self.settings.as_one.extend(files);
    }
}

impl<C: Of> Given<C> {
    /// Warns about options that have no effect here.
    pub fn tell_idle(&self) {
        for Idle { option, why } in self.settings.idle(C::COMMAND) {
            complain(&option, &why);
        }
    }
}

impl<C: Of> Args for Given<C> {
    fn augment_args(command: clap::Command) -> clap::Command {
        let former = FORMER.iter().filter(|(_, commands, _)| commands.contains(&C::COMMAND));
        command.args(settings::rows(C::COMMAND).map(argument::<C>)).args(former.map(former_argument))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl<C: Of> FromArgMatches for Given<C> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut given = Given { settings: Box::default(), command: PhantomData };
        given.update_from_arg_matches(matches)?;
        Ok(given)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        let is_given = |row: &&Row| matches.value_source(row.field) == Some(ValueSource::CommandLine);
        for row in settings::rows(C::COMMAND).filter(is_given) {
            for text in matches.get_raw(row.field).into_iter().flatten() {
                let set = self.settings.set(row.field, text);
                set.map_err(|why| {
                    Error::raw(ErrorKind::ValueValidation, format!("{}: {why}\n", row.name()))
                })?;
            }
            if is_flag(row) {
                let set = self.settings.set(row.field, "");
                set.map_err(|why| Error::raw(ErrorKind::ValueValidation, why))?;
            }
        }
        Ok(())
    }
}

fn is_flag(row: &Row) -> bool {
    row.value.is_empty()
}

/// A former option, as a hidden argument of clap: its use is an error that names the replacement.
fn former_argument((name, _, instead): &(&'static str, &[Command], &'static str)) -> Arg {
    let tell = UnknownArgumentValueParser::suggest(format!("write `{instead}` instead"));
    Arg::new(*name).long(*name).hide(true).action(ArgAction::SetTrue).value_parser(tell)
}

/// A row of the table as an argument of clap.
fn argument<C: Of>(row: &'static Row) -> Arg {
    let mut arg = Arg::new(row.field).help(row.help).hide(row.group == Group::Hidden);
    arg = arg.required(row.is_required).global(C::COMMAND.is_above_others());
    if let Some(heading) = row.group.heading() {
        arg = arg.help_heading(heading);
    }
    if let Some(short) = row.short() {
        arg = arg.short(short);
    }
    if let Some(long) = row.long() {
        arg = arg.long(long);
    }
    let has = |field: &&str| settings::row(field).commands.contains(&C::COMMAND);
    let excluded = CONFLICTS.iter().filter(|(one, _)| *one == row.field).map(|(_, other)| *other);
    arg = arg.conflicts_with_all(excluded.filter(has).collect::<Vec<_>>());
    if is_flag(row) {
        return arg.action(ArgAction::SetTrue);
    }
    arg = arg.value_name(row.value).value_parser(parser(row));
    arg = arg.action(if row.is_repeated || row.is_list { ArgAction::Append } else { ArgAction::Set });
    if row.is_list {
        arg = arg.value_delimiter(',');
    }
    if row.value == "DIR" {
        arg = arg.value_hint(ValueHint::DirPath);
    }
    if row.default.is_empty() { arg } else { arg.default_value(row.default) }
}

/// The parser of an option's values, which checks them so that error messages name the argument.
fn parser(row: &'static Row) -> ValueParser {
    let choices = (row.choices)();
    match row.field {
        // With --json, an unknown engine is reported as JSON, so the parser accepts it.
        "engine" => ValueParser::new(Listed(row.choices)),
        _ if matches!(row.value, "OUT" | "FILE") => ValueParser::path_buf(),
        _ if !choices.is_empty() => {
            let possible = choices.iter().map(|choice| match choice.help {
                "" => PossibleValue::new(choice.name),
                help => PossibleValue::new(choice.name).help(help),
            });
            ValueParser::new(PossibleValuesParser::new(possible))
        }
        _ => ValueParser::new(
            StringValueParser::new().try_map(move |text: String| (row.check)(&text).map(|()| text)),
        ),
    }
}

/// The limits on time and memory, with the memory meter of this process and the token that its signals cancel.
pub fn budget(settings: &Settings) -> Budget {
    Budget { token: stop::token(), meter: Some(memory::METER), ..settings.budget() }
}

/// Limits whose time starts now.
pub fn limits(settings: &Settings) -> Limits {
    budget(settings).start()
}

/// The question with the limits of this process; `None` if there is no engine with the given name.
pub fn question(settings: &Settings) -> Option<Question> {
    Some(settings.question()?.budget(budget(settings)))
}

/// The question about fences.
pub fn repair(settings: &Settings) -> Result<Repair, fencewright::Error> {
    let repair = settings.repair()?;
    Ok(Repair { question: repair.question.budget(budget(settings)), ..repair })
}

/// How programs are read for the question of robustness.
pub fn reader_for_robustness(settings: &Settings) -> Reader {
    let mut reader = settings.reader();
    reader.options.ask_robustness();
    reader
}

/// Whether to print more than the verdict for a human reader.
pub fn is_talkative(settings: &Settings) -> bool {
    !settings.json && !settings.quiet
}

/// `engines`
pub type EnginesArgs = Given<ForEngines>;
