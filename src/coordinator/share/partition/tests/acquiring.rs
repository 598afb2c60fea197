use super::*;

#[test]
fn batches_are_handed_out_whole_and_cut_where_the_log_allows_it() {
    let mut test = Test::new(log(&[0, 10, 20, 30], 40));
    assert_eq!(test.acquire(&Acquire { batch_size: 15, ..want("a", 35) }), [(0, 19, 1), (20, 39, 1)]);
    assert!(test.acquire(&want("b", 100)).is_empty(), "nothing is left");
    assert_eq!((test.partition.start_offset(), test.partition.next_fetch_offset()), (0, 40));
    // The whole batch of the log that the limit falls into.
    let mut test = Test::new(log(&[0, 10, 20], 30));
    assert_eq!(test.acquire(&want("a", 12)), [(0, 19, 1)]);
    assert_eq!(test.acquire(&want("b", 1)), [(20, 29, 1)]);
}

#[test]
fn a_record_limit_is_kept_and_the_rest_is_for_others() {
    let strict = |member, max_records| Acquire { record_limit: true, ..want(member, max_records) };
    let mut test = Test::new(log(&[0], 10));
    assert_eq!(test.acquire(&strict("a", 3)), [(0, 2, 1)]);
    assert_eq!(test.acquire(&strict("b", 4)), [(3, 6, 1)]);
    assert_eq!(test.acquire(&strict("c", 100)), [(7, 9, 1)]);
    assert!(test.acquire(&strict("d", 1)).is_empty());
    test.said("b", 3, 6, &[2]);
    assert_eq!(test.acquire(&strict("d", 2)), [(3, 4, 2)]);
}

#[test]
fn no_more_records_are_in_flight_than_the_limit() {
    let mut test = Test::new(log(&[0, 10, 20], 30));
    test.limits.in_flight = 20;
    assert_eq!(test.acquire(&want("a", 100)), [(0, 19, 1)]);
    assert!(!test.partition.can_acquire(&test.limits));
    assert!(test.acquire(&want("a", 100)).is_empty());
    // What is available again needs no room.
    test.said("a", 5, 6, &[2]);
    assert!(test.partition.can_acquire(&test.limits));
    assert_eq!(test.acquire(&want("b", 100)), [(5, 6, 2)]);
    assert!(!test.partition.can_acquire(&test.limits));
    test.said("a", 0, 4, &[1]);
    assert_eq!(test.acquire(&want("b", 100)), [(20, 29, 1)]);
}

#[test]
fn a_lock_that_runs_out_makes_records_available_until_the_last_delivery() {
    let mut test = Test::new(log(&[0], 2));
    test.limits.deliveries = 2;
    assert_eq!(test.acquire(&want("a", 10)), [(0, 1, 1)]);
    assert_eq!(test.partition.next_deadline(), Some(LOCK));
    assert!(!test.expire(LOCK - Duration::from_millis(1)));
    assert!(test.expire(LOCK));
    assert_eq!(test.acquire(&want("b", 10)), [(0, 1, 2)]);
    assert_eq!(test.say("a", 0, 1, &[1]), Err(AckRefused::NotTheOwner));
    // Twice was the limit.
    assert!(test.expire(LOCK * 2));
    assert!(test.acquire(&want("b", 10)).is_empty());
    assert_eq!(test.partition.start_offset(), 2);
    assert_eq!(test.partition.next_deadline(), None);
}

#[test]
fn records_that_are_delivered_often_come_in_smaller_numbers_and_at_last_alone() {
    let mut test = Test::new(log(&[0], 16));
    let mut sizes = vec![];
    for _ in 0..4 {
        let got = test.acquire(&want("a", 100));
        sizes.push(got.iter().map(|(first, last, _)| last - first + 1).sum::<i64>());
        test.said("a", got[0].0, got.last().unwrap().1, &[2]);
    }
    // From the half of the limit on, the third delivery here, 16 >> 1.
    assert_eq!(sizes, [16, 16, 16, 8]);
    let got = test.acquire(&want("a", 100));
    assert_eq!(got, [(0, 0, 5)], "the last attempt");
    let next = test.acquire(&want("a", 100));
    assert_eq!(next, [(1, 1, 5)]);
}

#[test]
fn what_compaction_took_is_archived() {
    let mut test = Test::new(log(&[0, 10, 20], 30));
    test.acquire(&want("a", 100));
    test.said("a", 0, 29, &[2]);
    // 10 to 19 are gone, and so are 0 to 4.
    test.log = vec![LogBatch { first: 5, last: 9, aborted: false }, LogBatch { first: 20, last: 29, aborted: false }];
    assert_eq!(test.acquire(&want("a", 100)), [(5, 29, 2)]);
    // Their offsets go with those around them: the member says that there is a gap.
    test.said("a", 5, 29, &[[1; 5].as_slice(), &[0; 10], &[1; 10]].concat());
    assert_eq!((test.partition.start_offset(), test.partition.end_offset()), (30, 30));
}

#[test]
fn a_log_start_that_moves_takes_records_with_it() {
    let mut test = Test::new(log(&[0, 10, 20], 30));
    test.acquire(&want("a", 15));
    test.partition.log_starts_at(5);
    test.partition.check();
    assert_eq!((test.partition.start_offset(), test.partition.next_fetch_offset()), (5, 20));
    // The member need not know.
    test.said("a", 0, 19, &[1]);
    assert_eq!(test.partition.start_offset(), 20);
    test.partition.log_starts_at(25);
    assert_eq!((test.partition.start_offset(), test.partition.next_fetch_offset()), (25, 25));
    test.log = log(&[25], 30);
    assert_eq!(test.acquire(&want("a", 100)), [(25, 29, 1)]);
}

#[test]
fn aborted_records_are_never_handed_out() {
    let mut batches = log(&[0, 10, 20], 30);
    batches[1].aborted = true;
    let mut test = Test::new(batches);
    assert_eq!(test.acquire(&want("a", 100)), [(0, 9, 1), (20, 29, 1)]);
    test.said("a", 0, 9, &[1]);
    assert_eq!(test.partition.start_offset(), 20);
    // Nothing but aborted records does not keep others from coming.
    let mut batches = log(&[0, 10], 20);
    batches[0].aborted = true;
    let mut test = Test::new(batches);
    test.limits.in_flight = 10;
    assert!(test.acquire(&want("a", 10)).is_empty());
    assert_eq!(test.acquire(&want("a", 10)), [(10, 19, 1)]);
}
