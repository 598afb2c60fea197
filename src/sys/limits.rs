//! What the operating system allows the process, and what it says of it.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the soft limit on open files to the hard one. Answers the limit that is then in force; `None` is unlimited.
pub fn raise_open_file_limit() -> Option<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    // macOS says "unlimited" and then refuses it; this is the largest value that it takes.
    let most =
        if cfg!(target_os = "macos") { limit.maximum.map_or(10_240, |m| m.min(10_240)).into() } else { limit.maximum };
    if limit.current != most {
        let before = limit.current;
        limit.current = most;
        if setrlimit(Resource::Nofile, limit).is_err() {
            return before;
        }
    }
    most
}

/// Bytes of memory that the process has resident now. `None` where the system does not tell.
pub fn resident_bytes() -> Option<u64> {
    status_field("VmRSS:")
}

/// The most bytes that the process ever had resident. `None` where the system does not tell.
pub fn peak_resident_bytes() -> Option<u64> {
    status_field("VmHWM:")
}

fn status_field(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
