//! `fencewright reduce`: writes a program whose behaviour under SC is that of the given program under TSO or PSO with bounded buffers, or
//! over-approximates that with unbounded buffers (`--buffers partial:K`).

use fencewright::engines::Limits;
use fencewright::lang::source::escape;
use fencewright::lang::{Diagnostic, Loaded, export};
use fencewright::program::{MemoryModel, Program, Span};
use fencewright::reduce::c::{Width, c};
use fencewright::reduce::{Bounds, Unsupported, forgetful, reduce};
use fencewright::settings::{Partial, Sizes, Target};

use crate::args::ReduceArgs;
use crate::files;
use crate::input::{load_program, tell_assumed, tell_notes};
use crate::output::{Output, complain, error_colour, write_error};
use crate::status::Status;

/// Writes the reduced program.
pub fn run(args: &ReduceArgs, out: &mut Output) -> Status {
    if let Some(output) = &args.settings.output
        && let Some(why) = files::is_also_read(output, [args.file.as_path()])
    {
        complain(&output.to_string_lossy(), &why);
        return Status::Bad;
    }
    let program = match load_program(&args.file, &args.settings.reader(), &Limits::default()) {
        Ok(program) => program,
        Err(status) => return status,
    };
    let loaded = program.loaded();
    if let Some(output) = &args.settings.output
        && let Some(why) = files::is_also_read(output, files::included(&loaded.sources))
    {
        complain(&output.to_string_lossy(), &why);
        return Status::Bad;
    }
    match text(args, loaded) {
        Ok(text) => {
            tell_notes(loaded);
            tell_assumed(loaded);
            files::deliver(&text, args.settings.output.as_deref(), out)
        }
        Err(Unsupported { why, span: Some(span) }) if span != Span::default() => {
            let diagnostic = Diagnostic::new(span, format!("this cannot be reduced: {why}"));
            write_error(&loaded.sources.render(&[diagnostic], error_colour()));
            Status::Bad
        }
        Err(Unsupported { why, .. }) => {
            complain(loaded.sources.name(), &why);
            Status::Bad
        }
    }
}

/// The reduced program as a text.
fn text(args: &ReduceArgs, loaded: &Loaded) -> Result<String, Unsupported> {
    let program = &loaded.program;
    let model = args.settings.reduced_model;
    let reduced = match args.settings.forgetful {
        Some(Partial(k)) => forgetful(program, model, k)?,
        None => reduce(program, model, &bounds(args, program)?)?,
    };
    let head = reduced.explanation(program, loaded.sources.name());
    match args.settings.target {
        Target::C => c(&reduced.program, &head, args.settings.width.unwrap_or(Width::Bits32)),
        Target::Fw if args.settings.width.is_some() => {
            Err(Unsupported { why: "--width is for C: the integers of .fw have any size".into(), span: None })
        }
        Target::Fw => {
            let body = export::fw(&reduced.program).map_err(|why| Unsupported { why, span: None })?;
            let head = head.iter().map(|line| format!("// {}", escape(line)).trim_end().to_string() + "\n");
            Ok(format!("{}\n{body}", head.collect::<String>()))
        }
    }
}

/// The capacities of buffers given on the command line.
fn bounds(args: &ReduceArgs, program: &Program) -> Result<Bounds, Unsupported> {
    let Sizes { all, single } = &args.settings.sizes;
    let unsupported = |why: String| Err(Unsupported { why, span: None });
    let per_thread = args.settings.per_thread || args.settings.reduced_model != MemoryModel::Pso;
    let mut sizes = vec![*all; program.variables.len()];
    for (name, k) in single {
        match program.variables.iter().position(|v| v.name == *name) {
            _ if per_thread => {
                return unsupported(format!(
                    "--k {name}={k}: here all stores of a thread are counted together"
                ));
            }
            Some(variable) => sizes[variable] = *k,
            None => {
                return unsupported(format!("--k {name}={k}: the program has no shared variable `{name}`"));
            }
        }
    }
    Ok(if per_thread { Bounds::PerThread(*all) } else { Bounds::PerVariable(sizes) })
}
