//! The commands and what help says of them. Man pages and completions are made from here too.

use clap::{Parser, Subcommand};

use crate::compact::CompactArgs;
use crate::completions::CompletionsArgs;
use crate::dump_segment::DumpSegmentArgs;
use crate::exit;
use crate::inspect::InspectArgs;
use crate::recover::RecoverArgs;
use crate::serve::ServeArgs;
use crate::verify::VerifyArgs;

/// A Kafka broker in one executable, durable through a power cut
///
/// `doze serve` is a Kafka broker of one node. Clients of Apache Kafka talk to it as they are. What a producer has
/// been told is stored with acks=all is on the disk, and the files are Kafka's own log segments.
#[derive(Debug, Parser)]
#[command(name = "doze", version, max_term_width = 100, after_long_help = exit_codes(), disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Serve(Box<ServeArgs>),
    Compact(Box<CompactArgs>),
    Recover(Box<RecoverArgs>),
    Verify(Box<VerifyArgs>),
    Inspect(InspectArgs),
    #[command(name = "dump-segment")]
    DumpSegment(Box<DumpSegmentArgs>),
    Completions(CompletionsArgs),
}

fn exit_codes() -> String {
    format!("Exit codes:\n{}", exit::TABLE)
}

/// Further sections of a command's man page, with their titles. Help has them as well.
pub fn sections(command: &str) -> Vec<(&'static str, String)> {
    let mut sections = match command {
        "serve" => crate::serve::sections(),
        "compact" => crate::compact::sections(),
        "recover" => crate::recover::sections(),
        "verify" => crate::verify::sections(),
        "inspect" => crate::inspect::sections(),
        "dump-segment" => crate::dump_segment::sections(),
        "completions" => crate::completions::sections(),
        _ => Vec::new(),
    };
    sections.push(("Exit codes", exit::TABLE.to_owned()));
    sections
}

/// The sections as they stand at the end of `--help`.
pub fn help_of(sections: &[(&str, String)]) -> String {
    let blocks: Vec<String> = sections.iter().map(|(title, text)| format!("{title}:\n{text}")).collect();
    blocks.join("\n\n")
}
