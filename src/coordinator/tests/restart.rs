//! What comes back when the broker starts again.

use super::*;

#[test]
fn a_group_goes_on_as_if_nothing_had_happened() {
    let mut h = Harness::new();
    let members = h.stable_with(vec![joining(), static_joining("a"), joining()]);
    h.commit(committing_as(&members[0], 0, 5));
    let before = h.coordinator.describe("g");
    h.advance(9_000);
    h.restart(Config::default());
    assert_eq!(h.coordinator.describe("g"), before);
    h.advance(9_000);
    for member in &members {
        assert_eq!(h.heartbeat(&member.member_id, 2), Ok(()), "sessions started anew");
    }
    assert_eq!(h.offset("t", 0), Some(5));
    let token = h.commit(committing_as(&members[2], 0, 6));
    h.committed(token).unwrap();
    let token = h.sync(&members[2], &[]);
    assert_eq!(h.synced(token).unwrap().assignment, "2");
    // A follower that joins with the same again is told how things are; the subscription is known.
    let again = h.rejoining(&members[2]);
    let token = h.join(again);
    assert_eq!(h.joined(token).leader, members[0].member_id);
    assert_eq!(h.state(), "Stable");
    let token = h.token();
    let request = DeleteOffsetsRequest { group_id: "g".into(), topics: vec![("t".into(), vec![0])] };
    let actions = h.coordinator.delete_offsets(h.now(), token, request);
    h.take(actions);
    let expected = vec![("t".into(), vec![(0, Err(Error::GroupSubscribedToTopic))])];
    assert_eq!(h.answer(token), Some(Reply::DeleteOffsets(Ok(expected))));
    // And who stays silent is out.
    h.advance(10_000);
    assert_eq!(h.state(), "Empty");
}

#[test]
fn a_round_that_had_no_assignment_is_forgotten() {
    let mut h = Harness::new();
    let members = h.stable(1);
    let again = h.rejoining(&members[0]);
    let token = h.join(again);
    let unfinished = h.joined(token);
    h.restart(Config::default());
    assert_eq!(h.heartbeat(&unfinished.member_id, unfinished.generation_id), Err(Error::IllegalGeneration));
    assert_eq!(h.heartbeat(&unfinished.member_id, 1), Ok(()));
}

#[test]
fn a_group_that_is_larger_than_it_may_be_gets_a_round_to_shrink() {
    let mut h = Harness::new();
    let members = h.stable(3);
    h.restart(Config { max_size: 2, ..Config::default() });
    assert_eq!(h.state(), "PreparingRebalance");
    assert_eq!(h.heartbeat(&members[0].member_id, 2), Err(Error::RebalanceInProgress));
}

#[test]
fn damaged_metadata_names_the_group_and_counts_as_empty() {
    let mut h = Harness::new();
    h.stable_with(vec![joining(), static_joining("a")]);
    let good = h.disk.groups["g"].clone();
    let config = Config::default();
    let now = h.now();
    let fresh = || GroupCoordinator::new(config.clone(), Arc::new(SeededRandom::default()), now);
    let mut damages: Vec<Vec<u8>> = (0..good.len()).map(|cut| good[..cut].to_vec()).collect();
    damages.push([&good[..], b"x"].concat());
    for (position, value) in [(0, 2), (1, 9), (6, 2)] {
        let mut bytes = good.to_vec();
        bytes[position] = value;
        damages.push(bytes);
    }
    for bytes in damages {
        let mut coordinator = fresh();
        let error = coordinator.restore_group(now, "g", &bytes).unwrap_err();
        assert_eq!(error.group, "g");
        assert!(error.to_string().contains("\"g\""), "{error}");
        assert_eq!(coordinator.describe("g").unwrap().state, "Empty");
        // What is on the disk goes when the group is cleared away.
        let actions = coordinator.tick(Now { monotonic: now.monotonic + Duration::from_secs(600), ..now });
        assert!(matches!(&actions[..], [Action::Persist(write)] if write.changes == [Change::RemoveGroup]));
    }
    fresh().restore_group(now, "g", &good).unwrap();
}

#[test]
fn random_damage_is_never_worse_than_an_error() {
    let seed = u64::from_le_bytes(*b"restored");
    let random = SeededRandom::new(seed);
    let mut h = Harness::new();
    h.stable_with(vec![joining(), static_joining("a")]);
    let good = h.disk.groups["g"].clone();
    let mut refused = 0;
    for round in 0..5_000 {
        let mut bytes = good.to_vec();
        for _ in 0..=random.below(3) {
            let position = random.below(bytes.len());
            bytes[position] = random.next() as u8;
        }
        let mut coordinator = GroupCoordinator::new(Config::default(), Arc::new(SeededRandom::default()), h.now());
        match coordinator.restore_group(h.now(), "g", &bytes) {
            Err(_) => refused += 1,
            // What is taken in is whole: it lives through everything.
            Ok(()) => {
                let later = Duration::from_secs(1 << 40);
                coordinator.join(h.now(), round, joining());
                coordinator.tick(Now { monotonic: later, wall_ms: i64::MAX });
            }
        }
    }
    assert!((1_000..4_999).contains(&refused), "seed {seed}: {refused} of 5000 were refused");
}
