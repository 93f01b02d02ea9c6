//! Tests of refusals: C programs are mutated at random, so that they contain unsupported or invalid code. Loading has to end without a panic, with a
//! program or with an error that has a position. It has to end within a time limit, or stop soon after it is asked to. Accepted programs are checked,
//! printed and searched for races.
//!
//! A normal run tests 1,000 programs, made from the examples and, if available, the corpora; `FENCEWRIGHT_PROGRAMS=N` tests N programs, and
//! `FENCEWRIGHT_SEED=N` tests only the program with seed N and prints it. `FENCEWRIGHT_REAL=DIR` also mutates the programs of other projects in the
//! lists of the corpora (`docs/real-code.md`), whose repositories are checked out in the folder DIR.

mod mutate;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fencewright_engines::auto::Auto;
use fencewright_engines::races::races;
use fencewright_engines::{Confirm, Limits, Progress, Task, check};
use fencewright_lang::diagnostic::Diagnostic;
use fencewright_lang::front_end;
use fencewright_lang::load::{Failure, Loaded, Loader};
use fencewright_lang::options::{COptions, Options, Spins};
use fencewright_lang::{Sources, Stop};
use fencewright_program::MemoryModel;
use fencewright_testing::corpora::{VARIABLE, tell_skipped};
use fencewright_testing::measure::computed;
use fencewright_testing::{Random, programs_or};

/// Loading is asked to stop after this time.
const LIMIT: Duration = Duration::from_secs(10);
/// Maximum processor time for a program, including the examination of accepted ones.
const LONGEST: Duration = Duration::from_secs(20);
/// At most one program in this many may need to be stopped. Such programs create dozens of threads in functions that other threads call in loops.
const STOPPED: usize = 1_000;
/// A program that needs more wall-clock time than this hangs, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(600);
/// One in this many accepted programs is checked.
const CHECKED: u64 = 8;
/// The stack size of a main thread.
const STACK: usize = 8 << 20;
/// Messages about the program as a whole, which have no position.
const WITHOUT_PLACE: [&str; 2] =
    ["there is no function `main`", "the translation of this program did not reach a fixpoint"];

/// A program to be mutated.
struct Original {
    path: PathBuf,
    defines: Vec<(String, Option<String>)>,
    /// The folders of included files.
    folders: Vec<String>,
    /// The main file, and the files of its folder that it includes.
    files: BTreeMap<String, String>,
}

impl Original {
    fn new(path: &Path, defines: &str, folders: Vec<String>) -> Option<Self> {
        let defines = defines.split_whitespace().map(|define| match define.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (define.to_owned(), None),
        });
        let (defines, files) = (defines.collect(), BTreeMap::new());
        let mut original = Original { path: path.to_owned(), defines, folders, files };
        let text = fs::read_to_string(path).ok()?;
        let name = path.to_string_lossy().into_owned();
        original.files.insert(name, text);
        let loaded = original.load(&original.files, &original.options()).ok()?;
        for (_, file) in loaded.sources.iter().filter(|(id, _)| !loaded.sources.is_built_in(*id)) {
            original.files.insert(file.name.clone(), file.text.clone());
        }
        Some(original)
    }

    fn options(&self) -> Options {
        let c = COptions { folders: self.folders.clone(), ..COptions::default() };
        Options { defines: self.defines.clone(), c, ..Options::default() }
    }

    fn load(&self, files: &BTreeMap<String, String>, options: &Options) -> Result<Loaded, Failure> {
        let start = computed();
        let stop = move || computed() - start > LIMIT;
        let open = |name: &str| match files.get(name) {
            Some(text) => Ok(text.clone().into_bytes()),
            None => fs::read(name).map_err(|error| error.to_string()),
        };
        let name = self.path.to_string_lossy();
        let front_end = front_end::named("c");
        let loader = Loader { front_end, options, stop: &Stop::when(&stop), open: &open };
        loader.load(&name, files[&*name].as_bytes())
    }
}

/// The outcome of loading a program.
enum Outcome {
    Accepted,
    Refused(String),
    /// Loading did not end in time.
    Stopped,
}

/// The programs of a folder with a table of programs and their macros.
fn of_table(folder: &Path, originals: &mut Vec<Original>) {
    let Ok(table) = fs::read_to_string(folder.join("expected.csv")) else { return };
    for row in table.lines().skip(1) {
        let mut cells = row.split(',');
        let file = cells.next().unwrap_or_default();
        let second = cells.next().unwrap_or_default();
        let defines = if second.contains('=') { second } else { "" };
        originals.extend(Original::new(&folder.join(file), defines, Vec::new()));
    }
}

