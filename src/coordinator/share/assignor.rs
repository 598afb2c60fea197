//! The assignor of share groups, which Kafka calls `simple`: every partition is fetched by as many members as it takes for
//! all members to have something, members have the same number of partitions give or take one, and keep what they have as
//! far as that allows.
//!
//! Members that subscribe to the same topics share all of them at once; otherwise each topic is shared by itself. All of it
//! is deterministic.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::coordinator::topics::Partitions;
use crate::protocol::Uuid;

/// A member that takes part.
pub(super) struct Subscriber<'a> {
    pub id: &'a Arc<str>,
    /// Only topics that exist.
    pub topics: BTreeSet<Uuid>,
    /// What it was to have so far.
    pub current: &'a Partitions,
}

type Place = (Uuid, i32);

/// Shares out those of the partitions in `initialized` that somebody subscribes to.
pub(super) fn assign(members: &[Subscriber<'_>], initialized: &Partitions) -> BTreeMap<Arc<str>, Partitions> {
    let mut shares = vec![Partitions::new(); members.len()];
    let topics: BTreeSet<Uuid> = members.iter().flat_map(|member| member.topics.iter().copied()).collect();
    let places = |topic: &Uuid| {
        let topic = *topic;
        initialized.get(&topic).into_iter().flatten().map(move |partition| (topic, *partition))
    };
    if members.windows(2).all(|pair| pair[0].topics == pair[1].topics) {
        let everybody: Vec<usize> = (0..members.len()).collect();
        share(members, &everybody, topics.iter().flat_map(places).collect(), &mut shares);
    } else {
        for topic in &topics {
            let those: Vec<usize> = (0..members.len()).filter(|&place| members[place].topics.contains(topic)).collect();
            share(members, &those, places(topic).collect(), &mut shares);
        }
    }
    members.iter().zip(shares).map(|(member, share)| (member.id.clone(), share)).collect()
}

/// Shares `partitions` among the members at these places in the list.
fn share(members: &[Subscriber<'_>], those: &[usize], partitions: BTreeSet<Place>, shares: &mut [Partitions]) {
    if partitions.is_empty() || those.is_empty() {
        return;
    }
    // How many members fetch from each partition, and so how many partitions each member gets.
    let sharing = those.len().div_ceil(partitions.len());
    let in_all = sharing * partitions.len();
    let quota = |turn: usize| (in_all * (turn + 1)).div_ceil(those.len()) - (in_all * turn).div_ceil(those.len());
    let mut fetched_by: BTreeMap<Place, usize> = partitions.iter().map(|place| (*place, 0)).collect();
    let mut held: Vec<BTreeSet<Place>> = vec![BTreeSet::new(); those.len()];
    for (turn, &member) in those.iter().enumerate() {
        let current = members[member].current.iter();
        let current = current.flat_map(|(topic, all)| all.iter().map(move |partition| (*topic, *partition)));
        for place in current {
            if held[turn].len() == quota(turn) {
                break;
            }
            if let Some(members) = fetched_by.get_mut(&place).filter(|members| **members < sharing) {
                *members += 1;
                held[turn].insert(place);
            }
        }
    }
    // What is missing goes to those who have least of what they are to have, in turn.
    let mut next = 0;
    for (place, members) in &mut fetched_by {
        let mut passed = 0;
        while *members < sharing && passed < those.len() {
            let turn = next % those.len();
            next += 1;
            if held[turn].len() < quota(turn) && held[turn].insert(*place) {
                *members += 1;
                passed = 0;
            } else {
                passed += 1;
            }
        }
    }
    for (held, &member) in held.into_iter().zip(those) {
        for (topic, partition) in held {
            shares[member].entry(topic).or_default().insert(partition);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::tests::SeededRandom;

    fn topic(number: usize) -> Uuid {
        Uuid([number as u8; 16])
    }

    /// Shares out, with the members' subscriptions and what they have.
    fn run(
        subscriptions: &[(Arc<str>, Vec<usize>)],
        current: &BTreeMap<Arc<str>, Partitions>,
        initialized: &Partitions,
    ) -> BTreeMap<Arc<str>, Partitions> {
        let nothing = Partitions::new();
        let members: Vec<Subscriber> = subscriptions
            .iter()
            .map(|(id, topics)| Subscriber {
                id,
                topics: topics.iter().map(|number| topic(*number)).collect(),
                current: current.get(id).unwrap_or(&nothing),
            })
            .collect();
        assign(&members, initialized)
    }

    #[test]
    fn every_partition_is_fetched_from_and_members_have_as_many_as_each_other() {
        for seed in 0..300 {
            let random = SeededRandom::new(seed);
            let initialized: Partitions = (0..3)
                .map(|number| (topic(number), (0..1 + random.below(6) as i32).collect::<BTreeSet<i32>>()))
                .collect();
            let mut current = BTreeMap::new();
            let same = random.below(2) == 0;
            for round in 0..4 {
                let subscriptions: Vec<(Arc<str>, Vec<usize>)> = (0..1 + random.below(9))
                    .map(|number| {
                        let some = (0..3).filter(|_| random.below(2) == 0).collect();
                        (format!("m{number}").into(), if same { vec![0, 2] } else { some })
                    })
                    .collect();
                let shares = run(&subscriptions, &current, &initialized);
                let of = |member: &str| shares[member].values().map(BTreeSet::len).sum::<usize>();
                for (member, topics) in &subscriptions {
                    let allowed = shares[member].keys().all(|id| topics.iter().any(|number| topic(*number) == *id));
                    assert!(allowed, "seed {seed}, round {round}: {member} has what it does not subscribe to");
                    assert!(topics.is_empty() || of(member) > 0, "seed {seed}, round {round}: {member} has nothing");
                }
                let wanted = (0..3).filter(|number| subscriptions.iter().any(|(_, topics)| topics.contains(number)));
                for (id, partitions) in wanted.map(|number| (topic(number), &initialized[&topic(number)])) {
                    for partition in partitions {
                        let fetched =
                            shares.values().any(|share| share.get(&id).is_some_and(|all| all.contains(partition)));
                        assert!(fetched, "seed {seed}, round {round}: nobody fetches from {id}-{partition}");
                    }
                }
                if same {
                    let counts: Vec<usize> = subscriptions.iter().map(|(member, _)| of(member)).collect();
                    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
                    assert!(most - least <= 1, "seed {seed}, round {round}: {counts:?}");
                }
                let again = run(&subscriptions, &shares, &initialized);
                assert_eq!(again, shares, "seed {seed}, round {round}: what is even stays as it is");
                current = shares;
            }
        }
    }
}
