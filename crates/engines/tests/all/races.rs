//! Tests of data race detection: races that are found, and accesses that do not race.

use fencewright_engines::Limits;
use fencewright_engines::races::races;
use fencewright_lang::load;

/// The pairs of lines with accesses that race. All accesses are plain except those in lines with the word `atomic`.
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
fn accesses_ordered_by_a_flag_or_a_mutex_do_not_race() {
    let flag = "shared x, y;\nthread p {\n  x = 1;\n  y = 1; // atomic\n}\nthread q {\n  var r;\n  await y == 1; // atomic\n  r = x;\n}\n";
    assert_eq!(racing(flag), []);
    let mutex = "shared x; mutex m;\nthread p[i in 0..2] {\n  lock m;\n  x = x + 1;\n  unlock m;\n}\n";
    assert_eq!(racing(mutex), []);
    assert_eq!(racing(&mutex.replace("unlock m;", "unlock m;\n  x = 0;")).first(), Some(&(4, 6)));
}

#[test]
fn accesses_to_different_elements_do_not_race() {
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

/// The pairs of lines of a C program with accesses that race.
fn racing_in_c(text: &str) -> Vec<(usize, usize)> {
    let loaded = load("a.c", text.as_bytes(), None, &[]).expect("it loads");
    let line = |span| loaded.sources.position(span).line;
    let races = races(&loaded.program, &|span| loaded.plain.contains(&span), &Limits::default());
    races.iter().map(|race| (line(race.plain), line(race.other))).collect()
}

/// A queue whose consumer copies an atomic variable into a plain variable that only the consumer accesses.
const CACHED: &str = "#include <pthread.h>
#include <stdatomic.h>
static struct { _Atomic int tail; int cache; int slot[2]; } q;
static void *producer(void *p) {
    for (int i = 0; i < 2; i++) {
        q.slot[i] = 1;
        atomic_store_explicit(&q.tail, i + 1, memory_order_release);
    }
    return p;
}
static void *consumer(void *p) {
    for (int i = 0; i < 2; i++) {
        while (i == q.cache)
            q.cache = atomic_load_explicit(&q.tail, memory_order_acquire);
        p = (void *)(long)q.slot[i];
    }
    return p;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, producer, 0);
    pthread_create(&b, 0, consumer, 0);
}
";

#[test]
fn an_atomic_load_into_memory_of_one_thread_stays_atomic() {
    assert_eq!(racing_in_c(CACHED), []);
}

#[test]
fn a_plain_load_into_memory_of_one_thread_stays_plain() {
    let plain = CACHED.replace("_Atomic int tail", "int tail");
    let plain =
        plain.replace("atomic_store_explicit(&q.tail, i + 1, memory_order_release)", "q.tail = i + 1");
    let plain = plain.replace("atomic_load_explicit(&q.tail, memory_order_acquire)", "q.tail");
    let found = racing_in_c(&plain);
    assert!(found.contains(&(7, 14)) || found.contains(&(14, 7)), "{found:?}");
    // Without waiting, the slots race too.
    let early = CACHED.replace("while (i == q.cache)", "if (i == q.cache)");
    let found = racing_in_c(&early);
    assert!(found.iter().any(|race| [(6, 15), (15, 6)].contains(race)), "{found:?}");
}
