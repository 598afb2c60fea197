//! What the transaction coordinator keeps of each transactional id, in its own bytes.

use redb::ReadableTable;

use super::Catalog;
use super::error::CatalogError;
use super::tables::TRANSACTIONAL_IDS;

impl Catalog {
    /// The bytes of one transactional id.
    pub fn transactional_id(&self, id: &str) -> Result<Option<Vec<u8>>, CatalogError> {
        self.read(|transaction| {
            Ok(transaction.open_table(TRANSACTIONAL_IDS)?.get(id)?.map(|value| value.value().to_vec()))
        })
    }

    /// All transactional ids with their bytes, sorted.
    pub fn transactional_ids(&self) -> Result<Vec<(String, Vec<u8>)>, CatalogError> {
        self.read(|transaction| {
            let mut ids = Vec::new();
            for entry in transaction.open_table(TRANSACTIONAL_IDS)?.iter()? {
                let (id, value) = entry?;
                ids.push((id.value().to_owned(), value.value().to_vec()));
            }
            Ok(ids)
        })
    }
}
