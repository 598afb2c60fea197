//! What a stop, a kill and a start leave of what was acknowledged; and the start itself.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use doze::protocol::frame;
use doze::protocol::messages::produce::ProduceRequest;
use doze::record::{BatchOptions, Codec};

use crate::data::*;
use crate::harness::{Broker, Client, PATIENCE, request_bytes, serve, signal, wait};

/// The most requests that a producer has under way, as Kafka's clients have it.
const IN_FLIGHT: usize = 5;

/// An idempotent producer that goes on over kills: what was not acknowledged is sent again.
struct Writer {
    topic: Topic,
    partition: i32,
    producer: (i64, i16),
    sequence: i32,
    /// Sent, or to be sent again, in order.
    unanswered: VecDeque<Bytes>,
    /// With their offsets.
    acknowledged: Vec<(i64, Bytes)>,
}

impl Writer {
    fn new(topic: &Topic, partition: i32, producer: (i64, i16)) -> Self {
        let (unanswered, acknowledged) = (VecDeque::new(), vec![]);
        Writer { topic: topic.clone(), partition, producer, sequence: 0, unanswered, acknowledged }
    }

    fn next(&mut self) -> Bytes {
        let count = 1 + self.sequence as usize % 3;
        let options = BatchOptions {
            codec: if self.sequence % 2 == 0 { Codec::None } else { Codec::Lz4 },
            producer_id: self.producer.0,
            producer_epoch: self.producer.1,
            base_sequence: self.sequence,
            ..BatchOptions::default()
        };
        let value = format!("{}-{} ", self.partition, self.sequence).repeat(self.sequence as usize % 400);
        self.sequence += count as i32;
        batch_of(options, now_ms(), &vec![value.as_bytes(); count])
    }

    /// Produces until the connection ends. Every answer has to be an acknowledgement.
    fn run(&mut self, address: SocketAddr) {
        let client = Client::connect(address);
        let (mut sent, mut answered) = (0, 0);
        let mut open = true;
        loop {
            while open && sent - answered < IN_FLIGHT as i32 {
                let again = (sent - answered) as usize;
                if again == self.unanswered.len() {
                    let next = self.next();
                    self.unanswered.push_back(next);
                }
                let request = produce_request(&self.topic, self.partition, ALL, &self.unanswered[again]);
                // Where nothing can be sent any more, answers may still be on their way.
                open = client.socket().write_all(&request_bytes(9, sent, &request)).is_ok();
                sent += i32::from(open);
            }
            let Some(answer) = receive(&client) else { return };
            let (id, response) = frame::decode_response::<ProduceRequest>(9, answer).unwrap();
            assert_eq!(id, answered);
            answered += 1;
            let said = &response.responses[0].partition_responses[0];
            assert_eq!(said.error_code, 0, "{said:?}");
            let batch = self.unanswered.pop_front().unwrap();
            self.acknowledged.push((said.base_offset, batch));
        }
    }

    /// Everything acknowledged is there, once, in order, byte for byte; after it at most what was sent and not answered.
    fn check(&self, client: &mut Client) {
        let there = fetch_all(client, &self.topic, self.partition, 0);
        let mut at = 0;
        let mut next_offset = 0;
        for (offset, batch) in &self.acknowledged {
            assert_eq!(*offset, next_offset, "partition {}", self.partition);
            let expected = stored(batch, next_offset);
            let found = there.get(at..at + expected.len());
            assert_eq!(found, Some(&expected[..]), "partition {}, offset {offset}", self.partition);
            at += expected.len();
            next_offset += records_in(batch);
        }
        for batch in &self.unanswered {
            if at == there.len() {
                break;
            }
            let expected = stored(batch, next_offset);
            assert_eq!(there.get(at..at + expected.len()), Some(&expected[..]), "what follows was sent");
            at += expected.len();
            next_offset += records_in(batch);
        }
        assert_eq!(at, there.len(), "partition {} holds more than was sent", self.partition);
    }
}

fn records_in(batch: &[u8]) -> i64 {
    i64::from(i32::from_be_bytes(*batch[57..].first_chunk().unwrap()))
}

