//! What a key takes beyond being of its kind.

use super::def::Def;
use super::error::ConfigError;
use super::value::Value;

/// A check on one value by itself. Checks that look at several keys are in `checks`.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    Any,
    AtLeast(i64),
    Between(i64, i64),
    /// Between two fractions.
    Fraction(f64, f64),
    /// A gzip level, or -1 for the codec's own default.
    GzipLevel,
    OneOf(&'static [&'static str]),
    OneOfIgnoringCase(&'static [&'static str]),
    /// A list of these words, of any words where there are none. No item may be blank.
    Each {
        words: &'static [&'static str],
        may_be_empty: bool,
    },
    /// Some text.
    NonEmpty,
    /// `*`, or a list of PARTITION:BROKER.
    Replicas,
    /// `earliest`, `latest` or `by_duration:` and an ISO 8601 duration that is not negative.
    OffsetReset,
    /// No value: what it would turn on is for the safety of the data, and doze does not have it.
    Absent,
}

impl Rule {
    pub(super) fn check(&self, def: &Def, value: &Value) -> Result<(), ConfigError> {
        let refuse = |why: String| Err(ConfigError::refused(def.name, value, why));
        let n = value.as_number();
        match *self {
            Rule::Any => Ok(()),
            // A NaN passes, as it does in Kafka.
            #[allow(clippy::cast_precision_loss)]
            Rule::AtLeast(least) | Rule::Between(least, _) if n.is_some_and(|n| n < least as f64) => {
                refuse(format!("Value must be at least {least}"))
            }
            #[allow(clippy::cast_precision_loss)]
            Rule::Between(_, most) if n.is_some_and(|n| n > most as f64) => {
                refuse(format!("Value must be no more than {most}"))
            }
            Rule::AtLeast(_) | Rule::Between(..) => Ok(()),
            Rule::Fraction(least, _) if n.is_some_and(|n| n < least) => {
                refuse(format!("Value must be at least {least}"))
            }
            Rule::Fraction(_, most) if n.is_some_and(|n| n > most) => {
                refuse(format!("Value must be no more than {most}"))
            }
            Rule::Fraction(..) => Ok(()),
            Rule::GzipLevel => match value {
                Value::Int(-1 | 1..=9) => Ok(()),
                _ => refuse("Value must be between 1 and 9 or equal to -1".into()),
            },
            Rule::OneOf(words) => match value {
                Value::Text(text) if words.contains(&text.as_str()) => Ok(()),
                _ => refuse(format!("String must be one of: {}", words.join(", "))),
            },
            Rule::OneOfIgnoringCase(words) => match value {
                Value::Text(text) if words.iter().any(|word| word.eq_ignore_ascii_case(text)) => Ok(()),
                _ => refuse(format!("String must be one of (case insensitive): {}", words.join(", "))),
            },
            Rule::Each { words, may_be_empty } => check_each(def.name, value, words, may_be_empty),
            Rule::NonEmpty => match value {
                Value::Text(text) if text.is_empty() => refuse("String must be non-empty".into()),
                _ => Ok(()),
            },
            Rule::Replicas => match value {
                Value::List(items) if is_replica_list(items) => Ok(()),
                _ => refuse(format!(
                    "{} must be the literal '*' or a list of replicas in the following format: \
                     [partitionId]:[brokerId],[partitionId]:[brokerId],...",
                    def.name
                )),
            },
            Rule::OffsetReset => match value {
                Value::Text(text) if OffsetReset::parse(text).is_some() => Ok(()),
                _ => refuse(
                    "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
                        .into(),
                ),
            },
            Rule::Absent => match value {
                Value::Text(text) if text.is_empty() => Ok(()),
                _ => refuse("doze has nothing of the kind, and would run without it".into()),
            },
        }
    }
}

