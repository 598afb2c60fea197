//! The log, on stderr.

use std::io::{self, IsTerminal};
use std::str::FromStr;
use std::sync::Arc;

use doze::broker::log_levels::{LogLevel, LogLevels, ROOT};
use parking_lot::Mutex;
use tracing::Level as TracingLevel;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, reload};

/// How much is logged, and how it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Logging {
    pub level: Level,
    pub format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(LevelFilter);

impl Default for Level {
    fn default() -> Level {
        Level(LevelFilter::INFO)
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Level, String> {
        Ok(Level(match text {
            "off" => LevelFilter::OFF,
            "error" => LevelFilter::ERROR,
            "warn" => LevelFilter::WARN,
            "info" => LevelFilter::INFO,
            "debug" => LevelFilter::DEBUG,
            "trace" => LevelFilter::TRACE,
            _ => return Err(format!("{text:?} is none of off, error, warn, info, debug and trace")),
        }))
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// How the log, and what is said on stdout, is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        match text {
            "text" => Ok(Format::Text),
            "json" => Ok(Format::Json),
            _ => Err(format!("{text:?} is neither text nor json")),
        }
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Format::Text => "text",
            Format::Json => "json",
        })
    }
}

/// Starts the log of this process. Once. Answers its loggers.
pub fn start(logging: &Logging) -> Arc<dyn LogLevels> {
    let loggers = Loggers::new(logging.level.0);
    let (filter, handle) = reload::Layer::new(loggers.targets());
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_target(false);
    let log = tracing_subscriber::registry().with(filter);
    match logging.format {
        Format::Text => log.with(lines.with_ansi(io::stderr().is_terminal())).init(),
        Format::Json => log.with(lines.json().flatten_event(true)).init(),
    }
    Arc::new(LiveLoggers { loggers: Mutex::new(loggers), handle })
}

/// The loggers that can have a level of their own: the parts of doze that log, by the names of their modules. Sorted.
const LOGGERS: [&str; 4] = ["doze::broker", "doze::net", "doze::serve", "doze::storage"];

/// Levels as they are set.
#[derive(Debug)]
struct Loggers {
    root: LogLevel,
    own: [Option<LogLevel>; LOGGERS.len()],
}

impl Loggers {
    fn new(level: LevelFilter) -> Loggers {
        Loggers { root: from_filter(level), own: [None; LOGGERS.len()] }
    }

    fn set(&mut self, name: &str, level: Option<LogLevel>) {
        match (LOGGERS.iter().position(|logger| *logger == name), level) {
            (Some(at), level) => self.own[at] = level,
            (None, Some(level)) => self.root = level,
            (None, None) => {}
        }
    }

    fn levels(&self) -> Vec<(&'static str, LogLevel)> {
        let own = LOGGERS.iter().zip(self.own).map(|(name, level)| (*name, level.unwrap_or(self.root)));
        own.chain([(ROOT, self.root)]).collect()
    }

    fn targets(&self) -> Targets {
        let own = LOGGERS.iter().zip(self.own).filter_map(|(name, level)| Some((*name, to_filter(level?))));
        Targets::new().with_default(to_filter(self.root)).with_targets(own)
    }
}

/// The loggers of this process.
#[derive(Debug)]
struct LiveLoggers {
    loggers: Mutex<Loggers>,
    handle: reload::Handle<Targets, Registry>,
}

impl LogLevels for LiveLoggers {
    fn levels(&self) -> Vec<(&'static str, LogLevel)> {
        self.loggers.lock().levels()
    }

    fn set(&self, changes: &[(&str, Option<LogLevel>)]) {
        let mut loggers = self.loggers.lock();
        for (name, level) in changes {
            loggers.set(name, *level);
        }
        // It only fails when the log is gone, and then nobody reads it.
        let _ = self.handle.reload(loggers.targets());
    }
}

fn from_filter(level: LevelFilter) -> LogLevel {
    match level.into_level() {
        None => LogLevel::Off,
        Some(TracingLevel::ERROR) => LogLevel::Error,
        Some(TracingLevel::WARN) => LogLevel::Warn,
        Some(TracingLevel::INFO) => LogLevel::Info,
        Some(TracingLevel::DEBUG) => LogLevel::Debug,
        Some(TracingLevel::TRACE) => LogLevel::Trace,
    }
}

fn to_filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Off | LogLevel::Fatal => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// What logs without a logger of its own could not be turned up alone.
    #[test]
    fn every_part_that_logs_has_a_logger() {
        fn logs(path: &Path) -> bool {
            match path.is_dir() {
                true => std::fs::read_dir(path).unwrap().any(|entry| logs(&entry.unwrap().path())),
                false if path.extension().is_some_and(|extension| extension == "rs") => {
                    std::fs::read_to_string(path).unwrap().contains("tracing::")
                }
                false => false,
            }
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut found = vec![];
        for folder in ["src", "commands"] {
            for entry in std::fs::read_dir(root.join(folder)).unwrap() {
                let path = entry.unwrap().path();
                if logs(&path) {
                    found.push(format!("doze::{}", path.file_stem().unwrap().to_str().unwrap()));
                }
            }
        }
        found.sort();
        found.dedup();
        assert_eq!(found, LOGGERS);
    }

    #[test]
    fn a_logger_has_the_level_of_the_root_until_it_has_its_own() {
        let mut loggers = Loggers::new(LevelFilter::WARN);
        loggers.set("doze::net", Some(LogLevel::Debug));
        loggers.set(ROOT, Some(LogLevel::Error));
        let level = |loggers: &Loggers, name: &str| loggers.levels().into_iter().find(|(n, _)| *n == name).unwrap().1;
        assert_eq!(level(&loggers, "doze::net"), LogLevel::Debug);
        assert_eq!(level(&loggers, "doze::broker"), LogLevel::Error);
        let targets = loggers.targets();
        assert!(targets.would_enable("doze::net::server", &TracingLevel::DEBUG));
        assert!(!targets.would_enable("doze::broker::topics", &TracingLevel::WARN));
        loggers.set("doze::net", None);
        assert_eq!(level(&loggers, "doze::net"), LogLevel::Error);
        assert!(!loggers.targets().would_enable("doze::net::server", &TracingLevel::WARN));
        loggers.set(ROOT, Some(LogLevel::Fatal));
        assert!(!loggers.targets().would_enable("doze::net::server", &TracingLevel::ERROR));
    }
}
