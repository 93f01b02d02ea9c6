//! Summary cells: domains and the certificate checker against an interpreter in which a summary cell is a set of values, and proofs
//! that need them.

mod certificates;
mod domains;
mod proofs;
