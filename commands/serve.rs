//! `doze serve`: settings, logging, signals, and what is said about the start and the stop.
//!
//! Everything that can be wrong with the settings is found before anything is touched.

mod args;
mod file;
mod layers;
mod logging;
mod print;
mod run;
mod server;

use clap::ArgMatches;

pub use args::{ServeArgs, sections};

use crate::exit::Failure;

/// Runs the broker until it is told to stop, or prints its settings.
pub fn run(args: &ServeArgs, matches: &ArgMatches) -> Result<(), Failure> {
    let mut resolved = layers::resolve(&args::given(matches)?)?;
    if args.print_config {
        return print::print(&resolved);
    }
    resolved.settings.log_levels = Some(logging::start(&resolved.logging));
    for (name, why) in resolved.settings.config.without_effect() {
        tracing::info!("{name} is accepted and has no effect: {why}");
    }
    for key in &resolved.foreign {
        tracing::warn!("{key} is no config of Apache Kafka's or doze's, and has no effect");
    }
    run::run(resolved)
}
