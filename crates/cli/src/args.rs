//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValue;
use clap::{Args, Parser, Subcommand, ValueEnum};
use fencewright_fences::Prices;
use fencewright_lang::Format;
use fencewright_program::MemoryModel;

/// Verifies concurrent programs on relaxed memory (SC, TSO, PSO).
#[derive(Parser)]
#[command(name = "fencewright", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  fencewright check peterson.fw                    does it hold on x86 (tso)?
  fencewright check --model all peterson.fw        ... and under sc and pso?
  fencewright check -D N=3 --timeout 5m bakery.fw  with a constant changed, and more time
  fencewright check --property deadlock *.fw       no deadlock, in several files
  fencewright check --certificate proof.json bakery.fenced.fw
  fencewright certify proof.json bakery.fenced.fw  is that a proof?
  fencewright robust peterson.fw                   does it behave on x86 as under sc?
  fencewright litmus tests/                        every .litmus file in a directory
  fencewright run --seed 7 peterson.fw             one random execution
  fencewright show peterson.fw | dot -Tsvg > peterson.svg

Exit status: 0 every property holds, 1 some property is violated, 2 bad usage or input, 3 unknown.";

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// Check the properties of programs
    Check(CheckArgs),
    /// Tell whether programs may be reasoned about as if memory were SC
    Robust(RobustArgs),
    /// Find the cheapest fences that make programs safe, and put them in
    Fences(FencesArgs),
    /// Check a certificate of safety, without any engine
    Certify(CertifyArgs),
    /// Run litmus tests and summarise their final states
    Litmus(LitmusArgs),
    /// Simulate a program: at random, or step by step
    Run(RunArgs),
    /// Print the control-flow graphs in the language of Graphviz
    Show(ShowArgs),
    /// Lay .fw files out in the one style
    Fmt(FmtArgs),
    /// Translate a program into another format
    Convert(ConvertArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// How to read a program.
#[derive(Args)]
pub struct InputArgs {
    /// Set a top-level constant of the program, may be repeated
    #[arg(short = 'D', value_name = "NAME=VALUE", value_parser = define)]
    pub define: Vec<(String, i64)>,
    /// The format of the input; otherwise recognised by extension or content
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<FormatArg>,
}

/// What a search may use.
#[derive(Args)]
pub struct LimitArgs {
    /// Give up after this time (10s, 500ms, 2m, 1h, none), for each file and model
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = timeout)]
    pub timeout: Limit<Duration>,
    /// Give up beyond this much memory (512M, 2G, none)
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = memory)]
    pub memory: Limit<u64>,
}

/// `check`
#[derive(Args)]
pub struct CheckArgs {
    /// Programs; `-` is the standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    /// The memory model
    #[arg(long, default_value = "tso")]
    pub model: ModelArg,
    /// The engine: auto, explicit, cegar or lazy
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub engine: String,
    /// Check only this property, may be repeated; `deadlock` is always available
    #[arg(long, value_name = "NAME")]
    pub property: Vec<String>,
    /// The order of the search: bfs gives the shortest counterexamples, dfs needs less memory
    #[arg(long, value_name = "ORDER", default_value = "bfs")]
    pub search: SearchArg,
    /// How many threads to search with; 0 means all cores
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=256))]
    pub jobs: u16,
    /// At most N buffered stores in each thread; a run that needs more is `unknown`
    #[arg(long, value_name = "N")]
    pub buffer: Option<u32>,
    /// Switch off live variables: keep the values of registers that no longer matter
    #[arg(long)]
    pub no_live: bool,
    /// Switch off local events first: explore every interleaving
    #[arg(long)]
    pub no_local_first: bool,
    /// Engine cegar: how many stores of each buffer are kept in order at first
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(..=8))]
    pub k: Option<u32>,
    /// Engine cegar: which end of a buffer is kept in order
    #[arg(long, value_name = "END", default_value = "newest")]
    pub kept: KeptArg,
    /// Engine cegar: how integers are represented
    #[arg(long, value_name = "DOMAIN", default_value = "zones")]
    pub domain: DomainArg,
    /// Engine cegar: the clip constant of zones at first
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub clip: Option<u8>,
    /// Engine cegar: what stays as it starts instead of being refined; `predicates` are then those of the file
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub fix: Vec<FixArg>,
    #[command(flatten)]
    pub lazy: LazyArgs,
    /// Do not confirm verdicts: neither certificates nor the reference semantics
    #[arg(long)]
    pub no_certify: bool,
    /// Write the certificate of a proof to this file; one program and one model at a time
    #[arg(long, value_name = "OUT")]
    pub certificate: Option<PathBuf>,
    /// Print what was proved at each program point
    #[arg(long)]
    pub invariants: bool,
    /// Print one JSON object for each verdict
    #[arg(long)]
    pub json: bool,
    /// Print the verdicts only: no counterexamples, no notes, no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// How stores are delayed.
