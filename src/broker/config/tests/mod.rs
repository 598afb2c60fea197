//! What Apache Kafka 4.3.1 has and answers, against what doze has and answers.

mod answers;
mod describing;
mod facts;
mod settings;

use super::{BrokerConfig, Overrides};

fn overrides(pairs: &[(&str, &str)]) -> Overrides {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

/// A broker that was started with these settings.
fn broker(pairs: &[(&str, &str)]) -> BrokerConfig {
    BrokerConfig::at_start(overrides(pairs)).unwrap()
}
