//! All integration tests of this crate. They are modules of one program, so that it is linked only once.

mod hostile;
mod random;
mod xorshift;
