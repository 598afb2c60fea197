//! Settings from several places, put together and checked.
//!
//! Whatever has a name of Kafka's is kept under that name, so that a flag, a variable, a line of the file and an
//! `--override` for the same config are one setting.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use doze::broker::config::table::{self, BROKER, TOPIC};
use doze::broker::config::{BrokerConfig, HostPort, Overrides};
use doze::broker::settings::Settings;
use doze::storage::scrub::ScrubSettings;

use super::logging::{Format, Level, Logging};
use crate::exit::Failure;

/// A flag of `doze serve` that holds a value, by the name that the file has for it too.
#[derive(Debug)]
pub struct Flag {
    pub name: &'static str,
    /// The broker config that it sets; `None` for what Kafka has no name for.
    pub kafka: Option<&'static str>,
}

impl Flag {
    /// The name under which its value is kept.
    pub fn key(&self) -> &'static str {
        self.kafka.unwrap_or(self.name)
    }
}

const fn flag(name: &'static str, kafka: Option<&'static str>) -> Flag {
    Flag { name, kafka }
}

pub const FLAGS: &[Flag] = &[
    flag("listen", Some("listeners")),
    flag("advertise", Some("advertised.listeners")),
    flag("data-dir", Some("log.dirs")),
    flag("meta-db", None),
    flag("segment-bytes", Some("log.segment.bytes")),
    flag("index-interval-bytes", Some("log.index.interval.bytes")),
    flag("fsync-interval", None),
    flag("retention-bytes", Some("log.retention.bytes")),
    flag("retention-ms", Some("log.retention.ms")),
    flag("auto-create-topics", Some("auto.create.topics.enable")),
    flag("default-partitions", Some("num.partitions")),
    flag("scrub-rate", None),
    flag("scrub-interval", None),
    flag("log-level", None),
    flag("log-format", None),
];

/// Where a setting is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// As it was typed.
    Flag(String),
    Variable(String),
    /// The file, and the name in it.
    File(PathBuf, String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Flag(name) => f.write_str(name),
            Origin::Variable(name) => f.write_str(name),
            Origin::File(path, name) => write!(f, "{} in {}", name, path.display()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    pub text: String,
    pub origin: Origin,
}

/// What was given in one place, by the name that it is kept under.
#[derive(Debug, Default)]
pub struct Layer {
    values: BTreeMap<String, Given>,
    /// Keys that nobody here knows.
    foreign: Vec<String>,
}

impl Layer {
    /// The value of a flag, or what has its name in another place.
    pub fn flag(&mut self, flag: &Flag, text: &str, origin: Origin) -> Result<(), Failure> {
        let text = match flag.name {
            "listen" | "advertise" => {
                let address: HostPort = text.parse().map_err(|why| refuse(&origin, why))?;
                format!("PLAINTEXT://{address}")
            }
            "data-dir" if text.contains(',') => {
                return Err(refuse(&origin, "the name of a data directory may have no comma in it"));
            }
            "data-dir" | "meta-db" if text.trim().is_empty() => return Err(refuse(&origin, "the name is empty")),
            _ => text.to_owned(),
        };
        if let Some(def) = flag.kafka.and_then(|key| BROKER.get(key)) {
            def.parse(&text).map_err(|error| refuse(&origin, error))?;
        }
        self.insert(flag.key(), text, origin)
    }

    /// `KEY=VALUE`, the key being a broker config of Kafka's. Kafka takes any key, for its plug-ins may have configs of
    /// their own; so one that is like none of Kafka's is accepted, and said to have no effect. One that is like one of them
    /// is a slip.
    pub fn assignment(&mut self, entry: &str, origin: &Origin) -> Result<(), Failure> {
        let (key, text) = entry.split_once('=').ok_or_else(|| refuse(origin, format!("{entry:?} is not KEY=VALUE")))?;
        let key = key.trim();
        let is_known = table::broker_or_listener(key).is_some() || table::listener_key(key).is_some();
        if !is_known && TOPIC.get(key).is_none() && closest(key).is_none() {
            self.foreign.push(key.to_owned());
            return Ok(());
        }
        self.kafka(key, text, origin.clone())
    }

    /// A broker config of Kafka's. Of two in the same place the later counts, but a flag that sets it must not be there.
    pub fn kafka(&mut self, key: &str, text: &str, origin: Origin) -> Result<(), Failure> {
        match table::broker_or_listener(key) {
            Some(def) => drop(def.parse(text).map_err(|error| refuse(&origin, error))?),
            // Plug-ins of Kafka's have configs of their own for a listener; they are accepted with the rest.
            None if table::listener_key(key).is_some() => {}
            None => return Err(refuse(&origin, unknown(key))),
        }
        self.insert(key, text.to_owned(), origin)
    }

    fn insert(&mut self, key: &str, text: String, origin: Origin) -> Result<(), Failure> {
        match self.values.insert(key.to_owned(), Given { text, origin: origin.clone() }) {
            Some(before) if before.origin != origin => {
                Err(Failure::could_not_run(format!("{} and {origin} both set {key}; give one of them", before.origin)))
            }
            _ => Ok(()),
        }
    }
}

fn refuse(origin: &Origin, why: impl fmt::Display) -> Failure {
    Failure::could_not_run(format!("{origin}: {why}"))
}

fn unknown(key: &str) -> String {
    match TOPIC.get(key).and_then(|def| def.broker) {
        Some(broker) => format!("{key} is a config of topics; the broker's is {broker}"),
        None => match closest(key) {
            Some(known) => format!("{key} is not a broker config of Apache Kafka's; {known} is one"),
            None => format!("{key} is not a broker config of Apache Kafka's"),
        },
    }
}

/// How many letters may differ when one name is taken for a slip of the other.
const SLIP: usize = 2;

/// The broker config that somebody may have meant.
fn closest(key: &str) -> Option<&'static str> {
    let distance = |name: &'static str| (strsim::damerau_levenshtein(key, name), name);
    let best = BROKER.iter().map(|def| distance(def.name)).min()?;
    (best.0 <= SLIP).then_some(best.1)
}

