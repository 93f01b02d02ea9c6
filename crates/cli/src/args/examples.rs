//! Examples for `--help` and the manual pages, for each command.
//!
//! A line that begins with `fencewright` is a command line, followed by its explanation after two or more blanks. A test parses every command line.

use clap::Command;

/// The examples of the command as a whole.
const OVERVIEW: &str = "\
fencewright check peterson.fw                     does it hold on x86 (tso)?
fencewright check --model all peterson.fw         ... and under sc and pso?
fencewright check -D N=3 --timeout 5m bakery.fw   with a constant changed, and more time
fencewright check --html report.html locks/       every program in a folder, as a page for a browser
fencewright check --certificate proof.json bakery.fenced.fw
fencewright certify proof.json bakery.fenced.fw   is that a proof?
fencewright robust peterson.fw                    does it behave on x86 as under sc?
fencewright fences --diff peterson.fw             the cheapest fences, as a patch
fencewright litmus tests/                         every .litmus file in a directory
fencewright run --seed 7 peterson.fw              one random execution
fencewright show peterson.fw | dot -Tsvg > peterson.svg";

/// The meaning of the exit status.
pub const STATUS: &str =
    "0 every property holds, 1 some property is violated, 2 bad usage or input, 3 unknown.";

/// The examples of each command, by its name.
const EXAMPLES: [(&str, &str); 15] = [
    (
        "check",
        "\
fencewright check peterson.fw                     does it hold on x86 (tso)?
fencewright check --model all -D N=3 bakery.fw    under every model, with a constant changed
fencewright check --property deadlock *.fw        no deadlock, in several files
fencewright check --engine cegar --certificate proof.json bakery.fenced.fw
fencewright check --html report.html peterson.fw  the execution, to step through in a browser
fencewright check -I include -D THREADS=3 lock.c  a C program
fencewright check --sarif answers.sarif src/      every program in a folder, for code scanning",
    ),
    (
        "robust",
        "\
fencewright robust peterson.fw                    does it behave on x86 as under sc?
fencewright robust --all lamport-fast.fw          every store that may be delayed past a load
fencewright robust --notion triangular --json *.fw",
    ),
    (
        "fences",
        "\
fencewright fences peterson.fw                    the cheapest fences, each with its reason
fencewright fences --model pso --diff mp.fw       as a patch
fencewright fences --write peterson.c             put into the file
fencewright fences --audit peterson.fenced.fw     which of those there are needed?
fencewright fences --goal robustness --price fence=2,xchg=1 dekker.fw",
    ),
    (
        "certify",
        "\
fencewright check --certificate proof.json bakery.fenced.fw
fencewright certify proof.json bakery.fenced.fw   is that a proof?
fencewright certify --model tso --property mutex proof.json bakery.fenced.fw",
    ),
    (
        "litmus",
        "\
fencewright litmus SB.litmus                      its final states on x86 (tso)
fencewright litmus --model all --json tests/      every .litmus file in a folder",
    ),
    (
        "run",
        "\
fencewright run --seed 7 peterson.fw              one execution at random, the same each time
fencewright run --interactive --model pso mp.fw   choose every step yourself",
    ),
    (
        "show",
        "\
fencewright show peterson.fw | dot -Tsvg > peterson.svg
fencewright show --extended --rounds 2 dekker.fw  the program for sc that engine lazy makes of it",
    ),
    (
        "fmt",
        "\
fencewright fmt *.fw                              in place
fencewright fmt --check *.fw                      in continuous integration
fencewright fmt - < peterson.fw                   as a filter",
    ),
    (
        "convert",
        "\
fencewright convert SB.litmus --to fw
fencewright convert peterson.fw --to trencher -o peterson.txt
fencewright convert peterson.c --to fw -D THREADS=3",
    ),
    (
        "reduce",
        "\
fencewright reduce peterson.fw --model tso --k 2
fencewright reduce peterson.fw --model pso --k 1,flag=2 -o peterson.pso.fw
fencewright reduce peterson.fw --to c --width 32  for other people's verifiers",
    ),
    (
        "generate",
        "\
fencewright generate bakery --threads 3 --fences
fencewright generate automata --automata 4 --states 3 --letters 2 --seed 1 -o automata.fw
fencewright generate random --seed 7 --length 6 --distances | fencewright check -",
    ),
    (
        "engines",
        "\
fencewright engines                               what there is, and which options mean something
fencewright engines --json",
    ),
    (
        "completions",
        "\
fencewright completions bash > ~/.local/share/bash-completion/completions/fencewright
fencewright completions zsh > ~/.zfunc/_fencewright
fencewright completions fish > ~/.config/fish/completions/fencewright.fish",
    ),
    (
        "man",
        "\
fencewright man > ~/.local/share/man/man1/fencewright.1
fencewright man check > ~/.local/share/man/man1/fencewright-check.1",
    ),
    (
        "lsp",
        "\
fencewright lsp                                   what an editor is told to run
fencewright lsp --model all --timeout 30s         verdicts under sc, tso and pso, with more time
fencewright lsp --memory 1G -I include            C programs that include files of this folder",
    ),
];

