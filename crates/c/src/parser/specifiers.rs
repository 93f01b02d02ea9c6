//! Declaration specifiers: types, storage, qualifiers (C11 6.7.1 to 6.7.5).

use std::rc::Rc;

use fencewright_program::Span;

use super::attributes::INT128;
use super::linked::Place;
use super::{Meaning, Parser, Read, Tag};
use crate::ast::{
    Attributes, EnumerationId, Enumerator, Expr, ExprKind, Field, Integer, Rank, Record, RecordId, Storage,
    Type, TypeKind,
};
use crate::error::Error;
use crate::literal::Literal;
use crate::preprocess::Origin;
use crate::token::{ExpansionId, Symbol};

/// The declaration specifiers: the type, the storage class, and whether `typedef` is among them.
pub(super) struct Specifiers {
    pub ty: Type,
    pub storage: Storage,
    pub typedef: bool,
}

/// The keywords that make up an arithmetic type.
#[derive(Default)]
struct Words {
    long: u8,
    short: bool,
    signed: Option<bool>,
    base: Option<&'static str>,
}

impl Words {
    /// Records a keyword of an arithmetic type, or `void`; returns false for any other word.
    fn takes(&mut self, word: &str) -> bool {
        match word {
            "long" => self.long += 1,
            "short" => self.short = true,
            "signed" | "__signed" | "__signed__" => self.signed = Some(true),
            "unsigned" => self.signed = Some(false),
            "int" => self.base = self.base.or(Some("int")),
            "void" => self.base = Some("void"),
            "char" => self.base = Some("char"),
            "_Bool" => self.base = Some("_Bool"),
            "float" => self.base = Some("float"),
            "double" => self.base = Some("double"),
            "_Float32" => self.base = Some("float"),
            "_Float64" | "_Float32x" => self.base = Some("double"),
            "_Float128" | "_Float64x" | "__float128" | "__float80" => {
                (self.base, self.long) = (Some("double"), 1);
            }
            _ => return false,
        }
        true
    }
}