/// A whole frame, or `None` when the broker is gone.
fn receive(client: &Client) -> Option<Bytes> {
    let mut length = [0; 4];
    client.socket().read_exact(&mut length).ok()?;
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    client.socket().read_exact(&mut frame).ok()?;
    Some(frame.into())
}

/// Runs all writers until `end` has ended the broker, and hands back what it did.
fn under_load<T>(broker: Broker, writers: &mut [Writer], load: Duration, end: impl FnOnce(Broker) -> T) -> T {
    let address = broker.address;
    std::thread::scope(|scope| {
        for writer in writers {
            scope.spawn(|| writer.run(address));
        }
        std::thread::sleep(load);
        end(broker)
    })
}

fn writers(broker: &Broker, topic: &str) -> Vec<Writer> {
    let mut client = broker.connect();
    let small = [("internal.segment.bytes", "200000")];
    let topic = create_topic(&mut client, topic, 4, &small);
    (0..4).map(|partition| Writer::new(&topic, partition, new_producer(&mut client))).collect()
}

#[test]
fn kills_under_load_lose_nothing_that_was_acknowledged() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(now_ms);
    println!("SEED={seed}");
    let mut broker = Broker::start();
    let mut writers = writers(&broker, "t");
    let mut acknowledged = 0;
    for round in 0..6 {
        let load = Duration::from_millis(20 + ((seed ^ (round * 0x9e37)) as u64).wrapping_mul(0x9e37_79b9) % 380);
        broker = under_load(broker, &mut writers, load, Broker::kill).start();
        let mut client = broker.connect();
        writers.iter().for_each(|writer| writer.check(&mut client));
        let now = writers.iter().map(|writer| writer.acknowledged.len()).sum();
        println!("round {round}: killed after {load:?} with {now} acknowledged batches");
        assert!(now >= acknowledged);
        acknowledged = now;
    }
    assert!(acknowledged > 50, "only {acknowledged} batches were acknowledged");
}

#[test]
fn a_stop_under_load_loses_nothing_and_says_so() {
    let mut broker = Broker::start();
    let mut writers = writers(&broker, "t");
    for _ in 0..2 {
        let stopped = under_load(broker, &mut writers, Duration::from_millis(300), Broker::stop);
        assert!(stopped.data_dir().join("clean-shutdown").exists());
        broker = stopped.start();
        assert!(!broker.data_dir().join("clean-shutdown").exists(), "the mark is for one start");
        let mut client = broker.connect();
        writers.iter().for_each(|writer| writer.check(&mut client));
    }
    assert!(writers.iter().all(|writer| !writer.acknowledged.is_empty()));
}

/// A client that sends much and reads late gets the answers to all that was appended before the stop.
#[test]
fn a_stop_answers_what_was_taken_in() {
    const REQUESTS: usize = 30_000;
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, &"t".repeat(200), 1, &[]);
    let late = broker.connect();
    let (mut sender, one) = (late.socket().try_clone().unwrap(), batch(&[b"x"]));
    let requests = request_bytes(9, 1, &produce_request(&topic, 0, 1, &one)).repeat(REQUESTS);
    let sending = std::thread::spawn(move || sender.write_all(&requests));
    // Until answers and requests are stuck on both sides.
    let mut appended = -1;
    while appended < 100 || end_offset(&mut client, &topic) != appended {
        appended = end_offset(&mut client, &topic);
        std::thread::sleep(Duration::from_millis(100));
    }
    let reading = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        std::iter::from_fn(|| receive(&late)).count() as i64
    });
    let broker = broker.stop().start();
    let answered = reading.join().unwrap();
    let _ = sending.join().unwrap();
    let appended = end_offset(&mut broker.connect(), &topic);
    assert!(appended < REQUESTS as i64, "the stop came before the end");
    assert_eq!(answered, appended, "each of what was appended was answered");
}

#[test]
fn acks_1_survives_a_kill_and_a_stop() {
    let mut broker = Broker::start_with(&["--fsync-interval", "0"]);
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[]);
    let mut expected = vec![];
    for i in 0..6u8 {
        for acks in [0, 1] {
            let sent = batch(&[&[i; 500], b"x"]);
            let offset = expected.len() as i64 * 2;
            if acks == 0 {
                client.send(9, &produce_request(&topic, 0, 0, &sent));
            } else {
                assert_eq!(produce_at(&mut client, 9, &topic, 0, 1, &sent).base_offset, offset);
            }
            expected.push(stored(&sent, offset));
        }
        broker = if i % 2 == 0 { broker.kill().start() } else { broker.stop().start_with(&[]) };
        client = broker.connect();
        assert_eq!(fetch_all(&mut client, &topic, 0, 0), expected.concat());
    }
}

