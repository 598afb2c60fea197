//! `doze serve` as a process: how it refuses to start, where its settings are from, how it stops.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use doze::protocol::messages::describe_cluster::DescribeClusterRequest;
use doze::protocol::messages::describe_configs::{DescribeConfigsRequest, DescribeConfigsResource};
use doze::protocol::messages::fetch::{FetchPartition, FetchRequest, FetchTopic};
use doze::protocol::messages::find_coordinator::FindCoordinatorRequest;
use doze::protocol::messages::metadata::MetadataRequest;
use doze::protocol::messages::produce::ProduceRequest;
use redb::ReadableTable;

use crate::asks::*;
use crate::harness::{Broker, Client, PATIENCE, signal, wait};

/// `doze serve` over the folder `data` of `dir`.
fn serve(dir: &Path, args: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_doze"));
    command.arg("serve").args(args).current_dir(dir);
    command.env_clear().envs(std::env::vars().filter(|(name, _)| !name.starts_with("DOZE_")));
    command.envs(variables.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs one that does not get to serve.
fn refused(dir: &Path, args: &[&str]) -> (Option<i32>, String) {
    let mut child = serve(dir, args, &[]).spawn().unwrap();
    let status = wait(&mut child);
    let Output { stdout, stderr, .. } = child.wait_with_output().unwrap();
    assert!(stdout.is_empty(), "it is not ready");
    let stderr = String::from_utf8(stderr).unwrap();
    // The log may say more before; the last line says why.
    (status.code(), stderr.lines().last().unwrap_or_default().to_owned())
}

/// One that serves; its first line of stdout is read.
struct Served {
    child: Child,
    ready: String,
}

impl Served {
    fn start(dir: &Path, args: &[&str], variables: &[(&str, &str)]) -> Served {
        let mut child = serve(dir, args, variables).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        if ready.is_empty() {
            let mut stderr = String::new();
            child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
            panic!("it is not ready: {stderr}");
        }
        Served { child, ready }
    }

    fn address(&self) -> SocketAddr {
        self.ready.split_whitespace().last().unwrap().parse().unwrap()
    }

    /// SIGTERM. Answers the exit code and everything that it wrote to stderr.
    fn stop(mut self) -> (Option<i32>, String) {
        signal(&self.child, "TERM");
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (wait(&mut self.child).code(), stderr)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn config(client: &mut Client, key: &str) -> (Option<String>, i8) {
    let resource = DescribeConfigsResource {
        resource_type: 4,
        resource_name: "1".into(),
        configuration_keys: Some(vec![key.into()]),
    };
    let response = client.call(4, &DescribeConfigsRequest { resources: vec![resource], ..Default::default() });
    let config = &response.results[0].configs[0];
    (config.value.clone(), config.config_source)
}

const ANY_PORT: [&str; 2] = ["--listen", "127.0.0.1:0"];

#[test]
fn a_taken_port_is_exit_2_and_leaves_the_directory_as_it_was() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let dir = tempfile::tempdir().unwrap();
    let (code, why) = refused(dir.path(), &["--listen", &address]);
    assert_eq!(code, Some(2), "{why}");
    let expected =
        format!("doze: the port of {address} is taken: another program, perhaps another doze, listens on it");
    assert_eq!(why, expected);
    assert!(dir.path().join("data/clean-shutdown").exists(), "nothing has to be checked at the next start");
}

#[test]
fn a_directory_in_use_is_exit_3() {
    let broker = Broker::start();
    let data = broker.data_dir();
    let (code, why) = refused(&data, &[&ANY_PORT[..], &["--data-dir", data.to_str().unwrap()]].concat());
    assert_eq!(code, Some(3), "{why}");
    assert_eq!(why, format!("doze: {} is in use by another process", data.display()));
    // Nor is the first one disturbed.
    create_topic(&mut broker.connect(), "t", 1);
    // One that was killed holds nothing.
    let broker = broker.kill().start();
    create_topic(&mut broker.connect(), "u", 1);
}

#[test]
fn what_is_no_data_directory_is_exit_4_and_left_alone() {
    let refused_with = |files: &[(&str, &[u8])]| {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        std::fs::create_dir(&data).unwrap();
        for (name, bytes) in files {
            std::fs::write(data.join(name), bytes).unwrap();
        }
        let answer = refused(dir.path(), &ANY_PORT);
        let mut left: Vec<_> = std::fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        let mut put: Vec<_> = files.iter().map(|(name, _)| std::ffi::OsString::from(name)).collect();
        put.sort();
        // A lock beside a catalog is the most that may come to it.
        left.retain(|name| name != ".lock" && name != "lock");
        assert_eq!(left, put);
        for (name, bytes) in files {
            assert_eq!(&std::fs::read(data.join(name)).unwrap(), bytes);
        }
        answer
    };
    let (code, why) = refused_with(&[("holiday.jpg", b"...")]);
    assert_eq!(code, Some(4), "{why}");
    assert!(why.contains("data is not a data directory of doze: it holds \"holiday.jpg\""), "{why}");
    let (code, why) = refused_with(&[("meta.properties", b"version=1\ncluster.id=x\nnode.id=1\n")]);
    assert_eq!(code, Some(4), "{why}");
    assert!(why.contains("is a log directory of Apache Kafka"), "{why}");
    let (code, why) = refused_with(&[("meta.db", b"no database at all")]);
    assert_eq!(code, Some(4), "{why}");
    assert!(why.ends_with("meta.db is not a catalog of doze"), "{why}");

    // A file where the directory should be.
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("data"), b"x").unwrap();
    let (code, why) = refused(dir.path(), &ANY_PORT);
    assert_eq!(code, Some(4), "{why}");
}

#[test]
fn a_catalog_that_a_newer_doze_wrote_is_exit_4() {
    let broker = Broker::start();
    create_topic(&mut broker.connect(), "t", 1);
    let stopped = broker.stop();
    let catalog = stopped.data_dir().join("meta.db");
    let meta = redb::TableDefinition::<&str, &[u8]>::new("meta");
    let write_format = |change: &dyn Fn(u32) -> u32| {
        let database = redb::Database::open(&catalog).unwrap();
        let transaction = database.begin_write().unwrap();
        {
            let mut table = transaction.open_table(meta).unwrap();
            let format = u32::from_be_bytes(table.get("format").unwrap().unwrap().value().try_into().unwrap());
            table.insert("format", &change(format).to_be_bytes()[..]).unwrap();
        }
        transaction.commit().unwrap();
    };
    write_format(&|format| format + 1);
    let data = stopped.data_dir();
    let (code, why) = refused(&data, &[&ANY_PORT[..], &["--data-dir", data.to_str().unwrap()]].concat());
    assert_eq!(code, Some(4), "{why}");
    assert!(why.contains("a newer doze wrote it"), "{why}");
    write_format(&|format| format - 1);
    assert_eq!(end_offset(&mut stopped.start().connect(), "t", 0), Ok(0), "and nothing of it was touched");
}

#[test]
fn a_catalog_that_is_missing_or_cannot_be_read_is_exit_2() {
    let broker = Broker::start();
    create_topic(&mut broker.connect(), "t", 1);
    let stopped = broker.stop();
    let data = stopped.data_dir();
    let args = [&ANY_PORT[..], &["--data-dir", data.to_str().unwrap()]].concat();
    let (catalog, away) = (data.join("meta.db"), data.join("../away.db"));
    std::fs::rename(&catalog, &away).unwrap();
    let (code, why) = refused(&data, &args);
    assert_eq!(code, Some(2), "{why}");
    assert!(why.contains("holds 1 partitions (\"t-0\" for one), and the catalog"), "{why}");
    std::fs::create_dir(&catalog).unwrap();
    let (code, why) = refused(&data, &args);
    assert_eq!(code, Some(2), "{why}");
    assert!(why.contains("meta.db"), "{why}");
    std::fs::remove_dir(&catalog).unwrap();
    // Damage inside is found, said, and no reason to panic.
    let whole = std::fs::read(&away).unwrap();
    let mut damaged = whole.clone();
    for byte in damaged.iter_mut().skip(64).step_by(7) {
        *byte ^= 0x5a;
    }
    std::fs::write(&catalog, &damaged).unwrap();
    let (code, why) = refused(&data, &args);
    assert!(matches!(code, Some(2 | 4)) && why.contains("meta.db"), "{code:?} {why}");
    std::fs::write(&catalog, &whole).unwrap();
    assert_eq!(end_offset(&mut stopped.start().connect(), "t", 0), Ok(0));
}

#[test]
fn a_value_out_of_range_is_exit_2_before_anything_is_touched() {
    let dir = tempfile::tempdir().unwrap();
    for args in [
        &["--segment-bytes", "1048575"][..],
        &["--default-partitions", "0"],
        &["--listen", "127.0.0.1:65536"],
        &["--override", "max.connections=0"],
        &["--listen", "192.0.2.1:0"],
    ] {
        let (code, why) = refused(dir.path(), args);
        assert_eq!(code, Some(2), "{args:?}: {why}");
        assert!(why.starts_with("doze: "), "{why}");
        assert!(!dir.path().join("data").exists() || args[1] == "192.0.2.1:0", "{args:?}");
    }
    let output = serve(dir.path(), &["--print-config", "--data-dir", "elsewhere"], &[]).output().unwrap();
    assert!(output.status.success() && !dir.path().join("elsewhere").exists(), "it only prints");
}

#[test]
fn settings_are_in_force_wherever_they_are_from() {
    let dir = tempfile::tempdir().unwrap();
    let file = "listen = \"127.0.0.1:0\"\ndefault-partitions = 5\nsegment-bytes = 3000000\nlog.retention.hours = 7\n\
                index-interval-bytes = 9999\n";
    std::fs::write(dir.path().join("doze.toml"), file).unwrap();
    let variables = [
        ("DOZE_CONFIG", "doze.toml"),
        ("DOZE_DEFAULT_PARTITIONS", "4"),
        ("DOZE_SEGMENT_BYTES", "2000000"),
        ("DOZE_OVERRIDE", "compression.type=zstd"),
    ];
    let args = ["--default-partitions", "3", "--auto-create-topics=false", "--override", "message.max.bytes=12345"];
    let served = Served::start(dir.path(), &args, &variables);
    let mut client = Client::connect(served.address());
    let mut value = |key| config(&mut client, key);
    let at_start = |value: &str| (Some(value.to_owned()), 4);
    assert_eq!(value("num.partitions"), at_start("3"), "the flag");
    assert_eq!(value("log.segment.bytes"), at_start("2000000"), "the variable");
    assert_eq!(value("log.index.interval.bytes"), at_start("9999"), "the file");
    assert_eq!(value("log.retention.hours"), at_start("7"));
    assert_eq!(value("auto.create.topics.enable"), at_start("false"));
    assert_eq!(value("message.max.bytes"), at_start("12345"));
    assert_eq!(value("compression.type"), at_start("zstd"));
    assert_eq!(value("log.cleanup.policy"), (Some("delete".into()), 5));
    assert_eq!(value("log.dirs"), (Option::None, 5), "the default is log.dir's");
    // And they do what they say.
    create_topic(&mut client, "t", -1);
    assert_eq!(end_offset(&mut client, "t", 2), Ok(0));
    assert!(produce(&mut client, "t", 0, &[0; 13_000]).is_err());
    assert!(dir.path().join("data/t-2").exists());
    assert_eq!(served.stop().0, Some(0));
}

#[test]
fn clients_are_told_the_address_that_they_connected_to_or_the_one_that_is_advertised() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &["--listen", "127.0.0.1:0", "--advertise", "broker.example.org:9"], &[]);
    let mut client = Client::connect(served.address());
    let everywhere = |client: &mut Client| {
        let metadata = client.call(12, &MetadataRequest::default()).brokers.remove(0);
        let cluster = client.call(0, &DescribeClusterRequest::default()).brokers.remove(0);
        let request = FindCoordinatorRequest { coordinator_keys: vec!["g".into()], ..Default::default() };
        let coordinator = client.call(4, &request).coordinators.remove(0);
        let told = (metadata.host, metadata.port);
        assert_eq!((cluster.host, cluster.port), told);
        assert_eq!((coordinator.host, coordinator.port), told);
        told
    };
    assert_eq!(everywhere(&mut client), ("broker.example.org".into(), 9));
    assert_eq!(served.stop().0, Some(0));

    // All addresses of the machine: each client hears of its own.
    let served = Served::start(dir.path(), &["--listen", ":0"], &[]);
    let port = served.address().port();
    for host in ["127.0.0.1", "127.0.0.2"] {
        // Not every system has more than one address on the loopback.
        let Ok(_) = TcpStream::connect((host, port)) else { continue };
        let mut client = Client::connect(format!("{host}:{port}").parse().unwrap());
        assert_eq!(everywhere(&mut client), (host.to_owned(), port.into()));
    }
    assert_eq!(served.stop().0, Some(0));

    if TcpListener::bind("[::1]:0").is_err() {
        eprintln!("SKIPPED: this machine has no IPv6 loopback");
        return;
    }
    let served = Served::start(dir.path(), &["--listen", "[::1]:0"], &[]);
    assert!(served.ready.starts_with("doze is ready on [::1]:"), "{}", served.ready);
    let mut client = Client::connect(served.address());
    let port = served.address().port();
    assert_eq!(everywhere(&mut client), ("::1".into(), port.into()));
    assert_eq!(config(&mut client, "listeners").0.unwrap(), format!("PLAINTEXT://[::1]:{port}"));
    assert_eq!(served.stop().0, Some(0));
}

