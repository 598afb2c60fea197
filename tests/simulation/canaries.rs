//! The harness finds what it is there to find: a mistake is put in, and within a thousand seeds a promise is broken.

use parking_lot::Mutex;

use crate::run::seeds;
use crate::world::Canary;

/// `by`: what the complaint has to say; other complaints are passed over.
fn is_found(canary: Canary, by: &str) {
    let found = Mutex::new(None);
    let (_, ran) = seeds(1, 1000, canary, &|seed, outcome| {
        let Some(violation) = outcome.violation.as_ref().filter(|what| what.contains(by)) else { return false };
        found.lock().get_or_insert_with(|| format!("seed {seed}: {violation}"));
        true
    });
    let found = found.into_inner().unwrap_or_else(|| panic!("{canary:?} was not found in {ran} seeds"));
    println!("{canary:?} was found after {ran} seeds; {found}");
    assert!(!found.contains("panic"), "it was found by a check, and not by chance");
}

#[test]
fn a_flush_that_is_left_out_is_found() {
    is_found(Canary::NoFlush, "");
}

#[test]
fn an_acknowledgement_that_is_sent_before_the_flush_is_found() {
    is_found(Canary::EarlyAck, "");
}

#[test]
fn a_rename_that_gets_lost_is_found() {
    is_found(Canary::LostRename, "");
}

#[test]
fn answers_in_another_order_are_found() {
    is_found(Canary::AnswersSwapped, "");
}

#[test]
fn what_a_share_group_is_told_and_is_not_durable_is_found() {
    // Of an acknowledgement, or of a member.
    is_found(Canary::NoCatalogFlush, "share");
}

#[test]
fn a_member_of_a_streams_group_that_is_forgotten_is_found() {
    is_found(Canary::NoCatalogFlush, "streams");
}

#[test]
fn an_accepted_record_that_comes_again_is_found() {
    is_found(Canary::AcceptAsRelease, "after it was done with");
}

#[test]
fn a_released_record_that_never_comes_is_found() {
    is_found(Canary::ReleaseAsAccept, "LOST");
}

#[test]
fn a_record_that_is_acquired_twice_is_found() {
    is_found(Canary::ShortLocks, "is acquired by");
}

#[test]
fn a_record_that_a_share_group_gets_before_it_is_committed_is_found() {
    is_found(Canary::ShownTooEarly, "never to be committed");
}

#[test]
fn a_task_that_is_given_twice_is_found() {
    is_found(Canary::ShortSessions, "is given task");
}
