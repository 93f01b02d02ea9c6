//! Tests of the checks that every verdict passes, with real and with faulty engines.

mod lying;
mod tests;

use crate::{Checked, Condition, Confirm, Doubt, Verdict, check, check_each};
