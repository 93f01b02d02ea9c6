//! Measures the engines and prints what they reach: `cargo run --release -p fencewright-bench [SECTION...]`.
//!
//! `limits [PART OF A NAME...]` and `algorithms [PART OF A NAME...]` are apart: they run the `fencewright` command beside this one, the first
//! on hard programs, and it fails if a limit is not kept, the second on the algorithms of the corpora, and it fails if an answer is wrong.
//!
//! Machines differ and are noisy, so figures worth comparing are ratios within one run. Every section says what it measures.

#![forbid(unsafe_code)]

mod algorithms;
mod contexts;
mod explicit;
mod extra13;
mod fences12;
mod limits;
mod programs;
mod reductions;
mod robustness;
mod spin;
mod states;
mod table;
mod thesis;

use std::path::PathBuf;
use std::process::ExitCode;

/// The sections, in the order in which they run.
const SECTIONS: [(&str, &str, fn()); 13] = [
    ("throughput", "explicit engine: states per second and bytes per state", explicit::throughput),
    ("families", "explicit engine: scaling families of THESIS16 s.5.1 and s.5.2", explicit::families),
    ("states", "explicit engine: proofs by sets of states, found and checked", states::states),
    ("fences12", "engine cegar: FENCES12 Table 1, proofs with certificates", fences12::table_1),
    ("threads", "engine cegar: more threads, unbounded integers", fences12::threads),
    ("fences", "fences for FENCES12 Table 1, from the programs without any", fences12::fences),
    ("lazy", "engine lazy: THESIS16 Fig. 5.1", thesis::lazy),
    ("lazy-families", "engine lazy: THESIS16 Figs. 5.3 to 5.8, growing", thesis::families),
    ("robust", "robustness and its fences: THESIS16 Figs. 5.9 to 5.11", robustness::tables),
    ("reductions", "partial order reductions: THESIS16 Figs. 5.13 and 5.14", reductions::tables),
    ("lamport", "explicit engine: Lamport's fast mutex, memory, and Spin beside it", spin::lamport),
    ("contexts", "engine contexts: the programs of CONTEXT24", contexts::contexts),
    ("extra13", "engine extrapolate: EXTRA13 Tables 1 and 2", extra13::tables),
];

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    match wanted.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        Some(("limits", parts)) => return limits::table(parts),
        Some(("algorithms", parts)) => return algorithms::table(parts),
        _ => {}
    }
    for name in &wanted {
        if !SECTIONS.iter().any(|(section, ..)| section == name) {
            eprintln!("no section `{name}`; the sections are:");
            SECTIONS.iter().for_each(|(name, about, _)| eprintln!("  {name:12} {about}"));
            eprintln!("  {:12} {}", "limits", limits::ABOUT);
            eprintln!("  {:12} {}", "algorithms", algorithms::ABOUT);
            return ExitCode::from(2);
        }
    }
    for (name, about, run) in SECTIONS {
        if wanted.is_empty() || wanted.iter().any(|w| w == name) {
            println!("\n## {name}: {about}\n");
            run();
        }
    }
    ExitCode::SUCCESS
}

/// The command that is run where the whole command is measured: the one beside this one, unless FENCEWRIGHT names another.
fn command() -> PathBuf {
    let beside = || std::env::current_exe().map(|exe| exe.with_file_name("fencewright"));
    std::env::var_os("FENCEWRIGHT").map_or_else(|| beside().unwrap_or_default(), PathBuf::from)
}