fn check_each(name: &str, value: &Value, words: &[&str], may_be_empty: bool) -> Result<(), ConfigError> {
    let Value::List(items) = value else { return Ok(()) };
    if items.is_empty() && !may_be_empty {
        return Err(ConfigError::Empty { name: name.to_owned(), words: words.iter().map(|&w| w.to_owned()).collect() });
    }
    for item in items {
        if item.is_empty() {
            return Err(ConfigError::BlankItem { name: name.to_owned() });
        }
        if !words.is_empty() && !words.contains(&item.as_str()) {
            return Err(ConfigError::Refused {
                name: name.to_owned(),
                value: item.clone(),
                why: format!("String must be one of: {}", words.join(", ")),
            });
        }
    }
    Ok(())
}

fn is_replica_list(items: &[String]) -> bool {
    let is_pair = |item: &String| {
        let is_id = |id: &str| !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit());
        item.split_once(':').is_some_and(|(partition, broker)| is_id(partition) && is_id(broker))
    };
    items.iter().all(is_pair) || items == ["*"]
}

/// Where a share group starts to read that has no offset yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetReset {
    Earliest,
    Latest,
    /// This long before now.
    ByDuration(std::time::Duration),
}

impl OffsetReset {
    /// `None` for what is none of the three.
    pub fn parse(text: &str) -> Option<OffsetReset> {
        match text {
            "earliest" => Some(OffsetReset::Earliest),
            "latest" => Some(OffsetReset::Latest),
            _ => parse_iso_duration(text.strip_prefix("by_duration:")?).map(OffsetReset::ByDuration),
        }
    }
}

/// An ISO 8601 duration of days, hours, minutes and seconds (`P1DT2H3M4.5S`), in either case. `None` for anything
/// else, for a negative one and for one that is too long to count in nanoseconds.
fn parse_iso_duration(text: &str) -> Option<std::time::Duration> {
    const NANOS: u128 = 1_000_000_000;
    let upper = text.to_ascii_uppercase();
    let rest = upper.strip_prefix('P')?;
    let (days, time) = match rest.split_once('T') {
        Some((days, time)) if !time.is_empty() => (days, time),
        Some(_) => return None,
        None => (rest, ""),
    };
    if days.is_empty() && time.is_empty() {
        return None;
    }
    let mut nanos = 0u128;
    let mut add = |part: &str, unit: u128| -> Option<()> {
        let (whole, fraction) = part.split_once('.').unwrap_or((part, ""));
        let is_number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if !is_number(whole) || fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let fraction = if fraction.is_empty() { 0 } else { format!("{fraction:0<9}").parse::<u128>().ok()? };
        nanos = nanos.checked_add(whole.parse::<u128>().ok()?.checked_mul(unit * NANOS)?)?.checked_add(fraction)?;
        Some(())
    };
    if !days.is_empty() {
        add(days.strip_suffix('D').filter(|d| !d.contains('.'))?, 86_400)?;
    }
    let mut left = time;
    for (letter, unit) in [('H', 3_600), ('M', 60), ('S', 1)] {
        if let Some((part, rest)) = left.split_once(letter) {
            if letter != 'S' && part.contains('.') {
                return None;
            }
            add(part, unit)?;
            left = rest;
        }
    }
    if !left.is_empty() {
        return None;
    }
    let seconds = u64::try_from(nanos / NANOS).ok()?;
    Some(std::time::Duration::new(seconds, u32::try_from(nanos % NANOS).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn iso_durations() {
        for (text, millis) in [
            ("PT1H", 3_600_000),
            ("P1D", 86_400_000),
            ("P1DT2H3M4.5S", 93_784_500),
            ("pt0.001s", 1),
            ("PT0S", 0),
            ("PT90M", 5_400_000),
        ] {
            let wanted = Some(OffsetReset::ByDuration(Duration::from_millis(millis)));
            assert_eq!(OffsetReset::parse(&format!("by_duration:{text}")), wanted, "{text}");
        }
        for text in [
            "",
            "xx",
            "P",
            "PT",
            "P1DT",
            "-PT1H",
            "PT-1H",
            "PT1.5H",
            "PT1S1H",
            "P1H",
            "1H",
            "PT1",
            "PT99999999999999999999999S",
        ] {
            assert_eq!(OffsetReset::parse(&format!("by_duration:{text}")), None, "{text}");
        }
    }
}
