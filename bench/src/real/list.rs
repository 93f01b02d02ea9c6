//! Reads lists of public C programs, and determines the commits of the repositories that they refer to.
//!
//! A line of a list has four columns, separated by tabs: the file, the memory model, the expected verdict (`safe`, `unsafe` or `?`), and flags, which
//! are quoted as for a shell. `DIR` stands for the folder that contains the checkouts. Empty lines and lines that begin with `#` are skipped.
//!
//! A list `x-flags` beside a list `x` has the flags with which the scripts of a project run its tests, several rows for some files. A row of `x` whose
//! flags lack some of these takes the first ones: the project's expectation is about a run with flags ([`complete`]).

use std::path::{Path, PathBuf};
use std::process::Command;

use fencewright_testing::corpora::VARIABLE;

/// The placeholder for the folder that contains the checkouts.
const FOLDER: &str = "DIR";
/// The end of the names of lists that complete the flags of another list.
const FLAGS: &str = "-flags";

/// A list of programs.
pub struct List {
    /// The name of the list's file, without the extension.
    pub name: String,
    /// The rows in the order of the file.
    pub rows: Vec<Row>,
    /// The checkouts that files and flags of the rows refer to, sorted by name.
    pub checkouts: Vec<Checkout>,
}

/// One question of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The file as results show it: without the leading `DIR/`.
    pub name: String,
    /// The path of the file, with the folder of the checkouts in place of `DIR`.
    pub file: PathBuf,
    /// The memory model, as `--model` takes it.
    pub model: String,
    /// Whether the program is expected to be safe; `None` if the list has `?`.
    pub expected: Option<bool>,
    /// The flags as the list writes them.
    pub flags: String,
    /// The flags split into arguments, with the folder of the checkouts in place of `DIR`.
    pub arguments: Vec<String>,
    /// Whether the flags are those of the list that completes this one.
    pub is_completed: bool,
}

/// A checkout of a repository.
#[derive(Debug, PartialEq)]
pub struct Checkout {
    /// The name of the checkout's folder.
    pub name: String,
    /// The commit that git reports; without a repository, the commit that `README.md` beside the list names; `None` if neither names one.
    pub commit: Option<String>,
}

/// Reads the lists with these names or paths; without any, all lists of the corpora. `repositories` is the folder that contains the checkouts.
pub fn lists(wanted: &[String], repositories: &Path) -> Result<Vec<List>, String> {
    let corpus = std::env::var_os(VARIABLE).map(|folder| Path::new(&folder).join("c-real"));
    let missing = || format!("{VARIABLE} is not set: name files with lists, or a folder that has c-real");
    let mut paths = Vec::new();
    if wanted.is_empty() {
        let folder = corpus.ok_or_else(missing)?;
        let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let entries = entries.flatten().map(|entry| entry.path());
        paths.extend(entries.filter(|path| path.extension().is_some_and(|extension| extension == "tsv")));
        paths.sort();
        if paths.is_empty() {
            return Err(format!("{}: there are no lists in it", folder.display()));
        }
    } else {
        for name in wanted {
            let path = PathBuf::from(name);
            paths.push(match path.is_file() {
                true => path,
                false => corpus.as_ref().ok_or_else(missing)?.join(format!("{name}.tsv")),
            });
        }
    }
    paths.iter().map(|path| read(path, repositories)).collect()
}

fn read(path: &Path, repositories: &Path) -> Result<List, String> {
    let mut rows = rows(path, repositories)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let flags = path.with_file_name(format!("{name}{FLAGS}.tsv"));
    if flags.is_file() {
        complete(&mut rows, &self::rows(&flags, repositories)?);
    }
    let beside = std::fs::read_to_string(path.with_file_name("README.md")).unwrap_or_default();
    let mut names: Vec<&str> = Vec::new();
    for row in &rows {
        let mentioned = row.flags.split(FOLDER).skip(1).filter_map(|rest| rest.strip_prefix('/'));
        let folders = mentioned.chain([row.name.as_str()]).map(|path| {
            path.split(|c: char| c == '/' || c.is_whitespace() || "'\"".contains(c)).next().unwrap_or("")
        });
        names.extend(folders.filter(|name| repositories.join(name).is_dir() && !name.is_empty()));
    }
    names.sort_unstable();
    names.dedup();
    let checkout = |name: &str| Checkout {
        name: name.to_string(),
        commit: git(&repositories.join(name)).or_else(|| said(&beside, name)),
    };
    Ok(List { name, checkouts: names.into_iter().map(checkout).collect(), rows })
}

/// The rows of a file.
fn rows(path: &Path, repositories: &Path) -> Result<Vec<Row>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let numbered =
        (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let parsed = |(n, line)| row(line, repositories).map_err(|why| format!("{}:{n}: {why}", path.display()));
    numbered.map(parsed).collect()
}

/// Gives each row the flags of the first row of `flags` with the same file and memory model, if these contain all flags of the row and more.
fn complete(rows: &mut [Row], flags: &[Row]) {
    for row in rows {
        let Some(with) = flags.iter().find(|with| (&with.file, &with.model) == (&row.file, &row.model))
        else {
            continue;
        };
        let has_all = row.arguments.iter().all(|argument| with.arguments.contains(argument));
        if has_all && with.arguments.len() > row.arguments.len() {
            (row.flags, row.arguments) = (with.flags.clone(), with.arguments.clone());
            row.is_completed = true;
        }
    }
}

