//! The manual agrees with the command: options in docs/cli.md, keys and examples in docs/json.md.

use std::collections::BTreeSet;

use fencewright::settings::{Command, reference};

use crate::common::*;

fn document(name: &str) -> String {
    std::fs::read_to_string(repository(&format!("docs/{name}"))).expect("the document")
}

/// The section with this heading, including its subsections.
fn section<'a>(document: &'a str, heading: &str) -> &'a str {
    let level = heading.chars().take_while(|&c| c == '#').count();
    let start = document.find(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no section `{heading}`"));
    let body = &document[start + heading.len() + 2..];
    let is_next = |line: &str| (1..=level).any(|n| line.starts_with(&format!("{} ", "#".repeat(n))));
    let mut fenced = false;
    let mut length = 0;
    for line in body.split_inclusive('\n') {
        fenced ^= line.starts_with("```");
        if !fenced && is_next(line) {
            break;
        }
        length += line.len();
    }
    &body[..length]
}

/// The options that the output of `--help` lists: by their long names if they have any.
fn options(help: &str) -> BTreeSet<String> {
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let names = lines.filter_map(|line| {
        let mut words = line.split([' ', ',']).filter(|word| word.starts_with('-'));
        words.clone().find(|word| word.starts_with("--")).or(words.next())
    });
    names.filter(|name| !["--help", "--version"].contains(name)).map(str::to_string).collect()
}

#[test]
fn every_option_is_in_the_manual() {
    let manual = document("cli.md");
    let help = run(["--help"]).stdout;
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands: Vec<&str> =
        commands.filter_map(|line| line.split_whitespace().next()).filter(|&name| name != "help").collect();
    assert!(commands.len() > 10, "{help}");
    let common = section(&manual, "## Files").to_string();
    for command in commands {
        let about = format!("{common}{}", section(&manual, &format!("## {command}")));
        // The families of `generate` have help texts of their own.
        let help = run([command, "--help"]).stdout;
        let families =
            help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|l| !l.is_empty());
        let families =
            families.filter_map(|line| line.split_whitespace().next()).filter(|&name| name != "help");
        let helps = families.map(|family| run([command, family, "--help"]).stdout);
        let mut all = options(&help);
        helps.for_each(|help| all.extend(options(&help)));
        for option in all {
            let named = about.match_indices(option.as_str()).any(|(at, _)| {
                let next = about[at + option.len()..].chars().next();
                next.is_none_or(|c| !c.is_alphanumeric() && c != '-')
            });
            assert!(named, "docs/cli.md does not name {option} of {command}");
        }
    }
}

/// With `UPDATE_DOCS=1` the tables of the manual are written instead of compared.
#[test]
fn the_option_tables_of_the_manual_are_made_from_the_table_of_options() {
    let manual = document("cli.md");
    let (mut rest, mut expected, mut commands) = (manual.as_str(), String::new(), Vec::new());
    while let Some((before, after)) = rest.split_once("<!-- options: ") {
        let (name, after) = after.split_once(" -->\n").expect("a marker ends");
        let (_, after) = after.split_once("<!-- end of options -->").expect("a table ends");
        let command = Command::ALL.into_iter().find(|command| command.name() == name).expect("a command");
        commands.push(command);
        let table = reference(command);
        expected += &format!("{before}<!-- options: {name} -->\n{table}<!-- end of options -->");
        rest = after;
    }
    expected += rest;
    assert_eq!(commands.len(), Command::ALL.len());
    match std::env::var_os("UPDATE_DOCS") {
        Some(_) => std::fs::write(repository("docs/cli.md"), expected).expect("it can be written"),
        None => assert!(manual == expected, "docs/cli.md is out of date: run this test with UPDATE_DOCS=1"),
    }
}

#[test]
fn the_manual_names_z3() {
    let manual = document("cli.md");
    let about = section(&manual, "### Z3");
    for word in ["FENCEWRIGHT_Z3", "`z3`", "--no-z3"] {
        assert!(about.contains(word), "{word}");
    }
}

/// The keys that the first table of a section lists, in order, and for each whether it is optional.
fn documented(section: &str) -> Vec<(String, bool)> {
    let rows = section.lines().skip_while(|line| !line.starts_with("| key |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    rows.flat_map(|row| {
        let mut columns = row.split('|').skip(1);
        let (keys, value) = (columns.next().unwrap_or(""), columns.next().unwrap_or("").trim_start());
        let sometimes = value.starts_with("only");
        let keys = keys.split('`').skip(1).step_by(2).map(move |key| (key.to_string(), sometimes));
        keys.collect::<Vec<_>>()
    })
    .collect()
}

