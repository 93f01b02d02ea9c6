//! Declarations, declarators and initial values (C11 6.7.6 to 6.9).

use std::rc::Rc;

use fencewright_program::Span;

use super::{Meaning, Parser, Read};
use crate::ast::{
    Attributes, Declaration, Declarator, Designator, Function, FunctionType, Initializer, Item, Name,
    Parameter, Storage, Type, TypeKind,
};
use crate::error::Error;
use crate::preprocess::Origin;

/// One step by which a declarator derives a type from the type of its specifiers, in the order from the name outwards.
enum Layer {
    Pointer { atomic: bool, constant: bool, volatile: bool },
    Array(Option<Rc<crate::ast::Expr>>),
    Function(Option<Vec<Parameter>>, bool),
}

/// Maximum number of pointers, arrays and functions nested in a type.
const MOST_LAYERS: usize = 100;

impl Parser<'_> {
    /// A function definition or a declaration at file scope; `None` for a lone `;`.
    pub(super) fn item(&mut self) -> Read<Option<Item>> {
        if self.takes(";") {
            return Ok(None);
        }
        if self.takes_any(&["asm", "__asm", "__asm__"]) {
            return Err(Error::new(self.span(), "assembly outside of functions is not supported"));
        }
        let start = self.span();
        self.type_depth = 0;
        self.attributes = Attributes::default();
        if self.is("_Static_assert") {
            self.static_assertion()?;
            self.expect(";")?;
            return Ok(Some(Item::Declaration(self.declared(start, Default::default()))));
        }
        let specifiers = match self.starts_declaration() {
            true => self.specifiers()?,
            // Before C99, the return type defaulted to int.
            false if self.word_at(1) == "(" => super::specifiers::Specifiers {
                ty: TypeKind::Integer(crate::ast::Integer::INT).into(),
                storage: Default::default(),
                typedef: false,
            },
            false => return Err(self.expected("a declaration")),
        };
        if self.is(";") {
            self.at += 1;
            return Ok(Some(Item::Declaration(self.declared(start, specifiers.storage))));
        }
        let from = self.at;
        let (name, ty) = self.declarator(specifiers.ty.clone())?;
        self.skip_attributes()?;
        self.skip_assembly_name()?;
        if let (TypeKind::Function(function), true) = (&ty.kind, self.is("{")) {
            if specifiers.typedef {
                return Err(Error::new(name.span, "a type has no body"));
            }
            let (function, inline) = (function.clone(), specifiers.storage.inline);
            self.declare(name.symbol, Meaning::Other);
            let enumerators = std::mem::take(&mut self.enumerators);
            let body = self.scoped(|parser| {
                for parameter in function.parameters.iter().flatten() {
                    if let Some(name) = parameter.name {
                        parser.declare(name.symbol, Meaning::Other);
                    }
                }
                parser.block()
            })?;
            let fixed = specifiers.storage.fixed;
            let text = if fixed { None } else { self.text_of_function(from) };
            return Ok(Some(Item::Function(Function {
                name,
                ty: function,
                fixed,
                inline,
                enumerators,
                body,
                text,
            })));
        }
        let declaration = self.declarators(start, specifiers, name, ty)?;
        Ok(Some(Item::Declaration(declaration)))
    }

    /// A declaration in a block.
    pub(super) fn declaration(&mut self) -> Read<Declaration> {
        let around = std::mem::take(&mut self.type_depth);
        let declaration = self.one_declaration();
        self.type_depth = self.type_depth.max(around);
        declaration
    }

    fn one_declaration(&mut self) -> Read<Declaration> {
        let start = self.span();
        self.attributes = Attributes::default();
        if self.is("_Static_assert") {
            self.static_assertion()?;
            self.expect(";")?;
            return Ok(self.declared(start, Default::default()));
        }
        let specifiers = self.specifiers()?;
        if self.takes(";") {
            return Ok(self.declared(start, specifiers.storage));
        }
        let (name, ty) = self.declarator(specifiers.ty.clone())?;
        self.declarators(start, specifiers, name, ty)
    }

    /// A declaration without declarators, holding the enumerators, structures and assertions that its specifiers contain.
    fn declared(&mut self, start: Span, storage: Storage) -> Declaration {
        Declaration {
            storage,
            declarators: Vec::new(),
            enumerators: std::mem::take(&mut self.enumerators),
            records: std::mem::take(&mut self.defined),
            types: Vec::new(),
            aligned_types: Vec::new(),
            assertions: std::mem::take(&mut self.assertions),
            span: self.since(start),
        }
    }

    /// `_Static_assert(condition, "text")`; the text is optional.
    pub(super) fn static_assertion(&mut self) -> Read<()> {
        self.at += 1;
        self.expect("(")?;
        let condition = self.nested(Self::conditional)?;
        let text = match self.takes(",") {
            true => Some(self.string()?),
            false => None,
        };
        self.expect(")")?;
        self.assertions.push((condition, text));
        Ok(())
    }

    /// The rest of a declaration, after its first declarator.
    fn declarators(
        &mut self,
        start: Span,
        specifiers: super::specifiers::Specifiers,
        mut name: Name,
        mut ty: Type,
    ) -> Read<Declaration> {
        let (mut declarators, mut types, mut aligned_types) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            self.skip_assembly_name()?;
            self.skip_attributes()?;
            ty = self.with_mode(ty);
            if self.attributes.alias && !matches!(ty.kind, TypeKind::Function(_)) {
                let help = "use one name for the variable";
                return Err(Error::new(name.span, "variables that are aliases are not supported").help(help));
            }
            let meaning = match specifiers.typedef {
                true => {
                    self.deep_enough(self.type_depth)?;
                    Meaning::Type(ty.clone(), self.type_depth + 1)
                }
                false => Meaning::Other,
            };
            self.declare_again(name, meaning);
            let initial = match self.takes("=") {
                true => Some(self.initializer()?),
                false => None,
            };
            if specifiers.typedef && !self.attributes.aligned.is_empty() {
                aligned_types.push((name, self.attributes.clone()));
            }
            match specifiers.typedef {
                true => types.push((name, ty)),
                false => declarators.push(Declarator { name, ty, initial }),
            }
            if !self.takes(",") {
                break;
            }
            self.skip_attributes()?;
            (name, ty) = self.declarator(specifiers.ty.clone())?;
        }
        self.expect(";")?;
        Ok(Declaration { declarators, types, aligned_types, ..self.declared(start, specifiers.storage) })
    }

    /// Skips `asm("name")` after a declarator. In headers of the system, such a name selects another version of the same library function, so it can
    /// be ignored. In the user's text it is an error, because it could give one function two names.
    fn skip_assembly_name(&mut self) -> Read<()> {
        if !matches!(self.word(), "asm" | "__asm" | "__asm__") {
            return Ok(());
        }
        if self.text.origin(self.span()) == Origin::User {
            return Err(Error::new(self.span(), "names in assembly are not supported"));
        }
        self.at += 1;
        self.skip_parentheses()?;
        self.skip_attributes()
    }

    /// A declarator with a name, and the type that it derives from `base`.
    pub(super) fn declarator(&mut self, base: Type) -> Read<(Name, Type)> {
        let mut layers = Vec::new();
        let name = self.nested(|parser| parser.layers(&mut layers, true))?;
        let name = name.ok_or_else(|| self.expected("a name"))?;
        Ok((name, applied(base, layers, name.span)?))
    }

    /// A type name, as in a cast.
    pub(super) fn type_name(&mut self) -> Read<Type> {
        let specifiers = self.specifiers()?;
        let mut layers = Vec::new();
        match self.nested(|parser| parser.layers(&mut layers, false))? {
            Some(name) => Err(Error::new(name.span, "expected a type without a name")),
            None => applied(specifiers.ty, layers, self.span()),
        }
    }

    /// A declarator, with or without a name; appends its layers in the order from the name outwards.
    fn layers(&mut self, layers: &mut Vec<Layer>, named: bool) -> Read<Option<Name>> {
        self.skip_attributes()?;
        let mut pointers = Vec::new();
        while self.takes("*") {
            self.deep_enough(pointers.len())?;
            let (mut atomic, mut constant, mut volatile) = (false, false, false);
            loop {
                self.skip_attributes()?;
                match self.word() {
                    "const" | "__const" | "__const__" => constant = true,
                    "volatile" | "__volatile" | "__volatile__" => volatile = true,
                    "_Atomic" => atomic = true,
                    "restrict" | "__restrict" | "__restrict__" => {}
                    _ => break,
                }
                self.at += 1;
            }
            pointers.push(Layer::Pointer { atomic, constant, volatile });
        }
        let mut name = None;
        // A parenthesis opens an inner declarator, unless it contains parameters.
        let inner = self.is("(") && (named || !self.starts_type(1) && self.word_at(1) != ")");
        if inner {
            self.at += 1;
            name = self.nested(|parser| parser.layers(layers, named))?;
            self.expect(")")?;
        } else if self.peek().is_some_and(|token| token.kind == crate::token::Kind::Identifier)
            && !self.is("__attribute__")
        {
            name = Some(self.name("a name")?);
        }
        loop {
            self.deep_enough(layers.len())?;
            if self.takes("[") {
                while self.takes_any(&[
                    "static",
                    "const",
                    "restrict",
                    "volatile",
                    "__restrict",
                    "__restrict__",
                ]) {}
                let length = match self.is("]") || self.is("*") && self.word_at(1) == "]" {
                    true => {
                        self.takes("*");
                        None
                    }
                    false => Some(Rc::new(self.nested(Self::assignment)?)),
                };
                self.expect("]")?;
                layers.push(Layer::Array(length));
            } else if self.takes("(") {
                let (parameters, variadic) = self.nested(Self::parameters)?;
                layers.push(Layer::Function(parameters, variadic));
            } else {
                break;
            }
        }
        layers.extend(pointers.into_iter().rev());
        Ok(name)
    }

    /// An error if a type has more than [`MOST_LAYERS`] layers: later passes process types recursively.
    fn deep_enough(&self, layers: usize) -> Read<()> {
        match layers > MOST_LAYERS {
            true => Err(Error::new(self.span(), format!("a type of more than {MOST_LAYERS} layers"))),
            false => Ok(()),
        }
    }

    /// The parameters of a function, up to the closing parenthesis, `None` for `()`; and whether it is variadic.
    fn parameters(&mut self) -> Read<(Option<Vec<Parameter>>, bool)> {
        if self.takes(")") {
            return Ok((None, false));
        }
        if self.is("void") && self.word_at(1) == ")" {
            self.at += 2;
            return Ok((Some(Vec::new()), false));
        }
        let mut parameters = Vec::new();
        loop {
            if self.takes("...") {
                self.expect(")")?;
                return Ok((Some(parameters), true));
            }
            if !self.starts_declaration() {
                return Err(self.expected("the type of a parameter"));
            }
            let specifiers = self.specifiers()?;
            let mut layers = Vec::new();
            let inner = self.is("(") && !self.starts_type(1) && self.word_at(1) != ")";
            let name = self.nested(|parser| parser.layers(&mut layers, inner))?;
            self.skip_attributes()?;
            let base = self.with_mode(specifiers.ty);
            let ty = adjusted(applied(base, layers, self.span())?);
            parameters.push(Parameter { name, ty });
            if !self.takes(",") {
                self.expect(")")?;
                return Ok((Some(parameters), false));
            }
        }
    }

    /// Parses an initialiser.
    pub(super) fn initializer(&mut self) -> Read<Initializer> {
        if !self.is("{") {
            return Ok(Initializer::Expression(self.assignment()?));
        }
        let start = self.span();
        self.nested(|parser| {
            parser.expect("{")?;
            let mut values = Vec::new();
            while !parser.takes("}") {
                parser.go_on()?;
                let designators = parser.designators()?;
                values.push((designators, parser.initializer()?));
                if !parser.takes(",") && !parser.is("}") {
                    return Err(parser.expected("`,` or `}`"));
                }
            }
            Ok(Initializer::List(values, parser.since(start)))
        })
    }

    /// The designators of an initial value: `[1].x =`, or in old GNU C `x:`.
    fn designators(&mut self) -> Read<Vec<Designator>> {
        let mut found = Vec::new();
        if self.word_at(1) == ":"
            && self.peek().is_some_and(|token| token.kind == crate::token::Kind::Identifier)
        {
            let member = self.name("a member")?;
            self.at += 1;
            return Ok(vec![Designator::Member(member)]);
        }
        loop {
            if self.takes(".") {
                found.push(Designator::Member(self.name("a member")?));
            } else if self.takes("[") {
                let low = self.conditional()?;
                found.push(match self.takes("...") {
                    true => Designator::Range(low, self.conditional()?),
                    false => Designator::Index(low),
                });
                self.expect("]")?;
            } else {
                break;
            }
        }
        if !found.is_empty() {
            self.expect("=")?;
        }
        Ok(found)
    }

    /// The member designator of `offsetof`: the name of a member, followed by `.member` and `[index]` any number of times.
    pub(super) fn member_path(&mut self) -> Read<Vec<Designator>> {
        let mut path = vec![Designator::Member(self.name("a member")?)];
        loop {
            if self.takes(".") {
                path.push(Designator::Member(self.name("a member")?));
            } else if self.takes("[") {
                path.push(Designator::Index(self.nested(Self::comma_expression)?));
                self.expect("]")?;
            } else {
                return Ok(path);
            }
        }
    }
}

