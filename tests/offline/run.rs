//! Runs the executable.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// How a run ended.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// A command with these arguments, without the `DOZE_*` variables that whoever runs the tests may have set.
pub fn command<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_doze"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("DOZE_")) {
        command.env_remove(name);
    }
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub fn doze<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    let Output { status, stdout, stderr } = command(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Run { code: status.code().unwrap(), stdout: text(stdout), stderr: text(stderr) }
}

impl Run {
    /// The objects that were printed with `--json`.
    pub fn objects(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Those of one `type`.
    pub fn objects_of(&self, kind: &str) -> Vec<Value> {
        self.objects().into_iter().filter(|object| object["type"] == kind).collect()
    }
}

/// A path as an argument.
pub fn arg(path: &Path) -> &OsStr {
    path.as_os_str()
}
