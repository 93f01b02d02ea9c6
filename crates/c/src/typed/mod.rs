//! Semantic analysis: resolves names, types and constants (C11 6.2 to 6.9). The result is a typed tree, the [`Unit`] of module [`tree`].
//!
//! The analysis is a single pass from top to bottom; names of variables and functions are looked up in the scopes that are open at that point.
//! Implicit operations of C (promotions, decay, conversions) become explicit, constants are folded, and unsupported constructs are reported with
//! their position and advice. Programs that gcc accepts are not rejected; where gcc warns, this analysis warns too.
//!
//! Most errors matter only if an execution may reach them. Therefore [`tree::Function::errors`] keeps the errors in the body of a function,
//! [`tree::Variable::error`] keeps that of a variable, and errors in the declarations of other names and of structures are reported in the functions
//! that use them. Two kinds of errors are always reported: those that no compiler accepts ([`Error::always`]), and those in code that is evaluated at
//! file scope.

mod builtins;
mod calls;
mod constants;
mod conversions;
mod declarations;
mod expressions;
mod initial;
mod linking;
mod names;
mod operators;
mod precedence;
mod records;
mod statements;
pub mod tree;
mod types;
mod unchanged;
mod variable_arrays;

use std::rc::Rc;

use fencewright_program::{FileId, Span};
use rustc_hash::FxHashMap;

pub use self::builtins::names as builtin_names;
use self::linking::{Bodies, Linking};
use self::names::{Entity, Object};
use self::records::Layout;
use self::statements::Body;
use self::tree::{Block, Function, FunctionId, FunctionType, GlobalId, Record, Type, Variable};
use self::unchanged::Changes;
use crate::arithmetic::Arithmetic;
use crate::ast;
use crate::error::Error;
use crate::preprocess::{Origin, Preprocessed};
use crate::token::{Names, Symbol};

pub use tree::Unit;

/// Number of errors after which the analysis stops.
const MOST_ERRORS: usize = 100;
/// Maximum nesting depth of expressions and statements, because later passes process the tree recursively.
const DEEPEST: u32 = 300;

/// The result of analysing one construct, or the error to report.
type Typing<T> = Result<T, Error>;

/// The state of the analysis.
struct Typer<'a> {
    stop: &'a dyn Fn() -> bool,
    names: &'a Names,
    /// The origins of the files that the user did not write.
    origins: &'a FxHashMap<FileId, Origin>,
    unit: &'a ast::Unit,
    records: Vec<Record>,
    layouts: Vec<Layout>,
    /// The types of enumerations, by number.
    enumerations: Vec<Arithmetic>,
    /// The types of `typeof` expressions. Each expression is analysed once, in the scope where it is written.
    types: FxHashMap<*const ast::Expr, Typing<Type>>,
    /// The lengths of arrays, by their length expressions. Each expression is evaluated once, in the scope where it is written.
    lengths: FxHashMap<*const ast::Expr, Typing<u64>>,
    /// The types of functions, by the parser's types of these functions.
    function_types: FxHashMap<*const ast::FunctionType, Rc<FunctionType>>,
    scopes: Vec<FxHashMap<Symbol, Entity>>,
    objects: Vec<Object>,
    /// The errors of declarations, reported where the declared names are used.
    failed: Vec<Error>,
    /// Functions with a body that the current source file can call.
    bodies: Bodies<'a>,
    /// What the source files share.
    linking: Linking<'a>,
    /// The types of functions that are only declared, and the origins of these declarations.
    declared: FxHashMap<Symbol, (Rc<FunctionType>, Origin)>,
    functions: Vec<Option<Function>>,
    globals: Vec<Variable>,
    function_names: FxHashMap<Rc<str>, GlobalId>,
    /// Whether the user says what a function with this name does.
    is_replaced: &'a dyn Fn(&str) -> bool,
    /// The replaced functions without a body whose address is taken.
    without_body: FxHashMap<Rc<str>, FunctionId>,
    /// Number of static variables made so far for string literals and for `__func__`; the next one gets this number in its name.
    literals: usize,
    /// The variables that the program may change after their initialisation.
    changes: Changes,
    /// Static variables that never change and are initialised with a constant.
    constants: FxHashMap<GlobalId, i128>,
    /// The current function; `None` outside of functions.
    body: Option<Body>,
    /// Arrays that are used before their length is declared, with that length, as found by this pass.
    late: FxHashMap<Symbol, u64>,
    /// `late` of the previous pass; empty in the first pass.
    known_late: FxHashMap<Symbol, u64>,
    depth: u32,
    errors: Vec<Error>,
    warnings: Vec<Error>,
}

/// Analyses the output of the parser; returns all errors if there are any.
pub fn typed(text: &Preprocessed, unit: &ast::Unit) -> Result<Unit, Vec<Error>> {
    typed_unless(text, unit, &|_| false, &|| false)
}

