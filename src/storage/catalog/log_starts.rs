//! The log start offsets that DeleteRecords and retention have raised.

use super::Catalog;
use super::error::CatalogError;
use super::tables::LOG_STARTS;
use crate::protocol::Uuid;

impl Catalog {
    /// The first offset of a partition that is not deleted; 0 when nothing was ever deleted.
    pub fn log_start(&self, topic_id: Uuid, partition: i32) -> Result<i64, CatalogError> {
        self.read(|transaction| {
            let value = transaction.open_table(LOG_STARTS)?.get((topic_id.0, partition))?;
            Ok(value.map_or(0, |value| value.value()))
        })
    }
}