#[test]
fn a_torn_tail_is_cut_and_the_log_goes_on() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[]);
    let (first, torn) = (batch(&[b"first", b"x"]), batch(&[b"torn"]));
    produce_ok(&mut client, &topic, &first);
    let mut stopped = broker.kill();
    for tail in [&stored(&torn, 2)[..torn.len() - 1], &[0; 5000], b"\xff\xff\xff", &stored(&torn, 2)[..20]] {
        let path = stopped.data_dir().join("t-0/00000000000000000000.log");
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(tail).unwrap();
        let broker = stopped.start();
        let mut client = broker.connect();
        assert_eq!(fetch_all(&mut client, &topic, 0, 0), stored(&first, 0));
        assert_eq!(end_offset(&mut client, &topic), 2);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), first.len() as u64);
        stopped = broker.kill();
    }
    let broker = stopped.start();
    let mut client = broker.connect();
    assert_eq!(produce_ok(&mut client, &topic, &torn), 2);
    assert_eq!(fetch_all(&mut client, &topic, 0, 0), [stored(&first, 0), stored(&torn, 2)].concat());
}

#[test]
fn the_ready_line_comes_when_the_broker_answers() {
    for format in ["text", "json"] {
        let dir = tempfile::tempdir().unwrap();
        let begun = Instant::now();
        let mut child = serve(dir.path(), &["--log-format".into(), format.into()]).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert!(begun.elapsed() < PATIENCE);
        let address: SocketAddr = match format {
            "text" => line.strip_prefix("doze is ready on ").unwrap().trim_end().parse().unwrap(),
            _ => {
                let said: serde_json::Value = serde_json::from_str(&line).unwrap();
                assert_eq!(said["event"], "ready");
                said["address"].as_str().unwrap().parse().unwrap()
            }
        };
        assert!(address.ip().is_loopback() && address.port() != 0);
        let mut client = Client::connect(address);
        let topic = create_topic(&mut client, "t", 1, &[]);
        produce_ok(&mut client, &topic, &batch(&[b"x"]));
        signal(&child, "INT");
        assert!(wait(&mut child).success(), "Ctrl-C is a clean end");
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "nothing else goes to stdout");
        assert!(dir.path().join("data/clean-shutdown").exists());
    }
}

#[test]
fn one_directory_is_for_one_process() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[]);
    let output = serve(broker.data_dir().parent().unwrap(), &[]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert_eq!(output.stdout, b"");
    let last = said.lines().last().unwrap();
    assert!(last.starts_with("doze: ") && last.contains("data"), "{last}");
    assert_eq!(produce_ok(&mut client, &topic, &batch(&[b"the first one goes on"])), 0);
    let broker = broker.kill().start();
    assert_eq!(end_offset(&mut broker.connect(), &topic), 1, "a killed one leaves no lock behind");
}

/// Copies a directory and all in it.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = (entry.as_ref().unwrap().path(), entry.unwrap().file_name());
        if path.is_dir() {
            copy(&path, &to.join(name));
        } else {
            std::fs::copy(&path, to.join(name)).unwrap();
        }
    }
}

#[test]
fn a_copied_directory_is_the_broker_that_it_is_a_copy_of() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[]);
    let records = batch(&[b"moved"]);
    produce_ok(&mut client, &topic, &records);
    let stopped = broker.stop();
    let elsewhere = tempfile::tempdir().unwrap();
    copy(&stopped.data_dir(), &elsewhere.path().join("data"));
    // The original goes; nothing in the copy is tied to where it was.
    drop(stopped);
    let broker = Broker::start_in(elsewhere, &[]);
    let mut client = broker.connect();
    assert_eq!(fetch_all(&mut client, &topic, 0, 0), stored(&records, 0));
    assert_eq!(produce_ok(&mut client, &topic, &batch(&[b"and goes on"])), 1);
}
