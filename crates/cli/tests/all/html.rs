//! `--html`: the page is well formed, shows the states of the trace, and no program can inject anything into it.
//!
//! The visible contents are checked in a headless Chromium, if one is installed.

use std::collections::BTreeMap;
use std::fs;

use crate::browser::Browser;
use crate::common::{DIVERGING, Files, Outcome, SAFE, STORE_BUFFERING, WRONG, repository, run};
use fencewright::engines::auto::Auto;
use fencewright::engines::{Confirm, Limits, Progress, Task, check};
use fencewright::program::MemoryModel;
use fencewright_report::Source;
use fencewright_report::html::Page;
use serde_json::{Value, json};

/// A program in which every name and comment tries to inject markup or script.
const HOSTILE: &str = "\
// </script><script>window.injected = 1</script> <!-- <img src=x onerror=window.injected=1>
// \u{202e}]]> &lt;b&gt; ${window.injected = 1} \\u003c/script>
shared x, y;
thread p { var r; x = 1; r = y; /* </code><svg onload=window.injected=1> */ }
thread q { var r; y = 1; r = x; }
finally both_missed: never p.r == 0 && q.r == 0;
";
const HOSTILE_NAME: &str = "<img src=x onerror=window.injected=1>&quot;'\"--.fw";

/// Runs a command with `--html`, and returns its outcome and the page.
fn page(files: &Files, arguments: &[&str]) -> (Outcome, String) {
    let path = files.text("report.html");
    let outcome = run(arguments.iter().chain(&["--html", &path]));
    let page = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{error}: {outcome:?}"));
    check_form(&page);
    (outcome, page)
}

fn example(name: &str) -> String {
    repository(&format!("examples/{name}")).to_string_lossy().into_owned()
}

/// The page about the first property of a program under TSO, for a panel of an editor.
fn editor_page(name: &str, text: &str) -> String {
    let loaded = fencewright::lang::load(name, text.as_bytes(), None, &[]).expect("it is right");
    let task = Task::new(&loaded.program, MemoryModel::Tso, loaded.program.properties.clone());
    let (limits, progress) = (Limits::default(), Progress::default());
    let checked = check(&Auto::default(), &task, &limits, &progress, Confirm::default());
    let mut page = Page::default();
    page.check(None, Source::from(&loaded), MemoryModel::Tso, &checked[0]);
    page.for_editor()
}

/// HTML elements without an end tag.
const EMPTY: [&str; 4] = ["meta", "link", "path", "rect"];

/// Checks that every element is properly closed, that attributes are quoted, and that the page has one script, one style sheet and one block of data,
/// whose hashes are in its content security policy.
fn check_form(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut scripts = 0;
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("it begins as a page");
    while let Some(start) = rest.find('<') {
        let text = &rest[..start];
        assert!(!text.contains('>'), "a stray bracket: {}", &text[..text.len().min(200)]);
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{open:?}");
            continue;
        }
        assert!(tag.starts_with(|c: char| c.is_ascii_lowercase()), "<{tag}>");
        assert_eq!(tag.matches('"').count() % 2, 0, "<{tag}>");
        let name = tag.split([' ', '/']).next().expect("it has a name");
        let outside: String = tag.split('"').step_by(2).collect();
        assert!(!outside.to_lowercase().contains(" on") && !outside.contains('\''), "<{tag}>");
        if name == "script" || name == "style" {
            let end = rest.find(&format!("</{name}>")).expect("it ends");
            let (content, after) = rest.split_at(end);
            scripts += 1;
            if tag.contains("json") {
                assert!(!content.contains(['<', '>', '&']), "data contain no markup");
                serde_json::from_str::<Value>(content).expect("data are JSON");
            }
            rest = &after[name.len() + 3..];
        } else if !EMPTY.contains(&name) || (name == "rect" && !tag.ends_with('/')) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert_eq!(scripts, 3, "a style sheet, data, and a script");
    assert!(page.contains("content=\"default-src 'none'; script-src 'sha256-"), "there is a policy");
    assert!(
        !page.contains("http://")
            || page.matches("http://").count() == page.matches("http://www.w3.org/2000/svg").count()
    );
    assert!(!page.contains("https://"));
}

