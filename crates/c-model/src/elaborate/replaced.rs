//! Functions without a body, and functions that the user replaces: `--havoc`, `--skip` and `--stub`.
//!
//! A call of a function that has no body and no model is an error. Elaboration goes on as if such a function returned any integer, or null instead of
//! a pointer, so that it finds several errors of this kind at once. So elaboration may reach code that the program cannot execute.

use fencewright_c::typed::tree::{Expr, FunctionId, Type, TypeKind};
use fencewright_code::numbers::Operand;
use fencewright_front_end::COptions;
use fencewright_front_end::facts::{Assumed, Assumption};
use fencewright_program::{FileId, Span};
use fencewright_text::Diagnostic;

use super::calls::Outcome;
use super::objects::{Spot, Target};
use super::{Elaborator, Result};

/// The functions that the user replaces.
#[derive(Clone, Debug, Default)]
pub struct Replaced {
    havoc: Vec<String>,
    skip: Vec<String>,
    stubs: Vec<(FileId, String)>,
}

impl Replaced {
    /// The replacements of these options. `stubs` are the files given by `--stub`, with their names.
    pub fn new(
        options: &COptions,
        stubs: Vec<(FileId, String)>,
    ) -> std::result::Result<Self, Vec<Diagnostic>> {
        let COptions { havoc, skip, .. } = options;
        if let Some(both) = havoc.iter().find(|name| skip.contains(name)) {
            let message = format!("--havoc and --skip are both given for `{both}`");
            return Err(vec![Diagnostic::new(Span::default(), message).help("use one of them")]);
        }
        Ok(Replaced { havoc: havoc.clone(), skip: skip.clone(), stubs })
    }

    /// What the options say about a function.
    fn of(&self, name: &str) -> Option<Assumed> {
        let is_one = |names: &[String]| names.iter().any(|one| one == name);
        match (is_one(&self.havoc), is_one(&self.skip)) {
            (true, _) => Some(Assumed::Anything),
            (_, true) => Some(Assumed::Nothing),
            _ => None,
        }
    }

    /// Whether `--havoc` or `--skip` names a function.
    pub fn has(&self, name: &str) -> bool {
        self.of(name).is_some()
    }

    /// The name of the file given by `--stub` with this number.
    fn stub(&self, file: FileId) -> Option<&str> {
        self.stubs.iter().find(|(stub, _)| *stub == file).map(|(_, name)| name.as_str())
    }

    /// Warnings about options that have no effect.
    pub fn unused(&self, assumed: &[Assumption]) -> Vec<Diagnostic> {
        let is_used = |name: &str| assumed.iter().any(|assumption| assumption.function == name);
        let of = |option: &'static str, names: &[String]| {
            let unused = names.iter().filter(|name| !is_used(name));
            let warning =
                |name: &String| format!("{option} {name} has no effect: no call of `{name}` is reached");
            unused.map(warning).map(|warning| Diagnostic::new(Span::default(), warning)).collect::<Vec<_>>()
        };
        [of("--havoc", &self.havoc), of("--skip", &self.skip)].concat()
    }
}

/// The functions that elaboration has found to be replaced or missing.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub assumed: Vec<Assumption>,
    missing: Vec<(String, Diagnostic)>,
}

impl Found {
    fn assume(&mut self, function: &str, what: Assumed, span: Span) {
        if !self.assumed.iter().any(|known| known.function == function) {
            self.assumed.push(Assumption { function: function.to_owned(), what, span });
        }
    }

    /// The errors about functions that have neither a body nor a model, one for each function.
    pub(super) fn missing(&self) -> Vec<Diagnostic> {
        self.missing.iter().map(|(_, error)| error.clone()).collect()
    }
}

