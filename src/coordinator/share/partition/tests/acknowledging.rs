use super::*;

#[test]
fn batches_are_acknowledged_in_parts_and_the_start_follows() {
    let mut test = Test::new(log(&[0], 10));
    test.acquire(&want("a", 100));
    test.said("a", 2, 3, &[1]);
    assert_eq!(test.partition.start_offset(), 0);
    test.said("a", 0, 1, &[1, 3]);
    assert_eq!(test.partition.start_offset(), 4);
    test.said("a", 4, 9, &[1, 2, 1, 2, 0, 1]);
    assert_eq!(test.partition.start_offset(), 5);
    assert_eq!(test.acquire(&want("b", 100)), [(5, 5, 2), (7, 7, 2)]);
    assert_eq!(test.say("b", 5, 7, &[1]), Err(AckRefused::NotAcquired), "6 was acknowledged before");
    test.said("b", 5, 5, &[1]);
    test.said("b", 7, 7, &[1]);
    assert_eq!(test.partition.start_offset(), 10);
}

/// 6 was acknowledged before, so that the stretch is not all `b`'s.
#[test]
fn a_stretch_with_records_that_are_not_the_members_is_refused_whole() {
    let mut test = Test::new(log(&[0], 10));
    test.acquire(&want("a", 100));
    test.said("a", 6, 6, &[1]);
    assert_eq!(test.say("a", 5, 7, &[1]), Err(AckRefused::NotAcquired));
    assert_eq!(test.say("b", 0, 5, &[1]), Err(AckRefused::NotTheOwner));
    assert_eq!(test.say("a", 0, 10, &[1]), Err(AckRefused::LastIsPast));
    assert_eq!(test.say("a", 10, 12, &[1]), Err(AckRefused::FirstIsPast));
    assert_eq!(test.say("a", 0, 0, &[9]), Err(AckRefused::UnknownType(9)));
    // Nothing of it has happened.
    test.said("a", 0, 5, &[1]);
    assert_eq!(test.partition.start_offset(), 7);
    // What is done with is nobody's business any more.
    assert_eq!(test.say("b", 0, 5, &[1]), Ok(0));
}

#[test]
fn one_bad_stretch_refuses_the_others_of_the_partition() {
    let mut test = Test::new(log(&[0, 5], 10));
    test.acquire(&want("a", 100));
    let say = |first, last| Acknowledgement { first, last, types: vec![1] };
    let twice = test.partition.acknowledge(test.now, 1, "a", &[say(0, 4), say(4, 9)], &test.limits);
    assert_eq!(twice, Err(AckRefused::UnderWay));
    let too_far = test.partition.acknowledge(test.now, 1, "a", &[say(0, 4), say(5, 10)], &test.limits);
    assert_eq!(too_far, Err(AckRefused::LastIsPast));
    assert!(test.partition.begin_write().is_none(), "nothing has changed");
    assert_eq!(test.partition.acknowledge(test.now, 1, "a", &[say(0, 4), say(5, 9)], &test.limits), Ok(true));
    assert_eq!(test.store(), [1]);
    assert_eq!(test.partition.start_offset(), 10);
}

#[test]
fn nothing_changes_hands_before_it_is_durable() {
    let mut test = Test::new(log(&[0], 10));
    test.acquire(&want("a", 100));
    let first = test.say("a", 0, 4, &[2]).unwrap();
    assert!(test.partition.begin_write().is_some());
    let second = test.say("a", 5, 9, &[1]).unwrap();
    assert_eq!(test.say("a", 0, 4, &[1]), Err(AckRefused::UnderWay));
    assert!(test.acquire(&want("b", 100)).is_empty());
    assert!(!test.expire(LOCK), "what is decided does not run out");
    assert_eq!(test.partition.written(true), [first]);
    assert_eq!(test.acquire(&want("b", 100)), [(0, 4, 2)]);
    assert_eq!(test.store(), [second]);
    assert_eq!(test.partition.start_offset(), 0);
}

#[test]
fn a_write_that_fails_leaves_records_with_their_member() {
    let mut test = Test::new(log(&[0], 10));
    test.acquire(&want("a", 100));
    let first = test.say("a", 0, 4, &[1]).unwrap();
    assert!(test.partition.begin_write().is_some());
    let second = test.say("a", 5, 9, &[1]).unwrap();
    assert_eq!(test.partition.written(false), [first, second]);
    test.partition.check();
    assert!(test.partition.begin_write().is_none());
    test.said("a", 0, 4, &[1]);
    assert_eq!(test.partition.start_offset(), 5);
    // Locks have gone on running.
    assert!(test.expire(LOCK));
    assert_eq!(test.acquire(&want("b", 100)), [(5, 9, 2)]);
}

#[test]
fn renewals_start_the_lock_anew() {
    let mut test = Test::new(log(&[0], 10));
    test.acquire(&want("a", 100));
    test.now = at(20);
    assert_eq!(test.say("a", 0, 4, &[4]), Ok(0), "nothing of it is stored");
    test.expire(LOCK);
    assert_eq!(test.acquire(&want("b", 100)), [(5, 9, 2)]);
    assert!(test.expire(at(50)));
    assert_eq!(test.acquire(&want("b", 100)), [(0, 4, 2)]);
    test.limits.renewals = false;
    assert_eq!(test.say("b", 0, 4, &[4]), Err(AckRefused::NoRenewals));
}

#[test]
fn a_member_that_goes_gives_everything_back() {
    let mut test = Test::new(log(&[0, 5, 10], 15));
    test.acquire(&want("a", 5));
    test.acquire(&want("b", 5));
    test.acquire(&want("a", 5));
    assert!(test.partition.release("a", &test.limits));
    assert!(!test.partition.release("a", &test.limits), "once");
    test.store();
    assert_eq!(test.acquire(&want("c", 100)), [(0, 4, 2), (10, 14, 2)]);
    assert!(!test.partition.release("a", &test.limits), "nothing is left");
}
