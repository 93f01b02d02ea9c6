//! Summary cells: compares domains and the certificate checker with an interpreter in which a summary cell has a set of values, and tests proofs that
//! need summary cells.

mod certificates;
mod domains;
mod proofs;
