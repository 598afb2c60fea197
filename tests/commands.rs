//! The executable from outside: what it prints where, and its exit codes.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Output, Stdio};

fn doze(args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_doze"));
    // Whoever runs the tests may have a broker of their own.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("DOZE_")) {
        command.env_remove(name);
    }
    command.args(args).envs(variables.iter().copied()).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The line of a setting, as `--print-config` shows it.
fn setting(args: &[&str], variables: &[(&str, &str)], name: &str) -> String {
    let output = doze(&[&["serve", "--print-config"], args].concat(), variables);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let line = text(&output.stdout).lines().find(|line| line.trim_start_matches(['#', ' ', '"']).starts_with(name));
    line.unwrap().to_owned()
}

#[test]
fn wrong_settings_are_one_sentence_and_exit_2() {
    for (args, why) in [
        (
            &["--segment-bytes", "5"][..],
            "doze: --segment-bytes: Invalid value 5 for configuration log.segment.bytes: Value must be at least 1048576",
        ),
        (&["--listen", "9092"], "doze: --listen: \"9092\" is not an address"),
        (&["--advertise", "0.0.0.0:1"], "doze: Invalid value 0.0.0.0:1 for configuration advertised.listeners"),
        (
            &["--override", "num.partition=1"],
            "doze: --override: num.partition is not a broker config of Apache Kafka's",
        ),
        (
            &["--override", "retention.ms=1"],
            "doze: --override: retention.ms is a config of topics; the broker's is log.retention.ms",
        ),
        (&["--override", "num.partitions"], "doze: --override: \"num.partitions\" is not KEY=VALUE"),
        (&["--fsync-interval", "soon"], "doze: --fsync-interval: \"soon\" is not a time"),
        (
            &["--retention-ms", "1", "--override", "log.retention.ms=1"],
            "doze: --retention-ms and --override both set log.retention.ms",
        ),
        (&["--config", "/does/not/exist"], "doze: cannot read the settings in /does/not/exist"),
        (&["--log-format", "xml"], "doze: --log-format: \"xml\" is neither text nor json"),
        (&["--log-level", "loud"], "doze: --log-level: \"loud\" is none of"),
        (&["--data-dir", ""], "doze: --data-dir: the name is empty"),
        (&["--no-such-flag"], "error: unexpected argument '--no-such-flag'"),
    ] {
        let output = doze(&[&["serve"], args].concat(), &[]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.starts_with(why), "{args:?}: {stderr}");
        assert!(stderr.lines().count() == 1 || args == ["--no-such-flag"], "{stderr}");
        assert_eq!(text(&output.stdout), "");
    }
    let output = doze(&["serve"], &[("DOZE_RETENTION_MS", "x")]);
    assert!(text(&output.stderr).starts_with("doze: DOZE_RETENTION_MS: Invalid value x"), "{}", text(&output.stderr));
    let output = doze(&[], &[]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn flags_then_variables_then_the_file_then_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("doze.toml");
    std::fs::write(&file, "retention-bytes = 3\nlog.segment.bytes = 2000000\nnum.partitions = 3\n").unwrap();
    let config = file.to_str().unwrap();
    let variables = [
        ("DOZE_CONFIG", config),
        ("DOZE_OVERRIDE", "log.segment.bytes=3000000; num.io.threads=2"),
        ("DOZE_RETENTION_BYTES", "2"),
    ];
    for (args, variables, name, line) in [
        (
            &["--retention-bytes", "-1"][..],
            &variables[..],
            "retention-bytes",
            "retention-bytes = -1  # from the flag --retention-bytes",
        ),
        (&[], &variables, "retention-bytes", "retention-bytes = 2  # from the variable DOZE_RETENTION_BYTES"),
        (&[], &variables, "segment-bytes", "segment-bytes = 3000000  # from the variable DOZE_OVERRIDE"),
        (&[], &variables, "default-partitions", &format!("default-partitions = 3  # from the file {config}")),
        (&["--config", config], &[], "retention-bytes", &format!("retention-bytes = 3  # from the file {config}")),
        (&[], &[], "retention-bytes", "retention-bytes = -1  # default"),
        (
            &[],
            &variables,
            "num.io.threads",
            "\"num.io.threads\" = 2  # from the variable DOZE_OVERRIDE; without effect: doze sizes its threads by the \
             machine",
        ),
    ] {
        assert_eq!(setting(args, variables, name), line);
    }
}

#[test]
fn what_is_printed_is_a_file_that_means_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("doze.toml");
    let values = |output: &Output| {
        let lines = text(&output.stdout).lines().map(|line| line.rsplit_once("  # ").map_or(line, |(value, _)| value));
        lines.map(|line| line.trim_start_matches("# ").to_owned()).collect::<Vec<_>>()
    };
    for args in [
        &[][..],
        &[
            "--listen",
            "[::1]:0",
            "--advertise",
            "h:1",
            "--data-dir",
            "a \"b\"",
            "--fsync-interval",
            "0",
            "--log-level",
            "off",
        ],
        &[
            "--override",
            "log.retention.hours=5",
            "--override",
            "node.id=7",
            "--override",
            "log.cleaner.min.cleanable.ratio=1e-9",
        ],
        &["--data-dir", "/y", "--override", "max.connections.per.ip.overrides=10.0.0.1:1,localhost:2"],
        &["--override", "broker.id=8", "--retention-ms", "5"],
    ] {
        let args = [&["serve", "--print-config"], args].concat();
        let first = doze(&args, &[]);
        assert!(first.status.success(), "{}", text(&first.stderr));
        std::fs::write(&file, &first.stdout).unwrap();
        let second = doze(&["serve", "--print-config", "--config", file.to_str().unwrap()], &[]);
        assert!(second.status.success(), "{}", text(&second.stderr));
        let difference: Vec<_> = values(&first).into_iter().zip(values(&second)).filter(|(a, b)| a != b).collect();
        // Defaults that are given now: the data directory stands under both of its names.
        let expected: Vec<_> =
            difference.iter().filter(|(a, _)| a.contains("log.dirs") || a.contains("broker.id")).collect();
        assert_eq!(difference.len(), expected.len(), "{args:?}: {difference:?}");
        assert!(values(&first).len() > 350);
    }
}

#[test]
fn passwords_are_not_printed() {
    let line = setting(&["--override", "ssl.key.password=geheim"], &[], "ssl.key.password");
    assert!(line.starts_with("# ") && line.contains("not shown") && !line.contains("geheim"), "{line}");
}

#[test]
fn settings_as_json() {
    let output = doze(&["serve", "--print-config", "--log-format", "json"], &[]);
    let lines: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let listen = lines.iter().find(|line| line["name"] == "listen").unwrap();
    assert_eq!((&listen["value"], &listen["from"]), (&"127.0.0.1:9092".into(), &"default".into()));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_doze"))
        .args(["serve", "--print-config"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
}

#[test]
fn help_names_the_exit_codes() {
    for args in [&["--help"][..], &["serve", "--help"], &["completions", "--help"]] {
        let output = doze(args, &[]);
        assert!(output.status.success());
        let stdout = text(&output.stdout);
        assert!(stdout.contains("\n  3  the directory is in use"), "{stdout}");
        assert!(stdout.lines().all(|line| line.chars().count() <= 100), "{stdout}");
    }
    let version = doze(&["--version"], &[]);
    assert_eq!(text(&version.stdout), concat!("doze ", env!("CARGO_PKG_VERSION"), "\n"));
}
