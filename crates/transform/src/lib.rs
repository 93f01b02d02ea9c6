//! Transformations: programs made from other programs, so that executions under SC of the new program stand for executions under
//! TSO of the old one, or executions under TSO for executions under PSO, or fewer executions for all.
//!
//! * [`attack`]: the program with its attacks in it, which decides robustness;
//! * [`extend`]: the program with stores delayed along some of its paths, for lazy reachability, or behind others;
//! * [`separated`]: no transformation at all, but which programs do under PSO what they do under TSO;
//! * [`mod@slice`]: the program without the threads that cannot matter for a property, under any memory model;
//! * [`narrow`]: the program whose choices have fewer values, under any memory model.
//!
//! A transformation is part of the trusted base for proofs about the new program that are read as proofs about the old one. Hence this
//! crate depends on programs and the kit, and on nothing else.
//!
//! A choice among four billion values of which only two are told apart needs few of them:
//!
//! ```
//! use fencewright_program::{Action, Op};
//!
//! let text = b"shared x; thread p { var r; r = * in -2147483648..=2147483647; assume r == 7; x = r; }";
//! let program = fencewright_lang::load("p.fw", text, None, &[]).expect("it is right").program;
//! let narrowed = fencewright_transform::narrow::narrowed(&program).expect("fewer are enough");
//! let Action::Op(Op::Havoc(_, Some(range))) = &narrowed.threads[0].edges[0].action else { panic!("it begins with a choice") };
//! assert!(range.size() <= 3);
//! ```

#![forbid(unsafe_code)]

pub mod attack;
pub mod extend;
pub mod narrow;
pub mod separated;
pub mod slice;