/// The keys of the first object in a text, in the order in which they are written.
fn keys(json: &str) -> Vec<String> {
    let (mut keys, mut depth, mut chars) = (Vec::new(), 0, json.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '{' | '[' => depth += 1,
            '}' if depth == 1 => break,
            '}' | ']' => depth -= 1,
            '"' => {
                let mut text = String::new();
                while let Some(c) = chars.next().filter(|&c| c != '"') {
                    text.push(c);
                    if c == '\\' {
                        text.extend(chars.next());
                    }
                }
                if depth == 1 && chars.peek() == Some(&':') {
                    keys.push(text);
                }
            }
            _ => {}
        }
    }
    keys
}

/// Compares the keys that a section lists with the keys of the first object in an output.
fn agree(heading: &str, output: &str) {
    let (manual, found) = (document("json.md"), keys(output));
    let listed = documented(section(&manual, heading));
    assert!(listed.len() > 3, "{heading}: {listed:?}");
    let expected: Vec<String> = listed
        .into_iter()
        .filter(|(key, sometimes)| !sometimes || found.contains(key))
        .map(|(key, _)| key)
        .collect();
    assert_eq!(found, expected, "{heading}");
}

#[test]
fn keys_are_those_of_the_manual_and_come_in_its_order() {
    let files = Files::new(&[
        ("sb.fw", STORE_BUFFERING),
        ("wrong.fw", WRONG),
        (
            "SB.litmus",
            "X86 SB\n{ }\n P0 | P1 ;\n MOV [x],$1 | MOV [y],$1 ;\n MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0)\n",
        ),
    ]);
    let sb = files.text("sb.fw");
    let out = |arguments: &[&str]| run(arguments).stdout;
    agree("## `fencewright check --json`", &out(&["check", "--json", &sb]));
    agree("## `fencewright check --json`", &out(&["check", "--json", "--engine", "contexts", &sb]));
    agree("## `fencewright robust --json`", &out(&["robust", "--json", &sb]));
    agree("## `fencewright robust --json`", &out(&["robust", "--json", "--all", &sb]));
    agree("## `fencewright fences --json`", &out(&["fences", "--json", &sb]));
    let litmus = out(&["litmus", "--json", &files.text("SB.litmus")]);
    agree("## `fencewright litmus --json`", litmus.trim_start_matches('['));
    for command in ["check", "robust", "fences"] {
        agree("## Errors", &out(&[command, "--json", &files.text("wrong.fw")]));
    }
    let trace = out(&["check", "--json", &sb]);
    agree("### Steps", &trace[trace.find("\"trace\":[").expect("a trace") + 9..]);
    let manual = document("json.md");
    let commands = manual.lines().filter(|line| line.starts_with("## `fencewright")).count();
    let numbers = ["no", "one", "two", "three", "four", "five", "six"];
    let sentence = format!("{} commands print json", numbers[commands]);
    assert!(manual.to_lowercase().contains(&sentence), "there are {commands} sections");
}

