//! `scanf` and its relatives: input is any sequence of characters, so each conversion stores any value, and the input may end before each of them.

use fencewright_c::ast::BinaryOp as Operator;
use fencewright_c::typed::tree::TypeKind;
use fencewright_code::numbers::{self, Operand};

use super::super::expressions::pointee;
use super::super::{Elaborator, Result};
use super::{BuiltinCall, int, strings};

/// The index of the format among the arguments of a function; `None` if the name is not in this family.
pub(super) fn named(name: &str) -> Option<usize> {
    match name {
        "scanf" => Some(0),
        "fscanf" | "sscanf" => Some(1),
        _ => None,
    }
}

/// The size in bytes of the integer that each conversion of a format stores; `None` if a conversion does not store an integer.
fn conversions(format: &str) -> Option<Vec<u64>> {
    let mut sizes = Vec::new();
    let mut parts = format.split('%');
    parts.next();
    while let Some(part) = parts.next() {
        // `%%` matches a percent sign.
        if part.is_empty() {
            parts.next()?;
            continue;
        }
        let (part, stores) = part.strip_prefix('*').map_or((part, true), |rest| (rest, false));
        let has_width = part.starts_with(|c: char| c.is_ascii_digit());
        let part = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let letters = part.trim_start_matches(['h', 'l', 'j', 'z', 't', 'q']);
        let size = match (&part[..part.len() - letters.len()], letters.chars().next()?) {
            ("", 'c') if !has_width => 1,
            (_, 'd' | 'i' | 'u' | 'x' | 'X' | 'o') => match &part[..part.len() - letters.len()] {
                "hh" => 1,
                "h" => 2,
                "" => 4,
                _ => 8,
            },
            _ => return None,
        };
        sizes.extend(stores.then_some(size));
    }
    Some(sizes)
}

impl Elaborator<'_> {
    /// A call whose format is the argument with this number. The result is the number of values that were stored, or -1.
    pub(super) fn scan(&mut self, format: usize, call: BuiltinCall) -> Result<Operand> {
        let span = call.span;
        let help = "use `__VERIFIER_nondet_int()` for input";
        let text = strings::text(self.unit, self.argument(call, format)?);
        let Some(sizes) = text.as_deref().and_then(conversions) else {
            let message = format!("a format of `{}` that stores something other than integers", call.name);
            return self.error(span, message, help);
        };
        for before in &call.arguments[..format] {
            self.value(before)?;
        }
        let mut places = Vec::new();
        for (number, size) in (format + 1..).zip(sizes) {
            let argument = self.argument(call, number)?;
            let ty = pointee(&argument.ty);
            if !matches!(ty.kind, TypeKind::Integer(_)) || self.size(&ty) != size {
                let message = format!("the format stores {size} bytes, and this points to something else");
                return self.error(argument.span, message, help);
            }
            let pointer = self.value(argument)?;
            places.push((self.kept_value(pointer, &argument.ty, span)?, ty));
        }
        let stored = self.any("stored", &int(), (-1, places.len() as i128), span);
        for (number, (pointer, ty)) in places.into_iter().enumerate() {
            let number = Operand::number(number as i128);
            let is_stored = numbers::compare(Operator::Greater, stored.clone(), number);
            let store = |this: &mut Self| {
                let TypeKind::Integer(arithmetic) = ty.kind else { unreachable!("it points to an integer") };
                let value = this.any("input", &ty, (arithmetic.least(), arithmetic.greatest()), span);
                let place = this.pointed(&pointer, &ty, span)?;
                this.write(&place, value, span)
            };
            self.branch(is_stored, span, store, |_| Ok(()))?;
        }
        Ok(stored)
    }
}

#[cfg(test)]
mod tests {
    use super::conversions;

    #[test]
    fn formats_have_conversions() {
        for (format, expected) in [
            ("%d", Some(vec![4])),
            (" %d , %5ld%%%hhu %c", Some(vec![4, 8, 1, 1])),
            ("%*d %zu %hx", Some(vec![8, 2])),
            ("no", Some(vec![])),
            ("%s", None),
            ("%[a-z]", None),
            ("%f", None),
            ("%3c", None),
            ("%n", None),
            ("%", None),
            ("%l", None),
        ] {
            assert_eq!(conversions(format), expected, "{format}");
        }
    }
}
