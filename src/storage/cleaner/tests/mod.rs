//! Cleaning, against a model of what a log should hold; and with a disk that fails.

mod faults;
mod model;
mod random;
mod rules;
mod scheduling;
