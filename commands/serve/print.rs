//! `--print-config`: what is in force, as a file that `--config` takes.

use std::io::{self, Write};
use std::path::PathBuf;

use doze::broker::config::table::BROKER;
use doze::broker::config::{Def, Effect, Value};
use doze::broker::settings::Settings;

use super::layers::{FLAGS, Given, Origin, Resolved, duration_text};
use super::logging::Format;
use crate::exit::Failure;

/// One line of it.
struct Line {
    name: String,
    /// `None` is null, or not to be shown.
    value: Option<Shown>,
    /// What is said behind the value: where it is from, first of all.
    remark: String,
    /// Only to be read: the same setting stands elsewhere too.
    again: bool,
}

/// A value as text, and whether it is a text in TOML as well.
struct Shown {
    text: String,
    quoted: bool,
}

/// Prints it to stdout.
pub fn print(resolved: &Resolved) -> Result<(), Failure> {
    let lines = lines(resolved);
    let text = match resolved.logging.format {
        Format::Text => as_toml(&lines),
        Format::Json => as_json(&lines),
    };
    match io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => Ok(()),
        Err(error) => Err(Failure::stdout(&error)),
    }
}

fn as_toml(lines: &[Line]) -> String {
    let mut text = String::from("# The settings of doze serve, in the form that --config reads.\n\n");
    for line in lines {
        let name = if line.name.contains('.') { format!("\"{}\"", line.name) } else { line.name.clone() };
        text += &match &line.value {
            Some(value) if line.again => format!("# {name} = {}  # {}\n", value.toml(), line.remark),
            Some(value) => format!("{name} = {}  # {}\n", value.toml(), line.remark),
            None => format!("# {name} =   # {}\n", line.remark),
        };
    }
    text
}

fn as_json(lines: &[Line]) -> String {
    lines
        .iter()
        .map(|line| {
            let value = line.value.as_ref().map(|value| &value.text);
            format!("{}\n", serde_json::json!({"name": line.name, "value": value, "from": line.remark}))
        })
        .collect()
}

/// Where the catalog is looked for first.
fn meta_db(settings: &Settings) -> PathBuf {
    settings.meta_db.clone().unwrap_or_else(|| settings.data_dir.join("meta.db"))
}

fn lines(resolved: &Resolved) -> Vec<Line> {
    let settings = &resolved.settings;
    let mut lines = Vec::new();
    for flag in FLAGS {
        let mut line = Line {
            name: flag.name.into(),
            value: flag.kafka.and_then(|key| settings.config.get(key)).map(shown),
            remark: from(resolved.given.get(flag.key())),
            again: false,
        };
        match flag.name {
            "listen" => line.value = Some(quoted(&settings.listen)),
            "advertise" => line.value = settings.advertise.as_ref().map(quoted),
            "data-dir" => line.value = Some(quoted(&settings.data_dir.display())),
            "meta-db" => line.value = Some(quoted(&meta_db(settings).display())),
            "fsync-interval" => {
                line.value = Some(quoted(&duration_text(settings.fsync_interval.unwrap_or_default())));
            }
            "scrub-rate" => line.value = Some(plain(&settings.scrub.bytes_per_second)),
            "scrub-interval" => line.value = Some(quoted(&duration_text(settings.scrub.interval))),
            "log-level" => line.value = Some(quoted(&resolved.logging.level)),
            "log-format" => line.value = Some(quoted(&resolved.logging.format)),
            _ => {}
        }
        match (flag.name, &line.value) {
            ("advertise", None) => line.remark += "; each client is told the address that it connected to",
            ("retention-ms", None) => line.remark += "; log.retention.minutes or log.retention.hours counts",
            // What Kafka's log.dir was given for is not given again.
            ("data-dir", Some(_)) if resolved.given.contains_key("log.dir") => {
                line.again = settings.config.get("log.dirs").is_none();
            }
            _ => {}
        }
        lines.push(line);
    }
    for def in BROKER.iter().filter(|def| !def.internal || resolved.given.contains_key(def.name)) {
        lines.push(broker_line(resolved, def));
    }
    let listener_keys = resolved.given.iter().filter(|(key, _)| key.starts_with("listener.name."));
    lines.extend(listener_keys.map(|(key, given)| Line {
        name: key.clone(),
        value: None,
        remark: format!("{}; set, and without effect: doze has one listener", from(Some(given))),
        again: false,
    }));
    lines
}

fn broker_line(resolved: &Resolved, def: &Def) -> Line {
    let given = resolved.given.get(def.name);
    let mut remark = from(given);
    if let (Some(_), Effect::Idle(why)) = (given, def.effect) {
        remark += &format!("; without effect: {why}");
    }
    let mut value = resolved.settings.config.get(def.name).map(shown);
    if def.is_sensitive() && value.take().is_some() {
        remark += "; set, and not shown";
    }
    // One setting under two names is given once.
    let flag = FLAGS.iter().find(|flag| flag.kafka == Some(def.name));
    if let Some(flag) = flag {
        remark = format!("{} above", flag.name);
    }
    Line { name: def.name.into(), value, remark, again: flag.is_some() || is_other_name(resolved, def.name) }
}

/// Whether this is the one of two names for the same setting that need not be given.
fn is_other_name(resolved: &Resolved, name: &str) -> bool {
    match name {
        // Both are there whichever was given.
        "broker.id" => true,
        // It counts where data-dir does not.
        "log.dir" => !resolved.given.contains_key("log.dir") || resolved.settings.config.get("log.dirs").is_some(),
        _ => false,
    }
}

fn from(given: Option<&Given>) -> String {
    match given.map(|given| &given.origin) {
        Some(Origin::Flag(name)) => format!("from the flag {name}"),
        Some(Origin::Variable(name)) => format!("from the variable {name}"),
        Some(Origin::File(path, _)) => format!("from the file {}", path.display()),
        None => "default".into(),
    }
}

fn shown(value: &Value) -> Shown {
    // Kafka writes doubles in ways that TOML does not know.
    let quoted = matches!(value, Value::Double(_) | Value::Text(_) | Value::List(_));
    Shown { text: value.to_string(), quoted }
}

fn quoted(text: &impl ToString) -> Shown {
    Shown { text: text.to_string(), quoted: true }
}

fn plain(number: &u64) -> Shown {
    Shown { text: number.to_string(), quoted: false }
}

impl Shown {
    fn toml(&self) -> String {
        if self.quoted { toml::Value::String(self.text.clone()).to_string() } else { self.text.clone() }
    }
}