fn row(line: &str, repositories: &Path) -> Result<Row, String> {
    let cells: Vec<&str> = line.split('\t').collect();
    let [file, model, expected, flags @ ..] = &cells[..] else {
        return Err("expected a file, a memory model and a verdict, separated by tabs".into());
    };
    let expected = match *expected {
        "safe" => Some(true),
        "unsafe" => Some(false),
        "?" => None,
        other => return Err(format!("`{other}` is no verdict: safe, unsafe or ?")),
    };
    let ([] | [_]) = flags else { return Err("there are more than four columns".into()) };
    let flags = flags.first().map_or("", |flags| flags.trim());
    let name = file.strip_prefix("DIR/").unwrap_or(file);
    let absolute = |word: &String| placed(&from_build(word, name), repositories);
    Ok(Row {
        name: name.to_string(),
        file: placed(file, repositories).into(),
        model: model.to_string(),
        expected,
        flags: flags.to_string(),
        arguments: words(flags)?.iter().map(absolute).collect(),
        is_completed: false,
    })
}

/// The option with `DIR/` if it is `-I../FOLDER`: scripts of projects run in a folder directly below the checkout of the file, such as `build`.
fn from_build(option: &str, file: &str) -> String {
    match (option.strip_prefix("-I../"), file.split_once('/')) {
        (Some(folder), Some((checkout, _))) => format!("-I{FOLDER}/{checkout}/{folder}"),
        _ => option.to_string(),
    }
}

/// The text with `DIR` replaced by the folder of the checkouts where it is a path component: before a slash, and not at the end of a longer name such
/// as `MY_DIR`.
pub fn placed(text: &str, repositories: &Path) -> String {
    let folder = repositories.display().to_string();
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("DIR/") {
        let (before, after) = rest.split_at(at);
        result += before;
        let ends_name = result.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '/');
        // In `-IDIR/include` the option `-I` is not part of the name.
        let is_option = result == "-I";
        result += if ends_name && !is_option { FOLDER } else { &folder };
        rest = &after[FOLDER.len()..];
    }
    result + rest
}

/// Splits a text into words like a shell: white space separates words, and quotation marks and backslashes quote. An error if a quotation does not
/// end.
pub fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next().ok_or("a quotation has no end")? {
                        end if end == c => break,
                        '\\' if c == '"' => word.extend(characters.next()),
                        inner => word.push(inner),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(characters.next()),
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

/// The abbreviated commit that git reports for a checkout. `None` for a folder without `.git`: git would report the commit of an enclosing
/// repository.
fn git(folder: &Path) -> Option<String> {
    if !folder.join(".git").exists() {
        return None;
    }
    let output =
        Command::new("git").arg("-C").arg(folder).args(["rev-parse", "--short", "HEAD"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    Some(text.trim().to_string())
}

/// The commit that a `README.md` names for a checkout, in the form `name (owner/repository commit ...)`.
fn said(text: &str, name: &str) -> Option<String> {
    let (_, behind) = text.split_once(&format!("{name} ("))?;
    let (inside, _) = behind.split_once(')')?;
    let is_commit = |word: &&str| word.len() >= 7 && word.chars().all(|c| c.is_ascii_hexdigit());
    inside.split_whitespace().find(is_commit).map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_a_shell() {
        let split = |text| words(text).expect("quotations end");
        assert_eq!(
            split(" -D  N=2 '-DT=\"a b.h\"' -D\\ x \"\\\"\" ''"),
            ["-D", "N=2", "-DT=\"a b.h\"", "-D x", "\"", ""]
        );
        assert_eq!(split(""), [""; 0]);
        assert!(words("'a").is_err() && words("\"a\\\"").is_err());
    }

    #[test]
    fn rows_name_files_within_the_folder() {
        let found = row("DIR/a/b.c\ttso\t?\t-I DIR/a -IDIR/b '-DT=\"DIR/t.h\"' -D MY_DIR/x", Path::new("/r"))
            .expect("a row");
        assert_eq!((found.name.as_str(), found.file.as_path()), ("a/b.c", Path::new("/r/a/b.c")));
        assert_eq!(found.arguments, ["-I", "/r/a", "-I/r/b", "-DT=\"/r/t.h\"", "-D", "MY_DIR/x"]);
        assert_eq!((found.expected, found.model.as_str()), (None, "tso"));
        for wrong in ["a.c", "a.c\ttso\tmaybe", "a.c\ttso\tsafe\t-I .\tmore", "a.c\ttso\tsafe\t'"] {
            assert!(row(wrong, Path::new("/r")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rows_take_the_first_flags_that_contain_theirs() {
        let at = |line: &str| row(line, Path::new("/r")).expect("a row");
        let mut rows = ["a.c\ttso", "b.c\ttso", "c.c\ttso", "a.c\tpso"]
            .map(|start| at(&format!("DIR/g/{start}\tsafe\t-I DIR/g/include")));
        let flags = [
            "a.c\ttso\tsafe\t-D N=2 -I../tests/a -I DIR/g/include",
            "a.c\ttso\tsafe\t-D N=3 -I DIR/g/include",
            "b.c\ttso\tsafe\t-I DIR/g/include",
            "c.c\ttso\tsafe\t-D N=2",
        ];
        complete(&mut rows, &flags.map(|line| at(&format!("DIR/g/{line}"))));
        assert_eq!(rows[0].arguments, ["-D", "N=2", "-I/r/g/tests/a", "-I", "/r/g/include"]);
        assert_eq!(rows.map(|row| row.is_completed), [true, false, false, false]);
    }

    #[test]
    fn commits_are_found_beside_the_lists() {
        let text =
            "checkouts: ck (concurrencykit/ck 11baddc), libvsync (open-s4c/libvsync dd93f80 with `vatomic`).";
        assert_eq!(said(text, "libvsync").as_deref(), Some("dd93f80"));
        assert_eq!(said(text, "genmc"), None);
    }
}