/// Some of the programs in the lists of other projects' programs. A row of a list has a file, a memory model, a verdict and the options of a
/// compiler, in which `DIR` stands for the folder of the checkouts.
fn of_lists(lists: &Path, checkouts: &Path, originals: &mut Vec<Original>) {
    /// One in this many rows is taken.
    const TAKEN: usize = 8;
    let Ok(entries) = fs::read_dir(lists) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "tsv"));
    paths.sort();
    let dir = checkouts.to_string_lossy();
    for list in paths {
        let rows = fs::read_to_string(list).unwrap_or_default().replace("DIR", &dir);
        for row in rows.lines().step_by(TAKEN) {
            let mut cells = row.split('\t');
            let (file, flags) = (cells.next().unwrap_or_default(), cells.nth(2).unwrap_or_default());
            let flags = flags.replace("-I ", "-I").replace("-D ", "-D");
            let of = |kind: &str| -> Vec<String> {
                flags
                    .split_whitespace()
                    .filter_map(|flag| flag.strip_prefix(kind))
                    .map(str::to_owned)
                    .collect()
            };
            let mut folders = of("-I");
            folders.push(format!("{dir}/ckmd"));
            originals.extend(Original::new(Path::new(file), &of("-D").join(" "), folders));
        }
    }
}

fn originals() -> Vec<Original> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/c");
    let entries = fs::read_dir(&examples).expect("there are examples");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    paths.sort();
    let is_c = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "c");
    let mut originals: Vec<Original> =
        paths.iter().filter(is_c).filter_map(|path| Original::new(path, "", Vec::new())).collect();
    assert!(originals.len() > 8, "examples are accepted");
    match std::env::var_os(VARIABLE).map(PathBuf::from) {
        Some(corpora) => {
            for folder in ["c-programs", "c-litmus", "c-liveness"] {
                of_table(&corpora.join(folder), &mut originals);
            }
            if let Some(checkouts) = std::env::var_os("FENCEWRIGHT_REAL") {
                of_lists(&corpora.join("c-real"), Path::new(&checkouts), &mut originals);
                println!("{} original programs", originals.len());
            }
        }
        None => tell_skipped("c_refusals", &format!("{VARIABLE} is not set, so only examples are taken")),
    }
    originals
}

/// A mutated program: its files, and the options for reading it.
fn changed(original: &Original, random: &mut Random) -> (BTreeMap<String, String>, Options) {
    let mut files = original.files.clone();
    let main = original.path.to_string_lossy().into_owned();
    let names: Vec<String> = files.keys().cloned().collect();
    let changed = if random.one_in(2) { &main } else { random.pick(&names) };
    let text = mutate::mutated(random, &files[changed]);
    files.insert(changed.clone(), text);
    let spins = if random.one_in(2) { Spins::Step } else { Spins::Loop };
    let c = COptions {
        heap: random.one_in(4).then_some(1),
        recursion: random.one_in(3).then(|| 1 + random.below(4) as u32),
        no_reuse: random.one_in(4),
        spins,
        exact_waits: random.one_in(2),
        ..original.options().c
    };
    (files, Options { c, ..original.options() })
}

/// Every message has a position inside one of the files and, unless it concerns the program as a whole, a span.
fn places(sources: &Sources, diagnostics: &[Diagnostic]) {
    assert!(!diagnostics.is_empty(), "an error without a message");
    for diagnostic in diagnostics {
        assert!(!diagnostic.message.is_empty(), "an empty message");
        let (file, range) = (sources.file(diagnostic.span.file), diagnostic.span.range());
        assert!(file.text.get(range.clone()).is_some(), "{diagnostic:?} at {range:?} of {}", file.text.len());
        let at = sources.position(diagnostic.span);
        assert!(at.line >= 1 && at.column >= 1 && at.line <= file.text.lines().count().max(1) + 1, "{at}");
        let whole = WITHOUT_PLACE.contains(&&*diagnostic.message);
        assert!(whole || diagnostic.span != Default::default(), "no place: {diagnostic:?}");
    }
    assert!(!sources.render(diagnostics, false).is_empty());
}

/// Loads a program and examines the result.
fn attempt(original: &Original, seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let (files, options) = changed(original, &mut random);
    match original.load(&files, &options) {
        Err(Failure::Stopped(_)) => Outcome::Stopped,
        Err(Failure::Wrong(error)) => {
            places(&error.sources, &error.diagnostics);
            Outcome::Refused(error.diagnostics[0].message.clone())
        }
        Ok(loaded) => {
            let warnings = &loaded.warnings;
            if !warnings.is_empty() {
                places(&loaded.sources, warnings);
            }
            if seed.is_multiple_of(CHECKED) {
                examine(&loaded, *random.pick(&MemoryModel::ALL));
            }
            Outcome::Accepted
        }
    }
}