/// Settings that have been put together and checked.
#[derive(Debug)]
pub struct Resolved {
    pub settings: Settings,
    pub logging: Logging,
    /// What was given, by the name that it is kept under. What is not in here has its default.
    pub given: BTreeMap<String, Given>,
    /// What was given and nobody here knows.
    pub foreign: Vec<String>,
}

const FSYNC_INTERVAL: Duration = Duration::from_millis(500);
const SHORTEST_SCRUB_INTERVAL: Duration = Duration::from_secs(1);

/// Puts the layers together, the first to count first.
pub fn resolve(layers: &[Layer]) -> Result<Resolved, Failure> {
    let mut given: BTreeMap<String, Given> = BTreeMap::new();
    for layer in layers.iter().rev() {
        for key in layer.values.keys() {
            // What says the same thing in other units gives way too.
            for other in BROKER.get(key).map_or(&[][..], |def| def.chain) {
                given.remove(*other);
            }
            // So does the other name of the same thing.
            match key.as_str() {
                "node.id" => drop(given.remove("broker.id")),
                "broker.id" => drop(given.remove("node.id")),
                "log.dir" => drop(given.remove("log.dirs")),
                _ => {}
            }
        }
        given.extend(layer.values.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    let own = |name: &str| given.get(name).map(|given| (given.text.as_str(), &given.origin));
    let level = own("log-level")
        .map_or(Ok(Level::default()), |(text, origin)| text.parse().map_err(|why: String| refuse(origin, why)))?;
    let format = own("log-format")
        .map_or(Ok(Format::default()), |(text, origin)| text.parse().map_err(|why: String| refuse(origin, why)))?;
    let fsync_interval = own("fsync-interval")
        .map_or(Ok(FSYNC_INTERVAL), |(text, origin)| parse_duration(text).map_err(|why| refuse(origin, why)))?;
    let mut scrub = ScrubSettings::default();
    if let Some((text, origin)) = own("scrub-rate") {
        let rate = text.parse().map_err(|_| refuse(origin, format!("{text:?} is not a number of bytes, 0 or more")))?;
        scrub.bytes_per_second = rate;
    }
    if let Some((text, origin)) = own("scrub-interval") {
        scrub.interval = parse_duration(text).map_err(|why| refuse(origin, why))?;
        if scrub.interval < SHORTEST_SCRUB_INTERVAL {
            return Err(refuse(origin, "it is at least 1s; --scrub-rate 0 turns the scrub off"));
        }
    }
    let kafka: Overrides = given
        .iter()
        .filter(|(key, _)| FLAGS.iter().all(|flag| flag.kafka.is_some() || flag.name != key.as_str()))
        .map(|(key, given)| (key.clone(), given.text.clone()))
        .collect();
    let config = BrokerConfig::at_start(kafka).map_err(|error| Failure::could_not_run(error.to_string()))?;
    let meta_db = own("meta-db").map(|(text, _)| PathBuf::from(text));
    let interval = (!fsync_interval.is_zero()).then_some(fsync_interval);
    let settings =
        Settings::new(config, meta_db, interval).map_err(|error| Failure::could_not_run(error.to_string()))?;
    let settings = Settings { scrub, ..settings };
    let foreign = layers.iter().flat_map(|layer| &layer.foreign).cloned().collect();
    Ok(Resolved { settings, logging: Logging { level, format }, given, foreign })
}

/// A whole number with a unit (`ms`, `s`, `m`, `h`, `d`), or of milliseconds without. The error is the second half of a
/// sentence.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim() {
        "" | "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(format!("{text:?} is not a time: 500ms, 2s, 1m or a number of milliseconds is expected")),
    };
    let millis = number.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
    millis
        .map(Duration::from_millis)
        .ok_or_else(|| format!("{text:?} is not a time: 500ms, 2s, 1m or a number of milliseconds is expected"))
}

