//! `compile_commands.json`, in which build systems say how they compile each source file. The file is only read: no command in it is run.

use std::fs;
use std::path::{Component, Path, PathBuf};

use fencewright_lang::options::{Compilation, MacroOption};
use serde_json::Value;

use crate::input;

/// The name of the file in a folder.
const NAME: &str = "compile_commands.json";

/// How a build system compiles a source file. `place` is the folder with `compile_commands.json`, or the file itself.
pub fn compilation(place: &Path, source: &Path) -> Result<Compilation, String> {
    let path = if place.is_dir() { place.join(NAME) } else { place.to_owned() };
    let said = |why: String| format!("{}: {why}", path.display());
    let bytes = input::read_included(&path).map_err(|error| said(input::in_words(&error)))?;
    let no_json =
        |error| said(format!("this is not JSON: {error}; -p names a folder with a {NAME}, or that file"));
    let entries: Value = serde_json::from_slice(&bytes).map_err(no_json)?;
    let entries = entries.as_array().ok_or_else(|| said("expected a list of compilations".into()))?;
    let wanted = Wanted::new(source);
    let found = entries.iter().find_map(|entry| Some(Entry::read(entry)?).filter(|entry| wanted.is(entry)));
    let entry = found.ok_or_else(|| said(format!("there is no entry for {}", source.display())))?;
    let arguments =
        entry.arguments.ok_or_else(|| said("an entry has neither `arguments` nor `command`".into()))?;
    let arguments = preprocessed(arguments);
    if let Some(argument) = another_meaning(&arguments) {
        return Err(said(format!("the option `{argument}` gives a program a meaning that is not modelled")));
    }
    Ok(options(&arguments, &entry.directory))
}

/// An entry of the list.
struct Entry {
    directory: PathBuf,
    file: PathBuf,
    arguments: Option<Vec<String>>,
}

impl Entry {
    fn read(entry: &Value) -> Option<Entry> {
        let text = |name: &str| entry.get(name).and_then(Value::as_str);
        let directory = PathBuf::from(text("directory").unwrap_or_default());
        let listed = entry.get("arguments").and_then(Value::as_array);
        let listed = listed.map(|all| all.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        let arguments = listed.or_else(|| text("command").map(words));
        Some(Entry { file: directory.join(text("file")?), directory, arguments })
    }
}

/// The source file that an entry should be about.
struct Wanted {
    plain: PathBuf,
    /// The path with symbolic links resolved; `None` if the file cannot be found.
    real: Option<PathBuf>,
}

impl Wanted {
    fn new(source: &Path) -> Wanted {
        let absolute = std::path::absolute(source).unwrap_or_else(|_| source.to_owned());
        Wanted { plain: plain(&absolute), real: fs::canonicalize(source).ok() }
    }

    fn is(&self, entry: &Entry) -> bool {
        let file = plain(&entry.file);
        let is_same_file = || {
            file.file_name() == self.plain.file_name()
                && self
                    .real
                    .as_ref()
                    .is_some_and(|real| fs::canonicalize(&file).is_ok_and(|file| file == *real))
        };
        file == self.plain || is_same_file()
    }
}

/// The path without `.`, and without each `..` together with the folder before it. Symbolic links are not followed.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => _ = plain.pop(),
            part => plain.push(part),
        }
    }
    plain
}

