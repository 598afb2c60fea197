//! Incremental fetch sessions (KIP-227): the broker remembers which partitions a consumer fetches, so that each request
//! names only what changed, and each response only what has news.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::protocol::messages::fetch::{FetchPartition, FetchRequest, PartitionData};
use crate::protocol::{ErrorCode, Uuid};
use crate::sys::{Clock, Random};

/// How a request names a topic: by id from version 13 on, by name before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TopicKey {
    Id(Uuid),
    Name(Arc<str>),
}

/// One partition that a fetch is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub topic: TopicKey,
    pub partition: i32,
    pub fetch_offset: i64,
    pub max_bytes: i32,
    pub current_leader_epoch: i32,
    pub last_fetched_epoch: i32,
}

impl Wanted {
    fn new(topic: TopicKey, from: &FetchPartition) -> Self {
        Wanted {
            topic,
            partition: from.partition,
            fetch_offset: from.fetch_offset,
            max_bytes: from.partition_max_bytes,
            current_leader_epoch: from.current_leader_epoch,
            last_fetched_epoch: from.last_fetched_epoch,
        }
    }
}

/// The topics of a request, each with how it is named.
pub fn topic_key(request_version: i16, name: &str, id: Uuid) -> TopicKey {
    if request_version >= 13 { TopicKey::Id(id) } else { TopicKey::Name(name.into()) }
}

fn wanted(version: i16, request: &FetchRequest) -> impl Iterator<Item = Wanted> {
    request.topics.iter().flat_map(move |topic| {
        let key = topic_key(version, &topic.topic, topic.topic_id);
        topic.partitions.iter().map(move |partition| Wanted::new(key.clone(), partition))
    })
}

type Key = (TopicKey, i32);

/// A partition in a session, with what its last response said.
#[derive(Debug)]
struct Remembered {
    wanted: Wanted,
    high_watermark: i64,
    log_start_offset: i64,
}

/// What a session remembers. Partitions are fetched in the order of `order`, and one that had data goes to the end, so
/// that a busy partition cannot keep the others from their turn.
#[derive(Debug)]
struct Session {
    /// Requests from version 13 on name topics by id; a session keeps to one way.
    by_id: bool,
    epoch: i32,
    next_order: u64,
    order: BTreeMap<u64, Remembered>,
    places: HashMap<Key, u64>,
}

impl Session {
    fn new(by_id: bool) -> Self {
        Session { by_id, epoch: 1, next_order: 0, order: BTreeMap::new(), places: HashMap::new() }
    }

    fn put(&mut self, wanted: Wanted) {
        let key = (wanted.topic.clone(), wanted.partition);
        match self.places.get(&key).and_then(|place| self.order.get_mut(place)) {
            Some(remembered) => remembered.wanted = wanted,
            None => {
                self.places.insert(key, self.next_order);
                self.order.insert(self.next_order, Remembered { wanted, high_watermark: -1, log_start_offset: -1 });
                self.next_order += 1;
            }
        }
    }

    fn forget(&mut self, key: &Key) {
        if let Some(place) = self.places.remove(key) {
            self.order.remove(&place);
        }
    }

    /// Notes what a response says of a partition. Answers whether it is news.
    fn note(&mut self, key: &Key, data: &PartitionData) -> bool {
        let Some(place) = self.places.get_mut(key) else { return true };
        let Some(mut remembered) = self.order.remove(place) else { return true };
        let has_records = data.records.as_ref().is_some_and(|records| !records.is_empty());
        let failed = data.error_code != ErrorCode::None.code();
        let diverges = data.diverging_epoch != Default::default();
        let news = has_records
            || failed
            || diverges
            || remembered.high_watermark != data.high_watermark
            || remembered.log_start_offset != data.log_start_offset;
        // After an error the next response says everything again.
        remembered.high_watermark = if failed { -1 } else { data.high_watermark };
        remembered.log_start_offset = data.log_start_offset;
        if has_records {
            *place = self.next_order;
            self.next_order += 1;
        }
        self.order.insert(*place, remembered);
        news
    }
}

/// How a request stands to a session, and so what its response has to carry.
#[derive(Debug)]
pub struct SessionFetch {
    /// The partitions to fetch, in order.
    pub wanted: Vec<Wanted>,
    /// What the response names as its session; 0 is none.
    pub session_id: i32,
    session: Option<Arc<Mutex<Session>>>,
    /// Only what is news goes into the response.
    incremental: bool,
}

