//! `fencewright engines`: which engines there are.

use fencewright::engines::{About, EngineName, EngineOptions, registry};
use fencewright_report::engines;

use crate::args::EnginesArgs;
use crate::output::Output;
use crate::status::Status;

/// Lists all engines.
pub fn run(args: &EnginesArgs, out: &mut Output) -> Status {
    let options = EngineOptions::default();
    let list: Vec<(EngineName, About)> =
        registry().iter().map(|info| (info.name, (info.build)(&options).about())).collect();
    out.print(&if args.json { engines::json(&list) } else { engines::text(&list, out.style) });
    Status::Fine
}