impl Parser<'_> {
    /// Whether a type starts at the n-th token from here.
    pub(super) fn starts_type(&self, n: usize) -> bool {
        let mut n = n;
        while self.word_at(n) == "__extension__" {
            n += 1;
        }
        let word = self.word_at(n);
        let is_specifier = matches!(
            word,
            "void"
                | "char"
                | "short"
                | "int"
                | "long"
                | "float"
                | "double"
                | "signed"
                | "unsigned"
                | "_Bool"
                | "_Complex"
                | "struct"
                | "union"
                | "enum"
                | "const"
                | "volatile"
                | "restrict"
                | "_Atomic"
                | "typeof"
                | "__typeof"
                | "__typeof__"
                | "__auto_type"
                | "__const"
                | "__const__"
                | "__volatile"
                | "__volatile__"
                | "__restrict"
                | "__restrict__"
                | "__signed"
                | "__signed__"
                | "__int128"
                | "__int128_t"
                | "__uint128_t"
                | "_Float32"
                | "_Float64"
                | "_Float128"
                | "_Float32x"
                | "_Float64x"
                | "__float80"
                | "__float128"
                | "__complex__"
                | "__builtin_va_list"
                | "_Alignas"
                | "__attribute__"
        );
        is_specifier
            || self.tokens.get(self.at + n).is_some_and(|token| {
                token.kind == crate::token::Kind::Identifier && self.type_named(token.symbol).is_some()
            })
    }

    /// Whether the next token starts a declaration.
    pub(super) fn starts_declaration(&self) -> bool {
        let mut first = 0;
        while self.word_at(first) == "__extension__" {
            first += 1;
        }
        let storage = matches!(
            self.word_at(first),
            "typedef"
                | "extern"
                | "static"
                | "auto"
                | "register"
                | "inline"
                | "__inline"
                | "__inline__"
                | "_Noreturn"
                | "_Thread_local"
                | "__thread"
                | "_Static_assert"
        );
        // A label may have the name of a type, so a name with a colon after it starts no declaration.
        storage || self.starts_type(0) && (self.word_at(1) != ":" || self.is("_Atomic"))
    }

    /// Parses the specifiers of a declaration.
    pub(super) fn specifiers(&mut self) -> Read<Specifiers> {
        let start = self.span();
        let mut found = Specifiers { ty: TypeKind::Void.into(), storage: Storage::default(), typedef: false };
        let mut words = Words::default();
        let mut whole: Option<Type> = None;
        let (mut atomic, mut constant, mut volatile) = (false, false, false);
        let mut unsupported = None;
        loop {
            self.skip_attributes()?;
            if words.takes(self.word()) {
                self.at += 1;
                continue;
            }
            let token = self.peek().copied();
            match self.word() {
                "typedef" => found.typedef = true,
                "extern" => found.storage.external = true,
                "static" => found.storage.fixed = true,
                "_Thread_local" | "__thread" => found.storage.thread_local = true,
                "inline" | "__inline" | "__inline__" => found.storage.inline = true,
                "auto" | "register" | "_Noreturn" | "restrict" | "__restrict" | "__restrict__" => {}
                "const" | "__const" | "__const__" => constant = true,
                "volatile" | "__volatile" | "__volatile__" => volatile = true,
                "_Alignas" => {
                    self.alignas()?;
                    continue;
                }
                "_Atomic" if self.word_at(1) == "(" => {
                    atomic = true;
                    whole = Some(self.atomic_type()?);
                    continue;
                }
                "_Atomic" => atomic = true,
                "_Complex" | "__complex__" => unsupported = Some("complex numbers"),
                "__int128" | "__int128_t" | "__uint128_t" => unsupported = Some(INT128),
                "__builtin_va_list" => whole = Some(arguments()),
                "struct" | "union" => {
                    whole = Some(self.record_with_attributes()?);
                    continue;
                }
                "enum" => {
                    whole = Some(self.enumeration()?);
                    continue;
                }
                "typeof" | "__typeof" | "__typeof__" => {
                    whole = Some(self.type_of()?);
                    continue;
                }
                "__auto_type" => whole = Some(TypeKind::Inferred.into()),
                _ => {
                    // A `typedef` name is a type here only if no type specifier precedes it.
                    let named = token.filter(|_| whole.is_none() && words.is_empty());
                    match named.and_then(|token| self.type_named(token.symbol)) {
                        Some((ty, depth)) => {
                            whole = Some(ty.clone());
                            self.type_depth = self.type_depth.max(depth);
                        }
                        None => break,
                    }
                }
            }
            self.at += 1;
        }
        found.ty = match whole {
            _ if let Some(what) = unsupported => TypeKind::Unsupported(what).into(),
            Some(_) if !words.is_empty() => {
                return Err(Error::new(self.since(start), "two types in one declaration"));
            }
            Some(ty) => ty,
            None => words.ty().ok_or_else(|| match words.is_empty() {
                true => self.expected("a type"),
                false => Error::new(self.since(start), "these words make no type together"),
            })?,
        };
        found.ty.atomic |= atomic;
        found.ty.constant |= constant;
        found.ty.volatile |= volatile;
        Ok(found)
    }

    /// `_Atomic(type)`; the keyword is the next token.
    fn atomic_type(&mut self) -> Read<Type> {
        self.at += 2;
        let inner = self.nested(Self::type_name)?;
        self.expect(")")?;
        Ok(inner)
    }

    /// `typeof(type)` or `typeof(expression)`; the keyword is the next token.
    fn type_of(&mut self) -> Read<Type> {
        self.at += 1;
        self.expect("(")?;
        let ty = match self.starts_type(0) {
            true => self.nested(Self::type_name)?,
            false => TypeKind::TypeOf(Rc::new(self.nested(Self::comma_expression)?)).into(),
        };
        self.expect(")")?;
        Ok(ty)
    }

    /// `struct` or `union`, with or without its members, and with its attributes.
    fn record_with_attributes(&mut self) -> Read<Type> {
        let ((id, described), attributes) = self.attributed(Self::record)?;
        let record = &mut self.records[described.0 as usize];
        record.attributes.packed |= attributes.packed;
        record.attributes.aligned.extend(attributes.aligned);
        Ok(TypeKind::Record(id).into())
    }

    /// Parses a structure or union. Returns the one that the text means, and the one that receives the members parsed here: they differ if an earlier
    /// source file has already defined the structure.
    fn record(&mut self) -> Read<(RecordId, RecordId)> {
        let (span, place) = (self.span(), self.place());
        let union = self.is("union");
        self.at += 1;
        self.skip_attributes()?;
        let tag = match self.is("{") {
            true => None,
            false => Some(self.name("a tag or `{`")?),
        };
        let defines = self.is("{");
        // A definition, or a mention before `;`, refers to a tag of this block; any other mention also finds tags of outer blocks.
        let here = defines || self.is(";");
        let known = tag.and_then(|tag| match here {
            true => self.scopes.last().and_then(|scope| scope.tags.get(&tag.symbol)).copied(),
            false => self.scopes.iter().rev().find_map(|scope| scope.tags.get(&tag.symbol)).copied(),
        });
        let tag = tag.map(|tag| tag.symbol);
        let id = match known.or_else(|| self.linked_record(tag, place).map(Tag::Record)) {
            Some(Tag::Record(id)) if self.records[id.0 as usize].union == union => id,
            Some(_) => return Err(Error::new(span, "this tag was declared as something else")),
            None => self.new_record(tag, union, span),
        };
        if let Some(tag) = tag {
            let scope = if here || known.is_none() { self.scopes.last_mut() } else { None };
            scope.map(|scope| scope.tags.insert(tag, Tag::Record(id)));
        }
        if defines {
            // Definitions by the user take precedence over those of model headers, and these over those of the system.
            let origin = self.text.origin(span);
            let before = self.records[id.0 as usize].fields.is_some().then_some(self.origins[id.0 as usize]);
            let again = before.is_some() && self.linked.was_defined_before(id);
            self.linked.defines(id);
            if again {
                let described = self.new_record(tag, union, span);
                self.linked.again.push((id, described));
                self.at += 1;
                let fields = self.nested(Self::fields)?;
                self.records[described.0 as usize].fields = Some(fields);
                self.defined.push(described);
                self.skip_attributes()?;
                return Ok((id, described));
            }
            if before == Some(origin) {
                return Err(Error::new(span, "this is defined twice"));
            }
            self.at += 1;
            let fields = self.nested(Self::fields)?;
            if before.is_none_or(|before| origin.precedes(before)) {
                self.records[id.0 as usize].fields = Some(fields);
                self.origins[id.0 as usize] = origin;
                self.defined.push(id);
            }
            self.skip_attributes()?;
        }
        Ok((id, id))
    }

    /// The [`Place`] of a structure without a tag whose keyword is the next token.
    fn place(&self) -> Place {
        (self.peek().map_or(self.end, |token| token.span), self.span())
    }

    /// The structure that an earlier source file calls by this tag at file scope or, without a tag, that it defines at this place.
    fn linked_record(&mut self, tag: Option<Symbol>, place: Place) -> Option<RecordId> {
        match tag {
            _ if self.scopes.len() > 1 => None,
            Some(tag) => self.linked.tagged(tag),
            None => self.linked.untagged(place, RecordId(self.records.len() as u32)),
        }
    }

    fn new_record(&mut self, tag: Option<Symbol>, union: bool, span: Span) -> RecordId {
        let attributes = Attributes::default();
        self.records.push(Record { tag, union, fields: None, attributes, span });
        self.origins.push(Origin::User);
        RecordId(self.records.len() as u32 - 1)
    }

    /// The members of a structure or union, up to the closing brace.
    fn fields(&mut self) -> Read<Vec<Field>> {
        let mut fields = Vec::new();
        while !self.takes("}") {
            if self.takes(";") {
                continue;
            }
            if self.is("_Static_assert") {
                self.static_assertion()?;
                continue;
            }
            let (specifiers, shared) = self.attributed(Self::specifiers)?;
            if self.takes(";") {
                // The members of an anonymous structure count as members of the enclosing one.
                let span = self.since(self.span());
                if matches!(specifiers.ty.kind, TypeKind::Record(_)) {
                    let (name, bits) = (None, None);
                    fields.push(Field { name, ty: specifiers.ty, bits, attributes: shared, span });
                }
                continue;
            }
            loop {
                let (field, own) = self.attributed(|parser| parser.field(&specifiers.ty))?;
                let mut attributes = shared.clone();
                attributes.packed |= own.packed;
                attributes.aligned.extend(own.aligned);
                fields.push(Field { attributes, ..field });
                if !self.takes(",") {
                    break;
                }
            }
            self.expect(";")?;
        }
        Ok(fields)
    }

    /// Parses one member; bit-fields may lack a name.
    fn field(&mut self, ty: &Type) -> Read<Field> {
        self.skip_attributes()?;
        let start = self.span();
        let (name, ty) = match self.is(":") {
            true => (None, ty.clone()),
            false => {
                let (name, ty) = self.declarator(ty.clone())?;
                (Some(name), ty)
            }
        };
        let bits = match self.takes(":") {
            true => Some(self.conditional()?),
            false => None,
        };
        self.skip_attributes()?;
        let ty = self.with_mode(ty);
        Ok(Field { name, ty, bits, attributes: Attributes::default(), span: self.since(start) })
    }

    /// `enum`, with or without its enumerators.
    fn enumeration(&mut self) -> Read<Type> {
        let span = self.span();
        self.at += 1;
        let mut packed = self.packs_enumeration()?;
        let mut id = EnumerationId(self.enumerations);
        if !self.is("{") {
            let tag = self.name("a tag or `{`")?;
            if self.is("{") {
                self.scopes
                    .last_mut()
                    .expect("there is a scope")
                    .tags
                    .insert(tag.symbol, Tag::Enumeration(id));
            } else {
                id = match self.scopes.iter().rev().find_map(|scope| scope.tags.get(&tag.symbol)) {
                    Some(Tag::Enumeration(id)) => *id,
                    // GNU C: an enumeration may be mentioned before it is defined. Such a mention has an unsupported type, so only pointers to it can
                    // be used.
                    None if self.text.origin(span) != Origin::User => {
                        return Ok(TypeKind::Unsupported("enumerations that are not defined yet").into());
                    }
                    _ => return Err(Error::new(span.to(tag.span), "there is no such enumeration")),
                };
            }
        }
        self.enumerations = self.enumerations.max(id.0 + 1);
        if self.takes("{") {
            let mut first = true;
            let before = self.enumerators.len();
            while !self.takes("}") {
                self.go_on()?;
                let name = self.name("the name of an enumerator")?;
                self.skip_attributes()?;
                let value = match self.takes("=") {
                    true => Some(self.nested(Self::conditional)?),
                    false => None,
                };
                self.declare(name.symbol, Meaning::Other);
                self.enumerators.push(Enumerator { name, value, enumeration: id, first, packed });
                first = false;
                if !self.takes(",") && !self.is("}") {
                    return Err(self.expected("`,` or `}`"));
                }
            }
            packed |= self.packs_enumeration()?;
            for enumerator in &mut self.enumerators[before..] {
                enumerator.packed = packed;
            }
        }
        Ok(TypeKind::Enumeration(id).into())
    }

    /// Skips attributes of an enumeration. Returns whether `packed` is among them.
    fn packs_enumeration(&mut self) -> Read<bool> {
        let ((), own) = self.attributed(Self::skip_attributes)?;
        self.attributes.aligned.extend(own.aligned);
        Ok(own.packed)
    }
}

