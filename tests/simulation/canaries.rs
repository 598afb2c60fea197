//! The harness finds what it is there to find: a mistake is put in, and within a thousand seeds a promise is broken.

use parking_lot::Mutex;

use crate::run::seeds;
use crate::world::Canary;

fn is_found(canary: Canary) {
    let found = Mutex::new(None);
    let (_, ran) = seeds(1, 1000, canary, &|seed, outcome| {
        let Some(violation) = &outcome.violation else { return false };
        found.lock().get_or_insert_with(|| format!("seed {seed}: {violation}"));
        true
    });
    let found = found.into_inner().unwrap_or_else(|| panic!("{canary:?} was not found in {ran} seeds"));
    println!("{canary:?} was found after {ran} seeds; {found}");
    assert!(!found.contains("panic"), "it was found by a check, and not by chance");
}

#[test]
fn a_flush_that_is_left_out_is_found() {
    is_found(Canary::NoFlush);
}

#[test]
fn an_acknowledgement_that_is_sent_before_the_flush_is_found() {
    is_found(Canary::EarlyAck);
}

#[test]
fn a_rename_that_gets_lost_is_found() {
    is_found(Canary::LostRename);
}
