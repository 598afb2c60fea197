//! Subscriptions to the metrics of clients.

use regex::Regex;

use super::Overrides;
use super::error::ConfigError;
use super::table::METRICS;
use super::value::Value;

/// What a client can be selected by.
const SELECTORS: [&str; 6] = [
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
];

/// Milliseconds between two pushes: from a tenth of a second to an hour.
const INTERVAL_MS: std::ops::RangeInclusive<i32> = 100..=3_600_000;

/// One subscription, typed.
#[derive(Clone, Debug)]
pub struct MetricsSubscription {
    /// Milliseconds between two pushes.
    pub interval_ms: i32,
    /// Prefixes of the metrics that are asked for; none asks for nothing, `*` for all.
    pub metrics: Vec<String>,
    /// Selectors and the pattern that the whole of the client's value must match. All must.
    pub matches: Vec<(String, Regex)>,
}

impl MetricsSubscription {
    /// Reads and checks a subscription. Fails at a key that is not in the table and at a bad value.
    pub fn new(overrides: &Overrides) -> Result<MetricsSubscription, ConfigError> {
        if let Some(name) = overrides.keys().find(|name| METRICS.get(name).is_none()) {
            return Err(ConfigError::UnknownMetricsConfig { name: name.clone() });
        }
        let interval_ms = match effective(overrides, "interval.ms")? {
            Some(Value::Int(ms)) => ms,
            other => panic!("interval.ms is an int, not {other:?}"),
        };
        if !INTERVAL_MS.contains(&interval_ms) {
            return Err(ConfigError::Interval { value: interval_ms });
        }
        let list = |name| match effective(overrides, name)? {
            Some(Value::List(items)) => Ok(items),
            other => panic!("{name} is a list, not {other:?}"),
        };
        let matches = list("match")?.iter().map(|item| parse_match(item)).collect::<Result<_, _>>()?;
        Ok(MetricsSubscription { interval_ms, metrics: list("metrics")?, matches })
    }
}

fn parse_match(item: &str) -> Result<(String, Regex), ConfigError> {
    let bad = || ConfigError::Conflict(format!("Illegal client matching pattern: {item}"));
    let (selector, pattern) = item.split_once('=').ok_or_else(bad)?;
    if pattern.is_empty() || pattern.contains('=') || !SELECTORS.contains(&selector.trim()) {
        return Err(bad());
    }
    let pattern = Regex::new(&format!("^(?:{})$", pattern.trim())).map_err(|_| bad())?;
    Ok((selector.trim().to_owned(), pattern))
}

/// The value that is in force for one key of a subscription.
pub(super) fn effective(overrides: &Overrides, name: &str) -> Result<Option<Value>, ConfigError> {
    let Some(def) = METRICS.get(name) else {
        return Err(ConfigError::UnknownMetricsConfig { name: name.to_owned() });
    };
    overrides.get(name).map_or_else(|| Ok(def.default_value()), |text| def.parse(text).map(Some))
}
