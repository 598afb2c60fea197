//! Consumers without a group: they read on from where they are, at either isolation level.

use doze::protocol::{ErrorCode, Uuid};

use super::{Client, Work, draw_partition, is_of_the_moment};
use crate::fetched::fetch;
use crate::net::Connection;

pub struct Reader {
    name: String,
    committed: bool,
    /// Topic, partition, and the next offset to read there.
    place: Option<(Uuid, i32, i64)>,
}

impl Reader {
    pub fn new(n: u64) -> Self {
        Reader { name: format!("reader-{n}"), committed: n == 0, place: None }
    }

    async fn step(&mut self, connection: &Connection) {
        let world = &connection.world;
        let Some((topic, partition, from)) = self.place.filter(|_| connection.draw(|prng| prng.chance(6, 7))) else {
            let Some((_, topic, partition)) = draw_partition(connection, |_| true) else { return };
            let floor = world.model.borrow_mut().log(topic, partition).floor();
            let end = if self.committed { floor.last_stable } else { floor.high_watermark };
            let from = connection.draw(|prng| prng.between(floor.start as u64, end.max(floor.start) as u64));
            self.place = Some((topic, partition, from as i64));
            return;
        };
        let floor = world.model.borrow_mut().log(topic, partition).floor();
        let max_wait_ms = connection.draw(|prng| *prng.pick(&[0, 5, 100]));
        let Some(answer) = fetch(connection, topic, partition, from, self.committed, max_wait_ms).await else { return };
        match answer {
            Ok(fetched) => {
                if let Some(damage) = &fetched.damage
                    && !world.is_troubled()
                {
                    world.violate(format!("{}: after offset {}: {damage}", self.name, fetched.next()));
                }
                let result = world.model.borrow_mut().fetched((topic, partition), &fetched, floor);
                world.check(result);
                self.place = Some((topic, partition, fetched.next()));
            }
            Err(ErrorCode::OffsetOutOfRange) => {
                let mut model = world.model.borrow_mut();
                let log = model.log(topic, partition);
                let is_deleted = from < log.floor().start || !log.keeps(from);
                let may_be =
                    is_deleted || log.policy == crate::log_model::Policy::Retain || from > floor.high_watermark;
                let name = log.name.clone();
                drop(model);
                if !may_be {
                    world.violate(format!("{name}: offset {from} is said to be out of range; {floor:?}"));
                }
                self.place = None;
            }
            Err(ErrorCode::UnknownTopicId | ErrorCode::UnknownTopicOrPartition) => self.place = None,
            Err(error) if is_of_the_moment(error) => {}
            Err(error) => world.violate(format!("{}: a fetch is refused: {error:?}", self.name)),
        }
    }
}

impl Client for Reader {
    fn name(&self) -> &str {
        &self.name
    }

    fn live<'a>(&'a mut self, connection: &'a Connection) -> Work<'a> {
        Box::pin(async move {
            // What it read last may be gone, and something else in its place.
            self.place = None;
            loop {
                connection.think().await;
                self.step(connection).await;
            }
        })
    }
}