/// The examples of a command, if it has some; without a name, those for the help of `fencewright` itself.
pub fn of(command: Option<&str>) -> Option<&'static str> {
    let Some(command) = command else { return Some(OVERVIEW) };
    EXAMPLES.iter().find(|(name, _)| *name == command).map(|(_, examples)| *examples)
}

/// The names of the commands, all of which have examples.
pub fn commands() -> impl Iterator<Item = &'static str> {
    EXAMPLES.iter().map(|(name, _)| *name)
}

/// The clap command with the examples of each subcommand added at the end of its help.
pub fn with_examples(mut all: Command) -> Command {
    for (name, examples) in EXAMPLES {
        all = all.mut_subcommand(name, |command| command.after_help(listed(examples)));
    }
    all.after_help(format!("{}\n\nExit status: {STATUS}", listed(OVERVIEW)))
}

fn listed(examples: &str) -> String {
    let lines: Vec<String> = examples.lines().map(|line| format!("  {line}")).collect();
    format!("Examples:\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    use crate::args::Cli;

    /// The command lines in a text of examples: without their explanations, with pipes split into their commands, and without redirections.
    fn command_lines(examples: &str) -> Vec<Vec<&str>> {
        let lines = examples.lines().filter_map(|line| line.trim_start().split("  ").next());
        let commands =
            lines.flat_map(|line| line.split(" | ")).filter(|part| part.starts_with("fencewright"));
        commands
            .map(|part| part.split(' ').take_while(|word| !matches!(*word, ">" | "<")).collect())
            .collect()
    }

    #[test]
    fn every_command_has_examples_and_they_can_be_typed() {
        let all = with_examples(Cli::command());
        for command in all.get_subcommands() {
            let name = command.get_name();
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.starts_with("Examples:\n"), "{name} has no examples: add some");
            let lines = command_lines(&help);
            let own = lines.iter().filter(|line| line.get(1) == Some(&name)).count();
            assert!(own >= 2, "{name}: {lines:?}");
        }
        let help = all.get_after_help().map(ToString::to_string).unwrap_or_default();
        let of_all = all.get_subcommands().filter_map(|command| command.get_after_help());
        let texts: Vec<String> = of_all.map(ToString::to_string).chain([help]).collect();
        for line in texts.iter().flat_map(|text| command_lines(text)) {
            let parsed = with_examples(Cli::command()).try_get_matches_from(&line);
            assert!(parsed.is_ok(), "{}: {}", line.join(" "), parsed.unwrap_err());
        }
    }

    /// The command lines in the fenced blocks of a page: `fencewright ...` or, if the block shows the output too, `$ fencewright ...`.
    fn of_page(page: &str) -> Vec<String> {
        let mut fenced = false;
        let mut lines = Vec::new();
        for line in page.lines() {
            fenced ^= line.starts_with("```");
            let line = line.strip_prefix("$ ").unwrap_or(line);
            if fenced && line.starts_with("fencewright ") {
                let line = line.split(" #").next().unwrap_or(line);
                // Pages write placeholders in capitals, and optional parts in brackets.
                lines.push(line.replace("[COMMAND]", "check").replace("[OPTIONS] ", "").replace("...", ""));
            }
        }
        lines
    }

    #[test]
    fn every_command_line_of_the_manual_can_be_typed() {
        let repository = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let docs = std::fs::read_dir(repository.join("docs")).expect("the manual is there");
        let pages = docs.map(|page| page.expect("an entry").path());
        let pages = pages.chain(["README.md", "examples/README.md"].map(|page| repository.join(page)));
        let mut seen = 0;
        for page in pages.filter(|page| page.extension().is_some_and(|extension| extension == "md")) {
            let text = std::fs::read_to_string(&page).expect("a page");
            for line in of_page(&text).iter().flat_map(|line| command_lines(line)) {
                // The list of commands has explanations after some blanks, and placeholders in capitals.
                let given = line.into_iter().map(|word| match word {
                    "SHELL" => "bash",
                    "F" => "fw",
                    "FAMILY" => "bakery",
                    word => word.trim_matches('\''),
                });
                let given: Vec<&str> = given.filter(|word| !word.is_empty()).collect();
                let parsed = with_examples(Cli::command()).try_get_matches_from(&given);
                let is_version = given.contains(&"--version");
                assert!(parsed.is_ok() || is_version, "{}: {}", page.display(), given.join(" "));
                seen += 1;
            }
        }
        assert!(seen > 60, "{seen} command lines");
    }

    #[test]
    fn examples_are_of_commands() {
        for (name, _) in EXAMPLES {
            assert!(Cli::command().find_subcommand(name).is_some(), "{name}");
            assert!(of(Some(name)).is_some());
        }
    }
}
