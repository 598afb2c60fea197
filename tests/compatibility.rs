//! Holds `docs/compatibility.md` to what is served: the table is made from the handlers.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::path::Path;

use doze::broker::served_apis;
use doze::protocol::ApiKey;

const HEAD: &str = "\
# What doze serves of the Kafka protocol

Made from the table of handlers by `cargo test --test compatibility`; with `DOZE_REFRESH=1` it writes this file anew.

doze answers for the client-facing APIs of Apache Kafka 4.3.1 below, at every version that a Kafka 4.3.1 broker names to
clients. ApiVersions is built from the same table, so that a client is told of nothing that is not served. Produce versions
0 to 2 are named and refused, as Kafka does for the sake of old librdkafka.
";

const BETWEEN_BROKERS: &str = "
## Between brokers

With InitializeShareGroupState, ReadShareGroupState, WriteShareGroupState, DeleteShareGroupState and ReadShareGroupStateSummary
(keys 83 to 87) the broker that hands out the records of a partition asks the one that keeps the state of share groups. A doze is
both and does not ask itself; but a Kafka broker names these APIs to everybody and serves whoever asks, and so does doze. As in
Kafka, what is written past the members of a group counts when the partition is next read in, and whoever reads with a leader
epoch above 0 takes the partition away from them.
";

const LEFT_OUT: &[ApiKey] = &[ApiKey::GetTelemetrySubscriptions, ApiKey::PushTelemetry];

fn versions(api: ApiKey) -> String {
    let versions = api.versions();
    match (versions.start(), versions.end()) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first} to {last}"),
    }
}

fn table() -> String {
    let served = served_apis();
    let mut text = HEAD.to_owned();
    text += "\n## Served\n\n| key | API | versions |\n|---|---|---|\n";
    for api in &served {
        writeln!(text, "| {} | {} | {} |", api.key(), api.name(), versions(*api)).unwrap();
    }
    for api in ApiKey::ALL.iter().filter(|api| !LEFT_OUT.contains(api)) {
        assert!(served.contains(api), "{} is neither served nor said to be left out", api.name());
    }
    text += "\nA request of any other API closes the connection, as any does that a broker has not named, and the log names the client, the\n";
    text += "API and the version.\n";
    text += "\n## Left out\n\nApache Kafka names these two only where a plugin that takes the metrics of clients (KIP-714) is configured. doze takes\n";
    text += "none, so that clients keep their metrics to themselves, as they do with a Kafka that has no such plugin. Subscriptions of\n";
    text += "the resource `client-metrics` are stored and described all the same.\n\n| key | API |\n|---|---|\n";
    for api in LEFT_OUT {
        assert!(!served.contains(api), "{} is served", api.name());
        writeln!(text, "| {} | {} |", api.key(), api.name()).unwrap();
    }
    text += BETWEEN_BROKERS;
    text
}

#[test]
fn the_table_is_what_is_served() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/compatibility.md");
    if std::env::var_os("DOZE_REFRESH").is_some() {
        std::fs::write(&path, table()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == table(),
        "docs/compatibility.md is not what is served; to refresh it:\n  DOZE_REFRESH=1 cargo test --test compatibility"
    );
}
