//! The golden messages in `tests/golden/messages`: what Apache Kafka's own serializer wrote must decode to the same
//! fields, compared by name through the JSON that Kafka's converter wrote of them, and encode to the same bytes.

use std::collections::BTreeSet;
use std::path::PathBuf;

use bytes::Bytes;
use serde_json::Value;

use super::api::{ApiKey, for_each_api};
use super::frame;
use super::json::Json;
use super::messages::*;
use super::wire::{Reader, Version, Wire, Writer};

fn read(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/messages").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// `-` stands for no bytes at all.
fn unhex(hex: &str) -> Bytes {
    let hex = hex.trim_start_matches('-');
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

/// Decodes, compares and encodes one message; every truncation of it must be refused, and none may panic.
fn check<M: Wire + Json>(line: &str, v: Version, bytes: &Bytes, expected: &Value) {
    let message: M = frame::decode(Reader::new(bytes.clone()), v).unwrap_or_else(|e| panic!("{e}: {line}"));
    assert_eq!(&message.json(v), expected, "{line}");
    let mut w = Writer::new();
    message.write(&mut w, v);
    assert_eq!(w.into_bytes().unwrap(), bytes, "{line}");
    for end in 0..bytes.len() {
        let cut = frame::decode::<M>(Reader::new(bytes.slice(..end)), v);
        assert!(cut.is_err(), "the first {end} bytes pass for the whole: {line}");
    }
}

/// What the versions of requests and responses are, and whether every form of each was seen.
fn check_api<Req: Wire + Json, Res: Wire + Json>(api: ApiKey) -> usize {
    let mut seen = BTreeSet::new();
    let text = read(&format!("{}.txt", api.name()));
    for line in text.lines() {
        let [kind, number, form, hex, json] = line.splitn(5, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let number: i16 = number.parse().unwrap();
        let (v, bytes, json) = (api.version(number), unhex(hex), serde_json::from_str(json).unwrap());
        match kind {
            "request" => check::<Req>(line, v, &bytes, &json),
            "response" => check::<Res>(line, v, &bytes, &json),
            _ => panic!("{line}"),
        }
        seen.insert((kind, number, form));
    }
    // Produce names 0 to 2 for old librdkafka, and refuses them; no messages of them exist.
    let first = if api == ApiKey::Produce { 3 } else { *api.versions().start() };
    for number in first..=*api.versions().end() {
        for kind in ["request", "response"] {
            assert!(seen.contains(&(kind, number, "full")), "no golden {} {kind} of version {number}", api.name());
        }
    }
    seen.len()
}

#[test]
fn every_api_and_version_reads_and_writes_what_kafka_does() {
    let mut messages = 0;
    macro_rules! check_one {
        ($api:ident, $module:ident::$request:ident, $response:ty) => {
            messages += check_api::<$module::$request, $response>(ApiKey::$api);
        };
    }
    for_each_api!(check_one);
    println!("{messages} golden messages of {} APIs", ApiKey::ALL.len());
    assert!(messages > 1000, "{messages}");
}

#[test]
fn headers_have_the_versions_that_kafka_gives_them() {
    let text = read("apis.txt");
    let mut found = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let Some(api) = ApiKey::from_key(words[0].parse().unwrap()) else { continue };
        found += 1;
        assert_eq!(api.name(), words[1]);
        let first: i16 = words[2].parse().unwrap();
        for (i, versions) in words[5..].iter().enumerate() {
            let flexible = api.version(first + i as i16).flexible;
            let response = i32::from(flexible && api != ApiKey::ApiVersions);
            assert_eq!(*versions, format!("{}/{response}", 1 + i32::from(flexible)), "{line}");
        }
    }
    assert_eq!(found, ApiKey::ALL.len());
    for line in read("headers.txt").lines().filter(|line| line.starts_with("request") && !line.starts_with("request 0"))
    {
        let [_, version, _, hex, json] = line.splitn(5, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let mut expected: Value = serde_json::from_str(json).unwrap();
        let mut r = Reader::new(unhex(hex));
        let mut start = frame::RequestStart::read(&mut r).unwrap();
        let header = serde_json::json!({
            "requestApiKey": start.api_key, "requestApiVersion": start.api_version, "correlationId": start.correlation_id,
        });
        start.api_version = if version == "2" { 3 } else { 0 };
        let client_id = start.read_client_id(ApiKey::ApiVersions, &mut r).unwrap();
        r.finish().unwrap();
        assert_eq!(expected.as_object_mut().unwrap().remove("clientId"), Some(client_id.into()), "{line}");
        assert_eq!(header, expected, "{line}");
    }
}
