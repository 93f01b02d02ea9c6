//! `fencewright engines`: the engines with their options.

use fencewright::engines::{EngineInfo, EngineOptions, registry};
use fencewright::settings::known_to;
use fencewright_report::engines::{self, Described};

use crate::args::EnginesArgs;
use crate::output::Output;
use crate::status::Status;

/// Lists all engines.
pub fn run(args: &EnginesArgs, out: &mut Output) -> Status {
    let options = EngineOptions::default();
    let described = |info: &EngineInfo| {
        let about = (info.build)(&options).about();
        Described { name: info.name, about, options: known_to(info.name) }
    };
    let list: Vec<Described> = registry().iter().map(described).collect();
    out.print(&if args.json { engines::json(&list) } else { engines::text(&list, out.style) });
    Status::Fine
}
