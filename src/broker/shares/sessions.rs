//! Share sessions (KIP-932): the broker remembers which partitions a member fetches from, so that each request names only
//! what changes. A member has one session, which lives as long as the connection that it was opened on.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::protocol::{ErrorCode, Uuid};

/// A partition by its topic's id.
pub type Place = (Uuid, i32);

const INITIAL_EPOCH: i32 = 0;
const FINAL_EPOCH: i32 = -1;

#[derive(Debug)]
struct Remembered {
    place: Place,
    /// The next response has to say something of it, whatever there is to say.
    owes_answer: bool,
}

#[derive(Debug)]
struct Session {
    epoch: i32,
    connection: u64,
    /// In the order in which they are looked at; one that had records goes to the end.
    places: Vec<Remembered>,
}

type Key = (Arc<str>, Arc<str>);

/// How a request stands to a session.
#[derive(Debug, PartialEq, Eq)]
pub struct SessionFetch {
    /// The partitions to fetch from, in order.
    pub places: Vec<Place>,
    /// The session was there before, and only what is news goes into the response.
    pub incremental: bool,
    /// The session ends with this request, which fetches nothing.
    pub is_final: bool,
}

/// All share sessions, by group and member. Shared between threads.
#[derive(Debug)]
pub struct ShareSessions {
    /// `group.share.max.share.sessions`.
    most: usize,
    sessions: Mutex<HashMap<Key, Session>>,
    /// Told when sessions have ended.
    freed: Notify,
}

fn key(group: &str, member: &str) -> Key {
    (group.into(), member.into())
}

fn next_epoch(epoch: i32) -> i32 {
    if epoch == i32::MAX { 1 } else { epoch + 1 }
}

impl ShareSessions {
    pub fn new(most: usize) -> Self {
        ShareSessions { most, sessions: Mutex::default(), freed: Notify::new() }
    }

    /// Finds, makes or ends the session of a fetch and brings it up to date.
    #[allow(clippy::too_many_arguments, reason = "they are the fields of the request that matter to sessions")]
    pub fn begin(
        &self,
        group: &str,
        member: &str,
        epoch: i32,
        added: &[Place],
        forgotten: &[Place],
        acknowledges: bool,
        connection: u64,
    ) -> Result<SessionFetch, ErrorCode> {
        let key = key(group, member);
        let mut sessions = self.sessions.lock();
        match epoch {
            FINAL_EPOCH if !sessions.contains_key(&key) => Err(ErrorCode::ShareSessionNotFound),
            FINAL_EPOCH => Ok(SessionFetch { places: vec![], incremental: false, is_final: true }),
            INITIAL_EPOCH => {
                if acknowledges {
                    return Err(ErrorCode::InvalidRequest);
                }
                sessions.remove(&key);
                if sessions.len() >= self.most {
                    return Err(ErrorCode::ShareSessionLimitReached);
                }
                let mut session = Session { epoch: 1, connection, places: vec![] };
                session.add(added, false);
                let places = session.places.iter().map(|remembered| remembered.place).collect();
                sessions.insert(key, session);
                Ok(SessionFetch { places, incremental: false, is_final: false })
            }
            _ => {
                let session = sessions.get_mut(&key).ok_or(ErrorCode::ShareSessionNotFound)?;
                session.step(epoch)?;
                session.add(added, true);
                session.places.retain(|remembered| !forgotten.contains(&remembered.place));
                let mut places: Vec<Place> = session.places.iter().map(|remembered| remembered.place).collect();
                // So that not always the same partitions come first.
                let turn = usize::try_from(epoch).unwrap_or(0).checked_rem(places.len()).unwrap_or(0);
                places.rotate_left(turn);
                Ok(SessionFetch { places, incremental: true, is_final: false })
            }
        }
    }

    /// The session of a member that only acknowledges.
    pub fn acknowledge(&self, group: &str, member: &str, epoch: i32) -> Result<(), ErrorCode> {
        if epoch == INITIAL_EPOCH {
            return Err(ErrorCode::InvalidShareSessionEpoch);
        }
        let mut sessions = self.sessions.lock();
        let session = sessions.get_mut(&key(group, member)).ok_or(ErrorCode::ShareSessionNotFound)?;
        if epoch == FINAL_EPOCH { Ok(()) } else { session.step(epoch) }
    }

    /// Notes what a response says of a partition. Answers whether it is news.
    pub fn note(&self, group: &str, member: &str, place: Place, has_records: bool, failed: bool) -> bool {
        let mut sessions = self.sessions.lock();
        let Some(session) = sessions.get_mut(&key(group, member)) else { return true };
        let Some(at) = session.places.iter().position(|remembered| remembered.place == place) else { return true };
        let news = has_records || failed || session.places[at].owes_answer;
        session.places[at].owes_answer = failed;
        if has_records {
            let last = session.places.remove(at);
            session.places.push(last);
        }
        news
    }

    /// Ends a session. Gives what it fetched from; `None` if there was none.
    pub fn end(&self, group: &str, member: &str) -> Option<Vec<Place>> {
        let ended = self.sessions.lock().remove(&key(group, member));
        self.freed.notify_waiters();
        ended.map(Session::into_places)
    }

