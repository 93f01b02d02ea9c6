//! `fencewright certify`: is this certificate a proof about this program?

use std::time::Instant;

use fencewright_certify::{Certificate, check};
use fencewright_lang::source::escape;
use fencewright_report::words::grouped;

use crate::args::CertifyArgs;
use crate::input::{describe, display_name, load_program, read_up_to, tell_notes};
use crate::output::{Output, complain};
use crate::status::Status;
use crate::stop;

/// A larger certificate is not read.
const MOST_BYTES: u64 = 2 << 30;

/// Checks a certificate against a program, without any engine.
pub fn run(args: &CertifyArgs, out: &mut Output) -> Status {
    let name = display_name(&args.certificate);
    let certificate = read_up_to(&args.certificate, MOST_BYTES)
        .map_err(|error| describe(&error))
        .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "this is not text".into()))
        .and_then(|text| {
            Certificate::from_json(&text).map_err(|error| format!("not a certificate: {error}"))
        });
    let certificate = match certificate {
        Ok(certificate) => certificate,
        Err(message) => {
            complain(&name, &escape(&message));
            return Status::Bad;
        }
    };
    let Some(loaded) = load_program(&args.file, &args.input) else { return Status::Bad };
    tell_notes(&loaded);
    let start = Instant::now();
    let search = stop::Search::begin();
    let result = check(&certificate, &loaded.program, &stop::is_asked);
    drop(search);
    let seconds = start.elapsed().as_secs_f64();
    let properties = escape(&certificate.properties.join(", "));
    let model = certificate.machine.buffers().model().name();
    match result {
        Ok(accepted) => {
            out.print(&format!(
                "{}: accepted: {properties} under {model} ({} control states, {} formulas, {} steps, {seconds:.3} s)\n",
                escape(&name),
                grouped(accepted.controls as u64),
                grouped(accepted.cubes as u64),
                grouped(accepted.steps as u64),
            ));
            Status::Fine
        }
        Err(rejection) => {
            out.print(&format!("{}: rejected: {}\n", escape(&name), escape(&rejection.to_string())));
            Status::Violated
        }
    }
}
