//! Attributes of GNU C. Those that affect the layout are kept; all others are ignored.

use super::{Parser, Read};
use crate::ast::{Alignment, Attributes};
use crate::error::Error;

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
            _ => {}
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