/// Like [`typed`], but calls `stop` for every item, statement and value in a braced initialiser, and gives up when `stop` returns true. Functions without
/// a body whose names `is_replaced` accepts are functions of the result if their address is taken, with an empty body that is not executed.
pub fn typed_unless(
    text: &Preprocessed,
    unit: &ast::Unit,
    is_replaced: &dyn Fn(&str) -> bool,
    stop: &dyn Fn() -> bool,
) -> Result<Unit, Vec<Error>> {
    // If `extern int a[];` is used before `int a[3];`, a second pass has the length of `a` from the start.
    let typer = |late| Typer::new(text, unit, late, is_replaced, stop);
    let first = typer(FxHashMap::default()).all()?;
    match first.late.is_empty() {
        true => Ok(first.finished()),
        false => Ok(typer(first.late).all()?.finished()),
    }
}

impl<'a> Typer<'a> {
    fn new(
        text: &'a Preprocessed,
        unit: &'a ast::Unit,
        known_late: FxHashMap<Symbol, u64>,
        is_replaced: &'a dyn Fn(&str) -> bool,
        stop: &'a dyn Fn() -> bool,
    ) -> Self {
        Typer {
            stop,
            names: &text.names,
            origins: &text.origins,
            unit,
            records: records::unknown(unit, &text.names),
            layouts: unit.records.iter().map(|_| Layout::Unknown).collect(),
            enumerations: vec![types::UNSIGNED; unit.enumerations as usize],
            types: FxHashMap::default(),
            lengths: FxHashMap::default(),
            function_types: FxHashMap::default(),
            scopes: vec![FxHashMap::default()],
            objects: Vec::new(),
            failed: Vec::new(),
            bodies: FxHashMap::default(),
            linking: Linking::default(),
            declared: FxHashMap::default(),
            functions: Vec::new(),
            globals: Vec::new(),
            function_names: FxHashMap::default(),
            is_replaced,
            without_body: FxHashMap::default(),
            literals: 0,
            changes: Changes::new(text),
            constants: FxHashMap::default(),
            body: None,
            late: FxHashMap::default(),
            known_late,
            depth: 0,
            errors: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Analyses all functions and declarations of the unit.
    fn all(mut self) -> Result<Self, Vec<Error>> {
        if let Err(error) = self.find_bodies() {
            self.errors.push(error);
            return Err(self.errors);
        }
        for (number, items) in self.source_files().into_iter().enumerate() {
            self.begin_file(number);
            self.items(items);
        }
        self.all_defined();
        self.compare_records();
        match self.errors.is_empty() {
            true => Ok(self),
            false => Err(self.errors),
        }
    }

    fn items(&mut self, items: &'a [ast::Item]) {
        for item in items {
            if self.errors.len() >= MOST_ERRORS {
                break;
            }
            if (self.stop)() {
                self.errors.push(Error::new(Span::default(), "stopped while types were looked at").always());
                break;
            }
            let done = match item {
                ast::Item::Function(function) if self.is_left_out(function) => {
                    self.leave_out(function);
                    self.compare_definitions(function);
                    Ok(())
                }
                ast::Item::Function(function) => {
                    let done = self.function(function);
                    self.remember_definition(function);
                    done
                }
                ast::Item::Declaration(declaration) => self.file_declaration(declaration),
            };
            self.report(done);
        }
    }

    fn finished(self) -> Unit {
        Unit {
            records: self.records,
            globals: self.globals,
            functions: self.functions.into_iter().map(|f| f.expect("it was analysed")).collect(),
            warnings: self.warnings,
        }
    }

    /// Reports an error of a declaration or definition. If its position is in a system header, the error is not reported here, but where the program
    /// uses what is declared there.
    fn report(&mut self, done: Typing<()>) {
        if let Err(error) = done
            && self.origin(error.span) != Origin::System
        {
            self.errors.push(error);
        }
    }

    /// Who wrote the text at a position.
    fn origin(&self, at: Span) -> Origin {
        self.origins.get(&at.file).copied().unwrap_or_default()
    }

    fn warn(&mut self, at: Span, message: impl Into<String>) {
        if self.warnings.len() < MOST_ERRORS && self.origin(at) != Origin::System {
            self.warnings.push(Error::new(at, message));
        }
    }

    fn spelled(&self, symbol: Symbol) -> Rc<str> {
        self.names.spelling(symbol).clone()
    }

    /// The number of a function without a body that the user replaces, and whose address is taken at `span`; `None` for any other function.
    fn replaced_function(&mut self, name: &Rc<str>, ty: &Rc<FunctionType>, span: Span) -> Option<FunctionId> {
        if !(self.is_replaced)(name) {
            return None;
        }
        if let Some(known) = self.without_body.get(name) {
            return Some(*known);
        }
        let (parameters, locals, labels, errors, mentions) = Default::default();
        let (name, ty, body) = (name.clone(), ty.clone(), Block { statements: Vec::new(), span });
        let id = FunctionId(self.functions.len() as u32);
        self.without_body.insert(name.clone(), id);
        self.functions.push(Some(Function {
            name,
            ty,
            parameters,
            locals,
            labels,
            body,
            errors,
            mentions,
            span,
        }));
        Some(id)
    }

    /// Analyses a construct that may contain itself, counting the depth.
    fn nested<T>(&mut self, at: Span, look: impl FnOnce(&mut Self) -> Typing<T>) -> Typing<T> {
        if self.depth >= DEEPEST {
            return Err(Error::new(at, format!("this is nested more than {DEEPEST} deep"))
                .help("compute parts of it in variables of their own"));
        }
        self.depth += 1;
        let found = look(self);
        self.depth -= 1;
        found
    }
}
