//! Looks at a stopped data directory and says what is damaged. Never writes.
//!
//! [`Finding`] is one thing that is not as it should be, [`Report`] all of them with what was looked at and what was not.

mod finding;
mod report;

pub use finding::{Consequence, Finding, Kind, Repair};
pub use report::{Level, PartitionReport, Report, Totals, Unchecked};
