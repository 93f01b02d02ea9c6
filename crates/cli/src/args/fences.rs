//! The command line of `fences`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fencewright::NoOverflow;
use fencewright::fences::Prices;

use super::{AnalysisArgs, ModelArg, OUTPUT, SearchArgs};

/// `fences`
#[derive(Args)]
#[command(mut_arg("quiet", |arg| arg.help("Print the verdicts only: no places, no executions, no progress")))]
pub struct FencesArgs {
    #[command(flatten)]
    pub common: AnalysisArgs,
    /// What the fences are for
    #[arg(long, default_value = "safety")]
    pub goal: GoalArg,
    /// The memory model: tso or pso
    #[arg(long, default_value = "tso")]
    pub model: ModelArg,
    /// Goal safety: only for this property, may be repeated
    #[arg(long, value_name = "NAME")]
    pub property: Vec<String>,
    /// Also keep every buffer within K stores: of each thread, under pso of each thread to each variable (K/thread: of each thread)
    #[arg(long, value_name = "K", value_parser = no_overflow)]
    pub no_overflow: Option<NoOverflow>,
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
    #[arg(long, help_heading = OUTPUT)]
    pub diff: bool,
    /// Put the fences into the file
    #[arg(long, help_heading = OUTPUT)]
    pub write: bool,
    /// Write the answers to this file as a page for a browser: the text with its fences, and why each of them
    #[arg(long, value_name = "OUT", help_heading = OUTPUT)]
    pub html: Option<PathBuf>,
    /// Do not show for each fence what happens without it
    #[arg(long, help_heading = OUTPUT)]
    pub no_evidence: bool,
    #[command(flatten)]
    pub search: SearchArgs,
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

/// More stores than this are not worth keeping apart: the checker knows no larger buffers.
const MOST_STORES: u8 = 64;

/// `K`, `K/thread`, `K/variable`
fn no_overflow(text: &str) -> Result<NoOverflow, String> {
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
