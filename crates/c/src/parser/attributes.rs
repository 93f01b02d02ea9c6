//! Attributes of GNU C. Attributes that affect the layout, or what a name stands for, are kept, attributes that would change what the program does
//! are errors, and all others are ignored.

use super::{Parser, Read};
use crate::ast::{Alignment, Attributes, Integer, Mode, Rank, Type, TypeKind};
use crate::error::Error;

/// Unsupported attributes that would change what the program does, each with advice for the user.
const REFUSED: [(&str, &str); 5] = [
    ("constructor", "call the function at the start of `main`"),
    ("destructor", "call the function at the end of `main`"),
    ("cleanup", "call the function where the variable goes out of scope"),
    ("scalar_storage_order", "convert the bytes where they are read and written"),
    ("ms_struct", "leave the attribute out"),
];

impl Parser<'_> {
    /// Skips `__attribute__((...))` and `__extension__`. Attributes that affect the layout, or what a name stands for, are added to
    /// `self.attributes`.
    pub(super) fn skip_attributes(&mut self) -> Read<()> {
        loop {
            if self.takes_any(&["__attribute__", "__attribute"]) {
                let opened = self.span();
                self.expect("(")?;
                self.expect("(")?;
                while !self.takes(")") {
                    if self.peek().is_none() {
                        return Err(Error::new(opened, "this parenthesis is never closed"));
                    }
                    self.attribute()?;
                    if !self.takes(",") && !self.is(")") {
                        return Err(self.expected("`,` or `)`"));
                    }
                }
                self.expect(")")?;
            } else if !self.takes("__extension__") {
                return Ok(());
            }
        }
    }

    fn attribute(&mut self) -> Read<()> {
        match self.word() {
            "," | ")" => return Ok(()),
            "packed" | "__packed__" => self.attributes.packed = true,
            "vector_size" | "__vector_size__" => {
                self.attributes.mode = Some(Mode::Unsupported("vectors"));
            }
            "alias" | "__alias__" | "weakref" | "__weakref__" => self.attributes.alias = true,
            "mode" | "__mode__" => self.attributes.mode = mode(self.word_at(2)).or(self.attributes.mode),
            "aligned" | "__aligned__" => {
                self.at += 1;
                let alignment = match self.takes("(") {
                    false => Alignment::Most,
                    true => {
                        let value = self.nested(Self::conditional)?;
                        self.expect(")")?;
                        Alignment::Value(value)
                    }
                };
                self.attributes.aligned.push(alignment.into());
                return Ok(());
            }
            word => {
                let name = word.trim_matches('_');
                if let Some((_, help)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
                    let message = format!("the attribute `{name}` is not supported");
                    return Err(Error::new(self.span(), message).help(*help));
                }
            }
        }
        self.at += 1;
        if self.is("(") {
            self.skip_parentheses()?;
        }
        Ok(())
    }

    /// `_Alignas(...)`.
    pub(super) fn alignas(&mut self) -> Read<()> {
        self.at += 1;
        self.expect("(")?;
        let alignment = match self.starts_type(0) {
            true => Alignment::Type(self.nested(Self::type_name)?),
            false => Alignment::Value(self.nested(Self::conditional)?),
        };
        self.expect(")")?;
        self.attributes.aligned.push(alignment.into());
        Ok(())
    }

    /// The type after the attributes `mode` and `vector_size` of the current construct have been applied.
    pub(super) fn with_mode(&mut self, ty: Type) -> Type {
        let Some(mode) = self.attributes.mode.take() else { return ty };
        let kind = match (mode, &ty.kind) {
            (Mode::Integer(rank), TypeKind::Integer(Integer { signed, .. })) => {
                TypeKind::Integer(Integer { rank, signed: *signed })
            }
            (Mode::Floating(bytes), TypeKind::Floating(_)) => TypeKind::Floating(bytes),
            (Mode::Unsupported(what), _) => TypeKind::Unsupported(what),
            _ => TypeKind::Unsupported("such modes of types"),
        };
        Type { kind, ..ty }
    }

    /// Parses a construct with an empty set of attributes, and returns those that the construct itself has; attributes of the surrounding construct
    /// are kept apart.
    pub(super) fn attributed<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<(T, Attributes)> {
        let around = std::mem::take(&mut self.attributes);
        let found = read(self);
        let own = std::mem::replace(&mut self.attributes, around);
        Ok((found?, own))
    }
}

/// The integer or floating-point type that a machine mode of gcc selects.
fn mode(name: &str) -> Option<Mode> {
    Some(match name.trim_matches('_') {
        "QI" | "byte" => Mode::Integer(Rank::Char),
        "HI" => Mode::Integer(Rank::Short),
        "SI" => Mode::Integer(Rank::Int),
        "DI" | "word" | "pointer" | "unwind_word" => Mode::Integer(Rank::Long),
        "TI" => Mode::Unsupported(INT128),
        "SF" => Mode::Floating(4),
        "DF" => Mode::Floating(8),
        "XF" | "TF" => Mode::Floating(16),
        _ => Mode::Unsupported("such modes of types"),
    })
}

/// `__int128`, as messages about unsupported types describe it.
pub(super) const INT128: &str = "integers of 128 bits";
