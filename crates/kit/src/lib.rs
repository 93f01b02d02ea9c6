//! What everybody needs who makes programs, or makes programs from programs: source languages, transformations, fence placement, engines.
//!
//! Transformations that certificates name use this crate, so it counts among what such certificates stand on.

#![forbid(unsafe_code)]

pub mod accesses;
pub mod choices;
