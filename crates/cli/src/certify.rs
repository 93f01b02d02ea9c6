//! `fencewright certify`: is this certificate a proof about this program?

use std::cell::OnceCell;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Instant;

use fencewright::certify::Claim;
use fencewright::certify::certificate::Unreadable;
use fencewright::engines::{Limits, Reason};
use fencewright::fingerprint::fingerprint;
use fencewright::input::{in_words, is_standard_input, name_of};
use fencewright::lang::source::escape;
use fencewright::lang::{Loaded, Position};
use fencewright::{Certificate, Error, Program};
use fencewright_report::certify::{Answer, Certified};

use crate::args::{CertifyArgs, limits};
use crate::input::{load_or_tell, tell_notes};
use crate::output::Output;
use crate::status::Status;
use crate::stop;

/// Maximum size of a certificate in bytes.
const MOST_BYTES: u64 = 1 << 29;

/// Checks a certificate against a program, without any engine.
pub fn run(args: &CertifyArgs, out: &mut Output) -> Status {
    if is_standard_input(&args.certificate) && is_standard_input(&args.file) {
        let why = "the certificate and the program cannot both come from the standard input";
        out.refuse(args.settings.json, "certify", why, None);
        return Status::Bad;
    }
    let limits = limits(&args.settings);
    let name = name_of(&args.certificate);
    let program = name_of(&args.file);
    let certificate = match read(&args.certificate, &limits) {
        Ok(certificate) => certificate,
        Err(Unread::Bad(why, place)) => {
            let at = place.map(|(line, column)| Position {
                file: &name,
                included: false,
                line,
                column: column.max(1),
            });
            out.refuse(args.settings.json, &name, &why, at);
            return Status::Bad;
        }
        Err(Unread::GivenUp(reason)) => {
            let answer = Answer::Unknown(reason.to_string());
            let certified = Certified {
                name: &name,
                program: &program,
                certificate: None,
                assumed: &[],
                answer,
                seconds: 0.0,
            };
            return tell(&certified, args.settings.json, out);
        }
    };
    // How the program has to be read depends on the properties and the model that the certificate is about.
    let mut reader = args.settings.reader();
    reader.options.ask(certificate.properties());
    if let Some(model) = certificate.model() {
        reader.options.ask_models(&[model]);
    }
    if matches!(certificate.claim, Claim::Robust { .. }) {
        reader.options.ask_robustness();
    }
    let read = match load_or_tell(&args.file, &reader, &limits, args.settings.json, out) {
        Ok(program) => program,
        Err(unloadable) => return unloadable.status,
    };
    let loaded = read.loaded();
    if !args.settings.json {
        tell_notes(loaded);
    }
    let start = Instant::now();
    let answer = match about_something_else(args, &certificate, loaded) {
        Some(why) => Answer::Rejected(why),
        None => checked(&certificate, &read, &limits),
    };
    let seconds = start.elapsed().as_secs_f64();
    let assumed = &loaded.facts.assumed;
    let certified = Certified {
        name: &name,
        program: &program,
        certificate: Some(&certificate),
        assumed,
        answer,
        seconds,
    };
    tell(&certified, args.settings.json, out)
}

fn tell(certified: &Certified<'_>, json: bool, out: &mut Output) -> Status {
    out.print(&if json { certified.json() } else { certified.text() });
    match certified.answer {
        Answer::Accepted(_) => Status::Fine,
        Answer::Rejected(_) => Status::Violated,
        Answer::Unknown(_) => Status::Unknown,
    }
}

/// The message if the certificate is about another program, memory model or property.
fn about_something_else(args: &CertifyArgs, certificate: &Certificate, loaded: &Loaded) -> Option<String> {
    if certificate.program != fingerprint(&loaded.program) {
        return Some("the certificate is about another program".into());
    }
    if let (Some(wanted), Some(model)) = (args.settings.certified_model, certificate.model())
        && wanted != model
    {
        return Some(format!("the certificate is about {}, not about {}", model.name(), wanted.name()));
    }
    let missing =
        args.settings.certified_property.iter().find(|name| !certificate.properties().contains(name))?;
    Some(format!("the certificate is not about the property `{missing}`"))
}

fn checked(certificate: &Certificate, program: &Program, limits: &Limits) -> Answer {
    let _search = stop::Search::begin();
    match program.certify_within(certificate, limits) {
        Ok(accepted) => Answer::Accepted(accepted),
        Err(Error::Stopped(reason)) => Answer::Unknown(reason.to_string()),
        Err(error) => Answer::Rejected(error.to_string()),
    }
}

/// The reason why a certificate cannot be read.
enum Unread {
    /// The certificate cannot be opened or is malformed; with line and column, if they are known.
    Bad(String, Option<(usize, usize)>),
    /// A limit was reached.
    GivenUp(Reason),
}

fn read(path: &Path, limits: &Limits) -> Result<Certificate, Unread> {
    let text: Box<dyn Read> = match is_standard_input(path) {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(path).map_err(|error| Unread::Bad(in_words(&error), None))?),
    };
    let (given_up, too_long) = (OnceCell::new(), OnceCell::new());
    let watched = Watched { text, limits, read: 0, given_up: &given_up, too_long: &too_long };
    let result = Certificate::read(watched);
    if let Some(reason) = given_up.into_inner() {
        return Err(Unread::GivenUp(reason));
    }
    if too_long.get().is_some() {
        let why = format!("the file is too long: more than {} MiB are no certificate", MOST_BYTES >> 20);
        return Err(Unread::Bad(why, None));
    }
    result.map_err(|Unreadable { message, place }| {
        Unread::Bad(escape(&format!("not a certificate: {message}")), place)
    })
}

/// A reader that stops when a limit is reached or the input is too long.
struct Watched<'a> {
    text: Box<dyn Read>,
    limits: &'a Limits,
    read: u64,
    given_up: &'a OnceCell<Reason>,
    too_long: &'a OnceCell<()>,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(reason) = self.limits.exceeded(0) {
            let _ = self.given_up.set(reason);
            return Ok(0);
        }
        if self.read > MOST_BYTES {
            let _ = self.too_long.set(());
            return Ok(0);
        }
        let length = self.text.read(buffer)?;
        self.read += length as u64;
        Ok(length)
    }
}