/// The data block of a page.
fn data(page: &str) -> Value {
    let start = page.find("id=\"data\">").expect("there are data") + "id=\"data\">".len();
    let end = start + page[start..].find("</script>").expect("they end");
    serde_json::from_str(&page[start..end]).expect("they are JSON")
}

/// The values of memory by cell, and the non-empty buffers by thread.
type State = (BTreeMap<String, String>, BTreeMap<String, Vec<String>>);

/// The C names of the cells that some step of a trace accesses; `None` for a program in another language.
fn places(trace: &[Value]) -> Option<BTreeMap<String, String>> {
    trace.iter().find(|step| step.get("words").is_some())?;
    let accesses = trace.iter().flat_map(|step| [&step["reads"], &step["writes"]]);
    let accesses = accesses.flat_map(|list| list.as_array().expect("a list"));
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Some(accesses.filter_map(|access| Some((text(&access["cell"])?, text(&access["place"])?))).collect())
}

/// The steps of a trace that a page shows: for a C program, the steps with a description and the last one.
fn shown(trace: &[Value]) -> Vec<&Value> {
    let is_c = places(trace).is_some();
    let tells = |n: usize| !is_c || trace[n].get("words").is_some() || n + 1 == trace.len();
    (0..trace.len()).filter(|n| tells(*n)).map(|n| &trace[n]).collect()
}

/// Memory and buffers after a step of a trace, as a page writes them. For a C program, `places` are the names of cells; cells without a name are not
/// shown.
fn expected(step: &Value, places: Option<&BTreeMap<String, String>>) -> State {
    let memory = step["memory"].as_object().expect("memory is an object");
    let name = |cell: &String| places.map_or(Some(cell), |places| places.get(cell)).cloned();
    let memory = memory.iter().filter_map(|(cell, value)| Some((name(cell)?, value.to_string()))).collect();
    let entry = |entry: &Value| match entry.get("cell") {
        Some(cell) => {
            let cell = name(&cell.as_str().expect("a name").to_owned()).expect("it was stored to");
            let sign = if places.is_some() { " = " } else { "=" };
            format!("{cell}{sign}{}", entry["value"])
        }
        None => "|".to_owned(),
    };
    let buffers = step["buffers"].as_object().expect("buffers are an object");
    let list = |list: &Value| list.as_array().expect("a list").iter().map(entry).collect();
    (memory, buffers.iter().map(|(thread, entries)| (thread.clone(), list(entries))).collect())
}

/// The states of an execution in a page, reconstructed from its differences.
fn states(execution: &Value) -> Vec<State> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let word = |value: &Value| value.as_str().expect("a text").to_owned();
    let number = |value: &Value| value.as_u64().expect("a number") as usize;
    let (cells, threads) = (list(&execution["cells"]), list(&execution["threads"]));
    let mut memory: Vec<String> = list(&execution["memory"]).iter().map(word).collect();
    let mut buffers: Vec<Vec<String>> = vec![Vec::new(); threads.len()];
    let mut states = Vec::new();
    for step in list(&execution["steps"]) {
        for change in list(&step["memory"]) {
            memory[number(&change[0])] = word(&change[1]);
        }
        for change in list(&step["buffers"]) {
            let (at, gone) = (number(&change[1]), number(&change[2]));
            buffers[number(&change[0])].splice(at..at + gone, list(&change[3]).iter().map(word));
        }
        let named = cells.iter().map(word).zip(memory.iter().cloned()).collect();
        let full = threads.iter().map(word).zip(buffers.iter().cloned()).filter(|(_, b)| !b.is_empty());
        states.push((named, full.collect()));
    }
    states
}

