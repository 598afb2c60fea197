//! Subscriptions by regular expression: which topics each expression means.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use regex::Regex;

use crate::coordinator::topics::Topics;

/// An expression matches a topic when it matches the whole of its name. Says in words what is wrong with one that is none.
pub(super) fn compile(pattern: &str) -> Result<Regex, String> {
    // By itself first, so that no parenthesis closes the one that is put around it.
    Regex::new(pattern).and_then(|_| Regex::new(&format!(r"\A(?:{pattern})\z"))).map_err(|error| {
        let text = error.to_string();
        text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })
}

/// The expressions of a group with the topics that they mean.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    topics: BTreeMap<String, BTreeSet<Arc<str>>>,
    /// When they were last matched against all topics.
    since: Duration,
}

impl Patterns {
    pub fn topics(&self, pattern: &str) -> Option<&BTreeSet<Arc<str>>> {
        self.topics.get(pattern)
    }

    pub fn contains_topic(&self, topic: &str) -> bool {
        self.topics.values().any(|topics| topics.contains(topic))
    }

    /// Whether it is time to match them anew.
    pub fn are_due(&self, now: Duration, interval_ms: i32) -> bool {
        let interval = Duration::from_millis(u64::try_from(interval_ms).unwrap_or(0));
        !self.topics.is_empty() && now >= self.since.saturating_add(interval)
    }

    /// Keeps those that are subscribed to, and matches those that are new.
    pub fn keep(&mut self, subscribed: &BTreeSet<&str>, all: &Topics) {
        self.topics.retain(|pattern, _| subscribed.contains(pattern.as_str()));
        for pattern in subscribed {
            if !self.topics.contains_key(*pattern) {
                self.topics.insert((*pattern).to_owned(), matching(pattern, all));
            }
        }
    }

    /// Matches all of them anew.
    pub fn refresh(&mut self, now: Duration, all: &Topics) {
        self.since = now;
        for (pattern, topics) in &mut self.topics {
            *topics = matching(pattern, all);
        }
    }
}

/// What comes from the disk was checked when it came from a client; an expression that this doze does not understand
/// means no topic.
fn matching(pattern: &str, all: &Topics) -> BTreeSet<Arc<str>> {
    let Ok(regex) = compile(pattern) else { return BTreeSet::new() };
    all.names().filter(|name| regex.is_match(name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::TopicMetadata;
    use crate::protocol::Uuid;

    #[test]
    fn expressions_match_whole_names() {
        let all: Topics = ["a", "ab", "b", "xab"]
            .into_iter()
            .map(|name| TopicMetadata { name: name.into(), id: Uuid::ZERO, partitions: 1 })
            .collect();
        let names = |pattern: &str| matching(pattern, &all).iter().map(|name| name.to_string()).collect::<Vec<_>>();
        assert_eq!(names("a.*"), ["a", "ab"]);
        assert_eq!(names("a|b"), ["a", "b"]);
        assert_eq!(names("(?i)A"), ["a"]);
        assert_eq!(names(""), Vec::<String>::new());
        for wrong in ["[", "a)(b", "(?<", "*"] {
            assert!(!compile(wrong).unwrap_err().is_empty(), "{wrong}");
        }
    }
}
