//! Code lenses: verdicts above the properties and threads that the verdicts are about.

use fencewright::engines::{Checked, Verdict};
use fencewright::lang::ast::{Item, Thread};
use fencewright::program::{
    Fault, MemoryModel, Observable, Op, Program, Property, PropertyKind, Span, ThreadId,
};
use lsp_types::{CodeLens, Command, Range, Uri};
use serde_json::json;

use crate::answers::{Answers, word};
use crate::places::Places;
use crate::settings::Settings;
use crate::{CHECK, EXECUTION};

/// The lenses of a program.
pub fn lenses(uri: &Uri, answers: &Answers, places: &Places<'_>, settings: &Settings) -> Vec<CodeLens> {
    let models = if answers.models.is_empty() { &settings.models } else { &answers.models };
    let mut lenses = Vec::new();
    for (n, property) in answers.properties().iter().enumerate() {
        let Some(range) = place(property, places) else { continue };
        for &model in models {
            let checked = answers.verdicts.get(&(model, n)).map(|checked| &**checked);
            let command = of_property(uri, property, model, checked, answers.checking);
            lenses.push(CodeLens { range, command: Some(command), data: None });
        }
    }
    for thread in threads(answers) {
        let Some(range) = places.range(thread.name.span) else { continue };
        for &model in models {
            if let Some(command) = of_thread(uri, answers, thread, model) {
                lenses.push(CodeLens { range, command: Some(command), data: None });
            }
        }
    }
    lenses
}

/// The range where a property is stated: the beginning of the file for a property that need not be stated, `None` for a property of an included file.
fn place(property: &Property, places: &Places<'_>) -> Option<Range> {
    if property.span == Span::default() { Some(Range::default()) } else { places.range(property.span) }
}

fn of_property(
    uri: &Uri,
    property: &Property,
    model: MemoryModel,
    checked: Option<&Checked>,
    checking: bool,
) -> Command {
    let (name, under) = (&property.name, model.name());
    let Some(checked) = checked else {
        return match checking {
            true => Command { title: format!("{name}: checking under {under} ..."), ..Command::default() },
            false => check(uri, format!("{name}: check under {under}")),
        };
    };
    let unconfirmed = if checked.checked() == Some(false) { " (not confirmed)" } else { "" };
    let title = match checked.verdict() {
        Verdict::Safe => format!("{name}: safe under {under}{unconfirmed}"),
        Verdict::Unsafe if checked.trace().is_none() => format!("{name}: unsafe under {under}{unconfirmed}"),
        Verdict::Unsafe => format!("{name}: unsafe under {under} — show the execution"),
        Verdict::Unknown(why) => format!("{name}: unknown under {under}: {why}"),
    };
    shown(uri, title, name, model)
}

/// The verdicts on the properties that mention a thread, in one line.
fn of_thread(uri: &Uri, answers: &Answers, thread: &Thread, model: MemoryModel) -> Option<Command> {
    let program = &answers.program.loaded().program;
    let own = |id: ThreadId| is_instance(program, id, &thread.name.text);
    let of =
        answers.properties().iter().enumerate().filter(|(_, property)| concerns(program, property, &own));
    let verdicts: Vec<&Checked> =
        of.filter_map(|(n, _)| answers.verdicts.get(&(model, n)).map(|checked| &**checked)).collect();
    let words: Vec<String> =
        verdicts.iter().map(|checked| format!("{} {}", checked.property.name, word(checked))).collect();
    let first = verdicts.iter().find(|checked| matches!(checked.verdict(), Verdict::Unsafe));
    let first = first.or(verdicts.first())?;
    Some(shown(uri, format!("{}: {}", model.name(), words.join(", ")), &first.property.name, model))
}

/// The command that checks the program.
fn check(uri: &Uri, title: String) -> Command {
    Command { title, command: CHECK.into(), arguments: Some(vec![json!(uri)]) }
}

/// The command that shows the execution or proof behind a verdict.
fn shown(uri: &Uri, title: String, property: &str, model: MemoryModel) -> Command {
    let arguments = vec![json!(uri), json!(property), json!(model.name())];
    Command { title, command: EXECUTION.into(), arguments: Some(arguments) }
}

/// The threads of the source, in which a family of threads is one thread.
fn threads(answers: &Answers) -> impl Iterator<Item = &Thread> {
    answers.program.loaded().file.items.iter().filter_map(|item| match item {
        Item::Thread(thread) => Some(thread),
        _ => None,
    })
}

/// Whether a thread of the program comes from the thread or family of threads with this name in the source.
pub fn is_instance(program: &Program, id: ThreadId, name: &str) -> bool {
    let thread = program.thread(id);
    thread.family.as_ref().map_or(&thread.name, |(family, _)| family) == name
}

/// Whether a property mentions one of these threads, or is `assertions` and one of these threads has an assertion.
fn concerns(program: &Program, property: &Property, own: &dyn Fn(ThreadId) -> bool) -> bool {
    if let Some(formula) = property.formula() {
        let mut found = false;
        formula.for_each_leaf(&mut |leaf| {
            found |= match leaf {
                Observable::At(thread, _) | Observable::Register(thread, _) => own(*thread),
                Observable::Memory(_) => false,
            };
        });
        return found;
    }
    let asserts = |op: &Op| matches!(op, Op::Assert(_, Fault::Assertion(_)));
    matches!(property.kind, PropertyKind::Assertions)
        && program.threads().any(|(id, thread)| {
            own(id) && thread.edges.iter().any(|edge| edge.action.ops().iter().any(asserts))
        })
}
