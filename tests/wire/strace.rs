//! What the executable asks of the kernel, as `strace` sees it: no produce with acks=all is answered before an fdatasync of its
//! log that came after its write.
//!
//! Left out, loudly, where there is no `strace` or it may not trace.

use std::collections::HashMap;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::data::*;
use crate::harness::{Broker, PATIENCE, skipped};

/// Traces a process until it is dropped.
struct Strace {
    child: Child,
    output: std::path::PathBuf,
    _dir: tempfile::TempDir,
}

impl Drop for Strace {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `None`, and it says so, where that cannot be done here.
fn trace(broker: &Broker) -> Option<Strace> {
    let skip = |why: &str| {
        skipped(&format!("the flushes that strace sees: {why}"));
        None
    };
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("trace");
    let child = Command::new("strace")
        .args([
            "-f",
            "-y",
            "-s",
            "8",
            "-e",
            "trace=pwrite64,pwritev,pwritev2,write,writev,sendto,sendmsg,fsync,fdatasync",
        ])
        .arg("-o")
        .arg(&output)
        .args(["-p", &broker.pid().to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return skip("there is no strace") };
    // It is attached once it is the tracer of all of the process's threads.
    let end = Instant::now() + PATIENCE;
    while !is_traced(broker.pid()) {
        if let Some(status) = child.try_wait().unwrap() {
            return skip(&format!("strace ended with {status}; it may not trace here"));
        }
        assert!(Instant::now() < end, "strace does not attach");
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(Strace { child, output, _dir: dir })
}

fn is_traced(pid: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks.into_iter().all(|task| {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap_or_default();
        status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|pid| pid.trim() != "0"))
    })
}

/// A call that has come back, in the order in which calls did.
#[derive(Debug)]
struct Call {
    name: String,
    /// What follows the name, up to the result.
    args: String,
}

/// The calls of a trace. One that was interrupted by another thread's stands in two lines; the second one counts.
fn calls(text: &str) -> Vec<Call> {
    let mut begun: HashMap<&str, &str> = HashMap::new();
    let mut calls = vec![];
    for line in text.lines() {
        let Some((thread, rest)) = line.trim_start().split_once(' ') else { continue };
        let rest = rest.trim_start();
        if let Some(first) = rest.strip_suffix("<unfinished ...>") {
            begun.insert(thread, first);
            continue;
        }
        let whole = match rest.strip_prefix("<... ") {
            Some(second) => match begun.remove(thread) {
                Some(first) => format!("{first} {second}"),
                None => continue,
            },
            None => rest.to_owned(),
        };
        if let Some((name, args)) = whole.split_once('(') {
            calls.push(Call { name: name.to_owned(), args: args.to_owned() });
        }
    }
    calls
}

#[test]
fn strace_sees_an_fdatasync_between_each_write_and_its_acknowledgement() {
    const PRODUCED: usize = 40;
    let broker = Broker::start_with(&["--fsync-interval", "0"]);
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[]);
    // From here on nothing but these requests writes anything.
    produce_ok(&mut client, &topic, &batch(&[b"the first one has its directory flushed too"]));
    let Some(strace) = trace(&broker) else { return };
    for n in 0..PRODUCED {
        produce_ok(&mut client, &topic, &batch(&[format!("record {n}").as_bytes()]));
    }
    let plain = produce_at(&mut client, 13, &topic, 0, 1, &batch(&[b"acks=1"]));
    assert_eq!(plain.error_code, 0);
    let log = "/t-0/00000000000000000000.log>";
    let count = |calls: &[Call], what: &dyn Fn(&Call) -> bool| calls.iter().filter(|call| what(call)).count();
    let is_write = |call: &Call| call.name.starts_with("pwrite") && call.args.contains(log);
    let is_sync = |call: &Call| call.name.ends_with("sync") && call.args.contains(log) && call.args.contains("= 0");
    let is_answer = |call: &Call| call.args.contains("<TCP:") || call.args.contains("<socket:");
    // The trace is written by another process, a little later.
    let end = Instant::now() + PATIENCE;
    let calls = loop {
        let calls = calls(&std::fs::read_to_string(&strace.output).unwrap());
        if count(&calls, &is_answer) > PRODUCED {
            break calls;
        }
        assert!(Instant::now() < end, "the trace ends with {:?}", calls.last());
        std::thread::sleep(Duration::from_millis(20));
    };
    let (mut written, mut flushed, mut answered, mut flushes) = (0, 0, 0, 0);
    for call in &calls {
        if is_write(call) {
            written += 1;
        } else if is_sync(call) {
            // What was written before this one came back; each producer waits for its answer, so that is all that there is.
            flushed = written;
            flushes += 1;
        } else if is_answer(call) && answered < PRODUCED {
            answered += 1;
            assert_eq!(written, answered, "answer {answered} comes with {written} batches written");
            assert_eq!(flushed, answered, "answer {answered} comes with {flushed} batches flushed");
        }
    }
    println!("{answered} acknowledged, {written} writes, {flushes} fdatasyncs of the log");
    assert_eq!((answered, written, flushes), (PRODUCED, PRODUCED + 1, PRODUCED), "acks=1 is written and not flushed");
}