#[test]
fn the_states_of_a_page_are_those_of_the_trace_and_a_cycle_departs_from_sc() {
    let files = Files::new(&[("sb.fw", STORE_BUFFERING)]);
    let mut cycles = 0;
    for (program, model) in [
        (files.text("sb.fw"), "tso"),
        (example("dekker.fw"), "tso"),
        (example("peterson.pso.fw"), "all"),
        (example("message-passing.fw"), "pso"),
        (example("2+2w.fw"), "pso"),
        (example("counter.fw"), "tso"),
        (example("burns.fw"), "pso"),
        (example("c/peterson.c"), "tso"),
    ] {
        let (outcome, page) = page(&files, &["check", "--json", "--model", model, &program]);
        let lines = outcome.json_lines();
        let traces: Vec<&Value> =
            lines.iter().map(|line| &line["trace"]).filter(|trace| trace.is_array()).collect();
        let data = data(&page);
        let executions = data["executions"].as_array().expect("a list");
        assert_eq!(executions.len(), traces.len(), "{program}");
        for (execution, trace) in executions.iter().zip(traces) {
            let execution = &execution["execution"];
            let trace = trace.as_array().expect("steps");
            let places = places(trace);
            let steps: Vec<_> =
                shown(trace).into_iter().map(|step| expected(step, places.as_ref())).collect();
            assert_eq!(states(execution), steps, "{program}");
            let has = |key: &str| {
                execution["steps"].as_array().expect("a list").iter().any(|step| step.get(key).is_some())
            };
            if execution["cycle"].as_array().is_some_and(|cycle| !cycle.is_empty()) {
                cycles += 1;
                assert!(has("sc"), "{program}: a cycle without a departure from SC");
            }
        }
    }
    assert!(cycles >= 5, "{cycles} cycles");
}

#[test]
fn every_kind_of_answer_is_a_well_formed_page() {
    let files = Files::new(&[
        ("sb.fw", STORE_BUFFERING),
        ("safe.fw", SAFE),
        ("diverging.fw", DIVERGING),
        ("wrong.fw", WRONG),
        (HOSTILE_NAME, HOSTILE),
    ]);
    let (safe, hostile) = (files.text("safe.fw"), files.text(HOSTILE_NAME));
    let (outcome, several) = page(&files, &["check", "-q", "--model", "all", &hostile, &safe]);
    assert_eq!(outcome.status, 1);
    assert!(several.contains("href=\"#answer-2\"") && several.contains("id=\"answer-2\""), "rows are linked");
    assert!(!several.contains("<img") && !several.contains("<svg onload"));
    let (_, unknown) = page(
        &files,
        &["check", "-q", "--engine", "explicit", "--timeout", "500ms", &files.text("diverging.fw")],
    );
    assert!(unknown.contains("<span class=\"verdict unsure\">unknown</span>"), "the reason is told");
    assert!(unknown.contains("What stands against an answer") || unknown.contains("What was tried"));
    let (outcome, wrong) = page(&files, &["check", "-q", &files.text("wrong.fw")]);
    assert_eq!(outcome.status, 2);
    assert!(wrong.contains("<p class=\"reason\">1:26: "), "where and why");
    let (_, fences) = page(&files, &["fences", "-q", &hostile]);
    assert_eq!(fences.matches("<tr class=\"added\">").count(), 2, "two fences");
    assert!(fences.contains("href=\"#answer-1-fence-1\"") && fences.contains("id=\"answer-1-fence-1\""));
    let (_, audit) = page(&files, &["fences", "-q", "--audit", &example("peterson.fenced.fw")]);
    assert!(audit.contains("<span class=\"verdict good\">needed</span>"));
    let (_, robust) = page(&files, &["robust", "-q", "--all", &hostile]);
    assert!(robust.contains("<span class=\"verdict bad\">not robust</span>") && robust.contains("feasible"));
    let (_, invariant) = page(&files, &["check", "-q", "--engine", "cegar", &example("ticket-lock.fw")]);
    assert!(invariant.contains("What holds whenever a thread is at a point"));
    let (outcome, folder) = page(&files, &["check", "-q", &files.text("")]);
    assert_eq!(outcome.status, 2);
    assert!(folder.contains("5 answers") && folder.contains("1 error"), "a folder is one page");
    let left: Vec<_> =
        fs::read_dir(files.path("")).expect("readable").flatten().map(|file| file.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("tmp")), "{left:?}");
}