impl SessionFetch {
    /// Whether the response to this request says anything of the partition. Call it once for each, with what it would say.
    pub fn includes(&self, topic: &TopicKey, data: &PartitionData) -> bool {
        let Some(session) = &self.session else { return true };
        let news = session.lock().note(&(topic.clone(), data.partition_index), data);
        news || !self.incremental
    }
}

/// All fetch sessions. Shared between threads.
#[derive(Debug)]
pub struct FetchSessions {
    /// `max.incremental.fetch.session.cache.slots`.
    slots: usize,
    sessions: Mutex<HashMap<i32, Slot>>,
}

#[derive(Debug)]
struct Slot {
    session: Arc<Mutex<Session>>,
    last_used: Duration,
}

/// A session that was used more recently is not given up for a new one.
const MIN_EVICTION: Duration = Duration::from_secs(120);
const FINAL_EPOCH: i32 = -1;
const INITIAL_EPOCH: i32 = 0;

impl FetchSessions {
    pub fn new(slots: usize) -> Self {
        FetchSessions { slots, sessions: Mutex::default() }
    }

    /// Finds or makes the session of a request and brings it up to date.
    pub fn begin(
        &self,
        version: i16,
        request: &FetchRequest,
        clock: &dyn Clock,
        random: &dyn Random,
    ) -> Result<SessionFetch, ErrorCode> {
        let now = clock.monotonic();
        if request.session_epoch == FINAL_EPOCH || request.session_epoch == INITIAL_EPOCH {
            self.sessions.lock().remove(&request.session_id);
            let mut fetch = SessionFetch {
                wanted: wanted(version, request).collect(),
                session_id: 0,
                session: None,
                incremental: false,
            };
            // A session without partitions would have nothing to be incremental about.
            if request.session_epoch == INITIAL_EPOCH && version >= 7 && !fetch.wanted.is_empty() {
                let mut session = Session::new(version >= 13);
                fetch.wanted.iter().cloned().for_each(|wanted| session.put(wanted));
                let session = Arc::new(Mutex::new(session));
                if let Some(id) = self.insert(session.clone(), now, random) {
                    fetch.session_id = id;
                    fetch.session = Some(session);
                }
            }
            return Ok(fetch);
        }
        let shared = {
            let mut sessions = self.sessions.lock();
            let slot = sessions.get_mut(&request.session_id).ok_or(ErrorCode::FetchSessionIdNotFound)?;
            slot.last_used = now;
            slot.session.clone()
        };
        let mut session = shared.lock();
        if session.epoch != request.session_epoch {
            return Err(ErrorCode::InvalidFetchSessionEpoch);
        }
        if session.by_id != (version >= 13) {
            return Err(ErrorCode::FetchSessionTopicIdError);
        }
        wanted(version, request).for_each(|wanted| session.put(wanted));
        for topic in &request.forgotten_topics_data {
            let key = topic_key(version, &topic.topic, topic.topic_id);
            topic.partitions.iter().for_each(|partition| session.forget(&(key.clone(), *partition)));
        }
        session.epoch = if session.epoch == i32::MAX { 1 } else { session.epoch + 1 };
        let wanted: Vec<Wanted> = session.order.values().map(|remembered| remembered.wanted.clone()).collect();
        drop(session);
        if wanted.is_empty() {
            self.sessions.lock().remove(&request.session_id);
            return Ok(SessionFetch { wanted, session_id: 0, session: None, incremental: true });
        }
        Ok(SessionFetch { wanted, session_id: request.session_id, session: Some(shared), incremental: true })
    }

