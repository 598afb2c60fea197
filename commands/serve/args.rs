//! The arguments of `doze serve`, as they were typed.
//!
//! The fields of [`ServeArgs`] define the flags. Their values are read from clap's matches, which also know whether one
//! was typed or stood in a variable.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args};

use super::file;
use super::layers::{FLAGS, Flag, Layer, Origin};
use crate::cli;
use crate::exit::Failure;

/// Run the broker
///
/// Each setting is taken from its flag, else from its DOZE_* variable, else from the file that --config names, else it
/// has its default. Nothing has to be set: the broker then listens on 127.0.0.1:9092 and keeps its data in ./data,
/// which is made where it does not exist.
///
/// When it can be used, the broker prints one line to stdout: "doze is ready on ADDRESS:PORT". Everything else goes to
/// stderr. SIGTERM and Ctrl-C make it answer what it has read, flush everything to the disk and stop; a second one stops
/// it at once.
#[derive(Args, Debug)]
#[command(after_long_help = cli::help_of(&cli::sections("serve")))]
pub struct ServeArgs {
    /// The address to listen on. Port 0 picks a free one. Kafka's listeners [default: 127.0.0.1:9092]
    #[arg(long, value_name = "HOST:PORT", env = "DOZE_LISTEN", hide_env_values = true)]
    listen: Option<String>,

    /// The address that clients are told to connect to. Kafka's advertised.listeners [default: the one that each
    /// client connected to]
    #[arg(long, value_name = "HOST:PORT", env = "DOZE_ADVERTISE", hide_env_values = true)]
    advertise: Option<String>,

    /// Where the data is kept. Kafka's log.dirs [default: ./data]
    #[arg(long, value_name = "DIR", env = "DOZE_DATA_DIR", hide_env_values = true, value_hint = clap::ValueHint::DirPath)]
    data_dir: Option<String>,

    /// The file of topics, committed offsets and producer ids [default: meta.db in the data directory]
    #[arg(long, value_name = "FILE", env = "DOZE_META_DB", hide_env_values = true, value_hint = clap::ValueHint::FilePath)]
    meta_db: Option<String>,

    /// How large a segment gets before a new one is begun, at least 1048576. Kafka's log.segment.bytes [default:
    /// 134217728]
    #[arg(long, value_name = "BYTES", env = "DOZE_SEGMENT_BYTES", hide_env_values = true)]
    segment_bytes: Option<String>,

    /// How many bytes of a segment lie between two entries of its index. Kafka's log.index.interval.bytes [default:
    /// 4096]
    #[arg(long, value_name = "BYTES", env = "DOZE_INDEX_INTERVAL_BYTES", hide_env_values = true)]
    index_interval_bytes: Option<String>,

    /// How often everything written is flushed to the disk, as 500ms, 2s, 1m or a number of milliseconds; 0 never.
    /// Records sent with acks=all are flushed before they are acknowledged, whatever this is [default: 500ms]
    #[arg(long, value_name = "TIME", env = "DOZE_FSYNC_INTERVAL", hide_env_values = true)]
    fsync_interval: Option<String>,

    /// Delete the oldest segments of a partition that is larger than this; -1 deletes none. Kafka's
    /// log.retention.bytes [default: -1]
    #[arg(
        long,
        value_name = "BYTES",
        env = "DOZE_RETENTION_BYTES",
        hide_env_values = true,
        allow_hyphen_values = true
    )]
    retention_bytes: Option<String>,

    /// Delete segments whose newest record is older than this many milliseconds; -1 deletes none. Kafka's
    /// log.retention.ms [default: -1]
    #[arg(long, value_name = "MS", env = "DOZE_RETENTION_MS", hide_env_values = true, allow_hyphen_values = true)]
    retention_ms: Option<String>,

    /// Whether a topic is created when a client asks for one that does not exist. Kafka's auto.create.topics.enable
    /// [default: true]
    #[arg(long, value_name = "BOOL", env = "DOZE_AUTO_CREATE_TOPICS", hide_env_values = true)]
    auto_create_topics: Option<String>,

    /// How many partitions a topic gets when its creator does not say. Kafka's num.partitions [default: 1]
    #[arg(long, value_name = "COUNT", env = "DOZE_DEFAULT_PARTITIONS", hide_env_values = true)]
    default_partitions: Option<String>,

    /// How many bytes of sealed segments are read again in a second, in the background, to find what has rotted on the disk;
    /// 0 turns that off [default: 4194304]
    #[arg(long, value_name = "BYTES", env = "DOZE_SCRUB_RATE", hide_env_values = true)]
    scrub_rate: Option<String>,

    /// How long after the start of one such pass over all sealed segments the next begins, as 7d, 12h or 30m, at least 1s
    /// [default: 7d]
    #[arg(long, value_name = "TIME", env = "DOZE_SCRUB_INTERVAL", hide_env_values = true)]
    scrub_interval: Option<String>,

    /// Set a broker config under Kafka's name. Can be given several times; of two for the same key the later counts.
    /// DOZE_OVERRIDE holds several, separated by semicolons
    #[arg(
        long = "override",
        value_name = "KEY=VALUE",
        env = "DOZE_OVERRIDE",
        hide_env_values = true,
        value_delimiter = None,
        action = clap::ArgAction::Append
    )]
    overrides: Vec<String>,

    /// How much is logged: off, error, warn, info, debug or trace [default: info]
    #[arg(long, value_name = "LEVEL", env = "DOZE_LOG_LEVEL", hide_env_values = true)]
    log_level: Option<String>,

    /// How the log and the ready line are written: text or json, one object a line [default: text]
    #[arg(long, value_name = "FORMAT", env = "DOZE_LOG_FORMAT", hide_env_values = true)]
    log_format: Option<String>,

    /// A TOML file of settings: the long flags without their dashes in front, and broker configs under Kafka's names
    #[arg(long, value_name = "FILE", env = "DOZE_CONFIG", hide_env_values = true, value_hint = clap::ValueHint::FilePath)]
    config: Option<String>,

    /// Print each setting with its value and where it is from, as a file for --config, and exit
    #[arg(long)]
    pub print_config: bool,
}

