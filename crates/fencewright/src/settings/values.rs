//! The types of options, and how their values are written.

#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use fencewright_engines::buffers::BufferDomain;
use fencewright_engines::domain::DomainName;
use fencewright_engines::explicit::{Order, Reduction};
use fencewright_engines::extrapolate::Method;
use fencewright_engines::lazy::OracleName;
use fencewright_engines::robust::Search;
use fencewright_engines::{EngineOptions, registry};
use fencewright_fences::Prices;
use fencewright_generate::random::Numbers;
use fencewright_lang::{FrontEnd, front_end};
use fencewright_memory::Kept;
use fencewright_program::MemoryModel;
use fencewright_reduce::c::Width;
use fencewright_transform::attack::Notion;

use crate::{BufferBound, NoOverflow, Purpose};

/// One of the values of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The value as it is written.
    pub name: &'static str,
    /// The help for the value; may be empty.
    pub help: &'static str,
}

/// The type of an option.
pub trait Value: Sized {
    /// Parses a value; the error is a message about the text.
    fn read(text: &str) -> Result<Self, String>;

    /// Parses a value from a text that may not be UTF-8, such as a file name.
    fn read_os(text: &OsStr) -> Result<Self, String> {
        Self::read(text.to_str().ok_or("this is not UTF-8")?)
    }

    /// The values, if they can be listed; otherwise empty.
    fn choices() -> Vec<Choice> {
        Vec::new()
    }
}

/// Implements [`Value`] for types with few values: each value with its notation and its help.
macro_rules! choices {
    ($($type:ident { $($name:literal $variant:ident $help:literal)* })*) => {
        $(
            impl Value for $type {
                fn read(text: &str) -> Result<Self, String> {
                    match text {
                        $($name => Ok($type::$variant),)*
                        _ => Err(format!("expected one of {}", [$($name),*].join(", "))),
                    }
                }

                fn choices() -> Vec<Choice> {
                    vec![$(Choice { name: $name, help: $help }),*]
                }
            }
        )*
    };
}

choices! {
    MemoryModel { "sc" Sc "" "tso" Tso "" "pso" Pso "" }
    Order { "bfs" BreadthFirst "" "dfs" DepthFirst "" }
    Kept { "oldest" Oldest "" "newest" Newest "" }
    Target { "fw" Fw "" "c" C "" }
    Width { "32" Bits32 "" "64" Bits64 "" }
    Numbers { "nat" Nat "Natural numbers" "int" Int "Integers" "real" Real "Reals" }
    Purpose {
        "safety" Safety "The properties of the program hold"
        "robustness" Robustness "Every execution looks like one under SC"
        "triangular" Triangular "No triangular race"
    }
    Notion {
        "happens-before" HappensBefore "Every execution has the happens-before relation of one under SC"
        "triangular" Triangular "No triangular race"
    }
    Search {
        "auto" Auto "Explicit first, then both side by side"
        "explicit" Explicit "Explicit states"
        "cegar" Cegar "Abstraction, for unbounded integers"
    }
    Reduction {
        "suited" Suited "`local` where there are at most two threads, `persistent` where there are more"
        "none" None "None: every interleaving is explored"
        "ample" Ample "Steps of one thread where no other thread can disturb them"
        "local" Local "Local events first: a thread goes on until others can see what it does"
        "persistent" Persistent "Steps of a group of threads that nobody outside can disturb"
        "sleep" Sleep "The same, without steps that were taken already in another order: fewer transitions"
        "cartesian" Cartesian "Each thread runs until its steps may depend on those of others; states in between are not stored"
        "dynamic" Dynamic "One execution of each trace, and no states are stored: for programs whose executions all end"
    }
    DomainName {
        "zones" Zones "Bounds on differences"
        "predicates" Predicates "Predicates from interpolants"
        "order" Order "How values compare: exact for programs that only copy, choose and compare them"
        "concrete" Concrete "One value for each cell: exact, with any arithmetic, but every `*` needs a range"
    }
    Fixed {
        "k" K "How many stores are kept in order"
        "clip" Clip "The clip constant of zones"
        "predicates" Predicates "The predicates"
    }
    OracleName {
        "robust" Robust "Robustness: where delaying a store can be seen"
        "enumerate" Enumerate "Every path from a store to a load, the shortest first"
    }
    Method {
        "predicates" Predicates "Its predicates; cubes of them are searched"
        "cubes" Cubes "Its predicates and cubes; no others are searched"
    }
}

