//! Attributes of GNU C. Those that affect the layout are kept; those that change what the program does are refused; all others are ignored.

use super::{Parser, Read};
use crate::ast::{Alignment, Attributes};
use crate::error::Error;

/// Attributes that change what the program does, with advice.
const REFUSED: [(&str, &str); 7] = [
    ("constructor", "call the function at the start of `main`"),
    ("destructor", "call the function at the end of `main`"),
    ("cleanup", "call the function where the variable goes out of scope"),
    ("mode", "use a type of this size, such as `int64_t`"),
    ("vector_size", "use an array"),
    ("scalar_storage_order", "convert the bytes where they are read and written"),
    ("ms_struct", "leave the attribute out"),
];

impl Parser<'_> {
    /// Skips `__attribute__((...))` and `__extension__`; attributes that affect the layout are added to the current construct.
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

    /// Parses a construct that has its own attributes.
    pub(super) fn attributed<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<(T, Attributes)> {
        let around = std::mem::take(&mut self.attributes);
        let found = read(self);
        let own = std::mem::replace(&mut self.attributes, around);
        Ok((found?, own))
    }
}
