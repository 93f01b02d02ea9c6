//! Executions of C programs in the notation of C: snapshots, and names of the translation that must never appear.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fencewright_engines::explicit::{Explicit, Options};
use fencewright_engines::{Checked, Confirm, Limits, Progress, Task, check};
use fencewright_lang::load::Failure;
use fencewright_lang::{Loaded, Loader, Stop, front_end};
use fencewright_program::{MemoryModel, Property};
use fencewright_report::{Source, Style, json, rows, sarif, text};

/// A pointer to one of two allocations, a local variable that another thread reaches, a thread that is created late, and a member that was never
/// written.
const NODES: &str = r#"#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct node {
    int key;
    struct node *next;
};

static struct node *_Atomic head;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int total;

static struct node *push(int key)
{
    struct node *node = malloc(sizeof *node);
    node->key = key;
    node->next = atomic_load(&head);
    return node;
}

static void *reader(void *argument)
{
    int *seen = argument;
    struct node *first = atomic_load(&head);
    pthread_mutex_lock(&lock);
    total += first->key;
    pthread_mutex_unlock(&lock);
    *seen = first->next != NULL;
    return 0;
}

int main(void)
{
    pthread_t thread;
    int seen;
    atomic_store(&head, push(1));
    atomic_store(&head, push(2));
    pthread_create(&thread, 0, reader, &seen);
    atomic_store(&head, NULL);
    pthread_join(thread, 0);
    assert(total == 1);
    assert(seen);
    return 0;
}
"#;

