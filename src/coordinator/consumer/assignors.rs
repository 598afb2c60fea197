//! How the partitions of topics are shared out among those who subscribe to them. All of it is deterministic: the same
//! members with the same subscriptions and holdings get the same partitions.
//!
//! Every partition of a topic that somebody subscribes to goes to exactly one of its subscribers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Partitions;
use crate::protocol::Uuid;

/// A way of sharing out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assignor {
    /// Everybody gets the same number, give or take one, and keeps what it has as far as that allows.
    Uniform,
    /// Of every topic, each subscriber gets a range of neighbours; topics with as many partitions and the same subscribers
    /// are cut alike.
    Range,
}

impl Assignor {
    pub fn name(self) -> &'static str {
        match self {
            Assignor::Uniform => "uniform",
            Assignor::Range => "range",
        }
    }

    /// The assignor of a name that a client or a config gives it.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "uniform" | "org.apache.kafka.coordinator.group.assignor.UniformAssignor" => Some(Assignor::Uniform),
            "range" | "org.apache.kafka.coordinator.group.assignor.RangeAssignor" => Some(Assignor::Range),
            _ => None,
        }
    }
}

/// A member that takes part.
pub(super) struct Subscriber<'a> {
    pub id: &'a Arc<str>,
    pub instance_id: Option<&'a Arc<str>>,
    /// Only topics that exist.
    pub topics: BTreeSet<Uuid>,
    /// What it was to have so far.
    pub current: &'a Partitions,
}