/// The type that a declarator with these layers derives from `base`.
fn applied(base: Type, layers: Vec<Layer>, at: Span) -> Read<Type> {
    let mut ty = base;
    let mut depth = depth(&ty) + layers.len();
    for layer in layers.into_iter().rev() {
        ty = match layer {
            Layer::Pointer { atomic, constant, volatile } => {
                Type { kind: TypeKind::Pointer(Rc::new(ty)), atomic, constant, volatile }
            }
            Layer::Array(length) => TypeKind::Array(Rc::new(ty), length).into(),
            Layer::Function(parameters, variadic) => {
                let of_parameters = parameters.iter().flatten().map(|parameter| self::depth(&parameter.ty));
                depth = depth.max(1 + of_parameters.max().unwrap_or(0));
                TypeKind::Function(Rc::new(FunctionType { result: ty, parameters, variadic })).into()
            }
        };
    }
    match depth > MOST_LAYERS {
        true => Err(Error::new(at, format!("a type of more than {MOST_LAYERS} layers"))),
        false => Ok(ty),
    }
}

/// The number of nested pointers, arrays and functions of a type.
fn depth(ty: &Type) -> usize {
    let (mut layers, mut inner) = (0, ty);
    loop {
        inner = match &inner.kind {
            TypeKind::Pointer(to) | TypeKind::Array(to, _) => to,
            TypeKind::Function(function) => &function.result,
            _ => return layers,
        };
        layers += 1;
    }
}

/// Adjusts the type of a parameter: arrays and functions become pointers (C11 6.7.6.3 p. 7).
fn adjusted(ty: Type) -> Type {
    match ty.kind {
        TypeKind::Array(element, _) => TypeKind::Pointer(element).into(),
        TypeKind::Function(_) => TypeKind::Pointer(Rc::new(ty)).into(),
        _ => ty,
    }
}