    /// Waits for the next session that ends.
    pub fn freed(&self) -> impl Future<Output = ()> + '_ {
        self.freed.notified()
    }

    /// Ends the sessions that were opened on a connection.
    pub fn disconnected(&self, connection: u64) -> Vec<(Arc<str>, Arc<str>, Vec<Place>)> {
        let mut sessions = self.sessions.lock();
        let ended = sessions.extract_if(|_, session| session.connection == connection);
        let ended: Vec<_> = ended.map(|((group, member), session)| (group, member, session.into_places())).collect();
        drop(sessions);
        if !ended.is_empty() {
            self.freed.notify_waiters();
        }
        ended
    }

    pub fn has_group(&self, group: &str) -> bool {
        self.sessions.lock().keys().any(|(of, _)| **of == *group)
    }
}

impl Session {
    fn step(&mut self, epoch: i32) -> Result<(), ErrorCode> {
        if epoch != self.epoch {
            return Err(ErrorCode::InvalidShareSessionEpoch);
        }
        self.epoch = next_epoch(epoch);
        Ok(())
    }

    fn add(&mut self, places: &[Place], owes_answer: bool) {
        let mut known: HashSet<Place> = self.places.iter().map(|remembered| remembered.place).collect();
        let new = places.iter().filter(|place| known.insert(**place));
        self.places.extend(new.map(|place| Remembered { place: *place, owes_answer }));
    }

    fn into_places(self) -> Vec<Place> {
        self.places.into_iter().map(|remembered| remembered.place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(numbers: &[i32]) -> Vec<Place> {
        numbers.iter().map(|number| (Uuid([7; 16]), *number)).collect()
    }

    fn begin(sessions: &ShareSessions, member: &str, epoch: i32, added: &[i32]) -> Result<Vec<i32>, ErrorCode> {
        let begun = sessions.begin("g", member, epoch, &places(added), &[], false, 1)?;
        Ok(begun.places.iter().map(|place| place.1).collect())
    }

    #[test]
    fn a_session_remembers_its_partitions_and_takes_turns() {
        let sessions = ShareSessions::new(10);
        assert_eq!(begin(&sessions, "m", 0, &[0, 1, 2]), Ok(vec![0, 1, 2]));
        assert_eq!(begin(&sessions, "m", 1, &[]), Ok(vec![1, 2, 0]));
        assert!(!sessions.note("g", "m", places(&[1])[0], false, false), "nothing new");
        assert!(sessions.note("g", "m", places(&[0])[0], true, false), "records");
        // 0 had records and goes to the end; 3 is new and has to be told of whatever there is.
        let begun = sessions.begin("g", "m", 2, &places(&[3]), &places(&[1]), false, 1).unwrap();
        assert_eq!(begun, SessionFetch { places: places(&[3, 2, 0]), incremental: true, is_final: false });
        assert!(sessions.note("g", "m", places(&[3])[0], false, false));
        assert!(!sessions.note("g", "m", places(&[3])[0], false, false));
        assert!(sessions.note("g", "m", places(&[2])[0], false, true), "an error");
        assert!(sessions.note("g", "m", places(&[2])[0], false, false), "it is over");
    }

    #[test]
    fn a_session_is_refused_by_the_wrong_epoch_and_ends_with_its_connection() {
        let sessions = ShareSessions::new(2);
        assert_eq!(begin(&sessions, "m", 1, &[]), Err(ErrorCode::ShareSessionNotFound));
        assert_eq!(begin(&sessions, "m", -1, &[]), Err(ErrorCode::ShareSessionNotFound));
        begin(&sessions, "m", 0, &[0]).unwrap();
        assert_eq!(begin(&sessions, "m", 2, &[]), Err(ErrorCode::InvalidShareSessionEpoch));
        assert_eq!(sessions.acknowledge("g", "m", 0), Err(ErrorCode::InvalidShareSessionEpoch));
        assert_eq!(sessions.acknowledge("g", "m", 1), Ok(()));
        assert_eq!(sessions.acknowledge("g", "m", 1), Err(ErrorCode::InvalidShareSessionEpoch));
        assert_eq!(sessions.acknowledge("g", "m", -1), Ok(()), "the end goes with any epoch");
        let with_acknowledgements = sessions.begin("g", "m", 0, &places(&[0]), &[], true, 1);
        assert_eq!(with_acknowledgements, Err(ErrorCode::InvalidRequest));
        begin(&sessions, "n", 0, &[1]).unwrap();
        assert_eq!(begin(&sessions, "o", 0, &[]), Err(ErrorCode::ShareSessionLimitReached));
        begin(&sessions, "n", 0, &[2]).unwrap();
        sessions.begin("h", "p", 0, &[], &[], false, 2).unwrap_err();
        assert!(sessions.disconnected(2).is_empty());
        let mut ended: Vec<String> =
            sessions.disconnected(1).into_iter().map(|(_, member, _)| member.to_string()).collect();
        ended.sort();
        assert_eq!(ended, ["m", "n"]);
        assert_eq!((sessions.has_group("g"), sessions.end("g", "m")), (false, None));
    }
}