#[test]
fn the_port_that_was_picked_is_shown_and_stays_through_changes() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let listeners = (Some(format!("PLAINTEXT://{}", broker.address)), 4);
    assert_eq!(config(&mut client, "listeners"), listeners);
    let set = |client: &mut Client, key: &str, value: &str| {
        use doze::protocol::messages::incremental_alter_configs::*;
        let config = AlterableConfig { name: key.into(), config_operation: 0, value: Some(value.into()) };
        let resource = AlterConfigsResource { resource_type: 4, resource_name: "1".into(), configs: vec![config] };
        let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
        client.call(1, &request).responses[0].error_code
    };
    assert_eq!(set(&mut client, "message.max.bytes", "5000"), 0);
    assert_eq!(config(&mut client, "listeners"), listeners);
    assert_eq!(config(&mut client, "message.max.bytes").0.unwrap(), "5000");
    // It can be set to what it is, and to nothing else.
    assert_eq!(set(&mut client, "listeners", "PLAINTEXT://127.0.0.1:1"), 42);
}

#[test]
fn a_stop_answers_what_it_has_read_and_marks_the_directory_as_clean() {
    let broker = Broker::start();
    let mark = broker.data_dir().join("clean-shutdown");
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    assert!(!mark.exists());
    assert_eq!(produce(&mut client, "t", 0, b"first"), Ok(0));
    let ids: Vec<i32> = (0..100).map(|_| client.send(12, &produce_request("t", 0, -1, b"more"))).collect();
    // At least one of them is under way.
    let first = client.receive::<ProduceRequest>(12, ids[0]);
    assert_code(first.responses[0].partition_responses[0].error_code, doze::protocol::ErrorCode::None);
    let stopped = broker.stop();
    let mut answered = 2;
    for id in &ids[1..] {
        let Some(frame) = client.receive_raw() else { break };
        let (found, response) = doze::protocol::frame::decode_response::<ProduceRequest>(12, frame).unwrap();
        assert_eq!(found, *id);
        let partition = &response.responses[0].partition_responses[0];
        assert_eq!((partition.error_code, partition.base_offset), (0, answered));
        answered += 1;
    }
    assert!(client.receive_raw().is_none());
    assert!(mark.exists());
    let broker = stopped.start();
    assert!(!mark.exists(), "it is taken away again while somebody writes");
    assert_eq!(end_offset(&mut broker.connect(), "t", 0), Ok(answered), "nothing was taken in and left unanswered");
    let stopped = broker.kill();
    assert!(!mark.exists(), "a kill is not clean");
    assert_eq!(end_offset(&mut stopped.start().connect(), "t", 0), Ok(answered));
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut served = Served::start(dir.path(), &ANY_PORT, &[]);
    let mut client = Client::connect(served.address());
    create_topic(&mut client, "t", 1);
    for _ in 0..20 {
        produce(&mut client, "t", 0, &vec![1; 1_000_000]).unwrap();
    }
    // Somebody asks for more than the sockets hold, and never reads it: the stop would wait for that.
    let partition = FetchPartition { partition_max_bytes: 50_000_000, ..Default::default() };
    let topic = FetchTopic { topic: "t".into(), partitions: vec![partition], ..Default::default() };
    let request = FetchRequest { max_bytes: 50_000_000, max_wait_ms: 0, topics: vec![topic], ..Default::default() };
    client.send(12, &request);
    client.send(12, &request);
    let mut first = [0; 1];
    client.socket().read_exact(&mut first).unwrap();
    signal(&served.child, "TERM");
    std::thread::sleep(Duration::from_millis(300));
    assert!(served.child.try_wait().unwrap().is_none(), "it waits for the client");
    let start = Instant::now();
    signal(&served.child, "TERM");
    let status = wait(&mut served.child);
    assert!(start.elapsed() < Duration::from_secs(3), "it took {:?}", start.elapsed());
    assert_eq!(status.code(), Some(2));
    let mut stderr = String::new();
    served.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert!(stderr.contains("doze: stopped at once by a second SIGTERM"), "{stderr}");
    assert!(!dir.path().join("data/clean-shutdown").exists());
    // What was acknowledged is there all the same.
    let served = Served::start(dir.path(), &ANY_PORT, &[]);
    assert_eq!(end_offset(&mut Client::connect(served.address()), "t", 0), Ok(20));
}

