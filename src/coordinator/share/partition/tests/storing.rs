use super::*;
use crate::protocol::Uuid;

fn stored(partition: &SharePartition) -> SharePartition {
    let restored = SharePartition::from_bytes(&partition.to_bytes()).unwrap();
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
    let summary = SharePartition::summary(&test.partition.to_bytes()).unwrap();
    assert_eq!(summary, Summary { start_offset: 2, done: 2 });
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
    let bytes = test.partition.begin_write().unwrap();
    assert_eq!(SharePartition::summary(&bytes).unwrap(), Summary { start_offset: 5, done: 0 });
    test.say("a", 5, 9, &[1]).unwrap();
    assert_eq!(SharePartition::summary(&test.partition.to_bytes()).unwrap(), Summary { start_offset: 10, done: 0 });
    assert_eq!(test.partition.start_offset(), 0, "in memory nothing has happened yet");
    assert!(!test.partition.is_idle());
    test.partition.written(true);
    test.store();
    assert!(test.partition.is_idle());
}

#[test]
fn bytes_that_make_no_sense_are_refused() {
    let mut test = Test::new(log(&[0], 10));
    test.acquire(&want("a", 100));
    test.said("a", 3, 4, &[1]);
    test.said("a", 6, 7, &[2]);
    let bytes = test.partition.to_bytes();
    assert!(SharePartition::from_bytes(&bytes).is_ok());
    for cut in 0..bytes.len() {
        assert!(SharePartition::from_bytes(&bytes[..cut]).is_err(), "cut at {cut}");
    }
    for (position, byte) in [(0, 9), (8, 200), (29, 1), (29, 3)] {
        let mut changed = bytes.to_vec();
        changed[position] = byte;
        assert!(SharePartition::from_bytes(&changed).is_err(), "byte {position} is {byte}");
    }
    let key = SharePartitionKey::new("g", Uuid([7; 16]), 3);
    assert_eq!(SharePartitionKey::from_bytes(&key.to_bytes()), Ok(key));
    assert!(SharePartitionKey::from_bytes(&[1, 0, 0, 0, 9, b'g']).is_err());
}