fn loaded(name: &str, text: &str) -> Loaded {
    let open = |name: &str| std::fs::read(folder().join(name)).map_err(|error| error.to_string());
    let (options, stop) = (Default::default(), Stop::never());
    let loader = Loader { front_end: front_end::named("c"), options: &options, stop: &stop, open: &open };
    match loader.load(name, text.as_bytes()) {
        Ok(loaded) => loaded,
        Err(Failure::Wrong(e)) => panic!("{}", e.sources.render(&e.diagnostics, false)),
        Err(Failure::Stopped(_)) => panic!("nobody asks to stop"),
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/c")
}

fn example(name: &str) -> Loaded {
    loaded(name, &std::fs::read_to_string(folder().join(name)).expect("an example"))
}

fn checked(loaded: &Loaded, model: MemoryModel, properties: Vec<Property>) -> Vec<Checked> {
    let engine = Explicit { options: Options { workers: 1, ..Options::default() } };
    let task = Task::new(&loaded.program, model, properties);
    // Only executions are compared, so proofs are neither confirmed nor searched for long.
    let limits = Limits::default().within(Duration::from_secs(5));
    check(&engine, &task, &limits, &Progress::default(), Confirm::NOTHING)
}

fn all_checked(loaded: &Loaded, model: MemoryModel) -> Vec<Checked> {
    checked(loaded, model, loaded.program.properties.clone())
}

/// All violations of a program as text.
fn executions(loaded: &Loaded, style: Style) -> String {
    let all = all_checked(loaded, MemoryModel::Tso);
    let shown = all.iter().map(|result| text::evidence(Source::from(loaded), result, style));
    shown.collect::<Vec<_>>().join("\n")
}

#[test]
fn examples_are_told_in_the_words_of_c() {
    for name in ["peterson.c", "hazard.c"] {
        insta::assert_snapshot!(name, executions(&example(name), Style::PLAIN));
    }
}

#[test]
fn nodes_locks_and_threads_have_the_words_of_c() {
    insta::assert_snapshot!(executions(&loaded("nodes.c", NODES), Style::PLAIN));
}

#[test]
fn all_steps_of_the_translation_are_shown_on_request() {
    insta::assert_snapshot!(executions(&example("peterson.c"), Style { full: true, ..Style::PLAIN }));
}

#[test]
fn json_and_sarif_have_the_words_of_c_beside_the_names_of_the_translation() {
    let program = example("peterson.c");
    let source = Source::from(&program);
    let all = all_checked(&program, MemoryModel::Tso);
    let violated = all.iter().find(|result| result.trace().is_some()).expect("a violation");
    let object = json::verdict(source, MemoryModel::Tso, violated);
    for expected in [
        r#""cell":"mutex_interested[0]","value":1,"place":"mutex.interested[0]","holds":"1","to":"buffer""#,
        r#""words":"thread_1 ends""#,
        r#""words":"main joins thread_1 and thread_2""#,
    ] {
        assert!(object.contains(expected), "{expected} is not in {object}");
    }
    let mut log = sarif::Log::default();
    log.add(source, MemoryModel::Tso, violated);
    let mut file = Vec::new();
    log.write(true, &mut file).expect("writing into memory");
    let file = String::from_utf8(file).expect("text");
    assert!(file.contains("thread_1: mutex.interested[0] = 1 -> buffer of thread_1"), "{file}");
    assert!(!file.contains("mutex_interested"), "{file}");
}

/// Uninitialised values are recognised before values are printed, and not by their digits in the printed text. So a longer number that contains these
/// digits is shown unchanged.
#[test]
fn digits_of_undefined_values_are_no_undefined_values() {
    let program = loaded("digits.c", "int main(void) { return 0; }");
    let undefined = program.facts.undefined.expect("C has undefined values");
    let text = format!(
        "#include <assert.h>\nint main(void) {{ long x = {}; int y; int *p = &y; assert(x != {}0); assert(*p == x); return 0; }}",
        undefined - 1,
        undefined
    );
    let with_digits = loaded("digits.c", &text);
    let shown = executions(&with_digits, Style::PLAIN);
    assert!(!shown.contains(&undefined.to_string()), "{shown}");
    // A text in the source that contains these digits is not changed.
    let text = format!(
        "#include <assert.h>\n#include <pthread.h>\nstatic volatile long x;\nstatic void *f(void *u) {{ x = {undefined}0; return u; }}\n\
         int main(void) {{ pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0); assert(x == 0); return 0; }}"
    );
    let program = loaded("digits.c", &text);
    let shown = executions(&program, Style::PLAIN);
    assert!(shown.contains(&format!("x = {undefined}0;")), "{shown}");
    assert!(shown.contains(&format!("x = {undefined}0 -> ")), "{shown}");
    assert!(!shown.contains("undefined0"), "{shown}");
}

/// In all executions, no name of the translation appears, accesses are in the order in which they occur, and there are no more rows than steps.
#[test]
fn no_name_of_the_translation_is_seen_in_examples() {
    let mut compared = 0;
    for name in ["peterson.c", "hazard.c", "ring.c", "seqlock.c", "singleton.c"] {
        let program = example(name);
        let source = Source::from(&program);
        for result in all_checked(&program, MemoryModel::Pso) {
            let Some(replayed) = result.trace() else { continue };
            let shown = text::evidence(source, &result, Style::PLAIN);
            for own in ["done_", "start_", " t is ", "label_", "access_", "freed_", "undefined is"] {
                assert!(!shown.contains(own), "{name}: {own}\n{shown}");
            }
            let all: Vec<usize> =
                rows::rows(source, replayed, &[]).iter().flat_map(|row| row.steps.clone()).collect();
            let touching: Vec<usize> =
                all.iter().copied().filter(|n| !replayed.effects[*n].is_empty()).collect();
            assert!(touching.is_sorted(), "{name}: {touching:?}");
            assert_eq!(all.len(), replayed.events.len(), "{name}");
            compared += 1;
        }
    }
    assert!(compared >= 2, "{compared}");
}

fn told(text: &str) -> String {
    executions(&loaded("told.c", text), Style::PLAIN)
}

/// Threads that are alike and joined together increment the same cell when they end. The words say nevertheless that each of these threads ends, and
/// that the creator joins all of them.
#[test]
fn threads_that_are_alike_end_themselves_and_are_joined_together() {
    let shown = told(
        r"#include <pthread.h>
#include <assert.h>
int n;
void *w(void *x) { n++; return 0; }
int main(void) {
    pthread_t t[3];
    for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, w, 0);
    for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
    assert(n == 3);
}
",
    );
    for thread in ["w_1", "w_2", "w_3"] {
        let end = format!("  {thread} ends");
        let row = |line: &&str| line.ends_with(&end) && line.split_whitespace().nth(1) == Some(thread);
        assert_eq!(shown.lines().filter(row).count(), 1, "{thread}\n{shown}");
        assert!(
            !shown.contains(&format!("{thread} waits for")) && !shown.contains(&format!("{thread} joins")),
            "{shown}"
        );
    }
    assert!(shown.contains("  main joins w_1, w_2 and w_3\n"), "{shown}");
}

/// A local variable that was initialised by a load is described by the place that it was loaded from only as long as this place has the same value.
#[test]
fn values_are_not_told_by_places_that_have_changed() {
    let text = r"#include <pthread.h>
#include <stdatomic.h>
#include <assert.h>
atomic_int x, y, z;
void *f(void *a) {
    int t = atomic_load_explicit(&x, memory_order_relaxed);
    atomic_store(&y, 1);
    int u = atomic_load(&z);
    if (t == 0 && u == 1) {
        int w = 5;
        int ok = atomic_compare_exchange_strong(&x, &t, w);
        if (!ok)
            assert(t == 0);
    }
    return 0;
}
void *g(void *a) { if (atomic_load(&y) == 1) { atomic_store(&x, 7); atomic_store(&z, 1); } return 0; }
int main() { pthread_t p, q; pthread_create(&p, 0, f, 0); pthread_create(&q, 0, g, 0); pthread_join(p, 0); pthread_join(q, 0); }
";
    let shown = told(text);
    assert!(shown.contains("x = 7 -> memory") && shown.contains("u == 1 is true"), "{shown}");
    assert!(!shown.contains("x == 0"), "{shown}");
    for name in ["deque.c", "singleton.c", "seqlock.c"] {
        let shown = executions(&example(name), Style::PLAIN);
        assert!(!shown.contains("top != top"), "{shown}");
    }
}

