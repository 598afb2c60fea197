//! Holds the direction of the layers: a file of one layer names none that lies above it.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// Top to bottom. A layer may use those after it.
const LAYERS: [&str; 7] = ["net", "broker", "coordinator", "storage", "record", "protocol", "sys"];

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

/// The layers that a line of code names, as `crate::layer`.
fn named(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split("//").next().unwrap();
    code.split("crate::").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    })
}

#[test]
fn no_layer_names_one_above_it() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = vec![];
    let mut lines = 0;
    for (place, layer) in LAYERS.iter().enumerate() {
        let mut files = vec![];
        rust_files(&src.join(layer), &mut files);
        assert!(!files.is_empty(), "there is no layer {layer}");
        for file in files {
            for (number, line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
                lines += 1;
                for other in named(line) {
                    if LAYERS[..place].contains(&other) {
                        let file = file.strip_prefix(&src).unwrap().display();
                        wrong.push(format!("{file}:{}: {layer} must not use {other}", number + 1));
                    }
                }
            }
        }
    }
    assert!(lines > 1000, "only {lines} lines were looked at");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn storage_names_no_message_of_the_protocol() {
    let mut files = vec![];
    rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/storage"), &mut files);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains("protocol::messages"), "{} names messages", file.display());
    }
}
