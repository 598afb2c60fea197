//! Exit codes, the same for every command.

use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// How a command ends when it does not run to a good end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Whoever read the output has closed it: nothing is wrong, and there is nothing more to do.
    ClosedPipe = 0,
    /// Damage was found, or is left.
    Damage = 1,
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

    /// The command did what it was asked for, and found damage.
    pub fn damage(message: impl Into<String>) -> Failure {
        Failure::new(Code::Damage, message)
    }

    /// An error with what led to it.
    pub fn of(code: Code, error: &dyn Error) -> Failure {
        Failure::new(code, with_causes(error))
    }

    /// Writing to stdout failed. That nobody reads it any more is no error.
    pub fn stdout(error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::new(Code::ClosedPipe, "stdout is closed"),
            _ => Failure::could_not_run(format!("cannot write to stdout: {error}")),
        }
    }

    /// Tells it on stderr.
    pub fn report(&self) -> ExitCode {
        if self.code != Code::ClosedPipe {
            // Where nobody reads that either, the exit code says it.
            let _ = writeln!(io::stderr(), "doze: {self}");
        }
        ExitCode::from(self.code as u8)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// An error with what led to it, in one sentence.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Some errors say their cause themselves.
        if !text.contains(&more) {
            text += &format!(": {more}");
        }
        cause = error.source();
    }
    text
}