/// `va_list`: an array of 24 bytes, as on x86-64. Its contents are not modelled.
fn arguments() -> Type {
    let three = ExprKind::Integer(Literal { value: 3, unsigned: false, long: 0, decimal: true });
    let length = Expr { kind: three, span: Span::default(), expansion: ExpansionId::default() };
    let word = TypeKind::Integer(Integer { rank: Rank::Long, signed: false });
    TypeKind::Array(Rc::new(word.into()), Some(Rc::new(length))).into()
}

impl Words {
    fn is_empty(&self) -> bool {
        self.long == 0 && !self.short && self.signed.is_none() && self.base.is_none()
    }

    /// The type that the keywords form; `None` if they are contradictory.
    fn ty(&self) -> Option<Type> {
        let signed = self.signed.unwrap_or(true);
        let integer = |rank| TypeKind::Integer(Integer { rank, signed });
        let plain = self.long == 0 && !self.short;
        let kind = match self.base {
            Some("void") if plain && self.signed.is_none() => TypeKind::Void,
            Some("_Bool") if plain && self.signed.is_none() => TypeKind::Bool,
            Some("float") if plain && self.signed.is_none() => TypeKind::Floating(4),
            Some("double") if self.long < 2 && !self.short && self.signed.is_none() => {
                TypeKind::Floating(if self.long == 1 { 16 } else { 8 })
            }
            Some("char") if plain => integer(Rank::Char),
            Some("int") | None if !self.is_empty() => match (self.short, self.long) {
                (true, 0) => integer(Rank::Short),
                (false, 0) => integer(Rank::Int),
                (false, 1) => integer(Rank::Long),
                (false, 2) => integer(Rank::LongLong),
                _ => return None,
            },
            _ => return None,
        };
        Some(kind.into())
    }
}
