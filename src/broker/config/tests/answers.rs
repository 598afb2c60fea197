//! What Kafka answered to changes, good and bad, is what doze answers.

use crate::broker::config::alter::{self, Change};
use crate::broker::config::{BrokerConfig, Code, ConfigError, Overrides, Resource};

use super::{broker, overrides};

const ANSWERS: &str = include_str!("kafka-4.3.1-alter-answers.txt");

/// Values that Kafka refuses and doze accepts: of keys that have no effect here.
const ACCEPTED: [&str; 7] = [
    "inc|broker|0|SET log.cleaner.threads 9",
    "inc|broker|0|SET log.cleaner.threads 0",
    "inc|broker||SET log.cleaner.threads 0",
    "inc|broker||SET log.cleaner.dedupe.buffer.size 10",
    "inc|broker|0|SET metric.reporters nope.Klass",
    "inc|broker||SET remote.log.reader.threads 50",
    // There is no controller whose listener the map would have to name.
    "inc|broker|0|SET listener.security.protocol.map EXTERNAL:PLAINTEXT",
];

/// What Kafka accepts before it looks, and doze refuses: a name that would have to be looked up for every connection.
const REFUSED: &str = "inc|broker||SET max.connections.per.ip.overrides localhost:5,nosuchhost.invalid:3";

/// Requests that doze refuses with Kafka's error code and a text of its own: Kafka wraps some texts in its own machinery
/// ("requirement failed", names of Java classes, "/ by zero"), and of two bad values either may be named.
const IN_OTHER_WORDS: [&str; 20] = [
    "inc|broker||SET log.retention.ms 0",
    "inc|broker|0|SET listeners PLAINTEXT://:1",
    "inc|broker|0|SET listeners xx",
    "inc|broker|0|SET num.io.threads 100",
    "inc|broker|0|SET num.io.threads 1",
    "inc|broker|0|SET num.network.threads 100",
    "inc|broker||SET background.threads 40",
    "inc|broker||SET num.replica.fetchers 7",
    "inc|broker||SET num.recovery.threads.per.data.dir 9",
    "inc|broker||SET max.connections.per.ip.overrides foo",
    "inc|broker||SET max.connections.per.ip.overrides 127.0.0.1:x",
    "inc|broker||SET max.connections.per.ip 0",
    "inc|broker||SET max.connections 0",
    "inc|broker|0|SET log.roll.ms 0",
    "inc|broker||SET log.roll.ms 0",
    "inc|group|g1|SET share.auto.offset.reset foo",
    "inc|group|g1|SET share.auto.offset.reset by_duration:xx",
    "inc|group|g1|SET share.auto.offset.reset by_duration:-PT1H",
    "inc|group|g1|SET share.auto.offset.reset EARLIEST",
    "inc|topic|t1|SET retention.ms x;SET segment.ms y",
];

fn ask(config: &BrokerConfig, request: &str) -> String {
    let [kind, resource, name, entries] = request.splitn(4, '|').collect::<Vec<_>>()[..] else { panic!("{request}") };
    let number = match resource {
        "topic" => 2,
        "broker" => 4,
        "metrics" => 16,
        _ => 32,
    };
    let resource = Resource::new(number, name).unwrap();
    let null = |text: &'static str| (text != "<null>").then_some(text);
    let entries: &'static str = String::leak(entries.to_owned());
    let entries = entries.split(';').filter(|entry| !entry.is_empty());
    let result: Result<Overrides, ConfigError> = if kind == "inc" {
        let changes: Vec<Change<'_>> = entries
            .map(|entry| {
                let mut parts = entry.splitn(3, ' ');
                let operation = parts.next().unwrap();
                let number = ["SET", "DELETE", "APPEND", "SUBTRACT"].iter().position(|known| *known == operation);
                Change {
                    operation: i8::try_from(number.unwrap()).unwrap(),
                    name: parts.next().unwrap(),
                    value: parts.next().and_then(null),
                }
            })
            .collect();
        alter::incremental(config, &resource, &Overrides::new(), &changes)
    } else {
        let entries: Vec<_> = entries
            .map(|entry| entry.split_once(' ').map_or((entry, None), |(name, value)| (name, null(value))))
            .collect();
        alter::replace(config, &resource, &Overrides::new(), &entries)
    };
    match result {
        Ok(_) => "NONE | null".into(),
        Err(error) => {
            let code = match error.code(&resource) {
                Code::InvalidConfig => "INVALID_CONFIG",
                Code::InvalidRequest => "INVALID_REQUEST",
            };
            format!("{code} | {error}")
        }
    }
}

#[test]
fn changes_are_answered_as_kafka_answers_them() {
    let config = broker(&[
        ("node.id", "0"),
        ("listeners", "EXTERNAL://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"),
        ("controller.listener.names", "CONTROLLER"),
        ("listener.security.protocol.map", "CONTROLLER:PLAINTEXT,EXTERNAL:PLAINTEXT"),
    ]);
    let config = config.with_changes(config.first_cluster_overrides(), overrides(&[])).unwrap();
    let mut lines = ANSWERS.lines().filter(|line| !line.starts_with('#'));
    let (mut asked, mut wrong) = (0, Vec::new());
    while let (Some(request), Some(answer)) = (lines.next(), lines.next()) {
        let kafka = answer.trim_start().trim_start_matches("=> ");
        let doze = ask(&config, request);
        asked += 1;
        let code = |answer: &str| answer.split(" | ").next().map(str::to_owned);
        let fits = if ACCEPTED.contains(&request) {
            doze == "NONE | null"
        } else if request == REFUSED {
            doze.starts_with("INVALID_REQUEST | ")
        } else if IN_OTHER_WORDS.contains(&request) {
            doze != kafka && code(&doze) == code(kafka)
        } else {
            doze == kafka
        };
        if !fits {
            wrong.push(format!("{request}\n  doze:  {doze}\n  Kafka: {kafka}"));
        }
    }
    assert!(asked > 150, "{asked}");
    assert!(wrong.is_empty(), "{} of {asked} answers differ:\n{}", wrong.len(), wrong.join("\n"));
}