#[derive(Args)]
pub struct LazyArgs {
    /// Engine lazy: who says along which paths stores are delayed
    #[arg(long, value_name = "ORACLE", default_value = "robust")]
    pub oracle: OracleArg,
    /// Engine lazy: keep the store that a path starts with; then only a robust program is ever `safe`
    #[arg(long)]
    pub keep_store: bool,
    /// Engine lazy: give up after N rounds; for `show --extended`, how many (1 without it)
    #[arg(long, value_name = "N")]
    pub rounds: Option<u32>,
}

/// `robust`
#[derive(Args)]
pub struct RobustArgs {
    /// Programs; `-` is the standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    /// What is asked: robustness itself, or freedom from triangular races, which implies it
    #[arg(long, default_value = "happens-before")]
    pub notion: NotionArg,
    /// Examine every attack (a store that may be delayed past a load) and list them all
    #[arg(long)]
    pub all: bool,
    /// The engine that runs the attacks
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub engine: AttackEngineArg,
    /// How many threads to search with; 0 means all cores
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=256))]
    pub jobs: u16,
    /// Do not confirm verdicts: neither certificates nor the reference semantics
    #[arg(long)]
    pub no_certify: bool,
    /// Print one JSON object for each file
    #[arg(long)]
    pub json: bool,
    /// Print the verdicts only: no witnesses, no notes, no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// What `robust` asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NotionArg {
    /// Every execution has the happens-before relation of one under SC
    HappensBefore,
    /// No triangular race
    Triangular,
}

/// Which engine runs attacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AttackEngineArg {
    /// Explicit first, then both side by side
    Auto,
    /// Explicit states
    Explicit,
    /// Abstraction, for unbounded integers
    Cegar,
}

/// `fences`
#[derive(Args)]
pub struct FencesArgs {
    /// Programs; `-` is the standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    /// What the fences are for
    #[arg(long, default_value = "safety")]
    pub goal: GoalArg,
    /// The memory model: tso or pso
    #[arg(long, default_value = "tso")]
    pub model: ModelArg,
    /// Goal safety: only for this property, may be repeated
    #[arg(long, value_name = "NAME")]
    pub property: Vec<String>,
    /// Prices: fence=2,sfence=1,xchg=2 (only then a locked instruction may replace a store), loop=1 (more inside loops)
    #[arg(long, value_name = "WHAT=PRICE,...", default_value = "", value_parser = price)]
    pub price: PriceArg,
    /// List every set that is as cheap
    #[arg(long)]
    pub all: bool,
    /// Tell which of the fences already there are needed, instead of looking for more
    #[arg(long)]
    pub audit: bool,
    /// Print the edit that puts the fences in, as a unified diff
    #[arg(long)]
    pub diff: bool,
    /// Put the fences into the file
    #[arg(long)]
    pub write: bool,
    /// Do not show for each fence what happens without it
    #[arg(long)]
    pub no_evidence: bool,
    /// Do not confirm verdicts: neither certificates nor the reference semantics
    #[arg(long)]
    pub no_certify: bool,
    /// Print one JSON object for each file
    #[arg(long)]
    pub json: bool,
    /// Print the verdicts only: no places, no executions, no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// What fences are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GoalArg {
    /// The properties of the program hold
    Safety,
    /// Every execution looks like one under SC
    Robustness,
    /// No triangular race
    Triangular,
}

/// Prices of fences.
#[derive(Clone, Copy, Default)]
pub struct PriceArg {
    full: Option<u64>,
    store_store: Option<u64>,
    swap: Option<u64>,
    in_loop: Option<u64>,
}

impl PriceArg {
    /// The prices, those that were not given by default.
    pub fn prices(self) -> Prices {
        let defaults = Prices::default();
        Prices {
            full: self.full.unwrap_or(defaults.full),
            store_store: self.store_store.unwrap_or(defaults.store_store),
            swap: self.swap.or(defaults.swap),
            in_loop: self.in_loop.unwrap_or(defaults.in_loop),
        }
    }
}

fn price(text: &str) -> Result<PriceArg, String> {
    let mut prices = PriceArg::default();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (what, value) = part.split_once('=').ok_or("expected WHAT=PRICE")?;
        let value = value.parse::<u32>().map_err(|_| format!("`{value}` is not a price"))?;
        let slot = match what {
            "fence" => &mut prices.full,
            "sfence" => &mut prices.store_store,
            "xchg" => &mut prices.swap,
            "loop" => &mut prices.in_loop,
            _ => return Err(format!("`{what}` has no price; there is fence, sfence, xchg, loop")),
        };
        *slot = Some(u64::from(value));
    }
    Ok(prices)
}

/// `certify`
#[derive(Args)]
pub struct CertifyArgs {
    /// The certificate, as `check --certificate` writes it
    pub certificate: PathBuf,
    /// The program; `-` is the standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub input: InputArgs,
}

/// `litmus`
#[derive(Args)]
pub struct LitmusArgs {
    /// Litmus tests, .fw files with a `finally` property, or directories to search for .litmus files
    #[arg(required = true, value_name = "FILE|DIR")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    /// The memory model
    #[arg(long, default_value = "tso")]
    pub model: ModelArg,
    /// How many tests to run at the same time; 0 means as many as there are cores
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=256))]
    pub jobs: u16,
    /// Print one JSON array
    #[arg(long)]
    pub json: bool,
}

