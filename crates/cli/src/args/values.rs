//! Values of options: constants, times, sizes and abstractions.

use std::ffi::OsStr;
use std::time::Duration;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};
use fencewright::engines::buffers::BufferDomain;
use fencewright::engines::{EngineOptions, registry};

use super::examples;

/// A name that help and completion scripts list. Others are accepted too: what is asked for tells that there is no such thing, with `--json` as
/// JSON.
#[derive(Clone, Copy)]
pub struct Listed(fn() -> Vec<PossibleValue>);

/// The engines, each with what it is.
pub const ENGINE: Listed = Listed(|| {
    let options = EngineOptions::default();
    let value = |info: &fencewright::engines::EngineInfo| {
        PossibleValue::new(info.name.as_str()).help((info.build)(&options).about().summary)
    };
    registry().iter().map(value).collect()
});

/// The commands.
pub const COMMAND: Listed = Listed(|| examples::commands().map(PossibleValue::new).collect());

impl TypedValueParser for Listed {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter()))
    }
}

/// A limit that can be switched off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit<T> {
    /// This much.
    AtMost(T),
    /// As much as it takes.
    Unlimited,
}

impl<T> Limit<T> {
    /// The limit, if there is one.
    pub fn get(self) -> Option<T> {
        match self {
            Limit::AtMost(limit) => Some(limit),
            Limit::Unlimited => None,
        }
    }
}

/// `NAME=VALUE` or `NAME`
pub fn define(text: &str) -> Result<(String, Option<String>), String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.trim().to_owned())),
        None => (text, None),
    };
    match name.trim() {
        "" => Err("expected a name before `=`, as in -D N=4".into()),
        name => Ok((name.to_owned(), value)),
    }
}

/// A number and the unit behind it; the number is finite and not negative.
fn quantity(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim_start()))
}

/// `10s`, `500ms`, `2m`, `1h`, plain seconds, `none`
pub fn timeout(text: &str) -> Result<Limit<Duration>, String> {
    if text == "none" {
        return Ok(Limit::Unlimited);
    }
    let expected = || "expected a time like 10s, 500ms, 2m, 1h, or none".to_string();
    let (number, unit) = quantity(text).ok_or_else(expected)?;
    let seconds = match unit {
        "ms" => number / 1e3,
        "" | "s" | "sec" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err(expected()),
    };
    Duration::try_from_secs_f64(seconds).map(Limit::AtMost).map_err(|_| "that is too long".into())
}

/// `512M`, `2G`, `1.5GiB`, plain bytes, `none`
pub fn memory(text: &str) -> Result<Limit<u64>, String> {
    if text == "none" {
        return Ok(Limit::Unlimited);
    }
    let expected = || "expected a size like 512M, 2G, 1048576, or none".to_string();
    let (number, unit) = quantity(text).ok_or_else(expected)?;
    let unit = unit.to_ascii_lowercase();
    let shift = match unit.strip_suffix("ib").or(unit.strip_suffix('b')).unwrap_or(&unit) {
        "" if unit != "ib" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err(expected()),
    };
    let bytes = number * (1_u64 << shift) as f64;
    if bytes < u64::MAX as f64 { Ok(Limit::AtMost(bytes as u64)) } else { Err("that is too much".into()) }
}

/// More stores than this cannot be asked for to be kept in order.
const MOST_KEPT: u32 = 64;

/// `set`, `multiset`, `partial:K`
pub fn buffer_domain(text: &str) -> Result<BufferDomain, String> {
    let expected = || format!("expected set, multiset, or partial:K with K at most {MOST_KEPT}");
    match text {
        "set" => Ok(BufferDomain::Set),
        "multiset" => Ok(BufferDomain::Multiset),
        _ => {
            let k = text.strip_prefix("partial:").and_then(|k| k.parse().ok()).filter(|k| *k <= MOST_KEPT);
            k.map(BufferDomain::Partial).ok_or_else(expected)
        }
    }
}

