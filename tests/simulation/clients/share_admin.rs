//! Who looks after the share group: shows its offsets, has everybody leave and then moves its start, or has it forget a topic.

use std::time::Duration;

use doze::protocol::messages::alter_share_group_offsets::{
    AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsRequestPartition, AlterShareGroupOffsetsRequestTopic,
};
use doze::protocol::messages::delete_share_group_offsets::{
    DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsRequestTopic,
};
use doze::protocol::messages::describe_share_group_offsets::{
    DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsRequestGroup, DescribeShareGroupOffsetsRequestTopic,
};
use doze::protocol::{ErrorCode, Uuid};

use super::share_group::{GROUP, TOPIC};
use super::{Client, Work, draw_partition, error, is_of_the_moment};
use crate::net::Connection;

#[derive(Default)]
pub struct ShareAdmin {}

impl ShareAdmin {
    async fn step(&mut self, connection: &Connection) {
        let world = &connection.world;
        if !world.model.borrow().share.is_configured {
            return;
        }
        match connection.draw(|prng| prng.below(6)) {
            0..2 => show(connection, false).await,
            // They are in its way.
            2 => alter(connection).await,
            choice => {
                world.model.borrow_mut().share.is_closing = true;
                for _ in 0..40 {
                    if world.model.borrow().share.inside.is_empty() {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                if choice == 5 {
                    delete(connection).await;
                } else {
                    alter(connection).await;
                }
                world.model.borrow_mut().share.is_closing = false;
            }
        }
    }
}

/// Has the model compare what is shown of the group. `at_rest`: nobody else does anything.
pub async fn show(connection: &Connection, at_rest: bool) {
    let world = &connection.world;
    let Some((id, partitions)) = world.model.borrow().id_of(TOPIC) else { return };
    let topic =
        DescribeShareGroupOffsetsRequestTopic { topic_name: TOPIC.into(), partitions: (0..partitions).collect() };
    (0..partitions).for_each(|partition| world.model.borrow_mut().shared((id, partition)).0.show_begins());
    let group = DescribeShareGroupOffsetsRequestGroup { group_id: GROUP.into(), topics: Some(vec![topic]) };
    let Some(answer) = connection.call(1, &DescribeShareGroupOffsetsRequest { groups: vec![group] }).await else {
        return;
    };
    for data in answer.groups.iter().flat_map(|group| &group.topics).flat_map(|topic| &topic.partitions) {
        match error(data.error_code) {
            ErrorCode::None => {}
            _ if world.is_troubled() => continue,
            error => {
                world.violate(format!(
                    "share group: its offset in partition {} is not shown: {error:?}",
                    data.partition_index
                ));
                continue;
            }
        }
        world.count("share: start offsets shown");
        let start = (data.start_offset >= 0).then_some(data.start_offset);
        let (shown, lags) = {
            let mut model = world.model.borrow_mut();
            let (partition, log, wanted) = model.shared((id, data.partition_index));
            let shown = partition.shown(start, log, &wanted);
            let lags = match start {
                Some(start) if at_rest => partition.lags(start, data.lag, log, &wanted),
                _ => Ok(()),
            };
            (shown, lags)
        };
        world.check(shown);
        world.check(lags);
    }
}

/// What an answer says of a change: whether it holds.
fn outcome(code: Option<ErrorCode>) -> Option<bool> {
    match code {
        Some(ErrorCode::None) => Some(true),
        Some(_) => Some(false),
        None => None,
    }
}

/// Tells the model what came of asking for a start.
fn settle(connection: &Connection, place: (Uuid, i32), ask: u64, code: Option<ErrorCode>) {
    // After an error of the moment only the next process knows.
    if !code.is_some_and(is_of_the_moment) {
        connection.world.model.borrow_mut().shared(place).0.start_answered(ask, outcome(code));
    }
    if code == Some(ErrorCode::None) {
        connection.world.count("share: starts moved");
    }
}

async fn alter(connection: &Connection) {
    let world = &connection.world;
    let Some((_, id, partition)) = draw_partition(connection, |name| name == TOPIC) else { return };
    let floor = world.model.borrow_mut().log(id, partition).floor();
    let start =
        connection.draw(|prng| prng.between(floor.start as u64, floor.high_watermark.max(floor.start) as u64)) as i64;
    let ask = world.model.borrow_mut().shared((id, partition)).0.start_asked(start);
    let asked = AlterShareGroupOffsetsRequestPartition { partition_index: partition, start_offset: start };
    let topic = AlterShareGroupOffsetsRequestTopic { topic_name: TOPIC.into(), partitions: vec![asked] };
    let request = AlterShareGroupOffsetsRequest { group_id: GROUP.into(), topics: vec![topic] };
    let answer = connection.call(0, &request).await;
    let code = answer.map(|answer| match error(answer.error_code) {
        ErrorCode::None => error(answer.responses[0].partitions[0].error_code),
        error => error,
    });
    connection.note(format_args!("has partition {partition} start at {start}: {code:?}"));
    settle(connection, (id, partition), ask, code);
}

async fn delete(connection: &Connection) {
    let world = &connection.world;
    let Some((id, partitions)) = world.model.borrow().id_of(TOPIC) else { return };
    let asks: Vec<u64> = {
        let mut model = world.model.borrow_mut();
        (0..partitions).map(|partition| model.shared((id, partition)).0.start_asked(0)).collect()
    };
    let topics = vec![DeleteShareGroupOffsetsRequestTopic { topic_name: TOPIC.into() }];
    let answer = connection.call(0, &DeleteShareGroupOffsetsRequest { group_id: GROUP.into(), topics }).await;
    let code = answer.map(|answer| match error(answer.error_code) {
        ErrorCode::None => error(answer.responses[0].error_code),
        error => error,
    });
    connection.note(format_args!("has the group forget {TOPIC}: {code:?}"));
    for (partition, ask) in (0..partitions).zip(asks) {
        settle(connection, (id, partition), ask, code);
    }
}

impl Client for ShareAdmin {
    fn name(&self) -> &str {
        "share-admin"
    }

    fn live<'a>(&'a mut self, connection: &'a Connection) -> Work<'a> {
        Box::pin(async move {
            connection.world.model.borrow_mut().share.is_closing = false;
            loop {
                connection.think().await;
                self.step(connection).await;
            }
        })
    }
}