/// `run`
#[derive(Args)]
pub struct RunArgs {
    /// The program; `-` is the standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub input: InputArgs,
    /// The memory model
    #[arg(long, default_value = "tso")]
    pub model: OneModelArg,
    /// Makes the same choices again
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Stop after so many steps; 50 without --interactive
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
    /// Choose every step yourself
    #[arg(long, short)]
    pub interactive: bool,
}

/// `show`
#[derive(Args)]
pub struct ShowArgs {
    /// The program; `-` is the standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub input: InputArgs,
    /// Print, as .fw, the program extended so that it does under SC some of what it does under TSO, as engine lazy does
    #[arg(long)]
    pub extended: bool,
    #[command(flatten)]
    pub lazy: LazyArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// `fmt`
#[derive(Args)]
pub struct FmtArgs {
    /// .fw files; `-` formats the standard input to the standard output
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Change nothing, list the files that are not formatted and exit with 1 if there are any
    #[arg(long, conflicts_with = "stdout")]
    pub check: bool,
    /// Print the result instead of changing the files
    #[arg(long)]
    pub stdout: bool,
}

/// `convert`
#[derive(Args)]
pub struct ConvertArgs {
    /// The program; `-` is the standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub input: InputArgs,
    /// The format to translate into
    #[arg(long, value_name = "FORMAT")]
    pub to: FormatArg,
    /// Where to write the result; otherwise to the standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// One memory model.
#[derive(Clone, Copy)]
pub struct OneModelArg(pub MemoryModel);

impl ValueEnum for OneModelArg {
    fn value_variants<'a>() -> &'a [Self] {
        &[OneModelArg(MemoryModel::Sc), OneModelArg(MemoryModel::Tso), OneModelArg(MemoryModel::Pso)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
    }
}

/// One memory model, or all of them.
#[derive(Clone, Copy, ValueEnum)]
#[allow(missing_docs)]
pub enum ModelArg {
    Sc,
    Tso,
    Pso,
    All,
}

impl ModelArg {
    /// The memory models meant.
    pub fn models(self) -> &'static [MemoryModel] {
        match self {
            ModelArg::Sc => &[MemoryModel::Sc],
            ModelArg::Tso => &[MemoryModel::Tso],
            ModelArg::Pso => &[MemoryModel::Pso],
            ModelArg::All => &MemoryModel::ALL,
        }
    }
}

/// The order of the search.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
#[allow(missing_docs)]
pub enum SearchArg {
    Bfs,
    Dfs,
}

/// What engine cegar is not to refine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FixArg {
    /// How many stores are kept in order.
    K,
    /// The clip constant of zones.
    Clip,
    /// The predicates.
    Predicates,
}

/// Which end of a buffer is kept in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum KeptArg {
    Oldest,
    Newest,
}

/// How integers are represented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum DomainArg {
    Zones,
    Predicates,
}

/// Who says along which paths stores are delayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OracleArg {
    /// Robustness: where delaying a store can be seen
    Robust,
    /// Every path from a store to a load, the shortest first
    Enumerate,
}

/// A format.
#[derive(Clone, Copy)]
pub struct FormatArg(pub Format);

impl ValueEnum for FormatArg {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [FormatArg; 4] = [
            FormatArg(Format::Fw),
            FormatArg(Format::Rmm),
            FormatArg(Format::Trencher),
            FormatArg(Format::Litmus),
        ];
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
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

/// `NAME=VALUE`
fn define(text: &str) -> Result<(String, i64), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, as in -D N=4")?;
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() {
        return Err("expected a name before `=`".into());
    }
    let (sign, digits) = match value.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, value),
    };
    let magnitude = match digits.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    let plain = digits.starts_with(|c: char| c.is_ascii_digit());
    magnitude
        .ok()
        .filter(|_| plain)
        .and_then(|m| i64::try_from(m.checked_mul(sign)?).ok())
        .map(|value| (name.to_string(), value))
        .ok_or_else(|| format!("`{value}` is not an integer of 64 bits"))
}

/// A number and the unit behind it; the number is finite and not negative.
fn quantity(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim_start()))
}

/// `10s`, `500ms`, `2m`, `1h`, plain seconds, `none`
fn timeout(text: &str) -> Result<Limit<Duration>, String> {
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
fn memory(text: &str) -> Result<Limit<u64>, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

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
    fn constants() {
        let check =
            |text, name: &str, value| assert_eq!(define(text), Ok((name.to_string(), value)), "{text}");
        check("N=4", "N", 4);
        check("N = -4", "N", -4);
        check("N=0x10", "N", 16);
        check("N=-9223372036854775808", "N", i64::MIN);
        for wrong in ["N", "=4", "N=", "N=x", "N=--1", "N=+1", "N=9223372036854775808", "N=1.5"] {
            assert!(define(wrong).is_err(), "{wrong}");
        }
    }
}
