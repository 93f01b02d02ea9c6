//! Transformations of programs. Depending on the transformation, SC executions of the new program represent TSO executions of the old one, or TSO
//! executions represent PSO executions, or fewer executions represent all of them.
//!
//! * [`attack`]: instruments a program with attacks, which decides robustness;
//! * [`extend`]: delays stores along some paths, for lazy reachability, or behind other stores, for PSO by way of TSO;
//! * [`separated`]: not a transformation, but a criterion for programs for which PSO is TSO;
//! * [`mod@slice`]: omits the threads that are irrelevant to a property, under any memory model;
//! * [`narrow`]: restricts choices to fewer values, under any memory model.
//!
//! A transformation is part of the trusted base if a proof about the new program is used as a proof about the old one. Hence this crate depends only
//! on `program` and `kit`.
//!
//! A choice among four billion values of which the program distinguishes only two can be narrowed to a few values:
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