/// A page without the times in it.
fn without_times(page: &str) -> String {
    let is_time = |word: &str| word.ends_with(|c: char| c.is_ascii_digit()) && word.contains('.');
    page.split(" s")
        .map(|part| {
            part.rsplit_once(['>', ' ']).filter(|(_, word)| is_time(word)).map_or(part, |(before, _)| before)
        })
        .collect()
}

#[test]
fn the_same_answer_gives_the_same_page() {
    let files = Files::new(&[("sb.fw", STORE_BUFFERING)]);
    let program = files.text("sb.fw");
    let arguments = ["check", "-q", "--engine", "explicit", "--jobs", "1", "--model", "all", &program];
    let (first, second) = (page(&files, &arguments).1, page(&files, &arguments).1);
    assert_eq!(without_times(&first), without_times(&second));
}

#[test]
fn mutual_exclusion_is_a_hole_in_the_table_of_points() {
    let files = Files::new(&[]);
    for engine in ["explicit", "cegar", "auto"] {
        let program = example("peterson.fenced.fw");
        let (_, page) = page(&files, &["check", "-q", "--engine", engine, &program]);
        let title = "p[0] at critical, p[1] at critical: never</title>";
        assert_eq!(page.matches(title).count(), 1, "{engine}");
    }
}

#[test]
fn a_page_does_not_overwrite_what_is_read() {
    let files = Files::new(&[("a.fw", SAFE)]);
    for command in ["check", "fences", "robust"] {
        for output in [files.text("a.fw"), "-".to_owned(), files.text("none/x.html")] {
            let outcome = run([command, "--html", &output, &files.text("a.fw")]);
            assert_eq!(outcome.status, 2, "{command} {output}");
        }
    }
    assert_eq!(files.read("a.fw"), SAFE);
}

/// The visible contents: the step, memory, the buffers, and the line.
const SEEN: &str = "(() => {
    const viewer = document.querySelector('.viewer');
    const memory = {}, buffers = {};
    for (const row of viewer.querySelectorAll('[data-cell]')) memory[row.dataset.cell] = row.children[1].textContent;
    for (const thread of viewer.querySelectorAll('.thread')) {
        const chips = [...thread.querySelectorAll('.chip:not(.leaving)')].map((chip) => chip.textContent);
        if (chips.length > 0) buffers[thread.dataset.thread] = chips;
    }
    const line = viewer.querySelector('.line.current .number');
    return { step: viewer.dataset.step, memory, buffers, line: line ? Number(line.textContent) : null };
})()";

/// Whether the page is wider than the window.
const TOO_WIDE: &str = "document.documentElement.scrollWidth > document.documentElement.clientWidth";

