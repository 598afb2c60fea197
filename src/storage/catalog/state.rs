//! Small durable state of other parts: each owns a space of keys and lays out its values itself.

use super::Catalog;
use super::error::CatalogError;
use super::tables::STATE;

/// A key and its value.
pub type KeyValue = (Vec<u8>, Vec<u8>);

impl Catalog {
    /// The value of one key.
    pub fn state(&self, space: &str, key: &[u8]) -> Result<Option<Vec<u8>>, CatalogError> {
        self.read(|transaction| {
            Ok(transaction.open_table(STATE)?.get((space, key))?.map(|value| value.value().to_vec()))
        })
    }

    /// All keys and values of a space, sorted by key.
    pub fn states(&self, space: &str) -> Result<Vec<KeyValue>, CatalogError> {
        let after = format!("{space}\0");
        self.read(|transaction| {
            let mut states = Vec::new();
            for entry in transaction.open_table(STATE)?.range((space, &[][..])..(after.as_str(), &[][..]))? {
                let (key, value) = entry?;
                states.push((key.value().1.to_vec(), value.value().to_vec()));
            }
            Ok(states)
        })
    }
}
