//! The commands on a stopped data directory, as their users have them: the executable is run over directories that the
//! engine made, and what it prints and how it ends is looked at.

#![allow(clippy::unwrap_used)]

mod compact;
mod compact_kafka;
mod corpus;
mod dump;
mod flips;
mod frame;
mod inspect;
mod kafka_dir;
mod make;
mod recover;
mod run;
mod verify;
mod verify_command;
