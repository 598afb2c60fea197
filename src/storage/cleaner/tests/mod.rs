//! Cleaning, against a model of what a log should hold; and with a disk that fails.

mod faults;
pub(in crate::storage) mod model;
mod old_sets;
mod random;
mod rules;
mod scheduling;