impl Value for Models {
    fn read(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Models::All),
            _ => MemoryModel::read(text).map(Models::One).map_err(|expected| expected + ", all"),
        }
    }

    fn choices() -> Vec<Choice> {
        MemoryModel::choices().into_iter().chain([Choice { name: "all", help: "" }]).collect()
    }
}

/// The language of a reduced program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The language .fw.
    Fw,
    /// The language C.
    C,
}

/// One memory model, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Models {
    /// Only this model.
    One(MemoryModel),
    /// All memory models.
    All,
}

impl Models {
    /// The chosen memory models: one, or all of them.
    pub fn models(&self) -> &[MemoryModel] {
        match self {
            Models::One(model) => std::slice::from_ref(model),
            Models::All => &MemoryModel::ALL,
        }
    }
}

/// A parameter of engine cegar that refinement does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixed {
    /// The number of stores that are kept in order.
    K,
    /// The clip constant of zones.
    Clip,
    /// The set of predicates.
    Predicates,
}

/// The name of an engine. An unknown name is reported only when the question is asked, so that the error can be printed as JSON if JSON is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(pub String);

impl Value for Name {
    fn read(text: &str) -> Result<Self, String> {
        Ok(Name(text.to_owned()))
    }

    fn choices() -> Vec<Choice> {
        let options = EngineOptions::default();
        let choice = |info: &fencewright_engines::EngineInfo| {
            let help = (info.build)(&options).about().summary;
            Choice { name: info.name.as_str(), help }
        };
        registry().iter().map(choice).collect()
    }
}

/// The language of a program.
#[derive(Clone, Copy, Debug)]
pub struct Format(pub &'static dyn FrontEnd);

impl Value for Format {
    fn read(text: &str) -> Result<Self, String> {
        front_end::named(text).map(Format).ok_or_else(|| "there is no such format".into())
    }

    fn choices() -> Vec<Choice> {
        front_end::ALL.iter().map(|front_end| Choice { name: front_end.name(), help: "" }).collect()
    }
}

/// A constant or macro with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Define(pub String, pub Option<String>);

impl Value for Define {
    /// `NAME=VALUE` or `NAME`
    fn read(text: &str) -> Result<Self, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.trim().to_owned())),
            None => (text, None),
        };
        match name.trim() {
            "" => Err("expected a name before `=`, as in -D N=4".into()),
            name => Ok(Define(name.to_owned(), value)),
        }
    }
}

/// A number within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count<const LEAST: u32, const MOST: u32>(u32);

impl<const LEAST: u32, const MOST: u32> Count<LEAST, MOST> {
    /// The number, which is within the bounds.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl<const LEAST: u32, const MOST: u32> Value for Count<LEAST, MOST> {
    fn read(text: &str) -> Result<Self, String> {
        let number: i64 = text.parse().map_err(|error| format!("{error}"))?;
        let within = u32::try_from(number).ok().filter(|number| (LEAST..=MOST).contains(number));
        within.map(Count).ok_or_else(|| format!("{number} is not in {LEAST}..={MOST}"))
    }
}

/// A limit that can be switched off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit<T> {
    /// At most this much.
    AtMost(T),
    /// No limit.
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

/// A non-negative number and the unit after it; `None` if there is no number.
fn quantity(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim_start()))
}