#[test]
fn a_browser_shows_what_the_trace_says_and_nothing_can_be_injected() {
    let Some(chromium) = crate::browser::installed() else {
        eprintln!(
            "skipped: there is no Chromium here (Debian's package `chromium`, or FENCEWRIGHT_CHROMIUM)"
        );
        return;
    };
    let files = Files::new(&[(HOSTILE_NAME, HOSTILE), ("sb.fw", STORE_BUFFERING)]);
    let report = files.path("report.html");
    let mut browser = Browser::start(&chromium);
    for (program, model) in
        [(example("dekker.fw"), "tso"), (example("2+2w.fw"), "pso"), (example("c/peterson.c"), "tso")]
    {
        let (outcome, _) = page(&files, &["check", "--json", "--model", model, &program]);
        let lines = outcome.json_lines();
        let trace = lines[0]["trace"].as_array().expect("there is a trace");
        browser.open(&report, 1400);
        browser.wait_for("document.querySelector('.viewer')");
        browser.value("document.querySelector('.viewer').focus()");
        let (places, trace) = (places(trace), shown(trace));
        for (n, step) in trace.iter().enumerate() {
            browser.press(if n % 2 == 0 { "ArrowRight" } else { "ArrowDown" });
            let seen = browser.value(SEEN);
            let (memory, buffers) = expected(step, places.as_ref());
            assert_eq!(seen["step"], json!((n + 1).to_string()), "{program}");
            assert_eq!(seen["memory"], json!(memory), "{program}, step {}", n + 1);
            assert_eq!(seen["buffers"], json!(buffers), "{program}, step {}", n + 1);
            let ends = step["words"].as_str().is_some_and(|words| words.ends_with(" ends"));
            if step.get("included_file").is_none() && !ends {
                assert_eq!(seen["line"], step["line"], "{program}, step {}", n + 1);
            }
        }
        browser.press("ArrowRight");
        assert_eq!(browser.value(SEEN)["step"], json!(trace.len().to_string()), "the end stays the end");
        browser.press("Home");
        assert_eq!(browser.value(SEEN)["step"], "0");
        browser.press("End");
        browser.press("ArrowLeft");
        assert_eq!(browser.value(SEEN)["step"], json!((trace.len() - 1).to_string()));
        let at = "(() => { const box = document.querySelector('.bar input').getBoundingClientRect(); return [box.left, box.right, box.top + box.height / 2]; })()";
        let at: Vec<f64> = serde_json::from_value(browser.value(at)).expect("numbers");
        browser.drag((at[1] - 10.0, at[2]), (at[0] + 1.0, at[2]));
        assert_eq!(browser.value(SEEN)["step"], "0", "the slider can be dragged");
        assert!(
            browser.value("document.querySelectorAll('.arrow.strong').length").as_u64() > Some(1),
            "a cycle is drawn"
        );
        assert_eq!(browser.complaints(), Vec::<&Value>::new(), "{program}");
        browser.open(&report, 600);
        assert_eq!(browser.value(TOO_WIDE), false, "{program}");
    }
    // The execution that each fence prevents is hidden until the user clicks on it.
    page(&files, &["fences", "-q", &example("peterson.fw")]);
    browser.open(&report, 600);
    assert_eq!(browser.value("document.querySelectorAll('.viewer').length"), 0);
    browser.value("document.querySelector('.added a').click()");
    browser.wait_for("document.querySelector('details.fence[open] .viewer')");
    assert_eq!(browser.value(TOO_WIDE), false);
    assert_eq!(browser.complaints(), Vec::<&Value>::new());
    // A proof has drawings, but no execution to step through.
    page(&files, &["check", "-q", &example("bakery.fenced.fw")]);
    browser.open(&report, 600);
    assert!(browser.value("document.querySelectorAll('svg.together .off').length").as_u64() > Some(0));
    assert_eq!(browser.value(TOO_WIDE), false);
    assert_eq!(browser.complaints(), Vec::<&Value>::new());
    // All text of a hostile program is displayed as text.
    let hostile = files.text(HOSTILE_NAME);
    for arguments in [
        &["check", "-q", "--model", "all", &hostile][..],
        &["fences", "-q", &hostile],
        &["robust", "-q", &hostile],
    ] {
        page(&files, arguments);
        browser.open(&report, 1400);
        browser.value("document.querySelectorAll('details').forEach((details) => { details.open = true; })");
        browser.value("document.querySelector('.execution').scrollIntoView()");
        browser.wait_for("document.querySelector('.viewer')");
        let text = browser.value("document.body.innerText");
        let text = text.as_str().expect("a text");
        assert!(text.contains("</script><script>window.injected = 1</script> <!-- <img src=x"), "{text}");
        assert!(text.contains("\\u{202e}]]> &lt;b&gt; ${window"), "{text}");
        assert_eq!(browser.value("typeof window.injected"), "undefined");
        assert_eq!(browser.value("document.querySelectorAll('img, script:not([type]) ~ script, iframe, [onload], [onerror]').length"), 0);
        assert_eq!(browser.complaints(), Vec::<&Value>::new());
    }
    // In a panel of an editor, the page sends the editor the line of the selected step.
    let in_editor = editor_page("sb.fw", STORE_BUFFERING);
    check_form(&in_editor);
    fs::write(&report, in_editor).expect("it can be written");
    let editor = "globalThis.heard = []; globalThis.acquireVsCodeApi = () => ({ postMessage: (at) => heard.push(at) });";
    let editor = browser.call("Page.addScriptToEvaluateOnNewDocument", json!({"source": editor}));
    browser.open(&report, 700);
    browser.wait_for("document.querySelector('.viewer')");
    assert_eq!(browser.value("heard"), json!([{}]), "at the start there is no step");
    for _ in 0..2 {
        browser.press("ArrowRight");
        let line = browser.value(SEEN)["line"].clone();
        assert_eq!(browser.value("heard.at(-1)"), json!({"file": 0, "line": line}));
    }
    let dark = "getComputedStyle(document.body).getPropertyValue('--wash')";
    let light = browser.value(dark);
    browser.value("document.body.classList.add('vscode-dark')");
    assert_ne!(browser.value(dark), light, "the editor says whether it is dark");
    assert_eq!(browser.value(TOO_WIDE), false);
    assert_eq!(browser.complaints(), Vec::<&Value>::new());
    browser.call("Page.removeScriptToEvaluateOnNewDocument", editor);
    // Even if program text became markup, the content security policy would block its scripts.
    browser.value("document.body.insertAdjacentHTML('beforeend', '<img src=\"data:,\" onerror=\"window.injected = 1\">')");
    browser.wait_for("document.images.length === 1 && document.images[0].complete");
    assert_eq!(browser.value("typeof window.injected"), "undefined");
    assert!(!browser.complaints().is_empty(), "the browser says that it refused");
}

