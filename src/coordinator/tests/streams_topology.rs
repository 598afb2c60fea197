//! Topologies of streams groups and the topics that they need: what is missing, how many partitions it is to have, what can
//! never work.

use super::streams::{active, counting, internal, running, starting, stateless, statuses, subtopology, tasks};
use super::*;

/// What is said of a topology: statuses and missing topics, or why it is refused.
type Fit = Result<(Vec<(StreamsStatus, String)>, Vec<InternalTopic>), (Error, String)>;

#[test]
fn internal_topics_are_made_first() {
    let mut h = Harness::streaming(&[]);
    let answer = h.hears(starting("a", counting()));
    assert_eq!(answer.statuses, [(StreamsStatus::MissingSourceTopics, "Source topics t are missing.".to_owned())]);
    assert_eq!((answer.missing, h.streams_state()), (vec![], "NotReady"));
    h.set_topics(&[("t", 3)]);
    let answer = h.hears(running("a", 2));
    assert_eq!(
        answer.statuses,
        [(StreamsStatus::MissingInternalTopics, "Internal topics are missing: c, r".to_owned())]
    );
    assert_eq!(answer.missing, [internal("c", 3), internal("r", 3)]);
    assert_eq!((h.streams_state(), answer.tasks), ("NotReady", None));
    // Not all of them at once.
    h.set_topics(&[("t", 3), ("r", 3)]);
    assert_eq!(h.hears(running("a", answer.member_epoch)).missing, [internal("c", 3)]);
    h.set_topics(&[("t", 3), ("r", 3), ("c", 3)]);
    let answer = h.hears(running("a", 4));
    assert_eq!(active(&answer), (5, Some(tasks(&[("0", &[0, 1, 2]), ("1", &[0, 1, 2])]))));
    assert_eq!((answer.statuses, h.streams_state()), (vec![], "Stable"));
    let shown = h.coordinator.describe_streams("g").unwrap().topology.unwrap();
    assert_eq!(shown.subtopologies[1].changelogs, [internal("c", 3)]);
    // A source that grows makes the internal topics too small.
    h.set_topics(&[("t", 4), ("r", 3), ("c", 3)]);
    let answer = h.hears(running("a", 5));
    let detail = "Existing topic r has different number of partitions: expected 4, found 3";
    assert_eq!(answer.statuses, [(StreamsStatus::IncorrectlyPartitionedTopics, detail.to_owned())]);
    assert_eq!(active(&answer), (5, Some(tasks(&[]))), "there are no tasks any more, so they are given up");
}