impl Value for Limit<Duration> {
    /// `10s`, `500ms`, `2m`, `1h`, plain seconds, `none`
    fn read(text: &str) -> Result<Self, String> {
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
}

impl Value for Limit<u64> {
    /// `512M`, `2G`, `1.5GiB`, plain bytes, `none`
    fn read(text: &str) -> Result<Self, String> {
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
        match bytes < u64::MAX as f64 {
            true => Ok(Limit::AtMost(bytes as u64)),
            false => Err("that is too much".into()),
        }
    }
}

/// Maximum value of `K` in `partial:K`: the number of stores kept in order.
const MOST_KEPT: u32 = 64;

impl Value for BufferDomain {
    /// `set`, `multiset`, `partial:K`
    fn read(text: &str) -> Result<Self, String> {
        let expected = || format!("expected set, multiset, or partial:K with K at most {MOST_KEPT}");
        match text {
            "set" => Ok(BufferDomain::Set),
            "multiset" => Ok(BufferDomain::Multiset),
            _ => {
                let k =
                    text.strip_prefix("partial:").and_then(|k| k.parse().ok()).filter(|k| *k <= MOST_KEPT);
                k.map(BufferDomain::Partial).ok_or_else(expected)
            }
        }
    }
}

/// `partial:K`: the number of stores that are kept in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partial(pub u32);

impl Value for Partial {
    fn read(text: &str) -> Result<Self, String> {
        let k = text.strip_prefix("partial:").and_then(digits);
        k.map(Partial).ok_or_else(|| "expected partial:K".into())
    }
}

/// A number without a sign.
fn digits(text: &str) -> Option<u32> {
    text.parse().ok().filter(|_| text.chars().all(|c| c.is_ascii_digit()))
}

/// Capacities of store buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The capacity for all variables that `single` does not name.
    pub all: u32,
    /// The capacities for single variables.
    pub single: Vec<(String, u32)>,
}

impl Value for Sizes {
    /// `2`, `x=2,y=1`, `2,x=3`; variables that are not named have 1 unless a number without a name gives another size.
    fn read(text: &str) -> Result<Self, String> {
        let mut sizes = Sizes { all: 1, single: Vec::new() };
        for (n, part) in text.split(',').enumerate() {
            let (name, number) =
                part.split_once('=').map_or((None, part), |(name, k)| (Some(name.trim()), k));
            let k = digits(number.trim()).ok_or("expected numbers of stores, as in 2, x=2,y=1 or 2,x=3")?;
            match name {
                Some(name) => sizes.single.push((name.to_string(), k)),
                None if n == 0 => sizes.all = k,
                None => return Err("the number for all other variables comes first, and only once".into()),
            }
        }
        Ok(sizes)
    }
}

/// Maximum bound on buffers: certificates are checked for buffers up to this size.
const MOST_STORES: u8 = 64;

impl Value for NoOverflow {
    /// `K`, `K/thread`, `K/variable`
    fn read(text: &str) -> Result<Self, String> {
        let (stores, per_variable) = match text.split_once('/') {
            None => (text, None),
            Some((stores, "thread")) => (stores, Some(false)),
            Some((stores, "variable")) => (stores, Some(true)),
            Some(_) => ("", None),
        };
        let stores = stores.parse().ok().filter(|stores| *stores <= MOST_STORES);
        let expected = || format!("expected K, K/thread or K/variable, with K at most {MOST_STORES}");
        stores.map(|stores| NoOverflow { stores, per_variable }).ok_or_else(expected)
    }
}

impl Value for Prices {
    /// `fence=2,sfence=1,xchg=2,loop=1`
    fn read(text: &str) -> Result<Self, String> {
        let mut prices = Prices::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (what, value) = part.split_once('=').ok_or("expected WHAT=PRICE")?;
            let price = u64::from(value.parse::<u32>().map_err(|_| format!("`{value}` is not a price"))?);
            match what {
                "fence" => prices.full = price,
                "sfence" => prices.store_store = price,
                "xchg" => prices.swap = Some(price),
                "loop" => prices.in_loop = price,
                _ => return Err(format!("`{what}` has no price; there is fence, sfence, xchg, loop")),
            }
        }
        Ok(prices)
    }
}

impl Value for BufferBound {
    fn read(text: &str) -> Result<Self, String> {
        text.parse()
    }
}

impl Value for String {
    fn read(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl Value for u64 {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error| format!("{error}"))
    }
}

impl Value for usize {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error| format!("{error}"))
    }
}

impl Value for PathBuf {
    fn read(text: &str) -> Result<Self, String> {
        Ok(text.into())
    }

    fn read_os(text: &OsStr) -> Result<Self, String> {
        Ok(text.into())
    }
}

/// Flags have no value.
impl Value for bool {
    fn read(_: &str) -> Result<Self, String> {
        Ok(true)
    }
}