#[test]
fn a_page_with_a_long_execution_is_small_and_says_what_is_left_out() {
    let files = Files::new(&[(
        "long.fw",
        "shared x;\nthread p { var i; while i < 1500 { x = i; i = i + 1; } x = 0 - 1; }\nforbid reached: x == 0 - 1;\n",
    )]);
    let (outcome, page) = page(&files, &["check", "--json", "--model", "tso", &files.text("long.fw")]);
    let trace = outcome.json_lines()[0]["trace"].as_array().expect("there is a trace").clone();
    assert!(trace.len() > 4_000, "{}", trace.len());
    assert!(page.len() < 2 << 20, "{} bytes", page.len());
    let data = data(&page);
    let execution = &data["executions"][0]["execution"];
    assert!(
        execution["left_out"][0].as_str().is_some_and(|text| text.contains("steps are left out")),
        "{}",
        execution["left_out"]
    );
    let (states, last) = (states(execution), expected(trace.last().expect("it has an end"), None));
    assert_eq!(states.len(), 2_001, "the gap is one entry");
    assert_eq!(states.last(), Some(&last), "what is left out is not lost");
}

#[test]
fn a_store_that_is_flushed_among_steps_that_are_left_out_is_not_said_to_stay() {
    let text = "shared x, y;\nthread p { var i, r; x = 1; while i < 900 { r = y; i = i + 1; } fence; while i < 1800 { r = y; i = i + 1; } y = 7; }\nforbid reached: y == 7;\n";
    let files = Files::new(&[("long.fw", text)]);
    let (outcome, page) = page(&files, &["check", "--json", "--search", "dfs", &files.text("long.fw")]);
    let trace = outcome.json_lines()[0]["trace"].as_array().expect("there is a trace").clone();
    let at = |event: &str| trace.iter().position(|step| step["event"] == event).expect("it is there") + 1;
    let step = |key: &str| trace.iter().position(|s| s["writes"][0]["to"] == key).expect("it is there") + 1;
    let (stored, flushed) = (step("buffer"), at("flush"));
    let data = data(&page);
    let steps = data["executions"][0]["execution"]["steps"].as_array().expect("steps").clone();
    let gap = steps.iter().find(|step| step["kind"] == "gap").expect("some are left out");
    match (501..=trace.len() - 1500).contains(&flushed) {
        true => assert_eq!(gap["flushed"], json!([stored])),
        false => assert!(gap.get("flushed").is_none()),
    }
}