/// The words of a command line, quoted as for a shell.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word): (Vec<String>, Option<String>) = Default::default();
    let (mut quote, mut chars) = (None, command.chars());
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, ' ' | '\t' | '\n') => words.extend(word.take()),
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), c) if c == open => quote = None,
            (None, '\\') => word.get_or_insert_default().extend(chars.next()),
            (Some('"'), '\\') => {
                let next = chars.next();
                let is_escaped = matches!(next, Some('"' | '\\' | '$' | '`'));
                let word = word.get_or_insert_default();
                word.extend(Some('\\').filter(|_| !is_escaped).into_iter().chain(next));
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The options of a compiler that change the text of a program or where its headers are found. All others are ignored.
fn options(arguments: &[String], directory: &Path) -> Compilation {
    let mut found = Compilation::default();
    let path = |value: &str| plain(&directory.join(value)).to_string_lossy().into_owned();
    let mut arguments = arguments.iter().map(String::as_str);
    while let Some(argument) = arguments.next() {
        match argument {
            "-fwrapv" | "-fno-strict-overflow" | "-ftrapv" => found.overflow = Some(argument.into()),
            "-fno-wrapv" | "-fstrict-overflow" | "-fno-trapv" => found.overflow = None,
            _ => {}
        }
        let Some((name, joined)) = named(argument) else { continue };
        let value = if joined.is_empty() { arguments.next().unwrap_or_default() } else { joined };
        match name {
            "-D" => {
                let (name, value) =
                    value.split_once('=').map_or((value, None), |(name, value)| (name, Some(value)));
                found.macros.push(MacroOption::Define(name.into(), value.map(str::to_owned)));
            }
            "-U" => found.macros.push(MacroOption::Undefine(value.into())),
            "-I" => found.folders.push(path(value)),
            "-iquote" => found.quote_folders.push(path(value)),
            "-include" => found.includes.push(value.into()),
            "--sysroot" => found.sysroot = Some(path(value)),
            _ => found.system_folders.push(path(value)),
        }
    }
    // A compiler searches for the files of `-include` in its working directory first.
    for file in &mut found.includes {
        let beside = path(file);
        if Path::new(&beside).is_file() {
            *file = beside;
        }
    }
    found
}

/// The arguments, with those that `-Wp,` passes to the preprocessor as words of their own.
fn preprocessed(arguments: Vec<String>) -> Vec<String> {
    let mut found = Vec::with_capacity(arguments.len());
    for argument in arguments {
        match argument.strip_prefix("-Wp,") {
            Some(passed) => found.extend(passed.split(',').map(str::to_owned)),
            None => found.push(argument),
        }
    }
    found
}

/// The first option that changes types or the text of a program in a way that is not modelled.
fn another_meaning(arguments: &[String]) -> Option<&str> {
    const WORDS: [&str; 8] = [
        "-funsigned-char",
        "-fno-signed-char",
        "-fshort-enums",
        "-fshort-wchar",
        "-fopenmp",
        "-m16",
        "-m32",
        "-mx32",
    ];
    const STARTS: [&str; 6] =
        ["-fpack-struct", "-imacros", "--define-macro", "--undefine-macro", "--include", "@"];
    let mut before = "";
    arguments.iter().map(String::as_str).find(|&argument| {
        let last = std::mem::replace(&mut before, argument);
        let target = match last {
            "-target" | "--target" => Some(argument),
            _ => argument.strip_prefix("--target="),
        };
        let is_other = |target: &str| {
            !(target.starts_with("x86_64") && target.contains("linux")) || target.ends_with("x32")
        };
        WORDS.contains(&argument)
            || STARTS.iter().any(|start| argument.starts_with(start))
            || target.is_some_and(is_other)
    })
}

/// If an argument is an option that [`options`] uses: the name of the option, and its value as far as it is in the same argument. The value is the
/// next argument if that part is empty.
fn named(argument: &str) -> Option<(&'static str, &str)> {
    const LONG: [&str; 4] = ["-isystem", "-idirafter", "-iquote", "-include"];
    const SHORT: [&str; 3] = ["-D", "-U", "-I"];
    if let Some(rest) = argument.strip_prefix("--sysroot") {
        return Some(("--sysroot", rest.strip_prefix('=').unwrap_or_default()));
    }
    let found = LONG.iter().chain(&SHORT).find_map(|name| Some((*name, argument.strip_prefix(name)?)));
    // `-include-pch` of clang names a precompiled header, which is not a text; it is ignored.
    found.filter(|found| *found != ("-include", "-pch"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_has_words() {
        let command = r#"cc  -DA -D'B="x y"' -D "C=\"z\"" -I a\ b -o x.o "x.c" """#;
        let expected = ["cc", "-DA", "-DB=\"x y\"", "-D", "C=\"z\"", "-I", "a b", "-o", "x.o", "x.c", ""];
        assert_eq!(words(command), expected);
        assert_eq!(words("a '"), ["a", ""]);
        assert_eq!(words("\\"), [""]);
    }

    #[test]
    fn options_of_compilers() {
        let command = "cc -DN=2 -UN -D M -Iinc -I /abs/../x -isystem sys -idirafter late -iquote q -include first.h \
            --sysroot=/root -O2 -c a.c -I";
        let found = options(&words(command), Path::new("/build"));
        let macros = [
            MacroOption::Define("N".into(), Some("2".into())),
            MacroOption::Undefine("N".into()),
            MacroOption::Define("M".into(), None),
        ];
        assert_eq!(found.macros, macros);
        assert_eq!(found.folders, ["/build/inc", "/x", "/build"]);
        assert_eq!(found.system_folders, ["/build/sys", "/build/late"]);
        assert_eq!(found.quote_folders, ["/build/q"]);
        assert_eq!(found.includes, ["first.h"]);
        assert_eq!(found.sysroot.as_deref(), Some("/root"));
        assert_eq!(found.overflow, None);
        for (command, overflow) in [
            ("cc -fwrapv -c a.c", Some("-fwrapv")),
            ("cc -fno-strict-overflow", Some("-fno-strict-overflow")),
            ("cc -ftrapv", Some("-ftrapv")),
            ("cc -fwrapv -fno-wrapv", None),
        ] {
            assert_eq!(options(&words(command), Path::new("/")).overflow.as_deref(), overflow, "{command}");
        }
    }
}
