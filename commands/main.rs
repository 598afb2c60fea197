//! The executable: arguments, settings, output and exit codes. The engine is the library, and is reached through its
//! public API alone.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod cli;
mod compact;
mod completions;
mod dump_segment;
mod exit;
mod format;
#[cfg(test)]
mod generated;
mod inspect;
mod offline;
mod output;
mod progress;
mod recover;
mod serve;
mod verify;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use cli::{Cli, Command};

fn main() -> ExitCode {
    // clap ends the process itself for --help (0) and for wrong usage (2).
    let matches = Cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let (_, matches) = matches.subcommand().expect("clap asks for a command");
    let result = match cli.command {
        Command::Serve(args) => serve::run(&args, matches),
        Command::Compact(args) => compact::run(&args),
        Command::Recover(args) => recover::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::DumpSegment(args) => dump_segment::run(&args),
        Command::Completions(args) => completions::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
