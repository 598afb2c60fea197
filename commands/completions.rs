//! `doze completions`: completion scripts for shells.

use std::io::{self, Write};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::{self, Cli};
use crate::exit::Failure;

/// Print the completion script of a shell
///
/// The script goes to stdout. Put it where the shell looks for completions.
#[derive(Args, Debug)]
#[command(after_long_help = cli::help_of(&cli::sections("completions")))]
pub struct CompletionsArgs {
    /// The shell to complete for
    pub shell: Shell,
}

pub fn sections() -> Vec<(&'static str, String)> {
    let examples = "  doze completions bash > ~/.local/share/bash-completion/completions/doze
  doze completions zsh > \"${fpath[1]}/_doze\"
  doze completions fish > ~/.config/fish/completions/doze.fish";
    vec![("Examples", examples.to_owned())]
}

pub fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    match io::stdout().lock().write_all(&script(args.shell)) {
        Ok(()) => Ok(()),
        Err(error) => Err(Failure::stdout(&error)),
    }
}

pub fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "doze", &mut script);
    script
}