#[test]
fn ctrl_c_is_a_clean_stop_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut served = Served::start(dir.path(), &ANY_PORT, &[]);
    signal(&served.child, "INT");
    assert_eq!(wait(&mut served.child).code(), Some(0));
    assert!(dir.path().join("data/clean-shutdown").exists());
}

#[test]
fn a_log_in_json_is_one_object_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let args =
        [&ANY_PORT[..], &["--log-format", "json", "--log-level", "trace", "--override", "num.io.threads=3"]].concat();
    let args = [&args[..], &["--override", "com.example.plugin=x"]].concat();
    let served = Served::start(dir.path(), &args, &[]);
    let ready: serde_json::Value = serde_json::from_str(&served.ready).unwrap();
    assert_eq!(ready["event"], "ready");
    let mut client = Client::connect(ready["address"].as_str().unwrap().parse().unwrap());
    client.call(12, &MetadataRequest { topics: Some(vec![]), ..Default::default() });
    create_topic(&mut client, "t", 1);
    // A request that is none; its name has what JSON has to escape.
    let mut broken = Client::connect(ready["address"].as_str().unwrap().parse().unwrap());
    broken.send_raw(&[0, 0, 0, 9, 0, 3, 0, 0, 0, 0, 0, 0, b'"']);
    assert!(broken.receive_raw().is_none());
    let (code, stderr) = served.stop();
    assert_eq!(code, Some(0));
    let lines: Vec<serde_json::Value> = stderr.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert!(lines.len() >= 3, "{stderr}");
    for line in &lines {
        assert!(line["level"].is_string() && line["message"].is_string() && line["timestamp"].is_string(), "{line}");
    }
    let message = |text: &str| lines.iter().any(|line| line["message"].as_str().unwrap().contains(text));
    assert!(message("num.io.threads is accepted and has no effect"), "{stderr}");
    assert!(message("com.example.plugin is no config of Apache Kafka's or doze's"), "{stderr}");
    assert!(message("closing the connection"), "{stderr}");
    assert!(message("SIGTERM: stopping"), "{stderr}");
}