#[test]
fn the_example_of_the_manual_is_what_is_printed() {
    let manual = document("json.md");
    let block =
        manual.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let example: String = block.lines().map(str::trim_start).collect();
    let example = example.replace(", ...]", "]");
    let files = Files::new(&[("sb.fw", STORE_BUFFERING)]);
    let printed =
        run(["check", "--json", "--engine", "explicit", "--jobs", "1", &files.text("sb.fw")]).stdout;
    assert_eq!(keys(&example), keys(&printed));
    let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
    let (example, printed) = (parsed(&example), parsed(&printed));
    for key in ["model", "property", "line", "column", "verdict", "reason", "engine", "checked", "growth"] {
        assert_eq!(example[key], printed[key], "{key}");
    }
    let step = |value: &serde_json::Value| {
        let step = value["trace"][0].as_object().expect("a step");
        step.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(step(&example), step(&printed));
}

#[test]
fn every_verdict_on_an_attack_is_in_the_manual() {
    let manual = document("json.md");
    let about = section(&manual, "## `fencewright robust --json`");
    // With a timeout of 0, nothing is examined, so the output has different keys.
    let files = Files::new(&[("sb.fw", STORE_BUFFERING)]);
    let (mut seen, path) = (BTreeSet::new(), files.text("sb.fw"));
    for timeout in ["0", "10s"] {
        for line in run(["robust", "--json", "--all", "--timeout", timeout, &path]).json_lines() {
            let attacks = line["list"].as_array().cloned().unwrap_or_default();
            seen.extend(attacks.iter().filter_map(|a| a["verdict"].as_str()).map(str::to_string));
        }
    }
    assert!(!seen.is_empty());
    for verdict in seen.iter().map(String::as_str).chain(["not examined"]) {
        assert!(about.contains(&format!("`\"{verdict}\"`")), "{verdict}");
    }
}

/// The links of a page within the manual: the target page (empty for the same page) and the heading.
fn links(text: &str) -> Vec<(&str, Option<&str>)> {
    let ends = text.match_indices("](").map(|(at, _)| &text[at + 2..]);
    let targets = ends.filter_map(|rest| rest.split(')').next()).filter(|target| !target.contains("://"));
    targets
        .map(|target| target.split_once('#').map_or((target, None), |(page, name)| (page, Some(name))))
        .collect()
}

/// The anchor that links use for a heading, in the book and on code hosts.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn every_page_is_in_the_book_and_every_link_leads_somewhere() {
    let summary = document("SUMMARY.md");
    let book: BTreeSet<String> = links(&summary).into_iter().map(|(page, _)| page.to_owned()).collect();
    let pages = std::fs::read_dir(repository("docs")).expect("the folder");
    let names = pages.map(|page| page.expect("an entry").file_name().to_string_lossy().into_owned());
    let pages: BTreeSet<String> =
        names.filter(|name| name.ends_with(".md") && name != "SUMMARY.md").collect();
    assert_eq!(book, pages);
    for (name, text) in self::pages() {
        let folder = repository(&name).parent().expect("a page is in a folder").to_owned();
        for (page, heading) in links(&text) {
            let target = if page.is_empty() { repository(&name) } else { folder.join(page) };
            assert!(target.exists(), "{name} links to {page}");
            let Some(heading) = heading else { continue };
            let text = std::fs::read_to_string(&target).expect("a page");
            let mut headings = text.lines().filter(|line| line.starts_with('#'));
            let there = headings.any(|line| anchor(line.trim_start_matches('#').trim()) == heading);
            assert!(there, "{name} links to {page}#{heading}");
        }
    }
}

/// The README and the pages of the book, by name.
fn pages() -> Vec<(String, String)> {
    let folder = std::fs::read_dir(repository("docs")).expect("the folder");
    let names = folder.map(|page| page.expect("an entry").file_name().to_string_lossy().into_owned());
    let pages = names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}"));
    let others =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "examples/README.md", "editors/vscode/README.md"];
    let mut pages: Vec<String> = pages.chain(others.map(str::to_owned)).collect();
    pages.sort();
    let read = |name: String| (std::fs::read_to_string(repository(&name)).expect("a page"), name);
    pages.into_iter().map(read).map(|(text, name)| (name, text)).collect()
}

/// The fenced blocks of a page, each with the language that it names.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let mut blocks = Vec::new();
    let mut rest = page;
    while let Some((_, behind)) = rest.split_once("\n```") {
        let (language, body) = behind.split_once('\n').unwrap_or((behind, ""));
        let (body, after) = body.split_once("\n```").unwrap_or((body, ""));
        blocks.push((language, body));
        rest = after;
    }
    blocks
}

