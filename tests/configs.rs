//! Every config that is said to work is read by something. The table says what doze does with a key; this looks into the
//! code whether anybody asks for it.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use doze::broker::config::table::{BROKER, GROUP, METRICS, TOPIC};
use doze::broker::config::{Def, Effect};
use doze::broker::served_apis;
use doze::protocol::ApiKey;

fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The code without tests, in two parts: that of the configs themselves, without the table, and the rest.
fn code() -> (String, String) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut configs, mut rest) = (String::new(), String::new());
    let mut files = vec![];
    rust_files(&root.join("src"), &mut files);
    rust_files(&root.join("commands"), &mut files);
    for file in files {
        let place = file.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        if place.contains("/tests") || place.contains("config/table/") || place.ends_with("config/checks.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let part = if place.starts_with("src/broker/config/") { &mut configs } else { &mut rest };
        part.push_str(text.split("#[cfg(test)]\nmod ").next().unwrap());
    }
    assert!(!configs.is_empty() && !rest.is_empty());
    (configs, rest)
}

/// A bound of group configs, `group.consumer.min.session.timeout.ms` say: what is asked of the key between the bounds holds
/// these, and `checks` looks them up by the form of their names.
fn bounded(name: &str) -> Option<String> {
    let rest = name.strip_prefix("group.")?;
    let (protocol, rest) = rest.split_once('.')?;
    let key = rest.strip_prefix("min.").or_else(|| rest.strip_prefix("max."))?;
    let key = format!("group.{protocol}.{key}");
    BROKER.get(&key).or_else(|| BROKER.get(&key.replace(".standby", ".num.standby"))).map(|def| def.name.to_owned())
}

/// Of a kind of groups that is not served yet.
fn is_to_come(name: &str) -> bool {
    let name = name.strip_prefix("group.").unwrap_or(name);
    let kinds = [("share.", ApiKey::ShareGroupHeartbeat), ("streams.", ApiKey::StreamsGroupHeartbeat)];
    kinds.iter().any(|(prefix, api)| name.starts_with(prefix) && !served_apis().contains(api))
}

#[test]
fn every_config_that_works_is_read() {
    let (configs, rest) = code();
    let literal = |name: &str| format!("\"{name}\"");
    // What is read of a topic or a group becomes a field of its settings, and somebody has to use the field.
    let used_field = |def: &Def| {
        let read = configs.contains(&literal(def.name));
        let field = def.name.replace('.', "_");
        let field = match def.name {
            "internal.segment.bytes" => "segment_bytes",
            "share.isolation.level" => "share_read_committed",
            _ => &field,
        };
        read && rest.contains(&format!(".{field}"))
    };
    let mut read: BTreeSet<&str> = BTreeSet::new();
    for def in TOPIC.iter().chain(GROUP.iter()).filter(|def| used_field(def)) {
        read.insert(def.name);
        read.extend(def.broker);
    }
    for def in BROKER.iter() {
        if rest.contains(&literal(def.name)) || configs.contains(&literal(def.name)) {
            read.insert(def.name);
        }
    }
    // Whoever asks for one of a chain asks for all of it.
    for def in BROKER.iter() {
        if read.contains(def.name) || def.chain.iter().any(|other| read.contains(other)) {
            read.insert(def.name);
            read.extend(def.chain);
        }
    }
    for def in BROKER.iter() {
        if bounded(def.name).is_some_and(|key| read.contains(key.as_str())) {
            read.insert(def.name);
        }
    }
    let works = BROKER.iter().chain(TOPIC.iter()).chain(GROUP.iter()).chain(METRICS.iter());
    let works: Vec<&str> = works.filter(|def| def.effect == Effect::Works).map(|def| def.name).collect();
    assert!(works.len() > 100, "{works:?}");
    let unread: Vec<&&str> = works.iter().filter(|name| !read.contains(*name) && !is_to_come(name)).collect();
    assert!(unread.is_empty(), "the table says that these work, and nothing reads them: {unread:#?}");
}