    /// Takes a slot, from a session that was not used for long where all are taken. `None` if there is none to have.
    fn insert(&self, session: Arc<Mutex<Session>>, now: Duration, random: &dyn Random) -> Option<i32> {
        let mut sessions = self.sessions.lock();
        if sessions.len() >= self.slots {
            let (&oldest, slot) = sessions.iter().min_by_key(|(_, slot)| slot.last_used)?;
            if now.saturating_sub(slot.last_used) < MIN_EVICTION {
                return None;
            }
            sessions.remove(&oldest);
        }
        loop {
            let mut bytes = [0; 4];
            random.fill(&mut bytes);
            let id = i32::from_be_bytes(bytes) & i32::MAX;
            if id != 0 && !sessions.contains_key(&id) {
                sessions.insert(id, Slot { session, last_used: now });
                return Some(id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::messages::fetch::{FetchTopic, ForgottenTopic};
    use crate::protocol::wire::Records;
    use crate::sys::OsRandom;

    #[derive(Debug)]
    struct At(Mutex<Duration>);

    impl Clock for At {
        fn now_ms(&self) -> i64 {
            0
        }
        fn monotonic(&self) -> Duration {
            *self.0.lock()
        }
    }

    fn request(session_id: i32, session_epoch: i32, partitions: &[i32]) -> FetchRequest {
        let partitions =
            partitions.iter().map(|partition| FetchPartition { partition: *partition, ..Default::default() }).collect();
        let topic = FetchTopic { topic: "t".into(), partitions, ..Default::default() };
        FetchRequest { session_id, session_epoch, topics: vec![topic], ..Default::default() }
    }

    fn data(partition_index: i32, high_watermark: i64, records: usize) -> PartitionData {
        let records = Some(Records::Bytes(vec![0; records].into()));
        PartitionData { partition_index, high_watermark, records, ..Default::default() }
    }

    fn partitions(fetch: &SessionFetch) -> Vec<i32> {
        fetch.wanted.iter().map(|wanted| wanted.partition).collect()
    }

    fn t() -> TopicKey {
        TopicKey::Name("t".into())
    }

    #[test]
    fn an_incremental_response_says_only_what_is_new() {
        let (sessions, clock) = (FetchSessions::new(2), At(Mutex::default()));
        let begin = |request: &FetchRequest| sessions.begin(12, request, &clock, &OsRandom);
        let first = begin(&request(0, 0, &[0, 1, 2])).unwrap();
        let id = first.session_id;
        assert!(id > 0);
        assert_eq!(partitions(&first), [0, 1, 2]);
        for partition in 0..3 {
            assert!(first.includes(&t(), &data(partition, 5, 0)), "a full response has all");
        }
        let mut change = request(id, 1, &[3]);
        change.forgotten_topics_data =
            vec![ForgottenTopic { topic: "t".into(), partitions: vec![1], ..Default::default() }];
        let second = begin(&change).unwrap();
        assert_eq!((partitions(&second), second.session_id), (vec![0, 2, 3], id));
        assert!(!second.includes(&t(), &data(0, 5, 0)), "nothing new");
        assert!(second.includes(&t(), &data(2, 6, 0)), "the high watermark moved");
        assert!(second.includes(&t(), &data(3, 0, 0)), "never said before");
        let third = begin(&request(id, 2, &[])).unwrap();
        assert!(third.includes(&t(), &data(0, 5, 10)), "records");
        let failed = PartitionData { error_code: 1, ..data(2, 6, 0) };
        assert!(third.includes(&t(), &failed) && third.includes(&t(), &failed), "an error is said each time");
        let fourth = begin(&request(id, 3, &[])).unwrap();
        assert_eq!(partitions(&fourth), [2, 3, 0], "who had data waits for the others");
        assert!(fourth.includes(&t(), &data(2, 6, 0)), "after an error everything is said again");
    }

    #[test]
    fn a_session_is_refused_by_the_wrong_id_epoch_or_naming() {
        let (sessions, clock) = (FetchSessions::new(2), At(Mutex::default()));
        let begin =
            |version, request: &FetchRequest| sessions.begin(version, request, &clock, &OsRandom).map(|f| f.session_id);
        let id = begin(12, &request(0, 0, &[0])).unwrap();
        assert_eq!(begin(12, &request(id ^ 1, 1, &[])), Err(ErrorCode::FetchSessionIdNotFound));
        assert_eq!(begin(12, &request(id, 2, &[])), Err(ErrorCode::InvalidFetchSessionEpoch));
        assert_eq!(begin(13, &request(id, 1, &[])), Err(ErrorCode::FetchSessionTopicIdError));
        assert_eq!(begin(12, &request(id, 1, &[])), Ok(id));
        assert_eq!(begin(12, &request(id, -1, &[0])), Ok(0), "the final epoch ends it");
        assert_eq!(begin(12, &request(id, 2, &[])), Err(ErrorCode::FetchSessionIdNotFound));
    }

    #[test]
    fn only_a_session_that_was_not_used_for_long_gives_its_slot_away() {
        let (sessions, clock) = (FetchSessions::new(1), At(Mutex::default()));
        let begin = |request: &FetchRequest| sessions.begin(12, request, &clock, &OsRandom).unwrap().session_id;
        assert!(begin(&request(0, 0, &[0])) > 0);
        assert_eq!(begin(&request(0, 0, &[0])), 0);
        *clock.0.lock() = MIN_EVICTION;
        assert!(begin(&request(0, 0, &[0])) > 0);
    }
}
