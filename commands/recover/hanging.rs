//! Transactions that nobody will end: open in a log, and over as far as the catalog knows.
//!
//! The broker ends every transaction that its catalog has, so one that it has not stays open, and readers of committed records
//! wait before it for ever. Whether it was committed cannot be told, so nothing is written here: `kafka-transactions.sh abort`
//! ends it, once the broker runs and somebody has decided that.

use doze::coordinator::transactions::{Metadata, State};
use doze::storage::inspect::{Depth, PartitionSummary};
use doze::storage::offline::{CatalogState, DataDir, Origin};

use crate::exit::{Code, Failure};

/// A transaction that hangs.
#[derive(Debug)]
pub struct Hanging {
    pub topic: String,
    pub partition: i32,
    pub producer_id: i64,
    pub first_offset: i64,
}

impl Hanging {
    /// What ends it.
    pub fn command(&self) -> String {
        let Hanging { topic, partition, first_offset, .. } = self;
        format!(
            "kafka-transactions.sh --bootstrap-server HOST:PORT abort --topic {topic} --partition {partition} --start-offset {first_offset}"
        )
    }
}

/// Those of a directory of doze's whose catalog can be read; of others nothing is known.
pub fn find(dir: &DataDir) -> Result<Vec<Hanging>, Failure> {
    let mut all = Vec::new();
    let (Origin::Doze, CatalogState::Open(catalog)) = (dir.origin(), dir.catalog_state()) else { return Ok(all) };
    let stored = catalog.transactional_ids().map_err(|error| Failure::of(Code::CouldNotRun, &error))?;
    // What cannot be read may have any of them.
    let Ok(known) = stored.iter().map(|(_, bytes)| Metadata::from_bytes(bytes)).collect::<Result<Vec<_>, _>>() else {
        return Ok(all);
    };
    let is_known = |topic: &str, partition: i32, producer_id: i64| {
        known.iter().any(|known| {
            (known.state == State::Ongoing || known.state.is_prepared())
                && [known.producer_id, known.previous_producer_id, known.next_producer_id].contains(&producer_id)
                && known.places.iter().any(|place| &*place.0 == topic && place.1 == partition)
        })
    };
    for folder in dir.partitions() {
        let summary = PartitionSummary::read(dir, folder, Depth::Ends);
        let summary = summary.map_err(|error| Failure::of(Code::CouldNotRun, &error))?;
        let (topic, partition) = (summary.topic.clone(), summary.partition);
        let hangs = summary.open_transactions.iter().filter(|open| !is_known(&topic, partition, open.producer_id));
        all.extend(hangs.map(|open| Hanging {
            topic: topic.clone(),
            partition,
            producer_id: open.producer_id,
            first_offset: open.first_offset,
        }));
    }
    Ok(all)
}
