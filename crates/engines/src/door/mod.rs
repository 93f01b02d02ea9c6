//! Tests of the door with the engines that come to it.

mod lying;
mod tests;

use crate::{Checked, Condition, Confirm, Doubt, Verdict, check, check_each};
