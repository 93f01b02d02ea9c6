//! One option of the table, and the macros that make the table, [`Settings`](super::Settings) and its setters from one list.

use fencewright_engines::EngineName;

use super::{Choice, Command, Group, TABLE};

/// One option, as a line of the table.
pub struct Row {
    /// The name of the option's field in [`Settings`](super::Settings).
    pub field: &'static str,
    /// The short name, the long name or both, with their dashes, separated by a bar.
    pub(super) names: &'static str,
    /// The name of the value in the help; empty if the option has none.
    pub value: &'static str,
    /// The default value; empty if there is none.
    pub default: &'static str,
    /// Whether the option may be given more than once.
    pub is_repeated: bool,
    /// Whether the value is a list, separated by commas.
    pub is_list: bool,
    /// Whether the option must be given.
    pub is_required: bool,
    /// The group under whose heading the help lists the option.
    pub group: Group,
    /// The commands that have the option.
    pub commands: &'static [Command],
    /// The engines that use the option; empty if the option is not about engines.
    pub engines: &'static [EngineName],
    /// The explanation in `--help` and in the manual.
    pub help: &'static str,
    /// Further explanations, for the manual only.
    pub more: &'static str,
    /// The values to choose from; empty if they cannot be listed.
    pub choices: fn() -> Vec<Choice>,
    /// Checks a value; returns the error message if the value is wrong.
    pub check: fn(&str) -> Result<(), String>,
}

impl Row {
    /// The short name, without a dash.
    pub fn short(&self) -> Option<char> {
        self.names.split('|').find(|name| !name.starts_with("--"))?.chars().nth(1)
    }

    /// The long name, without dashes.
    pub fn long(&self) -> Option<&'static str> {
        self.names.split('|').find_map(|name| name.strip_prefix("--"))
    }

    /// The name with its dashes: the long name or, if there is none, the short one.
    pub fn name(&self) -> String {
        self.long().map_or_else(|| self.names.to_owned(), |long| format!("--{long}"))
    }
}

/// The row of a field of [`Settings`](super::Settings); panics if there is no such field.
pub fn row(field: &str) -> &'static Row {
    TABLE.iter().find(|row| row.field == field).unwrap_or_else(|| panic!("no option is called {field}"))
}

/// The rows of a command, in the order of the help.
pub fn rows(command: Command) -> impl Iterator<Item = &'static Row> {
    TABLE.iter().filter(move |row| row.commands.contains(&command))
}

/// The names, with dashes, of the options of `check` that this engine uses but some other engine ignores.
pub fn known_to(engine: EngineName) -> Vec<String> {
    rows(Command::Check).filter(|row| row.engines.contains(&engine)).map(Row::name).collect()
}

/// The type of a field of [`Settings`](super::Settings).
macro_rules! field {
    (flag $type:ty) => { bool };
    (once $type:ty) => { $type };
    (maybe $type:ty) => { Option<$type> };
    (must $type:ty) => { Option<$type> };
    (many $type:ty) => { Vec<$type> };
    (list $type:ty) => { Vec<$type> };
}

/// Assigns a value to a field of [`Settings`](super::Settings).
macro_rules! store {
    (flag $type:ty, $field:expr, $text:expr) => {
        $field = true
    };
    (once $type:ty, $field:expr, $text:expr) => {
        $field = <$type as Value>::read_os($text)?
    };
    (maybe $type:ty, $field:expr, $text:expr) => {
        $field = Some(<$type as Value>::read_os($text)?)
    };
    (must $type:ty, $field:expr, $text:expr) => {
        $field = Some(<$type as Value>::read_os($text)?)
    };
    (many $type:ty, $field:expr, $text:expr) => {
        $field.push(<$type as Value>::read_os($text)?)
    };
    (list $type:ty, $field:expr, $text:expr) => {
        for part in $text.to_string_lossy().split(',') {
            $field.push(<$type as Value>::read(part)?);
        }
    };
}

/// The value of a field of [`Settings`](super::Settings) before anything is set.
macro_rules! initial {
    (flag $type:ty, $default:literal) => {
        false
    };
    (once $type:ty, $default:literal) => {
        <$type as Value>::read($default).expect("the default can be read")
    };
    (maybe $type:ty, $default:literal) => {
        None
    };
    (must $type:ty, $default:literal) => {
        None
    };
    (many $type:ty, $default:literal) => {
        Vec::new()
    };
    (list $type:ty, $default:literal) => {
        Vec::new()
    };
}

/// Whether two kinds of options are the same.
macro_rules! is_kind {
    (must, must) => {
        true
    };
    (many, many) => {
        true
    };
    (list, list) => {
        true
    };
    ($kind:ident, $other:ident) => {
        false
    };
}

macro_rules! options {
    ($($group:ident { $($field:ident: $kind:ident $type:ty, $names:literal, $value:literal, $default:literal, $commands:expr, $engines:expr, $help:literal $(, $more:literal)?;)* })*) => {
        /// The value of each option.
        #[derive(Clone, Debug)]
        pub struct Settings {
            $($(#[doc = $help] pub $field: field!($kind $type),)*)*
            /// The fields that were set, with their texts.
            given: BTreeMap<&'static str, String>,
        }

        impl Default for Settings {
            fn default() -> Self {
                Settings { $($($field: initial!($kind $type, $default),)*)* given: BTreeMap::new() }
            }
        }

        impl Settings {
            /// Sets the field with this name from a text; the error is a message about the text. For flags, the text is ignored.
            pub fn set(&mut self, field: &str, text: impl AsRef<OsStr>) -> Result<(), String> {
                let text = text.as_ref();
                match field {
                    $($(stringify!($field) => store!($kind $type, self.$field, text),)*)*
                    _ => return Err(format!("no option is called {field}")),
                }
                let row = row(field);
                let given = self.given.entry(row.field).or_default();
                if !given.is_empty() && (row.is_repeated || row.is_list) {
                    given.push(',');
                } else {
                    given.clear();
                }
                given.push_str(&text.to_string_lossy());
                Ok(())
            }
        }

        /// All options, in the order of the help.
        pub static TABLE: &[Row] = &[
            $($(Row {
                field: stringify!($field), names: $names, value: $value, default: $default, is_repeated: is_kind!($kind, many), is_list: is_kind!($kind, list), is_required: is_kind!($kind, must), group: Group::$group, commands: $commands, engines: $engines, help: $help,
                more: concat!($($more)?), choices: <$type as Value>::choices, check: |text| <$type as Value>::read(text).map(drop),
            },)*)*
        ];
    };
}