/// A line without its times, which differ from run to run.
fn timeless(line: &str) -> String {
    // The last line about a litmus test.
    if let Some((name, seconds)) =
        line.strip_prefix("Time ").and_then(|rest| rest.trim_end().rsplit_once(' '))
        && seconds.parse::<f64>().is_ok()
    {
        return format!("Time {name} 0");
    }
    let mut words: Vec<&str> = line.trim_end().split(' ').collect();
    for n in 1..words.len() {
        let is_seconds = words[n].trim_end_matches([')', ';', ',']) == "s";
        if is_seconds && words[n - 1].trim_start_matches('(').parse::<f64>().is_ok() {
            words[n - 1] = if words[n - 1].starts_with('(') { "(0" } else { "0" };
        }
    }
    // Columns of a table are aligned with the longest time.
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

/// Whether a line agrees with the line that a page shows, where `...` stands for any text.
fn is_line(shown: &str, line: &str) -> bool {
    let (shown, line) = (timeless(shown), timeless(line));
    let mut parts = shown.split("...");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Whether an output agrees with the output that a page shows, where a line `...` stands for any number of lines.
fn is_output(shown: &[&str], lines: &[&str]) -> bool {
    match shown {
        [] => lines.is_empty(),
        [any, rest @ ..] if any.trim() == "..." => (0..=lines.len()).any(|n| is_output(rest, &lines[n..])),
        [first, rest @ ..] => {
            lines.first().is_some_and(|line| is_line(first, line)) && is_output(rest, &lines[1..])
        }
    }
}

#[test]
fn outputs_are_compared_as_they_should_be() {
    let output = ["a (0.01 s)", "b", "c"];
    for shown in [&["a (0.02 s)", "b", "c"][..], &["a (...)", "..."], &["...", "c"], &["a...", "...", "c"]] {
        assert!(is_output(shown, &output), "{shown:?}");
    }
    for shown in [&["a (0.02 s)", "b"][..], &["a", "..."], &["...", "b"], &["b...", "..."], &[]] {
        assert!(!is_output(shown, &output), "{shown:?}");
    }
}

/// In a block, `$ fencewright ...` (or the command that runs it from a checkout) is a command line, and the following lines are its output. The
/// commands of a page run in one folder that has all examples, the folder `examples/`, and a program for each `.fw` block that begins with `//
/// NAME.fw`.
#[test]
fn outputs_that_pages_show_are_what_is_printed() {
    let mut seen = 0;
    for (name, page) in pages().into_iter().filter(|(_, page)| page.contains("```\n$ ")) {
        let files = Files::new(&[]);
        let folder = files.directory.path();
        for entry in std::fs::read_dir(repository("examples")).expect("the examples") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|extension| extension == "fw") {
                std::fs::copy(&path, folder.join(path.file_name().expect("a name"))).expect("a copy");
            }
        }
        std::os::unix::fs::symlink(repository("examples"), folder.join("examples")).expect("a link");
        for (language, body) in blocks(&page) {
            let title = body.lines().next().and_then(|line| line.strip_prefix("// "));
            if let (true, Some(file)) = (["fw", ""].contains(&language), title.filter(|t| t.ends_with(".fw")))
            {
                std::fs::write(folder.join(file), body).expect("a program");
            }
            if let (true, Some(test)) =
                (language == "litmus", body.lines().next().and_then(|line| line.strip_prefix("X86 ")))
            {
                std::fs::write(folder.join(format!("{test}.litmus")), body).expect("a test");
            }
            if !body.starts_with("$ ") {
                continue;
            }
            for part in format!("\n{body}").split("\n$ ").skip(1) {
                let (line, shown) = part.split_once('\n').unwrap_or((part, ""));
                let arguments =
                    line.strip_prefix("fencewright ").or(line.strip_prefix("cargo run --release -- "));
                let arguments = arguments.unwrap_or_else(|| panic!("{name}: `{line}`"));
                let outcome = finish(
                    command().current_dir(folder).args(arguments.split(' ')).spawn().expect("it starts"),
                );
                let printed: Vec<&str> = outcome.stdout.trim_end().lines().collect();
                let shown: Vec<&str> = shown.trim_end().lines().collect();
                assert!(
                    is_output(&shown, &printed),
                    "{name}: $ {line}\n{}{}",
                    outcome.stdout,
                    outcome.stderr
                );
                seen += 1;
            }
        }
    }
    assert!(seen > 8, "{seen} outputs");
}

#[test]
fn every_example_is_in_a_table() {
    let page = std::fs::read_to_string(repository("examples/README.md")).expect("the page");
    let names = |folder: &str| {
        let entries = std::fs::read_dir(repository(folder)).expect("the examples");
        let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        names.collect::<Vec<String>>()
    };
    let programs = names("examples").into_iter().filter_map(|name| {
        let name = name.strip_suffix(".fw")?;
        Some(name.trim_end_matches(".fenced").trim_end_matches(".pso").to_owned())
    });
    let in_c = names("examples/c").into_iter().filter(|name| name.ends_with(".c"));
    for name in programs.chain(in_c.map(|name| format!("c/{name}"))) {
        assert!(page.contains(&format!("\n| `{name}` |")), "examples/README.md does not list {name}");
    }
}

#[test]
fn every_source_file_that_a_page_names_is_there() {
    let is_path = |c: char| c.is_ascii_alphanumeric() || "_-./+".contains(c);
    for (name, page) in pages() {
        for (at, _) in page.match_indices("crates/") {
            let length = page[at..].find(|c: char| !is_path(c)).unwrap_or(page.len() - at);
            let path = page[at..at + length].trim_end_matches(['.', '/']);
            assert!(repository(path).exists(), "{name} names {path}");
        }
    }
}