/// Shares out the partitions. `count` says how many a topic has.
pub(super) fn assign(
    assignor: Assignor,
    members: &[Subscriber<'_>],
    count: impl Fn(Uuid) -> i32,
) -> BTreeMap<Arc<str>, Partitions> {
    let mut shares = vec![Partitions::new(); members.len()];
    match assignor {
        Assignor::Range => range(members, count, &mut shares),
        Assignor::Uniform if members.windows(2).all(|pair| pair[0].topics == pair[1].topics) => {
            uniform(members, count, &mut shares);
        }
        Assignor::Uniform => uniform_mixed(members, count, &mut shares),
    }
    members.iter().zip(shares).map(|(member, share)| (member.id.clone(), share)).collect()
}

fn range(members: &[Subscriber<'_>], count: impl Fn(Uuid) -> i32, shares: &mut [Partitions]) {
    let mut order: Vec<usize> = (0..members.len()).collect();
    // Static members come first and by their instance, so that they get the same range every time.
    order.sort_by_key(|&place| match members[place].instance_id {
        Some(instance) => (0, instance),
        None => (1, members[place].id),
    });
    let mut subscribers: BTreeMap<Uuid, Vec<usize>> = BTreeMap::new();
    for place in order {
        for topic in &members[place].topics {
            subscribers.entry(*topic).or_default().push(place);
        }
    }
    for (topic, places) in subscribers {
        let (partitions, sharers) = (count(topic), i32::try_from(places.len()).unwrap_or(i32::MAX));
        let (each, extra) = (partitions / sharers, partitions % sharers);
        let mut start = 0;
        for (turn, place) in (0..).zip(places) {
            let end = start + each + i32::from(turn < extra);
            if start < end {
                shares[place].insert(topic, (start..end).collect());
            }
            start = end;
        }
    }
}

/// For members that all subscribe to the same topics.
fn uniform(members: &[Subscriber<'_>], count: impl Fn(Uuid) -> i32, shares: &mut [Partitions]) {
    let Some(topics) = members.first().map(|member| &member.topics) else { return };
    let mut free: BTreeSet<(Uuid, i32)> =
        topics.iter().flat_map(|topic| (0..count(*topic)).map(move |partition| (*topic, partition))).collect();
    let (each, extra) = (free.len() / members.len(), free.len() % members.len());
    let mut held: Vec<Vec<(Uuid, i32)>> = members.iter().map(|member| take(member.current, &mut free)).collect();
    // Those who have most may keep one more than the others.
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|&place| std::cmp::Reverse(held[place].len()));
    let quota: BTreeMap<usize, usize> =
        order.iter().enumerate().map(|(turn, &place)| (place, each + usize::from(turn < extra))).collect();
    for (place, held) in held.iter_mut().enumerate() {
        free.extend(held.drain(quota[&place].min(held.len())..));
    }
    let mut free = free.into_iter();
    for (place, mut held) in held.into_iter().enumerate() {
        held.extend(free.by_ref().take(quota[&place] - held.len()));
        for (topic, partition) in held {
            shares[place].entry(topic).or_default().insert(partition);
        }
    }
}

/// What of a member's holdings is still there to be had, taken out of what is free.
fn take(current: &Partitions, free: &mut BTreeSet<(Uuid, i32)>) -> Vec<(Uuid, i32)> {
    let all = current.iter().flat_map(|(topic, partitions)| partitions.iter().map(|partition| (*topic, *partition)));
    all.filter(|place| free.remove(place)).collect()
}

/// How often all topics are gone through to even out what members of different subscriptions have.
const ROUNDS: usize = 16;

/// For members with different subscriptions.
fn uniform_mixed(members: &[Subscriber<'_>], count: impl Fn(Uuid) -> i32, shares: &mut [Partitions]) {
    let mut subscribers: BTreeMap<Uuid, Vec<usize>> = BTreeMap::new();
    for (place, member) in members.iter().enumerate() {
        for topic in &member.topics {
            subscribers.entry(*topic).or_default().push(place);
        }
    }
    let mut load = vec![0usize; members.len()];
    let mut topics: Vec<MixedTopic> = subscribers
        .into_iter()
        .map(|(topic, subscribers)| MixedTopic::new(topic, count(topic), subscribers, members, &mut load))
        .collect();
    // Those that weigh most on their subscribers first; the small ones can then even things out.
    topics.sort_by(|a, b| b.weight().total_cmp(&a.weight()).then(a.subscribers.len().cmp(&b.subscribers.len())));
    for topic in &mut topics {
        topic.fill(&mut load);
    }
    for _ in 0..ROUNDS {
        let moved: usize = topics.iter_mut().map(|topic| topic.even_out(&mut load)).sum();
        if moved == 0 {
            break;
        }
    }
    for topic in topics {
        for (partition, owner) in (0..).zip(topic.owners) {
            if let Some(owner) = owner {
                shares[owner].entry(topic.id).or_default().insert(partition);
            }
        }
    }
}

/// A topic with its subscribers and who has which partition, all as places in the list of members.
struct MixedTopic {
    id: Uuid,
    subscribers: Vec<usize>,
    owners: Vec<Option<usize>>,
}

impl MixedTopic {
    fn new(id: Uuid, count: i32, subscribers: Vec<usize>, members: &[Subscriber<'_>], load: &mut [usize]) -> Self {
        let mut owners = vec![None; usize::try_from(count).unwrap_or(0)];
        for &place in &subscribers {
            for partition in members[place].current.get(&id).into_iter().flatten() {
                let owner = usize::try_from(*partition).ok().and_then(|partition| owners.get_mut(partition));
                if let Some(owner @ None) = owner {
                    *owner = Some(place);
                    load[place] += 1;
                }
            }
        }
        MixedTopic { id, subscribers, owners }
    }

    fn weight(&self) -> f64 {
        self.owners.len() as f64 / self.subscribers.len() as f64
    }

    fn least_loaded(&self, load: &[usize]) -> usize {
        *self.subscribers.iter().min_by_key(|&&place| load[place]).expect("a topic is here because of a subscriber")
    }

    fn fill(&mut self, load: &mut [usize]) {
        for partition in 0..self.owners.len() {
            if self.owners[partition].is_none() {
                let place = self.least_loaded(load);
                self.owners[partition] = Some(place);
                load[place] += 1;
            }
        }
    }

    /// Moves partitions from those who have most to those who have least. Answers how many were moved.
    fn even_out(&mut self, load: &mut [usize]) -> usize {
        let mut moved = 0;
        loop {
            let least = self.least_loaded(load);
            let owned = (0..self.owners.len()).filter_map(|partition| Some((self.owners[partition]?, partition)));
            let Some((most, partition)) = owned.max_by_key(|(owner, _)| load[*owner]) else { return moved };
            if load[most] <= load[least] + 1 {
                return moved;
            }
            self.owners[partition] = Some(least);
            load[most] -= 1;
            load[least] += 1;
            moved += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::tests::SeededRandom;

    fn topic(number: u8) -> Uuid {
        Uuid([number; 16])
    }

    fn run(
        assignor: Assignor,
        members: &[(&str, Option<&str>, &[u8])],
        current: &BTreeMap<Arc<str>, Partitions>,
        counts: &[i32],
    ) -> BTreeMap<Arc<str>, Partitions> {
        let nothing = Partitions::new();
        let names: Vec<(Arc<str>, Option<Arc<str>>)> =
            members.iter().map(|(id, instance, _)| (Arc::from(*id), instance.map(Arc::from))).collect();
        let subscribers: Vec<Subscriber> = members
            .iter()
            .zip(&names)
            .map(|((_, _, topics), (id, instance))| Subscriber {
                id,
                instance_id: instance.as_ref(),
                topics: topics.iter().map(|number| topic(*number)).collect(),
                current: current.get(id).unwrap_or(&nothing),
            })
            .collect();
        assign(assignor, &subscribers, |id| counts[usize::from(id.0[0])])
    }

    fn sizes(shares: &BTreeMap<Arc<str>, Partitions>) -> Vec<usize> {
        shares.values().map(|share| share.values().map(BTreeSet::len).sum()).collect()
    }

    #[test]
    fn ranges_are_cut_alike_and_static_members_come_first() {
        let members = [("a", None, [0, 1].as_slice()), ("b", None, &[0, 1]), ("z", Some("i"), &[0, 1])];
        let shares = run(Assignor::Range, &members, &BTreeMap::new(), &[4, 3]);
        let of = |id: &str, number| shares[id].get(&topic(number)).cloned().unwrap_or_default();
        assert_eq!(of("z", 0), BTreeSet::from([0, 1]));
        assert_eq!(of("a", 0), BTreeSet::from([2]));
        assert_eq!(of("b", 0), BTreeSet::from([3]));
        assert_eq!(
            (of("z", 1), of("a", 1), of("b", 1)),
            (BTreeSet::from([0]), BTreeSet::from([1]), BTreeSet::from([2]))
        );
        // Different subscriptions: each topic is cut among its own subscribers; some may get nothing.
        let shares = run(Assignor::Range, &[("a", None, &[0]), ("b", None, &[0, 1])], &BTreeMap::new(), &[1, 2]);
        assert_eq!(shares["a"], Partitions::from([(topic(0), BTreeSet::from([0]))]));
        assert_eq!(shares["b"], Partitions::from([(topic(1), BTreeSet::from([0, 1]))]));
    }

    #[test]
    fn uniform_keeps_what_members_have() {
        let three = [("a", None, [0].as_slice()), ("b", None, &[0]), ("c", None, &[0])];
        let first = run(Assignor::Uniform, &three[..2], &BTreeMap::new(), &[5]);
        assert_eq!(sizes(&first), [3, 2]);
        let second = run(Assignor::Uniform, &three, &first, &[5]);
        assert_eq!(sizes(&second), [2, 2, 1]);
        assert!(second["a"][&topic(0)].is_subset(&first["a"][&topic(0)]));
        assert_eq!(second["b"], first["b"]);
        // The one that leaves is made up for, and whoever has two stays with them.
        let third = run(Assignor::Uniform, &three[1..], &second, &[5]);
        assert_eq!(sizes(&third), [3, 2]);
        assert!(second["b"][&topic(0)].is_subset(&third["b"][&topic(0)]));
    }

    #[test]
    fn whatever_the_subscriptions_everything_is_assigned_once_and_evenly() {
        let random = SeededRandom::new(7);
        for round in 0..300 {
            let counts: Vec<i32> = (0..4).map(|_| random.below(12) as i32).collect();
            let names: Vec<String> = (0..1 + random.below(6)).map(|number| format!("m{number}")).collect();
            let same = random.below(2) == 0;
            let topics: Vec<Vec<u8>> = names
                .iter()
                .map(|_| if same { vec![0, 2] } else { (0..4).filter(|_| random.below(2) == 0).collect() })
                .collect();
            let mut current = BTreeMap::new();
            for assignor in [Assignor::Uniform, Assignor::Range, Assignor::Uniform, Assignor::Uniform] {
                let members: Vec<(&str, Option<&str>, &[u8])> =
                    names.iter().zip(&topics).map(|(name, topics)| (name.as_str(), None, topics.as_slice())).collect();
                let shares = run(assignor, &members, &current, &counts);
                let mut owners: BTreeMap<(Uuid, i32), usize> = BTreeMap::new();
                for (place, share) in shares.values().enumerate() {
                    for (id, partitions) in share {
                        assert!(topics[place].contains(&id.0[0]), "round {round}: not subscribed");
                        for partition in partitions {
                            assert_eq!(owners.insert((*id, *partition), place), None, "round {round}: assigned twice");
                        }
                    }
                }
                let wanted: usize = (0..4u8)
                    .filter(|number| topics.iter().any(|topics| topics.contains(number)))
                    .map(|number| counts[usize::from(number)] as usize)
                    .sum();
                assert_eq!(owners.len(), wanted, "round {round}: all of it is assigned");
                if assignor == Assignor::Uniform {
                    let sizes = sizes(&shares);
                    for ((id, _), owner) in &owners {
                        for (place, topics) in topics.iter().enumerate() {
                            if topics.contains(&id.0[0]) {
                                assert!(sizes[*owner] <= sizes[place] + 1, "round {round}: {sizes:?}");
                            }
                        }
                    }
                    let again = run(assignor, &members, &shares, &counts);
                    assert_eq!(again, shares, "round {round}: what is even stays as it is");
                }
                current = shares;
            }
        }
    }
}