/// How many stores buffers hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Those that are not named.
    pub all: u32,
    /// Those for single variables.
    pub single: Vec<(String, u32)>,
}

/// `2`, `x=2,y=1`, `2,x=3`; variables that are not named have 1 unless a number says otherwise.
pub fn buffer_sizes(text: &str) -> Result<Sizes, String> {
    let mut sizes = Sizes { all: 1, single: Vec::new() };
    for (n, part) in text.split(',').enumerate() {
        let (name, number) = part.split_once('=').map_or((None, part), |(name, k)| (Some(name.trim()), k));
        let digits = number.trim().chars().all(|c| c.is_ascii_digit());
        let k = number.trim().parse().ok().filter(|_| digits);
        let k = k.ok_or("expected numbers of stores, as in 2, x=2,y=1 or 2,x=3")?;
        match name {
            Some(name) => sizes.single.push((name.to_string(), k)),
            None if n == 0 => sizes.all = k,
            None => return Err("the number for all other variables comes first, and only once".into()),
        }
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let check = |text, expected| assert_eq!(timeout(text), Ok(Limit::AtMost(expected)), "{text}");
        check("10s", Duration::from_secs(10));
        check("10", Duration::from_secs(10));
        check("0.5", Duration::from_millis(500));
        check("500ms", Duration::from_millis(500));
        check("2m", Duration::from_secs(120));
        check("1h", Duration::from_secs(3600));
        check("0", Duration::ZERO);
        assert_eq!(timeout("none"), Ok(Limit::Unlimited));
        for wrong in ["", "s", "-1s", "1x", "1.2.3", "inf", "nan", "99999999999999999999999h"] {
            assert!(timeout(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes() {
        let check = |text, expected| assert_eq!(memory(text), Ok(Limit::AtMost(expected)), "{text}");
        check("512M", 512 << 20);
        check("2G", 2 << 30);
        check("2GiB", 2 << 30);
        check("1.5gb", 3 << 29);
        check("4096", 4096);
        check("4096B", 4096);
        check("1K", 1024);
        check("1T", 1 << 40);
        assert_eq!(memory("none"), Ok(Limit::Unlimited));
        for wrong in ["", "G", "-1G", "1X", "1iB", "99999999999999T"] {
            assert!(memory(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn abstractions() {
        assert_eq!(buffer_domain("set"), Ok(BufferDomain::Set));
        assert_eq!(buffer_domain("multiset"), Ok(BufferDomain::Multiset));
        assert_eq!(buffer_domain("partial:0"), Ok(BufferDomain::Partial(0)));
        assert_eq!(buffer_domain("partial:64"), Ok(BufferDomain::Partial(64)));
        for wrong in ["", "sets", "partial", "partial:", "partial:-1", "partial:65", "partial:x"] {
            assert!(buffer_domain(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_of_buffers() {
        let check = |text, all, single: &[(&str, u32)]| {
            let single = single.iter().map(|(name, k)| (name.to_string(), *k)).collect();
            assert_eq!(buffer_sizes(text), Ok(Sizes { all, single }), "{text}");
        };
        check("2", 2, &[]);
        check("0", 0, &[]);
        check("x=2,y=1", 1, &[("x", 2), ("y", 1)]);
        check("2, x = 3", 2, &[("x", 3)]);
        for wrong in ["", "x", "-1", "+1", "x=", "x=-1", "1,2", "x=1,2", "99999999999"] {
            assert!(buffer_sizes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn constants() {
        let check = |text, value: Option<&str>| {
            assert_eq!(define(text), Ok(("N".to_string(), value.map(str::to_string))), "{text}");
        };
        check("N=4", Some("4"));
        check("N = -4", Some("-4"));
        check("N", None);
        check("N=", Some(""));
        assert!(define("=4").is_err() && define("").is_err());
    }
}
