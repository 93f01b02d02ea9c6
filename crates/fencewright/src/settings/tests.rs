use std::collections::BTreeSet;

use super::*;

#[test]
fn names_are_unique_within_a_command() {
    for command in Command::ALL {
        let mut names = BTreeSet::new();
        for row in rows(command) {
            let own = [row.short().map(String::from), row.long().map(str::to_owned)];
            for name in own.into_iter().flatten() {
                assert!(names.insert(name.clone()), "{} has {name} twice", command.name());
            }
            assert!(row.short().is_some() || row.long().is_some(), "{}", row.field);
        }
    }
}

#[test]
fn defaults_are_values_and_conflicts_name_rows() {
    for row in TABLE.iter().filter(|row| !row.default.is_empty()) {
        assert_eq!((row.check)(row.default), Ok(()), "{}", row.field);
        let choices = (row.choices)();
        assert!(
            choices.is_empty() || choices.iter().any(|choice| choice.name == row.default),
            "{}",
            row.field
        );
    }
    for (one, other) in CONFLICTS {
        assert!(row(one).field != row(other).field);
    }
}

#[test]
fn settings_remember_what_was_set() {
    let mut settings = Settings::default();
    assert_eq!(settings.given().count(), 0);
    for (field, text) in
        [("jobs", "2"), ("jobs", "1"), ("fix", "k"), ("fix", "clip"), ("no_live", ""), ("define", "N=3")]
    {
        settings.set(field, text).unwrap_or_else(|why| panic!("{field}: {why}"));
    }
    assert_eq!((settings.jobs.get(), settings.no_live), (1, true));
    assert_eq!(settings.fix, [Fixed::K, Fixed::Clip]);
    let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        settings.of_engines().into_iter().collect::<Vec<_>>(),
        [own("fix", "k,clip"), own("jobs", "1"), own("no-live", "")]
    );
    assert_eq!(settings.reader().options.defines, [("N".to_owned(), Some("3".to_owned()))]);
    for (field, wrong) in
        [("k", "9"), ("k", "x"), ("clip", "0"), ("model", "arm"), ("timeout", "soon"), ("nothing", "1")]
    {
        assert!(settings.set(field, wrong).is_err(), "{field}");
    }
}

#[test]
fn engines_look_at_the_options_that_their_rows_name() {
    let known = |engine| known_to(engine).join(" ");
    assert_eq!(known(Contexts), "--contexts --domain");
    assert_eq!(known(Extrapolate), "--k --method --emit-boolean");
    assert_eq!(known(Explicit), "--jobs --search --buffer --no-live --reduction --no-symmetry");
}

#[test]
fn options_without_effect_are_named() {
    let idle = |command, given: &[(&str, &str)]| {
        let mut settings = Settings::default();
        for (field, text) in given {
            settings.set(field, text).unwrap_or_else(|why| panic!("{field}: {why}"));
        }
        let told = settings.idle(command).into_iter().map(|Idle { option, why }| format!("{option} {why}"));
        told.collect::<Vec<_>>().join("; ")
    };
    for (command, given, told) in [
        (
            Check,
            &[("engine", "cegar"), ("jobs", "2")][..],
            "--jobs means nothing to engine cegar, only to auto, explicit, lazy, buffers",
        ),
        (
            Robust,
            &[("attack_engine", "cegar"), ("jobs", "2")],
            "--jobs means nothing to engine cegar, only to auto, explicit",
        ),
        (Robust, &[("attack_engine", "cegar"), ("search", "dfs")], ""),
        (
            Check,
            &[("engine", "cegar"), ("domain", "order"), ("clip", "2")],
            "--clip means nothing with --domain order",
        ),
        (Check, &[("engine", "cegar"), ("clip", "2")], ""),
        (Check, &[("engine", "cegar"), ("buffer", "2"), ("k", "2")], "--k means nothing with --buffer 2"),
        (Check, &[("buffer", "2"), ("k", "2")], ""),
        (Check, &[("invariants", ""), ("json", "")], "--invariants means nothing with --json"),
        (
            Show,
            &[("rounds", "2"), ("no_z3", "")],
            "--no-z3 means nothing without --extended; --rounds means nothing without --extended",
        ),
        (Show, &[("rounds", "2"), ("extended", "")], ""),
        (
            Command::Fences,
            &[("audit", ""), ("write", ""), ("no_live", "")],
            "--write means nothing with --audit",
        ),
        (
            Command::Fences,
            &[("goal", "triangular"), ("property", "p")],
            "--property means nothing with --goal triangular",
        ),
        (Command::Fences, &[("property", "p")], ""),
    ] {
        let idle = idle(command, given);
        assert_eq!(idle.split("; ").collect::<BTreeSet<_>>(), told.split("; ").collect(), "{given:?}");
    }
}

#[test]
fn rules_name_options_of_their_commands() {
    for rule in &super::idle::RULES {
        for field in rule.idle.iter().chain([&rule.field]) {
            assert!(row(field).commands.contains(&rule.command), "{field}");
        }
    }
    for (_, commands, _) in FORMER {
        assert!(!commands.is_empty());
    }
}
