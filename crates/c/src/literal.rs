//! Values of integer and character constants (C11 6.4.4).

/// An integer constant as it is written. [`constant_type`](crate::arithmetic::constant_type) determines its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Literal {
    /// The value. The lexer treats a preceding `-` as an operator.
    pub value: u64,
    /// Whether the constant has the suffix `u`.
    pub unsigned: bool,
    /// The number of `l`s in the suffix, at most 2.
    pub long: u8,
    /// Whether the constant is decimal: decimal constants without `u` never get an unsigned type.
    pub decimal: bool,
}

/// The value and suffix of an integer constant; an error for a floating-point constant, a malformed number, or a number of more than 64
/// bits.
pub fn number(spelling: &str) -> Result<Literal, String> {
    let lower = spelling.to_ascii_lowercase();
    let (digits, radix) = match lower.as_bytes() {
        [b'0', b'x', ..] => (&lower[2..], 16),
        [b'0', b'b', ..] => (&lower[2..], 2),
        [b'0', ..] => (lower.as_str(), 8),
        _ => (lower.as_str(), 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (digits, suffix) = digits.split_at(end);
    let (unsigned, long) = match suffix {
        "" => (false, 0),
        "u" => (true, 0),
        "l" => (false, 1),
        "ul" | "lu" => (true, 1),
        "ll" => (false, 2),
        "ull" | "llu" => (true, 2),
        _ if radix != 16 && suffix.starts_with(['.', 'e', 'f']) || suffix.starts_with(['.', 'p']) => {
            return Err(format!("`{spelling}` is a floating-point number, and only integers are supported"));
        }
        _ => return Err(format!("`{spelling}` is no number")),
    };
    if digits.is_empty() {
        return Err(format!("`{spelling}` is no number"));
    }
    let value =
        u64::from_str_radix(digits, radix).map_err(|_| format!("`{spelling}` does not fit into 64 bits"))?;
    Ok(Literal { value, unsigned, long, decimal: radix == 10 })
}

/// Whether a preprocessing number is a floating-point constant (C11 6.4.4.2).
pub fn is_floating(spelling: &str) -> bool {
    let lower = spelling.to_ascii_lowercase();
    let (digits, exponent) = match lower.strip_prefix("0x") {
        Some(digits) => (digits, 'p'),
        None => (lower.as_str(), 'e'),
    };
    let radix = if exponent == 'p' { 16 } else { 10 };
    let end = digits.find(|c: char| !c.is_digit(radix) && c != '.').unwrap_or(digits.len());
    let (mantissa, rest) = digits.split_at(end);
    let (power, suffix) = match rest.strip_prefix(exponent) {
        Some(rest) => {
            let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            (Some(&rest[..end]), &rest[end..])
        }
        None => (None, rest),
    };
    let points = mantissa.matches('.').count();
    let suffixes = ["", "f", "l", "q", "w", "i", "j", "f16", "f32", "f64", "f128", "f32x", "f64x", "bf16"];
    mantissa.len() > points
        && points <= 1
        && power.is_none_or(|power| !power.is_empty())
        && (power.is_some() || exponent == 'e' && points == 1)
        && suffixes.contains(&suffix)
}

/// The value of a character constant, of type `int`.
pub fn character(spelling: &str) -> Result<i64, String> {
    let body = spelling.trim_start_matches(['L', 'u', 'U', '8']);
    let wide = body.len() < spelling.len();
    let body = &body[1..body.len() - 1];
    let values = units(body, wide)?;
    match *values {
        [] => Err("an empty character constant".into()),
        [value] if wide => Ok(i64::from(value)),
        // A plain character has type signed char.
        [value] => Ok(i64::from(value as u8 as i8)),
        _ => Ok(i64::from(values.iter().fold(0u32, |all, unit| all << 8 | unit & 0xff) as i32)),
    }
}

/// The characters between the quotes of a constant or string, with escapes replaced: as code points if `wide`, otherwise as bytes.
pub fn units(body: &str, wide: bool) -> Result<Vec<u32>, String> {
    let mut found = Vec::new();
    let mut rest = body.chars().peekable();
    let plain = |c: char, found: &mut Vec<u32>| match wide {
        true => found.push(c.into()),
        false => found.extend(c.encode_utf8(&mut [0; 4]).bytes().map(u32::from)),
    };
    while let Some(c) = rest.next() {
        if c != '\\' {
            plain(c, &mut found);
            continue;
        }
        let Some(escape) = rest.next() else { return Err("an escape that is not complete".into()) };
        let value = match escape {
            'n' => 10,
            't' => 9,
            'r' => 13,
            '0'..='7' => {
                let mut value = escape.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    match rest.peek().and_then(|c| c.to_digit(8)) {
                        Some(digit) => value = value * 8 + digit,
                        None => break,
                    }
                    rest.next();
                }
                value
            }
            'a' => 7,
            'b' => 8,
            'f' => 12,
            'v' => 11,
            'e' => 27,
            '\\' | '\'' | '"' | '?' => escape.into(),
            'x' => {
                let mut value: Option<u32> = None;
                while let Some(digit) = rest.peek().and_then(|c| c.to_digit(16)) {
                    let more = value.unwrap_or(0).checked_mul(16).and_then(|v| v.checked_add(digit));
                    value = Some(more.ok_or("an escape that does not fit")?);
                    rest.next();
                }
                value.ok_or("`\\x` without digits")?
            }
            'u' | 'U' => {
                let length = if escape == 'u' { 4 } else { 8 };
                let digits: String = rest.by_ref().take(length).collect();
                let value = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == length);
                let value = value.and_then(char::from_u32).ok_or("an escape that names no character")?;
                plain(value, &mut found);
                continue;
            }
            other => return Err(format!("`\\{}` is no escape", other.escape_default())),
        };
        found.push(value);
    }
    Ok(found)
}
