//! Data races that are found, and those that are none.

use fencewright_engines::Limits;
use fencewright_engines::races::races;
use fencewright_lang::load;

/// The lines of the accesses that race, where every access but those that say `atomic` is plain.
fn racing(text: &str) -> Vec<(usize, usize)> {
    let loaded = load("a.fw", text.as_bytes(), None, &[]).expect("it loads");
    let line = |span| loaded.sources.position(span).line;
    let is_plain = |span| !loaded.sources.main().line_text(line(span)).contains("atomic");
    let races = races(&loaded.program, &is_plain, &Limits::default());
    races.iter().map(|race| (line(race.plain), line(race.other))).collect()
}

#[test]
fn unordered_accesses_race() {
    let text = "shared x, y;\nthread p {\n  x = 1;\n  y = 1; // atomic\n}\nthread q {\n  var r, s;\n  s = y; // atomic\n  r = x;\n}\n";
    assert_eq!(racing(text), [(3, 9)]);
}

#[test]
fn what_a_flag_or_a_mutex_orders_does_not() {
    let flag = "shared x, y;\nthread p {\n  x = 1;\n  y = 1; // atomic\n}\nthread q {\n  var r;\n  await y == 1; // atomic\n  r = x;\n}\n";
    assert_eq!(racing(flag), []);
    let mutex = "shared x; mutex m;\nthread p[i in 0..2] {\n  lock m;\n  x = x + 1;\n  unlock m;\n}\n";
    assert_eq!(racing(mutex), []);
    assert_eq!(racing(&mutex.replace("unlock m;", "unlock m;\n  x = 0;")).first(), Some(&(4, 6)));
}

#[test]
fn different_elements_do_not() {
    let text = |index: &str| {
        format!(
            "shared a[2];\nthread p {{\n  a[0] = 1;\n}}\nthread q {{\n  var r, i = {index};\n  r = a[i];\n}}\n"
        )
    };
    assert_eq!(racing(&text("1")), []);
    assert_eq!(racing(&text("0")), [(3, 7)]);
}

#[test]
fn races_far_into_an_execution_are_found_and_endless_programs_end() {
    let late = "shared x, turn;\nthread p {\n  var i;\n  while i < 40 {\n    await turn == 0; // atomic\n    turn = 1; // atomic\n    i = i + 1;\n  }\n  x = 1;\n}\n\
                thread q {\n  var i, r;\n  while i < 40 {\n    await turn == 1; // atomic\n    turn = 0; // atomic\n    i = i + 1;\n  }\n  r = x;\n}\n";
    assert_eq!(racing(late), [(9, 18)]);
    let endless = "shared x[200];\nthread p[i in 0..200] {\n  var r;\n  loop {\n    x[i] = r;\n    r = r + 1;\n  }\n}\n";
    assert_eq!(racing(endless), []);
}
