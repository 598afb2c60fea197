//! Exit codes, the same for every command.

use std::fmt;
use std::process::ExitCode;

/// How a command ends when it does not end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Wrong usage, or it could not run.
    CouldNotRun = 2,
    /// Another process holds the directory.
    InUse = 3,
    /// Not a data directory, or one of a newer format.
    NotADataDirectory = 4,
}

/// The table for help and man pages.
pub const TABLE: &str = "  0  fine
  1  damage was found, or is left
  2  wrong usage, or it could not run
  3  the directory is in use
  4  not a data directory, or one of a newer format";

/// Why a command did not do what it was asked for: an exit code, and one sentence for the person who asked.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    pub code: Code,
    pub message: String,
}

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }

    /// Wrong usage, or it could not run.
    pub fn could_not_run(message: impl Into<String>) -> Failure {
        Failure::new(Code::CouldNotRun, message)
    }

    /// Tells it on stderr.
    pub fn report(&self) -> ExitCode {
        eprintln!("doze: {self}");
        ExitCode::from(self.code as u8)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
