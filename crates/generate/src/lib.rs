//! Families of programs over infinite data domains, written as .fw text.
//!
//! The families are from CONTEXT24 (Abdulla, Atig, Furbach and Garg, Verification under TSO with an infinite data domain): the lock of its section 4,
//! the programs of its hardness proofs (sections 5 and 6.1), and random programs of the fragment that it decides. These programs only guess, copy and
//! compare values, and are hard for engines. The same parameters give the same text on every machine, formatted as by `fencewright fmt`.
//!
//! ```
//! use fencewright_generate::Family;
//!
//! let text = Family::Bakery { threads: 3, fences: true }.text().expect("there may be three threads");
//! assert!(text.contains("thread p[me in 0..N]"), "{text}");
//! ```

#![forbid(unsafe_code)]

pub mod automata;
pub mod bakery;
mod choice;
mod family;
pub mod lossy;
pub mod random;
mod text;

pub use choice::Random;
pub use family::{Family, OutOfRange};
