//! What a request says of records that its member has acquired, in however many partitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Shares;
use super::entry::{AckError, Acknowledging};
use super::sessions::Place;
use crate::broker::Broker;
use crate::coordinator::Acknowledgement;
use crate::protocol::ErrorCode;

/// How it went in one partition.
pub type Acknowledged = (Place, Result<(), AckError>);

/// The type that renews a lock (KIP-1222), the highest there is.
const RENEW: i8 = 4;

impl Shares {
    /// Takes in all acknowledgements of a request at once; the answers come when they are durable. Of a partition that is
    /// named twice the last counts. `version` is that of the request; types that it does not know are refused, and
    /// renewals in a request that does not say that it has any.
    pub fn acknowledge(
        self: &Arc<Self>,
        broker: &Broker,
        group: &str,
        member: &str,
        asked: Vec<(Place, Vec<Acknowledgement>)>,
        version: i16,
        renews: bool,
    ) -> impl Future<Output = Vec<Acknowledged>> + use<> {
        let last: BTreeMap<Place, Vec<Acknowledgement>> = asked.into_iter().collect();
        let mut under_way = Vec::with_capacity(last.len());
        for (place, acknowledgements) in last {
            let checked = exists(broker, place).and_then(|()| check(&acknowledgements, version >= 2, renews));
            let answer = match (checked, self.known(group, place)) {
                (Err(code), _) => Acknowledging::Done(Err(AckError::plain(code))),
                (Ok(()), _) if acknowledgements.is_empty() => Acknowledging::Done(Ok(())),
                (Ok(()), None) => Acknowledging::Done(Err(AckError::plain(ErrorCode::UnknownTopicOrPartition))),
                (Ok(()), Some(entry)) => self.acknowledge_in(&entry, member, &acknowledgements),
            };
            under_way.push((place, answer));
        }
        async move {
            let mut all = Vec::with_capacity(under_way.len());
            for (place, answer) in under_way {
                all.push((place, answer.outcome().await));
            }
            all
        }
    }
}

fn exists(broker: &Broker, (topic, partition): Place) -> Result<(), ErrorCode> {
    let topic = broker.topic_by_id(topic)?;
    match (0..topic.topic.partitions).contains(&partition) {
        true => Ok(()),
        false => Err(ErrorCode::UnknownTopicOrPartition),
    }
}

/// Whether the acknowledgements of a partition make sense by themselves.
fn check(acknowledgements: &[Acknowledgement], knows_renewals: bool, renews: bool) -> Result<(), ErrorCode> {
    let highest = if knows_renewals { RENEW } else { RENEW - 1 };
    let mut before = -1;
    for Acknowledgement { first, last, types } in acknowledgements {
        let is_one_each =
            i64::try_from(types.len()).is_ok_and(|types| types == last.wrapping_sub(*first).wrapping_add(1));
        let makes_sense = *first >= 0
            && first <= last
            && *last < i64::MAX
            && *first >= before
            && (types.len() == 1 || (!types.is_empty() && is_one_each))
            && types.iter().all(|kind| (0..=highest).contains(kind) && (*kind != RENEW || renews));
        if !makes_sense {
            return Err(ErrorCode::InvalidRequest);
        }
        before = *last;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_that_make_no_sense_are_refused() {
        let say = |first, last, types: &[i8]| Acknowledgement { first, last, types: types.to_vec() };
        let all_right = |acknowledgements: &[Acknowledgement]| check(acknowledgements, true, true).is_ok();
        assert!(all_right(&[say(0, 9, &[1]), say(10, 12, &[1, 0, 4])]));
        assert!(!all_right(&[say(5, 4, &[1])]), "it ends before it starts");
        assert!(!all_right(&[say(5, 9, &[1]), say(4, 4, &[1])]), "it goes back");
        assert!(!all_right(&[say(0, 9, &[])]) && !all_right(&[say(0, 9, &[1, 1])]), "too few types");
        assert!(!all_right(&[say(0, 0, &[5])]) && !all_right(&[say(0, 0, &[-1])]), "no such type");
        assert!(!all_right(&[say(i64::MIN, i64::MAX, &[1])]) && !all_right(&[say(0, i64::MAX, &[1])]));
        assert!(check(&[say(0, 0, &[4])], true, false).is_err(), "a renewal that was not announced");
        assert!(check(&[say(0, 0, &[4])], false, true).is_err(), "version 1 has none");
        assert!(check(&[say(0, 0, &[3])], false, false).is_ok());
    }
}