/// As [`parse_duration`] reads it.
pub fn duration_text(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(pairs: &[(&str, &str)], overrides: &[&str]) -> Result<Layer, Failure> {
        let mut layer = Layer::default();
        for (name, text) in pairs {
            let flag = FLAGS.iter().find(|flag| flag.name == *name).unwrap();
            layer.flag(flag, text, Origin::Flag(format!("--{name}")))?;
        }
        for entry in overrides {
            layer.assignment(entry, &Origin::Flag("--override".into()))?;
        }
        Ok(layer)
    }

    /// Flags, and entries of --override.
    type Place<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);

    fn resolved(layers: &[Place<'_>]) -> Result<Resolved, String> {
        let layers: Result<Vec<Layer>, Failure> = layers.iter().map(|(pairs, keys)| flags(pairs, keys)).collect();
        layers.and_then(|layers| resolve(&layers)).map_err(|failure| failure.message)
    }

    #[test]
    fn an_override_that_is_like_none_of_kafkas_has_no_effect_and_one_that_is_a_slip_is_refused() {
        let origin = Origin::Flag("--override".into());
        let mut layer = Layer::default();
        layer.assignment("rlmm.config.remote.log.metadata.topic.num.partitions=1", &origin).unwrap();
        layer.assignment("com.example.plugin=x", &origin).unwrap();
        let refused = layer.assignment("log.retention.msec=1", &origin).unwrap_err();
        assert!(refused.message.ends_with("; log.retention.ms is one"), "{refused}");
        assert!(layer.assignment("retention.ms=1", &origin).is_err(), "a topic's config is not the broker's");
        let resolved = resolve(&[layer]).unwrap();
        assert_eq!(resolved.foreign, ["rlmm.config.remote.log.metadata.topic.num.partitions", "com.example.plugin"]);
        assert!(resolved.given.is_empty());
    }

    #[test]
    fn nothing_has_to_be_set() {
        let settings = resolved(&[]).unwrap().settings;
        assert_eq!(settings.listen.to_string(), "127.0.0.1:9092");
        assert_eq!(settings.advertise, None);
        assert_eq!(settings.data_dir, PathBuf::from("./data"));
        assert_eq!(settings.meta_db, None);
        assert_eq!(settings.fsync_interval, Some(Duration::from_millis(500)));
        assert_eq!(settings.config.node_id(), 1);
        assert_eq!(settings.scrub, ScrubSettings::default());
    }

    #[test]
    fn the_scrub_is_paced_and_can_be_turned_off() {
        fn scrub(pairs: &[(&str, &str)]) -> Result<ScrubSettings, String> {
            resolved(&[(pairs, &[])]).map(|resolved| resolved.settings.scrub)
        }
        let (rate, interval) = (1 << 20, Duration::from_secs(2 * 24 * 60 * 60));
        let expected = ScrubSettings { bytes_per_second: rate, interval };
        assert_eq!(scrub(&[("scrub-rate", "1048576"), ("scrub-interval", "2d")]), Ok(expected));
        assert_eq!(scrub(&[("scrub-rate", "0")]).unwrap().bytes_per_second, 0);
        for wrong in [("scrub-rate", "-1"), ("scrub-rate", "1M"), ("scrub-interval", "0"), ("scrub-interval", "1w")] {
            assert!(scrub(&[wrong]).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_flag_and_kafkas_name_are_one_setting() {
        for (flag, text, key, kafka) in [
            ("listen", "[::1]:1", "listeners", "PLAINTEXT://[::1]:1"),
            ("advertise", "a.b:1", "advertised.listeners", "PLAINTEXT://a.b:1"),
            ("data-dir", "/x", "log.dirs", "/x"),
            ("segment-bytes", "1048576", "log.segment.bytes", "1048576"),
            ("index-interval-bytes", "1", "log.index.interval.bytes", "1"),
            ("retention-bytes", "2", "log.retention.bytes", "2"),
            ("retention-ms", "3", "log.retention.ms", "3"),
            ("auto-create-topics", "false", "auto.create.topics.enable", "false"),
            ("default-partitions", "4", "num.partitions", "4"),
        ] {
            let entry = format!("{key}={kafka}");
            let by_flag = resolved(&[(&[(flag, text)], &[])]).unwrap().settings;
            let by_key = resolved(&[(&[], &[&entry])]).unwrap().settings;
            assert_eq!(format!("{by_flag:?}"), format!("{by_key:?}"));
            assert_ne!(format!("{by_flag:?}"), format!("{:?}", resolved(&[]).unwrap().settings));
            assert_eq!(
                resolved(&[(&[(flag, text)], &[&entry])]).unwrap_err(),
                format!("--{flag} and --override both set {key}; give one of them")
            );
        }
    }

    #[test]
    fn the_first_layer_counts_first() {
        let one: Place<'_> = (&[("retention-ms", "1")], &[]);
        let two: Place<'_> = (&[], &["log.retention.ms=2", "num.partitions=5", "num.partitions=6"]);
        let config = resolved(&[one, two]).unwrap().settings.config;
        assert_eq!((config.long("log.retention.ms"), config.int("num.partitions")), (1, 6));
        assert_eq!(resolved(&[two, one]).unwrap().settings.config.long("log.retention.ms"), 2);

        // In other units, too; within one place Kafka's own order holds.
        let hours: Place<'_> = (&[], &["log.retention.hours=7"]);
        let config = resolved(&[hours, one]).unwrap().settings.config;
        assert_eq!((config.get("log.retention.ms"), config.int("log.retention.hours")), (None, 7));
        let node: Place<'_> = (&[], &["broker.id=7"]);
        assert_eq!(resolved(&[node, (&[], &["node.id=3"])]).unwrap().settings.config.node_id(), 7);
        let dir: Place<'_> = (&[], &["log.dir=/b"]);
        let settings = resolved(&[dir, (&[("data-dir", "/a")], &[])]).unwrap().settings;
        assert_eq!(settings.data_dir, PathBuf::from("/b"));
    }

    #[test]
    fn times() {
        for (text, millis) in
            [("0", 0), ("5", 5), ("500ms", 500), ("2s", 2_000), ("1m", 60_000), ("2 h", 7_200_000), ("5d", 432_000_000)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "ms", "-1", "1.5s", "5w", "5x", "99999999999999999999", "9999999999999999h"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        assert_eq!(resolved(&[(&[("fsync-interval", "0")], &[])]).unwrap().settings.fsync_interval, None);
    }
}