#[test]
fn partition_counts_follow_the_topology() {
    let mut h = Harness::streaming(&[("t", 3), ("u", 5), ("v", 3)]);
    let problem = |h: &mut Harness, topology: Topology| -> Fit {
        let token = h.stream(starting("a", topology));
        let found = h.streamed(token).map(|answer| (answer.statuses, answer.missing));
        let token = h.token();
        h.stream(running("a", -1));
        let actions = h.coordinator.delete_group(h.now(), token, "g");
        h.take(actions);
        found
    };
    let of = |subtopologies: Vec<Subtopology>| Topology { epoch: 0, subtopologies };
    let together = |topics: &[&str]| vec![topics.iter().map(|topic| (*topic).to_owned()).collect()];
    let missing = |found: Fit| found.unwrap().1;

    // A chain: the second repartition topic follows the first, which follows the widest source.
    let chain = of(vec![
        Subtopology { sink_topics: vec!["r".into()], ..subtopology("0", &["t", "u"]) },
        Subtopology {
            repartition_sources: vec![internal("r", 0)],
            sink_topics: vec!["s".into()],
            ..subtopology("1", &[])
        },
        Subtopology { repartition_sources: vec![internal("s", 0)], ..subtopology("2", &["v"]) },
    ]);
    assert_eq!(missing(problem(&mut h, chain.clone())), [internal("r", 5), internal("s", 5)]);
    // One whose number is given keeps it, and what follows it has it too.
    let mut fixed = chain.clone();
    fixed.subtopologies[1].repartition_sources = vec![internal("r", 7)];
    assert_eq!(missing(problem(&mut h, fixed.clone())), [internal("r", 7), internal("s", 7)]);
    // Copartitioned with a source, an open one follows the source.
    let mut joined = chain.clone();
    joined.subtopologies[2].copartition_groups = together(&["v", "s"]);
    assert_eq!(missing(problem(&mut h, joined)), [internal("r", 5), internal("s", 3)]);
    // Given ones that are copartitioned with something else cannot.
    fixed.subtopologies[1] = Subtopology {
        copartition_groups: together(&["v", "r"]),
        source_topics: vec!["v".into()],
        ..fixed.subtopologies[1].clone()
    };
    let detail =
        "Number of partitions [7] of repartition topic [r] doesn't match number of partitions [3] of the source topic.";
    let wrong = |detail: &str| Ok((vec![(StreamsStatus::IncorrectlyPartitionedTopics, detail.to_owned())], vec![]));
    assert_eq!(problem(&mut h, fixed), wrong(detail));
    let sources = Subtopology { copartition_groups: together(&["t", "u"]), ..subtopology("0", &["t", "u"]) };
    let detail = "Following topics do not have the same number of partitions: [{t=3, u=5}]";
    assert_eq!(problem(&mut h, of(vec![sources])), wrong(detail));
    // A changelog has as many as the widest source, others there are in its way.
    let stateful = Subtopology { changelogs: vec![internal("c", 0)], ..subtopology("0", &["t", "u"]) };
    assert_eq!(missing(problem(&mut h, of(vec![stateful]))), [internal("c", 5)]);

    // What can never work is refused, and makes no group.
    let mut refused = |topology, error, message: &str| {
        assert_eq!(problem(&mut h, topology), Err((error, message.to_owned())));
        assert_eq!(h.coordinator.list(&[], &[]), []);
    };
    let never = Error::StreamsInvalidTopology;
    refused(of(vec![subtopology("0", &[])]), never, "No source topics found for subtopology 0");
    let unused = Subtopology { repartition_sources: vec![internal("r", 0)], ..subtopology("0", &["t"]) };
    let why = "Failed to compute number of partitions for all repartition topics, because a repartition source topic is never \
               used as a sink topic.";
    refused(of(vec![unused]), never, why);
    let circle = Subtopology {
        repartition_sources: vec![internal("r", 0)],
        sink_topics: vec!["r".into()],
        ..subtopology("0", &[])
    };
    let why = "Failed to compute number of partitions for all repartition topics. There may be loops in the topology that \
               cannot be resolved.";
    refused(of(vec![circle]), never, why);
    let sized = Subtopology { changelogs: vec![internal("c", 2)], ..subtopology("0", &["t"]) };
    refused(of(vec![sized]), never, "Changelog topic c must have an undefined partition count, but it is set to 2.");
    refused(of(vec![subtopology("0", &["t"]), subtopology("0", &["t"])]), never, "Subtopology 0 is there twice.");
    let negative = Subtopology { repartition_sources: vec![internal("r", -1)], ..subtopology("0", &["t"]) };
    refused(of(vec![negative]), never, "Topic r is to have -1 partitions.");
}

#[test]
fn many_missing_topics_are_summed_up() {
    let mut h = Harness::streaming(&[]);
    let answer = h
        .hears(starting("a", Topology { epoch: 0, subtopologies: vec![subtopology("0", &["e", "d", "c", "b", "a"])] }));
    assert_eq!(answer.statuses[0].1, "Source topics a, b, c and 2 additional topics are missing.");
}

#[test]
fn the_topology_stays_what_it_is() {
    let mut h = Harness::streaming(&[("t", 1), ("u", 1)]);
    let at = |epoch| Topology { epoch, ..stateless() };
    h.hears(starting("a", at(5)));
    let other = Topology { epoch: 5, subtopologies: vec![subtopology("0", &["u"])] };
    for topology in [other, at(6)] {
        let (error, message) = h.turned_away(starting("b", topology));
        assert_eq!((error, message.as_str()), (Error::InvalidRequest, "Topology updates are not supported yet."));
    }
    let answer = h.hears(starting("b", at(4)));
    let detail = "The member's topology epoch 4 is behind the group's topology epoch 5.";
    assert_eq!(answer.statuses, [(StreamsStatus::StaleTopology, detail.to_owned())]);
    assert_eq!(statuses(&h.hears(running("b", 3))), [StreamsStatus::StaleTopology]);
    assert_eq!(h.hears(running("a", 2)).statuses, []);
}