#[test]
fn nobody_has_to_read_stdout() {
    let dir = tempfile::tempdir().unwrap();
    // A port that was free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut child = serve(dir.path(), &["--listen", &address.to_string()], &[]).spawn().unwrap();
    drop(child.stdout.take());
    let end = Instant::now() + PATIENCE;
    while TcpStream::connect(address).is_err() {
        assert!(Instant::now() < end, "it never listens");
        std::thread::sleep(Duration::from_millis(10));
    }
    create_topic(&mut Client::connect(address), "t", 1);
    signal(&child, "TERM");
    assert_eq!(wait(&mut child).code(), Some(0));
}

#[test]
fn an_address_may_have_so_many_connections_and_exceptions_of_its_own() {
    let broker = Broker::start_with(&["--override", "max.connections.per.ip=2"]);
    let works = |client: &mut Client| {
        // One that is refused is closed, or reset under the request.
        let request = crate::harness::request_bytes(0, 1, &MetadataRequest::default());
        client.socket().write_all(&request).is_ok() && client.receive_raw().is_some()
    };
    let mut clients = [broker.connect(), broker.connect(), broker.connect()];
    assert_eq!(clients.each_mut().map(works), [true, true, false]);
    let args = [
        "--override",
        "max.connections.per.ip=1",
        "--override",
        "max.connections.per.ip.overrides=10.1.1.1:1,127.0.0.1:3",
    ];
    let broker = Broker::start_with(&args);
    let mut clients = [broker.connect(), broker.connect(), broker.connect(), broker.connect()];
    assert_eq!(clients.each_mut().map(works), [true, true, true, false]);
}