impl Elaborator<'_> {
    /// What the options say about a function of the program.
    pub(super) fn replacement(&self, function: FunctionId) -> Option<Assumed> {
        self.options.replaced.of(&self.unit.functions[function.index()].name)
    }

    /// Calls a function without a body that the options replace; `None` if there is no such option.
    pub(super) fn replaced_call(
        &mut self,
        name: &str,
        arguments: &[Expr],
        call: &Expr,
    ) -> Result<Option<Outcome>> {
        let Some(what) = self.options.replaced.of(name) else { return Ok(None) };
        let (ty, span) = (&call.ty, call.span);
        self.arguments(arguments)?;
        self.rely_on(name, what.clone(), span);
        let outcome = match &ty.kind {
            TypeKind::Void => Outcome::Nothing,
            TypeKind::Record(_) => {
                let object = self.scratch(name, ty, span);
                let target = Target::new(Spot::Memory(self.location(object, &[])), ty.clone());
                self.fill(&target, name, &what, span)?;
                Outcome::Aggregate(target)
            }
            _ => Outcome::Scalar(self.replaced_value(ty, name, &what, span)?),
        };
        Ok(Some(outcome))
    }

    /// Sets the result of the current function, whose body the options replace.
    pub(super) fn replaced_body(&mut self, function: FunctionId, what: &Assumed) -> Result<()> {
        let unit = self.unit;
        let callee = &unit.functions[function.index()];
        let at = self.frame().at;
        self.rely_on(&callee.name, what.clone(), at);
        match self.frame().result.clone() {
            Some(target) => self.fill(&target, &callee.name, what, at),
            None => Ok(()),
        }
    }

    /// Records that a function is entered whose body is in a file given by `--stub`, unless a function of such a file calls it.
    pub(super) fn enter_stub(&mut self, function: FunctionId, span: Span) {
        let unit = self.unit;
        let file =
            |function: FunctionId| self.options.replaced.stub(unit.functions[function.index()].span.file);
        let caller = self.writer.frames.last().and_then(|frame| file(frame.function));
        let (Some(stub), None) = (file(function), caller) else { return };
        let what = Assumed::Stub(stub.to_owned());
        self.rely_on(&unit.functions[function.index()].name, what, span);
    }

    fn rely_on(&mut self, name: &str, what: Assumed, span: Span) {
        let span = self.here(span);
        self.functions.assume(name, what, span);
    }

    /// Writes to all scalars of a place what a replaced function returns.
    fn fill(&mut self, target: &Target, name: &str, what: &Assumed, span: Span) -> Result<()> {
        for way in self.scalars(&target.ty, span)? {
            let mut part = target.clone();
            for step in way {
                part = self.part_at(&part, step, span)?;
            }
            let value = self.replaced_value(&part.ty, name, what, span)?;
            self.write(&part, value, span)?;
        }
        Ok(())
    }

    /// A number or pointer that a replaced function returns.
    fn replaced_value(&mut self, ty: &Type, name: &str, what: &Assumed, span: Span) -> Result<Operand> {
        match (&ty.kind, what) {
            (TypeKind::Integer(arithmetic), Assumed::Anything) => {
                Ok(self.any(name, ty, (arithmetic.least(), arithmetic.greatest()), span))
            }
            (TypeKind::Integer(_) | TypeKind::Pointer(_), Assumed::Nothing) => Ok(Operand::number(0)),
            (TypeKind::Pointer(_), _) => self.error(
                span,
                format!("--havoc {name}: the function returns a pointer, which may point anywhere"),
                "define the function in a file of its own, and name the file with --stub",
            ),
            _ => self.error(
                span,
                format!(
                    "--havoc and --skip are not supported for `{name}`, which returns no integer or pointer"
                ),
                "define the function in a file of its own, and name the file with --stub",
            ),
        }
    }

    /// Records the error that a called function has neither a body nor a model, once for each function.
    pub(super) fn missing_function(&mut self, name: &str, advice: Option<&str>, span: Span) {
        if self.functions.missing.iter().any(|(known, _)| known == name) {
            return;
        }
        let options = format!(
            "with --havoc {name} it returns any value and writes nothing, with --skip {name} it does nothing, and --stub FILE.c reads a file that defines it"
        );
        let help = match advice {
            Some(advice) => format!("{advice}; --stub FILE.c reads a file that defines it"),
            None => format!("give it a body; {options}"),
        };
        let message = format!("what `{name}` does is not known: it has no body");
        let error = Diagnostic::new(self.here(span), message).help(help);
        self.functions.missing.push((name.to_owned(), error));
    }
}