/// For a family of threads, a proof has only one of the control states that differ by a permutation of these threads. The drawing must not show the
/// others as impossible.
#[test]
fn a_family_of_threads_has_no_hole_where_only_the_order_of_threads_differs() {
    let files = Files::new(&[(
        "family.fw",
        "const N = 5;\nshared x, y;\nthread p[me in 0..N] {\n    x = 1;\nmiddle:\n    fence;\nlast:\n    y = 1;\n}\nforbid two: x == 2;\n",
    )]);
    let (outcome, page) = page(
        &files,
        &["check", "-q", "--engine", "explicit", "--reduction", "none", &files.text("family.fw")],
    );
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(page.contains("svg class=\"together\""), "there is a proof to draw");
    assert!(page.contains("exchanging p[0], p[1]"), "it is up to symmetry");
    assert_eq!(page.matches("never</title>").count(), 0);
}

#[test]
fn threads_without_a_lane_are_named_and_cells_of_the_property_are_shown() {
    let files = Files::new(&[(
        "many.fw",
        "const N = 30;\nshared x[300], go, c;\nthread w { var i; while i < 300 { x[i] = 1; i = i + 1; } go = 1; }\nthread p[me in 0..N] { await go == 1; atomic { c = c + 1; } }\nforbid all: c == 30 && x[0] == 1 && x[299] == 1;\n",
    )]);
    let (outcome, page) =
        page(&files, &["check", "-q", "--model", "sc", "--search", "dfs", &files.text("many.fw")]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    let execution = data(&page)["executions"][0]["execution"].clone();
    let cells = execution["cells"].as_array().expect("a list");
    for cell in ["x[0]", "x[299]", "c"] {
        assert!(cells.contains(&json!(cell)), "{cell}: {cells:?}");
    }
    let steps = execution["steps"].as_array().expect("a list");
    let whose = |step: &Value| match step.get("thread") {
        Some(thread) => execution["threads"][thread.as_u64().expect("a number") as usize].clone(),
        None => step["hidden"].clone(),
    };
    let last = steps.iter().filter(|step| step["kind"] != "gap").map(whose);
    let names: std::collections::BTreeSet<String> =
        last.map(|name| name.as_str().expect("a name").to_owned()).collect();
    assert_eq!(names.len(), 31, "{names:?}");
}

/// If a page would become too large, answers are left out, together with their sources.
#[test]
fn a_page_about_very_much_text_is_not_too_large() {
    let files = Files::new(&[]);
    let line = format!("// {}\n", "x".repeat(290));
    for n in 0..45 {
        files.write(
            &format!("programs/{n}.fw"),
            format!("{STORE_BUFFERING}// {n}\n{}", line.repeat(2_900)).as_bytes(),
        );
    }
    let (outcome, page) = page(&files, &["check", "-q", &files.text("programs")]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(page.len() < 34 << 20, "{} bytes", page.len());
    assert!(page.contains("45 unsafe") && page.contains("what this stands on is left out"));
}