/// Sections of help and of the man page.
pub fn sections() -> Vec<(&'static str, String)> {
    let examples = "  doze serve
      Listen on 127.0.0.1:9092, keep the data in ./data.

  doze serve --listen 127.0.0.1:0 --data-dir /tmp/test
      For a test: pick a free port; the ready line names it.

  doze serve --listen 0.0.0.0:9092 --advertise broker.example.org:9092
      Clients reach it from elsewhere, under this name.

  doze serve --retention-ms 86400000 --override log.cleanup.policy=compact,delete
      Keep a day, and of each key the newest record.

  doze serve --config doze.toml --print-config
      Show what would be in force, and where each value is from.";
    let kafka = "  --override, DOZE_OVERRIDE and the file take every broker config of Apache Kafka 4.3. One that is
  unknown, or a bad value, is refused. One that means nothing on a single node is accepted and
  named in the log. A flag and --override may not both be given for the same config. Where the same
  config is set in several places the flags and --override count before the variables, and those
  before the file; so do configs that say the same in other units (log.retention.hours and
  log.retention.ms).";
    let file = "  listen = \"0.0.0.0:9092\"
  fsync-interval = \"250ms\"
  log.retention.hours = 24
  \"max.connections\" = 500

  A name may be in quotes, and must be where another name goes on after it.";
    let variables = "  DOZE_LISTEN, DOZE_DATA_DIR and so on: one for each flag, as the list above names them.";
    vec![
        ("Examples", examples.to_owned()),
        ("Kafka's configs", kafka.to_owned()),
        ("The file", file.to_owned()),
        ("Environment", variables.to_owned()),
    ]
}

/// What was given where, the first to count first: flags, variables, the file.
pub fn given(matches: &ArgMatches) -> Result<Vec<Layer>, Failure> {
    let mut flags = Layer::default();
    let mut variables = Layer::default();
    let from = |id: &str| matches.value_source(id);
    for flag in FLAGS {
        let id = flag.name.replace('-', "_");
        let Some(text) = matches.get_one::<String>(&id) else { continue };
        match from(&id) {
            Some(ValueSource::EnvVariable) => variables.flag(flag, text, Origin::Variable(variable_of(flag)))?,
            _ => flags.flag(flag, text, Origin::Flag(format!("--{}", flag.name)))?,
        }
    }
    // clap hands out the variable only where the flag is not given, and both count.
    if from("overrides") != Some(ValueSource::EnvVariable) {
        for entry in matches.get_many::<String>("overrides").into_iter().flatten() {
            flags.assignment(entry, &Origin::Flag("--override".into()))?;
        }
    }
    if let Some(all) = std::env::var_os("DOZE_OVERRIDE") {
        let origin = Origin::Variable("DOZE_OVERRIDE".into());
        let all = all.to_str().ok_or_else(|| Failure::could_not_run(format!("{origin}: {all:?} is not UTF-8")))?;
        for entry in all.split(';').map(str::trim).filter(|entry| !entry.is_empty()) {
            variables.assignment(entry, &origin)?;
        }
    }
    let mut layers = vec![flags, variables];
    if let Some(path) = matches.get_one::<String>("config") {
        layers.push(file::read(path.as_ref())?);
    }
    Ok(layers)
}

fn variable_of(flag: &Flag) -> String {
    format!("DOZE_{}", flag.name.replace('-', "_").to_uppercase())
}
