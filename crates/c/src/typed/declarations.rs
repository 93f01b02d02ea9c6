//! Declarations and functions (C11 6.7, 6.9): variables at file scope, which may be declared repeatedly, and local variables, including `static`
//! ones.

use std::rc::Rc;

use fencewright_program::Span;

use super::names::{Entity, Object};
use super::statements::Body;
use super::tree::{
    Block, ExprKind, Function, FunctionType, GlobalId, Initial, Statement, StatementKind, Type, TypeKind,
    Variable,
};
use super::types::{compatible, equally_qualified};
use super::{Typer, Typing};
use crate::ast::{self, Initializer};
use crate::error::Error;
use crate::preprocess::Origin;

impl Typer<'_> {
    /// Processes the parts of a declaration other than its declarators: enumerators, structures, type names and assertions.
    fn brought(&mut self, declaration: &ast::Declaration) -> Typing<()> {
        self.enumerators(&declaration.enumerators)?;
        for &id in &declaration.records {
            let done = self.complete(id, declaration.span);
            unless_always(done)?;
        }
        for (name, ty) in &declaration.types {
            // The parser has already resolved type names. Only the array lengths and `typeof`s inside their types remain to be evaluated, in the
            // current scope.
            if !matches!(ty.kind, ast::TypeKind::Record(_)) {
                let done = self.ty(ty, name.span).map(drop);
                unless_always(done)?;
            }
        }
        self.aligned_types(declaration);
        self.static_assertions(&declaration.assertions)
    }

    /// The type of a declarator. For `__auto_type`, also the initial value, which determines the type and must not be processed a second time.
    fn declared_type(&mut self, declarator: &ast::Declarator) -> Typing<(Type, Option<Initial>)> {
        let ast::Type { kind, atomic, volatile, .. } = &declarator.ty;
        match (kind, &declarator.initial) {
            (ast::TypeKind::Inferred, Some(Initializer::Expression(expr))) => {
                let value = self.value(expr)?;
                let ty = Type { kind: value.ty.kind.clone(), atomic: *atomic, volatile: *volatile };
                self.few_parts(&ty, declarator.name.span)?;
                Ok((ty, Some(Initial { parts: vec![(Vec::new(), value)], whole: false })))
            }
            _ => Ok((self.ty(&declarator.ty, declarator.name.span)?, None)),
        }
    }

    /// The initial value of a declarator, if any, and its type, in which an array has the length that the initial value determines.
    fn started(
        &mut self,
        declarator: &ast::Declarator,
        ty: &Type,
        inferred: Option<Initial>,
    ) -> Typing<Option<(Type, Initial)>> {
        let open = matches!(declarator.ty.kind, ast::TypeKind::Array(_, None));
        match (inferred, &declarator.initial) {
            (Some(inferred), _) => Ok(Some((ty.clone(), inferred))),
            (None, Some(initial)) => self.initial(ty, open, initial, declarator.name.span).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// A declaration at file scope.
    pub(super) fn file_declaration(&mut self, declaration: &ast::Declaration) -> Typing<()> {
        self.brought(declaration)?;
        for declarator in &declaration.declarators {
            if let Err(error) = self.file_declarator(declarator, declaration.storage) {
                self.postpone(declarator.name.symbol, error);
            }
        }
        Ok(())
    }

    fn file_declarator(&mut self, declarator: &ast::Declarator, storage: ast::Storage) -> Typing<()> {
        let (ty, inferred) = self.declared_type(declarator)?;
        let (name, span) = (declarator.name.symbol, declarator.name.span);
        if let TypeKind::Function(function) = &ty.kind {
            return self.declare_function(name, function.clone(), span);
        }
        let object = self.object(declarator, ty, storage)?;
        let defines = !storage.external || declarator.initial.is_some();
        if defines {
            if self.define_once(object, span)? {
                return Ok(());
            }
            self.objects[object].defined = true;
            self.objects[object].file = self.linking.file;
            self.objects[object].span = span;
            self.global(object);
        }
        let ty = self.objects[object].ty.clone();
        let Some((mut ty, mut initial)) = self.started(declarator, &ty, inferred)? else { return Ok(()) };
        let id = self.global(object);
        if !self.objects[object].open {
            ty = self.objects[object].ty.clone();
        }
        if self.globals[id.index()].initial.is_some() {
            let name = self.spelled(name);
            return Err(Error::new(span, format!("`{name}` gets an initial value twice"))
                .always()
                .help("leave one of them out"));
        }
        self.fixed(&mut initial)?;
        self.remember(id, declarator, &initial);
        self.has_type(object, ty);
        self.globals[id.index()].initial = Some(initial);
        Ok(())
    }

    /// Records the constant value of a variable that never changes, for use in constant expressions.
    fn remember(&mut self, id: GlobalId, declarator: &ast::Declarator, initial: &Initial) {
        if self.never_changes(declarator)
            && let Some(value) = self.only_value(initial)
        {
            self.constants.insert(id, value);
        }
    }

    /// Whether a variable always keeps its initial value: it is `const`, or the scan in [`super::unchanged`] found nothing that could change it.
    fn never_changes(&self, declarator: &ast::Declarator) -> bool {
        let name = &declarator.name;
        !declarator.ty.volatile && (declarator.ty.constant || self.changes.keeps(name.symbol, name.span))
    }

    /// The value of an initialiser that is a single constant number.
    fn only_value(&self, initial: &Initial) -> Option<i128> {
        match &initial.parts[..] {
            [(path, value)] if path.is_empty() && value.ty.arithmetic().is_some() => self.evaluated(value),
            _ => None,
        }
    }

    /// The number of a variable at file scope (an index into `Typer::objects`), at its first or a later declaration (C11 6.2.7, 6.9.2).
    fn object(&mut self, declarator: &ast::Declarator, ty: Type, storage: ast::Storage) -> Typing<usize> {
        let (symbol, span) = (declarator.name.symbol, declarator.name.span);
        let mut open = matches!(declarator.ty.kind, ast::TypeKind::Array(_, None));
        let internal = self.is_internal(storage.fixed, span);
        let linked = self.linked_object(symbol).filter(|_| !internal).map(Entity::Object);
        match self.scopes[0].get(&symbol).copied().or(linked) {
            None => {
                let mut ty = ty;
                if let (true, Some(&length)) = (open, self.known_late.get(&symbol)) {
                    ty = self.of_length(&ty, length, span)?;
                    open = false;
                }
                self.check_variable(&ty, span)?;
                self.objects.push(Object {
                    symbol,
                    ty,
                    open,
                    thread_local: storage.thread_local,
                    internal,
                    span,
                    file: self.linking.file,
                    defined: false,
                    id: None,
                    used: None,
                });
                let object = self.objects.len() - 1;
                self.scopes[0].insert(symbol, Entity::Object(object));
                Ok(object)
            }
            Some(Entity::Object(object)) => {
                self.scopes[0].insert(symbol, Entity::Object(object));
                let known = &self.objects[object];
                let same = compatible(&known.ty, &ty) && equally_qualified(&known.ty, &ty);
                if (!same || known.thread_local != storage.thread_local)
                    && self.origin(known.span) == self.origin(span)
                {
                    let (name, before, other) = (self.spelled(symbol), self.said(&known.ty), known.span);
                    let message =
                        format!("`{name}` is declared as `{}`, before as `{before}`", self.said(&ty));
                    return Err(self.both(span, other, &message).help("declare it with one type"));
                }
                if !same && self.origin(span).precedes(self.origin(known.span)) {
                    let known = &mut self.objects[object];
                    (known.ty, known.open, known.thread_local) = (ty.clone(), open, storage.thread_local);
                    if let Some(id) = known.id {
                        self.globals[id.index()].ty = ty;
                        self.globals[id.index()].thread_local = storage.thread_local;
                    }
                } else if known.open && !open && same {
                    self.has_type(object, ty);
                }
                Ok(object)
            }
            found @ Some(Entity::Failed(_)) => Err(self.failed(found).expect("its error is kept")),
            Some(_) => {
                let name = self.spelled(symbol);
                Err(Error::new(span, format!("`{name}` was declared as something else"))
                    .always()
                    .help("give one of them another name"))
            }
        }
    }

    /// Completes the type of a variable after a declaration has given the array length that an earlier one left out.
    fn has_type(&mut self, object: usize, ty: Type) {
        let known = &mut self.objects[object];
        if known.open
            && let (Some(_), TypeKind::Array(_, length)) = (known.used, &ty.kind)
        {
            self.late.insert(known.symbol, *length);
        }
        known.open = false;
        known.ty = ty.clone();
        if let Some(id) = known.id {
            self.globals[id.index()].ty = ty;
        }
    }

    /// An error if no variable may have this type.
    fn check_variable(&mut self, ty: &Type, span: Span) -> Typing<()> {
        match ty.kind {
            TypeKind::Void => {
                Err(Error::new(span, "a variable cannot be `void`").always().help("use `void *`"))
            }
            _ => Ok(()),
        }
    }

    /// After the last source file: completes tentative definitions and arrays without a length. A variable that is used but never defined gets an
    /// error.
    pub(super) fn all_defined(&mut self) {
        for object in 0..self.objects.len() {
            let Object { used, symbol, defined, span, .. } = self.objects[object];
            let done = match used {
                _ if defined => self.defined(object),
                Some(used) => {
                    let message =
                        format!("`{}` is declared `extern`, and defined nowhere", self.spelled(symbol));
                    Err(Error::new(used, message)
                        .help("define it in this file, or include the file that does"))
                }
                None => Ok(()),
            };
            match done {
                Err(error) if error.always && self.origin(span) != Origin::System => self.errors.push(error),
                Err(error) => {
                    let id = self.global(object);
                    self.globals[id.index()].error.get_or_insert(error);
                }
                Ok(()) => {}
            }
        }
    }

    /// Completes the type of a variable that has a definition.
    fn defined(&mut self, object: usize) -> Typing<()> {
        let (mut ty, span) = (self.objects[object].ty.clone(), self.objects[object].span);
        if self.objects[object].open {
            // A tentative definition without a length has one element (C11 6.9.2 p. 5).
            ty = self.of_length(&ty, 1, span)?;
            self.has_type(object, ty.clone());
        }
        self.global(object);
        self.size(&ty, span).map(drop)
    }

    /// A declaration in a function. The statements that declare and initialise its automatic variables are appended to `statements`.
    pub(super) fn local_declaration(
        &mut self,
        declaration: &ast::Declaration,
        statement: &ast::Statement,
        statements: &mut Vec<Statement>,
    ) -> Typing<()> {
        if let Err(error) = self.brought(declaration) {
            declaration.declarators.iter().for_each(|declarator| self.fails(declarator, &error));
            return Err(error);
        }
        for (number, declarator) in declaration.declarators.iter().enumerate() {
            let kinds = self.declared_locals(declarator, declaration.storage).inspect_err(|error| {
                declaration.declarators[number..].iter().for_each(|declarator| self.fails(declarator, error));
            })?;
            for kind in kinds {
                let single = declaration.declarators.len() == 1;
                let span = if single { statement.span } else { declarator.name.span };
                let definition = statement.definition.clone().filter(|_| single);
                statements.push(Statement { kind, span, expansion: statement.expansion, definition });
            }
        }
        Ok(())
    }

    /// Declares a local name whose declaration has an error, so that its uses have the same error.
    fn fails(&mut self, declarator: &ast::Declarator, error: &Error) {
        let scope = self.scopes.last_mut().expect("there is always a scope");
        scope.entry(declarator.name.symbol).or_insert(Entity::Failed(self.failed.len()));
        self.failed.push(error.clone());
    }

    pub(super) fn local_declarator(
        &mut self,
        declarator: &ast::Declarator,
        storage: ast::Storage,
    ) -> Typing<Option<StatementKind>> {
        let (symbol, span) = (declarator.name.symbol, declarator.name.span);
        let (ty, inferred) = self.declared_type(declarator)?;
        if let TypeKind::Function(function) = &ty.kind {
            self.declare_function(symbol, function.clone(), span)?;
            return Ok(None);
        }
        if storage.external {
            let object = self.object(declarator, ty, storage)?;
            self.declare(symbol, Entity::Object(object));
            return Ok(None);
        }
        self.check_variable(&ty, span)?;
        let open = matches!(declarator.ty.kind, ast::TypeKind::Array(_, None));
        let name = self.spelled(symbol);
        if storage.fixed || storage.thread_local {
            let id = GlobalId(self.globals.len() as u32);
            let name = format!("{}.{name}", self.in_hand().name).into();
            let thread_local = storage.thread_local;
            self.globals.push(Variable {
                name,
                ty: ty.clone(),
                thread_local,
                literal: false,
                initial: None,
                error: None,
                span,
            });
            self.declare_new(symbol, Entity::Static(id), span)?;
            if let Some((ty, mut initial)) = self.started(declarator, &ty, inferred)? {
                self.fixed(&mut initial)?;
                self.remember(id, declarator, &initial);
                self.globals[id.index()].ty = ty;
                self.globals[id.index()].initial = Some(initial);
            }
            let ty = self.globals[id.index()].ty.clone();
            self.size(&ty, span)?;
            return Ok(None);
        }
        // The scope of the name includes its own initialiser.
        let id = self.local(name, ty.clone(), span);
        self.declare_new(symbol, Entity::Local(id), span)?;
        let initial = match self.started(declarator, &ty, inferred)? {
            None => None,
            Some((ty, initial)) => {
                self.in_hand().locals[id.index()].ty = ty;
                Some(initial)
            }
        };
        let ty = self.in_hand().locals[id.index()].ty.clone();
        if open && initial.is_none() {
            return Err(
                Error::new(span, "the length of this array is not known").help("write it, or a value")
            );
        }
        self.size(&ty, span)?;
        if self.never_changes(declarator)
            && let Some(value) = initial.as_ref().and_then(|initial| self.only_value(initial))
        {
            self.in_hand().constants.insert(id, value);
        }
        Ok(Some(StatementKind::Declare(id, initial)))
    }

    /// Checks that the initial value of a static variable is a constant (C11 6.6 p. 7), and replaces constant expressions by numbers.
    fn fixed(&mut self, initial: &mut Initial) -> Typing<()> {
        for (_, value) in &mut initial.parts {
            if let Some(known) = self.evaluated(value) {
                value.kind = ExprKind::Constant(known);
            } else if let Some(known) = self.evaluated_around(value) {
                let text =
                    "this constant does not fit its signed type; compilers warn, and let it wrap around";
                self.warn(value.span, text);
                value.kind = ExprKind::Constant(known);
            } else if !self.is_fixed(value) {
                return Err(Error::new(value.span, "this is not known before the program runs").help(
                    "a variable that is no local starts with a constant; assign to it in `main` instead",
                ));
            }
        }
        Ok(())
    }

    pub(super) fn is_fixed(&self, value: &super::tree::Expr) -> bool {
        use super::tree::PlaceKind;
        let fixed_place = |mut place: &super::tree::Place| loop {
            match &place.kind {
                PlaceKind::Global(_) => return true,
                PlaceKind::Field(inner, _) => place = inner,
                PlaceKind::Element(inner, index) if self.evaluated(index).is_some() => place = inner,
                _ => return false,
            }
        };
        if self.evaluated(value).is_some() {
            return true;
        }
        match &value.kind {
            ExprKind::String(_) | ExprKind::Function(_) | ExprKind::Unknown(_) => true,
            ExprKind::Address(place) => fixed_place(place),
            ExprKind::Convert(inner) => self.is_fixed(inner),
            ExprKind::Move(pointer, by) => self.is_fixed(pointer) && self.evaluated(by).is_some(),
            // GNU C: a structure initialised with a compound literal.
            ExprKind::Load(place) => {
                matches!(place.kind, PlaceKind::Global(_)) && matches!(value.ty.kind, TypeKind::Record(_))
            }
            ExprKind::Conditional(condition, a, b) => match self.evaluated(condition) {
                Some(0) => self.is_fixed(b),
                Some(_) => self.is_fixed(a),
                None => false,
            },
            _ => false,
        }
    }

    /// A function definition.
    pub(super) fn function(&mut self, function: &ast::Function) -> Typing<()> {
        let Err(error) = self.typed_function(function) else { return Ok(()) };
        if error.always && self.origin(function.name.span) != Origin::System {
            return Err(error);
        }
        // The type of the function has an error, so the function gets a placeholder type.
        let ty = Rc::new(FunctionType { result: Type::int(), parameters: None, variadic: false });
        let (symbol, span) = (function.name.symbol, function.name.span);
        let body = Block { statements: Vec::new(), span: function.body.span };
        let (parameters, locals, labels, mentions) = Default::default();
        let (name, errors) = (self.spelled(symbol), vec![error.clone()]);
        self.functions[self.bodies[&symbol].0.index()] =
            Some(Function { name, ty, parameters, locals, labels, body, errors, mentions, span });
        self.postpone(symbol, error);
        Ok(())
    }

    fn typed_function(&mut self, function: &ast::Function) -> Typing<()> {
        self.enumerators(&function.enumerators)?;
        let (symbol, span) = (function.name.symbol, function.name.span);
        let ty = self.function_type(&function.ty, span)?;
        self.declare_function(symbol, ty.clone(), span)?;
        let name = self.spelled(symbol);
        self.body = Some(Body::new(name.clone(), ty.result.clone()));
        let before = self.errors.len();
        let none = || Block { statements: Vec::new(), span: function.body.span };
        let typed = self.scoped(|typer| {
            let mut parameters = Vec::new();
            for (number, parameter) in function.ty.parameters.iter().flatten().enumerate() {
                let at = parameter.name.map_or(span, |name| name.span);
                let parameter_type = typer.ty(&parameter.ty, at)?;
                typer.size(&parameter_type, at)?;
                let name = match parameter.name {
                    Some(name) => typer.spelled(name.symbol),
                    None => format!("parameter{number}").into(),
                };
                let id = typer.local(name, parameter_type, at);
                if let Some(name) = parameter.name {
                    typer.declare_new(name.symbol, Entity::Local(id), name.span)?;
                }
                parameters.push(id);
            }
            let body = typer.block(&function.body)?;
            if typer.errors.len() == before {
                typer.labels_stand()?;
            }
            Ok((parameters, body))
        });
        let mut found = self.body.take().expect("it was put there");
        let mut errors = self.errors.split_off(before);
        let (mut parameters, body) = typed.unwrap_or_else(|error| {
            errors.push(error);
            (Vec::new(), none())
        });
        // Each use of a name repeats the error of its declaration, so equal errors are merged.
        for n in (1..errors.len()).rev() {
            if errors[..n].contains(&errors[n]) {
                errors.remove(n);
            }
        }
        let body = if errors.is_empty() { body } else { none() };
        if errors.iter().any(|error| error.always) && self.origin(span) != Origin::System {
            self.errors.append(&mut errors);
        }
        found.mentions.sort_unstable();
        found.mentions.dedup();
        // The parameters of `main` are dropped unless `main` uses them.
        if &*name == "main" && !parameters.iter().any(|parameter| found.mentioned.contains(parameter)) {
            parameters.clear();
        }
        let id = self.bodies[&symbol].0;
        let Body { locals, labels, mentions, .. } = found;
        self.functions[id.index()] =
            Some(Function { name, ty, parameters, locals, labels, body, errors, mentions, span });
        Ok(())
    }
}

/// Drops an error that is reported again wherever the declared type is used. An error that no compiler accepts is returned.
fn unless_always(done: Typing<()>) -> Typing<()> {
    done.or_else(|error| if error.always { Err(error) } else { Ok(()) })
}
