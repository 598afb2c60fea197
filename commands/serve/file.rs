//! The file of settings.

use std::path::Path;

use toml::Value;

use super::layers::{FLAGS, Layer, Origin};
use crate::exit::Failure;

/// Reads a TOML file. At the top stand the flags without their dashes and Kafka's broker configs; TOML makes tables of
/// the dots in those, and they are put together again.
pub fn read(path: &Path) -> Result<Layer, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::could_not_run(format!("cannot read the settings in {}: {error}", path.display())))?;
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<Layer, Failure> {
    let refuse = |why: String| Failure::could_not_run(format!("the settings in {}: {why}", path.display()));
    let table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| refuse(error.to_string().trim_end().into()))?;
    let mut found = Vec::new();
    for (name, value) in table {
        flatten(name, value, &mut found).map_err(refuse)?;
    }
    let mut layer = Layer::default();
    for (name, text) in found {
        let origin = Origin::File(path.to_owned(), name.clone());
        match FLAGS.iter().find(|flag| flag.name == name) {
            Some(flag) => layer.flag(flag, &text, origin)?,
            None => layer.kafka(&name, &text, origin)?,
        }
    }
    Ok(layer)
}

fn flatten(name: String, value: Value, found: &mut Vec<(String, String)>) -> Result<(), String> {
    let text = match value {
        Value::Table(table) => {
            for (key, value) in table {
                flatten(format!("{name}.{key}"), value, found)?;
            }
            return Ok(());
        }
        Value::Array(items) => {
            let items: Result<Vec<String>, String> = items.into_iter().map(|item| scalar(&name, item)).collect();
            items?.join(",")
        }
        value => scalar(&name, value)?,
    };
    found.push((name, text));
    Ok(())
}

fn scalar(name: &str, value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Integer(n) => Ok(n.to_string()),
        Value::Float(n) => Ok(n.to_string()),
        Value::Boolean(b) => Ok(b.to_string()),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => Err(format!(
            "{name} is a {}; a text, a number, true, false or a list of these is expected",
            value.type_str()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::layers::resolve;
    use super::*;

    #[test]
    fn names_with_dots_are_put_together_again() {
        let text = "
            listen = 'localhost:1'
            fsync-interval = 250
            log.retention.hours = 24
            log.cleanup.policy = ['compact', 'delete']
            'max.connections' = 500
            max.connections.per.ip = 5
        ";
        // TOML itself cannot have one name in front of another unless it is in quotes.
        assert!(parse(Path::new("f"), &text.replace('\'', "")).is_err());
        let resolved = resolve(&[parse(Path::new("f"), text).unwrap()]).unwrap();
        let config = &resolved.settings.config;
        assert_eq!(resolved.settings.listen.to_string(), "localhost:1");
        assert_eq!(config.int("log.retention.hours"), 24);
        assert_eq!(config.list("log.cleanup.policy"), ["compact", "delete"]);
        assert_eq!((config.int("max.connections"), config.int("max.connections.per.ip")), (500, 5));
        assert_eq!(resolved.given["log.retention.hours"].origin.to_string(), "log.retention.hours in f");
    }

    #[test]
    fn what_a_file_may_not_hold() {
        for (text, why) in [
            ("nope = 1", "nope in f: nope is not a broker config"),
            ("config = 'x'", "config in f: config is not a broker config"),
            (
                "retention.ms = 5",
                "retention.ms in f: retention.ms is a config of topics; the broker's is log.retention.ms",
            ),
            ("segment-bytes = 1048577\nlog.segment.bytes = 1048576", "both set log.segment.bytes"),
            ("num.partitions = 1979-05-27", "num.partitions is a datetime"),
            ("num.partitions = 'x'", "num.partitions in f: Invalid value x"),
            ("x = ", "the settings in f: TOML parse error at line 1"),
            ("listen = '9092'", "listen in f: \"9092\" is not an address"),
        ] {
            let error = parse(Path::new("f"), text).map(drop).unwrap_err().message;
            assert!(error.contains(why), "{error}");
        }
        let error = read(Path::new("/does/not/exist")).map(drop).unwrap_err().message;
        assert!(error.starts_with("cannot read the settings in /does/not/exist: "), "{error}");
    }
}
