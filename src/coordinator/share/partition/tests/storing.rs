use super::*;
use crate::coordinator::share::state::{ShareState, StateChange};
use crate::coordinator::share::stretches::Stretch;
use crate::protocol::Uuid;

fn stored(partition: &SharePartition) -> SharePartition {
    let mut state = Some(ShareState::new(0, 0));
    StateChange::Write(partition.to_write()).apply(&mut state).unwrap();
    let restored = SharePartition::from_state(&state.unwrap(), 0, 0);
    restored.check();
    restored
}

#[test]
fn what_is_done_with_and_how_often_records_were_delivered_outlives_a_restart() {
    let mut test = Test::new(log(&[0, 10], 20));
    test.acquire(&want("a", 100));
    test.said("a", 0, 1, &[1]);
    test.said("a", 4, 5, &[2]);
    test.said("a", 7, 8, &[3]);
    let write = test.partition.to_write();
    assert_eq!((write.start, write.done), (2, 2));
    test.partition = stored(&test.partition);
    assert_eq!(test.partition.start_offset(), 2);
    // 2 and 3 were acquired, 4 and 5 released; 6 was acquired, and behind 8 nothing was stored.
    assert_eq!(test.acquire(&want("b", 100)), [(2, 3, 1), (4, 5, 2), (6, 6, 1), (9, 19, 1)]);
    // Of records that are acquired for a second time the first delivery counts.
    test.partition = stored(&test.partition);
    assert_eq!(test.acquire(&want("c", 3)), [(2, 3, 1), (4, 5, 2)]);
}

#[test]
fn what_is_stored_is_what_all_that_was_decided_leads_to() {
    let mut test = Test::new(log(&[0], 10));
    test.acquire(&want("a", 100));
    test.say("a", 0, 4, &[1]).unwrap();
    let write = test.partition.begin_write().unwrap();
    assert_eq!((write.start, write.done), (5, 0));
    test.say("a", 5, 9, &[1]).unwrap();
    assert_eq!(test.partition.to_write().start, 10);
    assert_eq!(test.partition.start_offset(), 0, "in memory nothing has happened yet");
    assert!(!test.partition.is_idle());
    test.partition.written(true);
    test.store();
    assert!(test.partition.is_idle());
}

#[test]
fn what_others_have_stored_below_the_start_is_left_out() {
    let mut state = Some(ShareState::new(3, ShareState::NO_START));
    let stretch = |first, last, state, deliveries| Stretch { first, last, state, deliveries };
    let stretches = vec![stretch(2, 8, 0, 2), stretch(11, 12, 4, 1)];
    let write = StateWrite { state_epoch: 3, leader_epoch: 0, start: -1, done: -1, stretches };
    StateChange::Write(write).apply(&mut state).unwrap();
    let mut test = Test::new(log(&[0, 10], 20));
    test.partition = SharePartition::from_state(&state.unwrap(), 5, 0);
    test.partition.check();
    assert_eq!(test.acquire(&want("a", 100)), [(5, 8, 3), (9, 10, 1), (13, 19, 1)]);
    test.said("a", 5, 8, &[1]);
}

#[test]
fn keys_that_make_no_sense_are_refused() {
    let key = SharePartitionKey::new("g", Uuid([7; 16]), 3);
    assert_eq!(SharePartitionKey::from_bytes(&key.to_bytes()), Ok(key));
    assert!(SharePartitionKey::from_bytes(&[1, 0, 0, 0, 9, b'g']).is_err());
}
