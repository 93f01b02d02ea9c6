//! `fencewright robust`: does a program behave under TSO as under SC?

use std::path::Path;

use fencewright::engines::Progress;
use fencewright::engines::robust::{Options, Robustness, analyse};
use fencewright::input::name_of;
use fencewright_report::{Source, remarks, robust};

use crate::args::{RobustArgs, is_talkative, reader_for_robustness};
use crate::gathered::Gathered;
use crate::input::{each_file, load_or_tell, stops_when_asked, tell_notes};
use crate::output::Output;
use crate::status::Status;
use crate::{certificate, files, gathered, progress, stop};

/// Examines all files.
pub fn run(args: &RobustArgs, out: &mut Output) -> Status {
    out.style.full = args.settings.full;
    if !args.settings.quiet {
        args.settings.tell_idle();
    }
    let options = args.settings.robustness();
    if let Some(path) = &args.settings.certificate
        && !certificate::can_be_written(path, &args.files, args.settings.json, out)
    {
        return Status::Bad;
    }
    if let Some((option, why)) =
        files::are_the_same(&[("--certificate", &args.settings.certificate), ("--html", &args.settings.html)])
    {
        out.refuse(args.settings.json, option, &why, None);
        return Status::Bad;
    }
    if let Some(path) = &args.settings.html
        && !gathered::can_be_written("--html", path, &args.files, args.settings.json, out)
    {
        return Status::Bad;
    }
    let mut gathered = Gathered::new(None, args.settings.html.as_ref());
    let status = examine_all(args, &options, &mut gathered, out);
    status.and(gathered.write(None, args.settings.html.as_ref(), args.settings.json, out))
}

/// Examines all files, and collects the answers for `--html`.
fn examine_all(args: &RobustArgs, options: &Options, gathered: &mut Gathered, out: &mut Output) -> Status {
    let reader = reader_for_robustness(&args.settings);
    each_file(&args.files, &args.settings, out, |path, limits, out| {
        let _search = stops_when_asked(path, gathered);
        let program = match load_or_tell(path, &reader, limits, args.settings.json, out) {
            Ok(program) => program,
            Err(unloadable) => {
                gathered.fail(&name_of(path), &unloadable.reason());
                return unloadable.status;
            }
        };
        let loaded = program.loaded();
        gathered.read(&loaded.sources);
        if let Some(path) = &args.settings.certificate
            && let Some(why) = files::is_also_read(path, files::included(&loaded.sources))
        {
            out.refuse(args.settings.json, &path.to_string_lossy(), &why, None);
            return Status::Bad;
        }
        if is_talkative(&args.settings) {
            tell_notes(loaded);
        }
        let _search = stop::Search::begin();
        let show = is_talkative(&args.settings) && progress::is_watched();
        let measured = Progress::default();
        let answer =
            progress::shown(show, &measured, || analyse(&loaded.program, options, limits, &measured));
        let source = Source::from(loaded);
        out.print(&match args.settings.json {
            true => robust::json(source, &answer, args.settings.all_attacks),
            false => robust::text(source, &answer, args.settings.all_attacks, args.settings.quiet, out.style),
        });
        if let Some(page) = gathered.page() {
            page.robust(source, &answer, args.settings.all_attacks);
        }
        if !args.settings.json {
            out.print(&remarks::assumed(source));
        }
        if is_talkative(&args.settings) {
            out.print(&remarks::meaning(source));
        }
        out.flush();
        let status = match answer.robust() {
            Ok(true) => Status::Fine,
            Ok(false) => Status::Violated,
            Err(_) => Status::Unknown,
        };
        match &args.settings.certificate {
            Some(path) => status.and(write_certificate(path, &answer, args.settings.json, out)),
            None => status,
        }
    })
}

/// Writes the certificate that a program is robust, if there is one.
fn write_certificate(path: &Path, answer: &Robustness, json: bool, out: &mut Output) -> Status {
    if let Some(found) = answer.certificate() {
        return certificate::write(path, found, json, out);
    }
    let why = match (answer.robust(), &answer.uncertified) {
        (Ok(true), Some(reason)) => format!("engine cegar finds no invariant: {reason}"),
        (Ok(false), _) => "an attack succeeds".into(),
        _ => "nothing was proved".into(),
    };
    certificate::tell_none(path, &why, json, out)
}