/// Runs the later stages on an accepted program.
fn examine(loaded: &Loaded, model: MemoryModel) {
    let limits =
        |ms| Limits::starting_now(Some(Duration::from_millis(ms)), Some(1 << 30), Default::default());
    let task = Task::new(&loaded.program, model, loaded.program.properties.clone());
    check(&Auto::default(), &task, &limits(300), &Progress::default(), Confirm::NOTHING);
    races(&loaded.program, &|span| loaded.plain.contains(&span), &limits(200));
    front_end::named("fw").expect("it is there").print(loaded).expect("every program is one of .fw");
}

/// The seeds in progress, with their starting times.
#[derive(Default)]
struct Working(Mutex<BTreeMap<u64, Instant>>);

impl Working {
    fn on<T>(&self, seed: u64, work: impl FnOnce() -> T) -> T {
        self.0.lock().expect("nobody panics").insert(seed, Instant::now());
        let done = work();
        self.0.lock().expect("nobody panics").remove(&seed);
        done
    }

    /// Ends the process if a seed hangs, because a thread cannot be ended.
    fn watch(&self, over: &AtomicBool) {
        while !over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(100));
            let working = self.0.lock().expect("nobody panics");
            for (seed, since) in &*working {
                if since.elapsed() > PATIENCE {
                    // The message is written directly to standard error, because the process ends here and the test harness would lose captured
                    // output.
                    let _ = writeln!(std::io::stderr(), "seed {seed} hangs");
                    std::process::exit(1);
                }
            }
        }
    }
}

/// The counts of all outcomes.
#[derive(Default)]
struct Tally {
    accepted: usize,
    refused: BTreeMap<String, usize>,
    slowest: (Duration, u64),
    stopped: Vec<u64>,
    panicked: Vec<(u64, String)>,
}

fn in_words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

#[test]
fn mutated_programs_are_accepted_or_refused_with_a_message() {
    let originals = originals();
    let asked = std::env::var("FENCEWRIGHT_SEED").ok().map(|seed| seed.parse().expect("a number"));
    let seeds: Vec<u64> = match asked {
        Some(seed) => vec![seed],
        None => (0..programs_or(1_000) as u64).collect(),
    };
    // The original program is chosen by the seed alone, so it does not depend on the number of programs tested.
    let original = |seed: u64| &originals[(seed % originals.len() as u64) as usize];
    if let Some(seed) = asked {
        for (name, text) in changed(original(seed), &mut Random::new(seed)).0 {
            println!("// {name}\n{text}");
        }
    }
    let (working, over, tally) = (Working::default(), AtomicBool::new(false), Mutex::new(Tally::default()));
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
            let start = computed();
            let outcome =
                working.on(seed, || catch_unwind(AssertUnwindSafe(|| attempt(original(seed), seed))));
            let took = (computed() - start, seed);
            let mut tally = tally.lock().expect("nobody panics");
            tally.slowest = tally.slowest.max(took);
            match outcome {
                Ok(Outcome::Accepted) => tally.accepted += 1,
                Ok(Outcome::Refused(why)) => *tally.refused.entry(why).or_default() += 1,
                Ok(Outcome::Stopped) => tally.stopped.push(seed),
                Err(panic) => tally.panicked.push((seed, in_words(&*panic))),
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| working.watch(&over));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let started: Vec<_> = (0..cores)
            .map(|_| std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work))
            .map(|started| started.expect("the system starts another thread"))
            .collect();
        started.into_iter().for_each(|worker| worker.join().expect("panics are caught"));
        over.store(true, Ordering::Relaxed);
    });
    let tally = tally.into_inner().expect("nobody panics");
    let refused: usize = tally.refused.values().sum();
    println!(
        "{} programs of {}: {} accepted, {refused} refused with {} messages, {} panicked, stopped {:?}; the slowest took {:?} (seed {})",
        seeds.len(),
        originals.len(),
        tally.accepted,
        tally.refused.len(),
        tally.panicked.len(),
        tally.stopped,
        tally.slowest.0,
        tally.slowest.1,
    );
    let kinds: BTreeSet<&String> = tally.panicked.iter().map(|(_, why)| why).collect();
    assert!(tally.panicked.is_empty(), "{:?}\n{kinds:#?}", tally.panicked);
    assert!(tally.slowest.0 < LONGEST, "seed {} took {:?}", tally.slowest.1, tally.slowest.0);
    assert!(tally.stopped.len() <= 1 + seeds.len() / STOPPED, "{:?}", tally.stopped);
    if asked.is_none() {
        assert!(
            tally.accepted * 10 > seeds.len() && refused * 4 > seeds.len(),
            "mutations are too tame, or too wild"
        );
    }
}
