//! The manual agrees with the command: options in docs/cli.md, keys and examples in docs/json.md.

mod common;

use std::collections::BTreeSet;

use common::*;

fn document(name: &str) -> String {
    std::fs::read_to_string(repository(&format!("docs/{name}"))).expect("the document")
}

/// The text of a section with this heading, sections in it included.
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

/// The options that a `--help` lists: by their long names if they have one.
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
        // Families of `generate` have options of their own.
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

#[test]
fn the_manual_names_z3() {
    let manual = document("cli.md");
    let about = section(&manual, "### Z3");
    for word in ["FENCEWRIGHT_Z3", "`z3`", "--no-z3"] {
        assert!(about.contains(word), "{word}");
    }
}

/// The keys that the first table of a section lists, in order; those that are not always there are marked.
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

/// Compares what a section lists with the first object in an output.
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
    // With no time at all nothing is examined.
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

/// The pages that a text links to, without what is behind `#`.
fn links(text: &str) -> Vec<String> {
    let ends = text.match_indices("](").map(|(at, _)| &text[at + 2..]);
    let targets = ends.filter_map(|rest| rest.split(')').next());
    let pages = targets.map(|target| target.split('#').next().unwrap_or_default().to_string());
    pages.filter(|page| !page.is_empty() && !page.contains("://")).collect()
}

#[test]
fn every_page_is_in_the_book_and_every_link_leads_somewhere() {
    let book: BTreeSet<String> = links(&document("SUMMARY.md")).into_iter().collect();
    let pages = std::fs::read_dir(repository("docs")).expect("the folder");
    let names = pages.map(|page| page.expect("an entry").file_name().to_string_lossy().into_owned());
    let pages: BTreeSet<String> =
        names.filter(|name| name.ends_with(".md") && name != "SUMMARY.md").collect();
    assert_eq!(book, pages);
    for page in &pages {
        for link in links(&document(page)) {
            assert!(repository("docs").join(&link).exists(), "{page} links to {link}");
        }
    }
}