/// Locals without a value, threads that are not created yet and objects that are not allocated yet are left out or named as such.
#[test]
fn what_does_not_exist_yet_is_not_told() {
    let shown = told(
        r"#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <assert.h>
struct node { int v; };
struct node *_Atomic list;
atomic_int turn;
void *first(void *a) { assert(atomic_load(&turn) == 0); int later = atomic_load(&turn); assert(later == 0); return 0; }
void *second(void *a) { struct node *n = malloc(sizeof *n); n->v = 1; atomic_store(&list, n); return 0; }
int main(void) {
    pthread_t p, q;
    pthread_create(&p, 0, first, 0);
    atomic_store(&turn, 1);
    pthread_create(&q, 0, second, 0);
    pthread_join(p, 0);
    pthread_join(q, 0);
    struct node *n = atomic_load(&list);
    assert(n->v == 1);
}
",
    );
    assert!(shown.contains("    second  has not been created\n"), "{shown}");
    assert!(!shown.contains("later = ") && !shown.contains("undefined"), "{shown}");
}

/// Allocations have numbers; a variable with the name of their type has none.
#[test]
fn a_variable_with_the_name_of_a_type_is_no_allocation() {
    let shown = told(
        r"#include <pthread.h>
#include <stdlib.h>
#include <assert.h>
struct node { int v; struct node *next; };
struct node node; struct node *nodes;
void *f(void *a) { struct node *node = malloc(sizeof *node); node->v = 1; node->next = nodes; nodes = node; return 0; }
void *g(void *a) { struct node *n = malloc(sizeof *n); n->v = 2; n->next = &node; if (nodes) assert(nodes->v == 2); nodes = n; return 0; }
int main(void) { pthread_t p, q; pthread_create(&p,0,f,0); pthread_create(&q,0,g,0); pthread_join(p,0); pthread_join(q,0); }
",
    );
    assert!(shown.contains("node 2->next = &node ->"), "{shown}");
    assert!(!shown.contains("node 3"), "{shown}");
    // Objects that are not allocated yet are not shown as undefined.
    assert!(!shown.contains("undefined"), "{shown}");
}

/// The first and the last step of a thread are shown without a statement: the call that creates the thread is a statement of its creator.
#[test]
fn the_end_of_a_thread_has_no_statement() {
    let shown = told(
        r"#include <pthread.h>
#include <assert.h>
int *shared;
void *f(void *arg) {
    int i = *(int *)arg;
    int arr[3] = { 1, 2, 3 };
    arr[i] = arr[i] + 1;
    shared = &arr[i];
    return &arr[0];
}
int main(void) {
    pthread_t t;
    int n = 1;
    pthread_create(&t, NULL, f, &n);
    void *r;
    pthread_join(t, &r);
    assert(*shared == 3);
    return 0;
}
",
    );
    let end = shown.lines().find(|line| line.ends_with("f ends")).unwrap_or_else(|| panic!("{shown}"));
    assert!(!end.contains("pthread_create"), "{end}");
    assert!(shown.contains("arr goes out of scope"), "{shown}");
    assert!(!shown.contains("points to is gone"), "{shown}");
}

/// Locks say who holds them, objects of model headers do not show their members, and string literals are written as text.
#[test]
fn locks_and_strings_have_the_words_of_c() {
    let text = told(
        r#"#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
sem_t ready;
const char *name = "none";
void *worker(void *argument)
{
    pthread_mutex_lock(&lock);
    name = "abc";
    pthread_mutex_unlock(&lock);
    sem_post(&ready);
    return 0;
}
int main(void)
{
    pthread_t thread;
    sem_init(&ready, 0, 0);
    pthread_create(&thread, 0, worker, 0);
    pthread_mutex_lock(&lock);
    name++;
    pthread_mutex_unlock(&lock);
    sem_wait(&ready);
    assert(name[0] == 'n');
    pthread_join(thread, 0);
}
"#,
    );
    for part in
        ["lock = free", "lock = held by worker", "lock = held by main", "name = \"none\"", "ready = 1"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    for part in ["__", "string."] {
        assert!(!text.contains(part), "{part}: {text}");
    }
}
